"""The trust and speaker of turns, and the assembly of a session's turns in order.

An agent's statement is based on external text or nacre's text if it shares five consecutive words
(a "run") with that text or quotes it. The comparison ignores case, punctuation, emphasis, line
breaks, list marks and identifier style. In scripts without spaces, eight characters count as five
words. Only the hashes of runs are kept between reads of a session.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from nacre.base import json
from nacre.base.frozen import frozen
from nacre.base.ids import turn_hash
from nacre.base.plain import JsonObject, Values
from nacre.base.text import is_visible, noted, shorten, visible
from nacre.readers import adapter
from nacre.readers.conversation import (
    INPUT_CHARACTERS,
    Cleaned,
    clean,
    is_tools,
    new_call,
    read_sender,
    with_outcome,
    without_tools_lines,
)
from nacre.values.session import (
    Action,
    Flag,
    Session,
    SessionKind,
    Speaker,
    Tokens,
    ToolCall,
    Trust,
    Turn,
)

CHOSEN, TYPED = "→", "⇒"
"""Separators between the question of a form and a chosen option or a typed answer."""

RUN = 5.0
"""Number of consecutive words that a statement must share with external text. See docs/trust.md."""

SHORT_RUN = 3.0
"""Minimum number of words in a statement shorter than ``RUN``, which is compared as a whole."""

_DIRECTIVE_MARKS = (
    "always ",
    "never ",
    "remember",
    "must ",
    "do not ",
    "prefer",
    "important:",
    "ignore ",
    "memory",
    "make sure",
    "from now on",
    "| sh",
    "| bash",
    *"记住 记得 务必 必须 总是 永远 不要 重要 以后".split(),
)
"""Words that mark lines with instructions.

Of local tool output (files, logs, errors, commits), only these lines are kept for comparison. Other
lines do little harm, and statements about code often repeat them.
"""

_CHARACTER_WEIGHT = 0.625
_MAX_CHARACTERS = 200_000
_MAX_RUNS = 30_000
_MAX_TYPED_WORDS = 120
_CONTEXT_CHARACTERS = 400
_MAX_SHORT_CHARACTERS = 120
_CACHE_SIZE = 512

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_UNIT = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]))")
_PUNCTUATION_TO_SPACES = str.maketrans(
    {chr(code): " " for code in range(128) if not chr(code).isalnum()}
)
_ASCII = bytes(range(128))
_EMOJI_JOINTS = "\ufe0f\u200d"
_LIST_MARK = re.compile(r"\n[ \t]*(?:\d{1,3}|[A-Za-z])[.)][ \t]+")
_STATEMENT = re.compile(r"[\n。！？；，：]+|[.!?;:](?:\s+|$)")
_QUOTED = re.compile(r"[\"“”«»「」`]([^\"“”«»「」`\n]{25,400})[\"“”«»「」`]")
_QUOTE_OR_QUESTION = re.compile(
    r"^[ \t]*>.*$|^(```|~~~).*?(?:^\1|\Z)|[^.!?。！？\n]*[?？]", re.DOTALL | re.MULTILINE
)

_OUTSIDE_TOOL = re.compile(
    r"web|fetch|browser|browse|http|url|search_query|screenshot|navigate|mail|slack|jira|notion|github|gitlab"
    r"|discord|telegram|whatsapp|teams|linear|confluence|sentry|calendar|crawl|scrape|rss|ocr|\Amcp__",
    re.IGNORECASE,
)
_OUTSIDE_COMMAND = re.compile(
    r"\b(?:curl|wget|http|https|lynx|w3m|xh|aria2c|mutt|notmuch|himalaya)\b\s"
    r"|\bgh\s+(?:issue|pr|api|release|search|gist|run)\b|\bglab\s"
    r"|\b(?:npm|pnpm|yarn|pip|cargo|gem|brew)\s+(?:view|info|search|show)\b",
    re.IGNORECASE,
)
_REACHING_COMMAND = re.compile(
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:-\S+\s+)*(?:i|install|ci|add|up|update|upgrade|audit|outdated|publish|create|init|exec|dlx)\b"
    r"|\b(?:npx|bunx|uvx|pipx|gh|glab)\s|\byarn\s*(?:$|[;&|])"
    r"|\b(?:pip3?|uv|poetry|pdm|conda|cargo|gem|bundle|composer|brew|apt|apt-get|dnf|yum|apk|pacman|dotnet|helm)\s+(?:\S+\s+)?"
    r"(?:install|add|update|upgrade|download|sync|lock|fetch|publish|require|restore|-S\w*|tap|pull)\b"
    r"|\bgo\s+(?:get|install|mod)\b|\b(?:docker|podman)\s+(?:pull|push|login|build|run)\b"
    r"|\bgit\s+(?:-\S+\s+)*(?:\S+\s+)?(?:clone|fetch|pull|push|ls-remote|submodule|remote\s+update)\b",
    re.IGNORECASE,
)
"""Matches commands that contact a registry or remote, from which their errors can come."""
_FOREIGN_FILE = re.compile(
    r"(?:^|[\s\"'=/\\])(?:node_modules|site-packages|dist-packages|vendor|third[_-]party|bower_components|Pods"
    r"|\.venv|\.cargo|\.m2|go/pkg/mod|Downloads|Mail|INBOX)[/\\]"
    r"|\.(?:eml|mbox|msg|pdf|docx?|ics|rtf|epub)\b",
    re.IGNORECASE,
)
_OWN_TOOL = re.compile(
    r"\bnacre\b|\Amcp__nacre|memory_(?:search|get|store|retire|list|extract|sessions|graph|analyze|admin|recall)\Z|\Anacre_"
    r"|\Amcp_nacre_",
    re.IGNORECASE,
)
_STORING_TOOL = re.compile(r"(?:memory|nacre)_store\Z", re.IGNORECASE)
_STORING_COMMAND = re.compile(
    r"(?:^|[|;&(]\s*|\b(?:run|exec|-m)\s+)(?:\S*/)?nacre\s+(?:store|edit)\b", re.IGNORECASE
)
_OWN_COMMAND = re.compile(r"(?:^|[|;&(]\s*|\b(?:run|exec|-m)\s+)(?:\S*/)?nacre\s+\w", re.IGNORECASE)


def is_outside_source(word: str) -> bool:
    """Return True if ``word`` names a service where others write, such as an issue tracker."""
    return bool(_OUTSIDE_TOOL.fullmatch(word))


def is_outside(tool: str, short_input: str) -> bool:
    """Return True if a call returns text from the web, mail, issues or other people's files."""
    return bool(
        _OUTSIDE_TOOL.search(tool)
        or _OUTSIDE_COMMAND.search(short_input)
        or _FOREIGN_FILE.search(short_input)
    )


