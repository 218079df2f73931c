"""The timings measure what they say, on arrays small enough for a test."""

import time

import pytest

from benchmarks.speed import AGREEMENT, Ratio, formula, in_turns, table, without_numba
from setminus.core import orthogonalize as one_pass


@pytest.mark.parametrize("dtype", AGREEMENT)
def test_both_ways_agree_with_extended_precision(dtype):
    found = formula(rows=2000, classes=3, repeats=1, dtype=dtype)
    assert [0 < ratio.difference <= AGREEMENT[dtype] for ratio in found] == [True] * 4


def test_numba_comes_back():
    before = one_pass._compiled
    with without_numba():
        assert one_pass._compiled(2, False, True) is None
    assert one_pass._compiled is before


def test_in_turns_gives_the_quickest_in_order():
    slow, quick = in_turns(lambda: time.sleep(0.01), lambda: None, repeats=3)
    assert quick < 0.01 <= slow


@pytest.mark.parametrize(
    ("ratio", "met"),
    [
        (Ratio("quick", 1.0, 1.0, bar=1.5), True),
        (Ratio("slow", 2.0, 1.0, bar=1.5), False),
        (Ratio("wrong", 1.0, 1.0, bar=1.5, difference=1e-6), False),
    ],
)
def test_a_ratio_is_met_only_when_quick_and_right(ratio, met):
    assert ratio.met is met
    assert table([ratio]).splitlines()[-1].endswith("| yes |" if met else "| no |")
