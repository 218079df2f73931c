r"""Proposition 2 on finite latents: where the orthogonal GAN loss leads a generator, and where the plain one does.

Against the best discriminator the generator minimises, over the distributions p of what it makes::

    L(p) = sum p log(p / (p + Q r)),    r = (w_x \ w_1)_0 / (w_x \ w_1)_1        (r = 1: the plain GAN)

By Jensen's inequality the minimum is ``-log(1 + c)`` with ``c = sum Q r``, at ``p = Q r / c``. By Bayes' rule
``Q r = c Q(z1) P(z2 | z1)``, with c the ratio of the domains' frequencies: hence Q(z1) P(z2) and -log 2 where z1 and
z2 are independent in domain A and the domains equally frequent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from setminus.core.orthogonalize import orthogonalize
from setminus.datasets.synthetic.discrete import DiscreteModel
from setminus.progress import Step
from setminus_paper.run import Run

__all__ = ["CLAIM", "DEFAULT_SEEDS", "plan"]

Floats = NDArray[np.float64]

CLAIM = (
    "The orthogonal GAN loss is smallest, at -log 2, if and only if the generator makes Q(z1) P(z2): z1 as in the "
    "other domain, z2 as it was. The plain loss makes Q(z1) Q(z2)."
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


def plan(scale: Literal["quick", "paper"], seeds: tuple[int, ...]) -> list[Run]:
    """One run as the paper assumes, one with unequal domains, one with z1 and z2 dependent given the domain.

    Examples
    --------
    >>> [run.config["share_a"] for run in plan("quick", (0,))]
    [0.5, 0.8, 0.5]
    """
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
    seeds: tuple[int, ...], step: Step, *, share_a: float, dependence: float, shape: tuple[int, int], starts: int
) -> Iterator[dict[str, Any]]:
    """Minimise both losses from random starts, on the model of each seed."""
    for seed in seeds:
        with step(f"generators on model {seed}"):
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
