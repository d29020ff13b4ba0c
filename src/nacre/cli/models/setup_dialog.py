"""The questions of ``nacre setup``, on standard error: the answer alone goes to standard output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from nacre.cli.models import writer
from nacre.cli.models.auth import checked_key, kept_in, programs
from nacre.cli.models.setup_choices import through, with_key
from nacre.cli.paper import Cell, Paper, bold, dim
from nacre.cli.run import Run
from nacre.errors import InvalidInput, NacreError
from nacre.llm import capabilities, proposals, providers
from nacre.llm import providers as llm_providers
from nacre.llm.credentials import keys, methods
from nacre.llm.credentials import methods as credentials_methods
from nacre.setup import credentials, found_writers, models
from nacre.spending import budget as budgets
from nacre.spending import models as spending_models

if TYPE_CHECKING:
    from nacre.llm.providers import Provider
    from nacre.settings import Settings
    from nacre.setup.models import Wish


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
    found = credentials.status(run.settings)
    local = proposals.servers_here(run.settings)
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

    def show_found(self, found: credentials.SigningIn, local: dict[str, list[str]]) -> None:
        """What there is on this machine."""
        paper = self._run.paper(stderr=True)
        paper.line("A language model is optional. With one, nacre writes better memories and merges them better.")
        paper.heading("Found on this machine")
        paper.facts(
            (
                ("credentials", ", ".join(_told(way) for way in found.ways if way.state != "missing") or "none"),
                ("commands", programs(found)),
                ("servers", "; ".join(_server(name, names) for name, names in local.items()) or "none that answers"),
                ("keys go", kept_in(found)),
                ("model now", self._settings.text("models.default")),
            ),
            indent=2,
        )
        self._show(paper)

    def choose(self, options: Sequence[Option]) -> Option:
        """Which way."""
        rows = [(option.label, option.note) for option in options]
        return options[self._number("How should nacre reach a model?", rows, _first(self._settings, options))]

    def other(self) -> Wish:
        """A provider that is not in the list: one that nacre knows, or an address."""
        known = [name for name, one in providers.providers(self._settings).items() if one.api == "chat"]
        paper = self._paper()
        paper.line(f"Known: {', '.join(known)}. For another server that speaks as OpenAI does, give it a name.")
        self._show(paper)
        name = str(click.prompt("Provider", err=True)).strip().lower()
        if llm_providers.is_built_in(name) or name in self._settings["models.providers"]:
            return models.Wish(f"{name}:")
        url = str(click.prompt("Its address (https://…/v1)", err=True)).strip()
        wish = models.Wish(f"{name}:", base_url=url)
        secret = self._hidden("Its key, if it wants one (not shown; empty for none)", may_be_empty=True)
        return replace(wish, secret=secret or None)

    def wants_another(self, wish: Wish) -> bool:
        """Whether the key that is there is to be replaced."""
        method = methods.methods().get(wish.auth or "")
        if wish.secret or (method and method.kind == credentials_methods.BEARER and method.login):
            return False
        after = models.wished(self._settings, wish)
        if not llm_providers.provider_of(after, wish.provider).needs_key:
            return False
        taken = keys.credential_for(after, wish.provider)
        if taken is None:
            return True
        return not click.confirm(f"Use the key {taken.masked} from {taken.origin}?", default=True, err=True)

    def key(self, settings: Settings, wish: Wish) -> str:
        """A key, typed without being shown."""
        method = methods.methods().get(wish.auth or "")
        what = (
            "Token (claude setup-token makes one"
            if method and method.kind == credentials_methods.BEARER
            else "API key ("
        )
        label = what + ("; not shown)" if method and method.kind == credentials_methods.BEARER else "not shown)")
        while True:
            secret = self._hidden(
                f"{label} for {llm_providers.provider_of(models.wished(settings, wish), wish.provider).label}"
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
        able = llm_providers.provider_of(models.wished(settings, wish), provider)
        names = proposals.proposed(able)
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
        paper.line(f"{much}{writer.shown(proposal)}")
        writer.render_beside(paper, proposal)
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
            "At most so many US dollars a day", default=wanted.dollars_per_day, type=click.FloatRange(0), err=True
        )
        return replace(wish, background=True, daily_budget=float(budget))

    def _tokens(self, wish: Wish, default: int) -> int:
        """Tokens a day that hold a call of the writer at least."""
        while True:
            said = click.prompt("At most so many tokens a day", default=default, type=click.IntRange(1), err=True)
            try:
                models.check_bound(self._settings, replace(wish, background=True, tokens_per_day=int(said)))
            except InvalidInput as error:
                click.echo(error.message, err=True)
                continue
            return int(said)

    def _number(self, question: str, rows: Sequence[tuple[str, str]], default: int) -> int:
        paper = self._paper()
        paper.line(bold(question))
        paper.facts(_numbered(rows))
        self._show(paper)
        chosen = click.prompt("Number", default=default + 1, type=click.IntRange(1, len(rows)), err=True)
        return int(chosen) - 1

    def _hidden(self, question: str, *, may_be_empty: bool = False) -> str:
        while True:
            default = "" if may_be_empty else None
            secret = str(click.prompt(question, default, hide_input=True, show_default=False, err=True)).strip()
            try:
                return checked_key(secret, "what was typed") if secret or not may_be_empty else ""
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
        (f"{number:>4}", (label, dim(f" ({note})" if note else ""))) for number, (label, note) in enumerate(rows, 1)
    ]


def _options(settings: Settings, found: credentials.SigningIn, local: dict[str, list[str]]) -> list[Option]:
    states = {way.method: way.state for way in found.ways if way.method}
    options = []
    for name, method in methods.methods().items():
        provider = through(settings, name)
        by = f", by its command {provider.removesuffix('-cli')}" if provider != method.provider else ""
        note = "" if states[name] == "missing" else states[name]
        options.append(Option(provider, method.label + by, name, note))
    servers = list(dict.fromkeys(["ollama", *local]))
    for name in servers:
        note = _server("", local[name]).strip(": ") if name in local else "does not answer now"
        options.append(Option(name, f"{llm_providers.provider_of(settings, name).label}, on this machine", note=note))
    options.append(Option(_OTHER, "Another provider", note="OpenRouter, Gemini, Groq, your own server …"))
    options.append(Option(spending_models.NONE, "None", note="nacre works without a model"))
    return options


def _first(settings: Settings, options: Sequence[Option]) -> int:
    """The option to propose: what is set now, else the best writer of which something was found, else none."""
    present, auth = settings.text("models.default").partition(":")[0], settings.text("models.auth")
    same = [at for at, one in enumerate(options) if one.provider == present and one.auth in ("", auth)]
    there = [at for at, one in enumerate(options) if one.note == "found" or (one.note and _models_of(one))]
    if present == spending_models.NONE:
        best = [one.name.partition(":")[0] for one in found_writers.found_writers(settings) if not one.problem]
        there.sort(key=lambda at: best.index(options[at].provider) if options[at].provider in best else len(best))
        return next(iter([*there, len(options) - 1]))
    return next(iter([*same, *there, len(options) - 2]))


def _models_of(option: Option) -> bool:
    return option.note.startswith("answers")


def _price(settings: Settings, provider: Provider, model: str) -> str:
    """What a model costs, in words; empty where that is not known."""
    if budgets.is_by_subscription(settings, f"{provider.name}:{model}"):
        return "a subscription pays"
    price = capabilities.capabilities_of(settings, provider, model).price
    if price is None:
        return ""
    if not (price.input or price.output):
        return "free"
    return f"US$ {price.input:.2f} for a million tokens read, {price.output:.2f} written"


def _server(name: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{name}: answers, with {shown}" if names else f"{name}: answers, with no model yet"


def _told(way: credentials.Way) -> str:
    best = way.best
    if best is None or best.credential is None:
        return f"{way.method or way.provider} ({way.state})"
    state = "" if way.state == "found" else f", {way.state}"
    return f"{way.method or way.provider} ({best.credential.masked}{state})"
