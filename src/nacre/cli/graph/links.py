"""``nacre graph``: links between memories; code and analyses have files of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import Group
from nacre.cli.formats import Record, count
from nacre.cli.memories.memory import link_facts
from nacre.cli.moment import SAID_DAY
from nacre.cli.operations import ask, perform
from nacre.cli.options import find_project
from nacre.cli.paper import Paper, Span, bold, cells, cut, dim, joined
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.errors import InvalidInput
from nacre.graph.requests import NewLink, Relation
from nacre.values.codec import plain

if TYPE_CHECKING:
    from nacre.graph.values import Companion, Hop, LinkChange, LinkLine, LinkPage, Node, Traversal

_LEAST_TITLE = 24
_ANALYSES, _CODE = "graph.analysis", "graph.code"
_KEYS = {
    "from": "source", "rel": "relation", "rel_type": "relation", "to": "target", "valid_from": "since",
    "valid_to": "until",
}  # fmt: skip
"""Other names of the fields of a link in a file: nacre's front matter, and agent-knowledge's."""


@click.group(
    "graph",
    cls=Group,
    places={
        **{name: f"{_ANALYSES}:{name}" for name in ("central", "gaps", "components", "brief")},
        **{
            name: f"{_CODE}:{name.replace('-', '_')}"
            for name in ("about", "callers", "forget-code", "impact", "importers", "ingest-code", "stale")
        },
    },
    examples=["nacre graph show 5f0c2a4d", "nacre graph link 5f0c2a4d depends_on 91d0a4be", "nacre graph gaps"],
)
def graph() -> None:
    """Link memories, follow the links, and analyse them.

    A link is stored in the front matter of the memory that it starts from, so that it survives a rebuild and a sync.
    """


@graph.command(
    "link",
    examples=[
        "nacre graph link 5f0c2a4d depends_on 91d0a4be",
        'nacre graph link 5f0c2a4d part_of "Billing" --strength 0.9 --reason "it is the ledger of it"',
        "nacre graph link --file edges.jsonl",
    ],
)
@argument(NewLink, "source", metavar="[A", required=False)
@argument(NewLink, "relation", metavar="REL", required=False)
@argument(NewLink, "target", metavar="B]", required=False)
@options(NewLink, "strength")
@option(NewLink, "since", "--from", type=SAID_DAY)
@option(NewLink, "until", "--to", type=SAID_DAY)
@options(NewLink, "reason", "origin")
@click.option(
    "--file", "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Links as JSON lines with source, relation, target; all of them are drawn or none.",
)  # fmt: skip
@click.pass_obj
def link(run: Run, /, file: Path | None, **asked: Any) -> None:
    """Draw a link from one memory to another.

    REL says how A relates to B: related_to, depends_on, specializes, part_of, alternative_to, builds_on, elaborates,
    supersedes (B ends) or contradicts (it waits in nacre review). nacre undo takes it back.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    if (file is None) == (not given):
        raise click.UsageError("give A, REL and B, or --file")
    if file is None and not {"source", "relation", "target"} <= given.keys():
        raise click.UsageError("a link needs A, REL and B")
    links = _read_links(file) if file else [given]
    done: LinkChange = perform(run, "graph-link", links=links)
    run.answer(_change_record(done), lambda paper: _render_change(paper, done))


@graph.command(
    "unlink",
    examples=[
        "nacre graph unlink 5f0c2a4d depends_on 91d0a4be", "nacre graph unlink --origin import --yes",
    ],
)  # fmt: skip
@argument("graph-unlink", "source", metavar="[A", required=False)
@argument("graph-unlink", "relation", metavar="[REL]", required=False)
@argument("graph-unlink", "target", metavar="B]", required=False)
@option("graph-unlink-origin", "origin", required=False, help="Instead: all links of this origin, e.g. import.")
@option("graph-unlink-origin", "project", help="With --origin: only those of memories of this project.")
@click.option("--yes", "-y", is_flag=True, help="With --origin: do not ask.")
@click.pass_obj
def unlink(run: Run, /, origin: str | None, project: str | None, yes: bool, **asked: Any) -> None:
    """Remove a link, all links between two memories, or all of one origin.

    A memory that A superseded by that link is active again. nacre undo brings the link back.
    """
    if (origin is None) == (asked["relation"] is None):
        raise click.UsageError("give A and B, or --origin")
    if origin is None:
        done: LinkChange = perform(run, "graph-unlink", **_ends(asked))
    else:
        project = find_project(run, project)
        found: LinkPage = ask(run, "graph-list", origins=[origin], ended=True, project=project, limit=1)
        question = f"Remove {count(found.total, 'link')} of origin {origin}?"
        run.confirm(question, yes=yes, refusal="not interactive: pass --yes")
        done = perform(run, "graph-unlink-origin", origin=origin, project=project)
    run.answer(_change_record(done), lambda paper: _render_change(paper, done))