def brings_outside(call: ToolCall) -> bool:
    """Return True if a call returns external text, or is a failed command that uses the network."""
    return is_outside(call.name, call.input) or (
        call.failed and bool(_REACHING_COMMAND.search(call.input))
    )


def reached_out(turns: Sequence[Turn], at: int) -> bool:
    """Return True if the agent may be paraphrasing external text in turn ``at``."""
    return any(
        turn.trust is Trust.UNTRUSTED or any(map(brings_outside, turn.tool_calls))
        for turn in turns[: at + 1]
    )


def is_own(tool: str, short_input: str) -> bool:
    """Return True if a call uses nacre's tools or command line."""
    return bool(
        _OWN_TOOL.search(tool) or ("nacre" in short_input and _OWN_COMMAND.search(short_input))
    )


def shared(text: str, other: str) -> float:
    """Return the share (0 to 1) of word sequences in ``text`` that also occur in ``other``.

    The sequences have ``RUN`` words, or fewer if ``text`` is shorter.
    """
    units, other_units = _units(text), _units(other)
    for length in (RUN, SHORT_RUN):
        runs = list(_runs(units, length))
        if runs:
            other_runs = set(_runs(other_units, length))
            return sum(run in other_runs for run in runs) / len(runs)
    return 0.0


class Exchange:
    """The text that an agent received in a session, for comparison with its statements.

    External, local and nacre's text are kept apart. Words that the owner also wrote count as the
    owner's.
    """

    def __init__(self, carried: Values | None = None) -> None:
        carried = carried or {}
        self._received: dict[str, dict[int, None]] = {
            name: dict.fromkeys(carried.get(name, ())) for name in _KINDS
        }
        """Hashes of the runs that the agent received, in order of arrival."""
        self._unseen = bool(carried.get("unseen"))
        self._owner_messages: list[str] = []
        self._earlier_owner_runs: set[int] = set(carried.get("lifted", ()))
        self._outside_text = ""

    def begin(self, message: str = "") -> None:
        """Start a new exchange with the owner's message."""
        self._outside_text = ""
        self._unseen = False
        if message:
            self._owner_messages.append(message)

    def record_unseen(self) -> None:
        """Record that the agent received external text that is not in the transcript."""
        self._unseen = True

    def record_output(self, tool: str, short_input: str, output: str) -> None:
        """Record a tool's output, and infer its origin from the tool's name and input."""
        outside, own = is_outside(tool, short_input), is_own(tool, short_input)
        self.record(output, outside=outside, own=own)

    def record(self, output: str, *, outside: bool = False, own: bool = False) -> None:
        """Record a tool's output as external, local or nacre's text.

        Of local text, only lines with instructions are recorded.
        """
        if outside or own:
            output = output[:_MAX_CHARACTERS]
            units = _units(output)
            runs = [*_runs(units, RUN), *_runs(units, SHORT_RUN)]
            self._received["own" if own else "outside"] |= dict.fromkeys(runs)
            if not own:
                self._outside_text = f"{self._outside_text}\n{output.lower()}"[-_MAX_CHARACTERS:]
        elif lines := _directives(output):
            self._received["local"] |= dict.fromkeys(_runs(_units("\n".join(lines)), RUN))

    def record_outside(self, output: str) -> None:
        self.record(output, outside=True)

    def clean(self, text: str) -> Cleaned:
        """Remove injected text from a message, and record that the agent received it."""
        cleaned = clean(text)
        for own in cleaned.own:
            self.record(own, own=True)
        for outside in cleaned.outside:
            self.record_outside(outside)
        for local in cleaned.local:
            self.record(local)
        return cleaned

    def judge(self, statement: str) -> tuple[Trust, Flag]:
        """Return the trust and the flags of an agent's statement.

        The statement is ``untrusted`` if it may repeat external text, and ``injected`` if it
        repeats nacre's output.
        """
        outside, local, own = self._received.values()
        if self._unseen or not (outside or local or own):
            return Trust.UNTRUSTED if self._unseen else Trust.TRUSTED, Flag.NONE
        runs = list(_runs(_units(statement), RUN))
        short = _short(statement) if outside or own else []
        is_own = bool(own) and _draws_on(runs, short, own)
        foreign = any(run in local for run in runs) or _draws_on(runs, short, outside)
        if foreign:
            owner_runs = self._owner_runs(len(self._owner_messages))
            remaining_runs = [run for run in runs if run not in owner_runs]
            remaining_short = [part for part in short if not owner_runs.issuperset(part)]
            foreign = any(run in local for run in remaining_runs) or _draws_on(
                remaining_runs, remaining_short, outside
            )
        foreign = foreign or any(
            match[1].lower() in self._outside_text for match in _QUOTED.finditer(statement)
        )
        trust = Trust.UNTRUSTED if foreign else Trust.TRUSTED
        return trust, Flag.INJECTED if is_own else Flag.NONE

    def trust_of(self, statement: str) -> Trust:
        """Return the trust of an agent's statement, as in :meth:`judge`."""
        return self.judge(statement)[0]

    def trust_of_call(self, call: ToolCall, arguments: object) -> Trust:
        """Return the trust of the text that a call stores in nacre. Other calls are trusted."""
        is_command = "nacre" in call.input and _STORING_COMMAND.search(call.input)
        if not (is_command or _STORING_TOOL.search(call.name)):
            return Trust.TRUSTED
        return self.trust_of("\n".join(_texts_of(arguments)))

    def _owner_runs(self, messages: int) -> set[int]:
        return {
            run
            for message in self._owner_messages[:messages]
            for run in _owner_statement_runs(message)
        } | self._earlier_owner_runs

    def mark(self) -> tuple[int, ...]:
        """Return the current position in the received text, for :meth:`carried`."""
        return (
            *map(len, self._received.values()),
            len(self._owner_messages),
            int(self._unseen),
        )

    def carried(self, mark: tuple[int, ...] | None = None) -> JsonObject:
        """Return the state that the next read needs, at ``mark`` or, by default, now."""
        *counts, messages, unseen = mark or self.mark()
        state: JsonObject = {
            name: list(runs)[:count][-_MAX_RUNS:]
            for (name, runs), count in zip(self._received.items(), counts, strict=True)
            if count
        }
        owner_runs = self._owner_runs(messages) if state else set()
        state |= {"lifted": sorted(owner_runs)[-_MAX_RUNS:]} if owner_runs else {}
        return {**state, "unseen": True} if unseen else state


