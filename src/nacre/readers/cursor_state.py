"""Cursor: conversations in the editor's databases and in the command line agent's stores.

Cursor calls a message a bubble. An agent's answer spans many bubbles. One with words starts a turn,
and the tool calls after it belong to that turn. Cursor also writes the conversation as lines of
text without ids. Therefore a turn's id is derived from its words and how often they occurred, so
that both copies are one session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from itertools import chain, pairwise, repeat
from typing import Any

import msgspec

from nacre.base.plain import Values, mapping, objects, objects_in, string, total
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
    content_blocks,
    has_columns,
    parse_time,
    plain,
    statement,
    tables_of,
    with_columns,
)
from nacre.readers.conversation import outcome
from nacre.readers.copilot import (
    EDITOR_TABLE,
    chat_sessions,
    item,
    item_mark,
    state_roots,
    workspace_of,
)
from nacre.readers.cursor import TOOL, MessageReader
from nacre.readers.trust import Conversation, OpenTurn, folder_of
from nacre.values.session import Session, SessionKind, Speaker, Tokens

_MIN_EPOCH_MS = 1_000_000_000_000
_EXIT_CODES = ("exitCode", "exitCodeV2", "exit_code")
_OUTPUTS = ("output", "contents", "stdout", "result", "text")
_DECLINED_STATES = ("rejected", "cancelled", "canceled")
_OUTSIDE_FIELDS = ("externalLinks", "selectedDocs", "useWeb", "selectedPullRequests")


Bubble = Values
"""One bubble. Type 1 or ``user`` has a person's words; type 2 or ``ai`` has the agent's words, thoughts or calls."""


def _is_owners(bubble: Bubble) -> bool | None:
    """Return True if a person typed the bubble, or None if the author is unknown."""
    kind = bubble.get("type")
    return {1: True, "user": True, 2: False, "ai": False}.get(
        kind if isinstance(kind, int | str) else ""
    )


def _words(bubble: Bubble) -> str:
    return string(bubble, "text", "rawText") or rich_words(bubble.get("richText"))


def _time(bubble: Bubble) -> datetime | None:
    """Return the bubble's time, if recorded.

    ``clientStartTime`` is ignored, because it counts from the machine's start.
    """
    timing = mapping(bubble, "timingInfo")
    sent = (timing.get("clientRpcSendTime"), timing.get("clientEndTime"))
    epochs = (value for value in sent if isinstance(value, int | float) and value > _MIN_EPOCH_MS)
    return parse_time(bubble.get("createdAt")) or next(map(parse_time, epochs), None)


class Talk:
    """A converter of chat messages (bubbles) into turns.

    A bubble without a time gets the time of the previous bubble.
    """

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)
        self.time = session.started

    def take(self, bubble: Bubble, when: datetime | None = None) -> Items:
        """Yield the turns of one bubble. ``when`` is the default time."""
        self.time = _time(bubble) or when or self.time
        is_owners = _is_owners(bubble)
        if is_owners is None:
            self.source.unknown(f"bubble {bubble.get('type')}")
        elif is_owners:
            yield from self.owner(bubble)
        else:
            yield from self.agent(bubble)

    def owner(self, bubble: Bubble) -> Items:
        """Yield a prompt from a person, or from the calling agent in the session of a sub-agent."""
        yield from self.talk.write(self.talk.prompter, _words(bubble), self.time, bubble)
        places = (mapping(bubble, "context"), mapping(bubble, "context", "mentions"))
        if bubble.get("useWeb") or any(
            place.get(key) for place in places for key in _OUTSIDE_FIELDS
        ):
            self.talk.exchange.unseen()  # the pages that the agent received are not recorded

    def agent(self, bubble: Bubble) -> Items:
        """Start a turn if a bubble has words. Otherwise, add its tool call to the open turn."""
        info = bubble.get("modelInfo")
        model = info.get("modelName") if isinstance(info, dict) else bubble.get("modelType")
        self.talk.learn(model=model if isinstance(model, str) and model != "default" else None)
        counts = mapping(bubble, "tokenCount")
        self.talk.spend(
            Tokens(total(counts, "inputTokens"), 0, total(counts, "outputTokens")).bounded
        )
        if any(isinstance(bubble.get(key), str) for key in ("text", "rawText")) and (
            words := _words(bubble).strip()
        ):
            yield from self.open(words)
            self.talk.add_text(words)
        called = mapping(bubble, "toolFormerData")
        if name := string(called, "name"):  # without a name, a bubble only has a state here
            if self.talk.opened is None:
                yield from self.open(f"call {name}")
            self.call(name, called)

    def open(self, seed: str) -> Items:
        identity = self.talk.new_id(Speaker.AGENT, None, seed)
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False))

    def call(self, name: str, called: Values) -> None:
        raw = called.get("rawArgs")
        is_given = raw and (not isinstance(raw, str) or raw.strip() not in ("", "{}"))
        call_id = self.talk.add_call(
            str(called.get("toolCallId") or ""), name, raw if is_given else called.get("params")
        )
        result, error = called.get("result"), called.get("error")
        output = result_text(error if result is None else result)
        call_outcome = _outcome(called, output)
        if call_outcome is not None:
            self.talk.result(call_id, call_outcome, lambda: output)
        if call_outcome == "ok" and not output and self.talk.calls[call_id].outside:
            self.talk.exchange.unseen()


def result_text(result: object) -> str:
    """Return a tool's output from the JSON that Cursor stores."""
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
    """Return the words in a message that the editor stores as a tree."""
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


