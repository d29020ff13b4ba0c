"""The MCP tools that administer, analyze, link, extract, store and retire memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nacre.base.text import count, harmless, one_line, shorten
from nacre.base.times import shown_day
from nacre.errors import InvalidInputError, NacreError
from nacre.home import location
from nacre.home.views import PendingKind
from nacre.memories.graph import NewLink, Relation
from nacre.serve.mcp import (
    GLOBAL,
    Desk,
    count_fitting,
    frame,
    frame_report,
    indent,
    plain_line,
    plugin_tool,
    short_id,
    short_session,
    title_of,
)
from nacre.values.memory import USUAL_STRENGTH, Memory, Source
from nacre.values.reports import StoreOutcome
from nacre.values.session import FileChange, FileHistory, Repair, Speaker, Trouble, Trust

if TYPE_CHECKING:
    from nacre.care.database import Vacuumed
    from nacre.home.views import FixResult, Overview, PendingPage
    from nacre.learn.learn import Proposal
    from nacre.memories.graph import (
        Brief,
        Central,
        Gaps,
        Hop,
        LinkChange,
        LinkLine,
        LinkPage,
        Node,
        Traversal,
    )
    from nacre.review.consolidate import DreamPlan
    from nacre.review.dream import Alike
    from nacre.serve.mcp_arguments import Admin, Analyze, Extract, Graph, NewEntry, Retire, Store
    from nacre.values.memory import Candidate
    from nacre.values.reports import IngestReport
    from nacre.values.review import Unanswered


_MAX_PROJECTS = 40
_MAX_STEPS = 20
_MAX_CHARACTERS = 300


def administer(desk: Desk, arguments: Admin) -> str:
    """Run an action of the tool ``memory_admin``."""
    actions = {
        "status": _status,
        "overview": _overview,
        "flush": _flush,
        "dream": _dream_plan,
        "vacuum": _vacuum,
    }
    return actions[arguments.action](desk)


def _status(desk: Desk) -> str:
    desk.tell("checking nacre")
    overview: Overview = desk.call("overview")
    lines = [
        f"- {check.name}: {check.state}; {shorten(check.detail, 300)}"
        + (f"; {check.hint}" if check.hint else "")
        for check in overview.checks
    ]
    return frame("\n".join(plain_line(line) for line in lines))


def _overview(desk: Desk) -> str:
    overview: Overview = desk.call("overview")
    kinds = ", ".join(f"{number} {kind}" for kind, number in overview.memories.items() if number)
    details = {
        check.name: check.detail
        for check in overview.checks
        if check.name in ("sessions", "review", "vectors")
    }
    projects = ", ".join(overview.projects[:_MAX_PROJECTS]) + (
        ", …" if len(overview.projects) > _MAX_PROJECTS else ""
    )
    number = count(sum(overview.memories.values()), "active memory")
    return frame(
        f"{number}: {kinds}. {count(overview.links, 'link')}." if kinds else f"{number}.",
        f"Projects: {harmless(projects)}." if projects else "No project yet.",
        "\n".join(
            plain_line(f"{name.capitalize()}: {detail}.") for name, detail in details.items()
        ),
    )


def _flush(desk: Desk) -> str:
    desk.tell("reading new transcripts")
    report: IngestReport = desk.call("ingest")
    learned, files = len(report.memories), report.files
    problems = [f"- {shorten(problem.message, 200)}" for problem in report.problems[:5]]
    return frame(
        f"Read {count(files, 'transcript')} with new content; learned "
        f"{count(learned, 'memory')}, {report.duplicates:,} already known.",
        "Not read:\n" + "\n".join(plain_line(line) for line in problems) if problems else "",
    )


def _vacuum(desk: Desk) -> str:
    desk.tell("shrinking the database")
    sizes: Vacuumed = desk.call("db-vacuum")
    return frame(
        f"The database has {sizes.after / 1e6:,.1f} MB (before: {sizes.before / 1e6:,.1f})."
    )


def _dream_plan(desk: Desk) -> str:
    desk.tell("planning a dream")
    plan: DreamPlan = desk.call("dream-plan")
    if not plan.steps:
        looked_at = count(plan.seen, "memory")
        return frame(f"A dream would change nothing: {looked_at} checked.")
    lines = [
        f"- {step.action}: {shorten(step.subject, 80)} ({len(step.ends):,}); {step.why}"
        for step in plan.steps
    ]
    steps = [plain_line(line) for line in lines[:_MAX_STEPS]]
    return frame(
        f"A dream would retire {plan.ending:,} of {count(plan.seen, 'memory')}. "
        "The person can run it: nacre dream",
        "\n".join(
            [*steps, f"and {len(lines) - _MAX_STEPS:,} more"] if len(lines) > _MAX_STEPS else steps
        ),
    )


# -- ``memory_analyze`` ----------------------------------------------------------------------------


def analyze(desk: Desk, arguments: Analyze) -> str:
    """Answer a question about the memories as a whole, without a language model."""
    if arguments.about in ("file", "error") and not (arguments.subject or "").strip():
        what = "a path" if arguments.about == "file" else "the error's text"
        raise InvalidInputError(f"{arguments.about} needs a subject", hint=f"the subject is {what}")
    answers = {
        "brief": _brief,
        "central": _central,
        "gaps": _gaps,
        "review": _review,
        "file": _file,
        "error": _error,
        "alike": _alike,
        "unanswered": _unanswered,
    }
    answer = answers.get(arguments.about) or plugin_tool(arguments.about)
    return answer(desk, arguments)


def _pending(desk: Desk, only: PendingKind | None = None) -> PendingPage:
    page: PendingPage = desk.call("review", only=only, limit=0 if only else 1)
    return page


def _text(blocks: list[str], arguments: Analyze, nothing: str, hint: str = "") -> str:
    visible = min(count_fitting(blocks, arguments.budget), arguments.limit)
    more = (
        f"{len(blocks) - visible} more: a higher limit or budget shows them."
        if visible < len(blocks)
        else ""
    )
    return frame("\n".join(blocks[:visible]) or nothing, hint if blocks else "", more)


def _about_links(desk: Desk, arguments: Analyze) -> dict[str, Any]:
    return {"limit": arguments.limit, "project": _project(desk, arguments)}


def _project(desk: Desk, arguments: Analyze) -> str | None:
    return next(iter(desk.projects(arguments.project)), None) if arguments.project else None


def _brief(desk: Desk, arguments: Analyze) -> str:
    brief: Brief = desk.call("graph-brief", project=_project(desk, arguments))
    pending = _pending(desk)
    lines = [
        *harmless(brief.text).splitlines(),
        f"{count(pending.conflicts, 'contradiction')} and "
        f"{count(pending.doubts, 'doubtful memory')} are pending review.",
    ]
    visible = count_fitting(lines, arguments.budget)
    return frame("\n".join(lines[:visible]))


def _central(desk: Desk, arguments: Analyze) -> str:
    report: Central = desk.call("graph-central", **_about_links(desk, arguments))
    blocks = [f"{_short(item.memory)}: {count(item.degree, 'link')}" for item in report.found]
    hint = f"{count(report.links, 'link')} in all; memory_graph follows them."
    return _text(blocks, arguments, "No memories are linked yet.", hint)


def _gaps(desk: Desk, arguments: Analyze) -> str:
    report: Gaps = desk.call("graph-gaps", **_about_links(desk, arguments))
    blocks = [
        f"{_short(gap.memory)}: {count(gap.degree, 'link')}, {gap.maturity.value}, idle {gap.idle_days} days"
        for gap in report.found
    ]
    hint = (
        f"{count(report.total, 'memory')} with at most one link, {report.unlinked:,} without links."
    )
    return _text(blocks, arguments, "Every memory has two links or more.", hint)


def _short(memory: Memory) -> str:
    mark = " (UNTRUSTED)" if memory.trust is Trust.UNTRUSTED else ""
    return f"- [{short_id(memory.id)}] {title_of(memory)}{mark}"


def _review(desk: Desk, arguments: Analyze) -> str:
    kinds = (PendingKind.CONFLICT, PendingKind.DOUBT)
    items = [item for kind in kinds for item in _pending(desk, kind).items]
    blocks = [
        f"- [{short_id(item.memory.id)}] {title_of(item.memory)}"
        + (f"\n  against [{short_id(item.newer.id)}] {title_of(item.newer)}" if item.newer else "")
        + f"\n  {item.why.replace('_', ' ')}"
        + (f", {plain_line(item.detail)}" if item.detail else "")
        for item in items
    ]
    hint = "The person decides; memory_retire removes memories that they call outdated."
    return _text(blocks, arguments, "Nothing is pending.", hint)


def _alike(desk: Desk, arguments: Analyze) -> str:
    report: Alike = desk.call("alike", limit=arguments.limit)
    blocks = ["\n".join(map(_short, group)) for group in report.groups]
    hint = (
        "Similar memories may differ. The person decides; memory_retire removes a memory that "
        "adds nothing to another."
    )
    return _text(blocks, arguments, "No memories are similar.", hint)


def _unanswered(desk: Desk, arguments: Analyze) -> str:
    report: Unanswered = desk.call("unanswered", limit=arguments.limit)
    blocks = [
        f"- “{plain_line(shorten(gap.question, _MAX_CHARACTERS))}” asked {count(gap.times, 'time')}, "
        f"last {shown_day(gap.last)}" + (f", of {', '.join(gap.projects)}" if gap.projects else "")
        for gap in report.gaps
    ]
    hint = (
        "Store an answer that you know with memory_store; the person sees the rest with nacre "
        "review gaps."
    )
    return _text(blocks, arguments, "Every question has an answer.", hint)


def _file(desk: Desk, arguments: Analyze) -> str:
    history: FileHistory = desk.call(
        "did", path=(arguments.subject or "").strip(), limit=arguments.limit
    )
    blocks = [_change(change) for change in history.changes]
    nothing = "No known session changed such a file."
    return _text(blocks, arguments, nothing, f"{count(history.edits, 'change')} in all.")


def _change(change: FileChange) -> str:
    day = f"{shown_day(change.time)} " if change.time else ""
    lines = [
        f"- {day}{harmless(change.path)}, {count(change.edits, 'edit')} in {short_session(change.session.id)}"
    ]
    if change.request:
        lines.append(f"  asked for: {harmless(shorten(change.request.text, _MAX_CHARACTERS))}")
    if change.words:
        lines.append(f"  the agent: {harmless(shorten(change.words.text, _MAX_CHARACTERS))}")
    return "\n".join(lines)


def _error(desk: Desk, arguments: Analyze) -> str:
    result: FixResult = desk.call("fix", error=arguments.subject or "", limit=arguments.limit)
    blocks = [_trouble(trouble) for trouble in result.troubles]
    blocks += [
        f"- lesson [{short_id(hit.memory.id)}]:\n{indent(hit.memory.content)}"
        for hit in result.lessons
    ]
    return _text(blocks, arguments, "No known session has such an error.")


def _trouble(trouble: Trouble) -> str:
    head = (
        f"- seen {count(trouble.times, 'time')}, fixed {trouble.mended} (tool output, UNTRUSTED):"
    )
    return "\n".join(
        [head, indent(shorten(trouble.error, _MAX_CHARACTERS)), *map(_repair, trouble.repairs)]
    )


def _repair(repair: Repair) -> str:
    day = f"{shown_day(repair.time)} " if repair.time else ""
    worked = "worked" if repair.worked else "did not visibly work"
    steps = "; ".join(shorten(step.input or step.name, 100) for step in repair.steps)
    words = shorten(repair.words.text, _MAX_CHARACTERS) if repair.words else ""
    details = ": ".join(["", *filter(None, (steps, words))])
    return (
        f"  {day}in {short_session(repair.session.id)}, the attempt {worked}{plain_line(details)}"
    )


# -- ``memory_extract`` ----------------------------------------------------------------------------


def extract(desk: Desk, arguments: Extract) -> str:
    """Return the memories that a text or session would yield, without storing them."""
    if bool((arguments.text or "").strip()) == bool(arguments.session):
        raise InvalidInputError(
            "give either a text or a session",
            hint="memory_sessions with action list shows sessions",
        )
    desk.tell("reading")
    proposals: list[Proposal] = desk.call(
        "extract",
        text=arguments.text or "",
        session=arguments.session,
        model=None if arguments.by_model else "none",
    )
    blocks = [_block(candidate) for proposal in proposals for candidate in proposal.candidates]
    problems = [proposal.asked.problem or "" for proposal in proposals if proposal.asked]
    problem = next(filter(None, problems), "")
    visible = count_fitting(blocks, arguments.budget)
    return frame(
        "It would yield no memories."
        if not blocks
        else "Proposed memories (not stored). Store the correct and useful ones with memory_store:",
        "\n".join(blocks[:visible]),
        f"{len(blocks) - visible} more: ask with a higher budget." if visible < len(blocks) else "",
        f"The model failed, so rules were used: {plain_line(problem)}." if problem else "",
    )


def _block(candidate: Candidate) -> str:
    outside = ", UNTRUSTED" if candidate.trust is Trust.UNTRUSTED else ""
    maybe = ", only a candidate" if candidate.held else ""
    head = f"- {candidate.kind.value}, importance {candidate.importance}{outside}{maybe}: {harmless(candidate.subject)}"
    return f"{one_line(head)}\n{indent(candidate.content)}"


# -- ``memory_store`` and ``memory_retire`` --------------------------------------------------------


_ACTION_LABELS = {
    "stored": "Stored",
    "known": "Already known; confirmed",
    "updated": "Merged into a known memory",
    "retired": "Retired at once by a standing retirement",
}


def store(desk: Desk, arguments: Store) -> str:
    """Store memories. If one cannot be stored, the others still are."""
    project, is_known = _project_keeping(desk, arguments.project)
    folder = None
    if desk.folder and not project and not _is_global(arguments.project):
        # Only a repository identifies a project.
        folder = desk.folder if location.locate(desk.folder).is_repository else None
    lines, failed = [], None
    for number, entry in enumerate(arguments.entries, start=1):
        desk.tell(f"storing {number} of {len(arguments.entries)}")
        try:
            outcome: StoreOutcome = desk.call("store", **_new(desk, entry, project, folder))
        except NacreError as error:
            failed = error
            lines.append(f"- not stored: {plain_line(error.message)}")
            continue
        lines.append(_outcome(outcome))
    if failed and len(arguments.entries) == 1:
        raise failed
    fresh = (
        ""
        if is_known
        else f"{harmless(project or '')} is a new project; if it is another name of a known one, store them there."
    )
    return frame_report(*lines, fresh)


def _project_keeping(desk: Desk, name: str | None) -> tuple[str | None, bool]:
    if _is_global(name):
        return None, True
    if name is not None and name.strip() == "*":
        raise InvalidInputError(
            "a memory belongs to one project", hint='name the project, or write "global"'
        )
    place = desk.place(name)
    return place.project, place.is_known


def _is_global(name: str | None) -> bool:
    return name is not None and name.strip().lower() == GLOBAL


def _new(desk: Desk, entry: NewEntry, project: str | None, folder: str | None) -> dict[str, Any]:
    fields = {
        name: getattr(entry, name) for name in entry.__struct_fields__ if name != "from_outside"
    }
    return fields | {
        "project": project,
        "folder": folder,
        "speaker": Speaker.AGENT,
        "trust": Trust.UNTRUSTED if entry.from_outside else Trust.TRUSTED,
        "source": Source(session=desk.session),
    }


def _outcome(outcome: StoreOutcome) -> str:
    line = f"- [{short_id(outcome.memory_id)}] {_ACTION_LABELS.get(outcome.action, outcome.action)}"
    for replaced in outcome.supersedes:
        line += f"; replaces [{short_id(replaced.memory.id)}] {title_of(replaced.memory, 80)}"
    if outcome.superseded_by:
        newer = outcome.superseded_by.memory
        line += f"; contradicted by a newer memory: [{short_id(newer.id)}] {title_of(newer, 80)}"
    if outcome.similar and outcome.action == "stored":
        closest = outcome.similar[0]
        line += f"; similar to [{short_id(closest.id)}] {title_of(closest, 80)}: retire the outdated one"
    if outcome.note:
        line += f" ({plain_line(outcome.note)})"
    if outcome.proposed:
        line += "; as your proposal: found by search only, until the person keeps it in review or says it"
    return line + "."


def retire(desk: Desk, arguments: Retire) -> str:
    """Retire memories. If one cannot be retired, none is."""
    pattern = next((item for item in arguments.ids if "*" in item), None)
    if pattern:
        raise InvalidInputError(
            f"{pattern!r} is a pattern", hint="name each memory by its id; memory_search shows ids"
        )
    with desk.naming("memory_search shows the ids of memories"):
        retired: list[Memory] = desk.call(
            "retire", references=arguments.ids, reason=arguments.reason, persist=arguments.persist
        )
    removed = [_short(item) for item in retired if item.retired]
    proposed = [_short(item) for item in retired if not item.retired]
    done = "Retired; the files are kept, and the person can restore them:"
    kept = "Not retired, because they are the person's words. Your proposals are pending review:"
    return frame_report(done if removed else "", *removed, kept if proposed else "", *proposed)


# -- ``memory_graph`` -------------------------------------------------------------------------------


def graph(desk: Desk, arguments: Graph) -> str:
    """Show or change links between memories, or answer a question about code."""
    actions = {
        "traverse": _traverse,
        "list": _list,
        "link": _link,
        "unlink": _unlink,
        "invalidate": _unlink,
        "bulk_link": _bulk_link,
    }
    if arguments.action not in actions:
        return plugin_tool(arguments.action)(desk, arguments)
    with desk.naming("memory_search shows the ids of memories"):
        return actions[arguments.action](desk, arguments)


def _traverse(desk: Desk, arguments: Graph) -> str:
    tree: Traversal = desk.call(
        "graph-show",
        reference=_required(arguments, "id"),
        depth=arguments.depth,
        direction=arguments.direction,
        relations=arguments.relations,
        as_of=arguments.as_of,
        limit=arguments.limit,
    )
    lines = [_hop(tree, hop) for hop in tree.hops]
    visible = count_fitting(lines, arguments.budget)
    more = "more: a higher budget or limit, fewer relations or a smaller depth."
    return frame(
        f"{_node(tree.nodes[0])}: {count(len(lines), 'link')}.",
        "\n".join(lines[:visible]),
        f"{len(lines) - visible} {more}"
        if visible < len(lines)
        else f"There are {more}"
        if tree.more
        else "",
    )


def _list(desk: Desk, arguments: Graph) -> str:
    relations = (arguments.relation,) if arguments.relation else arguments.relations
    page: LinkPage = desk.call(
        "graph-list",
        reference=arguments.id,
        relations=relations,
        origins=arguments.origins,
        as_of=arguments.as_of,
        limit=arguments.limit,
    )
    lines = [_line(link) for link in page.links]
    visible = count_fitting(lines, arguments.budget)
    total = f"{count(page.total, 'link')} in all."
    return frame("\n".join(lines[:visible]) or "No such link.", total)


def _link(desk: Desk, arguments: Graph) -> str:
    relation = _required(arguments, "relation")
    if relation not in {option.value for option in Relation}:
        raise InvalidInputError(
            f"{relation!r} is not a relation",
            hint=f"one of: {', '.join(option.value for option in Relation)}",
        )
    _required(arguments, "id")
    _required(arguments, "to")
    return _create(desk, arguments, (arguments,))


def _create(desk: Desk, arguments: Graph, edges: Sequence[Any]) -> str:
    links = tuple(
        NewLink(
            source=edge.id.strip(),
            relation=Relation(edge.relation.strip()),
            target=edge.to.strip(),
            strength=edge.strength,
            since=edge.valid_from,
            until=edge.valid_to,
            reason=edge.reason,
        )
        for edge in edges
    )
    return _format_change(desk.call("graph-link", links=links), arguments)


def _bulk_link(desk: Desk, arguments: Graph) -> str:
    if not arguments.links:
        raise InvalidInputError(
            "bulk_link needs a list of links",
            hint='links: [{"id": …, "relation": "depends_on", "to": …}]',
        )
    return _create(desk, arguments, arguments.links)


def _unlink(desk: Desk, arguments: Graph) -> str:
    change = desk.call(
        "graph-unlink",
        source=_required(arguments, "id"),
        target=_required(arguments, "to"),
        relation=arguments.relation or None,
        ends=arguments.action == "invalidate",
        at=arguments.at,
    )
    return _format_change(change, arguments)


def _required(arguments: Graph, name: str) -> str:
    value: str | None = getattr(arguments, name)
    if not value or not value.strip():
        raise InvalidInputError(
            f"the action {arguments.action} needs {name}",
            hint="link needs id, relation and to; traverse needs an id",
        )
    return value.strip()


def _format_change(change: LinkChange, arguments: Graph) -> str:
    proposed = (
        f"{count(len(change.waiting), 'memory is', 'memories are')} the person's own: your changes to their "
        "links are pending review."
    )
    head = "" if change.waiting else "Nothing to change."
    lines = [_line(link) for link in change.links]
    return frame(
        f"Links: {change.counts}." if change.counts else head,
        proposed if change.waiting else "",
        "\n".join(lines[: count_fitting(lines, arguments.budget)]),
    )


def _hop(tree: Traversal, hop: Hop) -> str:
    parent, child = tree.nodes[hop.parent], tree.nodes[hop.child]
    arrow = f"{hop.rel} →" if hop.is_outgoing else f"← {hop.rel}"
    again = " (shown above)" if hop.is_again else ""
    return f"[{short_id(parent.id)}] {plain_line(arrow)} {_node(child)}{_facts(hop)}{again}"


def _line(link: LinkLine) -> str:
    return f"{_node(link.source)} {plain_line(link.rel)} → {_node(link.target)}{_facts(link)}"


def _node(node: Node) -> str:
    name = node.id if node.state == "code" else short_id(node.id)
    mark = (
        " (UNTRUSTED)"
        if not node.trusted
        else f" ({node.state})"
        if node.state in ("superseded", "retired")
        else ""
    )
    return f"[{harmless(name)}] {plain_line(shorten(node.subject or 'unknown', 80))}{mark}"


def _facts(link: Hop | LinkLine) -> str:
    days = (("from", link.valid.since), ("until", link.valid.until))
    parts = [
        f"{link.strength:g}" if link.strength != USUAL_STRENGTH else "",
        link.origin,
        *(f"{word} {day}" for word, day in days if day),
        plain_line(link.reason) if link.reason else "",
    ]
    facts = ", ".join(filter(None, parts))
    return f" ({facts})" if facts else ""
