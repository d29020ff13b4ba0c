"""What OpenClaw wraps around a person's words, and the prompts that it writes itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from nacre.transcripts.phrases import is_tools, without_tools_lines
from nacre.transcripts.senders import Sender, read_sender, sender_in, sender_of
from nacre.values.session import SessionKind

TOOL = "openclaw"

_METADATA = re.compile(
    r"^(?P<title>[A-Z][^\n]{0,80}?) \(untrusted[^)\n]*\):\s*\n```(?:json)?\n(?P<body>.*?)\n```\s*",
    re.DOTALL | re.MULTILINE,
)
_TIME = r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}"
_ENVELOPE = re.compile(rf"^[^\S\n]*\[(?P<head>[^\]\n]{{0,200}}?){_TIME}[^\]\n]{{0,40}}\] ?", re.MULTILINE)
_WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)?\s*\Z")
_HARNESS_LINE = re.compile(
    r"^\[(?:message_id|media attached)\b[^\]\n]*\][^\S\n]*$|^To send an image back,[^\n]*$", re.MULTILINE
)
_RECALLED_SECTION = re.compile(
    rf"^## agenr Memory Context.*?(?=^[A-Z][^\n]{{0,80}}? \(untrusted|^\[[^\]\n]*{_TIME}[^\]\n]*\]|\Z)",
    re.DOTALL | re.MULTILINE,
)
_NOW = "[Current message - respond to this]"
"""What others said in the chat stands before it, the message after it; the last one is OpenClaw's."""
_REPLIED = re.compile(r"\[Replying to [^\]\n]{0,200}\](?:.*\[/Replying\]|.*\Z)", re.DOTALL)
_FORWARDED = re.compile(r"^\[Forwarded\b[^\]\n]{0,200}\]", re.MULTILINE)
_FORWARDED_BLOCK = "Forwarded message"
_ABOUT = ("Conversation info", "Sender")
"""Blocks that say who wrote; all others hold what somebody wrote elsewhere."""
_OWN_FACES = frozenset({"control-ui", "openclaw-control-ui", "openclaw-tui", "webchat", "tui", "cli"})
"""OpenClaw's own faces: who writes there is the owner."""
_ELSEWHERE = ("username", "e164", "tag")
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

    ``senders`` are those whom it names, as chats do; ``is_direct`` where they wrote to the agent alone. ``others``
    is what others wrote: what was answered or quoted, and what OpenClaw added. ``is_anothers`` says that somebody else
    wrote it all. ``harness`` says that OpenClaw wrote the message; ``kind`` is what a session of such messages is.
    """

    words: str
    senders: tuple[Sender, ...] = ()
    is_direct: bool = False
    others: tuple[str, ...] = ()
    is_anothers: bool = False
    label: str | None = None
    harness: bool = False
    kind: SessionKind | None = None

    @property
    def author(self) -> str | None:
        """The first whom it names."""
        return self.senders[0].author if self.senders else None


def read_prompt(text: str) -> Prompt:
    """Take a user message apart."""
    about = _about(text)
    others = [match[0] for match in _METADATA.finditer(text) if not match["title"].startswith(_ABOUT)]
    is_anothers = any(other.startswith(_FORWARDED_BLOCK) for other in others)
    before, _, rest = _METADATA.sub("", text).rpartition(_NOW)
    rest = _cut(_REPLIED, _RECALLED_SECTION.sub("", rest), others)
    words, added = without_tools_lines(TOOL, rest)
    words = _HARNESS_LINE.sub("", words).strip()
    words, named, sender = _addressed(words)
    forwarded = _FORWARDED.search(words)
    if forwarded:
        others.append(words[forwarded.start() :])
        is_anothers, words = is_anothers or not forwarded.start(), words[: forwarded.start()].strip() or words
    found = Prompt(words, (), label=about.label, others=(*others, *added, *filter(None, [before])))
    for pattern, kind in _PROMPTS:
        if pattern.match(words):
            return replace(found, harness=True, kind=kind)
    if not words or is_tools(TOOL, words):
        return replace(found, words=words or "\n".join(added).strip(), harness=True, is_anothers=True)
    senders = (*about.senders, *named, *([sender] if sender else []))
    return replace(found, senders=senders, is_direct=not (about.is_group or sender), is_anothers=is_anothers)


def _cut(pattern: re.Pattern[str], text: str, cut: list[str]) -> str:
    """A text without what a pattern finds in it, which is added to what was cut."""
    cut += [match[0] for match in pattern.finditer(text)]
    return pattern.sub("", text)


def _addressed(words: str) -> tuple[str, list[Sender], Sender | None]:
    """A message without its envelope, whom the envelopes in it name (several, where messages waited for the agent), and
    whom the message names itself, as bridges do.

    An envelope with a time alone comes from a face of OpenClaw's.
    """
    heads = [_WEEKDAY.sub("", match["head"]).strip() for match in _ENVELOPE.finditer(words)]
    named = [sender_in(head) for head in heads if head]
    first = _ENVELOPE.match(words)
    words = words[first.end() :] if first else words
    words, sender = read_sender(words) if not (named and first) else (words, None)
    return words.strip(), named, sender


@dataclass(frozen=True, slots=True)
class _About:
    """What OpenClaw says of a message."""

    senders: tuple[Sender, ...] = ()
    is_group: bool = False
    label: str | None = None


def _about(text: str) -> _About:
    """What the blocks before a message say of it; those that come later may be anybody's."""
    facts: dict[str, dict[str, Any]] = {}
    at = 0
    while match := _METADATA.match(text, at):
        facts.setdefault(match["title"].partition(" ")[0], _object(match["body"]))
        at = match.end()
    talk, sender = facts.get("Conversation", {}), facts.get("Sender", {})
    label = talk.get("conversation_label") or talk.get("group_subject")
    is_group = bool(talk.get("is_group_chat"))
    told = sender or {"id": talk.get("sender_id"), "name": talk.get("sender")}
    named = sender_of(told) if _is_in_chat(told, is_group=is_group) else None
    if is_group and named is None:
        named = sender_of({"name": "somebody"})
    return _About((named,) if named else (), is_group, label if isinstance(label, str) else None)


def _is_in_chat(sender: Mapping[str, Any], *, is_group: bool) -> bool:
    """Whether a sender writes in a chat, not at a face of OpenClaw's."""
    is_own = str(sender.get("label")).casefold() in _OWN_FACES and not any(map(sender.get, _ELSEWHERE))
    return is_group or not is_own


def is_silent(reply: str) -> bool:
    """Whether the agent only said that it has nothing to say."""
    return reply.strip(" .*`\n") in _SILENT_REPLIES


def _object(body: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body.encode("utf-8", errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
