"""The classifiers whose probabilities are divided: weights, averages, determinism."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.datasets.colored_digits import ColoredDigits
from setminus.datasets.images import to_signed_nchw

torch = pytest.importorskip("torch")

from setminus.nn.networks import DigitClassifier, GaussianNoise, PhotoClassifier, seeded  # noqa: E402
from setminus.transfer import domain_classifiers  # noqa: E402
from setminus.transfer.domain_classifiers import (  # noqa: E402
    ClassifierConfig,
    DomainByColumn,
    fit_domain_classifier,
    log_proba,
    overlap_weights,
    shares_by_classifier,
    smoothed_shares,
)
from setminus.transfer.networks import shifted, signed  # noqa: E402
from setminus.transfer.transfer_task import OrthogonalRatio, PairRatio  # noqa: E402

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


def striped(n, shares, seed):
    """A square of either color on a flat or a striped ground, with noise; each factor follows the domain by a share."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    z1, z2 = (np.where(rng.random(n) < share, y, 1 - y) for share in shares)
    rows = (np.arange(16) + rng.integers(8, size=(n, 1))) // 4 % 2
    x = rng.normal(0, 0.25, (n, 3, 16, 16)) + 0.3 * np.where(z2[:, None], rows - 0.5, 0)[:, None, :, None]
    x[:, 0, 5:11, 5:11] += np.where(z1, 0.6, -0.6)[:, None, None]
    return torch.from_numpy(x.clip(-1, 1)).float(), y, z1, z2


def test_shifts_and_blends_make_the_ratio_right_on_pictures_that_a_translation_makes():
    x, y, z1, _ = striped(600, (0.95, 0.9), seed=0)
    new, _, new_z1, new_z2 = striped(300, (0.5, 0.5), seed=9)
    rare, exact = new_z1 != new_z2, np.where(new_z2, -1, 1) * math.log(9)
    weights = torch.from_numpy(overlap_weights(z1, y)).float()
    right, error = {}, {}
    for more in (False, True):
        config = ClassifierConfig(epochs=20, batch_size=64, average=0.95, shift=2 * more, mixup=more)
        network = seeded(0, lambda: PhotoClassifier(width=8))
        fitted = fit_domain_classifier(x, torch.from_numpy(y), config, seed=0, weights=weights, network=network)
        log_a, log_b = log_proba(fitted, new).numpy().T
        right[more] = np.mean(((log_a > log_b) == (exact > 0))[rare])
        error[more] = np.abs(log_a - log_b - exact).mean()
    assert right[True] > 0.95 and right[False] < 0.75
    assert error[True] < 1.2 < error[False]


def test_shifted_images_are_windows_of_the_images_with_repeated_edges():
    images = torch.arange(2 * 3 * 5 * 4).reshape(2, 3, 5, 4).float()
    torch.manual_seed(0)
    found = torch.stack([shifted(images, 1) for _ in range(60)])
    padded = torch.nn.functional.pad(images, (1,) * 4, mode="replicate")
    windows = [padded[..., top : top + 5, left : left + 4] for top in range(3) for left in range(3)]
    for k in range(2):
        seen = [[bool(torch.equal(one[k], window[k])) for window in windows].index(True) for one in found]
        assert set(seen) == set(range(9))
    assert shifted(images, 0) is images


MODEL = ColoredDigits(lambda_digit=0.6, lambda_background=0.8)
OWN = {"digit": 0.8, "background": 0.9}
"""p(z|A) of A's own color, by the model's strengths."""


class Sees(torch.nn.Module):
    """Log-probabilities of a color that a pixel shows, as sure as `sure`, with the shares of `prior` in its data."""

    def __init__(self, factor, sure=1 - 1e-7, prior=(0.5, 0.5)):
        super().__init__()
        self.factor, self.sure, self.prior = factor, sure, torch.tensor(prior)

    def forward(self, images):
        side = images.shape[-1] // 2
        digit = images[:, 2, side, side] > images[:, 0, side, side]
        background = images[:, 0, 0, 0] > images[:, 1, 0, 0]
        z = (digit if self.factor == "digit" else background).long()
        likelihood = torch.where(z[:, None] == torch.arange(2), self.sure, 1 - self.sure)
        return (likelihood * self.prior).log()


