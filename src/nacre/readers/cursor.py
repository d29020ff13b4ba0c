"""Cursor: agent transcripts, and the databases of the editor and the command-line program."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import msgspec

from nacre.base.frozen import frozen
from nacre.base.plain import Values, mapping, objects, objects_in, string
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
    beside,
    content_blocks,
    has_columns,
    modified,
    parse_time,
    plain,
    statement,
    tables_of,
    value_of,
    with_columns,
)
from nacre.readers.conversation import outcome, tokens_of
from nacre.readers.copilot import workspace_of
from nacre.readers.trust import Before, Conversation, folder_of, user_folders
from nacre.values.session import Session, SessionKind, Trust, Turn

TOOL = "cursor"

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_STAMP = re.compile(r"<timestamp>(.*?)</timestamp>", re.DOTALL)
_WRAPPING = re.compile(
    r"<(attached_files|open_and_recently_viewed_files|git_status|git_diff\w*|system_reminder|timestamp|cursor_commands"
    r"|user_info|rules|agent_skills|available_skills|manually_attached_skills|project_layout|additional_data"
    r"|reproduction_steps|image_files|external_links|uploaded_documents|agent_transcripts|mcp_\w+)\b[^>]*>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
_WRITTEN_TIME = re.compile(
    r"(?:\w+, )?(\w+ \d{1,2}, \d{4}),? (?:at )?(\d{1,2}:\d{2}(?::\d{2})? [AP]M)(?: \(UTC([+-]\d{1,2})(?::?(\d{2}))?\))?"
)
_SLUG = re.compile(r"[^A-Za-z0-9]+")
_MAX_FOLDERS_SEARCHED = 20_000


@frozen
class Prompt:
    """A user message, split into the typed text, the context that Cursor added, and the time.

    ``is_sure`` is False if there are several pairs of tags, because attached files may contain
    tags.
    """

    words: str
    context: str = ""
    time: datetime | None = None
    is_sure: bool = True


def read_prompt(text: str) -> Prompt:
    """Parse a user message, taking the typed text from its last pair of tags."""
    stamp = _STAMP.search(text)
    queries = _QUERY.findall(text)
    words = queries[-1] if queries else _WRAPPING.sub("", text)
    wrappings = (match[0] for match in _WRAPPING.finditer(text))
    context = _QUERY.sub("", text) if queries else "\n".join(wrappings)
    time = _time(stamp[1]) if stamp else None
    return Prompt(words.strip(), context.strip(), time, len(queries) < 2)


def _time(text: str) -> datetime | None:
    match = _WRITTEN_TIME.search(text)
    if not match or not match[3]:
        return None
    sign = -1 if match[3].startswith("-") else 1
    zone = timezone(
        sign * timedelta(hours=min(abs(int(match[3])), 23), minutes=min(int(match[4] or 0), 59))
    )
    written = f"{match[1]} {match[2]}"
    for month, clock in product(("%b", "%B"), ("%I:%M %p", "%I:%M:%S %p")):
        form = f"{month} %d, %Y {clock}"
        with suppress(ValueError, OverflowError):
            return datetime.strptime(written, form).replace(tzinfo=zone).astimezone(UTC)
    return None


def roots(places: Places, suffix: str) -> Sequence[Root]:
    """Return the folders of agent transcripts, and the patterns of files that end in ``suffix``."""
    folders = (places.home / ".cursor", places.folder("CURSOR_CONFIG_DIR", ".cursor"))
    patterns = (f"*/agent-transcripts/**/*{suffix}",)
    return [Root(folder / "projects", patterns) for folder in dict.fromkeys(folders)]


def session_of(source: Source) -> Session:
    """Return the session of a transcript. Its id is the file name."""
    path = source.path
    is_child = path.parent.name == "subagents"
    folder = next(
        (parent.parent for parent in path.parents if parent.name == "agent-transcripts"), None
    )
    return Session(
        TOOL,
        path.stem,
        cwd=string(beside(folder / ".workspace-trusted"), "workspacePath")
        or _unslug(Path(folder.anchor), folder.name.lower())
        if folder
        else None,
        label=folder.name if folder else None,
        kind=SessionKind.SUBAGENT if is_child else SessionKind.MAIN,
        parent=path.parent.parent.name if is_child else None,
        started=modified(source),
    )


def _unslug(root: Path, slug: str) -> str | None:
    pending = [(root, slug)]
    searched = 0
    matches: list[Path] = []
    while pending and searched < _MAX_FOLDERS_SEARCHED:
        folder, remaining_slug = pending.pop()
        for child in folder.glob("*/"):
            if child.is_symlink():
                continue
            searched += 1
            name = _SLUG.sub("-", child.name).strip("-").lower()
            if name and remaining_slug == name:
                matches.append(child)
            elif name and remaining_slug.startswith(f"{name}-"):
                pending.append((child, remaining_slug[len(name) + 1 :]))
    return str(matches[0]) if len(matches) == 1 else None


# -- Messages of any of Cursor's formats ----------------------------------------


_CALLS = frozenset({"tool_use", "tool_call", "tool-call"})
_RESULTS = frozenset({"tool_result", "tool-result"})
_QUIET = frozenset(
    "thinking redacted_thinking reasoning redacted-reasoning image image_url file".split()
)


class MessageReader:
    """A converter of Cursor's messages to turns.

    A message without a time gets the previous message's time.
    """

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)
        self.time = session.started

    def words(self, blocks: Sequence[Values]) -> str:
        """Join a message's text blocks, and count blocks of unknown types."""
        texts = []
        for block in blocks:
            kind = block.get("type")
            if kind in ("text", None):
                texts.append(str(block.get("text") or ""))
            elif kind not in _QUIET | _CALLS | _RESULTS:
                self.source.unknown(f"block {kind}")
        return "\n\n".join(texts)

    def prompt(
        self, text: str, *claims: Values, is_sure: bool = True
    ) -> Generator[Session | Turn, None, Prompt]:
        """Yield the turn of a prompt, and return the parsed prompt."""
        cleaned = self.talk.clean(text)
        prompt = read_prompt(cleaned.text)
        if prompt.context:
            self.talk.exchange.record(prompt.context)
        if prompt.words:
            self.time = prompt.time or self.time
            yield from self.talk.write(
                self.talk.prompter,
                prompt.words,
                self.time,
                *claims,
                flags=cleaned.flags,
                trust=Trust.TRUSTED if is_sure and prompt.is_sure else Trust.UNTRUSTED,
            )
        return prompt

    def agent(self, text: str, blocks: Sequence[Values], before: Before | None = None) -> Items:
        calls = [block for block in blocks if block.get("type") in _CALLS]
        if not (text or calls):
            return
        yield from self.open(text or f"call {string(calls[0], 'name', 'toolName')}", before)
        self.talk.add_text(text)
        for call in calls:
            self.talk.add_call(
                string(call, "id", "toolCallId") or "",
                string(call, "name", "toolName") or "tool",
                next((call[key] for key in ("input", "arguments", "args") if key in call), None),
            )

    def open(self, seed: str, before: Before | None = None) -> Items:
        yield from self.talk.open(None, self.time, seed=seed, before=before)

    def miss(self) -> None:
        """Distrust the agent's next statements if the result of an external call is missing."""
        if any(
            call.call.outcome is None and (call.outside or call.own)
            for call in self.talk.calls.values()
        ):
            self.source.carry["unseen"] = True
        if self.source.carry.get("unseen"):
            self.talk.exchange.record_unseen()


