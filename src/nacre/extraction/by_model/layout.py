"""Shows: a session as a model reads it: numbered turns, calls in a line each, and nothing that nobody said.

Turns begin at the start of a line, and every other line is indented: no text of a turn can look like another turn. The
marks of the frame around the transcript are taken apart where a text holds them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nacre.extraction.reading.bounds import bounded
from nacre.text.passages import one_line, pieces, shorten, visible
from nacre.values.session import Flag, Speaker, ToolCall, Trust, Turn

CHUNK = 12_000
"""Characters of a part of a session (seed facts 1.5)."""

OVERLAP = 1_200
"""Characters of the part before it that a part begins with."""

EARLIER = 4_000
"""Characters of what was read before that stand above what is new in a session that goes on."""

_PIECE = 4_000
_MOST_CALLS = 8
_CALL_CHARACTERS = 160
_OUTCOME_CHARACTERS = 100
_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_FRAME = re.compile(r"<(?=\s*/?\s*(?:transcript|memories)\b)", re.IGNORECASE)
_NUMBER = re.compile(r"\[(?=m\d+\])", re.IGNORECASE)
_NEW = "(What is above was read before. New is what follows.)"
_DECLINED = "rejected: "


@dataclass(frozen=True, slots=True)
class Line:
    """A turn, or a piece of a long one, as it is shown; ``turn`` is its place in the session, ``head`` what it begins
    with.
    """

    turn: int
    head: str
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines that are shown together: those before ``own`` were shown before, and give what follows its sense."""

    lines: tuple[Line, ...]
    own: int = 0

    @property
    def first(self) -> int:
        """The place of the first turn of its own."""
        return self.lines[self.own].turn

    @property
    def last(self) -> int:
        """The place of its last turn."""
        return self.lines[-1].turn

    @property
    def turns(self) -> frozenset[int]:
        """The places of all turns that are shown."""
        return frozenset(line.turn for line in self.lines)

    @property
    def text(self) -> str:
        """The transcript in its frame."""
        shown = [line.text for line in self.lines]
        if self.own:
            shown.insert(self.own, _NEW)
        return framed("transcript", "\n".join(shown))


def framed(name: str, text: str) -> str:
    """A text between the marks of a frame; those in the text itself must have been taken apart by :func:`as_data`."""
    return f"<{name}>\n{text}\n</{name}>"


def as_data(text: str) -> str:
    """A text without what nobody sees, and without what looks like the frame's marks or another turn's number."""
    text = visible(text)
    if not text.isascii():
        text = "".join(character for character in text if unicodedata.category(character) not in ("Cf", "Co"))
    return _NUMBER.sub("(", _FRAME.sub("‹", text))


def laid_out(turns: Sequence[Turn], *, user_only: bool = False) -> list[Line]:
    """The turns that a model is shown; ``user_only`` leaves out what the agent said and did."""
    lines: list[Line] = []
    day = ""
    for at, turn in enumerate(turns):
        if user_only and turn.speaker is not Speaker.OWNER:
            continue
        for head, text in _shown(at, turn):
            date = turn.time.date().isoformat() if turn.time else day
            lines.append(Line(at, head, f"({date})\n{head}{text}" if date != day else f"{head}{text}"))
            day = date
    return lines


def whole(lines: Sequence[Line], begin: int = 0) -> Chunk | None:
    """All that is new from the turn ``begin`` on, below a little of what was before; ``None`` where nothing is."""
    first = next((at for at, line in enumerate(lines) if line.turn >= begin), None)
    return None if first is None else _with_context(lines, first, len(lines), EARLIER)


def chunks(lines: Sequence[Line], begin: int = 0, *, size: int = CHUNK) -> list[Chunk]:
    """What is new, cut into parts of so many characters that overlap."""
    found: list[Chunk] = []
    start = next((at for at, line in enumerate(lines) if line.turn >= begin), len(lines))
    room = EARLIER if start else 0
    while start < len(lines):
        end, taken = start, 0
        while end < len(lines) and (end == start or taken + len(lines[end].text) <= size - OVERLAP):
            taken += len(lines[end].text)
            end += 1
        found.append(_with_context(lines, start, end, room))
        start, room = end, OVERLAP
    return found


def _with_context(lines: Sequence[Line], start: int, end: int, room: int) -> Chunk:
    """Some lines below those before them, as far as there is room; the first of these may be cut."""
    before: list[Line] = []
    for line in reversed(lines[:start]):
        if len(line.text) > room:
            before += [replace(line, text=f"{line.head} …{line.text[-room:]}")] if room and not before else []
            break
        before.append(line)
        room -= len(line.text)
    return Chunk((*reversed(before), *lines[start:end]), len(before))


def _shown(at: int, turn: Turn) -> Iterator[tuple[str, str]]:
    """The head and the rest of each piece of a turn."""
    if turn.flags & _UNSPOKEN or turn.speaker not in (Speaker.OWNER, Speaker.AGENT):
        return
    if turn.speaker is Speaker.AGENT and turn.flags & Flag.INJECTED:
        return
    who = f"{turn.speaker.value}, untrusted" if turn.trust is Trust.UNTRUSTED else turn.speaker.value
    calls = "".join(f"\n  {one}" for one in _calls(turn.tool_calls))
    said = pieces(as_data(bounded(turn).text), _PIECE)
    if not said and calls:
        yield f"[m{at:05}][{who}]", calls
    for number, piece in enumerate(said):
        label = f"{who}, continued" if number else who
        text = "\n  ".join(piece.splitlines())
        yield f"[m{at:05}][{label}]", f" {text}{calls if number == len(said) - 1 else ''}"


def _calls(calls: Sequence[ToolCall]) -> Iterator[str]:
    for call in calls[:_MOST_CALLS]:
        name, given = as_data(one_line(call.name)), as_data(shorten(call.input, _CALL_CHARACTERS))
        yield f"· {name}: {given}{_outcome(call)}" if given else f"· {name}{_outcome(call)}"
    if len(calls) > _MOST_CALLS:
        yield f"· and {len(calls) - _MOST_CALLS} more calls"


def _outcome(call: ToolCall) -> str:
    if not call.outcome:
        return ""
    if call.outcome.startswith(_DECLINED):
        return f" → the owner declined: {as_data(one_line(call.outcome.removeprefix(_DECLINED)))}"
    return f" → {as_data(shorten(call.outcome, _OUTCOME_CHARACTERS))}"
