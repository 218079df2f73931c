"""What a run shows in the terminal: the step it is at, and the result in a table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from setminus.progress import Event
from setminus.text import printable

__all__ = ["Display"]

# names short enough for three models in 80 columns
ROWS = (
    ("accuracy", "accuracy"),
    ("equalized odds, sum", "equalized_odds_sum"),
    ("equalized odds, max", "equalized_odds_max"),
    ("demographic parity", "demographic_parity"),
)
MAX_ROWS = 12
"""Rates by group beyond this are left to the page."""
MAX_LINES = 3
"""Pieces of work within each other that are shown at once."""
LINE_SECONDS = 10
"""Between two lines of progress where there is no terminal to draw on."""


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
        self._lines: dict[int, TaskID] = {}
        self._next_line = 0.0

    def __call__(self, event: Event) -> None:
        """Show an event of `setminus.progress`: how far the work is, and how long it took when it is done."""
        if self.progress.is_terminal and not self.progress.quiet:
            self._draw(event)
        elif event.kind == "started" and event.depth == 0:
            self._name, self._start = event.name, time.perf_counter()
            self._next_line = self._start + LINE_SECONDS
        elif event.kind == "advanced" and time.perf_counter() >= self._next_line:
            within = "" if event.depth == 0 else f": {event.name}"
            self._print_seconds(time.perf_counter() - self._start, f"{self._name}{within}, {_count(event)}")
            self._next_line = time.perf_counter() + LINE_SECONDS
        if event.kind == "finished" and event.depth == 0:
            self._print_seconds(event.seconds, event.name)

    def _draw(self, event: Event) -> None:
        """One line for each piece of work that is under way."""
        if event.kind == "started" and event.depth == 0:
            columns = (
                SpinnerColumn("line"),
                TextColumn("{task.description}"),
                BarColumn(20),
                TextColumn("{task.fields[state]}"),
                TimeElapsedColumn(),
                _TimeLeft(),
            )
            self._bars = Progress(*columns, console=self.progress, transient=True)
            self._bars.start()
        if event.kind == "advanced":
            if event.depth in self._lines:
                state = _label("  ".join(filter(None, (_count(event), event.detail))))
                self._bars.update(self._lines[event.depth], completed=event.done, state=state)
            return
        if event.kind != "started" and event.depth == 0:
            self._bars.stop()
            self._lines.clear()
        for depth in [depth for depth in self._lines if depth >= event.depth]:
            self._bars.remove_task(self._lines.pop(depth))
        if event.kind == "started" and event.depth < MAX_LINES:
            name = _label("  " * event.depth + event.name)
            self._lines[event.depth] = self._bars.add_task(name, total=event.total, state="")

    def _print_seconds(self, seconds: float, text: str) -> None:
        self.progress.print(f"{seconds:6.1f} s  {text}", markup=False, soft_wrap=True)

    def warn(self, line: str) -> None:
        """A line beside the progress."""
        self.progress.print(line, markup=False, soft_wrap=True)

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
        for group in rates[:MAX_ROWS]:
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
        if len(rates) > MAX_ROWS:
            self.results.print(f"and {len(rates) - MAX_ROWS} more rates on the page")
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


class _TimeLeft(TimeRemainingColumn):
    def render(self, task: Any) -> Text:
        return Text("") if task.total is None else super().render(task)


def _count(event: Event) -> str:
    total = "" if event.total is None else f" of {event.total:,}"
    return f"{event.done:,}{total} {event.unit}".rstrip()


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
