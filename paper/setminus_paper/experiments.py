"""The registry of the paper's figures, tables and claims: each name, its module, and how it is planned and measured."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from setminus.errors import UserError
from setminus.records import Record
from setminus_paper.run import Run, execute

__all__ = [
    "EXPERIMENTS",
    "GROUPS",
    "VIEWS",
    "Scale",
    "find_names",
    "load_experiment",
    "load_view",
    "plan_runs",
    "records_of",
    "reproduce",
]

Scale = Literal["quick", "paper"]

LABORATORY = (
    "fig1",
    "fig2a",
    "fig2b",
    "fig2c",
    *(f"prop{number}" for number in range(1, 8)),
    "theorem1",
    "pitfalls",
)
FAIRNESS = ("table4", "table5")
EXPERIMENTS: dict[str, str] = {
    **{name: f"setminus_paper.claims.{name}" for name in (*LABORATORY, "fig3", "fig4")},
    **{name: f"setminus_paper.fairness.{name}" for name in FAIRNESS},
    **{name: f"setminus_paper.transfer.{name}" for name in ("table1", "table2", "table6")},
    "table3": "setminus_paper.adaptation.table3",
    "principals": "setminus_paper.transfer.invariant_digits",
    "small_digits": "setminus_paper.adaptation.small_digits",
}
"""What can be reproduced, and the module that measures it.

A module has `CLAIM`, `DEFAULT_SEEDS` and ``plan(scale, seeds)``, which lists its runs. Where methods can be chosen it
has `METHODS`, and its plan takes ``methods``; likewise `PAIRS` of domains and ``pairs``, and `SHIFTS` of the class mix
and ``shifts``. `JOB` names the section of the page that shows its records, if that is not the laboratory's. A module
that plans runs of another experiment, and shows its records in its own way, has `RECORDS_OF`.
"""
VIEWS: dict[str, str] = {
    **dict.fromkeys(("table1", "table2", "table6"), "setminus_paper.report.style_transfer"),
    **dict.fromkeys(("table4", "table5"), "setminus_paper.report.fairness_tables"),
    "table3": "setminus_paper.report.domain_adaptation",
}
"""The module that shows an experiment's records, where it is not the one that measures.

It has ``summary(records)``, rows of (quantity, expected, measured), and ``charts(records)``, of which `PER_ROW` (3 by
default) stand side by side in a picture, or ``draw(records, path)`` for a picture of another kind.
"""
GROUPS: dict[str, tuple[str, ...]] = {"laboratory": LABORATORY, "fairness": FAIRNESS}
"""Names that stand for several experiments."""


def find_names(wanted: Iterable[str]) -> list[str]:
    """The experiments behind some names, each once; a group stands for all of its members.

    Examples
    --------
    >>> find_names(["prop4", "laboratory"])[:3]
    ['prop4', 'fig1', 'fig2a']
    >>> find_names(["pro4"])
    Traceback (most recent call last):
    setminus.errors.UserError: there is no experiment 'pro4': did you mean 'prop4'?
    """
    found: list[str] = []
    for name in wanted:
        if name not in EXPERIMENTS and name not in GROUPS:
            raise UserError(f"there is no experiment {name!r}", do=_advice(name, [*EXPERIMENTS, *GROUPS]))
        found += GROUPS.get(name, (name,))
    return list(dict.fromkeys(found))


def load_experiment(name: str) -> Any:
    """The module that measures an experiment; a name that is not listed is refused, not imported."""
    (known,) = find_names([name])
    return import_module(EXPERIMENTS[known])


def load_view(name: str) -> Any:
    """The module that shows an experiment's records; a name that is not listed is refused, not imported."""
    (known,) = find_names([name])
    return import_module(VIEWS.get(known, EXPERIMENTS[known]))


def records_of(name: str) -> str:
    """The experiment whose records are shown under a name: mostly itself."""
    source: str = getattr(load_experiment(name), "RECORDS_OF", name)
    return source


def plan_runs(
    name: str,
    *,
    scale: Scale,
    seeds: int | None = None,
    methods: Sequence[str] = (),
    pairs: Sequence[str] = (),
    shifts: Sequence[float] = (),
) -> list[Run]:
    """The runs of an experiment.

    Parameters
    ----------
    name : str
    scale : "quick" or "paper"
        Minutes on two cores, or the paper's sizes.
    seeds : int, optional
        Number of seeds; by default the experiment's own number.
    methods, pairs : sequence of str
        Only these, where the experiment compares methods or has several pairs of domains.
    shifts : sequence of float
        Instead of the experiment's own, where it shifts the class mix.

    Returns
    -------
    list of Run
    """
    module = load_experiment(name)
    count = module.DEFAULT_SEEDS if seeds is None else seeds
    if count < 1:
        raise UserError(f"seeds is {count}, but a run needs one", do="give 1 or more.")
    # a constant that a module only imports for itself is not its own
    public = getattr(module, "__all__", dir(module))
    chosen: dict[str, Any] = {}
    for kind, wanted in (("method", methods), ("pair", pairs)):
        known = tuple(getattr(module, f"{kind}s".upper())) if f"{kind}s".upper() in public else ()
        if wanted and not known:
            raise UserError(f"{name} does not compare {kind}s", do=f"leave out {', '.join(wanted)}.")
        for one in wanted:
            if one not in known:
                raise UserError(f"{name} has no {kind} {one!r}", do=_advice(one, known))
        if known:
            chosen[f"{kind}s"] = tuple(wanted) or known
    if shifts:
        if "SHIFTS" not in public:
            raise UserError(f"{name} does not shift a class mix", do=f"leave out {', '.join(map(str, shifts))}.")
        chosen["shifts"] = tuple(dict.fromkeys(shifts))
    runs: list[Run] = module.plan(scale, tuple(range(count)), **chosen)
    return runs


def reproduce(
    name: str,
    records: Path,
    *,
    scale: Scale = "quick",
    seeds: int | None = None,
    methods: Sequence[str] = (),
    pairs: Sequence[str] = (),
    shifts: Sequence[float] = (),
    jobs: int = 1,
    failed: Callable[[str, str], object] = lambda why, trace: None,
) -> list[Record]:
    """Measure what the file of records lacks for a figure, a table or a claim.

    Parameters
    ----------
    name : str
    records : Path
        The file of ``records_of(name)``.
    scale, seeds, methods, pairs, shifts
        See `plan_runs`.
    jobs, failed
        See `setminus_paper.run.execute`.

    Returns
    -------
    list of dict
        The records, as the file holds them.
    """
    module = load_experiment(name)
    runs = plan_runs(name, scale=scale, seeds=seeds, methods=methods, pairs=pairs, shifts=shifts)
    source = records_of(name)
    if source != name:
        # the other experiment may have another number of seeds by default
        seeds = seeds or module.DEFAULT_SEEDS
    choices: dict[str, Sequence[object]] = {"methods": methods, "pairs": pairs, "shifts": shifts}
    options = [
        f"--scale {scale}",
        *([f"--seeds {seeds}"] if seeds else []),
        *(f"--{kind} {','.join(map(str, some))}" for kind, some in choices.items() if some),
    ]
    return execute(
        runs,
        records,
        jobs=jobs,
        command=" ".join(["setminus reproduce", source, *options]),
        job=getattr(module, "JOB", "laboratory"),
        claim=module.CLAIM,
        failed=failed,
    )


def _advice(name: str, known: Sequence[str]) -> str:
    wanted = name.lower()
    near = [one for one in known if one.startswith(wanted)] or difflib.get_close_matches(wanted, known, n=1)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}."
