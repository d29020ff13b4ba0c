"""Cursor's command line agent: ``~/.cursor/chats/<folder>/<id>/store.db``, one session a database.

Blobs are named after their content. The newest root lists the ids of the messages in order, which are JSON; older
versions wrote messages in Protocol Buffers, of which only what was said is known. No message has a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.cursor.bubbles import result_text
from nacre.transcripts.cursor.prompts import TOOL, read_prompt
from nacre.transcripts.cursor.protobuf import read_fields
from nacre.transcripts.databases import Marks, Part, as_bytes, log_of, statement, tables_of
from nacre.transcripts.editors import folder_of
from nacre.transcripts.objects import decode, parse_time
from nacre.transcripts.tool_calls import outcome
from nacre.values.session import Flag, Session, Speaker, Trust, Turn

Said = Iterator[Session | Turn]
Values = Mapping[str, Any]

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_DIGEST_BYTES = 32
_MESSAGES, _WORKSPACE = 1, 9
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FOLDER = re.compile(r"^Workspace Path: (.+?)\s*$", re.MULTILINE)
_UNNAMED = frozenset({"New Agent", "Untitled", "New Chat"})
_QUIET = frozenset({"reasoning", "redacted-reasoning", "image", "file", "thinking"})


@dataclass(frozen=True, slots=True)
class Listing:
    """What the newest root says: the ids of the messages, and the folder."""

    messages: tuple[str, ...] = ()
    folder: str | None = None


def parse(source: Source) -> Said:
    """Parse one store; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables = tables_of(source)
        self.facts = self.read_facts()
        created = parse_time(self.facts.get("createdAt"))
        name, model = self.facts.get("name"), self.facts.get("lastUsedModel")
        self.talk = Conversation(Part(source), Session(
            TOOL, str(self.facts.get("agentId") or source.path.parent.name),
            title=name if isinstance(name, str) and name.strip() and name not in _UNNAMED else None,
            started=created, model=model if isinstance(model, str) and model != "default" else None,
        ))  # fmt: skip
        self.time = created

    def read(self) -> Said:
        marks = Marks(self.source)
        if marks.is_new(self.talk.session.native_id, self.facts.get("latestRootBlobId"), self.facts.get("name")):
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
        ids = [one.data.hex() for one in fields if one.number == _MESSAGES and len(one.data) == _DIGEST_BYTES]
        uri = next((one.text for one in fields if one.number == _WORKSPACE and one.text), None)
        return Listing(tuple(ids), folder_of(uri))

    def blob(self, identity: object) -> bytes:
        found = self.tables.all(statement("cursor_store_blob"), id=identity) if isinstance(identity, str) else []
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

    def take(self, data: bytes) -> Said:
        if data.lstrip().startswith(b"{"):
            message = decode(_ANY, data)
            if isinstance(message, dict) and "role" in message:
                yield from self.message(message)
            else:
                self.source.unknown("blob")
        else:
            yield from self.packed(data)

    def message(self, message: Values) -> Said:
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

    def packed(self, data: bytes) -> Said:
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

    def user(self, text: str, *claims: Values) -> Said:
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

    def agent(self, text: str, blocks: Sequence[Values]) -> Said:
        calls = [block for block in blocks if block.get("type") == "tool-call"]
        if not (text or calls):
            return
        identity = self.talk.new_id(Speaker.AGENT, None, text or f"call {calls[0].get('toolName')}")
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False))
        self.talk.add_text(text)
        for call in calls:
            arguments = call.get("args", call.get("input"))
            known = arguments if isinstance(arguments, str | dict) else ""
            self.talk.add_call(str(call.get("toolCallId") or ""), str(call.get("toolName") or "tool"), known)

    def result(self, block: Values) -> None:
        told = result_text(block.get("result", block.get("output")))
        is_error = block.get("isError") is True
        result = "rejected" if told[:200].lower().startswith("rejected") else outcome(told, is_error=is_error)
        self.talk.result(str(block.get("toolCallId") or ""), result, lambda: told)

    def learn_folder(self, folder: str) -> None:
        self.talk.session = replace(self.talk.session, cwd=folder)


def _blocks(message: Values) -> list[Values]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _sniff(head: Head) -> bool:
    tables = head.database
    return tables is not None and bool(
        {"id", "data"} <= set(tables.columns("blobs")) and {"key", "value"} <= set(tables.columns("meta"))
    )


def _roots(places: Places) -> Sequence[Root]:
    told = [places.environ.get(name) for name in ("CURSOR_DATA_DIR", "CURSOR_CONFIG_DIR")]
    folders = [places.home / ".cursor", *(Path(folder).expanduser() for folder in told if folder)]
    config = Path(places.environ.get("XDG_CONFIG_HOME") or places.home / ".config").expanduser()
    return [Root(folder / "chats", ("*/*/store.db",)) for folder in dict.fromkeys([*folders, config / "cursor"])]


ADAPTER = Adapter(
    tool=TOOL, label="Cursor", roots=_roots, sniff=_sniff, parse=parse, beside=log_of,
    resume=("cursor-agent", "--resume", "{id}"),
    versions="command line agent of 2025 and 2026 (from its description; one file without messages)",
    reads=("what was said", "tool calls with outcome", "title", "folder", "model", "words of packed messages"),
    leaves_out=("times of messages (not recorded)", "thinking", "tool calls of packed messages", "other blobs"),
    environment=("CURSOR_CONFIG_DIR", "CURSOR_DATA_DIR", "XDG_CONFIG_HOME"),
)  # fmt: skip
