"""Cursor: conversations in the editor's databases and in the command line agent's stores.

An answer of the agent spans many bubbles. A bubble with words begins a turn, and the tool calls
after it belong to that turn. Ids are derived from words and their occurrence rather than from
bubble ids, because Cursor also writes the conversation as lines of text without ids, and both are
one session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nacre.base.frozen import frozen
from nacre.readers.adapter import (
    ANY,
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
    content_blocks,
    decode,
    has_columns,
    log_of,
    mapping,
    parse_time,
    plain,
    statement,
    string,
    tables_of,
    total,
)
from nacre.readers.conversation import outcome
from nacre.readers.copilot import (
    EDITOR_TABLE,
    chat_sessions,
    digest,
    item,
    item_mark,
    state_roots,
    workspace_of,
)
from nacre.readers.cursor import TOOL as TOOL_CURSOR
from nacre.readers.cursor import read_prompt
from nacre.readers.trust import ABSENT, ENVIRONMENT, Claims, Conversation, OpenTurn, folder_of
from nacre.values.session import Session, SessionKind, Speaker, Tokens, Trust, Turn

TOOL = "cursor"

_MIN_EPOCH_MS = 1_000_000_000_000
_EXIT_CODES = ("exitCode", "exitCodeV2", "exit_code")
_OUTPUTS = ("output", "contents", "stdout", "result", "text")
_DECLINED_STATES = ("rejected", "cancelled", "canceled")
_OUTSIDE_FIELDS = ("externalLinks", "selectedDocs", "useWeb", "selectedPullRequests")


class Timing(msgspec.Struct, gc=False):
    """The send time of a bubble's request in epoch milliseconds. ``clientStartTime`` counts from
    the machine's start.
    """

    clientRpcSendTime: Any = None  # noqa: N815
    clientEndTime: Any = None  # noqa: N815


class Called(msgspec.Struct, gc=False):
    """A tool call with its result. A bubble without a name only has a state here, and is not a
    call.
    """

    name: Any = None
    toolCallId: Any = None  # noqa: N815
    status: Any = None
    rawArgs: Any = None  # noqa: N815
    params: Any = None
    result: Any = None
    error: Any = None
    userDecision: Any = None  # noqa: N815


class Bubble(Claims, gc=False):
    """One bubble: type 1 or ``user`` was typed by a person; 2 or ``ai`` has the agent's words,
    thoughts or calls.
    """

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
        """True if a person typed it, None if unknown."""
        return {1: True, "user": True, 2: False, "ai": False}.get(
            self.type if isinstance(self.type, int | str) else ""
        )

    @property
    def words(self) -> str:
        """The text as plain text."""
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
        """The tokens of the answer. Most bubbles have zeros."""
        counts = self.tokenCount if isinstance(self.tokenCount, dict) else {}
        return Tokens(total(counts, "inputTokens"), 0, total(counts, "outputTokens")).bounded

    @property
    def time(self) -> datetime | None:
        """The time of writing, if recorded."""
        timing = decode(_TIMING, bytes(self.timingInfo))
        sent = (timing.clientRpcSendTime, timing.clientEndTime) if timing else ()
        epochs = [
            value for value in sent if isinstance(value, int | float) and value > _MIN_EPOCH_MS
        ]
        return parse_time(self.createdAt) or next((parse_time(value) for value in epochs), None)


_BUBBLE = msgspec.json.Decoder(Bubble)
_CALLED = msgspec.json.Decoder(Called | None)
_TIMING = msgspec.json.Decoder(Timing | None)


class Talk:
    """Converts bubbles into a session's turns. A missing time is taken from the previous bubble."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)
        self.time = session.started

    def take(self, bubble: Bubble, when: datetime | None = None) -> Items:
        """Yield the turns of one bubble. ``when`` is used if it has no time."""
        self.time = bubble.time or when or self.time
        if bubble.is_owners is None:
            self.source.unknown(f"bubble {bubble.type}")
        elif bubble.is_owners:
            yield from self.owner(bubble)
        else:
            yield from self.agent(bubble)

    def owner(self, bubble: Bubble) -> Items:
        """Yield the message that a person typed, or, in a sub-agent, that the calling agent wrote."""
        is_inner = self.talk.session.kind is SessionKind.SUBAGENT
        speaker = Speaker.AGENT if is_inner else Speaker.OWNER
        yield from self.talk.write(speaker, bubble.words, self.time, bubble)
        facts = plain(bubble.context)
        places = (mapping(facts), mapping(facts, "mentions"))
        if bubble.useWeb or any(place.get(key) for place in places for key in _OUTSIDE_FIELDS):
            self.talk.exchange.unseen()  # the pages that the agent received are not recorded

    def agent(self, bubble: Bubble) -> Items:
        """Begin a turn with the words of a bubble. A call belongs to the open turn."""
        self.talk.learn(model=bubble.model)
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
        """Add a tool call with its result."""
        raw = called.rawArgs.strip() if isinstance(called.rawArgs, str) else called.rawArgs
        arguments = called.rawArgs if raw and raw != "{}" else called.params
        call_id = self.talk.add_call(str(called.toolCallId or ""), str(called.name), arguments)
        result = called.result if called.result is not None else called.error
        output = result_text(result)
        call_outcome = _outcome(called, result, output)
        if call_outcome is not None:
            self.talk.result(call_id, call_outcome, lambda: output)
        if (
            call_outcome == "ok"
            and not output
            and self.talk.opened
            and self.talk.opened.calls[call_id].outside
        ):
            self.talk.exchange.unseen()