_KINDS = ("outside", "local", "own")


def _texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    items = value.values() if isinstance(value, Mapping) else value
    for item in items if isinstance(items, Iterable) else ():
        yield from _texts_of(item)


def _draws_on(
    runs: Iterable[int], short: Iterable[list[int]], received: Mapping[int, None]
) -> bool:
    return any(run in received for run in runs) or any(
        all(run in received for run in statement) for statement in short
    )


def _short(text: str) -> list[list[int]]:
    statements = []
    for part in (text, *_STATEMENT.split(text)):
        units = _units(part) if len(part) < _MAX_SHORT_CHARACTERS else []
        if units and sum(map(_weigh, units)) < RUN:
            statements.append(list(_runs(units, SHORT_RUN)))
    return [runs for runs in statements if runs]


def _weigh(unit: str) -> float:
    return (
        _CHARACTER_WEIGHT
        if len(unit) == 1 and not unit.isascii() and _UNSPACED_CHARACTER.match(unit)
        else 1.0
    )


def _directives(output: str) -> list[str]:
    lower = output.lower()
    if len(lower) != len(output):
        output = lower
    lines: dict[int, str] = {}
    for mark in _DIRECTIVE_MARKS:
        at = lower.find(mark)
        while at >= 0:
            begin = max(output.rfind("\n", 0, at) + 1, at - _CONTEXT_CHARACTERS)
            end = output.find("\n", at, at + _CONTEXT_CHARACTERS)
            end = end if end >= 0 else at + _CONTEXT_CHARACTERS
            lines[begin] = output[begin:end]
            at = lower.find(mark, end)
    return list(lines.values())


