"""Does a statement draw on text from outside, or on nacre's own? By runs of five words that both share, or quotations.

What is compared are runs of words, whatever stands between them: case, punctuation, emphasis, line ends, list marks
and the writing of identifiers make no difference. In scripts without spaces eight characters count as five words.
Only hashes of runs are kept, so that a session that is read in several goes remembers them.
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
from nacre.base.ids import turn_hash
from nacre.base.text import is_visible, noted, shorten, visible
from nacre.readers.adapter import Places, Source, decode
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
from nacre.values.session import Action, Flag, Session, Speaker, Tokens, ToolCall, Trust, Turn

CHOSEN, TYPED = "→", "⇒"
"""What stands between a question of a form and its answer: one of its options, or what the owner typed instead."""

RUN = 5.0
"""Words in a row that text from outside and a statement share (docs/trust.md)."""

SHORT_RUN = 3.0
"""A statement of fewer than five words is compared whole, from three words on."""

_WORDS = (
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
"""What marks a line that tells somebody what to do. Of what tools of this machine say (files, logs, errors, commits)
only such lines are compared: who describes code uses its words, and what tells nobody what to do does little harm."""
_PIPES = ("| sh", "| bash")
_HAN_WORDS = tuple(
    word.encode().decode("latin-1")
    for word in "记住 记得 务必 必须 总是 永远 不要 重要 以后".split()
)
"""As the bytes of their UTF-8, a character each. The first of each is one of ``_HAN_BYTES``."""
_HAN_BYTES = bytes(range(0xE4, 0xEA))
_NO_HAN_BYTES = bytes(set(range(256)) - set(_HAN_BYTES))

_CHARACTER = 0.625
_MAX_CHARACTERS = 200_000
_MAX_RUNS = 30_000
_LONG = 120
_LINE_CHARACTERS = 400
_SHORT_CHARACTERS = 120
_REMEMBERED = 512

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_UNIT = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]))")
_APART = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})
_ASCII = bytes(range(128))
_EMOJI_JOINTS = "\ufe0f\u200d"
_LIST_MARK = re.compile(r"\n[ \t]*(?:\d{1,3}|[A-Za-z])[.)][ \t]+")
_STATEMENT = re.compile(r"[\n。！？；，：]+|[.!?;:](?:\s+|$)")
_QUOTED = re.compile(r"[\"“”«»「」`]([^\"“”«»「」`\n]{25,400})[\"“”«»「」`]")
_NOT_SAID = re.compile(
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
"""What asks a registry or a remote, whose words its errors may be."""
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
    """Return True if a word names a place outside where people write, such as a chat or a tracker."""
    return bool(_OUTSIDE_TOOL.fullmatch(word))


def is_outside(tool: str, short_input: str) -> bool:
    """Whether a tool call brings text from outside: the web, mail, issue bodies, other people's files."""
    return bool(
        _is_outside_tool(tool)
        or _OUTSIDE_COMMAND.search(short_input)
        or _FOREIGN_FILE.search(short_input)
    )


def reaches_out(short_input: str) -> bool:
    """Whether a command asks a registry or a remote: where it fails, others may have written what it puts out."""
    return bool(_REACHING_COMMAND.search(short_input))


def brings_outside(call: ToolCall) -> bool:
    """Whether a call brings text from outside, or failed while it reached there."""
    return is_outside(call.name, call.input) or (call.failed and reaches_out(call.input))


def reached_out(turns: Sequence[Turn], at: int) -> bool:
    """Whether a session had read the web, mail or other people's files by a turn: an agent may say in words of its own
    what it read there, and who only points at them has said none of it."""
    return any(
        one.trust is Trust.UNTRUSTED or any(map(brings_outside, one.tool_calls))
        for one in turns[: at + 1]
    )


def is_own(tool: str, short_input: str) -> bool:
    """Whether a tool call asks nacre itself: its tools, or its command line."""
    return _is_own_tool(tool) or ("nacre" in short_input and bool(_OWN_COMMAND.search(short_input)))


