"""Who may write to the agent: the owner, those the owner lets in, and nobody else."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Protocol

from msgspec import Meta

from nacre.base import files
from nacre.base.request import Request
from nacre.base.text import count_tokens, shorten
from nacre.errors import (
    ModelRefused,
    ModelUnavailable,
    NacreError,
    NotFound,
    QueryInvalid,
    SettingsInvalid,
)
from nacre.gateway.channels import Channel, options_of
from nacre.home.home import Home
from nacre.home.spending import NONE, name_for, tracing, wrapped
from nacre.llm.credentials import provider_of
from nacre.llm.providers import cost_of, full_name
from nacre.protocols import LanguageModel
from nacre.readers.nacre_chat import TOOL
from nacre.sessions.find import ChatSearchRequest
from nacre.sessions.search import search
from nacre.settings import Settings, load_settings
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Answer, Chat, ChatType, Incoming, Limits, Pairing, Sender
from nacre.values.models import Capabilities, Completion, Prompt, Step, TraceKind
from nacre.values.session import Task

CODE_MINUTES = 60
"""A code can be used for so long; a sender is told a new one only then."""

_MOST_ASKING = 20
"""So many senders of a channel are given codes in that time."""

_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_NAME_CHARACTERS = 80
_PART = 4
EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Rules:
    """Who may write in a channel: ``identities`` are the owner's (``telegram:4711``), ``allow`` who needs no pairing.

    In groups the agent answers where it is mentioned (``mention``), always (``all``) or never (``off``), and sees what
    those said who may write (``hears = "paired"``), or everybody.
    """

    channel: str
    identities: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    groups: str = "mention"
    hears: str = "paired"

    def is_owner(self, sender: Sender) -> bool:
        """Whether a sender is one of the owner's identities, which name the channel: ids of others may be the same."""
        return f"{self.channel}:{sender.id}" in self.identities


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a message: ``waiting``, ``heard``, or nothing; and what the sender is told."""

    state: str | None
    is_owner: bool = False
    reply: str = ""


def identities(kinds: Collection[tuple[str, str]], configured: Collection[str]) -> frozenset[str]:
    """The owner's identities, spelt with the names of channels: ``telegram:4711`` holds in each of that kind. Case
    matters in ids, as a program behind a webhook may tell ``Otto`` from ``otto``."""
    known = [
        (where.casefold(), who)
        for where, colon, who in (one.strip().partition(":") for one in configured)
        if colon
    ]
    own = {f"{where}:{who}" for where, who in known}
    return frozenset(
        own.union(f"{name}:{who}" for name, kind in kinds for where, who in known if where == kind)
    )


def judge(
    message: Incoming,
    rules: Rules,
    store: GatewayStore,
    now: datetime,
    new_code: Callable[[], str] | None = None,
) -> Verdict:
    """What becomes of a message. A stranger who writes to the agent alone is given a code for the owner."""
    is_owner = rules.is_owner(message.sender)
    is_let_in = is_owner or _is_let_in(message.sender, rules, store)
    if message.chat.kind is ChatType.GROUP:
        return _in_group(message, rules, is_owner=is_owner, is_let_in=is_let_in)
    if is_let_in:
        return Verdict("waiting", is_owner)
    return Verdict(
        None, reply=_code_for(message.sender, rules.channel, store, now, new_code or make_code)
    )


def may_say(message: Incoming, rules: Rules, store: GatewayStore) -> bool:
    """Whether what a sender says is heard at all, now: who was let in once may not be any more."""
    is_let_in = rules.is_owner(message.sender) or _is_let_in(message.sender, rules, store)
    if message.chat.kind is ChatType.GROUP:
        return _in_group(message, rules, is_owner=False, is_let_in=is_let_in).state is not None
    return is_let_in


def _in_group(message: Incoming, rules: Rules, *, is_owner: bool, is_let_in: bool) -> Verdict:
    if rules.groups == "off" or not (is_let_in or rules.hears == "all"):
        return Verdict(None)
    is_asked = is_let_in and (message.to_agent or rules.groups == "all")
    return Verdict("waiting" if is_asked else "heard", is_owner)


def _is_let_in(sender: Sender, rules: Rules, store: GatewayStore) -> bool:
    if EVERYBODY in rules.allow or sender.id in rules.allow:
        return True
    found = store.pairing(rules.channel, sender.id)
    return bool(found and found.approved)


def _code_for(
    sender: Sender, channel: str, store: GatewayStore, now: datetime, new_code: Callable[[], str]
) -> str:
    since = now - timedelta(minutes=CODE_MINUTES)
    known = store.pairing(channel, sender.id)
    if (known and known.asked > since) or store.asking_since(channel, since) >= _MOST_ASKING:
        return ""
    code = new_code()
    store.ask_pairing(Pairing(channel, sender.id, sender.name[:_NAME_CHARACTERS], code, now))
    return (
        f"This agent answers people whom its owner lets in. Your code: {code}\n"
        f"The owner runs: nacre gateway pair {code}  (within {CODE_MINUTES} minutes)"
    )


def make_code() -> str:
    """A code to read out: ``K7QM-2XDP``."""
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(_PART)) for _ in range(2))


def is_current(pairing: Pairing, now: datetime) -> bool:
    """Whether a code can still be used."""
    return pairing.approved is None and now - pairing.asked < timedelta(minutes=CODE_MINUTES)


# ----------------------------------------------------------------------------
# What the owner configured for a channel, beside what its platform needs.


_CHOICES = {
    "groups": ("mention", "all", "off"),
    "hears": ("paired", "all"),
    "memories": ("owner", "all", "none"),
}


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """``hours`` of silence end a conversation; the other fields are as the options of the same names."""

    rules: Rules
    memories: str = "owner"
    model: str = ""
    tools: tuple[str, ...] = ()
    folder: Path | None = None
    instructions: str = ""
    hours: float = 4.0

    @classmethod
    def of(cls, settings: Settings, name: str) -> ChannelOptions:
        """Those of a channel. Raises SettingsInvalid, NotFound, Unavailable."""
        _, values = options_of(settings, name)
        for key, choices in _CHOICES.items():
            if values[key] not in choices:
                hint = f"one of: {', '.join(choices)}"
                raise SettingsInvalid(
                    f"gateway.channels.{name}.{key} cannot be {values[key]!r}", hint=hint
                )
        folder = Path(values["folder"]).expanduser() if values["folder"] else None
        if values["tools"] and (folder is None or not folder.is_dir()):
            hint = f'[gateway.channels.{name}] folder = "…", where the agent may use them'
            raise SettingsInvalid(
                f"gateway.channels.{name}: tools need a folder that is there", hint=hint
            )
        rules = Rules(
            name,
            owner_in(settings),
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
            values["session_hours"] or settings.number("gateway.session_hours"),
        )

    def sees_memories(self, chat: Chat, speakers: Iterable[bool]) -> bool:
        """Whether an answer may draw on the owner's memories: everybody in the chat reads it. ``speakers`` says of each
        message that is answered whether it is the owner's."""
        if self.memories == "owner":
            return chat.kind is ChatType.DIRECT and all(speakers)
        return self.memories == "all"


