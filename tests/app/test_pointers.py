"""A prompt that refers to an earlier session gets a pointer to the turn that answers it."""

from __future__ import annotations

from itertools import count

import pytest

from nacre.context.build import answer
from nacre.context.hooks import read_state, write_state
from nacre.learn.ingest import ingest
from nacre.memories.requests import StoreRequest
from nacre.memories.store import store
from nacre.sessions.find import SessionRequest
from nacre.sessions.search import show
from nacre.values.context import HookCall, HookEvent, SessionState
from nacre.values.memory import Kind
from tests.app.conftest import World, asks, says

FOLDER = "/code/acme-ferry"
SESSION = "claude-code:5e55-0009"
INSTRUCTION = "cache the ferry timetable in Valkey for ninety seconds and flush it at midnight"
QUESTION = "how long does Valkey cache the ferry timetable, and when do we flush it?"
_NUMBERS = count()


def talk(world: World, *texts: str, session: str = "7f3a1c2d-0001") -> None:
    """Ingest a session with alternating turns of the owner and the agent."""
    roles = ("user", "assistant")
    world.transcript(
        session,
        *(
            says(roles[index % 2], text, uuid=f"u{next(_NUMBERS)}", session=session, cwd=FOLDER)
            for index, text in enumerate(texts)
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
        INSTRUCTION,
        "The ferry timetable is cached in Valkey for ninety seconds, and a job will flush it at midnight.",
        "and the Valkey port of the ferry timetable?",
        "Valkey serves the ferry timetable on port 6390.",
    )
    assert not world.context().memories.last_row()
    return world


def hook_context(
    world: World,
    prompt: str,
    *,
    session: str = SESSION,
    alone: bool = True,
    event: HookEvent = HookEvent.PROMPT,
) -> str:
    """Return the context that the hook adds to a prompt."""
    call = HookCall("claude-code", event, session, FOLDER, prompt, alone=alone)
    response = answer(world.context(), call)
    write_state(world.home, session, response.state)
    return response.context.partition("\n\n")[2]


def test_earlier_question_points_to_its_answer(world: World) -> None:
    talk(world, "the berths need numbers", "They have numbers now.", session="0b57-0002")
    question = "how often must the brass capstan of the ferry winch be greased with tallow?"
    talk(
        world,
        "the brass capstan of the winch squeaks",
        "The brass capstan of the ferry winch is dry.",
        question,
        "Twice a season, before the regatta and before the frost.",
        "note it on the plate of the brass capstan",
        "Noted on the brass plate of the capstan.",
    )
    write_state(world.home, SESSION, SessionState(started=1))
    pointer = hook_context(world, question)
    assert f"“{question}”" in pointer
    assert "memory_get 7f3a1c2d#3, or: nacre sessions show 7f3a1c2d#3" in pointer


@pytest.mark.parametrize("alone", [False, True])
def test_question_points_to_the_turn_that_answers_it(home: World, *, alone: bool) -> None:
    write_state(home.home, SESSION, SessionState(started=1))
    pointer = hook_context(home, QUESTION, alone=alone)
    assert f"- 2026-11-18, claude-code: “{INSTRUCTION}”" in pointer
    assert "memory_get 7f3a1c2d#2, or: nacre sessions show 7f3a1c2d#2" in pointer
    (ref,) = read_state(home.home, SESSION).given
    assert ref.startswith("claude-code:7f3a1c2d-0001#u")
    view = show(home.context(), SessionRequest(reference="7f3a1c2d#2", limit=1))
    assert [item.turn.text for item in view.turns] == [INSTRUCTION]
    assert hook_context(home, f"{QUESTION} please", alone=alone) == ""
    assert MEMORY_ANSWER in hook_context(_with_memory(home), QUESTION, session="codex:1")


MEMORY_ANSWER = "Valkey caches the ferry timetable for ninety seconds."


def _with_memory(home: World) -> World:
    new = StoreRequest(content=MEMORY_ANSWER, project="acme-ferry")
    store(home.context(), new)
    return home


def test_pointer_precedes_memories_that_are_not_sure(home: World) -> None:
    words = "The ferry timetable is printed on yellow paper for the lighthouse and the two berths."
    store(home.context(), StoreRequest(content=words, project="acme-ferry"))
    write_state(home.home, SESSION, SessionState(started=1))
    assert "yellow paper" in hook_context(home, "print the ferry timetable for the lighthouse")
    write_state(home.home, SESSION, SessionState(started=1))
    first = hook_context(home, QUESTION)
    assert "memory_get 7f3a1c2d#2" in first
    assert "yellow paper" not in first


def test_first_prompt_of_a_session_gets_a_pointer_with_the_start(home: World) -> None:
    for ref, moment in (("codex:3", HookEvent.SESSION_START), ("codex:4", HookEvent.PROMPT)):
        assert "memory_get 7f3a1c2d#2" in hook_context(home, QUESTION, session=ref, event=moment)


def test_later_questions_get_a_pointer_only_if_they_refer_back(home: World) -> None:
    assert hook_context(home, "paint the funnel of the ferry red") == ""
    assert hook_context(home, QUESTION) == ""
    question = "for how long did we let Valkey cache the ferry timetable, and when do we flush it?"
    assert "memory_get 7f3a1c2d#2" in hook_context(home, question)


def test_pointer_precedes_guessed_facts(home: World) -> None:
    fact = "FYI, Valkey can cache the ferry timetable and flush it."
    talk(home, fact, "I will.", session="9c1e-0003")
    assert home.context().memories.last_row()
    write_state(home.home, SESSION, SessionState(started=1))
    assert "Valkey can cache" in hook_context(home, "what can Valkey cache and flush?")
    write_state(home.home, SESSION, SessionState(started=1))
    first = hook_context(home, QUESTION, alone=False)
    assert "memory_get 7f3a1c2d#2" in first
    assert "Valkey can cache" not in first


@pytest.mark.parametrize(
    "prompt",
    [
        INSTRUCTION,
        "can you cache the ferry timetable in Valkey and flush it?",
        "which colour has the funnel of the ferry?",
        "how do we cache the tide tables of the lighthouse?",
    ],
)
def test_orders_and_unanswered_questions_get_no_pointer(home: World, prompt: str) -> None:
    assert hook_context(home, prompt) == ""


def test_session_is_not_pointed_to_itself(home: World) -> None:
    assert hook_context(home, QUESTION, session="claude-code:7f3a1c2d-0001") == ""


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
    assert "memory_get 7f3a1c2d#" in hook_context(home, prompt, alone=False)


@pytest.mark.parametrize(
    "words",
    [
        f'they wrote: "{INSTRUCTION}"',
        f"the ticket says {INSTRUCTION}",
        f"fix this: {INSTRUCTION}",
        f"> {INSTRUCTION}",
        f"From: Otto\nSubject: Ferry\n\n{INSTRUCTION}",
        f"`{INSTRUCTION}`",
        f"see https://otto.example/{INSTRUCTION.replace(' ', '-')} {INSTRUCTION}",
    ],
)
def test_words_that_might_be_pasted_are_not_shown(world: World, words: str) -> None:
    talk(world, words, "I see.", words.replace("and", "or"), "I see.", words, "Done.")
    context = hook_context(world, QUESTION, alone=False)
    assert "memory_get" in context or not context
    assert "ninety" not in context


def test_chosen_option_is_not_shown_as_the_owners_words(world: World) -> None:
    session = "7f3a1c2d-0001"
    forms = [
        record
        for index in range(3)
        for record in asks(
            "Where?",
            INSTRUCTION,
            "elsewhere",
            answer=INSTRUCTION,
            uuid=f"f{index}",
            session=session,
        )
    ]
    world.transcript(session, *({**record, "cwd": FOLDER} for record in forms))
    ingest(world.context())
    assert "ninety" not in hook_context(world, QUESTION, alone=False)


def test_prompt_gets_at_most_three_memories_with_triggers(world: World) -> None:
    rules = [f"Reset the valve of ferry {index} before it is painted." for index in range(5)]
    for index, text in enumerate(rules):
        triggers = ("dry dock",) if index < 2 else ()
        new = StoreRequest(content=text, kind=Kind.LESSON, triggers=triggers, force=True)
        store(world.context(), new)
    context = hook_context(
        world, "in the dry dock: do we reset the valve of a ferry before it is painted?"
    )
    assert sum(text in context for text in rules) == 3
    assert rules[0] in context
    assert rules[1] in context


@pytest.mark.parametrize("stop", [". ", "。"])
def test_long_memory_starts_with_its_first_sentences(world: World, stop: str) -> None:
    rule = "Never paint the hull of the ferry in the rain"
    text = stop.join([rule, *(f"The layer of {year} came off again" for year in range(1900, 1990))])
    store(world.context(), StoreRequest(content=text, kind=Kind.PREFERENCE))
    context = hook_context(world, "paint the hull of the ferry")
    memory_id = world.context().memories.in_any_state(read_state(world.home, SESSION).given)[0].id
    assert rule in context
    assert f"nacre show {memory_id[-8:]}" in context
    assert "1989" not in context
    assert len(context) < 1_000
