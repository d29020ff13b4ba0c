"""What ``nacre setup`` makes of its options, and what it asks for or names where they leave something open."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import click

from nacre.cli import output, writer
from nacre.cli.command import TEXT, Cell, Paper, Part, Run, Span, bold, command, dim
from nacre.cli.options import Record, seconds
from nacre.cli.writer import MAX_KEY_CHARACTERS, check_key, describe_key_storage, list_programs
from nacre.errors import InvalidInput, ModelRefused, NacreError
from nacre.home import spending as spending_models
from nacre.llm import credentials, providers
from nacre.settings import load_settings
from nacre.setup import models
from nacre.setup import setup as found_writers

if TYPE_CHECKING:
    from nacre.llm.credentials import Provider
    from nacre.settings import Settings
    from nacre.setup.models import Done, Tried, Wish, WriterRequest, WriterStatus
    from nacre.setup.setup import WriterProposal


@dataclass(frozen=True, slots=True)
class SetupOptions:
    """What the options say; ``None`` where they say nothing."""

    provider: str | None
    auth: str | None
    model: str | None
    base_url: str | None
    embedding: str | None
    background: bool | None
    daily_budget: float | None
    tokens_per_day: int | None = None
    secret: str | None = field(default=None, repr=False)
    takes_proposals: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether no option names anything to change."""
        rest = (self.embedding, self.background, self.daily_budget, self.tokens_per_day)
        return not self.names_model and all(one is None for one in rest)

    @property
    def names_model(self) -> bool:
        """Whether an option is about a model or how it is reached."""
        return any((self.provider, self.auth, self.model, self.base_url, self.secret))


class Asks(Protocol):
    """Somebody who can be asked."""

    def key(self, settings: Settings, wish: Wish) -> str | None:
        """The key for the wished provider."""

    def model(self, settings: Settings, provider: str, base_url: str | None) -> str:
        """The name of a model."""


def settle(settings: Settings, asked: SetupOptions, somebody: Asks | None) -> Wish:
    """What is wished for: the options, and for what is missing the answers of somebody.

    Raises UsageError where it is not interactive, naming the options that are missing.
    """
    rest = models.Wish(
        embedding=asked.embedding,
        background=asked.background,
        daily_budget=asked.daily_budget,
        tokens_per_day=asked.tokens_per_day,
    )
    if not asked.names_model:
        return rest
    provider = _provider(settings, asked)
    if provider == spending_models.NONE:
        return models.Wish(
            spending_models.NONE, embedding=asked.embedding, daily_budget=asked.daily_budget
        )
    if asked.base_url is None:
        credentials.provider_of(settings, provider)  # raises where there is none
    method = models.method_for(provider, asked.auth, asked.secret)
    wish = models.Wish(
        f"{provider}:",
        method.name if method else asked.auth,
        asked.secret,
        asked.base_url,
        asked.embedding,
        asked.background,
        asked.daily_budget,
        asked.tokens_per_day,
    )
    missing = []
    if models.needs_key(settings, wish):
        secret = somebody.key(settings, wish) if somebody else None
        wish = with_key(wish, secret) if secret else wish
        missing += [] if secret else ["--key-env VAR or --key-stdin"]
    model, wanted = _model(settings, asked, provider, somebody)
    missing += wanted
    if missing:
        raise click.UsageError(
            f"{provider} needs more: add {', '.join(missing)}", click.get_current_context()
        )
    return replace(wish, model=models.full_name(settings, model, provider))


def with_key(wish: Wish, secret: str) -> Wish:
    """A wish with a key, and the method that is the key's. Raises CredentialsUnusable."""
    method = models.method_for(wish.provider, wish.auth, secret)
    return replace(wish, auth=method.name if method else wish.auth, secret=secret)


