"""A writer holds memories against what was said later, in whatever session: does each still hold as it stands?

Beside a session stand a few of the memories that it touches, and a reader overlooks some of these. Here each memory has
its own evidence, found by its own words. What a writer finds ends and changes nothing: it waits in review, and the
memory is told with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import msgspec

from nacre.dedup.coverage import leaves_out
from nacre.dream.checks import said
from nacre.dream.questions import as_data, as_reason, prompt_of, words_of
from nacre.dream.values import Doubt
from nacre.dream.writer import answers, may_be_shown, writer_of
from nacre.extraction.coverage import is_covered
from nacre.home.home import Home
from nacre.llm.answers import ask
from nacre.platform.ids import to_ms
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.retrieval.recall import search_sessions
from nacre.spending.models import name_for
from nacre.spending.tracing import tracing
from nacre.text.excerpt import excerpt
from nacre.text.passages import count_tokens, words
from nacre.values.filters import SessionFilter
from nacre.values.memory import Kind, Memory
from nacre.values.model_calls import Prompt, Task, Tokens
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.reports import OnProgress
from nacre.values.review import Action, Reason
from nacre.values.session import Speaker, Trust, Turn
from nacre.values.trace import TraceKind

LATER = "later-1"
MOST_MEMORIES = 10
"""So many memories are held against what was said later in one dream, those first that were never, or longest ago."""

LOOKED_LATER = "looked later"
"""When memories were last held against what was said later, without a dream."""

Looked = tuple[str, str]
"""The id of a memory, and until when it was held against what was said (ISO)."""

_LOOKED = "dream looked later"
_LOOKED_AT = 60
_ASKED, _SAYINGS, _CHARACTERS = 1_000, 12, 500
_TOGETHER = 10
_ANSWER_TOKENS = 60
_MOST_MISSING = 0.2
"""Of the words of a clause, that the memory does not hold: it was to be copied."""


class Outdated(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory that holds no longer as it stands."""

    number: int
    clause: str
    now: str
    evidence: list[int]