@dataclass(frozen=True, slots=True)
class Open:
    """A channel that is open, and what the owner configured for it."""

    channel: Channel
    options: ChannelOptions


class LiveRules:
    """The rules of a channel with the owner's identities as the config file has them now: who was paired as the owner
    need not wait until the gateway is started anew."""

    def __init__(self, settings: Settings, rules: Rules) -> None:
        self._settings = settings
        self._rules = rules
        self._stamp = _stamp(settings.config)

    def __call__(self) -> Rules:
        """As they are now; those from before where the file cannot be read."""
        stamp = _stamp(self._settings.config)
        if stamp != self._stamp:
            with suppress(NacreError):
                known = owner_in(load_settings(self._settings.home, self._settings.environ))
                self._rules, self._stamp = replace(self._rules, identities=known), stamp
        return self._rules


def _stamp(path: Path) -> tuple[int, int]:
    with suppress(OSError):
        seen = path.stat()
        return seen.st_mtime_ns, seen.st_size
    return 0, 0


def owner_in(settings: Settings) -> frozenset[str]:
    """The owner's identities, spelt with the names of the channels that are configured."""
    channels: Mapping[str, Mapping[str, Any]] = settings["gateway.channels"]
    kinds = [(name, str(own.get("kind", name))) for name, own in channels.items()]
    return identities(kinds, settings.texts("owner.identities"))


