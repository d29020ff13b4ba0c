"""``memory_analyze``: what waits for a judgement, who changed a file, what mended an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.dream.requests import AlikeRequest
from nacre.errors import InvalidInput
from nacre.graph.requests import AnalysisRequest, BriefRequest
from nacre.mcp import arguments
from nacre.mcp.answers import Answer, fitting, framed, indented, short_id, short_session, title_of
from nacre.mcp.desk import Desk
from nacre.mcp.tools.code import stale
from nacre.platform.days import shown_day
from nacre.review.requests import ReflectRequest, ReviewRequest, UnansweredRequest
from nacre.sessions.requests import DidQuery, FixQuery
from nacre.text.passages import count, harmless, one_line, shorten
from nacre.values.file_history import FileChange, FileHistory, Repair, Trouble
from nacre.values.session import Trust
from nacre.views import PendingKind

if TYPE_CHECKING:
    from nacre.dream.alike import Alike
    from nacre.graph.values import Brief, Central, Components, Gaps
    from nacre.values.memory import Memory
    from nacre.values.review import Reflection, Unanswered
    from nacre.views import FixResult, PendingPage

_WORDS = 300


def analyze(desk: Desk, asked: arguments.Analyze) -> Answer:
    """One of the questions that need no model."""
    if asked.about in ("file", "error") and not (asked.subject or "").strip():
        what = "a path" if asked.about == "file" else "the error's text"
        raise InvalidInput(f"{asked.about} needs a subject", hint=f"the subject is {what}")
    answers = {
        "brief": _brief, "central": _central, "gaps": _gaps, "components": _components,
        "review": _review, "file": _file, "error": _error, "reflect": _questions,
        "alike": _alike, "unanswered": _unanswered, "stale": stale,
    }  # fmt: skip
    return answers[asked.about](desk, asked)


def _waiting(desk: Desk) -> PendingPage:
    found: PendingPage = desk.call("review", ReviewRequest(limit=0))
    return found


def _told(blocks: list[str], asked: arguments.Analyze, nothing: str, hint: str = "") -> str:
    shown = min(fitting(blocks, asked.budget), asked.limit)
    more = f"{len(blocks) - shown} more: a higher limit or budget shows them." if shown < len(blocks) else ""
    return framed("\n".join(blocks[:shown]) or nothing, hint if blocks else "", more)


def _about_links(desk: Desk, asked: arguments.Analyze) -> AnalysisRequest:
    return AnalysisRequest(limit=asked.limit, project=_project(desk, asked))


def _project(desk: Desk, asked: arguments.Analyze) -> str | None:
    """The project that is named; without one it is about all of them."""
    return next(iter(desk.projects(asked.project)), None) if asked.project else None


def _brief(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Brief = desk.call("graph-brief", BriefRequest(project=_project(desk, asked)))
    waiting = _waiting(desk)
    told = [
        *harmless(found.text).splitlines(),
        f"{count(waiting.conflicts, 'contradiction', 'contradictions')} and "
        f"{count(waiting.doubts, 'memory', 'memories')} to look over wait for the person.",
    ]
    shown = fitting(told, asked.budget)
    records = {
        "memories": found.memories, "links": found.links, "alike": found.alike, "projects": found.projects,
        "components": found.components, "gaps": found.gaps, "unlinked": found.unlinked, "todos": found.todos,
        "stale": found.stale,
        "conflicts": waiting.conflicts, "doubts": waiting.doubts,
        "central": [one.memory.id for one in found.central], "decisions": [one.id for one in found.decisions],
    }  # fmt: skip
    return Answer(framed("\n".join(told[:shown])), records)


def _central(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Central = desk.call("graph-central", _about_links(desk, asked))
    records = [{"id": one.memory.id, "links": one.degree} for one in found.found]
    blocks = [f"{_short(one.memory)}: {count(one.degree, 'link', 'links')}" for one in found.found]
    hint = f"{count(found.links, 'link', 'links')} in all; memory_graph follows them."
    return Answer(_told(blocks, asked, "No memories are linked yet.", hint), {"central": records, "links": found.links})


def _gaps(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Gaps = desk.call("graph-gaps", _about_links(desk, asked))
    blocks = [
        f"{_short(one.memory)}: {count(one.degree, 'link', 'links')}, {one.maturity.value}, idle {one.idle_days} days"
        for one in found.found
    ]
    hint = f"{count(found.total, 'memory', 'memories')} with one link at most, {found.unlinked:,} without any."
    records = [{"id": one.memory.id, "links": one.degree, "maturity": one.maturity.value} for one in found.found]
    text = _told(blocks, asked, "Every memory has two links or more.", hint)
    return Answer(text, {"gaps": records, "total": found.total, "unlinked": found.unlinked})


def _components(desk: Desk, asked: arguments.Analyze) -> Answer:
    found: Components = desk.call("graph-components", _about_links(desk, asked))
    blocks = [
        "\n".join([
            f"{count(one.size, 'memory', 'memories')}, {count(one.links, 'link', 'links')}, around:",
            *(f"  {_short(memory)}" for memory in one.central),
        ])
        for one in found.found
    ]  # fmt: skip
    hint = f"{count(found.total, 'group', 'groups')} in all; {found.alone:,} memories without a link."
    records = [
        {"size": one.size, "links": one.links, "central": [memory.id for memory in one.central]} for one in found.found
    ]
    text = _told(blocks, asked, "No memories are linked yet.", hint)
    return Answer(text, {"components": records, "total": found.total, "alone": found.alone})


def _short(memory: Memory) -> str:
    mark = " (UNTRUSTED)" if memory.trust is Trust.UNTRUSTED else ""
    return f"- [{short_id(memory.id)}] {title_of(memory)}{mark}"


def _review(desk: Desk, asked: arguments.Analyze) -> Answer:
    items = [item for item in _waiting(desk).items if item.kind is not PendingKind.CANDIDATE]
    blocks = [
        f"- [{short_id(one.memory.id)}] {title_of(one.memory)}"
        + (f"\n  against [{short_id(one.newer.id)}] {title_of(one.newer)}" if one.newer else "")
        + f"\n  {one.why.replace('_', ' ')}"
        + (f", {one_line(harmless(one.detail))}" if one.detail else "")
        for one in items
    ]
    records = [
        {"id": one.memory.id, "newer": one.newer.id if one.newer else None, "reason": one.why}
        for one in items[: asked.limit]
    ]
    hint = "The person decides; memory_retire takes out what they say no longer holds."
    return Answer(_told(blocks, asked, "Nothing waits for review.", hint), {"review": records})


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
    found: Unanswered = desk.call("unanswered", UnansweredRequest(limit=asked.limit))
    blocks = [
        f"- “{one_line(harmless(shorten(one.question, _WORDS)))}” asked {count(one.times, 'time', 'times')}, "
        f"last {shown_day(one.last)}" + (f", of {', '.join(one.projects)}" if one.projects else "")
        for one in found.gaps
    ]
    hint = "memory_store keeps an answer that you know; the person has the rest: nacre gaps"
    records = [{"id": one.id, "question": one.question, "times": one.times} for one in found.gaps]
    return Answer(_told(blocks, asked, "Every question has an answer.", hint), {"gaps": records, "total": found.total})


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
    day = f"{shown_day(change.time)} " if change.time else ""
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
    day = f"{shown_day(repair.time)} " if repair.time else ""
    worked = "worked" if repair.worked else "was not seen to work"
    steps = "; ".join(filter(None, (shorten(step.input or step.name, 100) for step in repair.steps)))
    words = shorten(repair.words.text, _WORDS) if repair.words else ""
    told = ": ".join(["", *filter(None, (steps, words))])
    return f"  {day}in {short_session(repair.session.id)}, what was tried {worked}{one_line(harmless(told))}"