@graph.command(
    "invalidate",
    examples=[
        "nacre graph invalidate 5f0c2a4d depends_on 91d0a4be",
        "nacre graph invalidate 5f0c2a4d depends_on 91d0a4be --at 2026-10-01",
    ],
)
@argument("graph-invalidate", "source", metavar="A")
@argument("graph-invalidate", "relation", metavar="[REL]", required=True)
@argument("graph-invalidate", "target", metavar="B", required=False)
@option("graph-invalidate", "at", type=SAID_DAY)
@click.pass_obj
def invalidate(run: Run, /, **asked: Any) -> None:
    """End a link, or all links between two memories, and keep them.

    Recall and lists leave it out from that day on; --as-of with an earlier day shows it.
    """
    done: LinkChange = perform(run, "graph-invalidate", **_ends(asked))
    run.answer(_change_record(done), lambda paper: _render_change(paper, done))


@graph.command(
    "list",
    examples=[
        "nacre graph list --of 5f0c2a4d", "nacre graph list --rel depends_on --as-of 2026-03-01",
        "nacre graph list --origin reflect --json",
    ],
)  # fmt: skip
@option("graph-list", "reference", "--of", metavar="ID")
@option("graph-list", "relations", "--rel")
@option("graph-list", "origins", "--origin")
@option("graph-list", "as_of", type=SAID_DAY)
@options("graph-list", "ended", "project", "limit", "offset")
@click.pass_obj
def list_links(run: Run, /, **asked: Any) -> None:
    """List links, those of the newest memories first.

    Without --of, those between active memories. Computed similarity is not a link: --origin auto lists it.
    """
    asked["project"] = find_project(run, asked["project"])
    found: LinkPage = ask(run, "graph-list", **asked)
    record = {"links": [_line_record(one) for one in found.links], "total": found.total, "limit": asked["limit"]}
    run.answer(record, lambda paper: _render_list(paper, found, asked["offset"]))


@graph.command(
    "show",
    examples=[
        "nacre graph show 5f0c2a4d", "nacre graph show 5f0c2a4d --depth 4 --direction outbound --rel depends_on",
        "nacre graph show 5f0c2a4d --as-of 2026-03-01",
    ],
)  # fmt: skip
@argument("graph-show", "reference", metavar="ID")
@options("graph-show", "depth", "direction")
@option("graph-show", "relations", "--rel")
@option("graph-show", "as_of", type=SAID_DAY)
@options("graph-show", "limit")
@click.pass_obj
def show(run: Run, /, **asked: Any) -> None:
    """Show the links of a memory as a tree.

    An arrow shows the direction of a link. A memory that is reached a second time is marked ↑, and not followed again.
    """
    found: Traversal = ask(run, "graph-show", **asked)
    record = {
        "nodes": [_node_record(one) for one in found.nodes], "links": [_hop_record(one, found) for one in found.hops],
        "more": found.more, "together": [_companion_record(one) for one in found.together],
    }  # fmt: skip
    run.answer(record, lambda paper: _render_tree(paper, found))


def _ends(asked: dict[str, Any]) -> dict[str, Any]:
    """Two words name both ends of a link; with three, the second one is the relation."""
    if not asked["target"] and asked["relation"] in [one.value for one in Relation]:
        raise click.UsageError("give A and B")
    return asked if asked["target"] else {**asked, "relation": None, "target": asked["relation"]}


def _read_links(file: Path) -> list[dict[str, Any]]:
    """The links of a file in JSON lines. Raises InvalidInput."""
    with click.open_file(str(file), encoding="utf-8", errors="replace") as lines:
        return [_read_link(line, at) for at, line in enumerate(lines, 1) if line.strip()]


def _read_link(line: str, at: int) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InvalidInput(f"line {at} is not a JSON object", hint='{"source": "…", "relation": "…", "target": "…"}')
    link = {_KEYS.get(str(name), str(name)): value for name, value in values.items() if value is not None}
    if unknown := sorted(link.keys() - set(NewLink.__struct_fields__)):
        raise InvalidInput(
            f"line {at}: unknown key {unknown[0]!r}", hint=f"keys: {', '.join(NewLink.__struct_fields__)}"
        )
    return link


def _change_record(done: LinkChange) -> Record:
    return {
        "links": [_line_record(one) for one in done.links], "made": done.made, "changed": done.changed,
        "removed": done.removed, "waiting": list(done.waiting),
    }  # fmt: skip