@lru_cache(maxsize=_CACHE_SIZE)
def _owner_statement_runs(message: str) -> list[int]:
    units = _units(_QUOTE_OR_QUESTION.sub("\n", message))
    if len(units) > _MAX_TYPED_WORDS:  # probably pasted
        return []
    return [*_runs(units, RUN), *_runs(units, SHORT_RUN)]


def _units(text: str) -> list[str]:
    """Split a text into words, parts of identifiers, and characters of scripts without spaces."""
    text = _LIST_MARK.sub("\n", f"\n{text}")
    plain = _plain(text)
    if plain is not None:
        return _HUMP.sub(r" \g<0>", plain).lower().translate(_PUNCTUATION_TO_SPACES).split()
    text = unicodedata.normalize("NFKC", visible(text))
    return _UNIT.findall(_HUMP.sub(r" \g<0>", text).lower())


def _plain(text: str) -> str | None:
    if text.isascii():
        return text
    data = text.encode("utf-8", "surrogatepass")
    if not is_visible(data) or not all(
        map(_is_sign, data.translate(None, _ASCII).decode("utf-8", "replace"))
    ):
        return None
    return text.encode("ascii", "replace").decode("ascii")


@lru_cache(maxsize=_CACHE_SIZE)
def _is_sign(character: str) -> bool:
    is_between = character in _EMOJI_JOINTS or unicodedata.category(character)[0] in "PSZ"
    return is_between and not any(map(str.isalnum, unicodedata.normalize("NFKC", character)))


def _runs(units: list[str], length: float) -> Iterable[int]:
    if len(units) < length:
        return ()
    joined = " ".join(units)
    if not joined.isascii():
        return _mixed_runs(units, length)
    words = joined.encode().split(b" ")
    return list(
        map(
            zlib.crc32,
            map(b" ".join, zip(*(words[at:] for at in range(int(length))), strict=False)),
        )
    )


def _mixed_runs(units: list[str], length: float) -> Iterator[int]:
    weights = [_weigh(unit) for unit in units]
    end, run_weight = 0, 0.0
    for at, weight in enumerate(weights):
        while end < len(units) and run_weight < length:
            run_weight += weights[end]
            end += 1
        if run_weight < length:
            return
        yield zlib.crc32(" ".join(units[at:end]).encode("utf-8", "replace"))
        run_weight -= weight


# -- Speakers ------------------------------------------------------------------
# A record, message or block that names its origin counts as the owner's only if that origin is
# known to be the owner. ``phrases.toml`` lists text that tools write. In chats, only senders in
# ``owner.identities`` are the owner. Messages without an origin are not changed.


class Claims(msgspec.Struct, gc=False):
    """The fields in which tools' records name their origin."""

    origin: Any = None
    provenance: Any = None
    inputProvenance: Any = None  # noqa: N815
    promptSource: Any = None  # noqa: N815
    messageSource: Any = None  # noqa: N815
    turnOrigin: Any = None  # noqa: N815
    commandMode: Any = None  # noqa: N815
    authorKind: Any = None  # noqa: N815
    isSynthetic: Any = None  # noqa: N815
    synthetic: Any = None
    isVirtual: Any = None  # noqa: N815
    isVisibleInTranscriptOnly: Any = None  # noqa: N815
    turnCompanion: Any = None  # noqa: N815
    verifiedSlackHumanTurn: Any = None  # noqa: N815
    isSystemInitiated: Any = None  # noqa: N815
    isForwarded: Any = None  # noqa: N815
    textNotTyped: Any = None  # noqa: N815
    handedOff: Any = None  # noqa: N815
    wakeupSource: Any = None  # noqa: N815
    scheduledTaskId: Any = None  # noqa: N815
    isSimulatedMsg: Any = None  # noqa: N815
    simulatedMsgReason: Any = None  # noqa: N815
    isUser: Any = None  # noqa: N815
    isHuman: Any = None  # noqa: N815
    senderIsOwner: Any = None  # noqa: N815


