"""A conversation with Cursor, bubble by bubble, whatever generation of its storage the bubbles come from.

What the agent says and does in one answer lies in many bubbles: each that has words begins a turn, and the tools after
it are the turn's. Ids are made of words and their occurrence, not of the bubbles' own ids: Cursor writes the same
conversation as lines of text elsewhere, where there are none, and both are one session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Marks,
    Part,
    Places,
    Root,
    Source,
    Tables,
    as_bytes,
    decode,
    log_of,
    parse_time,
    statement,
    string,
    tables_of,
    total,
)
from nacre.readers.conversation import outcome
from nacre.readers.copilot import (
    chat_sessions,
    digest,
    has_editor_table,
    item,
    item_mark,
    state_roots,
    workspace_of,
)
from nacre.readers.cursor import TOOL as TOOL_CURSOR
from nacre.readers.cursor import read_prompt
from nacre.readers.trust import ABSENT, ENVIRONMENT, Claims, Conversation, OpenTurn, folder_of
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, Trust, Turn

TOOL = "cursor"

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_EPOCH_MS = 1_000_000_000_000
_EXIT_CODES = ("exitCode", "exitCodeV2", "exit_code")
_OUTPUTS = ("output", "contents", "stdout", "result", "text")
_DECLINED = ("rejected", "cancelled", "canceled")
_FROM_OUTSIDE = ("externalLinks", "selectedDocs", "useWeb", "selectedPullRequests")


class Timing(msgspec.Struct, gc=False):
    """When a bubble's request was sent, in epoch milliseconds. ``clientStartTime`` counts from the machine's start."""

    clientRpcSendTime: Any = None  # noqa: N815
    clientEndTime: Any = None  # noqa: N815


class Called(msgspec.Struct, gc=False):
    """A tool call with its result. A bubble without a name has only a state left here, and is no call."""

    name: Any = None
    toolCallId: Any = None  # noqa: N815
    status: Any = None
    rawArgs: Any = None  # noqa: N815
    params: Any = None
    result: Any = None
    error: Any = None
    userDecision: Any = None  # noqa: N815


class Bubble(Claims, gc=False):
    """One bubble: type 1 or ``user`` is what a person typed, 2 or ``ai`` what the agent said, thought or did."""

    type: Any = None
    text: Any = None
    rawText: Any = None  # noqa: N815
    richText: Any = None  # noqa: N815
    createdAt: Any = None  # noqa: N815
    timingInfo: msgspec.Raw = ABSENT  # noqa: N815
    toolFormerData: msgspec.Raw = ABSENT  # noqa: N815
    modelInfo: Any = None  # noqa: N815
    modelType: Any = None  # noqa: N815
    tokenCount: Any = None  # noqa: N815
    workspaceUris: Any = None  # noqa: N815
    useWeb: Any = None  # noqa: N815
    context: msgspec.Raw = ABSENT

    @property
    def is_owners(self) -> bool | None:
        """Whether a person typed it; ``None`` where nobody knows."""
        return {1: True, "user": True, 2: False, "ai": False}.get(
            self.type if isinstance(self.type, int | str) else ""
        )

    @property
    def words(self) -> str:
        """What it says, as plain text."""
        for text in (self.text, self.rawText):
            if isinstance(text, str) and text.strip():
                return text
        return rich_words(self.richText)

    @property
    def model(self) -> str | None:
        """The model that answered."""
        info = self.modelInfo
        name = info.get("modelName") if isinstance(info, dict) else self.modelType
        return name if isinstance(name, str) and name != "default" else None

    @property
    def tokens(self) -> Tokens:
        """What the answer cost; most bubbles tell nothing, and say so with zeros."""
        counts = self.tokenCount if isinstance(self.tokenCount, dict) else {}
        return Tokens(total(counts, "inputTokens"), 0, total(counts, "outputTokens")).bounded

    @property
    def time(self) -> datetime | None:
        """When it was written, where it knows."""
        timing = decode(_TIMING, bytes(self.timingInfo))
        told = (timing.clientRpcSendTime, timing.clientEndTime) if timing else ()
        since = [value for value in told if isinstance(value, int | float) and value > _EPOCH_MS]
        return parse_time(self.createdAt) or next((parse_time(value) for value in since), None)


_BUBBLE = msgspec.json.Decoder(Bubble)
_CALLED = msgspec.json.Decoder(Called | None)
_TIMING = msgspec.json.Decoder(Timing | None)


def bubble_of(raw: bytes) -> Bubble | None:
    """A bubble; ``None`` when it cannot be understood."""
    return decode(_BUBBLE, raw)


class Talk:
    """Turns bubbles into a session's turns. A time that a bubble lacks is that of the one before it."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)
        self.time = session.started

    def take(self, bubble: Bubble, when: datetime | None = None) -> Items:
        """What one bubble says and does; ``when`` it was, where the bubble does not know."""
        self.time = bubble.time or when or self.time
        if bubble.is_owners is None:
            self.source.unknown(f"bubble {bubble.type}")
        elif bubble.is_owners:
            yield from self.owner(bubble)
        else:
            yield from self.agent(bubble)

    def owner(self, bubble: Bubble) -> Items:
        """What a person typed, or, to a sub-agent, the agent that called it."""
        cleaned = self.talk.clean(bubble.words)
        if cleaned.text:
            speaker = (
                Speaker.AGENT if self.talk.session.kind is SessionKind.SUBAGENT else Speaker.OWNER
            )
            identity = self.talk.new_id(speaker, None, cleaned.text)
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            yield from self.talk.say(
                Turn(identity, speaker, cleaned.text, self.time, flags=flags), bubble
            )
        if _draws_on_the_web(bubble):
            self.talk.exchange.unseen()

    def agent(self, bubble: Bubble) -> Items:
        """Words begin a turn; a call belongs to the turn that is open."""
        if bubble.model:
            self.learn(model=bubble.model)
        self.talk.spend(bubble.tokens)
        words = (
            bubble.words if isinstance(bubble.text, str) or isinstance(bubble.rawText, str) else ""
        )
        called = decode(_CALLED, bytes(bubble.toolFormerData))
        if words.strip():
            yield from self.open(words.strip())
            self.talk.add_text(words)
        if called and isinstance(called.name, str) and called.name:
            if self.talk.opened is None:
                yield from self.open(f"call {called.name}")
            self.call(called)

    def open(self, seed: str) -> Items:
        """Begin a turn of the agent."""
        identity = self.talk.new_id(Speaker.AGENT, None, seed)
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False))

    def call(self, called: Called) -> None:
        """One tool call with what came of it."""
        arguments = called.rawArgs if _says_something(called.rawArgs) else called.params
        known = arguments if isinstance(arguments, str | dict) else ""
        call_id = str(called.toolCallId or "")
        call_id = self.talk.add_call(call_id, str(called.name), known)
        result = called.result if called.result is not None else called.error
        told = result_text(result)
        came = _outcome(called, result, told)
        if came is not None:
            self.talk.result(call_id, came, lambda: told)
        if (
            came == "ok"
            and not told
            and self.talk.opened
            and self.talk.opened.calls[call_id].outside
        ):
            self.talk.exchange.unseen()

    def learn(self, **known: Any) -> None:
        """Facts of the session that show on the way."""
        session = self.talk.session
        new = {
            name: value
            for name, value in known.items()
            if value and getattr(session, name) != value
        }
        self.talk.session = replace(session, **new)

    def end(self) -> Items:
        """The conversation ends, for now."""
        yield from self.talk.end()