# -- Text transcripts ``agent-transcripts/<id>.txt``, with headings for the speaker
# A tool's output can contain such headings. Text under the user's heading is therefore untrusted
# after a result, and until the end of the session if external text was read.


_MARK = re.compile(
    r"^(user|assistant):[ \t]*$|^\[(Thinking|Tool call|Tool result)\][ \t]*(.*)$", re.MULTILINE
)
_START = re.compile(r"\A\ufeff?\s*user:[ \t]*\n")
_ARGUMENT = re.compile(r"^[ \t]*([A-Za-z_]+):[ \t]*(.+)$", re.MULTILINE)


class _Reader(MessageReader):
    def __init__(self, source: Source) -> None:
        super().__init__(source, session_of(source))
        self.speaker = "user"
        self.call = ""
        self.after_result = False
        self.after_outside = False

    def __iter__(self) -> Items:
        text = self.source.text().replace("\r\n", "\n")
        marks = list(_MARK.finditer(text))
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        for mark, end in zip(marks, ends, strict=False):
            body = text[mark.end() : end].strip()
            if mark[1]:
                yield from self.turn(mark[1], body)
            elif self.speaker == "assistant":
                yield from self.aside(mark[2], mark[3].strip(), body)
            else:
                self.talk.exchange.record(body)
        yield from self.talk.end()

    def turn(self, speaker: str, body: str) -> Items:
        self.speaker = speaker
        is_sure = not (self.after_result or self.after_outside)
        self.after_result = False
        if speaker == "assistant":
            self.miss()
            yield from self.open(body)
            self.talk.add_text(body)
        else:
            yield from self.prompt(body, is_sure=is_sure)

    def aside(self, kind: str, first_line: str, body: str) -> Items:
        if kind == "Thinking":
            return
        if kind == "Tool result":
            output = f"{first_line}\n{body}"
            called = self.talk.calls.get(self.call)
            self.after_result = True
            self.after_outside = self.after_outside or called is None or called.outside
            self.talk.result(self.call, outcome(), output)
            return
        if self.talk.opened is None:
            yield from self.open(first_line)
        name, _, first_argument = first_line.partition(" ")
        arguments = {
            match[1]: match[2] for match in _ARGUMENT.finditer(f"{first_argument}\n{body}")
        }
        self.call = self.talk.add_call("", name or "tool", arguments or body)


