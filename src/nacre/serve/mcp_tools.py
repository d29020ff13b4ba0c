"""``memory_admin``: how memory is, what is in it, reading what is new, and what a dream would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nacre.base.request import Nothing
from nacre.base.text import count, harmless, one_line, shorten
from nacre.base.times import shown_day
from nacre.code.ask import CallersRequest, CodeRequest, ImpactRequest, StaleRequest
from nacre.errors import InvalidInput, NacreError
from nacre.home import location
from nacre.home.views import PendingKind
from nacre.learn.extract import ExtractRequest
from nacre.learn.ingest import IngestOptions
from nacre.memories.decision import RetireRequest, StoreRequest
from nacre.memories.graph import AnalysisRequest, BriefRequest
from nacre.review.contradictions import ReflectRequest, ReviewRequest, UnansweredRequest
from nacre.review.dream import AlikeRequest, DreamPlanRequest
from nacre.serve import mcp_arguments
from nacre.serve.mcp import (
    GLOBAL,
    Answer,
    Desk,
    fitting,
    framed,
    indented,
    noted,
    refusal,
    short_id,
    short_session,
    title_of,
)
from nacre.sessions.find import DidQuery, FixQuery
from nacre.values.codec import plain
from nacre.values.memory import Memory, Source
from nacre.values.reports import StoreOutcome
from nacre.values.session import FileChange, FileHistory, Repair, Speaker, Trouble, Trust

if TYPE_CHECKING:
    from nacre.care.database import Vacuumed
    from nacre.code.ask import CodeAnswer, CodeLink, CodeMemory, StaleMemory, Staleness
    from nacre.home.views import Extracted, FixResult, Overview, PendingPage
    from nacre.memories.graph import Brief, Central, Components, Gaps
    from nacre.review.consolidate import DreamPlan
    from nacre.review.dream import Alike
    from nacre.values.memory import Candidate
    from nacre.values.reports import IngestReport
    from nacre.values.review import Reflection, Unanswered

_PROJECTS = 40
_STEPS = 20


def administer(desk: Desk, asked: mcp_arguments.Admin) -> Answer:
    """One of five actions."""
    if asked.action == "flush":
        return _flush(desk)
    if asked.action == "vacuum":
        return _vacuum(desk)
    if asked.action == "dream":
        return _dream_plan(desk)
    return _status(desk) if asked.action == "status" else _overview(desk)


def _looked(desk: Desk) -> Overview:
    desk.tell("looking at everything")
    found: Overview = desk.call("overview", Nothing())
    return found


def _status(desk: Desk) -> Answer:
    checks = _looked(desk).checks
    lines = [
        f"- {check.name}: {check.state}; {shorten(check.detail, 300)}"
        + (f"; {check.hint}" if check.hint else "")
        for check in checks
    ]
    records = [
        {"name": one.name, "state": one.state, "detail": one.detail, "hint": one.hint}
        for one in checks
    ]
    return Answer(
        framed("\n".join(one_line(harmless(line)) for line in lines)), {"checks": records}
    )


def _overview(desk: Desk) -> Answer:
    found = _looked(desk)
    kinds = ", ".join(f"{number} {kind}" for kind, number in found.memories.items() if number)
    told = {
        check.name: check.detail
        for check in found.checks
        if check.name in ("sessions", "review", "vectors")
    }
    projects = ", ".join(found.projects[:_PROJECTS]) + (
        ", …" if len(found.projects) > _PROJECTS else ""
    )
    number = count(sum(found.memories.values()), "active memory", "active memories")
    text = framed(
        f"{number}: {kinds}. {count(found.links, 'link', 'links')}." if kinds else f"{number}.",
        f"Projects: {harmless(projects)}." if projects else "No project yet.",
        "\n".join(
            harmless(one_line(f"{name.capitalize()}: {detail}.")) for name, detail in told.items()
        ),
    )
    return Answer(
        text, {"memories": found.memories, "links": found.links, "projects": list(found.projects)}
    )


def _flush(desk: Desk) -> Answer:
    desk.tell("reading what is new in transcripts")
    report: IngestReport = desk.call("ingest", IngestOptions())
    learned, files = len(report.memories), report.files
    problems = [f"- {shorten(one.message, 200)}" for one in report.problems[:5]]
    text = framed(
        f"Read {count(files, 'transcript', 'transcripts')} with something new; learned "
        f"{count(learned, 'memory', 'memories')}, {report.duplicates:,} known already.",
        "Not read:\n" + "\n".join(harmless(one_line(line)) for line in problems)
        if problems
        else "",
    )
    return Answer(
        text, {"files": files, "memories": list(report.memories), "duplicates": report.duplicates}
    )


def _vacuum(desk: Desk) -> Answer:
    desk.tell("making the database smaller")
    done: Vacuumed = desk.call("db-vacuum", Nothing())
    text = framed(
        f"The database has {done.after / 1e6:,.1f} MB; before it had {done.before / 1e6:,.1f}."
    )
    return Answer(text, {"bytes_before": done.before, "bytes_after": done.after})


def _dream_plan(desk: Desk) -> Answer:
    desk.tell("planning a dream")
    plan: DreamPlan = desk.call("dream-plan", DreamPlanRequest())
    if not plan.steps:
        seen = count(plan.seen, "memory", "memories")
        return Answer(framed(f"A dream would do nothing: {seen} looked at."), {"steps": []})
    lines = [
        f"- {step.action}: {shorten(step.subject, 80)} ({len(step.ends or step.links):,}); {step.why}"
        for step in plan.steps
    ]
    told = [harmless(one_line(line)) for line in lines[:_STEPS]]
    dropped = (
        f", and drop {count(plan.dropped, 'link', 'links')} to nothing" if plan.dropped else ""
    )
    text = framed(
        f"A dream would retire {plan.ending:,} of {count(plan.seen, 'memory', 'memories')}{dropped}. "
        "Whoever owns them has it done: nacre dream",
        "\n".join([*told, f"and {len(lines) - _STEPS:,} more"] if len(lines) > _STEPS else told),
    )
    steps = [
        {
            "action": str(one.action),
            "ends": list(one.ends),
            "into": one.into,
            "links": list(one.links),
            "why": one.why,
        }
        for one in plan.steps
    ]
    return Answer(text, {"steps": steps[:_STEPS], "ending": plan.ending, "seen": plan.seen})


# ----------------------------------------------------------------------------
# What ``memory_graph`` tells of code.


_LIMIT = 40
_WORDS = 300


def ask_code(desk: Desk, asked: mcp_arguments.Graph) -> Answer:
    """One of four questions about the code of repositories."""
    if not (asked.name or "").strip():
        raise InvalidInput(
            f"{asked.action} needs a name", hint="the name of a symbol, or the path of a file"
        )
    fields: dict[str, Any] = {"name": asked.name, "near": desk.place(None).project, "limit": _LIMIT}
    if asked.action == "callers":
        request: CodeRequest = CallersRequest(**fields, depth=asked.depth)
    elif asked.action == "impact":
        request = ImpactRequest(**fields, symbol=asked.symbol, depth=max(2, asked.depth))
    else:
        request = CodeRequest(**fields)
    found: CodeAnswer = desk.call(f"graph-{asked.action}", request)
    return _answer(found, asked.budget)


def _answer(found: CodeAnswer, budget: int) -> Answer:
    records = {
        "nodes": plain(found.nodes),
        "choices": plain(found.choices),
        "links": plain(found.links),
        "memories": [one.memory.id for one in found.memories],
    }
    if found.choices:
        listed = [
            f"- {harmless(one.path)}#{harmless(one.name)} ({one.kind})" for one in found.choices
        ]
        shown = fitting(listed, budget)
        return Answer(
            framed("It may mean several; name one of them:", "\n".join(listed[:shown])), records
        )
    head = ", ".join(f"{one.path}#{one.name}".rstrip("#") for one in found.nodes)
    blocks = [*map(_memory, found.memories), *map(_link, found.links)]
    shown = fitting(blocks, budget)
    more = "There is more." if found.more or shown < len(blocks) else ""
    return Answer(
        framed(harmless(head), "\n".join(blocks[:shown]) or "Nothing was found.", more), records
    )


def _link(link: CodeLink) -> str:
    name = f"#{link.node.name}" if link.node.name else ""
    via = f" {link.via.partition('/')[2]}" if link.via else ""
    return harmless(
        f"- {link.node.path}{name}, line {link.line}: {link.rel}{via}{f' {link.note}' * bool(link.note)}"
    )


def _memory(one: CodeMemory) -> str:
    mark = " (UNTRUSTED)" if one.memory.trust.value == "untrusted" else ""
    text = indented(shorten(one_line(one.memory.content), _WORDS))
    return f"- memory [{short_id(one.memory.id)}] {title_of(one.memory)}{mark}\n{text}"


def stale(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    """Memories whose files were changed since, the surest first."""
    found: Staleness = desk.call("graph-stale", StaleRequest(limit=asked.limit, folder=desk.folder))
    blocks = [_out_of_date(one) for one in found.memories]
    shown = fitting(blocks, asked.budget)
    records = [
        {
            "id": one.memory.id,
            "confidence": one.confidence,
            "files": [file.path for file in one.files],
            "missing": list(one.missing),
        }
        for one in found.memories[:shown]
    ]
    more = (
        f"{found.total - shown} more: a higher limit or budget shows them."
        if shown < found.total
        else ""
    )
    told = (
        "\n".join(blocks[:shown]) or "No file that a memory names was changed in a session since."
    )
    return Answer(framed(told, more), {"stale": records, "total": found.total})


def _out_of_date(one: StaleMemory) -> str:
    return f"- {one.confidence:.2f} [{short_id(one.memory.id)}] {title_of(one.memory)}\n  {harmless(one.why)}"


# ----------------------------------------------------------------------------
# ``memory_analyze``: what waits for a judgement, who changed a file, what mended an error.


def analyze(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    """One of the questions that need no model."""
    if asked.about in ("file", "error") and not (asked.subject or "").strip():
        what = "a path" if asked.about == "file" else "the error's text"
        raise InvalidInput(f"{asked.about} needs a subject", hint=f"the subject is {what}")
    answers = {
        "brief": _brief,
        "central": _central,
        "gaps": _gaps,
        "components": _components,
        "review": _review,
        "file": _file,
        "error": _error,
        "reflect": _questions,
        "alike": _alike,
        "unanswered": _unanswered,
        "stale": stale,
    }
    return answers[asked.about](desk, asked)


def _waiting(desk: Desk) -> PendingPage:
    found: PendingPage = desk.call("review", ReviewRequest(limit=0))
    return found


def _told(blocks: list[str], asked: mcp_arguments.Analyze, nothing: str, hint: str = "") -> str:
    shown = min(fitting(blocks, asked.budget), asked.limit)
    more = (
        f"{len(blocks) - shown} more: a higher limit or budget shows them."
        if shown < len(blocks)
        else ""
    )
    return framed("\n".join(blocks[:shown]) or nothing, hint if blocks else "", more)


def _about_links(desk: Desk, asked: mcp_arguments.Analyze) -> AnalysisRequest:
    return AnalysisRequest(limit=asked.limit, project=_project(desk, asked))


def _project(desk: Desk, asked: mcp_arguments.Analyze) -> str | None:
    """The project that is named; without one it is about all of them."""
    return next(iter(desk.projects(asked.project)), None) if asked.project else None


def _brief(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: Brief = desk.call("graph-brief", BriefRequest(project=_project(desk, asked)))
    waiting = _waiting(desk)
    told = [
        *harmless(found.text).splitlines(),
        f"{count(waiting.conflicts, 'contradiction', 'contradictions')} and "
        f"{count(waiting.doubts, 'memory', 'memories')} to look over wait for the person.",
    ]
    shown = fitting(told, asked.budget)
    records = {
        "memories": found.memories,
        "links": found.links,
        "alike": found.alike,
        "projects": found.projects,
        "components": found.components,
        "gaps": found.gaps,
        "unlinked": found.unlinked,
        "todos": found.todos,
        "stale": found.stale,
        "conflicts": waiting.conflicts,
        "doubts": waiting.doubts,
        "central": [one.memory.id for one in found.central],
        "decisions": [one.id for one in found.decisions],
    }
    return Answer(framed("\n".join(told[:shown])), records)


def _central(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: Central = desk.call("graph-central", _about_links(desk, asked))
    records = [{"id": one.memory.id, "links": one.degree} for one in found.found]
    blocks = [f"{_short(one.memory)}: {count(one.degree, 'link', 'links')}" for one in found.found]
    hint = f"{count(found.links, 'link', 'links')} in all; memory_graph follows them."
    return Answer(
        _told(blocks, asked, "No memories are linked yet.", hint),
        {"central": records, "links": found.links},
    )


def _gaps(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: Gaps = desk.call("graph-gaps", _about_links(desk, asked))
    blocks = [
        f"{_short(one.memory)}: {count(one.degree, 'link', 'links')}, {one.maturity.value}, idle {one.idle_days} days"
        for one in found.found
    ]
    hint = f"{count(found.total, 'memory', 'memories')} with one link at most, {found.unlinked:,} without any."
    records = [
        {"id": one.memory.id, "links": one.degree, "maturity": one.maturity.value}
        for one in found.found
    ]
    text = _told(blocks, asked, "Every memory has two links or more.", hint)
    return Answer(text, {"gaps": records, "total": found.total, "unlinked": found.unlinked})


def _components(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: Components = desk.call("graph-components", _about_links(desk, asked))
    blocks = [
        "\n".join(
            [
                f"{count(one.size, 'memory', 'memories')}, {count(one.links, 'link', 'links')}, around:",
                *(f"  {_short(memory)}" for memory in one.central),
            ]
        )
        for one in found.found
    ]
    hint = (
        f"{count(found.total, 'group', 'groups')} in all; {found.alone:,} memories without a link."
    )
    records = [
        {"size": one.size, "links": one.links, "central": [memory.id for memory in one.central]}
        for one in found.found
    ]
    text = _told(blocks, asked, "No memories are linked yet.", hint)
    return Answer(text, {"components": records, "total": found.total, "alone": found.alone})


def _short(memory: Memory) -> str:
    mark = " (UNTRUSTED)" if memory.trust is Trust.UNTRUSTED else ""
    return f"- [{short_id(memory.id)}] {title_of(memory)}{mark}"


def _review(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
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


def _alike(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: Alike = desk.call("alike", AlikeRequest(limit=asked.limit))
    blocks = ["\n".join(map(_short, group)) for group in found.groups]
    hint = "Alike is not the same. The person decides; memory_retire takes out what says nothing more than another."
    records = [[one.id for one in group] for group in found.groups]
    return Answer(
        _told(blocks, asked, "No memories look alike.", hint),
        {"alike": records, "total": found.total},
    )


def _questions(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: Reflection = desk.call("reflect", ReflectRequest(limit=asked.limit))
    blocks = [
        f"{_short(one.first)}\n{_short(one.second)}\n  {one_line(harmless(one.why))}"
        for one in found.questions
    ]
    hint = "The person answers: nacre reflect"
    records = [
        {
            "id": one.id,
            "first": one.first.id,
            "second": one.second.id,
            "contradicts": one.contradicts,
        }
        for one in found.questions
    ]
    return Answer(
        _told(blocks, asked, "Nothing to ask.", hint), {"questions": records, "total": found.total}
    )


def _unanswered(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: Unanswered = desk.call("unanswered", UnansweredRequest(limit=asked.limit))
    blocks = [
        f"- “{one_line(harmless(shorten(one.question, _WORDS)))}” asked {count(one.times, 'time', 'times')}, "
        f"last {shown_day(one.last)}" + (f", of {', '.join(one.projects)}" if one.projects else "")
        for one in found.gaps
    ]
    hint = "memory_store keeps an answer that you know; the person has the rest: nacre gaps"
    records = [{"id": one.id, "question": one.question, "times": one.times} for one in found.gaps]
    return Answer(
        _told(blocks, asked, "Every question has an answer.", hint),
        {"gaps": records, "total": found.total},
    )


def _file(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: FileHistory = desk.call(
        "did", DidQuery(path=(asked.subject or "").strip(), limit=asked.limit)
    )
    blocks = [_change(change) for change in found.changes]
    nothing = "No session that was read changed such a file."
    text = _told(blocks, asked, nothing, f"{count(found.edits, 'change', 'changes')} in all.")
    records = [
        {
            "path": change.path,
            "session": change.session.id,
            "edits": change.edits,
            "time": change.time.isoformat() if change.time else None,
        }
        for change in found.changes
    ]
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


def _error(desk: Desk, asked: mcp_arguments.Analyze) -> Answer:
    found: FixResult = desk.call("fix", FixQuery(error=asked.subject or "", limit=asked.limit))
    blocks = [_trouble(trouble) for trouble in found.troubles]
    blocks += [
        f"- lesson [{short_id(hit.memory.id)}]:\n{indented(hit.memory.content)}"
        for hit in found.lessons
    ]
    records = {
        "troubles": [
            {"error": one.error, "times": one.times, "mended": one.mended} for one in found.troubles
        ],
        "lessons": [hit.memory.id for hit in found.lessons],
    }
    return Answer(
        _told(blocks, asked, "No such error was met in the sessions that were read."), records
    )


def _trouble(trouble: Trouble) -> str:
    head = f"- met {count(trouble.times, 'time', 'times')}, mended {trouble.mended} (a tool's words, UNTRUSTED):"
    return "\n".join(
        [head, indented(shorten(trouble.error, _WORDS)), *map(_repair, trouble.repairs)]
    )


def _repair(repair: Repair) -> str:
    day = f"{shown_day(repair.time)} " if repair.time else ""
    worked = "worked" if repair.worked else "was not seen to work"
    steps = "; ".join(
        filter(None, (shorten(step.input or step.name, 100) for step in repair.steps))
    )
    words = shorten(repair.words.text, _WORDS) if repair.words else ""
    told = ": ".join(["", *filter(None, (steps, words))])
    return f"  {day}in {short_session(repair.session.id)}, what was tried {worked}{one_line(harmless(told))}"


# ----------------------------------------------------------------------------
# ``memory_extract``: what a text or a session would teach.


def extract(desk: Desk, asked: mcp_arguments.Extract) -> Answer:
    """Memories that extraction would make; none is stored."""
    if bool((asked.text or "").strip()) == bool(asked.session):
        raise InvalidInput(
            "give either a text or a session", hint="memory_sessions with list shows sessions"
        )
    desk.tell("reading")
    found: Extracted = desk.call(
        "extract",
        ExtractRequest(text=asked.text or "", session=asked.session, by_model=asked.by_model),
    )
    blocks = [_block(candidate) for candidate in found.candidates]
    shown = fitting(blocks, asked.budget)
    text = framed(
        "Nothing there that would be kept."
        if not blocks
        else "Would be kept; nothing was stored. memory_store keeps what is right and of use:",
        "\n".join(blocks[:shown]),
        f"{len(blocks) - shown} more: ask with a higher budget." if shown < len(blocks) else "",
        f"Rules did what the model did not: {one_line(harmless(found.problem))}."
        if found.problem
        else "",
    )
    records = [
        {
            "kind": one.kind.value,
            "subject": one.subject,
            "content": one.content,
            "importance": one.importance,
            "tags": list(one.tags),
            "trust": one.trust.value,
            "is_candidate": bool(one.held),
        }
        for one in found.candidates
    ]
    return Answer(text, {"candidates": records, "problem": found.problem})


def _block(candidate: Candidate) -> str:
    outside = ", UNTRUSTED" if candidate.trust is Trust.UNTRUSTED else ""
    maybe = ", only a candidate" if candidate.held else ""
    head = f"- {candidate.kind.value}, importance {candidate.importance}{outside}{maybe}: {harmless(candidate.subject)}"
    return f"{one_line(head)}\n{indented(candidate.content)}"


# ----------------------------------------------------------------------------
# ``memory_store`` and ``memory_retire``.


_DONE = {
    "stored": "Stored",
    "known": "Known already, and confirmed",
    "updated": "Merged into what was known",
    "retired": "Retired at once, as a standing retirement says",
}


_PROPOSED = "as your proposal: found when searched for; the person can keep it in review, or say it"


def store(desk: Desk, asked: mcp_arguments.Store) -> Answer:
    """Store memories, one after the other; what cannot be stored does not keep the others out."""
    project, is_known = _project_keeping(desk, asked.project)
    folder = None if project or _is_global(asked.project) else _repository(desk)
    lines, records, failed = [], [], None
    for number, entry in enumerate(asked.entries, start=1):
        desk.tell(f"storing {number} of {len(asked.entries)}")
        try:
            outcome: StoreOutcome = desk.call("store", _new(desk, entry, project, folder))
        except NacreError as error:
            failed = error
            lines.append(f"- not stored: {one_line(harmless(error.message))}")
            records.append(refusal(error))
            continue
        lines.append(_line(outcome))
        records.append(_record(outcome))
    if failed and len(asked.entries) == 1:
        raise failed
    fresh = (
        ""
        if is_known
        else f"{harmless(project or '')} is a new project; if it is another's name, store them there."
    )
    return Answer(noted(*lines, fresh), {"outcomes": records})


def _project_keeping(desk: Desk, name: str | None) -> tuple[str | None, bool]:
    """The slug that new memories get, and whether it is known; a name that nobody knows is a new project's."""
    if _is_global(name):
        return None, True
    if name is not None and name.strip() == "*":
        raise InvalidInput("a memory belongs to one project", hint='name it, or "global"')
    found = desk.place(name)
    return found.project, found.is_known


