"""Tasks in several processes: all that they give arrives, and one that dies does not take the others along."""

import logging
import os
from functools import partial
from multiprocessing import active_children

from setminus_paper.workers import Failed, spread


def test_every_item_arrives_in_the_order_of_its_task():
    # a function of the standard library: other processes find it
    found = [*spread(range, [3, 0, 2, 1], 2)]
    by_task = {place: [item for at, item in found if at == place] for place in range(4)}
    assert by_task == {0: [0, 1, 2], 1: [], 2: [0, 1], 3: [0]}


def test_other_processes_log_only_what_is_wrong():
    disabled = "__import__('logging').root.manager.disable"
    assert {level for _, level in spread(partial(map, eval), [[disabled], [disabled]], 2)} == {logging.INFO}
    assert logging.root.manager.disable < logging.INFO


def test_a_process_that_ends_is_replaced():
    found = dict(spread(os._exit, [7, 8, 9], 2))
    assert {place: outcome.error for place, outcome in found.items()} == {
        place: f"its process ended with exit code {7 + place}" for place in range(3)
    }


def test_a_task_that_raises_is_told_from_one_that_gives():
    ((place, outcome), *rest) = spread(partial(map, int), [["x"], ["1", "2"]], 1)
    assert (place, rest) == (0, [(1, 1), (1, 2)])
    assert isinstance(outcome, Failed)
    assert "ValueError: invalid literal" in outcome.error
    assert "Traceback" in outcome.trace


def test_processes_are_ended_with_the_generator():
    # other libraries keep processes of their own
    others = {*active_children()}
    outcomes = spread(range, [10**6, 10**6], 2)
    next(outcomes)
    assert len({*active_children()} - others) == 2
    outcomes.close()
    assert {*active_children()} <= others
