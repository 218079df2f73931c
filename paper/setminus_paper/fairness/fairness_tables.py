"""Tables 4 and 5: every method on Adult and on German credit, all seeds of a row trained together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Literal

from setminus.datasets.tabular import Encoding
from setminus.errors import UserError
from setminus.progress import tracked
from setminus_paper.fairness.measuring import measure as measured
from setminus_paper.fairness.methods import METHODS
from setminus_paper.fairness.trials import Trials, adult_trials, german_trials
from setminus_paper.run import Run

__all__ = ["AVAILABLE", "JOB", "Table", "measure", "runs"]

JOB = "fairness_tables"

Table = Literal["table4", "table5"]
TRIALS = {"table4": adult_trials, "table5": german_trials}
DATA = {"table4": "Adult", "table5": "German"}

AVAILABLE = tuple(name for name, method in METHODS.items() if method.installed)
"""The rows whose libraries are installed, in the order of the tables."""


def runs(table: Table, seeds: tuple[int, ...], methods: Sequence[str], paper: dict[str, dict[str, float]]) -> list[Run]:
    """One run for each row. Both scales are the paper's, which takes minutes: the config does not name them.

    Parameters
    ----------
    table : {"table4", "table5"}
    seeds : tuple of int
    methods : sequence of str
        Names of rows.
    paper : dict
        The paper's numbers by row.

    Returns
    -------
    list of Run
    """
    unknown = sorted({*methods} - {*METHODS})
    if unknown:
        raise UserError(f"there is no method {', '.join(map(repr, unknown))}", do=f"there are {', '.join(METHODS)}.")
    planned = []
    for name, method in METHODS.items():
        if name in methods:
            config = {"data": DATA[table], "method": name, "encoding": method.encoding}
            fit = partial(measure, table=table, method=name, paper=paper.get(name))
            planned.append(Run(table, config, seeds, fit))
    return planned


def measure(
    seeds: tuple[int, ...], *, table: Table, method: str, paper: dict[str, float] | None
) -> list[dict[str, Any]]:
    """Fit one row on all seeds at once, and measure each; "row" is what a page says of it beside its numbers."""
    row = METHODS[method]
    about = {"label": row.label, "kind": row.kind, "needs_group": row.needs_group, "paper": paper}
    with tracked(f"{row.label} on {DATA[table]}, {len(seeds)} seeds"):
        trials, all_rows = _trials(table, seeds, row.encoding)
        # the paper held no rows out to pick an epoch: its rows are trained once more, as it did
        whole = row.fit(all_rows) if row.kind == "paper" else None
        return [{"row": about, **numbers} for numbers in measured(row.fit(trials), trials, whole)]


# the rows that share a full classifier find it by the trials that it was trained on, which must be the same object
@lru_cache(maxsize=2)
def _trials(table: Table, seeds: tuple[int, ...], encoding: Encoding) -> tuple[Trials, Trials]:
    trials = TRIALS[table](seeds, encoding)
    return trials, trials.learning_from_all()
