"""A principal variable on which everything else seen depends: what remains has to be constructed.

Proposition 5 of the paper builds the orthogonal variable from conditional distribution functions; here they are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from setminus.datasets.split import Split
from setminus.datasets.synthetic.draws import Floats
from setminus.errors import UserError

__all__ = ["EntangledModel"]


@dataclass(frozen=True, eq=False)
class EntangledModel:
    """Two classes, ``x = (z1, rest)`` with ``rest = bend(z1) + width(z1) * u`` and u not seen.

    Given y, ``z1 ~ N(+-z1_shift, 1)`` and ``u = +-u_shift + (y == 1) * mismatch * z1 + noise`` with logistic noise.
    Without mismatch u is independent of z1 given y, hence an orthogonal variable, as is every monotone function of
    it. With it, the conditional distribution functions of the two classes are no functions of each other, and none
    exists.

    Parameters
    ----------
    z1_shift, u_shift : float
        Half the distance between the classes.
    mismatch : float
        How much more u depends on z1 in class 1 than in class 0.

    Examples
    --------
    >>> model = EntangledModel()
    >>> split = model.sample(4, seed=0)
    >>> split.x.shape, model.conditional_cdf(split.x, label=1).shape
    ((4, 2), (4,))
    """

    z1_shift: float = 0.6
    u_shift: float = 0.8
    mismatch: float = 0.0

    @property
    def prior(self) -> Floats:
        """p(y), of shape (2,)."""
        return np.array([0.4, 0.6])

    def hidden(self, x: ArrayLike) -> Floats:
        """u(x) = (rest - bend(z1)) / width(z1), of shape (n,)."""
        z1, rest = np.asarray(x, dtype=float).T
        return np.asarray((rest - _bend(z1)) / _width(z1))

    def conditional_cdf(self, x: ArrayLike, label: int) -> Floats:
        """P(rest' <= rest | z1, y=label), of shape (n,): the construction of the proposition."""
        z1 = np.asarray(x, dtype=float)[:, 0]
        return np.exp(-np.logaddexp(0, self._u_mean(z1, label) - self.hidden(x)))

    def full(self, x: ArrayLike) -> Floats:
        """p(y|x), of shape (n, 2)."""
        z1, u = np.asarray(x, dtype=float)[:, 0], self.hidden(x)
        log_joint = [self._log_joint_z1(z1, label) + _log_logistic(u - self._u_mean(z1, label)) for label in (0, 1)]
        return _posterior(*log_joint)

    def principal(self, z1: ArrayLike) -> Floats:
        """p(y|z1), of shape (n, 2)."""
        values = np.asarray(z1, dtype=float).ravel()
        return _posterior(*(self._log_joint_z1(values, label) for label in (0, 1)))

    def orthogonal(self, hidden: ArrayLike) -> Floats:
        """p(y|u), of shape (n, 2), without mismatch."""
        if self.mismatch:
            raise UserError(f"mismatch is {self.mismatch}", do="an orthogonal variable exists only where it is 0.")
        u = np.asarray(hidden, dtype=float)
        return _posterior(*(np.log(self.prior[label]) + _log_logistic(u - self._u_mean(u, label)) for label in (0, 1)))

    def rest(self, rest: ArrayLike, n_nodes: int = 200) -> Floats:
        """p(y|rest), of shape (n, 2): what dropping the column z1 gives, by quadrature over z1."""
        values = np.asarray(rest, dtype=float)[:, None]
        nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
        joint = []
        for label in (0, 1):
            z1 = self._z1_mean(label) + nodes
            u = (values - _bend(z1)) / _width(z1)
            density = np.exp(_log_logistic(u - self._u_mean(z1, label))) / _width(z1)
            joint.append(np.log(self.prior[label]) + np.log(density @ weights))
        return _posterior(*joint)

    def sample(self, n: int, seed: int) -> Split:
        """Draw `n` rows; `z1` is the first column of `x`, `z2` the hidden u."""
        rng = np.random.default_rng(seed)
        y = rng.choice(2, size=n, p=self.prior)
        z1 = np.where(y == 1, self.z1_shift, -self.z1_shift) + rng.normal(size=n)
        u = np.where(y == 1, self._u_mean(z1, 1), self._u_mean(z1, 0)) + rng.logistic(size=n)
        return Split(x=np.column_stack([z1, _bend(z1) + _width(z1) * u]), y=y, z1=z1[:, None], z2=u[:, None])

    def _log_joint_z1(self, z1: Floats, label: int) -> Floats:
        return np.asarray(np.log(self.prior[label]) - 0.5 * (z1 - self._z1_mean(label)) ** 2)

    def _z1_mean(self, label: int) -> float:
        return self.z1_shift if label else -self.z1_shift

    def _u_mean(self, z1: Floats, label: int) -> Floats:
        return self.u_shift + self.mismatch * z1 if label else np.full_like(z1, -self.u_shift)


def _bend(z1: Floats) -> Floats:
    return 1.5 * np.sin(z1)


def _width(z1: Floats) -> Floats:
    return np.exp(0.6 * np.tanh(z1))


def _log_logistic(value: Floats) -> Floats:
    return np.asarray(-value - 2 * np.logaddexp(0, -value))


def _posterior(log_joint_0: Floats, log_joint_1: Floats) -> Floats:
    log_joint = np.column_stack([log_joint_0, log_joint_1])
    return np.exp(log_joint - np.logaddexp(log_joint_0, log_joint_1)[:, None])
