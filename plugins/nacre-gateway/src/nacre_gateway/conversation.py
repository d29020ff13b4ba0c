"""Permission to write, channel options, responders, and the parts of an answer."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from nacre.base import files
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
from nacre.home.spending import NONE, name_for, wrap
from nacre.llm.credentials import provider_of
from nacre.llm.providers import cost_of, full_name
from nacre.protocols import LanguageModel
from nacre.readers.nacre_chat import TOOL
from nacre.sessions.find import ChatSearchRequest
from nacre.sessions.search import search
from nacre.settings import Settings, load_settings
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Answer, Chat, ChatType, Incoming, Limits, Pairing, Sender
from nacre.values.models import Capabilities, Prompt
from nacre.values.session import Task
from nacre_gateway.channels import Channel, options_of

SESSION_HOURS = 4.0
"""Hours of silence after which a new conversation begins."""

CODE_MINUTES = 60
"""Lifetime of a pairing code in minutes. A sender gets no new code before it expires."""

_MAX_PENDING_CODES = 20
"""Maximum number of senders with pending codes per channel."""

_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_NAME_CHARACTERS = 80
_CODE_PART = 4
EVERYONE = "*"


@frozen
class Rules:
    """The rules for who can write in a channel.

    ``identities`` are the owner's (``telegram:4711``), and senders in ``allow`` need no pairing. In
    groups, the agent answers when mentioned (``mention``), always (``all``) or never (``off``). It
    sees messages of admitted senders (``hears = "paired"``) or of everyone.
    """

    channel: str
    identities: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    groups: str = "mention"
    hears: str = "paired"

    def is_owner(self, sender: Sender) -> bool:
        """Return True for the owner's identities, which include the channel because ids can recur in other channels."""
        return f"{self.channel}:{sender.id}" in self.identities


def identities(kinds: Collection[tuple[str, str]], configured: Collection[str]) -> frozenset[str]:
    """Return the owner's identities with channel names. ``telegram:4711`` applies to each channel of that kind.

    Ids are case-sensitive, because a program behind a webhook can distinguish ``Otto`` from
    ``otto``.
    """
    pairs = [
        (channel.casefold(), sender)
        for channel, colon, sender in (identity.strip().partition(":") for identity in configured)
        if colon
    ]
    spelled = {f"{channel}:{sender}" for channel, sender in pairs}
    return frozenset(
        spelled.union(
            f"{name}:{sender}"
            for name, kind in kinds
            for channel, sender in pairs
            if channel == kind
        )
    )


def admit(message: Incoming, rules: Rules, store: GatewayStore) -> str | None:
    """Return the state of a message, ``waiting`` or ``heard``, or ``None`` if it is not accepted."""
    sender = message.sender
    is_admitted = rules.is_owner(sender) or not rules.allow.isdisjoint((EVERYONE, sender.id))
    if not is_admitted:
        pairing = store.pairing(rules.channel, sender.id)
        is_admitted = bool(pairing and pairing.approved)
    if message.chat.kind is ChatType.DIRECT:
        return "waiting" if is_admitted else None
    if rules.groups == "off" or not (is_admitted or rules.hears == "all"):
        return None
    is_asked = is_admitted and (message.to_agent or rules.groups == "all")
    return "waiting" if is_asked else "heard"


def code_for(sender: Sender, channel: str, store: GatewayStore, now: datetime) -> str:
    """Return a reply with a pairing code for a stranger, or an empty string if there is no new code."""
    since = now - timedelta(minutes=CODE_MINUTES)
    pairing = store.pairing(channel, sender.id)
    if (pairing and pairing.asked > since) or store.asking_since(
        channel, since
    ) >= _MAX_PENDING_CODES:
        return ""
    code = "-".join("".join(secrets.choice(_ALPHABET) for _ in range(_CODE_PART)) for _ in range(2))
    store.ask_pairing(Pairing(channel, sender.id, sender.name[:_NAME_CHARACTERS], code, now))
    return (
        f"This agent only answers people its owner has approved. Your code: {code}\n"
        f"The owner can approve you within {CODE_MINUTES} minutes: nacre gateway pair {code}"
    )


def is_current(pairing: Pairing, now: datetime) -> bool:
    """Return True if a code is still valid."""
    return pairing.approved is None and now - pairing.asked < timedelta(minutes=CODE_MINUTES)


# ----------------------------------------------------------------------------
# The owner's options for a channel


_CHOICES = {
    "groups": ("mention", "all", "off"),
    "hears": ("paired", "all"),
    "memories": ("owner", "all", "none"),
}


