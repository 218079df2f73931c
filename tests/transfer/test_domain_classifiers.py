"""The classifiers whose probabilities are divided: weights, averages, determinism."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from setminus.datasets.colored_digits import ColoredDigits
from setminus.datasets.images import to_signed_nchw
from setminus.nn.networks import DigitClassifier, GaussianNoise, seeded
from setminus.transfer import domain_classifiers
from setminus.transfer.domain_classifiers import ClassifierConfig, fit_domain_classifier, log_proba

CONFIG = ClassifierConfig(width=4, epochs=3, batch_size=64, average=0.9)


@pytest.fixture(scope="module")
def painted():
    """Squares of ink on 8 x 8 images, in the colors of the digits."""
    ink = np.zeros((6000, 8, 8), dtype=np.uint8)
    ink[:, 2:6, 2:6] = 255
    split = ColoredDigits().paint(ink, seed=0)
    return split, torch.from_numpy(to_signed_nchw(split.x)), torch.from_numpy(split.y)


def cells(split, proba):
    """The mean prediction for each pair of colors."""
    return np.array([[proba[(split.z1 == a) & (split.z2 == b)].mean() for b in (0, 1)] for a in (0, 1)])


def test_the_full_classifier_finds_the_posterior_of_each_pair_of_colors(painted):
    split, x, y = painted
    found = cells(split, log_proba(fit_domain_classifier(x, y, CONFIG, seed=0), x).exp()[:, 1].numpy())
    exact = ColoredDigits().full([0, 0, 1, 1], [0, 1, 0, 1])[:, 1].reshape(2, 2)
    assert np.abs(found - exact).max() < 0.08
    assert np.abs(found - exact.T).max() > 0.2


def test_with_exact_weights_the_classifier_is_that_of_the_background_alone(painted):
    split, x, y = painted
    model = ColoredDigits()
    phi = 0.5 / np.take_along_axis(model.principal(split.z1), split.y[:, None], 1)[:, 0]
    fitted = fit_domain_classifier(x, y, CONFIG, seed=0, weights=torch.from_numpy(phi).float())
    found = cells(split, log_proba(fitted, x).exp()[:, 1].numpy())
    spread_by_digit = np.abs(found[0] - found[1]).max()
    plain = cells(split, log_proba(fit_domain_classifier(x, y, CONFIG, seed=0), x).exp()[:, 1].numpy())
    assert spread_by_digit < 0.3 < np.abs(plain[0] - plain[1]).max()
    assert found[:, 0].mean() < 0.3 and found[:, 1].mean() > 0.7


def test_rows_that_are_sorted_by_domain_give_the_statistics_of_all(painted, monkeypatch):
    _, x, y = painted
    config, rows = replace(CONFIG, epochs=1), torch.argsort(y, stable=True)[:-1]
    networks = []
    for at_once in (len(x), 2000):
        monkeypatch.setattr(domain_classifiers, "ROWS_AT_ONCE", at_once)
        networks.append(fit_domain_classifier(x[rows], y[rows], config, seed=0))
    whole, parts = ([part for name, part in one.named_buffers() if name.endswith("var")] for one in networks)
    assert whole and len(x[rows]) > 2 * 2000
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=0.02, atol=1e-4)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(painted):
    _, x, y = painted
    config = replace(CONFIG, epochs=1)
    one, same, other = (log_proba(fit_domain_classifier(x, y, config, seed=seed), x) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_batch_statistics_are_those_of_the_kept_weights(painted):
    _, x, y = painted
    fitted = fit_domain_classifier(x, y, replace(CONFIG, epochs=1), seed=0)
    first = fitted.features[0](x)
    assert torch.allclose(fitted.features[2].running_mean, first.relu().mean((0, 2, 3)), atol=1e-4)


def test_a_network_with_noise_of_its_own_comes_out_the_same_whatever_was_drawn_before():
    x = torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    y = (torch.arange(40) % 2).long()
    fitted = []
    for before in (0, 1):
        torch.manual_seed(before)
        network = seeded(0, lambda: torch.nn.Sequential(GaussianNoise(0.3), DigitClassifier(width=4)))
        config = ClassifierConfig(width=4, epochs=1, batch_size=16)
        fitted.append(fit_domain_classifier(x, y, config, seed=0, network=network).state_dict())
    assert all(torch.equal(one, other) for one, other in zip(*(state.values() for state in fitted), strict=True))
