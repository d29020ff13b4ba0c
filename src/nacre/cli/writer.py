"""``nacre writer``: the writer, models, keys, vectors, cost and traces."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from nacre import settings
from nacre.base import text
from nacre.base.json import to_plain
from nacre.care import health
from nacre.cli import output
from nacre.cli.command import Cell, DefaultGroup, Paper, Part, Run, Span, bold, dim, joined
from nacre.cli.operations import ask, perform
from nacre.cli.options import (
    SHORT_ID,
    YES,
    amount,
    argument,
    count,
    flag,
    limit_option,
    minute,
    option,
    seconds,
    size,
    when,
)
from nacre.errors import InvalidInputError
from nacre.home import spending as budgets
from nacre.home import views
from nacre.llm import credentials
from nacre.memories import vectors
from nacre.recall import pins
from nacre.setup import models as setup_requests
from nacre.setup import setup
from nacre.values import models as values_models
from nacre.values.models import Capabilities, Price, Trace, dollars

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.memories.vectors import Embedded, Lot, Plan, Standing
    from nacre.settings import Settings
    from nacre.setup.models import Offer, SigningIn, Trial, Way, WriterStatus
    from nacre.setup.setup import FoundWriter, WriterProposal
    from nacre.values.session import Task

KEPT_HERE = (
    "Sessions with a model that may run on your own machine (qwen, llama, gpt-oss …) "
    "go only to a writer on this machine."
)
"""Part of the consent text about sessions that are not sent to remote writers."""

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
def writer(run: Run) -> None:
    """Show or change the model that writes memories from your sessions.

    What you state explicitly is always stored, even without a model. A writer is a model that reads each session once,
    after the session ends, and stores other things worth keeping. Your existing agent can be the writer, without a key.
    Secrets are removed before the writer gets the conversation. The writer stops at your daily limit.
    """
    _answer(run, ask(run, setup_requests.WriterStatus, "writer"))


@writer.command(
    "set",
    examples=[
        "nacre writer set",
        "nacre writer set claude-cli:haiku --tokens-per-day 100000",
        "nacre writer set none",
    ],
)
@argument("writer-set", "writer", metavar="[NAME]", required=False)
@option("writer-set", "tokens_per_day")
@option("writer-set", "dollars_per_day")
def set_writer(
    run: Run, writer: str | None, tokens_per_day: int | None, dollars_per_day: float | None
) -> None:
    """Set the writer for sessions that end from now on.

    Without NAME, on a terminal, this command proposes the best writer on this machine and its limit. A writer can be an
    agent that you are signed in to, a server such as Ollama, or a provider with a key. The name none removes the
    writer. Then only your explicit statements are stored, and everything else waits for your review.
    """
    run.settings.actor.require_owner("nacre writer set")
    if writer == "none":
        if tokens_per_day is not None or dollars_per_day is not None:
            raise click.UsageError("none cannot be combined with a limit")
        _answer(run, perform(run, setup_requests.end))
        return
    if writer is None and not run.is_interactive:
        raise click.UsageError("not interactive: name the writer, such as claude-cli:haiku")
    if writer is None or (
        run.is_interactive
        and dollars_per_day is None
        and (
            setup_requests.is_without_bound(
                run.settings,
                setup_requests.WriterRequest(writer=writer, tokens_per_day=tokens_per_day),
            )
        )
    ):
        if not offer(run, writer):
            run.answer({}, Paper.line, "No writer was set.")
        return
    writer_status = perform(
        run,
        setup_requests.set_writer,
        writer=writer,
        tokens_per_day=tokens_per_day,
        dollars_per_day=dollars_per_day,
    )
    _answer(run, writer_status)


@writer.command("pause", examples=["nacre writer pause"])
def pause(run: Run) -> None:
    """Pause the writer, so that new sessions wait until it resumes."""
    _answer(run, perform(run, setup_requests.pause))


@writer.command("resume", examples=["nacre writer resume"])
def resume(run: Run) -> None:
    """Let the writer read sessions again."""
    _answer(run, perform(run, setup_requests.resume))


def offer(run: Run, name: str | None = None) -> bool:
    """Ask the owner to let a model write memories, and set this writer if the owner agrees.

    Without a name, the best model on this machine is proposed. Return True if the owner agrees.
    Raises ModelRefusedError if the named model cannot be a writer.
    """
    proposal = proposed(run, name)
    if proposal is None:
        return False
    run.introduce(_render_offer, proposal)
    if not click.confirm(
        f"Let {proposal.writer.label} write memories{proposal.bound}?", default=False, err=True
    ):
        return False
    _answer(run, perform(run, setup_requests.set_writer, **request_of(proposal)))
    return True


def _render_offer(paper: Paper, proposal: setup.WriterProposal) -> None:
    paper.line(bold("Writer of your memories"))
    paper.line(
        f"{proposal.writer.label} can read each session once, after it ends, and write memories from it. "
        f"It {proposal.terms}. {describe_scope(proposal)}"
    )
    render_alternatives(paper, proposal)


def proposed(run: Run, name: str | None) -> WriterProposal | None:
    """Return the writer to propose. If there is none, print the reason and return ``None``."""
    if name:
        setup_requests.check_obstacle(run.settings, name)
        return named(run.home, name)
    proposal = setup.propose(run.home)
    if proposal is None:
        for candidate in setup.found_writers(run.settings):
            run.tell(f"{candidate.label}: {candidate.problem}")
        run.tell(
            "No writer is available: start a local model, or store a key with nacre writer keys PROVIDER."
        )
    return proposal


def named(home: Home, name: str) -> WriterProposal:
    """Propose a model as the writer, even if the model cannot be used now. Raises ModelRefusedError."""
    found = setup.writer_named(home.settings, name)
    return setup.proposal_of(home.settings, found, setup.scope_of(home, name))


def request_of(proposal: WriterProposal) -> dict[str, Any]:
    """Return the arguments for ``writer-set`` from an accepted proposal."""
    request = proposal.request
    return {
        "writer": request.writer,
        "tokens_per_day": request.tokens_per_day,
        "dollars_per_day": request.dollars_per_day,
    }


def render_alternatives(paper: Paper, proposal: WriterProposal) -> None:
    """Print why the proposed writer cannot be used, and which other writers are available."""
    if proposal.writer.problem:
        paper.note(proposal.writer.problem)
    if proposal.others:
        paper.note(
            f"Also available: {', '.join(map(_named, proposal.others))}; choose with nacre writer set NAME."
        )


def _named(writer: FoundWriter) -> str:
    return f"{writer.name} ({writer.problem.rstrip('.')})" if writer.problem else writer.name


def describe_scope(proposal: WriterProposal) -> str:
    """Describe the sessions that a writer reads, with the tools and projects of the latest sessions, if any."""
    kept = "" if proposal.writer.is_here else f" {KEPT_HERE}"
    scope = proposal.scope
    projects = ", ".join(scope.projects) or "no project"
    covered = f" ({', '.join(scope.tools)}; {projects})" if scope.tools else ""
    return (
        "It gets the sessions of all tools and projects that nacre reads"
        f"{covered}, with secrets removed; exclude some with writer.exclude_tools and writer.exclude_projects.{kept}"
    )


def _answer(run: Run, writer_status: WriterStatus) -> None:
    reads = health.readers(run.settings)
    run.answer({**to_plain(writer_status), "read_by": reads}, _render, writer_status, reads)


def _off(model: str) -> str:
    if model == "none":
        return "nacre writer set proposes an agent or a model"
    return f"{model} only works on request; to make it the writer: nacre writer set {model}"


def _render(paper: Paper, writer_status: WriterStatus, reads: Sequence[str]) -> None:
    if writer_status.state == "off":
        paper.line(
            "No writer: rules keep your explicit statements. Other candidates are pending in nacre review."
        )
        paper.note(_off(writer_status.writer))
        return
    paper.line(
        bold(writer_status.writer),
        "  ",
        Span(setup_requests.STATES[writer_status.state], _TINTS.get(writer_status.state, "yellow")),
    )
    taken = f"{writer_status.tokens_today:,} tokens in {count(writer_status.calls_today, 'call')}"
    most = f"{writer_status.limit:,}" if writer_status.limit else ""
    paper.facts(
        (
            ("today", f"{taken}, of {most}" if most else taken),
            ("pending", count(writer_status.waiting, "session") if writer_status.waiting else ""),
            (
                "reads",
                f"sessions that ended after {_local(writer_status.since)}"
                if writer_status.since
                else "all sessions",
            ),
            ("kept here", _kept(writer_status.kept_here)),
            ("read by", health.in_words(reads) if reads else Span(health.NOTHING, "yellow")),
        ),
        indent=2,
    )
    if writer_status.problem:
        paper.line(writer_status.problem)
    if writer_status.hint:
        paper.note(f"hint: {writer_status.hint}")


def _kept(models: Sequence[str]) -> str:
    """Describe the sessions that only a local writer may read. ``models``: each session's model."""
    named = ", ".join(dict.fromkeys(models))
    return (
        f"{count(len(models), 'session')} of the last 7 days, with models that may run on this machine: {named}"
        if models
        else ""
    )


