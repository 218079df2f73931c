import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small tensors gain nothing from threads, and sums stay in one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def biased_split(n=1500, seed=0):
    """Columns of 0 and 1: some tell the label, two tell the group; the label is rarer in group "f"."""
    from setminus.datasets.split import Split

    rng = np.random.default_rng(seed)
    male = rng.random(n) < 0.5
    y = (rng.random(n) < np.where(male, 0.65, 0.2)).astype(int)
    of_label = rng.random((n, 4)) < np.where(y == 1, 0.75, 0.25)[:, None]
    of_group = rng.random((n, 2)) < np.where(male, 0.95, 0.05)[:, None]
    x = np.hstack([of_label, of_group, rng.random((n, 2)) < 0.5]).astype(float)
    return Split(x=x, y=y, z1=np.where(male, "m", "f"))


@pytest.fixture(scope="package")
def trials():
    from setminus_paper.fairness.trials import Trials

    return Trials.from_split(biased_split(2500), seeds=(0, 1, 2))