def is_storing(tool: str, short_input: str) -> bool:
    """Whether a tool call has nacre keep what it says."""
    return bool(
        _STORING_TOOL.search(tool)
        or ("nacre" in short_input and _STORING_COMMAND.search(short_input))
    )


@lru_cache(maxsize=_REMEMBERED)
def _is_outside_tool(tool: str) -> bool:
    return bool(_OUTSIDE_TOOL.search(tool))


@lru_cache(maxsize=_REMEMBERED)
def _is_own_tool(tool: str) -> bool:
    return bool(_OWN_TOOL.search(tool))


def shared(text: str, other: str) -> float:
    """The share of a text's runs of words that another text holds, 0 to 1; of a short text, of its short runs."""
    units, others = _units(text), _units(other)
    for length in (RUN, SHORT_RUN):
        runs = list(_runs(units, length))
        if runs:
            known = set(_runs(others, length))
            return sum(run in known for run in runs) / len(runs)
    return 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of an agent's statement: whether it can be trusted, and what it is besides plain talk."""

    trust: Trust = Trust.TRUSTED
    flags: Flag = Flag.NONE


@dataclass(slots=True)
class _Heard:
    """Runs of words, in the order in which they were heard; the oldest go when there are too many."""

    runs: dict[int, None] = field(default_factory=dict)

    def add(self, runs: Iterable[int]) -> None:
        for run in runs:
            self.runs[run] = None

    def first(self, count: int) -> list[int]:
        """The runs that were known when there were so many, as far as they are kept."""
        return list(self.runs)[:count][-_MAX_RUNS:]


