"""The row of events: listeners read it at their own pace, it stays small, and what is missed is told."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from nacre.base.ids import utc_now
from nacre.serve.events import MOST_BYTES, MOST_EVENTS, Bus, Listener


def bus(**bounds: int) -> Bus:
    return Bus(utc_now, **bounds)


def told(listener: Listener) -> list[dict[str, Any]]:
    """All that it can take now."""
    found: list[dict[str, Any]] = []
    while taken := listener.take():
        found += [json.loads(event.data) for event in taken]
    return found


def numbers(listener: Listener) -> list[int]:
    return [event["n"] for event in told(listener) if event["kind"] == "tick"]


def tick(row: Bus, first: int, last: int) -> None:
    for n in range(first, last + 1):
        row.publish("tick", n=n)


def test_listener_receives_hello_and_later_events() -> None:
    row = bus()
    tick(row, 1, 3)
    listener = row.listen(lambda: None)
    assert [(one["kind"], one["seq"], one["epoch"]) for one in told(listener)] == [
        ("hello", 3, row.epoch)
    ]
    tick(row, 4, 5)
    assert numbers(listener) == [4, 5]
    assert told(listener) == []


def test_returning_listener_receives_exactly_the_missed_events() -> None:
    row = bus()
    tick(row, 1, 250)
    back = row.listen(lambda: None, after=f"{row.epoch}-40")
    found = told(back)
    assert (found[0]["kind"], found[0]["seq"]) == ("hello", 40)
    assert [one["n"] for one in found[1:]] == list(range(41, 251))
    assert [one["seq"] for one in found[1:]] == list(range(41, 251))


def test_slow_listener_is_informed_of_missed_events_and_continues() -> None:
    row = bus(most=10)
    slow, fast = row.listen(lambda: None), row.listen(lambda: None)
    told(slow)
    for n in range(1, 26):
        tick(row, n, n)
        assert numbers(fast) == [n]
    found = told(slow)
    assert [(one["from"], one["to"]) for one in found if one["kind"] == "missed"] == [(1, 15)]
    assert [one["n"] for one in found[1:]] == list(range(16, 26))


@pytest.mark.parametrize(
    "after", ["00000000-3", "{epoch}-99", "{epoch}-", "-", "nonsense", "{epoch}-³", "{epoch}--1"]
)
def test_listener_from_another_epoch_receives_missed(after: str) -> None:
    row = bus()
    tick(row, 1, 3)
    listener = row.listen(lambda: None, after=after.format(epoch=row.epoch))
    assert [one["kind"] for one in told(listener)] == ["hello", "missed"]
    tick(row, 4, 4)
    assert numbers(listener) == [4]


def test_listener_returning_after_a_gap_in_checks_receives_missed() -> None:
    row = bus()
    tick(row, 1, 3)
    stays = row.listen(lambda: None)
    told(stays)
    row.forget()
    assert [one["kind"] for one in told(stays)] == ["missed"]
    assert [one["kind"] for one in told(row.listen(lambda: None, after=f"{row.epoch}-3"))] == [
        "hello",
        "missed",
    ]
    assert [one["kind"] for one in told(row.listen(lambda: None))] == ["hello"]


def test_stored_events_are_bounded() -> None:
    row = bus()
    slow = row.listen(lambda: None)
    for n in range(3 * MOST_EVENTS):
        row.publish("tick", n=n)
    assert len(numbers(slow)) == MOST_EVENTS
    for n in range(200):
        row.publish("tick", n=n, text="x" * 100_000)
    assert len(numbers(slow)) * 100_000 <= MOST_BYTES


def test_threads_receive_all_events_published_by_threads() -> None:
    row = bus()
    heard: dict[int, list[int]] = {}

    def listen(number: int) -> None:
        woken, seen = threading.Event(), heard.setdefault(number, [])
        listener = row.listen(woken.set, after=f"{row.epoch}-0")
        while len(seen) < 400 and woken.wait(20):
            woken.clear()
            seen += numbers(listener)
        listener.close()

    threads = [threading.Thread(target=listen, args=(number,)) for number in range(20)]
    threads += [
        threading.Thread(target=tick, args=(row, first, first + 99)) for first in (0, 100, 200, 300)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(sorted(seen) == list(range(400)) for seen in heard.values())
    assert len({tuple(seen) for seen in heard.values()}) == 1
    assert row.listeners == 0
