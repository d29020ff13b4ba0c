"""What a host's session was given already: one small file a session, which nobody waits for.

Hooks read and write it in milliseconds, with the daemon or without. Two that write at once leave the one's or the
other's: at worst something is told twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from nacre.base import files
from nacre.base.ids import first_id, keyed_hash, to_ms
from nacre.base.link import session_file
from nacre.base.text import CHARACTERS_PER_TOKEN, count_tokens, identifiers, words
from nacre.context.categories import Draft, framed, line_of, title_tokens
from nacre.errors import StoreUnusable
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.readers.conversation import Invocation, asked, invocations, looks
from nacre.settings import Settings
from nacre.store.memories import News
from nacre.store.schema import Clause, memory_clause
from nacre.store.search import Term
from nacre.values.context import (
    ContextItem,
    ContextRequest,
    HookAnswer,
    HookCall,
    Moment,
    Part,
    SessionState,
    SignalLimits,
)
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter
from nacre.values.session import Action, ToolCall

KEPT_DAYS = 7
_DAY_SECONDS = 86_400
_JUST_SECONDS = 60
"""A reset ends a session and begins the next one at once."""

_MOST_BYTES = 200_000
_MOST_OTHERS = 30
_MOST_BEFORE = 20


def read_state(home: Path, session: str | None) -> SessionState:
    """What is known of a session; a new state where nothing is, or where it cannot be read."""
    return _read(_path(home, session)) if session else SessionState()


def _read(path: Path) -> SessionState:
    try:
        descriptor = files.open_file(path, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            return _state(json.loads(file.read(_MOST_BYTES)))
    except (OSError, ValueError, TypeError, RecursionError):
        return SessionState()


def write_state(home: Path, session: str | None, state: SessionState | None) -> None:
    """Keep it, once what it speaks of was delivered, as far as the disk lets: nothing fails for it.

    Where it cannot be kept, nobody knows what was delivered: a handoff is given to the next session, too.
    """
    if not session or state is None:
        return
    path = _path(home, session)
    temporary = files.temporary_name(path)
    with contextlib.suppress(OSError):
        files.make_folder(path.parent)
        files.sweep(path.parent, path.name)
        try:
            descriptor = files.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(asdict(state)).encode())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def just_ended(home: Path, session: str, folder: str | None, now_ms: int) -> tuple[str, ...]:
    """The sessions of the same tool that ended in a folder within a minute, and those that these went on from."""
    tool = session.partition(":")[0]
    found: list[str] = []
    for state in _others(home, session):
        is_there = state.name.partition(":")[0] == tool and state.folder == (folder or "")
        if is_there and state.ended and 0 <= now_ms - state.ended <= _JUST_SECONDS * 1000:
            found += [state.name, *state.after]
    return tuple(dict.fromkeys(found))[:_MOST_BEFORE]


def _others(home: Path, session: str) -> Iterator[SessionState]:
    """The states of other sessions, of those that were heard of last."""
    own = _path(home, session)
    with contextlib.suppress(OSError):
        with os.scandir(own.parent) as entries:
            files = [
                (entry.stat().st_mtime, entry.name) for entry in entries if entry.name[:1] != "."
            ]
        for _, name in sorted(files, reverse=True)[:_MOST_OTHERS]:
            if name != own.name:
                yield _read(own.with_name(name))


def prune_states(home: Path, now: float) -> int:
    """Remove those of sessions that were not heard of for a week (``now``: epoch seconds); returns how many.

    What processes that were killed left half written goes as well.
    """
    removed, folder = 0, _path(home, "any").parent
    with contextlib.suppress(OSError):
        files.sweep(folder)
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > KEPT_DAYS * _DAY_SECONDS:
                    path.unlink()
                    removed += 1
    return removed


def _state(kept: object) -> SessionState:
    """What a file holds, each value that has its kind. Raises TypeError."""
    if not isinstance(kept, dict):
        raise TypeError
    values: dict[str, Any] = {}
    for field in fields(SessionState):
        value, default = kept.get(field.name), field.default
        if isinstance(default, tuple) and isinstance(value, list):
            values[field.name] = tuple(one for one in value if isinstance(one, str))
        elif type(value) is type(default):
            values[field.name] = value
    return SessionState(**values)


def _path(home: Path, session: str) -> Path:
    return Path(session_file(str(home), session))


# ----------------------------------------------------------------------------
# Before an edit or a command: the owner's rule that names the file, or what the command is told to
# do.
#
# Plain on purpose: rules (preferences and lessons) alone, by names alone. What else was tried is in
# decision 20.


_TAKERS = frozenset({"claude-code", "codex", "generic"})
"""Hosts that take something for the agent before a tool runs."""

_RULES = (Kind.PREFERENCE, Kind.LESSON)
_CANDIDATES = 50
_MOST_PROGRAMS = 8
_MOST_FOLDERS = 12


def answer(home: Home, call: HookCall) -> HookAnswer:
    """One rule, or nothing: to most calls, to sessions nobody talks in, and where the daemon does not answer."""
    tokens = home.settings.whole("context.tool_tokens")
    if call.is_apart or call.alone or not call.session or call.host not in _TAKERS or not tokens:
        return HookAnswer()
    made = asked(call.tool, call.arguments)
    if made.action not in (Action.EDIT, Action.RUN):
        return HookAnswer()
    state = read_state(home.settings.home, call.session)
    project = project_of_folder(home, Path(call.folder)) if call.folder else None
    request = ContextRequest(Moment.PROMPT, folder=call.folder, session=call.session)
    draft = Draft(home, request, state, project, tokens + title_tokens(Part.RELEVANT))
    for memory in _rules_for(home, made, replace(draft.filter(), kinds=_RULES)):
        text = line_of(memory, tokens * CHARACTERS_PER_TOKEN)
        item = ContextItem(Part.RELEVANT, text, count_tokens(text), memory.id, memory.updated)
        if not draft.reason_against(memory) and draft.add(item, memory.content):
            block = framed([(Part.RELEVANT, [text])])
            return HookAnswer(block, count_tokens(block), state=state.with_given((memory.id,)))
    return HookAnswer()


def _rules_for(home: Home, call: ToolCall, wanted: Filter) -> list[Memory]:
    """The rules that name a call and are not likely to be outdated, the weightiest first, then the newest."""
    where = memory_clause(wanted, home.today())
    if call.action is Action.EDIT:
        found = [memory for path in call.paths for memory in _naming_file(home, path, where)]
    else:
        every = dict.fromkeys(invocations(call.input))
        programs = [program for program in every if program.told and not looks(program.name)][
            :_MOST_PROGRAMS
        ]
        rows = {row for program in programs for row in _naming_command(home, program, where)}
        found = list(home.memories.by_rows(sorted(rows)).values())
    doubts = home.reviews.doubts([memory.id for memory in found], both_ways=True) if found else ()
    outdated = {doubt.older for doubt in doubts}
    held = [memory for memory in found if memory.id not in outdated]
    return sorted(held, key=lambda memory: (memory.importance, memory.updated), reverse=True)


def _naming_file(home: Home, path: str, where: Clause) -> list[Memory]:
    """The rules that name a file, or a folder that it lies in by two of its names at least."""
    names = [name for name in path.replace("\\", "/").split("/") if name]
    pairs = [f"{above}/{name}" for above, name in pairwise(names)][-_MOST_FOLDERS:]
    matched = home.memory_search.match_parts([*names[-1:], *pairs], where, _CANDIDATES)
    found = home.memories.by_rows([row for row, _, _ in matched]).values()
    whole = f"/{'/'.join(names)}/"
    return [
        memory
        for memory in found
        if any(f"/{name}/" in whole for name in _places(memory, names[-1]))
    ]


def _places(memory: Memory, file: str) -> Iterator[str]:
    """The paths that a memory names, and its names of a file."""
    for name in identifiers(memory.content):
        name = name.strip("/")
        if "/" in name or name == file:
            yield name


def _naming_command(home: Home, program: Invocation, where: Clause) -> list[int]:
    """The rows of rules that hold all that a program is told: two words, a word and an option, or its very name."""
    told = _words(program.told)
    options = [_words([option]) for option in program.options]
    every = [
        program.name,
        *dict.fromkeys([*told, *(word for option in options for word in option)]),
    ]
    matched = home.memory_search.match([Term(word, word) for word in every], where, _CANDIDATES)
    rows = []
    for match in matched:
        held = {every[place] for place in match.held}
        is_more = len(told) > 1 or any(
            held.issuperset(option) for option in options if not set(option) <= set(told)
        )
        if held.issuperset(told) and (is_more or program.name in held):
            rows.append(match.row)
    return rows


def _words(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(word for name in names for word in words(name)))


# ----------------------------------------------------------------------------
# The hold-out: a share of sessions, drawn by a hash of their names, that are told nothing unasked.
#
# Comparing them with the others shows what telling does (:mod:`nacre.usefulness`). ``hold-out.json``
# in the home holds
# the salt of the hash and when which share was in force, so that it can be worked out later which
# session was which.


SHARE = "usefulness.hold_out"
_FILE = "hold-out.json"
_SALT_BYTES = 16
_HASHES = 2.0**64


@dataclass(frozen=True, slots=True)
class Draw:
    """Which sessions are held out: ``shares`` says from which time (epoch milliseconds) on which share was in force."""

    salt: str = ""
    shares: tuple[tuple[int, float], ...] = ()

    def share_at(self, at: int) -> float:
        """The share that was in force at a time."""
        return next((share for since, share in reversed(self.shares) if since <= at), 0.0)

    def is_steady(self, begin: int, end: int) -> bool:
        """Whether one share was in force all that time, and not none."""
        return self.share_at(begin) > 0 and not any(
            begin < since <= end for since, _ in self.shares
        )

    def takes(self, session: str, began: int) -> bool:
        """Whether a session that began then (epoch milliseconds) is held out; ``session`` is ``<tool>:<id>``."""
        share = self.share_at(began)
        return (
            share > 0 and int(keyed_hash(bytes.fromhex(self.salt), session), 16) < share * _HASHES
        )


def takes(home: Home, session: str) -> bool:
    """Whether a session is held out, where the setting is not 0; one that began before that is told as it was."""
    began = read_state(home.settings.home, session).started or to_ms(home.clock()) or 0
    return drawn(home.settings.home).takes(session, began)


def drawn(home: Path) -> Draw:
    """What is noted in a home; a draw that takes nobody where nothing is, or where it cannot be read."""
    try:
        with os.fdopen(files.open_file(home / _FILE, os.O_RDONLY), "rb") as file:
            kept = json.loads(file.read(_MOST_BYTES))
        bytes.fromhex(kept["salt"])
        return Draw(
            kept["salt"], tuple((int(since), float(share)) for since, share in kept["shares"])
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return Draw()


def note_share(
    settings: Settings, now_ms: int, random: Callable[[int], bytes] = os.urandom
) -> None:
    """Note which share is in force from now on, where it is another than before. Raises StoreUnusable."""
    known, share = drawn(settings.home), settings.number(SHARE)
    if share == known.share_at(now_ms):
        return
    noted = {
        "salt": known.salt or random(_SALT_BYTES).hex(),
        "shares": [*known.shares, (now_ms, share)],
    }
    try:
        files.make_folder(settings.home)
        files.write_file(settings.home / _FILE, json.dumps(noted))
    except OSError as error:
        raise StoreUnusable(
            f"cannot note the hold-out: {error.strerror}", hint="is the disk full?"
        ) from error


# ----------------------------------------------------------------------------
# Nudges: an agent that has stored nothing for eight turns is reminded that it can, three times a
# session at most.
#
# Where the owner wants it, Claude Code is also asked for proposals: once a session, as a turn ends.


TURNS = 8
MOST = 3
"""Both: seed facts 1.8."""

TEXT = (
    "Nothing of this session was stored lately. If something was decided, learned or asked for that later sessions "
    "need, store it with memory_store; if not, go on."
)

PROPOSE = (
    "Before you stop: if up to five things were settled, learned or asked for in this session that later sessions need "
    "and that are not stored yet, store them now with one call of memory_store, each with its quote, the person's own "
    "words copied from their message. None is a good answer. Then say in one short line what you stored, no more."
)

_ASKED = frozenset({"claude-code"})
"""Hosts that take something for the agent as a turn ends, and have it go on."""

_WITH_TOOLS = frozenset({"claude-code", "codex", "cursor", "gemini-cli", "opencode", "openclaw"})
"""Tools that are given nacre's tools together with its hooks (``nacre init``)."""


