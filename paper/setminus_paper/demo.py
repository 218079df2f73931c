"""The parts of ``setminus demo`` beside the census: claims of the theory, colored digits, and one small adaptation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from setminus.commands.demo import Part, Records, Summary
from setminus.progress import tracked
from setminus_paper.data.images import load_images
from setminus_paper.reproduce import run_experiment, summary_of, title_of
from setminus_paper.run import execute

if TYPE_CHECKING:
    from setminus.commands.terminal import Display

__all__ = ["adaptation", "digits", "theory"]

THEORY = {"fig1": 1, "prop4": 5, "theorem1": 1}
"""The claims that the tour checks, and on how many seeds: seconds each."""
DIGITS = ("vanilla", "orthogonal_oracle")
"""The rows of table 1 that the tour trains, at a size of its own."""
JOBS = 2
"""Processes of the parts that train networks."""


def _theory(out: Path, seed: int, display: Display) -> Records:
    found = []
    for name, seeds in THEORY.items():
        with tracked(f"{title_of(name)}, beside its closed form"):
            found += run_experiment(name, out / name / "records.jsonl", seeds=seeds)
    return found


def _theory_rows(records: Records) -> Summary:
    """The first two rows of each claim; the page has all."""
    return [
        (f"{title_of(name)}, {quantity}", expected, measured)
        for name in THEORY
        for quantity, expected, measured in summary_of([one for one in records if one["name"] == name])[:2]
    ]


def _digits(out: Path, seed: int, display: Display) -> Records:
    from setminus_paper.transfer import table1

    with tracked("colored digits, small: CycleGAN, plain and against w_x \\ w_1"):
        return execute(
            table1.plan("demo", (seed,), DIGITS),
            out / "table1" / "records.jsonl",
            jobs=JOBS,
            job=table1.JOB,
            command=f"setminus demo --parts digits --seed {seed}",
            claim=table1.CLAIM,
            failed=lambda why, trace: display.warn(f"failed    {why}"),
        )


def _adaptation(out: Path, seed: int, display: Display) -> Records:
    with tracked("MNIST to UCI's digits, another class mix: three ways to adapt"):
        return run_experiment(
            "small_digits",
            out / "small_digits" / "records.jsonl",
            jobs=JOBS,
            failed=lambda why, trace: display.warn(f"failed    {why}"),
        )


def _check_digits() -> None:
    # before any long work, and so that the processes find the file prepared
    load_images("mnist")


theory = Part("The theory", check=lambda: None, run=_theory, summary=_theory_rows)
digits = Part("Colored digits, smaller than the paper's", check=_check_digits, run=_digits, summary=summary_of)
adaptation = Part("Digits in another class mix", check=_check_digits, run=_adaptation, summary=summary_of)