def result_text(result: object) -> str:
    """Return a tool's output from the JSON in which Cursor stores it."""
    if isinstance(result, str):
        value = plain(result) if result.lstrip()[:1] in ("{", "[") else None
        return result_text(value) or result if value is not None else result
    if isinstance(result, dict):
        for key in _OUTPUTS:
            if isinstance(result.get(key), str) and result[key].strip():
                return str(result[key])
        return msgspec.json.encode(result).decode() if result else ""
    return msgspec.json.encode(result).decode() if isinstance(result, list) and result else ""


def rich_words(rich: object) -> str:
    """Return the words in the editor's tree of a message."""
    if not isinstance(rich, str) or not rich.strip():
        return ""
    blocks = mapping(plain(rich), "root").get("children")
    lines = ["".join(_leaves(block)) for block in blocks] if isinstance(blocks, list) else []
    return "\n".join(lines).strip()


def _leaves(node: Any) -> Iterator[str]:
    stack = [node]
    while stack:
        node = stack.pop()
        if not isinstance(node, dict):
            continue
        if isinstance(node.get("text"), str):
            yield node["text"]
        elif node.get("type") == "linebreak":
            yield "\n"
        children = node.get("children")
        stack += reversed(children) if isinstance(children, list) else ()


def _outcome(called: Called, result: object, output: str) -> str | None:
    """Return the outcome of a call, or None while it runs."""
    facts = mapping(
        plain(result) if isinstance(result, str) and result.lstrip()[:1] == "{" else result
    )
    status = str(called.status or "").lower()
    if (
        status in _DECLINED_STATES
        or called.userDecision == "rejected"
        or facts.get("rejected") is True
    ):
        return "rejected"
    code = next((facts[key] for key in _EXIT_CODES if type(facts.get(key)) is int), None)
    if status == "error" or called.error:
        return outcome(output or result_text(called.error), exit_code=code or None, is_error=True)
    if status in ("completed", "success", "") and (result is not None or status):
        return outcome(output, exit_code=code)
    return None


