r"""From a classifier of a column of labels to what the column says of the domain.

A column z tells one factor of the images, and each domain has its values in other shares. By Bayes' rule a classifier
of the column holds the density of an image given the column, ``p(x|z) = p(z|x) p(x) / p(z)``, with p(z) the shares
that it was trained with. What a domain d would look like if nothing but this factor were its own is the mixture

    p_d(x) = sum_z p(z|d) p(x|z) = p(x) * sum_z p(z|x) / p(z) * p(z|d)

so that ``log p_A(x) - log p_B(x)`` is the log density ratio of this factor alone. It is exact where the image shows the
column: there it is ``log p(z|A) / p(z|B)``, bounded where the shares p(z|d) are smoothed.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from setminus.errors import UserError
from setminus.nn.passes import in_float32

__all__ = ["DomainByColumn", "overlap_weights", "shares_by_classifier", "smoothed_shares"]

Floats = NDArray[np.float64]

EM_STEPS = 200
"""Far more than two classes need."""


class DomainByColumn(nn.Module):  # type: ignore[misc]
    """A classifier of the domain that knows nothing but a column.

    ``logit_d = log sum_z p(z|x) / p(z) * p(z|d)``; their softmax is p(d|z), for domains that are equally frequent.

    Parameters
    ----------
    column : Module
        From images to logits of shape (n, K), of the K values of the column.
    column_prior : K numbers
        p(z), the shares of the values in the data that it was trained on, all positive.
    given_a, given_b : K numbers
        p(z|A) and p(z|B).

    Examples
    --------
    >>> sees_0 = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> _ = nn.init.zeros_(sees_0[1].weight), sees_0[1].bias.data.copy_(torch.tensor([30.0, 0.0]))
    >>> by_column = DomainByColumn(sees_0, column_prior=(0.5, 0.5), given_a=(0.9, 0.1), given_b=(0.3, 0.7))
    >>> by_column(torch.rand(1, 3, 2, 2)).softmax(1).detach().numpy().round(3).tolist()
    [[0.75, 0.25]]
    """

    def __init__(self, column: nn.Module, *, column_prior: ArrayLike, given_a: ArrayLike, given_b: ArrayLike) -> None:
        super().__init__()
        prior, *given = (np.asarray(shares, dtype=float) for shares in (column_prior, given_a, given_b))
        alike = prior.ndim == 1 and all(shares.shape == prior.shape for shares in given)
        if (
            not alike
            or not np.all(prior > 0)
            or not np.all(np.array(given) >= 0)
            or not np.allclose([shares.sum() for shares in (prior, *given)], 1)
        ):
            raise UserError(
                f"column_prior is {column_prior!r}, given_a {given_a!r}, given_b {given_b!r}",
                expected="a share for each value in all three, none negative, none 0 in the first, with the sum 1",
            )
        self.column = column
        # of shape (domain, value); a value that a domain has not adds nothing to its sum
        with np.errstate(divide="ignore"):
            factors = np.log(np.array(given)) - np.log(prior)
        self.register_buffer("log_factors", torch.from_numpy(factors).float())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n, 2): domain A, domain B."""
        log_z = in_float32(self.column(images)).log_softmax(-1)
        return torch.logsumexp(log_z[:, None] + self.log_factors, dim=2)


def smoothed_shares(z: ArrayLike) -> Floats:
    """The shares of 0 and 1 among labels, each with half a label added: neither is ever 0.

    Parameters
    ----------
    z : array of shape (n,)
        0 or 1.

    Returns
    -------
    float array of shape (2,)

    Examples
    --------
    >>> smoothed_shares([0, 0, 0, 0]).tolist()
    [0.9, 0.1]
    """
    counts = np.bincount(np.asarray(z, dtype=np.int64), minlength=2) + 0.5
    return np.asarray(counts / counts.sum())


def shares_by_classifier(proba: ArrayLike, prior: ArrayLike) -> Floats:
    """The shares of the values among images without labels, which make what a classifier says of them most likely.

    Expectation maximisation of ``sum_x log sum_z p(z|x) / prior(z) * share(z)``, smoothed as `smoothed_shares`.

    Parameters
    ----------
    proba : array of shape (n, 2)
        p(z|x) of each image.
    prior : two numbers
        The shares of the values in the data that the classifier was trained on.

    Returns
    -------
    float array of shape (2,)

    Examples
    --------
    >>> shares_by_classifier([[0.999, 0.001]] * 30 + [[0.001, 0.999]] * 10, (0.5, 0.5)).round(2).tolist()
    [0.74, 0.26]
    """
    likelihood = np.asarray(proba, dtype=float) / np.asarray(prior, dtype=float)
    shares = np.full(2, 0.5)
    for _ in range(EM_STEPS):
        joint = likelihood * shares
        counts = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + 0.5
        shares = counts / counts.sum()
    return shares


def overlap_weights(y: ArrayLike, z: ArrayLike) -> Floats:
    """Weights of labelled images under which nothing but the column itself tells the column.

    What else differs between the domains goes along with the column, since both go along with the domain. Within a
    domain it does not. So the two values weigh the same within each place, and images of a place that has one value
    only weigh nothing: ``weight = n(place) / (2 * n(place, value))``.

    Parameters
    ----------
    y : array of shape (n,)
        The place of each image: 0 in domain A, 1 in B, -1 in neither.
    z : array of shape (n,)
        Its value, 0 or 1.

    Returns
    -------
    float array of shape (n,)

    Raises
    ------
    ValueError
        If no place has both values.

    Examples
    --------
    >>> overlap_weights([0, 0, 0, 1, -1, -1], [0, 0, 1, 1, 0, 1]).tolist()
    [0.75, 0.75, 1.5, 0.0, 1.0, 1.0]
    """
    places, values = np.asarray(y), np.asarray(z)
    weights = np.zeros(len(places))
    for place in np.unique(places):
        here = places == place
        sizes = [np.sum(here & (values == value)) for value in (0, 1)]
        if min(sizes) > 0:
            for value in (0, 1):
                weights[here & (values == value)] = here.sum() / (2 * sizes[value])
    if not np.any(weights):
        raise UserError(
            "neither folder A nor folder B nor the other labelled images have both values of the column",
            do="whatever else differs goes along with it. Label images of both values in one of the three.",
        )
    return weights
