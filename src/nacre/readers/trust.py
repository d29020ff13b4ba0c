"""Trust and speaker of each turn, and the ordered turns of a session.

An agent's statement is based on external text or nacre's text if both share five consecutive words
(a "run"), or if it quotes the text. The comparison ignores case, punctuation, emphasis, line
breaks, list marks and identifier style. In scripts without spaces, eight characters count as five
words. Only hashes of runs are kept between readings of a session.
"""

from __future__ import annotations

import itertools
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
    answered,
    asked,
    clean,
    is_tools,
    read_sender,
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
"""Separators between a form question and a chosen option, or text that the user typed."""

RUN = 5.0
"""Number of consecutive words that a statement must share with external text. See docs/trust.md."""

SHORT_RUN = 3.0
"""Minimum number of words in a statement that is compared as a whole.

Only statements with fewer than ``RUN`` words are compared in this way.
"""

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
)
"""Words that mark lines with instructions.

From local tool output (files, logs, errors, commits), only such lines are kept for comparison.
Other lines do little harm, and statements about code often repeat them.
"""
_PIPE_MARKS = ("| sh", "| bash")
_HAN_MARKS = tuple(
    word.encode().decode("latin-1")
    for word in "记住 记得 务必 必须 总是 永远 不要 重要 以后".split()
)
"""Chinese words that mark instructions, in UTF-8 with one character per byte.

The first byte of each word is in ``_HAN_BYTES``.
"""
_HAN_BYTES = bytes(range(0xE4, 0xEA))
_NO_HAN_BYTES = bytes(set(range(256)) - set(_HAN_BYTES))

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
"""Commands that contact a registry or remote. Their error output might come from there."""
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
    """Return True if a word names a place where other people write, such as a chat or a tracker."""
    return bool(_OUTSIDE_TOOL.fullmatch(word))


def is_outside(tool: str, short_input: str) -> bool:
    """Return True if a tool call returns text from the web, mail, issues, or other people's files."""
    return bool(
        _OUTSIDE_TOOL.search(tool)
        or _OUTSIDE_COMMAND.search(short_input)
        or _FOREIGN_FILE.search(short_input)
    )


def brings_outside(call: ToolCall) -> bool:
    """Return True if a call returns external text, or failed while contacting a remote."""
    return is_outside(call.name, call.input) or (
        call.failed and bool(_REACHING_COMMAND.search(call.input))
    )


def reached_out(turns: Sequence[Turn], at: int) -> bool:
    """Return True if the agent received external text in ``turns[: at + 1]``.

    The agent might have paraphrased that text.
    """
    return any(
        turn.trust is Trust.UNTRUSTED or any(map(brings_outside, turn.tool_calls))
        for turn in turns[: at + 1]
    )


def is_own(tool: str, short_input: str) -> bool:
    """Return True if a tool call uses nacre's tools or its command line."""
    return bool(
        _OWN_TOOL.search(tool) or ("nacre" in short_input and _OWN_COMMAND.search(short_input))
    )


def is_storing(tool: str, short_input: str) -> bool:
    """Return True if a tool call stores its arguments in nacre."""
    return bool(
        _STORING_TOOL.search(tool)
        or ("nacre" in short_input and _STORING_COMMAND.search(short_input))
    )


def shared(text: str, other: str) -> float:
    """Return the share (0 to 1) of the runs of words in ``text`` that also occur in ``other``.

    If ``text`` has fewer than ``RUN`` words, shorter runs are compared.
    """
    units, others = _units(text), _units(other)
    for length in (RUN, SHORT_RUN):
        runs = list(_runs(units, length))
        if runs:
            other_runs = set(_runs(others, length))
            return sum(run in other_runs for run in runs) / len(runs)
    return 0.0


@frozen
class Judgement:
    """Trust and flags of an agent's statement."""

    trust: Trust = Trust.TRUSTED
    flags: Flag = Flag.NONE


