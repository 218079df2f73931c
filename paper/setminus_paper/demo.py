"""The parts of ``setminus demo`` beside the census: claims of the theory, colored digits, and one small adaptation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from setminus.commands.demo import Part, Records, Summary
from setminus.datasets.colored_digits import ColoredDigits
from setminus.progress import tracked
from setminus.records import append_record, read_records
from setminus.report.translation import summary as translation_table
from setminus_paper.data.images import load_images
from setminus_paper.reproduce import run_experiment, summary_of, title_of

if TYPE_CHECKING:
    from setminus.commands.terminal import Display

__all__ = ["adaptation", "digits", "theory"]

THEORY = {"fig1": 1, "prop4": 5, "theorem1": 1}
"""The claims that the tour checks, and on how many seeds: seconds each."""
N_DIGITS, N_LABELLED, STEPS = 1_400, 400, 600
"""Pictures of the tour's translation, those with a label, and a quarter of the default steps: colors take few."""
CHANGED = "color of the digit"
HALF = 100
"""Grey level, of 255, up to which a pixel of a digit becomes ground."""
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
    from setminus import OrthogonalTranslator
    from setminus.commands.transfer import translation_record

    path, command = out / "transfer" / "records.jsonl", f"setminus demo --parts digits --seed {seed}"
    if not any(one["command"] == command for one in _records(path)):
        rng = np.random.default_rng(seed)
        digits = load_images("mnist").x
        ink = np.where(digits[rng.permutation(len(digits))[:N_DIGITS]] > HALF, 255, 0).astype(np.uint8)
        painted = ColoredDigits().paint(ink, seed=seed)
        colors = np.array(["red", "blue"], dtype=object)[painted.z1]
        colors[rng.permutation(len(colors))[N_LABELLED:]] = None
        # what most pictures of each domain have
        domains = np.array(["red on green", "blue on brown"])[painted.y]
        translator = OrthogonalTranslator(change=CHANGED, steps=STEPS, baseline=True, random_state=seed)
        with tracked("colored digits: other digits, the same grounds; plain CycleGAN beside it"):
            start = time.perf_counter()
            translator.fit(painted.x, domains, colors)
        # beside the page, whose commands name it so
        translator.save(out)
        path.parent.mkdir(parents=True, exist_ok=True)
        seconds = {"fit": round(time.perf_counter() - start, 1)}
        append_record(path, translation_record(translator, {"size": translator.size_}, seconds, command))
    # the page sees nothing but what the files hold
    return [one for one in _records(path) if one["command"] == command][-1:]


def _records(path: Path) -> Records:
    return read_records(path) if path.exists() else []


def _digit_rows(records: Records) -> Summary:
    """The percentages of each direction, ours and plain CycleGAN's."""
    heads, rows = translation_table(records[0])
    return [
        (f"{row[0]}: {head}", "100 %", value) for row in rows for head, value in zip(heads[1:3], row[1:3], strict=True)
    ]


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
digits = Part("Digits in other colors", check=_check_digits, run=_digits, summary=_digit_rows)
adaptation = Part("Digits in another class mix", check=_check_digits, run=_adaptation, summary=summary_of)
