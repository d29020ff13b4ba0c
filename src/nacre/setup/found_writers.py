"""Who could write on this machine: agents' commands, servers on it, and providers whose key is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nacre.errors import ModelRefused
from nacre.known_settings import known
from nacre.llm.credentials.billing import absence, key_of
from nacre.llm.credentials.keys import credential_for
from nacre.llm.credentials.methods import API_KEY
from nacre.llm.proposals import proposed, servers_here
from nacre.llm.providers import Provider, is_on_this_machine, provider_of, providers
from nacre.llm.registry import describe
from nacre.settings import Settings
from nacre.setup.credentials import programs
from nacre.setup.requests import WriterRequest
from nacre.setup.writer import obstacle_to
from nacre.spending.budget import CALLS, DAILY, is_by_subscription
from nacre.text.passages import count
from nacre.values.model_calls import Price

if TYPE_CHECKING:
    from nacre.setup.foreseeing import Foreseen

_ELSEWHERE = "cloud"
"""How names of models end that Ollama lists, and that answer elsewhere."""


@dataclass(frozen=True, slots=True)
class FoundWriter:
    """A model that could write, as ``provider:model``, and what it is called.

    ``payer`` is where the key is that pays its calls; empty where a subscription does, or nothing is to pay.
    ``problem`` says what may keep it from answering; ``is_refused``: it cannot be set before that is mended.
    ``is_here``: it answers on this machine itself.
    """

    name: str
    label: str
    payer: str = ""
    is_free: bool = False
    problem: str = ""
    is_refused: bool = False
    is_here: bool = False


def found_writers(settings: Settings) -> list[FoundWriter]:
    """All that could write: commands to which somebody is signed in, servers on this machine, keys; then what has a
    problem.
    """
    found = [writer_named(settings, name) for name in dict.fromkeys(_names(settings))]
    return sorted(found, key=lambda one: (one.is_refused, bool(one.problem)))


def best_writer(found: list[FoundWriter]) -> FoundWriter | None:
    """The one to propose: the first that can be set."""
    return next((one for one in found if not one.is_refused), None)


def writer_named(settings: Settings, name: str) -> FoundWriter:
    """What is known of a model by its name. Raises ModelRefused for a provider that is unknown."""
    provider, model = provider_of(settings, name.partition(":")[0]), name.partition(":")[2]
    label = f"{provider.label}, {'its default model' if model in ('', 'default') else model}"
    problem, is_here = obstacle_to(settings, name), is_on_this_machine(provider)
    if problem:
        hint = f" ({problem.hint})" if problem.hint else ""
        return FoundWriter(name, label, problem=f"{problem.message}{hint}", is_refused=True, is_here=is_here)
    asked, able = describe(settings, name)
    payer = key_of(settings, provider) or (asked.credential.origin if asked.credential else "")
    return FoundWriter(name, label, payer, able.price == Price(), absence(settings, provider), is_here=is_here)


def _names(settings: Settings) -> Iterator[str]:
    """A model of each that is here, in the order in which they are proposed."""
    commands = [one.provider for one in programs(settings) if one.path]
    yield from (f"{name}:{proposed(provider_of(settings, name))[0]}" for name in commands)
    with suppress(ModelRefused):  # models.providers is written wrongly
        for name, models in servers_here(settings).items():
            yield from [f"{name}:{one}" for one in models if not one.endswith(_ELSEWHERE)][:1]
        yield from (f"{one.name}:{proposed(one)[0]}" for one in providers(settings).values() if _has_key(settings, one))


def _has_key(settings: Settings, provider: Provider) -> bool:
    """Whether an API key is found of a provider of which nacre knows a model to propose."""
    if not provider.needs_key or not proposed(provider):
        return False
    with suppress(ModelRefused):
        found = credential_for(settings, provider.name)
        return found is not None and found.kind == API_KEY
    return False


@dataclass(frozen=True, slots=True)
class WriterProposal:
    """Who is proposed to write, within which bounds, with what it would take; and who else could.

    ``calls`` a day are the most of one that a subscription pays; 0: no bound.
    """

    writer: FoundWriter
    request: WriterRequest
    foreseen: Foreseen
    others: tuple[FoundWriter, ...] = ()
    calls: int = 0

    @property
    def bound(self) -> str:
        """What it may take, as it ends a question; empty where nothing is to be paid."""
        if self.request.tokens_per_day is not None:
            return f", up to {self.request.tokens_per_day:,} tokens a day"
        if self.writer.is_free:
            return ""
        return f", for at most US$ {self.request.dollars_per_day:,.2f} a day"

    @property
    def command(self) -> str:
        """The command that sets it so."""
        words = ["nacre writer set", self.writer.name]
        if self.request.tokens_per_day is not None:
            words.append(f"--tokens-per-day {self.request.tokens_per_day}")
        elif not self.writer.is_free:
            words.append(f"--dollars-per-day {self.request.dollars_per_day:g}")
        return " ".join(words)

    @property
    def terms(self) -> str:
        """The same as a clause, with who pays."""
        if self.request.tokens_per_day is not None:
            calls = f" or {count(self.calls, 'call')}" if self.calls else ""
            most = f"{self.request.tokens_per_day:,} tokens{calls} a day"
            return f"stops at {most} (its last answer may go a little beyond)"
        if self.writer.is_free:
            return "costs nothing"
        whose = f", billed to the key in {self.writer.payer}" if self.writer.payer else ""
        return (
            f"never costs more than US$ {self.request.dollars_per_day:,.2f} a day{whose}, with all that models do in "
            "the background"
        )


def proposal_of(
    settings: Settings, writer: FoundWriter, foreseen: Foreseen, others: list[FoundWriter] | None = None
) -> WriterProposal:
    """A writer within bounds that are proposed for it."""
    able = tuple(one for one in others or () if one != writer and not one.is_refused)
    return WriterProposal(writer, _bounded(settings, writer, foreseen), foreseen, able, settings.whole(CALLS))


def proposal_as_named(settings: Settings, request: WriterRequest, foreseen: Foreseen) -> WriterProposal:
    """A writer that the owner named, within the bounds that hold for it."""
    if not is_by_subscription(settings, request.writer):
        request = WriterRequest(writer=request.writer, dollars_per_day=settings.number(DAILY))
    return WriterProposal(writer_named(settings, request.writer), request, foreseen, calls=settings.whole(CALLS))


def _bounded(settings: Settings, writer: FoundWriter, foreseen: Foreseen) -> WriterRequest:
    if is_by_subscription(settings, writer.name):
        return WriterRequest(writer=writer.name, tokens_per_day=foreseen.most)
    dollars = settings.number(DAILY) or float(known(DAILY).default)
    return WriterRequest(writer=writer.name, dollars_per_day=dollars)