class Exchange:
    """What a session heard from outside, from nacre and from this machine; says what an agent's statement draws on.

    All of it stays known as long as the session goes on. What the owner says in words of their own is the owner's from
    then on.
    """

    def __init__(self, carried: Mapping[str, Any] | None = None) -> None:
        carried = carried or {}
        self._heard = {name: _Heard(dict.fromkeys(carried.get(name, ()))) for name in _KINDS}
        self._unseen = bool(carried.get("unseen"))
        self._said: list[str] = []
        self._said_before: set[int] = set(carried.get("lifted", ()))
        self._text = ""

    def begin(self, said: str = "") -> None:
        """The owner spoke: a new exchange."""
        self._text = ""
        self._unseen = False
        if said:
            self._said.append(said)

    def unseen(self) -> None:
        """Something came from outside that is not recorded: trust nothing in this exchange."""
        self._unseen = True

    def heard(self, output: str, *, outside: bool = False, own: bool = False) -> None:
        """A tool answered: text from outside, nacre's own, or a tool of this machine."""
        if own:
            self.saw_own(output)
        elif outside:
            self.saw(output)
        else:
            self.saw_local(output)

    def clean(self, text: str) -> Cleaned:
        """A text without what its speaker did not say, which counts as heard."""
        cleaned = clean(text)
        for own in cleaned.own:
            self.saw_own(own)
        for outside in cleaned.outside:
            self.saw(outside)
        for local in cleaned.local:
            self.saw_local(local)
        return cleaned

    def saw(self, output: str) -> None:
        """Outside text arrived."""
        output = output[:_MAX_CHARACTERS]
        units = _units(output)
        self._heard["outside"].add([*_runs(units, RUN), *_runs(units, SHORT_RUN)])
        self._text = (self._text + "\n" + output.lower())[-_MAX_CHARACTERS:]

    def saw_local(self, output: str) -> None:
        """A tool of this machine answered: what in it tells somebody what to do may be anybody's."""
        lines = _directives(output)
        if lines:
            self._heard["local"].add(_runs(_units("\n".join(lines)), RUN))

    def saw_own(self, text: str) -> None:
        """Text that nacre gave to the agent."""
        units = _units(text[:_MAX_CHARACTERS])
        self._heard["own"].add([*_runs(units, RUN), *_runs(units, SHORT_RUN)])

    def judge(self, statement: str) -> Judgement:
        """What an agent's statement draws on.

        ``untrusted`` when it shares a run of words with, or quotes, what came from outside; ``injected`` when it does
        so with what nacre gave.
        """
        outside, local, own = (self._heard[name].runs for name in _KINDS)
        if self._unseen or not (outside or local or own):
            return Judgement(Trust.UNTRUSTED if self._unseen else Trust.TRUSTED)
        runs = list(_runs(_units(statement), RUN))
        short = _short(statement) if outside or own else []
        is_own = bool(own) and _draws_on(runs, short, own)
        foreign = any(run in local for run in runs) or _draws_on(runs, short, outside)
        if foreign:
            lifted = self._lifted(len(self._said))
            left = [run for run in runs if run not in lifted]
            left_short = [one for one in short if not lifted.issuperset(one)]
            foreign = any(run in local for run in left) or _draws_on(left, left_short, outside)
        foreign = foreign or self._quotes(statement)
        return Judgement(
            Trust.UNTRUSTED if foreign else Trust.TRUSTED, Flag.INJECTED if is_own else Flag.NONE
        )

    def trust_of(self, statement: str) -> Trust:
        """Whether an agent's statement can be trusted; see :meth:`judge`."""
        return self.judge(statement).trust

    def trust_of_call(self, tool: str, short_input: str, arguments: object) -> Trust:
        """Whether what an agent has nacre keep can be trusted; of other calls nothing is said."""
        if not is_storing(tool, short_input):
            return Trust.TRUSTED
        return self.trust_of("\n".join(_texts_of(arguments)))

    def _lifted(self, messages: int) -> set[int]:
        """What the owner said, in so many messages of this reading and before."""
        return {
            run for said in self._said[:messages] for run in _own_words(said)
        } | self._said_before

    def _quotes(self, statement: str) -> bool:
        return bool(self._text) and any(
            match[1].lower() in self._text for match in _QUOTED.finditer(statement)
        )

    def mark(self) -> tuple[int, ...]:
        """How much was heard so far; for :meth:`carried`."""
        return (
            *(len(self._heard[name].runs) for name in _KINDS),
            len(self._said),
            int(self._unseen),
        )

    def carried(self, mark: tuple[int, ...] | None = None) -> dict[str, Any]:
        """What must survive until the next reading, as JSON values, as it was at a mark; empty where nothing is."""
        *counts, messages, unseen = mark or self.mark()
        kept: dict[str, Any] = {
            name: self._heard[name].first(count)
            for name, count in zip(_KINDS, counts, strict=True)
            if count
        }
        lifted = self._lifted(messages) if kept else set()
        kept |= {"lifted": sorted(lifted)[-_MAX_RUNS:]} if lifted else {}
        return {**kept, "unseen": True} if unseen else kept


_KINDS = ("outside", "local", "own")