def _outcome(called: Values, output: str) -> str | None:
    """Return the outcome of a tool call, or None if the call has not finished."""
    result, error = called.get("result"), called.get("error")
    result = error if result is None else result
    facts = mapping(
        plain(result) if isinstance(result, str) and result.lstrip()[:1] == "{" else result
    )
    status = str(called.get("status") or "").lower()
    if (
        status in _DECLINED_STATES
        or called.get("userDecision") == "rejected"
        or facts.get("rejected") is True
    ):
        return "rejected"
    code = next((facts[key] for key in _EXIT_CODES if type(facts.get(key)) is int), None)
    if status == "error" or error:
        return outcome(output or result_text(error), exit_code=code or None, is_error=True)
    if status in ("completed", "success", "") and (result is not None or status):
        return outcome(output, exit_code=code)
    return None


# -- ``state.vscdb``: workspace databases and the global database --------------
# 1. 2023-24, chat pane of a workspace: tabs with bubbles, at one key, without times. 2. Late 2024,
# composers of a workspace: conversations with bubbles, at one key. A composer opened from the chat
# pane starts with a copy of the chat, which is skipped. 3. Since 2025, global database: one key for
# the order of a conversation's bubbles, and one key for each bubble. The tables also contain
# passwords and tokens, so only the keys in ``sql/editors.sql`` are read.


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


