"""One conversation in the shape of every tool: what was said, what tools answered, what was summed up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stores import OpenClaw, OpenCode, bubble, conversation, opencode_tool, tool_bubble, write_state, write_store


@dataclass(frozen=True)
class Owner:
    """The owner types something."""

    text: str


@dataclass(frozen=True)
class Agent:
    """The agent says something."""

    text: str


@dataclass(frozen=True)
class Tool:
    """The agent calls a tool, which answers. ``name`` is what Claude Code calls it."""

    name: str
    argument: str
    output: str


@dataclass(frozen=True)
class Summary:
    """The host sums up what was said so far."""

    text: str


Step = Owner | Agent | Tool | Summary

_ARGUMENTS = {"WebFetch": "url", "Bash": "command", "Read": "file_path"}


def _at(second: int) -> str:
    return f"2026-11-18T09:{second // 60:02d}:{second % 60:02d}.500Z"


def claude_code(steps: Sequence[Step]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        common = {
            "uuid": f"00000000-0000-4000-8000-{number:012d}", "sessionId": "5e55-0001", "timestamp": _at(number),
            "cwd": "/code/acme", "version": "2.1.0", "gitBranch": "main", "isSidechain": False,
        }  # fmt: skip
        match step:
            case Owner(text):
                found.append({**common, "type": "user", "message": {"role": "user", "content": text}})
            case Summary(text):
                message = {"role": "user", "content": text}
                found.append({**common, "type": "user", "isCompactSummary": True, "message": message})
            case Agent(text):
                found.append(_claude_says(common, number, {"type": "text", "text": text}))
            case Tool(name, argument, output):
                given = {_ARGUMENTS.get(name, "query"): argument}
                call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
                found.append(_claude_says(common, number, call))
                block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
                own = {**common, "uuid": f"00000000-0000-4000-9000-{number:012d}", "toolUseResult": {"stdout": output}}
                found.append({**own, "type": "user", "message": {"role": "user", "content": [block]}})
    return found


def _claude_says(common: dict[str, Any], number: int, block: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "id": f"msg_{number}", "model": "model-1", "content": [block]}
    return {**common, "type": "assistant", "message": message}


def codex(steps: Sequence[Step]) -> list[dict[str, Any]]:
    meta = {"id": "019fa000-1111-7222-8333-444455556666", "timestamp": _at(0), "cwd": "/code/acme", "source": "cli"}
    found: list[dict[str, Any]] = [{"timestamp": _at(0), "type": "session_meta", "payload": meta}]
    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                found.append(_codex_message(number, "user", text))
                found.append(_codex(number, "event_msg", type="user_message", message=text, kind="plain"))
            case Agent(text):
                found.append(_codex(number, "event_msg", type="agent_message", message=text))
                found.append(_codex_message(number, "assistant", text))
            case Summary(text):
                found.append({"timestamp": _at(number), "type": "compacted", "payload": {"message": text}})
            case Tool(name, argument, output):
                found += _codex_call(number, name, argument, output)
    return found


def _codex(number: int, record: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": _at(number), "type": record, "payload": payload}


def _codex_message(number: int, role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return _codex(number, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def _codex_call(number: int, name: str, argument: str, output: str) -> list[dict[str, Any]]:
    scripts = {"WebFetch": f"curl {argument}", "Read": f"cat {argument}", "Bash": argument}
    given = {"command": ["bash", "-lc", scripts[name]]} if name in scripts else {"query": argument}
    called = json.dumps(given)
    answer = json.dumps({"output": output, "metadata": {"exit_code": 0}})
    tool = "shell" if name in scripts else name
    return [
        _codex(number, "response_item", type="function_call", name=tool, arguments=called, call_id=f"c{number}"),
        _codex(number, "response_item", type="function_call_output", call_id=f"c{number}", output=answer),
    ]


def openclaw(steps: Sequence[Step]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "7d9c1a00-aaaa-4bbb-8ccc-dddd00001111", "timestamp": _at(0),
         "cwd": "/code/acme"}
    ]  # fmt: skip
    names = {"WebFetch": "web_fetch", "Bash": "exec", "Read": "read"}
    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                found.append(_openclaw(number, "user", [{"type": "text", "text": text}]))
            case Agent(text):
                found.append(_openclaw(number, "assistant", [{"type": "text", "text": text}]))
            case Summary(text):
                found.append({"type": "compaction", "id": f"{number:08x}", "timestamp": _at(number), "summary": text})
            case Tool(name, argument, output):
                given = {_ARGUMENTS.get(name, "query"): argument}
                tool = names.get(name, name)
                call = {"type": "toolCall", "id": f"t{number}", "name": tool, "arguments": given}
                found.append(_openclaw(number, "assistant", [call]))
                more = {"toolCallId": f"t{number}", "toolName": tool, "isError": False}
                found.append(_openclaw(number + 900, "toolResult", [{"type": "text", "text": output}], **more))
    return found


def _openclaw(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **more}
    return {"type": "message", "id": f"{number:08x}", "timestamp": _at(number % 900), "message": message}


def jsonl(steps: Sequence[Step]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        common = {"id": f"m{number}", "timestamp": _at(number), "session_id": "s1"}
        match step:
            case Owner(text):
                found.append({**common, "role": "user", "content": text})
            case Agent(text):
                found.append({**common, "role": "assistant", "content": text})
            case Summary(text):
                found.append({**common, "role": "system", "content": text})
            case Tool(name, argument, output):
                given = json.dumps({_ARGUMENTS.get(name, "query"): argument})
                call = {"id": f"c{number}", "function": {"name": name, "arguments": given}}
                found.append({**common, "role": "assistant", "content": None, "tool_calls": [call]})
                found.append({**common, "id": f"r{number}", "role": "tool", "tool_call_id": f"c{number}",
                              "content": output})  # fmt: skip
    return found


def specstory(steps: Sequence[Step]) -> str:
    parts = ["<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# Acme (2026-11-18)\n"]
    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                parts.append(f"_**User (2026-11-18 09:{number:02d}:00Z)**_\n\n{text}\n\n---\n")
            case Agent(text) | Summary(text):
                parts.append(f"_**Agent (model-1)**_\n\n{text}\n\n---\n")
            case Tool(name, argument, output):
                told = f"<details><summary>{name} {argument}</summary>\n\n{output}\n\n</details>"
                parts.append(f'_**Agent (model-1)**_\n\n<tool-use data-tool-name="{name}">{told}</tool-use>\n\n---\n')
    return "\n".join(parts)


def cursor_state(steps: Sequence[Step]) -> Database:
    bubbles: list[dict[str, Any]] = []
    names = {"WebFetch": "web_fetch", "Bash": "run_terminal_cmd", "Read": "read_file"}
    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                found = bubble(1, text)
            case Agent(text) | Summary(text):
                found = bubble(2, text)
            case Tool(name, argument, output):
                found = tool_bubble(
                    names.get(name, name), {_ARGUMENTS.get(name, "query"): argument}, {"output": output}
                )
        bubbles.append({**found, "bubbleId": f"b{number:03d}", "createdAt": _at(number)})
    values = conversation("c0de0000-0000-4000-8000-000000000001", bubbles)
    return lambda path: write_state(path, {}, values)


def cursor_store(steps: Sequence[Step]) -> Database:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    names = {"WebFetch": "WebFetch", "Bash": "Shell", "Read": "Read"}
    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                words = {"type": "text", "text": f"<user_info>OS: linux</user_info><user_query>\n{text}\n</user_query>"}
                messages.append({"role": "user", "content": [words]})
            case Agent(text) | Summary(text):
                messages.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
            case Tool(name, argument, output):
                common = {"toolCallId": f"t{number}", "toolName": names.get(name, name)}
                call = {"type": "tool-call", **common, "args": {_ARGUMENTS.get(name, "query"): argument}}
                result = {"type": "tool-result", **common, "result": output}
                messages += [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [result]}]
    return lambda path: write_store(path, messages)


def opencode(steps: Sequence[Step]) -> Database:
    names = {"WebFetch": "webfetch", "Bash": "bash", "Read": "read"}

    def write_to(path: Path) -> None:
        store = OpenCode(path)
        session = store.session("ses_0001")
        for step in steps:
            match step:
                case Owner(text):
                    store.message(session, "user", {"text": text})
                case Agent(text):
                    store.message(session, "assistant", {"type": "step-start"}, {"text": text})
                case Summary(text):
                    store.message(session, "assistant", {"text": text}, summary=True)
                case Tool(name, argument, output):
                    given = {_ARGUMENTS.get(name, "query"): argument}
                    store.message(session, "assistant", opencode_tool(names.get(name, name), given, output))
        store.close()

    return write_to


def openclaw_store(steps: Sequence[Step]) -> Database:
    def write_to(path: Path) -> None:
        store = OpenClaw(path)
        store.window("7d9c1a00-aaaa-4bbb-8ccc-dddd00001112")
        for event in openclaw(steps)[1:]:
            store.event("7d9c1a00-aaaa-4bbb-8ccc-dddd00001112", event)
        store.close()

    return write_to


Database = Callable[[Path], object]
"""Writes a database."""

Render = Callable[[Sequence[Step]], "list[dict[str, Any]] | str | Database"]

SHAPES: dict[str, tuple[str, Render]] = {
    "claude-code": ("5e55-0001.jsonl", claude_code),
    "codex": ("rollout-2026-11-18T09-00-00-019fa000-1111-7222-8333-444455556666.jsonl", codex),
    "openclaw": ("7d9c1a00-aaaa-4bbb-8ccc-dddd00001111.jsonl", openclaw),
    "jsonl": ("talk.jsonl", jsonl),
    "specstory": ("2026-11-18_talk.md", specstory),
    "cursor-state": ("globalStorage/state.vscdb", cursor_state),
    "cursor-store": ("0c0ffee0/a6e17000-0000-4000-8000-000000000001/store.db", cursor_store),
    "opencode": ("opencode.db", opencode),
    "openclaw-store": ("openclaw-agent.sqlite", openclaw_store),
}
"""By tool: the name of the file, and what writes it. A tool whose transcripts keep no tool output is told it anyway."""


def write(folder: Path, shape: str, steps: Sequence[Step]) -> Path:
    """A transcript of some steps."""
    name, render = SHAPES[shape]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    told = render(steps)
    if callable(told):
        path.unlink(missing_ok=True)
        told(path)
        return path
    if not isinstance(told, str):
        told = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in told)
    path.write_text(told, encoding="utf-8")
    return path
