"""The options that commands share: each once, with its help."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import typer

from setminus.core import Agg, Constraint

__all__ = [
    "Agg",
    "Constraint",
    "Decimal",
    "Encoding",
    "Engine",
    "Header",
    "Ignore",
    "Json",
    "Label",
    "Positive",
    "Principal",
    "Quiet",
    "Seed",
    "Trusted",
    "finite",
]


def finite(value: float | None) -> float | None:
    """Refuse infinity and nan, which no bound of an option catches."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number to compare with.")
    return value


Principal = Literal["proxy", "group"]
Engine = Literal["arrow", "dask"]

Label = Annotated[str, typer.Option(help="The column to predict.", show_default=False)]
Ignore = Annotated[
    list[str], typer.Option(help="A column that must not matter; may be repeated, then all are crossed.")
]
Positive = Annotated[str | None, typer.Option(help="The value of the label that counts as 1, against all others.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="CSV: whether the first line has names; else guessed.")
]
Encoding = Annotated[str, typer.Option(help="CSV: the encoding of the text, such as latin-1.")]
Decimal = Annotated[
    Literal[".", ","] | None, typer.Option(help="CSV: the decimal sign; by default all rows of the file decide.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of splits, folds, fits and the audit.")]
Trusted = Annotated[
    list[str] | None, typer.Option("--trust", help="A type that a model file may hold beyond the reviewed ones.")
]
