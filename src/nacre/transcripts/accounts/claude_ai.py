"""Claude.ai's data export: conversations whose messages know their parent where the owner edited or retried.

Of several branches the current one is read: the one that ends at the leaf the export names, else at the newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nacre.platform.ids import turn_hash
from nacre.transcripts.accounts.conversations import conversations, first_text
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.objects import parse_time
from nacre.transcripts.origins import attribute
from nacre.transcripts.tool_calls import answered, asked, outcome
from nacre.transcripts.trust import Exchange, Judgement, is_outside, is_own
from nacre.values.session import Flag, Session, Speaker, ToolCall, Trust, Turn

TOOL = "claude-ai"

_START = re.compile(r"\A\ufeff?\s*[\[{]")
_MESSAGES = re.compile(r'(?<!\\)"chat_messages"\s*:\s*\[')
_SPEAKERS = {"human": Speaker.OWNER, "user": Speaker.OWNER, "assistant": Speaker.AGENT}
_QUIET = frozenset({"thinking", "redacted_thinking", "token_budget", "flag", "voice_note"})


def parse(source: Source) -> Iterator[Session | Turn]:
    """Parse one export; see :class:`~nacre.transcripts.adapter.Adapter`."""
    for conversation in conversations(source):
        if isinstance(conversation.get("chat_messages"), list):
            yield from _Reader(source, conversation).read()
        else:
            source.unknown("conversation without chat_messages")


class _Reader:
    def __init__(self, source: Source, conversation: Mapping[str, Any]) -> None:
        self.source = source
        self.conversation = conversation
        self.exchange = Exchange()

    def read(self) -> Iterator[Session | Turn]:
        turns = [turn for message in _branch(self.conversation) for turn in self.take(message)]
        if not turns:
            return
        own, title = self.conversation.get("uuid"), self.conversation.get("name")
        project, model = self.conversation.get("project"), self.conversation.get("model")
        name = project.get("name") if isinstance(project, dict) else None
        yield Session(
            TOOL, str(own or turn_hash("session", turns[0].text, 0)),
            title=title if isinstance(title, str) and title else None,
            label=name if isinstance(name, str) else None,
            started=parse_time(self.conversation.get("created_at")) or turns[0].time,
            model=model if isinstance(model, str) else None,
        )  # fmt: skip
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
        cleaned = self.exchange.clean("\n\n".join(part for part in (*said, *self.attached(message)) if part.strip()))
        if not cleaned.text and not calls:
            return
        cited = any(block.get("citations") for block in blocks)
        judged = self.exchange.judge(cleaned.text) if speaker is Speaker.AGENT else Judgement()
        trust = Trust.UNTRUSTED if cited and speaker is Speaker.AGENT else judged.trust
        flags = judged.flags | (Flag.INJECTED if cleaned.injected else Flag.NONE)
        stamp, own = message.get("created_at"), message.get("uuid")
        turn = Turn(
            str(own or turn_hash(speaker, f"{stamp}\n{cleaned.text}", 0)), speaker, cleaned.text, parse_time(stamp),
            calls, flags, trust, unique=bool(own),
        )  # fmt: skip
        turn = attribute(turn, TOOL, self.source.identities, self.exchange, message, *blocks)
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
            made[key] = answered(call, outcome(output, is_error=block.get("is_error") is True), lambda: output)
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


def _branch(conversation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages: list[Mapping[str, Any]] = [one for one in conversation["chat_messages"] if isinstance(one, dict)]
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
            found += [str(item[key]) for key in ("title", "text", "url", "content") if isinstance(item.get(key), str)]
    return "\n".join(found)


def _list(values: Mapping[str, Any], key: str) -> list[Any]:
    value = values.get(key)
    return value if isinstance(value, list) else []


def _sniff(head: Head) -> bool:
    text = first_text(head)
    return bool(_START.match(text) and _MESSAGES.search(text))


def _roots(_: Places) -> Sequence[Root]:
    return ()


ADAPTER = Adapter(
    tool=TOOL,
    label="Claude.ai",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    whole=True,
    versions="exports (from their description)",
    reads=("the branch that ends the conversation", "titles", "times", "projects"),
    leaves_out=("thinking", "pictures", "contents of attachments"),
)
