"""Prompts for extraction: numbered transcripts, known memories, and the model's answers.

A transcript contains the messages of the owner and the agent, failed calls and fixes. A turn's
lines after the first are indented, so that no message can imitate a turn. Frame marks in the text
are removed.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Annotated, Any, Literal

import msgspec

from nacre.base import json as json_values
from nacre.base.frozen import frozen
from nacre.base.text import normalise, one_line, pieces, shorten, visible
from nacre.base.times import day_of, shown_day
from nacre.learn.pasted import apart
from nacre.learn.reading import LONGEST_TURN, shorten_for_regex
from nacre.learn.sentences import is_accepted_plan, is_content
from nacre.llm.failures import schema_of
from nacre.values.memory import Memory
from nacre.values.models import Capabilities, Prompt
from nacre.values.session import Flag, Session, Speaker, Task, ToolCall, Trust, Turn

CHUNK = 12_000
"""Number of characters in each part of a session."""

DIGEST_TOKENS = 12_000
"""Maximum number of tokens in a session that is sent as a whole."""

SESSION_TOKENS = 24_000
"""Maximum number of tokens of a session in a prompt. Turns are shortened to fit."""

OVERLAP = 1_200
"""Number of characters that a part repeats from the previous part."""

EARLIER = 4_000
"""Maximum number of characters of old turns shown before a session's new turns."""

_PIECE_CHARACTERS = 4_000
_MAX_CALLS = 8
_CALL_CHARACTERS = 160
_OUTCOME_CHARACTERS = 240
_PASTE_CHARACTERS = 1_200
_PLAN_CHARACTERS = 6_000
_BLOCK_LINES = 6
_MIN_PART_SHARE = 0.5
_NARRATION_CHARACTERS = 200
"""Maximum length of an agent's remark between tool calls that the transcript omits."""

_MIN_PLAN_CHARACTERS, _MIN_PLAN_LINE, _MIN_REPEATED_SHARE = 800, 25, 0.6
"""Minimum lengths of a plan and its lines, and minimum share of lines in a later version."""

