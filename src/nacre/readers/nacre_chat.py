"""Conversations in the gateway's channels: ``<home>/gateway/sessions/<id>.jsonl``.

The files contain the messages, but not the memories and context used for the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from nacre.base.plain import total
from nacre.base.text import one_line, shorten
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Root,
    Source,
    parse_time,
)
from nacre.readers.trust import Conversation
from nacre.values.session import Flag, Session, Speaker, Tokens, Trust

TOOL = "nacre-chat"

_DIRECT = "direct"
_MAX_FILES_NOTED = 50
_MAX_NAME_CHARACTERS = 100
_BRACKETS_TO_PARENTHESES = str.maketrans("[]", "()")


class _File(msgspec.Struct, gc=False):
    """A file in a message."""

    name: str = ""
    mediaType: str = ""  # noqa: N815

    @property
    def note(self) -> str:
        """The note that replaces the file in the text.

        Anyone can choose a file's name, so brackets in it must not end the note.
        """
        name = one_line(
            f"{self.name or 'without a name'}{', ' * bool(self.mediaType)}{self.mediaType}"
        )
        return f"[file: {shorten(name.translate(_BRACKETS_TO_PARENTHESES), _MAX_NAME_CHARACTERS)}]"


class _Message(msgspec.Struct, gc=False):
    """A message. ``edits``: id of the earlier line whose text this message replaces."""

    role: str = ""
    content: str = ""
    sender: str = msgspec.field(default="", name="from")
    name: str = ""
    owner: bool = False
    attachments: list[_File] = msgspec.field(default_factory=list)
    edits: str = ""
    model: str = ""
    usage: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The message's text, with a note for each file."""
        return "\n".join(
            filter(
                None, [self.content, *(file.note for file in self.attachments[:_MAX_FILES_NOTED])]
            )
        )

    def is_one_of(self, identities: Sequence[str]) -> bool:
        """Return True if the sender is one of the owner's identities.

        Ids are unique only within a channel.
        """
        names = (identity.strip().partition(":") for identity in identities)
        return self.sender in {
            f"{channel.casefold()}:{name}" for channel, colon, name in names if colon
        }


class _Line(msgspec.Struct, gc=False):
    """One line of a conversation's file."""

    type: str = ""
    id: str = ""
    timestamp: str | None = None
    message: _Message = msgspec.field(default_factory=_Message)
    summary: str = ""
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
            case "compaction", _:
                others = Trust(self.source.carry.get("others", Trust.TRUSTED))
                yield from self.say(
                    line, Speaker.SYSTEM, line.summary, flags=Flag.SUMMARY, trust=others
                )
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
        """Yield a person's message. An edit replaces the original message, including its speaker."""
        speaker, trust = self.speaker(message)
        author = None if trust is Trust.TRUSTED else message.name or message.sender or None
        if trust is Trust.UNTRUSTED:
            self.talk.exchange.saw(message.text)
            self.source.carry["others"] = self.source.carry["answers"] = trust.value
        yield from self.say(
            line, speaker, message.text, trust=trust, author=author, identity=message.edits
        )

    def speaker(self, message: _Message) -> tuple[Speaker, Trust]:
        """Return a message's speaker and trust.

        If no identities are configured, every person in a direct chat counts as the owner. The
        message is then untrusted.
        """
        identities = self.source.identities
        if message.owner or message.is_one_of(identities):
            return Speaker.OWNER, Trust.TRUSTED
        may_be_owner = not identities and not self.source.carry.get("group")
        return Speaker.OWNER if may_be_owner else Speaker.SYSTEM, Trust.UNTRUSTED

    def agent(self, line: _Line, message: _Message) -> Items:
        """Yield an answer. Its trust depends on the messages since the last answer."""
        self.talk.learn(model=message.model)
        self.talk.spend(
            Tokens(total(message.usage, "input"), 0, total(message.usage, "output")).bounded
        )
        trust = Trust(self.source.carry.pop("answers", Trust.TRUSTED))
        yield from self.say(line, Speaker.AGENT, message.text, trust=trust)

    def say(
        self,
        line: _Line,
        speaker: Speaker,
        text: str,
        identity: str = "",
        **facts: Any,
    ) -> Items:
        yield from self.talk.write(
            speaker,
            text,
            parse_time(line.timestamp),
            identity=identity or line.id,
            stamp=line.timestamp,
            **facts,
        )


def channel_of(key: str) -> str:
    """Return the channel in a conversation's key.

    It is ``telegram`` for ``telegram:5054`` and ``agent:main:telegram:bot:group:99``.
    """
    parts = key.split(":")
    return parts[2] if parts[0] == "agent" and len(parts) > 5 else parts[0]


def sessions_folder(home: Path) -> Path:
    """Return the folder with conversations in nacre's home folder."""
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
    reads="speakers; summaries; names of files; errors",
    leaves_out="title; cost",
)