def _provider(settings: Settings, asked: SetupOptions) -> str:
    """The provider that the options name, by itself, in the model, or by a way to sign in; else the present one."""
    if asked.provider:
        return asked.provider
    if asked.model:
        named = models.full_name(settings, asked.model, "")
        if not named.startswith(":"):
            return named.partition(":")[0]
    if asked.auth:
        return through(settings, asked.auth)
    present: str = settings.text("models.default").partition(":")[0]
    if present == spending_models.NONE:
        raise click.UsageError("say whose model it is: add --provider", click.get_current_context())
    return present


def through(settings: Settings, auth: str) -> str:
    """The provider that a way to sign in leads to: the tool's own command, where it is installed, uses its login."""
    method = credentials.methods()[auth]
    installed = {one.provider for one in models.programs(settings) if one.path}
    return method.through if method.through in installed else method.provider


def _model(
    settings: Settings, asked: SetupOptions, provider: str, somebody: Asks | None
) -> tuple[str, list[str]]:
    """The model's name, and the options that are missing for it."""
    present = settings.text("models.default")
    if asked.model:
        return asked.model, []
    if present.partition(":")[0] == provider:
        return present, []
    if somebody:
        return somebody.model(settings, provider, asked.base_url), []
    names = (
        [] if asked.base_url else providers.proposed(credentials.provider_of(settings, provider))
    )
    if asked.takes_proposals and names:
        return names[0], []
    return "", [f"--model NAME{f' (or --yes for {names[0]})' if names else ''}"]


# ----------------------------------------------------------------------------
# The questions of ``nacre setup``, on standard error: the answer alone goes to standard output.


_OTHER = "other"


@dataclass(frozen=True, slots=True)
class Option:
    """One way to a model: its provider, how it signs in, and what was found of it."""

    provider: str
    label: str
    auth: str = ""
    note: str = ""


def walk(run: Run) -> Wish:
    """Ask for everything, with what holds now or what was found as the default. Raises NacreError."""
    dialog = Dialog(run)
    found = models.status(run.settings)
    local = providers.servers_here(run.settings)
    dialog.show_found(found, local)
    option = dialog.choose(_options(run.settings, found, local))
    if option.provider == spending_models.NONE:
        return models.Wish(spending_models.NONE)
    wish = models.Wish(f"{option.provider}:", option.auth or None)
    if option.provider == _OTHER:
        wish = dialog.other()
    if models.needs_key(run.settings, wish) or dialog.wants_another(wish):
        wish = with_key(wish, dialog.key(run.settings, wish))
    model = dialog.model(run.settings, wish.provider, wish.base_url)
    wish = replace(wish, model=models.full_name(run.settings, model, wish.provider))
    return dialog.bounds(replace(wish, embedding=dialog.embedding()))


