"""``nacre writer``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from nacre import settings
from nacre.care import health
from nacre.cli import output
from nacre.cli.command import Cell, DefaultGroup, Group, Paper, Part, Run, Span, bold, dim
from nacre.cli.operations import ask, perform
from nacre.cli.options import (
    Record,
    argument,
    count,
    float_or_none,
    minute,
    option,
    stamp,
    tokens_record,
    when,
)
from nacre.errors import InvalidInput, ModelRefused
from nacre.home import spending as budgets
from nacre.llm import credentials
from nacre.setup import models as setup_requests
from nacre.setup import setup

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.settings import Settings
    from nacre.setup.models import Offer, SigningIn, Trial, Way, WriterStatus
    from nacre.setup.setup import Foreseen, FoundWriter, WriterProposal
    from nacre.values.models import Capabilities, Price
    from nacre.values.session import Task

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
) -> None:
    """Let somebody write, from the sessions that end from now on.

    Without a name, on a terminal, it proposes the best one on this machine, and tells what that would take: an agent
    that you are signed in to, a server as Ollama, or a provider whose key is found.
    """
    run.settings.actor.require_owner("nacre writer set")
    if writer is None and not run.is_interactive:
        raise click.UsageError(
            "not interactive: name the writer, as claude-cli:haiku", click.get_current_context()
        )
    if writer is None or (
        run.is_interactive and dollars_per_day is None and _is_open(run, writer, tokens_per_day)
    ):
        if not offer(run, writer):
            run.answer({}, lambda paper: paper.line("No writer was set."))
        return
    found = perform(
        run,
        "writer-set",
        writer=writer,
        tokens_per_day=tokens_per_day,
        dollars_per_day=dollars_per_day,
    )
    _answer(run, found)


def _is_open(run: Run, writer: str, tokens_per_day: int | None) -> bool:
    """Whether it is left open what a named writer may take."""
    return setup_requests.is_without_bound(
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
    if not click.confirm(
        f"Let {proposal.writer.label} write{proposal.bound}?", default=False, err=True
    ):
        return False
    _answer(run, perform(run, "writer-set", **request_of(proposal)))
    return True


def proposed(run: Run, name: str | None) -> WriterProposal | None:
    """The writer to propose; ``None`` where none can be set, which is told."""
    if name:
        setup_requests.check_obstacle(run.settings, name)
        return named(run.home, name)
    found = setup.found_writers(run.settings)
    best = setup.best_writer(found)
    if best is None:
        for one in found:
            run.tell(f"{one.label}: {one.problem}")
        run.tell("No one who could write is here; nacre setup sets a model by key, or a local one.")
        return None
    return setup.proposal_of(run.settings, best, setup.foreseen(run.home, best.name), found)


def named(home: Home, name: str) -> WriterProposal:
    """A writer by its name, with what it would take, whether it can be set or not. Raises ModelRefused."""
    found = setup.writer_named(home.settings, name)
    return setup.proposal_of(home.settings, found, setup.foreseen(home, name))


def best_for(home: Home) -> WriterProposal | None:
    """The model that is set where it could write, else the best on this machine; ``None`` where there is none."""
    name = home.settings.text("models.default")
    found = setup.found_writers(home.settings)
    if name not in ("", "none"):
        with suppress(ModelRefused):  # its provider is unknown
            found.insert(0, setup.writer_named(home.settings, name))
    best = setup.best_writer(found)
    if best is None:
        return None
    return setup.proposal_of(home.settings, best, setup.foreseen(home, best.name), found)


def request_of(proposal: WriterProposal) -> dict[str, Any]:
    """What is asked of ``writer-set`` after a yes."""
    wanted = proposal.request
    return {
        "writer": wanted.writer,
        "tokens_per_day": wanted.tokens_per_day,
        "dollars_per_day": wanted.dollars_per_day,
    }


def render_beside(paper: Paper, proposal: WriterProposal) -> None:
    """What may keep the one that is proposed from answering, and who else could write."""
    if proposal.writer.problem:
        paper.line(dim(proposal.writer.problem))
    if proposal.others:
        paper.line(
            dim(
                f"Also here: {', '.join(map(_named, proposal.others))}; nacre writer set NAME takes that one."
            )
        )


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
    return (
        f" ({', '.join(told.tools)}; {', '.join(told.projects) or 'no project'})"
        if told.tools
        else ""
    )


def _answer(run: Run, found: WriterStatus) -> None:
    reads = health.readers(run.settings, run.home.clock)
    run.answer(_record(found, reads), lambda paper: _render(paper, found, reads))


def _record(found: WriterStatus, reads: Sequence[str]) -> Record:
    return {
        "writer": found.writer,
        "state": found.state,
        "tokens_today": found.tokens_today,
        "calls_today": found.calls_today,
        "tokens_per_day": found.limit,
        "calls_per_day": found.most_calls,
        "since": found.since or None,
        "waiting": found.waiting,
        "read_by": list(reads),
        "kept_here": list(found.kept_here),
        "problem": found.problem,
        "hint": found.hint,
    }


def _off(model: str) -> str:
    if model == "none":
        return "nacre writer set proposes one that you have anyway"
    return f"{model} is set, and works only where you ask: nacre writer set {model} has it write by itself"


def _render(paper: Paper, found: WriterStatus, reads: Sequence[str]) -> None:
    if found.state == "off":
        paper.line(
            "Nobody writes: rules keep what you say plainly, the rest waits in nacre review."
        )
        paper.line(dim(_off(found.writer)))
        return
    paper.line(
        bold(found.writer),
        "  ",
        Span(setup_requests.STATES[found.state], _TINTS.get(found.state, "yellow")),
    )
    taken = f"{found.tokens_today:,} tokens in {count(found.calls_today, 'call')}"
    calls = f" in {count(found.most_calls, 'call')}" if found.most_calls else ""
    most = f"{found.limit:,}{calls}" if found.limit else ""
    paper.facts(
        (
            ("today", f"{taken}, of {most}" if most else taken),
            ("waiting", count(found.waiting, "session") if found.waiting else ""),
            (
                "reads",
                f"sessions that ended after {_local(found.since)}"
                if found.since
                else "all sessions",
            ),
            ("kept here", _kept(found.kept_here)),
            ("read by", health.in_words(reads) if reads else Span(health.NOTHING, "yellow")),
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


# ----------------------------------------------------------------------------
# ``nacre models``.


_ANSWERS = {
    "schema": "its provider holds it to a schema",
    "tool": "held to a schema as a tool that it must call",
    "json": "held to JSON, told of the schema",
    "text": "told of the schema",
}


@click.group(
    "models",
    cls=DefaultGroup,
    examples=["nacre models", "nacre models test", "nacre models test ollama:qwen3"],
)
@click.pass_context
def models(ctx: click.Context) -> None:
    """Tell which language models are set, and whether they answer."""
    if ctx.invoked_subcommand:
        return

    run: Run = ctx.obj
    uses, offers = setup_requests.uses(run.home), perform(run, "models")
    settings = run.settings
    run.answer(
        _models_record(settings, uses, offers),
        lambda paper: _render_models(paper, settings, uses, offers),
    )


@models.command(
    "test", examples=["nacre models test", "nacre models test anthropic:claude-haiku-5-5 --json"]
)
@argument("models-test", "name", default="", metavar="[PROVIDER:MODEL]")
@click.pass_obj
def test(run: Run, name: str) -> None:
    """Ask a model one short question, and tell its time, tokens and cost.

    Without a name it is the model of models.default. The question is sent to its provider. Ctrl-C ends
    that at once.
    """
    with output.waiting(run, f"Asking {name or run.settings['models.default']}"):
        trial = setup_requests.try_model(run.home, name)
    run.answer(_trial_record(trial), lambda paper: _render_trial(paper, trial))


def _models_record(settings: Settings, uses: Mapping[Task, str], offers: Sequence[Offer]) -> Record:
    """The models that are set, and what each task has."""
    return {
        "default": settings.text("models.default"),
        "background": settings.flag("models.background"),
        "daily_budget_usd": settings.number("models.daily_budget_usd"),
        "tasks": {task.value: name for task, name in uses.items()},
        "models": [_offer_record(offer) for offer in offers],
    }


def _offer_record(offer: Offer) -> Record:
    able, problem = offer.capabilities, offer.problem
    return {
        "name": offer.name,
        "aliases": list(offer.aliases),
        "provider": offer.label,
        "tasks": [task.value for task in offer.tasks],
        "known": able.known,
        "window": able.window,
        "output": able.output,
        "answers": able.answers,
        "caches": able.caches,
        "price": _price_record(able.price) if able.price else None,
        "credential": offer.credential or None,
        "needs_key": offer.needs_key,
        "problem": {"message": problem.message, "hint": problem.hint} if problem else None,
    }


def _price_record(price: Price) -> Record:
    return {
        "input": float(price.input),
        "output": float(price.output),
        "cached": float(price.cached),
        "written": float(price.written),
    }


def _trial_record(trial: Trial) -> Record:
    """One short call."""
    return {
        "name": trial.name,
        "model": trial.model or None,
        "answer": trial.answer,
        "took_ms": round(trial.seconds * 1000),
        "cost_usd": float_or_none(trial.cost),
        "tokens": tokens_record(trial.tokens),
    }


def _render_models(
    paper: Paper, settings: Settings, uses: Mapping[Task, str], offers: Sequence[Offer]
) -> None:
    """Each model with what it is for, then what goes on without being asked."""
    if not offers:
        paper.line("No language model is set: everything works by rules.")
        paper.line(dim("nacre setup sets one; nacre models test provider:model tries one first"))
        return
    for offer in offers:
        paper.line(bold(offer.name), "  ", dim(offer.label))
        paper.facts(_facts(settings, offer), indent=2)
        paper.blank()
    idle = [task.value for task, name in uses.items() if name == "none"]
    if idle:
        paper.line(dim(f"without a model: {', '.join(idle)}"))
    paper.line(dim(_background(settings, [offer.name for offer in offers])))
    unpriced = [
        offer.name
        for offer in offers
        if offer.problem is None
        and offer.capabilities.price is None
        and budgets.is_priced(settings, offer.name)
    ]
    if unpriced and settings.flag("models.background"):
        told = f"but not {', '.join(unpriced)}: no budget can hold what nobody knows the price of (models.capabilities)"
        paper.line(Span(told, "yellow"))


def _facts(settings: Settings, offer: Offer) -> list[tuple[str, Cell]]:
    able = offer.capabilities
    is_default = settings.text("models.default") in (offer.name, *offer.aliases)
    tasks = ", ".join(task.value for task in offer.tasks)
    facts: list[tuple[str, Cell]] = [("set as", ", ".join(offer.aliases))] if offer.aliases else []
    facts.append(("for", f"{tasks}{' (the default)' if is_default else ''}"))
    if offer.problem is None or offer.credential:
        key = offer.credential or ("missing" if offer.needs_key else "none is needed")
        facts += [("key", key), ("reads", _size(able)), ("answers", _ANSWERS[able.answers])]
        is_paid = budgets.is_priced(settings, offer.name)
        facts.append(
            (
                "price",
                _price(able.price) if is_paid else "none: a subscription pays, tokens are counted",
            )
        )
    if offer.problem:
        facts.append(("problem", Span(offer.problem.message, "red")))
        facts.append(("", dim(offer.problem.hint or "")))
    return facts


def _size(able: Capabilities) -> str:
    cache = ", and keeps what it read before" if able.caches else ""
    unknown = "" if able.known else "; nacre does not know this model and guesses low"
    return f"{able.window:,} tokens, answers up to {able.output:,}{cache}{unknown}"


def _price(price: Price | None) -> str:
    if price is None:
        return "not known; models.capabilities tells it"
    if not price.input and not price.output:
        return "free"
    return f"{_dollars(price.input)} in, {_dollars(price.output)} out, {_dollars(price.cached)} cached, a million tokens"  # noqa: E501


def _dollars(amount: Decimal) -> str:
    return f"${amount:,.2f}" if amount == round(amount, 2) else f"${amount.normalize():f}"


def _background(settings: Settings, names: Sequence[str]) -> str:
    """Whether models work without being asked, and within which bounds: tokens where a subscription pays."""
    if not settings.flag("models.background"):
        return "in the background: off (models.background)"
    paid = {budgets.is_priced(settings, name) for name in names}
    bounds = [f"${settings.number(budgets.DAILY):,.2f}"] if True in paid else []
    bounds += (
        [f"{settings.whole(budgets.TOKENS):,} tokens of a subscription"] if False in paid else []
    )
    return f"in the background: on, up to {' and '.join(bounds)} a day"


def _render_trial(paper: Paper, trial: Trial) -> None:
    """That it answers, and what that took."""
    tokens = trial.tokens
    whole = tokens.input + tokens.cached + tokens.written
    free = "by subscription" if trial.is_by_subscription else "free"
    cost = (
        "cost not known"
        if trial.cost is None
        else f"${trial.cost.normalize():f}"
        if trial.cost
        else free
    )
    paper.line(Span("✓ ", "green"), bold(trial.name), f" answers: {trial.answer}")
    facts = [f"{trial.seconds:.2f} s", f"{count(whole, 'token')} in, {tokens.output:,} out", cost]
    if trial.model and trial.model != trial.name.partition(":")[2]:
        facts.append(f"by {trial.model}")
    paper.line(dim(" · ".join(facts)))


# ----------------------------------------------------------------------------
# ``nacre auth``: what nacre can sign in with.


MOST_KEY_CHARACTERS = 20_000
_MARKS = {
    "found": Span("found", "green"),
    "expired": Span("expired", "yellow"),
    "unreadable": Span("unreadable", "red"),
    "missing": Span("missing", "dim"),
}


@click.group(
    "auth",
    cls=Group,
    examples=["nacre auth status", "nacre auth set openai", "nacre auth remove anthropic"],
)
def auth() -> None:
    """Tell what nacre can sign in to models with; set and remove keys."""


@auth.command("status", examples=["nacre auth status", "nacre auth status --json"])
@click.pass_obj
def status_auth(run: Run) -> None:
    """Show every way to sign in to a model, whether its credential is there, and where from.

    Keys are shown by their last four characters. Nothing is changed, and nothing is asked of the network.
    """
    found: SigningIn = perform(run, "auth")
    run.answer(_status_record(found), lambda paper: _render_status(paper, found))


@auth.command("set", examples=["nacre auth set openai", "pass show openai | nacre auth set openai"])
@argument("auth-set", "provider")
@click.pass_obj
def set_key(run: Run, provider: str) -> None:
    """Keep another key of a provider: typed without being shown, or from standard input.

    It goes into the system's keyring, where none works into credentials.toml. nacre setup chooses models.
    """
    if run.is_interactive:
        secret = str(
            click.prompt(f"Key of {provider} (not shown)", hide_input=True, err=True)
        ).strip()
    else:
        secret = sys.stdin.read(MOST_KEY_CHARACTERS).strip()
    kept: str = perform(
        run, "auth-set", provider=provider, secret=checked_key(secret, "standard input")
    )
    taken = credentials.credential_for(
        settings.load_settings(run.settings.home, run.settings.environ), provider
    )
    if taken and taken.secret != secret:
        run.warnings.append(
            f"{taken.origin} holds another key, and goes before the one that was kept"
        )
    record = {"provider": provider, "kept": kept, "masked": credentials.mask(secret)}
    run.answer(
        record,
        lambda paper: paper.line(
            f"Kept: the key {credentials.mask(secret)} of {provider}, in {kept}."
        ),
    )


@auth.command("remove", examples=["nacre auth remove anthropic", "nacre auth remove openai --yes"])
@argument("auth-remove", "provider")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(run: Run, provider: str, yes: bool) -> None:
    """Delete the key of a provider that nacre was given.

    From the keyring, credentials.toml and the config. Logins of other tools and the environment are left alone.
    """
    if run.is_interactive and not yes:
        run.confirm(f"Delete the key of {provider}?")
    removed: list[str] = perform(run, "auth-remove", provider=provider)
    left = setup_requests.left(run.settings, provider)

    def render(paper: Paper) -> None:
        paper.line("Deleted: the key of ", bold(provider), f", from {' and '.join(removed)}.")
        for place in left:
            paper.line(
                f"It still signs in with what is in {place}, which is not nacre's.", indent=2
            )

    run.answer({"provider": provider, "removed": removed, "left": left}, render)


def checked_key(secret: str, where: str) -> str:
    """A key that can be one. Raises InvalidInput."""
    if not secret:
        raise InvalidInput(f"there is no key in {where}", hint="nacre setup --help")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InvalidInput(
            f"what is in {where} is no key: it holds spaces, line ends or odd characters"
        )
    return secret


def _status_record(found: SigningIn) -> Record:
    """Every way, the commands of agent tools, and where keys are kept."""
    return {
        "model": found.model,
        "ways": [_way_record(way) for way in found.ways],
        "programs": [
            {"provider": one.provider, "name": one.name, "path": one.path or None}
            for one in found.programs
        ],
        "keyring": found.keyring or None,
        "why_no_keyring": found.why_no_keyring or None,
        "key_file": found.key_file,
    }


def _way_record(way: Way) -> Record:
    """One way to sign in."""
    best = way.best
    credential = best.credential if best else None
    return {
        "method": way.method or None,
        "provider": way.provider,
        "label": way.label,
        "state": way.state,
        "used": way.is_used,
        "kind": credential.kind if credential else None,
        "masked": credential.masked if credential else None,
        "origin": best.origin if best else None,
        "expires": stamp(best.expires) if best else None,
        "problem": (best.problem or None) if best else None,
        "warning": (best.warning or None) if best else None,
        "hint": (best.hint or None) if best else None,
        "looked": [place.origin for place in way.places],
    }


def _render_status(paper: Paper, found: SigningIn) -> None:
    """The model that is set, where keys are kept, every method, and the providers of which a key is there."""
    paper.facts(
        (
            ("model", "none: nacre works without one" if found.model == "none" else found.model),
            ("keys are kept", kept_in(found)),
            ("commands", programs(found)),
        )
    )
    paper.heading("Ways to sign in")
    shown = [way for way in found.ways if way.method or way.state != "missing" or way.is_used]
    width = max(len(way.method or way.provider) for way in shown)
    for way in shown:
        _render_way(paper, way, width)
    missing = [way.provider for way in found.ways if way not in shown]
    if missing:
        paper.blank()
        paper.line(dim(f"By a key, none found: {', '.join(missing)}"), hang=2)
    if found.model == "none" or not any(way.is_used for way in found.ways):
        paper.line(dim("nacre setup chooses a model and signs in"))


def kept_in(found: SigningIn) -> str:
    """Where keys that nacre is given go."""
    if found.keyring:
        return f"in the keyring ({found.keyring})"
    return f"in {found.key_file}, yours alone: {found.why_no_keyring}"


def programs(found: SigningIn) -> str:
    """The agent tools' commands that are installed."""
    return (
        ", ".join(f"{one.name} ({one.path})" for one in found.programs if one.path)
        or "neither claude nor codex"
    )


