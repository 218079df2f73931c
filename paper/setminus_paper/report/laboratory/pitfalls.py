"""What goes wrong when the full classifier missed z2 or is miscalibrated, and how much the cures help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setminus.report.charts.chart import Bars, Chart, Line, Rule
from setminus_paper.report.laboratory.over_seeds import mean_and_deviation

__all__ = ["charts", "summary"]

Record = dict[str, Any]
CLASSIFIERS = {
    "one network": "one network",
    "none": "two, no penalty",
    "cosine": "two, cosine penalty",
    "dot": "two, dot product penalty",
}
NETWORK = {"full": "full, before", "as trained": "full minus principal", "temperature": "the same, with temperature"}
MEASURES = {"excess": "excess loss in nats", "leakage": "bits of z1 given y"}


def charts(records: Sequence[Record]) -> list[Chart]:
    """Losses after simplicity bias; excess and leakage by sharpness, and by how long a network was trained."""
    biased, miscalibrated = _of(records, "simplicity bias"), _of(records, "miscalibration")
    return [
        *([_bias_chart(biased)] if biased else []),
        *(chart for measure in MEASURES if miscalibrated for chart in _calibration_charts(miscalibrated, measure)),
    ]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, the exact value, measured), mean and standard deviation over seeds."""
    rows = []
    biased, miscalibrated = _of(records, "simplicity bias"), _of(records, "miscalibration")
    if biased:
        exact = _losses(biased, "exact").mean()
        rows += [
            (f"loss of full minus principal in nats: {words}", f"{exact:.3f}", mean_and_deviation(_losses(biased, key)))
            for key, words in CLASSIFIERS.items()
        ]
        gain = _losses(biased, "none") - _losses(biased, "cosine")
        rows.append(
            ("nats that the cosine penalty saves a pair, seed by seed", "more than 0", mean_and_deviation(gain))
        )
    if miscalibrated:
        sharpness, epochs = miscalibrated[0]["sharpness"], miscalibrated[0]["epochs"]
        for measure, words in MEASURES.items():
            for key, cure in (("sharp", "no cure"), ("cured", "temperature")):
                last = np.array([one[key][measure][-1] for one in miscalibrated])
                rows.append((f"{words}, logits times {sharpness[-1]:g}: {cure}", "0", mean_and_deviation(last)))
            for key in ("as trained", "temperature"):
                for place in (-2, -1):
                    values = np.array([one["trained"][key][measure][place] for one in miscalibrated])
                    rows.append(
                        (f"{words}, after {epochs[place]} epochs: {NETWORK[key]}", "0", mean_and_deviation(values))
                    )
    return rows


def _bias_chart(metrics: list[dict[str, Any]]) -> Chart:
    losses = {words: _losses(metrics, key) for key, words in CLASSIFIERS.items()}
    saved = _losses(metrics, "none") - _losses(metrics, "cosine")
    bars = Bars(
        [*losses],
        [float(values.mean()) for values in losses.values()],
        "full minus principal",
        low=[float(values.min()) for values in losses.values()],
        high=[float(values.max()) for values in losses.values()],
    )
    return Chart(
        "A full classifier that missed z2",
        "the full classifier",
        "loss in nats",
        [
            bars,
            Rule(float(_losses(metrics, "exact").mean()), "exact p(y | z2)"),
            Rule(float(np.log(2)), "knows nothing"),
        ],
        "z1 is a line, z2 an exclusive or; a short training finds the line. Two networks whose log-odds are combined "
        f"on held-out rows help; holding their input gradients apart saves {saved.mean():.3f} nats more, in "
        f"{int((saved > 0).sum())} of {len(saved)} seeds. Mean over seeds, the smallest and the largest.",
    )


def _calibration_charts(metrics: list[dict[str, Any]], measure: str) -> list[Chart]:
    words = MEASURES[measure]
    sharp = {"sharp": "no cure", "cured": "temperature"}
    return [
        Chart(
            f"Sharper and blunter probabilities: {words}",
            "factor on the logits of p(y | x)",
            words,
            [
                _line(metrics[0]["sharpness"], [one[key][measure] for one in metrics], name)
                for key, name in sharp.items()
            ],
            "The formula is exact where the factor is 1, and leaves some of z1 in on both sides. A temperature from "
            "held-out rows undoes a factor. Mean over seeds, the smallest and the largest.",
            x_scale="log",
        ),
        Chart(
            f"A network trained further and further: {words}",
            "epochs",
            words,
            [
                _line(metrics[0]["epochs"], [one["trained"][key][measure] for one in metrics], name)
                for key, name in NETWORK.items()
            ],
            "First too unsure, then too sure. What is wrong with it is no single factor, so that a temperature lowers "
            "the loss but need not take out what is left of z1. Mean over seeds, the smallest and the largest.",
            x_scale="log",
        ),
    ]


def _line(x: list[float], rows: list[list[float]], name: str) -> Line:
    values = np.array(rows)
    low, high = values.min(axis=0).tolist(), values.max(axis=0).tolist()
    return Line(x, values.mean(axis=0).tolist(), name, low=low, high=high)


def _of(records: Sequence[Record], pitfall: str) -> list[dict[str, Any]]:
    return [record["metrics"] for record in records if record["config"]["pitfall"] == pitfall]


def _losses(metrics: list[dict[str, Any]], key: str) -> Any:
    return np.array([one["classifiers"][key]["loss"] for one in metrics])
