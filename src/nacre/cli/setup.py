"""``nacre writer setup``: its options, and questions about missing options."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nacre.base.frozen import frozen
from nacre.cli import output, writer
from nacre.cli.command import TEXT, Paper, Part, Run, Span, bold, command, dim
from nacre.cli.options import flag, seconds
from nacre.cli.writer import MAX_KEY_CHARACTERS, check_key, describe_key_storage, list_programs
from nacre.errors import InvalidInputError, ModelRefusedError, NacreError
from nacre.home import spending as spending_models
from nacre.llm import credentials, providers
from nacre.settings import Settings, load_settings
from nacre.setup import models
from nacre.setup import setup as found_writers

if TYPE_CHECKING:
    from nacre.llm.credentials import Provider
    from nacre.setup.models import Done, Tried, Wish, WriterRequest, WriterStatus
    from nacre.setup.setup import WriterProposal


def complete(
    settings: Settings,
    wish: Wish,
    provider: str,
    dialog: Dialog | None,
    *,
    takes_proposals: bool = False,
    keeps_model: bool = True,
) -> Wish:
    """Ask for the values that are missing in a request, and return the complete request.

    ``keeps_model``: use the current model if it belongs to the provider, instead of asking.

    Raises UsageError with the names of the missing options if there is no terminal.
    """
    if not any((provider, wish.auth, wish.model, wish.base_url, wish.secret)):
        return wish
    provider = provider or _provider(settings, wish)
    if provider == spending_models.NONE:
        return models.Wish(
            spending_models.NONE, embedding=wish.embedding, daily_budget=wish.daily_budget
        )
    if wish.base_url is None:
        credentials.provider_of(settings, provider)  # raises if it is unknown
    model = wish.model
    wish = with_key(replace(wish, model=f"{provider}:"), wish.secret)
    missing = []
    if models.needs_key(settings, wish):
        if dialog:
            wish = with_key(wish, dialog.key(wish))
        else:
            missing.append("--key-env VAR or --key-stdin")
    current = settings.text("models.default")
    if keeps_model and current.partition(":")[0] == provider:
        model = model or current
    if not model and dialog:
        model = dialog.model(provider, wish.base_url)
    elif not model:
        known = None if wish.base_url else credentials.provider_of(settings, provider)
        proposed = next(iter(providers.list_proposed(known) if known else []), None)
        model = proposed if takes_proposals else None
        or_yes = f" (or --yes for {proposed})" if proposed else ""
        missing += [] if model else [f"--model NAME{or_yes}"]
    if missing or not model:
        raise click.UsageError(f"{provider} needs more options: {', '.join(missing)}")
    return replace(wish, model=models.full_name(settings, model, provider))


def with_key(wish: Wish, secret: str | None) -> Wish:
    """Return the request with a key and a matching sign-in method.

    Raises UnusableCredentialsError.
    """
    method = models.method_for(wish.provider, wish.auth, secret)
    return replace(wish, auth=method.name if method else wish.auth, secret=secret)


def _provider(settings: Settings, wish: Wish) -> str:
    """Return the provider that the model or sign-in method implies, or else the current provider."""
    if wish.model:
        named = models.full_name(settings, wish.model, "")
        if not named.startswith(":"):
            return named.partition(":")[0]
    if wish.auth:
        return provider_of_method(settings, wish.auth)
    current: str = settings.text("models.default").partition(":")[0]
    if current == spending_models.NONE:
        raise click.UsageError("no provider: add --provider")
    return current


def provider_of_method(settings: Settings, auth: str) -> str:
    """Return the provider for a sign-in method. If the method's agent tool is installed, the tool is the provider."""
    method = credentials.methods()[auth]
    installed = {program.provider for program in models.programs(settings) if program.path}
    return method.through if method.through in installed else method.provider


# ----------------------------------------------------------------------------
# ``nacre writer setup`` asks questions on standard error. Standard output is for the answer.


