"""Proposition 3: what the domain losses make of the codes when label frequencies shift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from setminus.report.charts.chart import Chart, Line, Points, Rule

__all__ = ["charts", "summary"]

Record = dict[str, Any]
FAMILIES = {"kept": "codes keep the label", "free": "codes may mix labels"}


def charts(records: Sequence[Record]) -> list[Chart]:
    """The orthogonal loss of many encoders, and the accuracy as the domain loss gains weight."""
    found = [record["metrics"] for record in sorted(records, key=lambda record: record["seed"])]
    clouds = [
        Points(found[0]["random"][family]["given_label"], found[0]["random"][family]["value"], f"random, {words}")
        for family, words in FAMILIES.items()
    ]
    kept, free = (found[0]["optimum"]["orthogonal"][family] for family in FAMILIES)
    minima = [
        Points([best["given_label"]], [best["value"]], f"minimum, {words}")
        for best, words in zip((kept, free), FAMILIES.values(), strict=True)
    ]
    accuracy = {
        adversary: 100 * np.array([m["sweep"][adversary]["target_accuracy"] for m in found])
        for adversary in found[0]["sweep"]
    }
    return [
        Chart(
            "The orthogonal loss",
            "largest distance between the domains' codes of one label",
            "loss",
            [*clouds, *minima, Rule(-2 * math.log(2), "-2 log 2")],
            caption=(
                "The paper: least, at -2 log 2, if and only if the codes of each label are alike in both domains. "
                f"Seen: where the code determines the label, as the proposition supposes, the least is {_end(kept)}; "
                f"where codes may mix labels, {_end(free)}."
            ),
        ),
        Chart(
            "Task and domain loss together",
            "weight of the domain loss",
            "accuracy on the target in %",
            [
                Line(
                    found[0]["weights"],
                    values.mean(axis=0).tolist(),
                    adversary,
                    low=values.min(axis=0).tolist(),
                    high=values.max(axis=0).tolist(),
                )
                for adversary, values in accuracy.items()
            ],
            x_scale="log",
            caption=(
                "Codes that may mix labels; mean and range over models. A perfect predictor is possible at every "
                "weight. At the largest the plain loss leaves "
                f"{accuracy['plain'][:, -1].mean():.0f} %, the orthogonal loss as printed, whose proposition supposes "
                f"that labels stay apart, {accuracy['orthogonal'][:, -1].mean():.0f} %, and with a discriminator that "
                f"sees the label too {accuracy['orthogonal, label seen'][:, -1].mean():.0f} %."
            ),
        ),
    ]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, expected, measured); measured over all models."""
    found = [record["metrics"] for record in records]
    rows = []
    for adversary in found[0]["optimum"]:
        for family, words in FAMILIES.items():
            best = [m["optimum"][adversary][family] for m in found]
            exact = best[0]["value_exact"]
            rows.append(
                (
                    f"least loss, {adversary}, {words}",
                    "the paper: -1.386294 for codes that keep the label" if exact is None else f"{exact:.6f}",
                    _range([b["value"] for b in best], "{:.6f}"),
                )
            )
            if adversary == "plain":
                what, expected, name = "the domains' codes", "0" if family == "free" else "0.4", "marginal"
            else:
                what, expected, name = "one label's codes", "" if exact is None else "0", "given_label"
            rows.append((f"  distance of {what} there", expected, _range([b[name] for b in best])))
    constant = f"{found[0]['constant_exact']:.6f}"
    rows.append(("orthogonal loss of a single code", constant, _range([m["constant"] for m in found], "{:.6f}")))
    aligned = [100 * (1 - m["aligned"]) for m in found]
    rows.append(
        (
            "points of accuracy (mean of both domains) that codes alike in both domains cost at least",
            f"{100 * (1 - found[0]['aligned_bound']):.1f} or more",
            _range(aligned, "{:.1f}"),
        )
    )
    for name in found[0]["sweep"]:
        lost = [100 * (1 - m["sweep"][name]["target_accuracy"][-1]) for m in found]
        what = f"points of target accuracy lost at weight {found[0]['weights'][-1]:g}, {name}"
        rows.append((what, "", _range(lost, "{:.1f}")))
    return rows


def _end(best: dict[str, float]) -> str:
    return f"{best['value']:.4f}, with the codes of a label {best['given_label']:.2g} apart"


def _range(values: Sequence[float], how: str = "{:.2g}") -> str:
    # adding 0 to the rounded number makes a zero of minus zero
    low, high = (how.format(round(value, 12) + 0.0) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