Composer = Values
"""Cursor's record of a conversation. It contains the bubbles, or only their order."""

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

    # The first two generations, with all data at one key

    def workspace(self) -> Items:
        composers = [
            (composer, self.bubbles(composer.get("conversation")))
            for composer in objects(self.value_at(COMPOSERS), "allComposers")
            if composer.get("conversation")  # newer versions store only headers here
        ]
        composers.sort(key=lambda item: str(item[0].get("createdAt")))
        prompts = self.prompt_times()
        opened: dict[Exchange, datetime] = {}
        for composer, bubbles in composers:
            time = parse_time(composer.get("createdAt"))
            if time:  # time of the chat from which the composer was opened
                opened = {**dict.fromkeys(_exchanges(bubbles[:2]), time), **opened}
        seen: set[Exchange] = set()
        yield from self.tabs(prompts, opened, seen)
        for composer, bubbles in composers:
            new_bubbles = _without_copies(bubbles, seen)
            if new_bubbles and self.marks.is_new(str(composer.get("composerId")), composer):
                yield from self.talk(
                    self.session(composer, self.folder),
                    new_bubbles,
                    _times(new_bubbles, prompts, opened),
                )

    def value_at(self, key: str) -> Any:
        """Return the value at a key. An invalid value is counted as corrupt."""
        raw = as_bytes(item(self.tables, key))
        value = plain(raw) if raw else None
        if raw and value is None:
            self.source.corrupt()
        return value

    def tabs(
        self, prompts: Prompts, opened: Mapping[Exchange, datetime], seen: set[Exchange]
    ) -> Items:
        """Yield the tabs of the chat pane, oldest first.

        A later tab can begin with a copy of an earlier tab. The copied exchanges are left out.
        """
        tabs = objects(self.value_at(CHAT), "tabs")
        for tab in sorted(tabs, key=lambda tab: str(tab.get("lastSendTime"))):
            name = string(tab, "tabId")
            if name is None:
                self.source.corrupt()
                continue
            bubbles = _without_copies(self.bubbles(tab.get("bubbles")), seen)
            if bubbles and self.marks.is_new(name, tab):
                times = _times(bubbles, prompts, opened, parse_time(tab.get("lastSendTime")))
                session = Session(
                    TOOL,
                    name,
                    title=_title(tab.get("chatTitle")),
                    cwd=self.folder,
                    label=self.label,
                    started=min((time for time in times if time), default=None),
                )
                yield from self.talk(session, bubbles, times)

    def prompt_times(self) -> Prompts:
        """Map each prompt text to the times at which it was sent."""
        times: Prompts = {}
        for prompt in objects_in(self.value_at(PROMPTS)):
            words, time = string(prompt, "textDescription"), parse_time(prompt.get("unixMs"))
            if words and time:
                times.setdefault(words.strip(), []).append(time)
        return times

    # The third generation, with one key per conversation and one key per bubble

    def conversations(self) -> Items:
        written = self.written()
        for name, row, size in self.tables.all(statement("cursor_composers")):
            is_new = self.marks.is_new(name, row, size)
            if is_new or name in written:
                yield from self.conversation(name)

    def written(self) -> set[str]:
        """Return the ids of conversations with new bubbles since the last reading."""
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
        rows = self.tables.all(statement("cursor_composer"), composer=name)
        raw = as_bytes(rows[0][0]) if rows else b""
        composer = plain(raw) if raw else {}
        if not isinstance(composer, dict):
            self.source.corrupt()
            return
        bubbles = self.bubbles_of(name, composer)
        first = next(bubbles, None)
        if first is None:
            return
        uris = first.get("workspaceUris")
        uri = uris[0] if isinstance(uris, list) and uris and isinstance(uris[0], str) else None
        folder = folder_of(uri) or _workspace_of(composer) or self.folder
        session = self.session(composer, folder or self.folders.get(name))
        is_being_written = bool(
            composer.get("status") == "generating" or composer.get("generatingBubbleIds")
        )
        yield from self.talk(
            replace(session, native_id=name), _chain(first, bubbles, is_being_written)
        )

    def bubbles_of(self, name: str, composer: Composer) -> Iterator[Bubble]:
        if composer.get("conversation"):
            yield from self.bubbles(composer["conversation"])
            return
        inline = mapping(composer, "conversationMap")
        for header in objects(composer, "fullConversationHeadersOnly"):
            bubble_id = header.get("bubbleId")
            if not isinstance(bubble_id, str):
                self.source.corrupt()
                continue
            rows = self.tables.all(statement("cursor_bubble"), composer=name, bubble=bubble_id)
            raw = as_bytes(rows[0][0]) if rows else b""
            if raw or bubble_id in inline:  # Cursor removes old bubbles
                yield from self.bubbles([plain(raw) if raw else inline[bubble_id]])

    @cached_property
    def folders(self) -> Mapping[str, str]:
        """The folder of each conversation, from this database and from those of workspaces."""
        folders = (
            dict(_list_conversations(self.tables, HEADERS, None))
            if has_columns(self.tables, EDITOR_TABLE)
            else {}
        )
        workspaces = self.source.path.parent.parent / "workspaceStorage"
        for path in sorted(workspaces.glob("*/state.vscdb")):
            folder, _ = workspace_of(path)
            tables = self.source.look(path) if folder else None
            if tables and has_columns(tables, EDITOR_TABLE):
                folders = {**dict(_list_conversations(tables, COMPOSERS, folder)), **folders}
        return folders

    # All generations

    def session(self, composer: Composer, folder: str | None) -> Session:
        model = string(composer.get("modelConfig"), "modelName")
        inner = composer.get("subagentInfo")
        is_inner = bool(inner or composer.get("isBestOfNSubcomposer"))
        return Session(
            TOOL,
            str(composer.get("composerId")),
            title=_title(composer.get("name")),
            cwd=folder,
            label=self.label,
            branch=string(composer, "createdOnBranch"),
            kind=SessionKind.SUBAGENT if is_inner else SessionKind.MAIN,
            parent=string(inner, *_PARENTS),
            started=parse_time(composer.get("createdAt")),
            model=model if model != "default" else None,
        )

    def bubbles(self, values: object) -> list[Bubble]:
        """Return the bubbles in a list. Invalid ones are counted."""
        bubbles = objects_in(values)
        for _ in range(len(values) - len(bubbles) if isinstance(values, list) else 0):
            self.source.corrupt()
        return bubbles

    def talk(
        self, session: Session, bubbles: Iterable[Bubble], times: Iterable[datetime | None] = ()
    ) -> Items:
        """Yield a session and its turns. Bubbles without a time get a time from ``times``."""
        talk = Talk(Part(self.source), session)
        for bubble, when in zip(bubbles, chain(times, repeat(None)), strict=False):
            yield from talk.take(bubble, when)
        yield from talk.talk.end()

    def save(self) -> None:
        self.marks.save()
        if self.last_row:
            rows = self.tables.all(statement("cursor_key_at"), row=self.last_row)
            self.source.carry |= {"row": self.last_row, "key": rows[0][0] if rows else None}


