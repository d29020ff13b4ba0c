"""Render the conversations of shapes.py in the formats of the agents that nacre-extras reads."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nacre.testing.conformance import Agent, Owner, Step, Summary, Tool

ARGUMENTS = {"WebFetch": "url", "Bash": "command", "Read": "file_path"}
Records = list[dict[str, Any]]


def at(second: int) -> str:
    return f"2026-11-18T09:{second // 60:02d}:{second % 60:02d}.500Z"


def arguments_of(name: str, argument: str) -> dict[str, str]:
    return {ARGUMENTS.get(name, "query"): argument}


def droid(steps: Sequence[Step]) -> Records:
    records: Records = [
        {
            "type": "session_start",
            "id": "d401d000-0000-4000-8000-000000000001",
            "title": "Boats",
            "owner": "ines",
            "version": 2,
            "cwd": "/code/acme",
        }
    ]

    def add(number: int, role: str, *blocks: dict[str, Any], half: int = 0) -> None:
        records.append(
            {
                "type": "message",
                "id": f"d401d000-0000-4000-900{half}-{number:012d}",
                "timestamp": at(number),
                "message": {"role": role, "content": list(blocks)},
            }
        )

    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                add(number, "user", {"type": "text", "text": text})
            case Agent(text):
                add(number, "assistant", {"type": "text", "text": text})
            case Summary(text):
                records.append(
                    {"type": "compaction_state", "id": f"c{number}", "summaryText": text}
                )
            case Tool(name, argument, output):
                call = {
                    "type": "tool_use",
                    "id": f"toolu_{number}",
                    "name": name,
                    "input": arguments_of(name, argument),
                }
                add(number, "assistant", call)
                result = {
                    "type": "tool_result",
                    "tool_use_id": f"toolu_{number}",
                    "content": output,
                }
                add(number, "user", result, half=1)
    return records


def kimi(steps: Sequence[Step]) -> Records:
    """Render the events of Kimi CLI."""
    records: Records = [{"type": "metadata", "protocol_version": "1.1"}]
    for number, step in enumerate(steps, start=1):

        def add(kind: str, second: int = number, **payload: Any) -> None:
            message = {"type": kind, "payload": payload}
            records.append({"timestamp": 1_794_992_400.5 + second, "message": message})

        match step:
            case Owner(text):
                add("TurnBegin", user_input=[{"type": "text", "text": text}])
            case Agent(text):
                add("StepBegin", n=1)
                add("ContentPart", type="text", text=text)
            case Tool(name, argument, output):
                arguments = json.dumps(arguments_of(name, argument))
                function = {"name": name, "arguments": arguments}
                returned = {"is_error": False, "output": output, "message": "", "display": []}
                add("StepBegin", n=1)
                add("ToolCall", type="function", id=f"call_{number}", function=function)
                add("ToolResult", tool_call_id=f"call_{number}", return_value=returned)
            case Summary():
                add("CompactionBegin")
    return records


def kimi_context(steps: Sequence[Step]) -> Records:
    """Render the messages that Kimi CLI sends to the model."""
    records = [message for message in messages(steps) if message["role"] != "system"]
    for message in records:
        message.pop("timestamp")
    prompt = {"role": "_system_prompt", "content": "You are Kimi."}
    return [
        prompt,
        {"role": "_usage", "token_count": 12},
        {"role": "_checkpoint", "id": 0},
        *records,
    ]


def kimi_code(steps: Sequence[Step]) -> Records:
    """Render the journal of Kimi Code."""
    records: Records = [{"type": "metadata", "protocol_version": "1.5", "created_at": 1}]

    def add(number: int, **record: Any) -> None:
        records.append({**record, "time": 1_794_992_400_500 + number * 1000})

    def event(number: int, **record: Any) -> None:
        add(number, type="context.append_loop_event", event=record)

    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                content = [{"type": "text", "text": text}]
                message = {"role": "user", "content": content, "toolCalls": []}
                add(number, type="context.append_message", message=message)
            case Agent(text):
                event(number, type="step.begin")
                event(number, type="content.part", part={"type": "think", "text": "Hm."})
                event(number, type="content.part", part={"type": "text", "text": text})
                event(number, type="step.end", usage={"inputOther": 4, "output": 2})
            case Tool(name, argument, output):
                call = f"call_{number}"
                event(number, type="step.begin")
                arguments = arguments_of(name, argument)
                event(number, type="tool.call", toolCallId=call, name=name, args=arguments)
                event(number, type="tool.result", toolCallId=call, result={"output": output})
            case Summary(text):
                add(number, type="context.apply_compaction", summary=text, compactedCount=2)
    return records


def messages(steps: Sequence[Step]) -> Records:
    """Render messages with the fields of OpenAI's API."""
    records: Records = []
    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                records.append({"role": "user", "content": text, "timestamp": at(number)})
            case Agent(text):
                records.append({"role": "assistant", "content": text, "timestamp": at(number)})
            case Summary(text):
                records.append({"role": "system", "content": text, "timestamp": at(number)})
            case Tool(name, argument, output):
                arguments = json.dumps(arguments_of(name, argument))
                call = {
                    "id": f"call_{number}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                records += [
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [call],
                        "timestamp": at(number),
                    },
                    {
                        "role": "tool",
                        "tool_call_id": f"call_{number}",
                        "content": output,
                        "timestamp": at(number),
                    },
                ]
    return records


