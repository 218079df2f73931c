"""The counter-example to orthogonal input gradients: appendix F of the paper, with every gradient in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setminus.datasets.split import Split
from setminus.datasets.synthetic.draws import Floats
from setminus.errors import UserError

__all__ = ["InputGradientModel", "InputGradients", "expectation_of_log_odds", "paper_example"]

_PRINTED_MATRIX = np.array([[2.0, -3.0, 3.0], [1.0, -1.0, 5.0], [1.0, -1.0, 1.0]])


class InputGradients(NamedTuple):
    """Gradients of P(y=1) in `x`, each of shape (n, k + m)."""

    principal: Floats
    orthogonal: Floats
    nested: Floats


@dataclass(frozen=True, eq=False)
class InputGradientModel:
    """Two Gaussian latents, of which the larger is seen only after the smaller was taken off it.

    ``z1 | y ~ N(+-mean1, I_k)``, ``z2 | y ~ N(+-mean2, I_m)``, ``x = (g(z1 - (z2, 0)), z2)``, with classes of equal
    frequency. The third classifier, `nested`, looks at the first m coordinates of z1 only.

    Parameters
    ----------
    mean1 : array of shape (k,)
        Of z1 in class 1; that of class 0 has the opposite sign.
    mean2 : array of shape (m,), m < k
        The same of z2.
    inverse : array of shape (k, k)
        The map back: ``g^-1(x1) = inverse @ x1``.
    curved : bool
        Make it ``inverse @ sinh(x1)`` instead, so that g is not linear.

    Examples
    --------
    >>> model = paper_example()
    >>> split = model.sample(3, seed=0)
    >>> gradients = model.gradients(split.x)
    >>> bool(np.allclose((gradients.principal * gradients.nested).sum(axis=1), 0))
    True
    """

    mean1: Floats
    mean2: Floats
    inverse: Floats
    curved: bool = False

    def __post_init__(self) -> None:
        k, m = len(self.mean1), len(self.mean2)
        if not 0 < m < k or self.inverse.shape != (k, k):
            raise UserError(
                f"mean1 has {k} entries, mean2 {m}, inverse shape {self.inverse.shape}",
                do="mean2 must be shorter than mean1, and inverse have one row and one column for each entry of mean1.",
            )

    @property
    def prior(self) -> Floats:
        """p(y), of shape (2,)."""
        return np.array([0.5, 0.5])

    def latents(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """z1(x) and z2(x), of shapes (n, k) and (n, m)."""
        x1, z2 = self._parts(x)
        z1 = (np.sinh(x1) if self.curved else x1) @ self.inverse.T
        z1[:, : z2.shape[1]] += z2
        return z1, z2

    def full(self, x: ArrayLike) -> Floats:
        """p(y|x), of shape (n, 2)."""
        z1, z2 = self.latents(x)
        return _proba(2 * (z1 @ self.mean1 + z2 @ self.mean2))

    def principal(self, z1: ArrayLike) -> Floats:
        """p(y|z1), of shape (n, 2)."""
        return _proba(2 * (np.asarray(z1) @ self.mean1))

    def orthogonal(self, z2: ArrayLike) -> Floats:
        """p(y|z2), of shape (n, 2)."""
        return _proba(2 * (np.asarray(z2) @ self.mean2))

    def nested(self, z1: ArrayLike) -> Floats:
        """p(y | first m coordinates of z1), of shape (n, 2)."""
        m = len(self.mean2)
        return _proba(2 * (np.asarray(z1)[:, :m] @ self.mean1[:m]))

    def gradients(self, x: ArrayLike) -> InputGradients:
        """Gradients of the three classifiers' P(y=1) at each row of x, by the chain rule."""
        z1, z2 = self.latents(x)
        k, m = len(self.mean1), len(self.mean2)
        first = np.r_[self.mean1[:m], np.zeros(k - m)]

        def of_z1(proba: Floats, mean: Floats) -> Floats:
            # z1 grows with x1 through the map and with x2 directly
            through_map = np.einsum("nij,i->nj", self.jacobian(x), mean)
            direct = np.broadcast_to(mean[:m], (len(z1), m))
            return np.asarray(2 * _slope(proba) * np.concatenate([through_map, direct], axis=1))

        alone = np.r_[np.zeros(k), self.mean2]
        return InputGradients(
            principal=of_z1(self.principal(z1), self.mean1),
            orthogonal=2 * _slope(self.orthogonal(z2)) * alone,
            nested=of_z1(self.nested(z1), first),
        )

    def jacobian(self, x: ArrayLike) -> Floats:
        """Derivatives of g^-1(x1)_i by x1_j, of shape (n, k, k)."""
        x1, _ = self._parts(x)
        return self.inverse * (np.cosh(x1) if self.curved else np.ones_like(x1))[:, None, :]

    def condition(self, x: ArrayLike) -> Floats:
        """The condition of proposition 7, which asks for less than 0; of shape (n,).

        ``mean1 @ J @ J.T[:, :m] @ mean1[:m]``, where J is the Jacobian of g^-1 at x1: the paper writes gradients as
        columns, so that its nabla is the transpose of J.
        """
        m = len(self.mean2)
        jacobian = self.jacobian(x)
        left = np.einsum("nij,i->nj", jacobian, self.mean1)
        right = np.einsum("nij,i->nj", jacobian[:, :m], self.mean1[:m])
        return np.asarray((left * right).sum(axis=1))

    def expected_product(self) -> float:
        """E[gradient of principal . gradient of orthogonal] of proposition 6, whatever g is.

        ``4 * (mean1[:m] @ mean2) * E[slope(principal)] * E[slope(orthogonal)]`` with slope(p) = p (1 - p), since z1
        and z2 are independent given y and neither slope depends on the sign of y.
        """
        slopes = [expectation_of_log_odds(_slope_of_log_odds, mean) for mean in (self.mean1, self.mean2)]
        return float(4 * (self.mean1[: len(self.mean2)] @ self.mean2) * slopes[0] * slopes[1])

    def sample(self, n: int, seed: int) -> Split:
        """Draw `n` rows; `y` is 1 where the paper has 1, and 0 where it has -1."""
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, size=n)
        sign = (2 * y - 1)[:, None]
        z1 = sign * self.mean1 + rng.normal(size=(n, len(self.mean1)))
        z2 = sign * self.mean2 + rng.normal(size=(n, len(self.mean2)))
        return Split(x=self._seen(z1, z2), y=y, z1=z1, z2=z2)

    def _seen(self, z1: Floats, z2: Floats) -> Floats:
        remainder = z1.copy()
        remainder[:, : z2.shape[1]] -= z2
        x1 = np.linalg.solve(self.inverse, remainder.T).T
        return np.concatenate([np.arcsinh(x1) if self.curved else x1, z2], axis=1)

    def _parts(self, x: ArrayLike) -> tuple[Floats, Floats]:
        values = np.asarray(x, dtype=float)
        return values[:, : len(self.mean1)], values[:, len(self.mean1) :]


