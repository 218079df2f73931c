"""Proposition 3: the orthogonal domain loss is least where each label's codes are alike, if codes keep the label."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import softmax
from setminus_paper.claims import prop3
from setminus_paper.claims.prop3 import (
    ADVERSARIES,
    coded,
    domain_loss,
    label_shift_model,
    task_loss,
)

from setminus.core.orthogonalize import orthogonalize

MODEL = label_shift_model(np.array(prop3.SOURCE), np.array(prop3.TARGET), prop3.N_V, seed=5)
LEAST = -2 * np.log(2)


def random_logits(seed, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(2, prop3.N_V, prop3.N_CODES))


def kept(logits):
    return softmax(logits + prop3._apart(logits.shape), axis=2)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("family", ["kept", "free"])
def test_the_optimizer_reaches_the_closed_form(adversary, family):
    value, encoder = prop3.minimise(MODEL, adversary, random_logits(0), keep_labels=family == "kept")
    exact = prop3.exact_minima(adversary)[family]
    if exact is None:
        # the proposition's assumption is broken, and so is its bound
        assert value < LEAST - 0.3
        assert prop3.described(MODEL, encoder)["given_label"] > 0.05
    else:
        assert value == pytest.approx(exact, abs=1e-7)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 4.0]))
@settings(deadline=None, max_examples=50)
def test_codes_that_keep_the_label_are_never_below(seed, scale):
    encoder = kept(random_logits(seed, scale))
    loss, _ = domain_loss(MODEL, encoder, "orthogonal")
    distance = prop3.described(MODEL, encoder)["given_label"]
    # Pinsker: for each label both domains are at least distance / 2 from their middle
    assert loss - LEAST >= 2 * (distance / 2) ** 2 - 1e-9


def test_aligned_codes_of_each_label_reach_it_and_the_plain_loss_stays_above():
    label_only = kept(np.zeros((2, prop3.N_V, prop3.N_CODES)))
    assert domain_loss(MODEL, label_only, "orthogonal")[0] == pytest.approx(LEAST, abs=1e-12)
    assert domain_loss(MODEL, label_only, "plain")[0] > LEAST + 0.1


@pytest.mark.parametrize("seed", range(3))
def test_with_kept_labels_the_discriminator_gains_nothing_from_seeing_them(seed):
    encoder = kept(random_logits(seed))
    blind, seeing = (domain_loss(MODEL, encoder, adversary)[0] for adversary in ADVERSARIES[1:])
    assert blind == pytest.approx(seeing, abs=1e-9)
    free = softmax(random_logits(seed), axis=2)
    assert abs(domain_loss(MODEL, free, "orthogonal")[0] - domain_loss(MODEL, free, ADVERSARIES[2])[0]) > 0.1


def test_the_loss_is_the_expectation_under_the_orthogonalized_discriminator():
    encoder = softmax(random_logits(1), axis=2)
    mass = coded(MODEL, encoder)
    by_code = mass.sum(axis=1)
    expected = 0.0
    for label in range(2):
        full = (by_code / by_code.sum(axis=0)).T
        principal = np.broadcast_to(np.array([prop3.SOURCE[label], prop3.TARGET[label]]) / 1.0, full.shape)
        orthogonal = orthogonalize(full, principal / principal.sum(axis=1, keepdims=True), "uniform")
        expected += (mass[:, label].T * np.log(orthogonal)).sum()
    assert domain_loss(MODEL, encoder, "orthogonal")[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_the_gradients_are_those_of_the_losses(adversary):
    encoder = softmax(random_logits(2), axis=2)
    for loss in (lambda at: domain_loss(MODEL, at, adversary), lambda at: task_loss(MODEL, at)):
        slope = approx_fprime(encoder.ravel(), lambda at, loss=loss: loss(at.reshape(encoder.shape))[0], 1e-7)
        np.testing.assert_allclose(loss(encoder)[1].ravel(), slope, atol=1e-5)


def test_alignment_without_regard_to_the_label_costs_at_least_half_the_shift():
    lost = 1 - prop3.best_aligned_accuracy(MODEL)
    assert lost >= 0.2 - 1e-9
    unshifted = label_shift_model(np.array([0.5, 0.5]), np.array([0.5, 0.5]), prop3.N_V, seed=5)
    assert prop3.best_aligned_accuracy(unshifted) == pytest.approx(1)


def test_measured_task_and_domain_loss(monkeypatch):
    monkeypatch.setattr(prop3, "WEIGHTS", (0.05, 20.0))
    (metrics,) = prop3.measure((1,), starts=2)
    accuracy = {name: swept["target_accuracy"] for name, swept in metrics["sweep"].items()}
    assert all(values[0] > 0.999 for values in accuracy.values())
    assert accuracy["orthogonal, label seen"][1] > 0.999
    assert accuracy["plain"][1] < 0.8
    assert metrics["constant"] == pytest.approx(metrics["constant_exact"], abs=1e-12)
    assert metrics["constant"] < LEAST
