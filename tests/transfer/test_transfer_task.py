"""Plain where nothing is taken out, the same bits after a stop, classifiers that nobody trains."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks import DigitClassifier, seeded  # noqa: E402
from setminus.nn.training import TrainingConfig, train  # noqa: E402
from setminus.transfer import transfer_task  # noqa: E402
from setminus.transfer.networks import (  # noqa: E402
    digit_networks,
    signed,
)
from setminus.transfer.transfer_task import (  # noqa: E402  # noqa: E402
    OrthogonalRatio,
    PairRatio,
    TransferConfig,
    TransferTask,
    keeping_adversarial,
    log_ratios,
    orthogonal_adversarial,
)

CONFIG = TransferConfig(batch_size=8)


def classifiers():
    return seeded(5, lambda: (DigitClassifier(width=2), DigitClassifier(width=2)))


def trained(squares, log_ratio, steps=3, **options):
    split, x = squares
    networks = digit_networks(8, 4, seed=0, discriminator_width=2)
    task = TransferTask(networks, x[split.y == 0], x[split.y == 1], CONFIG, log_ratio=log_ratio)
    outcome = train(task, TrainingConfig(steps=steps, log_every=1, checkpoint_every=2), **options)
    return task, outcome


def weights(task):
    return torch.cat(
        [weight.detach().flatten() for name in ("a_to_b", "b_to_a") for weight in task.modules[name].parameters()]
    )


def test_with_the_full_classifier_as_principal_it_is_plain_cyclegan(squares):
    full, principal = classifiers()
    plain, history = trained(squares, None)
    same, same_history = trained(squares, PairRatio(full, full))
    other, _ = trained(squares, PairRatio(full, principal))
    assert torch.equal(weights(plain), weights(same))
    assert history.history == same_history.history
    assert not torch.equal(weights(plain), weights(other))


def test_a_training_that_stopped_goes_on_with_the_same_bits(squares, tmp_path):
    whole, outcome = trained(squares, PairRatio(*classifiers()), steps=6)
    trained(squares, PairRatio(*classifiers()), steps=4, folder=tmp_path)
    resumed, again = trained(squares, PairRatio(*classifiers()), steps=6, folder=tmp_path, resume=True)
    assert torch.equal(weights(whole), weights(resumed))
    assert outcome.history == again.history
    assert not torch.equal(weights(whole), weights(trained(squares, PairRatio(*classifiers()), steps=4)[0]))


def test_the_classifiers_come_out_as_they_went_in(squares):
    full, principal = classifiers()
    before = {name: value.clone() for name, value in full.state_dict().items()}
    task, _ = trained(squares, PairRatio(full, principal))
    assert all(torch.equal(value, before[name]) for name, value in full.state_dict().items())
    assert not full.training and not task.modules["log_ratio"].training


def test_the_judge_sees_evaluation_mode_and_the_training_does_not(squares):
    split, x = squares
    modes = []

    def judge(networks):
        modes.append((networks.a_to_b.training, networks.discriminator_a.training))
        return {"seen": len(modes)}

    task = TransferTask(
        digit_networks(8, 4, seed=0, discriminator_width=2), x[split.y == 0], x[split.y == 1], CONFIG, judge=judge
    )
    outcome = train(task, TrainingConfig(steps=4, evaluate_every=2))
    assert modes == [(False, False)] * 2
    assert [found["seen"] for found in outcome.evaluations] == [1, 2]
    assert task.networks.a_to_b.training


def test_domains_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match=r"of A have the shape \(3, 8, 8\), those of B \(3, 16, 16\): resize"):
        TransferTask(digit_networks(8, 4, seed=0), torch.zeros(4, 3, 8, 8), torch.zeros(4, 3, 16, 16))


def test_the_rate_rests_at_the_end_or_never():
    images = torch.rand(2, 4, 3, 8, 8)
    resting, steady = (
        TransferTask(digit_networks(8, 4, seed=0), *images, TransferConfig(batch_size=2, decay_end=end))
        for end in (100, None)
    )
    assert [resting.rate(step) for step in (0, 50, 75, 100)] == [1.0, 1.0, 0.5, 0.0]
    assert steady.rate(99) == 1.0


@pytest.mark.parametrize(("shift", "mirror", "n_variants"), [(0.0, False, 1), (0.25, False, 25), (0.125, True, 18)])
def test_every_image_of_a_step_is_shifted_and_mirrored_anew(shift, mirror, n_variants, monkeypatch):
    images = torch.rand(2, 4, 3, 8, 8)
    config = TransferConfig(batch_size=4, shift=shift, mirror=mirror)
    task = TransferTask(digit_networks(8, 4, seed=0), *images, config)
    seen = []

    def step(networks, real_a, real_b, update, **options):
        seen.append((real_a, real_b))
        return {}

    monkeypatch.setattr(transfer_task, "cyclegan_step", step)
    train(task, TrainingConfig(steps=60))
    for domain, own in enumerate(images):
        # the middle of every image is one of 25 windows of an original, or of its mirror image
        windows = {
            one[:, 2 + down : 6 + down, 2 + across : 6 + across].numpy().tobytes(): (kind, down, across)
            for kind, originals in enumerate((signed(own), signed(own).flip(3)))
            for one in originals
            for down in range(-2, 3)
            for across in range(-2, 3)
        }
        found = {windows[one[:, 2:6, 2:6].numpy().tobytes()] for reals in seen for one in reals[domain]}
        assert len(found) == n_variants


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


class Brightness(torch.nn.Module):
    """A log ratio that is known: r depends on the mean of a picture alone."""

    def forward(self, images):
        return 3 * images.mean(dim=(1, 2, 3))


def test_drawn_by_overlap_both_domains_have_the_same_distribution_of_what_is_kept():
    rng = np.random.default_rng(0)
    kept = [rng.random(4_000) < share for share in (0.9, 0.2)]
    log_r = [np.where(values, math.log(0.9 / 0.2), math.log(0.1 / 0.8)) for values in kept]
    images = [torch.from_numpy(values / 3).float()[:, None, None, None].expand(-1, 3, 8, 8) for values in log_r]
    networks = digit_networks(8, 4, seed=0, discriminator_width=2)
    config = TransferConfig(batch_size=4_000, overlap=True)
    task = TransferTask(networks, *images, config, log_ratio=Brightness())
    drawn = [values[batches.rows(0).numpy()].mean() for values, batches in zip(kept, task.batches, strict=True)]
    # P Q / (P + Q) of both values, with the sum 1
    weights = [0.9 * 0.2 / (0.9 + 0.2), 0.1 * 0.8 / (0.1 + 0.8)]
    assert drawn == pytest.approx([weights[0] / sum(weights)] * 2, abs=0.03)
    plain = TransferTask(networks, *images, TransferConfig(batch_size=4_000), log_ratio=Brightness())
    assert abs(np.diff([values[b.rows(0).numpy()].mean() for values, b in zip(kept, plain.batches, strict=True)])) > 0.5


def test_the_keeping_loss_is_nothing_where_the_ratio_is_kept():
    rng = torch.Generator().manual_seed(0)
    real = torch.rand(4, 3, 8, 8, generator=rng)
    nothing = lambda logits, fakes, direction: torch.zeros(())  # noqa: E731
    before = log_ratios(Brightness(), real)
    term = keeping_adversarial(nothing, Brightness(), {"a_to_b": before, "b_to_a": before}, weight=2.0)
    logits = torch.zeros(4, 1)
    assert term(logits, real.flip(3), "a_to_b").item() == pytest.approx(0, abs=1e-5)
    assert term(logits, real + 0.1, "b_to_a").item() == pytest.approx(2 * 3 * 0.1, rel=1e-4)
    # exchanged pictures have the same distribution of r, and not the same r
    swapped = real[[1, 0, 3, 2]]
    expected = 2 * (log_ratios(Brightness(), swapped) - before).abs().mean()
    assert term(logits, swapped, "a_to_b").item() == pytest.approx(expected.item())
    assert expected > 0.01
