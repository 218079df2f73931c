"""Batches are dealt fairly; passes together equal passes apart: answers, gradients and running statistics."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from setminus.nn import passes as module  # noqa: E402
from setminus.nn.blending import BlendingGenerator, ScaleDiscriminator  # noqa: E402
from setminus.nn.cyclegan import (  # noqa: E402
    DigitDiscriminator,
    DigitGenerator,
    PatchDiscriminator,
    UNetGenerator,
)
from setminus.nn.passes import (  # noqa: E402
    Batches,
    adam,
    each,
    fast_precision,
    frozen,
    prepare,
    running_statistics_kept,
    sees_whole_batch,
)

NETWORKS = {
    "generator": (lambda: DigitGenerator(width=3), 16),
    "discriminator": (lambda: DigitDiscriminator(16, width=3, dropout=0.0), 16),
    "unet": (lambda: UNetGenerator(32, width=2), 32),
    "blend": (lambda: BlendingGenerator(32, width=2), 32),
    "scales": (lambda: ScaleDiscriminator(width=2), 32),
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


def test_prepared_networks_compute_the_same():
    plain = DigitGenerator(width=4)
    fast, images = prepare(copy.deepcopy(plain)), torch.randn(3, 3, 16, 16)
    assert fast.layers[3].weight.is_contiguous(memory_format=torch.channels_last)
    assert prepare(images).is_contiguous(memory_format=torch.channels_last)
    for one in (images, prepare(images)):
        torch.testing.assert_close(fast(one), plain(images), rtol=1e-4, atol=1e-5)


def test_fused_adam_takes_the_steps_of_adam():
    ours = torch.nn.Linear(5, 3)
    theirs = copy.deepcopy(ours)
    optimizers = (
        adam(ours.parameters(), 1e-2),
        torch.optim.Adam(theirs.parameters(), lr=1e-2, betas=(0.5, 0.999), foreach=False),
    )
    start = ours.weight.detach().clone()
    for _ in range(5):
        x = torch.randn(4, 5)
        for network, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            network(x).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-5, atol=1e-6)
    assert (ours.weight - start).abs().mean() > 1e-3
    assert not adam([torch.zeros(2, device="meta", requires_grad=True)], 1e-2).defaults["fused"]


@settings(deadline=None, max_examples=50)
@given(n=st.integers(1, 60), size=st.integers(1, 20), seed=st.integers(0, 9))
def test_an_epoch_deals_each_row_at_most_once(n, size, seed):
    batches = Batches(torch.arange(n), size=size, seed=seed)
    epoch = torch.cat([batches.rows(step) for step in range(len(batches))])
    assert len(epoch) == len(epoch.unique()) == len(batches) * min(size, n)
    assert n - len(epoch) < min(size, n)
    # the negative control: two epochs do deal rows twice
    two = torch.cat([batches.rows(step) for step in range(2 * len(batches))])
    assert len(two.unique()) < len(two)


@settings(deadline=None, max_examples=30)
@given(steps=st.permutations(range(12)))
def test_a_batch_does_not_depend_on_those_before(steps):
    batches = Batches(torch.arange(23), size=5, seed=1)
    for step in steps:
        assert torch.equal(batches.rows(step), Batches(torch.arange(23), size=5, seed=1).rows(step))


def test_seeds_and_epochs_give_other_orders():
    x = torch.arange(100)
    first, second = Batches(x, size=100, seed=0), Batches(x, size=100, seed=1)
    assert not torch.equal(first.rows(0), second.rows(0))
    assert not torch.equal(first.rows(0), first.rows(1))
    assert not torch.equal(first.rows(0), x)
    assert torch.equal(first.rows(0).sort().values, x)


def test_rows_are_drawn_in_proportion_to_their_weights():
    weights = torch.tensor([0.0, 1.0, 3.0])
    batches = Batches(torch.arange(3), size=3, seed=0, weights=weights)
    drawn = torch.cat([batches.rows(step) for step in range(2_000)])
    assert torch.bincount(drawn, minlength=3) / len(drawn) == pytest.approx([0, 0.25, 0.75], abs=0.02)
    assert torch.equal(batches.rows(7), Batches(torch.arange(3), size=3, seed=0, weights=weights).rows(7))
    with pytest.raises(ValueError, match="both given"):
        Batches(torch.arange(3), size=3, seed=0, weights=weights, balance_by=torch.arange(3))
    with pytest.raises(ValueError, match=r"\[2, 3\] rows"):
        Batches(torch.arange(3), size=3, seed=0, weights=weights[:2])


@pytest.mark.parametrize("world", [2, 3])
def test_shares_are_the_batch_of_one_process(world):
    batches = Batches(torch.arange(40), size=12, seed=2)
    for step in range(7):
        shares = [batches.rows(step, (rank, world)) for rank in range(world)]
        assert [len(share) for share in shares] == [12 // world] * world
        assert sorted(torch.cat(shares).tolist()) == sorted(batches.rows(step).tolist())
        assert sorted(torch.cat([shares[0]] * world).tolist()) != sorted(batches.rows(step).tolist())


def test_rows_of_all_tensors_belong_together():
    x = torch.arange(30)
    for step in range(9):
        first, second = Batches(x, x**2, size=7, seed=0).at(step)
        assert torch.equal(first**2, second)
        assert len(first) == 7


@settings(deadline=None, max_examples=50)
@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=6), size=st.integers(1, 20), seed=st.integers(0, 9))
def test_classes_fill_the_same_share_of_a_batch_however_rare_they_are(counts, size, seed):
    classes = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    batches = Batches(classes, size=size, seed=seed, balance_by=classes)
    for step in range(2 * len(batches)):
        (dealt,) = batches.at(step)
        assert len(dealt) == min(size, sum(counts))
        found = torch.bincount(dealt, minlength=len(counts))
        # a batch begins and ends within a round: one row more or less on either side
        assert found.max() - found.min() <= 2
    # the negative control: without it a batch has the classes as they are
    (whole,) = Batches(classes, size=sum(counts), seed=seed).at(0)
    assert torch.bincount(whole, minlength=len(counts)).tolist() == counts


@pytest.mark.parametrize("steps", [(0, 1, 2, 9, 10), (10, 2, 0, 9, 1)])
def test_a_balanced_batch_does_not_depend_on_those_before_either(steps):
    classes = torch.tensor([0] * 20 + [1] * 3)
    batches = Batches(torch.arange(23), size=4, seed=1, balance_by=classes)
    for step in steps:
        fresh = Batches(torch.arange(23), size=4, seed=1, balance_by=classes)
        assert torch.equal(batches.rows(step), fresh.rows(step))
    assert not torch.equal(batches.rows(0), batches.rows(len(batches)))


def test_rows_of_a_rare_class_take_turns():
    classes = torch.tensor([0] * 20 + [1] * 3)
    batches = Batches(torch.arange(23), size=4, seed=1, balance_by=classes)
    dealt = torch.cat([batches.rows(step) for step in range(len(batches))])
    rare, common = (torch.bincount(dealt, minlength=23)[classes == k] for k in (1, 0))
    assert sorted(rare.tolist()) == [3, 3, 4] and common.max() == 1


def test_a_small_set_is_one_batch():
    batches = Batches(torch.arange(3), size=8, seed=0)
    assert len(batches) == 1
    assert sorted(batches.at(5)[0].tolist()) == [0, 1, 2]
    assert [batches.epoch(step) for step in range(3)] == [0, 1, 2]


def test_draws_nothing_from_the_global_generator():
    before = torch.get_rng_state()
    Batches(torch.arange(9), size=2, seed=0).at(0)
    assert torch.equal(torch.get_rng_state(), before)


def test_errors():
    with pytest.raises(ValueError, match=r"tensors have \[3, 4\] rows: expected the same number in each"):
        Batches(torch.zeros(3), torch.zeros(4), size=2, seed=0)
    with pytest.raises(ValueError, match=r"tensors have \[3, 4\] rows"):
        Batches(torch.zeros(4), size=2, seed=0, balance_by=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"tensors have \[0\] rows"):
        Batches(torch.zeros(0), size=2, seed=0)
    with pytest.raises(ValueError, match=r"tensors have \[\] rows"):
        Batches(size=2, seed=0)
    with pytest.raises(ValueError, match="size is 0: expected the rows of a batch"):
        Batches(torch.zeros(3), size=0, seed=0)
    with pytest.raises(ValueError, match="a batch of 5 rows cannot be divided among 2 processes: take a multiple of 2"):
        Batches(torch.zeros(9), size=5, seed=0).rows(0, (0, 2))


@pytest.mark.parametrize("classes", [torch.zeros(4, 1, dtype=torch.int64), torch.full((4,), float("nan"))])
def test_classes_are_one_whole_number_for_each_row(classes):
    with pytest.raises(ValueError, match=r"balance_by has the shape \(4.*a whole number for each row"):
        Batches(torch.zeros(4), size=2, seed=0, balance_by=classes)
