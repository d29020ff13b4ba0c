"""``nacre writer``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.formats import Record, count, minute
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.errors import ModelRefused
from nacre.health import readers
from nacre.setup import foreseeing, found_writers
from nacre.setup import requests as setup_requests
from nacre.setup import writer as writers

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.setup.foreseeing import Foreseen
    from nacre.setup.found_writers import FoundWriter, WriterProposal
    from nacre.setup.writer import WriterStatus

KEPT_HERE = (
    "Sessions with a model that may run on your own machine (qwen, llama, gpt-oss …) "
    "go only to a writer on this machine."
)
"""What a consent says of sessions that no writer elsewhere is shown."""

_TINTS = {"ready": "green", "failing": "red", "unavailable": "red"}


@click.group(
    "writer",
    cls=DefaultGroup,
    examples=[
        "nacre writer",
        "nacre writer set claude-cli:haiku --tokens-per-day 100000",
        "nacre writer pause",
    ],
)
@click.pass_context
def writer(context: click.Context) -> None:
    """Tell who writes memories from your sessions, and change that.

    Rules keep what you say plainly. A writer reads each session once, when it is over, and writes down what else is
    worth keeping. It can be the agent that you have anyway: no key is needed. It is shown what was said, without
    secrets, and stops at what you allow a day.
    """
    if context.invoked_subcommand is None:
        _answer(context.obj, ask(context.obj, "writer"))


@writer.command("status", examples=["nacre writer status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell who writes, and what it took today."""
    _answer(run, ask(run, "writer"))


@writer.command(
    "set",
    examples=[
        "nacre writer set",
        "nacre writer set claude-cli:haiku --tokens-per-day 100000",
        "nacre writer set ollama:qwen3:8b",
    ],
)
@argument("writer-set", "writer", metavar="[NAME]", required=False)
@option("writer-set", "tokens_per_day")
@option("writer-set", "dollars_per_day")
@click.pass_obj
def set_writer(
    run: Run, writer: str | None, tokens_per_day: int | None, dollars_per_day: float | None
) -> None:  # fmt: skip
    """Let somebody write, from the sessions that end from now on.

    Without a name, on a terminal, it proposes the best one on this machine, and tells what that would take: an agent
    that you are signed in to, a server as Ollama, or a provider whose key is found.
    """
    run.settings.actor.require_owner("nacre writer set")
    if writer is None and not run.is_interactive:
        raise click.UsageError("not interactive: name the writer, as claude-cli:haiku", click.get_current_context())
    if writer is None or (run.is_interactive and dollars_per_day is None and _is_open(run, writer, tokens_per_day)):
        if not offer(run, writer):
            run.answer({}, lambda paper: paper.line("No writer was set."))
        return
    found = perform(
        run, "writer-set", writer=writer, tokens_per_day=tokens_per_day, dollars_per_day=dollars_per_day
    )  # fmt: skip
    _answer(run, found)


def _is_open(run: Run, writer: str, tokens_per_day: int | None) -> bool:
    """Whether it is left open what a named writer may take."""
    return writers.is_without_bound(
        run.settings, setup_requests.WriterRequest(writer=writer, tokens_per_day=tokens_per_day)
    )


@writer.command("pause", examples=["nacre writer pause"])
@click.pass_obj
def pause(run: Run) -> None:
    """Show the writer no session for now; those that end meanwhile wait."""
    _answer(run, perform(run, "writer-pause"))


@writer.command("resume", examples=["nacre writer resume"])
@click.pass_obj
def resume(run: Run) -> None:
    """Show the writer sessions again."""
    _answer(run, perform(run, "writer-resume"))


@writer.command("off", examples=["nacre writer off"])
@click.pass_obj
def off(run: Run) -> None:
    """Have no writer: rules keep what you say plainly, the rest waits for your review."""
    _answer(run, perform(run, "writer-off"))


def offer(run: Run, name: str | None = None) -> bool:
    """Propose a writer, by its name or the best on this machine, with what it would take; returns whether the owner
    said yes. Raises ModelRefused for one that is named and cannot be set.
    """
    proposal = proposed(run, name)
    if proposal is None:
        return False
    paper = run.paper(stderr=True)
    paper.line(bold("Who writes your memories"))
    told = proposal.foreseen
    much = f"That is {told.in_words}; it" if told.tokens else "It"
    paper.body(
        f"{proposal.writer.label} can read each session once, when it is over, and write down what is worth keeping. "
        f"{much} {proposal.terms}. {shown(proposal)}",
        indent=0,
    )
    render_beside(paper, proposal)
    click.echo(f"\n{paper.text()}", nl=False, err=True)
    if not click.confirm(f"Let {proposal.writer.label} write{proposal.bound}?", default=False, err=True):
        return False
    _answer(run, perform(run, "writer-set", **request_of(proposal)))
    return True


def proposed(run: Run, name: str | None) -> WriterProposal | None:
    """The writer to propose; ``None`` where none can be set, which is told."""
    if name:
        writers.check_obstacle(run.settings, name)
        return named(run.home, name)
    found = found_writers.found_writers(run.settings)
    best = found_writers.best_writer(found)
    if best is None:
        for one in found:
            run.tell(f"{one.label}: {one.problem}")
        run.tell("No one who could write is here; nacre setup sets a model by key, or a local one.")
        return None
    return found_writers.proposal_of(run.settings, best, foreseeing.foreseen(run.home, best.name), found)


