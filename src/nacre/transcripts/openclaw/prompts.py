"""What OpenClaw wraps around a person's words, and the prompts that it writes itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from nacre.values.session import SessionKind

_METADATA = re.compile(
    r"^(?P<title>[A-Z][^\n]{0,80}?) \(untrusted[^)\n]*\):\s*\n```(?:json)?\n(?P<body>.*?)\n```\s*",
    re.DOTALL | re.MULTILINE,
)
_TIME = r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}"
_ENVELOPE = re.compile(rf"\A\s*\[[^\]\n]{{0,200}}?{_TIME}[^\]\n]{{0,40}}\] ?")
_EVENT = re.compile(r"^System(?: \(untrusted\))?: \[[^\]\n]*\][^\n]*(?:\n|\Z)", re.MULTILINE)
_HARNESS_LINE = re.compile(
    r"^\[(?:message_id|media attached)\b[^\]\n]*\][^\S\n]*$|^To send an image back,[^\n]*$", re.MULTILINE
)
_RECALLED = re.compile(
    r"<(relevant[-_]memories|recalled[-_]memories|memory[-_]context|active_memory_plugin)\b[^>]*>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
_RECALLED_SECTION = re.compile(
    rf"^## agenr Memory Context.*?(?=^[A-Z][^\n]{{0,80}}? \(untrusted|^\[[^\]\n]*{_TIME}[^\]\n]*\]|\Z)",
    re.DOTALL | re.MULTILINE,
)
_CRON = re.compile(r"\[cron:[^\]\n]*\]")
_PROMPTS: tuple[tuple[re.Pattern[str], SessionKind | None], ...] = (
    (_CRON, SessionKind.SCHEDULED),
    (re.compile(r"Read HEARTBEAT\.md|\[?HEARTBEAT\b|Heartbeat:", re.IGNORECASE), SessionKind.HEARTBEAT),
    (re.compile(r"\[Subagent (?:Context|Task)\]"), SessionKind.SUBAGENT),
    (re.compile(r"A new session was started via /(?:new|reset)|Pre-compaction memory flush"), None),
    (re.compile(r"An async command you ran earlier has completed"), None),
)
_SILENT_REPLIES = frozenset({"HEARTBEAT_OK", "NO_REPLY"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user message taken apart.

    ``author`` is only named in a group, where nobody can tell whether it was the owner who wrote.
    ``harness`` says that OpenClaw wrote the message; ``kind`` is what a session of such messages is.
    """

    words: str
    author: str | None = None
    label: str | None = None
    harness: bool = False
    kind: SessionKind | None = None


def read_prompt(text: str) -> Prompt:
    """Take a user message apart."""
    facts: dict[str, Any] = {}
    for match in _METADATA.finditer(text):
        facts |= _facts(match["title"], match["body"])
    rest = _RECALLED_SECTION.sub("", _RECALLED.sub("", _METADATA.sub("", text)))
    words = _HARNESS_LINE.sub("", _EVENT.sub("", rest)).strip()
    words = _ENVELOPE.sub("", words).strip()
    for pattern, kind in _PROMPTS:
        if pattern.match(words):
            return Prompt(words, label=facts.get("label"), harness=True, kind=kind)
    if not words:
        events = "".join(match[0] for match in _EVENT.finditer(rest)).strip()
        return Prompt(events, label=facts.get("label"), harness=True)
    return Prompt(words, author=facts.get("author"), label=facts.get("label"))


def is_silent(reply: str) -> bool:
    """Whether the agent only said that it has nothing to say."""
    return reply.strip(" .*`\n") in _SILENT_REPLIES


def _facts(title: str, body: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body.encode("utf-8", errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    facts: dict[str, Any] = {}
    label = value.get("conversation_label") or value.get("group_subject")
    if title.startswith("Conversation info") and isinstance(label, str):
        facts["label"] = label
    sender = value.get("name") or value.get("sender") or value.get("label")
    if title.startswith("Conversation info") and value.get("is_group_chat"):
        facts["author"] = sender if isinstance(sender, str) else "somebody"
    return facts