def result_text(result: object) -> str:
    """What a tool said, out of the JSON in which Cursor keeps it."""
    if isinstance(result, str):
        value = (
            decode(_ANY, result.encode("utf-8", "replace"))
            if result.lstrip()[:1] in ("{", "[")
            else None
        )
        return result_text(value) or result if value is not None else result
    if isinstance(result, dict):
        for key in _OUTPUTS:
            if isinstance(result.get(key), str) and result[key].strip():
                return str(result[key])
        return msgspec.json.encode(result).decode() if result else ""
    return msgspec.json.encode(result).decode() if isinstance(result, list) and result else ""


def rich_words(rich: object) -> str:
    """The words in the editor's own tree of a message."""
    if not isinstance(rich, str) or not rich.strip():
        return ""
    tree = decode(_ANY, rich.encode("utf-8", "replace"))
    root = tree.get("root") if isinstance(tree, dict) else None
    blocks = root.get("children") if isinstance(root, dict) else None
    lines = ["".join(_leaves(block)) for block in blocks] if isinstance(blocks, list) else []
    return "\n".join(lines).strip()


def _leaves(node: Any) -> Iterator[str]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        if isinstance(node.get("text"), str):
            yield node["text"]
        elif node.get("type") == "linebreak":
            yield "\n"
        children = node.get("children")
        waiting += reversed(children) if isinstance(children, list) else ()


def _says_something(arguments: object) -> bool:
    return bool(arguments) and (
        not isinstance(arguments, str) or arguments.strip() not in ("", "{}")
    )


