"""Passes together equal passes apart: answers, gradients and running statistics."""

import copy

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks.image_translation import DigitDiscriminator, DigitGenerator  # noqa: E402
from setminus.nn.networks.unet import PatchDiscriminator, UNetGenerator  # noqa: E402
from setminus.nn.passes import each, frozen, running_statistics_kept, sees_whole_batch  # noqa: E402

NETWORKS = {
    "generator": (lambda: DigitGenerator(width=3), 16),
    "discriminator": (lambda: DigitDiscriminator(16, width=3, dropout=0.0), 16),
    "unet": (lambda: UNetGenerator(32, width=2), 32),
    "patches": (lambda: PatchDiscriminator(width=2), 32),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_each_equals_one_pass_after_the_other(name):
    build, size = NETWORKS[name]
    together = build().double()
    apart = copy.deepcopy(together)
    batches = [torch.randn(n, 3, size, size, dtype=torch.float64) for n in (4, 2, 3)]
    passes = []
    together.register_forward_hook(lambda *_: passes.append(1))
    ours, theirs = each(together, *batches), [apart(batch) for batch in batches]
    # BatchNorm keeps its batches apart; the others save two passes
    assert len(passes) == (3 if name == "generator" else 1)
    for answers, losses in ((ours, []), (theirs, [])):
        losses += [(weight * answer.sin()).sum() for weight, answer in enumerate(answers, 1)]
        sum(losses).backward()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
    for one, other in zip(together.parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=1e-8)
    for one, other in zip(together.buffers(), apart.buffers(), strict=True):
        torch.testing.assert_close(one, other)


def test_one_pass_for_all_would_be_wrong_with_batch_norm():
    network = DigitGenerator(width=3)
    one, other = torch.randn(4, 3, 16, 16), 3 + torch.randn(4, 3, 16, 16)
    assert not torch.allclose(network(torch.cat([one, other]))[:4], network(one), atol=1e-3)
    with torch.no_grad():
        network.eval()
        torch.testing.assert_close(each(network, one, other)[0], network(one))


@pytest.mark.parametrize(
    ("norm", "sees"),
    [
        (torch.nn.BatchNorm1d(2), True),
        (torch.nn.BatchNorm1d(2).eval(), False),
        (torch.nn.BatchNorm1d(2, track_running_stats=False).eval(), True),
        (torch.nn.InstanceNorm2d(2), False),
        (torch.nn.InstanceNorm2d(2, track_running_stats=True), True),
        (torch.nn.InstanceNorm2d(2, track_running_stats=True).eval(), False),
        (torch.nn.GroupNorm(1, 2), False),
    ],
)
def test_which_norms_see_the_batch(norm, sees):
    assert sees_whole_batch(torch.nn.Sequential(torch.nn.Identity(), norm)) is sees


def test_running_statistics_are_kept_within_and_move_without():
    network, images = DigitGenerator(width=3), torch.randn(4, 3, 16, 16)
    before = copy.deepcopy(network.state_dict())
    with running_statistics_kept(network):
        kept = network(images)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    # the answer is that of the batch's own statistics nevertheless
    torch.testing.assert_close(network(images), kept)
    assert not torch.equal(before["layers.1.running_mean"], network.state_dict()["layers.1.running_mean"])


def test_running_statistics_kept_leaves_evaluation_alone():
    network, images = DigitGenerator(width=3).eval(), torch.randn(4, 3, 16, 16)
    expected = network(images)
    with running_statistics_kept(network):
        torch.testing.assert_close(network(images), expected)


def test_frozen_passes_gradients_on_and_comes_back_after_an_error():
    network = torch.nn.Linear(2, 1)
    network.bias.requires_grad_(False)
    x = torch.ones(1, 2, requires_grad=True)
    with pytest.raises(KeyError), frozen(network):
        network(x).sum().backward()
        raise KeyError
    assert torch.equal(x.grad, network.weight)
    assert network.weight.grad is None
    # what was frozen before stays so
    assert network.weight.requires_grad
    assert not network.bias.requires_grad
