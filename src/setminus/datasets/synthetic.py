"""Models whose posteriors are known exactly: the ground truth that the method is tested against.

In each, `y` causes `z1` and `z2`, and `x` shows both. With ``dependence=0`` they are independent given `y`,
as the method assumes; a larger value breaks this assumption only, and keeps p(y|z1) and p(y|z2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setminus.datasets.split import Split
from setminus.errors import UserError

__all__ = ["DiscreteModel", "GaussianModel", "linear_gaussian", "simplex"]

Floats = NDArray[np.float64]


def check_dependence(dependence: float) -> None:
    """Refuse a dependence outside [0, 1)."""
    if not 0 <= dependence < 1:
        raise UserError(f"dependence is {dependence}", do="it must be at least 0 and below 1.")


def simplex(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Draw `rows` distributions over `columns` values, every probability well above 0.

    Examples
    --------
    >>> drawn = simplex(np.random.default_rng(0), rows=2, columns=4)
    >>> bool((drawn >= 0.025).all()), drawn.sum(axis=1).round(12).tolist()
    (True, [1.0, 1.0])
    """
    # a tenth of the uniform distribution bounds each from below
    return 0.9 * rng.dirichlet(np.ones(columns), size=rows) + 0.1 / columns


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


@dataclass(frozen=True, eq=False)
class GaussianModel:
    """The paper's introduction, for any number of classes: ``(z1, z2) | y ~ N(means[y], covariances[y])``.

    Parameters
    ----------
    prior : array of shape (n_classes,)
        p(y).
    means : array of shape (n_classes, d)
        Of the latent vector ``z = (z1, z2)``.
    covariances : array of shape (n_classes, d, d)
        Of the same.
    n_z1 : int
        How many of the first coordinates are `z1`.
    mixing : array of shape (d, d), optional
        An invertible map: ``x = mixing @ z``. By default ``x = z``.

    Examples
    --------
    >>> model = GaussianModel.random(n_classes=3, n_z1=1, n_z2=2, seed=0, mixed=True)
    >>> split = model.sample(5, seed=0)
    >>> model.full(split.x).shape, split.z1.shape, split.z2.shape
    ((5, 3), (5, 1), (5, 2))
    """

    prior: Floats
    means: Floats
    covariances: Floats
    n_z1: int
    mixing: Floats | None = None

    def __post_init__(self) -> None:
        n_classes, d = self.means.shape
        if self.prior.shape != (n_classes,) or self.covariances.shape != (n_classes, d, d):
            raise UserError(
                f"prior has shape {self.prior.shape}, covariances {self.covariances.shape}, means {self.means.shape}",
                do=f"these means need a prior of shape {(n_classes,)} and covariances of shape {(n_classes, d, d)}.",
            )
        if not 0 < self.n_z1 < d:
            raise UserError(f"n_z1 is {self.n_z1}", do=f"z1 and z2 each need at least one of the {d} coordinates.")

    @classmethod
    def random(
        cls, n_classes: int, n_z1: int, n_z2: int, seed: int, dependence: float = 0.0, mixed: bool = False
    ) -> GaussianModel:
        """Draw unequal priors, means, and a covariance per class.

        Parameters
        ----------
        n_classes, n_z1, n_z2 : int
            Number of classes; dimensions of `z1` and `z2`.
        seed : int
            Seed of the draw.
        dependence : float in [0, 1)
            Correlation between `z1` and `z2` given `y` (all their canonical correlations).
        mixed : bool
            Observe `z` through a random invertible map.
        """
        check_dependence(dependence)
        rng = np.random.default_rng(seed)
        d = n_z1 + n_z2
        prior = simplex(rng, 1, n_classes)[0]
        means = rng.normal(size=(n_classes, d))
        # lower triangular and block diagonal: the covariance is factor @ correlation @ factor.T
        factor = 0.3 * np.tril(rng.normal(size=(n_classes, d, d)), -1)
        factor[:, n_z1:, :n_z1] = 0
        factor += np.eye(d) * rng.uniform(0.7, 1.4, size=(n_classes, 1, d))
        correlation = np.eye(d)
        for i in range(min(n_z1, n_z2)):
            correlation[i, n_z1 + i] = correlation[n_z1 + i, i] = dependence
        covariances = factor @ correlation @ factor.transpose(0, 2, 1)
        mixing = None
        if mixed:
            left, _, right = np.linalg.svd(rng.normal(size=(d, d)))
            # singular values of order one: inverting the map then costs no digits
            mixing = left @ np.diag(rng.uniform(0.5, 2, size=d)) @ right
        return cls(prior, means, covariances, n_z1, mixing)

    def full(self, x: ArrayLike) -> Floats:
        """p(y|x), of shape (n, n_classes)."""
        return np.exp(self.log_full(x))

    def principal(self, z1: ArrayLike) -> Floats:
        """p(y|z1), of shape (n, n_classes)."""
        return np.exp(self.log_principal(z1))

    def orthogonal(self, z2: ArrayLike) -> Floats:
        """p(y|z2), of shape (n, n_classes)."""
        return np.exp(self.log_orthogonal(z2))

    def log_full(self, x: ArrayLike) -> Floats:
        """Logarithm of p(y|x), of shape (n, n_classes)."""
        seen = np.asarray(x, dtype=float)
        z = seen if self.mixing is None else np.linalg.solve(self.mixing, seen.T).T
        return self._log_posterior(z, slice(None))

    def log_principal(self, z1: ArrayLike) -> Floats:
        """Logarithm of p(y|z1), of shape (n, n_classes)."""
        return self._log_posterior(np.asarray(z1, dtype=float), slice(None, self.n_z1))

    def log_orthogonal(self, z2: ArrayLike) -> Floats:
        """Logarithm of p(y|z2), of shape (n, n_classes)."""
        return self._log_posterior(np.asarray(z2, dtype=float), slice(self.n_z1, None))

    def sample(self, n: int, seed: int) -> Split:
        """Draw `n` rows; `z1` and `z2` are the latent coordinates, `x` is what is seen of them."""
        rng = np.random.default_rng(seed)
        y = rng.choice(len(self.prior), size=n, p=self.prior)
        noise = rng.normal(size=(n, self.means.shape[1]))
        z = self.means[y] + np.einsum("nij,nj->ni", np.linalg.cholesky(self.covariances)[y], noise)
        x = z if self.mixing is None else z @ self.mixing.T
        return Split(x=x, y=y, z1=z[:, : self.n_z1], z2=z[:, self.n_z1 :])

    def _log_posterior(self, z: Floats, coordinates: slice) -> Floats:
        factors = np.linalg.cholesky(self.covariances[:, coordinates, coordinates])
        centered = z - self.means[:, None, coordinates]
        whitened = np.linalg.solve(factors, centered.transpose(0, 2, 1))
        log_volume = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        log_joint = (np.log(self.prior) - log_volume)[:, None] - 0.5 * (whitened**2).sum(axis=1)
        return np.ascontiguousarray((log_joint - np.logaddexp.reduce(log_joint, axis=0)).T)