class Dialog:
    """Questions on a terminal."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._settings = run.settings

    def show_found(self, found: models.SigningIn, local: dict[str, list[str]]) -> None:
        """What there is on this machine."""
        paper = self._run.paper(stderr=True)
        paper.line(
            "A language model is optional. With one, nacre writes better memories and merges them better."
        )
        paper.heading("Found on this machine")
        paper.facts(
            (
                (
                    "credentials",
                    ", ".join(_told(way) for way in found.ways if way.state != "missing") or "none",
                ),
                ("commands", list_programs(found)),
                (
                    "servers",
                    "; ".join(_server(name, names) for name, names in local.items())
                    or "none that answers",
                ),
                ("keys go", describe_key_storage(found)),
                ("model now", self._settings.text("models.default")),
            ),
            indent=2,
        )
        self._show(paper)

    def choose(self, options: Sequence[Option]) -> Option:
        """Which way."""
        rows = [(option.label, option.note) for option in options]
        return options[
            self._number("How should nacre reach a model?", rows, _first(self._settings, options))
        ]

    def other(self) -> Wish:
        """A provider that is not in the list: one that nacre knows, or an address."""
        known = [
            name for name, one in credentials.providers(self._settings).items() if one.api == "chat"
        ]
        paper = self._paper()
        paper.line(
            f"Known: {', '.join(known)}. For another server that speaks as OpenAI does, give it a name."
        )
        self._show(paper)
        name = str(click.prompt("Provider", err=True)).strip().lower()
        if credentials.is_built_in(name) or name in self._settings["models.providers"]:
            return models.Wish(f"{name}:")
        url = str(click.prompt("Its address (https://…/v1)", err=True)).strip()
        wish = models.Wish(f"{name}:", base_url=url)
        secret = self._hidden(
            "Its key, if it wants one (not shown; empty for none)", may_be_empty=True
        )
        return replace(wish, secret=secret or None)

    def wants_another(self, wish: Wish) -> bool:
        """Whether the key that is there is to be replaced."""
        method = credentials.methods().get(wish.auth or "")
        if wish.secret or (method and method.kind == credentials.BEARER and method.login):
            return False
        after = models.wished(self._settings, wish)
        if not credentials.provider_of(after, wish.provider).needs_key:
            return False
        taken = credentials.credential_for(after, wish.provider)
        if taken is None:
            return True
        return not click.confirm(
            f"Use the key {taken.masked} from {taken.origin}?", default=True, err=True
        )

    def key(self, settings: Settings, wish: Wish) -> str:
        """A key, typed without being shown."""
        method = credentials.methods().get(wish.auth or "")
        what = (
            "Token (claude setup-token makes one"
            if method and method.kind == credentials.BEARER
            else "API key ("
        )
        label = what + (
            "; not shown)" if method and method.kind == credentials.BEARER else "not shown)"
        )
        while True:
            secret = self._hidden(
                f"{label} for {credentials.provider_of(models.wished(settings, wish), wish.provider).label}"
            )
            try:
                with_key(wish, secret)
            except NacreError as error:
                click.echo(f"{error.message}: {error.hint}", err=True)
                continue
            return secret

    def model(self, settings: Settings, provider: str, base_url: str | None) -> str:
        """A model's name: one that is proposed, by its number, or any other."""
        wish = models.Wish(f"{provider}:", base_url=base_url)
        able = credentials.provider_of(models.wished(settings, wish), provider)
        names = providers.proposed(able)
        present = settings.text("models.default")
        if present.partition(":")[0] == provider:
            names = list(dict.fromkeys([present.partition(":")[2], *names]))
        paper = self._paper()
        paper.line(bold("Which model?"), dim("  a number, or any other name"))
        paper.facts(_numbered([(name, _price(settings, able, name)) for name in names]))
        self._show(paper)
        while True:
            said = str(click.prompt("Model", default="1" if names else None, err=True)).strip()
            if not said.isdecimal():
                return said
            if 0 < int(said) <= len(names):
                return names[int(said) - 1]
            click.echo(f"There is no number {said}.", err=True)

    def embedding(self) -> str:
        """The model for the vector lane."""
        present = self._settings.text("embedding.model")
        self._explain(
            "Vectors find what is said in other words. minilm is bundled and works offline; none does without."
        )
        return str(click.prompt("Vectors", default=present, err=True)).strip()

    def bounds(self, wish: Wish) -> Wish:
        """Whether the model works in the background, what it would be shown then, and what that may take."""
        after = models.wished(self._settings, wish)
        proposal = writer.named(replace(self._run.home, settings=after), str(wish.model))
        paper = self._paper()
        paper.line(
            "In the background: once a session is over, nacre asks the model to write memories from it, and what else "
            "models do. Otherwise it only works when you ask for it."
        )
        told = proposal.foreseen
        much = f"To write takes {told.in_words}. " if told.tokens else ""
        paper.line(f"{much}{writer.describe_scope(proposal)}")
        writer.render_alternatives(paper, proposal)
        self._show(paper)
        present = self._settings.flag("models.background")
        if not click.confirm("Let it work in the background?", default=present, err=True):
            return replace(wish, background=False)
        wanted = proposal.request
        if wanted.tokens_per_day is not None:
            least = self._settings.whole("writer.tokens_per_day") or wanted.tokens_per_day
            return replace(wish, background=True, tokens_per_day=self._tokens(wish, least))
        if proposal.writer.is_free:
            return replace(wish, background=True, daily_budget=wanted.dollars_per_day)
        budget = click.prompt(
            "At most so many US dollars a day",
            default=wanted.dollars_per_day,
            type=click.FloatRange(0),
            err=True,
        )
        return replace(wish, background=True, daily_budget=float(budget))

    def _tokens(self, wish: Wish, default: int) -> int:
        """Tokens a day that hold a call of the writer at least."""
        while True:
            said = click.prompt(
                "At most so many tokens a day", default=default, type=click.IntRange(1), err=True
            )
            try:
                models.check_bound(
                    self._settings, replace(wish, background=True, tokens_per_day=int(said))
                )
            except InvalidInput as error:
                click.echo(error.message, err=True)
                continue
            return int(said)

    def _number(self, question: str, rows: Sequence[tuple[str, str]], default: int) -> int:
        paper = self._paper()
        paper.line(bold(question))
        paper.facts(_numbered(rows))
        self._show(paper)
        chosen = click.prompt(
            "Number", default=default + 1, type=click.IntRange(1, len(rows)), err=True
        )
        return int(chosen) - 1

    def _hidden(self, question: str, *, may_be_empty: bool = False) -> str:
        while True:
            default = "" if may_be_empty else None
            secret = str(
                click.prompt(question, default, hide_input=True, show_default=False, err=True)
            ).strip()
            try:
                return check_key(secret, "what was typed") if secret or not may_be_empty else ""
            except NacreError as error:
                click.echo(error.message, err=True)

    def _explain(self, text: str) -> None:
        paper = self._paper()
        paper.line(text)
        self._show(paper)

    def _paper(self) -> Paper:
        return self._run.paper(stderr=True)

    def _show(self, paper: Paper) -> None:
        click.echo(f"\n{paper.text()}", nl=False, err=True)


