"""``nacre init``: plug nacre into agents' tools, and out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import completions
from nacre.cli.command import TEXT, command
from nacre.cli.formats import Record
from nacre.cli.home import first_reading, init_daemon, init_proposal
from nacre.cli.home import wiring as home_wiring
from nacre.cli.models import writer as cli_writer
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold
from nacre.cli.run import Run
from nacre.errors import InvalidInput
from nacre.platform import ids, private_files
from nacre.portability import host_memories
from nacre.redact import redactor
from nacre.setup import requests as setup_requests
from nacre.setup import writer as setup_writer
from nacre.values import wiring
from nacre.wiring import apply, codex_trust, record, ways
from nacre.wiring import apply as wiring_apply
from nacre.wiring import plan as wiring_plan
from nacre.wiring import preview as wiring_preview

if TYPE_CHECKING:
    from nacre.cli.home.init_daemon import DaemonMet
    from nacre.cli.home.wiring import Shown
    from nacre.portability.host_memories import Captured
    from nacre.setup.requests import WriterRequest
    from nacre.values.wiring import LeftAlone, WiringDone, WiringPlan, WiringWish


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
    shell_complete=completions.completer(completions.hosts),
)
@click.option("--project", type=click.Path(path_type=Path), metavar="PATH", help="For one project only, in its folder.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    help="For all of yours (user), or for the project of this folder.",
)
@click.option("--plain", is_flag=True, help="Claude Code: by its settings, without a plugin.")
@click.option("--slot", is_flag=True, help="OpenClaw: take its place for memory as well.")
@click.option("--tool-hook", is_flag=True, help="Claude Code, Codex: also before edits and commands.")
@click.option(
    "--own-memory",
    type=click.Choice(["isolate", "keep"]),
    help="Claude Code, Codex, OpenClaw: turn off the memory they keep themselves, and import what it holds; or not.",
)
@click.option("--trust-hooks", is_flag=True, help="Codex: have it trust the hooks that are written.")
@click.option("--writer", type=TEXT, metavar="NAME", help="Who writes memories, as claude-cli:haiku; nacre writer.")
@click.option("--tokens-per-day", type=click.IntRange(1), metavar="N", help="What the writer may take a day.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--uninstall", is_flag=True, help="Take it out again.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def init(  # noqa: PLR0913 - one a question
    run: Run, hosts: tuple[str, ...], project: Path | None, scope: str | None, plain: bool, slot: bool,
    tool_hook: bool, own_memory: str | None, trust_hooks: bool, writer: str | None, tokens_per_day: int | None,
    dry_run: bool, uninstall: bool, yes: bool,
) -> None:  # fmt: skip
    """Plug nacre into your agents' tools, and out of them.

    They start their sessions knowing what matters, and leave what they learn. It finds the tools on this machine, shows
    what it would write where, and asks. What others wrote into those files stays to the byte, and a copy of each is put
    beside it. Run again, it mends what is missing or has moved.
    """
    if not dry_run:
        run.settings.actor.require_owner("nacre init")
    asks = run.is_interactive and not yes and not dry_run and not run.as_json
    folder = _folder(project, scope)
    template = wiring.WiringWish("", folder, plain, slot, tool_hook)
    if not (asks or yes or dry_run):
        raise click.UsageError(
            "not interactive: pass --yes, or --dry-run to see what would change", click.get_current_context()
        )
    if tokens_per_day and not writer:
        raise click.UsageError("--tokens-per-day is for a writer: --writer NAME", click.get_current_context())
    named_writer = setup_requests.WriterRequest(writer=writer, tokens_per_day=tokens_per_day) if writer else None
    if named_writer:
        setup_writer.refuse(run.settings, named_writer)
    named = [name.strip() for part in hosts for name in part.split(",") if name.strip()]
    if asks and not (named or uninstall):
        _go_through(run, template, own_memory, named_writer, trusts=trust_hooks)
        return
    wishes = _wishes(run, template, _chosen(run, named, template, uninstall=uninstall), own_memory)
    wanted = _planned(run, wishes, uninstall=uninstall)
    if dry_run:
        _show(run, wanted, named_writer)
        return
    if asks and not wanted.is_nothing:
        _confirm(run, wanted, named_writer)
    _carry_out(run, wishes, wanted if asks else None, uninstall=uninstall, trusts=trust_hooks, asks=asks)
    if writer:
        status = perform(run, "writer-set", writer=writer, tokens_per_day=tokens_per_day)
        run.warnings += [status.problem] if status.problem else []
    if uninstall and (name := setup_writer.named(run.settings)):
        run.warnings.append(f"{name} stays the writer of your sessions: nacre writer off ends that")


def _go_through(
    run: Run, template: WiringWish, own_memory: str | None, writer: WriterRequest | None, *, trusts: bool
) -> None:  # fmt: skip
    """Propose all that makes memory work on this machine, and do what the owner says yes to. Raises InvalidInput."""
    found = [one for one in ways.found_hosts(run.settings) if one.host.by_project or not template.project]
    if not found:
        raise InvalidInput(_NO_HOST, hint="name it: nacre init --host NAME; nacre init --help")
    proposal = init_proposal.proposed(run, writer)

    def planned(names: Sequence[str]) -> WiringPlan:
        return _planned(run, _wishes(run, template, names, own_memory), uninstall=False)

    agreed = init_proposal.agree(run, found, planned, proposal, _shown(run))
    trusts = trusts or init_proposal.trusts_hooks(agreed.plan)
    wishes = _wishes(run, template, agreed.hosts, own_memory)
    _carry_out(run, wishes, agreed.plan, uninstall=False, trusts=trusts, asks=True, goes_on=True)
    if proposal.has_examples:
        first_reading.forget_examples(run)
    is_short = proposal.reading is not None and first_reading.read_first(run, proposal.reading, agreed.reads)
    if proposal.writer and (agreed.writes or proposal.is_named):
        perform(run, "writer-set", **cli_writer.request_of(proposal.writer))
    first_reading.show_reach(run)
    if is_short:
        first_reading.make_rest(run)
    if run.exit_code == 0 and (started := init_daemon.start_for_hosts(run.settings)):
        run.tell(started.told)


def _wishes(
    run: Run, template: WiringWish, chosen: Sequence[WiringWish | str], own_memory: str | None
) -> list[WiringWish]:
    wished = [
        one if isinstance(one, wiring.WiringWish) else ways.settled(run.settings, replace(template, host=one))
        for one in chosen
    ]
    return [_with_own_memory(run, one, own_memory) for one in wished]


def _carry_out(
    run: Run, wishes: list[WiringWish], shown: WiringPlan | None, *, uninstall: bool, trusts: bool, asks: bool,
    goes_on: bool = False,
) -> None:  # fmt: skip
    """Do what was shown, where it was; another process may have done it meanwhile."""
    if not uninstall:
        private_files.make_folder(run.settings.home)
    with wiring_apply.alone(run.settings.home):
        again = _planned(run, wishes, uninstall=uninstall)
        _do(run, shown if shown and not again.is_nothing else again, trusts=trusts, asks=asks, goes_on=goes_on)


def _with_own_memory(run: Run, wish: WiringWish, said: str | None) -> WiringWish:
    """A wish with what is to become of the host's own memory: what is said of it now, else what was said before."""
    before = next((one for one in record.load(run.settings.home).wishes if one.place == wish.place), None)
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
    _render_writer(paper, writer)
    click.echo(f"\n{paper.text()}", err=True)
    question = "Remove it?" if wanted.is_removal else "Write this?"
    while True:
        said = str(click.prompt(f"{question} y(es), n(o), d(iff)", default="n", err=True)).strip().lower()
        if said in ("y", "yes"):
            return
        if said in ("n", "no"):
            raise click.Abort
        if said in ("d", "diff"):
            run.show(lambda paper: home_wiring.render_plan(paper, wanted, places, is_whole=True))
        else:
            click.echo("Type y, n, or d to see every line of it.", err=True)