def linear_gaussian(
    separation: float = 2.0, angle: float = 35.0, deviations: tuple[float, float] = (1.0, 1.0)
) -> GaussianModel:
    """Build the example of the introduction: two classes of equal frequency, isotropic noise, a plane.

    Where the class variances are equal, every boundary is a line; where they differ, that of the full classifier is a
    circle, and those of the others are lines across the axes of `z1` and `z2`.

    Parameters
    ----------
    separation : float
        Distance between the means.
    angle : float
        Of the line through the means with the axis of `z1`, in degrees: 0 makes `z2` useless, 90 `z1`.
    deviations : pair of float
        Standard deviation of each coordinate, in class 0 and in class 1.

    Returns
    -------
    GaussianModel
        With `z1` the first and `z2` the second coordinate.

    Examples
    --------
    >>> linear_gaussian(angle=0).means.tolist()
    [[-1.0, -0.0], [1.0, 0.0]]
    """
    if min(deviations) <= 0:
        raise UserError(f"deviations are {deviations}", do="a standard deviation must be above 0.")
    direction = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    means = np.array([[-0.5], [0.5]]) * separation * direction
    return GaussianModel(
        np.full(2, 0.5), means, covariances=np.stack([deviation**2 * np.eye(2) for deviation in deviations]), n_z1=1
    )
