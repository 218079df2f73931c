"""``setminus demo``: the tour."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setminus.commands.errors import check_folder
from setminus.commands.streams import echo
from setminus.errors import MissingExtraError, UserError
from setminus.progress import listen, tracked

if TYPE_CHECKING:
    from setminus.commands.display import Display

__all__ = ["Part", "demo"]

Records = list[dict[str, Any]]
Summary = list[tuple[str, str, str]]


@dataclass(frozen=True)
class Part:
    """One part of the tour; those beside fairness are entry points of the group ``setminus.demo``.

    Attributes
    ----------
    title : str
        Above its numbers in the terminal.
    check : callable
        Raises where the part cannot run on this machine: a package or its data is missing.
    run : callable
        From the folder of the tour, the seed and the display to the part's records.
    summary : callable
        From the records to rows: what, what was expected, what was measured.
    """

    title: str
    check: Callable[[], None]
    run: Callable[[Path, int, Display], Records]
    summary: Callable[[Records], Summary]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its records.")] = Path("report"),
    parts: Annotated[
        str | None,
        typer.Option(
            help="Only these of fairness, theory, digits, adaptation, separated by commas; the last two train networks "
            "and take most of the time. All but fairness come with the package setminus-paper.",
            show_default="all",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of fairness and digits; the other parts have several, always the same.")
    ] = 0,
    picture: Annotated[Path | None, typer.Option(help="Draw the result as a PNG file, too.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the path of the page only.")] = False,
) -> None:
    """Take the tour: a model on real census data made to ignore sex, the theory, digits in color, a new mix of classes.

    Networks that are trained once are kept: a second tour to the same folder takes less than a minute.

    Example: setminus demo
    Example: setminus demo --parts fairness,theory
    """
    wanted = _find_parts(parts)
    check_folder(out, "--out")
    if picture is not None:
        if "fairness" not in wanted:
            raise UserError("the picture is of the part fairness, which is left out", do="add it to --parts.")
        check_folder(picture.parent, "--picture")
    from setminus.commands.display import Display

    display = Display(quiet)
    measured: dict[str, Records] = {}
    failure: Exception | None = None
    for name, part in wanted.items():
        if not _can_run(part, display, needed=parts is not None):
            continue
        try:
            with listen(display):
                measured[name] = part.run(out, seed, display)
        except UserError as error:
            # the page of the other parts is worth having
            failure = error
    if measured:
        with listen(display):
            _show(measured, wanted, out, picture, display)
    if failure is not None:
        raise failure


def _find_parts(given: str | None) -> dict[str, Part]:
    """The parts that are asked for by names between commas, in the order of the tour; all by default."""
    known = {"fairness": FAIRNESS} | {point.name: point.load() for point in entry_points(group="setminus.demo")}
    wanted = list(known) if given is None else [name.strip() for name in given.split(",")]
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
            raise UserError(f"the tour has no part {name!r}", do=f"{advice}")
    return {name: part for name, part in known.items() if name in wanted}


def _can_run(part: Part, display: Display, *, needed: bool) -> bool:
    """Whether a part can be had on this machine; if not, why not is said in a line."""
    from setminus.datasets.sources import DataUnavailableError

    try:
        part.check()
    except (DataUnavailableError, MissingExtraError) as error:
        if needed:
            raise
        display.warn(f"Left out: {error.lines[0]}")
        return False
    return True


def _fairness(out: Path, seed: int, display: Display) -> Records:
    from setminus.commands.demo_fairness import DemoConfig, run_demo
    from setminus.records import append_record, read_records

    append_record(out / "records.jsonl", run_demo(DemoConfig(seed=seed)))
    # the page sees nothing but what the files hold
    return read_records(out / "records.jsonl")[-1:]


FAIRNESS = Part("Census data", check=lambda: None, run=_fairness, summary=lambda records: [])


def _show(
    measured: dict[str, Records], parts: dict[str, Part], out: Path, picture: Path | None, display: Display
) -> None:
    """The page, the picture, and the numbers in the terminal; at last where the page is."""
    from setminus.report.page import write_page

    with tracked("write the page"):
        page = write_page(out / "index.html", [record for records in measured.values() for record in records])
    if picture is not None and "fairness" in measured:
        from setminus.report.fairness import draw_picture

        with tracked("draw the picture"):
            draw_picture(measured["fairness"][0], picture)
    for name, records in measured.items():
        if name == "fairness":
            display.models(records[0])
        else:
            display.summary(parts[name].title, parts[name].summary(records))
    echo(page.resolve())
