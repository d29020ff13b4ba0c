"""What ``nacre setup`` makes of its options, and what it asks for or names where they leave something open."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import click

from nacre.llm import proposals, providers
from nacre.llm.credentials import methods
from nacre.setup import credentials, models
from nacre.spending import models as spending_models

if TYPE_CHECKING:
    from nacre.settings import Settings
    from nacre.setup.models import Wish


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
        embedding=asked.embedding, background=asked.background, daily_budget=asked.daily_budget,
        tokens_per_day=asked.tokens_per_day,
    )  # fmt: skip
    if not asked.names_model:
        return rest
    provider = _provider(settings, asked)
    if provider == spending_models.NONE:
        return models.Wish(spending_models.NONE, embedding=asked.embedding, daily_budget=asked.daily_budget)
    if asked.base_url is None:
        providers.provider_of(settings, provider)  # raises where there is none
    method = models.method_for(provider, asked.auth, asked.secret)
    wish = models.Wish(
        f"{provider}:", method.name if method else asked.auth, asked.secret, asked.base_url, asked.embedding,
        asked.background, asked.daily_budget, asked.tokens_per_day,
    )  # fmt: skip
    missing = []
    if models.needs_key(settings, wish):
        secret = somebody.key(settings, wish) if somebody else None
        wish = with_key(wish, secret) if secret else wish
        missing += [] if secret else ["--key-env VAR or --key-stdin"]
    model, wanted = _model(settings, asked, provider, somebody)
    missing += wanted
    if missing:
        raise click.UsageError(f"{provider} needs more: add {', '.join(missing)}", click.get_current_context())
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
    method = methods.methods()[auth]
    installed = {one.provider for one in credentials.programs(settings) if one.path}
    return method.through if method.through in installed else method.provider


def _model(settings: Settings, asked: SetupOptions, provider: str, somebody: Asks | None) -> tuple[str, list[str]]:
    """The model's name, and the options that are missing for it."""
    present = settings.text("models.default")
    if asked.model:
        return asked.model, []
    if present.partition(":")[0] == provider:
        return present, []
    if somebody:
        return somebody.model(settings, provider, asked.base_url), []
    names = [] if asked.base_url else proposals.proposed(providers.provider_of(settings, provider))
    if asked.takes_proposals and names:
        return names[0], []
    return "", [f"--model NAME{f' (or --yes for {names[0]})' if names else ''}"]
