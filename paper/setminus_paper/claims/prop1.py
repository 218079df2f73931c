"""Proposition 1 on finite variables, without sampling: of the features independent of z1 given y, z2 predicts y best.

A candidate is a channel p(z | z1, z2). The channels with I(z; z1 | y) = 0 are a polytope, because they are those with
p(z | z1, y) = p(z | y), which is linear in the channel; and both informations below are convex in the channel. Hence
the largest lie at corners, which linear programs find: random ones, and climbs that follow the gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import rel_entr

from setminus.charts.chart import Chart, Mark, Points, Rule
from setminus.datasets.synthetic import DiscreteModel
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary, value_range
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

Floats = NDArray[np.float64]

CLAIM = "Of all features z that are independent of z1 given y, z2 maximises I(z; y | z1)."
DEFAULT_SEEDS = 3
SHAPE = {"quick": (3, 3, 5), "paper": (4, 4, 6)}
DRAWS = {"quick": 60, "paper": 300}
INDEPENDENT = 1e-9
"""Nats of I(z; z1 | y) up to which a candidate counts as independent: a linear program is solved to rounding only."""


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """One run: all candidates on one random model for each seed."""
    sizes = {**dict(zip(("n_classes", "n_z1", "n_z2"), SHAPE[scale], strict=True)), "draws": DRAWS[scale]}
    return [Run("prop1", {"scale": scale, **sizes}, seeds, partial(measure, sizes=sizes))]


def measure(seeds: tuple[int, ...], *, sizes: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Measure every candidate on the model of each seed."""
    for seed in seeds:
        with tracked(f"candidates on model {seed}"):
            joint = DiscreteModel.random(sizes["n_classes"], sizes["n_z1"], sizes["n_z2"], seed).joint
            channels = candidates(joint, sizes["draws"], np.random.default_rng(seed))
            measured = {kind: [informations(joint, channel) for channel in made] for kind, made in channels.items()}
            looking = [bool(np.ptp(channel, axis=0).max() > 1e-6) for channel in channels["corner"]]
        yield {
            "candidates": {kind: _columns(rows) for kind, rows in measured.items()},
            "corners_that_see_z1": float(np.mean(looking)),
            **_compared(joint, measured),
        }


def candidates(joint: Floats, draws: int, rng: np.random.Generator) -> dict[str, list[Floats]]:
    """Channels of shape (n_z1, n_z2, n_z) by kind: z2 and its functions, corners of the polytope, and violators."""
    _, n_z1, n_z2 = joint.shape
    shape = (n_z1, n_z2, n_z2)
    # with spare values of z a climb is less often caught where two values of z2 share one
    corners = [best_corner(joint, rng.normal(size=(n_z1, n_z2, 3 * n_z2))) for _ in range(draws)]
    mixtures = [np.tensordot(rng.dirichlet(np.full(3, 0.5)), _some(corners, 3, rng), axes=1) for _ in range(draws)]
    of_z2 = [np.broadcast_to(channel, shape) for channel in rng.dirichlet(np.full(n_z2, 0.3), size=(draws, n_z2))]
    return {
        "z2": [np.broadcast_to(np.eye(n_z2), shape)],
        "function of z2": [np.broadcast_to(function, shape) for function in groupings(n_z2)],
        "noisy channel of z2": of_z2,
        "corner": corners,
        "mixture of corners": mixtures,
        "climb of I(z; y | z1)": [climb(joint, corner, beyond_z1=True) for corner in corners],
        "climb of I(z; y)": [climb(joint, corner, beyond_z1=False) for corner in corners],
        "x": [np.eye(n_z1 * n_z2).reshape(n_z1, n_z2, -1)],
        "z1": [np.broadcast_to(np.eye(n_z1)[:, None, :], (n_z1, n_z2, n_z1))],
        "function of x": [np.eye(n_z2)[rng.integers(n_z2, size=(n_z1, n_z2))] for _ in range(draws)],
        "noisy channel of x": list(rng.dirichlet(np.full(n_z2, 0.3), size=(draws, n_z1, n_z2))),
    }


def informations(joint: Floats, channel: Floats) -> dict[str, float]:
    """I(z; y | z1), I(z; z1 | y) and I(z; y) of the feature that a channel of shape (n_z1, n_z2, n_z) makes.

    Examples
    --------
    >>> joint = DiscreteModel.random(n_classes=2, n_z1=2, n_z2=3, seed=0).joint
    >>> z2 = informations(joint, np.broadcast_to(np.eye(3), (2, 3, 3)))
    >>> abs(z2["leak"]) < 1e-12 < z2["gain"]
    True
    """
    seen = np.einsum("yab,abz->yaz", joint, channel)
    return {
        "gain": conditional_mutual_information(seen.transpose(2, 0, 1)),
        "leak": conditional_mutual_information(seen.transpose(2, 1, 0)),
        "information": mutual_information(seen.sum(axis=1)),
    }


