"""What a prompt points to, through the hook's answer, and how the rest is read."""

from __future__ import annotations

from itertools import count

import pytest

from nacre.context.build import answer
from nacre.context.hooks import read_state, write_state
from nacre.learn.ingest import ingest
from nacre.memories.decision import StoreRequest
from nacre.memories.store import store
from nacre.sessions.find import SessionRequest
from nacre.sessions.search import show
from nacre.values.context import HookCall, HookEvent, SessionState
from nacre.values.memory import Kind
from tests.app.conftest import World, asks, says

FOLDER = "/code/acme-ferry"
ASKED = "claude-code:5e55-0009"
TYPED = "cache the ferry timetable in Valkey for ninety seconds and flush it at midnight"
QUESTION = "how long does Valkey cache the ferry timetable, and when do we flush it?"
_NUMBERS = count()


def talk(world: World, *texts: str, session: str = "7f3a1c2d-0001") -> None:
    """Read a session in which the owner and the agent speak in turn."""
    roles = ("user", "assistant")
    world.transcript(
        session,
        *(
            says(roles[at % 2], text, uuid=f"u{next(_NUMBERS)}", session=session, cwd=FOLDER)
            for at, text in enumerate(texts)
        ),
    )
    ingest(world.context())


@pytest.fixture
def home(world: World) -> World:
    """A home without memories, in which one of two sessions is about a cache."""
    talk(world, "the berths need numbers", "They have numbers now.", session="0b57-0002")
    talk(
        world,
        "the ferry timetable is slow",
        "The ferry timetable is read from the disk each time.",
        TYPED,
        "The ferry timetable is cached in Valkey for ninety seconds, and a job will flush it at midnight.",
        "and the Valkey port of the ferry timetable?",
        "Valkey serves the ferry timetable on port 6390.",
    )
    assert not world.context().memories.last_row()
    return world


def told(
    world: World,
    prompt: str,
    *,
    session: str = ASKED,
    alone: bool = True,
    event: HookEvent = HookEvent.PROMPT,
) -> str:
    """What a hook delivers with a prompt."""
    call = HookCall("claude-code", event, session, FOLDER, prompt, alone=alone)
    given = answer(world.context(), call)
    write_state(world.home, session, given.state)
    return given.context.partition("\n\n")[2]


@pytest.mark.parametrize("alone", [False, True])
def test_question_points_to_the_turn_that_answers_it(home: World, *, alone: bool) -> None:
    write_state(home.home, ASKED, SessionState(started=1))
    pointer = told(home, QUESTION, alone=alone)
    assert f"- 2026-11-18, claude-code: “{TYPED}”" in pointer
    assert "memory_get 7f3a1c2d#2, or: nacre sessions show 7f3a1c2d#2" in pointer
    (ref,) = read_state(home.home, ASKED).given
    assert ref.startswith("claude-code:7f3a1c2d-0001#u")
    view = show(home.context(), SessionRequest(reference="7f3a1c2d#2", limit=1))
    assert [item.turn.text for item in view.turns] == [TYPED]
    assert told(home, f"{QUESTION} please", alone=alone) == ""
    assert QUESTION_IS_ANSWERED_BY_A_MEMORY in told(_with_memory(home), QUESTION, session="codex:1")


QUESTION_IS_ANSWERED_BY_A_MEMORY = "Valkey caches the ferry timetable for ninety seconds."


def _with_memory(home: World) -> World:
    new = StoreRequest(content=QUESTION_IS_ANSWERED_BY_A_MEMORY, project="acme-ferry")
    store(home.context(), new)
    return home


def test_pointer_precedes_memories_that_are_not_sure(home: World) -> None:
    words = "The ferry timetable is printed on yellow paper for the lighthouse and the two berths."
    store(home.context(), StoreRequest(content=words, project="acme-ferry"))
    write_state(home.home, ASKED, SessionState(started=1))
    assert "yellow paper" in told(home, "print the ferry timetable for the lighthouse")
    write_state(home.home, ASKED, SessionState(started=1))
    first = told(home, QUESTION)
    assert "memory_get 7f3a1c2d#2" in first
    assert "yellow paper" not in first


def test_first_prompt_of_a_session_gets_a_pointer_with_the_start(home: World) -> None:
    for ref, moment in (("codex:3", HookEvent.SESSION_START), ("codex:4", HookEvent.PROMPT)):
        assert "memory_get 7f3a1c2d#2" in told(home, QUESTION, session=ref, event=moment)


