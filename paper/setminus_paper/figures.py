"""The charts of an experiment, and the section of the page that shows a claim."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from setminus.charts.chart import Chart
from setminus.charts.vega import figures
from setminus.files import atomic_write
from setminus.report.page import same_experiment
from setminus_paper.reproduce import load_view, summary_of, title_of

__all__ = ["charts_of", "laboratory_section", "reduce_colors", "seeds_of"]

Records = Sequence[dict[str, Any]]

HEADINGS = {
    "figures": ("Figures", "What was measured"),
    "numbers": ("Numbers", "Beside what was expected"),
    "repeat": ("Repeat", "Run it again"),
}


def charts_of(records: Records) -> list[Chart]:
    """The charts of one experiment's records, by the module that has its name."""
    charts: list[Chart] = load_view(records[0]["name"]).charts(list(records))
    return charts


def reduce_colors(path: str | os.PathLike[str]) -> None:
    """Store a PNG picture with a palette of 128 colors, in a third of the bytes: charts have few colors."""
    from PIL import Image

    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    with atomic_write(path) as partial:
        reduced.save(partial, "PNG", optimize=True)


def laboratory_section(records: Records) -> dict[str, Any]:
    """What the template ``laboratory.html.j2`` shows of all records of one experiment at one scale."""
    name, scale = same_experiment(records[0])
    charts = charts_of(records)
    duration = _duration(sum(record["seconds"] for record in records))
    plots = figures(charts)
    return {
        "template": "laboratory.html.j2",
        "package": "setminus_paper.report",
        "brief": True,
        "headings": {key: names for key, names in HEADINGS.items() if key != "figures" or charts},
        "task": {"data": f"{name}, {scale} scale" if scale else name},
        "rows": f"seeds: {seeds_of(records)}, {duration}",
        "duration": duration,
        "title": title_of(name),
        "headline": records[-1].get("claim", ""),
        "plots": plots,
        "summary": summary_of(records),
        "command": records[-1]["command"],
        "figures": plots,
    }


def seeds_of(records: Records) -> str:
    """How many seeds each setting was measured with.

    Examples
    --------
    >>> seeds_of([{"config": {"n": n}, "seed": seed} for n, seeds in ((9, 1), (99, 3)) for seed in range(seeds)])
    '1 to 3'
    """
    seeds: dict[str, set[int]] = {}
    for record in records:
        seeds.setdefault(json.dumps(record["config"], sort_keys=True), set()).add(record["seed"])
    fewest, most = min(map(len, seeds.values())), max(map(len, seeds.values()))
    return str(most) if fewest == most else f"{fewest} to {most}"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