class Exchange:
    """The texts that a session received, for comparison with the agent's statements.

    Each text is external, local or from nacre. Words that the owner also wrote count as the
    owner's.
    """

    def __init__(self, carried: Values | None = None) -> None:
        carried = carried or {}
        self._received: dict[str, dict[int, None]] = {
            name: dict.fromkeys(carried.get(name, ())) for name in _KINDS
        }
        """Hashes of the word sequences that the agent received, in order of arrival."""
        self._unseen = bool(carried.get("unseen"))
        self._owner_messages: list[str] = []
        self._earlier_owner_runs: set[int] = set(carried.get("lifted", ()))
        self._outside_text = ""

    def begin(self, message: str = "") -> None:
        """Start a new exchange with a message from the owner."""
        self._outside_text = ""
        self._unseen = False
        if message:
            self._owner_messages.append(message)

    def unseen(self) -> None:
        """Record that the agent received external text whose content is unknown."""
        self._unseen = True

    def heard_from(self, tool: str, short_input: str, output: str) -> None:
        """Record a tool's output. The tool's name and input determine the output's origin."""
        outside, own = is_outside(tool, short_input), is_own(tool, short_input)
        self.heard(output, outside=outside, own=own)

    def heard(self, output: str, *, outside: bool = False, own: bool = False) -> None:
        """Record a tool's output as external text, nacre's text, or local text.

        Only the instructions in local text are recorded.
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

    def saw(self, output: str) -> None:
        self.heard(output, outside=True)

    def clean(self, text: str) -> Cleaned:
        """Remove injected text. Record it as text that the agent received."""
        cleaned = clean(text)
        for own in cleaned.own:
            self.heard(own, own=True)
        for outside in cleaned.outside:
            self.saw(outside)
        for local in cleaned.local:
            self.heard(local)
        return cleaned

    def judge(self, statement: str) -> Judgement:
        """Return the trust and flags of an agent's statement.

        A statement that repeats external text is ``untrusted``. A statement that repeats nacre's
        output is ``injected``.
        """
        outside, local, own = self._received.values()
        if self._unseen or not (outside or local or own):
            return Judgement(Trust.UNTRUSTED if self._unseen else Trust.TRUSTED)
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
        foreign = foreign or self._quotes(statement)
        return Judgement(
            Trust.UNTRUSTED if foreign else Trust.TRUSTED, Flag.INJECTED if is_own else Flag.NONE
        )

    def trust_of(self, statement: str) -> Trust:
        """Return the trust of an agent's statement. See :meth:`judge`."""
        return self.judge(statement).trust

    def trust_of_call(self, call: ToolCall, arguments: object) -> Trust:
        """Return the trust of the text that a tool call stores in nacre.

        A call that stores no text is trusted.
        """
        if not is_storing(call.name, call.input):
            return Trust.TRUSTED
        return self.trust_of("\n".join(_texts_of(arguments)))

    def _owner_runs(self, messages: int) -> set[int]:
        """Return hashes of the word sequences in the owner's messages.

        ``messages``: number of messages of this reading to include.
        """
        return {
            run
            for message in self._owner_messages[:messages]
            for run in _owner_statement_runs(message)
        } | self._earlier_owner_runs

    def _quotes(self, statement: str) -> bool:
        return bool(self._outside_text) and any(
            match[1].lower() in self._outside_text for match in _QUOTED.finditer(statement)
        )

    def mark(self) -> tuple[int, ...]:
        """Return how much text was received so far, as a position for :meth:`carried`."""
        return (
            *map(len, self._received.values()),
            len(self._owner_messages),
            int(self._unseen),
        )

    def carried(self, mark: tuple[int, ...] | None = None) -> JsonObject:
        """Return the state to save for the next reading, as it was at ``mark`` or is now."""
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
    elif isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(map(_texts_of, value.values()))
    elif isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(_texts_of, value))


def _draws_on(
    runs: Iterable[int], short: Iterable[list[int]], received: Mapping[int, None]
) -> bool:
    """Return True if a statement repeats received text.

    The received text must contain one of ``runs``, or all runs of one statement in ``short``.
    """
    if any(run in received for run in runs):
        return True
    return any(all(run in received for run in statement) for statement in short)


def _short(text: str) -> list[list[int]]:
    """Return hashes of the short word sequences in each statement of fewer than ``RUN`` words."""
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
    """Return the lines that give instructions. Long lines are cut around the instruction.

    The search treats UTF-8 as Latin-1, because strings with one byte per character are several
    times faster to search.
    """
    data = output.encode("utf-8", "surrogatepass")
    lower = data.lower().decode("latin-1")
    lines: dict[int, str] = {}
    for mark in _marks_for(data, lower):
        at = lower.find(mark)
        while at >= 0:
            begin, end = _around(data, at)
            lines[begin] = data[begin:end].decode("utf-8", "replace")
            at = lower.find(mark, end)
    return list(lines.values())