# -- ``state.vscdb``: workspace databases and the global database --------------
# 1. 2023-24, the chat pane of a workspace: tabs of bubbles under one key, without times. 2. Late
# 2024, the composers of a workspace: conversations of bubbles under one key. A composer opened from
# the chat pane begins with a copy of the chat, which is skipped. 3. Since 2025, the global
# database: one key per conversation, with the order of its bubbles, and one per bubble. The tables
# also hold passwords and tokens, so only the keys in ``sql/editors.sql`` are read.


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
    """A conversation, with its bubbles or with their order."""

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
        """True if the last bubble may still grow."""
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
    """Parse one database."""
    reader = _Reader(source)
    if has_columns(reader.tables, EDITOR_TABLE):
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

    # The first two generations: everything under one key

    def workspace(self) -> Items:
        """Yield the sessions in the workspace's own database."""
        composers = self.listed_composers()
        prompts = self.prompt_times()
        opened: dict[Exchange, datetime] = {}
        for _, composer, bubbles in composers:
            time = parse_time(composer.createdAt)
            if time:  # the time of a chat from which a composer was opened
                opened = {**dict.fromkeys(_exchanges(bubbles[:2]), time), **opened}
        seen: set[Exchange] = set()
        yield from self.tabs(prompts, opened, seen)
        for raw, composer, bubbles in composers:
            new_bubbles = _without_copies(bubbles, seen)
            if new_bubbles and self.marks.is_new(str(composer.composerId), digest(raw)):
                yield from self.talk(
                    self.session(composer, self.folder),
                    new_bubbles,
                    _times(new_bubbles, prompts, opened),
                )

    def value_at(self, key: str, decoder: msgspec.json.Decoder[T]) -> T | None:
        """Return the value at a key. An invalid one is counted."""
        raw = as_bytes(item(self.tables, key))
        value = decode(decoder, raw) if raw else None
        if raw and value is None:
            self.source.corrupt()
        return value

    def tabs(
        self, prompts: Prompts, opened: Mapping[Exchange, datetime], seen: set[Exchange]
    ) -> Items:
        """Yield the tabs of the chat pane, oldest first, because a later one may begin with a copy."""
        pane = self.value_at(CHAT, _TABS) or Tabs()
        tabs = [(raw, decode(_TAB, bytes(raw))) for raw in pane.tabs]
        for raw, tab in sorted(tabs, key=lambda item: str(item[1].lastSendTime) if item[1] else ""):
            if tab is None or not isinstance(tab.tabId, str):
                self.source.corrupt()
                continue
            bubbles = _without_copies(self.bubbles(tab.bubbles), seen)
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
        """Return the composers of a workspace, oldest first. Newer versions store only headers
        here.
        """
        stored = self.value_at(COMPOSERS, _COMPOSERS) or Composers()
        decoded = [(raw, decode(_COMPOSER, bytes(raw))) for raw in stored.allComposers]
        composers = [
            (raw, composer, self.bubbles(composer.conversation))
            for raw, composer in decoded
            if composer and composer.conversation
        ]
        return sorted(composers, key=lambda item: str(item[1].createdAt))

    def prompt_times(self) -> Prompts:
        """Return the send times of prompts by their words, because early bubbles have no times."""
        prompts = self.value_at(PROMPTS, ANY)
        times: Prompts = {}
        for prompt in prompts if isinstance(prompts, list) else ():
            if isinstance(prompt, dict) and isinstance(prompt.get("textDescription"), str):
                time = parse_time(prompt.get("unixMs"))
                if time:
                    times.setdefault(prompt["textDescription"].strip(), []).append(time)
        return times

    # The third generation: one key per conversation, one per bubble

    def conversations(self) -> Items:
        """Yield the changed conversations of the global database."""
        written = self.written()
        for name, row, size in self.tables.all(statement("cursor_composers")):
            is_new = self.marks.is_new(name, row, size)
            if is_new or name in written:
                yield from self.conversation(name)

    def written(self) -> set[str]:
        """Return the conversations with bubbles written since the last reading."""
        before, key = self.last_row, self.source.carry.get("key")
        last = self.tables.all(statement("cursor_last_row"))[0][0]
        key_at_row = self.tables.all(statement("cursor_key_at"), row=before)
        self.last_row = last
        if before == 0:
            return set()
        if last < before or (key_at_row and key_at_row[0][0] != key):  # rows were renumbered
            return {name for name, _, _ in self.tables.all(statement("cursor_composers"))}
        rows = self.tables.all(statement("cursor_written"), row=before)
        return {
            key.split(":")[1]
            for key, _ in rows
            if isinstance(key, str) and key.startswith(_BUBBLE_KEY)
        }

    def conversation(self, name: str) -> Items:
        """Yield one conversation, with its bubbles in the stored order."""
        rows = self.tables.all(statement("cursor_composer"), composer=name)
        raw = as_bytes(rows[0][0]) if rows else b""
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
        inline = composer.conversationMap or {}
        for header in composer.fullConversationHeadersOnly or ():
            bubble_id = header.get("bubbleId") if isinstance(header, dict) else None
            if not isinstance(bubble_id, str):
                self.source.corrupt()
                continue
            rows = self.tables.all(statement("cursor_bubble"), composer=name, bubble=bubble_id)
            raw = as_bytes(rows[0][0]) if rows else bytes(inline.get(bubble_id, b""))
            if raw:  # Cursor removes old ones
                yield from self.bubbles([raw])

    def folder_of(self, name: str, composer: Composer, first: Bubble) -> str | None:
        """Return the folder of a conversation, from its own record or from the lists of
        conversations.
        """
        uris = first.workspaceUris
        uri = uris[0] if isinstance(uris, list) and uris and isinstance(uris[0], str) else None
        folder = folder_of(uri) or _workspace_of(composer.workspaceIdentifier) or self.folder
        return folder or self.folders().get(name)

    def folders(self) -> Mapping[str, str]:
        """Return the folders of conversations, from the lists of this database and of the
        workspaces.
        """
        if self._folders is None:
            self._folders = (
                dict(_list_conversations(self.tables, HEADERS, None))
                if has_columns(self.tables, EDITOR_TABLE)
                else {}
            )
            workspaces = self.source.path.parent.parent / "workspaceStorage"
            for path in sorted(workspaces.glob("*/state.vscdb")) if workspaces.is_dir() else ():
                folder, _ = workspace_of(path)
                tables = self.source.look(path) if folder else None
                if tables and has_columns(tables, EDITOR_TABLE):
                    self._folders |= {
                        key: value
                        for key, value in _list_conversations(tables, COMPOSERS, folder)
                        if key not in self._folders
                    }
        return self._folders

    # All generations

    def session(self, composer: Composer, folder: str | None) -> Session:
        """Return the session of a composer."""
        model = string(composer.modelConfig, "modelName")
        inner = mapping(composer.subagentInfo)
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
        """Decode bubbles. Invalid ones are counted."""
        bubbles = [decode(_BUBBLE, bytes(raw)) for raw in raws]
        for bubble in bubbles:
            if bubble is None:
                self.source.corrupt()
        return [bubble for bubble in bubbles if bubble]

    def talk(
        self, session: Session, bubbles: Iterable[Bubble], times: Iterable[datetime | None] = ()
    ) -> Items:
        """Yield the turns of one session. ``times`` are used for bubbles without a time."""
        talk = Talk(Part(self.source), session)
        for bubble, when in zip(bubbles, chain(times, repeat(None)), strict=False):
            yield from talk.take(bubble, when)
        yield from talk.talk.end()

    def save(self) -> None:
        """Store the state for the next reading."""
        self.marks.save()
        if self.last_row:
            rows = self.tables.all(statement("cursor_key_at"), row=self.last_row)
            self.source.carry |= {"row": self.last_row, "key": rows[0][0] if rows else None}


