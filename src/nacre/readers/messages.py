"""Messages of a session, for formats that are always read from the start.

A reader converts its records to :class:`Message`. :func:`turns_of` converts messages to turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from nacre.base.plain import Values
from nacre.readers.adapter import Items
from nacre.readers.conversation import outcome
from nacre.readers.trust import Conversation, OpenTurn
from nacre.values.session import Flag, Speaker

IMAGE = "[image]"
"""Text in place of an image, whose words are not recorded."""
_NO_TEXT = frozenset({"type", "kind", "id", "annotations"})
_REFUSED = re.compile(
    r"(?:the )?user (?:has )?(?:declined|denied|rejected|cancell?ed)"
    r"|(?:tool|permission)\b[^\n]{0,40} (?:denied|rejected|cancell?ed) by (?:the )?user",
    re.IGNORECASE,
)
"""Matches the beginning of an output that tells the model about the user's refusal."""


@dataclass(slots=True)
class Message:
    """A message from the owner, the agent or the tool, with the results that it delivers.

    ``id``: the tool's id, or None. ``unique``: True if only copies of a message have its id.
    ``claims``: records and blocks that might name the author.
    """

    speaker: Speaker
    time: datetime | None
    id: str | None = None
    unique: bool = True
    claims: list[Values] = field(default_factory=list)
    flags: Flag = Flag.NONE
    texts: list[str | None] = field(default_factory=list)
    calls: list[tuple[str, str, object]] = field(default_factory=list)
    results: list[tuple[str, str, str]] = field(default_factory=list)

    def call(self, call: object, name: object, arguments: object) -> None:
        """Add a tool call by its id. ``arguments``: an object or text."""
        self.calls.append((str(call), str(name or "tool"), arguments))

    def result(
        self, call: object, value: object, *, is_error: bool = False, exit_code: object = None
    ) -> None:
        """Add the result of a tool call. Its text can show that the user refused the call."""
        output, code = words_of(value), exit_code if type(exit_code) is int else None
        ending = outcome(output, exit_code=code, is_error=is_error)
        self.results.append((str(call), "rejected" if _REFUSED.match(output) else ending, output))


def turns_of(talk: Conversation, messages: Iterable[Message]) -> Items:
    """Yield the session and its turns.

    Successive messages of the agent with one id are one turn. Text from the owner in a sub-agent's
    session counts as the calling agent's.
    """
    for message in messages:
        speaker, time, own = message.speaker, message.time, message.id
        text = "\n\n".join(filter(None, message.texts))
        unique = message.unique and bool(own)
        if speaker is Speaker.AGENT and (text or message.calls):
            identity = own or talk.new_id(speaker, None, text or message.calls[0][0])
            if talk.opened is None or talk.opened.id != identity:
                yield from talk.open(OpenTurn(identity, time, unique=unique))
            talk.add_text(text)
            for call in message.calls:
                talk.add_call(*call)
        for call_id, ending, output in message.results:
            if IMAGE in output:
                talk.exchange.unseen()
            talk.result(call_id, ending, partial(str, output))
        if speaker is not Speaker.AGENT:
            yield from talk.write(
                talk.prompter if speaker is Speaker.OWNER else speaker,
                text,
                time,
                *message.claims,
                identity=own,
                flags=message.flags,
                unique=unique,
            )
    yield from talk.end()


def words_of(value: Any, depth: int = 8) -> str:
    """Return the text of a message or a tool's output, which can be nested in lists and objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        if value.get("type") == "image" or "Image" in value:
            return IMAGE
        value = [item for key, item in value.items() if key not in _NO_TEXT]
    parts = [words_of(item, depth - 1) for item in value] if depth and type(value) is list else []
    return "\n".join(filter(None, parts))
