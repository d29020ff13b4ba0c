"""``nacre graph central | gaps | components | brief``: what the links of all memories say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import command
from nacre.cli.formats import count, short_id
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import ask
from nacre.cli.options import find_project
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import options
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.graph.values import Brief, Central, Component, Components, Gaps


@command("central", examples=["nacre graph central", "nacre graph central --project acme-billing --limit 20"])
@options("graph-central", "limit", "project")
@click.pass_obj
def central(run: Run, /, **asked: Any) -> None:
    """List the memories with the most links."""
    found: Central = _ask(run, "graph-central", asked)
    record = {
        "central": [{**memory_record(one.memory), "degree": one.degree} for one in found.found],
        "memories": found.memories, "links": found.links,
    }  # fmt: skip
    run.answer(record, lambda paper: _render_central(paper, found))


@command("gaps", examples=["nacre graph gaps", "nacre graph gaps --project acme-billing --limit 30"])
@options("graph-gaps", "limit", "project")
@click.pass_obj
def gaps(run: Run, /, **asked: Any) -> None:
    """List memories with one link at most, the most used first.

    nacre graph link draws a link; nacre reflect asks about memories that seem to belong together.
    """
    found: Gaps = _ask(run, "graph-gaps", asked)
    record = {
        "gaps": [
            {**memory_record(one.memory), "degree": one.degree, "maturity": one.maturity.value,
             "idle_days": one.idle_days}
            for one in found.found
        ],
        "total": found.total, "unlinked": found.unlinked,
    }  # fmt: skip
    run.answer(record, lambda paper: _render_gaps(paper, found))


@command("components", examples=["nacre graph components", "nacre graph components --limit 3 --json"])
@options("graph-components", "limit", "project")
@click.pass_obj
def components(run: Run, /, **asked: Any) -> None:
    """List the groups of linked memories, the largest first."""
    found: Components = _ask(run, "graph-components", asked)
    record = {
        "components": [
            {"size": one.size, "links": one.links, "central": [memory_record(memory) for memory in one.central]}
            for one in found.found
        ],
        "total": found.total, "alone": found.alone,
    }  # fmt: skip
    run.answer(record, lambda paper: _render_components(paper, found))


@command("brief", examples=["nacre graph brief", "nacre graph brief --project acme-billing"])
@options("graph-brief", "project")
@click.pass_obj
def brief(run: Run, /, **asked: Any) -> None:
    """Summarise what is remembered and how it is linked."""
    found: Brief = _ask(run, "graph-brief", asked)
    record = {
        "text": found.text, "memories": found.memories, "links": found.links, "alike": found.alike,
        "projects": found.projects, "components": found.components, "gaps": found.gaps, "unlinked": found.unlinked,
        "todos": found.todos, "stale": found.stale, "central": [one.memory.id for one in found.central],
        "active_projects": list(found.active_projects), "decisions": [one.id for one in found.decisions],
    }  # fmt: skip
    run.answer(record, lambda paper: paper.body(found.text))


def _ask(run: Run, operation: str, asked: dict[str, Any]) -> Any:
    return ask(run, operation, **{**asked, "project": find_project(run, asked["project"])})


def _render_central(paper: Paper, found: Central) -> None:
    if not found.found:
        paper.line("No memories are linked yet; nacre graph link draws a link.")
        return
    rows = [
        (f"{one.degree:,}", dim(short_id(one.memory)), one.memory.project or "", one.memory.subject)
        for one in found.found
    ]
    paper.table(rows, header=("links", "id", "project", "memory"), drop=(2,))
    paper.line(dim(f"{count(found.links, 'link')} between {count(found.memories, 'memory', 'memories')}"))


def _render_gaps(paper: Paper, found: Gaps) -> None:
    if not found.found:
        paper.line("Every memory has two links or more.")
        return
    rows = [
        (one.maturity.value, count(one.degree, "link"), f"{one.idle_days} d", dim(short_id(one.memory)),
         one.memory.project or "", one.memory.subject)
        for one in found.found
    ]  # fmt: skip
    paper.table(rows, header=("maturity", "links", "idle", "id", "project", "memory"), drop=(4,))
    paper.line(dim(f"{count(found.total, 'memory', 'memories')} with one link at most, {found.unlinked:,} without any"))


def _render_components(paper: Paper, found: Components) -> None:
    if not found.found:
        paper.line("No memories are linked yet; nacre graph link draws a link.")
        return
    for one in found.found:
        _component(paper, one)
    left = found.total - len(found.found)
    more = f"{count(left, 'more group')}; " if left else ""
    paper.line(dim(f"{more}{count(found.alone, 'memory', 'memories')} without a link"))


def _component(paper: Paper, one: Component) -> None:
    paper.line(bold(count(one.size, "memory", "memories")), dim(f"  {count(one.links, 'link')}"))
    for memory in one.central:
        paper.line(dim(f"{short_id(memory)}  "), memory.subject, indent=2, hang=10)
