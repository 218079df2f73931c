"""One model with exact posteriors: z1 a group, z2 a Gaussian, independent given y."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit


class Exact(NamedTuple):
    y: np.ndarray
    group: np.ndarray
    full: np.ndarray
    principal: np.ndarray
    orthogonal: np.ndarray


def draw(n: int, seed: int) -> Exact:
    """p(y) = 1/2; P(z1 = 1 | y) = .3, .8; z2 | y is normal with mean -.7, .7: posteriors in closed form."""
    rng = np.random.default_rng([seed, 17])
    y = rng.integers(2, size=n)
    group = (rng.uniform(size=n) < np.where(y == 1, 0.8, 0.3)).astype(int)
    z2 = rng.normal(1.4 * y - 0.7)
    log_odds_z1 = np.where(group == 1, np.log(0.8 / 0.3), np.log(0.2 / 0.7))
    log_odds_z2 = 1.4 * z2
    return Exact(y, group, expit(log_odds_z1 + log_odds_z2), expit(log_odds_z1), expit(log_odds_z2))


@pytest.fixture(scope="session")
def exact():
    return draw
