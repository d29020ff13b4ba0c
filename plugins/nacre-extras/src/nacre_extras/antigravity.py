"""Antigravity: ``transcript.jsonl`` in the folder of each conversation below ``brain``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nacre.base.plain import mapping, objects, string
from nacre.readers.adapter import Adapter, Head, Items, Root, Source, documents, parse_time
from nacre.readers.messages import Message, turns_of
from nacre.readers.trust import Conversation
from nacre.values.session import Flag, Session, Speaker

TOOL = "antigravity"

_SOURCES = frozenset({"USER_EXPLICIT", "MODEL", "SYSTEM"})
_REQUEST = re.compile(r"<USER_REQUEST>(.*)</USER_REQUEST>", re.DOTALL)
_ADDED = re.compile(r"<(ADDITIONAL_METADATA|USER_SETTINGS_CHANGE)>.*(?:</\1>|\Z)", re.DOTALL)
_MODEL = re.compile(r"`Model Selection` from .+? to (.+?)\.(?=\s)")
_KEYS = {
    "AbsolutePath": "path",
    "CommandLine": "command",
    "DirectoryPath": "path",
    "Query": "query",
    "TargetFile": "path",
    "Url": "url",
}
"""Antigravity's argument names, with nacre's names for them."""
_RUNNING = frozenset({"RUNNING", "PENDING", "WAITING"})


def _parse(source: Source) -> Items:
    folder = source.path.parent.parent
    is_own = folder.name == ".system_generated"
    name = folder.parent.name if is_own else source.path.parent.name
    talk = Conversation(source, Session(TOOL, name))
    yield from turns_of(talk, _messages(talk))


def _messages(talk: Conversation) -> Iterator[Message]:
    """Yield a message for each step. The results of an answer's calls are in the following steps."""
    answer, pending_calls = "", list[str]()
    for number, step in enumerate(documents(talk.source)):
        kind, origin = str(step.get("type")), str(step.get("source"))
        content, time = string(step, "content") or "", parse_time(step.get("created_at"))
        own = str(step.get("step_index", number))
        talk.learn(started=talk.session.started or time)
        if origin == "MODEL":
            if kind in ("PLANNER_RESPONSE", "None"):
                answer, pending_calls = own, []
            message = Message(Speaker.AGENT, time, answer or own)
            for place, call in enumerate(objects(step, "tool_calls")):
                pending_calls.append(string(call, "id") or f"{own}-{place}")
                arguments = mapping(call, "args") or mapping(call, "arguments")
                renamed = {_KEYS.get(key, key): value for key, value in arguments.items()}
                message.call(pending_calls[-1], call.get("name"), renamed)
                talk.learn(cwd=talk.session.cwd or string(arguments, "Cwd"))
            if answer == own:
                message.texts.append(content)
            elif step.get("status") not in _RUNNING:
                if not pending_calls:
                    pending_calls.append(own)
                    message.call(own, kind.lower(), {})
                failed = step.get("status") == "ERROR"
                message.result(pending_calls.pop(0), content, is_error=failed)
            yield message
        elif origin.startswith("USER"):
            model = _MODEL.search(content)
            talk.learn(model=model and model[1])
            request = _REQUEST.search(content)
            text = _ADDED.sub("", request[1] if request else content)
            claim = {"origin": None if origin == "USER_EXPLICIT" else origin}
            yield Message(Speaker.OWNER, time, own, [claim, step], texts=[text])
        elif origin == "SYSTEM":
            summary = content if kind == "CHECKPOINT" else ""
            talk.exchange.record("" if summary else content)
            yield Message(Speaker.SYSTEM, time, own, flags=Flag.SUMMARY, texts=[summary])
        else:
            talk.source.unknown(f"source {origin}")


def _sniff(head: Head) -> bool:
    first = head.first
    return "content" in first and first.get("source") in _SOURCES


ADAPTER = Adapter(
    tool=TOOL,
    label="Antigravity",
    roots=lambda places: [
        Root(
            places.home / ".gemini",
            ("antigravity*/brain/*/.system_generated/logs/transcript.jsonl",),
        )
    ],
    sniff=_sniff,
    parse=_parse,
    whole=True,
    versions="2026*",
    reads="summaries",
    leaves_out="title; tokens; plans; encrypted conversations",
)
