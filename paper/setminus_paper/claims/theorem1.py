r"""Theorem 1 beside what is measured: the excess risk of the full and of the orthogonal classifier as the data grow.

On finite variables with two equally frequent classes everything but the data is known: the risk is a sum over all
values of x, and the empirical risk minimiser over ``W = {w : m <= w <= 1 - m}`` is the frequency of the class at each
x, clipped. To first order in the error of the full classifier ``w_x``::

    R(w_x) - R(w_x*)              ~ chi2(|X|) / (2 n)                                            falls as 1 / n
    R(w_x \ w_1) - R(w_x* \ w_1)  ~ N(0, sum p(x) (o(x) - t(x))^2 / (t(x) (1 - t(x))) / n)       falls as 1 / sqrt(n)

with ``t = p(y=1|x)`` and ``o = p(y=1|z2)``: the first has no term of first order because t minimises the risk. The
proof's step ``|R(w_x \ w_1) - R(w_x* \ w_1)| <= (1 + gamma) |R(w_x) - R(w_x*)|`` thus cannot hold for large n.
`setminus.core.importance.generalization_bound` lists the other gaps of the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from setminus.charts.chart import Chart, Line
from setminus.core.importance import generalization_bound
from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import DiscreteModel
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary, mean_and_deviation, mean_line
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

Floats = NDArray[np.float64]

CLAIM = (
    "With probability 1 - delta the excess risk of the orthogonal classifier is at most (1 + gamma) (2 Rademacher "
    "complexity + 2 log(1/m) sqrt(2 log(1/delta) / n)). The proof bounds it by (1 + gamma) times the excess risk of "
    "the full classifier."
)
DEFAULT_SEEDS = 5
N = tuple(round(n) for n in np.geomspace(1e2, 1e8, 13))
DRAWS = {"quick": 400, "paper": 5000}
DELTA = 0.05
N_Z1, N_Z2 = 3, 4
FIT_FROM = 10_000
"""Smaller samples leave values of x unseen, and terms of second order in sight: they are kept out of the slopes."""


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """One run: all sample sizes on one random model for each seed."""
    config = {"scale": scale, "draws": DRAWS[scale], "delta": DELTA, "n_z1": N_Z1, "n_z2": N_Z2}
    return [Run("theorem1", config, seeds, partial(measure, draws=DRAWS[scale]))]


def measure(seeds: tuple[int, ...], *, draws: int) -> Iterator[dict[str, Any]]:
    """Measure the excess risks over many samples of each size, on the model of each seed."""
    for seed in seeds:
        drawn = DiscreteModel.random(2, N_Z1, N_Z2, seed)
        model = DiscreteModel(drawn.joint / drawn.prior[:, None, None] / 2)
        with tracked(f"samples of model {seed}"):
            yield _measured(model, draws, np.random.default_rng(seed))


def excess_risks(model: DiscreteModel, counts: NDArray[np.int64], m: float) -> tuple[Floats, Floats]:
    r"""R(w_x) - R(w_x*) and R(w_x \ w_1) - R(w_x* \ w_1) of the classifiers fitted to each table of counts.

    Examples
    --------
    >>> drawn = DiscreteModel.random(n_classes=2, n_z1=2, n_z2=2, seed=0)
    >>> model = DiscreteModel(drawn.joint / drawn.prior[:, None, None] / 2)
    >>> many = np.round(1e12 * model.joint.reshape(1, 2, -1)).astype(np.int64)
    >>> [bool(abs(excess[0]) < 1e-9) for excess in excess_risks(model, many, m=0.001)]
    [True, True]
    """
    z1, z2 = (axis.ravel() for axis in np.indices(model.joint.shape[1:]))
    joint = model.joint.reshape(2, -1).T
    best, principal = model.full(z1, z2), model.principal(z1)
    total = counts.sum(axis=1)
    share = np.divide(counts[:, 1], total, out=np.full(total.shape, 0.5), where=total > 0).clip(m, 1 - m)
    fitted = np.stack([1 - share, share], axis=-1)
    minus = np.broadcast_to(principal, fitted.shape)
    excesses = [
        (joint * (np.log(reference) - np.log(found))).sum(axis=(1, 2))
        for found, reference in (
            (fitted, best),
            (orthogonalize(fitted, minus, "uniform"), orthogonalize(best, principal, "uniform")),
        )
    ]
    return excesses[0], excesses[1]


def rademacher(counts: ArrayLike, m: float) -> float:
    """The Rademacher complexity of W on a sample with these numbers of rows at the values of x.

    For each x the best w follows the sign of the sum S of its signs, so that the supremum's mean is
    ``(1 - 2 m) / (2 n) * sum over x of E|S|``, and ``E|S| = k binom(k - 1, floor((k - 1) / 2)) / 2^(k - 1)`` at k rows.

    Examples
    --------
    >>> rademacher([1, 2], m=0.1) == 0.8 / 6 * 2
    True
    """
    k = np.asarray(counts, dtype=np.float64)
    k = k[k > 0]
    half = np.floor((k - 1) / 2)
    log_binomial = gammaln(k) - gammaln(half + 1) - gammaln(k - half)
    mean_absolute = k * np.exp(log_binomial - (k - 1) * np.log(2))
    return float((1 - 2 * m) / (2 * k.sum()) * mean_absolute.sum())


def expected_excess(model: DiscreteModel, n: Floats) -> tuple[Floats, Floats]:
    """The means of both absolute excess risks for large n: the formulas at the head of this file."""
    z1, z2 = (axis.ravel() for axis in np.indices(model.joint.shape[1:]))
    truth, orthogonal = model.full(z1, z2)[:, 1], model.orthogonal(z2)[:, 1]
    p_x = model.joint.sum(axis=0).ravel()
    variance = (p_x * (orthogonal - truth) ** 2 / (truth * (1 - truth))).sum()
    return len(p_x) / (2 * n), np.sqrt(2 / np.pi * variance / n)


def _measured(model: DiscreteModel, draws: int, rng: np.random.Generator) -> dict[str, Any]:
    z1, z2 = (axis.ravel() for axis in np.indices(model.joint.shape[1:]))
    posterior = model.full(z1, z2)
    # half the least probability: the family then holds the truth, as the theorem's w_x* needs
    m = float(posterior.min() / 2)
    gamma = {"printed": float(1 / (2 * model.joint).min()), "proof": float(1 / posterior.min())}
    columns: dict[str, list[float]] = {}
    for n in N:
        counts = rng.multinomial(n, model.joint.ravel(), size=draws).reshape(draws, 2, -1)
        full, orthogonal = (np.abs(excess) for excess in excess_risks(model, counts, m))
        complexity = float(np.mean([rademacher(table.sum(axis=0), m) for table in counts[:50]]))
        bound = generalization_bound(complexity, n, m, gamma["printed"], DELTA)
        row = {
            "full": float(full.mean()),
            "orthogonal": float(orthogonal.mean()),
            "orthogonal_quantile": float(np.quantile(orthogonal, 1 - DELTA)),
            "rademacher": complexity,
            "bound": bound,
            "above_bound": float(np.mean(orthogonal > bound)),
            # the step of the proof, with each of the two gammas
            "step_fails_printed": float(np.mean(orthogonal > (1 + gamma["printed"]) * full)),
            "step_fails_proof": float(np.mean(orthogonal > (1 + gamma["proof"]) * full)),
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    exact = dict(zip(("full_exact", "orthogonal_exact"), expected_excess(model, np.array(N, dtype=float)), strict=True))
    slopes = {f"slope_{name}": _slope(columns[name]) for name in ("full", "orthogonal", "bound")}
    return {"n": list(N), "m": m, "gamma": gamma, **columns, **{k: v.tolist() for k, v in exact.items()}, **slopes}


def _slope(values: list[float]) -> float:
    """The slope of log value against log n, by least squares."""
    n, value = np.array(N), np.array(values)
    large = n >= FIT_FROM
    return float(np.polyfit(np.log(n[large]), np.log(value[large]), 1)[0])


RISKS = {
    "bound": "the bound as printed",
    "orthogonal": "orthogonal, measured",
    "orthogonal_exact": "orthogonal, first order",
    "full": "full, measured",
    "full_exact": "full, chi-square",
}
STEPS = {"step_fails_proof": "gamma = max 1/p(y|x), as in the proof", "step_fails_printed": "gamma = max 1/p(x|y)"}


def charts(records: Records) -> list[Chart]:
    """The risks on the first model, and the share of samples on which the proof's step fails, over all models."""
    first = min(records, key=lambda record: record["seed"])["metrics"]
    return [
        Chart(
            "Excess risk as the data grow",
            "rows",
            "nats",
            [Line(first["n"], first[key], name, markers="exact" not in key) for key, name in RISKS.items()],
            "Claim: the excess risk of the orthogonal classifier is below the bound. It is, and both fall at the "
            f"same rate (slopes {first['slope_orthogonal']:.2f} and {first['slope_bound']:.2f}); the excess risk of "
            f"the full classifier falls faster (slope {first['slope_full']:.2f}).",
            x_scale="log",
            y_scale="log",
        ),
        Chart(
            "Where the proof's step fails",
            "rows",
            "share of samples",
            [mean_line(first["n"], _stack(records, key), words) for key, words in STEPS.items()],
            "The step: the orthogonal excess is at most 1 + gamma times the full one. It fails for large n, because "
            "the first falls as the root of 1/n and the second as 1/n. Mean and range over models.",
            x_scale="log",
        ),
    ]


