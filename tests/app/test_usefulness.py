"""Whether memory helps: sessions that were told something beside those held out; never more than the figures say."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

import nacre
from nacre.care.usefulness import Aspect, Comparison, Finding, Usefulness, usefulness
from nacre.context.hooks import read_draw
from nacre.values.context import HELD_OUT
from tests.app.conftest import World, says

TASK = "Please put lamp {} at berth {} on the new timetable."
WRONG = "No, that is wrong: lamp {} at berth {} is lit at dusk."
DONE = "Good, now put lamp {} at berth {} into the log of the keeper."
AGAIN = "No, the lamps of this harbour are lit at dusk by the keeper."

Work = Callable[[bool, Random], list[tuple[str, Any]]]


def about(text: str, random: Random) -> tuple[str, str]:
    return "owner", text.format(random.randrange(10**6), random.randrange(10**6))


def steps_of(told: bool, random: Random) -> list[tuple[str, Any]]:
    """What is said and done in a session that memory makes no difference to."""
    calls = [("call", random.random() < 0.3) for _ in range(random.randint(1, 4))]
    later = [about(random.choice([WRONG, DONE, DONE]), random) for _ in range(random.randint(1, 4))]
    return [about(TASK, random), *calls, *later]


def worse_without_memory(told: bool, random: Random) -> list[tuple[str, Any]]:
    """The same, and more of all that is to be less where nothing was told."""
    more = [] if told else [about(WRONG, random), ("owner", AGAIN), ("call", True), ("call", True)]
    return [*steps_of(told, random), *more]


@pytest.fixture
def held(world: World) -> World:
    """A home with something to tell, half of whose sessions are held out from now on, the same ones each time."""
    world.home.mkdir()
    (world.home / "hold-out.json").write_text(json.dumps({"salt": "5a17", "shares": []}))
    world.environ |= {
        "NACRE_USEFULNESS_HOLD_OUT": "0.5",
        "NACRE_EXTRACTION_ENABLED": "false",
        "NACRE_ARCHIVE_ENABLED": "false",
        "NACRE_EMBEDDING_MODEL": "none",
    }
    with world.open() as memory:
        memory.store(
            "The lamps of the harbour are lit at dusk.", kind=nacre.Kind.DECISION, importance=9
        )
    assert asked(world).finding_of(Aspect.MESSAGES) is None
    return world


class Asked:
    """What nacre admin usefulness answers."""

    def __init__(self, found: Usefulness) -> None:
        self.found = found

    def __getitem__(self, aspect: Aspect) -> Comparison:
        return next(one for one in self.found.comparisons if one.aspect is aspect)

    def finding_of(self, aspect: Aspect) -> Finding | None:
        return self[aspect].finding if self.found.comparisons and self.found.sessions_told else None


def asked(world: World) -> Asked:
    return Asked(usefulness(world.context()))


def write(world: World, session: str, steps: list[tuple[str, Any]], began: datetime) -> None:
    """A Claude Code transcript."""
    records, at = [], began
    for number, (who, what) in enumerate(steps):
        at += timedelta(seconds=20)
        stamp, uuid = f"{at:%Y-%m-%dT%H:%M:%S}.000Z", f"{session}-{number}"
        if who == "owner":
            records += [
                says("user", what, uuid=uuid, session=session, at=stamp),
                says("assistant", "I see.", uuid=f"{uuid}-a", session=session, at=stamp),
            ]
            continue
        call = {
            "type": "tool_use",
            "id": f"t-{uuid}",
            "name": "Bash",
            "input": {"command": f"light --all {number}"},
        }
        output = {
            "type": "tool_result",
            "tool_use_id": f"t-{uuid}",
            "content": "Exit code 2\nno oil",
            "is_error": what,
        }
        made = says("assistant", "", uuid=uuid, session=session, at=stamp)
        made["message"]["content"] = [call]
        came = says("user", "", uuid=f"{uuid}-r", session=session, at=stamp)
        came["message"]["content"] = [output]
        records += [made, came]
    world.transcript(session, *records)


def work(world: World, sessions: int, steps: Work = steps_of, *, first: int = 0) -> dict[str, bool]:
    """Work in so many sessions, an hour apart; returns which of them were told something as they began."""
    random, told = Random(7), {}  # noqa: S311 - the same each time
    for number in range(first, first + sessions):
        world.clock.now += timedelta(hours=2)
        name = f"5e55-{number:04d}"
        with world.open() as memory:
            block = memory.context(session=f"claude-code:{name}", folder="/code/acme-billing")
            memory.context_told(f"claude-code:{name}", block)
        told[name] = bool(block.text)
        assert told[name] is (block.gate != HELD_OUT)
        write(world, name, steps(told[name], random), world.clock.now)
    world.clock.now += timedelta(hours=2)
    with world.open() as memory:
        memory.ingest()
    return told


def test_difference_is_reported_with_an_interval_excluding_zero(held: World) -> None:
    told = work(held, 160, worse_without_memory)
    found = asked(held)
    assert (found.found.sessions_told, found.found.sessions_held_out) == (
        sum(told.values()),
        len(told) - sum(told.values()),
    )
    for aspect in Aspect:
        assert found[aspect].finding is Finding.LESS_WITH_MEMORY, aspect
        low, difference, high = found[aspect].low, found[aspect].difference, found[aspect].high
        assert low is not None
        assert difference is not None
        assert high is not None
        assert 0 < low < difference < high
    messages = found[Aspect.MESSAGES]
    assert messages.told is not None
    assert messages.held_out == pytest.approx(messages.told + 2, abs=0.6)


def test_no_difference_gives_an_interval_containing_zero(held: World) -> None:
    work(held, 160)
    found = asked(held)
    for aspect in (Aspect.MESSAGES, Aspect.CORRECTIONS, Aspect.FAILED_CALLS):
        low, high = found[aspect].low, found[aspect].high
        assert low is not None
        assert high is not None
        assert low < 0 < high
        assert found[aspect].finding is Finding.UNCLEAR
    assert usefulness(held.context()) == found.found


def test_too_few_sessions_give_no_finding(held: World) -> None:
    work(held, 40, worse_without_memory)
    found = asked(held)
    assert {one.finding for one in found.found.comparisons} == {Finding.TOO_FEW}
    assert {
        (one.told, one.held_out, one.difference, one.low) for one in found.found.comparisons
    } == {(None,) * 4}
    assert found.found.sessions_told + found.found.sessions_held_out == 40
    assert found.found.needed == 128


def test_rare_events_give_no_finding(held: World) -> None:
    work(held, 160)
    assert asked(held)[Aspect.REPEATED] == Comparison(Aspect.REPEATED, Finding.TOO_FEW, 80, 80)


def test_sessions_before_the_hold_out_are_in_neither_group(world: World, held: World) -> None:
    held.environ.pop("NACRE_USEFULNESS_HOLD_OUT")
    asked(held)  # off
    assert all(work(held, 6).values())
    held.environ["NACRE_USEFULNESS_HOLD_OUT"] = "0.5"
    held.clock.now += timedelta(hours=2)
    asked(held)
    told = work(held, 10, first=100)
    assert not all(told.values())
    found = asked(held).found
    assert found.sessions_told + found.sessions_held_out == 10
    assert found.left_out == 0


def test_session_started_before_the_hold_out_keeps_its_context(held: World) -> None:
    held.environ["NACRE_USEFULNESS_HOLD_OUT"] = "0"
    asked(held)
    names = [f"claude-code:5e55-{number:04d}" for number in range(12)]

    def told(occasion: str) -> list[bool]:
        answers = []
        for name in names:
            with held.open() as memory:
                block = memory.context(moment="start", session=name, occasion=occasion)
                memory.context_told(name, block)
                answers.append(block.gate != HELD_OUT)
        return answers

    assert all(told("startup"))
    held.environ["NACRE_USEFULNESS_HOLD_OUT"] = "0.5"
    held.clock.now += timedelta(hours=1)
    asked(held)
    assert all(told("resume"))
    names = [f"claude-code:5e55-{number:04d}" for number in range(100, 112)]
    assert 0 < sum(told("startup")) < 12


def test_session_spanning_a_share_change_is_not_compared(held: World) -> None:
    work(held, 10)
    held.clock.now -= timedelta(hours=1, minutes=59, seconds=30)  # while the last one goes on
    held.environ["NACRE_USEFULNESS_HOLD_OUT"] = "0"
    asked(held)
    held.clock.now += timedelta(hours=3)
    found = asked(held).found
    assert found.share == 0
    assert found.compared == 0.5
    assert (found.sessions_told + found.sessions_held_out, found.left_out) == (9, 1)


def test_ongoing_and_silent_sessions_are_not_compared(
    held: World,
) -> None:
    work(held, 3)
    write(held, "5e55-0900", [("owner", TASK)], held.clock.now)
    write(held, "5e55-0901", [("call", False)], held.clock.now - timedelta(hours=5))
    with held.open() as memory:
        memory.ingest()
    held.clock.now += timedelta(minutes=30)
    found = asked(held).found
    assert (found.sessions_told + found.sessions_held_out, found.left_out) == (3, 2)


def test_repeated_message_counts_only_in_later_sessions_of_the_project(
    held: World,
) -> None:
    def again(told: bool, random: Random) -> list[tuple[str, Any]]:
        return [("owner", AGAIN), ("owner", "Light them."), ("owner", AGAIN)]

    work(held, 140, again)
    found = asked(held)[Aspect.REPEATED]
    assert found.told is not None
    assert found.held_out is not None
    assert found.told == pytest.approx(2 / 3, abs=0.02)
    assert found.held_out == pytest.approx(2 / 3, abs=0.02)


def test_rebuild_keeps_the_held_out_sessions(held: World) -> None:
    work(held, 20)
    before, draw = asked(held).found, read_draw(held.home)
    held.rebuild()
    assert asked(held).found == before
    assert read_draw(held.home) == draw


def test_held_out_sessions_differ_between_homes(held: World, tmp_path: Any) -> None:
    other = World(tmp_path / "other", environ=dict(held.environ))
    other.user_home.mkdir()
    asked(other)
    names = [f"claude-code:5e55-{number:04d}" for number in range(200)]
    at = int(held.clock().timestamp() * 1000) + 1
    mine, theirs = (
        {name for name in names if read_draw(one.home).takes(name, at)} for one in (held, other)
    )
    assert 60 < len(mine) < 140
    assert 60 < len(theirs) < 140
    assert 60 < len(mine ^ theirs) < 140


def test_held_out_session_does_not_consume_a_handoff(held: World) -> None:
    work(held, 1)
    at = int(held.clock().timestamp() * 1000)
    names = [f"claude-code:5e55-{number:04d}" for number in range(500, 520)]
    untold = next(name for name in names if read_draw(held.home).takes(name, at))
    others = [name for name in names if not read_draw(held.home).takes(name, at)]
    with held.open() as memory:
        memory.hand_over(
            "The lens is polished; the drain is next.", session="claude-code:5e55-0000"
        )

        def told(name: str) -> str:
            block = memory.context(moment="start", session=name, folder="/code/acme-billing")
            memory.context_told(name, block)
            return block.text

        assert told(untold) == ""
        assert "the drain is next" in told(others[0])
        assert "the drain is next" not in told(others[1])
