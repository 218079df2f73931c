"""Each way to a principal classifier on squares, and what importance sampling makes of it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus_paper.transfer.importance import fit_orthogonal_by_importance  # noqa: E402
from setminus_paper.transfer.principals import fit_last_layer_principal, fit_principal  # noqa: E402

from setminus.datasets.colored_digits import ColoredDigits  # noqa: E402
from setminus.invariant.environment_task import EnvironmentConfig  # noqa: E402
from setminus.invariant.fitting import METHODS  # noqa: E402
from setminus.transfer.domain_classifiers import (  # noqa: E402
    ClassifierConfig,
    fit_domain_classifier,
    log_proba,
)
from setminus.transfer.pixels import image_tensor  # noqa: E402

MODEL = ColoredDigits()
CONFIG = ClassifierConfig(width=4, epochs=3, batch_size=64, average=0.9)


def painted(model, seed, n=4000):
    ink = np.zeros((n, 8, 8), dtype=np.uint8)
    ink[:, 2:6, 2:6] = 255
    split = model.paint(ink, seed=seed)
    return split, (image_tensor(split.x), torch.from_numpy(split.y))


def spread(network, by):
    """By how much the mean probability of B differs between the two colors of digits or of backgrounds."""
    split, (x, _) = painted(ColoredDigits(0, 0), seed=9, n=1000)
    proba = log_proba(network, x).exp()[:, 1].numpy()
    z = getattr(split, by)
    return proba[z == 1].mean() - proba[z == 0].mean()


@pytest.fixture(scope="module")
def oracle():
    return fit_principal("oracle", [painted(MODEL.oracle_principal(), 0)[1]], CONFIG, seed=0)


def test_the_oracle_knows_the_digit_and_not_the_background(oracle):
    assert spread(oracle, "z1") > 0.7
    assert abs(spread(oracle, "z2")) < 0.1


def test_importance_sampling_leaves_the_background(oracle):
    _, (x, y) = painted(MODEL, 1)
    fitted = fit_orthogonal_by_importance(x, y, oracle, CONFIG, seed=0)
    assert spread(fitted, "z2") > 0.5
    assert abs(spread(fitted, "z1")) < 0.35 < spread(oracle, "z1")


@pytest.mark.parametrize("source", ["mldg", "trm", "fish"])
def test_methods_of_environments_tell_digits(source):
    sets = [painted(model, seed, n=1000)[1] for seed, model in enumerate(MODEL.environments())]
    config = METHODS[source][1](steps=40, decay_at=30, batch_size=32)
    network = fit_principal(source, sets, CONFIG, seed=0, environments=config)
    assert not network.training
    assert spread(network, "z1") > 0.4


@pytest.fixture(scope="module")
def environments():
    """What is fitted, what is held out, and a classifier that pools the former."""
    sets, held_out = (
        [painted(model, seed, n=3000)[1] for seed, model in enumerate(MODEL.environments(), start)] for start in (0, 2)
    )
    x, y = (torch.cat(parts) for parts in zip(*sets, strict=True))
    return sets, held_out, fit_domain_classifier(x, y, CONFIG, seed=0)


@pytest.mark.parametrize("source", ["mldg", "trm", "fish"])
def test_on_the_last_layer_they_leave_the_background_to_the_pooled_classifier(source, environments):
    sets, held_out, pooled = environments
    network = fit_last_layer_principal(source, sets, held_out, pooled)
    assert not network.training
    assert spread(network, "z1") > 0.7
    assert abs(spread(network, "z2")) < 0.5 * spread(pooled, "z2")


def test_what_does_not_fit_is_refused():
    sets = [painted(MODEL, 0, n=8)[1]] * 2
    with pytest.raises(ValueError, match="the oracle came with 2 sets"):
        fit_principal("oracle", sets, CONFIG, seed=0)
    with pytest.raises(ValueError, match="no source of principal classifiers is called 'irm': there are oracle, fish"):
        fit_principal("irm", sets, CONFIG, seed=0)
    with pytest.raises(ValueError, match="no source of principal classifiers is called 'oracle'"):
        fit_last_layer_principal("oracle", sets, sets, torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="'mldg' came with a EnvironmentConfig"):
        fit_principal("mldg", sets, CONFIG, seed=0, environments=EnvironmentConfig())