def _local(since: str) -> str:
    """Convert a time to the local time zone. Return the text unchanged if it is not a time."""
    with suppress(ValueError):
        return minute(datetime.fromisoformat(since))
    return since


# ----------------------------------------------------------------------------
# ``nacre writer models``.


@writer.command(
    "models",
    examples=[
        "nacre writer models",
        "nacre writer models --test",
        "nacre writer models --test ollama:qwen3",
    ],
)
@argument("models-test", "name", default="", metavar="[PROVIDER:MODEL]")
@flag("--test", "Ask a model one short question.")
def models(run: Run, name: str, test: bool) -> None:
    """Show the configured language models, or test one.

    --test asks the named model, or else models.default, a question, and shows the time, tokens and cost. The model's
    provider receives the question. Ctrl-C stops immediately.
    """
    settings = run.settings
    if name and not test:
        raise click.UsageError("PROVIDER:MODEL needs --test")
    if test:
        with output.waiting(run, f"Asking {name or settings['models.default']}"):
            trial = perform(run, setup_requests.try_model, name=name)
        run.present(trial, _render_trial)
        return
    uses, offers = setup_requests.uses(run.home), perform(run, setup_requests.offers)
    run.answer({"tasks": uses, "models": offers}, _render_models, settings, uses, offers)