def best_corner(joint: Floats, reward: Floats) -> Floats:
    """The channel with I(z; z1 | y) = 0 that maximises ``sum(reward * channel)``; both of shape (n_z1, n_z2, n_z)."""
    n_classes, n_z1, n_z2 = joint.shape
    n_z = reward.shape[2]
    z2_given = joint / joint.sum(axis=2, keepdims=True)
    # one row for each (y, z1 > 0, z): p(z | z1, y) - p(z | first z1, y) = 0
    same = np.zeros((n_classes, n_z1 - 1, n_z, n_z1, n_z2, n_z))
    for z, other in itertools.product(range(n_z), range(1, n_z1)):
        same[:, other - 1, z, other, :, z] = z2_given[:, other]
        same[:, other - 1, z, 0, :, z] = -z2_given[:, 0]
    normalized = np.kron(np.eye(n_z1 * n_z2), np.ones(n_z))
    equations = np.vstack([same.reshape(-1, reward.size), normalized])
    right = np.concatenate([np.zeros(len(equations) - n_z1 * n_z2), np.ones(n_z1 * n_z2)])
    found = linprog(-reward.ravel(), A_eq=equations, b_eq=right, bounds=(0, 1), method="highs")
    channel = np.clip(found.x, 0, 1).reshape(reward.shape)
    return np.asarray(channel / channel.sum(axis=2, keepdims=True))


def climb(joint: Floats, channel: Floats, *, beyond_z1: bool, steps: int = 30) -> Floats:
    """Go from corner to corner along the gradient of I(z; y | z1), or of I(z; y), until it grows no more."""
    name = "gain" if beyond_z1 else "information"
    value = informations(joint, channel)[name]
    for _ in range(steps):
        # convex: the corner that is best for the linear part is no worse for the information itself
        onward = best_corner(joint, gradient(joint, channel, beyond_z1=beyond_z1))
        reached = informations(joint, onward)[name]
        if reached <= value + 1e-12:
            break
        channel, value = onward, reached
    return channel


def gradient(joint: Floats, channel: Floats, *, beyond_z1: bool) -> Floats:
    """The gradient of I(z; y | z1), ``sum_y p(y, z1, z2) log(p(y | z1, z) / p(y | z1))``; that of I(z; y) has no z1."""
    seen = np.einsum("yab,abz->yaz", joint, channel)
    known = joint.sum(axis=2)[:, :, None]
    if not beyond_z1:
        seen, known = seen.sum(axis=1, keepdims=True), known.sum(axis=1, keepdims=True)
    prior = np.broadcast_to(known / known.sum(axis=0), seen.shape)
    # a value of z that is never taken has the prior
    posterior = np.divide(seen, seen.sum(axis=0), out=prior.copy(), where=seen.sum(axis=0) > 0)
    # at a corner a label may be ruled out: its logarithm is cut so that the program stays finite
    surprise = np.log(np.clip(posterior, 1e-9, 1) / prior)
    surprise = np.broadcast_to(surprise, (*joint.shape[:2], channel.shape[2]))
    return np.asarray(np.einsum("yab,yaz->abz", joint, surprise))


def groupings(n: int) -> Iterator[Floats]:
    """Every function of n values up to renaming its results, as a table of shape (n, n) of zeros and ones.

    Examples
    --------
    >>> len(list(groupings(4)))
    15
    """
    for labels in itertools.product(range(n), repeat=n):
        # the first use of each label comes in order, so that each grouping comes once
        if all(label <= max(labels[:place], default=-1) + 1 for place, label in enumerate(labels)):
            yield np.eye(n)[list(labels)]


def mutual_information(joint: Floats) -> float:
    """I(A; B) = sum p(a, b) log(p(a, b) / (p(a) p(b))).

    Examples
    --------
    >>> round(mutual_information(np.eye(2) / 2), 6), mutual_information(np.full((2, 2), 0.25))
    (0.693147, 0.0)
    """
    return conditional_mutual_information(joint[:, :, None])


def conditional_mutual_information(joint: Floats) -> float:
    """I(A; B | C) = sum p(a, b, c) log(p(a, b, c) p(c) / (p(a, c) p(b, c))).

    Examples
    --------
    Two bits, and whether they differ: independent, until the third is known.

    >>> joint = np.array([[[0.25, 0], [0, 0.25]], [[0, 0.25], [0.25, 0]]])
    >>> mutual_information(joint.sum(axis=2)), round(conditional_mutual_information(joint), 6)
    (0.0, 0.693147)
    """
    p_c = joint.sum(axis=(0, 1))
    products = joint.sum(axis=1)[:, None, :] * joint.sum(axis=0)[None, :, :]
    independent = np.divide(products, p_c, out=np.zeros_like(joint), where=p_c > 0)
    return float(rel_entr(joint, independent).sum())


