"""gptme: ``~/.local/share/gptme/logs/<name>/conversation.jsonl``.

Calls are code blocks or lines in the agent's text, and their results are in the following system
messages.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress

from nacre.base.plain import JsonObject, Values, mapping, string
from nacre.readers.adapter import Adapter, Head, Items, Source, under
from nacre.readers.conversation import tokens_of
from nacre.readers.messages import Chat, Message, message_of, say
from nacre.values.session import Session, Speaker

_BLOCK = re.compile(
    r"^```(shell|ipython|save|append|patch|patch_many|morph|read|gh|tmux)\b ?([^\n]*)\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
_CALL = re.compile(r"^@([\w.]+)\(([\w\-:.]+)\):\s*(?=\{)", re.MULTILINE)
_FAILED = re.compile(r"^Return code: (-?[1-9]\d{0,8})|^Error\b", re.MULTILINE)


class _Reader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session("gptme", source.path.parent.name))
        chat: Values = {}
        with suppress(OSError, ValueError):
            text = source.path.with_name("config.toml").read_text(encoding="utf-8")
            chat = mapping(tomllib.loads(text), "chat")
        self.talk.learn(
            title=string(chat, "name"), cwd=string(chat, "workspace"), model=string(chat, "model")
        )

    def take(self, offset: int, record: Values) -> Items:
        text, metadata = string(record, "content") or "", mapping(record, "metadata")
        if record.get("role") in ("system", "tool"):
            unanswered = [name for name, call in self.talk.calls.items() if not call.call.outcome]
            call_id = string(record, "call_id") or next(iter(unanswered), "")
            failed = _FAILED.search(text)
            code = int(failed[1]) if failed and failed[1] else None
            message = Message(Speaker.TOOL, None)
            message.result(call_id, text, is_error=bool(failed), exit_code=code)
        else:
            calls = list(_calls(text)) if record.get("role") == "assistant" else []
            words = _CALL.split(text)[0] if calls and calls[0]["id"] else text
            values = {**record, "content": words, "tool_calls": calls}
            message = message_of(self.source, values, record.get("timestamp"))
            message.model = string(metadata, "model")
            message.tokens = tokens_of(mapping(metadata, "usage") or metadata)
        yield from say(self.talk, message, offset)


def _calls(text: str) -> Iterator[JsonObject]:
    for block in _BLOCK.finditer(text):
        place, body = block[2].strip(), block[3]
        arguments = {"path": place, "content": body} if place else {"command": body.strip()}
        yield {"id": "", "name": block[1], "arguments": arguments}
    for call in _CALL.finditer(text):
        with suppress(ValueError, RecursionError):
            arguments, _ = json.JSONDecoder().raw_decode(text, call.end())
            yield {"id": call[2], "name": call[1], "arguments": arguments}


def _sniff(head: Head) -> bool:
    first = head.first
    return head.path.name == "conversation.jsonl" and {"role", "content", "timestamp"} <= set(first)


ADAPTER = Adapter(
    tool="gptme",
    label="gptme",
    roots=under("GPTME_LOGS_HOME", ".local/share/gptme/logs", "", "*/conversation.jsonl"),
    sniff=_sniff,
    parse=_Reader,
    beside=lambda path: [path.with_name("config.toml")],
    versions="2026-06, 2026-08*",
    leaves_out="prompts of the system",
)
