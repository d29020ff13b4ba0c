"""Continue: ``~/.continue/sessions/<id>.json``. Times are only in the folder's index file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nacre.base.plain import mapping, objects, string, total
from nacre.base.text import answered_by
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Root,
    Source,
    beside,
    document,
    keys_of,
    modified,
    parse_time,
)
from nacre.readers.conversation import outcome
from nacre.readers.trust import Conversation, OpenTurn, folder_of
from nacre.values.session import Flag, Session, Speaker, Tokens

TOOL = "continue"
Fields = Mapping[str, Any]

_EXIT = re.compile(r"exit code (\d{1,9})")
_UUID_LENGTH = 36
_QUIET = frozenset({"thinking", "system"})


class _Reader:
    def __init__(self, source: Source, values: Fields) -> None:
        self.source = source
        self.values = values
        native_id = string(values, "sessionId") or source.path.stem
        index = beside(source.path.with_name(source.path.name.replace(native_id, "sessions")))
        listed = index if isinstance(index, list) else []
        facts: Any = next(
            (entry for entry in listed if mapping(entry).get("sessionId") == native_id), {}
        )
        self.time: datetime | None = parse_time(mapping(facts).get("dateCreated")) or modified(
            source
        )
        self.talk = Conversation(
            source,
            Session(
                TOOL,
                native_id,
                title=string(values, "title"),
                started=self.time,
                model=string(values, "chatModelTitle"),
                cwd=folder_of(
                    string(values, "workspaceDirectory") or string(facts, "workspaceDirectory")
                ),
            ),
        )

    def read(self) -> Items:
        for item in objects(self.values, "history"):
            message = mapping(item, "message")
            self.learn(item)
            role = str(message.get("role"))
            if role == "user":
                yield from self.user(item, message)
            elif role == "assistant":
                yield from self.agent(item, message)
            elif role == "tool":
                self.answer(str(message.get("toolCallId")), _words(message))
            elif role not in _QUIET:
                self.source.unknown(f"role {role}")
            yield from self.say(
                Speaker.SYSTEM, string(item, "conversationSummary") or "", None, Flag.SUMMARY
            )
        if self.talk.spent is None:
            self.talk.spend(_tokens(mapping(self.values, "usage")))
        yield from self.talk.end()

    def learn(self, item: Fields) -> None:
        """Record the model. Continue names a model by the title that the owner gave it."""
        for log in objects(item, "promptLogs"):
            model = answered_by(
                string(log, "modelTitle") or self.talk.session.model, string(log, "modelProvider")
            )
            self.talk.learn(model=model)

    def user(self, item: Fields, message: Fields) -> Items:
        """Yield a prompt, without attachments, which are not the owner's words."""
        for attached in objects(item, "contextItems"):
            where = f"{attached.get('name')} {mapping(attached, 'uri').get('value')} {attached.get('description')}"
            self.talk.exchange.heard(str(attached.get("content") or ""), outside="http" in where)
        yield from self.say(
            Speaker.OWNER, _words(message), message.get("id"), Flag.NONE, item, message
        )

    def say(self, speaker: Speaker, text: str, own: object, flags: Flag, *claims: Fields) -> Items:
        identity = own if isinstance(own, str) else ""
        unique = len(identity) == _UUID_LENGTH
        yield from self.talk.write(
            speaker, text, self.time, *claims, identity=identity, flags=flags, unique=unique
        )

    def agent(self, item: Fields, message: Fields) -> Items:
        text, calls = _words(message), objects(message, "toolCalls")
        self.talk.spend(_tokens(mapping(message, "usage")))
        if not (text or calls):
            return
        own, seed = message.get("id"), text or str(calls[0].get("id"))
        identity = (own if isinstance(own, str) else "") or self.talk.new_id(
            Speaker.AGENT, None, seed
        )
        yield from self.talk.open(
            OpenTurn(identity, self.time, unique=len(identity) == _UUID_LENGTH)
        )
        self.talk.add_text(text)
        for call in calls:
            function = mapping(call, "function")
            self.talk.add_call(
                str(call.get("id") or ""),
                str(function.get("name") or "tool"),
                function.get("arguments"),
            )
        for state in objects(item, "toolCallStates"):
            self.state(state)

    def answer(self, call_id: str, output: str) -> None:
        """Record the output of a tool call, whose outcome might already be known."""
        call = self.talk.calls.get(call_id)
        self.talk.result(call_id, (call.call.outcome if call else None) or "ok", lambda: output)

    def state(self, state: Fields) -> None:
        output = "\n".join(str(item.get("content") or "") for item in objects(state, "output"))
        status = state.get("status")
        if status in ("canceled", "cancelled"):
            self.talk.result(str(state.get("toolCallId")), "rejected", lambda: output)
        elif status in ("done", "errored", "error"):
            code = _EXIT.search(
                " ".join(string(item, "status") or "" for item in objects(state, "output"))
            )
            result = outcome(
                output, exit_code=int(code[1]) if code else None, is_error=status != "done"
            )
            self.talk.result(str(state.get("toolCallId")), result, lambda: output)


def _tokens(usage: Fields) -> Tokens:
    """Return the token counts of an answer, or of a session if its answers have none."""
    cached = total(mapping(usage, "promptTokensDetails"), "cachedTokens")
    return Tokens.with_cached(
        total(usage, "promptTokens"), cached, total(usage, "completionTokens")
    )


def _words(message: Fields) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n\n".join(
        text for part in objects(message, "content") if (text := string(part, "text"))
    )


def _sniff(head: Head) -> bool:
    keys = keys_of(head)
    return {"sessionId", "workspaceDirectory"} <= keys and bool({"history", "title"} & keys)


ADAPTER = Adapter(
    tool=TOOL,
    label="Continue",
    roots=lambda places: [
        Root(places.folder("CONTINUE_GLOBAL_DIR", ".continue") / "sessions", ("*.json",))
    ],
    sniff=_sniff,
    parse=lambda source: _Reader(source, mapping(document(source))).read(),
    whole=True,
    versions="files from 2026 (without a version)",
    reads=(
        "messages; tool calls with outcome; title; folder; model; day, from the index file; "
        "tokens, if recorded"
    ),
    leaves_out=(
        "thinking; prompt logs; contents of attached files; times of single messages (not recorded)"
    ),
    environment=("CONTINUE_GLOBAL_DIR",),
)
