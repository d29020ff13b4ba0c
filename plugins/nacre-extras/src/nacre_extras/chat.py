"""Shared code for agents that store messages with a role, in the fields of OpenAI's or Anthropic's API."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nacre.base.plain import JsonObject, Values, string, total
from nacre.base.times import in_utc
from nacre.readers.adapter import Items, Source, content_blocks, parse_time
from nacre.readers.conversation import clean, outcome
from nacre.readers.generic import ROLES, read_line, said
from nacre.readers.trust import Conversation, OpenTurn
from nacre.values.session import Session, Speaker, Tokens

HOST: Values = {"synthetic": True}
"""Claim for text that the tool wrote as the user."""

OBJECT = msgspec.json.Decoder(JsonObject)
_UUID_LENGTH = 36
_FRESH = (
    "input_tokens inputTokens input_other inputOther cache_creation_tokens cacheCreationTokens "
    "input_cache_creation inputCacheCreation cache_write_tokens"
)
_CACHED = "cache_read_tokens cacheReadTokens input_cache_read inputCacheRead"
_OUTPUT = "output_tokens outputTokens output"
_DECLINED = re.compile(r"(?:rejected|denied|declined|cancell?ed) by (?:the )?user", re.IGNORECASE)
_EXIT = re.compile(r"exit(?:ed with)? code:? ([1-9]\d{0,8})", re.IGNORECASE)


class Chat:
    """Builds the turns of one session. Subclasses read one record in ``take``."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        self.talk = Conversation(source, session)

    @property
    def can_grow(self) -> bool:
        """True if the open turn can continue, because none of its calls has a result."""
        return all(call.call.outcome is None for call in self.talk.calls.values())

    def take(self, offset: int, record: Values) -> Items:
        raise NotImplementedError

    def read(self) -> Items:
        return self.talk.read(OBJECT, self.take)

    def message(
        self, offset: int, message: Values, stamp: object, *claims: Values, **facts: Any
    ) -> Items:
        """Yield the turns of one message. For ``facts``, see :meth:`answer`."""
        role = string(message, "role", "type") or ""
        speaker, line, blocks = ROLES.get(role), read_line(message), content_blocks(message)
        for block in blocks:
            if block.get("type") == "tool_result":
                self.result(block, block.get("content"))
                claims = (*claims, HOST)  # the tool writes text next to a result
        if speaker is Speaker.TOOL:
            self.result(message, message.get("content"))
        elif speaker is None:
            self.source.unknown(f"role {role}")
        elif line and speaker is Speaker.OWNER:
            claims, identity = (message, *blocks, *claims), facts.get("identity")
            yield from self.say(self.talk.prompter, line.text, stamp, *claims, identity=identity)
        elif line and speaker is Speaker.AGENT:
            yield from self.answer(offset, stamp, line.text, line.calls, **facts)

    def say(
        self, speaker: Speaker, text: str, stamp: object, *claims: Values, **facts: Any
    ) -> Items:
        """Yield a complete turn. ``facts`` are its other fields."""
        unique = len(facts.get("identity") or "") == _UUID_LENGTH
        return self.talk.write(
            speaker, text, time_of(stamp), *claims, stamp=str(stamp), unique=unique, **facts
        )

    def answer(
        self,
        offset: int,
        stamp: object,
        text: str = "",
        calls: Sequence[Values] = (),
        *,
        identity: str | None = None,
        model: str | None = None,
        tokens: Tokens | None = None,
        joins: bool = False,
    ) -> Items:
        """Open a turn of the agent, or continue the open turn if ``joins`` is set.

        The turn stays open for the results of its calls.
        """
        if not joins:
            yield from self.talk.close()
        before = self.talk.place(offset)
        self.talk.learn(model=model)
        self.talk.spend(tokens or Tokens())
        if not (text.strip() or calls):
            return
        if self.talk.opened is None:
            seed = clean(text).text or str(calls[0] if calls else "")
            identity = identity or self.talk.new_id(Speaker.AGENT, str(stamp), seed)
            turn = OpenTurn(identity, time_of(stamp), unique=len(identity) == _UUID_LENGTH)
            yield from self.talk.open(turn, before)
        self.talk.add_text(text)
        for call in calls:
            name = string(call, "name") or "tool"
            self.talk.add_call(string(call, "id") or "", name, call.get("arguments"))

    def result(self, record: Values, output: Any, code: int | None = None) -> None:
        """Record the result of a tool call. ``record`` has the call's id and may mark an error."""
        words = said(output) or (json.dumps(output, ensure_ascii=False) if output else "")
        is_error = record.get("is_error") is True or record.get("isError") is True
        if is_error and (match := _EXIT.search(words)):
            code = int(match[1])
        result = outcome(words, exit_code=code, is_error=is_error)
        if is_error and _DECLINED.search(words):
            result = "rejected"
        call_id = string(record, "tool_use_id", "tool_call_id", "toolCallId") or ""
        call = self.talk.calls.get(call_id)
        if call and call.call.outcome:
            result = call.call.outcome  # the output follows the result
        self.talk.result(call_id, result, lambda: words)


def tokens_of(usage: Values) -> Tokens:
    """Return the counts of an answer or a session."""
    return Tokens(*(total(usage, *names.split()) for names in (_FRESH, _CACHED, _OUTPUT))).bounded


def is_repeated(path: Path, history: str, events: str) -> bool:
    """Return True if a file has the messages that the model saw, and a file next to it the events."""
    return path.name == history and path.with_name(events).exists()


def time_of(stamp: object) -> datetime | None:
    """Return a time in UTC. A time without a zone is local."""
    if isinstance(stamp, datetime):
        return stamp
    with suppress(OSError, OverflowError, TypeError, ValueError):
        return in_utc(datetime.fromisoformat(stamp))  # type: ignore[arg-type]
    return parse_time(stamp)
