"""Shows: a session as a model reads it, as a digest: what the owner said, what the agent answered and found, what
failed and what mended it, under numbers without gaps. What calls put out, and calls that went well, are left out.

Turns begin at the start of a line, and every other line is indented: no text of a turn can look like another turn. The
marks of the frame around the transcript are taken apart where a text holds them.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import accumulate, chain, count
from typing import Annotated, Any, Literal

import msgspec

from nacre.base import json as json_values
from nacre.base.json import quoted
from nacre.base.text import normalise, one_line, pieces, shorten, visible
from nacre.base.times import day_of, shown_day
from nacre.learn.pasted import apart, without_pasted
from nacre.learn.reading import bounded
from nacre.learn.sentences import is_accepted_plan
from nacre.llm.failures import schema_of
from nacre.memories.statements import leaves_out, new_word
from nacre.values.memory import Kind, Memory
from nacre.values.models import Capabilities, Prompt
from nacre.values.session import Flag, Session, Speaker, Task, ToolCall, Trust, Turn

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
        text = "".join(
            character for character in text if unicodedata.category(character) not in ("Cf", "Co")
        )
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
            lines.append(
                Line(
                    at,
                    number,
                    head,
                    f"({date})\n{head}{text}" if date != day else f"{head}{text}",
                    said,
                )
            )
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
            before += (
                [replace(line, text=f"{line.head} …{line.text[-room:]}")]
                if room and not before
                else []
            )
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
    who = (
        f"{turn.speaker.value}, untrusted" if turn.trust is Trust.UNTRUSTED else turn.speaker.value
    )
    told = "".join(f"\n  {one}" for one in calls.worth_telling(turn.tool_calls))
    text = as_read(turn)
    said = pieces(text, _PIECE)
    if not said:
        return [(who, told, "")] if told else []
    own = (
        shorten(without_pasted(as_data(bounded(turn).text)), _AGAIN_CHARACTERS) if is_owner else ""
    )
    found = [
        (f"{who}, continued" if at else who, _indented(piece), "" if at else own)
        for at, piece in enumerate(said)
    ]
    return [*found[:-1], (found[-1][0], found[-1][1] + told, found[-1][2])]


def calls_of(turns: Sequence[Turn]) -> Iterator[str]:
    """Of each turn of a session the lines of its calls that tell something, of one without words all of them."""
    calls = _Calls()
    for turn in turns:
        told = calls.worth_telling(turn.tool_calls) or (
            [] if turn.text.strip() else map(_told, turn.tool_calls)
        )
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
        return (
            block.group()
            if left < 2
            else "\n".join([*lines[:_BLOCK_LINES], f"(and {left - 1} more lines)", "```"])
        )

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


# ----------------------------------------------------------------------------
# The parts of a statement that can be left out whole: sentences, what stands between semicolons or in
# parentheses.


_PART = re.compile(
    r"[(（][^()（）]*[)）]\s*|.+?(?:[.!?;]+(?=\s)\s*|[。！？；]\s*|(?=[(（])|\Z)", re.DOTALL
)
_SPACE_BEFORE = re.compile(r"\s+(?=[.,;])")
_OPEN = " ,;:，；：—–-"
_MARKS = " .;:,!?()。；：，！？（）"
_FULL_STOPS = ".!。！"


def without(content: str, wrong: Sequence[str]) -> str | None:
    """A statement without its wrong parts, of which it keeps the first, and half of its length at least.

    ``None`` where ``wrong`` is not one or several of its parts, give or take the marks at their ends.
    """
    parts = _PART.findall(content)
    bare = [_bare(part) for part in parts]
    named = {_bare(one) for one in wrong} - {""}
    gone = {at for at, part in enumerate(bare) if part in named}
    if not gone or 0 in gone or not named <= set(bare):
        return None
    left = "".join(part for at, part in enumerate(parts) if at not in gone)
    rest = _SPACE_BEFORE.sub("", left).rstrip(_OPEN)
    if 2 * len(rest) < len(content):
        return None
    return rest if rest[-1] in _FULL_STOPS or content[-1] not in _FULL_STOPS else rest + content[-1]


def _bare(text: str) -> str:
    return normalise(text).strip(_MARKS)


# ----------------------------------------------------------------------------
# Reads: what a model answers; of models that are held to no schema also what nearly fits it.


Evidence = Annotated[int, msgspec.Meta(ge=0, description="number of a turn, as 12 for [m12]")]


class Told(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One memory as a model proposes it."""

    kind: Literal["fact", "decision", "preference", "todo", "relationship", "event", "lesson"]
    subject: str
    content: str
    importance: int
    expiry: Literal["permanent", "temporary"]
    tags: list[str]
    canonical_key: str | None
    evidence: list[Evidence]
    quote: str


