"""The section on an experiment: its records to the claim, the figures and the numbers that its template shows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import setminus.report.laboratory
from setminus.report.charts.chart import Chart
from setminus.report.charts.matplotlib_charts import draw
from setminus.report.charts.numbers import chart_in_words, chart_table
from setminus.report.charts.plotly_charts import plotly_figure
from setminus.report.charts.signs import places
from setminus.report.errors import RecordError

__all__ = [
    "charts_of",
    "draw_picture",
    "laboratory_section",
    "made_by",
    "same_experiment",
    "seeds_in_words",
    "summary_of",
    "title_of",
]

Records = Sequence[dict[str, Any]]

HEADINGS = {
    "figures": ("Figures", "What was measured"),
    "numbers": ("Numbers", "Beside what was expected"),
    "repeat": ("Repeat", "Run it again"),
}
KINDS = {"fig": "Figure", "prop": "Proposition", "theorem": "Theorem", "table": "Table"}


def title_of(name: str) -> str:
    """An experiment's name in words.

    Examples
    --------
    >>> title_of("fig2a"), title_of("prop4"), title_of("pitfalls")
    ('Figure 2a', 'Proposition 4', 'Pitfalls')
    """
    kind = re.fullmatch(r"([a-z]+?)(\d+[a-z]?)", name)
    if kind and kind[1] in KINDS:
        return f"{KINDS[kind[1]]} {kind[2]}"
    return name.replace("_", " ").capitalize()


def charts_of(records: Records) -> list[Chart]:
    """The charts of one experiment's records, by the module that has its name."""
    charts: list[Chart] = _module(records[0]["name"]).charts(list(records))
    return charts


def draw_picture(name: str, records: Records, path: str | os.PathLike[str]) -> bool:
    """Draw the picture of a figure, a table or a claim, if there is anything to draw.

    Parameters
    ----------
    name : str
        What the picture is of; its module has a `draw` of its own, or `charts` of which as many stand side by side as
        its `COLUMNS` say, or three.
    records : sequence of dict
        Which may be those of another experiment, such as the table that a figure shows images of.
    path : path
        A PNG file.

    Returns
    -------
    bool
        Whether it was drawn.
    """
    module = _module(name)
    if hasattr(module, "draw"):
        module.draw(list(records), path)
        return True
    charts = module.charts(list(records))
    if charts:
        draw(charts, path, columns=int(getattr(module, "COLUMNS", 3)))
    return bool(charts)


def summary_of(records: Records) -> list[tuple[str, str, str]]:
    """Rows of what was measured: what, what was expected, what came out."""
    rows: list[tuple[str, str, str]] = _module(records[0]["name"]).summary(list(records))
    return rows


def same_experiment(record: dict[str, Any]) -> tuple[str, str]:
    """What the records that go into one section share: the experiment, and its scale."""
    return str(record["name"]), str(record["config"].get("scale", ""))


def laboratory_section(records: Records) -> dict[str, Any]:
    """What the template ``laboratory.html.j2`` shows of an experiment.

    Parameters
    ----------
    records : sequence of dict
        All of one experiment at one scale, their job "laboratory".

    Returns
    -------
    dict
        Names of the template; `figures` maps the id of a figure to its plotly dictionary.
    """
    name, scale = same_experiment(records[0])
    charts = charts_of(records)
    duration = _duration(sum(record["seconds"] for record in records))
    plots = []
    for number, chart in enumerate(charts):
        heads, rows = chart_table(chart)
        plots.append(
            {"id": f"chart-{number}", "chart": chart, "about": chart_in_words(chart), "heads": heads, "rows": rows}
        )
    figures = {
        plot["id"]: plotly_figure(chart, signs)
        for plot, chart, signs in zip(plots, charts, places(charts), strict=True)
    }
    return {
        "template": "laboratory.html.j2",
        "brief": True,
        "headings": {key: names for key, names in HEADINGS.items() if key != "figures" or charts},
        "task": {"data": f"{name}, {scale} scale" if scale else name},
        "rows": f"{seeds_in_words(records)}, {duration}",
        "duration": duration,
        "title": title_of(name),
        "lead": records[-1].get("claim", ""),
        "plots": plots,
        "summary": summary_of(records),
        "command": records[-1]["command"],
        "figures": figures,
    }


def seeds_in_words(records: Records) -> str:
    """How many seeds each setting was measured with.

    Examples
    --------
    >>> seeds_in_words([{"config": {"n": n}, "seed": seed} for n, seeds in ((9, 1), (99, 3)) for seed in range(seeds)])
    '1 to 3 seeds'
    """
    seeds: dict[str, set[int]] = {}
    for record in records:
        seeds.setdefault(json.dumps(record["config"], sort_keys=True), set()).add(record["seed"])
    fewest, most = min(map(len, seeds.values())), max(map(len, seeds.values()))
    return (f"{fewest} to " if fewest < most else "") + f"{most} seed{'s' if most > 1 else ''}"


def made_by(records: Records) -> dict[str, Any]:
    """How an experiment's records came about, as one record says it of itself."""
    configs, last = [_settings(record["config"]) for record in records], records[-1]
    telling = {key for config in configs for key in config if config[key] != configs[0].get(key)}
    steps: dict[str, float] = {}
    for record, settings in zip(records, configs, strict=True):
        # what all runs share would only hide what tells them apart
        config = {key: value for key, value in settings.items() if key in telling}
        step = ", ".join(f"{key} {value}" for key, value in config.items()) or record["name"]
        steps[step] = steps.get(step, 0.0) + record["seconds"]
    return {
        **{key: last[key] for key in ("name", "job", "versions")},
        "commands": list(dict.fromkeys(record["command"] for record in records)),
        "seed": ", ".join(map(str, _seeds(records))),
        "steps": steps,
        "seconds": sum(steps.values()),
    }


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run, those within others by both names."""
    told: dict[str, Any] = {}
    for key, value in config.items():
        told |= {f"{key} {inner}": one for inner, one in value.items()} if isinstance(value, dict) else {key: value}
    return told


def _module(name: str) -> Any:
    """The module that draws an experiment; the name comes from a record, so that only known ones are loaded."""
    known = {module.name for module in iter_modules(setminus.report.laboratory.__path__)} - {"section", "over_seeds"}
    if name not in known:
        raise RecordError(f"no charts are known for {name!r}: the page shows {', '.join(sorted(known)) or 'none yet'}.")
    return import_module(f"{setminus.report.laboratory.__name__}.{name}")


def _seeds(records: Records) -> list[int]:
    return sorted({record["seed"] for record in records})


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