def _render_models(
    paper: Paper, settings: Settings, uses: Mapping[Task, str], offers: Sequence[Offer]
) -> None:
    if not offers:
        paper.line("No language model is set: everything works by rules.")
        paper.note(
            "nacre writer set or nacre config set models.default sets one; "
            "nacre writer models --test PROVIDER:MODEL tries one first"
        )
        return
    for offer in offers:
        paper.line(bold(offer.name), "  ", dim(offer.label))
        paper.facts(_facts(settings, offer), indent=2)
        paper.blank()
    idle = [task.value for task, name in uses.items() if name == "none"]
    if idle:
        paper.note(f"without a model: {', '.join(idle)}")
    paper.note(_background(settings, [offer.name for offer in offers]))
    unpriced = [
        offer.name
        for offer in offers
        if offer.problem is None
        and offer.capabilities.price is None
        and not budgets.is_by_subscription(settings, offer.name)
    ]
    if unpriced and settings.flag("models.background"):
        note = f"but not {', '.join(unpriced)}: budgets need a price (set models.capabilities)"
        paper.note(note, "yellow")


def _facts(settings: Settings, offer: Offer) -> list[tuple[str, Cell]]:
    able = offer.capabilities
    facts: list[tuple[str, Cell]] = [("for", ", ".join(task.value for task in offer.tasks))]
    if offer.problem is None or offer.credential:
        key = offer.credential or ("missing" if offer.needs_key else "not needed")
        facts += [("key", key), ("reads", _size(able))]
        is_paid = not budgets.is_by_subscription(settings, offer.name)
        facts.append(
            (
                "price",
                describe_price(able.price)
                if is_paid
                else "none: paid by subscription, tokens are counted",
            )
        )
    if offer.problem:
        facts.append(("problem", Span(offer.problem.message, "red")))
        facts.append(("", dim(offer.problem.hint or "")))
    return facts