_TASK_LINE = re.compile(r"^\s*(?:[-*]\s*\[[ xX~-]\]|[☐☑☒✔✓✅⬜◻◼]\ufe0f?)\s.*\n?", re.MULTILINE)
_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_FRAME = re.compile(r"<(?=\s*/?\s*(?:transcript|later|memories)\b)", re.IGNORECASE)
_NUMBER = re.compile(r"\[(?=m\d+\])", re.IGNORECASE)
_FENCED = re.compile(r"^([ \t]*```)[^\n]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_NEW = "(What is above was read before. New is what follows.)"
_HEAD_WORDS = 2


_LIMITS = ((LONGEST_TURN, 8_000, 2_000), (8_000, 4_000, 600), (4_000, 2_000, 0), (1_500, 800, 0))
"""Maximum lengths of an owner's turn, a conclusion and a remark. The limits are tried in order until the session fits.
"""


@frozen
class Line:
    """A turn in a prompt, or a part of a long turn.

    ``turn`` is its index, and ``head`` its number and label.
    """

    turn: int
    number: int
    head: str
    text: str
    is_owners: bool = False


@frozen
class Chunk:
    """The part of a session that one prompt contains.

    Lines before index ``own`` are only context.
    """

    lines: tuple[Line, ...]
    own: int = 0

    @property
    def first(self) -> int:
        return self.lines[self.own].turn

    @property
    def last(self) -> int:
        return self.lines[-1].turn

    @property
    def turns(self) -> frozenset[int]:
        return frozenset(line.turn for line in self.lines)

    def around(self, numbers: Collection[int]) -> Chunk:
        """Return a chunk of only the numbered turns and their neighbours."""
        near = {number + step for number in numbers for step in (-1, 0, 1)}
        lines = tuple(line for line in self.lines if line.number in near)
        return Chunk(lines, sum(line in self.lines[: self.own] for line in lines))

    @property
    def text(self) -> str:
        """The transcript in its tags."""
        texts = [line.text for line in self.lines]
        if self.own:
            texts.insert(self.own, _NEW)
        return frame("transcript", "\n".join(texts))


def frame(name: str, text: str) -> str:
    """Enclose a text in tags, cleaned by :func:`as_data`."""
    return f"<{name}>\n{text}\n</{name}>"


def as_data(text: str) -> str:
    """Remove invisible characters, and alter text that imitates a prompt's tags or turn numbers."""
    text = visible(text)
    if not text.isascii():
        text = "".join(
            character for character in text if unicodedata.category(character) not in ("Cf", "Co")
        )
    return _NUMBER.sub("(", _FRAME.sub("‹", text))


def lay_out(turns: Sequence[Turn], *, after: int = 0, begin: int = 0) -> list[Line]:
    """Convert turns to lines for a model, numbered from ``after`` + 1.

    Long turns are shortened until the turns from ``begin`` on fit ``SESSION_TOKENS``.
    """
    conclusions = _find_conclusions(turns)
    earlier_versions = _find_earlier_versions(turns)
    lines: list[Line] = []
    for limits in _LIMITS:
        lines = list(_lines(turns, limits, conclusions, earlier_versions, after))
        size = sum(len(line.text) for line in lines if line.turn >= begin)
        if size <= SESSION_TOKENS * CHARACTERS_A_TOKEN:
            break
    return lines


def _lines(
    turns: Sequence[Turn],
    limits: tuple[int, int, int],
    conclusions: Collection[int],
    earlier_versions: Collection[int],
    number: int,
) -> Iterator[Line]:
    day = ""
    calls = _Calls()
    for at, turn in enumerate(turns):
        owner, conclusion, remark = limits
        limit = conclusion if at in conclusions else remark
        if turn.speaker is Speaker.OWNER:
            limit = owner
        if is_accepted_plan(turns, at):
            turn_pieces = _plan_pieces(turn)
        else:
            is_remark = turn.speaker is Speaker.AGENT and at not in conclusions
            turn_pieces = _turn_pieces(turn, calls, limit, is_remark=is_remark)
        if at in earlier_versions and turn_pieces:
            turn_pieces = [(turn_pieces[0][0], " (an earlier version of a later text)")]
        number += bool(turn_pieces)
        for piece, (label, text) in enumerate(turn_pieces):
            date = shown_day(turn.time) if turn.time and not piece else day
            head = f"[m{number}][{label}]"
            dated = f"({date})\n{head}{text}" if date != day else f"{head}{text}"
            yield Line(at, number, head, dated, turn.speaker is Speaker.OWNER and not piece)
            day = date


def _find_conclusions(turns: Sequence[Turn]) -> set[int]:
    conclusions: set[int] = set()
    last: int | None = None
    for at, turn in enumerate(turns):
        if not is_content(turn):
            continue
        if turn.speaker is Speaker.AGENT:
            last = at
        elif turn.speaker is Speaker.OWNER and last is not None:
            conclusions.add(last)
    return conclusions if last is None else {*conclusions, last}


def _find_earlier_versions(turns: Sequence[Turn]) -> set[int]:
    lines_by_turn = {
        at: {line.strip() for line in turn.text.splitlines() if len(line) >= _MIN_PLAN_LINE}
        for at, turn in enumerate(turns)
        if turn.speaker is not Speaker.OWNER and len(turn.text) >= _MIN_PLAN_CHARACTERS
    }
    last_turn = {line: at for at, lines in lines_by_turn.items() for line in lines}
    return {
        at
        for at, lines in lines_by_turn.items()
        if lines and sum(last_turn[line] > at for line in lines) >= _MIN_REPEATED_SHARE * len(lines)
    }


def as_one_chunk(lines: Sequence[Line], begin: int = 0) -> Chunk | None:
    """Return one chunk with all turns from ``begin`` on, or ``None`` if no turn is left."""
    first = next((at for at, line in enumerate(lines) if line.turn >= begin), None)
    return None if first is None else _with_context(lines, first, len(lines), EARLIER)


def chunks(lines: Sequence[Line], begin: int = 0, *, size: int = CHUNK) -> list[Chunk]:
    """Split the turns from ``begin`` on into chunks of at most ``size`` characters.

    Chunks overlap, and begin with a message of the owner if possible.
    """
    parts: list[Chunk] = []
    start = next((at for at, line in enumerate(lines) if line.turn >= begin), len(lines))
    room = EARLIER if start else 0
    while start < len(lines):
        end = _end_of_part(lines, start, size - OVERLAP)
        parts.append(_with_context(lines, start, end, room))
        start, room = end, OVERLAP
    return parts


def _end_of_part(lines: Sequence[Line], start: int, size: int) -> int:
    end, length, owner_turn = start, 0, start
    while end < len(lines) and (end == start or length + len(lines[end].text) <= size):
        if lines[end].is_owners and length >= _MIN_PART_SHARE * size:
            owner_turn = end
        length += len(lines[end].text)
        end += 1
    return owner_turn if owner_turn > start and end < len(lines) else end


def _with_context(lines: Sequence[Line], start: int, end: int, room: int) -> Chunk:
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


def _turn_pieces(
    turn: Turn, calls: _Calls, limit: int, *, is_remark: bool
) -> list[tuple[str, str]]:
    if turn.flags & _UNSPOKEN or turn.speaker not in (Speaker.OWNER, Speaker.AGENT):
        return []
    if turn.flags & Flag.INJECTED and turn.speaker is Speaker.AGENT:
        return []
    label = (
        f"{turn.speaker.value}, untrusted" if turn.trust is Trust.UNTRUSTED else turn.speaker.value
    )
    call_lines = "".join(f"\n  {line}" for line in calls.describe(turn.tool_calls))
    text = as_read(turn).strip()
    if is_remark and "\n" not in text and len(text) <= _NARRATION_CHARACTERS:
        text = ""
    parts = pieces(without_middle(text, limit), _PIECE_CHARACTERS)
    if not parts:
        return [(label, call_lines)] if call_lines else []
    turn_pieces = [
        (f"{label}, continued" if at else label, _indent(piece)) for at, piece in enumerate(parts)
    ]
    last_label, last_text = turn_pieces[-1]
    return [*turn_pieces[:-1], (last_label, last_text + call_lines)]


def calls_of(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield each turn's important tool calls, one per line.

    All calls of a turn without text count as important.
    """
    calls = _Calls()
    for turn in turns:
        call_lines = calls.describe(turn.tool_calls) or (
            [] if turn.text.strip() else map(_call_line, turn.tool_calls)
        )
        yield "".join(f"\n  {line}" for line in itertools.islice(call_lines, _MAX_CALLS))


def as_read(turn: Turn) -> str:
    """Return a turn's text for a prompt.

    Pasted text is quoted and shortened, and the agent's long code blocks are cut.
    """
    text = as_data(shorten_for_regex(turn).text)
    if turn.speaker is not Speaker.OWNER:

        def cut(block: re.Match[str]) -> str:
            lines = block.group().splitlines()
            hidden = len(lines) - _BLOCK_LINES
            return (
                block.group()
                if hidden < 2
                else "\n".join([*lines[:_BLOCK_LINES], f"(and {hidden - 1} more lines)", "```"])
            )

        return _TASK_LINE.sub("", _FENCED.sub(cut, text))
    return "\n".join(_quote(part) if is_pasted else part for is_pasted, part in apart(text))


def _plan_pieces(turn: Turn) -> list[tuple[str, str]]:
    label = "agent, plan" if turn.trust is Trust.TRUSTED else "agent, plan, untrusted"
    text = without_middle(as_data(shorten_for_regex(turn).text), _PLAN_CHARACTERS)
    return [(label, _indent(text))]


def _indent(text: str) -> str:
    return " " + "\n  ".join(text.splitlines())


def _quote(text: str) -> str:
    text = without_middle(text, _PASTE_CHARACTERS)
    return "\n".join(f"> {line}" for line in text.splitlines())


def without_middle(text: str, most: int) -> str:
    """Remove the middle of a text that is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} …\n… {text[-most // 2 :]}" if most else ""


class _Calls:
    def __init__(self) -> None:
        self._failing: set[tuple[str, ...]] = set()

    def describe(self, calls: Sequence[ToolCall]) -> list[str]:
        relevant = [_call_line(call) for call in calls if self._is_relevant(call)]
        more = len(relevant) - _MAX_CALLS
        return relevant if more <= 0 else [*relevant[:_MAX_CALLS], f"· and {more} more such calls"]

    def _is_relevant(self, call: ToolCall) -> bool:
        head = (call.name, *call.input.split()[:_HEAD_WORDS])
        if call.failed:
            self._failing.add(head)
            return True
        is_fix = call.outcome == "ok" and head in self._failing
        self._failing -= {head} if is_fix else set()
        return is_fix or bool(call.made) or (call.outcome or "").startswith("rejected")


def _call_line(call: ToolCall) -> str:
    name, arguments = as_data(one_line(call.name)), as_data(shorten(call.input, _CALL_CHARACTERS))
    return f"· {name}: {arguments}{_outcome(call)}" if arguments else f"· {name}{_outcome(call)}"


def _outcome(call: ToolCall) -> str:
    outcome = call.outcome or ""
    if outcome.startswith("rejected"):
        words = as_data(one_line(outcome.removeprefix("rejected").removeprefix(":")))
        return f" → the owner declined{f': {words}' if words else ''}"
    error = "" if (call.error or "") in outcome else call.error
    text = ", ".join(part for part in (outcome, *call.made, error) if part)
    return f" → {as_data(shorten(one_line(text), _OUTCOME_CHARACTERS))}" if text else ""


# -- Removable parts of a statement: sentences, clauses between semicolons, parentheses ------------


_PART = re.compile(
    r"[(（][^()（）]*[)）]\s*|.+?(?:[.!?;]+(?=\s)\s*|[。！？；]\s*|(?=[(（])|\Z)", re.DOTALL
)
_SPACE_BEFORE = re.compile(r"\s+(?=[.,;])")
_OPEN = " ,;:，；：—–-"
_MARKS = " .;:,!?()。；：，！？（）"
_FULL_STOPS = ".!。！"


def without(content: str, wrong: Sequence[str]) -> str | None:
    """Remove sentences, clauses or parentheses from a statement.

    Return ``None`` if too little remains, or if ``wrong`` contains anything else.
    """
    parts = _PART.findall(content)
    bare = [_bare(part) for part in parts]
    wrong_parts = {_bare(part) for part in wrong} - {""}
    removed = {at for at, part in enumerate(bare) if part in wrong_parts}
    if not removed or 0 in removed or not wrong_parts <= set(bare):
        return None
    remaining = "".join(part for at, part in enumerate(parts) if at not in removed)
    shortened = _SPACE_BEFORE.sub("", remaining).rstrip(_OPEN)
    if 2 * len(shortened) < len(content):
        return None
    return (
        shortened
        if shortened[-1] in _FULL_STOPS or content[-1] not in _FULL_STOPS
        else shortened + content[-1]
    )


def _bare(text: str) -> str:
    return normalise(text).strip(_MARKS)


# -- Answers of models, with repair of nearly valid answers from models without schema support -----


class ProposedMemory(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory proposed by a model."""

    kind: Literal["fact", "decision", "preference", "todo", "relationship", "event", "lesson"]
    subject: str
    content: str
    quote: str
    always: bool


class OutdatedMemory(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A known memory that a session makes untrue, and the words that show this."""

    known: Annotated[int, msgspec.Meta(ge=1, description="number of a known memory, as 2 for [k2]")]
    quote: str


class Answer(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A model's answer about a session: new memories, and known memories that no longer hold."""

    memories: list[ProposedMemory]
    over: list[OutdatedMemory]


class OwnerTurns(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The owner's turns that settle something."""

    turns: list[int]


_TRAILING_COMMA = re.compile(r",\s*([\]}])")
_TURN_NUMBER = re.compile(r"\[?m?0*(\d{1,7})\]?", re.IGNORECASE)
_MEMORY_NUMBER = re.compile(r"\[?k?0*(\d{1,7})\]?", re.IGNORECASE)
_OTHER_NAMES = {
    "content": ("description", "detail", "text", "summary"),
    "subject": ("name", "topic", "title", "entity"),
    "kind": ("type",),
}
"""Other field names that models use."""

_MISSING: dict[str, Any] = {"quote": "", "always": False}


def tidy(text: str) -> str:
    """Repair small errors in a model's answer, and drop invalid memories.

    Return unreadable text unchanged, so that the caller reports the error.
    """
    data = _read(text)
    memories: Any = data
    over: Any = []
    if isinstance(data, dict):
        names = [name for name in ("memories", "entries", "items") if name in data]
        if not names and "over" not in data and _memory(data) is None:
            return text  # neither memories nor an empty list
        memories = data[names[0]] if names else [data]
        over = data.get("over") or []
    if not isinstance(memories, list):
        return text
    answer = {
        "memories": [shaped for item in memories if (shaped := _memory(item))],
        "over": [shaped for item in over if (shaped := _outdated(item))]
        if isinstance(over, list)
        else [],
    }
    return json.dumps(answer, ensure_ascii=False)


def tidy_turns(text: str) -> str:
    """Repair small errors in a model's list of turns."""
    data = _read(text)
    listed = data.get("turns") if isinstance(data, dict) else data
    return text if listed is None else json.dumps({"turns": _numbers(listed, _TURN_NUMBER)})


def tidy_verdicts(text: str) -> str:
    """Repair small errors in a verifier's answer."""
    data = _read(text)
    verdicts = data.get("verdicts") if isinstance(data, dict) else data
    if not isinstance(verdicts, list):
        return text
    shaped = [
        {
            "number": number,
            "support": str(item.get("support") or ""),
            "finding": str(item.get("finding", "")).lower(),
            "wrong": [wrong] if isinstance(wrong := item.get("wrong") or [], str) else wrong,
        }
        for item in verdicts
        if isinstance(item, dict)
        for number in _numbers(item.get("number"), _TURN_NUMBER)
    ]
    return json.dumps({"verdicts": shaped}, ensure_ascii=False)


def _read(text: str) -> Any:
    start = re.search(r"[\[{]", text)
    end = max(text.rfind("]"), text.rfind("}")) + 1
    json_text = text[start.start() : end] if start else text
    for attempt in (json_text, _TRAILING_COMMA.sub(r"\1", json_text)):
        with suppress(ValueError, RecursionError):
            return json.loads(attempt)
    return None


def _memory(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    fields = {**_MISSING, **item}
    for name, alternatives in _OTHER_NAMES.items():
        alternative = next(filter(item.get, alternatives), None)
        if not item.get(name) and alternative:
            fields[name] = item[alternative]
    fields["kind"] = str(fields.get("kind", "")).lower()
    fields["always"] = str(fields["always"]).lower() == "true"
    return _fitting(fields, ProposedMemory)


def _outdated(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    number = next(iter(_numbers(item.get("known", item.get("id")), _MEMORY_NUMBER)), 0)
    return _fitting({**item, "known": number, "quote": item.get("quote") or ""}, OutdatedMemory)


def _fitting(fields: Mapping[str, Any], shape: type[msgspec.Struct]) -> dict[str, Any] | None:
    fitting = {name: fields[name] for name in shape.__struct_fields__ if name in fields}
    try:
        json_values.convert(fitting, shape)
    except msgspec.ValidationError:
        return None
    return fitting


def _numbers(value: Any, pattern: re.Pattern[str]) -> list[int]:
    items = value if isinstance(value, list) else re.split(r"[,\s]+", str(value))
    matches = (pattern.fullmatch(str(item).strip()) for item in items)
    return [int(match[1]) for match in matches if match]


# -- Prompt texts, from versioned files ------------------------------------------------------------


VERSION = "7"
WHOLE_SESSION, CHUNK_PROMPTS, SEVERAL = "whole", "chunk", "several"
MEMORIES, OWNER_TURNS, VERDICTS = "memories", "turns", "verdicts"
"""Names of prompt topics."""

_PLACES = {
    WHOLE_SESSION: "",
    CHUNK_PROMPTS: "This is one part of a longer session. Write only memories that this part shows.\n",
    SEVERAL: "These are several sessions of one project. Judge each session separately.\n",
}
_INSTRUCTION_TOKENS = 1_200
_MIN_CHUNK_CHARACTERS = 3_000
CHARACTERS_A_TOKEN = 3
"""Number of characters per token in code. In prose, tokens are longer."""

_KNOWN_WINDOW_DIVISOR = 8
"""Known memories fill at most one eighth of a model's context window."""

_OUTPUT_TOKENS = {WHOLE_SESSION: 8_192, CHUNK_PROMPTS: 4_096, SEVERAL: 8_192}


def extraction_prompt(
    way: str,
    parts: Sequence[tuple[Session, Chunk]],
    memories: Sequence[Memory],
    able: Capabilities,
    *,
    is_first_step: bool = False,
) -> Prompt:
    """Build the prompt that asks for the memories in sessions, given the known ``memories``.

    In the first of two steps, ask instead for the owner's turns with decisions or lasting facts.
    """
    name = OWNER_TURNS if is_first_step else "system"
    return Prompt(
        task=Task.EXTRACTION,
        system=load(f"{name}-{VERSION}"),
        shared=_PLACES[way] + (f"{_listed(memories)}\n" if memories else ""),
        text="\n\n".join(f"{_head(session)}{chunk.text}" for session, chunk in parts),
        answer=schema_of(OwnerTurns if is_first_step else Answer),
        name=OWNER_TURNS if is_first_step else MEMORIES,
        version=f"{name}/{VERSION}",
        output_tokens=_room_for_answer(way, able),
    )


def chunk_size(able: Capabilities) -> int:
    """Return the maximum number of characters of a session that a model reads per call."""
    room = able.window - _room_for_answer(CHUNK_PROMPTS, able) - _INSTRUCTION_TOKENS
    limit = DIGEST_TOKENS * CHARACTERS_A_TOKEN if able.known else CHUNK
    return max(_MIN_CHUNK_CHARACTERS, min(limit, room * CHARACTERS_A_TOKEN))


def _room_for_answer(way: str, able: Capabilities) -> int:
    return min(_OUTPUT_TOKENS[way], able.output, able.window // 4)


def room_for(able: Capabilities, output_tokens: int) -> int:
    """Return the number of tokens that remain in a model's window after instructions and answer."""
    return max(
        _MIN_CHUNK_CHARACTERS // CHARACTERS_A_TOKEN,
        able.window - output_tokens - _INSTRUCTION_TOKENS,
    )


def with_room(memories: Sequence[Memory], able: Capabilities) -> tuple[Memory, ...]:
    """Return the first memories that fit in an eighth of a model's window."""
    ends = accumulate(len(_line(memory)) for memory in memories)
    room = able.window * CHARACTERS_A_TOKEN // _KNOWN_WINDOW_DIVISOR
    return tuple(memory for memory, end in zip(memories, ends, strict=True) if end <= room)


def _listed(memories: Sequence[Memory]) -> str:
    return frame(
        "memories",
        "\n".join(f"[k{number}] {_line(memory)}" for number, memory in enumerate(memories, 1)),
    )


def _line(memory: Memory) -> str:
    return f"{memory.kind.value}, {day_of(memory.last_said)}: {as_data(one_line(memory.content))}"


def _head(session: Session) -> str:
    began = f", begun on {shown_day(session.started)}" if session.started else ""
    return f"A session of {as_data(one_line(session.tool))}{began}.\n\n"


@cache
def load(name: str) -> str:
    """Read the prompt ``name`` from ``prompts/``."""
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")
