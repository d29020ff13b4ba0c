"""Session state for hooks, memories for tool calls, reminders, signals and claims on handoffs.

Each session's state is a small file without locks. If a concurrent write loses an update, the
session gets an item twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

from nacre.base import files
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, first_id
from nacre.base.link import deliveries, session_file, write_session
from nacre.base.text import CHARACTERS_PER_TOKEN, count_tokens, identifiers, stems, words
from nacre.context import categories
from nacre.home import location
from nacre.home.home import Home
from nacre.readers import conversation
from nacre.store import memories, schema, search
from nacre.values.context import (
    ContextRequest,
    HookAnswer,
    HookCall,
    Moment,
    Part,
    SessionState,
    SignalLimits,
)
from nacre.values.memory import Kind, Memory
from nacre.values.session import BY_RULES, HANDED_FOR, Action, Handoff, Speaker, Turn

KEPT_DAYS = 7
_DAY_SECONDS = 86_400
_RESET_SECONDS = 60
"""Maximum time between a session's end and its continuation after a reset."""

_MAX_BYTES = 200_000
_MAX_OTHERS = 30
_MAX_PREDECESSORS = 20


def read_state(home: Path, session: str | None) -> SessionState:
    """Return a session's state, or a new one if the file is missing or unreadable."""
    return _read(_path(home, session)) if session else SessionState()


def _read(path: Path) -> SessionState:
    values: dict[str, Any] = {}
    record: Any = None
    with (
        contextlib.suppress(OSError, ValueError, RecursionError),
        files.open_to_read(path) as file,
    ):
        record = json.loads(file.read(_MAX_BYTES))
    for field in fields(SessionState) if isinstance(record, dict) else ():
        value = record.get(field.name)
        value = tuple(map(str, value)) if isinstance(value, list) else value
        if type(value) is type(field.default):
            values[field.name] = value
    return SessionState(**values)


def write_state(home: Path, session: str | None, state: SessionState | None) -> None:
    """Save a session's state after the context was delivered, ignoring disk errors."""
    if session and state is not None:
        write_session(home, session, asdict(state))


def just_ended(home: Path, session: str, folder: str | None, now_ms: int) -> tuple[str, ...]:
    """Return the sessions of the same tool that ended in a folder within the last minute.

    This includes the sessions that they continued.
    """
    tool = session.partition(":")[0]
    names = []
    for state in _other_states(home, session):
        is_there = state.name.partition(":")[0] == tool and state.folder == (folder or "")
        if is_there and state.ended and 0 <= now_ms - state.ended <= _RESET_SECONDS * 1000:
            names += [state.name, *state.after]
    return tuple(dict.fromkeys(names))[:_MAX_PREDECESSORS]


def _other_states(home: Path, session: str) -> Iterator[SessionState]:
    own = _path(home, session)
    with contextlib.suppress(OSError):
        paths = sorted(
            own.parent.glob("[!.]*"), key=lambda path: path.stat().st_mtime, reverse=True
        )
        for path in paths[:_MAX_OTHERS]:
            if path != own:
                yield _read(path)


def prune_states(home: Path, now: float) -> None:
    """Delete temporary files and the states of sessions unused for a week. ``now`` is in epoch
    seconds.
    """
    folder = _path(home, "any").parent
    files.sweep(folder)
    for path in folder.glob("[!.]*"):
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > KEPT_DAYS * _DAY_SECONDS:
                path.unlink()


def _path(home: Path, session: str) -> Path:
    return Path(session_file(home, session))


# -- Standing intents ---------------------------------------------------------
# A memory is delivered when a prompt, an edit or a command matches one of its triggers. A preference
# or lesson that names the file or command needs no trigger (decision 20).


_TOOL_HOSTS = frozenset({"claude-code", "codex", "generic"})
"""Hosts that accept context before a tool runs."""

_RULES = (Kind.PREFERENCE, Kind.LESSON)
_MAX_INTENTS = 3
_MAX_CANDIDATES = 50
_MAX_RULE_TOKENS = 80
_MAX_FOLDERS = 12
_COMMAND = re.compile(r"(?:\$ |`)(.+?)`?")
_PATH = re.compile(r"\S*[/*]\S*|\S+\.\w+")
PATHS = re.compile(r"[\w~@*+-]*(?:[/\\.]+[\w~@*+-]+)+/?|[\w-]+/", re.ASCII)
"""The paths in a prompt."""


