"""Proposition 7: the orthogonal classifier does not minimise a loss with an input-gradient penalty.

As stated it is false: a negative condition is not sufficient. The steeper matrix has the condition -10, and there the
orthogonal classifier has the lower loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from setminus.charts.chart import Chart, Rule
from setminus.core.orthogonalize import orthogonalize
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary, mean_bars, mean_line, metrics_by
from setminus_paper.data.proposition_models import InputGradientModel, expectation_of_log_odds, paper_example
from setminus_paper.run import Run, Scale

__all__ = [
    "CLAIM",
    "DEFAULT_SEEDS",
    "PenalizedLoss",
    "charts",
    "exact_slopes",
    "explained_by_z1",
    "fit_penalized",
    "plan",
    "summary",
]

CLAIM = (
    "Where a condition on the map is negative (the paper's example: -2), a classifier of a part of z1 has a lower "
    "loss with an input-gradient penalty than the orthogonal classifier."
)
DEFAULT_SEEDS = 3

Floats = NDArray[np.float64]
Penalty = Literal["cosine", "dot"]

_ROWS = {"quick": 4_000, "paper": 100_000}
_WEIGHTS: dict[Penalty, tuple[float, ...]] = {"cosine": (1.0, 10.0, 100.0), "dot": (10.0, 100.0, 1000.0)}


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """List the runs: the paper's matrix transposed, as printed, and one for which its condition is not enough."""
    return [
        Run("prop7", {"scale": scale, "matrix": matrix}, seeds, partial(_measure, matrix=matrix, n=_ROWS[scale]))
        for matrix in ("transposed", "printed", "steep")
    ]