def _numbered(rows: Sequence[tuple[str, str]]) -> list[tuple[str, Cell]]:
    """What can be chosen, with a note each: wrapped, as who is to choose must read all of it."""
    return [
        (f"{number:>4}", (label, dim(f" ({note})" if note else "")))
        for number, (label, note) in enumerate(rows, 1)
    ]


def _options(
    settings: Settings, found: models.SigningIn, local: dict[str, list[str]]
) -> list[Option]:
    states = {way.method: way.state for way in found.ways if way.method}
    options = []
    for name, method in credentials.methods().items():
        provider = through(settings, name)
        by = (
            f", by its command {provider.removesuffix('-cli')}"
            if provider != method.provider
            else ""
        )
        note = "" if states[name] == "missing" else states[name]
        options.append(Option(provider, method.label + by, name, note))
    servers = list(dict.fromkeys(["ollama", *local]))
    for name in servers:
        note = _server("", local[name]).strip(": ") if name in local else "does not answer now"
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
    """The option to propose: what is set now, else the best writer of which something was found, else none."""
    present, auth = settings.text("models.default").partition(":")[0], settings.text("models.auth")
    same = [
        at for at, one in enumerate(options) if one.provider == present and one.auth in ("", auth)
    ]
    there = [
        at
        for at, one in enumerate(options)
        if one.note == "found" or (one.note and _models_of(one))
    ]
    if present == spending_models.NONE:
        best = [
            one.name.partition(":")[0]
            for one in found_writers.found_writers(settings)
            if not one.problem
        ]
        there.sort(
            key=lambda at: (
                best.index(options[at].provider) if options[at].provider in best else len(best)
            )
        )
        return next(iter([*there, len(options) - 1]))
    return next(iter([*same, *there, len(options) - 2]))


def _models_of(option: Option) -> bool:
    return option.note.startswith("answers")


def _price(settings: Settings, provider: Provider, model: str) -> str:
    """What a model costs, in words; empty where that is not known."""
    if spending_models.is_by_subscription(settings, f"{provider.name}:{model}"):
        return "a subscription pays"
    price = providers.capabilities_of(settings, provider, model).price
    if price is None:
        return ""
    if not (price.input or price.output):
        return "free"
    return f"US$ {price.input:.2f} for a million tokens read, {price.output:.2f} written"


