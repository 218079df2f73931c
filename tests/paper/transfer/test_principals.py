"""Each way to a principal classifier on squares, and its last layer against closed forms."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus_paper.transfer.principals import (  # noqa: E402
    CANDIDATES,
    TRM,
    fit_last_layer,
    fit_principal,
    weights_by_importance,
)

from setminus.datasets.colored_digits import ColoredDigits  # noqa: E402
from setminus.invariant.environments import EnvironmentConfig, pooled, risk  # noqa: E402
from setminus.invariant.methods import METHODS  # noqa: E402
from setminus.nn.networks import seeded  # noqa: E402
from setminus.transfer.domain_classifiers import (  # noqa: E402
    ClassifierConfig,
    fit_domain_classifier,
    log_proba,
)
from setminus.transfer.networks import image_tensor  # noqa: E402

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
    weights = torch.from_numpy(weights_by_importance(x, y, oracle)).float()
    fitted = fit_domain_classifier(x, y, CONFIG, seed=0, weights=weights)
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
def painted_environments():
    """What is fitted, what is held out, and a classifier that pools the former."""
    sets, held_out = (
        [painted(model, seed, n=1200)[1] for seed, model in enumerate(MODEL.environments(), start)] for start in (0, 2)
    )
    x, y = (torch.cat(parts) for parts in zip(*sets, strict=True))
    return sets, held_out, fit_domain_classifier(x, y, CONFIG, seed=0)


@pytest.mark.parametrize("source", ["mldg", "trm", "fish"])
def test_on_the_last_layer_they_leave_the_background_to_the_pooled_classifier(source, painted_environments):
    sets, held_out, pooled = painted_environments
    network = fit_last_layer(source, sets, held_out, pooled)
    assert not network.training
    assert spread(network, "z1") > 0.7
    assert abs(spread(network, "z2")) < 0.5 * spread(pooled, "z2")


def test_what_does_not_fit_is_refused():
    sets = [painted(MODEL, 0, n=8)[1]] * 2
    with pytest.raises(ValueError, match="the oracle was given 2 sets"):
        fit_principal("oracle", sets, CONFIG, seed=0)
    with pytest.raises(ValueError, match="no source of principal classifiers is called 'irm': there are oracle, fish"):
        fit_principal("irm", sets, CONFIG, seed=0)
    with pytest.raises(ValueError, match="'mldg' was given a EnvironmentConfig"):
        fit_principal("mldg", sets, CONFIG, seed=0, environments=EnvironmentConfig())


BACKGROUNDS = (0.8, 0.4)
EXACT_POOLED = math.log(0.95 / 0.05) / 2, math.log(0.8 / 0.2) / 2


class Mixed(torch.nn.Module):
    """Features that mix both signs and a constant, at unequal scales; any head."""

    def __init__(self):
        super().__init__()
        mix = torch.tensor([[3.0, 0.2], [1.0, 0.5], [0.0, 0.0]])
        self.encoder, self.head = torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)
        with torch.no_grad():
            self.encoder.weight.copy_(mix)
            self.encoder.bias.copy_(torch.tensor([1.0, -2.0, 3.0]))

    def forward(self, x):
        return self.head(self.encoder(x))


def population(background, digit=0.9):
    """Colored digits as rows of signs (z1, z2), each combination as often as its probability says, times 800."""
    right, own = (1 + digit) / 2, (1 + background) / 2
    counts = [round(400 * p * q) for p in (right, 1 - right) for q in (own, 1 - own)]
    signs = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    x = signs.repeat_interleave(torch.tensor(counts), dim=0)
    return torch.cat([-x, x]), torch.arange(2).repeat_interleave(len(x))


@pytest.fixture(scope="module")
def environments():
    return [population(background) for background in BACKGROUNDS]


def influences(network):
    """Half the change of the log-odds with z1, and with z2."""
    with torch.no_grad():
        logits = network(torch.tensor([[1.0, 1], [-1, 1], [1, -1]]))
    odds = logits[:, 1] - logits[:, 0]
    return float(odds[0] - odds[1]) / 4, float(odds[0] - odds[2]) / 4


def test_erm_gives_the_closed_form_of_the_pooled_classifier(environments):
    fitted = fit_last_layer("erm", environments, environments, Mixed())
    assert influences(fitted) == pytest.approx(EXACT_POOLED, abs=0.01)
    assert fitted.gap > 0.05


@pytest.mark.parametrize("method", ["mldg", "fish", "trm"])
def test_each_method_drops_what_differs_among_the_environments(environments, method):
    fitted = fit_last_layer(method, environments, environments, Mixed())
    digit, background = influences(fitted)
    assert abs(background) < 0.25 * EXACT_POOLED[1]
    assert digit == pytest.approx(EXACT_POOLED[0], rel=0.15)
    assert fitted.gap < 0.02
    assert fitted.config in CANDIDATES[method]


def test_trm_as_printed_keeps_the_background_and_its_worst_pair_keeps_a_part(environments):
    """In the population: the mean transfer risk is smallest near pooling, that of the worst pair between both."""
    printed, worst = (
        influences(fit_last_layer("trm", environments, environments, Mixed(), [config]))[1]
        for config in (TRM, replace(TRM, worst_pair=True))
    )
    assert printed == pytest.approx(EXACT_POOLED[1], rel=0.1)
    assert 0.5 * EXACT_POOLED[1] < worst < 0.9 * EXACT_POOLED[1]


def test_the_candidate_with_the_smallest_gap_is_chosen(environments):
    weak, strong = CANDIDATES["mldg"][0], CANDIDATES["mldg"][3]
    gaps = [fit_last_layer("mldg", environments, environments, Mixed(), [one]).gap for one in (weak, strong)]
    both = fit_last_layer("mldg", environments, environments, Mixed(), [weak, strong])
    assert gaps[1] < gaps[0]
    assert (both.config, both.gap) == (strong, gaps[1])


def test_the_result_is_calibrated_on_held_out_rows(environments):
    """Where held-out digits tell less, so does the classifier: no scale or shift of its logits has a lower risk."""
    held_out = [population(background, digit=0.6) for background in BACKGROUNDS]
    fitted = fit_last_layer("fish", environments, held_out, Mixed(), [CANDIDATES["fish"][3]])
    other = fit_last_layer("fish", environments, environments, Mixed(), [CANDIDATES["fish"][3]])
    x, y = pooled(held_out)
    with torch.no_grad():
        logits, uncalibrated = fitted(x), other(x)
    risks = [float(torch.nn.functional.cross_entropy(scale * logits, y)) for scale in (0.95, 1.0, 1.05)]
    assert risks[1] < min(risks[0], risks[2])
    assert risks[1] < float(torch.nn.functional.cross_entropy(uncalibrated, y)) - 0.05


def test_the_network_stays_and_the_same_call_gives_the_same_bits(environments):
    network = seeded(0, Mixed)
    before = copy.deepcopy(network.state_dict())
    one, same = (fit_last_layer("fish", environments, environments, network, CANDIDATES["fish"][:1]) for _ in range(2))
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert torch.equal(one.head.weight, same.head.weight)
    assert not torch.equal(one.head.weight, network.head.weight)
    assert not one.training
    with torch.no_grad():
        assert float(risk(one, environments[0])) < 0.3 < float(risk(network, environments[0]))


def test_three_classes_have_a_last_layer_too():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(3).repeat(200)
    x = torch.nn.functional.one_hot(y, 3) + 0.5 * torch.randn(600, 3, generator=generator)
    network = torch.nn.Module()
    network.encoder, network.head = torch.nn.Identity(), torch.nn.Linear(3, 3)
    fitted = fit_last_layer("trm", [(x, y), (x, y)], [(x, y), (x, y)], network, [TRM])
    found = (fitted(x).argmax(dim=1) == y).double().mean()
    chance = (fitted(x).argmax(dim=1) == y.roll(1)).double().mean()
    assert found > 0.75 > 0.3 > chance


def test_a_head_that_tells_nothing_is_not_chosen_for_its_small_gap(environments):
    with pytest.raises(ValueError, match=r"no candidate has a mean held-out risk of .* or less: give smaller inner"):
        fit_last_layer("mldg", environments, environments, Mixed(), [CANDIDATES["mldg"][3]], keep=0.999)
    fit_last_layer("mldg", environments, environments, Mixed(), [CANDIDATES["mldg"][3]])


def test_what_cannot_be_fitted_is_refused_in_words(environments):
    with pytest.raises(ValueError, match="1 held-out environments were given for 2: give other rows of each"):
        fit_last_layer("mldg", environments, environments[:1], Mixed())
    with pytest.raises(ValueError, match="Linear without `head` and `encoder` or `features`"):
        fit_last_layer("mldg", environments, environments, torch.nn.Linear(2, 2))
