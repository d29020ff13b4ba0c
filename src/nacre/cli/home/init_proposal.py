"""What ``nacre init`` proposes on a terminal: all of it at once, a line a thing, for one yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.formats import count, size
from nacre.cli.home import wiring as home_wiring
from nacre.cli.home.estimate import render_estimate
from nacre.cli.models import writer as cli_writer
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run
from nacre.hosts import codex
from nacre.setup import examples, first_ingest, foreseeing, found_writers
from nacre.setup import writer as writers

if TYPE_CHECKING:
    from nacre.cli.home.wiring import Shown
    from nacre.home.home import Home
    from nacre.setup.first_ingest import FirstReading
    from nacre.setup.foreseeing import Foreseen
    from nacre.setup.found_writers import WriterProposal
    from nacre.setup.requests import WriterRequest
    from nacre.values.wiring import WiringPlan
    from nacre.wiring.ways import FoundHost

Planned = Callable[[Sequence[str]], "WiringPlan"]
"""What wiring some hosts, by name, would do."""

_INTRODUCTION = "nacre plugs into your agents' tools: they start knowing what matters, and leave what they learn."


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would be done beside the wiring itself.

    ``reading`` is what there is to read, where nothing was read yet. ``writer`` could write memories; nobody else does,
    or the owner named it (``is_named``). ``has_examples``: those of ``nacre quickstart`` are to go.
    """

    reading: FirstReading | None = None
    writer: WriterProposal | None = None
    is_named: bool = False
    has_examples: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to say yes to."""
        return not (self.reading or self.writer or self.has_examples)


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the owner said yes to: these hosts, as planned; to read ``all``, those of the last ``week``, or ``later``;
    ``writes``: the writer that is proposed, too."""

    hosts: tuple[str, ...]
    plan: WiringPlan
    reads: str = "all"
    writes: bool = False


def proposed(run: Run, named: WriterRequest | None = None) -> Proposal:
    """What nacre would do in this home besides wiring; nothing is stored, and no home is made.

    A writer that is ``named`` is taken before those that are found.
    """
    with first_ingest.home_to_look(run.settings) as home:
        is_new = not examples.has_others(home)
        name = named.writer if named else ""
        reading = first_ingest.look(home, name) if is_new else None
        foreseen = reading.foreseen if reading else foreseeing.foreseen(home, name)
        return Proposal(
            reading if reading and reading.files else None, _writer(home, foreseen, named), named is not None,
            bool(examples.present(home)),
        )  # fmt: skip


def _writer(home: Home, foreseen: Foreseen, named: WriterRequest | None) -> WriterProposal | None:
    settings = home.settings
    if named:
        return found_writers.proposal_as_named(settings, named, foreseen)
    if writers.status(home).state != "off":
        return None
    found = found_writers.found_writers(settings)
    best = found_writers.best_writer(found)
    return found_writers.proposal_of(settings, best, foreseen, found) if best else None


def agree(run: Run, found: Sequence[FoundHost], planned: Planned, proposal: Proposal, places: Shown) -> Agreement:
    """Show all of it, change which hosts are meant where that is wanted, and go on with a yes. Raises Abort."""
    click.echo(err=True)
    run.tell(_INTRODUCTION)
    names = [one.host.name for one in found]
    agreement = Agreement(tuple(names), planned(names))
    _show(run, found, agreement, proposal, places)
    writes = "w(riter too), " if proposal.writer and not proposal.is_named else ""
    question = f"Do this? y(es), {writes}n(o), d(iff), ? for more"
    while not (agreement.plan.is_nothing and not agreement.plan.left_alone and proposal.is_nothing):
        said = str(click.prompt(question, default="y", err=True)).strip().lower()
        words = said.replace(",", " ").split()
        if words == ["all"] or (words and all(word.isdecimal() and 1 <= int(word) <= len(found) for word in words)):
            chosen = names if words == ["all"] else [names[int(word) - 1] for word in dict.fromkeys(words)]
            agreement = Agreement(tuple(chosen), planned(chosen))
            _show(run, found, agreement, proposal, places)
        elif said in ("n", "no"):
            raise click.Abort
        elif said in ("d", "diff"):
            run.show(partial(home_wiring.render_plan, plan=agreement.plan, places=places, is_whole=True))
        elif agreed := _agreed(agreement, words, proposal):
            return agreed
        else:
            if said != "?":
                click.echo(f"{said!r} is none of these:", err=True)
            run.show(lambda paper: _explain(paper, found, proposal))
    return agreement


