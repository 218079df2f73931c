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


def shifted_moons(seed, *, share=0.2, n=500, degrees=25.0):
    """Two moons; the target's are turned about their centre, and `share` of class 1 becomes ``1 - share``."""
    from sklearn.datasets import make_moons

    parts = []
    for domain, of_one in ((0, share), (1, 1 - share)):
        n_one = round(n * of_one)
        parts.append(make_moons((n - n_one, n_one), noise=0.1, random_state=2 * seed + domain))
    (source, source_y), (target, target_y) = parts
    angle, centre = np.deg2rad(degrees), np.array([0.5, 0.25])
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    X = np.concatenate([source, (target - centre) @ turn + centre])
    return X, np.concatenate([source_y, target_y]), np.repeat([1, -1], n)


@pytest.fixture(scope="session")
def moons():
    return shifted_moons
