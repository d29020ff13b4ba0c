"""Exports of whole accounts: one JSON array of conversations, as a file or inside the zip the service sends.

Such files grow to gigabytes, so one conversation is in memory at a time.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from nacre.base.files import BROKEN
from nacre.base.ids import turn_hash
from nacre.errors import TranscriptUnreadable
from nacre.readers.adapter import (
    HEAD_BYTES,
    Adapter,
    Head,
    Items,
    Places,
    Root,
    Source,
    decode,
    parse_time,
)
from nacre.readers.conversation import answered, asked, outcome
from nacre.readers.trust import Exchange, Judgement, attribute, is_outside, is_own
from nacre.values.session import Flag, Session, Speaker, ToolCall, Trust, Turn

MAX_CONVERSATION_BYTES = 256 * 1024 * 1024
MAX_EXPORT_BYTES = 16 * 1024 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_MEMBER = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[{}]', re.DOTALL)
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def conversations(source: Source) -> Iterator[dict[str, Any]]:
    """Every conversation of an export; what is torn or no object is counted. Raises TranscriptUnreadable."""
    try:
        for raw in _all_objects(source):
            value = decode(_ANY, raw)
            if isinstance(value, dict):
                yield value
            else:
                source.corrupt()
    except BROKEN as error:
        raise TranscriptUnreadable(
            f"{source.path} is a broken zip: {error}", hint="download the export again"
        ) from error


def first_text(head: Head) -> str:
    """The beginning of an export's conversations, also where they lie in a zip; empty when there are none."""
    if not head.data.startswith(b"PK\x03\x04"):
        return head.text
    try:
        with zipfile.ZipFile(head.path) as archive:
            name = next(iter(_members(archive)), None)
            if name is None:
                return ""
            with archive.open(name) as file:
                return file.read(HEAD_BYTES).decode("utf-8", errors="replace")
    except BROKEN:
        return ""


def split_array(blocks: Iterator[bytes]) -> Iterator[bytes | None]:
    """The outermost objects of a JSON text that comes in blocks; ``None`` at the end for one that is torn."""
    buffer, at, depth, start = b"", 0, 0, -1
    for block in blocks:
        buffer += block
        while token := _TOKEN.search(buffer, at):
            if token.group(1) == b"" and buffer[token.start()] == 0x22:
                break  # a string goes on in the next block
            if buffer[token.start()] == 0x7B:
                start = token.start() if depth == 0 else start
                depth += 1
            elif buffer[token.start()] == 0x7D and depth:
                depth -= 1
                if depth == 0:
                    yield buffer[start : token.end()]
                    start = -1
            at = token.end()
        kept = start if start >= 0 else (token.start() if token else len(buffer))
        at = (token.start() if token else len(buffer)) - kept
        buffer, start = buffer[kept:], 0 if start >= 0 else -1
        if len(buffer) > MAX_CONVERSATION_BYTES:
            break
    if start >= 0:
        yield None


def _all_objects(source: Source) -> Iterator[bytes]:
    with source.path.open("rb") as file:
        for blocks in _streams(file, source.path):
            for raw in split_array(blocks):
                if raw is None:
                    source.corrupt()
                else:
                    yield raw


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
            raise TranscriptUnreadable(
                f"{path} holds more than {MAX_EXPORT_BYTES // 1_000_000_000} GB"
            )
        yield block


# ----------------------------------------------------------------------------
# ChatGPT's data export: conversations as trees of messages, of which the owner sees one branch.
#
# Only the branch that ends at ``current_node`` is read: an answer that was made anew, or a question
# that was edited
# away, was discarded by the owner. Hidden and system messages, thoughts and tool output are no turns.


TOOL = "chatgpt"