def _render_writer(paper: Paper, writer: WriterRequest | None) -> None:
    """Who is to write, where somebody is named."""
    if writer:
        bound = f", up to {writer.tokens_per_day:,} tokens a day" if writer.tokens_per_day else ""
        paper.line(bold(f"{'writer':<7}"), f"{writer.writer}, once a session is over{bound}", hang=7)


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
        raise InvalidInput(f"there is no folder {folder}", hint="name the folder of a project: --project PATH")
    return folder


def _chosen(
    run: Run, named: list[str], template: WiringWish, *, uninstall: bool
) -> list[WiringWish] | list[str]:  # fmt: skip
    """Hosts to configure: those named, else those configured, else those detected. Raises InvalidInput."""
    if named:
        return [ways.host_named(name).name for name in dict.fromkeys(named)]
    wired = [one for one in record.load(run.settings.home).wishes if template.project in (None, one.project)]
    if uninstall or wired:  # asked of nobody, it mends what was chosen before, and chooses no more
        return wired
    found = [one for one in ways.found_hosts(run.settings) if one.host.by_project or not template.project]
    if not found:
        raise InvalidInput(_NO_HOST, hint="name it: nacre init --host NAME")
    return [one.host.name for one in found]


def _planned(run: Run, wishes: list[WiringWish], *, uninstall: bool) -> WiringPlan:
    wanted = wiring_plan.plan_removal(run.settings, wishes) if uninstall else wiring_plan.plan(run.settings, wishes)
    run.exit_code = 1 if wanted.left_alone else 0
    return wanted


