"""Shows: a session as a model reads it, as a digest: what the owner said, what the agent answered and found, what
failed and what mended it, under numbers without gaps. What calls put out, and calls that went well, are left out.

Turns begin at the start of a line, and every other line is indented: no text of a turn can look like another turn. The
marks of the frame around the transcript are taken apart where a text holds them.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nacre.extraction.reading.bounds import bounded
from nacre.extraction.reading.pasted import apart, without_pasted
from nacre.extraction.reading.speech import is_accepted_plan
from nacre.platform.days import shown_day
from nacre.text.passages import one_line, pieces, shorten, visible
from nacre.values.session import Flag, Speaker, ToolCall, Trust, Turn

CHUNK = 12_000
"""Characters of a part of a session (seed facts 1.5)."""

DIGEST_TOKENS = 12_000
"""A longer session is shown in parts."""

OVERLAP = 1_200
"""Characters of the part before it that a part begins with."""

EARLIER = 4_000
"""Characters of what was read before that stand above what is new in a session that goes on."""

_PIECE = 4_000
_MOST_CALLS = 8
_CALL_CHARACTERS = 160
_OUTCOME_CHARACTERS = 240
_PASTE_CHARACTERS = 1_200
_PLAN_CHARACTERS = 6_000
_BLOCK_LINES = 12
_AGAIN_CHARACTERS = 500
_LEAST_OF_A_PART = 0.5
_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_FRAME = re.compile(r"<(?=\s*/?\s*(?:transcript|owner|memories)\b)", re.IGNORECASE)
_NUMBER = re.compile(r"\[(?=m\d+\])", re.IGNORECASE)
_FENCED = re.compile(r"^([ \t]*```)[^\n]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_NEW = "(What is above was read before. New is what follows.)"
_HEAD_WORDS = 2


@dataclass(frozen=True, slots=True)
class Line:
    """A turn, or a piece of a long one, as it is shown under a number; ``turn`` is its place in the session, ``head``
    what it begins with, ``said`` the owner's own words in short.
    """

    turn: int
    number: int
    head: str
    text: str
    said: str = ""


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
    def places(self) -> Mapping[int, int]:
        """The places of all turns that are shown, by their numbers."""
        return {line.number: line.turn for line in self.lines}

    @property
    def text(self) -> str:
        """The transcript in its frame, and below it what the owner says in it."""
        shown = [line.text for line in self.lines]
        if self.own:
            shown.insert(self.own, _NEW)
        said = [f"[m{line.number}] {line.said}" for line in self.lines[self.own :] if line.said]
        again = f"\n\n{framed('owner', chr(10).join(said))}" if said else ""
        return framed("transcript", "\n".join(shown)) + again


def framed(name: str, text: str) -> str:
    """A text between the marks of a frame; those in the text itself must have been taken apart by :func:`as_data`."""
    return f"<{name}>\n{text}\n</{name}>"


def as_data(text: str) -> str:
    """A text without what nobody sees, and without what looks like the frame's marks or another turn's number."""
    text = visible(text)
    if not text.isascii():
        text = "".join(character for character in text if unicodedata.category(character) not in ("Cf", "Co"))
    return _NUMBER.sub("(", _FRAME.sub("‹", text))


def laid_out(turns: Sequence[Turn], *, owner_only: bool = False, after: int = 0) -> list[Line]:
    """The turns that a model is shown, under the numbers ``after`` one.

    ``owner_only`` leaves out what the agent said and did.
    """
    lines: list[Line] = []
    day, number = "", after
    calls = _Calls()
    for at, turn in enumerate(turns):
        if owner_only and turn.speaker is not Speaker.OWNER:
            continue
        shown = _plan(turn) if is_accepted_plan(turns, at) else _shown(turn, calls)
        number += bool(shown)
        for piece, (who, text, said) in enumerate(shown):
            date = shown_day(turn.time) if turn.time and not piece else day
            head = f"[m{number}][{who}]"
            lines.append(Line(at, number, head, f"({date})\n{head}{text}" if date != day else f"{head}{text}", said))
            day = date
    return lines


def whole(lines: Sequence[Line], begin: int = 0) -> Chunk | None:
    """All that is new from the turn ``begin`` on, below a little of what was before; ``None`` where nothing is."""
    first = next((at for at, line in enumerate(lines) if line.turn >= begin), None)
    return None if first is None else _with_context(lines, first, len(lines), EARLIER)


def chunks(lines: Sequence[Line], begin: int = 0, *, size: int = CHUNK) -> list[Chunk]:
    """What is new, cut into parts of so many characters that overlap; the owner's words begin a part where they can."""
    found: list[Chunk] = []
    start = next((at for at, line in enumerate(lines) if line.turn >= begin), len(lines))
    room = EARLIER if start else 0
    while start < len(lines):
        end = _end_of_part(lines, start, size - OVERLAP)
        found.append(_with_context(lines, start, end, room))
        start, room = end, OVERLAP
    return found


