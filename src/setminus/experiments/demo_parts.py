"""The parts of the tour beside the census: claims of the theory, colored digits, and one small adaptation."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from setminus.datasets.images import load_images
from setminus.experiments.records import Record
from setminus.experiments.reproduce import TRAINING, reproduce
from setminus.experiments.runs import Progress, execute

__all__ = [
    "ADAPTATION",
    "DIGITS",
    "PARTS",
    "THEORY",
    "TRAINED",
    "check_training",
    "find_parts",
    "run_adaptation",
    "run_digits",
]

PARTS = ("fairness", "theory", "digits", "adaptation")
TRAINED = ("digits", "adaptation")
"""Those that train networks, on digits of MNIST."""
THEORY = {"fig1": 1, "prop4": 5, "theorem1": 1}
"""The claims that the tour checks, and on how many seeds: seconds each."""
DIGITS = ("vanilla", "orthogonal_oracle")
"""The rows of table 1 that the tour trains, at a size of its own."""
ADAPTATION = "small_digits"
JOBS = 2
"""Processes of the parts that train networks."""


def find_parts(given: str | None) -> tuple[str, ...]:
    """The parts that are asked for by names between commas, in the order of the tour; all by default.

    Parameters
    ----------
    given : str, optional

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> find_parts("theory, fairness")
    ('fairness', 'theory')
    >>> find_parts("digit")
    Traceback (most recent call last):
    ValueError: the tour has no part 'digit': did you mean 'digits'?
    """
    wanted = PARTS if given is None else [name.strip() for name in given.split(",")]
    for name in wanted:
        if name not in PARTS:
            near = difflib.get_close_matches(name, PARTS, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(PARTS)}."
            raise ValueError(f"the tour has no part {name!r}: {advice}")
    return tuple(name for name in PARTS if name in wanted)


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
            raise ImportError(
                f'the tour\'s {" and ".join(TRAINED)} train networks and need {module}: pip install "setminus[nn]"'
            )
    # and so that the processes find it prepared
    load_images("mnist")


def run_digits(
    records: Path,
    *,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
    failed: Callable[[str, str], object] = lambda why, trace: None,
) -> list[Record]:
    r"""Translate colored digits by plain CycleGAN, and against ``w_x \ w_1``: table 1, smaller than its quick scale.

    Parameters
    ----------
    records : Path
        Their file; a row that it holds is not trained again.
    seed : int
    progress, failed
        See `execute`.

    Returns
    -------
    list of dict
    """
    from setminus.experiments import table1

    return execute(
        table1.plan("demo", (seed,), DIGITS),
        records,
        jobs=JOBS,
        job=table1.JOB,
        command=f"setminus demo --parts digits --seed {seed}",
        claim=table1.CLAIM,
        progress=progress,
        failed=failed,
    )


def run_adaptation(
    records: Path,
    *,
    progress: Progress = lambda done, total: None,
    failed: Callable[[str, str], object] = lambda why, trace: None,
) -> list[Record]:
    """Adapt from one set of digits to another with another mix, by three methods.

    Parameters
    ----------
    records : Path
        Their file.
    progress, failed
        See `execute`.

    Returns
    -------
    list of dict
    """
    return reproduce(ADAPTATION, records, jobs=JOBS, progress=progress, failed=failed)
