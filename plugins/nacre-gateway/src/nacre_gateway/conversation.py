"""Channel options, access for senders, search in conversations, models, and splitting of answers."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.base.text import count_tokens, shorten
from nacre.errors import (
    InvalidQueryError,
    InvalidSettingsError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    NotFoundError,
)
from nacre.home.home import Home
from nacre.home.spending import NONE, CountedModel, name_for, set_for
from nacre.llm.credentials import provider_of
from nacre.llm.providers import cost_of, full_name
from nacre.protocols import LanguageModel
from nacre.readers.nacre_chat import TOOL
from nacre.sessions.find import ChatSearchRequest
from nacre.sessions.search import search
from nacre.settings import Settings, load_settings
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Answer, ChatType, Incoming, Limits, Pairing, Sender
from nacre.values.models import Prompt
from nacre.values.session import Task
from nacre_gateway.channels import Channel, options_of

CODE_MINUTES = 60
"""Lifetime of a pairing code in minutes. A sender gets no new code before it expires."""

_MAX_PENDING_CODES = 20
"""Maximum number of senders with pending codes per channel."""

_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
EVERYONE = "*"


def code_for(sender: Sender, channel: str, store: GatewayStore, now: datetime) -> str:
    """Return a message that gives a new pairing code to a sender.

    Return an empty string if the sender's code is still valid or too many codes are pending.
    """
    since = now - timedelta(minutes=CODE_MINUTES)
    pairing = store.pairing(channel, sender.id)
    if (pairing and pairing.asked > since) or store.asking_since(
        channel, since
    ) >= _MAX_PENDING_CODES:
        return ""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    code = f"{letters[:4]}-{letters[4:]}"
    store.ask_pairing(Pairing(channel, sender.id, sender.name, code, now))
    return (
        f"This agent only answers people its owner has approved. Your code: {code}\n"
        f"The owner can approve you within {CODE_MINUTES} minutes: nacre gateway pair {code}"
    )


def is_current(pairing: Pairing, now: datetime) -> bool:
    """Return True if the owner can still use a sender's pairing code."""
    return pairing.approved is None and now - pairing.asked < timedelta(minutes=CODE_MINUTES)


# ----------------------------------------------------------------------------
# Channel options.


@frozen
class ChannelOptions:
    """The owner's options for a channel."""

    channel: str
    identities: frozenset[str] = frozenset()
    """The owner's sender ids."""

    allow: frozenset[str] = frozenset()
    """Senders who need no pairing."""

    groups: str = "mention"
    """When the agent answers in groups: when mentioned (``mention``), always (``all``) or never
    (``off``).
    """

    hears: str = "paired"
    """Whose messages are context in groups: those of admitted senders (``paired``) or of everyone.
    """

    memories: str = "owner"
    model: str = ""
    tools: tuple[str, ...] = ()
    folder: Path | None = None
    instructions: str = ""

    @classmethod
    def of(cls, settings: Settings, name: str) -> ChannelOptions:
        _, values = options_of(settings, name)
        folder = Path(values["folder"]).expanduser() if values["folder"] else None
        if values["tools"] and (folder is None or not folder.is_dir()):
            hint = f'set folder = "…" in [gateway.channels.{name}], where the agent may use them'
            raise InvalidSettingsError(
                f"gateway.channels.{name}: tools need an existing folder", hint=hint
            )
        return cls(
            name,
            owner_identities(settings),
            frozenset(map(str, values["allow"])),
            values["groups"],
            values["hears"],
            values["memories"],
            values["model"],
            tuple(values["tools"]),
            folder,
            values["instructions"] or settings.text("gateway.instructions"),
        )

    def is_owner(self, sender: Sender) -> bool:
        """Return True if a sender in this channel is the owner."""
        return f"{self.channel}:{sender.id}" in self.identities

    def admit(self, message: Incoming, store: GatewayStore) -> str | None:
        """Return ``waiting`` for a message to answer, ``heard`` for one that only gives context, or
        ``None``.
        """
        sender = message.sender
        is_admitted = self.is_owner(sender) or not self.allow.isdisjoint((EVERYONE, sender.id))
        if not is_admitted:
            pairing = store.pairing(self.channel, sender.id)
            is_admitted = bool(pairing and pairing.approved)
        if message.chat.kind is ChatType.DIRECT:
            return "waiting" if is_admitted else None
        if self.groups == "off" or not (is_admitted or self.hears == "all"):
            return None
        is_asked = is_admitted and (message.to_agent or self.groups == "all")
        return "waiting" if is_asked else "heard"


@frozen
class OpenChannel:
    """An open channel and its options."""

    channel: Channel
    options: ChannelOptions


def current_options(settings: Settings, options: ChannelOptions) -> ChannelOptions:
    """Update the owner's identities in a channel's options from the config file."""
    with suppress(NacreError):
        identities = owner_identities(load_settings(settings.home, settings.environ))
        return replace(options, identities=identities)
    return options


def owner_identities(settings: Settings) -> frozenset[str]:
    """Return the owner's identities in all channels. ``telegram:4711`` applies to all Telegram
    channels.
    """
    channels = settings["gateway.channels"]
    identities: set[str] = set()
    for identity in settings.texts("owner.identities"):
        channel, colon, sender = identity.strip().partition(":")
        if colon:
            kind = channel.casefold()
            names = [name for name, own in channels.items() if own.get("kind", name) == kind]
            identities.update(f"{name}:{sender}" for name in (kind, *names))
    return frozenset(identities)


