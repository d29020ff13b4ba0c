"""What ``nacre init`` proposes on a terminal: all of it at once, a line a thing, for one yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre import settings
from nacre.base import files, ids
from nacre.cli import hits, learn, options, output, recall
from nacre.cli import services as home_wiring
from nacre.cli import writer as cli_writer
from nacre.cli.command import TEXT, Paper, Run, Span, bold, command, dim
from nacre.cli.hits import memory_record
from nacre.cli.learn import render_estimate, render_ingest
from nacre.cli.operations import perform
from nacre.cli.options import Record, count, kind_span, seconds, short_id, size
from nacre.cli.status import render_problems
from nacre.data import imports
from nacre.errors import InvalidInput
from nacre.hosts import connect, registry, ways
from nacre.learn import ingest
from nacre.memories import vectors
from nacre.redact import redactor
from nacre.setup import examples, setup
from nacre.setup import models as writers
from nacre.values import reports

if TYPE_CHECKING:
    from nacre.cli.services import DaemonMet, Shown
    from nacre.data.imports import Captured
    from nacre.home.home import Home
    from nacre.hosts.ways import FoundHost
    from nacre.setup.models import WriterRequest
    from nacre.setup.setup import (
        FirstReading,
        Foreseen,
        QuickstartResult,
        Reach,
        SampleAnswer,
        WriterProposal,
    )
    from nacre.values.reports import LeftAlone, WiringDone, WiringPlan, WiringWish

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
    with setup.home_to_look(run.settings) as home:
        is_new = not examples.has_others(home)
        name = named.writer if named else ""
        reading = setup.look(home, name) if is_new else None
        foreseen = reading.foreseen if reading else setup.foreseen(home, name)
        return Proposal(
            reading if reading and reading.files else None,
            _writer(home, foreseen, named),
            named is not None,
            bool(examples.present(home)),
        )


def _writer(home: Home, foreseen: Foreseen, named: WriterRequest | None) -> WriterProposal | None:
    settings = home.settings
    if named:
        return setup.proposal_as_named(settings, named, foreseen)
    if writers.status_writer(home).state != "off":
        return None
    found = setup.found_writers(settings)
    best = setup.best_writer(found)
    return setup.proposal_of(settings, best, foreseen, found) if best else None


def agree(
    run: Run, found: Sequence[FoundHost], planned: Planned, proposal: Proposal, places: Shown
) -> Agreement:
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
        if words == ["all"] or (
            words and all(word.isdecimal() and 1 <= int(word) <= len(found) for word in words)
        ):
            chosen = (
                names
                if words == ["all"]
                else [names[int(word) - 1] for word in dict.fromkeys(words)]
            )
            agreement = Agreement(tuple(chosen), planned(chosen))
            _show(run, found, agreement, proposal, places)
        elif said in ("n", "no"):
            raise click.Abort
        elif said in ("d", "diff"):
            run.show(
                partial(home_wiring.render_plan, plan=agreement.plan, places=places, is_whole=True)
            )
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


def _show(
    run: Run, found: Sequence[FoundHost], agreement: Agreement, proposal: Proposal, places: Shown
) -> None:
    paper = run.paper(stderr=True)
    paper.heading("Found on this machine")
    rows = (
        (f"{at:>4}", one.host.label, dim(_told(one, agreement.hosts)))
        for at, one in enumerate(found, start=1)
    )
    paper.table(list(rows))
    paper.heading("To do")
    home_wiring.render_outline(paper, agreement.plan, places)
    has_codex = any(one.host.name == registry.NAME_CODEX and one.program for one in found)
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
        costs = (
            "what a model would take is told below" if reading.estimate else "that costs nothing"
        )
        rows.append(
            (
                "read",
                f"{count(reading.files, 'transcript')} of {size(reading.bytes)}",
                f"they stay; {costs}",
            )
        )
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
    before = (
        ""
        if is_named
        else "Nobody writes memories from sessions yet: what you say plainly is kept. "
    )
    may = "writes" if is_named else "could write"
    paper.body(
        f"{before}{proposal.writer.label} {may} the rest once a session is over: {much} {proposal.terms}. "
        f"{cli_writer.describe_scope(proposal)}{'' if is_named else ' w says yes to that, too.'}",
        indent=0,
    )
    cli_writer.render_alternatives(paper, proposal)


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
            said.append(
                ("week", f"yes, but only what the last seven days brought is read ({recent})")
            )
    paper.facts([(f"  {word}", meaning) for word, meaning in said])


def trusts_hooks(plan: WiringPlan) -> bool:
    """Whether hooks are written that Codex has to trust before it runs them."""
    return not plan.is_removal and any(
        registry.NAME_CODEX in one.hosts and one.action != "none" for one in plan.changes
    )


# ----------------------------------------------------------------------------
# ``nacre quickstart``.


_HITS_SHOWN = 1


@command("quickstart", examples=["nacre quickstart", "nacre quickstart --json"])
@click.pass_obj
def quickstart(run: Run) -> None:
    """Read what your agents wrote and show what it teaches.

    Where no agent left transcripts, six example sessions stand in. A second run doubles nothing.
    """
    with output.shown(run) as notify:
        result: QuickstartResult = perform(run, "quickstart", notify)
    vault = run.settings.where_documents
    run.answer(_quickstart_record(result), lambda paper: render_quickstart(paper, result, vault))
    if is_short_of_vectors(result):
        run.afterwards.append(partial(finish_vectors, run))


def is_short_of_vectors(result: QuickstartResult) -> bool:
    """Whether there was no time for all vectors; where something else stood in the way, the answer tells it."""
    return bool(result.report.vectors_left) and not result.report.vectors_note


def finish_vectors(run: Run) -> None:
    """Make the vectors that a first look had no time for. Ctrl-C leaves them to the next ingest."""
    with output.shown(run) as notify:
        vectors.embed_pending(run.home, notify or (lambda _: None))


def _quickstart_record(result: QuickstartResult) -> Record:
    """What a first look found."""
    return {
        "source": result.source,
        "tools": result.tools,
        "report": learn.ingest_record(result.report),
        "best": [memory_record(memory) for memory in result.best],
        "answers": [
            {"question": answer.question, **recall.recall_record(answer.result, None)}
            for answer in result.answers
        ],
        "reach": _reach_record(result.reach),
    }


def _reach_record(found: Reach) -> Record:
    foreseen = found.foreseen
    return {
        "memories": found.memories,
        "replaced": found.replaced,
        "candidates": found.candidates,
        "likeliest": list(found.likeliest),
        "sessions": found.sessions,
        "turns": found.turns,
        "writer": found.writer.writer,
        "writer_found": found.found.name if found.found else None,
        "sessions_a_day": round(foreseen.sessions, 1) if foreseen else None,
        "tokens_a_day": foreseen.tokens if foreseen else None,
    }


def render_quickstart(paper: Paper, result: QuickstartResult, vault: str) -> None:
    """What was read, what was learned, a few questions answered, what is in reach, and how to go on."""
    render_first_look(paper, result)
    render_reach(paper, result.reach)
    _render_next(paper, result, vault)
    render_problems(paper, result.report.problems)


def render_first_look(paper: Paper, result: QuickstartResult) -> None:
    """What was read, what was learned, and a few questions answered."""
    _render_read(paper, result)
    if result.best:
        paper.heading("What was learned")
        rows = [
            (kind_span(memory.kind), dim(memory.project or ""), memory.content)
            for memory in result.best
        ]
        paper.table(rows, drop=(1,), indent=2)
        left = len(result.report.memories) - len(result.best)
        if left > 0:
            paper.line(dim(f"and {left:,} more: nacre list"), indent=2)
    if result.answers:
        paper.heading("What it can answer")
        for answer in result.answers:
            _render_answer(paper, answer)


def render_reach(paper: Paper, found: Reach) -> None:
    """What is in reach, in plain words: what is remembered, what waits, and who writes or could."""
    paper.heading("In reach")
    searchable = f"{count(found.turns, 'turn')} of {count(found.sessions, 'session')}"
    held = count(found.memories, "memory", "memories")
    replaced = f", and {found.replaced:,} that a later one replaced" if found.replaced else ""
    paper.line(f"{held}{replaced}; every word of {searchable}", indent=2, hang=2)
    if found.candidates:
        waiting = "candidate waits" if found.candidates == 1 else "candidates wait"
        told = f"{found.candidates:,} {waiting}, statements that may matter, for your yes or no: "
        paper.line(told, bold("nacre review"), indent=2, hang=2)
        for one in found.likeliest:
            paper.line(dim(f"“{one}”"), indent=4, hang=1)
    paper.line(*_who_writes(found), indent=2, hang=2)


def _who_writes(found: Reach) -> tuple[str | Span, ...]:
    writer = found.writer
    if writer.state != "off":
        waiting = f"; {count(writer.waiting, 'session')} to read" if writer.waiting else ""
        return (
            f"{writer.writer} writes the rest once a session is over{waiting}: ",
            bold("nacre writer"),
        )
    alone = "By itself nacre keeps only what you say plainly. "
    if found.found is None:
        return (f"{alone}With a language model it writes the rest, too: ", bold("nacre setup"))
    much = f", {found.foreseen.in_words}" if found.foreseen and found.foreseen.tokens else ""
    problem = f" {found.found.problem}" if found.found.problem else ""
    return (
        f"{alone}{found.found.label} can write the rest once a session is over{much}: ",
        bold("nacre writer set"),
        f".{problem}" if problem else "",
    )


def _render_read(paper: Paper, result: QuickstartResult) -> None:
    report = result.report
    tools = ", ".join(f"{label} ({number:,})" for label, number in result.tools.items())
    if result.source == "examples":
        paper.line(
            bold("No agent has left transcripts on this machine yet"),
            ", so here are example sessions.",
        )
    else:
        paper.line(bold("Your agents' transcripts were found on this machine."))
    paper.facts(
        (
            (
                "read",
                f"{count(sum(result.tools.values()), 'transcript')}: {tools}" if tools else "",
            ),
            ("now", _fresh(result)),
            ("vectors", report.vectors_note or _vectors_to_come(result)),
        ),
        indent=2,
    )


def _vectors_to_come(result: QuickstartResult) -> str:
    if not is_short_of_vectors(result):
        return ""
    return f"{result.report.vectors_left:,} texts are found by their words so far; their vectors follow below"


def _fresh(result: QuickstartResult) -> str:
    report = result.report
    if not report.files:
        return "nothing new since the last time"
    learned = count(len(report.memories), "memory", "memories")
    took = f"{size(report.bytes_read)} in {seconds(report.read_seconds)}"
    return f"{count(report.sessions, 'session')}, {count(report.turns, 'turn')}, {learned}; {took}"


def _render_answer(paper: Paper, answer: SampleAnswer) -> None:
    paper.line(dim("$"), f' nacre recall "{answer.question}"', indent=2)
    with paper.indented(2):
        for rank, hit in enumerate(answer.result.hits[:_HITS_SHOWN], start=1):
            hits.render_hit(paper, rank, hit, explain=False)
        if not answer.result.hits:
            hits.render_turn_hits(paper, answer.result.turns[:_HITS_SHOWN], explain=False)
    paper.blank()


def _render_next(paper: Paper, result: QuickstartResult, vault: str) -> None:
    paper.heading("Go on")
    rows = [('nacre recall "…"', "ask anything, in your own words")]
    if result.changed:
        name, sessions = result.changed
        rows.append((f"nacre did {name}", f"why it was changed, in {sessions:,} sessions"))
    if result.best:
        rows.append(
            (f"nacre show {short_id(result.best[0])}", "one memory, with the words it comes from")
        )
    if result.has_examples:
        rows.append(
            ("nacre forget --examples", "take the example sessions out, and what they taught")
        )
    rows += [
        ("nacre open", "see, search and change all of it in your browser"),
        ("nacre init", "plug it into your agents' tools: they start knowing what matters"),
        ('nacre store "…"', "keep something you tell it"),
        (vault, f"the memories, as Markdown{'' if '://' in vault else ': read and edit them'}"),
    ]
    paper.table([(bold(what), why) for what, why in rows[:-1]], indent=2)
    paper.line(bold(rows[-1][0]), f"  {rows[-1][1]}", indent=2, hang=2)


# ----------------------------------------------------------------------------
# What ``nacre init`` does at its end: it reads the sessions that are there, and forgets examples.


def read_first(run: Run, found: FirstReading, wanted: str) -> bool:
    """Read what is there: ``all``, what the last ``week`` brought, or nothing of it (``later``).

    Returns whether vectors are still to be made.
    """
    if wanted != "all":  # the daemon follows what is new, and leaves to the owner what was put off
        settings.write_setting(
            run.settings.config,
            "watch.changed_since",
            _since(run, wanted).isoformat(timespec="milliseconds"),
        )
    if wanted == "later":
        run.tell(
            "New sessions are read as they happen; nacre ingest reads the others whenever you like."
        )
        return False
    click.echo(err=True)
    return _read(run, found.recent if wanted == "week" else ())


def _since(run: Run, said: str) -> datetime:
    return run.home.clock() - (setup.RECENT if said == "week" else timedelta())


def _read(run: Run, paths: Sequence[Path]) -> bool:
    is_short = False
    with output.shown(run) as notify:
        if paths:
            report = ingest.ingest(
                run.home, ingest.IngestOptions(paths=tuple(paths), remember_paths=False), notify
            )
            run.answer({}, lambda paper: render_ingest(paper, report, searched=False))
        else:
            result = setup.run_quickstart(run.home, notify)
            run.answer({}, lambda paper: _render(paper, result))
            is_short = is_short_of_vectors(result)
    run.flush()
    return is_short


def _render(paper: Paper, result: QuickstartResult) -> None:
    render_first_look(paper, result)
    render_problems(paper, result.report.problems)


def show_reach(run: Run) -> None:
    """Where anything was read, tell what is in reach, by the settings as they are now."""
    found = setup.reach(replace(run.home, settings=settings.load_settings()))
    if found.sessions:
        click.echo(err=True)
        run.answer({}, lambda paper: render_reach(paper, found))


def make_rest(run: Run) -> None:
    """Make the vectors that the first reading had no time for, under what was shown."""
    run.flush()
    finish_vectors(run)


def forget_examples(run: Run) -> None:
    """Take out the example sessions of a first look, before agents are told them."""
    examples.forget(run.home, examples.plan_to_forget(run.home))
    run.tell("The example sessions are gone: nacre recall answers from your own ones now.")


# ----------------------------------------------------------------------------
# ``nacre init``: plug nacre into agents' tools, and out of them.


_NO_HOST = "no tool of an agent was found on this machine"


@command(
    "init",
    examples=[
        "nacre init",
        "nacre init --host cursor --project .",
        "nacre init --uninstall --dry-run",
    ],
)
@click.option(
    "--host",
    "hosts",
    type=TEXT,
    multiple=True,
    metavar="NAME[,NAME]",
    help="Which tools; else all that are here.",
    shell_complete=options.completer(options.hosts),
)
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="For one project only, in its folder.",
)
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    help="For all of yours (user), or for the project of this folder.",
)
@click.option("--plain", is_flag=True, help="Claude Code: by its settings, without a plugin.")
@click.option("--slot", is_flag=True, help="OpenClaw: take its place for memory as well.")
@click.option(
    "--tool-hook", is_flag=True, help="Claude Code, Codex: also before edits and commands."
)
@click.option(
    "--own-memory",
    type=click.Choice(["isolate", "keep"]),
    help="Claude Code, Codex, OpenClaw: turn off the memory they keep themselves, and import what it holds; or not.",
)
@click.option(
    "--trust-hooks", is_flag=True, help="Codex: have it trust the hooks that are written."
)
@click.option(
    "--writer",
    type=TEXT,
    metavar="NAME",
    help="Who writes memories, as claude-cli:haiku; nacre writer.",
)
@click.option(
    "--tokens-per-day", type=click.IntRange(1), metavar="N", help="What the writer may take a day."
)
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--uninstall", is_flag=True, help="Take it out again.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def init(  # noqa: PLR0913 - one a question
    run: Run,
    hosts: tuple[str, ...],
    project: Path | None,
    scope: str | None,
    plain: bool,
    slot: bool,
    tool_hook: bool,
    own_memory: str | None,
    trust_hooks: bool,
    writer: str | None,
    tokens_per_day: int | None,
    dry_run: bool,
    uninstall: bool,
    yes: bool,
) -> None:
    """Plug nacre into your agents' tools, and out of them.

    They start their sessions knowing what matters, and leave what they learn. It finds the tools on this machine, shows
    what it would write where, and asks. What others wrote into those files stays to the byte, and a copy of each is put
    beside it. Run again, it mends what is missing or has moved.
    """
    if not dry_run:
        run.settings.actor.require_owner("nacre init")
    asks = run.is_interactive and not yes and not dry_run and not run.as_json
    folder = _folder(project, scope)
    template = reports.WiringWish("", folder, plain, slot, tool_hook)
    if not (asks or yes or dry_run):
        raise click.UsageError(
            "not interactive: pass --yes, or --dry-run to see what would change",
            click.get_current_context(),
        )
    if tokens_per_day and not writer:
        raise click.UsageError(
            "--tokens-per-day is for a writer: --writer NAME", click.get_current_context()
        )
    named_writer = (
        writers.WriterRequest(writer=writer, tokens_per_day=tokens_per_day) if writer else None
    )
    if named_writer:
        writers.refuse(run.settings, named_writer)
    named = [name.strip() for part in hosts for name in part.split(",") if name.strip()]
    if asks and not (named or uninstall):
        _go_through(run, template, own_memory, named_writer, trusts=trust_hooks)
        return
    wishes = _wishes(run, template, _chosen(run, named, template, uninstall=uninstall), own_memory)
    wanted = _planned(run, wishes, uninstall=uninstall)
    if dry_run:
        _show_init(run, wanted, named_writer)
        return
    if asks and not wanted.is_nothing:
        _confirm(run, wanted, named_writer)
    _carry_out(
        run, wishes, wanted if asks else None, uninstall=uninstall, trusts=trust_hooks, asks=asks
    )
    if writer:
        status = perform(run, "writer-set", writer=writer, tokens_per_day=tokens_per_day)
        run.warnings += [status.problem] if status.problem else []
    if uninstall and (name := writers.named(run.settings)):
        run.warnings.append(f"{name} stays the writer of your sessions: nacre writer off ends that")


def _go_through(
    run: Run,
    template: WiringWish,
    own_memory: str | None,
    writer: WriterRequest | None,
    *,
    trusts: bool,
) -> None:
    """Propose all that makes memory work on this machine, and do what the owner says yes to. Raises InvalidInput."""
    found = [
        one for one in ways.found_hosts(run.settings) if one.host.by_project or not template.project
    ]
    if not found:
        raise InvalidInput(_NO_HOST, hint="name it: nacre init --host NAME; nacre init --help")
    proposal = proposed(run, writer)

    def planned(names: Sequence[str]) -> WiringPlan:
        return _planned(run, _wishes(run, template, names, own_memory), uninstall=False)

    agreed = agree(run, found, planned, proposal, _shown(run))
    trusts = trusts or trusts_hooks(agreed.plan)
    wishes = _wishes(run, template, agreed.hosts, own_memory)
    _carry_out(run, wishes, agreed.plan, uninstall=False, trusts=trusts, asks=True, goes_on=True)
    if proposal.has_examples:
        forget_examples(run)
    is_short = proposal.reading is not None and read_first(run, proposal.reading, agreed.reads)
    if proposal.writer and (agreed.writes or proposal.is_named):
        perform(run, "writer-set", **cli_writer.request_of(proposal.writer))
    show_reach(run)
    if is_short:
        make_rest(run)
    if run.exit_code == 0 and (started := home_wiring.start_for_hosts(run.settings)):
        run.tell(started.told)


def _wishes(
    run: Run, template: WiringWish, chosen: Sequence[WiringWish | str], own_memory: str | None
) -> list[WiringWish]:
    wished = [
        one
        if isinstance(one, reports.WiringWish)
        else ways.settled(run.settings, replace(template, host=one))
        for one in chosen
    ]
    return [_with_own_memory(run, one, own_memory) for one in wished]


def _carry_out(
    run: Run,
    wishes: list[WiringWish],
    shown: WiringPlan | None,
    *,
    uninstall: bool,
    trusts: bool,
    asks: bool,
    goes_on: bool = False,
) -> None:
    """Do what was shown, where it was; another process may have done it meanwhile."""
    if not uninstall:
        files.make_folder(run.settings.home)
    with connect.alone(run.settings.home):
        again = _planned(run, wishes, uninstall=uninstall)
        _do(
            run,
            shown if shown and not again.is_nothing else again,
            trusts=trusts,
            asks=asks,
            goes_on=goes_on,
        )


def _with_own_memory(run: Run, wish: WiringWish, said: str | None) -> WiringWish:
    """A wish with what is to become of the host's own memory: what is said of it now, else what was said before."""
    before = next(
        (one for one in ways.load(run.settings.home).wishes if one.place == wish.place), None
    )
    isolates = said == "isolate" if said else bool(before and before.isolates)
    if isolates and not ways.has_own_memory(wish):
        label = ways.host_named(wish.host).label
        told = f"{label}{' in a project' if wish.project else ''}: no memory of its own can be turned off"
        run.warnings += [told] if told not in run.warnings else []
        isolates = False
    return replace(wish, isolates=isolates)


