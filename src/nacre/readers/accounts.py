"""ChatGPT and Claude.ai account exports: a JSON array of conversations, sometimes zipped.

Exports can be gigabytes in size, so only one conversation is in memory at a time.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

from nacre.base.files import BROKEN
from nacre.base.ids import turn_hash
from nacre.base.plain import Values, mapping, objects, string
from nacre.errors import UnreadableTranscriptError
from nacre.readers.adapter import (
    HEAD_BYTES,
    Adapter,
    Head,
    Items,
    Source,
    parse_time,
    plain,
)
from nacre.readers.conversation import answered, asked, outcome
from nacre.readers.trust import Exchange, attribute, is_outside, is_own
from nacre.values.session import Session, Speaker, ToolCall, Trust, Turn

MAX_CONVERSATION_BYTES = 256 * 1024 * 1024
MAX_EXPORT_BYTES = 16 * 1024 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_MEMBER = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[{}]', re.DOTALL)


def conversations(source: Source) -> Iterator[dict[str, Any]]:
    """Yield each conversation in an export.

    Truncated conversations and values that are not objects are counted as corrupt. Raises
    UnreadableTranscriptError.
    """
    try:
        with source.path.open("rb") as file:
            for raw in chain.from_iterable(map(split_array, _streams(file, source.path))):
                value = plain(raw or b"")
                if isinstance(value, dict):
                    yield value
                else:
                    source.corrupt()
    except BROKEN as error:
        raise UnreadableTranscriptError(
            f"{source.path} is a broken zip: {error}", hint="download the export again"
        ) from error


def first_text(head: Head) -> str:
    """Return the start of an export's text, unzipped if necessary.

    Return an empty string if there are no conversations or the file is not JSON.
    """
    text = head.text
    if head.data.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(head.path) as archive, archive.open(_members(archive)[0]) as file:
                text = file.read(HEAD_BYTES).decode("utf-8", errors="replace")
        except (*BROKEN, IndexError):
            return ""
    return text if _START.match(text) else ""


def split_array(blocks: Iterator[bytes]) -> Iterator[bytes | None]:
    """Yield the outermost JSON objects as bytes, then None if the last object is truncated."""
    buffer, at, depth, start = b"", 0, 0, -1
    for block in blocks:
        buffer += block
        while token := _TOKEN.search(buffer, at):
            if token[1] == b"" and buffer[token.start()] == 0x22:
                break  # the string continues in the next block
            if buffer[token.start()] == 0x7B:
                start = token.start() if depth == 0 else start
                depth += 1
            elif buffer[token.start()] == 0x7D and depth:
                depth -= 1
                if depth == 0:
                    yield buffer[start : token.end()]
                    start = -1
            at = token.end()
        keep_from = start if start >= 0 else (token.start() if token else len(buffer))
        at = (token.start() if token else len(buffer)) - keep_from
        buffer, start = buffer[keep_from:], 0 if start >= 0 else -1
        if len(buffer) > MAX_CONVERSATION_BYTES:
            break
    if start >= 0:
        yield None


def _streams(file: IO[bytes], path: Path) -> Iterator[Iterator[bytes]]:
    if file.read(4) != b"PK\x03\x04":
        file.seek(0)
        yield _blocks(file, path)
        return
    with zipfile.ZipFile(file) as archive:
        for name in _members(archive):
            with archive.open(name) as member:
                yield _blocks(member, path)


def _members(archive: zipfile.ZipFile) -> list[str]:
    return sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name))


def _blocks(file: IO[bytes], path: Path) -> Iterator[bytes]:
    read = 0
    while block := file.read(_BLOCK_BYTES):
        read += len(block)
        if read > MAX_EXPORT_BYTES:
            raise UnreadableTranscriptError(
                f"{path} holds more than {MAX_EXPORT_BYTES // 1_000_000_000} GB"
            )
        yield block


class _AccountReader:
    tool: str

    def __init__(self, source: Source, conversation: Values) -> None:
        self.source = source
        self.conversation = conversation
        self.exchange = Exchange()

    def complete(self, turn: Turn, stamp: object, *claims: Values, cites_web: bool) -> Turn:
        is_web = cites_web and turn.speaker is Speaker.AGENT
        turn = replace(
            turn,
            id=str(turn.id or turn_hash(turn.speaker, f"{stamp}\n{turn.text}", 0)),
            time=parse_time(stamp),
            trust=Trust.UNTRUSTED if is_web else Trust.TRUSTED,
            unique=bool(turn.id),
        )
        return attribute(turn, self.tool, self.source.identities, self.exchange, *claims)


# -- ChatGPT: conversations as trees of messages -------------------------------
# Only the branch that ends at ``current_node`` is read. The user left the other branches by
# regenerating an answer or editing a question. Hidden and system messages, thoughts and tool output
# are not turns.


TOOL = "chatgpt"

_START = re.compile(r"\A\ufeff?\s*[\[{]")
_MAPPING = re.compile(r'(?<!\\)"mapping"\s*:\s*\{')
_CITATION = re.compile("\ue200.*?\ue201|【[^】\n]{0,80}†[^】\n]{0,200}】", re.DOTALL)
_TEXT_TYPES = frozenset({"text", "multimodal_text"})
_IGNORED_TYPES = frozenset(
    {
        "thoughts",
        "reasoning_recap",
        "user_editable_context",
        "model_editable_context",
        "system_error",
        "code",
        "execution_output",
        "tether_quote",
        "tether_browsing_display",
        "tether_browsing_code",
        "sonic_webpage",
    }
)
_OUTSIDE_TOOL = re.compile(
    r"web|brows|search|tether|myfiles|connector|plugin|gmail|jit", re.IGNORECASE
)
_WEB_FIELDS = ("citations", "search_result_groups")
_NEVER = datetime.fromtimestamp(0, UTC)


def parse(source: Source) -> Items:
    """Parse one export."""
    for conversation in conversations(source):
        if isinstance(conversation.get("mapping"), dict):
            yield from _Reader(source, conversation).read()
        else:
            source.unknown("conversation without mapping")


class _Reader(_AccountReader):
    tool = TOOL

    def __init__(self, source: Source, conversation: Values) -> None:
        super().__init__(source, conversation)
        self.calls: list[ToolCall] = []
        self.pending_call: tuple[str, object] | None = None

    def read(self) -> Items:
        messages = list(_branch(self.conversation))
        turns = [turn for message in messages for turn in self.take(message)]
        turns += self.flush()
        if turns:
            yield self.session(messages, turns)
            yield from turns

    def session(self, messages: Sequence[Values], turns: Sequence[Turn]) -> Session:
        native_id = self.conversation.get("conversation_id") or self.conversation.get("id")
        first = turn_hash("session", turns[0].text, 0)
        models = (string(mapping(message, "metadata"), "model_slug") for message in messages[::-1])
        return Session(
            TOOL,
            str(native_id or first),
            title=string(self.conversation, "title"),
            started=parse_time(self.conversation.get("create_time")) or turns[0].time,
            model=next(filter(None, models), None)
            or string(self.conversation, "default_model_slug"),
        )

    def take(self, message: Values) -> Iterator[Turn]:
        facts = mapping(message, "metadata")
        role = mapping(message, "author").get("role")
        if role == "tool":
            self.hear(message)
        elif facts.get("is_visually_hidden_from_conversation") or facts.get(
            "is_user_system_message"
        ):
            return
        elif role == "user":
            yield from self.flush()
            yield from self.say(message, Speaker.OWNER)
        elif role == "assistant":
            yield from self.answer(message)
        elif role != "system":
            self.source.unknown(f"role {role}")

    def answer(self, message: Values) -> Iterator[Turn]:
        recipient = message.get("recipient")
        if isinstance(recipient, str) and recipient not in ("all", "assistant", "user"):
            self.calls.append(asked(recipient, _plain(message)))
            self.pending_call = (str(message.get("id")), message.get("create_time"))
            return
        yield from self.say(message, Speaker.AGENT)

    def hear(self, message: Values) -> None:
        """Record a tool's output as the result of its call.

        After external output, the agent's next words are less trusted.
        """
        name = str(mapping(message, "author").get("name") or "")
        if self.calls and self.calls[-1].outcome is None:
            run = mapping(message, "metadata", "aggregate_result")
            outcome = (
                "error"
                if run.get("status") in ("failed_with_in_kernel_exception", "failed")
                else "ok"
            )
            self.calls[-1] = answered(self.calls[-1], outcome, lambda: _plain(message))
        outside = bool(_OUTSIDE_TOOL.search(name)) or is_outside(name, "")
        self.exchange.heard(_plain(message), outside=outside, own=is_own(name, ""))

    def say(self, message: Values, speaker: Speaker) -> Iterator[Turn]:
        kind = str(mapping(message, "content").get("content_type") or "text")
        if kind not in _TEXT_TYPES:
            if kind not in _IGNORED_TYPES:
                self.source.unknown(f"content {kind}")
            return
        cleaned = self.exchange.clean(_CITATION.sub("", _plain(message)))
        if not cleaned.text:
            return
        calls, self.calls, self.pending_call = tuple(self.calls), [], None
        stamp = message.get("create_time") or self.conversation.get("create_time")
        claims = (message, mapping(message, "author"), mapping(message, "metadata"))
        cites_web = any(claims[2].get(key) for key in _WEB_FIELDS)
        turn = Turn(message.get("id") or "", speaker, cleaned.text, None, calls, cleaned.flags)
        yield self.complete(turn, stamp, *claims, cites_web=cites_web)

    def flush(self) -> Iterator[Turn]:
        if self.calls and self.pending_call:
            (identity, stamp), calls = self.pending_call, tuple(self.calls)
            self.calls, self.pending_call = [], None
            yield Turn(identity, Speaker.AGENT, "", parse_time(stamp), calls, unique=True)


def _branch(conversation: Values) -> Iterator[Values]:
    """Yield the messages from the root to the current node.

    If no node is current, use the newest leaf.
    """
    tree: dict[str, Any] = conversation["mapping"]
    nodes = {key: node for key, node in tree.items() if isinstance(node, dict)}
    at = conversation.get("current_node")
    if not isinstance(at, str) or at not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        at = max(
            leaves,
            key=lambda key: parse_time(mapping(nodes[key], "message").get("create_time")) or _NEVER,
            default=None,
        )
    for node in _path(nodes, at, "parent"):
        if isinstance(node.get("message"), dict):
            yield node["message"]


def _path(nodes: Mapping[str, Values], leaf: object, parent: str) -> list[Values]:
    path: dict[object, Values] = {}
    while isinstance(leaf, str) and leaf in nodes and leaf not in path:
        path[leaf] = nodes[leaf]
        leaf = nodes[leaf].get(parent)
    return list(reversed(path.values()))


def _plain(message: Values) -> str:
    content = mapping(message, "content")
    parts = content.get("parts")
    texts = [_part(part) for part in parts] if isinstance(parts, list) else []
    texts += [value for key in ("text", "result") if isinstance(value := content.get(key), str)]
    attached = objects(mapping(message, "metadata"), "attachments")
    texts += [f"[attachment: {item['name']}]" for item in attached if item.get("name")]
    return "\n\n".join(text for text in texts if text.strip())


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    if isinstance(part.get("text"), str):  # a transcript of speech
        return str(part["text"])
    return "[image]" if part.get("content_type") == "image_asset_pointer" else ""


ADAPTER = Adapter(
    tool=TOOL,
    label="ChatGPT",
    roots=lambda _: (),
    sniff=lambda head: bool(_MAPPING.search(first_text(head))),
    parse=parse,
    whole=True,
    versions="exports (from documentation)",
    reads="the current branch of the conversation; titles; times; model",
    leaves_out="other branches; thoughts; pictures; contents of attachments",
)


# -- Claude.ai: messages have parents if the user edited or retried -----------
# If there are several branches, the reader follows the one that ends at the leaf named by the
# export. Without such a leaf, it uses the newest.


TOOL_CLAUDE_AI = "claude-ai"

_MESSAGES = re.compile(r'(?<!\\)"chat_messages"\s*:\s*\[')
_SPEAKERS = {"human": Speaker.OWNER, "user": Speaker.OWNER, "assistant": Speaker.AGENT}
_QUIET = frozenset({"thinking", "redacted_thinking", "token_budget", "flag", "voice_note"})


def parse_claude_ai(source: Source) -> Items:
    """Parse one export."""
    for conversation in conversations(source):
        if isinstance(conversation.get("chat_messages"), list):
            yield from _ClaudeAiReader(source, conversation).read()
        else:
            source.unknown("conversation without chat_messages")


class _ClaudeAiReader(_AccountReader):
    tool = TOOL_CLAUDE_AI

    def read(self) -> Items:
        turns = [
            turn for message in _branch_claude_ai(self.conversation) for turn in self.take(message)
        ]
        if not turns:
            return
        yield Session(
            TOOL_CLAUDE_AI,
            str(self.conversation.get("uuid") or turn_hash("session", turns[0].text, 0)),
            title=string(self.conversation, "name"),
            label=string(mapping(self.conversation, "project"), "name"),
            started=parse_time(self.conversation.get("created_at")) or turns[0].time,
            model=string(self.conversation, "model"),
        )
        yield from turns

    def take(self, message: Values) -> Iterator[Turn]:
        speaker = _SPEAKERS.get(str(message.get("sender")))
        if speaker is None:
            self.source.unknown(f"sender {message.get('sender')}")
            return
        blocks = objects(message, "content")
        calls = self.calls(blocks)
        texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
        texts = texts if any(texts) else [str(message.get("text") or "")]
        cleaned = self.exchange.clean(
            "\n\n".join(part for part in (*texts, *self.attached(message)) if part.strip())
        )
        if not cleaned.text and not calls:
            return
        cites_web = any(block.get("citations") for block in blocks)
        turn = Turn(message.get("uuid") or "", speaker, cleaned.text, None, calls, cleaned.flags)
        stamp = message.get("created_at")
        yield self.complete(turn, stamp, message, *blocks, cites_web=cites_web)

    def calls(self, blocks: Sequence[Values]) -> tuple[ToolCall, ...]:
        """Return the tool calls with their outcomes.

        External text in the results is recorded first, because it affects the trust of the message.
        """
        calls: dict[str, ToolCall] = {}
        for number, block in enumerate(blocks):
            kind = str(block.get("type"))
            name = str(block.get("name") or "")
            if kind == "tool_use":
                arguments = block.get("input")
                call = asked(name, arguments if isinstance(arguments, str | dict) else "")
                calls[str(block.get("id") or f"#{number}")] = call
            elif kind == "tool_result":
                self.result(calls, block)
            elif kind not in _QUIET and kind != "text":
                self.source.unknown(f"block {kind}")
        return tuple(calls.values())

    def result(self, calls: dict[str, ToolCall], block: Values) -> None:
        pending = [key for key, call in calls.items() if call.outcome is None]
        key = str(block.get("tool_use_id") or (pending[0] if pending else ""))
        output = _words(block.get("content"))
        call = calls.get(key)
        if call:
            calls[key] = answered(
                call, outcome(output, is_error=block.get("is_error") is True), lambda: output
            )
        name = str(block.get("name") or (call.name if call else ""))
        self.exchange.heard_from(name, call.input if call else "", output)

    def attached(self, message: Values) -> list[str]:
        names = []
        for item in (*objects(message, "attachments"), *objects(message, "files")):
            if isinstance(item.get("extracted_content"), str):
                self.exchange.saw(item["extracted_content"])
            if item.get("file_name"):
                names.append(f"[attachment: {item['file_name']}]")
        return list(dict.fromkeys(names))


def _branch_claude_ai(conversation: Values) -> list[Values]:
    messages = objects(conversation, "chat_messages")
    by_id = {str(message.get("uuid")): message for message in messages if message.get("uuid")}
    parents = {str(message.get("parent_message_uuid")) for message in messages}
    if not parents & by_id.keys():
        return messages
    leaf = str(conversation.get("current_leaf_message_uuid"))
    if leaf not in by_id:
        leaves = [key for key in by_id if key not in parents]
        leaf = max(leaves, key=lambda key: str(by_id[key].get("created_at") or ""), default="")
    return _path(by_id, leaf, "parent_message_uuid")


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else [content]
    texts = []
    for item in items:
        if isinstance(item, dict):
            texts += [
                str(item[key])
                for key in ("title", "text", "url", "content")
                if isinstance(item.get(key), str)
            ]
    return "\n".join(texts)


ADAPTER_CLAUDE_AI = Adapter(
    tool=TOOL_CLAUDE_AI,
    label="Claude.ai",
    roots=lambda _: (),
    sniff=lambda head: bool(_MESSAGES.search(first_text(head))),
    parse=parse_claude_ai,
    whole=True,
    versions="exports (from documentation)",
    reads="the current branch of the conversation; titles; times; projects",
    leaves_out="thinking; pictures; contents of attachments",
)