_OTHER = "other"


@frozen
class Option:
    """A choice of provider, with its sign-in method and state."""

    provider: str
    label: str
    auth: str = ""
    note: str = ""


def walk(run: Run) -> Wish:
    """Ask the user for all values of a setup. Current or detected values are the defaults. Raises NacreError."""
    dialog, settings = Dialog(run), run.settings
    found, local = models.status(settings), providers.servers_here(settings)
    run.introduce(_render_found, found, local)
    options = _options(settings, found, local)
    rows = [(option.label, option.note) for option in options]
    question = bold("How should nacre reach a model?")
    run.introduce(_render_choices, rows, question)
    default = _first(settings, options) + 1
    chosen = click.prompt("Number", default, type=click.IntRange(1, len(rows)), err=True)
    option = options[int(chosen) - 1]
    if option.provider == spending_models.NONE:
        return models.Wish(spending_models.NONE)
    provider = dialog.other() if option.provider == _OTHER else option.provider
    wish = models.Wish(auth=option.auth or None)
    return dialog.bounds(complete(settings, wish, provider, dialog, keeps_model=False))


def _render_found(paper: Paper, found: models.SigningIn, local: dict[str, list[str]]) -> None:
    paper.line(
        "A language model is optional. With a model, nacre writes and merges memories better."
    )
    paper.heading("Found on this machine")
    ways = ", ".join(_describe(way) for way in found.ways if way.state != "missing")
    servers = "; ".join(_server(name, names) for name, names in local.items())
    paper.facts(
        (
            ("credentials", ways or "none"),
            ("commands", list_programs(found)),
            ("servers", servers or "none responding"),
            ("keys stored", describe_key_storage(found)),
            ("current model", found.model),
        ),
        indent=2,
    )


