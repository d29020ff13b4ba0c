"""What sessions change of memories that are known: they are over, say something else from then on, or are doubted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from nacre.dedup.placement import amend, amended
from nacre.dedup.supersession import released
from nacre.errors import EditConflict
from nacre.extraction.by_model.overtaken import Overtaken
from nacre.extraction.rules.importance import AGENT_CAP
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.platform.ids import to_ms
from nacre.text.passages import one_line, shorten, visible
from nacre.values.memory import Kind, Memory, Retirement
from nacre.values.review import said_by_agent
from nacre.values.session import Speaker

_WHY_CHARACTERS = 180
"""Of what speaks against a memory."""


@dataclass
class Amendments:
    """What is noted of known memories until it is written, and how many were ``changed``, ``ended`` and ``doubted`` so
    far.
    """

    changed: int = 0
    ended: int = 0
    doubted: int = 0
    _ends: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    _changes: list[tuple[Overtaken, str]] = field(default_factory=list)
    _doubts: list[Overtaken] = field(default_factory=list)

    def end(self, memory_id: str, reason: str) -> None:
        """A memory is to end."""
        self._ends[memory_id] = reason, None

    def note(self, overtaken: Sequence[Overtaken], by: str) -> None:
        """What a model found overtaken is to end, or to say what it says now."""
        for one in overtaken:
            if one.now:
                self._changes.append((one, by))
            else:
                self._ends[one.memory.id] = f"over, as a session shows: {one.quote}", one.memory.content

    def doubt(self, doubted: Sequence[Overtaken]) -> None:
        """What a model took for overtaken, and its evidence does not bear out, is to wait in review."""
        self._doubts += doubted

    def write(self, change: Change) -> None:
        """Write what was noted."""
        for memory_id, (reason, words) in self._ends.items():
            self.ended += _end(change, memory_id, reason, words)
            change.yield_locks()
        for one, model in self._changes:
            self.changed += _amend(change, one, model)
            change.yield_locks()
        for one in self._doubts:
            is_rule = one.memory.kind is Kind.PREFERENCE and one.memory.speaker is Speaker.OWNER
            why = (
                f"a later session says: {one.quote}"
                if one.is_owners or not is_rule
                else said_by_agent(one.quote, one.shown.session or "", one.shown.at)
            )
            self.doubted += doubt(change.home, one.memory, why, filter(None, [one.shown.session]))
        for noted in (self._ends, self._changes, self._doubts):
            noted.clear()


def _end(change: Change, memory_id: str, reason: str, words: str | None) -> bool:
    """Move a memory to ``retired/``, unless it ended before, says other ``words`` than a model saw, or somebody writes
    into its file just now. What is over ends with all that it superseded; what was taken back lets that hold again.
    """
    home = change.home
    memory = home.memories.find(memory_id)
    if memory is None or not memory.is_active or words not in (None, memory.content):
        return False
    clean = home.redactor.clean(reason)
    going = [memory, *_superseded_by(home, memory)] if words else [memory]
    gone = [replace(one, retired=Retirement(home.now(), clean)) for one in going]
    told = [change.entry("retire", memory=one.id, reason=clean) for one in going]
    try:
        change.put([*gone, *released(home, going)], told)
    except EditConflict as error:
        home.problems.append(error.message)
        return False
    return True


def _superseded_by(home: Home, memory: Memory) -> list[Memory]:
    """What a memory superseded, and what that did."""
    found: dict[str, Memory] = {}
    line = [memory]
    while line:
        older = [one for one in home.memories.replaced_by(line.pop().id) if not one.retired and one.id not in found]
        found |= {one.id: one for one in older}
        line += older
    return list(found.values())


def _amend(change: Change, one: Overtaken, by: str) -> bool:
    """Have a memory say what it says now, unless it says something else than when the model saw it.

    What the agent alone said is the agent's, also where it stands in place of words of the owner's.
    """
    memory = change.home.memories.find(one.memory.id)
    if memory is None or not memory.is_active or memory.content != one.memory.content:
        return False
    if memory.speaker is Speaker.OWNER and not one.is_owners:
        memory = replace(memory, speaker=Speaker.AGENT, importance=min(memory.importance, AGENT_CAP))
    reason = f"a session shows it: {one.quote}"
    return amend(change, memory, amended(change.home, memory, one.now, one.shown, by=by, reason=reason))


def doubt(home: Home, seen: Memory, why: str, sessions: Iterable[str]) -> bool:
    """Have a memory looked at by the owner, and told with what speaks against it in some sessions until then, if it
    still says what a model saw; returns whether that is new. Call it in a transaction.
    """
    memory = home.memories.find(seen.id)
    if memory is None or not memory.is_active or memory.content != seen.content:
        return False
    told = home.redactor.clean(shorten(one_line(visible(why)), _WHY_CHARACTERS))
    return home.reviews.doubt(memory.id, told, to_ms(home.now()) or 0, sessions)