# ----------------------------------------------------------------------------
# Requests about the gateway: its state, its conversations, who may write.


ChannelName = Annotated[
    str, Meta(description="A channel, by its name in gateway.channels.", max_length=60)
]
Reference = Annotated[
    str,
    Meta(
        description="A conversation: its id, the beginning of it, or its key.",
        min_length=1,
        max_length=300,
    ),
]


class ChatsRequest(Request, frozen=True, kw_only=True):
    """Conversations of the gateway, the one that was used last first."""

    channel: ChannelName | None = None
    closed: Annotated[bool, Meta(description="Also those that ended.")] = False
    limit: Annotated[int, Meta(description="Conversations at most.", ge=0, le=1_000)] = 20
    offset: Annotated[int, Meta(description="Items to skip.", ge=0)] = 0


class ChatRequest(Request, frozen=True, kw_only=True):
    """One conversation, with its last messages."""

    reference: Reference
    limit: Annotated[int, Meta(description="Messages at most.", ge=0, le=1_000)] = 20


class EndChatRequest(Request, frozen=True, kw_only=True):
    """End a conversation: the next message begins a new one."""

    reference: Reference


class PairRequest(Request, frozen=True, kw_only=True):
    """Let a sender write to the agent, by the code that they were given, or by channel and id."""

    who: Annotated[
        str,
        Meta(description="The code, or <channel>:<id> of a sender.", min_length=3, max_length=300),
    ]
    me: Annotated[
        bool, Meta(description="It is you: what is said there counts as your own words.")
    ] = False


class UnpairRequest(Request, frozen=True, kw_only=True):
    """Let a sender write no more."""

    who: Annotated[
        str, Meta(description="<channel>:<id> of a sender.", min_length=3, max_length=300)
    ]


# ----------------------------------------------------------------------------
# Passages of earlier conversations that fit a question.


_QUERY_CHARACTERS = 2_000


def passages_for(
    home: Home, question: str, *, limit: int, budget_tokens: int, key: str | None, leave_out: str
) -> Sequence[str]:
    """Those that fit best, within a budget: of one conversation's earlier sessions (``key``), or of all conversations;
    without those of the session that goes on (``leave_out``), whose end is shown anyway."""
    if not limit or not question.strip():
        return ()
    request = ChatSearchRequest(
        query=shorten(question, _QUERY_CHARACTERS),
        limit=limit,
        session=key,
        leave_out=f"{TOOL}:{leave_out}",
    )
    try:
        found = [one for one in search(home, request).passages if key in (None, one.key)]
    except (
        NotFound,
        QueryInvalid,
    ):  # nothing of this conversation was made searchable yet, or there is no word in it
        return ()
    fitting: list[str] = []
    for one in found:
        tokens = count_tokens(one.text)
        if tokens <= budget_tokens:
            fitting.append(one.text)
            budget_tokens -= tokens
    return fitting


# ----------------------------------------------------------------------------
# Who answers: the seam between conversations and agents, and the agents that are nacre's language
# models.