@dataclass(frozen=True)
class PenalizedLoss:
    """Cross-entropy plus ``weight * E[penalty]`` of a classifier ``sigmoid(x @ slopes + offset)``.

    With gradients in x of its and of the principal's P(y=1), the penalty is the square of their cosine, or of their
    dot product.
    """

    x: torch.Tensor
    y: torch.Tensor
    principal_gradient: torch.Tensor
    penalty: Penalty
    weight: float

    def __call__(self, parameters: torch.Tensor) -> torch.Tensor:
        """Loss of ``parameters = (slopes, offset)``, a scalar."""
        cross_entropy, penalty = self.parts(parameters)
        return cross_entropy + self.weight * penalty

    def parts(self, parameters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cross-entropy and expected penalty."""
        log_odds = self.x @ parameters[:-1] + parameters[-1]
        cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits(log_odds, self.y)
        proba = torch.sigmoid(log_odds)
        gradient = (proba * (1 - proba))[:, None] * parameters[:-1]
        if self.penalty == "dot":
            return cross_entropy, (gradient * self.principal_gradient).sum(1).square().mean()
        # the slope p (1 - p) cancels in a cosine; leaving it in would divide 0 by 0 where p rounds to 0 or 1
        direction = parameters[:-1].expand_as(self.x)
        cosine = torch.cosine_similarity(direction, self.principal_gradient, dim=1, eps=1e-30)
        return cross_entropy, cosine.square().mean()


def fit_penalized(loss: PenalizedLoss, starts: list[Floats], max_iter: int = 150) -> tuple[Floats, float]:
    """The best (slopes, offset) and their loss, by L-BFGS from several starts: the penalty is not convex."""
    found = []
    for start in starts:
        parameters = torch.tensor(start, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS(
            [parameters], max_iter=max_iter, tolerance_grad=1e-7, tolerance_change=1e-10, line_search_fn="strong_wolfe"
        )

        def closure(parameters: Any = parameters, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            value = loss(parameters)
            value.backward()
            return value

        optimizer.step(closure)
        found.append((parameters.detach().numpy(), float(loss(parameters.detach()))))
    return min(found, key=lambda pair: pair[1])


def explained_by_z1(log_odds: Floats, z1: Floats, y: NDArray[Any]) -> float:
    """Share of the variance of the log-odds within the classes that is linear in z1: 0 where z1 is ignored.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z1, y = rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000)
    >>> round(explained_by_z1(z1[:, 0] + 5 * y, z1, y), 3), round(explained_by_z1(rng.normal(size=1000), z1, y), 2)
    (1.0, 0.0)
    """
    classes = np.column_stack([y == 0, y == 1]).astype(float)

    def left_over(design: Floats) -> float:
        coefficients = np.linalg.lstsq(design, log_odds)[0]
        return float(np.square(log_odds - design @ coefficients).sum())

    return 1 - left_over(np.column_stack([classes, z1])) / left_over(classes)


def exact_slopes(model: InputGradientModel) -> dict[str, Floats]:
    """Slopes in x of the exact log-odds, which are linear where the map is; each of shape (k + m,).

    Examples
    --------
    >>> exact_slopes(paper_example())["orthogonal"].tolist()
    [0.0, 0.0, 0.0, 2.0, 2.0]
    """
    k, m = len(model.mean1), len(model.mean2)
    part = np.r_[model.mean1[:m], np.zeros(k - m)]
    slopes = {
        "principal": np.r_[model.inverse.T @ model.mean1, model.mean1[:m]],
        "orthogonal": np.r_[np.zeros(k), model.mean2],
        "nested": np.r_[model.inverse.T @ part, part[:m]],
    }
    slopes["full"] = slopes["principal"] + slopes["orthogonal"]
    return {name: 2 * slope for name, slope in slopes.items()}


def _measure(seeds: tuple[int, ...], *, matrix: str, n: int) -> Iterator[dict[str, Any]]:
    model = _model(matrix)
    slopes = exact_slopes(model)
    starts = [np.r_[slopes[name], 0.0] for name in ("full", "orthogonal", "nested")]
    for seed in seeds:
        split = model.sample(n, seed)
        z1, z2 = model.latents(split.x)
        orthogonal = model.orthogonal(z2)
        x, y, principal_gradient = (
            torch.tensor(values, dtype=torch.float64)
            for values in (split.x, split.y, model.gradients(split.x).principal)
        )
        penalties: dict[str, Any] = {}
        for penalty, weights in _WEIGHTS.items():
            rows = []
            for weight in weights:
                with tracked(f"{matrix} matrix, {penalty} penalty {weight:g}, seed {seed}"):
                    loss = PenalizedLoss(x, y, principal_gradient, penalty, weight)
                    trained, value = fit_penalized(loss, starts)
                    log_odds = split.x @ trained[:-1] + trained[-1]
                    proba = 1 / (1 + np.exp(-log_odds))
                    rows.append(
                        {
                            "weight": weight,
                            "orthogonal": float(loss(torch.tensor(starts[1]))),
                            "nested": float(loss(torch.tensor(starts[2]))),
                            "trained": value,
                            "trained_penalty": float(loss.parts(torch.tensor(trained))[1]),
                            "orthogonal_penalty": float(loss.parts(torch.tensor(starts[1]))[1]),
                            "nested_penalty": float(loss.parts(torch.tensor(starts[2]))[1]),
                            "trained_distance": float(np.abs(proba - orthogonal[:, 1]).mean()),
                            "trained_explained_by_z1": explained_by_z1(log_odds, z1, split.y),
                        }
                    )
            penalties[penalty] = rows
        ours = np.asarray(orthogonalize(model.full(split.x), model.principal(z1), model.prior))
        yield {
            "condition": float(model.condition(split.x[:1])[0]),
            "exact": _exact(model),
            "penalties": penalties,
            "setminus_distance": float(np.abs(ours - orthogonal).max()),
            "setminus_explained_by_z1": explained_by_z1(np.log(ours[:, 1] / ours[:, 0]), z1, split.y),
            "nested_explained_by_z1": explained_by_z1(split.x @ slopes["nested"], z1, split.y),
        }


def _model(matrix: str) -> InputGradientModel:
    if matrix == "steep":
        # the condition is -10, below -2 |mean2|^2: the gradients of principal and nested point apart, not across
        inverse = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-6.0, -6.0, 1.0]])
        return InputGradientModel(np.ones(3), np.ones(2), inverse)
    return paper_example(as_printed=matrix == "printed")


def _exact(model: InputGradientModel) -> dict[str, float]:
    """The loss without sampling: cross-entropy by quadrature, cosines of constant gradients."""
    slopes = exact_slopes(model)

    def squared_cosine(name: str) -> float:
        a, b = slopes["principal"], slopes[name]
        return float((a @ b) ** 2 / ((a @ a) * (b @ b)))

    def cross_entropy(mean: Floats) -> float:
        return expectation_of_log_odds(lambda log_odds: np.logaddexp(0, -log_odds), mean)

    return {
        "orthogonal_cross_entropy": cross_entropy(model.mean2),
        "nested_cross_entropy": cross_entropy(model.mean1[: len(model.mean2)]),
        "orthogonal_squared_cosine": squared_cosine("orthogonal"),
        "nested_squared_cosine": squared_cosine("nested"),
    }


_MATRICES = {
    "transposed": "transposed matrix",
    "printed": "matrix as printed",
    "steep": "steeper matrix",
}
_PRINTED = {"transposed": "-2", "printed": "-2", "steep": "not in the paper"}
_PENALTIES = {"cosine": "squared cosine", "dot": "squared dot product"}
_CLASSIFIERS = {"orthogonal": "orthogonal (w2)", "nested": "part of z1 (w3)", "trained": "minimiser, trained"}


def charts(records: Records) -> list[Chart]:
    """Losses over the weight of the penalty, for each matrix and penalty, and how the minimisers depend on z1."""
    grouped = metrics_by(records, "matrix")
    losses = [
        Chart(
            f"{_MATRICES[matrix].capitalize()}: {words}",
            "weight of the penalty",
            "cross-entropy + weight x penalty",
            [
                mean_line(_column(metrics, penalty, "weight")[0].tolist(), _column(metrics, penalty, key), name)
                for key, name in _CLASSIFIERS.items()
            ],
            "Claim: where the condition is below 0, w3 has a lower loss than w2, which is then no minimiser. The "
            f"condition here is {metrics[0]['condition']:g}; in the paper: {_PRINTED[matrix]}. Ranges are those of "
            "the seeds.",
            x_scale="log",
            y_scale="log",
        )
        for matrix, metrics in grouped.items()
        for penalty, words in _PENALTIES.items()
    ]
    bars = [
        mean_bars(
            [*grouped],
            [_column(metrics, penalty, "trained_explained_by_z1")[:, -1] for metrics in grouped.values()],
            f"minimiser with the {words}",
        )
        for penalty, words in _PENALTIES.items()
    ]
    ours = float(np.mean([record["metrics"]["setminus_explained_by_z1"] for record in records]))
    return [
        *losses,
        Chart(
            "How the minimisers depend on z1, at the largest weight",
            "matrix",
            "share of variance explained by z1",
            [*bars, Rule(ours, "full minus principal")],
            "Claim: the minimiser is not the orthogonal classifier, whose log-odds do not depend on z1 given y. "
            "Means over seeds, with the smallest and the largest.",
        ),
    ]


def summary(records: Records) -> Summary:
    """The condition, the losses without sampling and measured, and how the minimiser depends on z1."""
    rows = []
    for matrix, metrics in metrics_by(records, "matrix").items():
        words, exact = _MATRICES[matrix], metrics[0]["exact"]
        means = {name: _column(metrics, "cosine", name)[:, 0].mean() for name in (*_CLASSIFIERS, "weight")}
        rows.append((f"{words}: condition", _PRINTED[matrix], f"{metrics[0]['condition']:g}"))
        for name in ("orthogonal", "nested"):
            loss = exact[f"{name}_cross_entropy"] + means["weight"] * exact[f"{name}_squared_cosine"]
            rows.append((f"{words}: loss of {_CLASSIFIERS[name]}", f"{loss:.4f}", f"{means[name]:.4f}"))
        explained = _column(metrics, "cosine", "trained_explained_by_z1")[:, -1].mean()
        rows.append((f"{words}: loss of the minimiser", "below both", f"{means['trained']:.4f}"))
        rows.append((f"{words}: variance due to z1", "0 if it were w2", f"{explained:.3f}"))
    distance = max(record["metrics"]["setminus_distance"] for record in records)
    rows.append(("largest distance of full minus principal from orthogonal", "0", f"{distance:.1e}"))
    return rows


def _column(metrics: list[dict[str, Any]], penalty: str, key: str) -> Floats:
    """A quantity by seed and weight, of shape (seeds, weights)."""
    return np.array([[row[key] for row in one["penalties"][penalty]] for one in metrics])
