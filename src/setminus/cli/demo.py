"""``setminus demo``: the tour."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setminus.cli.errors import check_folder
from setminus.cli.options import Seed

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its records.")] = Path("report"),
    seed: Seed = 0,
    picture: Annotated[Path | None, typer.Option(help="Draw the result as a PNG file, too.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the path of the page only.")] = False,
) -> None:
    """Take the tour: make a model on real census data ignore sex, see the theory hold, read the page about it."""
    check_folder(out, "--out")
    if picture is not None:
        check_folder(picture.parent, "--picture")
    from setminus.cli.display import Display
    from setminus.experiments.demo import THEORY, DemoConfig, run_demo
    from setminus.experiments.records import append_record, read_records
    from setminus.experiments.reproduce import reproduce
    from setminus.report.laboratory.section import summary_of, title_of
    from setminus.report.page import write_page

    display = Display(quiet)
    append_record(out / "records.jsonl", run_demo(DemoConfig(seed=seed), display.step))
    # the page sees nothing but what the files hold
    record = read_records(out / "records.jsonl")[-1]
    theory = []
    for name, seeds in THEORY.items():
        with display.step(f"{title_of(name)}, beside its closed form"):
            theory.append(reproduce(name, out / name / "records.jsonl", seeds=seeds))
    with display.step("write the page"):
        page = write_page(out / "index.html", [record, *(measured for records in theory for measured in records)])
    if picture is not None:
        from setminus.report.picture import draw_picture

        with display.step("draw the picture"):
            draw_picture(record, picture)
    display.models(record)
    # the rest of what was measured is on the page
    rows = [
        (f"{title_of(records[0]['name'])}, {what}", expected, measured)
        for records in theory
        for what, expected, measured in summary_of(records)[:2]
    ]
    display.summary("The theory", rows)
    typer.echo(page.resolve())