def _confirm(run: Run, wanted: WiringPlan, writer: WriterRequest | None) -> None:
    """Show what would be done, a line a file, or as a diff where that is wanted. Raises Abort where it is not to be."""
    paper, places = run.paper(stderr=True), _shown(run)
    home_wiring.render_outline(paper, wanted, places)
    _render_writer_init(paper, writer)
    click.echo(f"\n{paper.text()}", err=True)
    question = "Remove it?" if wanted.is_removal else "Write this?"
    while True:
        said = (
            str(click.prompt(f"{question} y(es), n(o), d(iff)", default="n", err=True))
            .strip()
            .lower()
        )
        if said in ("y", "yes"):
            return
        if said in ("n", "no"):
            raise click.Abort
        if said in ("d", "diff"):
            run.show(lambda paper: home_wiring.render_plan(paper, wanted, places, is_whole=True))
        else:
            click.echo("Type y, n, or d to see every line of it.", err=True)


def _render_writer_init(paper: Paper, writer: WriterRequest | None) -> None:
    """Who is to write, where somebody is named."""
    if writer:
        bound = f", up to {writer.tokens_per_day:,} tokens a day" if writer.tokens_per_day else ""
        paper.line(
            bold(f"{'writer':<7}"), f"{writer.writer}, once a session is over{bound}", hang=7
        )


