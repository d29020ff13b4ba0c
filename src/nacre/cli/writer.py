"""``nacre writer``: the writer, models, keys, vectors, cost and traces."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from nacre import settings
from nacre.base import text
from nacre.base.json import to_plain
from nacre.care import health
from nacre.cli.command import Cell, DefaultGroup, Paper, Run, Span, bold, dim, joined
from nacre.cli.options import (
    SHORT_ID,
    YES,
    amount,
    argument,
    ask,
    count,
    duration,
    flag,
    limit_option,
    minute,
    option,
    perform,
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
from nacre.values.models import Call, Place, Price, TaskCost, dollars

if TYPE_CHECKING:
    from nacre.settings import Settings
    from nacre.values.session import Task

_LOCAL_MODELS_NOTE = (
    "Sessions with a model that may run on your own machine (qwen, llama, gpt-oss …) "
    "go only to a writer on this machine."
)

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
@option("writer-set", "tokens_per_day", "dollars_per_day")
def set_writer(
    run: Run, writer: str | None, tokens_per_day: int | None, dollars_per_day: float | None
) -> None:
    """Set the writer for sessions that end from now on.

    Without NAME, on a terminal, this command proposes the best writer on this machine and its limit. A writer can be an
    agent that you are signed in to, a server such as Ollama, or a provider with a key. The name none removes the
    writer. Then only your explicit statements are stored, and everything else waits for your review.
    """
    run.settings.actor.require_owner("nacre writer set")
    is_bounded = (tokens_per_day, dollars_per_day) != (None, None)
    if writer == "none":
        if is_bounded:
            raise click.UsageError("none cannot be combined with a limit")
        _answer(run, perform(run, setup_requests.end))
        return
    if writer is None and not run.is_interactive:
        raise click.UsageError("not interactive: name the writer, such as claude-cli:haiku")
    if writer is None or (run.is_interactive and not is_bounded):
        if not offer(run, writer):
            run.answer({}, Paper.line, "No writer was set.")
        return
    _set(run, writer, tokens_per_day, dollars_per_day)


def _set(run: Run, name: str, tokens: int | None, dollars: float | None) -> None:
    limits = {"tokens_per_day": tokens, "dollars_per_day": dollars}
    _answer(run, perform(run, setup_requests.set_writer, writer=name, **limits))


@writer.command("pause", examples=["nacre writer pause"])
def pause(run: Run) -> None:
    """Pause the writer, so that new sessions wait until it resumes."""
    _answer(run, perform(run, setup_requests.pause))


@writer.command("resume", examples=["nacre writer resume"])
def resume(run: Run) -> None:
    """Let the writer read sessions again."""
    _answer(run, perform(run, setup_requests.resume))


def offer(run: Run, name: str | None) -> bool:
    """Propose a writer, by default the best on this machine.

    If the owner agrees, set it and return True. Raises ModelRefusedError if the named model cannot
    be a writer.
    """
    if name:
        setup_requests.check_obstacle(run.settings, name)
    proposal = setup.propose(run.settings, name)
    if proposal is None:
        for candidate in setup.found_writers(run.settings):
            run.tell(f"{candidate.label}: {candidate.problem}")
        run.tell(
            "No writer is available: start a local model, or store a key with nacre writer keys PROVIDER."
        )
        return False
    run.show(render_offer, proposal)
    if not click.confirm(f"Let {proposal.writer.label} write memories?", err=True):
        return False
    accept(run, proposal)
    return True


def accept(run: Run, proposal: setup.WriterProposal) -> None:
    """Set the proposed writer with the proposed limits, and show its status."""
    _set(run, proposal.writer.name, proposal.tokens_per_day, proposal.dollars_per_day)


def render_offer(paper: Paper, proposal: setup.WriterProposal) -> None:
    """Describe the proposed writer, its limit, the sessions that it reads, and the alternatives."""
    local = "" if proposal.writer.is_here else f" {_LOCAL_MODELS_NOTE}"
    paper.title("A writer for your memories")
    paper.line(
        f"{proposal.writer.label} can read each session once, after it ends, and write memories from it. "
        f"It {proposal.terms}. It gets the sessions of all tools and projects that nacre reads, with secrets removed; "
        f"exclude some with writer.exclude_tools and writer.exclude_projects.{local}"
    )
    if proposal.writer.problem:
        paper.note(proposal.writer.problem)
    if proposal.alternatives:
        names = [
            f"{writer.name} ({writer.problem.rstrip('.')})" if writer.problem else writer.name
            for writer in proposal.alternatives
        ]
        paper.note(f"Also available: {', '.join(names)}; choose with nacre writer set NAME.")


def _answer(run: Run, writer_status: setup_requests.WriterStatus) -> None:
    reads = health.readers(run.settings)
    run.answer({**to_plain(writer_status), "read_by": reads}, _render, writer_status, reads)


def _render(paper: Paper, writer_status: setup_requests.WriterStatus, reads: Sequence[str]) -> None:
    if writer_status.state == "off":
        paper.line(
            "No writer: rules keep your explicit statements. Other candidates are pending in nacre review."
        )
        model = writer_status.writer
        paper.note(
            "nacre writer set proposes an agent or a model"
            if model == "none"
            else f"{model} only works on request; to make it the writer: nacre writer set {model}"
        )
        return
    state = writer_status.state
    tint = _TINTS.get(state, "yellow")
    paper.title(writer_status.writer, "  ", Span(setup_requests.STATES[state], tint))
    usage = f"{writer_status.tokens_today:,} tokens in {count(writer_status.calls_today, 'call')}"
    most = f"{writer_status.limit:,}" if writer_status.limit else ""
    models = writer_status.kept_here
    kept = f"{count(len(models), 'session')} of the last 7 days, with models that may run on this machine"
    since = writer_status.since
    with suppress(ValueError):
        since = minute(datetime.fromisoformat(since))
    paper.facts(
        (
            ("today", f"{usage}, of {most}" if most else usage),
            ("pending", count(writer_status.waiting, "session") if writer_status.waiting else ""),
            ("reads", f"sessions that ended after {since}" if since else "all sessions"),
            ("kept here", f"{kept}: {', '.join(dict.fromkeys(models))}" if models else ""),
            ("read by", health.in_words(reads) if reads else Span(health.NOTHING, "yellow")),
        )
    )
    if writer_status.problem:
        paper.line(writer_status.problem)
    if writer_status.hint:
        paper.note(f"hint: {writer_status.hint}")


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
        if run.is_interactive and not run.as_json:
            run.tell(f"Asking {name or settings['models.default']} …")
        run.present(perform(run, setup_requests.try_model, name=name), _render_trial)
        return
    uses, offers = setup_requests.uses(run.home), perform(run, setup_requests.offers)
    run.answer({"tasks": uses, "models": offers}, _render_models, settings, uses, offers)


def _render_models(
    paper: Paper,
    settings: Settings,
    uses: Mapping[Task, str],
    offers: Sequence[setup_requests.Offer],
) -> None:
    if not offers:
        paper.line("No language model is set: everything works by rules.")
        paper.note(
            "set one with nacre writer set or nacre config set models.default; "
            "try one first: nacre writer models --test PROVIDER:MODEL"
        )
        return
    for offer in offers:
        paper.title(offer.name, "  ", dim(offer.label))
        paper.facts(_facts(settings, offer))
        paper.blank()
    idle = [task.value for task, name in uses.items() if name == "none"]
    if idle:
        paper.note(f"without a model: {', '.join(idle)}")


def _facts(settings: Settings, offer: setup_requests.Offer) -> list[tuple[str, Cell]]:
    able = offer.capabilities
    facts: list[tuple[str, Cell]] = [("for", ", ".join(task.value for task in offer.tasks))]
    if offer.problem is None or offer.credential:
        key = offer.credential or ("missing" if offer.needs_key else "not needed")
        price = "none: paid by subscription, tokens are counted"
        if not budgets.is_by_subscription(settings, offer.name):
            price = describe_price(able.price)
        cache = ", with prompt caching" if able.caches else ""
        unknown = "" if able.known else "; unknown model: low estimates"
        reads = f"{able.window:,} tokens, answers up to {able.output:,}{cache}{unknown}"
        facts += [("key", key), ("reads", reads), ("price", price)]
    if offer.problem:
        facts.append(("problem", Span(offer.problem.message, "red")))
        facts.append(("", dim(offer.problem.hint or "")))
    return facts


def describe_price(price: Price | None) -> str:
    """Describe the price of a model."""
    if price is None:
        return "unknown; set models.capabilities"
    if not price.input and not price.output:
        return "free"
    return f"{_dollars(price.input)} in, {_dollars(price.output)} out, {_dollars(price.cached)} cached per million tokens"  # noqa: E501


def _dollars(amount: Decimal) -> str:
    return f"${amount:,.2f}" if amount == round(amount, 2) else f"${amount.normalize():f}"


def _render_trial(paper: Paper, trial: setup_requests.Trial) -> None:
    tokens = trial.tokens
    free = "by subscription" if trial.is_by_subscription else "free"
    cost = "cost unknown" if trial.cost is None else dollars(trial.cost) if trial.cost else free
    paper.line(Span("✓ ", "green"), bold(trial.name), f" answers: {trial.answer}")
    counts = f"{count(tokens.sent, 'token')} in, {tokens.output:,} out"
    is_other = trial.model and trial.model != trial.name.partition(":")[2]
    by = f"by {trial.model}" if is_other else ""
    paper.note(joined((f"{trial.seconds:.2f} s", counts, cost, by)))


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
    credentials.toml, which only you can read. --remove deletes the key, also from the config. Logins of other tools and
    environment variables are not changed.
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
    place = perform(
        run,
        setup_requests.replace_key,
        provider=provider,
        secret=check_key(secret, "standard input"),
    )
    credential = credentials.credential_for(
        settings.load_settings(run.settings.home, run.settings.environ), provider
    )
    if credential and credential.secret != secret:
        run.warnings.append(
            f"{credential.origin} has a different key, which takes precedence over the stored one"
        )
    record = {"provider": provider, "kept": place, "masked": credentials.mask(secret)}
    run.answer(
        record, Paper.line, f"Stored the key {credentials.mask(secret)} for {provider} in {place}."
    )


def _remove_key(run: Run, provider: str, *, yes: bool) -> None:
    run.confirm(f"Delete the key for {provider}?", yes=yes)
    places = perform(run, setup_requests.remove, provider=provider)
    other_places = setup_requests.other_places(run.settings, provider)

    def render(paper: Paper) -> None:
        paper.line("Deleted the key for ", bold(provider), f" from {' and '.join(places)}.")
        for place in other_places:
            paper.line(
                f"It still signs in with the credential in {place}, which nacre does not manage.",
                indent=2,
            )

    run.answer({"provider": provider, "removed": places, "left": other_places}, render)


def check_key(secret: str, where: str) -> str:
    """Return the key. Raises InvalidInputError if it is empty or malformed."""
    if not secret:
        raise InvalidInputError(f"there is no key in {where}", hint="nacre writer keys --help")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InvalidInputError(
            f"the key in {where} is invalid: it contains spaces, line breaks or unusual characters"
        )
    return secret


def _render_status(paper: Paper, signing_in: setup_requests.SigningIn) -> None:
    model = "none: nacre works without one" if signing_in.model == "none" else signing_in.model
    paper.facts(
        (
            ("model", model),
            ("keys stored", f"in {signing_in.key_file}, readable only by you"),
            ("commands", ", ".join(signing_in.programs.values()) or "no agent's command"),
        ),
        indent=0,
    )
    paper.heading("Sign-in methods")
    ways = [way for way in signing_in.ways if way.method or way.state != "missing" or way.is_used]
    width = max(len(way.method or way.provider) for way in ways)
    for way in ways:
        _render_way(paper, way, width)
    missing = [way.provider for way in signing_in.ways if way not in ways]
    if missing:
        paper.blank()
        paper.note(f"By key, none found: {', '.join(missing)}", hang=2)
    if signing_in.model == "none" or not any(way.is_used for way in signing_in.ways):
        paper.note("nacre writer set proposes a model; nacre writer keys PROVIDER stores a key")


def _render_way(paper: Paper, way: setup_requests.Way, width: int) -> None:
    mark = _MARKS[way.state]
    padded = Span(f"{mark.text:<10}".replace(" ", "\u00a0"), mark.style)
    name = f"{way.method or way.provider:<{width}}".replace(" ", "\u00a0")
    used, indent = Span(" (in use)" if way.is_used else "", "green"), width + 14
    paper.line(padded, "  ", bold(name), "  ", way.label, used, hang=indent)
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

    Without MODEL, the command shows the current model, the numbers of vectors and pending texts, and where
    texts are sent.

    MODEL is minilm (bundled, offline) or PROVIDER:MODEL, with @N for N dimensions. PROVIDER is openai,
    gemini, voyage, ollama, lmstudio, or any model provider. If the new model answers, the old vectors are deleted.
    Until a text has a new vector, recall finds it only by words. An interrupted switch continues with --resume, at the
    next ingest, or in the daemon.

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
    model = name or run.settings.text("embedding.model")
    if name or model != "none":
        plan = perform(run, vectors.plan, name=model)
        model = plan.setting
        if estimate:
            record = {**to_plain(plan), "asks": plan.wants_yes}
            run.answer(record, _render_plan, plan)
            return
        trial = perform(run, vectors.try_one, name=name) if name else None
        if (plan.wants_yes or (name and plan.texts)) and not (yes or plan.place.is_local):
            if run.is_interactive:
                run.show(_render_plan, plan, trial)
            texts = f"{count(plan.texts, 'text')} ({_embedding_cost(plan.cost)})"
            refusal = (
                f"{texts} would be sent to {plan.place.host}; later texts and questions, too: "
                "check with --estimate, then add --yes"
            )
            run.confirm("Continue?", refusal=refusal)
    result = perform(run, vectors.switch, name=name) if name else perform(run, vectors.resume)
    run.exit_code = 1 if result.left and result.note else 0
    run.warnings += [
        f"the pinned answer to {pin.question!r} is gone: nacre admin check"
        for pin in perform(run, pins.check_pins)
        if not pin.holds
    ]
    run.answer({"setting": model, **to_plain(result)}, _render_made, model, result)


def _render_standing(paper: Paper, standing: vectors.Standing) -> None:
    where = "vectors are off" if standing.wanted == "none" else _where(standing.place)
    paper.title(standing.wanted, "  ", dim(where))
    for error, style in ((standing.problem, "red"), (standing.held, "yellow")):
        if error:
            paper.note(error.message, style, indent=2)
            paper.note(error.hint or "", indent=2)
    if lot := standing.in_use:
        paper.blank()
        paper.title(lot.setting, "  ", dim("in use"))
        counts = f"{count(lot.passages, 'passage')}, {count(lot.memories, 'memory')}"
        paper.facts(
            (
                ("model", lot.model if lot.model != lot.setting else ""),
                ("vectors", f"{counts}; {lot.dimensions:,} dimensions, {size(lot.bytes)}"),
                ("pending", count(lot.waiting, "text") if lot.waiting else ""),
            )
        )
        if not standing.held and (lot.waiting or standing.wanted not in (lot.setting, "none")):
            paper.note("nacre writer embedding --resume, nacre ingest or the daemon continues")
    else:
        paper.note("no vectors yet: nacre ingest creates them", indent=2)


def _where(place: Place) -> str:
    if not place.host:
        return "texts stay on this machine"
    return f"texts go to {place.host}" + (", on this machine" if place.is_here else "")


def _render_plan(paper: Paper, plan: vectors.Plan, trial: vectors.Trial | None = None) -> None:
    paper.title(plan.setting, "  ", dim(_where(plan.place)))
    answers = f"{trial.dimensions:,} dimensions, in {trial.seconds:.2f} s" if trial else ""
    paper.facts(
        [
            ("answers", answers),
            ("replaces", plan.used or "no vectors yet")
            if plan.used != plan.setting
            else ("continues", "its own vectors"),
            ("texts", f"{plan.texts:,}"),
            ("tokens", f"about {plan.tokens:,}"),
            ("cost", _embedding_cost(plan.cost)),
            ("later", _later(plan)),
        ]
    )


def _later(plan: vectors.Plan) -> str:
    if plan.place.is_local:
        return ""
    if plan.cost is None:
        return "new texts wait until you set the price in models.capabilities or run nacre writer embedding --resume"
    if not plan.place.price:
        return "new texts and each question are sent there too"
    budget = dollars(plan.left)
    return f"new texts and each question are sent there within the daily budget; {budget} is left today"


def _embedding_cost(cost: Decimal | None) -> str:
    if cost is None:
        return "price unknown"
    return (
        f"about ${cost:,.2f}" if cost >= Decimal("0.01") else "less than a cent" if cost else "free"
    )


def _render_made(paper: Paper, setting: str, result: vectors.Embedded) -> None:
    spent = dim(f" · {result.tokens:,} tokens" if result.tokens else "")
    if result.left:
        left = f": {result.made:,} vectors created, {count(result.left, 'text')} pending"
        paper.title(setting, left, spent)
        paper.note(
            "nacre writer embedding --resume continues; until then recall uses the existing vectors"
        )
    else:
        created = f"; {count(result.made, 'text')} got vectors" if result.made else ""
        paper.line(Span("✓ ", "green"), bold(setting), f" is in use{created}", spent)
    if result.note:
        paper.note(result.note)


# ----------------------------------------------------------------------------
# ``nacre writer cost`` and ``nacre writer traces``.


@writer.command("cost", examples=["nacre writer cost"])
def cost(run: Run) -> None:
    """Show the cost of models today and this month, by task.

    The limits apply to background work, answers in chats, and vectors from a provider. Your own requests are included
    in the table, but never stopped. Calls that a subscription covers are shown as free.
    """
    run.present(ask(run, views.CostReport, "cost"), _render_costs)


def _render_costs(paper: Paper, report: views.CostReport) -> None:
    limit = report.budget
    remaining = f"{dollars(limit.remaining)} left" if limit.most else "nothing is allowed"
    paper.title(
        f"{'today':<12}".replace(" ", "\u00a0"),
        f"{dollars(limit.spent)} of {dollars(limit.most)} in the background, {remaining}",
    )
    if not report.is_background_on:
        paper.note("Only chats use models in the background: models.background is off.")
    if not report.tasks:
        paper.line("No model calls this month: nothing was spent.")
        return
    tasks = list(report.tasks)
    if len(tasks) > 1:
        numbers = zip(*(astuple(task)[1:] for task in tasks), strict=True)
        tasks.append(TaskCost("total", *map(sum, numbers)))
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
@option("traces", "task", "since")
@limit_option("traces", default=20)
def traces(
    run: Run, reference: str | None, task: str | None, since: datetime | None, limit: int
) -> None:
    """Show the calls of language models, or one call in full: prompt, answer, tokens, cost and error.

    Prompts and answers are stored without secrets. Traces are deleted after traces.keep_days.
    """
    if reference:
        run.present(ask(run, Call, "trace", reference=reference), _render_trace)
        return
    entries = ask(run, list[Call], "traces", task=task, since=since, limit=limit)
    run.answer({"traces": entries, "limit": limit}, _render_traces, entries)


def _render_traces(paper: Paper, traces: Sequence[Call]) -> None:
    if not traces:
        paper.line("There are no traces, because no model was called recently.")
        return
    rows = [
        (
            dim(trace.id[-SHORT_ID:]),
            minute(trace.at),
            Span(trace.task, "cyan"),
            trace.model,
            duration(trace.seconds),
            _trace_cost(trace),
            Span(trace.error, "red") if trace.error else text.shorten(trace.prompt, 60),
        )
        for trace in traces
    ]
    paper.table(rows, header=("id", "when", "task", "model", "took", "cost", ""), drop=(4, 3, 1))
    paper.note("nacre writer traces ID shows one")


def _render_trace(paper: Paper, trace: Call) -> None:
    paper.line(Span(trace.task, "cyan"), "  ", bold(trace.model))
    tokens = trace.tokens
    facts = (
        minute(trace.at),
        duration(trace.seconds),
        f"{amount(tokens.sent)} tokens read, {amount(tokens.output)} written",
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


def _trace_cost(trace: Call) -> str:
    return "price unknown" if trace.cost is None else dollars(trace.cost)
