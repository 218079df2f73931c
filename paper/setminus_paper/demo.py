"""The parts of the tour beside the census: claims of the theory, colored digits, and one small adaptation."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from setminus.commands.demo import Part, Records, Summary
from setminus.errors import MissingExtraError
from setminus.progress import tracked
from setminus.records import Record
from setminus_paper.data.images import load_images
from setminus_paper.experiments import TRAINING, reproduce
from setminus_paper.figures import summary_of, title_of
from setminus_paper.run import execute

if TYPE_CHECKING:
    from setminus.commands.display import Display

__all__ = [
    "ADAPTATION",
    "DIGITS",
    "THEORY",
    "adaptation",
    "check_training",
    "digits",
    "run_adaptation",
    "run_digits",
    "theory",
]

THEORY = {"fig1": 1, "prop4": 5, "theorem1": 1}
"""The claims that the tour checks, and on how many seeds: seconds each."""
DIGITS = ("vanilla", "orthogonal_oracle")
"""The rows of table 1 that the tour trains, at a size of its own."""
ADAPTATION = "small_digits"
JOBS = 2
"""Processes of the parts that train networks."""


def check_training() -> None:
    """Raise before any long work where networks cannot be trained.

    Raises
    ------
    ImportError
        Where the extra nn is not installed.
    DataUnavailableError
        Where MNIST is neither here nor to be had.
    """
    for module in TRAINING:
        if find_spec(module) is None:
            raise MissingExtraError("the part of the tour that trains networks", module, extra="nn")
    # and so that the processes find it prepared
    load_images("mnist")


def run_digits(
    records: Path,
    *,
    seed: int = 0,
    failed: Callable[[str, str], object] = lambda why, trace: None,
) -> list[Record]:
    r"""Translate colored digits by plain CycleGAN, and against ``w_x \ w_1``: table 1, smaller than its quick scale.

    Parameters
    ----------
    records : Path
        Their file; a row that it holds is not trained again.
    seed : int
    failed
        See `execute`.

    Returns
    -------
    list of dict
    """
    from setminus_paper.transfer import table1

    return execute(
        table1.plan("demo", (seed,), DIGITS),
        records,
        jobs=JOBS,
        job=table1.JOB,
        command=f"setminus demo --parts digits --seed {seed}",
        claim=table1.CLAIM,
        failed=failed,
    )


def run_adaptation(
    records: Path,
    *,
    failed: Callable[[str, str], object] = lambda why, trace: None,
) -> list[Record]:
    """Adapt from one set of digits to another with another mix, by three methods.

    Parameters
    ----------
    records : Path
        Their file.
    failed
        See `execute`.

    Returns
    -------
    list of dict
    """
    return reproduce(ADAPTATION, records, jobs=JOBS, failed=failed)


def _theory(out: Path, seed: int, display: Display) -> Records:
    found = []
    for name, seeds in THEORY.items():
        with tracked(f"{title_of(name)}, beside its closed form"):
            found += reproduce(name, out / name / "records.jsonl", seeds=seeds)
    return found


def _theory_rows(records: Records) -> Summary:
    rows = []
    for name in dict.fromkeys(record["name"] for record in records):
        # the rest of what was measured is on the page
        told = summary_of([record for record in records if record["name"] == name])[:2]
        rows += [(f"{title_of(name)}, {what}", expected, measured) for what, expected, measured in told]
    return rows


def _digits(out: Path, seed: int, display: Display) -> Records:
    with tracked("colored digits, small: CycleGAN, plain and against w_x \\ w_1"):
        return run_digits(
            out / "table1" / "records.jsonl",
            seed=seed,
            failed=lambda why, trace: display.warn(f"failed    {why}"),
        )


def _adaptation(out: Path, seed: int, display: Display) -> Records:
    with tracked("MNIST to UCI's digits, another mix: three ways to adapt"):
        return run_adaptation(
            out / ADAPTATION / "records.jsonl",
            failed=lambda why, trace: display.warn(f"failed    {why}"),
        )


theory = Part("The theory", check=lambda: None, run=_theory, summary=_theory_rows)
digits = Part("Colored digits, smaller than the paper's", check=check_training, run=_digits, summary=summary_of)
adaptation = Part("Digits in another mix", check=check_training, run=_adaptation, summary=summary_of)
