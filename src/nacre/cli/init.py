"""``nacre init`` and ``nacre quickstart``. On a terminal, init shows the whole proposal and asks once."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from nacre import __version__, settings
from nacre.base import files, ids, link
from nacre.base.frozen import frozen
from nacre.cli import writer as cli_writer
from nacre.cli.command import TEXT, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.learn import render_estimate
from nacre.cli.options import YES, Record, count, duration, flag, perform, size
from nacre.cli.status import describe_sources, render_problems, render_story
from nacre.data import imports
from nacre.errors import InvalidInputError
from nacre.home import spending
from nacre.hosts import connect, registry, ways
from nacre.redact import redactor
from nacre.serve import homes
from nacre.setup import examples, setup
from nacre.values import reports

if TYPE_CHECKING:
    from nacre.settings import Settings
    from nacre.setup.models import WriterStatus
    from nacre.values.reports import FileChange, LeftAlone, WiringDone, WiringPlan, WiringWish

_START_SECONDS = 10.0


@frozen
class DaemonChange:
    """The effect of a command on the daemon.

    ``state`` is ``runs`` if an outdated or unneeded daemon keeps running because hooks did not
    start it.
    """

    version: str
    state: Literal["started", "ended", "runs"]
    message: str


def _start_for_hosts(settings: Settings) -> DaemonChange | None:
    try:
        started = (
            link.start_daemon(settings.home, settings.environ)
            if settings.flag("daemon.enabled")
            else None
        )
    except OSError:
        return None  # hooks try again
    if started is None:
        return None
    until = time.monotonic() + _START_SECONDS
    while not (greeting := homes.greet(settings.home)) or not greeting.is_warm:
        if started.poll() is not None or time.monotonic() > until:
            return None  # its log has the reason; hooks try again
        time.sleep(0.05)
    idle = f"{settings.number('daemon.idle_minutes'):g} minutes without use"
    message = f"The daemon now runs (fast answers); it ends after {idle}."
    return DaemonChange(__version__, "started", message)


def _settle_daemon(settings: Settings, *, is_removal: bool, starts: bool) -> DaemonChange | None:
    is_needed = bool(ways.load(settings.home).wishes)
    greeting = homes.greet(settings.home)
    if is_removal and (is_needed or greeting is None):
        return None
    if greeting is None or (greeting.version == __version__ and not is_removal):
        return _start_for_hosts(settings) if starts and is_needed else None
    version = greeting.version
    if greeting.on_demand and link.ask_to_stop(settings.home):
        if is_removal:
            message = "The daemon was stopped. Only nacre ingest reads new sessions now."
        else:
            message = f"The daemon of nacre {version} was stopped; the next one has {__version__}."
            if starts and is_needed:
                _start_for_hosts(settings)
        return DaemonChange(version, "ended", message)
    if is_removal:
        reads = " and reading your agents' sessions" if greeting.following else ""
        stop = "to stop it, run nacre serve stop, or nacre serve uninstall to remove its service"
        return DaemonChange(version, "runs", f"The daemon is still running{reads}; {stop}.")
    message = f"The daemon has version {version}, not {__version__}: restart it (nacre serve stop)."
    return DaemonChange(version, "runs", message)


# ----------------------------------------------------------------------------
# Planned and completed changes to hosts' files.


_STYLES = {"+": "green", "-": "red", "@": "cyan"}
Clean = Callable[[str], str]
_LONGEST_LINE = 300
_NEW_LINES = 12
"""Maximum number of lines shown of a new file."""
_PLANNED_VERBS = {"create": "write", "change": "change", "remove": "remove"}
_DONE_VERBS = {"create": "wrote", "change": "changed", "remove": "removed"}


@frozen
class _Display:
    user: Path
    home: Path
    clean: Clean

    def short(self, path: Path) -> str:
        return f"~/{path.relative_to(self.user)}" if path.is_relative_to(self.user) else str(path)


def _render_plan(
    paper: Paper, plan: WiringPlan, places: _Display, *, is_whole: bool = False
) -> None:
    verbs = {action: f"would {verb}" for action, verb in _PLANNED_VERBS.items()}
    _render_changes(paper, plan, places, verbs, shows_lines=True, is_whole=is_whole)
    same = sum(change.action == "none" for change in plan.changes)
    if same:
        paper.note(f"{count(same, 'file')} already up to date")


def _render_changes(
    paper: Paper,
    plan: WiringPlan,
    places: _Display,
    verbs: Mapping[str, str],
    *,
    shows_lines: bool = False,
    is_whole: bool = False,
) -> None:
    width = max(map(len, verbs.values()))
    own: Counter[tuple[str, str, str]] = Counter()
    for change in plan.changes:
        if change.action == "none":
            continue
        if change.path.is_relative_to(places.home) and not is_whole:
            own[change.action, change.hosts[0], change.what] += 1
            continue
        labels = ", ".join(registry.ALL_HOSTS[host].label for host in change.hosts)
        verb = bold(f"{verbs[change.action]:<{width}}")
        paper.line(verb, f" {places.short(change.path)}", dim(f"  {labels}: {change.what}"))
        for line in _changed_lines(change, places.clean, is_whole=is_whole) if shows_lines else ():
            paper.verbatim("  " + line, _STYLES.get(line[:1], "dim"))
    for (action, host, what), number in own.items():
        where = f" {count(number, 'file')} in {places.short(places.home / 'hosts' / host)}"
        what = f"  {registry.ALL_HOSTS[host].label}: {what}"
        paper.title(f"{verbs[action]:<{width}}", where, dim(what))
    for memory in plan.own_memories:
        style = "yellow" if memory.hint else "green"
        label = registry.ALL_HOSTS[memory.host].label
        hint = f" ({memory.hint})" if memory.hint else ""
        state = f" own memory of {label}: {memory.told}{hint}"
        paper.line(Span(f"{memory.state:<8}", style), state, hang=2)
    _render_skipped(paper, plan.left_alone, places)
    _render_skipped(paper, plan.kept, places, "kept      ")


def _render_done(
    paper: Paper,
    result: WiringDone,
    places: _Display,
    daemon: DaemonChange | None = None,
    captured: Sequence[imports.Captured] = (),
) -> None:
    skipped = {item.path for item in result.left_alone}
    made = tuple(change for change in result.plan.changes if change.path not in skipped)
    plan = replace(result.plan, changes=made)
    _render_changes(paper, plan, places, _DONE_VERBS)
    if result.trusted:
        paper.line(Span(f"{'trusted':<8}", "green"), " the hooks, by Codex")
    elif result.plan.is_nothing and not plan.left_alone:
        state = "nothing is connected." if plan.is_removal else "everything is connected."
        paper.line(f"Nothing to do: {state}")
    _render_captured(paper, captured, places)
    for path in result.backups:
        paper.note(f"backup: {places.short(path)}")
    for path in result.old_copies:
        paper.note(f"original file, before nacre: {places.short(path)}")
    _render_skipped(paper, result.left_alone, places)
    if daemon:
        paper.line(daemon.message, hang=2)
    if plan.is_removal:
        paper.note(f"Your memories stay in {places.short(places.home)}.")
        return
    for host, note in plan.notes:
        if not plan.is_nothing or host == registry.NAME_CODEX:  # its hooks are not trusted yet
            paper.title(registry.ALL_HOSTS[host].label, f": {note}", hang=2)
    paper.note("nacre admin doctor hosts tests the hooks; nacre init --uninstall removes them.")


def _render_captured(paper: Paper, captured: Sequence[imports.Captured], places: _Display) -> None:
    for host in dict.fromkeys(item.host for item in captured):
        own = [item for item in captured if item.host == host]
        added, updated = sum(item.added for item in own), sum(item.updated for item in own)
        if added or updated:
            above = places.short(Path(os.path.commonpath([item.path for item in own])))
            changed = f", {updated} changed" if updated else ""
            hint = dim(f"  searchable; to give them to sessions: nacre data import {above} --trust")
            paper.line(
                Span("imported", "green"),
                f" {count(added, 'memory')} of {above}{changed}",
                hint,
                hang=2,
            )
        for item in own:
            if item.problem:
                paper.line(
                    Span("left alone", "yellow"),
                    f" {places.short(item.path)}: {item.problem}",
                    hang=2,
                )


def _changed_lines(change: FileChange, clean: Clean, *, is_whole: bool) -> Iterator[str]:
    lines = [  # some settings files consist of a single line
        line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
        for line in connect.diff_of(change, clean)[2:]
    ]
    if change.action == "change" or is_whole:
        yield from lines
        return
    if change.action == "remove":
        return
    yield from lines[1 : _NEW_LINES + 1]
    if len(lines) > _NEW_LINES + 1:
        yield f"  … and {len(lines) - _NEW_LINES - 1} more lines"


def _render_skipped(
    paper: Paper, items: Sequence[LeftAlone], places: _Display, label: str = "left alone"
) -> None:
    for alone in items:
        reason = f" {places.short(alone.path)}: {alone.reason} ({alone.hint})"
        paper.line(Span(label, "yellow"), reason, hang=2)


# ----------------------------------------------------------------------------
# The proposal of ``nacre init``.


def _render_setup(
    paper: Paper,
    plan: WiringPlan,
    hosts: Sequence[ways.FoundHost],
    proposal: setup.SetupProposal,
    places: _Display,
) -> None:
    paper.line(
        "nacre connects to your agents: their sessions start with your memory, and nacre learns from them."
    )
    paper.heading("Found on this machine")
    states = [(item, "already connected" if item.is_wired else "") for item in hosts]
    paper.table(
        [(item.host.label, dim(joined((item.program, state), ", "))) for item, state in states],
        indent=2,
    )
    paper.heading("To do")
    _render_changes(paper, plan, places, _PLANNED_VERBS)
    has_codex = any(host.host.name == registry.NAME_CODEX and host.program for host in hosts)
    costs = "the cost of a model is below" if proposal.estimate else "this is free"
    files = f"{count(proposal.files, 'transcript')} of {size(proposal.bytes)}"
    rows = (
        (
            has_codex and _needs_trust(plan),
            "trust  ",
            "the hooks, in Codex",
            "which runs only trusted hooks",
        ),
        (proposal.has_examples, "forget ", "the example sessions", "and their memories"),
        (proposal.files, "read   ", files, f"they stay in place; {costs}"),
    )
    for is_planned, verb, subject, remark in rows:
        if is_planned:
            paper.title(verb, subject, "  ", dim(remark), hang=7)
    if proposal.estimate:
        render_estimate(paper, proposal.estimate)
    if proposal.writer:
        paper.blank()
        cli_writer.render_offer(paper, proposal.writer)
        paper.note("Type w to accept this too.")


def _needs_trust(plan: WiringPlan) -> bool:
    return not plan.is_removal and any(
        registry.NAME_CODEX in change.hosts and change.action != "none" for change in plan.changes
    )


# ----------------------------------------------------------------------------
# ``nacre quickstart``.


@command("quickstart", examples=["nacre quickstart"])
def quickstart(run: Run) -> None:
    """Read your agents' transcripts and show what nacre learns from them.

    Without transcripts, it uses six example sessions. A second run adds no duplicates.
    """
    result = perform(run, setup.run_quickstart)
    run.present(result, render_quickstart, run.settings.where_documents)
    if run.is_interactive:
        run.flush()
        start_daemon(run)


def start_daemon(run: Run) -> None:
    """Start the daemon, and tell the user."""
    if started := _start_for_hosts(run.settings):
        run.tell(started.message)


def render_quickstart(paper: Paper, result: setup.QuickstartResult, vault: str) -> None:
    """Print the transcripts and memories of a quickstart, and commands to try next."""
    render_first_look(paper, result)
    paper.heading("Next steps")
    rows = [
        ('nacre recall "…"', "ask a question in your own words"),
        ("nacre open", "see, search and edit everything in your browser"),
        ("nacre init", "connect your agents to this memory"),
    ]
    if result.has_examples:
        rows.append(("nacre forget --examples", "delete the examples and their memories"))
    paper.table([(bold(words), purpose) for words, purpose in rows], indent=2)
    paper.title(vault, "  your memories as Markdown", indent=2)
    paper.line(*_describe_writer(result.status.writer, result.found), indent=2)


def render_first_look(paper: Paper, result: setup.QuickstartResult) -> None:
    """Print the transcripts and memories of a quickstart."""
    _render_read(paper, result)
    if result.status.story:
        render_story(paper, result.status.story)
    render_problems(paper, result.report.problems)


def _describe_writer(
    writer: WriterStatus, candidate: setup.FoundWriter | None
) -> tuple[str | Span, ...]:
    if writer.state != "off":
        pending = f"; {count(writer.waiting, 'session')} to read" if writer.waiting else ""
        return (
            f"{writer.writer} writes other memories after each session{pending}: ",
            bold("nacre writer"),
        )
    problem = f". {candidate.problem}" if candidate and candidate.problem else ""
    return (
        "Without a model, nacre keeps only your explicit statements. "
        f"{candidate.label if candidate else 'A language model'} can write other memories after each session: ",
        bold("nacre writer set"),
        problem,
    )


def _render_read(paper: Paper, result: setup.QuickstartResult) -> None:
    report = result.report
    if result.source == "examples":
        could = "could be read" if report.unread or report.problems else "were found"
        paper.title(
            f"No agent transcripts {could} on this machine", ", so these are example sessions."
        )
    else:
        paper.title("Your agents' transcripts were found on this machine.")
    memories = count(result.status.memories, "memory")
    sessions = count(result.status.sessions, "session")
    read = f"{size(report.bytes_read)} in {duration(report.seconds)}"
    remark = (
        f"{report.vectors_left:,} passages and memories have no vectors until the daemon is done"
    )
    paper.facts(
        (
            ("read", read if report.files else "nothing new since the last run"),
            ("now", f"{memories}, {sessions}: {describe_sources(result.status)}"),
            ("vectors", report.vectors_note or (remark if report.vectors_left else "")),
        )
    )
    for line in report.unread:
        paper.note(line, indent=2)


# ----------------------------------------------------------------------------
# A late step of ``nacre init``: read existing sessions.


def read_first(run: Run, *, is_later: bool) -> None:
    """Read all existing sessions, or set a start date so that the daemon reads only newer ones."""
    if is_later:
        stamp = run.home.clock().isoformat(timespec="milliseconds")
        settings.write_setting(run.settings.config, "watch.changed_since", stamp)
        run.tell("New sessions are read as they happen. To read older sessions, run nacre ingest.")
        return
    click.echo(err=True)
    run.answer({}, render_first_look, perform(run, setup.run_quickstart))
    run.flush()


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
@flag("--slot", "OpenClaw: also use its memory slot.")
@flag("--tool-hook", "Claude Code, Codex: also run before edits and commands.")
@click.option(
    "--own-memory",
    type=click.Choice(["isolate", "keep", "note"]),
    help="Import the host's built-in memory and turn it off (isolate), keep it on, or add a block about nacre to its "
    "MEMORY.md (note).",
)
@flag("--trust-hooks", "Codex: trust the hooks.")
@flag("--dry-run", "Only show what would change.")
@flag("--uninstall", "Disconnect nacre.")
@YES
def init(  # noqa: PLR0913 - one parameter per option
    run: Run,
    hosts: tuple[str, ...],
    project: Path | None,
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
    interactive = run.is_interactive and not yes and not dry_run and not run.as_json
    folder = _folder(project)
    template = reports.WiringWish("", folder, slot, tool_hook)
    if not (interactive or yes or dry_run):
        raise click.UsageError("not interactive: pass --yes, or --dry-run to see what would change")
    names = [name.strip() for part in hosts for name in part.split(",") if name.strip()]
    if interactive and not (names or uninstall):
        _run_dialog(run, template, own_memory, trusts=trust_hooks)
        return
    wishes = _select_wishes(run, names, template, uninstall=uninstall)
    wishes = [_with_own_memory(run, wish, own_memory) for wish in wishes]
    plan = _plan(run, wishes, uninstall=uninstall)
    if dry_run:
        record = {**_record(run, reports.WiringDone(plan, ())), "done": False}
        run.answer(record, _render_plan, plan, _display(run))
        return
    if interactive and not plan.is_nothing:
        run.show(_render_changes, plan, _display(run), _PLANNED_VERBS)
        _ask(run, "Remove it?" if uninstall else "Write this?", plan, {"y": "y(es)"}, "n")
    _carry_out(run, plan, trusts=trust_hooks, interactive=interactive)
    if uninstall and spending.has_writer(run.settings):
        run.warnings.append(
            "a writer still reads your sessions: turn it off with nacre writer set none"
        )


def _run_dialog(run: Run, template: WiringWish, own_memory: str | None, *, trusts: bool) -> None:
    hosts = _detect_hosts(run, template)
    with setup.existing_or_temporary_home(run.settings) as home:
        proposal = setup.propose_setup(home)
    wishes = _wishes_for([host.host.name for host in hosts], template)
    wishes = [_with_own_memory(run, wish, own_memory) for wish in wishes]
    plan = _plan(run, wishes, uninstall=False)
    run.show(_render_setup, plan, hosts, proposal, _display(run))
    choice = "y"
    if not (plan.is_nothing and not plan.left_alone and proposal.is_nothing):
        choices = {"y": "y(es)"}
        choices |= {"w": "w(ith writer)"} if proposal.writer else {}
        choices |= {"l": "l(ater: read no sessions now)"} if proposal.files else {}
        choice = _ask(run, "Do this?", plan, choices)
    trusts = trusts or _needs_trust(plan)
    _carry_out(run, plan, trusts=trusts, interactive=True, has_next_step=True)
    if proposal.has_examples:
        examples.forget(run.home, examples.plan_to_forget(run.home))
        run.tell("The example sessions are deleted: nacre recall now uses your own sessions.")
    if proposal.files:
        read_first(run, is_later=choice == "l")
    if proposal.writer and choice == "w":
        cli_writer.accept(run, proposal.writer)
    if run.exit_code == 0:
        start_daemon(run)


def _wishes_for(names: Sequence[str], template: WiringWish) -> list[WiringWish]:
    return [ways.drop_unsupported(replace(template, host=name)) for name in dict.fromkeys(names)]


def _carry_out(
    run: Run, plan: WiringPlan, *, trusts: bool, interactive: bool, has_next_step: bool = False
) -> None:
    if not plan.is_removal:
        files.make_folder(run.settings.home)
    with connect.alone(run.settings.home):
        again = _plan(run, plan.wishes, uninstall=plan.is_removal)
        # Use the plan that the user saw, unless another process has already carried it out.
        plan = plan if interactive and not again.is_nothing else again
        hosts = [] if plan.is_removal else [wish.host for wish in plan.wishes if wish.isolates]
        captured = (
            imports.capture(run.home, hosts) if hosts else []
        )  # before a host's memory is turned off
        result = connect.apply(run.settings, plan, ids.utc_now())
        run.exit_code = 1 if result.left_alone or plan.left_alone else 0
        trust = (
            None if plan.is_removal else _trust(run, plan, trusts=trusts, interactive=interactive)
        )
        if trust:
            notes = tuple((host, note) for host, note in plan.notes if host != "codex")
            result = replace(result, plan=replace(plan, notes=notes), trusted=trust == "now")
        daemon = _settle_daemon(
            run.settings,
            is_removal=plan.is_removal,
            starts=run.exit_code == 0 and not has_next_step,
        )
        record = {**_record(run, result, daemon, captured), "done": True}
        run.answer(record, _render_done, result, _display(run), daemon, captured)
        if not run.as_json:
            run.flush()


def _with_own_memory(run: Run, wish: WiringWish, own_memory: str | None) -> WiringWish:
    previous = next(
        (item for item in ways.load(run.settings.home).wishes if item.place == wish.place), None
    )
    isolates = own_memory == "isolate" if own_memory else bool(previous and previous.isolates)
    introduces = own_memory == "note" if own_memory else bool(previous and previous.introduces)
    can = ways.can_isolate(wish) if isolates else ways.has_own_memory(wish)
    if (isolates or introduces) and not can:
        label = ways.host_named(wish.host).label
        scope = " in a project" if wish.project else ""
        warning = f"{label}{scope} has no memory of its own that nacre can {'turn off' if isolates else 'change'}"
        run.warnings += [warning] if warning not in run.warnings else []
        isolates = introduces = False
    return replace(wish, isolates=isolates, introduces=introduces)


def _ask(
    run: Run, question: str, plan: WiringPlan, choices: Mapping[str, str], default: str = "y"
) -> str:
    choices = {**choices, "n": "n(o)", "d": "d(iff)"}
    while True:
        words = f"{question} {', '.join(choices.values())}"
        answer = str(click.prompt(words, default=default, err=True)).strip().lower()
        if answer in ("n", "no"):
            raise click.Abort
        if answer in ("d", "diff"):
            run.show(_render_plan, plan, _display(run), is_whole=True)
        elif answer == "yes" or answer in choices:
            return answer[0]
        else:
            click.echo(f"{answer!r} is not a choice.", err=True)


def _display(run: Run) -> _Display:
    return _Display(
        run.settings.user_home,
        run.settings.home.resolve(),
        (redactor.Redactor(*run.settings.redaction).clean),
    )


def _folder(project: Path | None) -> Path | None:
    if not project:
        return None
    folder = project.expanduser().resolve()
    if not folder.is_dir():
        raise InvalidInputError(
            f"there is no folder {folder}", hint="name the folder of a project: --project PATH"
        )
    return folder


def _select_wishes(
    run: Run, names: list[str], template: WiringWish, *, uninstall: bool
) -> list[WiringWish]:
    if names:
        return _wishes_for([ways.host_named(name).name for name in names], template)
    wishes = [
        wish
        for wish in ways.load(run.settings.home).wishes
        if template.project in (None, wish.project)
    ]
    if uninstall or wishes:  # without a dialog, repair earlier choices and add none
        return wishes
    return _wishes_for([host.host.name for host in _detect_hosts(run, template)], template)


def _detect_hosts(run: Run, template: reports.WiringWish) -> list[ways.FoundHost]:
    hosts = [
        host
        for host in ways.found_hosts(run.settings)
        if host.host.by_project or not template.project
    ]
    if not hosts:
        hint = "name it: nacre init --host NAME; see nacre init --help"
        raise InvalidInputError("no agent was found on this machine", hint=hint)
    return hosts


def _plan(run: Run, wishes: Sequence[WiringWish], *, uninstall: bool) -> WiringPlan:
    plan = (
        connect.plan_removal(run.settings, wishes)
        if uninstall
        else connect.plan(run.settings, wishes)
    )
    run.exit_code = 1 if plan.left_alone else 0
    return plan


def _trust(run: Run, plan: WiringPlan, *, trusts: bool, interactive: bool) -> str | None:
    wish = next((wish for wish in plan.wishes if wish.host == "codex"), None)
    trust = ways.trust_in(run.settings, wish) if wish else None
    if wish is None or trust is None:
        return None
    if trust.hooks and not trust.untrusted:
        return "before"
    if not (trusts or (interactive and _may_trust())):
        return None
    with connect.attribute_write(run.settings, ways.config_file(run.settings)):
        problem = ways.trust_hooks(run.settings, wish)
    if problem:
        way_out = "" if ways.UNSEEN in problem else "; open codex and type /hooks"
        run.warnings.append(f"Codex: {problem}{way_out}")
    return None if problem else "now"


def _may_trust() -> bool:
    question = "Codex runs only trusted hooks. Trust the new hooks?"
    try:
        return click.confirm(question, default=True, err=True)
    except click.Abort:
        # Ctrl-C means no, because files were already written.
        click.echo(err=True)
        return False


def _record(
    run: Run,
    result: reports.WiringDone,
    daemon: DaemonChange | None = None,
    captured: Sequence[imports.Captured] = (),
) -> Record:
    plan = result.plan
    return {
        "hosts": plan.wishes,
        "own_memories": plan.own_memories,
        "captured": captured,
        "files": connect.changed_files(run.settings, plan),
        "left_alone": plan.left_alone + result.left_alone,
        "kept": plan.kept,
        "notes": plan.notes,
        "backups": result.backups,
        "old_copies": result.old_copies,
        "daemon": daemon,
        "trusted": result.trusted,
    }