def _texts_of(value: object) -> Iterator[str]:
    """The texts in the arguments of a call, wherever they are."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(map(_texts_of, value.values()))
    elif isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(_texts_of, value))


def _draws_on(runs: Iterable[int], short: Iterable[list[int]], heard: Mapping[int, None]) -> bool:
    """Whether a text shares a run with what was heard, or one of its short statements is in it from end to end."""
    if any(run in heard for run in runs):
        return True
    return any(all(run in heard for run in one) for one in short)


def _short(text: str) -> list[list[int]]:
    """The statements of a text that are shorter than a run, each as its short runs."""
    found = []
    for part in (text, *_STATEMENT.split(text)):
        units = _units(part) if len(part) < _SHORT_CHARACTERS else []
        if units and sum(map(_weigh, units)) < RUN:
            found.append(list(_runs(units, SHORT_RUN)))
    return [runs for runs in found if runs]


def _weigh(unit: str) -> float:
    return (
        _CHARACTER
        if len(unit) == 1 and not unit.isascii() and _UNSPACED_CHARACTER.match(unit)
        else 1.0
    )


def _directives(output: str) -> list[str]:
    """The lines that tell somebody what to do; of long ones what stands around the mark.

    Looked for in the bytes of UTF-8, a character each: all the words of a transcript's tools pass here, and searching
    is several times faster where every character is of one byte.
    """
    data = output.encode("utf-8", "surrogatepass")
    lower = data.lower().decode("latin-1")
    found: dict[int, str] = {}
    for mark in _marks_for(data, lower):
        at = lower.find(mark)
        while at >= 0:
            begin, end = _around(data, at)
            found[begin] = data[begin:end].decode("utf-8", "replace")
            at = lower.find(mark, end)
    return list(found.values())


def _marks_for(data: bytes, lower: str) -> Iterator[str]:
    """The marks that may be in a text, as it is searched."""
    yield from _WORDS
    if "|" in lower:
        yield from _PIPES
    if not data.isascii() and data.translate(None, _NO_HAN_BYTES):
        yield from _HAN_WORDS


def _around(data: bytes, at: int) -> tuple[int, int]:
    """Begin and end of the line around a place, at most so many characters to either side."""
    begin = max(data.rfind(b"\n", 0, at) + 1, at - 4 * _LINE_CHARACTERS)
    end = data.find(b"\n", at, at + 4 * _LINE_CHARACTERS)
    end = end if end >= 0 else min(len(data), at + 4 * _LINE_CHARACTERS)
    before = data[begin:at].decode("utf-8", "ignore")[-_LINE_CHARACTERS:]
    after = data[at:end].decode("utf-8", "ignore")[:_LINE_CHARACTERS]
    return at - len(before.encode()), at + len(after.encode())


@lru_cache(maxsize=_REMEMBERED)
def _own_words(said: str) -> list[int]:
    """The runs that the owner said: not asked, not quoted, and not pasted, as a message of many words may be."""
    units = _units(_NOT_SAID.sub("\n", said))
    if len(units) > _LONG:
        return []
    return [*_runs(units, RUN), *_runs(units, SHORT_RUN)]


def _units(text: str) -> list[str]:
    """Words, in lower case; identifiers fall into theirs, and characters of scripts without spaces stand alone."""
    text = _LIST_MARK.sub("\n", f"\n{text}")
    plain = _plain(text)
    if plain is not None:
        return _HUMP.sub(r" \g<0>", plain).lower().translate(_APART).split()
    text = unicodedata.normalize("NFKC", visible(text))
    return _UNIT.findall(_HUMP.sub(r" \g<0>", text).lower())


def _plain(text: str) -> str | None:
    """A text in ASCII, if all else in it is signs that are no words: dashes, arrows, curved quotes, emoji."""
    if text.isascii():
        return text
    data = text.encode("utf-8", "surrogatepass")
    if not is_visible(data) or not all(
        map(_is_sign, data.translate(None, _ASCII).decode("utf-8", "replace"))
    ):
        return None
    return text.encode("ascii", "replace").decode("ascii")


@lru_cache(maxsize=_REMEMBERED)
def _is_sign(character: str) -> bool:
    """Whether a character stands between words whatever is beside it: it is no part of a word and makes none."""
    is_between = character in _EMOJI_JOINTS or unicodedata.category(character)[0] in "PSZ"
    return is_between and not any(map(str.isalnum, unicodedata.normalize("NFKC", character)))


def _runs(units: list[str], length: float) -> Iterable[int]:
    """Hashes of the runs of so many words that a text holds."""
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
    end, held = 0, 0.0
    for at, weight in enumerate(weights):
        while end < len(units) and held < length:
            held += weights[end]
            end += 1
        if held < length:
            return
        yield zlib.crc32(" ".join(units[at:end]).encode("utf-8", "replace"))
        held -= weight


# ----------------------------------------------------------------------------
# Whose words stand where the owner's would: one rule for every adapter.
#
# A record, message or block that names where it is from is the owner's only if that is known to be
# the owner; a value
# that nobody knows is somebody else's. What a tool itself writes there is listed in ``phrases.toml``.
# In chats a message
# names its sender, who is the owner only if ``owner.identities`` says so. What names nothing is left
# as it is.


class Claims(msgspec.Struct, gc=False):
    """What a record may say of where it is from, whatever its tool. Records of typed formats inherit these fields."""

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


_NAMES = (
    "origin",
    "provenance",
    "inputProvenance",
    "promptSource",
    "messageSource",
    "turnOrigin",
    "commandMode",
    "authorKind",
)
_SAY_OWNER = ("isUser", "isHuman", "senderIsOwner")
_SAY_OTHER = tuple(name for name in Claims.__struct_fields__ if name not in (*_NAMES, *_SAY_OWNER))
_OWNERS = frozenset(
    "human user owner keyboard typed prompt bash cli terminal tui console repl interactive editor ui plain queued voice".split()  # noqa: E501
)
_WAYS = frozenset({"sdk"})
"""Values that say how a message came, not from whom: ``claude -p`` is the owner's command as any other is."""
_UNTOLD = ("turnOrigin", "unknown")
"""Claude Code's word for a turn of which it only knows that nobody else began it."""

