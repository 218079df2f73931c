"""Proposition 5 and theorem 2: what maps leave unchanged, and how an orthogonal variable is constructed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from setminus.charts.chart import Chart, Points, Rule, Surface
from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import GaussianModel
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary, mean_bars, value_range
from setminus_paper.data.proposition_models import Diffeomorphism, EntangledModel, NonlinearModel
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "dependence_on_z1", "estimated_cdf", "plan", "summary"]

CLAIM = (
    "Smooth bijections change no orthogonal classifier. Where the rest of x depends on z1, conditional distribution "
    "functions give an orthogonal variable, and full minus principal is its posterior."
)
DEFAULT_SEEDS = 3

Floats = NDArray[np.float64]

_ROWS = {"quick": 12_000, "paper": 200_000}
_PERMUTATIONS = 40
_GRID = np.linspace(-3.0, 3.0, 31)
# a draw that bends the boundary visibly, without stretching the plane
_PICTURED_MAP = 143


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """List the runs: the maps, the construction, and the construction where its condition fails."""
    n = _ROWS[scale]
    return [
        Run("prop5", {"scale": scale, "part": "invariance"}, seeds, partial(_measure_invariance, n=n)),
        Run("prop5", {"scale": scale, "part": "existence", "mismatch": 0.0}, seeds, partial(_measure_existence, n=n)),
        Run(
            "prop5",
            {"scale": scale, "part": "existence", "mismatch": 0.8},
            seeds,
            partial(_measure_existence, n=n, mismatch=0.8),
        ),
    ]


def dependence_on_z1(z1: Floats, values: Floats) -> float:
    """How much the distribution of `values` depends on z1: 0 for not at all, 1 at most.

    The largest Kolmogorov-Smirnov distance between the values in a quarter of the rows, by z1, and in the others.

    Examples
    --------
    >>> z1 = np.linspace(0, 1, 1000)
    >>> dependence_on_z1(z1, z1), round(dependence_on_z1(z1, np.sin(1e4 * z1)), 1)
    (1.0, 0.0)
    """
    quarter = np.searchsorted(np.quantile(z1, [0.25, 0.5, 0.75]), z1)
    return max(
        float(ks_2samp(values[quarter == part], values[quarter != part], method="asymp").statistic) for part in range(4)
    )


def estimated_cdf(z1: Floats, rest: Floats, at_z1: Floats, at_rest: Floats, n_neighbors: int = 50) -> Floats:
    """P(rest <= at_rest | z1 = at_z1), from the rows whose z1 is nearest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z1, noise = rng.normal(size=(2, 100_000))
    >>> estimated_cdf(z1, 3 * z1 + noise, np.array([0.0, 1.0]), np.array([-9.0, 12.0])).tolist()
    [0.0, 1.0]
    """
    order = np.argsort(z1)
    first = np.searchsorted(z1[order], at_z1) - n_neighbors // 2
    windows = np.clip(first, 0, len(z1) - n_neighbors)[:, None] + np.arange(n_neighbors)
    return np.asarray((rest[order][windows] <= at_rest[:, None]).mean(axis=1))


def _measure_invariance(seeds: tuple[int, ...], *, n: int) -> Iterator[dict[str, Any]]:
    for seed in seeds:
        with tracked(f"invariance, seed {seed}"):
            yield {
                "random": [_random_maps(seed, *sizes, n=n) for sizes in ((2, 1, 1), (3, 2, 2), (5, 3, 4))],
                "picture": _picture(seed),
            }


def _random_maps(seed: int, n_classes: int, n_z1: int, n_z2: int, *, n: int) -> dict[str, Any]:
    """Errors of full minus principal behind random maps, and where z1 and z2 depend on each other."""
    model = NonlinearModel.random(n_classes, n_z1, n_z2, seed)
    dependent = NonlinearModel.random(n_classes, n_z1, n_z2, seed, dependence=0.5)
    again = NonlinearModel(model.latent, Diffeomorphism.random(n_z1 + n_z2, seed + 1000))
    x, dependent_x = model.sample(n, seed).x, dependent.sample(n, seed).x
    exact = model.orthogonal(model.latents(x)[1])
    first = _full_minus_principal(model, x)
    second = _full_minus_principal(again, again.warp.forward(model.warp.inverse(x)))
    wrong = _full_minus_principal(dependent, dependent_x)
    return {
        "sizes": [n_classes, n_z1, n_z2],
        "from_exact": float(np.abs(first - exact).max()),
        "between_maps": float(np.abs(first - second).max()),
        "from_exact_if_dependent": float(np.abs(wrong - dependent.orthogonal(dependent.latents(dependent_x)[1])).max()),
    }


def _full_minus_principal(model: NonlinearModel, x: Floats) -> Floats:
    z1, _ = model.latents(x)
    # on_violation: a corner of a grid can lie so far out that the principal is 0 to machine precision
    return np.asarray(orthogonalize(model.full(x), model.principal(z1), model.prior, on_violation="clip"))


def _picture(seed: int) -> dict[str, Any]:
    """P(y=1) of full minus principal on a grid of the latent plane, and on one of the plane that is seen."""
    means = np.array([[-0.8, -0.9], [0.8, 0.9]])
    latent = GaussianModel(np.array([0.5, 0.5]), means, np.stack([np.eye(2)] * 2), n_z1=1)
    model = NonlinearModel(latent, Diffeomorphism.random(2, _PICTURED_MAP))
    first, second = np.meshgrid(_GRID, _GRID)
    z = np.column_stack([first.ravel(), second.ravel()])
    drawn = model.sample(120, seed)
    low, high = model.warp.forward(z).min(axis=0), model.warp.forward(z).max(axis=0)
    x_axes = [np.linspace(low[i], high[i], len(_GRID)) for i in (0, 1)]
    seen = np.column_stack([axis.ravel() for axis in np.meshgrid(*x_axes)])

    def surface(x: Floats) -> Any:
        return _full_minus_principal(model, x)[:, 1].reshape(first.shape).round(3).tolist()

    return {
        "latent": {
            "x": _GRID.round(3).tolist(),
            "y": _GRID.round(3).tolist(),
            "values": surface(model.warp.forward(z)),
        },
        "seen": {"x": x_axes[0].round(3).tolist(), "y": x_axes[1].round(3).tolist(), "values": surface(seen)},
        "points": [drawn.x[drawn.y == label].round(3).T.tolist() for label in (0, 1)],
    }


def _measure_existence(seeds: tuple[int, ...], *, n: int, mismatch: float = 0.0) -> Iterator[dict[str, Any]]:
    model = EntangledModel(mismatch=mismatch)
    for seed in seeds:
        with tracked(f"existence with mismatch {mismatch}, seed {seed}"):
            split = model.sample(n, seed)
            z1, rest = split.x.T
            # as the proof does: the function of class 1, for every class. Its estimate takes a larger sample of its
            # own, because class 0 lies where class 1 is rare
            other = model.sample(10 * n, seed + 1000)
            known = other.x[other.y == 1]
            variables = {
                "rest": rest,
                "exact_cdf": model.conditional_cdf(split.x, label=1),
                "estimated_cdf": estimated_cdf(known[:, 0], known[:, 1], z1, rest),
            }
            metrics: dict[str, Any] = {
                "dependence": {
                    name: [dependence_on_z1(z1[split.y == label], values[split.y == label]) for label in (0, 1)]
                    for name, values in variables.items()
                },
                "dependence_by_chance": [
                    _by_chance(z1[split.y == label], variables["exact_cdf"][split.y == label], seed) for label in (0, 1)
                ],
            }
            if mismatch == 0:
                found = np.asarray(orthogonalize(model.full(split.x), model.principal(z1), model.prior))
                exact = model.orthogonal(model.hidden(split.x))
                metrics["posterior"] = {
                    "from_exact": float(np.abs(found - exact).max()),
                    "mean_from_rest": float(np.abs(found - model.rest(rest)).mean()),
                    "cdf": variables["exact_cdf"][:300].round(3).tolist(),
                    "found": found[:300, 1].round(3).tolist(),
                    "dropped_column": model.rest(rest[:300])[:, 1].round(3).tolist(),
                }
            yield metrics


def _by_chance(z1: Floats, values: Floats, seed: int) -> float:
    """The dependence that 95 % of shuffles, which have none, stay below."""
    rng = np.random.default_rng(seed)
    return float(np.quantile([dependence_on_z1(z1, rng.permutation(values)) for _ in range(_PERMUTATIONS)], 0.95))


_VARIABLES = {"rest": "rest", "exact_cdf": "exact CDF", "estimated_cdf": "estimated CDF"}


def charts(records: Records) -> list[Chart]:
    """The classifier in latent and in observed space, then dependence and posterior of the constructed variable."""
    invariance, holds, fails = _parts(records)
    return [
        *(_two_spaces(invariance[0]["picture"]) if invariance else []),
        *([_dependence(holds, "")] if holds else []),
        *([_dependence(fails, ", condition violated")] if fails else []),
        *([_posterior(holds[0]["posterior"])] if holds else []),
    ]


def summary(records: Records) -> Summary:
    """Errors and dependences, beside their exact values and controls."""
    invariance, holds, fails = _parts(records)
    rows = []
    maps = [one for metrics in invariance for one in metrics["random"]]
    for key, words, expected in (
        ("from_exact", "largest error behind random diffeomorphisms", "0"),
        ("between_maps", "largest difference between two diffeomorphisms", "0"),
        ("from_exact_if_dependent", "control: error where z1 and z2 depend given y", "above 0"),
    ):
        if maps:
            values = [one[key] for one in maps]
            largest = max(values)
            rows.append((words, expected, f"{largest:.1e}" if largest < 1e-3 else value_range(values, ".3f")))
    for found, violated in ((holds, False), (fails, True)):
        for label in (0, 1) if found else ():
            chance = mean(one["dependence_by_chance"][label] for one in found)
            for name, words in _VARIABLES.items():
                # the function of class 1 fits class 1 in any case, class 0 only where the classes' functions match
                dependent = name == "rest" or (violated and label == 0)
                case = "condition violated" if violated else "dependence on z1"
                measured = mean(one["dependence"][name][label] for one in found)
                expected = f"{'above' if dependent else 'within chance,'} {chance:.3f}"
                rows.append((f"{case}, class {label}, {words}", expected, f"{measured:.3f}"))
    if holds:
        posteriors = [one["posterior"] for one in holds]
        error, control = max(p["from_exact"] for p in posteriors), mean(p["mean_from_rest"] for p in posteriors)
        rows.append(("largest distance from p(y | constructed variable)", "0", f"{error:.1e}"))
        rows.append(("control: mean distance from p(y | rest), z1 dropped", "above 0", f"{control:.3f}"))
    return rows


def _parts(records: Records) -> tuple[list[dict[str, Any]], ...]:
    """The metrics of the maps, of the construction, and of the construction where its condition fails."""
    parts: dict[Any, list[dict[str, Any]]] = {"maps": [], 0.0: [], 0.8: []}
    for record in records:
        parts[record["config"].get("mismatch", "maps")].append(record["metrics"])
    return tuple(parts.values())


def _two_spaces(picture: dict[str, Any]) -> list[Chart]:
    latent, seen = (
        Surface(picture[space]["x"], picture[space]["y"], picture[space]["values"], "P(class 1), full minus principal")
        for space in ("latent", "seen")
    )
    points = [Points(x, y, f"class {label}") for label, (x, y) in enumerate(picture["points"])]
    return [
        Chart(
            "In the space of the latents",
            "z1",
            "z2",
            [latent],
            "Computed from x alone, the classifier depends on z2 only: its boundary is horizontal.",
            square=True,
        ),
        Chart(
            "In the observed space",
            "x1",
            "x2",
            [seen, *points],
            "Claim: a diffeomorphism changes no probability. The same classifier behind a map that mixes both latents.",
            square=True,
        ),
    ]


def _dependence(found: list[dict[str, Any]], where: str) -> Chart:
    bars = [
        mean_bars(
            [*_VARIABLES.values()],
            [[one["dependence"][name][label] for one in found] for name in _VARIABLES],
            f"class {label}",
        )
        for label in (0, 1)
    ]
    chance = mean(value for one in found for value in one["dependence_by_chance"])
    return Chart(
        f"Dependence on z1 given the class{where}",
        "candidate for the orthogonal variable",
        "Kolmogorov-Smirnov distance",
        [*bars, Rule(chance, "95 % of shuffles stay below")],
        "Claim: the CDF of the rest given z1, taken in class 1, does not depend on z1 in either class, if the CDFs "
        "of the classes are functions of each other. The distance is the largest between a quarter of the rows, by "
        "z1, and the others. Means over seeds, with the smallest and the largest.",
    )


def _posterior(posterior: dict[str, Any]) -> Chart:
    return Chart(
        "Probability given the constructed variable",
        "CDF of the rest given z1",
        "P(class 1)",
        [
            Points(posterior["cdf"], posterior["found"], "full minus principal"),
            Points(posterior["cdf"], posterior["dropped_column"], "p(y | rest): z1 dropped"),
        ],
        "Claim (theorem 2): full minus principal is the posterior given any orthogonal variable, so its points lie "
        "on a curve. Dropping the column z1 gives a classifier that is no function of it.",
    )
