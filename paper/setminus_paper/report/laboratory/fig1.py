"""Figure 1: four panels for equal and for unequal variances, and the angles between the boundaries."""

from __future__ import annotations

from statistics import mean
from typing import Any

from setminus.report.charts.chart import Bars, Chart, Mark, Points, Surface

__all__ = ["charts", "summary"]

Record = dict[str, Any]

_PANELS = {"full": "full classifier", "principal": "principal classifier", "orthogonal": "full minus principal"}


COLUMNS = 4
"""The panels of one case in a row."""


def charts(records: list[Record]) -> list[Chart]:
    """Data, full, principal and orthogonal for each kind of variances, from the first seed; then the angles."""
    panels = [
        panel for variances, some in _by_variances(records).items() for panel in _panels(variances, some[0]["metrics"])
    ]
    return [*panels, _angles(records)]


def summary(records: list[Record]) -> list[tuple[str, str, str]]:
    """Angles and errors, beside their exact values."""
    rows = []
    for variances, some in _by_variances(records).items():
        metrics = [record["metrics"] for record in some]
        for key, words in (
            ("principal_orthogonal", "principal and orthogonal"),
            ("principal_full", "principal and full"),
        ):
            exact, trained = ([one[kind][key] for one in metrics] for kind in ("exact", "trained"))
            rows.append((f"{variances} variances: degrees between {words}", _spread(exact), _spread(trained)))
        rows.append(
            (
                f"{variances} variances: largest error of full minus principal from exact inputs",
                "0",
                f"{max(one['largest_error'] for one in metrics):.1e}",
            )
        )
        rows.append(
            (
                f"{variances} variances: mean error of full minus principal, trained",
                "0",
                _spread([one["mean_error_trained"] for one in metrics], ".4f"),
            )
        )
    return rows


def _by_variances(records: list[Record]) -> dict[str, list[Record]]:
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(record["config"]["variances"], []).append(record)
    return grouped


def _panels(variances: str, metrics: dict[str, Any]) -> list[Chart]:
    angle = metrics["trained"]["principal_orthogonal"]
    captions = {
        "full": f"It uses both coordinates: {metrics['exact']['principal_full']:.0f} degrees from the principal one.",
        "principal": "It uses z1 alone: its boundary runs across the axis of z1.",
        "orthogonal": f"Claim: a right angle to the principal boundary. Trained: {angle:.2f} degrees.",
    }
    points = [Points(x, y, f"class {label}") for label, (x, y) in enumerate(metrics["points"])]
    title = f"{variances.capitalize()} variances"
    data = _panel(f"{title}: data", points, "Two classes that differ in both coordinates.")
    grid, surfaces = metrics["grid"], metrics["surfaces"]
    return [
        data,
        *(
            _panel(
                f"{title}: {words}",
                [
                    Surface(grid, grid, surfaces["exact"][name], "P(class 1), exact"),
                    Surface(grid, grid, surfaces["trained"][name], "P(class 1), trained"),
                ],
                f"{captions[name]} The lines are boundaries, where the probability is one half.",
            )
            for name, words in _PANELS.items()
        ),
    ]


def _panel(title: str, marks: list[Any], caption: str) -> Chart:
    return Chart(title, "z1", "z2", marks, caption, square=True)


def _angles(records: list[Record]) -> Chart:
    grouped = _by_variances(records)
    places = [f"{variances} variances" for variances in grouped]
    marks: list[Mark] = []
    for key, words in (("principal_orthogonal", "principal and orthogonal"), ("principal_full", "principal and full")):
        for kind in ("exact", "trained"):
            angles = [[record["metrics"][kind][key] for record in some] for some in grouped.values()]
            marks.append(
                Bars(
                    places, [*map(mean, angles)], f"{words}, {kind}", low=[*map(min, angles)], high=[*map(max, angles)]
                )
            )
    return Chart(
        "Angles between boundaries",
        "",
        "degrees",
        marks,
        "Claim: 90 degrees between the principal classifier and the orthogonal one, whatever angle the full one has. "
        "Bars are means over seeds, whiskers the smallest and the largest.",
    )


def _spread(values: list[float], form: str = ".2f") -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{mean(values):{form}} ({low} to {high})"