def _shown(run: Run) -> Shown:
    """How paths are told."""
    return home_wiring.Shown(run.settings.user_home, run.settings.home.resolve(), _clean(run))


def _clean(run: Run) -> Callable[[str], str]:
    return redactor.Redactor(*run.settings.redaction).clean


def _folder(project: Path | None, scope: str | None) -> Path | None:
    """The folder that is wired; ``None`` for all of the user's. Raises InvalidInput, UsageError."""
    if scope == "user" and project:
        raise click.UsageError("--scope user goes without --project", click.get_current_context())
    if scope != "project" and not project:
        return None
    folder = (project or Path()).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidInput(
            f"there is no folder {folder}", hint="name the folder of a project: --project PATH"
        )
    return folder


def _chosen(
    run: Run, named: list[str], template: WiringWish, *, uninstall: bool
) -> list[WiringWish] | list[str]:
    """Hosts to configure: those named, else those configured, else those detected. Raises InvalidInput."""
    if named:
        return [ways.host_named(name).name for name in dict.fromkeys(named)]
    wired = [
        one
        for one in ways.load(run.settings.home).wishes
        if template.project in (None, one.project)
    ]
    if uninstall or wired:  # asked of nobody, it mends what was chosen before, and chooses no more
        return wired
    found = [
        one for one in ways.found_hosts(run.settings) if one.host.by_project or not template.project
    ]
    if not found:
        raise InvalidInput(_NO_HOST, hint="name it: nacre init --host NAME")
    return [one.host.name for one in found]


