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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nacre.text.passages import is_visible, visible
from nacre.transcripts.injected import Cleaned, clean
from nacre.values.session import Flag, ToolCall, Trust, Turn

CHOSEN, TYPED = "→", "⇒"
"""What stands between a question of a form and its answer: one of its options, or what the owner typed instead."""

RUN = 5.0
"""Words in a row that text from outside and a statement share (docs/trust.md)."""

SHORT_RUN = 3.0
"""A statement of fewer than five words is compared whole, from three words on."""

_WORDS = (
    "always ", "never ", "remember", "must ", "do not ", "prefer", "important:", "ignore ", "memory", "make sure",
    "from now on",
)  # fmt: skip
"""What marks a line that tells somebody what to do. Of what tools of this machine say (files, logs, errors, commits)
only such lines are compared: who describes code uses its words, and what tells nobody what to do does little harm."""
_PIPES = ("| sh", "| bash")
_HAN_WORDS = tuple(word.encode().decode("latin-1") for word in "记住 记得 务必 必须 总是 永远 不要 重要 以后".split())
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
_NOT_SAID = re.compile(r"^[ \t]*>.*$|^(```|~~~).*?(?:^\1|\Z)|[^.!?。！？\n]*[?？]", re.DOTALL | re.MULTILINE)

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
_STORING_COMMAND = re.compile(r"(?:^|[|;&(]\s*|\b(?:run|exec|-m)\s+)(?:\S*/)?nacre\s+(?:store|edit)\b", re.IGNORECASE)
_OWN_COMMAND = re.compile(r"(?:^|[|;&(]\s*|\b(?:run|exec|-m)\s+)(?:\S*/)?nacre\s+\w", re.IGNORECASE)


def is_outside_source(word: str) -> bool:
    """Return True if a word names a place outside where people write, such as a chat or a tracker."""
    return bool(_OUTSIDE_TOOL.fullmatch(word))


def is_outside(tool: str, short_input: str) -> bool:
    """Whether a tool call brings text from outside: the web, mail, issue bodies, other people's files."""
    return bool(_is_outside_tool(tool) or _OUTSIDE_COMMAND.search(short_input) or _FOREIGN_FILE.search(short_input))


def reaches_out(short_input: str) -> bool:
    """Whether a command asks a registry or a remote: where it fails, others may have written what it puts out."""
    return bool(_REACHING_COMMAND.search(short_input))


def brings_outside(call: ToolCall) -> bool:
    """Whether a call brings text from outside, or failed while it reached there."""
    return is_outside(call.name, call.input) or (call.failed and reaches_out(call.input))


def reached_out(turns: Sequence[Turn], at: int) -> bool:
    """Whether a session had read the web, mail or other people's files by a turn: an agent may say in words of its own
    what it read there, and who only points at them has said none of it."""
    return any(one.trust is Trust.UNTRUSTED or any(map(brings_outside, one.tool_calls)) for one in turns[: at + 1])


def is_own(tool: str, short_input: str) -> bool:
    """Whether a tool call asks nacre itself: its tools, or its command line."""
    return _is_own_tool(tool) or ("nacre" in short_input and bool(_OWN_COMMAND.search(short_input)))


def is_storing(tool: str, short_input: str) -> bool:
    """Whether a tool call has nacre keep what it says."""
    return bool(_STORING_TOOL.search(tool) or ("nacre" in short_input and _STORING_COMMAND.search(short_input)))


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
        return Judgement(Trust.UNTRUSTED if foreign else Trust.TRUSTED, Flag.INJECTED if is_own else Flag.NONE)

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
        return {run for said in self._said[:messages] for run in _own_words(said)} | self._said_before

    def _quotes(self, statement: str) -> bool:
        return bool(self._text) and any(match[1].lower() in self._text for match in _QUOTED.finditer(statement))

    def mark(self) -> tuple[int, ...]:
        """How much was heard so far; for :meth:`carried`."""
        return (*(len(self._heard[name].runs) for name in _KINDS), len(self._said), int(self._unseen))

    def carried(self, mark: tuple[int, ...] | None = None) -> dict[str, Any]:
        """What must survive until the next reading, as JSON values, as it was at a mark; empty where nothing is."""
        *counts, messages, unseen = mark or self.mark()
        kept: dict[str, Any] = {
            name: self._heard[name].first(count) for name, count in zip(_KINDS, counts, strict=True) if count
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
    return _CHARACTER if len(unit) == 1 and not unit.isascii() and _UNSPACED_CHARACTER.match(unit) else 1.0


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
    if not is_visible(data) or not all(map(_is_sign, data.translate(None, _ASCII).decode("utf-8", "replace"))):
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
    return list(map(zlib.crc32, map(b" ".join, zip(*(words[at:] for at in range(int(length))), strict=False))))


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