_KIND_KEYS = ("kind", "type", "name", "source")
_EXTERNAL_USER = "external_user"


def names_another(*claims: Claims | Mapping[str, Any]) -> bool:
    """Whether a record, or a message or block in it, says that it is not the owner's."""
    return any(map(_names_another, claims))


def _names_another(claim: Claims | Mapping[str, Any]) -> bool:
    if any(_value(claim, name) is False for name in _SAY_OWNER) or any(
        _value(claim, name) for name in _SAY_OTHER
    ):
        return True
    kinds = [
        (name, _kind(value)) for name in _NAMES if not _is_nothing(value := _value(claim, name))
    ]
    return any(
        kind not in _OWNERS and kind not in _WAYS and (name, kind) != _UNTOLD
        for name, kind in kinds
    )


def _value(claim: Claims | Mapping[str, Any], name: str) -> Any:
    return claim.get(name) if isinstance(claim, Mapping) else getattr(claim, name)


def _is_nothing(value: object) -> bool:
    return value is None or isinstance(value, bool) or value in ("", {}, [])


def _kind(value: Any) -> str:
    """What an origin is called: the text itself, or what its object calls its kind; empty where it names none."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in _KIND_KEYS if isinstance(value.get(key), str)), "")
    return value.strip().lower() if isinstance(value, str) else ""


def is_external_user(claim: Claims) -> bool:
    """Whether a record only says that a person wrote it, in a channel: the owner, or anybody."""
    return _kind(claim.provenance) == _EXTERNAL_USER


def attribute(
    turn: Turn,
    tool: str,
    identities: Sequence[str],
    exchange: Exchange,
    *claims: Claims | Mapping[str, Any],
) -> Turn:
    """A turn that stands where the owner's would, as whose it is; what others said in it is heard, as from outside.

    ``claims`` are the records that may name where it is from.
    """
    if turn.speaker is not Speaker.OWNER:
        return turn
    turn, others = _attributed(turn, tool, identities, claims)
    for other in others:
        exchange.saw(other)
    return turn


def _attributed(
    turn: Turn, tool: str, identities: Sequence[str], claims: Iterable[Claims | Mapping[str, Any]]
) -> tuple[Turn, tuple[str, ...]]:
    if names_another(*claims):
        return anothers(turn), (turn.text,)
    if turn.flags & (Flag.META | Flag.COMMAND):
        return turn, ()
    if is_tools(tool, turn.text):
        return anothers(turn, Flag.META), (turn.text,)
    words, others = without_tools_lines(tool, turn.text)
    if not words and others:
        return anothers(turn, Flag.META), others
    words, sender = read_sender(words)
    turn = replace(turn, text=words)
    if sender and not sender.is_one_of(identities):
        return replace(anothers(turn), author=sender.author), (*others, words)
    return turn, others


def anothers(turn: Turn, flags: Flag = Flag.NONE) -> Turn:
    """The same as somebody else's."""
    return replace(turn, speaker=Speaker.SYSTEM, trust=Trust.UNTRUSTED, flags=turn.flags | flags)