def summary(records: Records) -> Summary:
    """Slopes, closed forms, the bound and the proof's step; mean and standard deviation over models."""
    n = records[0]["metrics"]["n"]
    rows = [
        (f"slope in logs, {words}", expected, mean_and_deviation(_stack(records, f"slope_{key}")))
        for key, words, expected in (
            ("full", "full excess risk", "-1"),
            ("orthogonal", "orthogonal excess risk", "-0.5"),
            ("bound", "bound", "-0.5"),
        )
    ]
    for key in ("full", "orthogonal"):
        ratio = _stack(records, key)[:, -1] / _stack(records, f"{key}_exact")[:, -1]
        rows.append((f"{key} excess over its closed form, {n[-1]:,} rows", "1", mean_and_deviation(ratio)))
    above = _stack(records, "above_bound").mean()
    rows.append(("samples above the bound", f"at most {records[0]['config']['delta']:.0%}", f"{above:.1%}"))
    slack = np.median(_stack(records, "bound") / _stack(records, "orthogonal_quantile"), axis=0)
    measured = f"{slack[0]:,.0f} and {slack[-1]:,.0f}"
    rows.append((f"bound over measured quantile, {n[0]:,} and {n[-1]:,} rows", "1 or more", measured))
    for at in (n.index(10**4), n.index(10**6), len(n) - 1):
        for key, name in STEPS.items():
            rows.append((f"step fails, {n[at]:,} rows, {name}", "0 %", f"{_stack(records, key)[:, at].mean():.0%}"))
    return rows


def _stack(records: Records, name: str) -> Floats:
    return np.array([record["metrics"][name] for record in records])
