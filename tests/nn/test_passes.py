"""Passes together equal passes apart: answers, gradients and running statistics."""

import copy

import pytest

torch = pytest.importorskip("torch")

from setminus.nn import passes as module  # noqa: E402
from setminus.nn.cyclegan import DigitDiscriminator, DigitGenerator, PatchDiscriminator, UNetGenerator  # noqa: E402
from setminus.nn.passes import (  # noqa: E402  # noqa: E402
    adam,
    autocast,
    each,
    fast_precision,
    frozen,
    in_float32,
    prepare,
    running_statistics_kept,
    sees_whole_batch,
)

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


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16-mixed"), (False, "32-true")])
def test_bfloat16_where_the_cpu_has_it(monkeypatch, native, expected):
    monkeypatch.setattr(module, "_cpu_has_bfloat16", lambda: native)
    assert fast_precision() == expected


@pytest.mark.parametrize("name", ["_is_amx_tile_supported", "_is_avx512_bf16_supported"])
def test_either_kind_of_unit_will_do(monkeypatch, name):
    for other in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.setattr(torch.cpu, other, lambda found=other == name: found, raising=False)
    assert fast_precision("cpu") == "bf16-mixed"


def test_float32_without_units_without_cuda_and_elsewhere(monkeypatch):
    for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert {fast_precision(device) for device in ("cpu", "cuda", "meta")} == {"32-true"}


def test_autocast():
    layer, x = torch.nn.Linear(2, 2), torch.zeros(1, 2)
    with autocast("32-true"):
        assert layer(x).dtype == torch.float32
    with autocast("bf16-mixed"):
        assert layer(x).dtype == torch.bfloat16
        assert in_float32(layer(x)).dtype == torch.float32
    with pytest.raises(ValueError, match="precision is 'fp8': expected '32-true' or 'bf16-mixed'"):
        autocast("fp8")


def test_prepared_networks_compute_the_same():
    plain = DigitGenerator(width=4)
    fast, images = prepare(copy.deepcopy(plain)), torch.randn(3, 3, 16, 16)
    assert fast.layers[3].weight.is_contiguous(memory_format=torch.channels_last)
    assert prepare(images).is_contiguous(memory_format=torch.channels_last)
    for given in (images, prepare(images)):
        torch.testing.assert_close(fast(given), plain(images), rtol=1e-4, atol=1e-5)


def test_fused_adam_takes_the_steps_of_adam():
    ours = torch.nn.Linear(5, 3)
    theirs = copy.deepcopy(ours)
    optimizers = (
        adam(ours.parameters(), 1e-2, weight_decay=0.1),
        torch.optim.Adam(theirs.parameters(), lr=1e-2, betas=(0.5, 0.999), weight_decay=0.1, foreach=False),
    )
    start = ours.weight.detach().clone()
    for _ in range(5):
        x = torch.randn(4, 5)
        for network, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            network(x).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-5, atol=1e-6)
    assert (ours.weight - start).abs().min() > 1e-3
    assert not adam([torch.zeros(2, device="meta", requires_grad=True)], 1e-2).defaults["fused"]