_START = re.compile(r"\A\ufeff?\s*[\[{]")
_MAPPING = re.compile(r'(?<!\\)"mapping"\s*:\s*\{')
_CITATION = re.compile("\ue200.*?\ue201|【[^】\n]{0,80}†[^】\n]{0,200}】", re.DOTALL)
_SPOKEN = frozenset({"text", "multimodal_text"})
_UNSPOKEN = frozenset(
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
_FROM_THE_WEB = ("citations", "search_result_groups")


def parse(source: Source) -> Items:
    """Parse one export; see :class:`~nacre.readers.adapter.Adapter`."""
    for conversation in conversations(source):
        if isinstance(conversation.get("mapping"), dict):
            yield from _Reader(source, conversation).read()
        else:
            source.unknown("conversation without mapping")


class _Reader:
    def __init__(self, source: Source, conversation: Mapping[str, Any]) -> None:
        self.source = source
        self.conversation = conversation
        self.exchange = Exchange()
        self.calls: list[ToolCall] = []
        self.waiting: tuple[str, object] | None = None

    def read(self) -> Items:
        messages = list(_branch(self.conversation))
        turns = [turn for message in messages for turn in self.take(message)]
        turns += self.flush()
        if turns:
            yield self.session(messages, turns)
            yield from turns

    def session(self, messages: Sequence[Mapping[str, Any]], turns: Sequence[Turn]) -> Session:
        own = self.conversation.get("conversation_id") or self.conversation.get("id")
        first = turn_hash("session", turns[0].text, 0)
        models = (_facts(message).get("model_slug") for message in reversed(messages))
        model = next(
            (name for name in models if isinstance(name, str)),
            self.conversation.get("default_model_slug"),
        )
        title = self.conversation.get("title")
        return Session(
            TOOL,
            str(own or first),
            title=title if isinstance(title, str) else None,
            started=parse_time(self.conversation.get("create_time")) or turns[0].time,
            model=model if isinstance(model, str) else None,
        )

    def take(self, message: Mapping[str, Any]) -> Iterator[Turn]:
        facts = _facts(message)
        role = _mapping(message, "author").get("role")
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

    def answer(self, message: Mapping[str, Any]) -> Iterator[Turn]:
        recipient = message.get("recipient")
        if isinstance(recipient, str) and recipient not in ("all", "assistant", "user"):
            self.calls.append(asked(recipient, _plain(message)))
            self.waiting = (str(message.get("id")), message.get("create_time"))
            return
        yield from self.say(message, Speaker.AGENT)

    def hear(self, message: Mapping[str, Any]) -> None:
        """A tool answered: the call is done, and what it brought from outside taints what the agent says of it."""
        name = str(_mapping(message, "author").get("name") or "")
        if self.calls and self.calls[-1].outcome is None:
            run = _mapping(_facts(message), "aggregate_result")
            outcome = (
                "error"
                if run.get("status") in ("failed_with_in_kernel_exception", "failed")
                else "ok"
            )
            self.calls[-1] = answered(self.calls[-1], outcome, lambda: _plain(message))
        outside = bool(_OUTSIDE_TOOL.search(name)) or is_outside(name, "")
        self.exchange.heard(_plain(message), outside=outside, own=is_own(name, ""))

    def say(self, message: Mapping[str, Any], speaker: Speaker) -> Iterator[Turn]:
        kind = str(_mapping(message, "content").get("content_type") or "text")
        if kind not in _SPOKEN:
            if kind not in _UNSPOKEN:
                self.source.unknown(f"content {kind}")
            return
        cleaned = self.exchange.clean(_CITATION.sub("", _plain(message)))
        if not cleaned.text:
            return
        calls, self.calls, self.waiting = tuple(self.calls), [], None
        stamp = message.get("create_time") or self.conversation.get("create_time")
        judged = self.exchange.judge(cleaned.text) if speaker is Speaker.AGENT else Judgement()
        drawn = speaker is Speaker.AGENT and any(_facts(message).get(key) for key in _FROM_THE_WEB)
        trust = Trust.UNTRUSTED if drawn else judged.trust
        flags = judged.flags | (Flag.INJECTED if cleaned.injected else Flag.NONE)
        identity = message.get("id")
        turn = Turn(
            str(identity or turn_hash(speaker, f"{stamp}\n{cleaned.text}", 0)),
            speaker,
            cleaned.text,
            parse_time(stamp),
            calls,
            flags,
            trust,
            unique=bool(identity),
        )
        claims = (message, _mapping(message, "author"), _facts(message))
        turn = attribute(turn, TOOL, self.source.identities, self.exchange, *claims)
        if turn.speaker is Speaker.OWNER:
            self.exchange.begin(turn.text)
        yield turn

    def flush(self) -> Iterator[Turn]:
        """Calls after which the agent said nothing are a turn of their own."""
        if self.calls and self.waiting:
            (identity, stamp), calls = self.waiting, tuple(self.calls)
            self.calls, self.waiting = [], None
            yield Turn(identity, Speaker.AGENT, "", parse_time(stamp), calls, unique=True)


def _branch(conversation: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The messages from the root to the current node; without one, to the node that was written last."""
    mapping: dict[str, Any] = conversation["mapping"]
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    at = conversation.get("current_node")
    if not isinstance(at, str) or at not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        at = max(leaves, key=lambda key: _written(nodes[key]), default=None)
    path: dict[Any, Mapping[str, Any]] = {}
    while isinstance(at, str) and at in nodes and at not in path:
        path[at] = nodes[at]
        at = nodes[at].get("parent")
    for node in reversed(path.values()):
        if isinstance(node.get("message"), dict):
            yield node["message"]


def _written(node: Mapping[str, Any]) -> float:
    time = parse_time(_mapping(node, "message").get("create_time"))
    return time.timestamp() if time else 0.0


def _plain(message: Mapping[str, Any]) -> str:
    """A message's words, and the names of what was attached to it."""
    content = _mapping(message, "content")
    parts = content.get("parts")
    said = [_part(part) for part in parts] if isinstance(parts, list) else []
    said += [value for key in ("text", "result") if isinstance(value := content.get(key), str)]
    attached = _facts(message).get("attachments")
    for item in attached if isinstance(attached, list) else ():
        if isinstance(item, dict) and item.get("name"):
            said.append(f"[attachment: {item['name']}]")
    return "\n\n".join(text for text in said if text.strip())


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    if isinstance(part.get("text"), str):  # what was said aloud, written down
        return str(part["text"])
    return "[image]" if part.get("content_type") == "image_asset_pointer" else ""


def _facts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(message, "metadata")


def _mapping(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _sniff(head: Head) -> bool:
    text = first_text(head)
    return bool(_START.match(text) and _MAPPING.search(text))


def _roots(_: Places) -> Sequence[Root]:
    return ()


ADAPTER = Adapter(
    tool=TOOL,
    label="ChatGPT",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    whole=True,
    versions="exports (from their description)",
    reads=("the current branch of the conversation", "titles", "times", "model"),
    leaves_out=("other branches", "thoughts", "pictures", "contents of attachments"),
)


# ----------------------------------------------------------------------------
# Claude.ai's data export: conversations whose messages know their parent where the owner edited or
# retried.
#
# Of several branches the current one is read: the one that ends at the leaf the export names, else at
# the newest.


TOOL_CLAUDE_AI = "claude-ai"

_MESSAGES = re.compile(r'(?<!\\)"chat_messages"\s*:\s*\[')
_SPEAKERS = {"human": Speaker.OWNER, "user": Speaker.OWNER, "assistant": Speaker.AGENT}
_QUIET = frozenset({"thinking", "redacted_thinking", "token_budget", "flag", "voice_note"})


def parse_claude_ai(source: Source) -> Items:
    """Parse one export; see :class:`~nacre.readers.adapter.Adapter`."""
    for conversation in conversations(source):
        if isinstance(conversation.get("chat_messages"), list):
            yield from _ClaudeAiReader(source, conversation).read()
        else:
            source.unknown("conversation without chat_messages")


class _ClaudeAiReader:
    def __init__(self, source: Source, conversation: Mapping[str, Any]) -> None:
        self.source = source
        self.conversation = conversation
        self.exchange = Exchange()

    def read(self) -> Items:
        turns = [
            turn for message in _branch_claude_ai(self.conversation) for turn in self.take(message)
        ]
        if not turns:
            return
        own, title = self.conversation.get("uuid"), self.conversation.get("name")
        project, model = self.conversation.get("project"), self.conversation.get("model")
        name = project.get("name") if isinstance(project, dict) else None
        yield Session(
            TOOL_CLAUDE_AI,
            str(own or turn_hash("session", turns[0].text, 0)),
            title=title if isinstance(title, str) and title else None,
            label=name if isinstance(name, str) else None,
            started=parse_time(self.conversation.get("created_at")) or turns[0].time,
            model=model if isinstance(model, str) else None,
        )
        yield from turns

    def take(self, message: Mapping[str, Any]) -> Iterator[Turn]:
        speaker = _SPEAKERS.get(str(message.get("sender")))
        if speaker is None:
            self.source.unknown(f"sender {message.get('sender')}")
            return
        blocks = [block for block in _list(message, "content") if isinstance(block, dict)]
        calls = self.calls(blocks)
        said = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
        said = said if any(said) else [str(message.get("text") or "")]
        cleaned = self.exchange.clean(
            "\n\n".join(part for part in (*said, *self.attached(message)) if part.strip())
        )
        if not cleaned.text and not calls:
            return
        cited = any(block.get("citations") for block in blocks)
        judged = self.exchange.judge(cleaned.text) if speaker is Speaker.AGENT else Judgement()
        trust = Trust.UNTRUSTED if cited and speaker is Speaker.AGENT else judged.trust
        flags = judged.flags | (Flag.INJECTED if cleaned.injected else Flag.NONE)
        stamp, own = message.get("created_at"), message.get("uuid")
        turn = Turn(
            str(own or turn_hash(speaker, f"{stamp}\n{cleaned.text}", 0)),
            speaker,
            cleaned.text,
            parse_time(stamp),
            calls,
            flags,
            trust,
            unique=bool(own),
        )
        turn = attribute(
            turn, TOOL_CLAUDE_AI, self.source.identities, self.exchange, message, *blocks
        )
        if turn.speaker is Speaker.OWNER:
            self.exchange.begin(turn.text)
        yield turn

    def calls(self, blocks: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
        """Tool calls with their outcomes; what they bring from outside is noted before the words are judged."""
        made: dict[str, ToolCall] = {}
        for number, block in enumerate(blocks):
            kind = str(block.get("type"))
            name = str(block.get("name") or "")
            if kind == "tool_use":
                arguments = block.get("input")
                call = asked(name, arguments if isinstance(arguments, str | dict) else "")
                made[str(block.get("id") or f"#{number}")] = call
            elif kind == "tool_result":
                self.result(made, block)
            elif kind not in _QUIET and kind != "text":
                self.source.unknown(f"block {kind}")
        return tuple(made.values())

    def result(self, made: dict[str, ToolCall], block: Mapping[str, Any]) -> None:
        waiting = [key for key, call in made.items() if call.outcome is None]
        key = str(block.get("tool_use_id") or (waiting[0] if waiting else ""))
        output = _words(block.get("content"))
        call = made.get(key)
        if call:
            made[key] = answered(
                call, outcome(output, is_error=block.get("is_error") is True), lambda: output
            )
        name = str(block.get("name") or (call.name if call else ""))
        brief = call.input if call else ""
        self.exchange.heard(output, outside=is_outside(name, brief), own=is_own(name, brief))

    def attached(self, message: Mapping[str, Any]) -> list[str]:
        """Names of attached files. What they hold came from elsewhere: it is not the owner's words."""
        names = []
        for item in (*_list(message, "attachments"), *_list(message, "files")):
            if not isinstance(item, dict):
                continue
            if isinstance(item.get("extracted_content"), str):
                self.exchange.saw(item["extracted_content"])
            if item.get("file_name"):
                names.append(f"[attachment: {item['file_name']}]")
        return list(dict.fromkeys(names))


def _branch_claude_ai(conversation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages: list[Mapping[str, Any]] = [
        one for one in conversation["chat_messages"] if isinstance(one, dict)
    ]
    known = {str(message.get("uuid")): message for message in messages if message.get("uuid")}
    parents = {str(message.get("parent_message_uuid")) for message in messages}
    if not parents & known.keys():
        return messages
    leaf = str(conversation.get("current_leaf_message_uuid"))
    if leaf not in known:
        leaves = [key for key in known if key not in parents]
        leaf = max(leaves, key=lambda key: str(known[key].get("created_at") or ""), default="")
    path: dict[str, Mapping[str, Any]] = {}
    while leaf in known and leaf not in path:
        path[leaf] = known[leaf]
        leaf = str(known[leaf].get("parent_message_uuid"))
    return list(reversed(path.values()))


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else [content]
    found = []
    for item in items:
        if isinstance(item, dict):
            found += [
                str(item[key])
                for key in ("title", "text", "url", "content")
                if isinstance(item.get(key), str)
            ]
    return "\n".join(found)


def _list(values: Mapping[str, Any], key: str) -> list[Any]:
    value = values.get(key)
    return value if isinstance(value, list) else []


def _sniff_claude_ai(head: Head) -> bool:
    text = first_text(head)
    return bool(_START.match(text) and _MESSAGES.search(text))


ADAPTER_CLAUDE_AI = Adapter(
    tool=TOOL_CLAUDE_AI,
    label="Claude.ai",
    roots=_roots,
    sniff=_sniff_claude_ai,
    parse=parse_claude_ai,
    whole=True,
    versions="exports (from their description)",
    reads=("the current branch of the conversation", "titles", "times", "projects"),
    leaves_out=("thinking", "pictures", "contents of attachments"),
)