def _chain(first: Bubble, rest: Iterator[Bubble], is_being_written: bool) -> Iterator[Bubble]:
    """Yield all bubbles. An agent's last bubble is left out while it can still grow."""
    previous = first
    for bubble in rest:
        yield previous
        previous = bubble
    if _is_owners(previous) or not is_being_written:
        yield previous


def _exchanges(bubbles: Sequence[Bubble]) -> Iterator[Exchange]:
    for prompt, answer in pairwise(bubbles):
        if _is_owners(prompt) and _is_owners(answer) is False:
            yield _words(prompt).strip(), _words(answer).strip()


def _times(
    bubbles: Sequence[Bubble],
    prompts: Prompts,
    opened: Mapping[Exchange, datetime],
    sent: datetime | None = None,
) -> list[datetime | None]:
    """Return the time of each prompt, or ``None`` if the time is unknown.

    ``prompts``: times at which each text was typed. ``opened``: time of each chat, keyed by its
    first exchange. ``sent``: time of the last prompt.
    """
    known_times: list[datetime | None] = []
    times_by_prompt = {words: iter(times) for words, times in prompts.items()}
    typed = [_words(bubble).strip() if _is_owners(bubble) else "" for bubble in bubbles]
    last = max((at for at, words in enumerate(typed) if words), default=-1)
    for at, words in enumerate(typed):
        exchange = (words, _words(bubbles[at + 1]).strip()) if at + 1 < len(bubbles) else ("", "")
        time = words and (next(times_by_prompt.get(words, iter(())), None) or opened.get(exchange))
        known_times.append(time or (sent if at == last else None))
    return known_times


def _without_copies(bubbles: Sequence[Bubble], seen: set[Exchange]) -> Sequence[Bubble]:
    """Return a conversation without exchanges at its start that are copies of earlier exchanges."""
    while (first := next(_exchanges(bubbles[:2]), None)) and first in seen:
        bubbles = bubbles[2:]
    seen |= set(_exchanges(bubbles))
    return (
        bubbles if any(_words(bubble) or _is_owners(bubble) is False for bubble in bubbles) else ()
    )


def _list_conversations(tables: Tables, key: str, folder: str | None) -> Iterator[tuple[str, str]]:
    """Yield the id and the folder of each conversation in a stored list."""
    for composer in objects(plain(as_bytes(item(tables, key))), "allComposers"):
        name, composer_folder = composer.get("composerId"), folder or _workspace_of(composer)
        if isinstance(name, str) and composer_folder:
            yield name, composer_folder


def _workspace_of(composer: Composer) -> str | None:
    uri = mapping(composer, "workspaceIdentifier").get("uri")
    return folder_of(uri if isinstance(uri, str) else string(uri, "external", "fsPath", "path"))


def _title(name: object) -> str | None:
    words = name.strip() if isinstance(name, str) else ""
    return words if words and words not in _UNNAMED else None


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
    versions="2024; `_v` 3 to 10*",
    reads="branch; sub-agents; Copilot's chats",
    leaves_out="checkpoints; edits; agentKv",
)


# -- Fields of a Protocol Buffers message, without a schema --------------------
# See https://protobuf.dev/programming-guides/encoding/.


_VARINT, _FIXED_8, _LENGTH, _FIXED_4 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