_WITH_TOOLS = ("claude-cli", "codex-cli")
"""Formats whose tools can be kept to what is allowed without anybody being asked."""
_WINDOWS = {"claude-cli": 200_000, "codex-cli": 200_000, "gemini-cli": 1_000_000}
"""The windows of the models that these commands have by themselves are at least so large."""
_CUT = " […]"
"""Ends an answer that ran out of tokens."""
_MODELS_SECONDS, _OWN_SECONDS = "models.timeout_seconds", "gateway.answer_seconds"


@dataclass(frozen=True, slots=True)
class Question:
    """One question: what the responder is told of itself (``system``), and everything else (``text``).

    ``tools`` are those that the owner allows in this channel, by the agent's own names; without any it has none.
    ``folder`` is where it works while it may use them. ``seconds`` is the longest time it may take.
    """

    system: str
    text: str
    tools: tuple[str, ...] = ()
    folder: Path | None = None
    seconds: float = 300.0


class Responder(Protocol):
    """Answers questions; safe to share between threads. It has no memory of others."""

    name: str
    """``provider:model``."""

    window: int
    """Tokens that it reads and writes at most."""

    def answer(self, question: Question, hear: Callable[[str], None] | None = None) -> Answer:
        """Answer in plain text. ``hear`` is given pieces of the answer as they come, where it can stream, else all of
        it in the end; another thread may call it, and it must not raise.

        Raises ModelUnavailable, ModelRefused, BudgetSpent.
        """

    def close(self) -> None:
        """Cut off answers that are being made, which raise ModelUnavailable."""


def responder_for(home: Home, model: str = "") -> Responder:
    """The responder of a channel: ``model`` (``provider:model``), else the one of ``models.chat``.

    Its answers count in the ledger as background work: the daily budgets hold them. That ``models.background`` is off
    does not: the owner asked for them. Nothing is answered from what was kept. Raises ModelRefused.
    """
    name = full_name(model) if model else name_for(home, Task.CHAT)
    if name == NONE:
        hint = (
            "nacre config set models.chat claude-cli: (or codex-cli:, or another of nacre models)"
        )
        raise ModelRefused("no model is set that answers in conversations", hint=hint)
    api = provider_of(home.settings, name.partition(":")[0]).api
    opened = wrapped(home, home.load_model(home.settings, name), background=True)
    return ModelResponder(home, opened, api)


class ModelResponder:
    """A language model that answers in conversations; implements Responder. ``api`` is the format of its provider."""

    def __init__(self, home: Home, model: LanguageModel, api: str) -> None:
        able = model.capabilities
        self.name = model.name
        is_told = able.known or able.window != Capabilities().window
        self.window = able.window if is_told else _WINDOWS.get(api, able.window)
        self._home = home
        self._model = model
        self._api = api

    def answer(self, question: Question, hear: Callable[[str], None] | None = None) -> Answer:
        """Answer in plain text. An answer of which pieces were heard is not tried again.

        Raises ModelUnavailable, ModelRefused, BudgetSpent.
        """
        self._check_tools(question)
        pieces = _Pieces(hear)
        prompt = Prompt(
            Task.CHAT,
            question.system,
            question.text,
            {},
            timeout_seconds=question.seconds,
            hear=pieces.hear if hear else None,
            tools=question.tools,
            folder=question.folder,
        )
        try:
            return self._answer(prompt, pieces)
        finally:
            pieces.close()

    def close(self) -> None:
        """Cut off answers that are being made."""
        self._model.close()

    def _answer(self, prompt: Prompt, pieces: _Pieces) -> Answer:
        try:
            with tracing(self._home, TraceKind.CHAT, self.name) as run:
                completion = self._model.complete(prompt)
                for step in completion.more.get("steps", ()):
                    run.add(Step("used a tool", output=step))
        except ModelUnavailable as error:
            error.hint = (error.hint or "").replace(_MODELS_SECONDS, _OWN_SECONDS)
            raise
        if not completion.text.strip():
            raise ModelUnavailable(
                f"{self.name} gave an empty answer", hint="ask again", retry=False
            )
        text = completion.text + (_CUT if completion.is_cut else "")
        pieces.complete(text)
        return self._told(completion, text)

    def _told(self, completion: Completion, text: str) -> Answer:
        tokens = completion.tokens
        return Answer(
            text,
            self.name,
            tokens.input + tokens.cached + tokens.written,
            tokens.output,
            float(cost_of(completion, self._model.capabilities) or 0),
            tuple(completion.more.get("steps", ())),
        )

    def _check_tools(self, question: Question) -> None:
        if not question.tools:
            return
        if self._api not in _WITH_TOOLS:
            raise ModelRefused(
                f"{self.name} can use no tools here",
                hint="Claude Code (claude-cli:) and Codex (codex-cli:) can; or remove the channel's tools",
            )
        if question.folder is None or not question.folder.is_dir():
            raise ModelRefused(
                f"{self.name} may use tools, and there is no folder to use them in: {question.folder or 'none is set'}",
                hint="set the folder of the channel",
            )


