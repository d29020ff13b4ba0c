"""Grok Build: ``~/.grok/sessions/<folder>/<id>/``.

``updates.jsonl`` has the events that the user saw, ``chat_history.jsonl`` the messages that the
model saw. The history is only read if there are no events, because compaction rewrites it.
``summary.json`` describes the session.
"""

from __future__ import annotations

from itertools import groupby

from nacre.base.plain import JsonObject, Values, mapping, string
from nacre.readers.adapter import Adapter, Head, Items, Source, beside, local_time, records, under
from nacre.readers.conversation import tokens_of
from nacre.readers.generic import text_in
from nacre.readers.messages import HOST, OBJECT, Chat, Message, message_of, say
from nacre.readers.trust import Before
from nacre.values.session import Session, SessionKind, Speaker

_CHUNKS = ("user_message_chunk", "agent_message_chunk")
_TYPED = (None, "interjection")
"""Reasons of messages that the user typed. Other reasons name a component of the host."""


class _Reader(Chat):
    def __init__(self, source: Source) -> None:
        summary = mapping(beside(source.path.with_name("summary.json")))
        info = mapping(summary, "info")
        super().__init__(source, Session("grok", string(info, "id") or source.path.parent.name))
        is_inner = str(summary.get("session_kind")).startswith("subagent")
        self.talk.learn(
            title=string(summary, "generated_title", "session_summary"),
            cwd=string(info, "cwd"),
            started=local_time(summary.get("created_at")),
            branch=string(summary, "head_branch"),
            model=string(summary, "current_model_id"),
            parent=string(summary, "parent_session_id"),
            kind=SessionKind.SUBAGENT if is_inner else None,
        )
        self.before: Before | None = None
        self.text = ""

    def __iter__(self) -> Items:
        entries = (
            (offset, record)
            for offset, line in self.source.lines()
            for record in records(self.source, line, OBJECT)
        )
        for _, chunks in groupby(entries, _message_of):
            items = list(chunks)
            offset, record = items[0]
            texts = (text_in(mapping(item, "params", "update")) for _, item in items)
            self.before, self.text = None, "".join(texts)
            yield from self.take(offset, record)
        yield from self.talk.finish(self.before)

    def take(self, offset: int, record: Values) -> Items:
        params, time = mapping(record, "params"), local_time(record.get("timestamp"))
        update = mapping(params, "update")
        kind = update.get("sessionUpdate")
        identity = string(mapping(params, "_meta"), "eventId") or f"@{offset}"
        message = Message(Speaker.AGENT, time, identity, tokens=tokens_of(mapping(update, "usage")))
        if not update:
            yield from self.history(offset, record)
        elif kind == _CHUNKS[0]:
            yield from self.talk.close()
            self.before = self.talk.place(offset)
            host = HOST if mapping(update, "_meta").get("hostTurn") else {}
            claims = [update, mapping(update, "content"), host]
            message = Message(Speaker.OWNER, time, identity, claims, texts=[self.text])
            yield from say(self.talk, message, offset)
        else:
            message.texts = [self.text if kind == _CHUNKS[1] else ""]
            _add_call(message, update)
            if update.get("status") in ("completed", "failed"):
                output = update.get("content") or update.get("rawOutput")
                message.answer({**update, "isError": update["status"] == "failed"}, output)
            joins = self.can_grow or update.get("toolCallId") in self.talk.calls
            yield from say(self.talk, message, offset, joins=joins)

    def history(self, offset: int, record: Values) -> Items:
        text = text_in(record.get("content"))
        typed = text.partition("<user_query>")[2].partition("</user_query>")[0]
        if record.get("synthetic_reason") not in _TYPED:
            self.talk.exchange.record(text)
        elif record.get("type") == "backend_tool_call":
            self.talk.exchange.record_unseen()  # the provider ran it, and its output is not recorded
        elif record.get("type") != "reasoning":
            values = {**record, "content": typed} if typed else record
            message = message_of(self.source, values, model=string(record, "model_id"))
            yield from say(self.talk, message, offset)


def _add_call(message: Message, update: Values) -> None:
    """Add a tool call, whose arguments may come with a later update."""
    tool, kind = mapping(update, "_meta", "x.ai/tool"), string(update, "kind")
    arguments = mapping(update, "rawInput") or mapping(tool, "input")
    if arguments or kind:
        title = {"command" if kind == "execute" else "title": update.get("title")}
        name = string(tool, "name") or kind
        message.call(update.get("toolCallId"), name, arguments or title)


def _message_of(item: tuple[int, JsonObject]) -> object:
    update = mapping(item[1], "params", "update")
    kind = update.get("sessionUpdate")
    return [kind, mapping(update, "_meta").get("promptIndex")] if kind in _CHUNKS else item[0]


def _sniff(head: Head) -> bool:
    return any(
        "sessionUpdate" in mapping(record, "params", "update")
        or (head.path.name == "chat_history.jsonl" and "content" in record)
        for record in head.objects
    )


def _parse(source: Source) -> Items:
    events = source.path.with_name("updates.jsonl")
    if source.path == events or not events.exists():
        yield from _Reader(source)


ADAPTER = Adapter(
    tool="grok",
    label="Grok Build",
    roots=under("GROK_HOME", ".grok", "sessions", "*/*/updates.jsonl", "*/*/chat_history.jsonl"),
    sniff=_sniff,
    parse=_parse,
    beside=lambda path: [path.with_name("summary.json")],
    versions="2026-07, 2026-08*",
    reads="branch; sub-agents",
    leaves_out="rewound messages; times in the history",
)