def _outcome(called: Called, result: object, told: str) -> str | None:
    """How a call came out; ``None`` while it runs."""
    facts = result if isinstance(result, dict) else None
    if isinstance(result, str) and result.lstrip().startswith("{"):
        facts = decode(_ANY, result.encode("utf-8", "replace"))
    facts = facts if isinstance(facts, dict) else {}
    status = str(called.status or "").lower()
    if status in _DECLINED or called.userDecision == "rejected" or facts.get("rejected") is True:
        return "rejected"
    code = next((facts[key] for key in _EXIT_CODES if type(facts.get(key)) is int), None)
    if status == "error" or called.error:
        return outcome(told or result_text(called.error), exit_code=code or None, is_error=True)
    if status in ("completed", "success", "") and (result is not None or status):
        return outcome(told, exit_code=code)
    return None


def _draws_on_the_web(bubble: Bubble) -> bool:
    """Whether pages were given to the agent that are not recorded."""
    context = decode(_ANY, bytes(bubble.context))
    facts = context if isinstance(context, dict) else {}
    mentions = facts.get("mentions")
    found = [facts.get(key) for key in _FROM_OUTSIDE] + [bubble.useWeb]
    found += [mentions.get(key) for key in _FROM_OUTSIDE] if isinstance(mentions, dict) else []
    return any(found)


# ----------------------------------------------------------------------------
# Cursor's ``state.vscdb``: three generations of conversations, in the workspaces' databases and in
# the global one.
#
# 1. 2023-24, the chat pane of a workspace: tabs of bubbles under one key, without times.
# 2. Late 2024, the composers of a workspace: conversations of bubbles under one key. One that was
# opened out of the chat
#    pane begins with a copy of what was said there, which is left out.
# 3. 2025 on, the global database: a key a conversation, and a key a bubble; the conversation has
# their order.
#
# The tables hold passwords and tokens, too: only the keys named in ``sql/editors.sql`` are read.


CHAT = "workbench.panel.aichat.view.aichat.chatdata"
COMPOSERS = "composer.composerData"
HEADERS = "composer.composerHeaders"
PROMPTS = "aiService.generations"

_KEY_VALUE = "cursorDiskKV"
_BUBBLE_KEY = "bubbleId:"
_UNNAMED = frozenset({"New Chat", "New Agent", "New Composer", "Untitled"})
_PARENTS = (
    "parentComposerId",
    "parentConversationId",
    "parentAgentId",
    "rootParentConversationId",
    "parentId",
)


class Tab(msgspec.Struct, gc=False):
    """A tab of the chat pane."""

    tabId: Any = None  # noqa: N815
    chatTitle: Any = None  # noqa: N815
    lastSendTime: Any = None  # noqa: N815
    bubbles: list[msgspec.Raw] = []


class Composer(msgspec.Struct, gc=False):
    """A conversation: with its bubbles, or with their order."""

    composerId: Any = None  # noqa: N815
    name: Any = None
    createdAt: Any = None  # noqa: N815
    status: Any = None
    conversation: list[msgspec.Raw] | None = None
    conversationMap: dict[str, msgspec.Raw] | None = None  # noqa: N815
    fullConversationHeadersOnly: list[Any] | None = None  # noqa: N815
    generatingBubbleIds: Any = None  # noqa: N815
    modelConfig: Any = None  # noqa: N815
    createdOnBranch: Any = None  # noqa: N815
    subagentInfo: Any = None  # noqa: N815
    isBestOfNSubcomposer: Any = None  # noqa: N815
    workspaceIdentifier: Any = None  # noqa: N815

    @property
    def is_being_written(self) -> bool:
        """Whether the last bubble may still grow."""
        return self.status == "generating" or bool(self.generatingBubbleIds)


class Tabs(msgspec.Struct, gc=False):
    """The chat pane."""

    tabs: list[msgspec.Raw] = []


class Composers(msgspec.Struct, gc=False):
    """The composers of a workspace."""

    allComposers: list[msgspec.Raw] = []  # noqa: N815


_TABS = msgspec.json.Decoder(Tabs)
_TAB = msgspec.json.Decoder(Tab)
_COMPOSERS = msgspec.json.Decoder(Composers)
_COMPOSER = msgspec.json.Decoder(Composer)

T = TypeVar("T")
Exchange = tuple[str, str]
Prompts = dict[str, list[datetime]]


