"""``memory_search`` and ``memory_list``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nacre import views
from nacre.errors import InvalidInput
from nacre.mcp import arguments
from nacre.mcp.answers import (
    OUTSIDE,
    Answer,
    cut,
    fitting,
    framed,
    indented,
    origin_of,
    record_of,
    said_in,
    short_id,
    short_session,
    title_of,
)
from nacre.mcp.desk import Desk, going_on, page_of
from nacre.memories.requests import ListRequest
from nacre.platform.days import shown_day
from nacre.retrieval.requests import DeepQuery
from nacre.sessions.requests import ChatSearchRequest
from nacre.text.passages import count, count_tokens, harmless, one_line
from nacre.values import context as contexts
from nacre.values.codec import stamp
from nacre.values.deep_recall import DeepResult
from nacre.values.memory import Memory
from nacre.values.recall import Filter, MemoryHit, Mode, RecallQuery, RecallResult, TurnHit
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.sessions.chat_search import Passage, Passages
    from nacre.values.context import ContextBlock

_MOST = 200
_HIT_TOKENS = 220
"""Of one memory's content in an answer with several; the rest is had by memory_get."""

_TURN_TOKENS = 90
_MOST_OF = 0.6


def search(desk: Desk, asked: arguments.Search) -> Answer:
    """Memories that answer a question, with what was said beside them."""
    if asked.context == "session-start":
        return _at_start(desk, asked)
    if asked.context == "chats":
        return _chats(desk, asked)
    wanted = Filter(
        projects=desk.projects(asked.project), kinds=asked.kinds, tags=asked.tags,
        since=desk.moment("since", asked.since), until=desk.moment("until", asked.until),
        tools=(asked.channel,) if asked.channel else (),
    )  # fmt: skip
    if asked.deep and asked.query.strip() and not asked.cursor:
        found_deep = _deep(desk, asked, wanted)
        if found_deep:
            return found_deep
    at = page_of(asked.cursor)
    browses = asked.context == "browse" or not asked.query.strip()
    query = RecallQuery(
        asked.query, wanted, Mode.BROWSE if browses else Mode.HYBRID, min(at + asked.limit, _MOST),
        around=desk.moment("around", asked.around), radius_days=asked.around_days, threshold=asked.threshold,
        ignore_time=asked.ignore_time,
        turns=0 if at or browses else asked.turns, update=at == 0, session=desk.session,
    )  # fmt: skip
    found: RecallResult = desk.call("recall", query)
    return _told(asked, found, at)


def _at_start(desk: Desk, asked: arguments.Search) -> Answer:
    """What a session in the working folder begins with: for hosts whose hooks do not tell it."""
    if asked.project or asked.cursor:
        raise InvalidInput(
            "session-start is about the working folder, on one page", hint="leave project and cursor out"
        )
    request = contexts.ContextRequest(prompt=asked.query, folder=desk.folder, budget_tokens=asked.budget)
    block: ContextBlock = desk.call("context", request)
    inner = block.text.partition("\n\n")[2].rpartition("\n")[0].strip()  # our own head goes before it
    return Answer(
        framed(inner or "Nothing is known yet that a session here should begin with."),
        {"items": [{"part": item.part.value, "ref": item.ref, "text": item.text} for item in block.items]},
    )


def _chats(desk: Desk, asked: arguments.Search) -> Answer:
    """What was said in channels: passages of question and answer."""
    if not asked.query.strip():
        raise InvalidInput("chats needs a query", hint="a question, or words that were said")
    request = ChatSearchRequest(
        query=asked.query, limit=asked.limit, channel=asked.channel, since=desk.moment("since", asked.since),
        until=desk.moment("until", asked.until),
    )  # fmt: skip
    found: Passages = desk.call("search-chats", request)
    blocks = [_passage(one) for one in found.passages]
    shown = fitting(blocks, asked.budget)
    records = [
        {"session": one.session, "key": one.key, "channel": one.channel, "score": one.score, "trust": one.trust.value,
         "time": one.time.isoformat() if one.time else None, "text": one.text}
        for one in found.passages[:shown]
    ]  # fmt: skip
    return Answer(
        framed(
            "\n".join(blocks[:shown]) or "Nothing that was said in a channel comes near. Other words may find it.",
            f"{len(blocks) - shown} more: a higher budget shows them." if shown < len(blocks) else "",
        ),
        {"passages": records},
    )


def _passage(passage: Passage) -> str:
    outside = f" (UNTRUSTED: {OUTSIDE})" if passage.trust is Trust.UNTRUSTED else ""
    where = harmless(one_line(passage.key))
    return f"- {where}, {short_session(passage.session)}{outside}:\n{indented(passage.text)}"


def _told(asked: arguments.Search, found: RecallResult, at: int) -> Answer:
    hits = found.hits[at:]
    blocks = [_hit(hit) for hit in hits]
    shown = fitting(blocks, asked.budget)
    beside = _not_told(found.turns, hits[:shown])
    turns = [_turn(hit) for hit in beside]
    room = asked.budget - sum(map(count_tokens, blocks[:shown]))
    told_turns = fitting(turns, room) if turns and room > _TURN_TOKENS else 0
    last = at + shown
    more = last < len(found.hits) or (len(hits) == asked.limit and last < _MOST)
    text = framed(
        "" if hits or told_turns else _nothing(asked.channel),
        "\n".join((*blocks[:shown], *turns[:told_turns])),
        going_on("memory_search", last) if hits and more else "",
        f"“{found.time_words}”: what is {found.span} counts more. ignore_time leaves this out."
        if found.time_words
        else "",
        _degraded(found),
    )
    records = {
        "memories": [
            record_of(hit.memory)
            | {
                "score": round(hit.score, 4),
                "confidence": hit.confidence.value,
                "candidate": hit.candidate,
                "doubt": hit.doubt,
                "space": hit.space,
            }
            for hit in hits[:shown]
        ],
        "turns": [_turn_record(hit) for hit in beside[:told_turns]],
        "cursor": str(last) if hits and more else None,
        "since": found.since and stamp(found.since), "until": found.until and stamp(found.until),
        "time_words": found.time_words,
    }  # fmt: skip
    return Answer(text, records)