class _Pieces:
    """What is heard of one answer, and nothing after its end: a call that was cut off may still be talking."""

    def __init__(self, hear: Callable[[str], None] | None) -> None:
        self._hear = hear
        self._heard = ""
        self._lock = Lock()

    def hear(self, piece: str) -> None:
        """Pass a piece on."""
        with self._lock:
            if self._hear:
                self._heard += piece
                self._hear(piece)

    def complete(self, text: str) -> None:
        """Pass on what of the answer was not heard yet."""
        if text.startswith(self._heard):
            rest = text[len(self._heard) :]
            if rest:
                self.hear(rest)

    def close(self) -> None:
        """Pass nothing more on."""
        with self._lock:
            self._hear = None


# ----------------------------------------------------------------------------
# Answers in parts that a platform takes, cut where a reader would.


_FENCE = "```"
_LEAST_SHARE = 0.5
"""A part is cut at a paragraph, a line, a sentence or a word as long as it stays this full."""


def split(text: str, limits: Limits) -> list[str]:
    """The parts of a text. A block of code that is cut is closed, and opened again in the next part."""
    return list(_parts(text.strip(), limits))


def _parts(text: str, limits: Limits) -> Iterator[str]:
    opened = ""
    while text:
        text = opened + text
        if length(text, limits) <= limits.characters:
            yield text
            return
        room = limits.characters - len(_FENCE) - 1
        end = _end(text, _fitting(text, room, limits))
        part, text = text[:end].rstrip(), text[end:].lstrip("\n")
        opened = _open_fence(part, limits.characters // 4)
        yield f"{part}\n{_FENCE}" if opened else part


def length(text: str, limits: Limits) -> int:
    """Its length as the platform counts."""
    return len(text.encode("utf-16-le")) // 2 if limits.utf16 else len(text)


def _fitting(text: str, room: int, limits: Limits) -> int:
    """How many characters fit."""
    if not limits.utf16:
        return room
    units = 0
    for at, character in enumerate(text):
        units += 2 if ord(character) > 0xFFFF else 1
        if units > room:
            return at
    return len(text)


def _end(text: str, most: int) -> int:
    least = int(most * _LEAST_SHARE)
    for mark in ("\n\n", "\n", ". ", " "):
        found = text.rfind(mark, least, most)
        if found > 0:
            return found + len(mark)
    return max(1, most)


def _open_fence(part: str, most: int) -> str:
    """The first line of a block of code that the part leaves open, alone where it is longer than ``most``: what is
    repeated in each part must leave room for more."""
    fences = [line.strip() for line in part.splitlines() if line.lstrip().startswith(_FENCE)]
    if len(fences) % 2 == 0:
        return ""
    return f"{fences[-1] if len(fences[-1]) <= most else _FENCE}\n"


# ----------------------------------------------------------------------------
# Files that came with messages: kept without secrets, and shown to who answers where they are text.


MOST_CHARACTERS = 16_000
"""Of all files of a turn, as who answers sees them."""

_MOST_BYTES = 2_000_000
"""Of a file that is looked at as text."""


class Cleans(Protocol):
    """Takes secrets out of texts."""

    def clean(self, text: str) -> str:
        """The text without them."""


def redact(path: Path, redactor: Cleans) -> None:
    """Take secrets out of a file that is text. Raises OSError."""
    text = _text(path)
    if text is None:
        return
    cleaned = redactor.clean(text)
    if cleaned != text:
        files.write_file(path, cleaned)


def keep_newest(folder: Path, most_bytes: int) -> None:
    """Delete the oldest files of all conversations beyond a bound. Their names begin with the ids of lines, which tell
    the time. Raises OSError."""
    room = most_bytes
    for path in sorted(folder.glob("*/*"), key=lambda path: path.name, reverse=True):
        room -= path.stat().st_size
        if room < 0:
            path.unlink(missing_ok=True)


def texts(files: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, str]]:
    """The beginnings of those that are text, each with its name, within a bound for all of them."""
    room = MOST_CHARACTERS
    for name, path in files:
        text = _text(path) if room > 0 else None
        if text and text.strip():
            yield name, text[:room]
            room -= len(text)