ADAPTER = Adapter(
    tool=TOOL,
    label="Cursor",
    roots=partial(roots, suffix=".txt"),
    sniff=lambda head: (
        bool(_START.match(head.text.replace("\r\n", "\n"))) and b"\x00" not in head.data
    ),
    parse=_Reader,
    whole=True,
    versions="2025*",
    leaves_out="title; model; tokens; outcomes; times",
)


# -- Transcripts ``~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl``
# Messages have no ids, times, models or results. The session's id and time come from the file. If
# an external result might be missing, the agent's later text is not trusted.


_REDACTED = "[REDACTED]"
_OTHER_FORMAT_FIELDS = frozenset("type uuid id timestamp sessionId session_id".split())


class _TranscriptsReader(MessageReader):
    def __init__(self, source: Source) -> None:
        super().__init__(source, session_of(source))
        self.time = parse_time(source.carry.get("time")) or self.time

    def __iter__(self) -> Items:
        return self.talk.read(ANY, self.take)

    def take(self, offset: int, record: Any) -> Items:
        role, blocks = string(record, "role"), content_blocks(mapping(record, "message"))
        if role == "user":
            for block in blocks:
                if block.get("type") in _RESULTS:
                    self.result(block)
            prompt = yield from self.prompt(
                self.words(blocks), record, mapping(record, "message"), *blocks
            )
            if prompt.words and prompt.time:
                self.source.carry["time"] = prompt.time.isoformat()
        elif role == "assistant":
            self.talk.learn(model=string(record, "model"))
            self.miss()
            text = self.words(blocks).replace(_REDACTED, "").strip()
            yield from self.agent(text, blocks, self.talk.place(offset))
        elif isinstance(record, dict) and record.get("type") != "turn_ended":
            self.source.unknown(str(role or record.get("type") or "no role"))

    def result(self, block: Values) -> None:
        calls = self.talk.calls
        named = str(block.get("tool_use_id") or "")
        pending = [key for key, call in calls.items() if call.call.outcome is None]
        output = "\n".join(str(item.get("text") or "") for item in content_blocks(block))
        identity = named if named in calls else (pending[0] if pending else named)
        self.talk.result(identity, outcome(output, is_error=block.get("is_error") is True), output)


def _sniff_transcripts(head: Head) -> bool:
    first = head.first
    if first.get("role") not in ("user", "assistant") or not first.keys().isdisjoint(
        _OTHER_FORMAT_FIELDS
    ):
        return False
    return isinstance(mapping(first, "message").get("content"), list)