def _not_told(turns: Sequence[TurnHit], hits: Sequence[MemoryHit]) -> list[TurnHit]:
    """The turns without those of which a memory that is shown says most."""
    told = {one.turn_id: len(hit.memory.content) for hit in hits for one in hit.evidence}
    return [hit for hit in turns if told.get(hit.turn.id, 0) < _MOST_OF * len(hit.excerpt)]


def _nothing(channel: str | None) -> str:
    if channel:
        return f"Nothing in {harmless(one_line(channel))} matches. Channels: claude-code, codex, …"
    return 'Nothing matches. Other words, fewer filters, or project "*" may find it.'


def _hit(hit: MemoryHit) -> str:
    memory = hit.memory
    content = cut(memory.content, _HIT_TOKENS)
    rest = f"\n  (cut: memory_get {short_id(memory.id)} has the rest)" if content != memory.content else ""
    doubts = f"\n  may be outdated by {', '.join(map(short_id, hit.outdated_by))}" if hit.outdated_by else ""
    if hit.candidate:
        keep = f"the owner can keep it: nacre review keep {short_id(memory.id)}"
        doubts += f"\n  pending candidate, not confirmed by the owner; {keep}"
    doubts += f"\n  may be out of date: {one_line(harmless(hit.doubt))}" if hit.doubt else ""
    title = title_of(memory)
    body = indented(content)
    head = f"[{short_id(memory.id)}] {title}" if not _says(content, title) else f"[{short_id(memory.id)}]"
    space = f"space {hit.space}, " if hit.space else ""
    return f"{head}\n{body}{rest}{doubts}\n  ({hit.confidence.value}; {space}{origin_of(memory)}; {said_in(memory)})"


def _says(content: str, title: str) -> bool:
    return title.rstrip("….").lower() in one_line(harmless(content)).lower()


def _turn(hit: TurnHit) -> str:
    turn = hit.turn
    day = f"{shown_day(turn.time)} " if turn.time else ""
    outside = ", UNTRUSTED" if turn.trust is Trust.UNTRUSTED else ""
    words = one_line(harmless(cut(hit.excerpt, _TURN_TOKENS)))
    return f"- {hit.confidence.value}: {day}{turn.speaker.value} in {short_session(hit.session.id)}{outside}: {words}"


def _turn_record(hit: TurnHit) -> dict[str, Any]:
    turn = hit.turn
    return {
        "session": hit.session.id, "turn": turn.id, "confidence": hit.confidence.value, "speaker": turn.speaker.value,
        "trust": turn.trust.value,
        "time": turn.time.isoformat() if turn.time else None, "excerpt": hit.excerpt,
    }  # fmt: skip


def _degraded(found: RecallResult | DeepResult) -> str:
    lanes = [f"{lane.name} {lane.state.value}" + (f" ({lane.note})" if lane.note else "") for lane in found.degraded]
    return f"Not all of memory was looked through: {one_line(harmless('; '.join(lanes)))}." if lanes else ""


def _deep(desk: Desk, asked: arguments.Search, wanted: Filter) -> Answer | None:
    """What deep recall has to tell; ``None`` where it is silent, and single memories may still be known."""
    desk.tell("choosing the project and its memories")
    here = desk.place(None).project
    projects = wanted.projects if asked.project else ()
    query = DeepQuery(text=asked.query, filter=replace(wanted, projects=projects), here=here, session=desk.session)
    found: DeepResult = desk.call("deep-recall", query)
    records = {
        "memories": [record_of(hit.memory) for hit in found.hits], "project": found.project,
        "clarify": list(found.clarify),
    }  # fmt: skip
    if not found.context:
        return None
    inner = found.context.partition("\n")[2].rpartition("\n")[0].strip()
    told = cut(inner, asked.budget)
    ids = ", ".join(short_id(hit.memory.id) for hit in found.hits)
    rest = f"(Cut: a higher budget, or memory_get with {ids}, has the rest.)" if told != inner else ""
    return Answer(framed(told, rest, _degraded(found)), records)


def list_memories(desk: Desk, asked: arguments.List) -> Answer:
    """Active memories, the newest first."""
    wanted = Filter(
        projects=desk.projects(asked.project), kinds=asked.kinds, tags=asked.tags,
        since=desk.moment("since", asked.since), until=desk.moment("until", asked.until),
        min_importance=asked.min_importance,
    )  # fmt: skip
    at = page_of(asked.cursor)
    request = ListRequest(filter=wanted, words=asked.query, limit=asked.limit, offset=at)
    found: views.Listing = desk.call("list", request)
    lines = [_line(memory) for memory in found.memories]
    shown = fitting(lines, asked.budget)
    last = at + shown
    text = framed(
        f"{count(found.total, 'memory', 'memories')}, the newest first:" if found.total else "No memory fits.",
        "\n".join(lines[:shown]),
        going_on("memory_list", last, found.total) if last < found.total else "",
    )
    records = {
        "memories": [record_of(memory) for memory in found.memories[:shown]], "total": found.total,
        "cursor": str(last) if last < found.total else None,
    }  # fmt: skip
    return Answer(text, records)


def _line(memory: Memory) -> str:
    return f"- [{short_id(memory.id)}] {title_of(memory)} ({origin_of(memory)})"
