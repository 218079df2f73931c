import numpy as np
import pytest


class Rows:
    """A table where the group says something of y and the rest something else, independent given y."""

    def __init__(self, n=3000, n_classes=2, seed=0):
        rng = np.random.default_rng(seed)
        self.y = rng.choice(n_classes, size=n, p=np.linspace(1, 2, n_classes) / np.linspace(1, 2, n_classes).sum())
        self.male = rng.random(n) < 0.15 + 0.7 * self.y / (n_classes - 1)
        self.sex = np.where(self.male, "m", "f")
        self.X = np.column_stack([self.y + rng.normal(size=n), self.male, rng.normal(size=n)])


@pytest.fixture(scope="session")
def rows():
    return Rows()


@pytest.fixture(scope="session")
def many():
    return Rows(n_classes=3, seed=1)
