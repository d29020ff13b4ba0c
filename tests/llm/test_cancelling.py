"""The caller of a cancelled model call learns of the cancellation whatever the call returns later."""

from __future__ import annotations

from threading import Event, Thread

from nacre.llm.failures import Calls, TruncatedAnswerError


def test_call_ending_during_cancellation_counts_as_cancelled() -> None:
    for _ in range(100):
        calls, began, go = Calls(), Event(), Event()
        outcomes: list[object] = []

        def work(began: Event = began, go: Event = go) -> int:
            began.set()
            go.wait()
            return 1

        def ask(calls: Calls = calls, outcomes: list[object] = outcomes) -> None:
            try:
                outcomes.append(calls.run(work, 30.0))
            except TruncatedAnswerError as error:
                outcomes.append(type(error))

        asking = Thread(target=ask)
        asking.start()
        began.wait()
        calls.close()
        go.set()
        asking.join()
        assert outcomes == [TruncatedAnswerError]