def _chain(first: Bubble, rest: Iterator[Bubble], is_being_written: bool) -> Iterator[Bubble]:
    """Yield all bubbles, except the agent's last one while it may grow."""
    previous = first
    for bubble in rest:
        yield previous
        previous = bubble
    if previous.is_owners or not is_being_written:
        yield previous


def _exchanges(bubbles: Sequence[Bubble]) -> Iterator[Exchange]:
    """Yield the pairs of a prompt and its answer, verbatim."""
    for prompt, answer in pairwise(bubbles):
        if prompt.is_owners and answer.is_owners is False:
            yield prompt.words.strip(), answer.words.strip()


def _times(
    bubbles: Sequence[Bubble],
    prompts: Prompts,
    opened: Mapping[Exchange, datetime],
    sent: datetime | None = None,
) -> list[datetime | None]:
    """Return the send times of prompts, as far as known: from the list of prompts, from a composer
    opened from the exchange, or, for the last prompt, from the tab.
    """
    known_times: list[datetime | None] = []
    times_by_prompt = {words: iter(times) for words, times in prompts.items()}
    last = max(
        (at for at, bubble in enumerate(bubbles) if bubble.is_owners and bubble.words.strip()),
        default=-1,
    )
    for at, bubble in enumerate(bubbles):
        words = bubble.words.strip() if bubble.is_owners else ""
        exchange = (words, bubbles[at + 1].words.strip()) if at + 1 < len(bubbles) else ("", "")
        time = (
            next(times_by_prompt.get(words, iter(())), None) or opened.get(exchange)
            if words
            else None
        )
        known_times.append(time or (sent if at == last else None))
    return known_times