def _line_record(one: LinkLine) -> Record:
    return {
        "source": _node_record(one.source), "rel": one.rel, "target": _node_record(one.target), "origin": one.origin,
        "strength": round(one.strength, 4), "valid": plain(one.valid), "reason": one.reason, "holds": one.holds,
    }  # fmt: skip


def _node_record(node: Node) -> Record:
    record: Record = plain(node)
    return record


def _companion_record(one: Companion) -> Record:
    return {"node": _node_record(one.node), "weight": round(one.weight, 4), "sessions": one.sessions}


def _hop_record(hop: Hop, found: Traversal) -> Record:
    ends = (found.nodes[hop.parent].id, found.nodes[hop.child].id)
    source, target = ends if hop.is_outgoing else ends[::-1]
    return {
        "source": source, "rel": hop.rel, "target": target, "origin": hop.origin, "strength": round(hop.strength, 4),
        "valid": plain(hop.valid), "reason": hop.reason, "parent": hop.parent, "child": hop.child,
        "again": hop.is_again,
    }  # fmt: skip


def _render_change(paper: Paper, done: LinkChange) -> None:
    """What became of links, and each of them where they are few."""
    told = [
        f"{number:,} {word}"
        for number, word in ((done.made, "new"), (done.changed, "changed"), (done.removed, "removed"))
        if number
    ]
    if told:
        paper.line(bold("Links: "), joined(told, ", "))
    elif not done.waiting:
        paper.line("Nothing to change.")
    for one in done.links[:_MOST_SHOWN]:
        _line(paper, one)
    if len(done.links) > _MOST_SHOWN:
        paper.line(dim(f"and {len(done.links) - _MOST_SHOWN:,} more"), indent=2)
    if done.waiting:
        paper.line(f"{count(len(done.waiting), 'memory', 'memories')} of the owner: the request waits in nacre review.")


_MOST_SHOWN = 10


def _render_list(paper: Paper, found: LinkPage, offset: int) -> None:
    """One link a line, and how many there are."""
    if not found.links:
        more = f"No more: {count(found.total, 'link')} in all."
        paper.line(more if offset else "No such link; nacre graph link draws one.")
        return
    rows = [
        (
            _name(one.source),
            bold(one.rel),
            _name(one.target),
            dim(link_facts(one)),
            f"{_title(one.source)} → {_title(one.target)}",
        )
        for one in found.links
    ]
    paper.table(rows)
    shown = offset + len(found.links)
    if shown < found.total or offset:
        more = f"; --offset {shown} shows more" if shown < found.total else ""
        paper.line(dim(f"{offset + 1:,} to {shown:,} of {count(found.total, 'link')}{more}"))
    else:
        paper.line(dim(count(found.total, "link")))


def _line(paper: Paper, one: LinkLine) -> None:
    facts = link_facts(one)
    paper.line(
        _title(one.source), dim(f" {_name(one.source)}  "), bold(one.rel), "  ", _title(one.target),
        dim(f" {_name(one.target)}"), dim(f"  ({facts})" if facts else ""), indent=2, hang=2,
    )  # fmt: skip


def _title(node: Node) -> str:
    told = node.subject or (node.id.rpartition("/")[2] if node.state == "code" else "not known")
    return told if node.trusted else f"{told} (from outside)"


def _name(node: Node) -> str:
    return node.id if node.state == "code" else node.id[-8:]


def _render_tree(paper: Paper, found: Traversal) -> None:
    """The memory, and below each one what it leads to."""
    children: dict[int, list[Hop]] = {}
    for hop in found.hops:
        children.setdefault(hop.parent, []).append(hop)
    root = found.nodes[0]
    paper.line(bold(_title(root)), dim(f"  {_name(root)}{_state(root)}"))
    _branches(paper, found, children, 0, "")
    told = f"{count(len(found.nodes) - 1, 'memory', 'memories')}, {count(len(found.hops), 'link')}"
    more = f"{told}; more lie beyond --limit" if found.more else told
    paper.line(dim(more if found.hops else "No links; nacre graph link draws one."))
    if found.together:
        paper.heading("Used together with")
        rows = [(f"{one.weight:.2f}", dim(_name(one.node)), _title(one.node)) for one in found.together]
        paper.table(rows, indent=2)


def _branches(paper: Paper, found: Traversal, children: Mapping[int, Sequence[Hop]], at: int, margin: str) -> None:
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
    paper.line(dim(_whole(margin)), Span(_whole(relation), "cyan"), title, dim(told), hang=len(margin))


def _whole(text: str) -> str:
    """A text that is not wrapped."""
    return text.replace(" ", "\u00a0")


def _state(node: Node) -> str:
    return f" {node.state}" if node.state in ("superseded", "retired") else ""