@frozen
class ChannelOptions:
    """The owner's options for a channel. A conversation ends after ``hours`` of silence."""

    rules: Rules
    memories: str = "owner"
    model: str = ""
    tools: tuple[str, ...] = ()
    folder: Path | None = None
    instructions: str = ""
    hours: float = 4.0

    @classmethod
    def of(cls, settings: Settings, name: str) -> ChannelOptions:
        _, values = options_of(settings, name)
        for key, choices in _CHOICES.items():
            if values[key] not in choices:
                hint = f"one of: {', '.join(choices)}"
                raise InvalidSettingsError(
                    f"gateway.channels.{name}.{key} cannot be {values[key]!r}", hint=hint
                )
        folder = Path(values["folder"]).expanduser() if values["folder"] else None
        if values["tools"] and (folder is None or not folder.is_dir()):
            hint = f'set folder = "…" in [gateway.channels.{name}], where the agent may use them'
            raise InvalidSettingsError(
                f"gateway.channels.{name}: tools need an existing folder", hint=hint
            )
        rules = Rules(
            name,
            owner_identities(settings),
            frozenset(map(str, values["allow"])),
            values["groups"],
            values["hears"],
        )
        return cls(
            rules,
            values["memories"],
            values["model"],
            tuple(values["tools"]),
            folder,
            values["instructions"] or settings.text("gateway.instructions"),
            values["session_hours"] or SESSION_HOURS,
        )

    def sees_memories(self, chat: Chat, speakers: Iterable[bool]) -> bool:
        """Return True if an answer in a chat can use the owner's memories.

        ``speakers``: for each message to answer, True if the owner wrote it.
        """
        if self.memories == "owner":
            return chat.kind is ChatType.DIRECT and all(speakers)
        return self.memories == "all"


@frozen
class Open:
    """An open channel and its options."""

    channel: Channel
    options: ChannelOptions


class LiveRules:
    """The rules of a channel, with the owner's identities from the current config file."""

    def __init__(self, settings: Settings, rules: Rules) -> None:
        self._settings = settings
        self._rules = rules
        self._stamp = _stamp(settings.config)

    def __call__(self) -> Rules:
        """Return the current rules, or the previous rules if the file cannot be read."""
        stamp = _stamp(self._settings.config)
        if stamp != self._stamp:
            with suppress(NacreError):
                owner = owner_identities(load_settings(self._settings.home, self._settings.environ))
                self._rules, self._stamp = replace(self._rules, identities=owner), stamp
        return self._rules


def _stamp(path: Path) -> tuple[int, int]:
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size
    return 0, 0


def owner_identities(settings: Settings) -> frozenset[str]:
    """Return the owner's identities in the configured channels."""
    channels: Mapping[str, Mapping[str, Any]] = settings["gateway.channels"]
    kinds = [(name, str(options.get("kind", name))) for name, options in channels.items()]
    return identities(kinds, settings.texts("owner.identities"))


# ----------------------------------------------------------------------------
# Relevant passages from earlier conversations


_QUERY_CHARACTERS = 2_000
_MAX_PASSAGES = 5


def passages_for(
    home: Home, question: str, *, budget_tokens: int, key: str | None, leave_out: str
) -> Sequence[str]:
    """Return the best passages within a budget, from all conversations or from one (``key``).

    The current session (``leave_out``) is excluded, because its end is shown in any case.
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
# Responders answer questions in conversations. The implementation here uses nacre's language
# models.


_WITH_TOOLS = ("claude-cli", "codex-cli")
"""Model formats whose tools can be restricted without permission prompts."""
_WINDOWS = {"claude-cli": 200_000, "codex-cli": 200_000, "gemini-cli": 1_000_000}
"""Smallest context windows that the commands' default models can have."""
_CUT_MARK = " […]"
"""Mark at the end of an answer that ran out of tokens."""
ANSWER_SECONDS = 300.0
"""Maximum time for an answer."""


@frozen
class Question:
    """A question to a responder. ``system``: instructions. ``text``: everything else.

    ``tools``: the tools that the owner allows in this channel, by the agent's names. ``folder``:
    where they run. ``seconds``: time limit.
    """

    system: str
    text: str
    tools: tuple[str, ...] = ()
    folder: Path | None = None
    seconds: float = 300.0


class Responder(Protocol):
    """Answers questions independently of each other. Safe to share between threads."""

    name: str
    """``provider:model``."""

    window: int
    """Maximum number of tokens for input and output."""

    def answer(self, question: Question) -> Answer:
        """Answer in plain text.

        Raises ModelUnavailableError, ModelRefusedError, BudgetSpentError.
        """

    def close(self) -> None:
        """Cancel answers in progress. They raise ModelUnavailableError."""


def responder_for(home: Home, model: str = "") -> Responder:
    """Return the responder for a model (``provider:model``), by default ``models.chat``.

    Its answers count against the daily budgets as background work. They do not need
    ``models.background``, because the owner asked for them. Answers are not cached. Raises
    ModelRefusedError.
    """
    name = full_name(model) if model else name_for(home, Task.CHAT)
    if name == NONE:
        hint = "run: nacre config set models.chat claude-cli: (or codex-cli:, or another from nacre writer models)"
        raise ModelRefusedError("no model is set for conversations", hint=hint)
    api = provider_of(home.settings, name.partition(":")[0]).api
    opened = wrap(home, home.load_model(home.settings, name), background=True)
    return ModelResponder(home, opened, api)


