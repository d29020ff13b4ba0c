"""The row of events: listeners read it at their own pace, it stays small, and what is missed is told."""

from __future__ import annotations

import json
import threading
from typing import Any

from nacre.base.ids import utc_now
from nacre.serve.events import MOST_EVENTS, Bus, Listener


def bus() -> Bus:
    return Bus(utc_now)


def told(listener: Listener) -> list[dict[str, Any]]:
    """All that it can take now."""
    return [json.loads(event) for event in listener.take()]


def numbers(listener: Listener) -> list[int]:
    return [event["n"] for event in told(listener) if event["kind"] == "tick"]


def tick(row: Bus, first: int, last: int) -> None:
    for n in range(first, last + 1):
        row.publish("tick", n=n)


def test_listener_receives_hello_and_later_events() -> None:
    row = bus()
    tick(row, 1, 3)
    listener = row.listen(lambda: None)
    assert [(item["kind"], item["seq"]) for item in told(listener)] == [("hello", 3)]
    tick(row, 4, 5)
    assert numbers(listener) == [4, 5]
    assert told(listener) == []


def test_slow_listener_is_informed_of_missed_events_and_continues() -> None:
    row = bus()
    slow, fast = row.listen(lambda: None), row.listen(lambda: None)
    for n in range(MOST_EVENTS + 5):
        tick(row, n, n)
        assert numbers(fast) == [n]
    found = told(slow)
    assert found[0]["kind"] == "missed"
    assert [item["n"] for item in found[1:]] == list(range(MOST_EVENTS - 1, MOST_EVENTS + 5))


def test_waiting_events_are_bounded() -> None:
    row = bus()
    slow = row.listen(lambda: None)
    tick(row, 1, 3 * MOST_EVENTS)
    assert len(told(slow)) <= MOST_EVENTS


def test_threads_receive_all_events_published_by_threads() -> None:
    row = bus()
    heard: dict[int, list[int]] = {}

    def listen(number: int) -> None:
        woken, seen = threading.Event(), heard.setdefault(number, [])
        listener = row.listen(woken.set)
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
