"""Factory's droid: ``~/.factory/sessions/<folder>/<id>.jsonl``.

``<id>.settings.json`` has the session's model and token counts.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nacre.base.plain import Values, mapping, string
from nacre.base.text import answered_by
from nacre.readers.adapter import Adapter, Head, Items, Source, beside, local_time, under
from nacre.readers.conversation import tokens_of
from nacre.readers.messages import Chat, Message, message_of, say
from nacre.values.session import Flag, Session, SessionKind, Speaker

_QUIET = ("todo_state", "session_settings", "agent_turn_outcome")
_TASK_TITLE = "# Task Tool Invocation"
"""Beginning of a sub-agent's session title in versions that do not record the calling session."""


class _Reader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session("droid", source.path.stem))
        settings = mapping(beside(_settings(source.path)))
        usage = mapping(settings, "tokenUsage")
        self.talk.spent = tokens_of(usage) if usage else None
        model = answered_by(string(settings, "model"), string(settings, "providerLock"))
        self.talk.learn(model=model)

    def take(self, offset: int, record: Values) -> Items:
        message, stamp = mapping(record, "message"), record.get("timestamp")
        identity = string(record, "id")
        match record.get("type"):
            case "session_start":
                self.begin(record)
            case "message":
                if "llm_only" not in (record.get("visibility"), message.get("visibility")):
                    answer = message_of(self.source, message, stamp, id=identity)
                    yield from say(self.talk, answer, offset)
            case "compaction_state":
                summary = Message(Speaker.SYSTEM, local_time(stamp), identity, flags=Flag.SUMMARY)
                summary.texts = [string(record, "summaryText", "summary")]
                yield from say(self.talk, summary, offset)
            case kind if kind not in _QUIET:
                self.source.unknown(str(kind))

    def begin(self, record: Values) -> None:
        caller = string(record, "callingSessionId")
        title = string(record, "sessionTitle", "title") or ""
        is_inner = caller or title.startswith(_TASK_TITLE)
        self.talk.session = replace(
            self.talk.session,
            native_id=string(record, "id") or self.source.path.stem,
            title=title or None,
            cwd=string(record, "cwd"),
            parent=caller or string(record, "parent"),
            kind=SessionKind.SUBAGENT if is_inner else SessionKind.MAIN,
        )


def _settings(transcript: Path) -> Path:
    return transcript.with_suffix(".settings.json")


def _sniff(head: Head) -> bool:
    first = head.first
    return first.get("type") == "session_start" and "id" in first


ADAPTER = Adapter(
    tool="droid",
    label="Factory droid",
    roots=under("FACTORY_HOME_OVERRIDE", "", ".factory/sessions", "**/*.jsonl"),
    sniff=_sniff,
    parse=_Reader,
    beside=lambda path: [_settings(path)],
    resume=("droid", "--resume", "{id}"),
    versions="0.213, 0.229*",
    reads="sub-agents; summaries",
    leaves_out="text for the model; todos",
)
