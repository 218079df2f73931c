"""Plain where nothing is taken out, the same bits after a stop, classifiers that nobody trains."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks import DigitClassifier, seeded  # noqa: E402
from setminus.nn.training import TrainingConfig, train  # noqa: E402
from setminus.transfer.log_ratios import PairRatio  # noqa: E402
from setminus.transfer.transfer_task import (  # noqa: E402
    TransferConfig,
    TransferTask,
    digit_networks,
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
        TransferTask(digit_networks(8, 4, seed=0), *images, TransferConfig(batch_size=2, rest_at=end))
        for end in (100, None)
    )
    assert [resting.rate(step) for step in (0, 50, 75, 100)] == [1.0, 1.0, 0.5, 0.0]
    assert steady.rate(99) == 1.0