def _without_copies(bubbles: Sequence[Bubble], seen: set[Exchange]) -> Sequence[Bubble]:
    """Return a conversation without the leading exchanges that occurred elsewhere before."""
    while (first := next(_exchanges(bubbles[:2]), None)) and first in seen:
        bubbles = bubbles[2:]
    seen |= set(_exchanges(bubbles))
    return bubbles if any(bubble.words or bubble.is_owners is False for bubble in bubbles) else ()


def _list_conversations(tables: Tables, key: str, folder: str | None) -> Iterator[tuple[str, str]]:
    """Yield the conversations at a key, with their folders."""
    composers = decode(_COMPOSERS, as_bytes(item(tables, key))) or Composers()
    for raw in composers.allComposers:
        composer = decode(_COMPOSER, bytes(raw))
        composer_folder = folder or (
            _workspace_of(composer.workspaceIdentifier) if composer else None
        )
        if composer and isinstance(composer.composerId, str) and composer_folder:
            yield composer.composerId, composer_folder


def _workspace_of(identifier: object) -> str | None:
    uri = mapping(identifier).get("uri")
    return folder_of(uri if isinstance(uri, str) else string(uri, "external", "fsPath", "path"))


def _title(name: object) -> str | None:
    return (
        name.strip()
        if isinstance(name, str) and name.strip() and name.strip() not in _UNNAMED
        else None
    )


def _sniff(head: Head) -> bool:
    tables = head.database
    return (
        tables is not None
        and has_columns(tables, EDITOR_TABLE)
        and (
            bool(tables.columns(_KEY_VALUE))
            or any(item_mark(tables, key) for key in (CHAT, COMPOSERS, HEADERS, PROMPTS))
        )
    )


