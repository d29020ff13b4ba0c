"""Small, invented transcripts in the formats of rarely used agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from backports import zstd

from nacre.testing.conformance import Agent, Owner, Step, Summary, Tool
from tests.stores import START, connect

SECOND = START // 1000
_ARGUMENTS = {"WebFetch": "url", "Bash": "command", "Read": "path"}

Writer = Callable[[Path], object]


def insert(connection: Any, table: str, **values: Any) -> None:
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    row = [
        json.dumps(value) if isinstance(value, dict | list) else value for value in values.values()
    ]
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", row)  # noqa: S608


def _given(name: str, argument: str) -> dict[str, str]:
    return {_ARGUMENTS.get(name, "query"): argument}


# -- Goose ---------------------------------------------------------------------


GOOSE_TABLES = (
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
        session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL, created_at TIMESTAMP,
        updated_at TIMESTAMP, accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER,
        provider_name TEXT, model_config_json TEXT, parent_session_id TEXT
    )""",
    """CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL,
        content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, metadata_json TEXT
    )""",
    "CREATE INDEX idx_messages_session ON messages (session_id)",
)
_GOOSE_NAMES = {
    "WebFetch": "web_fetch",
    "Bash": "developer__shell",
    "Read": "developer__read_file",
}


def goose_messages(steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    """Yield messages in the form of the files."""
    for number, step in enumerate(steps):
        common: dict[str, Any] = {"id": f"msg_{number}", "created": SECOND + number}
        match step:
            case Owner(text):
                yield {**common, "role": "user", "content": [{"type": "text", "text": text}]}
            case Summary(text):
                content = [{"type": "text", "text": text}]
                metadata = {"userVisible": False, "agentVisible": True}
                yield {**common, "role": "user", "content": content, "metadata": metadata}
            case Agent(text):
                content = [
                    {"type": "thinking", "thinking": "Oars?", "signature": ""},
                    {"type": "text", "text": text},
                ]
                yield {**common, "role": "assistant", "content": content}
            case Tool(name, argument, output):
                call = {
                    "name": _GOOSE_NAMES.get(name, name),
                    "arguments": _given(name, argument),
                }
                value = {"content": [{"type": "text", "text": output}], "isError": False}
                request = {
                    "type": "toolRequest",
                    "id": f"c{number}",
                    "toolCall": {"status": "success", "value": call},
                }
                response = {
                    "type": "toolResponse",
                    "id": f"c{number}",
                    "toolResult": {"status": "success", "value": value},
                }
                yield {**common, "role": "assistant", "content": [request]}
                yield {**common, "id": f"msg_{number}r", "role": "user", "content": [response]}


def write_goose(
    path: Path, sessions: Mapping[str, Sequence[Mapping[str, Any]]], **facts: Any
) -> None:
    with closing(connect(path, *GOOSE_TABLES)) as database:
        for name, messages in sessions.items():
            own = {
                "name": "Lake",
                "working_dir": "/code/lake",
                "created_at": "2026-11-18 09:00:00",
                "updated_at": f"2026-11-18 10:00:{len(messages):02d}",
                **facts,
            }
            insert(database, "sessions", id=name, **own)
            for message in messages:
                insert(
                    database,
                    "messages",
                    message_id=message.get("id"),
                    session_id=name,
                    role=message["role"],
                    content_json=message["content"],
                    created_timestamp=message["created"],
                    metadata_json=message.get("metadata", {}),
                )


def goose(steps: Sequence[Step]) -> Writer:
    return lambda path: write_goose(path, {"20261118_1": list(goose_messages(steps))})


def goose_file(steps: Sequence[Step]) -> list[dict[str, Any]]:
    head = {"working_dir": "/code/lake", "description": "Lake", "message_count": len(steps)}
    return [head, *goose_messages(steps)]


# -- Zed -----------------------------------------------------------------------


ZED_TABLE = """CREATE TABLE threads (
    id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL, data_type TEXT NOT NULL,
    data BLOB NOT NULL, parent_id TEXT, folder_paths TEXT, folder_paths_order TEXT, created_at TEXT
)"""
_ZED_NAMES = {"WebFetch": "fetch", "Bash": "terminal", "Read": "read_file"}


def zed_messages(steps: Sequence[Step]) -> Iterator[Any]:
    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                yield {"User": {"id": f"00000000-{number:04d}", "content": [{"Text": text}]}}
            case Agent(text) | Summary(text):
                thinking = {"Thinking": {"text": "Oars?", "signature": None}}
                yield {"Agent": {"content": [thinking, {"Text": text}], "tool_results": {}}}
            case Tool(name, argument, output):
                call = {
                    "id": f"c{number}",
                    "name": _ZED_NAMES.get(name, name),
                    "input": _given(name, argument),
                }
                result = {
                    "tool_use_id": f"c{number}",
                    "is_error": False,
                    "content": [{"Text": output}],
                }
                yield {
                    "Agent": {
                        "content": [{"ToolUse": call}],
                        "tool_results": {f"c{number}": result},
                    }
                }
                yield "Resume"


def zed_thread(messages: Sequence[Any], **facts: Any) -> dict[str, Any]:
    return {"version": "0.3.0", "title": "Lake", "messages": messages, **facts}


def write_zed(path: Path, threads: Mapping[str, Mapping[str, Any]], **facts: Any) -> None:
    """Write threads, compressed unless ``data_type`` says otherwise."""
    with closing(connect(path, ZED_TABLE)) as database:
        for name, thread in threads.items():
            data = json.dumps(thread).encode()
            row = {
                "summary": "Lake",
                "updated_at": f"2026-11-18T10:00:{len(thread['messages']):02d}+00:00",
                "created_at": "2026-11-18T09:00:00+00:00",
                "data_type": "zstd",
                "folder_paths": "/code/dock\n/code/lake",
                "folder_paths_order": "1,0",
                **facts,
            }
            is_packed = row["data_type"] == "zstd"
            insert(
                database, "threads", id=name, data=zstd.compress(data) if is_packed else data, **row
            )


def zed(steps: Sequence[Step]) -> Writer:
    """Write a thread without compression, so that tests can change its words."""
    thread = zed_thread(list(zed_messages(steps)))
    return lambda path: write_zed(path, {"0e0e0e0e": thread}, data_type="json")


# -- Crush ---------------------------------------------------------------------


CRUSH_TABLES = (
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER,
        prompt_tokens INTEGER, completion_tokens INTEGER, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL
    )""",
    """CREATE TABLE messages (
        id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL default '[]',
        model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
        is_summary_message INTEGER DEFAULT 0 NOT NULL
    )""",
    "CREATE INDEX idx_messages_session_id ON messages (session_id)",
)
_CRUSH_NAMES = {"WebFetch": "fetch", "Bash": "bash", "Read": "view"}


def part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def crush_messages(steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    for number, step in enumerate(steps):
        own = {"id": f"00000000-{number:04d}", "created_at": SECOND + number}
        match step:
            case Owner(text):
                yield {**own, "role": "user", "parts": [part("text", text=text)]}
            case Agent(text):
                parts = [part("reasoning", thinking="Oars?"), part("text", text=text)]
                yield {**own, "role": "assistant", "parts": parts, "model": "model-1"}
            case Summary(text):
                parts = [part("text", text=text)]
                yield {**own, "role": "assistant", "parts": parts, "is_summary_message": 1}
            case Tool(name, argument, output):
                call = part(
                    "tool_call",
                    id=f"c{number}",
                    name=_CRUSH_NAMES.get(name, name),
                    input=json.dumps(_given(name, argument)),
                )
                result = part(
                    "tool_result", tool_call_id=f"c{number}", content=output, is_error=False
                )
                yield {
                    **own,
                    "role": "assistant",
                    "parts": [call, part("finish", reason="tool_use")],
                }
                yield {**own, "id": f"{own['id']}r", "role": "tool", "parts": [result]}


def write_crush(
    path: Path, sessions: Mapping[str, Sequence[Mapping[str, Any]]], **facts: Any
) -> None:
    with closing(connect(path, *CRUSH_TABLES)) as database:
        for name, messages in sessions.items():
            own = {
                "title": "Lake",
                "created_at": SECOND,
                "updated_at": SECOND + len(messages),
                **facts,
            }
            insert(database, "sessions", id=name, message_count=len(messages), **own)
            for message in messages:
                row = {"session_id": name, "updated_at": SECOND, **message}
                insert(database, "messages", **row)


def crush(steps: Sequence[Step]) -> Writer:
    return lambda path: write_crush(path, {"c4054000": list(crush_messages(steps))})


# -- Amp -----------------------------------------------------------------------


_AMP_NAMES = {"WebFetch": "read_web_page"}


def amp(steps: Sequence[Step], **facts: Any) -> str:
    messages: list[dict[str, Any]] = []

    def add(role: str, *content: dict[str, Any], **more: Any) -> None:
        messages.append({"role": role, "messageId": len(messages), "content": content, **more})

    for number, step in enumerate(steps):
        sent = {"meta": {"sentAt": START + number * 1000}}
        match step:
            case Owner(text):
                add("user", {"type": "text", "text": text}, **sent)
            case Agent(text) | Summary(text):
                thinking = {"type": "thinking", "thinking": "Oars?", "signature": ""}
                add("assistant", thinking, {"type": "text", "text": text})
            case Tool(name, argument, output):
                call = {"id": f"c{number}", "name": _AMP_NAMES.get(name, name), "complete": True}
                add("assistant", {"type": "tool_use", **call, "input": _given(name, argument)})
                result = {"status": "done", "result": {"output": output, "exitCode": 0}}
                add("user", {"type": "tool_result", "toolUseID": f"c{number}", "run": result})
    tree = {"displayName": "lake", "uri": "file:///code/lake"}
    thread = {
        "v": 7,
        "id": "T-0a0a0a0a-0000-4000-8000-000000000000",
        "created": START,
        "title": "Lake",
        "messages": messages,
        "env": {"initial": {"trees": [tree], "platform": {"clientVersion": "0.0.1"}}},
    }
    return json.dumps({**thread, **facts}, indent=2)


# -- Antigravity ---------------------------------------------------------------


_ANTIGRAVITY_NAMES = {"WebFetch": "read_url_content", "Bash": "run_command", "Read": "view_file"}


def antigravity(steps: Sequence[Step]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def add(source: str, kind: str, content: str, **more: Any) -> None:
        number = len(found)
        time = f"2026-11-18T09:{number // 60:02d}:{number % 60:02d}Z"
        common = {"step_index": number, "source": source, "type": kind, "status": "DONE"}
        found.append({**common, "created_at": time, "content": content, **more})

    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                metadata = "<ADDITIONAL_METADATA>\nIt is 10:00.\n</ADDITIONAL_METADATA>"
                add(
                    "USER_EXPLICIT",
                    "USER_INPUT",
                    f"<USER_REQUEST>\n{text}\n</USER_REQUEST>\n{metadata}",
                )
            case Agent(text):
                add("MODEL", "PLANNER_RESPONSE", text, thinking="Oars?")
            case Summary(text):
                add("SYSTEM", "CHECKPOINT", text)
            case Tool(name, argument, output):
                keys = {"WebFetch": "Url", "Bash": "CommandLine", "Read": "AbsolutePath"}
                call = {"name": _ANTIGRAVITY_NAMES.get(name, name), "id": f"c{number}"}
                call["args"] = {keys.get(name, "Query"): argument, "Cwd": "/code/lake"}
                add("MODEL", "PLANNER_RESPONSE", "", tool_calls=[call])
                add("MODEL", "GENERIC", output)
    return found


# -- Kiro ----------------------------------------------------------------------


KIRO_TABLES = (
    """CREATE TABLE conversations_v2 (
        key TEXT NOT NULL, conversation_id TEXT NOT NULL, value TEXT NOT NULL, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, PRIMARY KEY (key, conversation_id)
    )""",
)
_KIRO_NAMES = {"WebFetch": "web_fetch", "Bash": "execute_bash", "Read": "fs_read"}


def kiro_history(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return turns of a prompt, or of the results of calls, and an answer."""
    turns: list[dict[str, Any]] = []
    content: dict[str, Any] | None = None

    def answer(number: int, kind: str, text: str, **more: Any) -> None:
        user = {"content": content or {"Prompt": {"prompt": ""}}, "additional_context": ""}
        assistant = {kind: {"message_id": f"0a0a-{number}", "content": text, **more}}
        timing = {"stream_end_timestamp_ms": START + number * 1000}
        turns.append({"user": user, "assistant": assistant, "request_metadata": timing})

    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                if content:
                    answer(number, "Response", "")
                content = {"Prompt": {"prompt": text}}
            case Agent(text) | Summary(text):
                answer(number, "Response", text)
                content = None
            case Tool(name, argument, output):
                given = _given(name, argument)
                call = {"id": f"c{number}", "name": _KIRO_NAMES.get(name, name), "args": given}
                answer(number, "ToolUse", "", tool_uses=[call])
                result = {
                    "tool_use_id": f"c{number}",
                    "content": [{"Text": output}],
                    "status": "Success",
                }
                content = {"ToolUseResults": {"tool_use_results": [result]}}
    if content:
        answer(len(steps), "Response", "")
    return turns


def write_kiro(path: Path, conversations: Mapping[str, Any]) -> None:
    with closing(connect(path, *KIRO_TABLES)) as database:
        for name, history in conversations.items():
            value = {
                "conversation_id": name,
                "history": history,
                "model_info": {"model_id": "model-1"},
            }
            times = {"created_at": START, "updated_at": START + len(history)}
            insert(
                database,
                "conversations_v2",
                key="/code/lake",
                conversation_id=name,
                value=value,
                **times,
            )


def kiro_cli(steps: Sequence[Step]) -> Writer:
    return lambda path: write_kiro(path, {"k140": kiro_history(steps)})


AGENT_SHAPES: dict[str, tuple[str, Callable[[Sequence[Step]], Any]]] = {
    "amp": ("threads/T-0a0a0a0a-0000-4000-8000-000000000000.json", amp),
    "antigravity": ("brain/0a0a/.system_generated/logs/transcript.jsonl", antigravity),
    "crush": ("lake/.crush/crush.db", crush),
    "goose": ("goose/sessions/sessions.db", goose),
    "goose-files": ("sessions/20261118_1.jsonl", goose_file),
    "kiro-cli": ("kiro-cli/data.sqlite3", kiro_cli),
    "zed": ("threads/threads.db", zed),
}
"""File names and writers by the adapter's name."""
