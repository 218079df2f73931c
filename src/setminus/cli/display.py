"""What a run shows in the terminal: the step it is at, and the result in a table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from setminus.report.figures import group_name

__all__ = ["Display"]

# names short enough for three models in 80 columns
ROWS = (
    ("accuracy", "accuracy"),
    ("equalized odds, sum", "equalized_odds_sum"),
    ("equalized odds, max", "equalized_odds_max"),
    ("demographic parity", "demographic_parity"),
)


class Display:
    """Progress and results on stderr and stdout, or nothing at all.

    Parameters
    ----------
    quiet : bool
    """

    def __init__(self, quiet: bool = False):
        # progress is no result: stdout stays fit for a pipe
        self.progress = Console(stderr=True, quiet=quiet, highlight=False)
        self.results = Console(quiet=quiet, highlight=False)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Show a step while it runs, and how long it took when it is done."""
        start = time.perf_counter()
        columns = (SpinnerColumn("line"), TextColumn("{task.description}"), TimeElapsedColumn())
        # in a log file a spinner is a heap of empty lines
        shown = self.progress.is_terminal
        with Progress(*columns, console=self.progress, transient=True, disable=not shown) as progress:
            progress.add_task(escape(name), total=None)
            yield
        self.progress.print(f"{time.perf_counter() - start:6.1f} s  {escape(name)}")

    def fairness(self, record: dict[str, Any]) -> None:
        """The models of a fairness record side by side."""
        models = record["metrics"]["models"]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(f"{record['task']['rows']['test']:,} test rows")
        for model in models:
            table.add_column(escape(model["title"]))
        for title, key in ROWS:
            table.add_row(title, *(_interval(model["audit"][key]) for model in models))
        for group in models[0]["audit"]["group_rates"]:
            cells = [
                row["true_positive_rate"]
                for model in models
                for row in model["audit"]["group_rates"]
                if row["group"] == group["group"] and row["label"] == group["label"]
            ]
            table.add_row(escape(f"TPR, {group_name(group['group'])}"), *map(_interval, cells))
        self.results.print()
        self.results.print(table)
        self.results.print()


def _interval(interval: dict[str, Any]) -> str:
    if interval["value"] is None:
        return "n/a"
    return f"{interval['value']:.3f} [dim]{interval['low']:.3f}-{interval['high']:.3f}[/dim]"
