"""Calls that are cut off: whoever asked is told so, whatever the call comes to meanwhile."""

from __future__ import annotations

from threading import Event, Thread

from nacre.llm.failures import Calls, TruncatedAnswerError


def test_call_ending_during_cancellation_counts_as_cancelled() -> None:
    for _ in range(100):
        calls, began, go = Calls(), Event(), Event()
        told: list[object] = []

        def work(began: Event = began, go: Event = go) -> int:
            began.set()
            go.wait()
            return 1

        def ask(calls: Calls = calls, told: list[object] = told) -> None:
            try:
                told.append(calls.run(work, 30.0))
            except TruncatedAnswerError as error:
                told.append(type(error))

        asking = Thread(target=ask)
        asking.start()
        began.wait()
        calls.close()
        go.set()
        asking.join()
        assert told == [TruncatedAnswerError]
