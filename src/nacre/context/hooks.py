"""Session state for hooks, tool rules, the holdout group, reminders and signals.

Each session's state is a small file without locks. Concurrent writes can lose an update, and the
session then gets an item twice.
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
from nacre.base.ids import first_id, keyed_hash
from nacre.base.link import deliveries, session_file, write_session
from nacre.base.text import CHARACTERS_PER_TOKEN, count_tokens, identifiers, stems, words
from nacre.context import categories
from nacre.errors import UnusableStoreError
from nacre.home import location
from nacre.home.home import Home
from nacre.readers import conversation
from nacre.settings import Settings
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
from nacre.values.session import Action

KEPT_DAYS = 7
_DAY_SECONDS = 86_400
_RESET_SECONDS = 60
"""Maximum time between two sessions that a reset separates, in seconds."""

_MAX_BYTES = 200_000
_MAX_OTHERS = 30
_MAX_PREDECESSORS = 20


def read_state(home: Path, session: str | None) -> SessionState:
    """Return a session's state, or a new state if the file is missing or unreadable."""
    return _read(_path(home, session)) if session else SessionState()


def _read(path: Path) -> SessionState:
    values: dict[str, Any] = {}
    record = _load(path)
    for field in fields(SessionState):
        value = record.get(field.name)
        value = tuple(map(str, value)) if isinstance(value, list) else value
        if type(value) is type(field.default):
            values[field.name] = value
    return SessionState(**values)


def _load(path: Path) -> dict[str, Any]:
    try:
        with os.fdopen(files.open_file(path, os.O_RDONLY), "rb") as file:
            record = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def write_state(home: Path, session: str | None, state: SessionState | None) -> None:
    """Save the state after delivery, ignoring disk errors."""
    if session and state is not None:
        write_session(str(home), session, asdict(state))


def just_ended(home: Path, session: str, folder: str | None, now_ms: int) -> tuple[str, ...]:
    """Return the tool's sessions that ended in a folder within the last minute.

    The sessions that they continue are included.
    """
    tool = session.partition(":")[0]
    names: list[str] = []
    for state in _others(home, session):
        is_there = state.name.partition(":")[0] == tool and state.folder == (folder or "")
        if is_there and state.ended and 0 <= now_ms - state.ended <= _RESET_SECONDS * 1000:
            names += [state.name, *state.after]
    return tuple(dict.fromkeys(names))[:_MAX_PREDECESSORS]


def _others(home: Path, session: str) -> Iterator[SessionState]:
    own = _path(home, session)
    with contextlib.suppress(OSError):
        paths = sorted(
            own.parent.glob("[!.]*"), key=lambda path: path.stat().st_mtime, reverse=True
        )
        for path in paths[:_MAX_OTHERS]:
            if path != own:
                yield _read(path)


def prune_states(home: Path, now: float) -> None:
    """Delete old temporary files and states unused for a week. ``now`` is in epoch seconds."""
    folder = _path(home, "any").parent
    files.sweep(folder)
    for path in folder.glob("[!.]*"):
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > KEPT_DAYS * _DAY_SECONDS:
                path.unlink()


def _path(home: Path, session: str) -> Path:
    return Path(session_file(str(home), session))


# -- Standing intents ---------------------------------------------------------
# A memory with triggers is delivered when a prompt, an edit or a command matches one of them. A
# preference or lesson that names the file or command of a call needs no trigger. Decision 20 lists
# the alternatives.


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
"""Pattern for the paths in a prompt."""


@frozen
class Occurrence:
    """A prompt or a tool call.

    ``stems``: the stems of a prompt's words. ``paths``: the paths that it names or edits.
    """

    stems: str = ""
    paths: Sequence[str] = ()
    programs: Sequence[conversation.Invocation] = ()

    def matches(self, trigger: str) -> bool:
        """Return True if a trigger's words, path or command match this occurrence."""
        if command := _COMMAND.fullmatch(trigger):
            if any(
                wanted.words[0] == program.words[0] and set(wanted.words) <= set(program.words)
                for wanted in conversation.invocations(command[1])
                for program in self.programs
            ):
                return True
        elif _PATH.fullmatch(trigger):
            return any(_is_in(path.lower(), trigger.lower()) for path in self.paths)
        return stems(trigger) in self.stems


