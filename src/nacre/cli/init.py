"""``nacre init`` and ``nacre quickstart``. On a terminal, init shows the whole proposal and asks once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre import settings
from nacre.base import files, ids
from nacre.base.frozen import frozen
from nacre.cli import hits, output
from nacre.cli import services as home_wiring
from nacre.cli import writer as cli_writer
from nacre.cli.command import TEXT, Paper, Run, Span, bold, command, dim
from nacre.cli.learn import render_estimate, render_ingest
from nacre.cli.operations import perform
from nacre.cli.options import YES, Record, count, flag, kind_span, seconds, short_id, size
from nacre.cli.status import render_problems
from nacre.data import imports
from nacre.errors import InvalidInputError
from nacre.hosts import connect, registry, ways
from nacre.learn import ingest
from nacre.memories import vectors
from nacre.redact import redactor
from nacre.setup import examples, setup
from nacre.setup import models as writers
from nacre.values import reports

if TYPE_CHECKING:
    from nacre.cli.services import DaemonMet, Shown
    from nacre.hosts.ways import FoundHost
    from nacre.setup.setup import (
        FirstReading,
        QuickstartResult,
        Reach,
        SampleAnswer,
        WriterProposal,
    )
    from nacre.values.reports import WiringPlan, WiringWish

Planner = Callable[[Sequence[str]], "WiringPlan"]
"""A function that returns the plan for the named hosts."""

_INTRODUCTION = "nacre connects to your agents: their sessions start with your memory, and nacre learns from them."


@frozen
class Proposal:
    """The steps that nacre proposes in addition to connecting hosts.

    ``reading``: pending transcripts, if nothing was read yet. ``writer``: proposed writer. ``has_examples``: True if
    the examples of ``nacre quickstart`` will be removed.
    """

    reading: FirstReading | None = None
    writer: WriterProposal | None = None
    has_examples: bool = False

    @property
    def is_nothing(self) -> bool:
        """True if the proposal is empty."""
        return not (self.reading or self.writer or self.has_examples)


@frozen
class Agreement:
    """The user's choices: the plan, sessions to read (``all``, ``week`` or ``later``), and whether to use the proposed
    writer (``writes``)."""

    plan: WiringPlan
    reads: str = "all"
    writes: bool = False


def propose(run: Run) -> Proposal:
    """Return the steps to propose for this home, without storing anything or creating a home."""
    with setup.home_to_look(run.settings) as home:
        is_new = not examples.has_others(home)
        reading = setup.look(home) if is_new else None
        scope = reading.scope if reading else None
        return Proposal(
            reading if reading and reading.files else None,
            setup.propose(home, scope) if writers.status_writer(home).state == "off" else None,
            bool(examples.present(home)),
        )


def agree(
    run: Run, found: Sequence[FoundHost], plan_for: Planner, proposal: Proposal, places: Shown
) -> Agreement:
    """Show the proposal, and return the plan that the user accepts. Raises Abort."""
    click.echo(err=True)
    run.tell(_INTRODUCTION)
    names = [host.host.name for host in found]
    agreement = Agreement(plan_for(names))
    run.introduce(_render_agreement, agreement, found, proposal, places)
    writes = "w(ith writer), " if proposal.writer else ""
    question = f"Do this? y(es), {writes}n(o), d(iff), ? for more"
    while not (agreement.plan.is_nothing and not agreement.plan.left_alone and proposal.is_nothing):
        answer = str(click.prompt(question, default="y", err=True)).strip().lower()
        words = answer.replace(",", " ").split()
        if words == ["all"] or (
            words and all(word.isdecimal() and 1 <= int(word) <= len(found) for word in words)
        ):
            numbers = range(1, len(names) + 1) if words == ["all"] else map(int, words)
            agreement = Agreement(plan_for([names[at - 1] for at in dict.fromkeys(numbers)]))
            run.introduce(_render_agreement, agreement, found, proposal, places)
        elif answer in ("n", "no"):
            raise click.Abort
        elif answer in ("d", "diff"):
            run.show(home_wiring.render_plan, agreement.plan, places, is_whole=True)
        elif agreed := _agreed(agreement, words, proposal):
            return agreed
        else:
            if answer != "?":
                click.echo(f"{answer!r} is not a choice. Type one of these:", err=True)
            run.show(_explain, found, proposal)
    return agreement


def _agreed(agreement: Agreement, words: Sequence[str], proposal: Proposal) -> Agreement | None:
    """Return the plan with the choices that the user typed, or ``None`` if the user did not accept the plan."""
    meanings: dict[str, dict[str, Any]] = {"y": {}, "yes": {}}
    if proposal.writer:
        meanings |= {"w": {"writes": True}, "writer": {"writes": True}}
    if proposal.reading:
        meanings |= {"l": {"reads": "later"}, "later": {"reads": "later"}}
        meanings |= {"week": {"reads": "week"}} if proposal.reading.has_older else {}
    if not words or not meanings.keys() >= set(words):
        return None
    for word in words:
        agreement = replace(agreement, **meanings[word])
    return agreement


def _render_agreement(
    paper: Paper,
    agreement: Agreement,
    found: Sequence[FoundHost],
    proposal: Proposal,
    places: Shown,
) -> None:
    paper.heading("Found on this machine")
    rows, chosen = [], [wish.host for wish in agreement.plan.wishes]
    for at, host in enumerate(found, start=1):
        state = "already connected" if host.is_wired else ""
        state = state if host.host.name in chosen else "left out"
        notes = ", ".join(filter(None, (host.program, state)))
        rows.append((f"{at:>4}", host.host.label, dim(notes)))
    paper.table(rows)
    paper.heading("To do")
    home_wiring.render_outline(paper, agreement.plan, places)
    has_codex = any(host.host.name == registry.NAME_CODEX and host.program for host in found)
    _render_proposal(paper, proposal, trusts=has_codex and _needs_trust(agreement.plan))


def _render_proposal(paper: Paper, proposal: Proposal, *, trusts: bool) -> None:
    rows: list[tuple[str, str, str]] = []
    if trusts:
        rows.append(("trust", "the hooks, in Codex", "which runs only trusted hooks"))
    if proposal.has_examples:
        rows.append(("forget", "the example sessions", "of nacre quickstart, and their memories"))
    reading = proposal.reading
    if reading:
        costs = "the cost of a model is below" if reading.estimate else "this is free"
        rows.append(
            (
                "read",
                f"{count(reading.files, 'transcript')} of {size(reading.bytes)}",
                f"they stay in place; {costs}",
            )
        )
    for verb, subject, remark in rows:
        paper.line(bold(f"{verb:<7}"), subject, "  ", dim(remark), hang=7)
    if reading and reading.estimate:
        render_estimate(paper, reading.estimate)
    if proposal.writer:
        _render_writer(paper, proposal.writer)


def _render_writer(paper: Paper, proposal: WriterProposal) -> None:
    paper.blank()
    paper.body(
        "No writer is set yet, so only your explicit statements become memories. "
        f"{proposal.writer.label} could write other memories after each session: it {proposal.terms}. "
        f"{cli_writer.describe_scope(proposal)} Type w to accept this too.",
    )
    cli_writer.render_alternatives(paper, proposal)


def _explain(paper: Paper, found: Sequence[FoundHost], proposal: Proposal) -> None:
    choices = [("y", "yes: everything under To do"), ("n", "no: change nothing")]
    if len(found) > 1:
        choices.append(("1,2", "select tools by number, or all"))
    choices.append(("d", "show every line to be written"))
    if proposal.writer:
        choices.append(("w", f"yes, and {proposal.writer.writer.label} writes memories"))
    if proposal.reading:
        choices.append(("l", "yes, but read existing sessions later, with nacre ingest"))
        if proposal.reading.has_older:
            recent = count(len(proposal.reading.recent), "transcript")
            choices.append(("week", f"yes, but read only the last seven days ({recent})"))
    paper.facts([(f"  {word}", meaning) for word, meaning in choices])


def _needs_trust(plan: WiringPlan) -> bool:
    """Return True if the plan writes hooks that Codex only runs after it trusts them."""
    return not plan.is_removal and any(
        registry.NAME_CODEX in change.hosts and change.action != "none" for change in plan.changes
    )


# ----------------------------------------------------------------------------
# ``nacre quickstart``.


_HITS_SHOWN = 1


@command("quickstart", examples=["nacre quickstart", "nacre quickstart --json"])
def quickstart(run: Run) -> None:
    """Read your agents' transcripts and show what nacre learns from them.

    Without transcripts, it uses six example sessions. A second run adds no duplicates.
    """
    result = perform(run, setup.run_quickstart)
    vault = run.settings.where_documents
    run.present(result, render_quickstart, vault)
    if is_short_of_vectors(result):
        run.afterwards.append(partial(finish_vectors, run))


def is_short_of_vectors(result: QuickstartResult) -> bool:
    """Return True if vectors are missing only because the time ran out."""
    return bool(result.report.vectors_left) and not result.report.vectors_note


def finish_vectors(run: Run) -> None:
    """Create the remaining vectors after quickstart. After Ctrl-C, the next ingest creates them."""
    with output.shown(run) as notify:
        vectors.embed_pending(run.home, notify or (lambda _: None))


def render_quickstart(paper: Paper, result: QuickstartResult, vault: str) -> None:
    """Print the result of quickstart and the next commands."""
    render_first_look(paper, result)
    render_reach(paper, result.reach)
    _render_next(paper, result, vault)


def render_first_look(paper: Paper, result: QuickstartResult) -> None:
    """Print the transcripts that were read, new memories, and answers to a few questions."""
    _render_read(paper, result)
    if result.best:
        paper.heading("New memories")
        rows = [
            (kind_span(memory.kind), dim(memory.project or ""), memory.content)
            for memory in result.best
        ]
        paper.table(rows, drop=(1,), indent=2)
        left = len(result.report.memories) - len(result.best)
        paper.more(left, ": nacre list")
    if result.answers:
        paper.heading("Sample answers")
        for answer in result.answers:
            _render_answer(paper, answer)
    render_problems(paper, result.report.problems)


def render_reach(paper: Paper, reach: Reach) -> None:
    """Print the numbers of memories, turns and candidates, and the current or suggested writer."""
    paper.heading("Available")
    searchable = f"{count(reach.turns, 'turn')} of {count(reach.sessions, 'session')}"
    memories = count(reach.memories, "memory", "memories")
    replaced = f", and {reach.replaced:,} superseded" if reach.replaced else ""
    paper.line(f"{memories}{replaced}; full text of {searchable}", indent=2)
    if reach.candidates:
        candidates = count(reach.candidates, "candidate")
        paper.line(
            f"{candidates} (possible memories) for you to accept or reject: ",
            bold("nacre review"),
            indent=2,
        )
        for statement in reach.likeliest:
            paper.note(f"“{statement}”", indent=4, hang=1)
    paper.line(*_describe_writer(reach), indent=2)


def _describe_writer(reach: Reach) -> tuple[str | Span, ...]:
    writer = reach.writer
    if writer.state != "off":
        waiting = f"; {count(writer.waiting, 'session')} to read" if writer.waiting else ""
        return (
            f"{writer.writer} writes other memories after each session{waiting}: ",
            bold("nacre writer"),
        )
    alone = "Without a model, nacre keeps only your explicit statements. "
    if reach.found is None:
        return (f"{alone}A language model can write other memories: ", bold("nacre writer set"))
    problem = f" {reach.found.problem}" if reach.found.problem else ""
    return (
        f"{alone}{reach.found.label} can write other memories after each session: ",
        bold("nacre writer set"),
        f".{problem}" if problem else "",
    )


def _render_read(paper: Paper, result: QuickstartResult) -> None:
    report = result.report
    tools = ", ".join(f"{label} ({number:,})" for label, number in result.tools.items())
    if result.source == "examples":
        could = "could be read" if report.unread or report.problems else "were found"
        paper.line(
            bold(f"No agent transcripts {could} on this machine"),
            ", so these are example sessions.",
        )
    else:
        paper.line(bold("Your agents' transcripts were found on this machine."))
    paper.facts(
        (
            (
                "read",
                f"{count(sum(result.tools.values()), 'transcript')}: {tools}" if tools else "",
            ),
            ("now", _describe_news(result)),
            ("vectors", report.vectors_note or _pending_vectors(result)),
        ),
        indent=2,
    )
    for line in report.unread:
        paper.note(line, indent=2)


def _pending_vectors(result: QuickstartResult) -> str:
    if not is_short_of_vectors(result):
        return ""
    return f"{result.report.vectors_left:,} texts can be found only by words until their vectors are created below"


def _describe_news(result: QuickstartResult) -> str:
    report = result.report
    if not report.files:
        return "nothing new since the last run"
    learned = count(len(report.memories), "memory", "memories")
    took = f"{size(report.bytes_read)} in {seconds(report.read_seconds)}"
    return f"{count(report.sessions, 'session')}, {count(report.turns, 'turn')}, {learned}; {took}"


def _render_answer(paper: Paper, answer: SampleAnswer) -> None:
    paper.line(dim("$"), f' nacre recall "{answer.question}"', indent=2)
    with paper.indented(2):
        hits.render_results(paper, answer.result.ranked[:_HITS_SHOWN])


def _render_next(paper: Paper, result: QuickstartResult, vault: str) -> None:
    paper.heading("Next steps")
    rows = [('nacre recall "…"', "ask a question in your own words")]
    if result.changed:
        name, sessions = result.changed
        rows.append((f"nacre did {name}", f"see why it was changed, in {sessions:,} sessions"))
    if result.best:
        rows.append((f"nacre show {short_id(result.best[0])}", "show a memory with its sources"))
    if result.has_examples:
        rows.append(("nacre forget --examples", "delete the example sessions and their memories"))
    rows += [
        ("nacre open", "see, search and edit everything in your browser"),
        ("nacre init", "connect your agents: their sessions start with your memory"),
        ('nacre store "…"', "store a memory"),
        (vault, f"your memories as Markdown{'' if '://' in vault else ': read and edit them'}"),
    ]
    paper.table([(bold(words), purpose) for words, purpose in rows[:-1]], indent=2)
    paper.line(bold(rows[-1][0]), f"  {rows[-1][1]}", indent=2)


# ----------------------------------------------------------------------------
# A late step of ``nacre init``: read existing sessions.


def read_first(run: Run, found: FirstReading, span: str) -> bool:
    """Read all existing sessions (``all``), sessions of the last week (``week``), or no sessions (``later``).

    Return True if vectors are still missing.
    """
    if span != "all":  # the daemon then reads only newer sessions
        since = run.home.clock() - (setup.RECENT if span == "week" else timedelta())
        stamp = since.isoformat(timespec="milliseconds")
        settings.write_setting(run.settings.config, "watch.changed_since", stamp)
    if span == "later":
        run.tell("New sessions are read as they happen. To read older sessions, run nacre ingest.")
        return False
    click.echo(err=True)
    return _read(run, found.recent if span == "week" else ())


def _read(run: Run, paths: Sequence[Path]) -> bool:
    is_short = False
    if paths:
        report = perform(run, ingest.ingest, paths=paths, remember_paths=False)
        run.answer({}, render_ingest, report, searched=False)
    else:
        result = perform(run, setup.run_quickstart)
        run.answer({}, render_first_look, result)
        is_short = is_short_of_vectors(result)
    run.flush()
    return is_short


# ----------------------------------------------------------------------------
# ``nacre init``.


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
    help="The tools to connect [default: all on this machine].",
)
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Only for the project in this folder.",
)
@flag("--plain", "Claude Code: use its settings instead of a plugin.")
@flag("--slot", "OpenClaw: also use its memory slot.")
@flag("--tool-hook", "Claude Code, Codex: also run before edits and commands.")
@click.option(
    "--own-memory",
    type=click.Choice(["isolate", "keep", "note"]),
    help="Import the host's built-in memory and turn it off (isolate), keep it on, or add a block about nacre to its "
    "MEMORY.md (note).",
)
@flag("--trust-hooks", "Codex: make it trust the hooks.")
@flag("--dry-run", "Only show what would change.")
@flag("--uninstall", "Disconnect nacre.")
@YES
def init(  # noqa: PLR0913 - one parameter per option
    run: Run,
    hosts: tuple[str, ...],
    project: Path | None,
    plain: bool,
    slot: bool,
    tool_hook: bool,
    own_memory: str | None,
    trust_hooks: bool,
    dry_run: bool,
    uninstall: bool,
    yes: bool,
) -> None:
    """Connect nacre to your agents, or disconnect it.

    Their sessions start with your memory, and nacre learns from them. The command finds the agents on this machine,
    shows the planned changes, and asks. Other content of the changed files is not altered, and a copy of each file is
    kept next to it. Run it again to repair missing or moved parts.
    """
    if not dry_run:
        run.settings.actor.require_owner("nacre init")
    asks = run.is_interactive and not yes and not dry_run and not run.as_json
    folder = _folder(project)
    template = reports.WiringWish("", folder, plain, slot, tool_hook)
    if not (asks or yes or dry_run):
        raise click.UsageError("not interactive: pass --yes, or --dry-run to see what would change")
    named = [name.strip() for part in hosts for name in part.split(",") if name.strip()]
    if asks and not (named or uninstall):
        _run_dialog(run, template, own_memory, trusts=trust_hooks)
        return
    wishes = _wishes(run, template, _chosen(run, named, template, uninstall=uninstall), own_memory)
    plan = _plan(run, wishes, uninstall=uninstall)
    if dry_run:
        _show_init(run, plan)
        return
    if asks and not plan.is_nothing:
        _confirm(run, plan)
    _carry_out(run, plan, trusts=trust_hooks, asks=asks)
    if uninstall and (name := writers.named(run.settings)):
        run.warnings.append(
            f"{name} is still the writer of your sessions: turn it off with nacre writer set none"
        )


def _run_dialog(
    run: Run,
    template: WiringWish,
    own_memory: str | None,
    *,
    trusts: bool,
) -> None:
    """Propose a complete setup for this machine and apply the accepted parts. Raises InvalidInputError."""
    found = _found(run, template)
    proposal = propose(run)

    def plan_for(names: Sequence[str]) -> WiringPlan:
        return _plan(run, _wishes(run, template, names, own_memory), uninstall=False)

    agreed = agree(run, found, plan_for, proposal, _display(run))
    trusts = trusts or _needs_trust(agreed.plan)
    _carry_out(run, agreed.plan, trusts=trusts, asks=True, goes_on=True)
    if proposal.has_examples:
        examples.forget(run.home, examples.plan_to_forget(run.home))
        run.tell("The example sessions are deleted: nacre recall now uses your own sessions.")
    is_short = proposal.reading is not None and read_first(run, proposal.reading, agreed.reads)
    if proposal.writer and agreed.writes:
        perform(run, writers.set_writer, **cli_writer.request_of(proposal.writer))
    reach = setup.reach(replace(run.home, settings=settings.load_settings()))
    if reach.sessions:
        click.echo(err=True)
        run.answer({}, render_reach, reach)
    if is_short:
        run.flush()
        finish_vectors(run)
    if run.exit_code == 0 and (started := home_wiring.start_for_hosts(run.settings)):
        run.tell(started.message)


def _wishes(
    run: Run, template: WiringWish, chosen: Sequence[WiringWish | str], own_memory: str | None
) -> list[WiringWish]:
    wishes = [
        choice
        if isinstance(choice, reports.WiringWish)
        else ways.drop_unsupported(run.settings, replace(template, host=choice))
        for choice in chosen
    ]
    return [_with_own_memory(run, wish, own_memory) for wish in wishes]


def _carry_out(
    run: Run, plan: WiringPlan, *, trusts: bool, asks: bool, goes_on: bool = False
) -> None:
    """Apply the plan.

    Plan again if the user was not asked or the changes have been made meanwhile.
    """
    if not plan.is_removal:
        files.make_folder(run.settings.home)
    with connect.alone(run.settings.home):
        again = _plan(run, plan.wishes, uninstall=plan.is_removal)
        plan = plan if asks and not again.is_nothing else again
        _do(run, plan, trusts=trusts, asks=asks, goes_on=goes_on)


def _with_own_memory(run: Run, wish: WiringWish, own_memory: str | None) -> WiringWish:
    """Return the request with the user's choice about the host's built-in memory.

    If the user did not choose, keep the previous choice.
    """
    before = next(
        (former for former in ways.load(run.settings.home).wishes if former.place == wish.place),
        None,
    )
    isolates = own_memory == "isolate" if own_memory else bool(before and before.isolates)
    introduces = own_memory == "note" if own_memory else bool(before and before.introduces)
    can = ways.can_isolate(wish) if isolates else ways.has_own_memory(wish)
    if (isolates or introduces) and not can:
        label = ways.host_named(wish.host).label
        scope = " in a project" if wish.project else ""
        warning = f"{label}{scope} has no memory of its own that nacre can {'turn off' if isolates else 'change'}"
        run.warnings += [warning] if warning not in run.warnings else []
        isolates = introduces = False
    return replace(wish, isolates=isolates, introduces=introduces)


def _confirm(run: Run, plan: WiringPlan) -> None:
    """Show the planned changes and ask the user to confirm them. Raises Abort."""
    places = _display(run)
    run.introduce(home_wiring.render_outline, plan, places)
    question = f"{'Remove it' if plan.is_removal else 'Write this'}? y(es), n(o), d(iff)"
    while True:
        answer = str(click.prompt(question, default="n", err=True)).strip().lower()
        if answer in ("y", "yes"):
            return
        if answer in ("n", "no"):
            raise click.Abort
        if answer in ("d", "diff"):
            run.show(home_wiring.render_plan, plan, places, is_whole=True)
        else:
            click.echo("Type y, n, or d to see every line.", err=True)


def _display(run: Run) -> Shown:
    return home_wiring.Shown(
        run.settings.user_home,
        run.settings.home.resolve(),
        (redactor.Redactor(*run.settings.redaction).clean),
    )


def _folder(project: Path | None) -> Path | None:
    """Return the project folder to connect, or ``None`` if nacre is connected for all projects of the user.

    Raises InvalidInputError.
    """
    if not project:
        return None
    folder = project.expanduser().resolve()
    if not folder.is_dir():
        raise InvalidInputError(
            f"there is no folder {folder}", hint="name the folder of a project: --project PATH"
        )
    return folder


def _chosen(
    run: Run, named: list[str], template: WiringWish, *, uninstall: bool
) -> list[WiringWish] | list[str]:
    """Return the named hosts, or else the configured hosts, or else the detected hosts. Raises InvalidInputError."""
    if named:
        return [ways.host_named(name).name for name in dict.fromkeys(named)]
    wired = [
        wish
        for wish in ways.load(run.settings.home).wishes
        if template.project in (None, wish.project)
    ]
    if uninstall or wired:  # without a dialog, repair earlier choices and add none
        return wired
    return [host.host.name for host in _found(run, template)]


def _found(run: Run, template: reports.WiringWish) -> list[FoundHost]:
    """Return the detected hosts. Raises InvalidInputError if no host was detected."""
    found = [
        host
        for host in ways.found_hosts(run.settings)
        if host.host.by_project or not template.project
    ]
    if not found:
        hint = "name it: nacre init --host NAME; see nacre init --help"
        raise InvalidInputError("no agent was found on this machine", hint=hint)
    return found


def _plan(run: Run, wishes: Sequence[WiringWish], *, uninstall: bool) -> WiringPlan:
    plan = (
        connect.plan_removal(run.settings, wishes)
        if uninstall
        else connect.plan(run.settings, wishes)
    )
    run.exit_code = 1 if plan.left_alone else 0
    return plan


def _show_init(run: Run, plan: WiringPlan) -> None:
    record = {**_record(run, reports.WiringDone(plan, ())), "done": False}
    run.answer(record, home_wiring.render_plan, plan, _display(run))


def _do(run: Run, plan: WiringPlan, *, trusts: bool, asks: bool, goes_on: bool) -> None:
    captured = _capture(run, plan)
    result = connect.apply(run.settings, plan, ids.utc_now())
    run.exit_code = 1 if result.failed or result.left_alone or plan.left_alone else 0
    trust = None if plan.is_removal else _trust(run, plan, trusts=trusts, asks=asks)
    if trust:
        notes = tuple((host, note) for host, note in plan.notes if host != "codex")
        result = replace(result, plan=replace(plan, notes=notes), trusted=trust == "now")
    daemon = _settle_daemon(
        run, is_removal=plan.is_removal, starts=run.exit_code == 0 and not goes_on
    )
    record = {**_record(run, result, daemon, captured), "done": True}
    run.answer(record, home_wiring.render_done, result, _display(run), daemon, captured)
    if not run.as_json:
        run.flush()


def _capture(run: Run, plan: WiringPlan) -> list[imports.Captured]:
    """Import hosts' built-in memories before they are turned off. If the import fails, nothing is changed."""
    hosts = [] if plan.is_removal else [wish.host for wish in plan.wishes if wish.isolates]
    return imports.capture(run.home, hosts) if hosts else []


