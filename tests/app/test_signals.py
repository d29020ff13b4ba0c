"""Important new memories reach other live sessions, and agents are reminded to store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nacre.care.database import rebuild
from nacre.context.build import answer, build
from nacre.context.hooks import write_state
from nacre.learn.ingest import ingest
from nacre.memories.edit import scan
from nacre.memories.requests import StoreRequest
from nacre.memories.store import edit, retire, store
from nacre.values.context import (
    ContextBlock,
    ContextRequest,
    HookCall,
    HookEvent,
    Moment,
    Occasion,
    Part,
    SignalLimits,
)
from nacre.values.memory import Source
from nacre.values.review import Reason
from nacre.values.session import Speaker, Trust
from tests.app.conftest import World, says

FOLDER = "/code/acme-billing"
OWN_SESSION, OTHER_SESSION = "claude-code:5e55-0001", "claude-code:5e55-0002"
NEWS = "The release is frozen until the certificate of the gateway is renewed."


@pytest.fixture
def home(world: World) -> World:
    """Return a home with a project and a running session."""
    world.transcript(
        "s0",
        says(
            "user", "Please look at the build.", uuid="u1", session="s0", at="2026-11-01T09:00:00Z"
        ),
    )
    ingest(world.context())
    start_session(world)
    return world


def start_session(
    world: World, session: str = OWN_SESSION, occasion: Occasion = Occasion.STARTUP
) -> ContextBlock:
    return deliver(world, ContextRequest(Moment.START, occasion, folder=FOLDER, session=session))


def prompt(world: World, text: str = "yes, go on", session: str = OWN_SESSION) -> ContextBlock:
    return deliver(
        world, ContextRequest(Moment.PROMPT, prompt=text, folder=FOLDER, session=session)
    )


def deliver(world: World, request: ContextRequest) -> ContextBlock:
    block = build(world.context(), request)
    write_state(world.home, request.session, block.state)
    return block


def item_texts(block: ContextBlock, part: Part = Part.SIGNALS) -> list[str]:
    return [item.text for item in block.items if item.part is part]


def store_news(
    world: World, content: str = NEWS, session: str | None = OTHER_SESSION, **more: object
) -> str:
    new = StoreRequest(
        content=content,
        importance=more.pop("importance", 8),
        project=more.pop("project", "acme-billing"),  # type: ignore[arg-type]
        source=Source(session),
        **more,  # type: ignore[arg-type]
    )
    return store(world.context(), new).memory_id


def pass_seconds(world: World, seconds: float) -> None:
    world.clock.now += timedelta(seconds=seconds)


def test_next_prompt_shows_another_sessions_memory_once(home: World) -> None:
    store_news(home)
    block = prompt(home)
    assert [NEWS in text for text in item_texts(block)] == [True]
    assert "## Just learned in another session" in block.text
    pass_seconds(home, 31)
    assert item_texts(prompt(home)) == []


@pytest.mark.parametrize(
    "more",
    [
        {"importance": 7},
        {"session": OWN_SESSION},
        {"project": "harbour"},
        {"trust": Trust.UNTRUSTED},
    ],
    ids=["low importance", "own session", "another project", "untrusted"],
)
def test_unrelated_memories_send_no_signal(home: World, more: dict[str, object]) -> None:
    store_news(home, **more)  # type: ignore[arg-type]
    assert item_texts(prompt(home)) == []


def test_global_memory_is_signalled_to_every_session(home: World) -> None:
    store_news(home, project=None)
    assert len(item_texts(prompt(home))) == 1


def end_session(world: World, session: str, folder: str = FOLDER) -> None:
    """Write the state that the session-end hook leaves."""
    state = answer(
        world.context(), HookCall("claude-code", HookEvent.SESSION_END, session, folder)
    ).state
    write_state(world.home, session, state)


def test_reset_session_gets_no_signal_for_its_earlier_memories(
    home: World,
) -> None:
    third, fourth = "claude-code:5e55-0003", "claude-code:5e55-0004"
    start_session(home, OTHER_SESSION)
    end_session(home, OWN_SESSION)
    start_session(home, third, Occasion.CLEAR)
    end_session(home, third)
    start_session(home, fourth, Occasion.CLEAR)
    start_session(home, fourth, Occasion.COMPACT)
    store_news(home, session=OWN_SESSION)
    assert item_texts(prompt(home, session=fourth)) == []
    assert len(item_texts(prompt(home, session=OTHER_SESSION))) == 1, (
        "other sessions get the signal"
    )
    end_session(home, OTHER_SESSION)
    pass_seconds(home, 61)
    fifth = "claude-code:5e55-0005"
    start_session(home, fifth)
    store_news(home, "The gateway certificate is renewed since noon, releases may go on.")
    assert len(item_texts(prompt(home, session=fifth))) == 1, (
        "the session that ended earlier does not count as this session"
    )


def test_agents_memory_is_a_proposal_and_sends_no_signal(
    home: World,
) -> None:
    start_session(home, OTHER_SESSION)
    memory = store_news(home, session=OTHER_SESSION, speaker=Speaker.AGENT)
    assert item_texts(prompt(home)) == []
    with home.open() as memory_home:
        proposal = memory_home.get(memory)
        assert (proposal.proposed, proposal.importance) == (True, 7)
        assert [review.why for review in memory_home.reviews()] == [Reason.PROPOSED]
        memory_home.keep(memory)
        assert memory_home.get(memory).proposed is False


def test_new_session_gets_signals_from_its_start(home: World) -> None:
    store_news(home)
    third = "claude-code:5e55-0003"
    start_session(home, third)
    assert item_texts(prompt(home, session=third)) == []
    store_news(home, "The gateway certificate is renewed since noon, releases may go on.")
    assert len(item_texts(prompt(home, session=third))) == 1


def test_session_without_a_start_hook_listens_from_first_prompt(home: World) -> None:
    fourth = "claude-code:5e55-0004"
    store_news(home)
    assert item_texts(prompt(home, session=fourth)) == []
    store_news(home, "The gateway certificate is renewed since noon, releases may go on.")
    assert len(item_texts(prompt(home, session=fourth))) == 1


THINGS = [
    "walrus",
    "heron",
    "otter",
    "lynx",
    "badger",
    "marten",
    "stork",
    "gecko",
    "newt",
    "bison",
    "ibex",
    "tapir",
]


def test_signals_are_limited_per_prompt_and_per_session(home: World) -> None:
    for thing in THINGS:
        store_news(
            home,
            f"Never touch the machine called {thing}: {thing * 3} is being moved away from its old rack.",
        )
    assert len(item_texts(prompt(home))) == 3
    pass_seconds(home, 29)
    assert item_texts(prompt(home)) == [], "signals pause for 30 seconds"
    pass_seconds(home, 1)
    assert len(item_texts(prompt(home))) == 3
    pass_seconds(home, 31)
    assert len(item_texts(prompt(home))) == 3
    pass_seconds(home, 31)
    assert len(item_texts(prompt(home))) == 1
    pass_seconds(home, 31)
    assert item_texts(prompt(home)) == [], "a session gets at most ten signals"


def test_memory_older_than_five_minutes_is_not_signalled(home: World) -> None:
    store_news(home)
    pass_seconds(home, 301)
    assert item_texts(prompt(home)) == []


def test_old_statement_learned_now_is_not_signalled(home: World) -> None:
    statement = "Remember: never deploy the gateway on a Friday, this is very important."
    old = says(
        "user", statement, uuid="o1", session="old", at="2026-03-01T09:00:00.000Z", cwd=FOLDER
    )
    home.transcript("old", old)
    memories = ingest(home.context()).memories
    assert memories
    edit(home.context(), memories[0], importance=9)
    assert item_texts(prompt(home)) == []


def test_undelivered_signal_is_repeated(home: World) -> None:
    store_news(home)
    undelivered = build(
        home.context(),
        ContextRequest(Moment.PROMPT, prompt="go on", folder=FOLDER, session=OWN_SESSION),
    )
    assert item_texts(undelivered)
    assert item_texts(prompt(home)) == item_texts(undelivered)


def test_signal_beyond_the_budget_follows_with_the_next_prompt(home: World) -> None:
    store_news(home)
    request = ContextRequest(
        Moment.PROMPT, prompt="go on", folder=FOLDER, session=OWN_SESSION, budget_tokens=70
    )
    assert item_texts(deliver(home, request)) == []
    assert item_texts(prompt(home))


def test_retired_memory_is_not_signalled(home: World) -> None:
    retire(home.context(), [store_news(home)])
    assert item_texts(prompt(home)) == []


def test_edited_memory_is_not_signalled_again(home: World) -> None:
    memory = store_news(home)
    assert item_texts(prompt(home))
    pass_seconds(home, 31)
    edit(home.context(), memory, add_tags=("release",))
    assert item_texts(prompt(home)) == []


def test_signals_continue_after_a_rebuild(home: World) -> None:
    for thing in THINGS[:4]:
        edit(
            home.context(),
            store_news(home, f"The {thing} is grey.", importance=5),
            add_tags=("animal",),
        )
    start_session(home)
    rebuild(home.settings(), vectors=False, open_home=lambda settings: home.context(settings))
    store_news(home)
    assert len(item_texts(prompt(home))) == 1


def test_signals_can_be_switched_off(home: World) -> None:
    store_news(home)
    home.environ = {"NACRE_CONTEXT_SIGNALS": "false"}
    assert item_texts(prompt(home)) == []


def test_signals_pause_after_three_memories(home: World) -> None:
    for thing in THINGS[:4]:
        store_news(
            home,
            f"Never touch the machine called {thing}: {thing * 3} is being moved away from its old rack.",
        )
    pass_seconds(home, 200)
    assert len(item_texts(prompt(home))) == 3
    pass_seconds(home, 29)
    assert item_texts(prompt(home)) == []
    pass_seconds(home, 1)
    assert len(item_texts(prompt(home))) == 1


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (SignalLimits(min_importance=9), 0),
        (SignalLimits(most_at_once=0), 0),
        (SignalLimits(most_at_once=1), 1),
        (SignalLimits(max_age_seconds=10), 0),
        (SignalLimits(min_importance=1, most_at_once=9), 3),
    ],
)
def test_host_can_only_reduce_the_signal_limits(
    home: World, limits: SignalLimits, count: int
) -> None:
    for thing in THINGS[:4]:
        store_news(
            home,
            f"Never touch the machine called {thing}: {thing * 3} is being moved away from its old rack.",
        )
    store_news(home, "The harbour master answers mails on Mondays only.", importance=7)
    pass_seconds(home, 11)
    call = HookCall("openclaw", HookEvent.PROMPT, OWN_SESSION, FOLDER, "yes, go on", signals=limits)
    assert answer(home.context(), call).context.count("moved away") == count


def test_signals_need_no_lock_and_no_write(home: World) -> None:
    store_news(home)
    context = home.context()
    edition = context.database.edition()
    with home.context().vault_lock:
        block = build(
            context,
            ContextRequest(
                Moment.PROMPT, prompt="go on", folder=FOLDER, session=OWN_SESSION, alone=True
            ),
        )
    assert item_texts(block)
    assert context.database.edition() == edition


def prompts_with_reminder(world: World, prompts: int, session: str = OWN_SESSION) -> list[int]:
    """Send prompts and return the numbers of those with a reminder, counted from 1."""
    return [
        number
        for number in range(1, prompts + 1)
        if item_texts(prompt(world, session=session), Part.NUDGE)
    ]


def test_idle_agent_is_reminded_three_times_every_eight_turns(
    home: World,
) -> None:
    assert prompts_with_reminder(home, 40) == [8, 16, 24]


def test_agents_store_resets_the_reminder_count(home: World) -> None:
    assert prompts_with_reminder(home, 7) == []
    store_news(home, importance=5, session=None, speaker=Speaker.AGENT)
    assert prompts_with_reminder(home, 8) == []
    store_news(
        home, "The harbour master answers mails on Mondays only.", session=OWN_SESSION, importance=5
    )
    assert prompts_with_reminder(home, 9) == [9]


def test_stores_of_other_sessions_do_not_reset_the_count(home: World) -> None:
    prompts_with_reminder(home, 7)
    store_news(home, importance=5)
    assert prompts_with_reminder(home, 1) == [1]


def test_sessions_without_tools_get_no_reminder(home: World) -> None:
    assert prompts_with_reminder(home, 20, session="aider:1") == []


def test_signals_follow_the_injected_clock_across_midnight(home: World) -> None:
    home.clock.now = datetime(2026, 12, 31, 23, 59, 50, tzinfo=UTC)
    start_session(home)
    store_news(home)
    pass_seconds(home, 20)
    assert item_texts(prompt(home))


def test_inbox_memory_is_not_signalled(home: World) -> None:
    file = home.memory_file(store_news(home, project=None))
    (home.vault / "inbox").mkdir()
    file.rename(home.vault / "inbox" / file.name)
    scan(home.context())

    assert item_texts(prompt(home)) == []