def _compared(joint: Floats, measured: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    rows = [row for made in measured.values() for row in made]
    independent = [row for row in rows if row["leak"] <= INDEPENDENT]
    z2, x = measured["z2"][0], measured["x"][0]
    best_gain = max(row["gain"] for row in independent)
    best_information = max(row["information"] for row in independent)
    flat = joint.reshape(len(joint), -1)
    return {
        "n_candidates": len(rows),
        "n_independent": len(independent),
        "gain_z2": z2["gain"],
        # the chain rule, I(z1, z2; y) - I(z1; y): another way to the same number
        "gain_exact": mutual_information(flat) - mutual_information(joint.sum(axis=2)),
        "leak_z2": z2["leak"],
        "gain_best": best_gain,
        # of all candidates, independent or not
        "gain_highest": max(row["gain"] for row in rows),
        "gain_excess": best_gain - z2["gain"],
        "climbs_at_maximum": float(
            np.mean([row["gain"] > z2["gain"] - 1e-6 for row in measured["climb of I(z; y | z1)"]])
        ),
        "information_z2": z2["information"],
        "information_best": best_information,
        "information_excess": best_information - z2["information"],
        "gain_x": x["gain"],
        "leak_x": x["leak"],
        "information_x": x["information"],
    }


def _columns(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [round(row[name], 9) for row in rows] for name in rows[0]}


def _some(channels: list[Floats], count: int, rng: np.random.Generator) -> Floats:
    return np.stack([channels[place] for place in rng.integers(len(channels), size=count)])


# six signs can be distinguished: kinds that make the same point share one
GROUPS = {
    "z2 and its functions": ("z2", "function of z2", "noisy channel of z2"),
    "of z1 and z2, independent of z1 given y": ("corner", "mixture of corners"),
    "the same, climbed to a maximum": ("climb of I(z; y | z1)", "climb of I(z; y)"),
    "any function or channel of x": ("function of x", "noisy channel of x", "z1"),
    "x itself": ("x",),
}


def charts(records: Records) -> list[Chart]:
    """Both informations about the label against I(z; z1 | y), on the first model."""
    metrics = min(records, key=lambda record: record["seed"])["metrics"]
    return [
        Chart(
            "Beyond z1",
            "I(z; z1 | y) in nats",
            "I(z; y | z1) in nats",
            [*_cloud(metrics, "gain"), Rule(metrics["gain_z2"], "z2")],
            "Claim: of the candidates at 0 on the left, z2 is highest. The best of "
            f"{metrics['n_independent']} is {metrics['gain_excess']:.1g} above z2. x itself equals z2 here: the "
            "constraint chooses among maximisers, it does not lower the maximum.",
        ),
        Chart(
            "On its own",
            "I(z; z1 | y) in nats",
            "I(z; y) in nats",
            [*_cloud(metrics, "information"), Rule(metrics["information_z2"], "z2")],
            "Not in the paper: the same without z1 in the condition. x has "
            f"{metrics['information_x'] - metrics['information_z2']:.3g} nats more about the label than z2, at "
            f"{metrics['leak_x']:.3g} nats of I(z; z1 | y).",
        ),
    ]


def summary(records: Records) -> Summary:
    """The informations of z2, x and the best candidates; where models differ, the range over them."""
    found = [record["metrics"] for record in records]
    independent, candidates = (sum(m[name] for m in found) for name in ("n_independent", "n_candidates"))
    without = max(abs(m["gain_x"] - m["gain_z2"]) for m in found)

    def ranged(name: str, minus: str = "") -> str:
        return value_range((m[name] - (m[minus] if minus else 0) for m in found), ".4g")

    return [
        ("candidates independent of z1 given y", "", f"{independent} of {candidates}"),
        ("I(z2; y | z1), nats", ranged("gain_exact"), ranged("gain_z2")),
        ("best independent candidate minus z2, I(z; y | z1)", "0", f"{max(m['gain_excess'] for m in found):.1g}"),
        ("share of the polytope's corners that depend on z1", "", ranged("corners_that_see_z1")),
        ("share of climbs that end at z2's value", "", ranged("climbs_at_maximum")),
        ("x minus z2, I(z; y | z1), no constraint", "0 (data processing)", f"{without:.1g}"),
        ("best independent candidate minus z2, I(z; y)", "0", f"{max(m['information_excess'] for m in found):.1g}"),
        ("x minus z2, I(z; y)", "> 0", ranged("information_x", minus="information_z2")),
        ("I(x; z1 | y), which excludes x", "> 0", ranged("leak_x")),
    ]


def _cloud(metrics: dict[str, Any], name: str) -> list[Mark]:
    clouds: list[Mark] = []
    for group, kinds in GROUPS.items():
        columns = [metrics["candidates"][kind] for kind in kinds]
        x = [abs(value) for column in columns for value in column["leak"]]
        clouds.append(Points(x, [value for column in columns for value in column[name]], group))
    return clouds
