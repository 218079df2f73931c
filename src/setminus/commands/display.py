"""What a run shows in the terminal: the step it is at, and the result in a table."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from setminus.text import printable

__all__ = ["Display"]

# names short enough for three models in 80 columns
ROWS = (
    ("accuracy", "accuracy"),
    ("equalized odds, sum", "equalized_odds_sum"),
    ("equalized odds, max", "equalized_odds_max"),
    ("demographic parity", "demographic_parity"),
)
MOST_ROWS = 12
"""Rates by group beyond this are left to the page."""


@dataclass(frozen=True)
class Runs:
    """What to call while runs go on: around a step, after each run, and where one failed."""

    step: Callable[[str], AbstractContextManager[None]]
    progress: Callable[[int, int], None]
    failed: Callable[[str], None]


class _PrintableConsole(Console):
    """A console on which names from a table cannot move the cursor, change colours or begin a line."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str("\n".join(map(printable, text.split("\n"))), **options)


class Display:
    """Progress and results on stderr and stdout, or nothing at all.

    Parameters
    ----------
    quiet : bool
    """

    def __init__(self, quiet: bool = False):
        # progress is no result: stdout stays fit for a pipe
        self.progress = _PrintableConsole(stderr=True, quiet=quiet, highlight=False)
        self.results = _PrintableConsole(quiet=quiet, highlight=False)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Show a step while it runs, and how long it took when it is done."""
        start = time.perf_counter()
        columns = (SpinnerColumn("line"), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
        # in a log file a spinner is a heap of empty lines
        shown = self.progress.is_terminal
        with Progress(*columns, console=self.progress, transient=True, disable=not shown) as progress:
            task = progress.add_task(_label(name), total=None)
            with _listening(lambda done, total: progress.update(task, completed=done - 1, total=total)):
                yield
        self.progress.print(f"{time.perf_counter() - start:6.1f} s  {escape(name)}")

    @contextmanager
    def rows(self, unit: str = "rows") -> Iterator[Callable[[int, int], None]]:
        """A bar of rows done, or of what else there is; gives what to call with those done and those in all."""
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self.progress, disable=not self.progress.is_terminal) as progress:
            task = progress.add_task("", total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)

    @contextmanager
    def runs(self, name: str) -> Iterator[Runs]:
        """A bar of runs done with the time left, and the step that one is at."""
        columns = (
            SpinnerColumn("line"),
            TextColumn("{task.description}"),
            BarColumn(20),
            MofNCompleteColumn(),
            TextColumn("runs"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        start = time.perf_counter()
        with Progress(*columns, console=self.progress, transient=True, disable=not self.progress.is_terminal) as bar:
            task = bar.add_task(_label(name), total=None)

            @contextmanager
            def step(what: str) -> Iterator[None]:
                bar.update(task, description=_label(f"{name}: {what}"))
                yield
                bar.update(task, description=_label(name))

            yield Runs(
                step=step,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
                failed=lambda why: self.progress.print(f"failed    {why}", markup=False, soft_wrap=True),
            )
        self.progress.print(f"{time.perf_counter() - start:6.1f} s  {escape(name)}")

    def summary(self, title: str, rows: Sequence[tuple[str, str, str]]) -> None:
        """What was expected, and what was measured."""
        table = _table(title, "paper, or exact", "measured")
        for row in rows:
            table.add_row(*map(escape, row))
        self.results.print()
        self.results.print(table)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Any table of words."""
        table = _table(*heads)
        for row in rows:
            table.add_row(*map(escape, row))
        self.results.print()
        self.results.print(table)

    def say(self, *lines: str) -> None:
        """Plain lines."""
        for line in lines:
            self.results.print(printable(line), markup=False, soft_wrap=True)

    def text(self, text: str) -> None:
        """A text of several lines, as it is laid out."""
        self.say(*text.split("\n"))

    def models(self, record: dict[str, Any]) -> None:
        """The models of a fairness record side by side."""
        models = record["metrics"]["models"]
        table = _table(f"{record['task']['rows']['test']:,} test rows", *(model["title"] for model in models))
        for title, key in ROWS:
            table.add_row(title, *(_interval(model["audit"][key]) for model in models))
        rates = models[0]["audit"]["group_rates"]
        for group in rates[:MOST_ROWS]:
            cells = [
                row["true_positive_rate"]
                for model in models
                for row in model["audit"]["group_rates"]
                if row["group"] == group["group"] and row["label"] == group["label"]
            ]
            of = f"TPR, {group['group']}" if len(rates) == len({str(r["group"]) for r in rates}) else None
            table.add_row(escape(of or f"TPR of {group['label']}, {group['group']}"), *map(_interval, cells))
        self.results.print()
        self.results.print(table)
        if len(rates) > MOST_ROWS:
            self.results.print(f"and {len(rates) - MOST_ROWS} more rates on the page")
        self.results.print()
        self.say(*_outcome(record), "")

    def columns(self, task: dict[str, Any]) -> None:
        """What each column of a user's table was taken for, and what was noted on the way."""
        table = _table("column", "kind", "missing", "what is done with it")
        for column in task["columns"]:
            warning = f" [yellow]({escape(column['warning'])})[/yellow]" if column["warning"] else ""
            missing = f"{column['missing']:.0%}" if column["missing"] else ""
            table.add_row(escape(column["name"]), column["kind"], missing, escape(column["use"]) + warning)
        self.results.print()
        self.results.print(table)
        for note in task["notes"]:
            self.results.print(f"Note: {escape(note)}")

    def about(self, about: dict[str, Any]) -> None:
        """A model file's description."""
        task = about["about"].get("task", {})
        rows = [
            ("model", f"{about['type']} in {about['file']}, {about['bytes'] / 1e6:.1f} MB"),
            ("predicts", task.get("label", ", ".join(about["classes"]))),
            ("classes", ", ".join(about["classes"])),
            ("ignores", task.get("ignored", ", ".join(about["principals"]))),
            ("full", about["full"]),
            *_adapted(about["adapted"]),
            ("strength", "" if about["strength"] is None else f"{about['strength']:g}"),
            ("threshold", "" if about["threshold"] is None else f"{about['threshold']:.3f}"),
            ("bounds", _bound(about["about"].get("config", {}))),
            ("needs the columns", ", ".join(about["columns"])),
            ("made by", about["about"].get("command", "")),
        ]
        for when, numbers in about["about"].get("test", {}).items():
            shown = ", ".join(f"{key.replace('_', ' ')} {_digits(value['value'])}" for key, value in numbers.items())
            rows.append((f"{when}, on test rows", shown))
        table = _table("", "")
        table.show_header = False
        for name, value in rows:
            if value:
                table.add_row(name, escape(value))
        self.results.print(table)

    def sources(self, found: list[tuple[Any, Any]]) -> None:
        """The data sets, and where each is."""
        table = _table("name", "here", "otherwise from")
        for source, path in found:
            places = [*source.urls, *([f"package {source.package}"] if source.package else [])]
            table.add_row(source.name, escape(str(path)) if path else "no", escape("; ".join(places)))
        self.results.print(table)