def _marks_for(data: bytes, lower: str) -> Iterator[str]:
    yield from _DIRECTIVE_MARKS
    if "|" in lower:
        yield from _PIPE_MARKS
    if not data.isascii() and data.translate(None, _NO_HAN_BYTES):
        yield from _HAN_MARKS


def _around(data: bytes, at: int) -> tuple[int, int]:
    """Return the start and end of the text around an offset.

    The text is in one line and has at most ``_CONTEXT_CHARACTERS`` on each side.
    """
    begin = max(data.rfind(b"\n", 0, at) + 1, at - 4 * _CONTEXT_CHARACTERS)
    end = data.find(b"\n", at, at + 4 * _CONTEXT_CHARACTERS)
    end = end if end >= 0 else min(len(data), at + 4 * _CONTEXT_CHARACTERS)
    before = data[begin:at].decode("utf-8", "ignore")[-_CONTEXT_CHARACTERS:]
    after = data[at:end].decode("utf-8", "ignore")[:_CONTEXT_CHARACTERS]
    return at - len(before.encode()), at + len(after.encode())


@lru_cache(maxsize=_CACHE_SIZE)
def _owner_statement_runs(message: str) -> list[int]:
    """Return hashes of the word sequences in the owner's statements.

    Questions, quotations, and messages that are long enough to be pasted are left out.
    """
    units = _units(_QUOTE_OR_QUESTION.sub("\n", message))
    if len(units) > _MAX_TYPED_WORDS:
        return []
    return [*_runs(units, RUN), *_runs(units, SHORT_RUN)]


def _units(text: str) -> list[str]:
    """Return the words of a text in lower case. Identifiers and unspaced text are split."""
    text = _LIST_MARK.sub("\n", f"\n{text}")
    plain = _plain(text)
    if plain is not None:
        return _HUMP.sub(r" \g<0>", plain).lower().translate(_PUNCTUATION_TO_SPACES).split()
    text = unicodedata.normalize("NFKC", visible(text))
    return _UNIT.findall(_HUMP.sub(r" \g<0>", text).lower())


def _plain(text: str) -> str | None:
    """Return the text as ASCII, or None if it contains words that are not ASCII.

    Dashes, arrows, curved quotes and emoji are not words.
    """
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
    """Return True if a character always separates words and is never part of a word."""
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
# known to be the owner. ``phrases.toml`` lists text that tools write. In chats, a sender is the
# owner only if ``owner.identities`` lists the sender. Messages without an origin are not changed.


class Claims(msgspec.Struct, gc=False):
    """Fields in which records name their origin. Each tool uses some of them."""

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
    "human user owner keyboard typed prompt bash cli terminal tui console repl interactive editor ui plain queued voice".split()  # noqa: E501
)
_TRANSPORT_KINDS = frozenset({"sdk"})
"""Origins that name a program or protocol. The owner can use these, too, as in ``claude -p``."""
_UNKNOWN_TURN_ORIGIN = ("turnOrigin", "unknown")
"""Field and value with which Claude Code marks a turn from an unknown source."""

_KIND_KEYS = ("kind", "type", "name", "source")
_EXTERNAL_USER = "external_user"


def names_another(*claims: Claims | Values) -> bool:
    """Return True if a record, message or block names an origin other than the owner."""
    return any(
        _names_another(claim if isinstance(claim, Mapping) else msgspec.structs.asdict(claim))
        for claim in claims
    )


def _names_another(claim: Values) -> bool:
    if any(claim.get(name) is False for name in _OWNER_FIELDS) or any(
        map(claim.get, _OTHER_FIELDS)
    ):
        return True
    kinds = ((name, _kind(claim[name])) for name in _ORIGIN_FIELDS if _is_origin(claim.get(name)))
    return any(
        kind not in _OWNER_KINDS
        and kind not in _TRANSPORT_KINDS
        and (name, kind) != _UNKNOWN_TURN_ORIGIN
        for name, kind in kinds
    )


def _is_origin(value: object) -> bool:
    return not isinstance(value, bool) and value not in (None, "", {}, [])