_NAMES = Claims.__struct_fields__
_ORIGIN_FIELDS, _OTHER_FIELDS, _OWNER_FIELDS = _NAMES[:8], _NAMES[8:-3], _NAMES[-3:]
_OWNER_KINDS = frozenset(
    "human user owner keyboard typed prompt bash cli terminal tui console repl interactive editor ui plain queued voice sdk".split()  # noqa: E501
)
"""Origins that count as the owner, including programs and protocols, as in ``claude -p``."""
_UNKNOWN_TURN_ORIGIN = ("turnOrigin", "unknown")
"""The field and value by which Claude Code marks a turn from an unknown source."""

_KIND_KEYS = ("kind", "type", "name", "source")
_EXTERNAL_USER = "external_user"


def names_another(*claims: Claims | Values) -> bool:
    """Return True if any of the records or blocks names an origin other than the owner."""
    return any(
        _names_another(claim if isinstance(claim, Mapping) else msgspec.structs.asdict(claim))
        for claim in claims
    )


def _names_another(claim: Values) -> bool:
    if any(claim.get(name) is False for name in _OWNER_FIELDS) or any(
        map(claim.get, _OTHER_FIELDS)
    ):
        return True
    origins = {name: claim.get(name) for name in _ORIGIN_FIELDS}
    return any(
        (kind := _kind(value)) not in _OWNER_KINDS and (name, kind) != _UNKNOWN_TURN_ORIGIN
        for name, value in origins.items()
        if not isinstance(value, bool) and value not in (None, "", {}, [])
    )


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        value = next((value[key] for key in _KIND_KEYS if isinstance(value.get(key), str)), "")
    return value.strip().lower() if isinstance(value, str) else ""


def is_external_user(claim: Claims) -> bool:
    """Return True if a record comes from a user of a chat channel, where anyone may write."""
    return _kind(claim.provenance) == _EXTERNAL_USER


def attribute(
    turn: Turn,
    tool: str,
    identities: Sequence[str],
    exchange: Exchange,
    *claims: Claims | Values,
) -> Turn:
    """Return a turn with its real author, flags and trust.

    ``claims`` are records that may name the author. The owner's prompts start a new exchange.
    """
    turn = with_author(turn, tool, identities, exchange, *claims)
    if turn.speaker is Speaker.OWNER:
        if turn.trust is Trust.TRUSTED and not turn.flags & Flag.META:
            exchange.begin(turn.text)
        return turn
    trust, flags = exchange.judge(turn.text)
    trust = turn.trust if trust is Trust.TRUSTED else trust
    return replace(turn, trust=trust, flags=turn.flags | flags)


def with_author(
    turn: Turn,
    tool: str,
    identities: Sequence[str],
    exchange: Exchange,
    *claims: Claims | Values,
) -> Turn:
    """Correct the author of a turn that the tool attributes to the owner.

    Text by others is recorded as external. ``claims`` are records that may name the author.
    """
    if turn.speaker is not Speaker.OWNER:
        return turn
    foreign = replace(turn, speaker=Speaker.SYSTEM, trust=Trust.UNTRUSTED)
    if names_another(*claims):
        exchange.record_outside(turn.text)
        return foreign
    if turn.flags & (Flag.META | Flag.COMMAND):
        return turn
    words, lines = without_tools_lines(tool, turn.text)
    if is_tools(tool, turn.text):
        words, lines = "", (turn.text,)
    for line in lines:
        exchange.record_outside(line)
    if lines and not words:
        return replace(foreign, flags=turn.flags | Flag.META)
    words, sender = read_sender(words)
    if sender is None or sender.is_one_of(identities):
        return replace(turn, text=words)
    exchange.record_outside(words)
    return replace(foreign, text=words, author=sender.author)


# -- Message content: a string, one block, or a list of blocks -----------------


T = TypeVar("T")

ABSENT = msgspec.Raw(b"null")

_TEXTS = frozenset({"", "text", "input_text", "output_text", "inputText", "outputText", "markdown"})