def _size(able: Capabilities) -> str:
    cache = ", with prompt caching" if able.caches else ""
    unknown = "" if able.known else "; unknown model, low estimate"
    return f"{able.window:,} tokens, answers up to {able.output:,}{cache}{unknown}"


def describe_price(price: Price | None) -> str:
    """Describe the price of a model."""
    if price is None:
        return "unknown; set models.capabilities"
    if not price.input and not price.output:
        return "free"
    return f"{_dollars(price.input)} in, {_dollars(price.output)} out, {_dollars(price.cached)} cached per million tokens"  # noqa: E501


def _dollars(amount: Decimal) -> str:
    return f"${amount:,.2f}" if amount == round(amount, 2) else f"${amount.normalize():f}"


def _background(settings: Settings, names: Sequence[str]) -> str:
    if not settings.flag("models.background"):
        return "in the background: off (models.background)"
    paid = {not budgets.is_by_subscription(settings, name) for name in names}
    bounds = [f"${settings.number(budgets.DAILY):,.2f}"] if True in paid else []
    bounds += (
        [f"{settings.whole(budgets.TOKENS):,} tokens of a subscription"] if False in paid else []
    )
    return f"in the background: on, up to {' and '.join(bounds)} a day"


def _render_trial(paper: Paper, trial: Trial) -> None:
    tokens = trial.tokens
    whole = tokens.input + tokens.cached + tokens.written
    free = "by subscription" if trial.is_by_subscription else "free"
    cost = "cost unknown" if trial.cost is None else dollars(trial.cost) if trial.cost else free
    paper.line(Span("✓ ", "green"), bold(trial.name), f" answers: {trial.answer}")
    facts = [f"{trial.seconds:.2f} s", f"{count(whole, 'token')} in, {tokens.output:,} out", cost]
    if trial.model and trial.model != trial.name.partition(":")[2]:
        facts.append(f"by {trial.model}")
    paper.note(" · ".join(facts))


# ----------------------------------------------------------------------------
# ``nacre writer keys``.


MAX_KEY_CHARACTERS = 20_000
_MARKS = {
    "found": Span("found", "green"),
    "expired": Span("expired", "yellow"),
    "unreadable": Span("unreadable", "red"),
    "missing": Span("missing", "dim"),
}


@writer.command(
    "keys",
    examples=[
        "nacre writer keys",
        "pass show openai | nacre writer keys openai",
        "nacre writer keys anthropic --remove",
    ],
)
@argument("auth-set", "provider", required=False)
@flag("--remove", "Delete the provider's key that nacre stores.")
@flag("--yes", "With --remove: do not ask.", "-y")
def keys(run: Run, provider: str | None, remove: bool, yes: bool) -> None:
    """Show the credentials for models, or store or remove a provider's key.

    Without PROVIDER, you see every way to sign in, the origin of each credential, and only the last four characters of
    keys. Nothing is changed, and the network is not used.

    With PROVIDER, type the provider's key at a hidden prompt or send the key to standard input. The key is stored in
    the system's keyring. If there is no keyring, the key is stored in credentials.toml. --remove deletes the key, also
    from the config. Logins of other tools and environment variables are not changed.
    """
    if provider and remove:
        _remove_key(run, provider, yes=yes)
    elif provider:
        _set_key(run, provider)
    elif remove:
        raise click.UsageError("--remove needs a provider")
    else:
        run.present(perform(run, setup_requests.status), _render_status)


