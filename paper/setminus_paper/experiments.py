"""The paper's figures, tables and claims by name: each a module that is loaded when it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from setminus.errors import MissingExtraError, UserError
from setminus.records import Record
from setminus_paper.run import Run, execute

__all__ = ["EXPERIMENTS", "GROUPS", "Scale", "find_names", "load_view", "plan_runs", "records_of", "reproduce"]

Scale = Literal["quick", "paper"]

LABORATORY = (
    "fig1",
    "fig2a",
    "fig2b",
    "fig2c",
    "prop1",
    "prop2",
    "prop3",
    "prop4",
    "prop5",
    "prop6",
    "prop7",
    "theorem1",
    "pitfalls",
)
FAIRNESS = ("table4", "table5")
EXPERIMENTS: dict[str, str] = {
    **{name: f"setminus_paper.claims.{name}" for name in LABORATORY},
    **{name: f"setminus_paper.fairness.{name}" for name in FAIRNESS},
    "table1": "setminus_paper.transfer.table1",
    "fig3": "setminus_paper.claims.fig3",
    "fig4": "setminus_paper.claims.fig4",
    "table2": "setminus_paper.transfer.table2",
    "table6": "setminus_paper.transfer.table6",
    "table3": "setminus_paper.adaptation.table3",
    "principals": "setminus_paper.transfer.invariant_digits",
    "small_digits": "setminus_paper.adaptation.small_digits",
}
"""What can be reproduced, and the module that does it.

A module has `CLAIM`, `DEFAULT_SEEDS`, ``plan(scale, seeds)``, and where it compares methods that can be chosen,
`METHODS`; its plan then takes ``methods``, too, and likewise `PAIRS` of domains and ``pairs``, and `SHIFTS` of the
class mix, its usual ones, and ``shifts``. Where another section of the page than the laboratory's shows its records, it
has a `JOB`; where it plans runs of another experiment, whose records it shows in its own way, `RECORDS_OF` that.
"""
VIEWS: dict[str, str] = {
    **dict.fromkeys(("table1", "table2", "table6"), "setminus_paper.report.style_transfer"),
    **dict.fromkeys(("table4", "table5"), "setminus_paper.report.fairness_tables"),
    "table3": "setminus_paper.report.domain_adaptation",
    "principals": "setminus_paper.report.principals",
    "small_digits": "setminus_paper.report.small_digits",
}
"""The module that shows an experiment's records, where it is not the one that measures.

It has ``summary(records)``, rows of (quantity, expected, measured), and ``charts(records)``, of which `PER_ROW` (3 by
default) stand side by side in a picture, or ``draw(records, path)`` for a picture of another kind.
"""
TRAINING = ("torch", "lightning_fabric", "safetensors", "torchmetrics", "PIL")
"""What the extra nn brings."""
GROUPS: dict[str, tuple[str, ...]] = {"laboratory": LABORATORY, "fairness": FAIRNESS}
"""Several at once."""


def find_names(wanted: Iterable[str]) -> list[str]:
    """The experiments behind some names, each once; a group stands for all of its own.

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
            raise UserError(f"there is no experiment {name!r}", do=f"{_advice(name, [*EXPERIMENTS, *GROUPS])}")
        found += GROUPS.get(name, (name,))
    return list(dict.fromkeys(found))


def load_view(name: str) -> Any:
    """The module that shows an experiment's records; a name that is not listed is refused, not imported."""
    (known,) = find_names([name])
    return import_module(VIEWS.get(known, EXPERIMENTS[known]))


def records_of(name: str) -> str:
    """The experiment whose records are wanted for a name: mostly itself."""
    source: str = getattr(_module(name), "RECORDS_OF", name)
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
        How many, from 0 on, or from where an experiment begins; by default what it takes for enough.
    methods, pairs : sequence of str
        Only these, where the experiment compares methods, or has several pairs of domains.
    shifts : sequence of float
        These instead of an experiment's own, where it shifts the class mix.

    Returns
    -------
    list of Run
    """
    module = _module(name)
    count = module.DEFAULT_SEEDS if seeds is None else seeds
    if count < 1:
        raise UserError(f"seeds is {count}, but a run needs one", do="give 1 or more.")
    # one that a module only imports for itself is not its own
    public = getattr(module, "__all__", dir(module))
    chosen: dict[str, Any] = {}
    for kind, wanted in (("method", methods), ("pair", pairs)):
        known = tuple(getattr(module, f"{kind}s".upper())) if f"{kind}s".upper() in public else ()
        if wanted and not known:
            raise UserError(f"{name} does not compare {kind}s", do=f"leave out {', '.join(wanted)}.")
        for one in wanted:
            if one not in known:
                raise UserError(f"{name} has no {kind} {one!r}", do=f"{_advice(one, known)}")
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
    """Measure what a figure, a table or a claim needs, as far as its file of records lacks it.

    Parameters
    ----------
    name : str
    records : Path
        The file of ``records_of(name)``.
    scale, seeds, methods, pairs, shifts
        See `plan_runs`.
    jobs, failed
        See `execute`.

    Returns
    -------
    list of dict
        The records, as the file holds them.
    """
    module = _module(name)
    runs = plan_runs(name, scale=scale, seeds=seeds, methods=methods, pairs=pairs, shifts=shifts)
    source = records_of(name)
    if source != name:
        # its own number of seeds may be another one than that of the experiment that a record's command repeats
        seeds = seeds or module.DEFAULT_SEEDS
    options = [f"--scale {scale}", *([f"--seeds {seeds}"] if seeds else [])]
    choices: dict[str, Sequence[object]] = {"methods": methods, "pairs": pairs, "shifts": shifts}
    options += [f"--{kind} {','.join(map(str, some))}" for kind, some in choices.items() if some]
    return execute(
        runs,
        records,
        jobs=jobs,
        command=" ".join(["setminus reproduce", source, *options]),
        job=getattr(module, "JOB", "laboratory"),
        claim=module.CLAIM,
        failed=failed,
    )


def _module(name: str) -> Any:
    (known,) = find_names([name])
    try:
        return import_module(EXPERIMENTS[known])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in TRAINING:
            raise MissingExtraError(f"{name} trains networks and", str(error.name), extra="nn") from error
        raise


def _advice(name: str, known: Sequence[str]) -> str:
    wanted = name.lower()
    near = [one for one in known if one.startswith(wanted)] or difflib.get_close_matches(wanted, known, n=1)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}."