def parse(source: Source) -> Items:
    """Parse one database; see :class:`~nacre.readers.adapter.Adapter`."""
    reader = _Reader(source)
    if has_editor_table(reader.tables):
        yield from reader.workspace()
        yield from chat_sessions(source, reader.marks)
    if reader.tables.columns(_KEY_VALUE):
        yield from reader.conversations()
    reader.save()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables: Tables = tables_of(source)
        self.marks = Marks(source)
        self.folder, self.label = workspace_of(source.path)
        self.last_row: int = source.carry.get("row", 0)
        self._folders: Mapping[str, str] | None = None

    # The first two generations: everything lies under one key

    def workspace(self) -> Items:
        """Sessions that lie in the workspace's own database."""
        composers = self.listed_composers()
        prompts = self.prompt_times()
        opened: dict[Exchange, datetime] = {}
        for _, composer, bubbles in composers:
            time = parse_time(composer.createdAt)
            if time:  # a composer that was opened out of a chat tells when that was
                opened = {**dict.fromkeys(_exchanges(bubbles[:2]), time), **opened}
        said: set[Exchange] = set()
        yield from self.tabs(prompts, opened, said)
        for raw, composer, bubbles in composers:
            own = _without_copies(bubbles, said)
            if own and self.marks.is_new(str(composer.composerId), digest(raw)):
                yield from self.talk(
                    self.session(composer, self.folder), own, _times(own, prompts, opened)
                )

    def under(self, key: str, decoder: msgspec.json.Decoder[T]) -> T | None:
        """What lies under a key; what is there and cannot be understood is counted."""
        raw = as_bytes(item(self.tables, key))
        found = decode(decoder, raw) if raw else None
        if raw and found is None:
            self.source.corrupt()
        return found

    def tabs(
        self, prompts: Prompts, opened: Mapping[Exchange, datetime], said: set[Exchange]
    ) -> Items:
        """The tabs of the chat pane, the oldest first: a later one may begin with a copy of it."""
        kept = self.under(CHAT, _TABS) or Tabs()
        found = [(raw, decode(_TAB, bytes(raw))) for raw in kept.tabs]
        for raw, tab in sorted(found, key=lambda one: str(one[1].lastSendTime) if one[1] else ""):
            if tab is None or not isinstance(tab.tabId, str):
                self.source.corrupt()
                continue
            bubbles = _without_copies(self.bubbles(tab.bubbles), said)
            if bubbles and self.marks.is_new(tab.tabId, digest(raw)):
                times = _times(bubbles, prompts, opened, parse_time(tab.lastSendTime))
                session = Session(
                    TOOL,
                    tab.tabId,
                    title=_title(tab.chatTitle),
                    cwd=self.folder,
                    label=self.label,
                    started=min((time for time in times if time), default=None),
                )
                yield from self.talk(session, bubbles, times)

    def listed_composers(self) -> list[tuple[msgspec.Raw, Composer, list[Bubble]]]:
        """The composers of a workspace, the oldest first. Newer versions keep headers here alone."""
        kept = self.under(COMPOSERS, _COMPOSERS) or Composers()
        found = [(raw, decode(_COMPOSER, bytes(raw))) for raw in kept.allComposers]
        known = [
            (raw, one, self.bubbles(one.conversation))
            for raw, one in found
            if one and one.conversation
        ]
        return sorted(known, key=lambda one: str(one[1].createdAt))

    def prompt_times(self) -> Prompts:
        """When prompts were sent, by their words: bubbles of the first generations have no times."""
        prompts = self.under(PROMPTS, _ANY)
        found: Prompts = {}
        for prompt in prompts if isinstance(prompts, list) else ():
            if isinstance(prompt, dict) and isinstance(prompt.get("textDescription"), str):
                time = parse_time(prompt.get("unixMs"))
                if time:
                    found.setdefault(prompt["textDescription"].strip(), []).append(time)
        return found

    # The third generation: a key a conversation, a key a bubble

    def conversations(self) -> Items:
        """The conversations of the global database that were written to."""
        written = self.written()
        for name, row, size in self.tables.all(statement("cursor_composers")):
            is_new = self.marks.is_new(name, row, size)
            if is_new or name in written:
                yield from self.conversation(name)

    def written(self) -> set[str]:
        """Conversations of which bubbles were written since the last reading; all rows since then are looked at."""
        before, key = self.last_row, self.source.carry.get("key")
        last = self.tables.all(statement("cursor_last_row"))[0][0]
        there = self.tables.all(statement("cursor_key_at"), row=before)
        self.last_row = last
        if before == 0:
            return set()
        if last < before or (there and there[0][0] != key):  # rows were numbered anew
            return {name for name, _, _ in self.tables.all(statement("cursor_composers"))}
        rows = self.tables.all(statement("cursor_written"), row=before)
        return {
            key.split(":")[1]
            for key, _ in rows
            if isinstance(key, str) and key.startswith(_BUBBLE_KEY)
        }

    def conversation(self, name: str) -> Items:
        """One conversation, its bubbles in the order that it names."""
        found = self.tables.all(statement("cursor_composer"), composer=name)
        raw = as_bytes(found[0][0]) if found else b""
        if not raw:
            return
        composer = decode(_COMPOSER, raw)
        if composer is None:
            self.source.corrupt()
            return
        bubbles = self.bubbles_of(name, composer)
        first = next(bubbles, None)
        if first is None:
            return
        session = self.session(composer, self.folder_of(name, composer, first))
        yield from self.talk(
            replace(session, native_id=name), _chain(first, bubbles, composer.is_being_written)
        )

    def bubbles_of(self, name: str, composer: Composer) -> Iterator[Bubble]:
        if composer.conversation:
            yield from self.bubbles(composer.conversation)
            return
        within = composer.conversationMap or {}
        for header in composer.fullConversationHeadersOnly or ():
            bubble_id = header.get("bubbleId") if isinstance(header, dict) else None
            if not isinstance(bubble_id, str):
                self.source.corrupt()
                continue
            found = self.tables.all(statement("cursor_bubble"), composer=name, bubble=bubble_id)
            raw = as_bytes(found[0][0]) if found else bytes(within.get(bubble_id, b""))
            if raw:  # Cursor removes old ones
                yield from self.bubbles([raw])

    def folder_of(self, name: str, composer: Composer, first: Bubble) -> str | None:
        """The folder in which a conversation took place: its own word, the list of all, or the workspaces' lists."""
        uris = first.workspaceUris
        told = uris[0] if isinstance(uris, list) and uris and isinstance(uris[0], str) else None
        found = folder_of(told) or _workspace_of(composer.workspaceIdentifier) or self.folder
        return found or self.folders().get(name)

    def folders(self) -> Mapping[str, str]:
        """The folders of conversations, as the lists of this database and of the workspaces beside it tell."""
        if self._folders is None:
            self._folders = (
                dict(_listed(self.tables, HEADERS, None)) if has_editor_table(self.tables) else {}
            )
            beside = self.source.path.parent.parent / "workspaceStorage"
            for path in sorted(beside.glob("*/state.vscdb")) if beside.is_dir() else ():
                folder, _ = workspace_of(path)
                tables = self.source.look(path) if folder else None
                if tables and has_editor_table(tables):
                    self._folders |= {
                        key: value
                        for key, value in _listed(tables, COMPOSERS, folder)
                        if key not in self._folders
                    }
        return self._folders

    # All generations

    def session(self, composer: Composer, folder: str | None) -> Session:
        """A session as its composer tells."""
        config = composer.modelConfig
        model = string(config, "modelName") if isinstance(config, dict) else None
        inner = composer.subagentInfo if isinstance(composer.subagentInfo, dict) else {}
        is_inner = bool(composer.subagentInfo or composer.isBestOfNSubcomposer)
        parent = next((inner[key] for key in _PARENTS if isinstance(inner.get(key), str)), None)
        branch = composer.createdOnBranch
        return Session(
            TOOL,
            str(composer.composerId),
            title=_title(composer.name),
            cwd=folder,
            label=self.label,
            branch=branch if isinstance(branch, str) and branch else None,
            kind=SessionKind.SUBAGENT if is_inner else SessionKind.MAIN,
            parent=parent,
            started=parse_time(composer.createdAt),
            model=model if model != "default" else None,
        )

    def bubbles(self, raws: Sequence[msgspec.Raw | bytes]) -> list[Bubble]:
        """Bubbles out of their JSON; what is none is counted."""
        found = [bubble_of(bytes(raw)) for raw in raws]
        for bubble in found:
            if bubble is None:
                self.source.corrupt()
        return [bubble for bubble in found if bubble]

    def talk(
        self, session: Session, bubbles: Iterable[Bubble], times: Iterable[datetime | None] = ()
    ) -> Items:
        """The turns of one session; the times are those of bubbles that do not know theirs."""
        talk = Talk(Part(self.source), session)
        for bubble, when in zip(bubbles, chain(times, repeat(None)), strict=False):
            yield from talk.take(bubble, when)
        yield from talk.end()

    def save(self) -> None:
        """What the next reading is to know."""
        self.marks.save()
        if self.last_row:
            found = self.tables.all(statement("cursor_key_at"), row=self.last_row)
            self.source.carry |= {"row": self.last_row, "key": found[0][0] if found else None}