def _agreed(agreement: Agreement, words: Sequence[str], proposal: Proposal) -> Agreement | None:
    """The agreement with what a yes in some words adds to it; ``None`` where it is no yes."""
    meanings: dict[str, dict[str, Any]] = {"y": {}, "yes": {}}
    if proposal.writer and not proposal.is_named:
        meanings |= {"w": {"writes": True}, "writer": {"writes": True}}
    if proposal.reading:
        meanings |= {"l": {"reads": "later"}, "later": {"reads": "later"}}
        meanings |= {"week": {"reads": "week"}} if proposal.reading.has_older else {}
    if not words or not meanings.keys() >= set(words):
        return None
    for word in words:
        agreement = replace(agreement, **meanings[word])
    return agreement


def _show(run: Run, found: Sequence[FoundHost], agreement: Agreement, proposal: Proposal, places: Shown) -> None:
    paper = run.paper(stderr=True)
    paper.heading("Found on this machine")
    rows = ((f"{at:>4}", one.host.label, dim(_told(one, agreement.hosts))) for at, one in enumerate(found, start=1))
    paper.table(list(rows))
    paper.heading("To do")
    home_wiring.render_outline(paper, agreement.plan, places)
    has_codex = any(one.host.name == codex.NAME and one.program for one in found)
    _rest(paper, proposal, trusts=has_codex and trusts_hooks(agreement.plan))
    click.echo(f"\n{paper.text()}", err=True)


def _told(one: FoundHost, chosen: Sequence[str]) -> str:
    state = "left out" if one.host.name not in chosen else "wired already" if one.is_wired else ""
    return ", ".join(part for part in (one.program or "", state) if part)


def _rest(paper: Paper, proposal: Proposal, *, trusts: bool) -> None:
    """What is done besides the files, a line each; and what it takes."""
    rows: list[tuple[str, str, str]] = []
    if trusts:
        rows.append(("trust", "the hooks, by Codex", "which runs them only then"))
    if proposal.has_examples:
        rows.append(("forget", "the example sessions", "of nacre quickstart, and what they taught"))
    reading = proposal.reading
    if reading:
        costs = "what a model would take is told below" if reading.estimate else "that costs nothing"
        rows.append(("read", f"{count(reading.files, 'transcript')} of {size(reading.bytes)}", f"they stay; {costs}"))
    for verb, what, why in rows:
        paper.line(bold(f"{verb:<7}"), what, "  ", dim(why), hang=7)
    if reading and reading.estimate:
        render_estimate(paper, reading.estimate)
    if proposal.writer:
        _render_writer(paper, proposal.writer, is_named=proposal.is_named)


def _render_writer(paper: Paper, proposal: WriterProposal, *, is_named: bool) -> None:
    """Who could write, or will as the owner named it, and what that takes."""
    paper.blank()
    told = proposal.foreseen
    much = f"{told.in_words}; it" if told.tokens else "it"
    before = "" if is_named else "Nobody writes memories from sessions yet: what you say plainly is kept. "
    may = "writes" if is_named else "could write"
    paper.body(
        f"{before}{proposal.writer.label} {may} the rest once a session is over: {much} {proposal.terms}. "
        f"{cli_writer.shown(proposal)}{'' if is_named else ' w says yes to that, too.'}",
        indent=0,
    )
    cli_writer.render_beside(paper, proposal)


def _explain(paper: Paper, found: Sequence[FoundHost], proposal: Proposal) -> None:
    """What can be said beside yes and no."""
    said = [("y", "yes: all that stands under To do"), ("n", "no: nothing is changed")]
    if len(found) > 1:
        said.append(("1,2", "which tools: by number, or all"))
    said.append(("d", "every line that would be written"))
    if proposal.writer and not proposal.is_named:
        said.append(("w", f"yes, and {proposal.writer.writer.label} writes memories"))
    if proposal.reading:
        said.append(("l", "yes, but sessions that are there stay unread until nacre ingest"))
        if proposal.reading.has_older:
            recent = count(len(proposal.reading.recent), "transcript")
            said.append(("week", f"yes, but only what the last seven days brought is read ({recent})"))
    paper.facts([(f"  {word}", meaning) for word, meaning in said])


def trusts_hooks(plan: WiringPlan) -> bool:
    """Whether hooks are written that Codex has to trust before it runs them."""
    return not plan.is_removal and any(codex.NAME in one.hosts and one.action != "none" for one in plan.changes)