def _label(text: str) -> str:
    # a progress bar takes markup, and does not ask the console
    return escape(printable(text))


def _digits(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _adapted(about: dict[str, Any]) -> list[tuple[str, str]]:
    """How a model was adapted, and to which class mix; nothing of other models."""
    mixes = {"class mix of the source": "source", "of the target, estimated": "target"}
    shown = [(name, ", ".join(f"{share:.3f}" for share in about[key])) for name, key in mixes.items() if about]
    return [("adapted by", about["method"]), *shown] if about else []


class _Listener(logging.Handler):
    """Hears each "fit 2 of 6" that the library logs."""

    def __init__(self, told: Callable[[int, int], object]):
        super().__init__(logging.INFO)
        self.told = told

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == "fit %d of %d" and isinstance(record.args, tuple):
            done, total = record.args
            self.told(int(str(done)), int(str(total)))


@contextmanager
def _listening(told: Callable[[int, int], object]) -> Iterator[None]:
    """Tell of the fits that are begun meanwhile."""
    library, listener = logging.getLogger("setminus"), _Listener(told)
    level = library.level
    library.addHandler(listener)
    library.setLevel(logging.INFO)
    try:
        yield
    finally:
        library.removeHandler(listener)
        library.setLevel(level)


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(escape(head), overflow="fold")
    return table


def _outcome(record: dict[str, Any]) -> list[str]:
    """What was chosen, whether the gap kept its tolerance on the test rows, and what is wrong with the model."""
    frontier, after = record["metrics"]["frontier"], record["metrics"]["models"][-1]["audit"]
    chosen = frontier["chosen"]
    threshold = f", threshold {chosen['threshold']:.2f}" if "threshold" in chosen else ""
    gap = after[frontier["gap_name"].replace(" (", "_").rstrip(")")]
    kept = gap["value"] is not None and gap["value"] <= frontier["tolerance"]
    lines = [
        f"Strength {chosen['strength']:g}{threshold}. The {frontier['gap_name'].replace('_', ' ')} gap may be "
        f"{frontier['tolerance']:g}: {chosen['gap']:.3f} in cross-validation, "
        f"{'n/a' if gap['value'] is None else format(gap['value'], '.3f')} on the test rows"
        + ("." if kept else ", which does not keep it.")
    ]
    if any(row["selection_rate"]["value"] == 0 for row in after["group_rates"]):
        lines.append("Note: some group is never given some class; allow a larger gap, or choose another constraint.")
    return lines


def _bound(config: dict[str, Any]) -> str:
    """The gap that was to be small, of a model that was made fair."""
    if "constraint" not in config:
        return ""
    agg = f" ({config['agg']})" if config["constraint"] == "equalized_odds" else ""
    return f"the {config['constraint'].replace('_', ' ')} gap{agg}, to {config['tolerance']:g}"


def _interval(interval: dict[str, Any]) -> str:
    if interval["value"] is None:
        return "n/a"
    return f"{interval['value']:.3f} [dim]{interval['low']:.3f}-{interval['high']:.3f}[/dim]"