def hermes_files(steps: Sequence[Step]) -> Records:
    meta = {"role": "session_meta", "model": "model-1", "platform": "cli", "tools": []}
    return [meta, *hermes_messages(steps)]


def hermes_messages(steps: Sequence[Step]) -> Records:
    """Render messages in which summaries also have the role of the user."""
    records = messages(steps)
    for record in records:
        if record["role"] == "system":
            record["role"] = "user"
            record["content"] = f"[CONTEXT COMPACTION — REFERENCE ONLY] {record['content']}"
    return records


HERMES = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT,
    parent_session_id TEXT, started_at REAL NOT NULL, title TEXT, cwd TEXT, git_branch TEXT,
    input_tokens INTEGER, output_tokens INTEGER, cache_read_tokens INTEGER,
    cache_write_tokens INTEGER
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL,
    active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, observed INTEGER,
    display_kind TEXT
);
"""


def write_hermes(path: Path, records: Records, **session: Any) -> None:
    """Write a Hermes database with one session."""
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {"id": "20261118_090000_5a3e2ff1", "source": "cli", "started_at": 1.5, **session}
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(HERMES)
        insert(database, "sessions", facts)
        for number, record in enumerate(records, start=1):
            row = {"session_id": facts["id"], "timestamp": 1_794_992_400.5 + number, **record}
            row["timestamp"] = 1_794_992_400.5 + number
            if not isinstance(row.get("tool_calls"), str | None):
                row["tool_calls"] = json.dumps(row["tool_calls"])
            insert(database, "messages", row)


def insert(database: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))  # noqa: S608


def hermes(steps: Sequence[Step]) -> Callable[[Path], None]:
    return lambda path: write_hermes(path, hermes_messages(steps), cwd="/code/acme", title="Boats")


def grok(steps: Sequence[Step]) -> Records:
    """Render the events of Grok Build."""
    records: Records = []

    def add(number: int, update_kind: str, half: int = 0, **update: Any) -> None:
        meta = {"eventId": f"s-{number}{half}"}
        params = {
            "sessionId": "s",
            "update": {"sessionUpdate": update_kind, **update},
            "_meta": meta,
        }
        stamp = 1_794_992_400 + number
        records.append({"timestamp": stamp, "method": "session/update", "params": params})

    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                content = {"type": "text", "text": text}
                add(number, "user_message_chunk", content=content, _meta={"promptIndex": number})
            case Agent(text):
                begin, space, end = text.partition(" ")
                add(number, "agent_message_chunk", content={"type": "text", "text": begin})
                content = {"type": "text", "text": space + end}
                add(number, "agent_message_chunk", half=1, content=content)
            case Tool(name, argument, output):
                call = f"call-{number}"
                tool = {"x.ai/tool": {"name": name, "kind": "other"}}
                arguments = arguments_of(name, argument)
                add(
                    number,
                    "tool_call",
                    toolCallId=call,
                    title=name,
                    kind="other",
                    rawInput=arguments,
                    _meta=tool,
                )
                content = {"type": "content", "content": {"type": "text", "text": output}}
                add(
                    number,
                    "tool_call_update",
                    half=1,
                    toolCallId=call,
                    status="completed",
                    content=[content],
                )
            case Summary():
                add(number, "plan", entries=[])
    return records


def grok_history(steps: Sequence[Step]) -> Records:
    """Render the messages that Grok Build sends to the model."""
    records: Records = [{"type": "system", "content": "You are Grok."}]
    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                content = [{"type": "text", "text": f"<user_query>{text}</user_query>"}]
                records.append({"type": "user", "content": content, "prompt_index": number})
            case Agent(text):
                records.append({"type": "assistant", "content": text, "model_id": "grok-1"})
            case Tool(name, argument, output):
                arguments = json.dumps(arguments_of(name, argument))
                call = {"id": f"call-{number}", "name": name, "arguments": arguments}
                records.append({"type": "assistant", "content": "", "tool_calls": [call]})
                result = {"type": "tool_result", "tool_call_id": f"call-{number}"}
                records.append({**result, "content": output})
            case Summary():
                content = [{"type": "text", "text": "Go on."}]
                reason = "compaction_meta"
                records.append({"type": "user", "content": content, "synthetic_reason": reason})
    return records


def gptme(steps: Sequence[Step]) -> Records:
    records: Records = []
    for number, step in enumerate(steps, start=1):
        stamp = {"timestamp": f"2026-11-18T09:00:{number:02d}.500000"}
        match step:
            case Owner(text):
                records.append({"role": "user", "content": text, **stamp})
            case Agent(text):
                records.append({"role": "assistant", "content": text, **stamp})
            case Summary():
                records.append({"role": "system", "content": "Trimmed.", **stamp})
            case Tool(name, argument, output):
                call = f"@{name}(call-{number}): {json.dumps(arguments_of(name, argument))}"
                records.append({"role": "assistant", "content": call, **stamp})
                result = {"role": "system", "content": output, "call_id": f"call-{number}"}
                records.append({**result, **stamp})
    return records


def iflow(steps: Sequence[Step]) -> Records:
    records: Records = []

    def add(number: int, kind: str, content: Any, half: int = 0, **more: Any) -> None:
        message = {"role": kind, "content": content, **more}
        records.append(
            {
                "uuid": f"1f10a000-0000-4000-900{half}-{number:012d}",
                "parentUuid": None,
                "sessionId": "session-1f10a000-0000-4000-8000-000000000001",
                "timestamp": at(number),
                "type": kind,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/code/acme",
                "message": message,
            }
        )

    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                add(number, "user", text)
            case Agent(text):
                add(number, "assistant", [{"type": "text", "text": text}], model="model-1")
            case Tool(name, argument, output):
                call = {"type": "tool_use", "id": f"call_{number}", "name": name}
                call["input"] = arguments_of(name, argument)  # type: ignore[assignment]
                add(number, "assistant", [call], model="model-1")
                response = {"id": f"call_{number}", "name": name, "response": {"output": output}}
                content = {"responseParts": {"functionResponse": response}}
                result = {"type": "tool_result", "tool_use_id": f"call_{number}"}
                add(number, "user", [{**result, "content": content}], half=1)
            case Summary():
                pass
    return records


WITHOUT_SUMMARY = frozenset({"gptme", "grok", "grok/history", "iflow", "kimi", "kimi/context"})
"""Shapes of agents that do not record the text of their summaries."""

Render = Callable[[Sequence[Step]], Any]

SHAPES: dict[str, tuple[str, Render]] = {
    "droid": ("-code-acme/d401d000-0000-4000-8000-000000000001.jsonl", droid),
    "gptme": ("2026-11-18-boats/conversation.jsonl", gptme),
    "grok": ("sessions/acme/0190a000-0000-7000-8000-000000000001/updates.jsonl", grok),
    "grok/history": (
        "sessions/acme/0190a000-0000-7000-8000-000000000002/chat_history.jsonl",
        grok_history,
    ),
    "hermes": ("hermes/state.db", hermes),
    "hermes-files": ("sessions/20261118_090000_5a3e2ff1.jsonl", hermes_files),
    "iflow": ("projects/-code-acme/session-1f10a000-0000-4000-8000-000000000001.jsonl", iflow),
    "kimi": ("sessions/0a1b/c0ffee00-0000-4000-8000-000000000001/wire.jsonl", kimi),
    "kimi/context": (
        "sessions/0a1b/c0ffee00-0000-4000-8000-000000000002/context.jsonl",
        kimi_context,
    ),
    "kimi/code": ("sessions/wd_acme/session_c0ffee/agents/main/wire.jsonl", kimi_code),
}