# ----------------------------------------------------------------------------
# Search in earlier conversations.


_QUERY_CHARACTERS = 2_000
_MAX_PASSAGES = 5


def passages_for(
    home: Home, question: str, *, budget_tokens: int, key: str | None, leave_out: str
) -> Sequence[str]:
    """Return passages on a question from all conversations, or from those with a key.

    ``leave_out`` is the session whose end the prompt already contains.
    """
    if not question.strip():
        return ()
    request = ChatSearchRequest(
        query=shorten(question, _QUERY_CHARACTERS),
        limit=_MAX_PASSAGES,
        session=key,
        leave_out=f"{TOOL}:{leave_out}",
    )
    try:
        passages = [
            passage for passage in search(home, request).passages if key in (None, passage.key)
        ]
    except (
        NotFoundError,
        InvalidQueryError,
    ):  # the conversation is not indexed yet, or the query has no words
        return ()
    fitting: list[str] = []
    for passage in passages:
        tokens = count_tokens(passage.text)
        if tokens <= budget_tokens:
            fitting.append(passage.text)
            budget_tokens -= tokens
    return fitting


# ----------------------------------------------------------------------------
# Responders.


_WITH_TOOLS = ("claude-cli", "codex-cli")
"""Kinds of models whose tools can be restricted without permission prompts."""
ANSWER_SECONDS = 300.0
"""Time limit for an answer."""


def responder_for(home: Home, model: str = "") -> Responder:
    """Return the responder for a model (``provider:model``), by default ``models.chat`` or the
    writer.

    Its answers count against the daily budgets. Raises ModelRefusedError if no model is set.
    """
    check_model(home.settings, model)
    name = full_name(model) if model else name_for(home, Task.CHAT)
    api = provider_of(home.settings, name.partition(":")[0]).api
    return Responder(CountedModel(home, home.load_model(home.settings, name), background=True), api)


def check_model(settings: Settings, model: str) -> None:
    """Raise ModelRefusedError if no model is given or set."""
    if (model or set_for(settings, Task.CHAT)) == NONE:
        raise ModelRefusedError("no model is set for conversations", hint="nacre writer set")


class Responder:
    """A thread-safe client of a language model that answers messages.

    ``api`` is the API format of the model's provider.
    """

    def __init__(self, model: LanguageModel, api: str) -> None:
        self.name = model.name
        """``provider:model``."""
        self._model = model
        self._api = api

    def answer(self, prompt: Prompt) -> Answer:
        """Answer in plain text.

        Raises ModelUnavailableError, BudgetSpentError, or ModelRefusedError, for example if the
        model cannot use tools.
        """
        if prompt.tools and self._api not in _WITH_TOOLS:
            raise ModelRefusedError(
                f"{self.name} cannot use tools here",
                hint="use Claude Code (claude-cli:) or Codex (codex-cli:), or remove the channel's tools",
            )
        try:
            completion = self._model.complete(prompt)
        except ModelUnavailableError as error:
            if "models.timeout_seconds" in (error.hint or ""):
                error.hint = "send a shorter message"
            raise
        if not completion.text.strip():
            raise ModelUnavailableError(
                f"{self.name} gave an empty answer", hint="send the message again", retry=False
            )
        tokens = completion.tokens
        return Answer(
            completion.text + " […]" * completion.is_cut,
            self.name,
            tokens.sent,
            tokens.output,
            float(cost_of(completion, self._model.capabilities) or 0),
            tuple(completion.more.get("steps", ())),
        )

    def close(self) -> None:
        """Cancel the answers in progress, which then raise ModelUnavailableError."""
        self._model.close()


# ----------------------------------------------------------------------------
# Splitting of answers that exceed a platform's limits.


_FENCE = "```"
_MIN_SHARE = 0.5
"""Minimum share of the limit that a part must use before it can end at a paragraph, line or word.
"""


def split(text: str, limits: Limits) -> Iterator[str]:
    """Split an answer into several messages, closing and reopening a code block that is cut."""
    text, opened = text.strip(), ""
    while text:
        text = opened + text
        if length(text, limits) <= limits.characters:
            yield text
            return
        room = limits.characters - len(_FENCE) - 1
        if limits.utf16:
            room = len(text.encode("utf-16-le")[: 2 * room].decode("utf-16-le", "ignore"))
        end = _cut_position(text, len(opened), room)
        part, text = text[:end].rstrip(), text[end:].lstrip("\n")
        # Each part repeats the first line of an unclosed code block, if it is short enough.
        fences = [line.strip() for line in part.splitlines() if line.lstrip().startswith(_FENCE)]
        opened = (
            ""
            if len(fences) % 2 == 0
            else f"{fences[-1] if len(fences[-1]) <= (limits.characters // 4) else _FENCE}\n"
        )
        if part:
            yield f"{part}\n{_FENCE}" if opened else part


def length(text: str, limits: Limits) -> int:
    """Return the length of a text as the platform counts it."""
    return len(text.encode("utf-16-le")) // 2 if limits.utf16 else len(text)


def _cut_position(text: str, start: int, most: int) -> int:
    least = max(start + 1, int(most * _MIN_SHARE))
    for mark in ("\n\n", "\n", ". ", " "):
        position = text.rfind(mark, least, most)
        if position > 0:
            return position + len(mark)
    return max(start + 1, most)
