"""The outcomes of a session's context are judged and recorded."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.care.health import status
from nacre.context.build import build
from nacre.context.effects import (
    Effects,
    judge,
    judge_pointer,
    pointers_are_off,
    turn_pointers_on,
)
from nacre.context.hooks import read_state, write_state
from nacre.memories.history import look_at
from nacre.memories.requests import GetRequest
from nacre.memories.usage import session_name
from nacre.setup.chores import Chore, do_waiting, put
from nacre.values.context import ContextRequest
from nacre.values.memory import Kind
from nacre.values.session import Action, Speaker, ToolCall, Turn
from tests.app.conftest import World, calls, says

FOLDER = "/code/acme-billing"
SESSION = "claude-code:5e55-0001"
LINT = "Use ruff for linting, never flake8."
CHECK = "From now on run `make check --all` before you push."
FACT = "The ledger of the harbour closes at 17:30 on Fridays."


def run_turn(command: str) -> Turn:
    return Turn("c", Speaker.AGENT, "", tool_calls=(ToolCall("Bash", command, "ok", Action.RUN),))


def edit_turn(path: str, text: str = "") -> Turn:
    call = ToolCall("Edit", f"{path}\n{text}", "ok", Action.EDIT, (path,))
    return Turn("e", Speaker.AGENT, "", tool_calls=(call,))


def text_turn(text: str, speaker: Speaker = Speaker.AGENT) -> Turn:
    return Turn("s", speaker, text)


@pytest.mark.parametrize(
    ("kind", "text", "turns", "outcome"),
    [
        (Kind.PREFERENCE, LINT, [run_turn("ruff check src")], "followed"),
        (Kind.PREFERENCE, LINT, [run_turn("flake8 src")], "broken"),
        (Kind.PREFERENCE, LINT, [run_turn("grep flake8 setup.cfg")], "untouched"),
        (Kind.PREFERENCE, LINT, [run_turn("git commit -m 'drop flake8'")], "untouched"),
        (
            Kind.PREFERENCE,
            LINT,
            [text_turn("Done."), text_turn("again: ruff, not flake8", Speaker.OWNER)],
            "broken",
        ),
        (Kind.PREFERENCE, CHECK, [run_turn("make check --all && git push")], "followed"),
        (Kind.PREFERENCE, CHECK, [run_turn("make test")], "untouched"),
        (Kind.PREFERENCE, "Never push to main.", [run_turn("git push origin main")], "broken"),
        (Kind.PREFERENCE, "Never push to main.", [run_turn("git push origin fix")], "untouched"),
        (
            Kind.PREFERENCE,
            "Never push to main.",
            [text_turn("I did not push to main.")],
            "followed",
        ),
        (Kind.PREFERENCE, "Never deploy without a dump.", [run_turn("make deploy")], "untouched"),
        (Kind.LESSON, "Never edit files in gen/ by hand.", [edit_turn("gen/api.go")], "broken"),
        (Kind.LESSON, "Never edit files in gen/ by hand.", [edit_turn("src/api.go")], "untouched"),
        (
            Kind.LESSON,
            "Always give `kubectl` the option --context.",
            [run_turn("kubectl apply -f a")],
            "broken",
        ),
        (
            Kind.FACT,
            FACT,
            [text_turn("On Fridays the harbour closes its ledger at 17:30.")],
            "followed",
        ),
        (Kind.FACT, FACT, [text_turn("The harbour is open.")], "untouched"),
        (
            Kind.TODO,
            "Write the test of the ledger export.",
            [edit_turn("tests/ledger_export.py")],
            "followed",
        ),
    ],
)
def test_items_are_judged_by_calls_and_words(
    kind: Kind, text: str, turns: list[Turn], outcome: str
) -> None:
    assert judge(kind, text, turns) == outcome


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        ([run_turn("nacre sessions show 5e55-00077 --turn u77")], "followed"),
        (
            [Turn("m", Speaker.AGENT, "", tool_calls=(ToolCall("memory_search", "berth pilots"),))],
            "followed",
        ),
        (
            [text_turn("The pilots count the berths from the sea, so I number them that way.")],
            "followed",
        ),
        ([text_turn("I numbered them."), run_turn("make test")], "untouched"),
    ],
)
def test_pointers_are_followed_if_opened_searched_or_used(turns: list[Turn], outcome: str) -> None:
    text = "Pilots count the berths from the sea. Thanks!"
    assert judge_pointer("claude-code:5e55-00077#u77", text, turns) == outcome


def end_session(world: World, *records: dict[str, Any], references: tuple[str, ...] = ()) -> None:
    """End a session that received its start context and further items."""
    block = build(world.context(), ContextRequest(folder=FOLDER, session=SESSION))
    assert block.state
    write_state(world.home, SESSION, block.state.with_given(references))
    transcript = world.transcript("5e55-0001", *records)
    put(
        world.home,
        Chore("session-end", SESSION, str(transcript), FOLDER, "", world.clock().timestamp()),
    )
    do_waiting(world.context())


def test_session_end_records_outcomes_for_the_memorys_page_and_the_status(world: World) -> None:
    with world.open() as memory:
        lint = memory.store(LINT, kind="preference", project="acme-billing").memory_id
        check = memory.store(CHECK, kind="preference", project="acme-billing").memory_id
    world.transcript(
        "5e55-0000",
        says("user", "Count the berths from the sea.", uuid="u7", session="5e55-0000", cwd=FOLDER),
    )
    with world.open() as memory:
        memory.ingest()
    end_session(
        world,
        says("user", "Please clean up.", uuid="u1", session="5e55-0001", cwd=FOLDER),
        *calls("Bash", "ok", uuid="u2", session="5e55-0001", command="flake8 src"),
        *calls("Bash", "ok", uuid="u3", session="5e55-0001", command="make check --all"),
        references=("claude-code:5e55-0000#u7", "claude-code:5e55-0000#u8#"),
    )
    assert set(read_state(world.home, SESSION).given) >= {lint, check}
    for reference, followed, broken in ((lint, 0, 1), (check, 1, 0)):
        usage = look_at(world.context(), GetRequest(reference=reference, update=False)).usage
        assert (usage.shown, usage.followed, usage.broken) == (1, followed, broken)
    assert status(world.settings()).effects == Effects(2, 1, 1, pointers=1)
    world.rebuild()
    assert status(world.settings()).effects.shown == 2
    with world.open() as memory:
        memory.forget(memory.plan_forgetting(memories=[lint]))
    assert status(world.settings()).effects.shown == 1


def test_ignored_pointers_are_off_until_the_owner_turns_them_on(world: World) -> None:
    world.transcript(
        "5e55-0001",
        says("user", "Hello there, harbour.", uuid="u1", session="5e55-0001", cwd=FOLDER),
    )
    with world.open() as memory:
        memory.ingest()
    home = world.context()
    for number in range(21):
        assert not pointers_are_off(home, "acme-billing") or number == 20
        home.usage.record_effect(
            f"pointer {number}",
            session_name("s"),
            "untouched",
            home.now_ms() + number,
            project="acme-billing",
        )
    assert pointers_are_off(home, "acme-billing")
    assert not pointers_are_off(home, None)
    assert status(world.settings()).effects.off == ("acme-billing",)
    assert turn_pointers_on(home, FOLDER) == "acme-billing"
    assert status(world.settings()).effects == Effects()
