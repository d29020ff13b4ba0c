"""ChatGPT's data export: conversations as trees of messages, of which the owner sees one branch.

Only the branch that ends at ``current_node`` is read: an answer that was made anew, or a question that was edited
away, was discarded by the owner. Hidden and system messages, thoughts and tool output are no turns.
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
from nacre.transcripts.tool_calls import answered, asked
from nacre.transcripts.trust import Exchange, Judgement, is_outside, is_own
from nacre.values.session import Flag, Session, Speaker, ToolCall, Trust, Turn

TOOL = "chatgpt"

_START = re.compile(r"\A\ufeff?\s*[\[{]")
_MAPPING = re.compile(r'(?<!\\)"mapping"\s*:\s*\{')
_CITATION = re.compile("\ue200.*?\ue201|【[^】\n]{0,80}†[^】\n]{0,200}】", re.DOTALL)
_SPOKEN = frozenset({"text", "multimodal_text"})
_UNSPOKEN = frozenset({
    "thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "system_error", "code",
    "execution_output", "tether_quote", "tether_browsing_display", "tether_browsing_code", "sonic_webpage",
})  # fmt: skip
_OUTSIDE_TOOL = re.compile(r"web|brows|search|tether|myfiles|connector|plugin|gmail|jit", re.IGNORECASE)
_FROM_THE_WEB = ("citations", "search_result_groups")


def parse(source: Source) -> Iterator[Session | Turn]:
    """Parse one export; see :class:`~nacre.transcripts.adapter.Adapter`."""
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

    def read(self) -> Iterator[Session | Turn]:
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
        model = next((name for name in models if isinstance(name, str)), self.conversation.get("default_model_slug"))
        title = self.conversation.get("title")
        return Session(
            TOOL, str(own or first), title=title if isinstance(title, str) else None,
            started=parse_time(self.conversation.get("create_time")) or turns[0].time,
            model=model if isinstance(model, str) else None,
        )  # fmt: skip

    def take(self, message: Mapping[str, Any]) -> Iterator[Turn]:
        facts = _facts(message)
        role = _mapping(message, "author").get("role")
        if role == "tool":
            self.hear(message)
        elif facts.get("is_visually_hidden_from_conversation") or facts.get("is_user_system_message"):
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
            outcome = "error" if run.get("status") in ("failed_with_in_kernel_exception", "failed") else "ok"
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
            str(identity or turn_hash(speaker, f"{stamp}\n{cleaned.text}", 0)), speaker, cleaned.text,
            parse_time(stamp), calls, flags, trust, unique=bool(identity),
        )  # fmt: skip
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
    reads=("the branch that ends the conversation", "titles", "times", "model"),
    leaves_out=("other branches", "thoughts", "pictures", "contents of attachments"),
)