def test_later_questions_get_a_pointer_only_if_they_refer_back(home: World) -> None:
    assert told(home, "paint the funnel of the ferry red") == ""
    assert told(home, QUESTION) == ""
    again = "for how long did we let Valkey cache the ferry timetable, and when do we flush it?"
    assert "memory_get 7f3a1c2d#2" in told(home, again)


def test_pointer_precedes_guessed_facts(home: World) -> None:
    fact = "Keep in mind that Valkey can cache the ferry timetable and flush it."
    talk(home, fact, "I will.", session="9c1e-0003")
    assert home.context().memories.last_row()
    write_state(home.home, ASKED, SessionState(started=1))
    assert "Valkey can cache" in told(home, "what can Valkey cache and flush?")
    write_state(home.home, ASKED, SessionState(started=1))
    first = told(home, QUESTION, alone=False)
    assert "memory_get 7f3a1c2d#2" in first
    assert "Valkey can cache" not in first


@pytest.mark.parametrize(
    "prompt",
    [
        TYPED,
        "can you cache the ferry timetable in Valkey and flush it?",
        "which colour has the funnel of the ferry?",
        "how do we cache the tide tables of the lighthouse?",
    ],
)
def test_orders_and_unanswered_questions_get_no_pointer(home: World, prompt: str) -> None:
    assert told(home, prompt) == ""


def test_session_is_not_pointed_to_itself(home: World) -> None:
    assert told(home, QUESTION, session="claude-code:7f3a1c2d-0001") == ""


@pytest.mark.parametrize(
    "prompt",
    [
        "wie lange hatten wir den Fahrplan der Fähre im Cache, Valkey ferry timetable flush",
        "Valkey cache ferry timetable flush, remind me",
        "the Valkey cache of the ferry timetable: what did we flush",
        "Valkey ferry timetable cache 上次 flush",
    ],
)
def test_prompt_without_a_question_mark_can_refer_back(home: World, prompt: str) -> None:
    assert "memory_get 7f3a1c2d#" in told(home, prompt, alone=False)


@pytest.mark.parametrize(
    "words",
    [
        f'they wrote: "{TYPED}"',
        f"the ticket says {TYPED}",
        f"fix this: {TYPED}",
        f"> {TYPED}",
        f"From: Otto\nSubject: Ferry\n\n{TYPED}",
        f"`{TYPED}`",
        f"see https://otto.example/{TYPED.replace(' ', '-')} {TYPED}",
    ],
)
def test_words_that_might_be_pasted_are_not_shown(world: World, words: str) -> None:
    talk(world, words, "I see.", words.replace("and", "or"), "I see.", words, "Done.")
    told_words = told(world, QUESTION, alone=False)
    assert "memory_get" in told_words or not told_words
    assert "ninety" not in told_words


def test_chosen_option_is_not_shown_as_the_owners_words(world: World) -> None:
    session = "7f3a1c2d-0001"
    forms = [
        record
        for at in range(3)
        for record in asks(
            "Where?", TYPED, "elsewhere", answer=TYPED, uuid=f"f{at}", session=session
        )
    ]
    world.transcript(session, *({**record, "cwd": FOLDER} for record in forms))
    ingest(world.context())
    assert "ninety" not in told(world, QUESTION, alone=False)


def test_prompt_gets_at_most_three_memories_with_triggers(world: World) -> None:
    kept = [f"Reset the valve of ferry {at} before it is painted." for at in range(5)]
    for at, text in enumerate(kept):
        triggers = ("dry dock",) if at < 2 else ()
        new = StoreRequest(content=text, kind=Kind.LESSON, triggers=triggers, force=True)
        store(world.context(), new)
    shown = told(world, "in the dry dock: do we reset the valve of a ferry before it is painted?")
    assert sum(text in shown for text in kept) == 3
    assert kept[0] in shown
    assert kept[1] in shown


@pytest.mark.parametrize("stop", [". ", "。"])
def test_long_memory_starts_with_its_first_sentences(world: World, stop: str) -> None:
    rule = "Never paint the hull of the ferry in the rain"
    text = stop.join([rule, *(f"The layer of {year} came off again" for year in range(1900, 1990))])
    store(world.context(), StoreRequest(content=text, kind=Kind.PREFERENCE))
    shown = told(world, "paint the hull of the ferry")
    memory_id = world.context().memories.in_any_state(read_state(world.home, ASKED).given)[0].id
    assert rule in shown
    assert f"nacre show {memory_id[-8:]}" in shown
    assert "1989" not in shown
    assert len(shown) < 1_000
