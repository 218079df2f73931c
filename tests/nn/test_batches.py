"""Batches are a function of seed and step; processes share them without overlap."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from setminus.nn.batches import Batches  # noqa: E402


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