class Dialog:
    """Questions on a terminal."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._settings = run.settings

    def other(self) -> str:
        """Ask for a provider that is not in the list. Raises UsageError for an unknown provider."""
        names = credentials.providers(self._settings)
        known = ", ".join(name for name, provider in names.items() if provider.api == "chat")
        self._run.introduce(Paper.line, f"Known providers: {known}.")
        name = str(click.prompt("Provider", err=True)).strip().lower()
        if name not in names:
            raise click.UsageError(
                f"there is no provider {name!r}: for your own server, add --provider NAME --base-url URL"
            )
        return name

    def key(self, wish: Wish) -> str:
        """Ask for a key at a hidden prompt."""
        method = credentials.methods().get(wish.auth or "")
        label = (
            "Token (create one with claude setup-token; hidden)"
            if method and method.kind == credentials.BEARER
            else "API key (hidden)"
        )
        while True:
            after = models.wished(self._settings, wish)
            provider = credentials.provider_of(after, wish.provider)
            question = f"{label} for {provider.label}"
            secret = str(click.prompt(question, hide_input=True, err=True)).strip()
            try:
                with_key(wish, check_key(secret, "your input"))
            except NacreError as error:
                click.echo(
                    f"{error.message}: {error.hint}" if error.hint else error.message, err=True
                )
                continue
            return secret

    def model(self, provider: str, base_url: str | None) -> str:
        """Ask for a model. The answer is the number of a proposed model, or any name."""
        settings = self._settings
        wish = models.Wish(f"{provider}:", base_url=base_url)
        target = credentials.provider_of(models.wished(settings, wish), provider)
        names = providers.list_proposed(target)
        current = settings.text("models.default")
        if current.partition(":")[0] == provider:
            names = list(dict.fromkeys([current.partition(":")[2], *names]))
        rows = [(name, _price(settings, target, name)) for name in names]
        hint = dim("  a number, or any other name")
        self._run.introduce(_render_choices, rows, bold("Which model?"), hint)
        while True:
            answer = str(click.prompt("Model", default="1" if names else None, err=True)).strip()
            if not answer.isdecimal():
                return answer
            if 0 < int(answer) <= len(names):
                return names[int(answer) - 1]
            click.echo(
                f"There is no number {answer}. Type one of those above, or a name.", err=True
            )

    def bounds(self, wish: Wish) -> Wish:
        """Ask whether the model is allowed to work in the background. If so, also ask for a daily limit."""
        after = models.wished(self._settings, wish)
        proposal = writer.named(replace(self._run.home, settings=after), str(wish.model))
        self._run.introduce(_render_background, proposal)
        is_on = self._settings.flag("models.background")
        if not click.confirm("Let it work in the background?", default=is_on, err=True):
            return replace(wish, background=False)
        request = proposal.request
        if request.tokens_per_day is not None:
            default_limit = self._settings.whole("writer.tokens_per_day") or request.tokens_per_day
            return replace(wish, background=True, tokens_per_day=self._tokens(wish, default_limit))
        if proposal.writer.is_free:
            return replace(wish, background=True, daily_budget=request.dollars_per_day)
        budget = click.prompt(
            "Daily limit in US dollars",
            default=request.dollars_per_day,
            type=click.FloatRange(0),
            err=True,
        )
        return replace(wish, background=True, daily_budget=float(budget))

    def _tokens(self, wish: Wish, default: int) -> int:
        """Ask for the number of tokens per day. The minimum suffices for one call of the writer."""
        while True:
            limit = click.prompt(
                "Daily limit in tokens", default=default, type=click.IntRange(1), err=True
            )
            try:
                models.check_bound(
                    self._settings, replace(wish, background=True, tokens_per_day=int(limit))
                )
            except InvalidInputError as error:
                click.echo(error.message, err=True)
                continue
            return int(limit)


def _render_choices(paper: Paper, rows: Sequence[tuple[str, str]], *question: Part) -> None:
    """Print the numbered choices with their notes. The notes are wrapped, so that all text is visible."""
    paper.line(*question)
    paper.facts(
        (f"{number:>4}", (label, dim(f" ({note})" if note else "")))
        for number, (label, note) in enumerate(rows, 1)
    )


def _render_background(paper: Paper, proposal: WriterProposal) -> None:
    paper.line(
        "In the background, the model writes memories from finished sessions and does nacre's other model work. "
        "Otherwise it only works when you request it."
    )
    paper.line(writer.describe_scope(proposal))
    writer.render_alternatives(paper, proposal)


def _options(
    settings: Settings, found: models.SigningIn, local: dict[str, list[str]]
) -> list[Option]:
    states = {way.method: way.state for way in found.ways if way.method}
    options = []
    for name, method in credentials.methods().items():
        provider = provider_of_method(settings, name)
        by = (
            f", by its command {provider.removesuffix('-cli')}"
            if provider != method.provider
            else ""
        )
        note = "" if states[name] == "missing" else states[name]
        options.append(Option(provider, method.label + by, name, note))
    servers = list(dict.fromkeys(["ollama", *local]))
    for name in servers:
        note = _server("", local[name]).strip(": ") if name in local else "not responding"
        options.append(
            Option(
                name, f"{credentials.provider_of(settings, name).label}, on this machine", note=note
            )
        )
    options.append(
        Option(_OTHER, "Another provider", note="OpenRouter, Gemini, Groq, your own server …")
    )
    options.append(Option(spending_models.NONE, "None", note="nacre works without a model"))
    return options


def _first(settings: Settings, options: Sequence[Option]) -> int:
    """Return the default option's index: current, best detected, or else no model."""
    current, auth = settings.text("models.default").partition(":")[0], settings.text("models.auth")
    found = found_writers.found_writers(settings)
    best = [writer.name.partition(":")[0] for writer in found if not writer.problem]
    ranked = [(len(best), len(options) - (1 if current == spending_models.NONE else 2))]
    for at, option in enumerate(options):
        if option.provider == current != spending_models.NONE and option.auth in ("", auth):
            return at
        if option.note.startswith(("found", "running")):
            rank = best.index(option.provider) if option.provider in best else len(best)
            ranked.append((rank, at))
    return min(ranked)[1]