def counted(
    home: Home, state: SessionState, session: str | None, project: str | None
) -> SessionState:
    """The state after one more prompt: prompts are counted anew when the session, or an agent there, stored something.

    Where nobody can be reminded, nothing is counted.
    """
    if session and is_asked_for_proposals(home, session.partition(":")[0]) and state.prompts >= 0:
        state = replace(state, prompts=state.prompts + 1)
    if (
        not session
        or session.partition(":")[0] not in _WITH_TOOLS
        or not home.settings.flag("context.nudges")
    ):
        return state
    last = home.memories.last_row()
    if state.stored_mark < 0:
        return replace(state, turns=1, stored_mark=last)
    if last != state.stored_mark and home.memories.has_stored(
        state.stored_mark, (session, *state.after), project
    ):
        return replace(state, turns=0, stored_mark=last)
    return replace(state, turns=state.turns + 1)


def is_due(state: SessionState) -> bool:
    """Whether the agent is to be reminded with this prompt."""
    return state.turns >= TURNS and state.nudges < MOST


def nudged(state: SessionState) -> SessionState:
    """The state after a reminder: the next one is eight turns away."""
    return replace(state, turns=0, nudges=state.nudges + 1)


def is_asked_for_proposals(home: Home, host: str) -> bool:
    """Whether the agents of a host are to be asked for proposals."""
    return host in _ASKED and home.settings.whole("context.proposals_after") > 0


