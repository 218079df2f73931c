"""Finite models, given by a table of joint probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from setminus.datasets.split import Split
from setminus.datasets.synthetic.draws import Floats, check_dependence, simplex
from setminus.errors import UserError

__all__ = ["DiscreteModel"]


@dataclass(frozen=True, eq=False)
class DiscreteModel:
    """Finite `y`, `z1`, `z2`, given by the table of their joint probabilities.

    Parameters
    ----------
    joint : array of shape (n_classes, n_z1, n_z2)
        ``joint[y, z1, z2] = p(y, z1, z2)``.

    Examples
    --------
    >>> model = DiscreteModel.random(n_classes=3, n_z1=2, n_z2=4, seed=0)
    >>> split = model.sample(5, seed=0)
    >>> model.full(split.z1, split.z2).shape
    (5, 3)
    """

    joint: Floats

    def __post_init__(self) -> None:
        if self.joint.ndim != 3 or np.any(self.joint < 0) or abs(self.joint.sum() - 1) > 1e-12:
            raise UserError(
                f"joint has shape {self.joint.shape}, minimum {self.joint.min()}, sum {self.joint.sum()}",
                do="it must be p(y, z1, z2), three axes of non-negative numbers with sum 1.",
            )

    @classmethod
    def random(cls, n_classes: int, n_z1: int, n_z2: int, seed: int, dependence: float = 0.0) -> DiscreteModel:
        """Draw p(y), p(z1|y) and p(z2|y), none of them zero.

        Parameters
        ----------
        n_classes, n_z1, n_z2 : int
            Number of values of `y`, `z1`, `z2`.
        seed : int
            Seed of the draw.
        dependence : float in [0, 1)
            Share of the tightest monotone coupling of `z1` and `z2` given `y`; the rest is independent.
        """
        check_dependence(dependence)
        rng = np.random.default_rng(seed)
        prior = simplex(rng, 1, n_classes)[0]
        z1_given_y = simplex(rng, n_classes, n_z1)
        z2_given_y = simplex(rng, n_classes, n_z2)
        independent = z1_given_y[:, :, None] * z2_given_y[:, None, :]
        # p(z1 <= i, z2 <= j | y) = min(p(z1 <= i | y), p(z2 <= j | y)): the marginals stay
        cumulative = np.minimum(z1_given_y.cumsum(1)[:, :, None], z2_given_y.cumsum(1)[:, None, :])
        coupled = np.diff(np.diff(cumulative, axis=1, prepend=0), axis=2, prepend=0).clip(min=0)
        joint = prior[:, None, None] * ((1 - dependence) * independent + dependence * coupled)
        return cls(joint / joint.sum())

    @property
    def prior(self) -> Floats:
        """p(y), of shape (n_classes,)."""
        return np.asarray(self.joint.sum(axis=(1, 2)))

    def full(self, z1: ArrayLike, z2: ArrayLike) -> Floats:
        """p(y|z1, z2), of shape (n, n_classes)."""
        return _normalized(self.joint[:, np.asarray(z1), np.asarray(z2)])

    def principal(self, z1: ArrayLike) -> Floats:
        """p(y|z1), of shape (n, n_classes)."""
        return _normalized(self.joint.sum(axis=2)[:, np.asarray(z1)])

    def orthogonal(self, z2: ArrayLike) -> Floats:
        """p(y|z2), of shape (n, n_classes)."""
        return _normalized(self.joint.sum(axis=1)[:, np.asarray(z2)])

    def sample(self, n: int, seed: int) -> Split:
        """Draw `n` rows; `x` has the two columns `z1`, `z2`."""
        cells = np.random.default_rng(seed).choice(self.joint.size, size=n, p=self.joint.ravel())
        y, z1, z2 = np.unravel_index(cells, self.joint.shape)
        return Split(x=np.column_stack([z1, z2]), y=y, z1=z1, z2=z2, feature_names=("z1", "z2"))


def _normalized(joint: Floats) -> Floats:
    """Turn p(y, z), classes first, into p(y|z), rows first."""
    return np.ascontiguousarray((joint / joint.sum(axis=0)).T)