def _price(settings: Settings, provider: Provider, model: str) -> str:
    if spending_models.is_by_subscription(settings, f"{provider.name}:{model}"):
        return "paid by subscription"
    return writer.describe_price(providers.capabilities_of(settings, provider, model).price)


def _server(name: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{name}: running, with {shown}" if names else f"{name}: running, without a model"


def _describe(way: models.Way) -> str:
    state = "" if way.masked and way.state == "found" else way.state
    return f"{way.method or way.provider} ({', '.join(filter(None, (way.masked, state)))})"


# ----------------------------------------------------------------------------
# ``nacre writer setup``.


METHODS = (
    "anthropic-api-key",
    "anthropic-token",
    "anthropic-oauth",
    "openai-api-key",
    "openai-subscription",
)
_OUTCOMES = {
    "answered": Span("answered", "green"),
    "unusable": Span("answered, but not in the requested format", "yellow"),
    "unreachable": Span("not tested: no usable answer", "yellow"),
    "refused": Span("refused", "red"),
    "skipped": Span("not tested", "dim"),
}


@command(
    "setup",
    examples=[
        "nacre writer setup",
        "nacre writer setup --auth anthropic-api-key --key-env ANTHROPIC_API_KEY --model claude-haiku-5-5 --yes",
        "nacre writer setup --writer claude-cli:haiku --tokens-per-day 100000",
    ],
)
@click.option(
    "--provider",
    type=TEXT,
    help="The provider: anthropic, openai, ollama, claude-cli … or a new name.",
)
@click.option("--auth", type=click.Choice(METHODS), help="How to sign in to Anthropic or OpenAI.")
@click.option(
    "--key-env", type=TEXT, metavar="VAR", help="Store the key from this environment variable."
)
@flag("--key-stdin", "Store the key from standard input.")
@click.option("--model", type=TEXT, metavar="NAME", help="The model, with or without its provider.")
@click.option(
    "--base-url", type=TEXT, metavar="URL", help="The address of an OpenAI-compatible provider."
)
@click.option(
    "--embedding",
    type=TEXT,
    metavar="MODEL",
    help="The embedding model: minilm (bundled), none, or another.",
)
@click.option(
    "--background/--no-background",
    default=None,
    help="Let the model work in the background, or not.",
)
@click.option(
    "--daily-budget",
    type=click.FloatRange(0),
    metavar="USD",
    help="The daily limit for background work.",
)
@click.option(
    "--tokens-per-day",
    type=click.IntRange(1),
    metavar="N",
    help="The daily token limit for a subscription.",
)
@click.option(
    "--writer",
    type=TEXT,
    metavar="NAME",
    help="The writer of memories, such as claude-cli:haiku; see nacre writer.",
)
@flag("--none", "Use no model.", "goes_without")
@click.option(
    "--test/--no-test",
    "tests",
    default=True,
    show_default=True,
    help="Ask the model one short question.",
)
@flag("--yes", "Do not ask; accept the proposals.", "-y")
def setup(
    run: Run,
    provider: str | None,
    key_env: str | None,
    key_stdin: bool,
    writer: str | None,
    goes_without: bool,
    tests: bool,
    yes: bool,
    **given: Any,
) -> None:
    """Choose a language model, sign in, and set its budget.

    nacre works without a model but writes better memories with one. On a terminal, the command asks for missing
    options. Keys are stored in the system's keyring, never in the config. If the keyring does not work, keys are stored
    in credentials.toml. To change single options later, pass only these options. --yes without other options only shows
    the command to set a model or writer.
    """
    run.settings.actor.require_owner("nacre writer setup")
    wish = models.Wish(**given)
    others = (provider, wish.auth, key_env, key_stdin, wish.model, wish.base_url, writer)
    if goes_without and any(others):
        raise click.UsageError(
            "--none cannot be combined with a provider, a key, a model or a writer"
        )
    if goes_without:
        wish = models.Wish("none", embedding=wish.embedding, daily_budget=wish.daily_budget)
    else:
        wish = replace(wish, secret=_read_key(run, key_env, key_stdin=key_stdin))
        may_ask = run.is_interactive and not yes and not key_stdin
        if provider or wish != models.Wish():
            dialog = Dialog(run) if may_ask else None
            wish = complete(run.settings, wish, provider or "", dialog, takes_proposals=yes)
        elif may_ask and not writer:
            wish = walk(run)
        elif not (writer or yes):
            raise InvalidInputError(
                "not interactive and no options: pass --provider and --model, and --key-env or --key-stdin if it "
                "needs a key; or --writer, --none, --embedding, --background, --daily-budget",
                hint="nacre writer setup --provider anthropic --model claude-haiku-5-5 "
                "--key-env ANTHROPIC_API_KEY --yes",
            )
    models.changes(run.settings, wish)  # report invalid values before using the network
    models.check_bound(run.settings, wish)
    bound = wish.tokens_per_day
    named = models.WriterRequest(writer=writer, tokens_per_day=bound) if writer else None
    if named:
        models.refuse(models.wished(run.settings, wish), named)
    tried = _try(run, wish, tests=tests, may_ask=run.is_interactive and not yes)
    _finish(run, wish, tried, named)


def _read_key(run: Run, variable: str | None, *, key_stdin: bool) -> str | None:
    """Return the key that the options refer to. Keys are never arguments, because shell histories record them."""
    if variable and key_stdin:
        raise click.UsageError("--key-env or --key-stdin, not both")
    if key_stdin:
        secret = sys.stdin.read(MAX_KEY_CHARACTERS).strip()
        where = "standard input"
    elif variable:
        secret = run.environ.get(variable, "").strip()
        is_name = re.fullmatch(r"[A-Z][A-Z0-9_]*", variable)  # else it may be the key itself
        where = f"${variable}" if is_name else "the variable of --key-env"
    else:
        return None
    return check_key(secret, where)


def _try(run: Run, wish: Wish, *, tests: bool, may_ask: bool) -> Tried:
    """Test the chosen model. If the provider refuses, ask whether to keep the model.

    Raises ModelRefusedError if the user cannot be asked.
    """
    if not tests or not wish.provider:
        return models.Tried(models.SKIPPED, message="--no-test" if wish.provider else "")
    with output.waiting(run, f"Asking {wish.model}"):
        tried = models.try_model_models(run.home, wish)
    if tried.outcome != models.REFUSED:
        return tried
    if may_ask:
        click.echo(f"{tried.message}\n{tried.hint}".strip(), err=True)
        run.confirm("Set it anyway?")
        return tried
    raise ModelRefusedError(
        f"{tried.message}; nothing was changed", hint=f"{tried.hint}; --no-test sets it anyway"
    )


def _finish(run: Run, wish: Wish, tried: Tried, named: WriterRequest | None) -> None:
    if not wish.provider and wish.secret:
        wish = replace(wish, secret=None)
    done = models.apply(run.settings, wish)
    run.warnings += done.notes
    status, proposal = _writer_status(run, done, named)
    if named:  # setting the writer changed more settings
        before, after = done.settings, load_settings(done.settings.home, done.settings.environ)
        more = {key: after[key] for key in after.values if after[key] != before[key]}
        done = replace(done, settings=after, changed={**done.changed, **more})
    settings = done.settings
    record = {
        "model": settings.text("models.default"),
        "auth": settings.text("models.auth") or None,
        "embedding": settings.text("embedding.model"),
        "background": settings.flag("models.background"),
        "daily_budget_usd": settings.number("models.daily_budget_usd"),
        "changed": models.hidden(settings, done.changed),
        "writer": status.writer,
        "writer_command": proposal.command if proposal else None,
        "config": settings.config,
        "credential": {"kept": done.kept, "masked": done.masked} if done.kept else None,
        "test": tried,
    }
    run.answer(record, _render_setup, done, tried, status, proposal)


def _writer_status(
    run: Run, done: Done, named: WriterRequest | None
) -> tuple[WriterStatus, WriterProposal | None]:
    """Return the writer's status, and a proposal if there is no writer. An unreadable database is only a warning."""
    if named:
        return models.set_writer(replace(run.home, settings=done.settings), named), None
    try:
        home = replace(run.home, settings=done.settings)
        status = models.status_writer(home)
        preferred = done.settings.text("models.default")
        is_off = status.state == "off"
        return status, found_writers.propose(home, preferred=preferred) if is_off else None
    except NacreError as error:
        run.warnings.append(error.message)
        name = models.named(done.settings)
        return models.WriterStatus(name or "none", "unavailable" if name else "off"), None


def _render_setup(
    paper: Paper, done: Done, tried: Tried, status: WriterStatus, proposal: WriterProposal | None
) -> None:
    settings = done.settings
    has_model = settings.text("models.default") != "none"
    without = "none: nacre works without one" if status.state == "off" else "none except the writer"
    paper.facts(
        (
            ("model", bold(settings.text("models.default")) if has_model else without),
            ("test", _test(tried) if has_model else ""),
            ("key", f"{done.masked}, stored in {_place(done.kept)}" if done.kept else ""),
            ("vectors", settings.text("embedding.model")),
            ("background", _background(done) if has_model else ""),
            ("writer", _writer(status)),
            (
                "changed",
                f"{', '.join(done.changed)} in {settings.config}" if done.changed else "nothing",
            ),
        )
    )
    paper.blank()
    for words, why in _next(done, proposal):
        paper.line(bold(words), dim(f"  {why}"))


def _test(tried: Tried) -> list[Part]:
    parts: list[Part] = [_OUTCOMES[tried.outcome]]
    if tried.outcome == "answered":
        parts.append(f" in {seconds(tried.seconds)}")
    if tried.message:
        parts.append(f": {tried.message}")
    if tried.hint:
        parts.append(dim(f" ({tried.hint})"))
    return parts


def _place(kept: str) -> str:
    return "the keyring" if kept == "keyring" else f"{kept}, readable only by you"


def _background(done: Done) -> str:
    if not done.settings.flag("models.background"):
        return "off: the model works only when you request it"
    name, tokens = (
        done.settings.text("models.default"),
        done.settings.whole("writer.tokens_per_day"),
    )
    if spending_models.is_by_subscription(done.settings, name):
        return f"on: up to {tokens:,} tokens a day"
    budget = done.settings.number("models.daily_budget_usd")
    if not budget:
        return "on, but the daily budget is US$ 0: no calls are made"
    return f"on: at most US$ {budget:,.2f} a day"


def _writer(status: WriterStatus) -> str:
    if status.state == "off":
        return "none: only your explicit statements are kept"
    bound = f", up to {status.limit:,} tokens a day" if status.limit else ""
    return f"{status.writer}, after each session{bound}"


def _next(done: Done, proposal: WriterProposal | None) -> list[tuple[str, str]]:
    more = (
        [(proposal.command, f"lets {proposal.writer.label} write memories{proposal.bound}")]
        if proposal
        else []
    )
    if done.settings.text("models.default") == "none":
        return [
            *more,
            ("nacre ingest", "reads new sessions"),
            ("nacre writer keys", "shows the remaining keys"),
        ]
    if done.settings.flag("models.background"):
        return [*more, ("nacre ingest", "reads new sessions with the model")]
    return [*more, ("nacre writer keys", "shows the credentials")]