ADAPTER_TRANSCRIPTS = replace(
    ADAPTER,
    roots=partial(roots, suffix=".jsonl"),
    sniff=_sniff_transcripts,
    parse=_TranscriptsReader,
    whole=False,
    versions="2026",
    reads="sub-agents",
    fields=frozenset({"role", "message", "type", "status", "timestamp"}),
)


# -- Bubbles: the messages in the editor's databases ---------------------------
# An agent's answer spans many bubbles. One with text starts a turn, and the tool calls after it
# belong to that turn. Cursor also writes the conversation as text without ids. A turn's id is
# therefore derived from its text and how often it occurred, so that both copies are one session.


_FOLDERS = {"Cursor", ".cursor-server"}
_MIN_EPOCH_MS = 1_000_000_000_000
_EXIT_CODES = ("exitCode", "exitCodeV2", "exit_code")
_OUTPUTS = ("output", "contents", "stdout", "result", "text")
_DECLINED_STATES = ("rejected", "cancelled", "canceled")
_OUTSIDE_FIELDS = ("externalLinks", "selectedDocs", "useWeb", "selectedPullRequests")


Bubble = Values
"""A prompt (type 1 or ``user``), or an agent's text, thought or call (type 2 or ``ai``)."""


def _is_owners(bubble: Bubble) -> bool | None:
    kind = bubble.get("type")
    return {1: True, "user": True, 2: False, "ai": False}.get(
        kind if isinstance(kind, int | str) else ""
    )


def _words(bubble: Bubble) -> str:
    return string(bubble, "text", "rawText") or rich_words(bubble.get("richText"))


def _bubble_time(bubble: Bubble) -> datetime | None:
    timing = mapping(bubble, "timingInfo")  # clientStartTime counts from the machine's start
    sent = (timing.get("clientRpcSendTime"), timing.get("clientEndTime"))
    epochs = (value for value in sent if isinstance(value, int | float) and value > _MIN_EPOCH_MS)
    return parse_time(bubble.get("createdAt")) or next(map(parse_time, epochs), None)


class BubbleReader(MessageReader):
    """A converter of an editor's messages, called bubbles, to turns."""

    def take(self, bubble: Bubble) -> Items:
        self.time = _bubble_time(bubble) or self.time
        is_owners = _is_owners(bubble)
        if is_owners is None:
            self.source.unknown(f"bubble {bubble.get('type')}")
        elif is_owners:
            yield from self.owner(bubble)
        else:
            yield from self.answer(bubble)

    def owner(self, bubble: Bubble) -> Items:
        yield from self.talk.write(self.talk.prompter, _words(bubble), self.time, bubble)
        places = (mapping(bubble, "context"), mapping(bubble, "context", "mentions"))
        if bubble.get("useWeb") or any(
            place.get(key) for place in places for key in _OUTSIDE_FIELDS
        ):
            self.talk.exchange.record_unseen()  # pages sent to the agent are not recorded

    def answer(self, bubble: Bubble) -> Items:
        """Start a turn with a bubble's text, and add its tool call to the open turn."""
        info = bubble.get("modelInfo")
        model = info.get("modelName") if isinstance(info, dict) else bubble.get("modelType")
        self.talk.learn(model=model if isinstance(model, str) and model != "default" else None)
        self.talk.spend(tokens_of(mapping(bubble, "tokenCount")))
        if any(isinstance(bubble.get(key), str) for key in ("text", "rawText")) and (
            words := _words(bubble).strip()
        ):
            yield from self.open(words)
            self.talk.add_text(words)
        called = mapping(bubble, "toolFormerData")
        if name := string(called, "name"):  # a bubble without a name has only a state
            if self.talk.opened is None:
                yield from self.open(f"call {name}")
            self.call(name, called)

    def call(self, name: str, called: Values) -> None:
        raw = called.get("rawArgs")
        is_given = raw and (not isinstance(raw, str) or raw.strip() not in ("", "{}"))
        call_id = self.talk.add_call(
            str(called.get("toolCallId") or ""), name, raw if is_given else called.get("params")
        )
        result = called.get("result")
        result = called.get("error") if result is None else result
        output = result_text(result)
        call_outcome = _outcome(called, result, output)
        if call_outcome is not None:
            self.talk.result(call_id, call_outcome, output)
        if call_outcome == "ok" and not output and self.talk.calls[call_id].outside:
            self.talk.exchange.record_unseen()