def _text(path: Path) -> str | None:
    """What a file holds, if that is text of a bearable size."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        data = path.read_bytes()
        return None if b"\0" in data else data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


# ----------------------------------------------------------------------------
# An answer while it is made: passed on by lines and sentences, without secrets.


_AHEAD = 60
"""Characters that must have come after a sentence before it is passed on: what begins in it is seen as a whole."""

_LONG = 200
"""Characters without the end of a sentence that are passed on up to a blank."""

_CONTEXT = 2_000
"""Characters before the present line that are looked at with it, at least."""

_STOP = re.compile(r"[.!?:;]\s|[。！？]")
_KEY_BEGINS, _KEY_ENDS = "-----BEGIN", "-----END"


class CleanStream:
    """Takes pieces as a model writes them, and passes on what is sure to hold no secret. Nothing is cut within a word,
    nor within what the redactor would take out; a private key is held back until its end."""

    def __init__(self, redactor: Cleans, hear: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._hear = hear
        self._text = ""
        self._passed = 0
        self._heard = ""

    def hear(self, piece: str) -> None:
        """A piece more."""
        self._text += piece
        end = self._end()
        if end > self._passed:
            self._pass(end)

    def finish(self) -> None:
        """Nothing more comes."""
        self._pass(len(self._text))

    def _end(self) -> int:
        """Up to where the text may be passed on."""
        text = self._text
        end = text.rfind("\n") + 1
        if end <= self._passed:
            known = text[self._passed : -_AHEAD]
            stops = [stop.end() for stop in _STOP.finditer(known)]
            end = self._passed + (
                stops[-1] if stops else known.rfind(" ") + 1 if len(known) > _LONG else 0
            )
        key = text.rfind(_KEY_BEGINS)
        return min(end, key) if key >= 0 and _KEY_ENDS not in text[key:] else end

    def _pass(self, end: int) -> None:
        head = self._redactor.clean(self._text[:end])
        if end < len(self._text) and not self._redactor.clean(self._text).startswith(head):
            return  # it would be cut within a secret
        if fresh := head[_in_common(head, self._heard) :]:
            self._hear(fresh)
        if end > _CONTEXT and head == self._text[:end] and head.endswith("\n"):
            self._text, head, end = self._text[end:], "", 0
        self._passed, self._heard = end, head


def _in_common(one: str, other: str) -> int:
    """How many characters two texts begin with."""
    pairs = zip(one, other, strict=False)
    return next(
        (at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(one), len(other))
    )