def _is_global(name: str | None) -> bool:
    return name is not None and name.strip().lower() == GLOBAL


def _repository(desk: Desk) -> str | None:
    """The folder of the client, where that is a repository: nobody knows its project yet. Else it says little."""

    return desk.folder if desk.folder and location.locate(desk.folder).is_repository else None


def _new(desk: Desk, entry: mcp_arguments.NewEntry, project: str | None, folder: str | None) -> Any:
    given = {
        name: getattr(entry, name) for name in entry.__struct_fields__ if name != "from_outside"
    }
    return StoreRequest(
        **given,
        project=project,
        folder=folder,
        speaker=Speaker.AGENT,
        trust=Trust.UNTRUSTED if entry.from_outside else Trust.TRUSTED,
        source=Source(session=desk.session),
    )


def _line(outcome: StoreOutcome) -> str:
    told = f"- [{short_id(outcome.memory_id)}] {_DONE.get(outcome.action, outcome.action)}"
    for replaced in outcome.supersedes:
        told += f"; replaces [{short_id(replaced.memory.id)}] {title_of(replaced.memory, 80)}"
    if outcome.superseded_by:
        newer = outcome.superseded_by.memory
        told += f"; a newer memory says otherwise: [{short_id(newer.id)}] {title_of(newer, 80)}"
    if outcome.similar and outcome.action == "stored":
        likest = outcome.similar[0]
        told += (
            f"; like [{short_id(likest.id)}] {title_of(likest, 80)}: retire what no longer holds"
        )
    if outcome.note:
        told += f" ({one_line(harmless(outcome.note))})"
    if outcome.proposed:
        told += f"; {_PROPOSED}"
    return told + "."


