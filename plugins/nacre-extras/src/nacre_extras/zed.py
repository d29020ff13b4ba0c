"""Zed: threads of its own agent in ``threads.db``, as JSON that is usually compressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from nacre.base.plain import Values, mapping, objects, string
from nacre.base.sql import statements
from nacre.base.text import answered_by
from nacre.readers.adapter import (
    Adapter,
    Items,
    Part,
    Places,
    Root,
    Source,
    as_bytes,
    changed,
    parse_time,
    plain,
    with_columns,
)
from nacre.readers.conversation import tokens_of
from nacre.readers.messages import Message, turns_of, words_of
from nacre.readers.openclaw import unpack
from nacre.readers.trust import Conversation
from nacre.values.session import Session, SessionKind, Speaker

TOOL = "zed"
SQL = statements("nacre_extras", "sql")

_REQUIRED_COLUMNS = {"threads": {"id", "summary", "updated_at", "data_type", "data"}}
_QUIET = frozenset({"Thinking", "RedactedThinking", "Image"})


def _parse(source: Source) -> Items:
    for name, row in changed(source, "threads", SQL["zed_threads"], SQL["zed_thread"]):
        thread = plain(unpack(row["data"]) or as_bytes(row["data"]))
        if isinstance(thread, dict):
            yield from _read(Part(source), name, row, thread)
        else:
            source.unknown(f"thread in {row['data_type']}")


def _read(source: Source, name: str, row: Values, thread: Values) -> Items:
    snapshots = objects(mapping(thread, "initial_project_snapshot"), "worktree_snapshots")
    project = snapshots[0] if snapshots else {}
    git = mapping(project, "git_state")
    model = mapping(thread, "model")
    parent = string(row, "parent_id")
    started = parse_time(row.get("created_at")) or parse_time(row.get("updated_at"))
    session = Session(
        TOOL,
        name,
        title=string(row, "summary"),
        cwd=_folder(row) or string(project, "worktree_path"),
        branch=string(git, "current_branch"),
        repository=string(git, "remote_url"),
        kind=SessionKind.SUBAGENT if parent else SessionKind.MAIN,
        parent=parent,
        started=started,
        model=answered_by(string(model, "model"), string(model, "provider")),
    )
    talk = Conversation(source, session)
    talk.spend(tokens_of(mapping(thread, "cumulative_token_usage")))
    yield from turns_of(talk, _messages(talk, thread, started))


def _folder(row: Values) -> str | None:
    """Return a thread's first folder. Zed stores the order of folders separately."""
    paths = (string(row, "folder_paths") or "").splitlines()
    order = (string(row, "folder_paths_order") or "").split(",")
    return min(zip(order, paths, strict=False), default=("", None))[1]


def _messages(talk: Conversation, thread: Values, time: datetime | None) -> Iterator[Message]:
    """Yield the messages. Only the owner's have ids. Fields had other names before 0.3.0."""
    claims = {"origin": "shared" if thread.get("imported") else None}
    prompt, answers = "", 0
    for record in objects(thread, "messages"):
        role = string(record, "role")
        kind, body = next(iter(record.items()), ("", None))
        if role:
            talk.exchange.record(string(record, "context") or "")
            kind, body = role.capitalize(), _modern(record)
        answers += 1
        if kind == "User":
            prompt, answers = string(body, "id") or f"{prompt}+", 0
        name = f"{prompt}-{answers}"
        message = Message.of(talk.source, kind, time, name, [claims, record, mapping(body)])
        if message.speaker is Speaker.SYSTEM:
            continue
        for block in objects(body, "content"):
            _add(talk, message, block)
        if message.speaker is Speaker.OWNER:
            message.texts = ["".join(filter(None, message.texts))]  # around mentions
        for call, result in mapping(body, "tool_results").items():
            failed = mapping(result).get("is_error") is True
            message.result(call, mapping(result).get("content"), is_error=failed)
        yield message


def _add(talk: Conversation, message: Message, block: Values) -> None:
    kind, content = next(iter(block.items()), ("", None))
    if kind == "Text":
        message.texts.append(words_of(content))
        message.claims.append(block)
    elif kind == "Mention":  # an attachment, whose content is not the owner's
        place, uri = next(iter(mapping(content, "uri").items()), ("", None))
        talk.exchange.record(words_of(mapping(content).get("content")), outside=place == "Fetch")
        message.texts.append(string(uri, "name", "abs_path", "url"))
    elif kind == "ToolUse":
        call = mapping(content)
        message.call(call.get("id"), call.get("name"), call.get("input"))
    elif kind not in _QUIET:
        talk.source.unknown(f"block {kind}")


def _modern(record: Values) -> Values:
    parts = [part for part in objects(record, "segments") if part.get("type") == "text"]
    texts = [{"Text": part.get("text")} for part in parts]
    calls = [{"ToolUse": call} for call in objects(record, "tool_uses")]
    results = {str(result.get("tool_use_id")): result for result in objects(record, "tool_results")}
    return {"id": f"{record.get('id')}", "content": texts + calls, "tool_results": results}


def _roots(places: Places) -> Sequence[Root]:
    name = "zed" if places.platform == "linux" else "Zed"
    return [Root(places.data(is_native=True) / name / "threads", ("threads.db",))]


ADAPTER = Adapter(
    tool=TOOL,
    label="Zed",
    roots=_roots,
    sniff=with_columns(_REQUIRED_COLUMNS),
    parse=_parse,
    versions="0.1.0 to 0.3.0*",
    reads="branch; sub-agents",
    leaves_out="times; external agents",
)
