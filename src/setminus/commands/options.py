"""The options that commands share: each declared once, with its help."""

from __future__ import annotations

import math
import shlex
import sys
from typing import Annotated, Literal

import typer

from setminus.core import Agg, Constraint

__all__ = [
    "Decimal",
    "Encoding",
    "Header",
    "Ignore",
    "Json",
    "Label",
    "Positive",
    "Quiet",
    "Seed",
    "Trusted",
    "finite",
    "gap_key",
    "typed_command",
]


def finite(value: float | None) -> float | None:
    """Refuse infinity and nan, which the bounds of an option let pass."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


def gap_key(constraint: Constraint, agg: Agg) -> str:
    """The key under which an audit has the gap that a constraint bounds.

    Examples
    --------
    >>> gap_key("equalized_odds", "sum"), gap_key("demographic_parity", "max")
    ('equalized_odds_sum', 'demographic_parity')
    """
    return f"{constraint}_{agg}" if constraint == "equalized_odds" else constraint


def typed_command(*left_out: str) -> str:
    """The command of this process, for records, without some of its words."""
    return shlex.join(["setminus", *(word for word in sys.argv[1:] if word not in left_out)])


Label = Annotated[str, typer.Option(help="Column to predict.", show_default=False)]
Ignore = Annotated[
    list[str],
    typer.Option(
        help="Column that predictions must not depend on. Repeat the option for several: their combinations are then "
        "the groups.",
        show_default=False,
    ),
]
Positive = Annotated[str | None, typer.Option(help="Value of the label that counts as 1. All other values count as 0.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="CSV: whether the first line holds column names. Detected by default."),
]
Encoding = Annotated[str, typer.Option(help="CSV: text encoding, such as utf-8 or latin-1.")]
Decimal = Annotated[
    Literal[".", ","] | None, typer.Option(help="CSV: decimal sign. Detected from all rows by default.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no tables.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed: the same seed gives the same result.")]
Trusted = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        help="Python type to allow in a model file, in addition to the types that setminus has reviewed. Repeat the "
        "option for several.",
    ),
]