@frozen
class Occurrence:
    """A prompt or tool call that can trigger memories.

    ``stems``: the stems of a prompt's words. ``paths``: those that it names or edits.
    """

    stems: str = ""
    paths: Sequence[str] = ()
    programs: Sequence[conversation.Invocation] = ()

    def matches(self, trigger: str) -> bool:
        if command := _COMMAND.fullmatch(trigger):
            if any(
                pattern.words[0] == program.words[0] and set(pattern.words) <= set(program.words)
                for pattern in conversation.invocations(command[1])
                for program in self.programs
            ):
                return True
        elif _PATH.fullmatch(trigger):
            return any(_is_in(path.lower(), trigger.lower()) for path in self.paths)
        return stems(trigger) in self.stems


def add_intents(draft: categories.Draft, occurrence: Occurrence) -> None:
    """Add up to three memories with a matching trigger to the context, most important first."""
    home = draft.home
    rows = home.selection.with_triggers(draft.filter(), today=home.today())
    for memory in home.memories.by_rows(rows).values():
        trigger = next(filter(occurrence.matches, memory.triggers), None)
        times = memory.trigger_times
        is_over = 0 < times <= deliveries(home.settings.home, memory.id)
        if not trigger or is_over or draft.relevant_count == _MAX_INTENTS:
            continue
        if draft.add_memory(Part.RELEVANT, memory, 1.0, f"its trigger is “{trigger}”") and times:
            draft.state = replace(draft.state, limited=(*draft.state.limited, memory.id))


def _is_in(path: str, pattern: str) -> bool:
    """Return True if a path or one of its parents matches a pattern. In the pattern, ``*`` also matches slashes."""
    plain = path.replace("\\", "/").strip("/")
    pattern = pattern.removeprefix("~").removeprefix("./").strip("/").replace("[", "[[]")
    return fnmatchcase(f"/{plain}/", f"*/{pattern}/*")


def answer(home: Home, call: HookCall) -> HookAnswer:
    """Return the memories that a tool call triggers, or else a rule that applies to it.

    Return nothing in automated sessions or without a daemon.
    """
    if call.is_apart or call.alone or not call.session or call.host not in _TOOL_HOSTS:
        return HookAnswer()
    tool_call = conversation.new_call(call.tool, call.arguments)
    if tool_call.action not in (Action.EDIT, Action.RUN):
        return HookAnswer()
    draft = categories.Draft(
        home,
        ContextRequest(Moment.PROMPT, folder=call.folder, session=call.session),
        read_state(home.settings.home, call.session),
        location.project_of_folder(home, call.folder),
        _MAX_INTENTS * _MAX_RULE_TOKENS + count_tokens(categories.title(Part.RELEVANT)),
        line_characters=_MAX_RULE_TOKENS * CHARACTERS_PER_TOKEN,
    )
    programs = list(dict.fromkeys(conversation.invocations(tool_call.input)))
    writing = [program for program in programs if not conversation.looks(program.name)]
    paths = tool_call.paths or [word for program in writing for word in program.words[1:]]
    add_intents(draft, Occurrence(paths=paths, programs=programs))
    if not draft.items:
        where = schema.memory_clause(replace(draft.filter(), kinds=_RULES), home.today())
        rules = [memory for path in tool_call.paths for memory in _naming_file(home, path, where)]
        verbal = [program for program in writing if program.subcommands]
        rows = {row for program in verbal for row in _naming_command(home, program, where)}
        rules += home.memories.by_rows(sorted(rows)).values()
        outdated = home.reviews.newer([memory.id for memory in rules])
        for memory in sorted(
            rules, key=lambda memory: (memory.importance, memory.updated), reverse=True
        ):
            if memory.id not in outdated and draft.add_memory(
                Part.RELEVANT, memory, 1.0, "it names the file or command"
            ):
                break
    refs = tuple(item.ref for item in draft.items if item.ref)
    return HookAnswer(draft.text(), state=draft.state.with_given(refs)) if refs else HookAnswer()