def _chain(first: Bubble, rest: Iterator[Bubble], is_being_written: bool) -> Iterator[Bubble]:
    """All bubbles; without the last one while it may grow, if it is the agent's: a half sentence is no turn."""
    held = first
    for bubble in rest:
        yield held
        held = bubble
    if held.is_owners or not is_being_written:
        yield held


def _exchanges(bubbles: Sequence[Bubble]) -> Iterator[Exchange]:
    """What was asked with what was answered, word for word."""
    for one, other in pairwise(bubbles):
        if one.is_owners and other.is_owners is False:
            yield one.words.strip(), other.words.strip()


def _times(
    bubbles: Sequence[Bubble],
    prompts: Prompts,
    opened: Mapping[Exchange, datetime],
    sent: datetime | None = None,
) -> list[datetime | None]:
    """When what was typed was sent, as far as something tells: the list of prompts, a composer that was opened out of
    the exchange, for the last one the tab."""
    found: list[datetime | None] = []
    asked = {words: iter(times) for words, times in prompts.items()}
    last = max(
        (at for at, bubble in enumerate(bubbles) if bubble.is_owners and bubble.words.strip()),
        default=-1,
    )
    for at, bubble in enumerate(bubbles):
        words = bubble.words.strip() if bubble.is_owners else ""
        exchange = (words, bubbles[at + 1].words.strip()) if at + 1 < len(bubbles) else ("", "")
        told = next(asked.get(words, iter(())), None) or opened.get(exchange) if words else None
        found.append(told or (sent if at == last else None))
    return found


