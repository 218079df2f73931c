r"""The losses that a finite encoder is trained with in domain adaptation, each with its gradient.

A model here has the domain (0 source, 1 target) as what is told, the label as z1 and a further variable as z2; an
encoder is a table of shape (n_labels, n_z2, n_codes), p(code | label, z2).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from setminus.core.orthogonalize import log_setminus
from setminus.datasets.synthetic import DiscreteModel

__all__ = ["ADVERSARIES", "Adversary", "coded", "domain_loss", "label_shift_model", "task_loss"]

Floats = NDArray[np.float64]
Adversary = Literal["plain", "orthogonal", "orthogonal, label seen"]
ADVERSARIES: tuple[Adversary, ...] = get_args(Adversary)


def label_shift_model(source: Floats, target: Floats, n_v: int, seed: int) -> DiscreteModel:
    """Equally frequent domains with these label frequencies, and a variable v with random ones in each.

    Examples
    --------
    >>> model = label_shift_model(np.array([0.7, 0.3]), np.array([0.3, 0.7]), n_v=4, seed=0)
    >>> model.joint.shape, model.prior.round(6).tolist()
    ((2, 2, 4), [0.5, 0.5])
    """
    v = 0.9 * np.random.default_rng(seed).dirichlet(np.ones(n_v), size=2) + 0.1 / n_v
    joint = np.stack([source, target])[:, :, None] * v[:, None, :]
    return DiscreteModel(joint / joint.sum())


def coded(model: DiscreteModel, encoder: Floats) -> Floats:
    """p(label, code | domain), of shape (2, n_labels, n_codes).

    Examples
    --------
    >>> model = label_shift_model(np.array([0.7, 0.3]), np.array([0.3, 0.7]), n_v=4, seed=0)
    >>> coded(model, np.full((2, 4, 1), 1.0)).ravel().round(6).tolist()
    [0.7, 0.3, 0.3, 0.7]
    """
    given_domain = model.joint / model.prior[:, None, None]
    return np.asarray(np.einsum("uyv,yvz->uyz", given_domain, encoder))


def domain_loss(model: DiscreteModel, encoder: Floats, adversary: Adversary) -> tuple[float, Floats]:
    """``E_source log d_0 + E_target log d_1`` with the best discriminator d of its kind, and its gradient.

    Parameters
    ----------
    model : DiscreteModel
    encoder : ndarray of shape (n_labels, n_z2, n_codes)
        All entries positive.
    adversary : {"plain", "orthogonal", "orthogonal, label seen"}

    Returns
    -------
    loss : float
    gradient : ndarray of the encoder's shape

    Examples
    --------
    An encoder that tells nothing: no domain is left in the codes, but the orthogonal loss goes below -2 log 2.

    >>> model = label_shift_model(np.array([0.7, 0.3]), np.array([0.3, 0.7]), n_v=4, seed=0)
    >>> [round(domain_loss(model, np.full((2, 4, 1), 1.0), adversary)[0], 4) for adversary in ADVERSARIES]
    [-1.3863, -1.8996, -1.3863]
    """
    mass = coded(model, encoder)
    seen = mass if adversary == "orthogonal, label seen" else np.broadcast_to(mass.sum(1, keepdims=True), mass.shape)
    log_told = np.moveaxis(np.log(seen / seen.sum(axis=0)), 0, -1)
    if adversary != "plain":
        log_principal = np.log(model.principal(np.arange(mass.shape[1])))[:, None, :]
        log_told = log_setminus(log_told, log_principal, np.log(model.prior))
    log_told = np.moveaxis(log_told, -1, 0)
    # the discriminator moves with what it sees of the codes: d log d_u / d seen_u = 1 / seen_u - d_u / seen_u, and
    # d log d_other / d seen_u = -d_u / seen_u
    through = (mass - mass.sum(axis=0) * np.exp(log_told)) / seen
    if adversary != "orthogonal, label seen":
        through = np.broadcast_to(through.sum(axis=1, keepdims=True), mass.shape)
    given_domain = model.joint / model.prior[:, None, None]
    gradient = np.einsum("uyv,uyz->yvz", given_domain, log_told + through)
    return float((mass * log_told).sum()), gradient


def task_loss(model: DiscreteModel, encoder: Floats) -> tuple[float, Floats]:
    """The source's log loss of the label with the best predictor from the code, and its gradient.

    Examples
    --------
    >>> model = label_shift_model(np.array([0.5, 0.5]), np.array([0.3, 0.7]), n_v=4, seed=0)
    >>> round(task_loss(model, np.full((2, 4, 1), 1.0))[0], 6)
    0.693147
    """
    mass = coded(model, encoder)[0]
    posterior = mass / mass.sum(axis=0)
    source = model.joint[0] / model.prior[0]
    return -float(xlogy(mass, posterior).sum()), -source[:, :, None] * np.log(posterior)[:, None, :]
