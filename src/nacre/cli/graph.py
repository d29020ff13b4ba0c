"""``nacre graph``: links between memories, and analyses of the links."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import Group, Paper, Run, Span, bold, cells, cut, dim, joined
from nacre.cli.hits import link_facts
from nacre.cli.operations import ask, perform
from nacre.cli.options import argument, count, flag, option, options, short_id
from nacre.errors import InvalidInputError
from nacre.memories import graph as memories_graph
from nacre.memories.graph import (
    Gaps,
    Hop,
    LinkChange,
    LinkLine,
    LinkPage,
    NewLink,
    Node,
    Relation,
    Traversal,
)

if TYPE_CHECKING:
    from datetime import date


@click.group(
    "graph",
    cls=Group,
    places={"edges": "review:edges"},
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
@options("graph-gaps", "limit", "project")
def gaps(run: Run, **asked: Any) -> None:
    """List memories with at most one link, most used first.

    nacre graph link adds a link; nacre review reflect asks about memories that may be related.
    """
    run.present(ask(run, memories_graph.Gaps, "graph-gaps", **asked), _render_gaps)


@graph.command("brief", examples=["nacre graph brief", "nacre graph brief --project acme-billing"])
@options("graph-brief", "project")
def brief(run: Run, **asked: Any) -> None:
    """Summarise the memories and their links."""
    found = ask(run, memories_graph.Brief, "graph-brief", **asked)
    run.answer(found, Paper.body, found.text)


def _render_gaps(paper: Paper, found: Gaps) -> None:
    if not found.found:
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
        for item in found.found
    ]
    paper.table(rows, header=("maturity", "links", "idle", "id", "project", "memory"), drop=(4,))
    paper.note(
        f"{count(found.total, 'memory', 'memories')} with at most one link, {found.unlinked:,} without"
    )


_LEAST_TITLE = 24
_KEYS = {
    "from": "source",
    "rel": "relation",
    "rel_type": "relation",
    "to": "target",
    "valid_from": "since",
    "valid_to": "until",
}
"""Alternative field names for links in a file, from the front matter of nacre and agent-knowledge."""


@graph.command(
    "link",
    examples=[
        "nacre graph link 5f0c2a4d depends_on 91d0a4be",
        'nacre graph link 5f0c2a4d part_of "Billing" --strength 0.9 --reason "it records the bills"',
        "nacre graph link --file edges.jsonl",
    ],
)
@argument(NewLink, "source", metavar="[A", required=False)
@argument(NewLink, "relation", metavar="REL", required=False)
@argument(NewLink, "target", metavar="B]", required=False)
@options(NewLink, "strength")
@option(NewLink, "since", "--from")
@option(NewLink, "until", "--to")
@options(NewLink, "reason", "origin")
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Add all links in a file of JSON lines with source, relation and target.",
)
def link(run: Run, file: Path | None, **asked: Any) -> None:
    """Link one memory to another.

    REL says how A relates to B: related_to, depends_on, specializes, part_of, alternative_to, builds_on, elaborates,
    supersedes (B is out of date) or contradicts (pending in nacre review). nacre undo reverts it.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    if (file is None) == (not given):
        raise click.UsageError("pass A, REL and B, or --file")
    if file is None and not {"source", "relation", "target"} <= given.keys():
        raise click.UsageError("a link requires A, REL and B")
    links = _read_links(file) if file else [given]
    run.present(perform(run, memories_graph.link, links=links), _render_change)


@graph.command(
    "unlink",
    examples=[
        "nacre graph unlink 5f0c2a4d depends_on 91d0a4be",
        "nacre graph unlink 5f0c2a4d depends_on 91d0a4be --at 2026-10-01",
        "nacre graph unlink --origin import --yes",
    ],
)
@argument("graph-unlink", "source", metavar="[A", required=False)
@argument("graph-unlink", "relation", metavar="[REL]", required=False)
@argument("graph-unlink", "target", metavar="B]", required=False)
@option(
    "graph-unlink-origin",
    "origin",
    required=False,
    help="Remove all links of this origin, such as import.",
)
@option(
    "graph-unlink-origin", "project", help="With --origin: only links of this project's memories."
)
@option(
    "graph-invalidate",
    "at",
    help="End the link on this day (2026-10-01, today) instead of removing it.",
)
@flag("--yes", "With --origin: do not ask.", "-y")
def unlink(
    run: Run, /, origin: str | None, project: str | None, at: date | None, yes: bool, **asked: Any
) -> None:
    """Remove a link, all links between two memories, or all links of an origin.

    With --at, recall and lists ignore the link from that day on, but --as-of an earlier day still includes it.
    A memory that was superseded by the link becomes active again. nacre undo restores the link.
    """
    if (origin is None) == (asked["relation"] is None):
        raise click.UsageError("pass A and B, or --origin")
    done: LinkChange
    if at and origin:
        raise click.UsageError("--at requires A and B")
    if at:
        done = perform(run, memories_graph.invalidate, **_ends(asked), at=at)
    elif origin is None:
        done = perform(run, memories_graph.unlink, **_ends(asked))
    else:
        found = ask(
            run,
            memories_graph.LinkPage,
            "graph-list",
            origins=[origin],
            ended=True,
            project=project,
            limit=1,
        )
        question = f"Remove {count(found.total, 'link')} of origin {origin}?"
        run.confirm(question, yes=yes, refusal="not interactive: pass --yes")
        done = perform(run, memories_graph.unlink_origin, origin=origin, project=project)
    run.present(done, _render_change)


