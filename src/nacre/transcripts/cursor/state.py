"""Cursor's ``state.vscdb``: three generations of conversations, in the workspaces' databases and in the global one.

1. 2023-24, the chat pane of a workspace: tabs of bubbles under one key, without times.
2. Late 2024, the composers of a workspace: conversations of bubbles under one key. One that was opened out of the chat
   pane begins with a copy of what was said there, which is left out.
3. 2025 on, the global database: a key a conversation, and a key a bubble; the conversation has their order.

The tables hold passwords and tokens, too: only the keys named in ``sql/editors.sql`` are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, pairwise, repeat
from typing import Any, TypeVar

import msgspec

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source, Tables
from nacre.transcripts.copilot.editor_state import (
    chat_sessions,
    digest,
    has_editor_table,
    item,
    item_mark,
    state_roots,
    workspace_of,
)
from nacre.transcripts.cursor.bubbles import TOOL, Bubble, Said, Talk, bubble_of
from nacre.transcripts.databases import Marks, Part, as_bytes, log_of, statement, tables_of
from nacre.transcripts.editors import ENVIRONMENT, folder_of
from nacre.transcripts.objects import decode, parse_time
from nacre.transcripts.whole_json import string
from nacre.values.session import Session, SessionKind

CHAT = "workbench.panel.aichat.view.aichat.chatdata"
COMPOSERS = "composer.composerData"
HEADERS = "composer.composerHeaders"
PROMPTS = "aiService.generations"

_KEY_VALUE = "cursorDiskKV"
_BUBBLE_KEY = "bubbleId:"
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_UNNAMED = frozenset({"New Chat", "New Agent", "New Composer", "Untitled"})
_PARENTS = ("parentComposerId", "parentConversationId", "parentAgentId", "rootParentConversationId", "parentId")


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


def parse(source: Source) -> Said:
    """Parse one database; see :class:`~nacre.transcripts.adapter.Adapter`."""
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

    def workspace(self) -> Said:
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
                yield from self.talk(self.session(composer, self.folder), own, _times(own, prompts, opened))

    def under(self, key: str, decoder: msgspec.json.Decoder[T]) -> T | None:
        """What lies under a key; what is there and cannot be understood is counted."""
        raw = as_bytes(item(self.tables, key))
        found = decode(decoder, raw) if raw else None
        if raw and found is None:
            self.source.corrupt()
        return found

    def tabs(self, prompts: Prompts, opened: Mapping[Exchange, datetime], said: set[Exchange]) -> Said:
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
                    TOOL, tab.tabId, title=_title(tab.chatTitle), cwd=self.folder, label=self.label,
                    started=min((time for time in times if time), default=None),
                )  # fmt: skip
                yield from self.talk(session, bubbles, times)

    def listed_composers(self) -> list[tuple[msgspec.Raw, Composer, list[Bubble]]]:
        """The composers of a workspace, the oldest first. Newer versions keep headers here alone."""
        kept = self.under(COMPOSERS, _COMPOSERS) or Composers()
        found = [(raw, decode(_COMPOSER, bytes(raw))) for raw in kept.allComposers]
        known = [(raw, one, self.bubbles(one.conversation)) for raw, one in found if one and one.conversation]
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

    def conversations(self) -> Said:
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
        return {key.split(":")[1] for key, _ in rows if isinstance(key, str) and key.startswith(_BUBBLE_KEY)}

    def conversation(self, name: str) -> Said:
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
        yield from self.talk(replace(session, native_id=name), _chain(first, bubbles, composer.is_being_written))

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
            self._folders = dict(_listed(self.tables, HEADERS, None)) if has_editor_table(self.tables) else {}
            beside = self.source.path.parent.parent / "workspaceStorage"
            for path in sorted(beside.glob("*/state.vscdb")) if beside.is_dir() else ():
                folder, _ = workspace_of(path)
                tables = self.source.look(path) if folder else None
                if tables and has_editor_table(tables):
                    self._folders |= {
                        key: value for key, value in _listed(tables, COMPOSERS, folder) if key not in self._folders
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
            TOOL, str(composer.composerId), title=_title(composer.name), cwd=folder, label=self.label,
            branch=branch if isinstance(branch, str) and branch else None,
            kind=SessionKind.SUBAGENT if is_inner else SessionKind.MAIN, parent=parent,
            started=parse_time(composer.createdAt), model=model if model != "default" else None,
        )  # fmt: skip

    def bubbles(self, raws: Sequence[msgspec.Raw | bytes]) -> list[Bubble]:
        """Bubbles out of their JSON; what is none is counted."""
        found = [bubble_of(bytes(raw)) for raw in raws]
        for bubble in found:
            if bubble is None:
                self.source.corrupt()
        return [bubble for bubble in found if bubble]

    def talk(
        self, session: Session, bubbles: Iterable[Bubble], times: Iterable[datetime | None] = ()
    ) -> Said:  # fmt: skip
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
    bubbles: Sequence[Bubble], prompts: Prompts, opened: Mapping[Exchange, datetime], sent: datetime | None = None
) -> list[datetime | None]:
    """When what was typed was sent, as far as something tells: the list of prompts, a composer that was opened out of
    the exchange, for the last one the tab."""
    found: list[datetime | None] = []
    asked = {words: iter(times) for words, times in prompts.items()}
    last = max((at for at, bubble in enumerate(bubbles) if bubble.is_owners and bubble.words.strip()), default=-1)
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
    return next((folder_of(uri[key]) for key in ("external", "fsPath", "path") if isinstance(uri.get(key), str)), None)


def _title(name: object) -> str | None:
    return name.strip() if isinstance(name, str) and name.strip() and name.strip() not in _UNNAMED else None


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
    tool=TOOL, label="Cursor", roots=_roots, sniff=_sniff, parse=parse, beside=log_of,
    versions="workspace database of 2024; conversations of 2025 and later (_v 3 to 10, from their description)",
    reads=(
        "what was said", "tool calls with outcome", "titles", "folder", "branch", "model", "tokens, where bubbles tell",
        "times, where there are any", "sub-agents", "Copilot's sessions in the same database",
    ),
    leaves_out=("thinking", "checkpoints", "edits' contents", "attachments", "agentKv", "prompts alone"),
    environment=ENVIRONMENT,
)  # fmt: skip