class Block(Claims, gc=False):
    """A block of content. Fields that this kind of block does not have are empty."""

    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = ABSENT
    input: msgspec.Raw = ABSENT
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: msgspec.Raw = ABSENT

    @property
    def is_text(self) -> bool:
        """True if the block is text rather than a thought, an image or a call."""
        return bool(self.text) and (self.type or "") in _TEXTS


_CONTENT = msgspec.json.Decoder(str | Block | list[Block | str] | None)


def blocks_of(content: msgspec.Raw) -> list[Block]:
    """Return a message's content as blocks.

    A string becomes one text block, and content of any other type is ignored.
    """
    value = adapter.decode(_CONTENT, content)
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [Block(type="text", text=item) if isinstance(item, str) else item for item in items]


def text_of(content: msgspec.Raw, *, separator: str = "\n\n") -> str:
    """Return a message's text, without thoughts, images and tool calls."""
    return separator.join(
        block.text for block in blocks_of(content) if block.text and block.is_text
    )


# -- Turns in order, for formats that record tool results separately -----------
# The agent's last turn stays open for the results of its calls. If the file ends before it is
# closed, the next reading starts at that turn with the earlier ``carry``, so that two readings give
# the same result as one.


INTERRUPTION = "[Interrupted by the owner]"
"""Text of a turn for the owner's interruption if the tool writes none."""
_MAX_ERROR_CHARACTERS = 300
_MAX_AWAITED_CALLS = 50
"""Maximum number of external calls whose results may arrive after their turn has ended."""


@dataclass(slots=True)
class Call:
    """A tool call, with or without its result."""

    call: ToolCall
    outside: bool
    own: bool
    record: str | None = None
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The options of each question in a form."""

    @classmethod
    def of(cls, name: str, arguments: Values | str) -> Call:
        """Build a call that has no result yet."""
        call = new_call(name, arguments)
        outside = is_outside(name, call.input) or call.action is Action.FETCH
        if len(call.input) >= INPUT_CHARACTERS:
            outside = outside or is_outside(name, str(arguments))
        return cls(call, outside, is_own(name, call.input))


@frozen
class Before:
    """A position from which a later read can continue.

    ``offset`` is the offset of a record. ``carry`` and ``mark`` are the reader's state and
    :meth:`Exchange.mark` before it.
    """

    offset: int
    carry: bytes
    mark: tuple[int, ...]


@dataclass(slots=True)
class OpenTurn:
    """An agent's turn that can still grow."""

    id: str
    time: datetime | None
    unique: bool
    texts: list[str] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    flags: Flag = Flag.NONE
    trust: Trust = Trust.TRUSTED

    @property
    def is_pending(self) -> bool:
        return any(call.call.outcome is None for call in self.calls.values())