# ----------------------------------------------------------------------------
# Message content as tools write it: a string, one block, or a list of blocks.


T = TypeVar("T")

ABSENT = msgspec.Raw(b"null")

_TEXTS = frozenset({"", "text", "input_text", "output_text", "inputText", "outputText", "markdown"})


class Block(Claims, gc=False):
    """One block of content; what a kind of block does not have stays empty."""

    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = ABSENT

    @property
    def is_text(self) -> bool:
        """Whether the block is words, not thinking, an image or a call."""
        return bool(self.text) and (self.type or "") in _TEXTS


_CONTENT = msgspec.json.Decoder(str | Block | list[Block | str] | None)
_ANY = msgspec.json.Decoder(Any)


def blocks_of(content: msgspec.Raw) -> list[Block]:
    """The blocks of a message; a string is one block of text, and what has another shape has none."""
    value = decode(_CONTENT, bytes(content))
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [Block(type="text", text=item) if isinstance(item, str) else item for item in items]


def text_of(content: msgspec.Raw, *, separator: str = "\n\n") -> str:
    """The words of a message, without thinking, images and calls."""
    return separator.join(
        block.text for block in blocks_of(content) if block.text and block.is_text
    )


def plain(raw: msgspec.Raw) -> Any:
    """A body as plain values, whatever its shape; ``None`` when it cannot be decoded."""
    return decode(_ANY, bytes(raw))


# ----------------------------------------------------------------------------
# Turns in the order in which they were said, for formats whose tool results follow as records of
# their own.
#
# The agent's last turn stays open for the results of its calls. Where the file ends while it is open,
# the next
# reading starts at that turn again, with the carry as it was then: two readings give what one would
# have given.


INTERRUPTION = "[Interrupted by the owner]"
"""What stands where the owner stopped the agent, in tools that have no words of their own for it."""
_ERROR_CHARACTERS = 300
_AWAITED = 50
"""How many late results of outside calls are waited for after their turn was closed."""


@dataclass(slots=True)
class Call:
    """A tool call whose result may still come."""

    call: ToolCall
    outside: bool
    own: bool = False


@dataclass(frozen=True, slots=True)
class Before:
    """A place to read on from: a record's offset, what was carried before it, and how much was heard."""

    offset: int
    carry: bytes
    mark: tuple[int, ...]


@dataclass(slots=True)
class OpenTurn:
    """An agent turn that may still grow."""

    id: str
    time: datetime | None
    unique: bool
    texts: list[str] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    flags: Flag = Flag.NONE
    trust: Trust = Trust.TRUSTED

    @property
    def waits(self) -> bool:
        """Whether the result of a call is still to come."""
        return any(waiting.call.outcome is None for waiting in self.calls.values())