def _without_copies(bubbles: Sequence[Bubble], said: set[Exchange]) -> Sequence[Bubble]:
    """A conversation without the exchanges that it begins with, where those were said elsewhere before."""
    while (first := next(_exchanges(bubbles[:2]), None)) and first in said:
        bubbles = bubbles[2:]
    said |= set(_exchanges(bubbles))
    return bubbles if any(bubble.words or bubble.is_owners is False for bubble in bubbles) else ()


def _listed(tables: Tables, key: str, folder: str | None) -> Iterator[tuple[str, str]]:
    """The conversations under a key, with their folders."""
    kept = decode(_COMPOSERS, as_bytes(item(tables, key))) or Composers()
    for raw in kept.allComposers:
        composer = decode(_COMPOSER, bytes(raw))
        found = folder or (_workspace_of(composer.workspaceIdentifier) if composer else None)
        if composer and isinstance(composer.composerId, str) and found:
            yield composer.composerId, found


def _workspace_of(identifier: object) -> str | None:
    uri = identifier.get("uri") if isinstance(identifier, dict) else None
    if isinstance(uri, str):
        return folder_of(uri)
    if not isinstance(uri, dict):
        return None
    return next(
        (
            folder_of(uri[key])
            for key in ("external", "fsPath", "path")
            if isinstance(uri.get(key), str)
        ),
        None,
    )


def _title(name: object) -> str | None:
    return (
        name.strip()
        if isinstance(name, str) and name.strip() and name.strip() not in _UNNAMED
        else None
    )


def _sniff(head: Head) -> bool:
    tables = head.database
    if tables is None or not has_editor_table(tables):
        return False
    return bool(tables.columns(_KEY_VALUE)) or any(
        item_mark(tables, key) for key in (CHAT, COMPOSERS, HEADERS, PROMPTS)
    )


def _roots(places: Places) -> Sequence[Root]:
    return state_roots(places, of_cursor=True)


ADAPTER = Adapter(
    tool=TOOL,
    label="Cursor",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    beside=log_of,
    versions="workspace database of 2024; conversations of 2025 and later (_v 3 to 10, from their description)",
    reads=(
        "messages",
        "tool calls with outcome",
        "titles",
        "folder",
        "branch",
        "model",
        "tokens, if bubbles record them",
        "times, if recorded",
        "sub-agents",
        "Copilot's sessions in the same database",
    ),
    leaves_out=(
        "thinking",
        "checkpoints",
        "edits' contents",
        "attachments",
        "agentKv",
        "lists of prompts",
    ),
    environment=ENVIRONMENT,
)


# ----------------------------------------------------------------------------
# The fields of a Protocol Buffers message, without a schema: https://protobuf.dev/programming-
# guides/encoding/


_VARINT, _FIXED_8, _LENGTH, _FIXED_4 = 0, 1, 2, 5
_MOST_BYTES_OF_VARINT = 10


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its number, and its bytes where it has a length; numbers have none."""

    number: int
    data: bytes = b""

    @property
    def text(self) -> str:
        """The bytes as text; empty when they are none."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return ""


def read_fields(data: bytes) -> list[Field] | None:
    """All fields of a message in order; ``None`` when the bytes are no message from end to end."""
    try:
        return list(_fields(data))
    except (IndexError, ValueError):
        return None


