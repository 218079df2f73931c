"""``setminus demo``: the tour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setminus.cli.errors import CommandError, check_folder
from setminus.cli.streams import echo

if TYPE_CHECKING:
    from setminus.cli.display import Display

__all__ = ["demo"]

Records = list[dict[str, Any]]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its records.")] = Path("report"),
    parts: Annotated[
        str | None,
        typer.Option(
            help="Only these of fairness, theory, digits, adaptation, separated by commas; the last two train networks "
            "and take most of the time.",
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
    from setminus.experiments.demo_parts import TRAINED, find_parts

    wanted = find_parts(parts)
    check_folder(out, "--out")
    if picture is not None:
        if "fairness" not in wanted:
            raise CommandError("the picture is of the part fairness, which is left out.", "Add it to --parts.")
        check_folder(picture.parent, "--picture")
    from setminus.cli.display import Display
    from setminus.experiments.runs import FailedRunsError

    display = Display(quiet)
    measured: dict[str, Records] = {}
    failures: list[str] = []
    for part in wanted:
        if part in TRAINED and not _can_train(display, needed=parts is not None):
            break
        try:
            measured[part] = RUN[part](out, seed, display)
        except FailedRunsError as error:
            # the page of the other parts is worth having
            failures += error.failures
    if measured:
        _show(measured, out, picture, display)
    if failures:
        raise FailedRunsError(failures)


def _can_train(display: Display, *, needed: bool) -> bool:
    """Whether the parts that train networks can be had on this machine; if not, why not is said in a line."""
    from setminus.datasets.sources import DataUnavailableError
    from setminus.experiments.demo_parts import check_training

    try:
        check_training()
    except (DataUnavailableError, ImportError) as error:
        if needed:
            raise
        display.progress.print(f"Left out: {str(error).splitlines()[0]}", markup=False, soft_wrap=True)
        return False
    return True


def _fairness(out: Path, seed: int, display: Display) -> Records:
    from setminus.experiments.demo import DemoConfig, run_demo
    from setminus.experiments.records import append_record, read_records

    append_record(out / "records.jsonl", run_demo(DemoConfig(seed=seed), display.step))
    # the page sees nothing but what the files hold
    return read_records(out / "records.jsonl")[-1:]


def _theory(out: Path, seed: int, display: Display) -> Records:
    from setminus.experiments.demo_parts import THEORY
    from setminus.experiments.reproduce import reproduce
    from setminus.report.laboratory.section import title_of

    found = []
    for name, seeds in THEORY.items():
        with display.step(f"{title_of(name)}, beside its closed form"):
            found += reproduce(name, out / name / "records.jsonl", seeds=seeds)
    return found


def _digits(out: Path, seed: int, display: Display) -> Records:
    from setminus.experiments.demo_parts import run_digits

    with display.runs("colored digits, small: CycleGAN, plain and against w_x \\ w_1") as shown:
        return run_digits(
            out / "table1" / "records.jsonl",
            seed=seed,
            progress=shown.progress,
            failed=lambda why, trace: shown.failed(why),
        )


def _adaptation(out: Path, seed: int, display: Display) -> Records:
    from setminus.experiments.demo_parts import ADAPTATION, run_adaptation

    with display.runs("MNIST to UCI's digits, another mix: three ways to adapt") as shown:
        return run_adaptation(
            out / ADAPTATION / "records.jsonl",
            progress=shown.progress,
            failed=lambda why, trace: shown.failed(why),
        )


RUN = {"fairness": _fairness, "theory": _theory, "digits": _digits, "adaptation": _adaptation}


def _show(measured: dict[str, Records], out: Path, picture: Path | None, display: Display) -> None:
    """The page, the picture, and the numbers in the terminal; at last where the page is."""
    from setminus.report.laboratory.section import summary_of
    from setminus.report.page import write_page

    with display.step("write the page"):
        page = write_page(out / "index.html", [record for records in measured.values() for record in records])
    if picture is not None and "fairness" in measured:
        from setminus.report.picture import draw_picture

        with display.step("draw the picture"):
            draw_picture(measured["fairness"][0], picture)
    if "fairness" in measured:
        display.models(measured["fairness"][0])
    if "theory" in measured:
        display.summary("The theory", _theory_rows(measured["theory"]))
    if "digits" in measured:
        display.summary("Colored digits, smaller than the paper's", summary_of(measured["digits"]))
    if "adaptation" in measured:
        display.summary("Digits in another mix", summary_of(measured["adaptation"]))
    echo(page.resolve())


def _theory_rows(records: Records) -> list[tuple[str, str, str]]:
    from setminus.report.laboratory.section import summary_of, title_of

    rows = []
    for name in dict.fromkeys(record["name"] for record in records):
        # the rest of what was measured is on the page
        told = summary_of([record for record in records if record["name"] == name])[:2]
        rows += [(f"{title_of(name)}, {what}", expected, measured) for what, expected, measured in told]
    return rows