class Conversation:
    """A builder of a session's turns. ``source.carry`` holds its state for the next read."""

    def __init__(self, source: adapter.Source, session: Session) -> None:
        self.source = source
        carried = source.carry.get("session")
        self.session: Session = json.convert(carried, Session) if carried else session
        self.exchange = Exchange(source.carry.pop("exchange", None))
        self.opened: OpenTurn | None = None
        self.before: Before | None = None
        self.held: Before | None = None
        """The position of a record whose meaning can depend on later records."""
        spent = source.carry.get("spent")
        self.spent: Tokens | None = json.convert(spent, Tokens) if spent else None
        self._yielded: Session | None = None

    def read(
        self,
        decoder: msgspec.json.Decoder[T],
        take: Callable[[int, T], Iterable[Session | Turn]],
        settle: Callable[[], Iterable[Session | Turn]] = tuple,
    ) -> adapter.Items:
        """Yield a file's sessions and turns, converting each record with ``take``.

        At the end of the file, ``settle`` yields the turns that are still held back.
        """
        for offset, line in self.source.lines():
            records = list(adapter.records(self.source, line, decoder))
            for record in records:
                yield from take(offset, record)
            if len(records) > 1:
                yield from self.close()
        before = self.before or self.held
        yield from settle()
        yield from self.finish(before)

    def spend(self, tokens: Tokens) -> None:
        """Add an answer's tokens to the session's total."""
        if tokens.total:
            self.spent = ((self.spent or Tokens()) + tokens).bounded

    def new_id(self, speaker: Speaker, stamp: str | None, text: str) -> str:
        """Return a turn's id, derived from its text and, if known, the time of its record."""
        return hashed_id(self.source.carry, speaker, stamp, text)

    @property
    def calls(self) -> dict[str, Call]:
        return self.opened.calls if self.opened else {}

    @property
    def prompter(self) -> Speaker:
        """The speaker of the prompts: the owner or, in a sub-agent's session, the calling agent."""
        is_inner = self.session.kind is SessionKind.SUBAGENT
        return Speaker.AGENT if is_inner else Speaker.OWNER

    def learn(self, **facts: Any) -> None:
        """Update the session with the facts that are not empty."""
        facts["model"] = noted(self.session.model, facts.get("model"))
        self.session = replace(self.session, **{key: facts[key] for key in facts if facts[key]})

    def write(
        self,
        speaker: Speaker,
        text: str,
        time: datetime | None,
        *claims: Claims | Values,
        identity: str | None = None,
        stamp: str | None = None,
        flags: Flag = Flag.NONE,
        **facts: Any,
    ) -> adapter.Items:
        """Yield a complete turn without injected text, or nothing if no text remains.

        Without ``identity``, ``stamp`` and the text determine the turn's id. ``facts`` are its
        other fields.
        """
        cleaned = self.clean(text)
        if cleaned.text:
            facts.setdefault("unique", not identity and is_precise(stamp))
            identity = identity or self.new_id(speaker, stamp, cleaned.text)
            flags |= cleaned.flags
            turn = Turn(identity, speaker, cleaned.text, time, flags=flags, **facts)
            yield from self.say(turn, *claims)

    def say(self, turn: Turn, *claims: Claims | Values) -> adapter.Items:
        """Yield a complete turn with the author and trust that :func:`attribute` determines."""
        yield from self.close()
        turn = attribute(turn, self.session.tool, self.source.identities, self.exchange, *claims)
        yield from self._emit(turn)

    def interrupted(self, identity: str, time: datetime | None) -> adapter.Items:
        """Yield a note that the owner interrupted the agent, unless there are no turns yet."""
        flags = Flag.META | Flag.INTERRUPTED
        if self._has_begun:
            yield from self.say(Turn(identity, Speaker.SYSTEM, INTERRUPTION, time, flags=flags))

    def failed(self, identity: str, text: str, time: datetime | None) -> adapter.Items:
        """Yield a turn with an error of the model's provider, unless there are no turns yet."""
        words = shorten(self.clean(text).text, _MAX_ERROR_CHARACTERS)
        if words and self._has_begun:
            yield from self.say(Turn(identity, Speaker.SYSTEM, words, time, flags=Flag.META))

    @property
    def _has_begun(self) -> bool:
        return self.opened is not None or bool(self.source.carry.get("begun"))

    def open(
        self,
        identity: str | None,
        time: datetime | None,
        *,
        stamp: str | None = None,
        seed: str = "",
        unique: bool | None = None,
        before: Before | None = None,
    ) -> adapter.Items:
        """Start a turn of the agent.

        Without ``identity``, ``stamp`` and ``seed`` determine its id. In files that are read
        incrementally, ``before`` is the position of its first record.
        """
        yield from self.close()
        if unique is None:
            unique = not identity and is_precise(stamp)
        identity = identity or self.new_id(Speaker.AGENT, stamp, seed)
        self.before, self.opened = before, OpenTurn(identity, time, unique)

    def place(self, offset: int) -> Before:
        """Return the position before the record at ``offset``. Call it before using the record."""
        self._save()
        return Before(offset, msgspec.json.encode(self.source.carry), self.exchange.mark())

    def add_text(self, text: str) -> None:
        if self.opened is None:
            return
        cleaned = self.clean(text)
        self.opened.texts.append(cleaned.text)
        trust, flags = self.exchange.judge(cleaned.text)
        self.opened.flags |= flags | cleaned.flags
        if trust is Trust.UNTRUSTED:
            self.opened.trust = trust

    def clean(self, text: str) -> Cleaned:
        return self.exchange.clean(text)

    def add_call(self, call_id: str, name: str, arguments: object) -> str:
        """Add a call to the open turn, and return its id for :meth:`result`."""
        if self.opened is None:
            return call_id
        arguments = arguments if isinstance(arguments, str | dict) else ""
        call = Call.of(name, arguments)
        if self.exchange.trust_of_call(call.call, arguments) is Trust.UNTRUSTED:
            self.opened.trust = Trust.UNTRUSTED
        # The result can arrive after this turn.
        call_id = call_id or f"{self.opened.id}#{len(self.opened.calls)}"
        self.opened.calls[call_id] = call
        return call_id

    def result(self, call_id: str, result: str, output: str = "") -> None:
        call = self.calls.get(call_id)
        outside = call_id in self.source.carry.get("awaited", ()) or bool(call and call.outside)
        self.exchange.record(output, outside=outside, own=bool(call and call.own))
        if call:
            call.call = with_outcome(call.call, result, output)

    def close(self) -> adapter.Items:
        turn, self.opened, self.before = self.opened, None, None
        if turn is None:
            return
        late = [
            key
            for key, pending in turn.calls.items()
            if pending.outside and pending.call.outcome is None
        ]
        if late:
            self.source.carry["awaited"] = [*self.source.carry.get("awaited", []), *late][
                -_MAX_AWAITED_CALLS:
            ]
        text = "\n\n".join(part for part in turn.texts if part)
        calls = tuple(call.call for call in turn.calls.values())
        if text or calls:
            yield from self._emit(
                Turn(
                    turn.id,
                    Speaker.AGENT,
                    text,
                    time=turn.time,
                    tool_calls=calls,
                    flags=turn.flags,
                    trust=turn.trust,
                    unique=turn.unique,
                )
            )

    def finish(self, before: Before | None = None) -> adapter.Items:
        """Yield the open turn and end the read.

        The next read starts at this turn, or else at ``before``.
        """
        before = self.before or before
        yield from self.conclude()
        self._save()
        if before:
            self.source.carry = msgspec.json.decode(before.carry)
            self.source.hold(before.offset)
        self.source.carry["exchange"] = self.exchange.carried(before.mark if before else None)

    def end(self) -> adapter.Items:
        """Yield the open turn and, if it changed, the session. Then clear the state."""
        yield from self.conclude()
        self.source.carry.clear()

    def conclude(self) -> adapter.Items:
        """Yield the open turn and, if it changed, the session."""
        yield from self.close()
        session = replace(self.session, tokens=self.spent)
        if self.source.carry.get("begun") and session != self._yielded:
            yield session

    def _emit(self, turn: Turn) -> adapter.Items:
        if self.session != self._yielded:
            self._yielded = self.session
            yield self.session
        self.source.carry["begun"] = True
        yield turn

    def _save(self) -> None:
        self.source.carry["session"] = msgspec.to_builtins(self.session)
        if self.spent:
            self.source.carry["spent"] = msgspec.to_builtins(self.spent)


