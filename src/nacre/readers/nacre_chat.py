"""nacre's own conversations in channels: ``<home>/gateway/sessions/<id>.jsonl``, as its gateway writes them.

They hold what was said, and nothing of what an answer was made from: no memories, no framed context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from nacre.base.text import one_line, shorten
from nacre.readers.adapter import Adapter, Head, Items, Places, Root, Source, parse_time, records
from nacre.readers.trust import Conversation
from nacre.values.session import Flag, Session, Speaker, Tokens, Trust, Turn

TOOL = "nacre-chat"

_DIRECT = "direct"
_MOST_FILES = 50
_NAME_CHARACTERS = 100
_NO_BRACKETS = str.maketrans("[]", "()")


class _File(msgspec.Struct, gc=False):
    """A file that came with a message."""

    name: str = ""
    mediaType: str = ""  # noqa: N815

    @property
    def note(self) -> str:
        """What stands for it in the text. Its name is anybody's: it cannot end the note."""
        told = one_line(
            f"{self.name or 'without a name'}{', ' * bool(self.mediaType)}{self.mediaType}"
        )
        return f"[file: {shorten(told.translate(_NO_BRACKETS), _NAME_CHARACTERS)}]"


class _Usage(msgspec.Struct, gc=False):
    """What an answer cost, in tokens."""

    input: int = 0
    output: int = 0


class _Message(msgspec.Struct, gc=False):
    """What somebody wrote. ``edits`` is the id of the line whose text it replaces."""

    role: str = ""
    content: str = ""
    sender: str = msgspec.field(default="", name="from")
    name: str = ""
    owner: bool = False
    attachments: list[_File] = msgspec.field(default_factory=list)
    edits: str = ""
    model: str = ""
    usage: _Usage = msgspec.field(default_factory=_Usage)

    @property
    def text(self) -> str:
        """Its words, and a note for each file."""
        return "\n".join(
            filter(None, [self.content, *(file.note for file in self.attachments[:_MOST_FILES])])
        )

    def is_one_of(self, identities: Sequence[str]) -> bool:
        """Whether the owner configured whoever wrote it, with the channel: another one's ids may be the same."""
        names = (one.strip().partition(":") for one in identities)
        return self.sender in {
            f"{channel.casefold()}:{one}" for channel, colon, one in names if colon
        }


class _Line(msgspec.Struct, gc=False):
    """One line."""

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
    """Reads the lines of one conversation."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.talk = Conversation(source, Session(TOOL, source.path.name.removesuffix(".jsonl")))

    def read(self) -> Items:
        """The session and its turns."""
        for _, raw in self.source.lines():
            for line in records(self.source, raw, _LINE):
                yield from self.take(line)
        yield from self.talk.finish()

    def take(self, line: _Line) -> Items:
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
        known = self.talk.session
        self.source.carry["group"] = line.chatType != _DIRECT
        self.talk.session = replace(
            known,
            native_id=line.id or known.native_id,
            label=line.key or None,
            started=parse_time(line.timestamp),
        )

    def user(self, line: _Line, message: _Message) -> Items:
        """What a person wrote. An edit takes the place of what it replaces, and is whose it is."""
        speaker, trust = self.speaker(message)
        author = None if trust is Trust.TRUSTED else message.name or message.sender or None
        if trust is Trust.UNTRUSTED:
            self.talk.exchange.saw(message.text)
            self.source.carry["others"] = self.source.carry["answers"] = trust.value
        yield from self.say(
            line, speaker, message.text, trust=trust, author=author, identity=message.edits
        )

    def speaker(self, message: _Message) -> tuple[Speaker, Trust]:
        """As in OpenClaw's sessions: where the owner configured no identity, who writes to the agent alone may be the
        owner, and is not trusted."""
        identities = self.source.identities
        if message.owner or message.is_one_of(identities):
            return Speaker.OWNER, Trust.TRUSTED
        may_be = not identities and not self.source.carry.get("group")
        return Speaker.OWNER if may_be else Speaker.SYSTEM, Trust.UNTRUSTED

    def agent(self, line: _Line, message: _Message) -> Items:
        """An answer is no more to be trusted than what it was made from: the messages since the one before."""
        if message.model and message.model != self.talk.session.model:
            self.talk.session = replace(self.talk.session, model=message.model)
        self.talk.spend(Tokens(input=message.usage.input, output=message.usage.output).bounded)
        answers = Trust(self.source.carry.pop("answers", Trust.TRUSTED))
        yield from self.say(line, Speaker.AGENT, message.text, trust=answers)

    def say(
        self,
        line: _Line,
        speaker: Speaker,
        text: str,
        *,
        flags: Flag = Flag.NONE,
        trust: Trust = Trust.TRUSTED,
        author: str | None = None,
        identity: str = "",
    ) -> Items:
        cleaned = self.talk.clean(text)
        if not cleaned.text:
            return
        flags |= Flag.INJECTED if cleaned.injected else Flag.NONE
        identity = identity or line.id or self.talk.new_id(speaker, line.timestamp, cleaned.text)
        time = parse_time(line.timestamp)
        yield from self.talk.say(
            Turn(identity, speaker, cleaned.text, time, flags=flags, trust=trust, author=author)
        )


def channel_of(key: str) -> str:
    """The channel of a conversation: ``telegram`` of ``telegram:5054`` and ``agent:main:telegram:bot:group:99``."""
    parts = key.split(":")
    return parts[2] if parts[0] == "agent" and len(parts) > 5 else parts[0]


def sessions_folder(home: Path) -> Path:
    """Where a home keeps its conversations."""
    return home / "gateway" / "sessions"


def _sniff(head: Head) -> bool:
    first = head.objects[0] if head.objects else {}
    return (
        first.get("type") == "session" and isinstance(first.get("key"), str) and "channel" in first
    )


def parse(source: Source) -> Items:
    """Parse one conversation; see :class:`~nacre.readers.adapter.Adapter`."""
    return _Reader(source).read()


def _roots(places: Places) -> Sequence[Root]:
    return [Root(sessions_folder(places.own or places.home / ".nacre"), ("*.jsonl",))]


ADAPTER = Adapter(
    tool=TOOL,
    label="nacre's gateway",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    versions="session version 1",
    reads=(
        "messages and their speakers",
        "conversation",
        "model",
        "tokens",
        "summaries",
        "names of files",
        "errors of the model",
    ),
    leaves_out=("contents of files", "cost"),
)