def by_column(factor, **changes):
    own = OWN[factor]
    known = {"column_prior": (0.5, 0.5), "given_a": (own, 1 - own), "given_b": (1 - own, own)}
    return DomainByColumn(Sees(factor), **{**known, **changes})


@pytest.fixture(scope="module")
def few_painted():
    ink = np.zeros((400, 8, 8), dtype=np.uint8)
    ink[:, 2:6, 2:6] = 255
    split = MODEL.paint(ink, seed=0)
    return split, signed(torch.from_numpy(split.x).permute(0, 3, 1, 2))


def test_it_is_the_exact_posterior_of_either_factor(few_painted):
    split, x = few_painted
    assert np.allclose(by_column("digit")(x).softmax(1), MODEL.principal(split.z1), atol=1e-5)
    assert np.allclose(by_column("background")(x).softmax(1), MODEL.orthogonal(split.z2), atol=1e-5)
    # the classifier of the column by itself is not: it is sure of the color, the color is not of the domain
    assert not np.allclose(Sees("digit")(x).softmax(1), MODEL.principal(split.z1), atol=0.1)


def test_both_roles_give_the_exact_ratio_of_what_is_kept(few_painted):
    split, x = few_painted
    truth = np.where(split.z2 == 0, math.log(9), -math.log(9))
    full = torch.from_numpy(np.log(MODEL.full(split.z1, split.z2))).float()
    kept = OrthogonalRatio(by_column("background"), clamp=None)(x)
    changed = PairRatio(_Said(full), by_column("digit"), clamp=None)(x)
    assert np.allclose(kept, truth, atol=1e-4) and np.allclose(changed, truth, atol=1e-4)
    # with the classifier of the column as the principal one, too much is taken away
    naive = PairRatio(_Said(full), Sees("digit"), clamp=None)(x).numpy()
    assert np.abs(naive - truth).min() > 5


class _Said(torch.nn.Module):
    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, images):
        return self.logits


def test_the_shares_that_the_column_was_learned_with_are_taken_out(few_painted):
    _, x = few_painted
    skewed = Sees("digit", sure=0.9, prior=(0.8, 0.2))
    even = DomainByColumn(Sees("digit", sure=0.9), column_prior=(0.5, 0.5), given_a=(0.7, 0.3), given_b=(0.2, 0.8))(x)
    known = DomainByColumn(skewed, column_prior=(0.8, 0.2), given_a=(0.7, 0.3), given_b=(0.2, 0.8))(x)
    forgotten = DomainByColumn(skewed, column_prior=(0.5, 0.5), given_a=(0.7, 0.3), given_b=(0.2, 0.8))(x)
    assert torch.allclose(known.softmax(1), even.softmax(1), atol=1e-5)
    assert not torch.allclose(forgotten.softmax(1), even.softmax(1), atol=0.02)


shares = st.floats(0.02, 0.98)


@settings(deadline=None, max_examples=50)
@given(st.lists(shares, min_size=6, max_size=6), shares, shares, shares)
def test_it_is_bayes_rule_where_images_do_not_show_the_column(table, prior, in_a, in_b):
    """Three kinds of images, any p(x|z): the mixtures' posterior by sums over z."""
    given_z = np.array(table).reshape(2, 3)
    given_z /= given_z.sum(axis=1, keepdims=True)
    p_z, p_a, p_b = (np.array([share, 1 - share]) for share in (prior, in_a, in_b))
    joint = given_z * p_z[:, None]
    logits = torch.from_numpy(np.log(joint / joint.sum(axis=0)).T).float()
    found = DomainByColumn(_Said(logits), column_prior=p_z, given_a=p_a, given_b=p_b)(torch.zeros(3, 3, 2, 2))
    mixtures = np.stack([p_a @ given_z, p_b @ given_z], axis=1)
    assert np.allclose(found.softmax(1), mixtures / mixtures.sum(axis=1, keepdims=True), atol=1e-4)