def hashed_id(carry: JsonObject, speaker: Speaker, stamp: str | None, text: str) -> str:
    """Return a turn's id, derived from its speaker, time and text.

    Identical turns at the same time get different ids, but copies of a record get the same id.
    """
    counted = carry.setdefault("seen", {"stamp": stamp, "counts": {}})
    if stamp and counted["stamp"] != stamp:
        counted["stamp"], counted["counts"] = stamp, {}
    body = f"{stamp or ''}\n{text}"
    key = turn_hash(speaker, body, 0)[:8]
    occurrence = counted["counts"].get(key, 0)
    counted["counts"][key] = occurrence + 1
    return turn_hash(speaker, body, occurrence)


def is_precise(stamp: str | None) -> bool:
    """Return True if a timestamp has fractions of a second, so few records share it."""
    return "." in (stamp or "")


# -- Data folders of the VS Code family ----------------------------------------


_EDITORS = (
    "Code",
    "Code - Insiders",
    "Code - OSS",
    "VSCodium",
    "VSCodium - Insiders",
    "Cursor",
    "Windsurf",
)
_SERVERS = (
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscode-remote",
    ".cursor-server",
    ".windsurf-server",
)
_URI = re.compile(r"[a-z][a-z0-9+.-]*://")
_DRIVE = re.compile(r"/([A-Za-z]:)(?=/|\Z)")


def user_folders(places: adapter.Places) -> Iterator[Path]:
    """Yield the possible ``User`` folders of local, portable and remote VS Code editors."""
    base = configuration(places)
    yield from (base / editor / "User" for editor in _EDITORS)
    for name, data in (("VSCODE_APPDATA", "Code"), ("VSCODE_PORTABLE", "user-data")):
        if folder := places.environ.get(name):
            yield Path(folder).expanduser() / data / "User"
    yield from (places.home / server / "data" / "User" for server in _SERVERS)


def configuration(places: adapter.Places) -> Path:
    """Return the user's folder for application settings."""
    if places.platform == "darwin":
        return places.home / "Library" / "Application Support"
    if places.platform == "win32":
        return places.folder("APPDATA", "AppData", "Roaming")
    return places.folder("XDG_CONFIG_HOME", ".config")


def folder_of(uri: str | None) -> str | None:
    """Return the path in a ``file:`` or ``vscode-remote:`` URI. A plain path stays unchanged.

    Return None for an empty or invalid URI.
    """
    if not uri or not _URI.match(uri):
        return uri or None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc:
        path = f"//{parts.netloc}{path}"
    drive = _DRIVE.match(path)
    path = path[1:] if drive else path
    return path if len(path) < 2 or drive else path.rstrip("/")