def _settle_daemon(run: Run, *, is_removal: bool, starts: bool) -> DaemonMet | None:
    """Stop the daemon if it is not needed or has a different version. Start a daemon for connected hosts."""
    home, is_wired = run.settings.home, bool(ways.load(run.settings.home).wishes)
    if is_removal:
        return None if is_wired else home_wiring.end_unneeded(home)
    other = home_wiring.end_other_version(home)
    may_start = starts and is_wired and (other is None or other.state == "ended")
    started = home_wiring.start_for_hosts(run.settings) if may_start else None
    return other or started


def _trust(run: Run, plan: WiringPlan, *, trusts: bool, asks: bool) -> str | None:
    """Return ``before`` if Codex already trusts the hooks, ``now`` if the user agreed to trust them, or ``None``."""
    wish = next((wish for wish in plan.wishes if wish.host == "codex"), None)
    trust = ways.trust_in(run.settings, wish) if wish else None
    if wish is None or trust is None:
        return None
    if trust.seen and not trust.untrusted:
        return "before"
    if not (trusts or (asks and _may_trust())):
        return None
    with connect.attribute_write(run.settings, ways.config_file(run.settings)):
        problem = ways.trust_hooks(run.settings, wish)
    if problem:
        way_out = "" if ways.UNSEEN in problem else "; open codex and type /hooks"
        run.warnings.append(f"Codex: {problem}{way_out}")
    return None if problem else "now"


def _may_trust() -> bool:
    """Ask whether Codex should trust the hooks. Ctrl-C counts as no, because the files are already written."""
    question = "Codex runs only trusted hooks. Trust the new hooks?"
    try:
        return click.confirm(question, default=True, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def _record(
    run: Run,
    done: reports.WiringDone,
    daemon: DaemonMet | None = None,
    captured: Sequence[imports.Captured] = (),
) -> Record:
    plan = done.plan
    return {
        "hosts": plan.wishes,
        "own_memories": plan.own_memories,
        "captured": captured,
        "files": connect.changed_files(run.settings, plan),
        "left_alone": plan.left_alone + done.left_alone,
        "kept": plan.kept,
        "commands": plan.commands,
        "notes": plan.notes,
        "backups": done.backups,
        "old_copies": done.old_copies,
        "daemon": daemon,
        "failed": done.failed,
        "trusted": done.trusted,
    }
