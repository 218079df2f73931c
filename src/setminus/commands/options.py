"""Options that several commands have, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from setminus import scale
from setminus.commands.terminal import finite
from setminus.core import Agg

EVIDENCE = "Evidence"
"""Heading of options in the help."""

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
Favorable = Annotated[
    str | None,
    typer.Option(
        help="Value of the label that is good for a person. Selection rates, impact ratios, true positive rates and "
        "equal_opportunity refer to it. By default the --positive value, or the second of two."
    ),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        help="Edges of the groups of a numeric --ignore column: AGE=40,62 makes the groups below 40, 40 to 61, and 62 "
        "and above. By default quantiles."
    ),
]
Engine = Annotated[
    scale.Engine,
    typer.Option(
        help="arrow: in this process. dask: in 2 processes, or on the Dask cluster of --scheduler. spark: in 2 "
        "threads, or on the Spark cluster of --master."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Address of a running Dask scheduler. On another machine it must begin with tls://."),
]
Master = Annotated[str | None, typer.Option(help="Address of a Spark cluster, such as spark://10.0.0.1:7077.")]
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
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Trusted = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        help="Python type to allow in a model file, in addition to the types that setminus has reviewed. Repeat the "
        "option for several.",
    ),
]
Score = Annotated[
    list[str] | None,
    typer.Option(
        help="Column with the probability of the --positive value, or of the second class. With more than two classes, "
        "repeat the option: one column for each class. By default the columns that `setminus apply` wrote."
    ),
]
Aggregate = Annotated[
    Agg, typer.Option(help="How equalized odds combines the gaps of the classes: their maximum, or their sum.")
]
Confidence = Annotated[
    float, typer.Option(callback=finite, min=0.5, max=0.9999, help="Confidence of intervals, bound and certificate.")
]
Card = Annotated[
    Path | None,
    typer.Option(rich_help_panel=EVIDENCE, help="Markdown file to write the same evidence to, as a model card."),
]
Pdf = Annotated[
    Path | None,
    typer.Option(rich_help_panel=EVIDENCE, help="PDF file to print the page to. Needs Chromium or Chrome."),
]
ApprovedBy = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=EVIDENCE,
        help="Who chose the constraint, the tolerance and the confidence. Recorded in all outputs.",
        show_default=False,
    ),
]
Notes = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=EVIDENCE, help="Markdown file with the reasons for these choices. Its text is in all outputs."
    ),
]
