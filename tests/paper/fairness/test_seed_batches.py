"""Batches of many seeds are those of each seed alone."""

import pytest
import torch
from setminus_paper.fairness.seed_batches import SeedBatches


def test_an_epoch_is_every_row_of_the_seed_once():
    rows = torch.tensor([[0, 1, 2, 3, 4, 5], [9, 8, 7, 6, 5, 4]])
    batches = SeedBatches(torch.arange(10), rows=rows, size=2, seeds=(0, 1))
    for epoch in range(2):
        seen = torch.cat([batches.at(3 * epoch + step)[0] for step in range(3)], dim=1)
        assert torch.equal(seen.sort().values, rows.sort().values)


def test_a_last_part_is_kept_unless_it_is_tiny():
    def sizes(n):
        batches = SeedBatches(torch.arange(n), rows=torch.arange(n)[None], size=8, seeds=(0,))
        return [batches.at(step)[0].shape[1] for step in range(len(batches))]

    assert sizes(20) == [8, 8, 4]
    assert sizes(19) == [8, 8]


def test_a_seed_meets_its_rows_in_the_same_order_whichever_others_are_there():
    rows = torch.arange(40).reshape(2, 20)
    together = SeedBatches(torch.arange(40), rows=rows, size=4, seeds=(3, 5))
    alone = SeedBatches(torch.arange(40), rows=rows[1:], size=4, seeds=(5,))
    other = SeedBatches(torch.arange(40), rows=rows[1:], size=4, seeds=(6,))
    assert torch.equal(together.at(7)[0][1], alone.at(7)[0][0])
    assert not torch.equal(together.at(7)[0][1], other.at(7)[0][0])


def test_processes_share_a_batch():
    batches = SeedBatches(torch.arange(8), rows=torch.arange(8)[None], size=4, seeds=(0,))
    shares = torch.cat([batches.at(1, (rank, 2))[0] for rank in range(2)], dim=1)
    assert torch.equal(shares.sort().values, batches.at(1)[0].sort().values)
    with pytest.raises(ValueError, match="4 rows cannot be dealt to 3 processes"):
        batches.at(0, (0, 3))