def _planned(run: Run, wishes: list[WiringWish], *, uninstall: bool) -> WiringPlan:
    wanted = (
        connect.plan_removal(run.settings, wishes)
        if uninstall
        else connect.plan(run.settings, wishes)
    )
    run.exit_code = 1 if wanted.left_alone else 0
    return wanted


def _show_init(run: Run, wanted: WiringPlan, writer: WriterRequest | None) -> None:
    diffs = ["\n".join(connect.diff_of(change, _clean(run))) for change in wanted.changes]

    def render(paper: Paper) -> None:
        home_wiring.render_plan(paper, wanted, _shown(run))
        _render_writer_init(paper, writer)

    named = {"writer": writer.writer, "tokens_per_day": writer.tokens_per_day} if writer else {}
    run.answer(_plan_record(wanted, diffs) | named, render)


def _do(run: Run, wanted: WiringPlan, *, trusts: bool, asks: bool, goes_on: bool) -> None:
    captured = _capture(run, wanted)
    done = connect.apply(run.settings, wanted, ids.utc_now())
    run.exit_code = 1 if done.failed or done.left_alone or wanted.left_alone else 0
    trust = None if wanted.is_removal else _trust(run, wanted, trusts=trusts, asks=asks)
    if trust:
        notes = tuple(one for one in wanted.notes if one[0] != "codex")
        done = replace(done, plan=replace(wanted, notes=notes), trusted=trust == "now")
    diffs = ["\n".join(connect.diff_of(change, _clean(run))) for change in wanted.changes]
    daemon = _settle_daemon(
        run, is_removal=wanted.is_removal, starts=run.exit_code == 0 and not goes_on
    )
    run.answer(
        _done_record(done, diffs, daemon, captured),
        lambda paper: home_wiring.render_done(paper, done, _shown(run), daemon, captured),
    )
    if not run.as_json:
        run.flush()


