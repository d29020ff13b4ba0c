"""ChatGPT and Claude.ai account exports: a JSON array of conversations, sometimes zipped.

Exports can be several gigabytes, so only one conversation is kept in memory at a time.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import IO, Any

from nacre.base.ids import turn_hash
from nacre.base.plain import Values, mapping, objects, string
from nacre.base.zips import BROKEN
from nacre.errors import UnreadableTranscriptError
from nacre.readers.adapter import (
    HEAD_BYTES,
    Adapter,
    Head,
    Items,
    Part,
    Source,
    parse_time,
    plain,
)
from nacre.readers.messages import Message, turns_of, words_of
from nacre.readers.trust import Conversation
from nacre.values.session import Session, Speaker

MAX_CONVERSATION_BYTES = 256 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_MEMBER = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[{}]', re.DOTALL)


def conversations(source: Source, messages: str, kind: type) -> Iterator[dict[str, Any]]:
    """Yield each conversation in an export whose field ``messages`` has the type ``kind``.

    Other objects are only counted. Raises UnreadableTranscriptError if a zip file is broken.
    """
    try:
        with source.path.open("rb") as file:
            for raw in chain.from_iterable(map(split_array, _streams(file))):
                value = plain(raw or b"")
                if not isinstance(value, dict):
                    source.corrupt()
                elif isinstance(value.get(messages), kind):
                    yield value
                else:
                    source.unknown(f"conversation without {messages}")
    except BROKEN as error:
        raise UnreadableTranscriptError(
            f"{source.path} is a broken zip file: {error}", hint="download the export again"
        ) from error


def first_text(head: Head) -> str:
    """Return the start of an export's JSON, unzipped if necessary, or "" if there is none."""
    text = head.text
    if head.data.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(head.path) as archive, archive.open(_members(archive)[0]) as file:
                text = file.read(HEAD_BYTES).decode("utf-8", errors="replace")
        except (*BROKEN, IndexError):
            return ""
    return text if _START.match(text) else ""


def split_array(blocks: Iterator[bytes]) -> Iterator[bytes | None]:
    """Yield the bytes of each outermost JSON object, then None if the last one is truncated."""
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


def _streams(file: IO[bytes]) -> Iterator[Iterator[bytes]]:
    if file.read(4) != b"PK\x03\x04":
        file.seek(0)
        yield iter(partial(file.read, _BLOCK_BYTES), b"")
        return
    with zipfile.ZipFile(file) as archive:
        for name in _members(archive):
            with archive.open(name) as member:
                yield iter(partial(member.read, _BLOCK_BYTES), b"")


def _members(archive: zipfile.ZipFile) -> list[str]:
    return sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name))


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
    "thoughts reasoning_recap user_editable_context model_editable_context system_error code "
    "execution_output tether_quote tether_browsing_display tether_browsing_code sonic_webpage".split()
)
_OUTSIDE_TOOL = re.compile(
    r"web|brows|search|tether|myfiles|connector|plugin|gmail|jit", re.IGNORECASE
)
_WEB_FIELDS = ("citations", "search_result_groups")
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
_FAILED = ("failed_with_in_kernel_exception", "failed")
_EVERYONE = ("all", "assistant", "user")
_NEVER = datetime.fromtimestamp(0, UTC)


def parse(source: Source) -> Items:
    """Parse a ChatGPT export."""
    for conversation in conversations(source, "mapping", dict):
        records = list(_branch(conversation))
        models = (string(mapping(record, "metadata"), "model_slug") for record in records[::-1])
        session = Session(
            TOOL,
            _id(conversation, "conversation_id", "id"),
            title=string(conversation, "title"),
            started=parse_time(conversation.get("create_time")),
            model=next(filter(None, models), string(conversation, "default_model_slug")),
        )
        talk = Conversation(Part(source), session)
        yield from turns_of(talk, _messages(talk, records))


def _id(conversation: Values, *keys: str) -> str:
    return string(conversation, *keys) or turn_hash("session", repr(conversation), 0)