@graph.command(
    "list",
    examples=[
        "nacre graph list --of 5f0c2a4d",
        "nacre graph list --rel depends_on --as-of 2026-03-01",
        "nacre graph list --origin reflect --json",
    ],
)
@option("graph-list", "reference", "--of", metavar="ID")
@option("graph-list", "relations", "--rel")
@option("graph-list", "origins", "--origin")
@option("graph-list", "as_of")
@options("graph-list", "ended", "project", "limit", "offset")
def list_links(run: Run, **asked: Any) -> None:
    """List links, sorted from newest to oldest memory.

    Without --of, the list contains only links between active memories. --origin auto lists computed similarities, which
    are not links.
    """
    run.present(
        ask(run, memories_graph.LinkPage, "graph-list", **asked), _render_list, asked["offset"]
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
@options("graph-show", "depth", "direction")
@option("graph-show", "relations", "--rel")
@option("graph-show", "as_of")
@options("graph-show", "limit")
def show(run: Run, **asked: Any) -> None:
    """Show the links of a memory as a tree.

    Arrows show the direction. A memory that occurs again is marked ↑ and not expanded.
    """
    run.present(ask(run, memories_graph.Traversal, "graph-show", **asked), _render_tree)


def _ends(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that identify a link. With two arguments, the second one is the target."""
    if not asked["target"] and asked["relation"] in [item.value for item in Relation]:
        raise click.UsageError("pass A and B")
    return asked if asked["target"] else {**asked, "relation": None, "target": asked["relation"]}


def _read_links(file: Path) -> list[dict[str, Any]]:
    """Read links from a file of JSON lines. Raises InvalidInputError."""
    with click.open_file(str(file), encoding="utf-8", errors="replace") as lines:
        return [_read_link(line, at) for at, line in enumerate(lines, 1) if line.strip()]


def _read_link(line: str, at: int) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InvalidInputError(
            f"line {at} is not a JSON object",
            hint='{"source": "…", "relation": "…", "target": "…"}',
        )
    link = {
        _KEYS.get(str(name), str(name)): value
        for name, value in values.items()
        if value is not None
    }
    if unknown := sorted(link.keys() - set(NewLink.__struct_fields__)):
        raise InvalidInputError(
            f"line {at}: unknown key {unknown[0]!r}",
            hint=f"keys: {', '.join(NewLink.__struct_fields__)}",
        )
    return link


def _render_change(paper: Paper, done: LinkChange) -> None:
    changes = [
        f"{number:,} {word}"
        for number, word in (
            (done.made, "new"),
            (done.changed, "changed"),
            (done.removed, "removed"),
        )
        if number
    ]
    if changes:
        paper.line(bold("Links: "), joined(changes, ", "))
    elif not done.waiting:
        paper.line("Nothing to change.")
    for item in done.links[:_MOST_SHOWN]:
        _line(paper, item)
    paper.more(len(done.links) - _MOST_SHOWN)
    if done.waiting:
        paper.line(
            f"This changes {count(len(done.waiting), 'memory', 'memories')} of the owner: pending in nacre review."
        )


_MOST_SHOWN = 10


def _render_list(paper: Paper, found: LinkPage, offset: int) -> None:
    if not found.links:
        more = f"No more: {count(found.total, 'link')} in all."
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
        for item in found.links
    ]
    paper.table(rows)
    shown = offset + len(found.links)
    if shown < found.total or offset:
        more = f"; --offset {shown} shows more" if shown < found.total else ""
        paper.note(f"{offset + 1:,} to {shown:,} of {count(found.total, 'link')}{more}")
    else:
        paper.note(count(found.total, "link"))


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
    told = node.subject or (node.id.rpartition("/")[2] if node.state == "code" else "not known")
    return told if node.trusted else f"{told} (from outside)"


def _name(node: Node) -> str:
    return node.id if node.state == "code" else node.id[-8:]


def _render_tree(paper: Paper, found: Traversal) -> None:
    children: dict[int, list[Hop]] = {}
    for hop in found.hops:
        children.setdefault(hop.parent, []).append(hop)
    root = found.nodes[0]
    paper.line(bold(_title(root)), dim(f"  {_name(root)}{_state(root)}"))
    _branches(paper, found, children, 0, "")
    told = f"{count(len(found.nodes) - 1, 'memory', 'memories')}, {count(len(found.hops), 'link')}"
    more = f"{told}; raise --limit for more" if found.more else told
    paper.note(more if found.hops else "No links; nacre graph link adds one.")
    if found.together:
        paper.heading("Used together with")
        rows = [
            (f"{item.weight:.2f}", dim(_name(item.node)), _title(item.node))
            for item in found.together
        ]
        paper.table(rows, indent=2)


def _branches(
    paper: Paper, found: Traversal, children: Mapping[int, Sequence[Hop]], at: int, margin: str
) -> None:
    below = children.get(at, ())
    for number, hop in enumerate(below):
        is_last = number == len(below) - 1
        _branch(paper, found.nodes[hop.child], hop, margin + ("└─ " if is_last else "├─ "))
        if not hop.is_again:
            _branches(paper, found, children, hop.child, margin + ("   " if is_last else "│  "))


def _branch(paper: Paper, node: Node, hop: Hop, margin: str) -> None:
    relation = f"{hop.rel} → " if hop.is_outgoing else f"← {hop.rel} "
    facts = link_facts(hop)
    told = f"  {_name(node)}{_state(node)}{' ↑' if hop.is_again else ''}{f'  ({facts})' if facts else ''}"
    left = paper.width - cells(margin) - cells(relation) - cells(told)
    title = cut(_title(node), max(_LEAST_TITLE, left))
    paper.line(
        dim(_whole(margin)), Span(_whole(relation), "cyan"), title, dim(told), hang=len(margin)
    )


def _whole(text: str) -> str:
    """Prevent the wrapping of a text."""
    return text.replace(" ", "\u00a0")


def _state(node: Node) -> str:
    return f" {node.state}" if node.state in ("superseded", "retired") else ""