def _capture(run: Run, wanted: WiringPlan) -> list[Captured]:
    """Import what hosts' own memories hold before they are turned off: where that cannot be, nothing is changed."""
    hosts = [] if wanted.is_removal else [wish.host for wish in wanted.wishes if wish.isolates]
    return imports.capture(run.home, hosts) if hosts else []


def _settle_daemon(run: Run, *, is_removal: bool, starts: bool) -> DaemonMet | None:
    """End the daemon that nobody needs any more, or that is another nacre's; start one for the hosts that are wired."""
    home, is_wired = run.settings.home, bool(ways.load(run.settings.home).wishes)
    if is_removal:
        return None if is_wired else home_wiring.end_unneeded(home)
    other = home_wiring.end_other_version(home)
    may_start = starts and is_wired and (other is None or other.state == "ended")
    started = home_wiring.start_for_hosts(run.settings) if may_start else None
    return other or started


def _trust(run: Run, wanted: WiringPlan, *, trusts: bool, asks: bool) -> str | None:
    """Whether Codex trusts the hooks: ``before``, ``now``, since somebody said that it should, or not."""
    wish = next((one for one in wanted.wishes if one.host == "codex"), None)
    found = ways.trust_in(run.settings, wish) if wish else None
    if wish is None or found is None:
        return None
    if found.seen and not found.untrusted:
        return "before"
    if not (trusts or (asks and _may_trust())):
        return None
    with connect.rewriting(run.settings, ways.config_file(run.settings)):
        problem = ways.trust_hooks(run.settings, wish)
    if problem:
        way_out = "" if ways.UNSEEN in problem else "; open codex and type /hooks"
        run.warnings.append(f"Codex: {problem}{way_out}")
    return None if problem else "now"


