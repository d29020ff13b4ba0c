"""A gateway that stops during its work answers each pending message once after a restart."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

import pytest

from gateway.stage import OWNERS, Stage


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("restarts")) as stage:
        yield stage


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("by", "code", "people"), [("SIGINT", 0, OWNERS[:3]), ("SIGKILL", -9, OWNERS[3:6])]
)
def test_interrupted_answer_is_sent_once_after_restart(
    place: Stage, by: str, code: int, people: Sequence[int]
) -> None:
    before = {user: len(place.answers(user)) for user in people}
    release = place.agent.hold(f"while {by}")
    gateway = place.start()
    for user in people:
        place.telegram.say(user, user, f"while {by} comes")
    place.agent.wait_for(lambda: place.agent.count(f"while {by}") == len(people))
    assert place.stop(gateway, signal.Signals[by]) == code
    late = people[0]
    place.telegram.say(late, late, f"after {by}")
    release()
    again = place.start()
    for user in people:
        place.answers(user, before[user] + (2 if user == late else 1))
    assert place.agent.count(f"after {by}") == 1
    place.stop(again)
    assert place.agent.count(f"while {by}") == 2 * len(people)
    assert "Traceback" not in place.log
    for user in people:
        texts = [item["content"] for item in place.messages(user) if item["role"] == "user"]
        assert texts.count(f"while {by} comes") == 1
        answers = place.answers(user)[before[user] :]
        assert len(set(answers)) == len(answers)
        assert all(by in item for item in answers)


def test_repeated_stops_lose_no_message(place: Stage) -> None:
    user = OWNERS[6]
    before = len(place.answers(user))
    release = place.agent.hold("patience please")
    place.telegram.say(user, user, "patience please")
    for times in range(1, 5):
        gateway = place.start()
        place.agent.wait_for(lambda times=times: place.agent.count("patience please") == times)
        assert place.stop(gateway) == 0
    release()
    gateway = place.start()
    assert "patience please" in place.answers(user, before + 1)[-1]
    place.stop(gateway)
