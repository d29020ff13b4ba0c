"""Conversion of a session's messages to turns, for most readers.

A reader converts its records to :class:`Message`. :func:`turns_of` yields the turns of a file that
is always read from the start, and :class:`Chat` those of a growing file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from nacre.base.plain import JsonObject, Values, string
from nacre.readers.adapter import Items, Source, content_blocks, local_time
from nacre.readers.conversation import clean, ending
from nacre.readers.generic import ROLES, read_line
from nacre.readers.trust import Conversation
from nacre.values.session import Flag, Session, Speaker, Tokens

HOST: Values = {"synthetic": True}
"""Field that marks text that the tool wrote in the user's role."""
IMAGE = "[image]"
"""Placeholder for an image, whose text is not recorded."""
OBJECT = msgspec.json.Decoder(JsonObject)

_NO_TEXT = frozenset({"type", "kind", "id", "annotations"})
_UNIQUE_LENGTH = 26


@dataclass(slots=True)
class Message:
    """A message by the owner, the agent or a tool, with its tool results.

    ``id`` counts as unique in all sessions if it is as long as a ULID. ``claims`` are records and
    blocks that may name the author. Only answers have a ``model`` and ``tokens``.
    """

    speaker: Speaker
    time: datetime | None
    id: str | None = None
    claims: list[Values] = field(default_factory=list)
    flags: Flag = Flag.NONE
    texts: list[str | None] = field(default_factory=list)
    calls: list[tuple[str, str, object]] = field(default_factory=list)
    results: list[tuple[str, str, str]] = field(default_factory=list)
    model: str | None = None
    tokens: Tokens = field(default_factory=Tokens)

    @classmethod
    def of(cls, source: Source, role: object, *facts: Any, **more: Any) -> Message:
        """Return a message by the speaker that ``role`` means. Unknown roles are counted."""
        speaker = ROLES.get(str(role).lower())
        if speaker is None:
            source.unknown(f"role {role}")
        return cls(speaker or Speaker.SYSTEM, *facts, **more)

    def call(self, call: object, name: object, arguments: object) -> None:
        """Add a tool call with the id ``call``. The arguments are an object or text."""
        self.calls.append((str(call or ""), str(name or "tool"), arguments))

    def result(
        self, call: object, value: object, *, is_error: bool = False, exit_code: object = None
    ) -> None:
        """Add the result of a tool call, or the user's refusal of the call."""
        output = words_of(value) or (json.dumps(value, ensure_ascii=False) if value else "")
        result = ending(output, exit_code=exit_code, is_error=is_error)
        self.results.append((str(call), result, output))

    def answer(self, record: Values, output: object) -> None:
        """Add a tool result whose call id and error flag are in ``record``."""
        self.result(
            string(record, "tool_use_id", "tool_call_id", "toolCallId"),
            output,
            is_error=record.get("is_error") is True or record.get("isError") is True,
            exit_code=record.get("exit_code"),
        )


def message_of(source: Source, record: Values, stamp: object = None, **facts: Any) -> Message:
    """Convert a message record of OpenAI's or Anthropic's API.

    Text next to a tool result counts as the host's. ``facts`` are other fields of :class:`Message`.
    """
    role, blocks, line = string(record, "role", "type"), content_blocks(record), read_line(record)
    message = Message.of(source, role, local_time(stamp), **facts)
    message.claims += [record, *blocks]
    for block in blocks:
        if block.get("type") == "tool_result":
            message.answer(block, block.get("content"))
            message.claims.append(HOST)
    if message.speaker is Speaker.TOOL:
        message.answer(record, record.get("content"))
    elif line and message.speaker is not Speaker.SYSTEM:
        message.texts.append(line.text)
        for call in line.calls:
            message.call(call["id"], call["name"], call["arguments"])
    return message


class Chat:
    """A reader of a growing file, whose subclasses convert each record in ``take``."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)

    @property
    def can_grow(self) -> bool:
        """True if the open turn may continue because none of its calls has a result."""
        return all(call.call.outcome is None for call in self.talk.calls.values())

    def take(self, offset: int, record: Values) -> Items:
        raise NotImplementedError

    def __iter__(self) -> Items:
        return self.talk.read(OBJECT, self.take)


def say(
    talk: Conversation, message: Message, offset: int | None = None, *, joins: bool = False
) -> Items:
    """Add a message to the conversation, and yield the turns that this completes.

    The agent's message continues the open turn if both have the same id or ``joins`` is True. In a
    growing file, ``offset`` is the position of its record.
    """
    opened, own = talk.opened, message.id
    text, unique = "\n\n".join(filter(None, message.texts)), len(own or "") >= _UNIQUE_LENGTH
    stamp = None if offset is None else str(message.time)
    is_agents = message.speaker is Speaker.AGENT
    is_answer = is_agents and bool(text.strip() or message.calls)
    if is_answer and not joins and not (own and opened and opened.id == own):
        yield from talk.close()
    before = talk.place(offset) if is_answer and offset is not None else None
    talk.learn(model=message.model)
    talk.spend(message.tokens)
    if is_answer:
        if talk.opened is None:
            seed = clean(text).text or str(message.calls[:1])
            yield from talk.open(
                own, message.time, stamp=stamp, seed=seed, unique=unique, before=before
            )
        talk.add_text(text)
        for call in message.calls:
            talk.add_call(*call)
    for call_id, result, output in message.results:
        if IMAGE in output:
            talk.exchange.record_unseen()
        open_call = talk.calls.get(call_id)  # the output can follow the result
        result = (open_call and open_call.call.outcome) or result
        talk.result(call_id, result, output)
    if message.speaker not in (Speaker.AGENT, Speaker.TOOL):
        yield from talk.write(
            talk.prompter if message.speaker is Speaker.OWNER else message.speaker,
            text,
            message.time,
            *message.claims,
            identity=own,
            stamp=stamp,
            flags=message.flags,
            unique=unique,
        )


def turns_of(talk: Conversation, messages: Iterable[Message]) -> Items:
    """Convert a session's messages to turns.

    In a sub-agent's session, the owner's text counts as the calling agent's.
    """
    for message in messages:
        yield from say(talk, message)
    yield from talk.end()


def words_of(value: Any, depth: int = 8) -> str:
    """Return the text of a message or a tool's output, even if nested in lists and objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        if value.get("type") == "image" or "Image" in value:
            return IMAGE
        value = [item for key, item in value.items() if key not in _NO_TEXT]
    parts = [words_of(item, depth - 1) for item in value] if depth and type(value) is list else []
    return "\n".join(filter(None, parts))