def _may_trust() -> bool:
    """Whether Codex is to trust the hooks; who breaks off here has had the files written, and is told so."""
    question = (
        "Codex runs hooks only once they are trusted. Have it trust those that were just written?"
    )
    try:
        return click.confirm(question, default=True, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def _plan_record(plan: WiringPlan, diffs: Sequence[str]) -> Record:
    """What would be, or was, changed."""
    return {
        "hosts": [
            {
                "host": wish.host,
                "scope": wish.scope,
                "project": str(wish.project) if wish.project else None,
            }
            for wish in plan.wishes
        ],
        "own_memories": [
            {"host": one.host, "state": one.state, "told": one.told, "hint": one.hint}
            for one in plan.own_memories
        ],
        "captured": [],
        "files": [
            {
                "path": str(change.path),
                "action": change.action,
                "hosts": list(change.hosts),
                "what": change.what,
                "diff": diff,
            }
            for change, diff in zip(plan.changes, diffs, strict=True)
        ],
        "left_alone": [_left(one) for one in plan.left_alone],
        "kept": [_left(one) for one in plan.kept],
        "commands": [{"command": list(one.words), "what": one.what} for one in plan.commands],
        "notes": [{"host": host, "note": note} for host, note in plan.notes],
        "done": False,
        "backups": [],
        "old_copies": [],
        "daemon": None,
        "failed": [],
        "trusted": False,
    }


def _done_record(
    done: WiringDone, diffs: Sequence[str], daemon: DaemonMet | None, captured: Sequence[Captured]
) -> Record:
    """What was changed."""
    return _plan_record(done.plan, diffs) | {
        "done": True,
        "backups": [str(path) for path in done.backups],
        "old_copies": [str(path) for path in done.old_copies],
        "daemon": {"version": daemon.version, "state": daemon.state} if daemon else None,
        "left_alone": [_left(one) for one in (*done.plan.left_alone, *done.left_alone)],
        "trusted": done.trusted,
        "captured": [
            {
                "host": one.host,
                "path": str(one.path),
                "added": one.added,
                "updated": one.updated,
                "problem": one.problem,
            }
            for one in captured
        ],
        "failed": [{"command": command, "said": said} for command, said in done.failed],
    }


def _left(one: LeftAlone) -> Record:
    return {"path": str(one.path), "host": one.host, "reason": one.reason, "hint": one.hint}
