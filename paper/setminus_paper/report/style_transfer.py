"""The section on a table of style transfer: its records to scores beside the paper's, images and curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setminus.charts.chart import Chart, Line
from setminus.charts.vega import figures
from setminus.report.page import same_experiment
from setminus_paper.figures import title_of
from setminus_paper.report.sample_grids import sample_grids
from setminus_paper.report.style_transfer_notes import about, notes, scoring
from setminus_paper.report.style_transfer_rows import Row, compared, rows_of, scores_of, shown, steps_of, summary

__all__ = ["charts", "style_transfer_section", "summary"]

Record = dict[str, Any]

HEADINGS = {
    "scores": ("Scores", "What changes, and what stays"),
    "samples": ("Images", "The same images in every row"),
    "curves": ("Training", "How it came about"),
    "repeat": ("Repeat", "Run it again"),
}


def style_transfer_section(records: Sequence[Record]) -> dict[str, Any]:
    """What the template ``style_transfer.html.j2`` shows of a table.

    Parameters
    ----------
    records : sequence of dict
        All of one table at one scale, their job "style_transfer".

    Returns
    -------
    dict
        Names of the template.
    """
    name, scale = same_experiment(records[0])
    own, rows, drawn = about(name), rows_of(records), charts(records)
    samples = sample_grids(records)
    seeds = {record["seed"] for record in records}
    plots = figures(drawn, "curve")
    minutes = sum(record["seconds"] for record in records) / 60
    return {
        "template": "style_transfer.html.j2",
        "package": "setminus_paper.report",
        "brief": True,
        "headings": HEADINGS if samples else {**HEADINGS, "samples": ("Images", "Images")},
        "task": {"data": f"{name}, {scale} scale" if scale else name},
        "rows": f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}, {minutes:.0f} min",
        "duration": f"{minutes:.0f} min",
        "title": f"{title_of(name)}: {own.data}" if own.data else title_of(name),
        "headline": records[-1].get("claim", ""),
        "score_heads": [score.heading for score in scores_of(records)],
        "scores": [_score_row(row, with_steps=len(steps_of(records)) > 1) for row in rows],
        "compared": compared(rows),
        "domains": own.domains,
        "scoring": scoring(records),
        "notes": notes(records, rows),
        "samples": samples,
        "no_samples": own.no_samples,
        "plots": plots,
        "command": records[-1]["command"],
        "figures": plots,
    }


def charts(records: Sequence[Record]) -> list[Chart]:
    """Both accuracies and the generators' loss by step, a line for each method, the mean over its seeds."""
    rows, own = rows_of(records), about(records[0]["name"])
    over_seeds = " Mean over seeds." if any(len(row.records) > 1 for row in rows) else ""
    drawn = []
    for name, title, caption in (
        ("z1", f"Z1: {own.changes}", "Share of held-out images whose z1 is another one than before."),
        ("z2", f"Z2: {own.stays}", "Share of held-out images whose z2 is what it was."),
    ):
        lines = [_line(row, "curves", name) for row in rows]
        drawn.append(Chart(title, "step", f"{name.upper()} accuracy", lines, caption=f"{caption}{over_seeds}"))
    lines = [_line(row, "losses", "generators") for row in rows]
    caption = f"Adversarial, cycle and identity terms together, on one batch.{over_seeds}"
    drawn.append(Chart("The generators' loss", "step", "loss", lines, caption=caption, y_scale="log"))
    return drawn


def _score_row(row: Row, *, with_steps: bool) -> dict[str, Any]:
    """A row of the template's table."""
    n = len(row.records)
    told = f"{n} seed{'s' if n > 1 else ''}"
    if with_steps:
        told += f", {' and '.join(f'{steps:,}' for steps in row.steps)} steps"
    cells = [
        {
            "metric": cell.score.metric,
            "value": cell.value,
            "text": shown(cell.score, cell.value, cell.deviation),
            "paper": None if cell.paper is None else shown(cell.score, cell.paper),
        }
        for cell in row.cells.values()
    ]
    return {"method": row.method, "label": row.label, "about": told, "cells": cells}


def _line(row: Row, group: str, name: str) -> Line:
    steps = row.records[0]["metrics"][group]["step"]
    # a run that was planned with other steps has no place on this line
    values = [one["metrics"][group][name] for one in row.records if one["metrics"][group]["step"] == steps]
    return Line(steps, np.mean(values, axis=0).round(4).tolist(), row.label, markers=False)
