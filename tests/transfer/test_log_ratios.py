"""The log ratio of z2 against the exact one, its sign in either direction, and what stays frozen."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks import DigitClassifier  # noqa: E402
from setminus.transfer.log_ratios import OrthogonalRatio, PairRatio  # noqa: E402
from setminus.transfer.pixels import signed  # noqa: E402
from setminus.transfer.transfer_task import orthogonal_adversarial  # noqa: E402


def truth(split):
    """log P(z2) / Q(z2): ln 9 where the background is that of A, minus as much where it is that of B."""
    return np.where(split.z2 == 0, math.log(9), -math.log(9))


def test_exact_classifiers_give_the_exact_ratio_whichever_way_it_comes(exact, squares):
    split, x = squares
    pair = PairRatio(exact["full"], exact["principal"], clamp=None)(signed(x))
    direct = OrthogonalRatio(exact["orthogonal"], clamp=None)(signed(x))
    assert np.allclose(pair, truth(split), atol=1e-5)
    assert np.allclose(direct, truth(split), atol=1e-5)
    # the full classifier alone does not: it also knows the digit
    assert not np.allclose(OrthogonalRatio(exact["full"], clamp=None)(signed(x)), truth(split), atol=0.5)


@pytest.mark.parametrize(("direction", "sign"), [("a_to_b", -1), ("b_to_a", 1)])
def test_it_takes_z2_out_of_the_best_discriminator(exact, squares, direction, sign):
    split, x = squares
    ratio = PairRatio(exact["full"], exact["principal"], clamp=None)
    # of fakes that keep their z2 the best discriminator says log of the density it wants over the one they have
    logits = torch.from_numpy(sign * truth(split)).float()
    indifferent = orthogonal_adversarial(ratio)(logits, signed(x), direction)
    assert float(indifferent) == pytest.approx(math.log(2), abs=1e-5)
    wrong = "b_to_a" if direction == "a_to_b" else "a_to_b"
    assert float(orthogonal_adversarial(ratio)(logits, signed(x), wrong)) > 1


@pytest.mark.parametrize(("direction", "kept"), [("a_to_b", 0), ("b_to_a", 1)])
def test_a_discriminator_that_sees_no_z2_favours_the_background_of_the_source(exact, squares, direction, kept):
    split, x = squares
    term = orthogonal_adversarial(PairRatio(exact["full"], exact["principal"]))
    losses = [
        float(term(torch.zeros(int(rows.sum())), signed(x[torch.from_numpy(rows)]), direction))
        for rows in (split.z2 == kept, split.z2 != kept)
    ]
    assert losses[0] < math.log(2) < losses[1]


def test_shares_of_the_domains_are_taken_out(exact, squares):
    split, x = squares
    shifted = copy.deepcopy(exact["full"])
    # trained where A is three times as frequent
    shifted.log_proba += torch.tensor([math.log(3), 0.0])
    found = PairRatio(shifted, exact["principal"], full_prior=(0.75, 0.25), clamp=None)(signed(x))
    assert np.allclose(found, truth(split), atol=1e-5)
    forgotten = PairRatio(shifted, exact["principal"], clamp=None)(signed(x))
    assert np.allclose(forgotten, truth(split) + math.log(3), atol=1e-5)


def test_bounds_hold_the_ratio(exact, squares):
    _, x = squares
    values = PairRatio(exact["full"], exact["principal"], clamp=(0.5, 4))(signed(x)).exp()
    assert float(values.min()) == pytest.approx(0.5) and float(values.max()) == pytest.approx(4)


def test_its_classifiers_stay_in_evaluation_mode_and_pass_gradients_to_images_alone(squares):
    _, x = squares
    ratio = PairRatio(DigitClassifier(width=2), DigitClassifier(width=2), clamp=None).train()
    assert not any(module.training for module in ratio.modules())
    images = signed(x[:4]).requires_grad_()
    ratio(images).sum().backward()
    assert float(images.grad.abs().sum()) > 0
    assert all(weight.grad is None and not weight.requires_grad for weight in ratio.parameters())
