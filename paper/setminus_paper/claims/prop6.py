"""Proposition 6: the input gradients of principal and orthogonal classifier are not orthogonal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from setminus.charts.chart import Chart, Line, Rule
from setminus.core.orthogonalize import orthogonalize_log
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary, mean_line, metrics_by, value_range
from setminus_paper.claims.prop7 import PenalizedLoss, exact_slopes, explained_by_z1, fit_penalized
from setminus_paper.data.proposition_models import InputGradientModel
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "gradient_products", "plan", "summary"]

CLAIM = (
    "The input gradients of the principal and the orthogonal classifier are orthogonal on average only if the mean "
    "of z2 is at a right angle to the first coordinates of the mean of z1."
)
DEFAULT_SEEDS = 3

Floats = NDArray[np.float64]

_ROWS = {"quick": 10_000, "paper": 200_000}
_ANGLES = (0.0, 30.0, 60.0, 90.0, 120.0, 150.0, 180.0)
_PENALTY_WEIGHT = 1000.0


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """List the runs: with a linear map g, and with a curved one."""
    return [
        Run("prop6", {"scale": scale, "map": name}, seeds, partial(_measure, curved=name == "curved", n=_ROWS[scale]))
        for name in ("linear", "curved")
    ]


def gradient_products(
    model: InputGradientModel, x: Floats, full: Floats | None = None, principal: Floats | None = None
) -> Floats:
    r"""Products of the input gradients of P(y=1) under principal and ``full \ principal``, by autograd.

    Examples
    --------
    >>> model = InputGradientModel(np.ones(3), np.ones(2), np.eye(3), curved=True)
    >>> x = model.sample(5, seed=0).x
    >>> exact = model.gradients(x)
    >>> bool(np.allclose(gradient_products(model, x), (exact.principal * exact.orthogonal).sum(axis=1)))
    True
    """
    k, m = len(model.mean1), len(model.mean2)
    full = 2 * np.r_[model.mean1, model.mean2, 0.0] if full is None else full
    principal = 2 * np.r_[model.mean1, 0.0] if principal is None else principal
    inputs = torch.tensor(x, requires_grad=True)
    x1, z2 = inputs[:, :k], inputs[:, k:]
    remainder = (torch.sinh(x1) if model.curved else x1) @ torch.tensor(model.inverse).T
    z1 = remainder + torch.nn.functional.pad(z2, (0, k - m))
    log_full = _log_proba(torch.cat([z1, z2], dim=1), full)
    log_principal = _log_proba(z1, principal)
    log_orthogonal = orthogonalize_log(log_full, log_principal, torch.tensor(model.prior).log())
    gradients = [
        torch.autograd.grad(log_proba[:, 1].exp().sum(), inputs, retain_graph=True)[0]
        for log_proba in (log_principal, log_orthogonal)
    ]
    return np.asarray((gradients[0] * gradients[1]).sum(dim=1).numpy())


def _measure(seeds: tuple[int, ...], *, curved: bool, n: int) -> Iterator[dict[str, Any]]:
    for seed in seeds:
        rows = []
        for angle in _ANGLES:
            with tracked(f"{'curved' if curved else 'linear'} map, {angle:g} degrees, seed {seed}"):
                model = _model(angle, curved)
                split = model.sample(n, seed)
                products = gradient_products(model, split.x)
                z1, z2 = model.latents(split.x)
                full, principal = _fitted(np.concatenate([z1, z2], axis=1), split.y), _fitted(z1, split.y)
                fitted = gradient_products(model, split.x, full, principal)
                row = {
                    "angle": angle,
                    "exact": model.expected_product(),
                    "measured": float(products.mean()),
                    "standard_error": float(products.std() / np.sqrt(n)),
                    "trained": float(fitted.mean()),
                }
                if not curved:
                    row |= _penalized(model, split.x, split.y)
                rows.append(row)
        yield {"angles": rows}


def _model(angle: float, curved: bool) -> InputGradientModel:
    """Means of 0.7, that of z2 turned by the angle away from the first two coordinates of that of z1."""
    turn = np.radians(angle)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return InputGradientModel(np.full(3, 0.7), rotation @ np.full(2, 0.7), np.eye(3), curved)


def _fitted(features: Floats, y: NDArray[Any]) -> Floats:
    fitted = LogisticRegression(C=100.0, max_iter=1000).fit(features, y)
    return np.asarray(np.r_[fitted.coef_[0], fitted.intercept_])


def _penalized(model: InputGradientModel, x: Floats, y: NDArray[Any]) -> dict[str, float]:
    """The classifier that a strong penalty on the product trains: how large its product is, and what it knows."""
    principal_gradient = model.gradients(x).principal
    tensors = [torch.tensor(values, dtype=torch.float64) for values in (x, y, principal_gradient)]
    loss = PenalizedLoss(tensors[0], tensors[1], tensors[2], penalty="dot", weight=_PENALTY_WEIGHT)
    slopes = exact_slopes(model)
    starts = [np.r_[slopes[name], 0.0] for name in ("full", "orthogonal")]
    parameters, _ = fit_penalized(loss, starts)
    log_odds = x @ parameters[:-1] + parameters[-1]
    proba = 1 / (1 + np.exp(-log_odds))
    gradient = (proba * (1 - proba))[:, None] * parameters[:-1]
    z1, z2 = model.latents(x)
    return {
        "penalized": float((gradient * principal_gradient).sum(axis=1).mean()),
        "penalized_distance": float(np.abs(proba - model.orthogonal(z2)[:, 1]).mean()),
        "penalized_explained_by_z1": explained_by_z1(log_odds, z1, y),
    }


def _log_proba(features: torch.Tensor, slopes: Floats) -> torch.Tensor:
    log_odds = features @ torch.tensor(slopes[:-1]) + slopes[-1]
    return torch.log_softmax(torch.stack([torch.zeros_like(log_odds), log_odds], dim=1), dim=1)


_LINES = {
    "exact": "closed form",
    "measured": "full minus principal, exact inputs",
    "trained": "full minus principal, trained",
    "penalized": "trained with a penalty on the product",
}


def charts(records: Records) -> list[Chart]:
    """Expected products for each map, and how much the penalised classifier depends on z1."""
    found = []
    for name, metrics in metrics_by(records, "map").items():
        # the curved map has no penalised classifier
        lines = [_line(metrics, key, words) for key, words in _LINES.items() if key in metrics[0]["angles"][0]]
        found.append(
            Chart(
                f"Product of input gradients, {name} map",
                "degrees between the latents' means",
                "expected product with the principal's gradient",
                [*lines, Rule(0.0, "orthogonal gradients")],
                "Claim: the gradients are orthogonal only where the means are. Ranges are those of the seeds.",
            )
        )
    if penalized := metrics_by(records, "map").get("linear"):
        found.append(
            Chart(
                "What a penalty on the product finds instead",
                "degrees between the latents' means",
                "for the classifier trained with the penalty",
                [
                    _line(penalized, "penalized_explained_by_z1", "variance of log-odds given y explained by z1"),
                    _line(penalized, "penalized_distance", "mean distance from the orthogonal classifier"),
                    Rule(0.0, "orthogonal classifier"),
                ],
                "Claim: orthogonal gradients are not the aim: the classifier that a penalty finds depends on z1. "
                "Ranges are those of the seeds.",
            )
        )
    return found


def summary(records: Records) -> Summary:
    """Products beside their closed form, and the classifier that the penalty finds."""
    rows = []
    for name, metrics in metrics_by(records, "map").items():
        for place, angle in enumerate(_column(metrics, "angle").mean(axis=0)):
            if angle in (0, 90, 180):
                exact, measured, trained = (_column(metrics, key)[:, place].mean() for key in [*_LINES][:3])
                words = f"{name} map, means at {angle:g} degrees: gradient product"
                rows.append((words, f"{exact:.4f}", f"{measured:.4f}, trained {trained:.4f}"))
        if name == "linear":
            largest = np.abs(_column(metrics, "penalized")).max()
            distance, explained = (
                value_range(_column(metrics, f"penalized_{key}").mean(axis=0), ".3f")
                for key in ("distance", "explained_by_z1")
            )
            rows += [
                ("with a penalty: largest product", "towards 0", f"{largest:.4f}"),
                ("with a penalty: distance from orthogonal", "0 if it were found", distance),
                ("with a penalty: variance due to z1", "0 if it were found", explained),
            ]
    return rows


def _column(metrics: list[dict[str, Any]], key: str) -> Floats:
    """A quantity by seed and angle, of shape (seeds, angles)."""
    return np.array([[row[key] for row in one["angles"]] for one in metrics])


def _line(metrics: list[dict[str, Any]], key: str, name: str) -> Line:
    return mean_line(_column(metrics, "angle")[0].tolist(), _column(metrics, key), name)