def add_intents(draft: categories.Draft, occurrence: Occurrence) -> None:
    """Add at most three memories with a matching trigger, the most important first."""
    home = draft.home
    rows = home.selection.with_triggers(draft.filter(), today=home.today())
    memories = home.memories.by_rows(rows)
    for memory in (memories[row] for row in rows if row in memories):
        trigger = next(filter(occurrence.matches, memory.triggers), None)
        times = memory.trigger_times
        is_over = 0 < times <= deliveries(str(home.settings.home), memory.id)
        if not trigger or is_over or draft.relevant_count == _MAX_INTENTS:
            continue
        if draft.add_memory(Part.RELEVANT, memory, 1.0, f"its trigger is “{trigger}”") and times:
            draft.state = replace(draft.state, limited=(*draft.state.limited, memory.id))


def _is_in(path: str, pattern: str) -> bool:
    """Return True if a path or a folder above it has a name or pattern. ``*`` matches any text."""
    plain = path.replace("\\", "/").strip("/")
    pattern = pattern.removeprefix("~").removeprefix("./").strip("/").replace("[", "[[]")
    return fnmatchcase(f"/{plain}/", f"*/{pattern}/*")


def answer(home: Home, call: HookCall) -> HookAnswer:
    """Return the memories with a trigger for a tool call, or else a rule that applies to it.

    The answer is empty if nothing applies, in automated sessions, and if the daemon is not running.
    """
    if call.is_apart or call.alone or not call.session or call.host not in _TOOL_HOSTS:
        return HookAnswer()
    tool_call = conversation.asked(call.tool, call.arguments)
    if tool_call.action not in (Action.EDIT, Action.RUN):
        return HookAnswer()
    draft = categories.Draft(
        home,
        ContextRequest(Moment.PROMPT, folder=call.folder, session=call.session),
        read_state(home.settings.home, call.session),
        location.project_of_folder(home, Path(call.folder)) if call.folder else None,
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
        verbal = [program for program in writing if program.told]
        rows = {row for program in verbal for row in _naming_command(home, program, where)}
        rules += home.memories.by_rows(sorted(rows)).values()
        doubts = home.reviews.doubts([memory.id for memory in rules], both_ways=True)
        outdated = {doubt.older for doubt in doubts}
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
    """Return the rules that mention a file or one of its folders.

    A folder must be mentioned with at least two path components.
    """
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
    """Return the database rows of the rules that contain all arguments of a program.

    If the program has fewer than two arguments, a rule must also contain an option or the program's
    name.
    """
    arguments = _words(program.told)
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


# -- The holdout group --------------------------------------------------------
# A hash of the session name decides which share of sessions gets no context. See
# :mod:`nacre.care.usefulness`. ``hold-out.json`` contains the salt and the history of shares.


SHARE = "usefulness.hold_out"
_FILE = "hold-out.json"
_SALT_BYTES = 16
_HASHES = 2.0**64


@frozen
class Draw:
    """The random choice of sessions that get no memories (holdout).

    ``shares`` contains pairs of a start time in epoch milliseconds and the share of sessions that
    is held out from then on.
    """

    salt: str = ""
    shares: tuple[tuple[int, float], ...] = ()

    def share_at(self, at: int) -> float:
        return next((share for since, share in reversed(self.shares) if since <= at), 0.0)

    def is_steady(self, begin: int, end: int) -> bool:
        """Return True if the held-out share was constant from ``begin`` to ``end`` and not zero."""
        return self.share_at(begin) > 0 and not any(
            begin < since <= end for since, _ in self.shares
        )

    def takes(self, session: str, began: int) -> bool:
        """Return True if a session (``<tool>:<id>``) that started at ``began`` (epoch milliseconds) is held out."""
        share = self.share_at(began)
        return (
            share > 0 and int(keyed_hash(bytes.fromhex(self.salt), session), 16) < share * _HASHES
        )


def is_held_out(home: Home, session: str | None) -> bool:
    """Return True if a session gets no context, because it was randomly chosen at its start."""
    if not session or home.settings.number(SHARE) <= 0:
        return False
    began = read_state(home.settings.home, session).started or home.now_ms()
    return read_draw(home.settings.home).takes(session, began)


def read_draw(home: Path) -> Draw:
    """Read the random choice from its file. Return an empty one if this fails."""
    record = _load(home / _FILE)
    try:
        bytes.fromhex(record["salt"])
        shares = tuple((int(since), float(share)) for since, share in record["shares"])
        return Draw(record["salt"], shares)
    except (ValueError, TypeError, KeyError):
        return Draw()


def note_share(settings: Settings, now_ms: int) -> None:
    """Record the configured share if it has changed. Raises UnusableStoreError."""
    draw, share = read_draw(settings.home), settings.number(SHARE)
    if share == draw.share_at(now_ms):
        return
    record = {
        "salt": draw.salt or os.urandom(_SALT_BYTES).hex(),
        "shares": [*draw.shares, (now_ms, share)],
    }
    try:
        files.make_folder(settings.home)
        files.write_file(settings.home / _FILE, json.dumps(record))
    except OSError as error:
        raise UnusableStoreError(
            f"cannot record the holdout: {error.strerror}", hint="is the disk full?"
        ) from error


# -- Reminders ----------------------------------------------------------------
# An agent that has stored nothing for eight turns is reminded, at most three times per session.
# Claude Code can also be asked for proposals, once per session.


TURNS = 8
MOST = 3
"""Maximum number of reminders per session."""

TEXT = (
    "Nothing of this session was stored lately. If something was decided, learned or asked for that later sessions "
    "need, store it with memory_store; if not, go on."
)

PROPOSE = (
    "Before you stop: if up to five things were settled, learned or asked for in this session that later sessions need "
    "and that are not stored yet, store them now with one call of memory_store, each with its quote, the person's own "
    "words copied from their message. None is a good answer. Then say in one short line what you stored, no more."
)

_PROPOSAL_HOSTS = frozenset({"claude-code"})
"""Hosts that accept a request at the end of a turn and then continue the session."""

_HOSTS_WITH_TOOLS = frozenset(
    {"claude-code", "codex", "cursor", "gemini-cli", "opencode", "openclaw"}
)
"""Hosts for which ``nacre init`` sets up both nacre's tools and hooks."""


def count_prompt(
    home: Home, state: SessionState, session: str | None, project: str | None
) -> SessionState:
    """Count a prompt, and return the new state of the session.

    The turn count restarts when the session stores a memory. Prompts from hosts without reminders
    are not counted.
    """
    host = (session or "").partition(":")[0]
    if is_asked_for_proposals(home, host) and state.prompts >= 0:
        state = replace(state, prompts=state.prompts + 1)
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


def is_asked_for_proposals(home: Home, host: str) -> bool:
    """Return True if a host's agents should be asked to propose memories."""
    return host in _PROPOSAL_HOSTS and home.settings.whole("context.proposals_after") > 0


# -- Signals ------------------------------------------------------------------
# When a session stores an important memory, other running sessions get it with their next prompt.
# The caller saves the mark and counts after delivery, so undelivered signals are repeated.


SAID_WITHIN = timedelta(days=1)
"""Maximum age of a statement that is signalled to other sessions.

Imported transcripts can contain older statements.
"""


_SIGNAL_LIMITS = SignalLimits(8, 3, 30, 10, 300)


def due(
    home: Home, state: SessionState, project: str | None, narrower: SignalLimits | None
) -> list[tuple[int, Memory]]:
    """Return memories from other sessions that a running session should learn of, with their rows.

    The memories are important and trusted, and belong to the given project or to no project.
    Memories from sessions that this session continues are left out. Nothing is returned during the
    cooldown or after the session's limit is reached.
    """
    now, limits = home.clock(), _SIGNAL_LIMITS.within(narrower or SignalLimits())
    now_ms = int(now.timestamp() * 1000)
    since = now_ms - state.signal_at
    if not state.name or state.signal_mark < 0 or not home.settings.flag("context.signals"):
        return []
    remaining = limits.most_per_session - state.signals
    if remaining <= 0 or 0 <= since < limits.cooldown_seconds * 1000:
        return []
    criteria = memories.News(
        state.signal_mark,
        first_id(max(0, now_ms - limits.max_age_seconds * 1000)),
        now - SAID_WITHIN,
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


def start_signals(home: Home, state: SessionState) -> SessionState:
    """Start to watch for later memories of other sessions. Return the session's new state."""
    return state if state.signal_mark >= 0 else replace(state, signal_mark=home.memories.last_row())
