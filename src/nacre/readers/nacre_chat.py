"""Conversations in the gateway's channels: ``<home>/gateway/sessions/<id>.jsonl``.

The files contain the messages, but not the memories and context given to the agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from nacre.base.text import one_line, shorten
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Root,
    Source,
    parse_time,
)
from nacre.readers.conversation import tokens_of
from nacre.readers.trust import Conversation
from nacre.values.session import Session, Speaker, Trust

TOOL = "nacre-chat"

_DIRECT = "direct"
_MAX_FILES_NOTED = 50
_MAX_NAME_CHARACTERS = 100
_BRACKETS_TO_PARENTHESES = str.maketrans("[]", "()")


class _File(msgspec.Struct, gc=False):
    name: str = ""
    mediaType: str = ""  # noqa: N815

    @property
    def note(self) -> str:
        name = one_line(
            f"{self.name or 'without a name'}{', ' * bool(self.mediaType)}{self.mediaType}"
        )
        # Anyone can choose the name, so its brackets must not end the note.
        return f"[file: {shorten(name.translate(_BRACKETS_TO_PARENTHESES), _MAX_NAME_CHARACTERS)}]"


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    content: str = ""
    sender: str = msgspec.field(default="", name="from")
    name: str = ""
    owner: bool = False
    attachments: list[_File] = msgspec.field(default_factory=list)
    model: str = ""
    usage: dict[str, Any] = {}

    @property
    def text(self) -> str:
        return "\n".join(
            filter(
                None, [self.content, *(file.note for file in self.attachments[:_MAX_FILES_NOTED])]
            )
        )

    def is_one_of(self, identities: Sequence[str]) -> bool:
        names = (identity.strip().partition(":") for identity in identities)
        return self.sender in {
            f"{channel.casefold()}:{name}" for channel, colon, name in names if colon
        }


class _Line(msgspec.Struct, gc=False):
    type: str = ""
    id: str = ""
    timestamp: str | None = None
    message: _Message = msgspec.field(default_factory=_Message)
    reason: str = ""
    key: str = ""
    chatType: str = _DIRECT  # noqa: N815


_LINE = msgspec.json.Decoder(_Line)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.talk = Conversation(source, Session(TOOL, source.path.name.removesuffix(".jsonl")))

    def __iter__(self) -> Items:
        return self.talk.read(_LINE, self.take)

    def take(self, _: int, line: _Line) -> Items:
        match line.type, line.message.role:
            case "session", _:
                self.begin(line)
            case "message", "user":
                yield from self.user(line, line.message)
            case "message", "assistant":
                yield from self.agent(line, line.message)
            case "failure", _:
                yield from self.talk.failed(line.id, line.reason, parse_time(line.timestamp))
            case kind, role:
                self.source.unknown(f"{kind or 'no type'}{'/' * bool(role)}{role}")

    def begin(self, line: _Line) -> None:
        session = self.talk.session
        self.source.carry["group"] = line.chatType != _DIRECT
        self.talk.session = replace(
            session,
            native_id=line.id or session.native_id,
            label=line.key or None,
            started=parse_time(line.timestamp),
        )

    def user(self, line: _Line, message: _Message) -> Items:
        speaker, trust = self.speaker(message)
        author = None if trust is Trust.TRUSTED else message.name or message.sender or None
        if trust is Trust.UNTRUSTED:
            self.talk.exchange.record_outside(message.text)
            self.source.carry["answers"] = trust.value
        yield from self.say(line, speaker, message.text, trust=trust, author=author)

    def speaker(self, message: _Message) -> tuple[Speaker, Trust]:
        identities = self.source.identities
        if message.owner or message.is_one_of(identities):
            return Speaker.OWNER, Trust.TRUSTED
        # Without configured identities, anyone in a direct chat may be the owner.
        may_be_owner = not identities and not self.source.carry.get("group")
        return Speaker.OWNER if may_be_owner else Speaker.SYSTEM, Trust.UNTRUSTED

    def agent(self, line: _Line, message: _Message) -> Items:
        self.talk.learn(model=message.model)
        self.talk.spend(tokens_of(message.usage))
        trust = Trust(self.source.carry.pop("answers", Trust.TRUSTED))
        yield from self.say(line, Speaker.AGENT, message.text, trust=trust)

    def say(
        self,
        line: _Line,
        speaker: Speaker,
        text: str,
        **facts: Any,
    ) -> Items:
        yield from self.talk.write(
            speaker,
            text,
            parse_time(line.timestamp),
            identity=line.id,
            stamp=line.timestamp,
            **facts,
        )


def channel_of(key: str) -> str:
    """Return the channel name in a conversation's key.

    It is ``telegram`` in both ``telegram:5054`` and ``agent:main:telegram:bot:group:99``.
    """
    parts = key.split(":")
    return parts[2] if parts[0] == "agent" and len(parts) > 5 else parts[0]


def sessions_folder(home: Path) -> Path:
    """Return the folder of the gateway's conversations."""
    return home / "gateway" / "sessions"


def _sniff(head: Head) -> bool:
    first = head.first
    return (
        first.get("type") == "session" and isinstance(first.get("key"), str) and "channel" in first
    )


ADAPTER = Adapter(
    tool=TOOL,
    label="nacre's gateway",
    roots=lambda places: [
        Root(sessions_folder(places.own or places.home / ".nacre"), ("*.jsonl",))
    ],
    sniff=_sniff,
    parse=_Reader,
    versions="1",
    reads="speakers; names of files; errors",
    leaves_out="title; cost",
)
