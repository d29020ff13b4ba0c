"""What one session stores and matters reaches the others that run; and agents that store nothing are reminded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nacre.care.database import rebuild
from nacre.context.build import answer, build
from nacre.context.hooks import write_state
from nacre.learn.ingest import ingest
from nacre.memories.decision import StoreRequest
from nacre.memories.edit import scan
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
MINE, OTHER = "claude-code:5e55-0001", "claude-code:5e55-0002"
NEWS = "The release is frozen until the certificate of the gateway is renewed."


@pytest.fixture
def home(world: World) -> World:
    """A home with a project, in which a session runs."""
    world.transcript(
        "s0",
        says(
            "user", "Please look at the build.", uuid="u1", session="s0", at="2026-11-01T09:00:00Z"
        ),
    )
    ingest(world.context())
    start(world)
    return world


def start(world: World, session: str = MINE, occasion: Occasion = Occasion.STARTUP) -> ContextBlock:
    return delivered(world, ContextRequest(Moment.START, occasion, folder=FOLDER, session=session))


def prompt(world: World, text: str = "yes, go on", session: str = MINE) -> ContextBlock:
    return delivered(
        world, ContextRequest(Moment.PROMPT, prompt=text, folder=FOLDER, session=session)
    )


def delivered(world: World, request: ContextRequest) -> ContextBlock:
    block = build(world.context(), request)
    write_state(world.home, request.session, block.state)
    return block


def told(block: ContextBlock, part: Part = Part.SIGNALS) -> list[str]:
    return [item.text for item in block.items if item.part is part]


def stores(world: World, content: str = NEWS, session: str | None = OTHER, **more: object) -> str:
    new = StoreRequest(
        content=content,
        importance=more.pop("importance", 8),
        project=more.pop("project", "acme-billing"),  # type: ignore[arg-type]
        source=Source(session),
        **more,  # type: ignore[arg-type]
    )
    return store(world.context(), new).memory_id


def later(world: World, seconds: float) -> None:
    world.clock.now += timedelta(seconds=seconds)


def test_next_prompt_shows_another_sessions_memory_once(home: World) -> None:
    stores(home)
    block = prompt(home)
    assert [NEWS in text for text in told(block)] == [True]
    assert "## Just learned in another session" in block.text
    later(home, 31)
    assert told(prompt(home)) == []


@pytest.mark.parametrize(
    "more",
    [
        {"importance": 7},
        {"session": MINE},
        {"project": "harbour"},
        {"trust": Trust.UNTRUSTED},
    ],
    ids=["of little weight", "its own", "of another project", "from outside"],
)
def test_unrelated_memories_send_no_signal(home: World, more: dict[str, object]) -> None:
    stores(home, **more)  # type: ignore[arg-type]
    assert told(prompt(home)) == []


def test_global_memory_is_signalled_to_every_session(home: World) -> None:
    stores(home, project=None)
    assert len(told(prompt(home))) == 1


def end(world: World, session: str, folder: str = FOLDER) -> None:
    """What the hook of a session's end leaves, with the daemon."""
    state = answer(
        world.context(), HookCall("claude-code", HookEvent.SESSION_END, session, folder)
    ).state
    write_state(world.home, session, state)


def test_reset_session_gets_no_signal_for_its_earlier_memories(
    home: World,
) -> None:
    third, fourth = "claude-code:5e55-0003", "claude-code:5e55-0004"
    start(home, OTHER)
    end(home, MINE)
    start(home, third, Occasion.CLEAR)
    end(home, third)
    start(home, fourth, Occasion.CLEAR)
    start(home, fourth, Occasion.COMPACT)
    stores(home, session=MINE)
    assert told(prompt(home, session=fourth)) == []
    assert len(told(prompt(home, session=OTHER))) == 1, "the others hear it"
    end(home, OTHER)
    later(home, 61)
    fifth = "claude-code:5e55-0005"
    start(home, fifth)
    stores(home, "The gateway certificate is renewed since noon, releases may go on.")
    assert len(told(prompt(home, session=fifth))) == 1, "that one ended long before"


def test_agents_memory_is_a_proposal_and_sends_no_signal(
    home: World,
) -> None:
    start(home, OTHER)
    memory = stores(home, session=OTHER, speaker=Speaker.AGENT)
    assert told(prompt(home)) == []
    with home.open() as opened:
        kept = opened.get(memory)
        assert (kept.proposed, kept.importance) == (True, 7)
        assert [one.why for one in opened.reviews()] == [Reason.PROPOSED]
        opened.keep(memory)
        assert opened.get(memory).proposed is False


def test_new_session_gets_signals_from_its_start(home: World) -> None:
    stores(home)
    third = "claude-code:5e55-0003"
    start(home, third)
    assert told(prompt(home, session=third)) == []
    stores(home, "The gateway certificate is renewed since noon, releases may go on.")
    assert len(told(prompt(home, session=third))) == 1


def test_session_without_a_start_hook_listens_from_first_prompt(home: World) -> None:
    fourth = "claude-code:5e55-0004"
    stores(home)
    assert told(prompt(home, session=fourth)) == []
    stores(home, "The gateway certificate is renewed since noon, releases may go on.")
    assert len(told(prompt(home, session=fourth))) == 1


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
        stores(
            home,
            f"Never touch the machine called {thing}: {thing * 3} is being moved away from its old rack.",
        )
    assert len(told(prompt(home))) == 3
    later(home, 29)
    assert told(prompt(home)) == [], "the pause is 30 seconds"
    later(home, 1)
    assert len(told(prompt(home))) == 3
    later(home, 31)
    assert len(told(prompt(home))) == 3
    later(home, 31)
    assert len(told(prompt(home))) == 1
    later(home, 31)
    assert told(prompt(home)) == [], "ten are enough for a session"