def paper_example(*, as_printed: bool = False) -> InputGradientModel:
    """Build the example with which the appendix shows that its condition can be met: k = 3, m = 2, means of ones.

    Parameters
    ----------
    as_printed : bool
        Use ``g^-1(x1) = M x1`` with the matrix M as printed, for which the condition's value is 104. The printed
        value, -2, is that of ``g^-1(x1) = M.T x1``, which is built by default.

    Returns
    -------
    InputGradientModel

    Examples
    --------
    >>> x = np.zeros((1, 5))
    >>> paper_example().condition(x).tolist(), paper_example(as_printed=True).condition(x).tolist()
    ([-2.0], [104.0])
    """
    inverse = _PRINTED_MATRIX if as_printed else _PRINTED_MATRIX.T
    return InputGradientModel(np.ones(3), np.ones(2), inverse.copy())


def expectation_of_log_odds(function: Callable[[Floats], Floats], mean: Floats, n_nodes: int = 150) -> float:
    """E[function(2 * mean @ z)] for z ~ N(mean, I): a function of the exact log-odds in class 1, by quadrature.

    Examples
    --------
    >>> round(expectation_of_log_odds(lambda log_odds: log_odds, np.array([1.0, 2.0])), 12)
    10.0
    """
    length = float(np.linalg.norm(mean))
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return float(function(2 * (length**2 + length * nodes)) @ weights / weights.sum())


def _proba(log_odds: Floats) -> Floats:
    both = np.column_stack([np.zeros_like(log_odds), log_odds])
    return np.asarray(np.exp(both - np.logaddexp(0, log_odds)[:, None]))


def _slope(proba: Floats) -> Floats:
    return np.asarray(proba[:, :1] * proba[:, 1:])


def _slope_of_log_odds(log_odds: Floats) -> Floats:
    return np.asarray(np.exp(log_odds - 2 * np.logaddexp(0, log_odds)))