def _show(run: Run, wanted: WiringPlan, writer: WriterRequest | None) -> None:
    diffs = ["\n".join(wiring_preview.diff_of(change, _clean(run))) for change in wanted.changes]

    def render(paper: Paper) -> None:
        home_wiring.render_plan(paper, wanted, _shown(run))
        _render_writer(paper, writer)

    named = {"writer": writer.writer, "tokens_per_day": writer.tokens_per_day} if writer else {}
    run.answer(_plan_record(wanted, diffs) | named, render)


def _do(run: Run, wanted: WiringPlan, *, trusts: bool, asks: bool, goes_on: bool) -> None:
    captured = _capture(run, wanted)
    done = apply.apply(run.settings, wanted, ids.utc_now())
    run.exit_code = 1 if done.failed or done.left_alone or wanted.left_alone else 0
    trust = None if wanted.is_removal else _trust(run, wanted, trusts=trusts, asks=asks)
    if trust:
        notes = tuple(one for one in wanted.notes if one[0] != "codex")
        done = replace(done, plan=replace(wanted, notes=notes), trusted=trust == "now")
    diffs = ["\n".join(wiring_preview.diff_of(change, _clean(run))) for change in wanted.changes]
    daemon = _settle_daemon(run, is_removal=wanted.is_removal, starts=run.exit_code == 0 and not goes_on)
    run.answer(
        _done_record(done, diffs, daemon, captured),
        lambda paper: home_wiring.render_done(paper, done, _shown(run), daemon, captured),
    )
    if not run.as_json:
        run.flush()


def _capture(run: Run, wanted: WiringPlan) -> list[Captured]:
    """Import what hosts' own memories hold before they are turned off: where that cannot be, nothing is changed."""
    hosts = [] if wanted.is_removal else [wish.host for wish in wanted.wishes if wish.isolates]
    return host_memories.capture(run.home, hosts) if hosts else []


def _settle_daemon(run: Run, *, is_removal: bool, starts: bool) -> DaemonMet | None:
    """End the daemon that nobody needs any more, or that is another nacre's; start one for the hosts that are wired."""
    home, is_wired = run.settings.home, bool(record.load(run.settings.home).wishes)
    if is_removal:
        return None if is_wired else init_daemon.end_unneeded(home)
    other = init_daemon.end_other_version(home)
    may_start = starts and is_wired and (other is None or other.state == "ended")
    started = init_daemon.start_for_hosts(run.settings) if may_start else None
    return other or started


def _trust(run: Run, wanted: WiringPlan, *, trusts: bool, asks: bool) -> str | None:
    """Whether Codex trusts the hooks: ``before``, ``now``, since somebody said that it should, or not."""
    wish = next((one for one in wanted.wishes if one.host == "codex"), None)
    found = codex_trust.trust_in(run.settings, wish) if wish else None
    if wish is None or found is None:
        return None
    if found.seen and not found.untrusted:
        return "before"
    if not (trusts or (asks and _may_trust())):
        return None
    with apply.rewriting(run.settings, codex_trust.config_file(run.settings)):
        problem = codex_trust.trust_hooks(run.settings, wish)
    if problem:
        way_out = "" if codex_trust.UNSEEN in problem else "; open codex and type /hooks"
        run.warnings.append(f"Codex: {problem}{way_out}")
    return None if problem else "now"


def _may_trust() -> bool:
    """Whether Codex is to trust the hooks; who breaks off here has had the files written, and is told so."""
    question = "Codex runs hooks only once they are trusted. Have it trust those that were just written?"
    try:
        return click.confirm(question, default=True, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def _plan_record(plan: WiringPlan, diffs: Sequence[str]) -> Record:
    """What would be, or was, changed."""
    return {
        "hosts": [
            {"host": wish.host, "scope": wish.scope, "project": str(wish.project) if wish.project else None}
            for wish in plan.wishes
        ],
        "own_memories": [
            {"host": one.host, "state": one.state, "told": one.told, "hint": one.hint} for one in plan.own_memories
        ],
        "captured": [],
        "files": [
            {
                "path": str(change.path), "action": change.action, "hosts": list(change.hosts), "what": change.what,
                "diff": diff,
            }
            for change, diff in zip(plan.changes, diffs, strict=True)
        ],
        "left_alone": [_left(one) for one in plan.left_alone],
        "kept": [_left(one) for one in plan.kept],
        "commands": [{"command": list(one.words), "what": one.what} for one in plan.commands],
        "notes": [{"host": host, "note": note} for host, note in plan.notes],
        "done": False, "backups": [], "old_copies": [], "daemon": None, "failed": [], "trusted": False,
    }  # fmt: skip


def _done_record(
    done: WiringDone, diffs: Sequence[str], daemon: DaemonMet | None, captured: Sequence[Captured]
) -> Record:  # fmt: skip
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