def _fields(data: bytes) -> Iterator[Field]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        length = 0
        if kind == _VARINT:
            _, at = _varint(data, at)
        elif kind == _LENGTH:
            length, at = _varint(data, at)
        elif kind in (_FIXED_8, _FIXED_4):
            at += 8 if kind == _FIXED_8 else 4
        else:
            raise ValueError("no such kind of field")
        if number == 0 or at + length > len(data):
            raise ValueError("a field ends behind its message")
        yield Field(number, data[at : at + length])
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MOST_BYTES_OF_VARINT):
        byte = data[at + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number without an end")


# ----------------------------------------------------------------------------
# Cursor's command line agent: ``~/.cursor/chats/<folder>/<id>/store.db``, one session a database.
#
# Blobs are named after their content. The newest root lists the ids of the messages in order, which
# are JSON; older
# versions wrote messages in Protocol Buffers, of which only what was said is known. No message has a
# time.


Values = Mapping[str, Any]

_DIGEST_BYTES = 32
_MESSAGES, _WORKSPACE = 1, 9
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FOLDER = re.compile(r"^Workspace Path: (.+?)\s*$", re.MULTILINE)
_UNNAMED_STORE = frozenset({"New Agent", "Untitled", "New Chat"})
_QUIET = frozenset({"reasoning", "redacted-reasoning", "image", "file", "thinking"})


@dataclass(frozen=True, slots=True)
class Listing:
    """What the newest root says: the ids of the messages, and the folder."""

    messages: tuple[str, ...] = ()
    folder: str | None = None


def parse_store(source: Source) -> Items:
    """Parse one store; see :class:`~nacre.readers.adapter.Adapter`."""
    return _StoreReader(source).read()


class _StoreReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables = tables_of(source)
        self.facts = self.read_facts()
        created = parse_time(self.facts.get("createdAt"))
        name, model = self.facts.get("name"), self.facts.get("lastUsedModel")
        self.talk = Conversation(
            Part(source),
            Session(
                TOOL_CURSOR,
                str(self.facts.get("agentId") or source.path.parent.name),
                title=name
                if isinstance(name, str) and name.strip() and name not in _UNNAMED_STORE
                else None,
                started=created,
                model=model if isinstance(model, str) and model != "default" else None,
            ),
        )
        self.time = created

    def read(self) -> Items:
        marks = Marks(self.source)
        if marks.is_new(
            self.talk.session.native_id, self.facts.get("latestRootBlobId"), self.facts.get("name")
        ):
            root = self.root()
            if root.folder:
                self.learn_folder(root.folder)
            for data in self.listed(root) if root.messages else self.everything():
                yield from self.take(data)
            yield from self.talk.end()
        marks.save()

    def read_facts(self) -> Values:
        found = self.tables.all(statement("cursor_store_facts"))
        value = found[0][0] if found else b""
        text = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
        try:
            raw = bytes.fromhex(text)
        except ValueError:
            raw = text.encode("utf-8", "replace")
        facts = decode(_ANY, raw)
        if found and not isinstance(facts, dict):
            self.source.corrupt()
        return facts if isinstance(facts, dict) else {}

    def root(self) -> Listing:
        """The list of messages; empty where it is written otherwise than is known."""
        data = self.blob(self.facts.get("latestRootBlobId"))
        fields = read_fields(data) if data and not data.lstrip().startswith(b"{") else None
        if not fields:
            return Listing()
        ids = [
            one.data.hex()
            for one in fields
            if one.number == _MESSAGES and len(one.data) == _DIGEST_BYTES
        ]
        uri = next((one.text for one in fields if one.number == _WORKSPACE and one.text), None)
        return Listing(tuple(ids), folder_of(uri))

    def blob(self, identity: object) -> bytes:
        found = (
            self.tables.all(statement("cursor_store_blob"), id=identity)
            if isinstance(identity, str)
            else []
        )
        return as_bytes(found[0][0]) if found else b""

    def listed(self, root: Listing) -> Iterator[bytes]:
        for identity in root.messages:
            data = self.blob(identity)
            if data:
                yield data
            else:
                self.source.unknown("message without its blob")

    def everything(self) -> Iterator[bytes]:
        """All blobs in the order of writing, where no list can be followed."""
        last = 0
        while rows := self.tables.all(statement("cursor_store_blobs"), row=last):
            for row, data in rows:
                last = row
                yield as_bytes(data)

    # Messages

    def take(self, data: bytes) -> Items:
        if data.lstrip().startswith(b"{"):
            message = decode(_ANY, data)
            if isinstance(message, dict) and "role" in message:
                yield from self.message(message)
            else:
                self.source.unknown("blob")
        else:
            yield from self.packed(data)

    def message(self, message: Values) -> Items:
        role, blocks = message.get("role"), _blocks(message)
        if role == "user":
            yield from self.user("\n\n".join(self.texts(blocks)), message, *blocks)
        elif role == "assistant":
            yield from self.agent("\n\n".join(self.texts(blocks)).strip(), blocks)
        elif role == "tool":
            for block in blocks:
                self.result(block)
        elif role != "system":
            self.source.unknown(f"role {role}")

    def packed(self, data: bytes) -> Items:
        """A message of an older version: its words, and an id where a person typed them."""
        fields = read_fields(data)
        first = next((one for one in fields or () if one.number == 1), None)
        if fields is None or first is None or len(first.data) == _DIGEST_BYTES:
            self.source.unknown("blob")
            return
        is_typed = any(one.number == 2 and _UUID.fullmatch(one.text) for one in fields)
        if is_typed:
            yield from self.user(first.text)
            return
        inner = read_fields(first.data)
        words = next((one.text for one in inner or () if one.number == 1), "")
        if words.strip():
            yield from self.agent(words.strip(), ())
        else:
            self.source.unknown("blob")

    def texts(self, blocks: Sequence[Values]) -> Iterator[str]:
        for block in blocks:
            kind = block.get("type")
            if kind in ("text", None):
                yield str(block.get("text") or "")
            elif kind not in _QUIET and kind not in ("tool-call", "tool-result"):
                self.source.unknown(f"block {kind}")

    def user(self, text: str, *claims: Values) -> Items:
        cleaned = self.talk.clean(text)
        prompt = read_prompt(cleaned.text)
        if prompt.context:
            self.talk.exchange.heard(prompt.context)
            folder = _FOLDER.search(prompt.context)
            if folder and not self.talk.session.cwd:
                self.learn_folder(folder[1])
        if prompt.words:
            self.time = prompt.time or self.time
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            identity = self.talk.new_id(Speaker.OWNER, None, prompt.words)
            trust = Trust.TRUSTED if prompt.is_sure else Trust.UNTRUSTED
            turn = Turn(identity, Speaker.OWNER, prompt.words, self.time, flags=flags, trust=trust)
            yield from self.talk.say(turn, *claims)

    def agent(self, text: str, blocks: Sequence[Values]) -> Items:
        calls = [block for block in blocks if block.get("type") == "tool-call"]
        if not (text or calls):
            return
        identity = self.talk.new_id(Speaker.AGENT, None, text or f"call {calls[0].get('toolName')}")
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False))
        self.talk.add_text(text)
        for call in calls:
            arguments = call.get("args", call.get("input"))
            known = arguments if isinstance(arguments, str | dict) else ""
            self.talk.add_call(
                str(call.get("toolCallId") or ""), str(call.get("toolName") or "tool"), known
            )

    def result(self, block: Values) -> None:
        told = result_text(block.get("result", block.get("output")))
        is_error = block.get("isError") is True
        result = (
            "rejected"
            if told[:200].lower().startswith("rejected")
            else outcome(told, is_error=is_error)
        )
        self.talk.result(str(block.get("toolCallId") or ""), result, lambda: told)

    def learn_folder(self, folder: str) -> None:
        self.talk.session = replace(self.talk.session, cwd=folder)


