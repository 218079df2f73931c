"""``setminus reproduce``: the paper's figures, tables and claims, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setminus.commands.errors import check_folder
from setminus.commands.streams import echo
from setminus.errors import UserError
from setminus.progress import listen, tracked

if TYPE_CHECKING:
    from setminus.commands.display import Display

__all__ = ["reproduce"]


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="fig1, fig2a, fig2b, fig2c, prop1 to prop7, theorem1, pitfalls; laboratory is all of these. "
            "table4, table5; fairness is both. table1, table2, table3, table6: hours; fig3, fig4: images of table1. "
            "principals, small_digits.",
            show_default=False,
        ),
    ],
    scale: Annotated[
        Literal["quick", "paper"], typer.Option(help="quick: for two cores; paper: the paper's sizes, days on a CPU.")
    ] = "quick",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many seeds, from an experiment's first on; by default its own number. Of table3, the pairs that "
            "the paper has beyond the first four have one.",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Only these of the methods that are compared, separated by commas.")
    ] = None,
    pairs: Annotated[
        str | None, typer.Option(help="table3: only these pairs of domains, such as mnist-usps, separated by commas.")
    ] = None,
    shifts: Annotated[
        str | None,
        typer.Option(
            help="table3: shares of the first half of the classes in the source, reversed on the target, separated by "
            "commas; by default the paper's 0.7. 0.5 is no shift, and several make a curve."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, each with one thread.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for records, figures and pages: one folder below it each.")] = Path(
        "runs"
    ),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write figures and pages, or records only.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print paths only.")] = False,
) -> None:
    """Measure a figure, a table or a claim of the paper again, and put the numbers beside the paper's.

    Each run is written to OUT/NAME/records.jsonl as soon as it is done. A run that is there is not done again:
    after a stop, or to add seeds, repeat the command.

    Example: setminus reproduce fig2a
    Example: setminus reproduce prop1 prop2 --seeds 5 --jobs 4
    Example: setminus reproduce laboratory --out runs
    Example: setminus reproduce table4 --methods vanilla,laftr_0.5,tuned_proxy --seeds 3
    Example: setminus reproduce table3 --pairs mnist-usps --methods vada,vada_orthogonal_em --shifts 0.5,0.7,0.95
    """
    from setminus.commands.display import Display
    from setminus_paper.experiments import find_names, plan_runs, records_of
    from setminus_paper.run import FailedRunsError

    wanted = find_names(names)
    # an empty text is a choice too, and refused as one: not hours of all
    chosen, domains = (
        () if given is None else tuple(one.strip() for one in given.split(",")) for given in (methods, pairs)
    )
    mixes = _shares(shifts)
    check_folder(out, "--out")
    for name in wanted:
        # a mistake in the last one must not wait for the others
        plan_runs(name, scale=scale, seeds=seeds, methods=chosen, pairs=domains, shifts=mixes)
    display = Display(quiet)
    failures: list[str] = []
    measured: list[dict[str, Any]] = []
    for name in wanted:
        options = {"scale": scale, "seeds": seeds, "methods": chosen, "pairs": domains, "shifts": mixes, "jobs": jobs}
        measured_in = out / records_of(name)
        try:
            records = _measure(name, measured_in, display, options)
        except FailedRunsError as error:
            failures += error.failures
            continue
        # a figure may show the records of a table that was asked for, too
        measured += [record for record in records if record not in measured]
        _show(name, records, measured_in / "records.jsonl", out / name, display, page=page)
    if page and len({record["name"] for record in measured}) > 1:
        from setminus.report.page import write_page

        with listen(display), tracked("write the page of all"):
            path = write_page(out / "index.html", measured)
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


def _measure(name: str, folder: Path, display: Display, options: dict[str, Any]) -> list[dict[str, Any]]:
    from setminus_paper.experiments import reproduce as measure

    log = folder / "failed.log"
    log.unlink(missing_ok=True)

    def failed(why: str, trace: str) -> None:
        display.warn(f"failed    {why}")
        folder.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{why}\n{trace}\n")

    with listen(display):
        return measure(name, folder / "records.jsonl", failed=failed, **options)


def _show(name: str, records: list[dict[str, Any]], file: Path, folder: Path, display: Display, *, page: bool) -> None:
    """The numbers in the terminal, the charts as a picture, and the page; then where all of it is."""
    from setminus_paper.figures import draw_picture, summary_of, title_of

    display.summary(title_of(name), summary_of(records))
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
