"""The Frechet distance against its closed form for Gaussian features, and what it refuses."""

import numpy as np
import pytest
import scipy.linalg

torch = pytest.importorskip("torch")

from setminus_paper.transfer.fid import WEIGHTS, ClassifierFeatures, Inception, frechet_distance  # noqa: E402

from setminus.errors import UserError  # noqa: E402
from setminus.nn.networks import PhotoClassifier  # noqa: E402


class Pooled(torch.nn.Module):
    """Nine numbers of an image."""

    def forward(self, images):
        return torch.nn.functional.adaptive_avg_pool2d(images.float(), (3, 1)).flatten(1)


def images(n, seed, shift=0):
    rng = np.random.default_rng(seed)
    base = rng.normal(128 + shift, 20, (n, 3, 3, 1)).repeat(4, axis=2).repeat(12, axis=3)
    return torch.from_numpy(base.clip(0, 255).astype(np.uint8))


def test_it_is_the_distance_of_two_gaussians():
    real, fake = images(400, 0), images(300, 1, shift=25)
    features = [Pooled()(one).double().numpy() for one in (real, fake)]
    (m, n), (s, t) = ([f.mean(0) for f in features], [np.cov(f.T) for f in features])
    closed = np.sum((m - n) ** 2) + np.trace(s + t - 2 * scipy.linalg.sqrtm(s @ t).real)
    assert frechet_distance(real, fake, Pooled()) == pytest.approx(closed, rel=1e-3)


def test_images_of_one_source_are_nearer_than_others():
    real = images(400, 0)
    assert frechet_distance(real, images(400, 2), Pooled()) < 0.1 * frechet_distance(real, images(400, 2, 20), Pooled())


def test_bytes_and_signed_images_are_the_same():
    real, fake = images(50, 0), images(50, 1)
    features = ClassifierFeatures(PhotoClassifier(width=2))
    as_bytes = frechet_distance(real.repeat(1, 1, 2, 2), fake.repeat(1, 1, 2, 2), features)
    signed = frechet_distance(*(one.repeat(1, 1, 2, 2).float() / 127.5 - 1 for one in (real, fake)), features)
    assert signed == pytest.approx(as_bytes, rel=1e-6)


def test_too_few_images_are_refused():
    with pytest.raises(ValueError, match="fake has the shape"):
        frechet_distance(images(5, 0), images(1, 0), Pooled())


def test_inception_says_what_to_install(monkeypatch):
    import torchmetrics.image.fid as module

    monkeypatch.setattr(module, "_TORCH_FIDELITY_AVAILABLE", False)
    with pytest.raises(UserError, match="pip install torch-fidelity"):
        Inception()


def test_inception_takes_the_weights_of_the_user(monkeypatch, tmp_path):
    import torchmetrics.image.fid as module

    seen = []

    class Network(torch.nn.Module):
        def __init__(self, feature, feature_extractor_weights_path):
            super().__init__()
            seen.append(feature_extractor_weights_path)
            if feature_extractor_weights_path is None:
                raise OSError("no route to host")
            self.inception = Pooled()

    monkeypatch.setattr(module, "FrechetInceptionDistance", Network)
    monkeypatch.setenv("SETMINUS_DATA", str(tmp_path))
    with pytest.raises(UserError, match="no route to host"):
        Inception()
    (tmp_path / WEIGHTS).parent.mkdir(parents=True)
    (tmp_path / WEIGHTS).touch()
    assert Inception()(images(5, 0)).shape == (5, 9)
    assert seen == [None, str(tmp_path / WEIGHTS)]