def _kind(value: Any) -> str:
    """Return the kind of an origin, or an empty string. Origins are strings or objects."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in _KIND_KEYS if isinstance(value.get(key), str)), "")
    return value.strip().lower() if isinstance(value, str) else ""


def is_external_user(claim: Claims) -> bool:
    """Return True if a record names a channel user, who can be anyone, as its origin."""
    return _kind(claim.provenance) == _EXTERNAL_USER


def attribute(
    turn: Turn,
    tool: str,
    identities: Sequence[str],
    exchange: Exchange,
    *claims: Claims | Values,
) -> Turn:
    """Return a turn with its real author, flags and trust.

    A prompt from the owner starts a new exchange. ``claims``: records that might name the author.
    """
    turn = with_author(turn, tool, identities, exchange, *claims)
    if turn.speaker is Speaker.OWNER:
        if turn.trust is Trust.TRUSTED and not turn.flags & Flag.META:
            exchange.begin(turn.text)
        return turn
    judged = exchange.judge(turn.text)
    trust = Trust.UNTRUSTED if judged.trust is Trust.UNTRUSTED else turn.trust
    return replace(turn, trust=trust, flags=turn.flags | judged.flags)


def with_author(
    turn: Turn,
    tool: str,
    identities: Sequence[str],
    exchange: Exchange,
    *claims: Claims | Values,
) -> Turn:
    """Return a turn with its real author, if the tool attributes the turn to the owner.

    Other people's text in the turn is recorded as external. ``claims``: records that might name
    the author.
    """
    if turn.speaker is not Speaker.OWNER:
        return turn
    author, flags = turn.author, turn.flags
    others: tuple[str, ...] = (turn.text,)
    if not names_another(*claims):
        if flags & (Flag.META | Flag.COMMAND):
            return turn
        words, lines = turn.text, others
        if not is_tools(tool, words):
            words, lines = without_tools_lines(tool, words)
        if lines and (not words or lines is others):
            flags, others = flags | Flag.META, lines
        else:
            words, sender = read_sender(words)
            turn, others = replace(turn, text=words), lines
            if not sender or sender.is_one_of(identities):
                for other in others:
                    exchange.saw(other)
                return turn
            author, others = sender.author, (*lines, words)
    for other in others:
        exchange.saw(other)
    return replace(turn, speaker=Speaker.SYSTEM, trust=Trust.UNTRUSTED, flags=flags, author=author)


# -- Message content: a string, one block, or a list of blocks -----------------


T = TypeVar("T")

ABSENT = msgspec.Raw(b"null")

_TEXTS = frozenset({"", "text", "input_text", "output_text", "inputText", "outputText", "markdown"})


class Block(Claims, gc=False):
    """A block of content. Fields that a kind of block lacks are empty."""

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
        """True if the block is text, not thinking, an image or a call."""
        return bool(self.text) and (self.type or "") in _TEXTS


_CONTENT = msgspec.json.Decoder(str | Block | list[Block | str] | None)


def blocks_of(content: msgspec.Raw) -> list[Block]:
    """Return the blocks of a message. A string becomes one text block.

    Content of any other type has no blocks.
    """
    value = adapter.decode(_CONTENT, content)
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [Block(type="text", text=item) if isinstance(item, str) else item for item in items]


def text_of(content: msgspec.Raw, *, separator: str = "\n\n") -> str:
    """Return the text of a message, without thinking, images and calls."""
    return separator.join(
        block.text for block in blocks_of(content) if block.text and block.is_text
    )


# -- Turns in order, for formats with separate records for tool results --------
# The agent's last turn stays open for the results of its calls. If the file ends before it is
# closed, the next reading starts at that turn with the earlier ``carry``. Two readings then give
# the same result as one.


INTERRUPTION = "[Interrupted by the owner]"
"""Text of a turn that stands for an interruption by the owner, if the tool writes no text."""
_MAX_ERROR_CHARACTERS = 300
_MAX_AWAITED_CALLS = 50
"""Maximum number of external calls whose results can arrive after their turn has ended."""


@dataclass(slots=True)
class Call:
    """A tool call, with or without its result."""

    call: ToolCall
    outside: bool
    own: bool
    record: str | None = None
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The questions of a form, each with its options."""

    @classmethod
    def of(cls, name: str, arguments: Values | str) -> Call:
        """Return a new call. Its result is not known yet."""
        call = asked(name, arguments)
        outside = is_outside(name, call.input) or call.action is Action.FETCH
        if len(call.input) >= INPUT_CHARACTERS:
            outside = outside or is_outside(name, str(arguments))
        return cls(call, outside, is_own(name, call.input))


