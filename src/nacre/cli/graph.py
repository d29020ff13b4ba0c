"""``nacre graph``: links between memories, and analyses of the links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import Group, Paper, Run, Span, bold, cells, cut, dim
from nacre.cli.hits import link_facts
from nacre.cli.options import argument, ask, count, option, perform, short_id
from nacre.memories import graph as memories_graph
from nacre.memories.graph import Gaps, Hop, LinkChange, LinkLine, LinkPage, NewLink, Node, Traversal

if TYPE_CHECKING:
    from datetime import date


@click.group(
    "graph",
    cls=Group,
    extras=dict.fromkeys(
        ("about", "callers", "impact", "importers", "ingest-code", "stale"), "code"
    ),
    examples=[
        "nacre graph show 5f0c2a4d",
        "nacre graph link 5f0c2a4d depends_on 91d0a4be",
        "nacre graph gaps",
    ],
)
def graph() -> None:
    """Link memories, follow links and analyse them.

    A link is stored in the front matter of its source memory.
    """


@graph.command(
    "gaps", examples=["nacre graph gaps", "nacre graph gaps --project acme-billing --limit 30"]
)
@option("graph-gaps", "limit", "project")
def gaps(run: Run, **request: Any) -> None:
    """List memories with at most one link, most used first.

    nacre graph link adds a link.
    """
    run.present(ask(run, memories_graph.Gaps, "graph-gaps", **request), _render_gaps)


@graph.command("brief", examples=["nacre graph brief", "nacre graph brief --project acme-billing"])
@option("graph-brief", "project")
def brief(run: Run, **request: Any) -> None:
    """Summarise the memories and their links."""
    report = ask(run, memories_graph.Brief, "graph-brief", **request)
    run.answer(report, Paper.body, report.text)


def _render_gaps(paper: Paper, page: Gaps) -> None:
    if not page.found:
        paper.line("All memories have at least two links.")
        return
    rows = [
        (
            item.maturity.value,
            count(item.degree, "link"),
            f"{item.idle_days} d",
            dim(short_id(item.memory)),
            item.memory.project or "",
            item.memory.subject,
        )
        for item in page.found
    ]
    paper.table(rows, header=("maturity", "links", "idle", "id", "project", "memory"), drop=(4,))
    paper.note(f"{count(page.total, 'memory')} with at most one link, {page.unlinked:,} without")


@graph.command(
    "link",
    examples=[
        "nacre graph link 5f0c2a4d depends_on 91d0a4be",
        'nacre graph link 5f0c2a4d part_of "Billing" --strength 0.9 --reason "it records the bills"',
    ],
)
@argument(NewLink, "source", metavar="A")
@argument(NewLink, "relation", metavar="REL")
@argument(NewLink, "target", metavar="B")
@option(NewLink, "strength")
@option(NewLink, "since", "--from")
@option(NewLink, "until", "--to")
@option(NewLink, "reason", "origin")
def link(run: Run, **request: Any) -> None:
    """Link one memory to another.

    REL says how A relates to B: related_to, depends_on, specializes, part_of, alternative_to, builds_on, elaborates,
    supersedes (B is out of date) or contradicts (pending in nacre review). nacre undo reverts it.
    """
    fields = {name: value for name, value in request.items() if value is not None}
    run.present(perform(run, memories_graph.link, links=[fields]), _render_change)


@graph.command(
    "unlink",
    examples=[
        "nacre graph unlink 5f0c2a4d depends_on 91d0a4be",
        "nacre graph unlink 5f0c2a4d depends_on 91d0a4be --at 2026-10-01",
    ],
)
@argument("graph-unlink", "source", metavar="A")
@argument("graph-unlink", "relation", metavar="[REL]")
@argument("graph-unlink", "target", metavar="B", required=False)
@option(
    "graph-unlink",
    "at",
    help="End the link on this day (2026-10-01, today) instead of removing it.",
)
def unlink(run: Run, /, at: date | None, **request: Any) -> None:
    """Remove a link, or all links between two memories.

    With --at, recall and lists ignore the link from that day on, but --as-of an earlier day still includes it.
    A memory that was superseded by the link becomes active again. nacre undo restores the link.
    """
    if not request["target"]:
        if request["relation"] in [item.value for item in memories_graph.Relation]:
            raise click.UsageError("name both memories: nacre graph unlink A B")
        request |= {"relation": None, "target": request["relation"]}
    if at:
        request |= {"ends": True, "at": at}
    run.present(perform(run, memories_graph.unlink, **request), _render_change)


@graph.command(
    "list",
    examples=[
        "nacre graph list --of 5f0c2a4d",
        "nacre graph list --rel depends_on --as-of 2026-03-01",
        "nacre graph list --origin import --json",
    ],
)
@option("graph-list", "reference", "--of", metavar="ID")
@option("graph-list", "relations", "--rel")
@option("graph-list", "origins", "as_of", "ended", "project", "limit", "offset")
def list_links(run: Run, **request: Any) -> None:
    """List links, sorted from newest to oldest memory.

    Without --of, the list contains only links between active memories. --origin auto lists computed similarities, which
    are not links.
    """
    run.present(
        ask(run, memories_graph.LinkPage, "graph-list", **request), _render_list, request["offset"]
    )


@graph.command(
    "show",
    examples=[
        "nacre graph show 5f0c2a4d",
        "nacre graph show 5f0c2a4d --depth 4 --direction outbound --rel depends_on",
        "nacre graph show 5f0c2a4d --as-of 2026-03-01",
    ],
)
@argument("graph-show", "reference", metavar="ID")
@option("graph-show", "depth", "direction")
@option("graph-show", "relations", "--rel")
@option("graph-show", "as_of", "limit")
def show(run: Run, **request: Any) -> None:
    """Show the links of a memory as a tree.

    Arrows show the direction. A memory that occurs again is marked ↑ and not expanded.
    """
    run.present(ask(run, memories_graph.Traversal, "graph-show", **request), _render_tree)


def _render_change(paper: Paper, change: LinkChange) -> None:
    if change.counts:
        paper.title("Links: ", change.counts)
    elif not change.waiting:
        paper.line("Nothing to change.")
    for item in change.links[:_MAX_LINKS]:
        _line(paper, item)
    paper.more(len(change.links) - _MAX_LINKS)
    if change.waiting:
        paper.line(
            f"This changes {count(len(change.waiting), 'memory')} of the owner: pending in nacre review."
        )


_MAX_LINKS = 10


def _render_list(paper: Paper, page: LinkPage, offset: int) -> None:
    if not page.links:
        more = f"No more: {count(page.total, 'link')} in all."
        paper.line(more if offset else "No such link; nacre graph link adds one.")
        return
    rows = [
        (
            _name(item.source),
            bold(item.rel),
            _name(item.target),
            dim(link_facts(item)),
            f"{_title(item.source)} → {_title(item.target)}",
        )
        for item in page.links
    ]
    paper.table(rows)
    end = offset + len(page.links)
    if end < page.total or offset:
        more = f"; --offset {end} shows more" if end < page.total else ""
        paper.note(f"{offset + 1:,} to {end:,} of {count(page.total, 'link')}{more}")
    else:
        paper.note(count(page.total, "link"))


def _line(paper: Paper, line: LinkLine) -> None:
    facts = link_facts(line)
    paper.line(
        _title(line.source),
        dim(f" {_name(line.source)}  "),
        bold(line.rel),
        "  ",
        _title(line.target),
        dim(f" {_name(line.target)}"),
        dim(f"  ({facts})" if facts else ""),
        indent=2,
    )


def _title(node: Node) -> str:
    title = node.subject or (node.id.rpartition("/")[2] if node.state == "code" else "not known")
    return title if node.trusted else f"{title} (from outside)"


def _name(node: Node) -> str:
    return node.id if node.state == "code" else node.id[-8:]


def _render_tree(paper: Paper, tree: Traversal) -> None:
    children: dict[int, list[Hop]] = {}
    for hop in tree.hops:
        children.setdefault(hop.parent, []).append(hop)
    root = tree.nodes[0]
    paper.title(_title(root), dim(f"  {_name(root)}{_state(root)}"))
    _branches(paper, tree, children, 0, "")
    counts = f"{count(len(tree.nodes) - 1, 'memory')}, {count(len(tree.hops), 'link')}"
    more = f"{counts}; raise --limit for more" if tree.more else counts
    paper.note(more if tree.hops else "No links; nacre graph link adds one.")


def _branches(
    paper: Paper, tree: Traversal, children: Mapping[int, Sequence[Hop]], at: int, margin: str
) -> None:
    below = children.get(at, ())
    for number, hop in enumerate(below):
        is_last = number == len(below) - 1
        _branch(paper, tree.nodes[hop.child], hop, margin + ("└─ " if is_last else "├─ "))
        if not hop.is_again:
            _branches(paper, tree, children, hop.child, margin + ("   " if is_last else "│  "))


def _branch(paper: Paper, node: Node, hop: Hop, margin: str) -> None:
    relation = f"{hop.rel} → " if hop.is_outgoing else f"← {hop.rel} "
    facts = link_facts(hop)
    details = f"  {_name(node)}{_state(node)}{' ↑' if hop.is_again else ''}{f'  ({facts})' if facts else ''}"
    room = paper.width - cells(margin) - cells(relation) - cells(details)
    title = cut(_title(node), max(24, room))
    paper.line(
        dim(_unbreakable(margin)),
        Span(_unbreakable(relation), "cyan"),
        title,
        dim(details),
        hang=len(margin),
    )


def _unbreakable(text: str) -> str:
    return text.replace(" ", "\u00a0")


def _state(node: Node) -> str:
    return f" {node.state}" if node.state in ("superseded", "retired") else ""
