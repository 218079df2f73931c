"""``setminus data``: the data sets of the demo and the experiments."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["data_app"]

data_app: typer.Typer = typer.Typer(
    help="List or fetch the data sets of the demo and the experiments.", no_args_is_help=True
)


@data_app.command("list")
def data_list() -> None:
    """List the data sets, their paths on this machine, and where they can be fetched from."""
    from setminus.commands.terminal import Display
    from setminus.datasets.sources import available, find_local

    rows = []
    for source in available():
        places = [*source.urls, *([f"package {source.package}"] if source.package else [])]
        rows.append((source.name, str(find_local(source.name) or "no"), "; ".join(places)))
    Display().table(("name", "on this machine", "source"), rows)


@data_app.command("fetch", no_args_is_help=True)
def data_fetch(
    name: Annotated[
        str, typer.Argument(help="Name of a data set, as printed by `setminus data list`.", show_default=False)
    ],
) -> None:
    """Fetch a data set, verify its checksum, and print where it is.

    Example: setminus data fetch adult.data
    """
    from setminus.commands.terminal import echo
    from setminus.datasets.sources import available, fetch
    from setminus.tables.columns import check_names

    check_names([name], [source.name for source in available()], "the list", what="file")
    echo(fetch(name))