def test_a_constant_column_is_finite_and_held_by_the_clamp(few_painted):
    split, x = few_painted
    constant = by_column("background", given_a=smoothed_shares(np.zeros(500)), given_b=smoothed_shares(np.ones(500)))
    ratio = OrthogonalRatio(constant, clamp=None)(x).exp()
    assert torch.isfinite(ratio).all() and float(ratio.max()) == pytest.approx(1001, rel=0.01)
    clamped = OrthogonalRatio(constant, clamp=(1 / 9, 9))(x).exp()
    assert np.allclose(clamped, np.where(split.z2 == 0, 9, 1 / 9), atol=1e-3)


@pytest.mark.parametrize(
    "wrong",
    [{"column_prior": (1.0, 0.0)}, {"given_a": (1.2, -0.2)}, {"given_b": (0.5, 0.4)}, {"given_a": (0.4, 0.3, 0.3)}],
)
def test_shares_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="expected a share for each value in all three"):
        by_column("background", **wrong)


def test_two_classifiers_of_one_of_groups_leave_the_other_factor_exactly():
    """Whatever the network says: full is of groups 0 and 3, principal of 0 and 1 against 2 and 3, as for faces."""
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * 4
    groups = {"column_prior": (0.25,) * 4}
    full = DomainByColumn(_Said(logits), **groups, given_a=(1, 0, 0, 0), given_b=(0, 0, 0, 1))
    principal = DomainByColumn(_Said(logits), **groups, given_a=(0.5, 0.5, 0, 0), given_b=(0, 0, 0.5, 0.5))
    proba = logits.softmax(1)
    found = PairRatio(full, principal, clamp=None)(torch.zeros(50, 3, 2, 2)).exp()
    # how dark the hair is for a man, over how blond it is for a woman
    expected = proba[:, 0] / (proba[:, 0] + proba[:, 1]) / (proba[:, 3] / (proba[:, 2] + proba[:, 3]))
    assert torch.allclose(found, expected, rtol=1e-3)


def test_gradients_pass_to_images_unless_the_column_says_nothing_of_the_domain(few_painted):
    _, x = few_painted
    column = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))
    images = x[:3].clone().requires_grad_()
    module = DomainByColumn(column, column_prior=(0.5, 0.5), given_a=(0.9, 0.1), given_b=(0.1, 0.9))
    module(images)[:, 0].sum().backward()
    assert float(images.grad.abs().sum()) > 0
    images.grad = None
    # the same shares in both domains: nothing to learn
    same = DomainByColumn(column, column_prior=(0.5, 0.5), given_a=(0.5, 0.5), given_b=(0.5, 0.5))
    same(images)[:, 0].sum().backward()
    assert float(images.grad.abs().sum()) == pytest.approx(0, abs=1e-5)


def test_shares_of_a_folder_without_labels():
    rng = np.random.default_rng(0)
    z = rng.random(4000) < 0.15
    # a classifier that is right in three of four cases, and knows it
    sees = np.where(rng.random(4000) < 0.75, z, ~z)
    proba = np.where(sees[:, None] == np.arange(2), 0.75, 0.25)
    assert shares_by_classifier(proba, (0.5, 0.5))[1] == pytest.approx(0.15, abs=0.04)
    assert proba[:, 1].mean() > 0.28


def test_under_the_weights_the_other_factor_does_not_tell_the_column():
    ink = np.zeros((20_000, 4, 4), dtype=np.uint8)
    split = ColoredDigits().paint(ink, seed=0)
    weights = overlap_weights(split.y, split.z1)

    def error_of(weight):
        first, second = (np.average(split.z2[split.z1 == z], weights=weight[split.z1 == z]) for z in (0, 1))
        return abs(first - second)

    assert error_of(weights) < 0.05 < 0.5 < error_of(np.ones(len(weights)))
    assert weights.mean() == pytest.approx(1) and np.average(split.z1, weights=weights) == pytest.approx(0.5)


def test_a_place_with_one_value_weighs_nothing_and_one_place_must_have_two():
    assert overlap_weights([0, 0, 1, 1, 1], [0, 0, 0, 1, 1]).tolist() == [0, 0, 1.5, 0.75, 0.75]
    with pytest.raises(ValueError, match=r"two values of the column.* label images"):
        overlap_weights([0, 0, 1, 1, -1], [0, 0, 1, 1, 1])