def result_text(result: object) -> str:
    """Return a tool's output from the JSON that Cursor stores."""
    if isinstance(result, str):
        value = plain(result) if result.lstrip()[:1] in ("{", "[") else None
        return result_text(value) or result
    if isinstance(result, dict):
        for key in _OUTPUTS:
            if isinstance(result.get(key), str) and result[key].strip():
                return str(result[key])
        return msgspec.json.encode(result).decode() if result else ""
    return msgspec.json.encode(result).decode() if isinstance(result, list) and result else ""


def rich_words(rich: object) -> str:
    """Return the plain text of a message that is stored as a tree."""
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


def _outcome(called: Values, result: object, output: str) -> str | None:
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
    if status == "error" or called.get("error"):
        text = output or result_text(called.get("error"))
        return outcome(text, exit_code=code or None, is_error=True)
    if status in ("completed", "success", "") and (result is not None or status):
        return outcome(output, exit_code=code)
    return None


# -- ``state.vscdb``: workspace databases and the global database --------------
# 1. 2023-24, a workspace's chat pane: tabs with bubbles under one key, with only the last prompt's
# time. 2. Late 2024, a workspace's composers: conversations with bubbles under one key. A composer
# opened from the chat pane starts with a copy of the chat, which is skipped. 3. Since 2025, global
# database: one key for the order of a conversation's bubbles, and one key for each bubble.
# The tables also contain passwords and tokens, so only the keys in ``sql/editors.sql`` are read.


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
"""A conversation with its bubbles, or with only their order."""

Exchange = tuple[str, str]


EDITOR_TABLE = {"ItemTable": {"key", "value"}}
"""The columns of the table in an editor's database."""


def _item(tables: Tables, key: str) -> bytes:
    return as_bytes(value_of(tables, statement("editor_item"), key=key))


def parse(source: Source) -> Items:
    """Parse the conversations in an editor's database."""
    reader = _StateReader(source)
    if has_columns(reader.tables, EDITOR_TABLE):
        yield from reader.workspace()
    if reader.tables.columns(_KEY_VALUE):
        yield from reader.conversations()
    reader.save()


