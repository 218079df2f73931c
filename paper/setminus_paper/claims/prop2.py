r"""Proposition 2 on finite latents: where the orthogonal GAN loss leads a generator, and where the plain one does.

Against the best discriminator the generator minimises, over the distributions p of what it makes::

    L(p) = sum p log(p / (p + Q r)),    r = (w_x \ w_1)_0 / (w_x \ w_1)_1        (r = 1: the plain GAN)

By Jensen's inequality the minimum is ``-log(1 + c)`` with ``c = sum Q r``, at ``p = Q r / c``. By Bayes' rule
``Q r = c Q(z1) P(z2 | z1)``, with c the ratio of the domains' frequencies: hence Q(z1) P(z2) and -log 2 where z1 and
z2 are independent in domain A and the domains equally frequent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from setminus.charts.chart import Bars, Chart, Line
from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic import DiscreteModel
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

Floats = NDArray[np.float64]

CLAIM = (
    "The orthogonal GAN loss has its minimum, -log 2, only where the generator makes Q(z1) P(z2): z1 as in domain B, "
    "z2 as in domain A. The plain loss makes Q(z1) Q(z2)."
)
DEFAULT_SEEDS = 3
# frequency of domain A, dependence of z1 and z2 given the domain
SETTINGS = (
    (0.5, 0.0),
    # each assumption of the proof, broken in turn
    (0.8, 0.0),
    (0.5, 0.5),
)
SHAPE = {"quick": (4, 5), "paper": (8, 10)}
STARTS = {"quick": 5, "paper": 20}


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """One run as the paper assumes, one with unequal domains, one with z1 and z2 dependent given the domain."""
    shape, starts = SHAPE[scale], STARTS[scale]
    return [
        Run(
            "prop2",
            {"scale": scale, "share_a": share, "dependence": dependence, "shape": list(shape), "starts": starts},
            seeds,
            partial(measure, share_a=share, dependence=dependence, shape=shape, starts=starts),
        )
        for share, dependence in SETTINGS
    ]


def measure(
    seeds: tuple[int, ...], *, share_a: float, dependence: float, shape: tuple[int, int], starts: int
) -> Iterator[dict[str, Any]]:
    """Minimise both losses from random starts, on the model of each seed."""
    for seed in seeds:
        with tracked(f"generators on model {seed}"):
            drawn = DiscreteModel.random(2, *shape, seed, dependence)
            shares = np.array([share_a, 1 - share_a])
            model = DiscreteModel(drawn.joint * (shares / drawn.prior)[:, None, None])
            yield _measured(model, starts, np.random.default_rng(seed))


def reference(model: DiscreteModel) -> Floats:
    """Q(x) r(x), of shape (n_z1, n_z2), with r from the orthogonalized domain classifier.

    Examples
    --------
    >>> drawn = DiscreteModel.random(n_classes=2, n_z1=2, n_z2=3, seed=0)
    >>> model = DiscreteModel(drawn.joint / drawn.prior[:, None, None] / 2)
    >>> p, q = 2 * model.joint
    >>> np.allclose(reference(model), np.outer(q.sum(axis=1), p.sum(axis=0)))
    True
    """
    z1, z2 = np.indices(model.joint.shape[1:])
    orthogonal = orthogonalize(model.full(z1.ravel(), z2.ravel()), model.principal(z1.ravel()), model.prior)
    ratio = (orthogonal[:, 0] / orthogonal[:, 1]).reshape(z1.shape)
    return np.asarray(model.joint[1] / model.prior[1] * ratio)


def generator_loss(logits: Floats, target: Floats) -> tuple[float, Floats]:
    """``sum p log(p / (p + target))`` of p = softmax(logits), and its gradient.

    Examples
    --------
    >>> loss, slope = generator_loss(np.log([0.25, 0.75]), np.array([0.25, 0.75]))
    >>> round(loss, 6), np.allclose(slope, 0)
    (-0.693147, True)
    """
    p = softmax(logits)
    log_share = np.log(p / (p + target))
    slope = log_share + target / (p + target)
    return float((p * log_share).sum()), p * (slope - (p * slope).sum())


def minimise(target: Floats, start: Floats) -> tuple[float, list[Floats]]:
    """The least loss, and the distributions on the way to it from the softmax of `start`; the last has that loss."""
    path = [softmax(start)]
    found = minimize(
        generator_loss,
        start,
        args=(target,),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-30, 30)] * start.size,
        callback=lambda logits: path.append(softmax(logits)),
        options={"maxiter": 2000, "ftol": 1e-16, "gtol": 1e-10},
    )
    return float(found.fun), path


def total_variation(p: Floats, q: Floats) -> float:
    """Half the sum of |p - q|.

    Examples
    --------
    >>> total_variation(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    0.5
    """
    return float(0.5 * np.abs(p - q).sum())


def _measured(model: DiscreteModel, starts: int, rng: np.random.Generator) -> dict[str, Any]:
    p, q = model.joint / model.prior[:, None, None]
    transfer = np.outer(q.sum(axis=1), p.sum(axis=0))
    tilted = reference(model)
    # not wider: from the flat ends of the softmax no gradient leads back
    logits = rng.normal(size=(starts, q.size))
    metrics: dict[str, Any] = {"z2": {"P": p.sum(axis=0).tolist(), "Q": q.sum(axis=0).tolist()}}
    metrics["z1"] = {"P": p.sum(axis=1).tolist(), "Q": q.sum(axis=1).tolist()}
    for name, target in (("orthogonal", tilted), ("plain", q)):
        runs = [minimise(target.ravel(), start) for start in logits]
        made = runs[0][1][-1].reshape(q.shape)
        metrics["z1"][name], metrics["z2"][name] = made.sum(axis=1).tolist(), made.sum(axis=0).tolist()
        metrics[name] = {
            "value": max(value for value, _ in runs),
            "value_exact": -float(np.log(1 + target.sum())),
            # of the worst start
            "to_exact": max(total_variation(path[-1], (target / target.sum()).ravel()) for _, path in runs),
            "to_transfer": max(total_variation(path[-1], transfer.ravel()) for _, path in runs),
            "to_q": max(total_variation(path[-1], q.ravel()) for _, path in runs),
            "path": [total_variation(passed, transfer.ravel()) for passed in runs[0][1]],
        }
    metrics["q_to_transfer"] = total_variation(q, transfer)
    return metrics


def charts(records: Records) -> list[Chart]:
    """The distance to the target distribution during the minimisation, on the first model, and z2 at its end."""
    first = {_setting(record): record["metrics"] for record in sorted(records, key=lambda r: r["seed"], reverse=True)}
    assumed = first[0.5, 0.0]
    paths = {"orthogonal loss": assumed["orthogonal"], "plain loss": assumed["plain"]}
    for setting, found in first.items():
        if found is not assumed:
            paths[f"orthogonal loss, {_words(*setting)}"] = found["orthogonal"]
    values = [str(value) for value in range(len(assumed["z2"]["P"]))]
    names = {"P": "domain A", "Q": "domain B", "orthogonal": "made, orthogonal loss", "plain": "made, plain loss"}
    return [
        Chart(
            "Distance of what is made from Q(z1) P(z2)",
            "iteration",
            "total variation",
            [Line([*range(len(one["path"]))], one["path"], name, markers=False) for name, one in paths.items()],
            "Claim: the orthogonal loss has its minimum at Q(z1) P(z2) alone. The other lines break an assumption.",
            y_scale="log",
        ),
        Chart(
            "How often z2 takes each value",
            "value of z2",
            "probability",
            [Bars(values, assumed["z2"][key], name) for key, name in names.items()],
            "Claim: the orthogonal loss keeps z2 as in domain A, the plain loss makes it that of domain B.",
        ),
    ]


def summary(records: Records) -> Summary:
    """The minimum and its place, the worst over models and starts."""
    rows = []
    for setting in sorted({_setting(record) for record in records}, key=lambda pair: (pair[1], pair[0])):
        found = [record["metrics"] for record in records if _setting(record) == setting]
        words = _words(*setting)
        value = min(m["orthogonal"]["value_exact"] for m in found)
        off = max(abs(m["orthogonal"]["value"] - m["orthogonal"]["value_exact"]) for m in found)
        printed = "-log 2" if math.isclose(value, -math.log(2)) else "-log(1 + p(A) / p(B)); the paper: -log 2"
        rows.append((f"{words}: least orthogonal loss", f"{value:.6f} = {printed}", f"off by {off:.1g}"))
        distance = max(m["orthogonal"]["to_transfer"] for m in found)
        expected = "0" if setting[1] == 0 else "> 0: the assumption is broken"
        rows.append((f"{words}: its distance from Q(z1) P(z2)", expected, f"{distance:.2g}"))
        if setting == (0.5, 0.0):
            plain = max(m["plain"]["to_q"] for m in found)
            rows.append(("plain loss: distance from Q(z1) Q(z2)", "0", f"{plain:.2g}"))
            away = [m["plain"]["to_transfer"] for m in found]
            rows.append(("plain loss: distance from Q(z1) P(z2)", "> 0", f"{min(away):.2f} to {max(away):.2f}"))
    return rows


def _setting(record: dict[str, Any]) -> tuple[float, float]:
    return record["config"]["share_a"], record["config"]["dependence"]


def _words(share: float, dependence: float) -> str:
    if dependence:
        return "z1 and z2 dependent"
    return "domains equally frequent" if share == 0.5 else f"domain A {share:.0%}"