class Outdateds(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Those that hold no longer; none, most of the time."""

    memories: list[Outdated]


@dataclass(frozen=True, slots=True)
class Saying:
    """What somebody said after a memory: when, who, and the part of it that has most of the memory's words."""

    at: datetime
    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class Held:
    """A memory beside what was said later with words of it; ``until`` is the end of the last session of its project."""

    memory: Memory
    sayings: tuple[Saying, ...]
    until: str


def wanted_later(home: Home, memories: Iterable[Memory], writer: str) -> list[Held]:
    """The memories that a dream holds against what was said later: those first that never were, or longest ago, of
    projects with newer sessions. Among them are some about which nothing was said: there is nothing to ask of them.
    """
    looked, doubted = _looked(home), home.memories.stale()
    last = {one: _last_session(home, one) for one in {memory.project for memory in memories} if one}
    due = [
        one for one in memories
        if max(looked.get(one.id, ""), said(one).isoformat()) < last.get(one.project or "", "")
        and one.is_vouched and one.kind is not Kind.EVENT and one.id not in doubted and may_be_shown(home, one, writer)
    ]  # fmt: skip
    found: list[Held] = []
    for memory in sorted(due, key=lambda one: (looked.get(one.id, ""), said(one), one.id))[:_LOOKED_AT]:
        found.append(Held(memory, _said_later(home, memory, writer), last[memory.project or ""]))
        if sum(bool(one.sayings) for one in found) >= MOST_MEMORIES:
            break
    return found


def _last_session(home: Home, project: str) -> str:
    """When the last session of a project ended; empty without any."""
    newest = home.sessions.newest(SessionFilter(project=project), limit=1)
    return newest[0].ended.isoformat() if newest and newest[0].ended else ""


def asked_for_later(
    home: Home, model: LanguageModel, held: Sequence[Held], on_progress: OnProgress | None
) -> tuple[list[Doubt], list[Looked], str | None]:
    """What a writer doubts, the memories about which nothing is left to ask until more is said, and what went wrong.
    Nothing is changed.
    """
    seconds = home.settings.number("models.timeout_seconds")
    asked = [one for one in held if one.sayings]
    parts = [asked[at : at + _TOGETHER] for at in range(0, len(asked), _TOGETHER)]
    found, failed = answers(home, [partial(_asked, model, home.redactor, part, seconds) for part in parts], on_progress)
    doubts = [doubt for one in found if one is not None for doubt in one]
    answered = [one for part, told in zip(parts, found, strict=True) if told is not None for one in part]
    answered += [one for one in held if not one.sayings]
    return doubts, [(one.memory.id, one.until) for one in answered], failed


def look_later(home: Home) -> None:
    """Hold some memories against what was said later, where the writer may be asked in the background.

    Raises ModelRefused.
    """
    if not home.settings.flag("models.background"):
        return
    with writer_of(home, background=True) as (model, _):
        if model is None:
            return
        memories = [one for one in home.memories.everything() if one.is_active]
        held = wanted_later(home, memories, name_for(home, Task.DREAM))
        with tracing(home, TraceKind.DREAM, f"{len(held)} memories beside what was said later"):
            doubts, looked, _ = asked_for_later(home, model, held, None)
    with home.vault_lock, home.database.transaction():
        home.usage.set_value(LOOKED_LATER, home.now().isoformat())
        note_later(home, doubts, looked)


def tokens_for_later(held: Sequence[Held]) -> tuple[int, Tokens]:
    """How many calls and tokens asking about some memories takes, at most."""
    asked = [one for one in held if one.sayings]
    calls = -(-len(asked) // _TOGETHER)
    shown = sum(count_tokens(line) for one in asked for line in _lines(1, 1, one))
    return calls, Tokens(calls * count_tokens(words_of(LATER)) + shown, _ANSWER_TOKENS * len(asked))


def note_later(home: Home, doubts: Sequence[Doubt], looked: Sequence[Looked]) -> None:
    """Doubts wait in review; what was asked about is not again until more is said. Call it in a transaction."""
    at = to_ms(home.now()) or 0
    for one in doubts:
        memory = home.memories.find(one.memory)
        if memory is not None and memory.is_active:
            home.reviews.add(one.memory, Reason.STALE, one.why, Action.REVIEW, at, once=True)
    if looked:
        kept = {one: when for one, when in {**_looked(home), **dict(looked)}.items() if home.memories.find(one)}
        home.usage.set_value(_LOOKED, json.dumps(kept))


def _looked(home: Home) -> Mapping[str, str]:
    return dict(json.loads(home.usage.value(_LOOKED) or "{}"))


def _said_later(home: Home, memory: Memory, writer: str) -> tuple[Saying, ...]:
    """The turns after a memory that have most of its words, in the order of time: of sessions that a writer may be
    shown.
    """
    since = said(memory)
    wanted = Filter(projects=(memory.project or "",), strict=True, since=since)
    text = memory.content[:_ASKED]
    asked = RecallQuery(text, filter=wanted, mode=Mode.LEXICAL, limit=_SAYINGS, update=False, boost=False)

    def is_later(turn: Turn) -> bool:
        return turn.trust is Trust.TRUSTED and turn.time is not None and turn.time > since

    terms = words(memory.content)
    hits = search_sessions(home, asked, admits=is_later).turns
    shown = {one for one in {hit.session.id for hit in hits} if _may_be_read(home, one, writer)}
    found = [
        Saying(hit.turn.time or since, hit.turn.speaker, excerpt(hit.turn.text, terms, _CHARACTERS))
        for hit in hits if hit.session.id in shown
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: one.at))


def _may_be_read(home: Home, session: str, writer: str) -> bool:
    """Whether all of a session may be shown to a writer."""
    found = home.sessions.find(session)
    return bool(found) and all(is_covered(home.settings, one, writer) for one in found)


def _asked(model: LanguageModel, redactor: Redactor, held: Sequence[Held], seconds: float) -> list[Doubt]:
    answer = ask(model, _prompt(held, seconds), Outdateds)
    found: dict[str, Doubt] = {}
    for one in answer.memories:
        at = one.number - 1
        if not 0 <= at < len(held) or leaves_out(one.clause, held[at].memory.content) > _MOST_MISSING:
            continue
        shown = _sayings_of(held, at, one.evidence)
        if not shown or not one.clause.strip():
            continue
        memory, day = held[at].memory, f"{shown[-1].at:%Y-%m-%d}"
        why = as_reason(redactor, one.now) or as_reason(redactor, shown[-1].text)
        found.setdefault(memory.id, Doubt(memory.id, memory.subject, f"{why} ({day})", model.name))
    return list(found.values())


def _sayings_of(held: Sequence[Held], at: int, numbers: Iterable[int]) -> list[Saying]:
    """What is shown below the memory at a place, of some numbers."""
    first = 1 + sum(len(one.sayings) for one in held[:at])
    own = dict(enumerate(held[at].sayings, first))
    return [own[number] for number in sorted(set(numbers)) if number in own]


def _prompt(held: Sequence[Held], seconds: float) -> Prompt:
    lines: list[str] = []
    first = 1
    for number, one in enumerate(held, 1):
        lines += [*_lines(number, first, one), ""]
        first += len(one.sayings)
    return prompt_of(LATER, "\n".join(lines).strip(), Outdateds, seconds)


def _lines(number: int, first: int, held: Held) -> list[str]:
    """A memory, and below it what was said later."""
    memory = held.memory
    told = {"memory": number, "kind": memory.kind.value, "day": f"{said(memory):%Y-%m-%d}", "text": memory.content}
    return [as_data(told), *(_line(at, one) for at, one in enumerate(held.sayings, first))]


def _line(number: int, one: Saying) -> str:
    return as_data({"number": number, "day": f"{one.at:%Y-%m-%d}", "speaker": one.speaker.value, "said": one.text})
