"""Latents seen through a curved map: no coordinate of `x` is a latent, yet every posterior is known exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from setminus.datasets.split import Split
from setminus.datasets.synthetic.draws import Floats
from setminus.datasets.synthetic.gaussian import GaussianModel
from setminus.errors import UserError

__all__ = ["Diffeomorphism", "NonlinearModel"]


@dataclass(frozen=True, eq=False)
class Diffeomorphism:
    """A smooth bijection of R^d whose inverse is exact: layers of a rotation and a coupling.

    Each layer rotates, splits the coordinates in two parts (a, b), and maps
    ``b -> b * exp(0.5 * tanh(a @ stretch)) + 2 * tanh(a @ shift)``, which is undone with the same a.

    Parameters
    ----------
    rotations : array of shape (n_layers, d, d)
        Orthogonal matrices.
    stretches, shifts : arrays of shape (n_layers, d // 2, d - d // 2)
        Weights of the couplings.

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
            raise ValueError(
                f"rotations of shape {self.rotations.shape} need 2 or more dimensions, and stretches and shifts of "
                f"shape {expected}; these have {self.stretches.shape} and {self.shifts.shape}."
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
    """Gaussian latents `z1`, `z2` behind a diffeomorphism: ``x = warp.forward((z1, z2))``.

    Parameters
    ----------
    latent : GaussianModel
        Of ``z = (z1, z2)``, without a mixing of its own.
    warp : Diffeomorphism
        Of the same dimension.

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