def named(home: Home, name: str) -> WriterProposal:
    """A writer by its name, with what it would take, whether it can be set or not. Raises ModelRefused."""
    found = found_writers.writer_named(home.settings, name)
    return found_writers.proposal_of(home.settings, found, foreseeing.foreseen(home, name))


def best_for(home: Home) -> WriterProposal | None:
    """The model that is set where it could write, else the best on this machine; ``None`` where there is none."""
    name = home.settings.text("models.default")
    found = found_writers.found_writers(home.settings)
    if name not in ("", "none"):
        with suppress(ModelRefused):  # its provider is unknown
            found.insert(0, found_writers.writer_named(home.settings, name))
    best = found_writers.best_writer(found)
    if best is None:
        return None
    return found_writers.proposal_of(home.settings, best, foreseeing.foreseen(home, best.name), found)


def request_of(proposal: WriterProposal) -> dict[str, Any]:
    """What is asked of ``writer-set`` after a yes."""
    wanted = proposal.request
    return {
        "writer": wanted.writer, "tokens_per_day": wanted.tokens_per_day, "dollars_per_day": wanted.dollars_per_day,
    }  # fmt: skip


def render_beside(paper: Paper, proposal: WriterProposal) -> None:
    """What may keep the one that is proposed from answering, and who else could write."""
    if proposal.writer.problem:
        paper.line(dim(proposal.writer.problem))
    if proposal.others:
        paper.line(dim(f"Also here: {', '.join(map(_named, proposal.others))}; nacre writer set NAME takes that one."))


def _named(one: FoundWriter) -> str:
    return f"{one.name} ({one.problem.rstrip('.')})" if one.problem else one.name


def shown(proposal: WriterProposal) -> str:
    """Which sessions a writer is shown, in sentences."""
    kept = "" if proposal.writer.is_here else f" {KEPT_HERE}"
    return (
        "It is shown, without secrets, the sessions of all tools and projects that nacre reads"
        f"{covered(proposal.foreseen)}; writer.exclude_tools and writer.exclude_projects leave some out.{kept}"
    )


def covered(told: Foreseen) -> str:
    """Which tools and projects these are, going by a week's sessions; empty where none tells."""
    return f" ({', '.join(told.tools)}; {', '.join(told.projects) or 'no project'})" if told.tools else ""


def _answer(run: Run, found: WriterStatus) -> None:
    reads = readers.readers(run.settings, run.home.clock)
    run.answer(_record(found, reads), lambda paper: _render(paper, found, reads))


def _record(found: WriterStatus, reads: Sequence[str]) -> Record:
    return {
        "writer": found.writer, "state": found.state, "tokens_today": found.tokens_today,
        "calls_today": found.calls_today, "tokens_per_day": found.limit, "calls_per_day": found.most_calls,
        "since": found.since or None, "waiting": found.waiting, "read_by": list(reads),
        "kept_here": list(found.kept_here), "problem": found.problem, "hint": found.hint,
    }  # fmt: skip


def _off(model: str) -> str:
    if model == "none":
        return "nacre writer set proposes one that you have anyway"
    return f"{model} is set, and works only where you ask: nacre writer set {model} has it write by itself"


def _render(paper: Paper, found: WriterStatus, reads: Sequence[str]) -> None:
    if found.state == "off":
        paper.line("Nobody writes: rules keep what you say plainly, the rest waits in nacre review.")
        paper.line(dim(_off(found.writer)))
        return
    paper.line(bold(found.writer), "  ", Span(writers.STATES[found.state], _TINTS.get(found.state, "yellow")))
    taken = f"{found.tokens_today:,} tokens in {count(found.calls_today, 'call')}"
    calls = f" in {count(found.most_calls, 'call')}" if found.most_calls else ""
    most = f"{found.limit:,}{calls}" if found.limit else ""
    paper.facts(
        (
            ("today", f"{taken}, of {most}" if most else taken),
            ("waiting", count(found.waiting, "session") if found.waiting else ""),
            ("reads", f"sessions that ended after {_local(found.since)}" if found.since else "all sessions"),
            ("kept here", _kept(found.kept_here)),
            ("read by", readers.in_words(reads) if reads else Span(readers.NOTHING, "yellow")),
        ),
        indent=2,
    )
    if found.problem:
        paper.line(found.problem)
    if found.hint:
        paper.line(dim(f"hint: {found.hint}"))


def _kept(models: Sequence[str]) -> str:
    """The last week's sessions that no writer elsewhere is shown, with what answered in them."""
    named = ", ".join(dict.fromkeys(models))
    return (
        f"{count(len(models), 'session')} of the last 7 days, with what may run on this machine: {named}"
        if models
        else ""
    )


def _local(since: str) -> str:
    """A time as the person's clock has it; what is none stays as it was written."""
    with suppress(ValueError):
        return minute(datetime.fromisoformat(since))
    return since