def _set_key(run: Run, provider: str) -> None:
    if run.is_interactive:
        secret = str(
            click.prompt(f"Key for {provider} (hidden)", hide_input=True, err=True)
        ).strip()
    else:
        secret = sys.stdin.read(MAX_KEY_CHARACTERS).strip()
    kept = perform(
        run,
        setup_requests.replace_key,
        provider=provider,
        secret=check_key(secret, "standard input"),
    )
    taken = credentials.credential_for(
        settings.load_settings(run.settings.home, run.settings.environ), provider
    )
    if taken and taken.secret != secret:
        run.warnings.append(
            f"{taken.origin} has a different key, which takes precedence over the stored one"
        )
    record = {"provider": provider, "kept": kept, "masked": credentials.mask(secret)}
    run.answer(
        record, Paper.line, f"Stored the key {credentials.mask(secret)} for {provider} in {kept}."
    )


def _remove_key(run: Run, provider: str, *, yes: bool) -> None:
    run.confirm(f"Delete the key for {provider}?", yes=yes)
    removed = perform(run, setup_requests.remove, provider=provider)
    left = setup_requests.left(run.settings, provider)

    def render(paper: Paper) -> None:
        paper.line("Deleted the key for ", bold(provider), f" from {' and '.join(removed)}.")
        for place in left:
            paper.line(
                f"It still signs in with the credential in {place}, which nacre does not manage.",
                indent=2,
            )

    run.answer({"provider": provider, "removed": removed, "left": left}, render)


def check_key(secret: str, where: str) -> str:
    """Return a key in a valid format. Raises InvalidInputError."""
    if not secret:
        raise InvalidInputError(f"there is no key in {where}", hint="nacre writer keys --help")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InvalidInputError(
            f"the key in {where} is invalid: it contains spaces, line breaks or unusual characters"
        )
    return secret


def _render_status(paper: Paper, signing_in: SigningIn) -> None:
    paper.facts(
        (
            (
                "model",
                "none: nacre works without one" if signing_in.model == "none" else signing_in.model,
            ),
            ("keys stored", describe_key_storage(signing_in)),
            ("commands", list_programs(signing_in)),
        )
    )
    paper.heading("Sign-in methods")
    shown = [way for way in signing_in.ways if way.method or way.state != "missing" or way.is_used]
    width = max(len(way.method or way.provider) for way in shown)
    for way in shown:
        _render_way(paper, way, width)
    missing = [way.provider for way in signing_in.ways if way not in shown]
    if missing:
        paper.blank()
        paper.note(f"By key, none found: {', '.join(missing)}", hang=2)
    if signing_in.model == "none" or not any(way.is_used for way in signing_in.ways):
        paper.note("nacre writer set proposes a model; nacre writer keys PROVIDER stores a key")


def describe_key_storage(signing_in: SigningIn) -> str:
    """Describe where nacre stores keys."""
    if signing_in.keyring:
        return f"in the keyring ({signing_in.keyring})"
    return f"in {signing_in.key_file}, readable only by you: {signing_in.why_no_keyring}"


def list_programs(signing_in: SigningIn) -> str:
    """List the installed commands of agent tools."""
    return (
        ", ".join(
            f"{program.name} ({program.path})" for program in signing_in.programs if program.path
        )
        or "neither claude nor codex"
    )


def _render_way(paper: Paper, way: Way, width: int) -> None:
    mark = _MARKS[way.state]
    padded = Span(f"{mark.text:<10}".replace(" ", "\u00a0"), mark.style)
    name = f"{way.method or way.provider:<{width}}".replace(" ", "\u00a0")
    parts: list[Part] = [padded, "  ", bold(name), "  ", way.label]
    if way.is_used:
        parts.append(Span(" (in use)", "green"))
    paper.line(*parts, hang=width + 14)
    indent = width + 14
    if way.state == "missing":
        looked = [place for place in way.looked if place[0] in "$/~"]
        paper.note(f"not in {', '.join(looked)}", indent=indent)
    if way.masked:
        until = f", until {when(way.expires)}" if way.expires and way.state == "found" else ""
        paper.line(f"{way.masked} from {way.origin}{until}", indent=indent)
    for problem in filter(None, (way.problem, way.warning)):
        paper.note(problem, "yellow", indent=indent)
    for hint in way.hints:
        paper.note(hint, indent=indent)