ADAPTER = Adapter(
    tool=TOOL,
    label="Cursor",
    roots=partial(state_roots, of_cursor=True),
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


# -- Fields of a Protocol Buffers message, without a schema --------------------
# See https://protobuf.dev/programming-guides/encoding/.


_VARINT, _FIXED_8, _LENGTH, _FIXED_4 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


@frozen
class Field:
    """One field: its number, and its bytes if it has a length."""

    number: int
    data: bytes = b""

    @property
    def text(self) -> str:
        """The bytes as text, empty if they are not UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return ""


def read_fields(data: bytes) -> list[Field] | None:
    """Return all fields of a message in order, or None if the bytes are not a whole message."""
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
    for shift in range(_MAX_VARINT_BYTES):
        byte = data[at + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number without an end")


# -- Command line agent: ``~/.cursor/chats/<folder>/<id>/store.db``, one session per database
# Blobs are named by their content. The newest root lists the message ids in order. Messages are
# JSON, or Protocol Buffers in older versions, of which only the words are known. Messages have no
# times.


Values = Mapping[str, Any]

_STORE_TABLES = {"blobs": {"id", "data"}, "meta": {"key", "value"}}
_DIGEST_BYTES = 32
_MESSAGES, _WORKSPACE = 1, 9
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FOLDER = re.compile(r"^Workspace Path: (.+?)\s*$", re.MULTILINE)
_UNNAMED_STORE = frozenset({"New Agent", "Untitled", "New Chat"})
_QUIET = frozenset({"reasoning", "redacted-reasoning", "image", "file", "thinking"})


@frozen
class Listing:
    """The message ids and the folder in the newest root."""

    messages: tuple[str, ...] = ()
    folder: str | None = None


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
            self.talk.learn(cwd=root.folder)
            for data in self.listed(root) if root.messages else self.everything():
                yield from self.take(data)
            yield from self.talk.end()
        marks.save()

    def read_facts(self) -> Values:
        rows = self.tables.all(statement("cursor_store_facts"))
        value = rows[0][0] if rows else b""
        text = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
        try:
            raw = bytes.fromhex(text)
        except ValueError:
            raw = text.encode("utf-8", "replace")
        facts = plain(raw)
        if rows and not isinstance(facts, dict):
            self.source.corrupt()
        return facts if isinstance(facts, dict) else {}

    def root(self) -> Listing:
        """Return the list of messages, empty if its format is unknown."""
        data = self.blob(self.facts.get("latestRootBlobId"))
        fields = read_fields(data) if data and not data.lstrip().startswith(b"{") else None
        if not fields:
            return Listing()
        ids = [
            field.data.hex()
            for field in fields
            if field.number == _MESSAGES and len(field.data) == _DIGEST_BYTES
        ]
        uri = next(
            (field.text for field in fields if field.number == _WORKSPACE and field.text), None
        )
        return Listing(tuple(ids), folder_of(uri))

    def blob(self, identity: object) -> bytes:
        rows = (
            self.tables.all(statement("cursor_store_blob"), id=identity)
            if isinstance(identity, str)
            else []
        )
        return as_bytes(rows[0][0]) if rows else b""

    def listed(self, root: Listing) -> Iterator[bytes]:
        for identity in root.messages:
            data = self.blob(identity)
            if data:
                yield data
            else:
                self.source.unknown("message without its blob")

    def everything(self) -> Iterator[bytes]:
        """Yield all blobs in the order of writing, if there is no usable list."""
        last = 0
        while rows := self.tables.all(statement("cursor_store_blobs"), row=last):
            for row, data in rows:
                last = row
                yield as_bytes(data)

    # Messages

    def take(self, data: bytes) -> Items:
        if data.lstrip().startswith(b"{"):
            message = plain(data)
            if isinstance(message, dict) and "role" in message:
                yield from self.message(message)
            else:
                self.source.unknown("blob")
        else:
            yield from self.packed(data)

    def message(self, message: Values) -> Items:
        role, blocks = message.get("role"), content_blocks(message)
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
        """Yield a message of an older version: its words, and an id if a person typed it."""
        fields = read_fields(data)
        first = next((field for field in fields or () if field.number == 1), None)
        if fields is None or first is None or len(first.data) == _DIGEST_BYTES:
            self.source.unknown("blob")
            return
        is_typed = any(field.number == 2 and _UUID.fullmatch(field.text) for field in fields)
        if is_typed:
            yield from self.user(first.text)
            return
        inner = read_fields(first.data)
        words = next((field.text for field in inner or () if field.number == 1), "")
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
                self.talk.learn(cwd=folder[1])
        if prompt.words:
            self.time = prompt.time or self.time
            identity = self.talk.new_id(Speaker.OWNER, None, prompt.words)
            trust = Trust.TRUSTED if prompt.is_sure else Trust.UNTRUSTED
            yield from self.talk.say(
                Turn(
                    identity,
                    Speaker.OWNER,
                    prompt.words,
                    self.time,
                    flags=cleaned.flags,
                    trust=trust,
                ),
                *claims,
            )

    def agent(self, text: str, blocks: Sequence[Values]) -> Items:
        calls = [block for block in blocks if block.get("type") == "tool-call"]
        if not (text or calls):
            return
        identity = self.talk.new_id(Speaker.AGENT, None, text or f"call {calls[0].get('toolName')}")
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False))
        self.talk.add_text(text)
        for call in calls:
            self.talk.add_call(
                str(call.get("toolCallId") or ""),
                str(call.get("toolName") or "tool"),
                call.get("args", call.get("input")),
            )

    def result(self, block: Values) -> None:
        output = result_text(block.get("result", block.get("output")))
        is_error = block.get("isError") is True
        result = (
            "rejected"
            if output[:200].lower().startswith("rejected")
            else outcome(output, is_error=is_error)
        )
        self.talk.result(str(block.get("toolCallId") or ""), result, lambda: output)


def _roots_store(places: Places) -> Sequence[Root]:
    configured = [places.environ.get(name) for name in ("CURSOR_DATA_DIR", "CURSOR_CONFIG_DIR")]
    folders = [
        places.home / ".cursor",
        *(Path(folder).expanduser() for folder in configured if folder),
    ]
    config = Path(places.environ.get("XDG_CONFIG_HOME") or places.home / ".config").expanduser()
    return [
        Root(folder / "chats", ("*/*/store.db",))
        for folder in dict.fromkeys([*folders, config / "cursor"])
    ]


ADAPTER_STORE = Adapter(
    tool=TOOL_CURSOR,
    label="Cursor",
    roots=_roots_store,
    sniff=lambda head: has_columns(head.database, _STORE_TABLES),
    parse=lambda source: _StoreReader(source).read(),
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