class Conversation:
    """Yields a session's turns; everything that must survive until the next reading lies in the carry."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        known = source.carry.get("session")
        self._session: Session = json.convert(known, Session) if known else session
        self.exchange = Exchange(source.carry.pop("exchange", None))
        self.opened: OpenTurn | None = None
        self.before: Before | None = None
        spent = source.carry.get("spent")
        self.spent: Tokens | None = json.convert(spent, Tokens) if spent else None
        self._yielded: Session | None = None

    @property
    def session(self) -> Session:
        """What is known of it by now."""
        return self._session

    @session.setter
    def session(self, told: Session) -> None:
        before = self._session.model if told.native_id == self._session.native_id else None
        self._session = replace(told, model=noted(before, told.model))

    def spend(self, tokens: Tokens) -> None:
        """What one answer cost. It is told when the reading ends: a session is not yielded for it."""
        if tokens.total:
            self.spent = ((self.spent or Tokens()) + tokens).bounded

    def new_id(self, speaker: Speaker, stamp: str | None, text: str) -> str:
        """An id where the tool gives none, from the record's own time where it has one."""
        return hashed_id(self.source.carry, speaker, stamp, text)

    def say(self, turn: Turn, *claims: Claims | Mapping[str, Any]) -> Iterator[Session | Turn]:
        """A turn that is complete. One of the owner begins a new exchange, unless it is noise.

        ``claims`` are the records that may name where a turn in the owner's place is from; if it is not the owner's, it
        is from outside.
        """
        yield from self.close()
        turn = attribute(turn, self.session.tool, self.source.identities, self.exchange, *claims)
        if (
            turn.speaker is Speaker.OWNER
            and turn.trust is Trust.TRUSTED
            and not turn.flags & Flag.META
        ):
            self.exchange.begin(turn.text)
        elif turn.speaker is not Speaker.OWNER:
            judged = self.exchange.judge(turn.text)
            trust = Trust.UNTRUSTED if judged.trust is Trust.UNTRUSTED else turn.trust
            turn = replace(turn, trust=trust, flags=turn.flags | judged.flags)
        yield from self._emit(turn)

    def interrupted(self, identity: str, time: datetime | None) -> Iterator[Session | Turn]:
        """Here the owner stopped the agent: what is open stays as it is. Before anybody spoke it tells nothing."""
        flags = Flag.META | Flag.INTERRUPTED
        if self._begun:
            yield from self.say(Turn(identity, Speaker.SYSTEM, INTERRUPTION, time, flags=flags))

    def failed(self, identity: str, text: str, time: datetime | None) -> Iterator[Session | Turn]:
        """The model's provider refused, or could not be reached, as the host tells it."""
        words = shorten(self.clean(text).text, _ERROR_CHARACTERS)
        if words and self._begun:
            yield from self.say(Turn(identity, Speaker.SYSTEM, words, time, flags=Flag.META))

    @property
    def _begun(self) -> bool:
        return self.opened is not None or bool(self.source.carry.get("begun"))

    def open(self, turn: OpenTurn, before: Before | None = None) -> Iterator[Session | Turn]:
        """Begin an agent turn; ``before`` is the place of its first record, in a file that is not read as a whole."""
        yield from self.close()
        self.before, self.opened = before, turn

    def place(self, offset: int) -> Before:
        """The place of the record at ``offset``, taken before the record changes anything."""
        self._save()
        return Before(offset, msgspec.json.encode(self.source.carry), self.exchange.mark())

    def add_text(self, text: str) -> None:
        """More words of the open turn."""
        if self.opened is None:
            return
        cleaned = self.clean(text)
        self.opened.texts.append(cleaned.text)
        judged = self.exchange.judge(cleaned.text)
        self.opened.flags |= judged.flags | (Flag.INJECTED if cleaned.injected else Flag.NONE)
        if judged.trust is Trust.UNTRUSTED:
            self.opened.trust = Trust.UNTRUSTED

    def clean(self, text: str) -> Cleaned:
        """A text without what its speaker did not say, which counts as heard."""
        return self.exchange.clean(text)

    def add_call(self, call_id: str, name: str, arguments: dict[str, Any] | str) -> str:
        """A call in the open turn; gives the id under which its result is awaited."""
        if self.opened is None:
            return call_id
        call = asked(name, arguments)
        outside = is_outside(name, call.input) or call.action is Action.FETCH
        if len(call.input) >= INPUT_CHARACTERS:
            outside = outside or is_outside(name, str(arguments))
        if self.exchange.trust_of_call(name, call.input, arguments) is Trust.UNTRUSTED:
            self.opened.trust = Trust.UNTRUSTED
        call_id = (
            call_id or f"{self.opened.id}#{len(self.opened.calls)}"
        )  # it may be awaited beyond this turn
        self.opened.calls[call_id] = Call(call, outside, is_own(name, call.input))
        return call_id

    def result(self, call_id: str, result: str, output: Callable[[], str]) -> None:
        """How a call came out, and what it said."""
        call = self.opened.calls.get(call_id) if self.opened else None
        outside = call_id in self.source.carry.get("awaited", ()) or bool(call and call.outside)
        self.exchange.heard(output(), outside=outside, own=bool(call and call.own))
        if call:
            call.call = answered(call.call, result, output)

    def close(self) -> Iterator[Session | Turn]:
        """The open turn is complete."""
        turn, self.opened, self.before = self.opened, None, None
        if turn is None:
            return
        late = [
            key for key, made in turn.calls.items() if made.outside and made.call.outcome is None
        ]
        if late:
            self.source.carry["awaited"] = [*self.source.carry.get("awaited", []), *late][
                -_AWAITED:
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

    def finish(self, before: Before | None = None) -> Iterator[Session | Turn]:
        """The file ends, for now. The next reading starts at the open turn, else at ``before``."""
        before = self.before or before
        yield from self.conclude()
        self._save()
        if before:
            self.source.carry = msgspec.json.decode(before.carry)
            self.source.hold(before.offset)
        self.source.carry["exchange"] = self.exchange.carried(before.mark if before else None)

    def end(self) -> Iterator[Session | Turn]:
        """The file was read as a whole: nothing is carried over to the next reading."""
        yield from self.conclude()
        self.source.carry.clear()

    def conclude(self) -> Iterator[Session | Turn]:
        """The session ends, for now: what is known of it only then is told."""
        yield from self.close()
        known = replace(self.session, tokens=self.spent)
        if self.source.carry.get("begun") and known != self._yielded:
            yield known

    def _emit(self, turn: Turn) -> Iterator[Session | Turn]:
        if self.session != self._yielded:
            self._yielded = self.session
            yield self.session
        self.source.carry["begun"] = True
        yield turn

    def _save(self) -> None:
        self.source.carry["session"] = msgspec.to_builtins(self.session)
        if self.spent:
            self.source.carry["spent"] = msgspec.to_builtins(self.spent)


def hashed_id(carry: dict[str, Any], speaker: Speaker, stamp: str | None, text: str) -> str:
    """A turn's id from its speaker, time, text and occurrence.

    With a time, only words repeated at that same time need counting, and a copy of the record elsewhere has
    the same id. Without, all of the session's words are counted, by the first half of their hash.
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
    """Whether a time has fractions of a second, so that no two records of a tool share it by chance."""
    return bool(stamp) and "." in str(stamp)


# ----------------------------------------------------------------------------
# Where editors of the VS Code family keep what their chats and extensions write.


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


ENVIRONMENT = ("APPDATA", "VSCODE_APPDATA", "VSCODE_PORTABLE", "XDG_CONFIG_HOME")
"""The environment's variables that :func:`user_folders` reads."""


def user_folders(places: Places) -> Iterator[Path]:
    """The ``User`` folder of each editor of the family: installed, portable, and its part on a remote machine."""
    base = _configuration(places)
    yield from (base / editor / "User" for editor in _EDITORS)
    for name in ("VSCODE_APPDATA", "VSCODE_PORTABLE"):
        if folder := places.environ.get(name):
            known = Path(folder).expanduser()
            yield (
                known / "user-data" / "User"
                if name == "VSCODE_PORTABLE"
                else known / "Code" / "User"
            )
    yield from (places.home / server / "data" / "User" for server in _SERVERS)


def _configuration(places: Places) -> Path:
    if places.platform == "darwin":
        return places.home / "Library" / "Application Support"
    if places.platform == "win32":
        return Path(places.environ.get("APPDATA") or places.home / "AppData" / "Roaming")
    return Path(places.environ.get("XDG_CONFIG_HOME") or places.home / ".config").expanduser()


def folder_of(uri: str | None) -> str | None:
    """The path in a ``file:`` or ``vscode-remote:`` URI, or a path as it is; ``None`` where there is none."""
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