def is_to_propose(home: Home, state: SessionState) -> bool:
    """Whether the agent is to be asked for proposals as this turn ends."""
    return state.prompts >= home.settings.whole("context.proposals_after")


def asked_to_propose(state: SessionState) -> SessionState:
    """The state after that: it is asked once."""
    return replace(state, prompts=-1)


# ----------------------------------------------------------------------------
# Signals: what one session stores and matters reaches the others that run, with their next prompt.
# Light, for hooks.
#
# Reading is one look at what came after a mark; no lock is taken and nothing is written. The mark and
# the counts are in
# the session's state, which whoever delivers the context keeps: what was not delivered is told again.


SAID_WITHIN = timedelta(days=1)
"""What was said longer ago is no news when it is learned now: old transcripts are read, too."""


@dataclass(frozen=True, slots=True)
class Due:
    """What a session is to be told, each memory with the row up to which it has heard all then."""

    memories: tuple[tuple[int, Memory], ...] = ()

    def given(self, state: SessionState, heard: int, told: int, now_ms: int) -> SessionState:
        """The state after the first ``heard`` of them were seen to, of which ``told`` were told."""
        if not heard:
            return state
        at = now_ms if told else state.signal_at
        return replace(
            state,
            signals=state.signals + told,
            signal_mark=self.memories[heard - 1][0],
            signal_at=at,
        )


