"""``memory_analyze``: what waits for a judgement, who changed a file, what mended an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.context.requests import DigestRequest, WakeupRequest
from nacre.dream.requests import AlikeRequest
from nacre.errors import InvalidInput
from nacre.mcp import arguments
from nacre.mcp.answers import Answer, count, fitting, framed, indented, short_id, short_session, title_of
from nacre.mcp.desk import Desk
from nacre.mcp.tools.code import stale
from nacre.memories.requests import ConnectionsRequest
from nacre.platform.request import Nothing
from nacre.review.requests import ReflectRequest, UnansweredRequest
from nacre.sessions.requests import DidQuery, FixQuery
from nacre.text.passages import harmless, one_line, shorten
from nacre.values.file_history import FileChange, FileHistory, Repair, Trouble
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.context.wakeup import Wakeup
    from nacre.dream.alike import Alike
    from nacre.values.memory import Memory
    from nacre.values.review import Gaps, Reflection
    from nacre.views import Connected, Connections, Digest, FixResult, Waiting

_WORDS = 300
_IN_BRIEF = 3


def analyze(desk: Desk, asked: arguments.Analyze) -> Answer:
    """One of twelve questions that need no model."""
    if asked.about in ("file", "error") and not (asked.subject or "").strip():
        what = "a path" if asked.about == "file" else "the error's text"
        raise InvalidInput(f"{asked.about} needs a subject", hint=f"the subject is {what}")
    answers = {
        "brief": _brief, "central": _central, "unlinked": _unlinked, "conflicts": _conflicts, "review": _reviews,
        "file": _file, "error": _error, "reflect": _questions, "digest": _digest, "wakeup": _wakeup, "alike": _alike,
        "unanswered": _unanswered, "stale": stale,
    }  # fmt: skip
    return answers[asked.about](desk, asked)


def _waiting(desk: Desk) -> Waiting:
    found: Waiting = desk.call("waiting", Nothing())
    return found


def _told(blocks: list[str], asked: arguments.Analyze, nothing: str, hint: str = "") -> str:
    shown = min(fitting(blocks, asked.budget), asked.limit)
    more = f"{len(blocks) - shown} more: a higher limit or budget shows them." if shown < len(blocks) else ""
    return framed("\n".join(blocks[:shown]) or nothing, hint if blocks else "", more)


def _connections(desk: Desk, asked: arguments.Analyze) -> Connections:
    found: Connections = desk.call("connections", ConnectionsRequest(limit=asked.limit))
    return found


def _brief(desk: Desk, asked: arguments.Analyze) -> Answer:
    found, waiting = _connections(desk, asked), _waiting(desk)
    number = count(found.memories, "active memory", "active memories")
    told = [
        f"{number} in {count(found.projects, 'project', 'projects')}, {count(found.links, 'link', 'links')} among "
        f"them; {found.without:,} without any. {count(found.todos, 'open todo', 'open todos')}; "
        f"{count(len(waiting.conflicts), 'contradiction', 'contradictions')} and "
        f"{count(len(waiting.reviews), 'memory', 'memories')} to look over wait for the person."
    ]
    told += ["Linked most:", *map(_linked, found.central[:_IN_BRIEF])] if found.central else []
    told += ["Decided lately:", *map(_short, found.decisions)] if found.decisions else []
    shown = fitting(told, asked.budget)
    records = {
        "memories": found.memories, "projects": found.projects, "links": found.links, "unlinked": found.without,
        "todos": found.todos, "conflicts": len(waiting.conflicts), "reviews": len(waiting.reviews),
        "central": [one.memory.id for one in found.central[:_IN_BRIEF]],
        "decisions": [one.id for one in found.decisions],
    }  # fmt: skip
    return Answer(framed("\n".join(told[:shown])), records)


def _central(desk: Desk, asked: arguments.Analyze) -> Answer:
    found = _connections(desk, asked).central
    records = [{"id": one.memory.id, "links": one.links, "alike": one.alike} for one in found]
    text = _told([_linked(one) for one in found], asked, "No memories are linked yet.", "memory_graph follows links.")
    return Answer(text, {"central": records})


def _unlinked(desk: Desk, asked: arguments.Analyze) -> Answer:
    found = _connections(desk, asked)
    blocks = [_short(one.memory) for one in found.unlinked]
    text = _told(blocks, asked, "Every memory has a link.", f"{found.without:,} in all.")
    return Answer(text, {"unlinked": [one.memory.id for one in found.unlinked], "total": found.without})


def _linked(one: Connected) -> str:
    alike = f", {one.alike} alike" if one.alike else ""
    return f"{_short(one.memory)}: {count(one.links, 'link', 'links')} with memories that hold{alike}"


def _short(memory: Memory) -> str:
    mark = " (UNTRUSTED)" if memory.trust is Trust.UNTRUSTED else ""
    return f"- [{short_id(memory.id)}] {title_of(memory)}{mark}"


def _conflicts(desk: Desk, asked: arguments.Analyze) -> Answer:
    pairs = _waiting(desk).conflicts
    blocks = [
        f"- [{short_id(pair.newer.id)}] {title_of(pair.newer)}\n  against [{short_id(pair.older.id)}] "
        f"{title_of(pair.older)}" + (f"\n  {one_line(harmless(pair.reason))}" if pair.reason else "")
        for pair in pairs
    ]
    hint = "The person decides; memory_retire takes out what they say no longer holds."
    records = [{"older": pair.older.id, "newer": pair.newer.id, "reason": pair.reason} for pair in pairs[: asked.limit]]
    return Answer(_told(blocks, asked, "No memories contradict each other.", hint), {"conflicts": records})


def _reviews(desk: Desk, asked: arguments.Analyze) -> Answer:
    reviews = _waiting(desk).reviews
    blocks = [
        f"- [{short_id(one.memory.id)}] {title_of(one.memory)}: {one.entry.reason.value.replace('_', ' ')}"
        + (f", {one_line(harmless(one.entry.detail))}" if one.entry.detail else "")
        for one in reviews
    ]
    records = [{"id": one.memory.id, "reason": one.entry.reason.value} for one in reviews[: asked.limit]]
    return Answer(_told(blocks, asked, "Nothing waits for review.", "The person decides."), {"reviews": records})


def _alike(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Alike = desk.call("alike", AlikeRequest(limit=asked.limit))
    blocks = ["\n".join(map(_short, group)) for group in found.groups]
    hint = "Alike is not the same. The person decides; memory_retire takes out what says nothing more than another."
    records = [[one.id for one in group] for group in found.groups]
    return Answer(_told(blocks, asked, "No memories look alike.", hint), {"alike": records, "total": found.total})


def _questions(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Reflection = desk.call("reflect", ReflectRequest(limit=asked.limit))
    blocks = [f"{_short(one.first)}\n{_short(one.second)}\n  {one_line(harmless(one.why))}" for one in found.questions]
    hint = "The person answers: nacre reflect"
    records = [
        {"id": one.id, "first": one.first.id, "second": one.second.id, "contradicts": one.contradicts}
        for one in found.questions
    ]
    return Answer(_told(blocks, asked, "Nothing to ask.", hint), {"questions": records, "total": found.total})


def _unanswered(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Gaps = desk.call("unanswered", UnansweredRequest(limit=asked.limit))
    blocks = [
        f"- “{one_line(harmless(shorten(one.question, _WORDS)))}” asked {count(one.times, 'time', 'times')}, last "
        f"{one.last:%Y-%m-%d}" + (f", of {', '.join(one.projects)}" if one.projects else "")
        for one in found.gaps
    ]
    hint = "memory_store keeps an answer that you know; the person has the rest: nacre gaps"
    records = [{"id": one.id, "question": one.question, "times": one.times} for one in found.gaps]
    return Answer(_told(blocks, asked, "Every question has an answer.", hint), {"gaps": records, "total": found.total})


def _digest(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Digest = desk.call("digest", DigestRequest(project=desk.place(None).project))
    lines = found.text.splitlines()
    shown = fitting(lines, asked.budget)
    records = {name: [one.id for one in getattr(found, name)] for name in ("todos", "decisions", "learned")}
    return Answer(framed("\n".join(lines[:shown]) or "Nothing is open, and nothing was learned."), records)


def _wakeup(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Wakeup = desk.call(
        "wakeup",
        WakeupRequest(
            folder=desk.folder, budget_tokens=min(asked.budget, 8_000), parts=asked.sections,
            part_budgets=asked.section_budgets, prompt=asked.subject or "",
        ),
    )  # fmt: skip
    records = [
        {"part": one.part.value, "budget": one.budget_tokens, "tokens": one.tokens, "truncated": one.truncated}
        for one in found.sections
    ]
    return Answer(found.text or framed("Nothing is known yet."), {"sections": records, "tokens": found.tokens})


def _file(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: FileHistory = desk.call("did", DidQuery(path=(asked.subject or "").strip(), limit=asked.limit))
    blocks = [_change(change) for change in found.changes]
    nothing = "No session that was read changed such a file."
    text = _told(blocks, asked, nothing, f"{count(found.edits, 'change', 'changes')} in all.")
    records = [
        {"path": change.path, "session": change.session.id, "edits": change.edits,
         "time": change.time.isoformat() if change.time else None}
        for change in found.changes
    ]  # fmt: skip
    return Answer(text, {"changes": records, "edits": found.edits})


def _change(change: FileChange) -> str:
    day = f"{change.time:%Y-%m-%d} " if change.time else ""
    told = [
        f"- {day}{harmless(change.path)}, {count(change.edits, 'edit', 'edits')} in {short_session(change.session.id)}"
    ]
    if change.request:
        told.append(f"  asked for: {harmless(shorten(change.request.text, _WORDS))}")
    if change.words:
        told.append(f"  the agent: {harmless(shorten(change.words.text, _WORDS))}")
    return "\n".join(told)


def _error(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: FixResult = desk.call("fix", FixQuery(error=asked.subject or "", limit=asked.limit))
    blocks = [_trouble(trouble) for trouble in found.troubles]
    blocks += [f"- lesson [{short_id(hit.memory.id)}]:\n{indented(hit.memory.content)}" for hit in found.lessons]
    records = {
        "troubles": [{"error": one.error, "times": one.times, "mended": one.mended} for one in found.troubles],
        "lessons": [hit.memory.id for hit in found.lessons],
    }
    return Answer(_told(blocks, asked, "No such error was met in the sessions that were read."), records)


def _trouble(trouble: Trouble) -> str:
    head = f"- met {count(trouble.times, 'time', 'times')}, mended {trouble.mended} (a tool's words, UNTRUSTED):"
    return "\n".join([head, indented(shorten(trouble.error, _WORDS)), *map(_repair, trouble.repairs)])


def _repair(repair: Repair) -> str:
    day = f"{repair.time:%Y-%m-%d} " if repair.time else ""
    worked = "worked" if repair.worked else "was not seen to work"
    steps = "; ".join(filter(None, (shorten(step.input or step.name, 100) for step in repair.steps)))
    words = shorten(repair.words.text, _WORDS) if repair.words else ""
    told = ": ".join(["", *filter(None, (steps, words))])
    return f"  {day}in {short_session(repair.session.id)}, what was tried {worked}{one_line(harmless(told))}"
