"""Proposition 4 on finite variables: the equalized-odds gap of the orthogonal classifier, exactly and on samples.

The sensitive attribute u is z1. The exact gap is that of the population: the table of joint probabilities takes the
place of counts. With "decisions" the most probable class is predicted; with "scores" a class is drawn from the
predicted probabilities, so that a gap in them cannot hide behind a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.charts.chart import Chart, Line, Mark
from setminus.core.gaps import equalized_odds_from_table, equalized_odds_gap
from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import DiscreteModel
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary, mean_and_deviation
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

Floats = NDArray[np.float64]

CLAIM = (
    "If the attribute u and the rest z2 of x are independent given the label, the orthogonal classifier satisfies "
    "equalized odds."
)
DEFAULT_SEEDS = 20
DEPENDENCE = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
ROWS = {"quick": 50_000, "paper": 1_000_000}
N_Z2 = 6


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """One run: all dependences on one random model for each seed."""
    config = {"scale": scale, "rows": ROWS[scale], "n_z2": N_Z2, "dependence": list(DEPENDENCE)}
    return [Run("prop4", config, seeds, partial(measure, rows=ROWS[scale]))]


def measure(seeds: tuple[int, ...], *, rows: int) -> Iterator[dict[str, Any]]:
    """Measure the gaps of the full and the orthogonal classifier as u and z2 grow dependent given the label."""
    for seed in seeds:
        with tracked(f"gaps on model {seed}"):
            gaps = [_gaps(DiscreteModel.random(2, 2, N_Z2, seed, dependence), rows, seed) for dependence in DEPENDENCE]
        names = gaps[0]["full"]
        yield {
            "dependence": list(DEPENDENCE),
            **{who: {name: [gap[who][name] for gap in gaps] for name in names} for who in ("full", "orthogonal")},
        }


def exact_gaps(joint: Floats, proba: Floats) -> dict[str, float]:
    """The population's gaps (summed over labels) of probabilities of shape (n_u, n_z2, n_classes).

    `joint` has shape (n_classes, n_u, n_z2).

    Examples
    --------
    >>> joint = DiscreteModel.random(n_classes=2, n_z1=2, n_z2=3, seed=0).joint
    >>> exact_gaps(joint, np.full((2, 3, 2), 0.5))["scores"]
    0.0
    """
    decided = np.eye(len(joint))[proba.argmax(axis=2)]
    tables = {name: np.einsum("yuz,uzc->uyc", joint, p) for name, p in (("decisions", decided), ("scores", proba))}
    found = {name: float(equalized_odds_from_table(table, "sum")) for name, table in tables.items()}
    return {**found, "accuracy": float(np.einsum("uyy->", tables["decisions"]))}


def _gaps(model: DiscreteModel, rows: int, seed: int) -> dict[str, dict[str, float]]:
    u, z2 = np.indices(model.joint.shape[1:])
    full = model.full(u.ravel(), z2.ravel())
    orthogonal = orthogonalize(full, model.principal(u.ravel()), model.prior)
    sample = model.sample(rows, seed)
    seen_u, seen_z2 = sample.x.T
    gaps = {}
    for name, flat in (("full", full), ("orthogonal", orthogonal)):
        proba = flat.reshape(*u.shape, -1)
        decisions = proba.argmax(axis=2)[seen_u, seen_z2]
        sampled = equalized_odds_gap(sample.y, decisions, sensitive_features=seen_u, agg="sum")
        gaps[name] = {**exact_gaps(model.joint, proba), "decisions_sampled": sampled}
    return gaps


WHO = ("full", "orthogonal")


def charts(records: Records) -> list[Chart]:
    """The gap of the probabilities and that of the decisions, mean and middle half over models."""
    config, dependence = records[0]["config"], records[0]["metrics"]["dependence"]
    scores, decisions = ({who: _stack(records, who, name) for who in WHO} for name in ("scores", "decisions"))
    sampled = _stack(records, "orthogonal", "decisions_sampled").mean(axis=0).tolist()
    return [
        Chart(
            "Gap of the probabilities",
            "dependence of u and z2 given y",
            "equalized-odds gap (sum)",
            _lines(dependence, scores),
            "Claim: without dependence the orthogonal classifier satisfies equalized odds. Its largest gap over "
            f"{len(records)} models is then {scores['orthogonal'][:, 0].max():.1g}. Lines: means; bars: the middle "
            "half of the models.",
        ),
        Chart(
            "Gap of the decisions",
            "dependence of u and z2 given y",
            "equalized-odds gap (sum)",
            [*_lines(dependence, decisions), Line(dependence, sampled, f"orthogonal, {config['rows']:,} rows")],
            "The same for the most probable class. A threshold turns small differences into large ones: at dependence "
            f"{dependence[1]:g} the mean gap is {decisions['orthogonal'][:, 1].mean():.3f}, that of the probabilities "
            f"{scores['orthogonal'][:, 1].mean():.4f}.",
        ),
    ]


def summary(records: Records) -> Summary:
    """Gaps of both classifiers without and with dependence."""
    config, dependence = records[0]["config"], records[0]["metrics"]["dependence"]

    def gap(who: str, name: str, place: int = 0) -> str:
        return mean_and_deviation(_stack(records, who, name)[:, place], ".3g")

    largest = [_stack(records, "orthogonal", name)[:, 0].max() for name in ("decisions", "scores")]
    wider = np.mean(_stack(records, "orthogonal", "decisions")[:, -1] > _stack(records, "full", "decisions")[:, -1])
    accuracy = [100 * _stack(records, who, "accuracy")[:, 0].mean() for who in WHO]
    return [
        ("independent: largest gap, orthogonal, decisions", "0", f"{largest[0]:.1g}"),
        ("independent: largest gap, orthogonal, scores", "0", f"{largest[1]:.1g}"),
        ("independent: gap, full, decisions", "> 0", gap("full", "decisions")),
        ("independent: gap, full, scores", "> 0", gap("full", "scores")),
        (f"independent: gap, orthogonal, {config['rows']:,} rows", "near 0", gap("orthogonal", "decisions_sampled")),
        *(
            (f"dependence {dependence[place]:g}: gap, {who}, scores", "> 0", gap(who, "scores", place))
            for place in (1, len(dependence) // 2, len(dependence) - 1)
            for who in WHO
        ),
        (f"dependence {dependence[-1]:g}: orthogonal decisions have the wider gap", "", f"{wider:.0%} of models"),
        ("independent: accuracy, full and orthogonal", "", f"{accuracy[0]:.1f} % and {accuracy[1]:.1f} %"),
    ]


def _stack(records: Records, who: str, name: str) -> Floats:
    return np.array([record["metrics"][who][name] for record in records])


def _lines(dependence: list[float], gaps: dict[str, Floats]) -> list[Mark]:
    lines: list[Mark] = []
    for who, values in gaps.items():
        low, high = np.quantile(values, [0.25, 0.75], axis=0).tolist()
        lines.append(Line(dependence, values.mean(axis=0).tolist(), who, low=low, high=high))
    return lines
