"""Figure 1: the linear case, in which orthogonal classifiers have boundaries at a right angle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from setminus.charts.chart import Chart, Mark, Points, Surface
from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import GaussianModel, linear_gaussian
from setminus.errors import UserError
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary, mean_bars, metrics_by
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "boundary_axis", "charts", "degrees_between", "plan", "summary"]

CLAIM = (
    "In the linear Gaussian case the boundaries of the principal and the orthogonal classifier meet at a right angle."
)
DEFAULT_SEEDS = 3

Floats = NDArray[np.float64]
Classifier = Callable[[Floats], Floats]

_DEVIATIONS = {"equal": (1.0, 1.0), "unequal": (0.7, 1.3)}
_ROWS = {"quick": 20_000, "paper": 1_000_000}
_SHOWN_POINTS = 200
_GRID = np.linspace(-4, 4, 25)


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """List the runs: class variances that are equal, and that differ."""
    return [
        Run(
            "fig1",
            {"scale": scale, "variances": variances},
            seeds,
            partial(_measure, deviations=deviations, n=_ROWS[scale]),
        )
        for variances, deviations in _DEVIATIONS.items()
    ]


def degrees_between(a: Floats, b: Floats) -> float:
    """Angle between two lines, from 0 to 90 degrees.

    Examples
    --------
    >>> round(degrees_between(np.array([1.0, 0.0]), np.array([-1.0, 1.0])), 10)
    45.0
    """
    cosine = abs(float(a @ b)) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


def boundary_axis(classifier: Classifier, points: Floats, step: float = 1e-4) -> tuple[Floats, float]:
    """The direction across a boundary between two classes, and the root mean square angle of the normals to it.

    Of `points`, which surround the boundary, only those with a probability between 0.4 and 0.6 count.

    Examples
    --------
    >>> axis, turn = boundary_axis(lambda x: linear_gaussian(angle=0).full(x), np.zeros((1, 2)))
    >>> np.abs(axis).round(6).tolist(), round(turn, 3)
    ([1.0, 0.0], 0.0)
    """
    near = points[np.abs(classifier(points)[:, 1] - 0.5) < 0.1]
    if len(near) == 0:
        raise UserError(f"none of the {len(points)} points is near the boundary", do="give points that surround it.")
    offsets = step * np.eye(points.shape[1])
    slopes = np.column_stack([_log_odds(classifier(near + h)) - _log_odds(classifier(near - h)) for h in offsets])
    normals = slopes / np.linalg.norm(slopes, axis=1, keepdims=True)
    axis = np.linalg.eigh(normals.T @ normals)[1][:, -1]
    across = np.linalg.norm(normals - (normals @ axis)[:, None] * axis, axis=1)
    return axis, float(np.degrees(np.sqrt(np.mean(np.arcsin(np.minimum(across, 1)) ** 2))))


def _measure(seeds: tuple[int, ...], *, deviations: tuple[float, float], n: int) -> Iterator[dict[str, Any]]:
    model = linear_gaussian(deviations=deviations)
    for seed in seeds:
        with tracked(f"boundaries with deviations {deviations}, seed {seed}"):
            split = model.sample(n, seed)
            probes = split.x[:2000]
            exact, trained = _exact(model), _trained(split.x, split.y, degree=1 if len({*deviations}) == 1 else 2)
            z2 = probes[:, 1:]
            yield {
                "exact": _angles(exact, probes),
                "trained": _angles(trained, probes),
                "largest_error": float(np.abs(exact["orthogonal"](probes) - model.orthogonal(z2)).max()),
                "mean_error_trained": float(np.abs(trained["orthogonal"](probes) - model.orthogonal(z2)).mean()),
                "grid": _GRID.round(3).tolist(),
                "surfaces": {
                    "exact": {name: _surface(classifier) for name, classifier in exact.items()},
                    "trained": {name: _surface(classifier) for name, classifier in trained.items()},
                },
                "points": [split.x[split.y == label][:_SHOWN_POINTS].round(3).T.tolist() for label in (0, 1)],
            }


def _exact(model: GaussianModel) -> dict[str, Classifier]:
    def principal(x: Floats) -> Floats:
        return model.principal(x[:, : model.n_z1])

    return {"full": model.full, "principal": principal, "orthogonal": _minus(model.full, principal, model.prior)}


def _trained(x: Floats, y: NDArray[np.int64], degree: int) -> dict[str, Classifier]:
    # the exact log-odds are polynomials of this degree, so that only the sample separates the two
    full, principal = (
        make_pipeline(PolynomialFeatures(degree, include_bias=False), LogisticRegression(C=100.0, max_iter=1000))
        for _ in range(2)
    )
    full.fit(x, y)
    principal.fit(x[:, :1], y)

    def of_z1(points: Floats) -> Floats:
        return np.asarray(principal.predict_proba(points[:, :1]))

    prior = np.bincount(y) / len(y)
    return {"full": full.predict_proba, "principal": of_z1, "orthogonal": _minus(full.predict_proba, of_z1, prior)}


def _minus(full: Classifier, principal: Classifier, prior: Floats) -> Classifier:
    return lambda x: np.asarray(orthogonalize(full(x), principal(x), prior))


def _angles(classifiers: dict[str, Classifier], probes: Floats) -> dict[str, Any]:
    axes = {name: boundary_axis(classifier, probes) for name, classifier in classifiers.items()}
    principal = axes["principal"][0]
    return {
        "principal_orthogonal": degrees_between(principal, axes["orthogonal"][0]),
        "principal_full": degrees_between(principal, axes["full"][0]),
        "turn": {name: turn for name, (_, turn) in axes.items()},
    }


def _surface(classifier: Classifier) -> Any:
    first, second = np.meshgrid(_GRID, _GRID)
    proba = classifier(np.column_stack([first.ravel(), second.ravel()]))[:, 1]
    return proba.reshape(first.shape).round(3).tolist()


def _log_odds(proba: Floats) -> Floats:
    return np.asarray(np.log(proba[:, 1]) - np.log(proba[:, 0]))


PER_ROW = 4
_PANELS = {"full": "full classifier", "principal": "principal classifier", "orthogonal": "full minus principal"}
_ANGLES = {"principal_orthogonal": "principal and orthogonal", "principal_full": "principal and full"}


def charts(records: Records) -> list[Chart]:
    """Data, full, principal and orthogonal for each kind of variances, from the first seed; then the angles."""
    grouped = metrics_by(records, "variances")
    angles = [
        mean_bars(
            [f"{variances} variances" for variances in grouped],
            [[one[kind][key] for one in found] for found in grouped.values()],
            f"{words}, {kind}",
        )
        for key, words in _ANGLES.items()
        for kind in ("exact", "trained")
    ]
    return [
        *(panel for variances, found in grouped.items() for panel in _panels(variances, found[0])),
        Chart(
            "Angles between boundaries",
            "",
            "degrees",
            angles,
            "Claim: 90 degrees between the principal and the orthogonal classifier, whatever the angle of the full "
            "one. Means over seeds, with the smallest and the largest.",
        ),
    ]


def summary(records: Records) -> Summary:
    """Angles and errors, beside their exact values."""
    rows = []
    for variances, found in metrics_by(records, "variances").items():
        for key, words in _ANGLES.items():
            exact, trained = (_spread([one[kind][key] for one in found], ".2f") for kind in ("exact", "trained"))
            rows.append((f"{variances} variances, angle of {words}", exact, trained))
        largest = max(one["largest_error"] for one in found)
        rows.append((f"{variances} variances, largest error from exact inputs", "0", f"{largest:.1e}"))
        trained = _spread([one["mean_error_trained"] for one in found], ".4f")
        rows.append((f"{variances} variances, mean error, trained", "0", trained))
    return rows


def _panels(variances: str, metrics: dict[str, Any]) -> list[Chart]:
    captions = {
        "full": f"It uses z1 and z2: {metrics['exact']['principal_full']:.0f} degrees from the principal one.",
        "principal": "It uses z1 alone.",
        "orthogonal": f"Claim: a right angle. Trained: {metrics['trained']['principal_orthogonal']:.2f} degrees.",
    }
    grid, surfaces = metrics["grid"], metrics["surfaces"]
    points = [Points(x, y, f"class {label}") for label, (x, y) in enumerate(metrics["points"])]
    marks: dict[str, tuple[Sequence[Mark], str]] = {
        "data": (points, "Two classes that differ in both coordinates."),
        **{
            words: (
                [Surface(grid, grid, surfaces[kind][name], f"P(class 1), {kind}") for kind in ("exact", "trained")],
                f"{captions[name]} Lines are boundaries, where the probability is one half.",
            )
            for name, words in _PANELS.items()
        },
    }
    title = f"{variances.capitalize()} variances"
    return [
        Chart(f"{title}: {words}", "z1", "z2", shown, caption, square=True) for words, (shown, caption) in marks.items()
    ]


def _spread(values: list[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{mean(values):{form}} ({low} to {high})"