# ----------------------------------------------------------------------------
# ``nacre writer embedding``.


_LOT_STATES = {"in_use": "in use", "making": "being created"}


@writer.command(
    "embedding",
    examples=[
        "nacre writer embedding",
        "nacre writer embedding openai:text-embedding-3-small --estimate",
        "nacre writer embedding --resume",
    ],
)
@argument("embed-switch", "name", metavar="[MODEL]", required=False)
@flag("--resume", "Create the missing vectors.")
@flag("--estimate", "Only show the expected cost; send and change nothing.")
@YES
def embed(run: Run, name: str | None, resume: bool, estimate: bool, yes: bool) -> None:
    """Show the embedding model, or switch to another.

    Without MODEL, you see the current model, the numbers of vectors and pending texts, and where texts are sent.

    MODEL is minilm (bundled, offline), onnx:FOLDER, or PROVIDER:MODEL, with @N for N dimensions. PROVIDER is openai,
    gemini, voyage, ollama, lmstudio, or any model provider. Recall uses the old vectors until all new vectors are
    complete. Then the old vectors are deleted. An interrupted switch continues with --resume, at the next ingest, or in
    the daemon. To cancel the switch, name the current model.

    You are asked before texts leave this machine, unless you agreed earlier. The daily budget does not apply.
    """
    if name and resume:
        raise click.UsageError("--resume cannot be combined with a model")
    if name or resume:
        _make(run, name, estimate=estimate, yes=yes)
    elif estimate or yes:
        raise click.UsageError("--estimate and --yes need a model or --resume")
    else:
        standing = perform(run, vectors.status)
        run.answer(
            {**to_plain(standing), "held_by": standing.held and standing.held.reason},
            _render_standing,
            standing,
        )


def _make(run: Run, name: str | None, *, estimate: bool, yes: bool) -> None:
    """Switch to the named model, or create the missing vectors of the current model."""
    model = name or run.settings.text("embedding.model")
    if name or model != "none":
        planned = perform(run, vectors.plan, name=model)
        model = planned.setting
        if estimate:
            record = {**to_plain(planned), "asks": planned.wants_yes}
            run.answer(record, _render_plan, planned)
            return
        trial = perform(run, vectors.try_one, name=name) if name else None
        if planned.wants_yes or (name and planned.texts):
            _ask_to_send(run, planned, trial, yes=yes)
    made = perform(run, vectors.switch, name=name) if name else perform(run, vectors.resume)
    run.exit_code = 1 if made.left and made.note else 0
    run.warnings += [
        f"the pinned answer to {pin.question!r} is gone: nacre admin check"
        for pin in perform(run, pins.check_pins)
        if not pin.holds
    ]
    run.answer({"setting": model, **to_plain(made)}, _render_made, model, made)


def _ask_to_send(run: Run, planned: Plan, trial: vectors.Trial | None = None, *, yes: bool) -> None:
    if yes or planned.place.is_local:
        return
    if not run.is_interactive:
        raise click.UsageError(
            f"{_describe_sending(planned)}: check with --estimate, then add --yes"
        )
    run.show(_render_plan, planned, trial)
    run.confirm("Continue?")


def _render_standing(paper: Paper, standing: Standing) -> None:
    paper.line(
        bold(standing.wanted),
        "  ",
        dim(_where(standing.place) if standing.wanted != "none" else "vectors are off"),
    )
    if standing.problem:
        paper.note(standing.problem.message, "red", indent=2)
        paper.note(standing.problem.hint or "", indent=2)
    if standing.held:
        paper.note(standing.held.message, "yellow", indent=2)
        paper.note(standing.held.hint or "", indent=2)
    for lot in (standing.in_use, standing.other):
        if lot:
            paper.blank()
            state = (
                "started, then canceled"
                if lot.state == "making" and not standing.switching
                else _LOT_STATES[lot.state]
            )
            paper.line(bold(lot.setting), "  ", dim(state))
            paper.facts(_lot_facts(lot), indent=2)
    if standing.in_use is None:
        paper.note("no vectors yet: nacre ingest creates them", indent=2)
    if standing.switching:
        paper.blank()
        paper.line("Recall uses the old vectors until the new ones are complete.")
        if not standing.held:
            paper.note("nacre writer embedding --resume, nacre ingest or the daemon continues")