def _naming_file(home: Home, path: str, where: schema.Clause) -> list[Memory]:
    names = [name for name in path.replace("\\", "/").split("/") if name]
    pairs = [f"{above}/{name}" for above, name in pairwise(names)][-_MAX_FOLDERS:]
    matched = home.memory_search.match_parts([*names[-1:], *pairs], where, _MAX_CANDIDATES)
    return [
        memory
        for memory in home.memories.by_rows([row for row, _, _ in matched]).values()
        if any(
            ("/" in name.strip("/") or name == names[-1]) and _is_in(path, name)
            for name in identifiers(memory.content)
        )
    ]


def _naming_command(
    home: Home, program: conversation.Invocation, where: schema.Clause
) -> list[int]:
    arguments = _words(program.subcommands)
    options = [_words([word.partition("=")[0]]) for word in program.words if word.startswith("--")]
    terms = [program.name, *dict.fromkeys(sum(options, arguments))]
    matched = home.memory_search.match(
        [search.Term(word, word) for word in terms], where, _MAX_CANDIDATES
    )
    more = (
        [[]]
        if len(arguments) > 1
        else [[program.name], *(option for option in options if set(option) - set(arguments))]
    )
    return [
        match.row
        for match in matched
        if any(
            {terms[place] for place in match.held}.issuperset([*arguments, *extra])
            for extra in more
        )
    ]


def _words(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(words(" ".join(names))))


# -- Reminders ----------------------------------------------------------------
# An agent that has stored nothing for eight turns is reminded, at most three times per session.


TURNS = 8
MOST = 3
"""Maximum number of reminders per session."""

TEXT = (
    "Nothing of this session was stored lately. If something was decided, learned or asked for that later sessions "
    "need, store it with memory_store; if not, go on."
)

_HOSTS_WITH_TOOLS = frozenset(
    {"claude-code", "codex", "cursor", "gemini-cli", "opencode", "openclaw"}
)
"""Hosts for which ``nacre init`` sets up both tools and hooks."""


def count_prompt(
    home: Home, state: SessionState, session: str | None, project: str | None
) -> SessionState:
    """Count the prompts since a session last stored a memory, and return its new state.

    Prompts from hosts without nacre's tools do not count.
    """
    host = (session or "").partition(":")[0]
    if not session or host not in _HOSTS_WITH_TOOLS:
        return state
    last = home.memories.last_row()
    if state.stored_mark < 0:
        return replace(state, turns=1, stored_mark=last)
    if last != state.stored_mark and home.memories.has_stored(
        state.stored_mark, (session, *state.after), project
    ):
        return replace(state, turns=0, stored_mark=last)
    return replace(state, turns=state.turns + 1)


# -- Signals ------------------------------------------------------------------
# When a session stores an important memory, other running sessions get it with their next prompt.
# The state is saved after delivery, so that undelivered signals are repeated.


SAID_WITHIN = timedelta(days=1)
"""Maximum age of statements that other sessions are told. Imported transcripts contain older ones."""


_SIGNAL_LIMITS = SignalLimits(8, 3, 30, 10, 300)


def due(
    home: Home, state: SessionState, project: str | None, narrower: SignalLimits | None
) -> list[tuple[int, Memory]]:
    """Return the important new memories of other sessions, with their database rows.

    They are trusted and belong to the project or to none. Return nothing during the cooldown or
    once the session has reached its limit.
    """
    now_ms, limits = home.now_ms(), _SIGNAL_LIMITS.within(narrower or SignalLimits())
    since = now_ms - state.signal_at
    if not state.name or state.signal_mark < 0 or not home.settings.flag("context.signals"):
        return []
    remaining = limits.most_per_session - state.signals
    if remaining <= 0 or 0 <= since < limits.cooldown_seconds * 1000:
        return []
    criteria = memories.News(
        state.signal_mark,
        first_id(max(0, now_ms - limits.max_age_seconds * 1000)),
        home.now() - SAID_WITHIN,
        (state.name, *state.after),
        project,
        limits.min_importance,
        remaining + len(state.given),
    )
    news = [
        (row, memory)
        for row, memory in home.memories.news(criteria)
        if memory.id not in state.given
    ]
    return news[: min(limits.most_at_once, remaining)]


# -- Claims to handoffs -------------------------------------------------------
# The session that creates a claim file in ``run/handoffs`` gets the handoff, so that no locks are
# needed. Its state records the delivery, without which the claim expires after a minute.


CLAIM_SECONDS = 60.0
_MAX_CLAIM_BYTES = 1_000
_MAX_HANDOFFS = 3