def _render_way(paper: Paper, way: Way, width: int) -> None:
    mark = _MARKS[way.state]
    padded = Span(f"{mark.text:<10}".replace(" ", "\u00a0"), mark.style)
    name = f"{way.method or way.provider:<{width}}".replace(" ", "\u00a0")
    best = way.best
    parts: list[Part] = [padded, "  ", bold(name), "  ", way.label]
    if way.is_used:
        parts.append(Span(" (in use)", "green"))
    paper.line(*parts, hang=width + 14)
    indent = width + 14
    if best is None:
        looked = [place.origin for place in way.places if place.origin[0] in "$/~"]
        paper.line(dim(f"not in {', '.join(looked)}"), indent=indent, hang=2)
        hints = dict.fromkeys(place.hint for place in way.places if place.hint)
    else:
        if best.credential:
            paper.line(
                f"{best.credential.masked} from {best.origin}{_ends(way)}", indent=indent, hang=2
            )
        for problem in filter(None, (best.problem, best.warning)):
            paper.line(Span(problem, "yellow"), indent=indent, hang=2)
        hints = dict.fromkeys([best.hint] if best.hint else [])
    for hint in hints:
        paper.line(dim(hint), indent=indent, hang=2)


def _ends(way: Way) -> str:
    best = way.best
    return f", until {when(best.expires)}" if best and best.expires and best.is_usable else ""
