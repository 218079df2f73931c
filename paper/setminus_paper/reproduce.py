"""``setminus reproduce``: measure the paper's figures, tables and claims again, and rebuild the pages about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setminus.commands.outputs import check_folder
from setminus.commands.terminal import echo
from setminus.errors import UserError
from setminus.progress import listen, tracked

if TYPE_CHECKING:
    from setminus.commands.terminal import Display

__all__ = ["reproduce"]


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="fig1, fig2a, fig2b, fig2c, prop1 to prop7, theorem1, pitfalls, or laboratory for all of these. "
            "table4, table5, or fairness for both. table1, table2, table3, table6, which take hours. fig3, fig4: "
            "images of table1. principals: how exact learned principal classifiers are. small_digits: adaptation of "
            "digits, in seconds.",
            show_default=False,
        ),
    ],
    scale: Annotated[
        Literal["quick", "paper"],
        typer.Option(help="quick: small sizes, for two cores. paper: the paper's sizes, which take days on a CPU."),
    ] = "quick",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of seeds. The default depends on the experiment: in table3, pairs beyond the paper's first "
            "four have one.",
        ),
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="table3: only these pairs of domains, such as mnist-usps, separated by commas.")
    ] = None,
    shifts: Annotated[
        str | None,
        typer.Option(
            help="table3: share of the source rows in the first half of the classes; the target has the reverse. "
            "Separate several by commas. Default: 0.7, as in the paper. 0.5 is no shift."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes, each with one thread.")] = 2,
    out: Annotated[
        Path, typer.Option(help="Folder for records, figures and pages, with a subfolder for each NAME.")
    ] = (Path("runs")),
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Run what has no record yet, or use saved records only.")
    ] = True,
    page: Annotated[
        bool | None,
        typer.Option(
            "--page/--no-page", help="Write a figure and an HTML page to OUT. Default: yes, unless --docs is given."
        ),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(help="Documentation folder: its pages and pictures are rebuilt from the records in OUT."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print paths only.")] = False,
) -> None:
    """Reproduce figures, tables or claims of the paper, and compare them with the paper's numbers.

    Each run is written to OUT/NAME/records.jsonl as soon as it is done, and is not repeated later. To continue after
    a stop, or to add seeds, repeat the command.

    Example: setminus reproduce fig2a
    Example: setminus reproduce prop1 prop2 --seeds 5 --jobs 4
    Example: setminus reproduce laboratory --out results --docs docs
    Example: setminus reproduce table4 --methods vanilla,laftr_0.5,tuned_proxy --seeds 3
    Example: setminus reproduce table3 --pairs mnist-usps --methods vada,vada_orthogonal_em --shifts 0.5,0.7,0.95
    """
    from setminus.commands.terminal import Display
    from setminus_paper.experiments import find_names, plan_runs, records_of
    from setminus_paper.run import FailedRunsError

    wanted = find_names(names)
    # an empty text is a choice too, and refused as one: it must not mean hours of all
    chosen = {
        key: tuple(one.strip() for one in given.split(","))
        for key, given in (("methods", methods), ("pairs", pairs))
        if given is not None
    }
    options: dict[str, Any] = {"scale": scale, "seeds": seeds, "shifts": _shares(shifts), **chosen}
    for folder, option in ((out, "--out"), (docs, "--docs")):
        if folder is not None:
            check_folder(folder, option)
    for name in wanted:
        # a mistake in the last name must not wait for the others
        plan_runs(name, **options)
    display = Display(quiet)
    with_page = docs is None if page is None else page
    failures: list[str] = []
    shown: list[dict[str, Any]] = []
    for name in wanted:
        file = out / records_of(name) / "records.jsonl"
        try:
            records = _measured(name, file, display, {**options, "jobs": jobs}) if run else _recorded(file)
        except FailedRunsError as error:
            failures += error.failures
            continue
        # a figure may show the records of a table that was asked for, too
        shown += [record for record in records if record not in shown]
        _show(name, records, file, out / name, display, page=with_page)
    if with_page and len({record["name"] for record in shown}) > 1:
        from setminus.report.page import write_page

        with listen(display), tracked("write the page of all"):
            path = write_page(out / "index.html", shown)
        echo(path.resolve())
    if docs is not None:
        from setminus_paper.pages import rebuild

        with listen(display), tracked("rebuild the documentation"):
            paths = rebuild(wanted, out, docs)
        for path in paths:
            echo(path.resolve())
    if failures:
        raise FailedRunsError(failures)


def _shares(given: str | None) -> tuple[float, ...]:
    try:
        return () if given is None else tuple(float(one) for one in given.split(","))
    except ValueError as error:
        raise UserError(
            f"--shifts {given} is not a list of shares", do="give numbers separated by commas, such as 0.5,0.7,0.95."
        ) from error


def _measured(name: str, file: Path, display: Display, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Measure what the file lacks; tracebacks of runs that fail go to failed.log beside it."""
    from setminus_paper.experiments import reproduce as measure

    log = file.parent / "failed.log"
    log.unlink(missing_ok=True)

    def failed(why: str, trace: str) -> None:
        display.warn(f"failed    {why}")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as lines:
            lines.write(f"{why}\n{trace}\n")

    with listen(display):
        return measure(name, file, failed=failed, **options)


def _recorded(file: Path) -> list[dict[str, Any]]:
    from setminus.records import read_records

    if not file.exists():
        raise UserError(f"there is no {file}", do="leave out --no-run to measure it.")
    return read_records(file)


def _show(name: str, records: list[dict[str, Any]], file: Path, folder: Path, display: Display, *, page: bool) -> None:
    """The numbers in the terminal, the charts as a picture, and the page; then the paths of all."""
    from setminus_paper.figures import draw_picture, summary_of, title_of

    display.table((title_of(name), "paper, or exact", "measured"), summary_of(records))
    display.say("")
    paths = [file]
    if page:
        from setminus.report.page import write_page

        folder.mkdir(parents=True, exist_ok=True)
        picture = folder / f"{name}.png"
        if draw_picture(name, records, picture):
            paths.append(picture)
        paths.append(write_page(folder / "index.html", records))
    for path in paths:
        echo(path.resolve())