def due_handoffs(
    home: Home, project: str | None, session: str | None, *, own: bool = False
) -> list[Handoff]:
    """Return a project's handoffs that a session can receive, latest first.

    Handoffs that other sessions received or claimed are left out unless ``session`` is ``None``.
    Those about the session itself are left out unless it needs them after a compaction or reset
    (``own``).
    """
    if not project:
        return []
    since = home.now() - HANDED_FOR
    recent = [item for item in home.handoffs.pending(project) if item.written >= since]
    if session:
        recent = [
            item
            for item in recent
            if (own or item.session != session) and _is_free(home, item, session)
        ]
    return recent[:_MAX_HANDOFFS]


def claim(home: Home, handoff: Handoff, session: str | None) -> bool:
    """Claim a handoff for a session, and return True if the session can receive it.

    A handoff about the session itself is not claimed, because the next session also needs it. If
    nacre's home is not writable, every session receives it.
    """
    if not session or handoff.session == session:
        return True
    path = _claim_path(home.settings.home, handoff.id)
    holder = _holder(path)
    if holder == session:
        return True
    if not _is_free(home, handoff, session):
        return False
    try:
        files.make_folder(path.parent)
        if holder is not None:  # an expired claim
            aside = path.with_name(f".{path.name}.{os.getpid()}")
            path.rename(aside)
            try:
                if _holder(aside) != holder:
                    os.link(aside, path)
            finally:
                aside.unlink()
        descriptor = files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            file.write(session.encode("utf-8", "surrogatepass"))
        now = home.clock().timestamp()
        os.utime(path, (now, now))
    except (FileExistsError, FileNotFoundError):  # it was claimed first
        return _holder(path) == session
    except OSError:
        return True
    if home.handoffs.is_pending(handoff):
        return True
    forget_claim(home, handoff.id)  # another session got it
    return False


def is_held(home: Home, handoff_id: str, session: str | None) -> bool:
    """Return True if the session has claimed the handoff."""
    return bool(session) and _holder(_claim_path(home.settings.home, handoff_id)) == session


def iter_delivered(home: Home) -> Iterator[tuple[str, str]]:
    """Yield the id and the session of each delivered handoff that is still claimed."""
    home_path = home.settings.home
    for path in _claims(home_path):
        holder = _holder(path)
        if holder and path.name in read_state(home_path, holder).given:
            yield path.name, holder


def has_claim(home: Home, session: str) -> bool:
    """Return True if the session has claimed a handoff."""
    return any(_holder(path) == session for path in _claims(home.settings.home))


def forget_claim(home: Home, handoff_id: str) -> None:
    """Delete the claim on a handoff."""
    with contextlib.suppress(OSError):
        _claim_path(home.settings.home, handoff_id).unlink()


def covered_turns(handoff: Handoff, turns: Sequence[Turn]) -> frozenset[str]:
    """Return the ids of the turns that a handoff summarises, or only the owner's if rules wrote it."""
    ids = [turn.id for turn in turns]
    if handoff.until in ids:
        earlier = list(turns[: ids.index(handoff.until) + 1])
    else:
        earlier = [turn for turn in turns if turn.time and turn.time <= handoff.said]
    return frozenset(
        turn.id for turn in earlier if turn.speaker is Speaker.OWNER or handoff.by != BY_RULES
    )


def is_late(handoff: Handoff, started_ms: int) -> bool:
    """Return True if a handoff was written after the current session had started.

    The handoff's session must have ended before that.
    """
    started = at_ms(started_ms)
    return handoff.said <= started <= handoff.written + timedelta(seconds=1)


def _is_free(home: Home, handoff: Handoff, session: str) -> bool:
    path = _claim_path(home.settings.home, handoff.id)
    holder = _holder(path)
    if holder is None or holder == session:
        return True
    if handoff.id in read_state(home.settings.home, holder).given:
        return False
    with contextlib.suppress(OSError):
        return home.clock().timestamp() - path.stat().st_mtime > CLAIM_SECONDS
    return True


def _holder(path: Path) -> str | None:
    """Return the session that holds a claim, or "" while the claim file is being written."""
    try:
        with files.open_to_read(path) as file:
            return file.read(_MAX_CLAIM_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _claims(home: Path) -> list[Path]:
    return list((home / "run" / "handoffs").glob("[!.]*"))


def _claim_path(home: Path, handoff_id: str) -> Path:
    return home / "run" / "handoffs" / handoff_id