def _end_of_part(lines: Sequence[Line], start: int, size: int) -> int:
    """Where a part ends that begins at a line: before the owner speaks, if that leaves it half full."""
    end, taken, turned = start, 0, start
    while end < len(lines) and (end == start or taken + len(lines[end].text) <= size):
        if lines[end].said and taken >= _LEAST_OF_A_PART * size:
            turned = end
        taken += len(lines[end].text)
        end += 1
    return turned if turned > start and end < len(lines) else end


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


def _shown(turn: Turn, calls: _Calls) -> list[tuple[str, str, str]]:
    """Who speaks, the text, and the owner's own words in short, of each piece of a turn."""
    if turn.flags & _UNSPOKEN or turn.speaker not in (Speaker.OWNER, Speaker.AGENT):
        return []
    is_owner = turn.speaker is Speaker.OWNER
    if turn.flags & Flag.INJECTED and not is_owner:
        return []
    who = f"{turn.speaker.value}, untrusted" if turn.trust is Trust.UNTRUSTED else turn.speaker.value
    told = "".join(f"\n  {one}" for one in calls.worth_telling(turn.tool_calls))
    text = as_read(turn)
    said = pieces(text, _PIECE)
    if not said:
        return [(who, told, "")] if told else []
    own = shorten(without_pasted(as_data(bounded(turn).text)), _AGAIN_CHARACTERS) if is_owner else ""
    found = [(f"{who}, continued" if at else who, _indented(piece), "" if at else own) for at, piece in enumerate(said)]
    return [*found[:-1], (found[-1][0], found[-1][1] + told, found[-1][2])]


def calls_of(turns: Sequence[Turn]) -> Iterator[str]:
    """Of each turn of a session the lines of its calls that tell something, of one without words all of them."""
    calls = _Calls()
    for turn in turns:
        told = calls.worth_telling(turn.tool_calls) or ([] if turn.text.strip() else map(_told, turn.tool_calls))
        yield "".join(f"\n  {one}" for one in itertools.islice(told, _MOST_CALLS))


def as_read(turn: Turn) -> str:
    """The text of a turn as data: of the owner's with each line that was pasted behind ``>`` and long pastes without
    their middle, of the agent's with long blocks of code and traces cut.
    """
    text = as_data(bounded(turn).text)
    if turn.speaker is not Speaker.OWNER:
        return _with_blocks_cut(text)
    return "\n".join(_quoted(part) if is_pasted else part for is_pasted, part in apart(text))


def _plan(turn: Turn) -> list[tuple[str, str, str]]:
    """A plan of an agent's that the owner accepts."""
    who = "agent, plan" if turn.trust is Trust.TRUSTED else "agent, plan, untrusted"
    return [(who, _indented(without_middle(as_data(bounded(turn).text), _PLAN_CHARACTERS)), "")]


def _indented(text: str) -> str:
    return " " + "\n  ".join(text.splitlines())


def _quoted(text: str) -> str:
    text = without_middle(text, _PASTE_CHARACTERS)
    return "\n".join(f"> {line}" for line in text.splitlines())


def without_middle(text: str, most: int) -> str:
    """A text of at most so many characters and a few, with both its ends."""
    return text if len(text) <= most else f"{text[: most // 2]} …\n… {text[-most // 2 :]}"


def _with_blocks_cut(text: str) -> str:
    """A message in which long blocks of code and traces show how they begin."""

    def cut(block: re.Match[str]) -> str:
        lines = block.group().splitlines()
        left = len(lines) - _BLOCK_LINES
        return block.group() if left < 2 else "\n".join([*lines[:_BLOCK_LINES], f"(and {left - 1} more lines)", "```"])

    return _FENCED.sub(cut, text)


class _Calls:
    """Which calls of a session tell something: those that failed, that mended it, that the owner declined, and that
    made something with a name.
    """

    def __init__(self) -> None:
        self._failing: set[tuple[str, ...]] = set()

    def worth_telling(self, calls: Sequence[ToolCall]) -> list[str]:
        """A line for each of them, eight at most."""
        told = [_told(call) for call in calls if self._tells(call)]
        more = len(told) - _MOST_CALLS
        return told if more <= 0 else [*told[:_MOST_CALLS], f"· and {more} more such calls"]

    def _tells(self, call: ToolCall) -> bool:
        head = (call.name, *call.input.split()[:_HEAD_WORDS])
        if call.failed:
            self._failing.add(head)
            return True
        mends = call.outcome == "ok" and head in self._failing
        self._failing -= {head} if mends else set()
        return mends or bool(call.made) or (call.outcome or "").startswith("rejected")


def _told(call: ToolCall) -> str:
    name, given = as_data(one_line(call.name)), as_data(shorten(call.input, _CALL_CHARACTERS))
    return f"· {name}: {given}{_outcome(call)}" if given else f"· {name}{_outcome(call)}"


def _outcome(call: ToolCall) -> str:
    outcome = call.outcome or ""
    if outcome.startswith("rejected"):
        words = as_data(one_line(outcome.removeprefix("rejected").removeprefix(":")))
        return f" → the owner declined{f': {words}' if words else ''}"
    error = "" if (call.error or "") in outcome else call.error
    told = ", ".join(one for one in (outcome, *call.made, error) if one)
    return f" → {as_data(shorten(one_line(told), _OUTCOME_CHARACTERS))}" if told else ""