def _messages(talk: Conversation, records: Iterable[Values]) -> Iterator[Message]:
    own = call = ""
    for record in records:
        facts, author = mapping(record, "metadata"), mapping(record, "author")
        role, recipient, text = str(author.get("role")), record.get("recipient"), _plain(record)
        own = own if role in ("assistant", "tool") else ""
        time = parse_time(record.get("create_time")) or talk.session.started
        talk.learn(started=talk.session.started or time)
        claims = [record, author, facts]
        message = Message.of(talk.source, role, time, own or string(record, "id"), claims)
        kind = str(mapping(record, "content").get("content_type") or "text")
        if role == "tool":
            name = string(author, "name") or ""
            talk.exchange.record(text, outside=bool(_OUTSIDE_TOOL.search(name)))
            failed = mapping(facts, "aggregate_result").get("status") in _FAILED
            message.result(call, text, is_error=failed)
        elif message.speaker is Speaker.SYSTEM or any(map(facts.get, _HIDDEN)):
            continue
        elif role == "assistant" and isinstance(recipient, str) and recipient not in _EVERYONE:
            call = str(record.get("id"))
            own = own or call
            message.id = own
            message.call(call, recipient, text)
        elif kind in _TEXT_TYPES:
            message.texts.append(_CITATION.sub("", text))
            own = ""
            if role == "assistant" and any(facts.get(key) for key in _WEB_FIELDS):
                talk.exchange.record_unseen()
        elif kind not in _IGNORED_TYPES:
            talk.source.unknown(f"content {kind}")
        yield message


def _branch(conversation: Values) -> Iterator[Values]:
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
    sniff=lambda head: bool(_MAPPING.search(first_text(head))),
    parse=parse,
    whole=True,
    versions="exports*",
    leaves_out="folder; tokens; other branches",
)


# -- Claude.ai: messages have parents if the user edited or retried -----------
# If there are several branches, the reader follows the one that ends at the leaf named by the
# export, or at the newest leaf.


TOOL_CLAUDE_AI = "claude-ai"

_MESSAGES = re.compile(r'(?<!\\)"chat_messages"\s*:\s*\[')
_SPEAKERS = {"human": Speaker.OWNER, "user": Speaker.OWNER, "assistant": Speaker.AGENT}
_QUIET = frozenset({"thinking", "redacted_thinking", "token_budget", "flag", "voice_note"})


def parse_claude_ai(source: Source) -> Items:
    """Parse a Claude.ai export."""
    for conversation in conversations(source, "chat_messages", list):
        session = Session(
            TOOL_CLAUDE_AI,
            _id(conversation, "uuid"),
            title=string(conversation, "name"),
            label=string(mapping(conversation, "project"), "name"),
            started=parse_time(conversation.get("created_at")),
            model=string(conversation, "model"),
        )
        talk = Conversation(Part(source), session)
        records = _branch_claude_ai(conversation)
        yield from turns_of(talk, chain.from_iterable(_parts(talk, each) for each in records))


def _parts(talk: Conversation, record: Values) -> Iterator[Message]:
    speaker, blocks = _SPEAKERS.get(str(record.get("sender"))), objects(record, "content")
    if speaker is None:
        talk.source.unknown(f"sender {record.get('sender')}")
        return
    time, claims = parse_time(record.get("created_at")), [record, *blocks]
    talk.learn(started=talk.session.started or time)
    calls = Message(Speaker.AGENT, time, string(record, "uuid"))
    texts = list[str | None]()
    for number, block in enumerate(blocks):
        kind, name = str(block.get("type")), string(block, "name")
        if kind == "tool_use":
            calls.call(block.get("id") or f"#{number}", name, block.get("input"))
        elif kind == "tool_result":
            call = string(block, "tool_use_id") or (calls.calls[-1:] and calls.calls[-1][0])
            output, failed = block.get("content"), block.get("is_error") is True
            talk.exchange.record_output(name or "", "", words_of(output))
            calls.result(call, output, is_error=failed)
        elif kind == "text":
            texts.append(string(block, "text"))
            if speaker is Speaker.AGENT and block.get("citations"):
                talk.exchange.record_unseen()
        elif kind not in _QUIET:
            talk.source.unknown(f"block {kind}")
    yield calls  # first, because the text can repeat the results
    texts = texts if any(texts) else [string(record, "text")]
    texts += _attached(talk, record)
    yield Message(speaker, time, calls.id, claims=claims, texts=texts)


def _attached(talk: Conversation, record: Values) -> list[str]:
    names = []
    for item in (*objects(record, "attachments"), *objects(record, "files")):
        talk.exchange.record_outside(string(item, "extracted_content") or "")
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


ADAPTER_CLAUDE_AI = Adapter(
    tool=TOOL_CLAUDE_AI,
    label="Claude.ai",
    sniff=lambda head: bool(_MESSAGES.search(first_text(head))),
    parse=parse_claude_ai,
    whole=True,
    versions="exports*",
    reads="projects",
    leaves_out="folder; tokens; other branches",
)