class _StateReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables: Tables = tables_of(source)
        self.marks = Marks(source)
        self.folder, self.label = workspace_of(source.path)
        self.last_row: int = source.carry.get("row", 0)

    # The first two generations, with all data under one key

    def workspace(self) -> Items:
        composers = [
            (composer, self.bubbles(composer.get("conversation")))
            for composer in objects(self.value_at(COMPOSERS), "allComposers")
            if composer.get("conversation")  # newer versions store only headers here
        ]
        composers.sort(key=lambda item: str(item[0].get("createdAt")))
        known_exchanges: set[Exchange] = set()
        yield from self.tabs(known_exchanges)
        for composer, bubbles in composers:
            new_bubbles = _without_copies(bubbles, known_exchanges)
            if new_bubbles and self.marks.is_new(str(composer.get("composerId")), composer):
                yield from self.talk(self.session(composer, self.folder), new_bubbles)

    def value_at(self, key: str) -> Any:
        raw = _item(self.tables, key)
        value = plain(raw) if raw else None
        if raw and value is None:
            self.source.corrupt()
        return value

    def tabs(self, known_exchanges: set[Exchange]) -> Items:
        tabs = objects(self.value_at(CHAT), "tabs")
        for tab in sorted(tabs, key=lambda tab: str(tab.get("lastSendTime"))):
            name = string(tab, "tabId")
            if name is None:
                self.source.corrupt()
                continue
            bubbles = _without_copies(self.bubbles(tab.get("bubbles")), known_exchanges)
            if bubbles and self.marks.is_new(name, tab):
                facts = {"name": tab.get("chatTitle"), "createdAt": tab.get("lastSendTime")}
                session = self.session({"composerId": name, **facts}, self.folder)
                yield from self.talk(session, bubbles)

    # The third generation, with one key per conversation and one key per bubble

    def conversations(self) -> Items:
        written = self.written()
        for name, row, size in self.tables.all(statement("cursor_composers")):
            is_new = self.marks.is_new(name, row, size)
            if is_new or name in written:
                yield from self.conversation(name)

    def written(self) -> set[str]:
        before, key = self.last_row, self.source.carry.get("key")
        self.last_row = value_of(self.tables, statement("cursor_last_row"))
        key_at_row = value_of(self.tables, statement("cursor_key_at"), row=before)
        if before == 0:
            return set()
        if self.last_row < before or key_at_row not in (None, key):  # rows were renumbered
            return {name for name, _, _ in self.tables.all(statement("cursor_composers"))}
        rows = self.tables.all(statement("cursor_written"), row=before)
        return {
            key.split(":")[1]
            for key, _ in rows
            if isinstance(key, str) and key.startswith(_BUBBLE_KEY)
        }

    def conversation(self, name: str) -> Items:
        raw = as_bytes(value_of(self.tables, statement("cursor_composer"), composer=name))
        composer = plain(raw) if raw else {}
        if not isinstance(composer, dict):
            self.source.corrupt()
            return
        bubbles = list(self.bubbles_of(name, composer))
        if not bubbles:
            return
        uris = bubbles[0].get("workspaceUris")
        uri = uris[0] if isinstance(uris, list) and uris and isinstance(uris[0], str) else None
        folder = folder_of(uri) or _workspace_of(composer) or self.folder
        session = self.session(composer, folder or self.folders.get(name))
        is_being_written = composer.get("status") == "generating" or composer.get(
            "generatingBubbleIds"
        )
        if is_being_written and not _is_owners(bubbles[-1]):
            del bubbles[-1]
        yield from self.talk(replace(session, native_id=name), bubbles)

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
            query = statement("cursor_bubble")
            raw = as_bytes(value_of(self.tables, query, composer=name, bubble=bubble_id))
            if raw or bubble_id in inline:  # Cursor removes old bubbles
                yield from self.bubbles([plain(raw) if raw else inline[bubble_id]])

    @cached_property
    def folders(self) -> Mapping[str, str]:
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
        bubbles = objects_in(values)
        for _ in range(len(values) - len(bubbles) if isinstance(values, list) else 0):
            self.source.corrupt()
        return bubbles

    def talk(self, session: Session, bubbles: Iterable[Bubble]) -> Items:
        reader = BubbleReader(Part(self.source), session)
        for bubble in bubbles:
            yield from reader.take(bubble)
        yield from reader.talk.end()

    def save(self) -> None:
        self.marks.save()
        if self.last_row:
            key = value_of(self.tables, statement("cursor_key_at"), row=self.last_row)
            self.source.carry |= {"row": self.last_row, "key": key}


def _exchanges(bubbles: Sequence[Bubble]) -> Iterator[Exchange]:
    for prompt, answer in pairwise(bubbles):
        if _is_owners(prompt) and _is_owners(answer) is False:
            yield _words(prompt).strip(), _words(answer).strip()


def _without_copies(bubbles: Sequence[Bubble], known_exchanges: set[Exchange]) -> Sequence[Bubble]:
    while (first := next(_exchanges(bubbles[:2]), None)) and first in known_exchanges:
        bubbles = bubbles[2:]
    known_exchanges |= set(_exchanges(bubbles))
    return (
        bubbles if any(_words(bubble) or _is_owners(bubble) is False for bubble in bubbles) else ()
    )


def _list_conversations(tables: Tables, key: str, folder: str | None) -> Iterator[tuple[str, str]]:
    for composer in objects(plain(_item(tables, key)), "allComposers"):
        name, composer_folder = composer.get("composerId"), folder or _workspace_of(composer)
        if isinstance(name, str) and composer_folder:
            yield name, composer_folder


