"""Amp: ``~/.local/share/amp/threads/T-<id>.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nacre.base.plain import Values, mapping, objects, string
from nacre.readers.adapter import (
    Adapter,
    Items,
    Source,
    content_blocks,
    document,
    keys_of,
    modified,
    parse_time,
    under,
)
from nacre.readers.conversation import tokens_of
from nacre.readers.messages import Message, turns_of, words_of
from nacre.readers.trust import Conversation, folder_of
from nacre.values.session import Session

TOOL = "amp"

_QUIET = frozenset({"thinking", "redacted_thinking", "image"})
_MARK = re.compile(r'"id"\s*:\s*"T-|"messageId"\s*:\s*\d|"toolUseID"\s*:')
_REFUSED = ("cancelled", "rejected-by-user")


def _parse(source: Source) -> Items:
    thread = mapping(document(source))
    initial = mapping(thread, "env", "initial")
    tree = next(iter(objects(initial, "trees")), {})
    repository = mapping(tree, "repository")
    session = Session(
        TOOL,
        string(thread, "id") or source.path.stem,
        title=string(thread, "title"),
        cwd=folder_of(string(tree, "uri")),
        branch=(string(repository, "ref") or "").removeprefix("refs/heads/") or None,
        repository=string(repository, "url"),
        started=parse_time(thread.get("created")) or modified(source),
        tool_version=string(mapping(initial, "platform"), "clientVersion"),
    )
    talk = Conversation(source, session)
    yield from turns_of(talk, _messages(talk, thread))


def _messages(talk: Conversation, thread: Values) -> Iterator[Message]:
    time = talk.session.started
    for number, record in enumerate(objects(thread, "messages")):
        usage = mapping(record, "usage")
        sent = parse_time(mapping(record, "meta").get("sentAt"))
        time = sent or parse_time(usage.get("timestamp")) or time
        own = str(record.get("messageId", number))
        message = Message.of(talk.source, record.get("role"), time, own, [record])
        message.model, message.tokens = string(usage, "model"), tokens_of(usage)
        for block in content_blocks(record):
            kind = str(block.get("type"))
            if kind == "text":
                message.texts.append(string(block, "text"))
                message.claims.append(block)
            elif kind == "tool_use":
                message.call(block.get("id"), block.get("name"), block.get("input"))
            elif kind == "tool_result":
                _add_result(message, block)
            elif kind not in _QUIET:
                talk.source.unknown(f"block {kind}")
        yield message


def _add_result(message: Message, block: Values) -> None:
    run, call = mapping(block, "run"), string(block, "toolUseID", "tool_use_id")
    status, result = str(run.get("status")), run.get("result")
    if status in _REFUSED:
        message.results.append((str(call), "rejected", words_of(run.get("reason"))))
    elif status in ("done", "error"):
        code, failed = mapping(result).get("exitCode"), status == "error"
        message.result(call, result or run.get("error"), is_error=failed, exit_code=code)


ADAPTER = Adapter(
    tool=TOOL,
    label="Amp",
    roots=under("XDG_DATA_HOME", ".local/share", "amp/threads", "T-*.json"),
    sniff=lambda head: "messages" in keys_of(head) and _MARK.search(head.text) is not None,
    parse=_parse,
    whole=True,
    resume=("amp", "threads", "continue", "{id}"),
    versions="2025, 2026*",
    reads="branch; version",
    leaves_out="sub-agents; threads on the server",
)