def test_memory_older_than_five_minutes_is_not_signalled(home: World) -> None:
    stores(home)
    later(home, 301)
    assert told(prompt(home)) == []


def test_old_statement_learned_now_is_not_signalled(home: World) -> None:
    said = "Remember: never deploy the gateway on a Friday, this is very important."
    old = says("user", said, uuid="o1", session="old", at="2026-03-01T09:00:00.000Z", cwd=FOLDER)
    home.transcript("old", old)
    memories = ingest(home.context()).memories
    assert memories
    edit(home.context(), memories[0], importance=9)
    assert told(prompt(home)) == []


def test_undelivered_signal_is_repeated(home: World) -> None:
    stores(home)
    lost = build(
        home.context(), ContextRequest(Moment.PROMPT, prompt="go on", folder=FOLDER, session=MINE)
    )
    assert told(lost)
    assert told(prompt(home)) == told(lost)


def test_signal_beyond_the_budget_follows_with_the_next_prompt(home: World) -> None:
    stores(home)
    asked = ContextRequest(
        Moment.PROMPT, prompt="go on", folder=FOLDER, session=MINE, budget_tokens=70
    )
    assert told(delivered(home, asked)) == []
    assert told(prompt(home))


def test_retired_memory_is_not_signalled(home: World) -> None:
    retire(home.context(), [stores(home)])
    assert told(prompt(home)) == []


def test_edited_memory_is_not_signalled_again(home: World) -> None:
    memory = stores(home)
    assert told(prompt(home))
    later(home, 31)
    edit(home.context(), memory, add_tags=("release",))
    assert told(prompt(home)) == []


def test_signals_continue_after_a_rebuild(home: World) -> None:
    for thing in THINGS[:4]:
        edit(
            home.context(),
            stores(home, f"The {thing} is grey.", importance=5),
            add_tags=("animal",),
        )
    start(home)
    rebuild(home.settings(), lambda settings: home.context(settings), vectors=False)
    stores(home)
    assert len(told(prompt(home))) == 1


def test_signals_can_be_switched_off(home: World) -> None:
    stores(home)
    home.environ = {"NACRE_CONTEXT_SIGNALS": "false"}
    assert told(prompt(home)) == []


def test_signals_pause_after_three_memories(home: World) -> None:
    for thing in THINGS[:4]:
        stores(
            home,
            f"Never touch the machine called {thing}: {thing * 3} is being moved away from its old rack.",
        )
    later(home, 200)
    assert len(told(prompt(home))) == 3
    later(home, 29)
    assert told(prompt(home)) == []
    later(home, 1)
    assert len(told(prompt(home))) == 1


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
        stores(
            home,
            f"Never touch the machine called {thing}: {thing * 3} is being moved away from its old rack.",
        )
    stores(home, "The harbour master answers mails on Mondays only.", importance=7)
    later(home, 11)
    call = HookCall("openclaw", HookEvent.PROMPT, MINE, FOLDER, "yes, go on", signals=limits)
    assert answer(home.context(), call).context.count("moved away") == count


def test_signals_need_no_lock_and_no_write(home: World) -> None:
    stores(home)
    context = home.context()
    edition = context.database.edition()
    with home.context().vault_lock:
        block = build(
            context,
            ContextRequest(Moment.PROMPT, prompt="go on", folder=FOLDER, session=MINE, alone=True),
        )
    assert told(block)
    assert context.database.edition() == edition


def talk_on(world: World, prompts: int, session: str = MINE) -> list[int]:
    """Which of so many prompts came with a reminder, counted from 1."""
    return [
        number
        for number in range(1, prompts + 1)
        if told(prompt(world, session=session), Part.NUDGE)
    ]


def test_idle_agent_is_reminded_three_times_every_eight_turns(
    home: World,
) -> None:
    assert talk_on(home, 40) == [8, 16, 24]


def test_agents_store_resets_the_reminder_count(home: World) -> None:
    assert talk_on(home, 7) == []
    stores(home, importance=5, session=None, speaker=Speaker.AGENT)
    assert talk_on(home, 8) == []
    stores(home, "The harbour master answers mails on Mondays only.", session=MINE, importance=5)
    assert talk_on(home, 9) == [9]


def test_stores_of_other_sessions_do_not_reset_the_count(home: World) -> None:
    talk_on(home, 7)
    stores(home, importance=5)
    assert talk_on(home, 1) == [1]


def test_sessions_without_tools_get_no_reminder(home: World) -> None:
    assert talk_on(home, 20, session="aider:1") == []


def test_signals_follow_the_injected_clock_across_midnight(home: World) -> None:
    home.clock.now = datetime(2026, 12, 31, 23, 59, 50, tzinfo=UTC)
    start(home)
    stores(home)
    later(home, 20)
    assert told(prompt(home))


def test_inbox_memory_is_not_signalled(home: World) -> None:
    file = home.memory_file(stores(home, project=None))
    (home.vault / "inbox").mkdir()
    file.rename(home.vault / "inbox" / file.name)
    scan(home.context())

    assert told(prompt(home)) == []