class ModelResponder:
    """A responder that uses a language model. ``api`` is the format of its provider."""

    def __init__(self, home: Home, model: LanguageModel, api: str) -> None:
        capabilities = model.capabilities
        self.name = model.name
        is_known = capabilities.known or capabilities.window != Capabilities().window
        self.window = capabilities.window if is_known else _WINDOWS.get(api, capabilities.window)
        self._home = home
        self._model = model
        self._api = api

    def answer(self, question: Question) -> Answer:
        """Answer in plain text.

        Raises ModelUnavailableError, ModelRefusedError, BudgetSpentError.
        """
        self._check_tools(question)
        prompt = Prompt(
            Task.CHAT,
            question.system,
            question.text,
            {},
            timeout_seconds=question.seconds,
            tools=question.tools,
            folder=question.folder,
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
            completion.text + (_CUT_MARK if completion.is_cut else ""),
            self.name,
            tokens.input + tokens.cached + tokens.written,
            tokens.output,
            float(cost_of(completion, self._model.capabilities) or 0),
            tuple(completion.more.get("steps", ())),
        )

    def close(self) -> None:
        self._model.close()

    def _check_tools(self, question: Question) -> None:
        if not question.tools:
            return
        if self._api not in _WITH_TOOLS:
            raise ModelRefusedError(
                f"{self.name} cannot use tools here",
                hint="use Claude Code (claude-cli:) or Codex (codex-cli:), or remove the channel's tools",
            )
        if question.folder is None or not question.folder.is_dir():
            raise ModelRefusedError(
                f"{self.name} may use tools, but has no folder for them: {question.folder or 'none is set'}",
                hint="set the folder of the channel",
            )


# ----------------------------------------------------------------------------
# Split answers into parts within a platform's limits, at natural places.


_FENCE = "```"
_MIN_SHARE = 0.5
"""Minimum share of a part's space to be filled if the part ends at a paragraph, line or word."""


def split(text: str, limits: Limits) -> list[str]:
    """Split a text into parts. A code block that is cut is closed and reopened in the next part."""
    return list(_split(text.strip(), limits))


def _split(text: str, limits: Limits) -> Iterator[str]:
    opened = ""
    while text:
        text = opened + text
        if length(text, limits) <= limits.characters:
            yield text
            return
        room = limits.characters - len(_FENCE) - 1
        end = _cut_position(text, len(opened), _count_fitting(text, room, limits))
        part, text = text[:end].rstrip(), text[end:].lstrip("\n")
        # Each part repeats the first line of an unclosed code block, which must leave room for
        # text.
        fences = [line.strip() for line in part.splitlines() if line.lstrip().startswith(_FENCE)]
        opened = (
            ""
            if len(fences) % 2 == 0
            else f"{fences[-1] if len(fences[-1]) <= (limits.characters // 4) else _FENCE}\n"
        )
        if part:
            yield f"{part}\n{_FENCE}" if opened else part


def length(text: str, limits: Limits) -> int:
    """Return the length of a text in the units that the platform counts."""
    return len(text.encode("utf-16-le")) // 2 if limits.utf16 else len(text)


def _count_fitting(text: str, room: int, limits: Limits) -> int:
    if not limits.utf16:
        return room
    units = 0
    for at, character in enumerate(text):
        units += 2 if ord(character) > 0xFFFF else 1
        if units > room:
            return at
    return len(text)


def _cut_position(text: str, start: int, most: int) -> int:
    """Return the end of the next part, at least one character after ``start``."""
    least = max(start + 1, int(most * _MIN_SHARE))
    for mark in ("\n\n", "\n", ". ", " "):
        position = text.rfind(mark, least, most)
        if position > 0:
            return position + len(mark)
    return max(start + 1, most)


# ----------------------------------------------------------------------------
# Files of messages. They are stored without secrets, and the responder sees text files.


MAX_CHARACTERS = 16_000
"""Maximum number of characters that the responder sees from all files of a turn."""

_MAX_TEXT_BYTES = 2_000_000
"""Maximum size of a text file."""


class Cleans(Protocol):
    """Removes secrets from texts."""

    def clean(self, text: str) -> str:
        """Return the text without secrets."""


def redact(path: Path, redactor: Cleans) -> None:
    """Remove secrets from a text file. Raises OSError."""
    text = _read_text(path)
    if text is None:
        return
    cleaned = redactor.clean(text)
    if cleaned != text:
        files.write_file(path, cleaned)


def delete_oldest(folder: Path, most_bytes: int) -> None:
    """Delete the oldest files of all conversations until the limit is met. Raises OSError.

    The names of the files begin with line ids, which contain the time.
    """
    room = most_bytes
    for path in sorted(folder.glob("*/*"), key=lambda path: path.name, reverse=True):
        room -= path.stat().st_size
        if room < 0:
            path.unlink(missing_ok=True)


def texts(files: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, str]]:
    """Yield the name and beginning of each text file, up to a total limit."""
    room = MAX_CHARACTERS
    for name, path in files:
        text = _read_text(path) if room > 0 else None
        if text and text.strip():
            yield name, text[:room]
            room -= len(text)


def _read_text(path: Path) -> str | None:
    """Return the content of a text file, or ``None`` if it is too large."""
    try:
        if path.stat().st_size > _MAX_TEXT_BYTES:
            return None
        data = path.read_bytes()
        return None if b"\0" in data else data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