def _blocks(message: Values) -> list[Values]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )


def _sniff_store(head: Head) -> bool:
    tables = head.database
    return tables is not None and bool(
        {"id", "data"} <= set(tables.columns("blobs"))
        and {"key", "value"} <= set(tables.columns("meta"))
    )


def _roots_store(places: Places) -> Sequence[Root]:
    told = [places.environ.get(name) for name in ("CURSOR_DATA_DIR", "CURSOR_CONFIG_DIR")]
    folders = [places.home / ".cursor", *(Path(folder).expanduser() for folder in told if folder)]
    config = Path(places.environ.get("XDG_CONFIG_HOME") or places.home / ".config").expanduser()
    return [
        Root(folder / "chats", ("*/*/store.db",))
        for folder in dict.fromkeys([*folders, config / "cursor"])
    ]


ADAPTER_STORE = Adapter(
    tool=TOOL_CURSOR,
    label="Cursor",
    roots=_roots_store,
    sniff=_sniff_store,
    parse=parse_store,
    beside=log_of,
    resume=("cursor-agent", "--resume", "{id}"),
    versions="command line agent of 2025 and 2026 (from its description; one file without messages)",
    reads=(
        "messages",
        "tool calls with outcome",
        "title",
        "folder",
        "model",
        "words of packed messages",
    ),
    leaves_out=(
        "times of messages (not recorded)",
        "thinking",
        "tool calls of packed messages",
        "other blobs",
    ),
    environment=("CURSOR_CONFIG_DIR", "CURSOR_DATA_DIR", "XDG_CONFIG_HOME"),
)
