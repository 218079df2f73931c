"""``setminus data``: the data sets that the project knows."""

from __future__ import annotations

from typing import Annotated

import typer

from setminus.commands.streams import echo

__all__ = ["data_app"]

data_app = typer.Typer(help="The data sets that the project knows: list them, fetch one.", no_args_is_help=True)


@data_app.command("list")
def data_list() -> None:
    """The data sets, where each comes from, and whether it is here."""
    from setminus.commands.display import Display
    from setminus.datasets.sources import available, find_local

    Display().sources([(source, find_local(source.name)) for source in available()])


@data_app.command("fetch")
def data_fetch(name: Annotated[str, typer.Argument(help="A name of the list.")]) -> None:
    """Fetch a data set, check it, and print where it is."""
    from setminus.datasets.sources import available, fetch
    from setminus.tables.columns import check_names

    check_names([name], [source.name for source in available()], "the list", what="file")
    echo(fetch(name))