@frozen
class Before:
    """A position at which a later reading can continue.

    ``offset``: the offset of a record. ``carry``: the reader's state before that record.
    ``mark``: the value of :meth:`Exchange.mark` before that record.
    """

    offset: int
    carry: bytes
    mark: tuple[int, ...]


@dataclass(slots=True)
class OpenTurn:
    """An agent turn that can still grow."""

    id: str
    time: datetime | None
    unique: bool
    texts: list[str] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    flags: Flag = Flag.NONE
    trust: Trust = Trust.TRUSTED

    @property
    def waits(self) -> bool:
        return any(waiting.call.outcome is None for waiting in self.calls.values())


class Conversation:
    """Builds a session's turns. ``source.carry`` keeps the state for the next reading."""

    def __init__(self, source: adapter.Source, session: Session) -> None:
        self.source = source
        carried = source.carry.get("session")
        self._session: Session = json.convert(carried, Session) if carried else session
        self.exchange = Exchange(source.carry.pop("exchange", None))
        self.opened: OpenTurn | None = None
        self.before: Before | None = None
        spent = source.carry.get("spent")
        self.spent: Tokens | None = json.convert(spent, Tokens) if spent else None
        self._yielded: Session | None = None

    @property
    def session(self) -> Session:
        return self._session

    @session.setter
    def session(self, session: Session) -> None:
        before = self._session.model if session.native_id == self._session.native_id else None
        self._session = replace(session, model=noted(before, session.model))

    def read(
        self,
        decoder: msgspec.json.Decoder[T],
        take: Callable[[int, T], Iterable[Session | Turn]],
    ) -> adapter.Items:
        """Yield the items in a file. ``take`` converts one record into items."""
        for offset, line in self.source.lines():
            records = list(adapter.records(self.source, line, decoder))
            for record in records:
                yield from take(offset, record)
            if len(records) > 1:
                yield from self.close()
        yield from self.finish()

    def spend(self, tokens: Tokens) -> None:
        """Add the tokens of one answer. The total is stored at the end of the reading."""
        if tokens.total:
            self.spent = ((self.spent or Tokens()) + tokens).bounded

    def new_id(self, speaker: Speaker, stamp: str | None, text: str) -> str:
        """Return an id for a turn that has none, derived from the record's time if known."""
        return hashed_id(self.source.carry, speaker, stamp, text)

    @property
    def calls(self) -> dict[str, Call]:
        return self.opened.calls if self.opened else {}

    @property
    def prompter(self) -> Speaker:
        """Speaker who writes prompts: the owner, or the agent that started a sub-agent."""
        is_inner = self.session.kind is SessionKind.SUBAGENT
        return Speaker.AGENT if is_inner else Speaker.OWNER

    @property
    def waits_for_others(self) -> bool:
        """True if a call to nacre or to an external source has no result yet."""
        return any(
            pending.call.outcome is None and (pending.outside or pending.own)
            for pending in self.calls.values()
        )

    def learn(self, **facts: Any) -> None:
        """Update the session with all facts that are not empty."""
        self.session = replace(self._session, **{key: facts[key] for key in facts if facts[key]})

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
        """Yield a complete turn. Injected text is removed, and an empty turn is not yielded.

        A turn without ``identity`` gets an id derived from ``stamp`` and the text. ``facts`` are
        the turn's other fields.
        """
        cleaned = self.clean(text)
        if cleaned.text:
            identity = identity or self.new_id(speaker, stamp, cleaned.text)
            flags |= cleaned.flags
            turn = Turn(identity, speaker, cleaned.text, time, flags=flags, **facts)
            yield from self.say(turn, *claims)

    def say(self, turn: Turn, *claims: Claims | Values) -> adapter.Items:
        """Yield a complete turn. A prompt from the owner starts a new exchange.

        ``claims`` are the records that can name the turn's author. A turn that someone else wrote
        counts as external text.
        """
        yield from self.close()
        turn = attribute(turn, self.session.tool, self.source.identities, self.exchange, *claims)
        yield from self._emit(turn)

    def interrupted(self, identity: str, time: datetime | None) -> adapter.Items:
        """Record that the owner interrupted the agent. Do nothing before the first turn."""
        flags = Flag.META | Flag.INTERRUPTED
        if self._has_begun:
            yield from self.say(Turn(identity, Speaker.SYSTEM, INTERRUPTION, time, flags=flags))

    def failed(self, identity: str, text: str, time: datetime | None) -> adapter.Items:
        """Yield the host's report of an error from the model's provider."""
        words = shorten(self.clean(text).text, _MAX_ERROR_CHARACTERS)
        if words and self._has_begun:
            yield from self.say(Turn(identity, Speaker.SYSTEM, words, time, flags=Flag.META))

    @property
    def _has_begun(self) -> bool:
        return self.opened is not None or bool(self.source.carry.get("begun"))

    def open(self, turn: OpenTurn, before: Before | None = None) -> adapter.Items:
        """Start an agent turn.

        ``before`` is the position of its first record in files that are read incrementally.
        """
        yield from self.close()
        self.before, self.opened = before, turn

    def place(self, offset: int) -> Before:
        """Return the position of the record at ``offset``. Call this before the record changes the state."""
        self._save()
        return Before(offset, msgspec.json.encode(self.source.carry), self.exchange.mark())

    def add_text(self, text: str) -> None:
        if self.opened is None:
            return
        cleaned = self.clean(text)
        self.opened.texts.append(cleaned.text)
        judged = self.exchange.judge(cleaned.text)
        self.opened.flags |= judged.flags | cleaned.flags
        if judged.trust is Trust.UNTRUSTED:
            self.opened.trust = Trust.UNTRUSTED

    def clean(self, text: str) -> Cleaned:
        return self.exchange.clean(text)

    def add_call(self, call_id: str, name: str, arguments: object) -> str:
        """Add a call to the open turn. Return the call's id for :meth:`result`."""
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

    def result(self, call_id: str, result: str, output: Callable[[], str]) -> None:
        call = self.calls.get(call_id)
        outside = call_id in self.source.carry.get("awaited", ()) or bool(call and call.outside)
        self.exchange.heard(output(), outside=outside, own=bool(call and call.own))
        if call:
            call.call = answered(call.call, result, output)

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
        calls = tuple(made.call for made in turn.calls.values())
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
        """End this reading. The next reading starts at the open turn.

        If no turn is open, the next reading starts at ``before``.
        """
        before = self.before or before
        yield from self.conclude()
        self._save()
        if before:
            self.source.carry = msgspec.json.decode(before.carry)
            self.source.hold(before.offset)
        self.source.carry["exchange"] = self.exchange.carried(before.mark if before else None)

    def end(self) -> adapter.Items:
        """Yield the open turn and the session of a file that is always read from the start."""
        yield from self.conclude()
        self.source.carry.clear()

    def conclude(self) -> adapter.Items:
        """Yield the open turn, and the session if its facts have changed."""
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

    Identical turns with the same time are numbered, so that their ids differ. A copied record keeps
    its id.
    """
    seen = carry.setdefault("seen", {"stamp": stamp, "counts": {}})
    if stamp and seen["stamp"] != stamp:
        seen["stamp"], seen["counts"] = stamp, {}
    body = f"{stamp or ''}\n{text}"
    key = turn_hash(speaker, body, 0)[:8]
    occurrence = seen["counts"].get(key, 0)
    seen["counts"][key] = occurrence + 1
    return turn_hash(speaker, body, occurrence)


def is_precise(stamp: str | None) -> bool:
    """Return True if a time has fractions of a second. Few records share such a time."""
    return bool(stamp) and "." in str(stamp)


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
    """Yield the ``User`` folder of each installed, portable or remote editor like VS Code."""
    base = configuration(places)
    yield from (base / editor / "User" for editor in _EDITORS)
    for name in ("VSCODE_APPDATA", "VSCODE_PORTABLE"):
        if folder := places.environ.get(name):
            data = Path(folder).expanduser()
            yield (
                data / "user-data" / "User" if name == "VSCODE_PORTABLE" else data / "Code" / "User"
            )
    yield from (places.home / server / "data" / "User" for server in _SERVERS)


def configuration(places: adapter.Places) -> Path:
    """Return the folder for programs' settings."""
    if places.platform == "darwin":
        return places.home / "Library" / "Application Support"
    if places.platform == "win32":
        return places.folder("APPDATA", "AppData", "Roaming")
    return places.folder("XDG_CONFIG_HOME", ".config")


def folder_of(uri: str | None) -> str | None:
    """Return the path in a ``file:`` or ``vscode-remote:`` URI. A path is returned unchanged.

    Return None if there is no path.
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
