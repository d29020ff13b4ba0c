"""Continue: ``~/.continue/sessions/<id>.json``. Times are only in the folder's index file."""

from __future__ import annotations

import re

from nacre.base.plain import Values, mapping, objects, objects_in, string, total
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
from nacre.readers.trust import folder_of
from nacre.values.session import Flag, Session, Speaker, Tokens
from nacre_extras.chat import Chat

TOOL = "continue"

_EXIT = re.compile(r"exit code (\d{1,9})")
_QUIET = frozenset({"thinking", "system"})


class _Reader(Chat):
    def __init__(self, source: Source, values: Values) -> None:
        self.values = values
        native_id = string(values, "sessionId") or source.path.stem
        index = beside(source.path.with_name(source.path.name.replace(native_id, "sessions")))
        listed = (entry for entry in objects_in(index) if entry.get("sessionId") == native_id)
        facts = next(listed, {})
        self.time = parse_time(facts.get("dateCreated")) or modified(source)
        folder = string(values, "workspaceDirectory") or string(facts, "workspaceDirectory")
        session = Session(
            TOOL,
            native_id,
            title=string(values, "title"),
            started=self.time,
            model=string(values, "chatModelTitle"),
            cwd=folder_of(folder),
        )
        super().__init__(source, session)

    def read(self) -> Items:
        for item in objects(self.values, "history"):
            yield from self.take(0, item)
        if self.talk.spent is None:
            self.talk.spend(_tokens(mapping(self.values, "usage")))
        yield from self.talk.end()

    def take(self, offset: int, record: Values) -> Items:
        message = mapping(record, "message")
        for log in objects(record, "promptLogs"):  # name a model by the owner's title for it
            title = string(log, "modelTitle") or self.talk.session.model
            self.talk.learn(model=answered_by(title, string(log, "modelProvider")))
        for attached in objects(record, "contextItems"):  # not the owner's words
            where = f"{attached.get('name')} {mapping(attached, 'uri').get('value')} {attached.get('description')}"
            self.talk.exchange.heard(str(attached.get("content") or ""), outside="http" in where)
        if message.get("role") not in _QUIET:
            identity, tokens = string(message, "id"), _tokens(mapping(message, "usage"))
            yield from self.message(
                offset, message, self.time, record, identity=identity, tokens=tokens
            )
        for state in objects(record, "toolCallStates"):
            self.state(state)
        summary = string(record, "conversationSummary") or ""
        yield from self.say(Speaker.SYSTEM, summary, self.time, flags=Flag.SUMMARY)

    def state(self, state: Values) -> None:
        """Record the result of a call. Its output follows in another message."""
        status, outputs = state.get("status"), objects(state, "output")
        words = "\n".join(str(item.get("content") or "") for item in outputs)
        code = _EXIT.search(" ".join(string(item, "status") or "" for item in outputs))
        result = outcome(words, exit_code=int(code[1]) if code else None, is_error=status != "done")
        if status in ("canceled", "cancelled"):
            result = "rejected"
        if result == "rejected" or status in ("done", "errored", "error"):
            self.talk.result(str(state.get("toolCallId")), result, lambda: words)


def _tokens(usage: Values) -> Tokens:
    """Return the token counts of an answer, or of a session if its answers have none."""
    cached = total(mapping(usage, "promptTokensDetails"), "cachedTokens")
    return Tokens.with_cached(
        total(usage, "promptTokens"), cached, total(usage, "completionTokens")
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