class Answer(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a model found worth keeping; nothing, most of the time."""

    memories: list[Told]


class State(StrEnum):
    """What a session makes of a memory that is known."""

    CHANGED = "changed"
    OVER = "over"


class Seen(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory that was shown as known and holds no longer as it stands: which ``clause`` of it, and, where that is not
    all of it, what the memory says ``now``."""

    known: Annotated[int, msgspec.Meta(ge=1, description="number of a known memory, as 2 for [k2]")]
    clause: str
    state: State
    now: str
    evidence: list[Evidence]
    quote: str


class Changes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Which known memories hold no longer as they stand; none, most of the time."""

    known: list[Seen]


class Outdated(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory that holds no longer as it stands, by what was said later."""

    number: int
    clause: str
    now: str
    evidence: list[int]


class Outdateds(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Those that hold no longer; none, most of the time."""

    memories: list[Outdated]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said of a session, or of a part of one: memories, and which known ones hold no longer."""

    memories: Sequence[Told]
    known: Sequence[Seen] = ()


_FENCE = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_TURN = re.compile(r"\[?m?0*(\d{1,7})\]?", re.IGNORECASE)
_KNOWN = re.compile(r"\[?k?0*(\d{1,7})\]?", re.IGNORECASE)
_OTHER_NAMES = {
    "content": ("description", "detail", "text", "summary"),
    "subject": ("name", "topic", "title", "entity"),
    "kind": ("type",),
    "evidence": ("turns", "evidence_turns"),
}
"""What models call the fields that were asked for (seed facts 1.5)."""

_MISSING: dict[str, Any] = {
    "expiry": "permanent",
    "tags": [],
    "canonical_key": None,
    "importance": 6,
    "quote": "",
}
_MISSING_OF_KNOWN: dict[str, Any] = {"clause": "", "now": "", "evidence": [], "quote": ""}


def tidied(text: str) -> str:
    """An answer in the shape that was asked for, where it nearly is; memories that are none are left out.

    What cannot be read is given back as it is, for whoever checks it to say so.
    """
    data = _read(text)
    if isinstance(data, dict):
        one = next((data[name] for name in ("memories", "entries", "items") if name in data), None)
        if one is None and _memory(data) is None:
            return text  # neither memories nor that there are none
        data = [data] if one is None else one
    return _tidy("memories", data, _memory) or text


def tidied_changes(text: str) -> str:
    """The same of what is said of known memories."""
    data = _read(text)
    return _tidy("known", data.get("known") if isinstance(data, dict) else data, _seen) or text


def _read(text: str) -> Any:
    fenced = _FENCE.match(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return None


def _tidy(name: str, items: Any, shape: Callable[[Any], dict[str, Any] | None]) -> str | None:
    if not isinstance(items, list):
        return None
    return json.dumps({name: [one for item in items if (one := shape(item))]}, ensure_ascii=False)


def _memory(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    found = {**_MISSING, **item}
    for name, others in _OTHER_NAMES.items():
        other = next((one for one in others if item.get(one)), None)
        if not item.get(name) and other:
            found[name] = item[other]
    found["kind"] = str(found.get("kind", "")).lower()
    found["evidence"] = _numbers(found.get("evidence"))
    found["tags"] = _texts(found["tags"])
    fitting = {name: found[name] for name in Told.__struct_fields__ if name in found}
    try:
        json_values.convert(fitting, Told)
    except msgspec.ValidationError:
        return None
    return fitting


def _seen(item: Any) -> dict[str, Any] | None:
    """What is said of a known memory; nothing of one that is said to be as it was."""
    if not isinstance(item, dict):
        return None
    found = {**_MISSING_OF_KNOWN, **item}
    found["known"] = next(
        (int(match[1]) for match in map(_KNOWN.fullmatch, _texts(found.get("known"))) if match), 0
    )
    found["state"] = str(found.get("state", "")).lower()
    found["evidence"] = _numbers(found["evidence"])
    words = {name: found[name] or "" for name in ("clause", "now", "quote")}
    fitting = {name: (found | words)[name] for name in Seen.__struct_fields__}
    try:
        json_values.convert(fitting, Seen)
    except msgspec.ValidationError:
        return None
    return fitting


def _numbers(value: Any) -> list[int]:
    return [int(match[1]) for match in map(_TURN.fullmatch, _texts(value)) if match]


def _texts(value: Any) -> list[str]:
    items = (
        value
        if isinstance(value, list)
        else re.split(r"[,\s]+", value)
        if isinstance(value, str)
        else [value]
    )
    return [str(item).strip() for item in items if item is not None and str(item).strip()]


# ----------------------------------------------------------------------------
# Known memories beside what was said later in other sessions: which of them no longer hold as they
# stand?


MOST_MEMORIES = 15
"""So many memories are held against what was said later for each day with sessions, those first that never were, or
longest ago."""

TOKENS_A_DAY = 12_000
"""What that takes at most, as it was measured on a real project."""

_MOST_MISSING = 0.2
"""Of the words of a clause, that the memory does not hold: it was to be copied."""

_NOW_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Saying:
    """What somebody said after a memory: when, who, the part of it that has most of the memory's words, and in which
    session.
    """

    at: datetime
    speaker: Speaker
    text: str
    session: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """A memory beside what was said later: all with words of it, ``until`` the end of the last session of its project,
    or what overtook another one.
    """

    memory: Memory
    sayings: tuple[Saying, ...]
    until: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A memory that may be out of date: which clause of it, what was said later, with its day, and where."""

    memory: Memory
    clause: str
    why: str
    shown: tuple[Saying, ...]


def doubts(held: Sequence[Held], found: Iterable[Outdated]) -> tuple[list[Doubt], Counter[str]]:
    """Those of a model's claims that code bears out: the clause stands in the memory, and what shows it was said later
    in its project, below whichever memory it stands. And how many others are not taken, by why.
    """
    told: dict[str, Doubt] = {}
    dropped = Counter[str]()
    for one in found:
        at = one.number - 1
        if not 0 <= at < len(held):
            dropped["no such memory"] += 1
            continue
        memory, shown = held[at].memory, _shown_later(held, held[at].memory, one.evidence)
        if not _stands_in(one.clause, memory.content):
            dropped["the clause is not in the memory"] += 1
        elif not shown:
            dropped["nothing said later shows it"] += 1
        else:
            told.setdefault(
                memory.id,
                Doubt(memory, one.clause, _why(memory, one_line(one.now), shown), tuple(shown)),
            )
    return list(told.values()), dropped


def _stands_in(clause: str, content: str) -> bool:
    """Whether a memory has a clause: word by word, however short it is, or else nearly all of its words."""
    copied = normalise(clause)
    if not copied:
        return False
    is_copied = f" {copied} " in f" {normalise(content)} " or (
        not copied.isascii() and copied in normalise(content)
    )
    return is_copied or leaves_out(clause, content) <= _MOST_MISSING


def _why(memory: Memory, now: str, shown: Sequence[Saying]) -> str:
    """What is told beside a memory in doubt: a model's words where they are those of the memory and of what was said,
    else the last of that. Nothing of it stands beside a rule of the owner's of which only an agent says otherwise.
    """
    is_rule = memory.kind is Kind.PREFERENCE and memory.speaker is Speaker.OWNER
    said = [one for one in shown if one.speaker is Speaker.OWNER] if is_rule else shown
    if not said:
        return f"something else was said (an agent, {shown_day(shown[-1].at)})"
    is_theirs = bool(now) and new_word(now, [memory.content, *(one.text for one in said)]) is None
    by_owner = all(one.speaker is Speaker.OWNER for one in (said if is_theirs else said[-1:]))
    who = f"{'you' if by_owner else 'an agent'}, {shown_day(said[-1].at)}"
    return f"{shorten(now if is_theirs else one_line(said[-1].text), _NOW_CHARACTERS)} ({who})"


def numbers(held: Sequence[Held]) -> dict[Saying, int]:
    """The number of each saying, in the order in which they are shown: below the first memory that has it."""
    return dict(
        zip(dict.fromkeys(chain.from_iterable(one.sayings for one in held)), count(1), strict=False)
    )


def _shown_later(held: Sequence[Held], memory: Memory, evidence: Iterable[int]) -> list[Saying]:
    """What was said after a memory in its project, of some numbers."""
    own = {saying for one in held if one.memory.project == memory.project for saying in one.sayings}
    said = {
        number: one
        for one, number in numbers(held).items()
        if one in own and one.at > memory.last_said
    }
    return [said[number] for number in sorted(set(evidence)) if number in said]


# ----------------------------------------------------------------------------
# Asks: the words in which a model is asked, from files with a version.


VERSION, LATER_VERSION = "6", "1"
WHOLE, CHUNK_PROMPTS, SEVERAL = "whole", "chunk", "several"
MEMORIES, CHANGES, LATER = "memories", "changes", "later"
"""What a prompt asks for."""

_EVIDENCE = (
    "Each names the turns that show it, by their numbers (the owner's turn, and the agent's that it answers), and "
    "quotes one of them letter by letter."
)
_CLOSING = f"Answer with the memories of this session; an empty list if there are none. {_EVIDENCE}"
_CLOSING_SEVERAL = (
    f"Answer with the memories of all these sessions in one list; an empty one if there are none. {_EVIDENCE} The "
    "turns of one memory are of one session."
)
_CLOSING_CHANGES = "Answer with the known memories that no longer hold as they stand; an empty list if there are none."
_ASKING_TOKENS = 2_500
_LEAST_CHUNK = 3_000
CHARACTERS_A_TOKEN = 3
"""Of code, which has more tokens than prose."""

_OF_WINDOW = 8
"""The part of a window that what is known may take."""

_OUTPUT = {WHOLE: 8_192, CHUNK_PROMPTS: 4_096, SEVERAL: 8_192}


def for_transcript(
    way: str,
    session: Session,
    chunk: Chunk,
    known: Sequence[Memory],
    able: Capabilities,
    seconds: float,
) -> Prompt:
    """What asks for the memories of a session (``whole``) or of a part of one (``chunk``), beside what is ``known``."""
    return _asking(way, f"{_head(session)}{chunk.text}\n\n{_CLOSING}", known, able, seconds)


def for_sessions(
    shown: Sequence[tuple[Session, Chunk]],
    known: Sequence[Memory],
    able: Capabilities,
    seconds: float,
) -> Prompt:
    """What asks for the memories of several sessions at once, each with its numbers."""
    text = "\n\n".join(f"{_head(session)}{chunk.text}" for session, chunk in shown)
    return _asking(SEVERAL, f"{text}\n\n{_CLOSING_SEVERAL}", known, able, seconds)


def for_changes(
    shown: Sequence[tuple[Session, Chunk]],
    known: Sequence[Memory],
    able: Capabilities,
    seconds: float,
) -> Prompt:
    """What asks which ``known`` memories no longer hold as they stand, once these sessions are over."""
    text = "\n\n".join(f"{_head(session)}{chunk.text}" for session, chunk in shown)
    return Prompt(
        task=Task.EXTRACTION,
        system=_words(CHANGES),
        shared=f"{_listed(known)}\n",
        text=f"{text}\n\n{_CLOSING_CHANGES}",
        answer=schema_of(Changes),
        name=CHANGES,
        version=f"changes/{VERSION}",
        output_tokens=_room_for_answer(CHUNK_PROMPTS, able),
        timeout_seconds=seconds,
    )


def for_later(held: Sequence[Held], able: Capabilities, seconds: float) -> Prompt:
    """What asks which memories no longer hold as they stand, each beside what was said later."""
    text = "\n\n".join("\n".join(map(quoted, block)) for block in _beside(held))
    return Prompt(
        task=Task.EXTRACTION,
        system=_words(LATER, LATER_VERSION),
        text=text,
        answer=schema_of(Outdateds),
        name=LATER,
        version=f"later/{LATER_VERSION}",
        output_tokens=_room_for_answer(CHUNK_PROMPTS, able),
        timeout_seconds=seconds,
    )


def _beside(held: Sequence[Held]) -> Iterator[list[dict[str, object]]]:
    """Each memory, and below it what was said later; ``also`` are the numbers of what stands further up already."""
    number_of = numbers(held)
    shown: set[int] = set()
    for number, (memory, sayings) in enumerate(((one.memory, one.sayings) for one in held), 1):
        own = {number_of[one]: one for one in sayings}
        also = sorted(own.keys() & shown)
        told = {
            "memory": number,
            "kind": memory.kind.value,
            "day": _day(memory.last_said),
            "text": memory.content,
        }
        fresh: list[dict[str, object]] = [
            {"number": at, "day": _day(one.at), "speaker": one.speaker.value, "said": one.text}
            for at, one in own.items()
            if at not in shown
        ]
        shown |= own.keys()
        yield [{**told, **({"also": also} if also else {})}, *fresh]


def _day(at: datetime) -> str:
    return shown_day(at)


def _asking(
    way: str, text: str, known: Sequence[Memory], able: Capabilities, seconds: float
) -> Prompt:
    return Prompt(
        task=Task.EXTRACTION,
        system=_words("system"),
        shared=f"{_words(way)}{_known_already(known)}",
        text=text,
        answer=schema_of(Answer),
        name=MEMORIES,
        version=f"extraction/{VERSION}",
        output_tokens=_room_for_answer(way, able),
        timeout_seconds=seconds,
    )


def chunk_size(able: Capabilities) -> int:
    """Characters of a part of a session: 12,000, of a known model as many as a digest has room for, or what a small
    window has room for beside the words that ask.
    """
    left = able.window - _room_for_answer(CHUNK_PROMPTS, able) - _ASKING_TOKENS
    most = DIGEST_TOKENS * CHARACTERS_A_TOKEN if able.known else CHUNK
    return max(_LEAST_CHUNK, min(most, left * CHARACTERS_A_TOKEN))


def _room_for_answer(way: str, able: Capabilities) -> int:
    return min(_OUTPUT[way], able.output, able.window // 4)


def room_for(able: Capabilities, output_tokens: int) -> int:
    """Tokens of a window that are left for what is shown, beside the words that ask and the answer."""
    return max(_LEAST_CHUNK // CHARACTERS_A_TOKEN, able.window - output_tokens - _ASKING_TOKENS)


def with_room(memories: Sequence[Memory], able: Capabilities) -> tuple[Memory, ...]:
    """The first of the memories that are known, as many as an eighth of a window holds."""
    ends = accumulate(len(_line(one)) for one in memories)
    room = able.window * CHARACTERS_A_TOKEN // _OF_WINDOW
    return tuple(one for one, end in zip(memories, ends, strict=True) if end <= room)


def _known_already(memories: Sequence[Memory]) -> str:
    """Memories that are stored, as they stand in a prompt; nothing without any."""
    if not memories:
        return ""
    return f"{_words('known')}{_listed(memories)}\n"


def _listed(memories: Sequence[Memory]) -> str:
    return framed(
        "memories", "\n".join(f"[k{number}] {_line(one)}" for number, one in enumerate(memories, 1))
    )


def _line(memory: Memory) -> str:
    return f"{memory.kind.value}, {day_of(memory.last_said)}: {as_data(one_line(memory.content))}"


def _head(session: Session) -> str:
    began = f", begun on {shown_day(session.started)}" if session.started else ""
    return f"A session of {as_data(one_line(session.tool))}{began}.\n\n"


@cache
def _words(name: str, version: str = VERSION) -> str:
    return (files(__package__) / "prompts" / f"{name}-{version}.md").read_text(encoding="utf-8")