def _record(outcome: StoreOutcome) -> dict[str, Any]:
    return {
        "action": outcome.action,
        "id": outcome.memory_id,
        "reason": outcome.reason,
        "proposed": outcome.proposed,
        "supersedes": [one.memory.id for one in outcome.supersedes],
        "superseded_by": outcome.superseded_by.memory.id if outcome.superseded_by else None,
    }


def retire(desk: Desk, asked: mcp_arguments.Retire) -> Answer:
    """Take memories out of recall: all that are named, or none."""
    wide = next((one for one in asked.ids if "*" in one), None)
    if wide:
        raise InvalidInput(
            f"{wide!r} is a pattern", hint="name each memory by its id; memory_search shows ids"
        )
    with desk.naming("memory_search shows the ids of memories"):
        retired: list[Memory] = desk.call(
            "retire",
            RetireRequest(references=asked.ids, reason=asked.reason, persist=asked.persist),
        )
    gone, waiting = (
        [one for one in retired if one.retired],
        [one for one in retired if not one.retired],
    )
    lines = []
    if gone:
        lines += [
            "Retired; the files are kept, and the person can bring them back:",
            *map(_named, gone),
        ]
    if waiting:
        lines += [
            "Not retired: these are the person's words. What you want waits for their review:"
        ]
        lines += map(_named, waiting)
    records = {"retired": [one.id for one in gone], "waiting": [one.id for one in waiting]}
    return Answer(noted(*lines), records)


def _named(memory: Memory) -> str:
    return f"- [{short_id(memory.id)}] {title_of(memory)}"