def _lot_facts(lot: Lot) -> list[tuple[str, Cell]]:
    made = f"{count(lot.passages, 'passage')}, {count(lot.memories, 'memory', 'memories')}"
    facts: list[tuple[str, Cell]] = [("model", lot.model)] if lot.model != lot.setting else []
    facts.append(("vectors", f"{made}; {lot.dimensions:,} dimensions, {size(lot.bytes)}"))
    if lot.waiting:
        facts.append(("pending", f"{count(lot.waiting, 'text')}"))
    return facts


def _where(place: values_models.Place) -> str:
    if not place.host:
        return "texts stay on this machine"
    return f"texts go to {place.host}" + (", on this machine" if place.is_here else "")


def _describe_sending(plan: Plan) -> str:
    now = f"{count(plan.texts, 'text')} ({plan.tokens:,} tokens, {_embedding_cost(plan.cost)})"
    return f"{now} would be sent to {plan.place.host}; later texts and questions, too"


def _render_plan(paper: Paper, plan: Plan, trial: vectors.Trial | None = None) -> None:
    paper.line(bold(plan.setting), "  ", dim(_where(plan.place)))
    answers = (
        [("answers", f"{trial.dimensions:,} dimensions, in {trial.seconds:.2f} s")] if trial else []
    )
    paper.facts(
        [
            *answers,
            ("replaces", plan.used or "no vectors yet")
            if plan.used != plan.setting
            else ("continues", "its own vectors"),
            ("texts", f"{plan.texts:,}"),
            ("tokens", f"about {plan.tokens:,}"),
            ("cost", _embedding_cost(plan.cost)),
            ("later", _later(plan)),
        ],
        indent=2,
    )


def _later(plan: Plan) -> str:
    """Describe where texts that are added later will be sent."""
    if plan.place.is_local:
        return ""
    if plan.cost is None:
        return "new texts wait until you set the price in models.capabilities or run nacre writer embedding --resume"
    if not plan.place.price:
        return "new texts and each question are sent there too"
    left = values_models.dollars(plan.left)
    return (
        f"new texts and each question are sent there within the daily budget; {left} is left today"
    )


def _embedding_cost(cost: Decimal | None) -> str:
    if cost is None:
        return "price unknown"
    return (
        f"about ${cost:,.2f}" if cost >= Decimal("0.01") else "less than a cent" if cost else "free"
    )


def _spent(made: Embedded) -> Span:
    return dim(f" · {made.tokens:,} tokens" if made.tokens else "")


def _render_made(paper: Paper, setting: str, made: Embedded) -> None:
    if made.left:
        paper.line(
            bold(setting),
            f": {made.made:,} vectors created, {count(made.left, 'text')} pending",
            _spent(made),
        )
        paper.note(
            "nacre writer embedding --resume continues; until then recall uses the existing vectors"
        )
    else:
        created = f"; {count(made.made, 'text')} got vectors" if made.made else ""
        paper.line(Span("✓ ", "green"), bold(setting), f" is in use{created}", _spent(made))
    if made.note:
        paper.note(made.note)


# ----------------------------------------------------------------------------
# ``nacre writer cost`` and ``nacre writer traces``.


_PROMPT_CHARACTERS = 60


@writer.command("cost", examples=["nacre writer cost", "nacre writer cost --json"])
def cost(run: Run) -> None:
    """Show the cost of models today and this month, by task.

    The limits apply to background work, answers in chats, and vectors from a provider. Your own requests are included
    in the table, but never stopped. Calls that a subscription covers are shown as free.
    """
    run.present(ask(run, views.CostReport, "cost"), _render_costs)


