"""The models of propositions 5 to 7, whose posteriors and gradients are known exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setminus.datasets.split import Split
from setminus.datasets.synthetic import Floats, GaussianModel
from setminus.errors import UserError

__all__ = [
    "Diffeomorphism",
    "EntangledModel",
    "InputGradientModel",
    "InputGradients",
    "NonlinearModel",
    "expectation_of_log_odds",
    "paper_example",
]


@dataclass(frozen=True, eq=False)
class Diffeomorphism:
    """A smooth bijection of R^d whose inverse is exact: layers of a rotation and a coupling.

    Each layer rotates, splits the coordinates in two parts (a, b), and maps ``b -> b * exp(0.5 * tanh(a @ stretch)) + 2
    * tanh(a @ shift)``, which is undone with the same a. `rotations` has the shape (n_layers, d, d), `stretches` and
    `shifts` have (n_layers, d // 2, d - d // 2).

    Examples
    --------
    >>> warp = Diffeomorphism.random(d=3, seed=0)
    >>> z = np.eye(3)
    >>> bool(np.allclose(warp.inverse(warp.forward(z)), z, atol=1e-14))
    True
    """

    rotations: Floats
    stretches: Floats
    shifts: Floats

    def __post_init__(self) -> None:
        n_layers, d = self.rotations.shape[:2]
        expected = (n_layers, d // 2, d - d // 2)
        if d < 2 or self.stretches.shape != expected or self.shifts.shape != expected:
            raise UserError(
                f"rotations of shape {self.rotations.shape} need 2 or more dimensions, and stretches and shifts of "
                f"shape {expected}; these have {self.stretches.shape} and {self.shifts.shape}",
                do="give one matrix of each for every layer.",
            )

    @classmethod
    def random(cls, d: int, seed: int, n_layers: int = 3) -> Diffeomorphism:
        """Draw the layers of a map of `d` dimensions."""
        rng = np.random.default_rng(seed)
        # the orthogonal factor of a Gaussian matrix, with the signs that make it uniform
        factors, triangles = np.linalg.qr(rng.normal(size=(n_layers, d, d)))
        rotations = factors * np.sign(np.diagonal(triangles, axis1=1, axis2=2))[:, None, :]
        stretches, shifts = rng.normal(size=(2, n_layers, d // 2, d - d // 2))
        return cls(rotations, stretches, shifts)

    def forward(self, z: ArrayLike) -> Floats:
        """From latents to what is seen, of shape (n, d)."""
        values = np.asarray(z, dtype=float)
        for rotation, stretch, shift in zip(self.rotations, self.stretches, self.shifts, strict=True):
            a, b = self._parts(values @ rotation.T)
            values = np.concatenate([a, b * _scale(a, stretch) + _offset(a, shift)], axis=1)
        return values

    def inverse(self, x: ArrayLike) -> Floats:
        """From what is seen to latents, of shape (n, d)."""
        values = np.asarray(x, dtype=float)
        layers = list(zip(self.rotations, self.stretches, self.shifts, strict=True))
        for rotation, stretch, shift in reversed(layers):
            a, b = self._parts(values)
            values = np.concatenate([a, (b - _offset(a, shift)) / _scale(a, stretch)], axis=1) @ rotation
        return values

    def _parts(self, values: Floats) -> tuple[Floats, Floats]:
        n_kept = self.stretches.shape[1]
        return values[:, :n_kept], values[:, n_kept:]


@dataclass(frozen=True, eq=False)
class NonlinearModel:
    """Gaussian latents `z1`, `z2` behind a diffeomorphism of the same dimension: ``x = warp.forward((z1, z2))``.

    Examples
    --------
    >>> model = NonlinearModel.random(n_classes=3, n_z1=1, n_z2=2, seed=0)
    >>> split = model.sample(5, seed=0)
    >>> model.full(split.x).shape
    (5, 3)
    >>> z1, z2 = model.latents(split.x)
    >>> bool(np.allclose(z1, split.z1)), bool(np.allclose(z2, split.z2))
    (True, True)
    """

    latent: GaussianModel
    warp: Diffeomorphism

    def __post_init__(self) -> None:
        d = self.latent.means.shape[1]
        if self.latent.mixing is not None or self.warp.rotations.shape[1] != d:
            raise UserError(
                f"the latents have {d} dimensions and mixing {self.latent.mixing}, the warp "
                f"{self.warp.rotations.shape[1]} dimensions",
                do="give both the same number, and the latents no mixing.",
            )

    @classmethod
    def random(
        cls, n_classes: int, n_z1: int, n_z2: int, seed: int, dependence: float = 0.0, n_layers: int = 3
    ) -> NonlinearModel:
        """Draw the latents as `GaussianModel.random` does, and a map of `n_layers` layers."""
        latent = GaussianModel.random(n_classes, n_z1, n_z2, seed, dependence)
        return cls(latent, Diffeomorphism.random(n_z1 + n_z2, seed, n_layers))

    @property
    def prior(self) -> Floats:
        """p(y), of shape (n_classes,)."""
        return self.latent.prior

    def latents(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """z1(x) and z2(x), of shapes (n, n_z1) and (n, n_z2)."""
        z = self.warp.inverse(x)
        return z[:, : self.latent.n_z1], z[:, self.latent.n_z1 :]

    def full(self, x: ArrayLike) -> Floats:
        """p(y|x), of shape (n, n_classes): the volume of the map is the same for every class and cancels."""
        return self.latent.full(self.warp.inverse(x))

    def principal(self, z1: ArrayLike) -> Floats:
        """p(y|z1), of shape (n, n_classes)."""
        return self.latent.principal(z1)

    def orthogonal(self, z2: ArrayLike) -> Floats:
        """p(y|z2), of shape (n, n_classes)."""
        return self.latent.orthogonal(z2)

    def sample(self, n: int, seed: int) -> Split:
        """Draw `n` rows; `z1` and `z2` are the latents, `x` their image."""
        drawn = self.latent.sample(n, seed)
        return Split(x=self.warp.forward(drawn.x), y=drawn.y, z1=drawn.z1, z2=drawn.z2)


def _scale(kept: Floats, stretch: Floats) -> Floats:
    # between exp(-0.5) and exp(0.5): no direction is squeezed enough to cost digits
    return np.exp(0.5 * np.tanh(kept @ stretch))


def _offset(kept: Floats, shift: Floats) -> Floats:
    return 2.0 * np.tanh(kept @ shift)


@dataclass(frozen=True, eq=False)
class EntangledModel:
    """Two classes, ``x = (z1, rest)`` with ``rest = bend(z1) + width(z1) * u`` and u not seen.

    Given y, ``z1 ~ N(+-z1_shift, 1)`` and ``u = +-u_shift + (y == 1) * mismatch * z1 + noise`` with logistic noise.
    Without mismatch u is independent of z1 given y, hence an orthogonal variable, as is every monotone function of
    it. With it, the conditional distribution functions of the two classes are no functions of each other, and none
    exists.

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


_PRINTED_MATRIX = np.array([[2.0, -3.0, 3.0], [1.0, -1.0, 5.0], [1.0, -1.0, 1.0]])


class InputGradients(NamedTuple):
    """Gradients of P(y=1) in `x`, each of shape (n, k + m)."""

    principal: Floats
    orthogonal: Floats
    nested: Floats


@dataclass(frozen=True, eq=False)
class InputGradientModel:
    """Two Gaussian latents, of which the larger is seen only after the smaller was taken off it.

    ``z1 | y ~ N(+-mean1, I_k)``, ``z2 | y ~ N(+-mean2, I_m)``, m < k, ``x = (g(z1 - (z2, 0)), z2)``, with classes of
    equal frequency. ``g^-1(x1) = inverse @ x1``, or ``inverse @ sinh(x1)`` where `curved`. The third classifier,
    `nested`, looks at the first m coordinates of z1 only.

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

    `as_printed` uses ``g^-1(x1) = M x1`` with the matrix M as printed, for which the condition's value is 104. The
    printed value, -2, is that of ``g^-1(x1) = M.T x1``, which is built by default.

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
