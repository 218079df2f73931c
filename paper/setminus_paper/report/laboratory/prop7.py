"""Proposition 7: losses with an input-gradient penalty, of the orthogonal classifier and of others."""

from __future__ import annotations

from statistics import mean
from typing import Any

from setminus.report.charts.chart import Bars, Chart, Line, Rule

__all__ = ["charts", "summary"]

Record = dict[str, Any]

_MATRICES = {
    "transposed": "the paper's matrix, transposed",
    "printed": "the paper's matrix, as printed",
    "steep": "a steeper matrix",
}
_PENALTIES = {"cosine": "squared cosine", "dot": "squared dot product"}
_CLASSIFIERS = {"orthogonal": "orthogonal (w2)", "nested": "part of z1 (w3)", "trained": "minimiser, trained"}


def charts(records: list[Record]) -> list[Chart]:
    """Losses over the weight of the penalty, for each matrix and penalty, and what the minimisers know of z1."""
    grouped = _by_matrix(records)
    losses = [_losses(matrix, some, penalty) for matrix, some in grouped.items() for penalty in _PENALTIES]
    return [*losses, _known(grouped)]


def summary(records: list[Record]) -> list[tuple[str, str, str]]:
    """The condition's value, the losses without sampling and measured, and what the minimiser knows of z1."""
    rows = []
    paper = {"transposed": "-2", "printed": "-2", "steep": "not in the paper"}
    for matrix, some in _by_matrix(records).items():
        words, first = _MATRICES[matrix], some[0]["metrics"]
        rows.append((f"{words}: value of the condition", paper[matrix], f"{first['condition']:g}"))
        weight = first["penalties"]["cosine"][0]["weight"]
        for name in ("orthogonal", "nested"):
            loss = first["exact"][f"{name}_cross_entropy"] + weight * first["exact"][f"{name}_squared_cosine"]
            measured = mean(_column(some, "cosine", name)[0])
            what = f"{words}: loss of {_CLASSIFIERS[name]}, cosine penalty of weight {weight:g}"
            rows.append((what, f"{loss:.4f}", f"{measured:.4f}"))
        rows.append(
            (
                f"{words}: loss of the trained minimiser",
                "below both",
                f"{mean(_column(some, 'cosine', 'trained')[0]):.4f}",
            )
        )
        explained = _column(some, "cosine", "trained_explained_by_z1")[-1]
        rows.append(
            (
                f"{words}: share of the minimiser's log-odds that z1 explains",
                "0 if it were w2",
                f"{mean(explained):.3f}",
            )
        )
    distance = max(record["metrics"]["setminus_distance"] for record in records)
    rows.append(("largest distance of full minus principal from the orthogonal classifier", "0", f"{distance:.1e}"))
    return rows


def _by_matrix(records: list[Record]) -> dict[str, list[Record]]:
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(record["config"]["matrix"], []).append(record)
    return grouped


def _column(records: list[Record], penalty: str, key: str) -> list[list[float]]:
    """For each weight of the penalty, the values of the seeds."""
    tables = (record["metrics"]["penalties"][penalty] for record in records)
    return [[row[key] for row in rows] for rows in zip(*tables, strict=True)]


def _losses(matrix: str, records: list[Record], penalty: str) -> Chart:
    weights = [values[0] for values in _column(records, penalty, "weight")]
    marks = []
    for name, words in _CLASSIFIERS.items():
        values = _column(records, penalty, name)
        marks.append(Line(weights, [*map(mean, values)], words, low=[*map(min, values)], high=[*map(max, values)]))
    about = {
        "transposed": "The paper prints this value.",
        "printed": "The paper prints -2, which is the value of the transpose.",
        "steep": "Not in the paper: it asks whether a value below 0 is enough.",
    }
    losses = ", ".join(f"{mark.name} {mark.y[0]:.3f}" for mark in marks)
    return Chart(
        f"{_MATRICES[matrix].capitalize()}: {_PENALTIES[penalty]}",
        "weight of the penalty",
        "cross-entropy + weight x penalty",
        marks,
        "Claim: where the condition's value is below 0, w3 has a lower loss than w2, which is then no minimiser. The "
        f"value here is {records[0]['metrics']['condition']:g}. {about[matrix]} Losses at weight {weights[0]:g}: "
        f"{losses}. Ranges are those of the seeds.",
        x_scale="log",
        y_scale="log",
    )


def _known(grouped: dict[str, list[Record]]) -> Chart:
    bars = []
    for penalty, words in _PENALTIES.items():
        values = [_column(some, penalty, "trained_explained_by_z1")[-1] for some in grouped.values()]
        bars.append(
            Bars(
                [*grouped],
                [*map(mean, values)],
                f"minimiser with the {words}",
                low=[*map(min, values)],
                high=[*map(max, values)],
            )
        )
    ours = mean(record["metrics"]["setminus_explained_by_z1"] for some in grouped.values() for record in some)
    return Chart(
        "What the minimisers know of z1, at the largest weight",
        "matrix",
        "share of variance explained by z1",
        [*bars, Rule(ours, "full minus principal")],
        "Claim: the minimiser is not the orthogonal classifier, of whose log-odds given y z1 explains nothing. "
        "Whiskers are the smallest and the largest of the seeds.",
    )