def _render_costs(paper: Paper, report: views.CostReport) -> None:
    for limit in report.budgets:
        left = f"{dollars(limit.left)} left" if limit.most else "nothing is allowed"
        name = "today" if limit.period == "day" else "this month"
        paper.line(
            bold(f"{name:<12}".replace(" ", "\u00a0")),
            f"{dollars(limit.spent)} of {dollars(limit.most)} in the background, {left}",
        )
    if not report.is_background_on:
        paper.note("Only chats use models in the background: models.background is off.")
    if not report.tasks:
        paper.line("No model calls this month: nothing was spent.")
        return
    tasks = list(report.tasks)
    if len(tasks) > 1:
        numbers = zip(*(astuple(task)[1:] for task in tasks), strict=True)
        tasks.append(values_models.TaskCost("total", *map(sum, numbers)))
    rows = [
        (
            task.task,
            f"{task.calls_today:,}",
            dollars(task.cost_today),
            f"{task.calls:,}",
            f"{task.failed:,}",
            amount(task.tokens),
            dollars(task.cost),
            f"{task.unpriced:,} of unknown price" if task.unpriced else "",
        )
        for task in tasks
    ]
    paper.blank()
    header = ("task", "calls today", "cost today", "calls", "failed", "tokens", "this month", "")
    paper.table(rows, header=header, drop=(4, 5, 1))


@writer.command(
    "traces",
    examples=[
        "nacre writer traces",
        "nacre writer traces --task dedup",
        "nacre writer traces 5f0c2a4d",
    ],
)
@argument("trace", "reference", metavar="[ID]", required=False)
@option("traces", "task")
@option("traces", "since", help="From this day on: 2026-11-20, 3d, 2w, yesterday, march.")
@limit_option("traces", default=20)
def traces(
    run: Run, reference: str | None, task: str | None, since: datetime | None, limit: int
) -> None:
    """Show the calls of language models, or one call in full: prompt, answer, tokens, cost and error.

    Prompts and answers are stored without secrets. Traces are deleted after traces.keep_days.
    """
    if reference:
        run.present(ask(run, values_models.Trace, "trace", reference=reference), _render_trace)
        return
    entries = ask(run, list[values_models.Trace], "traces", task=task, since=since, limit=limit)
    run.answer({"traces": entries, "limit": limit}, _render_traces, entries)


def _render_traces(paper: Paper, traces: Sequence[Trace]) -> None:
    if not traces:
        paper.line("There are no traces, because no model was called recently.")
        return
    rows = [
        (
            dim(trace.id[-SHORT_ID:]),
            minute(trace.at),
            Span(trace.task.value, "cyan"),
            trace.model,
            seconds(trace.seconds),
            _trace_cost(trace),
            Span(trace.error, "red")
            if trace.error
            else text.shorten(trace.prompt, _PROMPT_CHARACTERS),
        )
        for trace in traces
    ]
    paper.table(rows, header=("id", "when", "task", "model", "took", "cost", ""), drop=(4, 3, 1))
    paper.note("nacre writer traces ID shows one")


def _render_trace(paper: Paper, trace: Trace) -> None:
    paper.line(Span(trace.task.value, "cyan"), "  ", bold(trace.model))
    tokens = trace.tokens
    read = tokens.input + tokens.cached + tokens.written
    facts = (
        minute(trace.at),
        seconds(trace.seconds),
        f"{amount(read)} tokens read, {amount(tokens.output)} written",
        _trace_cost(trace),
        trace.id[-SHORT_ID:],
    )
    paper.note(joined(facts), indent=2)
    for name, content in (("Prompt", trace.prompt), ("Answer", trace.answer)):
        if content:
            paper.heading(name)
            paper.body(content)
    if trace.error:
        paper.heading("Error")
        paper.body(trace.error)


def _trace_cost(trace: Trace) -> str:
    return "price unknown" if trace.cost is None else dollars(trace.cost)
