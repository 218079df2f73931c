"""Who looks on while something is trained: a progress bar, TensorBoard.

An observer is called with the number of steps that are done and with what was logged last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

__all__ = ["Observer", "progress_bar", "tensorboard"]

Observer = Callable[[int, Mapping[str, float]], None]


@contextmanager
def progress_bar(title: str, steps: int) -> Iterator[Observer]:
    """A bar with the losses and the time left.

    Parameters
    ----------
    title : str
    steps : int
        Of the whole training.

    Yields
    ------
    Observer
    """
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError as error:
        raise ImportError('the progress bar needs rich: pip install "setminus[cli]"') from error
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[losses]}", markup=False), transient=True) as bar:
        task = bar.add_task(title, total=steps, losses="")

        def observe(step: int, values: Mapping[str, float]) -> None:
            losses = "  ".join(f"{name} {value:.3g}" for name, value in values.items())
            bar.update(task, completed=step, losses=losses)

        yield observe


@contextmanager
def tensorboard(folder: str | os.PathLike[str]) -> Iterator[Observer]:
    """What is logged as curves for TensorBoard.

    Parameters
    ----------
    folder : path
        For its event files.

    Yields
    ------
    Observer
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("curves for TensorBoard need tensorboard: pip install tensorboard") from error
    with SummaryWriter(os.fspath(folder)) as writer:

        def observe(step: int, values: Mapping[str, float]) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)

        yield observe