def limits_of(settings: Settings, narrower: SignalLimits | None = None) -> SignalLimits:
    """The owner's limits (seed facts 1.7 has the defaults), and those of a host where they are narrower."""
    own = SignalLimits(
        settings.whole("signals.min_importance"),
        settings.whole("signals.most_at_once"),
        settings.whole("signals.cooldown_seconds"),
        settings.whole("signals.most_per_session"),
        settings.whole("signals.max_age_seconds"),
    )
    return own.within(narrower) if narrower else own


def due(home: Home, state: SessionState, project: str | None, limits: SignalLimits) -> Due:
    """What other sessions stored since this one was told last: of its project or of none, trusted, important, new.

    Nothing within the cooldown, nor beyond what a session is told at most, nor to one without a mark: it begins now.
    Not what it said itself, under its own name or under one that it goes on from.
    """
    now = home.clock()
    now_ms = int(now.timestamp() * 1000)
    since = now_ms - state.signal_at
    if not state.name or state.signal_mark < 0 or not home.settings.flag("context.signals"):
        return Due()
    left = limits.most_per_session - state.signals
    if left <= 0 or 0 <= since < limits.cooldown_seconds * 1000:
        return Due()
    wanted = News(
        state.signal_mark,
        first_id(max(0, now_ms - limits.max_age_seconds * 1000)),
        now - SAID_WITHIN,
        (state.name, *state.after),
        project,
        limits.min_importance,
        left + len(state.given),
    )
    found = [
        (row, memory) for row, memory in home.memories.news(wanted) if memory.id not in state.given
    ]
    return Due(tuple(found[: min(limits.most_at_once, left)]))


def begun(home: Home, state: SessionState) -> SessionState:
    """The state of a session that listens from now on, unless it does already."""
    return state if state.signal_mark >= 0 else replace(state, signal_mark=home.memories.last_row())