def _server(name: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{name}: answers, with {shown}" if names else f"{name}: answers, with no model yet"


def _told(way: models.Way) -> str:
    best = way.best
    if best is None or best.credential is None:
        return f"{way.method or way.provider} ({way.state})"
    state = "" if way.state == "found" else f", {way.state}"
    return f"{way.method or way.provider} ({best.credential.masked}{state})"


# ----------------------------------------------------------------------------
# ``nacre setup``.


METHODS = (
    "anthropic-api-key",
    "anthropic-token",
    "anthropic-oauth",
    "openai-api-key",
    "openai-subscription",
)
_OUTCOMES = {
    "answered": Span("answered", "green"),
    "unusable": Span("answered, but not in the shape that was asked for", "yellow"),
    "unreachable": Span("not tested: no answer of use now", "yellow"),
    "refused": Span("refused", "red"),
    "skipped": Span("not tested", "dim"),
}


@command(
    "setup",
    examples=[
        "nacre setup",
        "nacre setup --auth anthropic-api-key --key-env ANTHROPIC_API_KEY --model claude-haiku-5-5 --yes",
        "nacre setup --writer claude-cli:haiku --tokens-per-day 100000",
    ],
)
@click.option(
    "--provider",
    type=TEXT,
    help="Who answers: anthropic, openai, ollama, claude-cli … or a name of yours.",
)
@click.option("--auth", type=click.Choice(METHODS), help="How to sign in to Anthropic or OpenAI.")
@click.option(
    "--key-env", type=TEXT, metavar="VAR", help="Keep the key that this environment variable holds."
)
@click.option("--key-stdin", is_flag=True, help="Keep the key that comes on standard input.")
@click.option(
    "--model", type=TEXT, metavar="NAME", help="Which model, with or without its provider."
)
@click.option(
    "--base-url",
    type=TEXT,
    metavar="URL",
    help="Where a provider answers that speaks as OpenAI does.",
)
@click.option(
    "--embedding",
    type=TEXT,
    metavar="MODEL",
    help="Model for the vector lane: minilm (bundled), none, or another.",
)
@click.option(
    "--background/--no-background",
    default=None,
    help="Let the model work while sessions are read, or not.",
)
@click.option(
    "--daily-budget", type=click.FloatRange(0), metavar="USD", help="What that may cost a day."
)
@click.option(
    "--tokens-per-day",
    type=click.IntRange(1),
    metavar="N",
    help="The same where a subscription pays.",
)
@click.option(
    "--writer",
    type=TEXT,
    metavar="NAME",
    help="Who writes memories, as claude-cli:haiku; nacre writer.",
)
@click.option("--none", "goes_without", is_flag=True, help="Go back to no model.")
@click.option(
    "--test/--no-test",
    "tests",
    default=True,
    show_default=True,
    help="Ask the model one short question.",
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take what is proposed.")
@click.pass_obj
def setup(  # noqa: PLR0913 - one a question
    run: Run,
    provider: str | None,
    auth: str | None,
    key_env: str | None,
    key_stdin: bool,
    model: str | None,
    base_url: str | None,
    embedding: str | None,
    background: bool | None,
    daily_budget: float | None,
    tokens_per_day: int | None,
    writer: str | None,
    goes_without: bool,
    tests: bool,
    yes: bool,
) -> None:
    """Choose a language model, sign in, and say what it may cost.

    nacre works without one; with one it writes better memories. On a terminal it asks for what the options leave open.
    Keys go into the system's keyring, where none works into credentials.toml, and never into the config. Run again,
    it changes only what it is asked to. --yes alone sets nothing that would ask a model: it names what does.
    """
    run.settings.actor.require_owner("nacre setup")
    if goes_without and any((provider, auth, key_env, key_stdin, model, base_url, writer)):
        raise click.UsageError(
            "--none goes without a provider, a key, a model and a writer",
            click.get_current_context(),
        )
    if goes_without:
        wish = models.Wish("none", embedding=embedding, daily_budget=daily_budget)
    else:
        secret = _given_key(run, key_env, key_stdin=key_stdin)
        asked = SetupOptions(
            provider,
            auth,
            model,
            base_url,
            embedding,
            background,
            daily_budget,
            tokens_per_day,
            secret,
            yes,
        )
        wish = _wish(run, asked, writer, may_ask=run.is_interactive and not yes and not key_stdin)
    models.changes(
        run.settings, wish
    )  # what cannot be set is told before anything is asked of the network
    models.check_bound(run.settings, wish)
    named = models.WriterRequest(writer=writer, tokens_per_day=tokens_per_day) if writer else None
    if named:
        models.refuse(models.wished(run.settings, wish), named)
    tried = _try(run, wish, tests=tests, may_ask=run.is_interactive and not yes)
    _finish(run, wish, tried, named)


def _wish(run: Run, asked: SetupOptions, writer: str | None, *, may_ask: bool) -> Wish:
    if not asked.is_nothing:
        return settle(run.settings, asked, Dialog(run) if may_ask else None)
    if writer or asked.takes_proposals:
        return models.Wish()
    if may_ask:
        return walk(run)
    raise InvalidInput(
        "not interactive, and nothing says what to set up: pass --provider and --model, and --key-env or --key-stdin "
        "where it needs a key; or --writer, --none, --embedding, --background, --daily-budget",
        hint="nacre setup --provider anthropic --model claude-haiku-5-5 --key-env ANTHROPIC_API_KEY --yes",
    )


def _given_key(run: Run, variable: str | None, *, key_stdin: bool) -> str | None:
    """The key that the options point to. It never is an argument: those are kept in histories and seen by others."""
    if variable and key_stdin:
        raise click.UsageError("--key-env or --key-stdin, not both", click.get_current_context())
    if key_stdin:
        secret = sys.stdin.read(MAX_KEY_CHARACTERS).strip()
        where = "standard input"
    elif variable:
        secret = run.environ.get(variable, "").strip()
        is_name = re.fullmatch(r"[A-Z][A-Z0-9_]*", variable)  # else it may be the key itself
        where = f"${variable}" if is_name else "the variable that --key-env names"
    else:
        return None
    return check_key(secret, where)


def _try(run: Run, wish: Wish, *, tests: bool, may_ask: bool) -> Tried:
    """Ask the model, where one is to be set. Raises ModelRefused where it says no, and nobody wants it all the same."""
    if not tests or not wish.provider:
        return models.Tried(
            models.SKIPPED, message="nobody asked for a test" if wish.provider else ""
        )
    with output.waiting(run, f"Asking {wish.model}"):
        tried = models.try_model_models(run.home, wish)
    if tried.outcome != models.REFUSED:
        return tried
    if may_ask:
        click.echo(f"{tried.message}\n{tried.hint}".strip(), err=True)
        run.confirm("Set it all the same?")
        return tried
    raise ModelRefused(
        f"{tried.message}; nothing was changed",
        hint=f"{tried.hint}; --no-test sets it all the same",
    )


def _finish(run: Run, wish: Wish, tried: Tried, named: WriterRequest | None) -> None:
    if not wish.provider and wish.secret:
        wish = replace(wish, secret=None)
    done = models.apply(run.settings, wish)
    run.warnings += done.notes
    status, could = _who_writes(run, done, named)
    if named:
        done = _with_writer(done)
    run.answer(
        _setup_record(done, tried, status, could),
        lambda paper: _render_setup(paper, done, tried, status, could),
    )


def _with_writer(done: Done) -> Done:
    """What holds and was written, now that the writer is set, too."""
    before, after = done.settings, load_settings(done.settings.home, done.settings.environ)
    more = {key: after[key] for key in after.values if after[key] != before[key]}
    return replace(done, settings=after, changed={**done.changed, **more})


def _who_writes(
    run: Run, done: Done, named: WriterRequest | None
) -> tuple[WriterStatus, WriterProposal | None]:
    """Who writes now, and who could. What was asked for is done: a database that cannot be read does not fail it."""
    if named:
        return models.set_writer(replace(run.home, settings=done.settings), named), None
    try:
        home = replace(run.home, settings=done.settings)
        status = models.status_writer(home)
        return status, writer.best_for(home) if status.state == "off" else None
    except NacreError as error:
        run.warnings.append(error.message)
        name = models.named(done.settings)
        return models.WriterStatus(name or "none", "unavailable" if name else "off"), None


def _setup_record(
    done: Done, tried: Tried, status: WriterStatus, could: WriterProposal | None
) -> Record:
    """What holds now, what was changed where, and how the test went."""
    settings = done.settings
    return {
        "model": settings.text("models.default"),
        "auth": settings.text("models.auth") or None,
        "embedding": settings.text("embedding.model"),
        "background": settings.flag("models.background"),
        "daily_budget_usd": settings.number("models.daily_budget_usd"),
        "changed": [
            {"key": key, "value": models.hidden(settings, value)}
            for key, value in done.changed.items()
        ],
        "writer": status.writer,
        "writer_command": could.command if could else None,
        "config": str(settings.config),
        "credential": {"kept": done.kept, "masked": done.masked} if done.kept else None,
        "test": {
            "outcome": tried.outcome,
            "seconds": round(tried.seconds, 3),
            "message": tried.message or None,
            "hint": tried.hint or None,
        },
    }


def _render_setup(
    paper: Paper, done: Done, tried: Tried, status: WriterStatus, could: WriterProposal | None
) -> None:
    """What holds now, where it was written, and how to go on."""
    settings = done.settings
    has_model = settings.text("models.default") != "none"
    without = "none: nacre works without one" if status.state == "off" else "none beside the writer"
    paper.facts(
        (
            ("model", bold(settings.text("models.default")) if has_model else without),
            ("test", _test(tried) if has_model else ""),
            ("key", f"{done.masked}, kept in {_place(done.kept)}" if done.kept else ""),
            ("vectors", settings.text("embedding.model")),
            ("background", _background(done) if has_model else ""),
            ("writer", _writer(status)),
            (
                "written",
                f"{', '.join(done.changed)} in {settings.config}"
                if done.changed
                else "nothing: it was so",
            ),
        )
    )
    paper.blank()
    for words, why in _next(done, could):
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
    return "the keyring" if kept == "keyring" else f"{kept}, yours alone"


def _background(done: Done) -> str:
    if not done.settings.flag("models.background"):
        return "off: the model works only when you ask for it"
    name, tokens = (
        done.settings.text("models.default"),
        done.settings.whole("writer.tokens_per_day"),
    )
    if spending_models.is_by_subscription(done.settings, name):
        return f"on: up to {tokens:,} tokens a day"
    budget = done.settings.number("models.daily_budget_usd")
    if not budget:
        return "on, but the budget is US$ 0 a day: nothing is asked"
    return f"on: for at most US$ {budget:,.2f} a day"


def _writer(status: WriterStatus) -> str:
    if status.state == "off":
        return "none: what you say plainly is kept"
    bound = f", up to {status.limit:,} tokens a day" if status.limit else ""
    return f"{status.writer}, once a session is over{bound}"


def _next(done: Done, could: WriterProposal | None) -> list[tuple[str, str]]:
    more = (
        [(could.command, f"lets {could.writer.label} write memories{could.bound}")] if could else []
    )
    if done.settings.text("models.default") == "none":
        return [
            *more,
            ("nacre ingest", "reads what is new"),
            ("nacre auth status", "what keys are left"),
        ]
    if done.settings.flag("models.background"):
        return [*more, ("nacre ingest", "reads what is new, with the model")]
    return [*more, ("nacre auth status", "what nacre signs in with")]