Field = tuple[int, bytes]
"""The number and the bytes of a field. A field without a length has no bytes."""


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
            raise ValueError("unknown kind of field")
        if number == 0 or at + length > len(data):
            raise ValueError("a field extends past its message")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MAX_VARINT_BYTES):
        byte = data[at + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number does not end")


# -- Command line agent: ``~/.cursor/chats/<folder>/<id>/store.db``, one session per database
# Blobs are named by their content. The newest root lists the message ids in order. Messages are
# JSON. Older versions use Protocol Buffers, of which only the words are known. Messages have no
# times.


_STORE_TABLES = {"blobs": {"id", "data"}, "meta": {"key", "value"}}
_DIGEST_BYTES = 32
_MESSAGES, _WORKSPACE = 1, 9
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FOLDER = re.compile(r"^Workspace Path: (.+?)\s*$", re.MULTILINE)


class _StoreReader(MessageReader):
    def __init__(self, source: Source) -> None:
        self.whole = source
        self.tables = tables_of(source)
        self.facts = self.read_facts()
        model = string(self.facts, "lastUsedModel")
        session = Session(
            TOOL,
            str(self.facts.get("agentId") or source.path.parent.name),
            title=_title(self.facts.get("name")),
            started=parse_time(self.facts.get("createdAt")),
            model=model if model != "default" else None,
        )
        super().__init__(Part(source), session)

    def __iter__(self) -> Items:
        marks = Marks(self.whole)
        if marks.is_new(
            self.talk.session.native_id, self.facts.get("latestRootBlobId"), self.facts.get("name")
        ):
            messages, folder = self.root()
            self.talk.learn(cwd=folder)
            for data in self.listed(messages) if messages else self.everything():
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
            self.whole.corrupt()
        return mapping(facts)

    def root(self) -> tuple[list[str], str | None]:
        """Return the message ids and the folder from the newest root blob.

        A blob in an unknown format has no ids.
        """
        data = self.blob(self.facts.get("latestRootBlobId"))
        fields = (not data.lstrip().startswith(b"{") and read_fields(data)) or []
        folders = (_decode(data) for number, data in fields if number == _WORKSPACE)
        return [
            data.hex()
            for number, data in fields
            if number == _MESSAGES and len(data) == _DIGEST_BYTES
        ], folder_of(next(filter(None, folders), None))

    def blob(self, identity: object) -> bytes:
        rows = self.tables.all(statement("cursor_store_blob"), id=str(identity))
        return as_bytes(rows[0][0]) if rows else b""

    def listed(self, messages: Iterable[str]) -> Iterator[bytes]:
        for data in map(self.blob, messages):
            if data:
                yield data
            else:
                self.source.unknown("message without its blob")

    def everything(self) -> Iterator[bytes]:
        """Yield all blobs in writing order, for a store whose list of messages is unusable."""
        last = 0
        while rows := self.tables.all(statement("cursor_store_blobs"), row=last):
            for row, data in rows:
                last = row
                yield as_bytes(data)

    # Messages

    def take(self, data: bytes) -> Items:
        if not data.lstrip().startswith(b"{"):
            yield from self.packed(data)
            return
        message = mapping(plain(data))
        role, blocks = message.get("role"), content_blocks(message)
        if role == "user":
            yield from self.user(self.words(blocks), message, *blocks)
        elif role == "assistant":
            yield from self.agent(self.words(blocks).strip(), blocks)
        elif role == "tool":
            for block in blocks:
                self.result(block)
        elif role != "system":
            self.source.unknown(f"role {role}" if "role" in message else "blob")

    def packed(self, data: bytes) -> Items:
        """Yield a message in an older format. The message has an id only if a person typed it."""
        fields = read_fields(data) or []
        first = _first(fields)
        if len(first) == _DIGEST_BYTES:
            first = b""
        if first and any(
            number == 2 and _UUID.fullmatch(_decode(value)) for number, value in fields
        ):
            yield from self.user(_decode(first))
        elif words := _decode(_first(read_fields(first) or [])).strip():
            yield from self.agent(words, ())
        else:
            self.source.unknown("blob")

    def user(self, text: str, *claims: Values) -> Items:
        prompt = yield from self.prompt(text, *claims)
        folder = _FOLDER.search(prompt.context)
        if folder and not self.talk.session.cwd:
            self.talk.learn(cwd=folder[1])

    def result(self, block: Values) -> None:
        output = result_text(block.get("result", block.get("output")))
        is_error = block.get("isError") is True
        result = (
            "rejected"
            if output[:200].lower().startswith("rejected")
            else outcome(output, is_error=is_error)
        )
        self.talk.result(str(block.get("toolCallId") or ""), result, lambda: output)


def _first(fields: Iterable[Field]) -> bytes:
    return next((data for number, data in fields if number == 1), b"")


def _decode(data: bytes) -> str:
    """Return bytes as text, or an empty string if they are not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _roots_store(places: Places) -> Sequence[Root]:
    variables = ("CURSOR_DATA_DIR", "CURSOR_CONFIG_DIR")
    folders = [places.home / ".cursor", *(places.folder(name, ".cursor") for name in variables)]
    folders.append(places.folder("XDG_CONFIG_HOME", ".config") / "cursor")
    return [Root(folder / "chats", ("*/*/store.db",)) for folder in dict.fromkeys(folders)]


ADAPTER_STORE = Adapter(
    tool=TOOL,
    label="Cursor",
    roots=_roots_store,
    sniff=with_columns(_STORE_TABLES),
    parse=_StoreReader,
    resume=("cursor-agent", "--resume", "{id}"),
    versions="command line*",
    leaves_out="tokens; times; calls of packed messages",
)
