"""Tables 4 and 5: every method on Adult and on German credit, all seeds of a row trained together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from setminus.datasets.tabular import Encoding
from setminus.progress import tracked
from setminus_paper.fairness.orthogonal import boosting, orthogonal, orthogonal_proxy, tuned, tuned_boosting
from setminus_paper.fairness.orthogonal import tuned_on_folds as on_folds
from setminus_paper.fairness.rivals import laftr, lmifr, rebias
from setminus_paper.fairness.training import vanilla
from setminus_paper.fairness.trials import Predictions, Trials, adult_trials, german_split_trials, german_trials
from setminus_paper.fairness.trials import measure as score
from setminus_paper.published import TABLE4, TABLE5
from setminus_paper.run import Run

__all__ = ["JOB", "METHODS", "PAPER", "Method", "Table", "runs"]

JOB = "fairness_tables"

Table = Literal["table4", "table5", "table5_split"]
TRIALS = {"table4": adult_trials, "table5": german_trials, "table5_split": german_split_trials}
DATA = {"table4": "Adult", "table5": "German", "table5_split": "German, the paper's split"}
PAPER = {"table4": TABLE4, "table5": TABLE5, "table5_split": TABLE5}


@dataclass(frozen=True)
class Method:
    """A row of the tables: a row of the paper's ("paper"), one of ours beyond them, or another library's ("peer").

    `fit` maps `Trials` to `Predictions`; `needs_group` says whether the group has to be known when predicting.
    """

    label: str
    fit: Callable[[Trials], Predictions]
    kind: Literal["paper", "ours", "peer"] = "paper"
    needs_group: bool = False
    encoding: Encoding = "onehot"


METHODS: dict[str, Method] = {
    "vanilla": Method("Vanilla", vanilla),
    "laftr_0.1": Method("LAFTR (0.1)", partial(laftr, gamma=0.1)),
    "laftr_0.5": Method("LAFTR (0.5)", partial(laftr, gamma=0.5)),
    "lmifr_0.05": Method("L-MIFR (0.05)", partial(lmifr, budget=0.05)),
    "lmifr_0.1": Method("L-MIFR (0.1)", partial(lmifr, budget=0.1)),
    "lmifr_stages_0.05": Method("L-MIFR in two stages (0.05)", partial(lmifr, budget=0.05, two_stages=True)),
    "lmifr_stages_0.1": Method("L-MIFR in two stages (0.1)", partial(lmifr, budget=0.1, two_stages=True)),
    "rebias_50": Method("ReBias (50)", partial(rebias, gamma=50.0)),
    "rebias_100": Method("ReBias (100)", partial(rebias, gamma=100.0)),
    "orthogonal": Method("w_x \\ w_1", orthogonal, needs_group=True),
    "orthogonal_uniform": Method("w_x \\ w_1, uniform prior", partial(orthogonal, prior="uniform"), needs_group=True),
    "orthogonal_proxy": Method("w_x \\ proxy", orthogonal_proxy, "ours"),
    "tuned": Method("w_x \\ w_1, tuned", tuned, "ours", needs_group=True),
    "tuned_proxy": Method("w_x \\ proxy, tuned", partial(tuned, principal="proxy"), "ours"),
    "tuned_folds": Method("w_x \\ w_1, tuned on folds", on_folds, "ours", needs_group=True),
    "tuned_folds_proxy": Method("w_x \\ proxy, tuned on folds", partial(on_folds, principal="proxy"), "ours"),
    "tuned_folds_0.04": Method(
        "w_x \\ w_1, tuned on folds to 0.04", partial(on_folds, tolerance=0.04), "ours", needs_group=True
    ),
    "tuned_folds_proxy_0.04": Method(
        "w_x \\ proxy, tuned on folds to 0.04", partial(on_folds, principal="proxy", tolerance=0.04), "ours"
    ),
    "boosting": Method("gradient boosting", boosting, "ours", encoding="raw"),
    "boosting_tuned_proxy": Method("gradient boosting \\ proxy, tuned", tuned_boosting, "ours", encoding="raw"),
}
"""All rows by name. The tables also show other libraries: ``python -m benchmarks table_peers`` measures those rows."""


def runs(
    table: Table, scale: str, seeds: tuple[int, ...], methods: Sequence[str] = tuple(METHODS), known: Any = METHODS
) -> list[Run]:
    """One run for each row. Both scales are the paper's, which takes minutes: the config does not name them."""
    return [
        Run(
            table,
            {"data": DATA[table], "method": name, "encoding": method.encoding},
            seeds,
            partial(measure, table=table, method=method, paper=PAPER[table].get(name.replace("_stages", ""))),
            # of the networks; the boosted trees have none
            "float64" if method.encoding == "raw" else "32-true",
        )
        for name, method in known.items()
        if name in methods
    ]


def measure(
    seeds: tuple[int, ...], *, table: Table, method: Method, paper: dict[str, float] | None
) -> list[dict[str, Any]]:
    """Fit one row on all seeds at once and score each; "row" describes it for the page."""
    about = {"label": method.label, "kind": method.kind, "needs_group": method.needs_group, "paper": paper}
    with tracked(f"{method.label} on {DATA[table]}, {len(seeds)} seeds"):
        trials, all_rows = _trials(table, seeds, method.encoding)
        # the paper held no rows out to pick an epoch: its rows are trained once more, as it did
        whole = method.fit(all_rows) if method.kind == "paper" else None
        return [{"row": about, **numbers} for numbers in score(method.fit(trials), trials, whole)]


# rows that share a full classifier find it by the trials that it was trained on, which must be the same object
@lru_cache(maxsize=2)
def _trials(table: Table, seeds: tuple[int, ...], encoding: Encoding) -> tuple[Trials, Trials]:
    trials = TRIALS[table](seeds, encoding)
    return trials, trials.learning_from_all()
