"""Work reports how far it is to whoever listens, and to nobody else."""

import threading

import pytest

from setminus.progress import listen, seconds_by_name, tracked


def heard(work):
    events = []
    with listen(events.append):
        work()
    return events


def test_events_in_their_order_with_counts_and_depth():
    def work():
        with tracked("outer", total=2, unit="parts") as outer:
            with tracked("inner"):
                pass
            outer.advance(2, "loss 0.5")

    events = heard(work)
    assert [(event.kind, event.name, event.depth, event.done) for event in events] == [
        ("started", "outer", 0, 0),
        ("started", "inner", 1, 0),
        ("finished", "inner", 1, 0),
        ("advanced", "outer", 0, 2),
        ("finished", "outer", 0, 2),
    ]
    assert (events[3].total, events[3].unit, events[3].detail) == (2, "parts", "loss 0.5")
    assert events[4].seconds >= events[2].seconds >= 0


def test_an_exception_fails_the_work_and_what_it_is_part_of():
    def work():
        with pytest.raises(KeyboardInterrupt), tracked("outer"), tracked("inner"):
            raise KeyboardInterrupt
        with tracked("next"):
            pass

    ends = [(event.kind, event.name, event.depth) for event in heard(work) if event.kind != "started"]
    assert ends == [("failed", "inner", 1), ("failed", "outer", 0), ("finished", "next", 0)]


def test_nobody_hears_before_after_or_in_another_thread():
    def elsewhere():
        with tracked("elsewhere"):
            pass

    elsewhere()
    thread = threading.Thread(target=elsewhere)

    def work():
        thread.start()
        thread.join()

    assert heard(work) == []


def test_seconds_of_the_outermost_work_that_finished():
    with tracked("around"), seconds_by_name() as seconds:
        with tracked("read"), tracked("decode"):
            pass
        with pytest.raises(ValueError), tracked("fit"):
            raise ValueError
    assert list(seconds) == ["read"]
    assert seconds["read"] > 0


def test_listeners_add_up():
    first, second = [], []
    with listen(first.append), listen(second.append), tracked("work"):
        pass
    assert first == second != []