def _workspace_of(composer: Composer) -> str | None:
    uri = mapping(composer, "workspaceIdentifier").get("uri")
    return folder_of(uri if isinstance(uri, str) else string(uri, "external", "fsPath", "path"))


def _title(name: object) -> str | None:
    words = name.strip() if isinstance(name, str) else ""
    return words if words and words not in _UNNAMED else None


def _roots(places: Places) -> Sequence[Root]:
    names = ("workspaceStorage/*/state.vscdb", "globalStorage/state.vscdb")
    folders = user_folders(places)
    return [Root(folder, names) for folder in folders if _FOLDERS & {*folder.parts}]


def _sniff(head: Head) -> bool:
    tables = head.database
    return (
        tables is not None
        and has_columns(tables, EDITOR_TABLE)
        and (
            bool(tables.columns(_KEY_VALUE))
            or any(_item(tables, key) for key in (CHAT, COMPOSERS, HEADERS, PROMPTS))
        )
    )


ADAPTER_STATE = Adapter(
    tool=TOOL,
    label="Cursor",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    versions="2024; `_v` 3 to 10*",
    reads="branch; sub-agents",
    leaves_out="checkpoints; edits; agentKv",
)


# -- Fields of a Protocol Buffers message, without a schema --------------------
# See https://protobuf.dev/programming-guides/encoding/.


_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}
"""Number of bytes of each fixed-size type of field."""
_MAX_VARINT_BYTES = 10


Field = tuple[int, bytes]
"""A field's number and bytes. The bytes are empty for fields of a fixed size."""


def read_fields(data: bytes) -> list[Field] | None:
    """Split a Protocol Buffers message into its fields, or return None if it is invalid."""
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
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise ValueError("unknown field type")
        if number == 0 or at + length > len(data):
            raise ValueError("the field extends past its message")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MAX_VARINT_BYTES):
        byte = data[at + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("the number has too many bytes")


# -- Command line agent: ``~/.cursor/chats/<folder>/<id>/store.db``, one session per database
# Blobs are named by a hash of their content. The newest root lists the message ids in order.
# Messages are JSON without times. Older versions use Protocol Buffers, of which only the text is
# read.


_STORE_TABLES = {"blobs": {"id", "data"}, "meta": {"key", "value"}}
_DIGEST_BYTES = 32
_MESSAGES, _WORKSPACE = 1, 9
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FOLDER = re.compile(r"^Workspace Path: (.+?)\s*$", re.MULTILINE)


class _StoreReader(MessageReader):
    def __init__(self, source: Source) -> None:
        self.database = source
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
        marks = Marks(self.database)
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
        value = value_of(self.tables, statement("cursor_store_facts"))
        raw = as_bytes(value)
        with suppress(ValueError):
            raw = bytes.fromhex(raw.decode("ascii", "replace"))
        facts = plain(raw)
        if value is not None and not isinstance(facts, dict):
            self.database.corrupt()
        return mapping(facts)

    def root(self) -> tuple[list[str], str | None]:
        data = self.blob(self.facts.get("latestRootBlobId"))
        fields = (not data.lstrip().startswith(b"{") and read_fields(data)) or []
        folders = (_decode(data) for number, data in fields if number == _WORKSPACE)
        return [
            data.hex()
            for number, data in fields
            if number == _MESSAGES and len(data) == _DIGEST_BYTES
        ], folder_of(next(filter(None, folders), None))

    def blob(self, identity: object) -> bytes:
        return as_bytes(value_of(self.tables, statement("cursor_store_blob"), id=str(identity)))

    def listed(self, messages: Iterable[str]) -> Iterator[bytes]:
        for data in map(self.blob, messages):
            if data:
                yield data
            else:
                self.source.unknown("message without its blob")

    def everything(self) -> Iterator[bytes]:
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
        fields = read_fields(data) or []
        first = _first(fields)
        if len(first) == _DIGEST_BYTES:
            first = b""
        # In this older format, only prompts have ids.
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
        self.talk.result(str(block.get("toolCallId") or ""), result, output)


def _first(fields: Iterable[Field]) -> bytes:
    return next((data for number, data in fields if number == 1), b"")


def _decode(data: bytes) -> str:
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
