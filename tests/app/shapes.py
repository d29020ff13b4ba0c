"""Render one conversation of messages, tool outputs and summaries in the format of every tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nacre.testing.conformance import Agent, Owner, Step, Summary, Tool
from tests.agents import AGENT_SHAPES
from tests.app import agent_shapes
from tests.stores import (
    START,
    OpenClaw,
    OpenCode,
    OpenCode2,
    bubble,
    conversation,
    opencode_2_tool,
    opencode_tool,
    tool_bubble,
    write_state,
    write_store,
)

_GEMINI_NAMES = {"WebFetch": "web_fetch", "Bash": "run_shell_command", "Read": "read_file"}
_ARGUMENTS = {"WebFetch": "url", "Bash": "command", "Read": "file_path"}


def _at(second: int) -> str:
    return f"2026-11-18T09:{second // 60:02d}:{second % 60:02d}.500Z"


def claude_code(steps: Sequence[Step]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        common = {
            "uuid": f"00000000-0000-4000-8000-{number:012d}",
            "sessionId": "5e55-0001",
            "timestamp": _at(number),
            "cwd": "/code/acme",
            "version": "2.1.0",
            "gitBranch": "main",
            "isSidechain": False,
        }
        match step:
            case Owner(text):
                records.append(
                    {**common, "type": "user", "message": {"role": "user", "content": text}}
                )
            case Summary(text):
                message = {"role": "user", "content": text}
                records.append(
                    {**common, "type": "user", "isCompactSummary": True, "message": message}
                )
            case Agent(text):
                records.append(_claude_says(common, number, {"type": "text", "text": text}))
            case Tool(name, argument, output):
                arguments = {_ARGUMENTS.get(name, "query"): argument}
                call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}
                records.append(_claude_says(common, number, call))
                block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
                own = {
                    **common,
                    "uuid": f"00000000-0000-4000-9000-{number:012d}",
                    "toolUseResult": {"stdout": output},
                }
                records.append(
                    {**own, "type": "user", "message": {"role": "user", "content": [block]}}
                )
    return records


def _claude_says(common: dict[str, Any], number: int, block: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "id": f"msg_{number}", "model": "model-1", "content": [block]}
    return {**common, "type": "assistant", "message": message}


def codex(steps: Sequence[Step]) -> list[dict[str, Any]]:
    meta = {
        "id": "019fa000-1111-7222-8333-444455556666",
        "timestamp": _at(0),
        "cwd": "/code/acme",
        "source": "cli",
    }
    records: list[dict[str, Any]] = [{"timestamp": _at(0), "type": "session_meta", "payload": meta}]
    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                records.append(_codex_message(number, "user", text))
                records.append(
                    _codex(number, "event_msg", type="user_message", message=text, kind="plain")
                )
            case Agent(text):
                records.append(_codex(number, "event_msg", type="agent_message", message=text))
                records.append(_codex_message(number, "assistant", text))
            case Summary(text):
                records.append(
                    {"timestamp": _at(number), "type": "compacted", "payload": {"message": text}}
                )
            case Tool(name, argument, output):
                records += _codex_call(number, name, argument, output)
    return records


def _codex(number: int, record: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": _at(number), "type": record, "payload": payload}


def _codex_message(number: int, role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return _codex(
        number, "response_item", type="message", role=role, content=[{"type": kind, "text": text}]
    )


def _codex_call(number: int, name: str, argument: str, output: str) -> list[dict[str, Any]]:
    scripts = {"WebFetch": f"curl {argument}", "Read": f"cat {argument}", "Bash": argument}
    arguments = (
        {"command": ["bash", "-lc", scripts[name]]} if name in scripts else {"query": argument}
    )
    encoded = json.dumps(arguments)
    answer = json.dumps({"output": output, "metadata": {"exit_code": 0}})
    tool = "shell" if name in scripts else name
    return [
        _codex(
            number,
            "response_item",
            type="function_call",
            name=tool,
            arguments=encoded,
            call_id=f"c{number}",
        ),
        _codex(
            number,
            "response_item",
            type="function_call_output",
            call_id=f"c{number}",
            output=answer,
        ),
    ]


def openclaw(steps: Sequence[Step]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [
        {
            "type": "session",
            "version": 3,
            "id": "7d9c1a00-aaaa-4bbb-8ccc-dddd00001111",
            "timestamp": _at(0),
            "cwd": "/code/acme",
        }
    ]
    names = {"WebFetch": "web_fetch", "Bash": "exec", "Read": "read"}
    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                records.append(_openclaw(number, "user", [{"type": "text", "text": text}]))
            case Agent(text):
                records.append(_openclaw(number, "assistant", [{"type": "text", "text": text}]))
            case Summary(text):
                records.append(
                    {
                        "type": "compaction",
                        "id": f"{number:08x}",
                        "timestamp": _at(number),
                        "summary": text,
                    }
                )
            case Tool(name, argument, output):
                arguments = {_ARGUMENTS.get(name, "query"): argument}
                tool = names.get(name, name)
                call = {
                    "type": "toolCall",
                    "id": f"t{number}",
                    "name": tool,
                    "arguments": arguments,
                }
                records.append(_openclaw(number, "assistant", [call]))
                more = {"toolCallId": f"t{number}", "toolName": tool, "isError": False}
                records.append(
                    _openclaw(
                        number + 900, "toolResult", [{"type": "text", "text": output}], **more
                    )
                )
    return records


def _openclaw(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **more}
    return {
        "type": "message",
        "id": f"{number:08x}",
        "timestamp": _at(number % 900),
        "message": message,
    }


def jsonl(steps: Sequence[Step]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        common = {"id": f"m{number}", "timestamp": _at(number), "session_id": "s1"}
        match step:
            case Owner(text):
                records.append({**common, "role": "user", "content": text})
            case Agent(text):
                records.append({**common, "role": "assistant", "content": text})
            case Summary(text):
                records.append({**common, "role": "system", "content": text})
            case Tool(name, argument, output):
                arguments = json.dumps({_ARGUMENTS.get(name, "query"): argument})
                call = {"id": f"c{number}", "function": {"name": name, "arguments": arguments}}
                records.append(
                    {**common, "role": "assistant", "content": None, "tool_calls": [call]}
                )
                records.append(
                    {
                        **common,
                        "id": f"r{number}",
                        "role": "tool",
                        "tool_call_id": f"c{number}",
                        "content": output,
                    }
                )
    return records


def specstory(steps: Sequence[Step]) -> str:
    parts = ["<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# Acme (2026-11-18)\n"]
    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                parts.append(f"_**User (2026-11-18 09:{number:02d}:00Z)**_\n\n{text}\n\n---\n")
            case Agent(text) | Summary(text):
                parts.append(f"_**Agent (model-1)**_\n\n{text}\n\n---\n")
            case Tool(name, argument, output):
                details = f"<details><summary>{name} {argument}</summary>\n\n{output}\n\n</details>"
                parts.append(
                    f'_**Agent (model-1)**_\n\n<tool-use data-tool-name="{name}">{details}</tool-use>\n\n---\n'
                )
    return "\n".join(parts)


def copilot_cli(steps: Sequence[Step]) -> list[dict[str, Any]]:
    start = {
        "sessionId": "0c0p1107-0000-4000-8000-000000000000",
        "version": 1,
        "copilotVersion": "1.0.77",
        "startTime": _at(0),
        "selectedModel": "model-1",
        "context": {"cwd": "/code/acme", "branch": "main"},
    }
    records = [_copilot(0, "session.start", start)]
    names = {"WebFetch": "web_fetch", "Bash": "bash", "Read": "view"}
    for number, step in enumerate(steps, start=1):
        match step:
            case Owner(text):
                data = {
                    "content": text,
                    "transformedContent": f"{text} <reminder/>",
                    "attachments": [],
                }
                records.append(_copilot(number, "user.message", data))
            case Agent(text):
                records.append(
                    _copilot(number, "assistant.message", {"content": text, "toolRequests": []})
                )
            case Summary(text):
                records.append(
                    _copilot(
                        number,
                        "session.compaction_complete",
                        {"success": True, "summaryContent": text},
                    )
                )
            case Tool(name, argument, output):
                tool, call = names.get(name, name), f"call_{number}"
                arguments = {_ARGUMENTS.get(name, "query"): argument}
                requests = [
                    {"toolCallId": call, "name": tool, "arguments": arguments, "type": "function"}
                ]
                result = {"toolCallId": call, "success": True, "result": {"content": output}}
                records += [
                    _copilot(
                        number, "assistant.message", {"content": "", "toolRequests": requests}
                    ),
                    _copilot(
                        number + 300,
                        "tool.execution_start",
                        {"toolCallId": call, "toolName": tool, "arguments": arguments},
                    ),
                    _copilot(number + 600, "tool.execution_complete", result),
                ]
    return records


def _copilot(number: int, kind: str, data: dict[str, Any]) -> dict[str, Any]:
    own = f"00000000-0000-4000-a000-{number:012d}"
    return {"type": kind, "data": data, "id": own, "timestamp": _at(number % 300), "parentId": None}


def _gemini_messages(steps: Sequence[Step]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number, step in enumerate(steps, start=1):
        common = {"id": f"00000000-0000-4000-b000-{number:012d}", "timestamp": _at(number)}
        match step:
            case Owner(text):
                messages.append({**common, "type": "user", "content": [{"text": text}]})
            case Summary(text):
                snapshot = f"<state_snapshot>{text}</state_snapshot>"
                messages.append({**common, "type": "user", "content": [{"text": snapshot}]})
            case Agent(text):
                messages.append(
                    {
                        **common,
                        "type": "gemini",
                        "content": text,
                        "thoughts": [],
                        "model": "model-1",
                    }
                )
            case Tool(name, argument, output):
                tool = _GEMINI_NAMES.get(name, name)
                answer = {
                    "functionResponse": {
                        "id": f"c{number}",
                        "name": tool,
                        "response": {"output": output},
                    }
                }
                call = {
                    "id": f"c{number}",
                    "name": tool,
                    "args": {_ARGUMENTS.get(name, "query"): argument},
                    "result": [answer],
                    "status": "success",
                    "timestamp": _at(number),
                }
                messages.append(
                    {
                        **common,
                        "type": "gemini",
                        "content": "",
                        "toolCalls": [call],
                        "model": "model-1",
                    }
                )
    return messages


_GEMINI = {
    "sessionId": "6e111111-0000-4000-8000-000000000000",
    "projectHash": "ab" * 32,
    "startTime": _at(0),
    "lastUpdated": _at(99),
    "kind": "main",
}


def gemini(steps: Sequence[Step]) -> str:
    return json.dumps({**_GEMINI, "messages": _gemini_messages(steps)}, indent=2)


def gemini_log(steps: Sequence[Step]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [_GEMINI]
    for message in _gemini_messages(steps):
        records += [message, {"$set": {"lastUpdated": message["timestamp"]}}]
    return records


def qwen(steps: Sequence[Step]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []

    def add(kind: str, *parts: dict[str, Any], **more: Any) -> None:
        role = "model" if kind == "assistant" else "user"
        message = {"message": {"role": role, "parts": parts}} if parts else {}
        number = len(records)
        record = {
            "uuid": f"00000000-0000-4000-8000-{number:012d}",
            "parentUuid": records[-1]["uuid"] if records else None,
            "sessionId": "0e0e0e0e-0000-4000-8000-000000000000",
            "timestamp": f"2026-11-18T09:00:{number:02d}.000Z",
            "type": kind,
            "cwd": "/code/acme",
            "version": "0.19.1",
            "gitBranch": "main",
        }
        records.append({**record, **message, **more})

    for step in steps:
        match step:
            case Owner(text):
                add("user", {"text": text}, provenance="real_user")
            case Agent(text):
                add("assistant", {"text": "hm", "thought": True}, {"text": text}, model="model-1")
            case Summary(text):
                history = [{"role": "user", "parts": [{"text": text}]}]
                payload = {"info": {}, "compressedHistory": history}
                add("system", subtype="chat_compression", systemPayload=payload)
            case Tool(name, argument, output):
                arguments = {_ARGUMENTS.get(name, "query"): argument}
                own = {"id": f"call_{len(records)}", "name": _GEMINI_NAMES.get(name, name)}
                add("assistant", {"functionCall": {**own, "args": arguments}}, model="model-1")
                answer = {"functionResponse": {**own, "response": {"output": output}}}
                result = {"callId": own["id"], "status": "success"}
                add("tool_result", answer, toolCallResult=result)
    return records


def copilot_chat(steps: Sequence[Step]) -> str:
    requests: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        if isinstance(step, Owner) or not requests:
            own = f"request_00000000-0000-4000-8000-{number:012d}"
            requests.append(
                {
                    "requestId": own,
                    "timestamp": 1795000000000 + number * 1000,
                    "modelId": "copilot/model-1",
                    "message": {"text": step.text if isinstance(step, Owner) else "", "parts": []},
                    "response": [],
                    "responseId": own.replace("request", "response"),
                    "modelState": {"value": 1},
                    "result": {"metadata": {"toolCallRounds": [], "toolCallResults": {}}},
                }
            )
        last = requests[-1]
        match step:
            case Agent(text):
                half = len(text) // 2
                fragments = [
                    {"value": text[:half], "supportHtml": False},
                    {"value": f"{text[half:]}\n\n", "supportHtml": False},
                ]
                last["response"] += fragments
            case Summary(text):
                last["result"]["metadata"]["summary"] = {"toolCallRoundId": "r1", "text": text}
            case Tool(name, argument, output):
                _copilot_call(last, f"call_{number}", name, argument, output)
    session = {
        "version": 3,
        "sessionId": "c0c0c0c0-0000-4000-8000-000000000000",
        "creationDate": 1795000000000,
        "initialLocation": "panel",
        "responderUsername": "GitHub Copilot",
        "requests": requests,
    }
    return json.dumps(session)


def _copilot_call(
    request: dict[str, Any], call: str, name: str, argument: str, output: str
) -> None:
    tool = {
        "WebFetch": "copilot_fetchWebPage",
        "Bash": "run_in_terminal",
        "Read": "copilot_readFile",
    }.get(name, name)
    arguments = json.dumps({_ARGUMENTS.get(name, "query"): argument})
    metadata = request["result"]["metadata"]
    metadata["toolCallRounds"].append(
        {
            "id": f"r-{call}",
            "response": "",
            "toolCalls": [{"id": call, "name": tool, "arguments": arguments}],
        }
    )
    metadata["toolCallResults"][call] = {"content": [{"value": output}]}
    request["response"].append(
        {
            "kind": "toolInvocationSerialized",
            "toolId": tool,
            "toolCallId": call,
            "isComplete": True,
            "isConfirmed": True,
            "invocationMessage": {"value": f"Using {tool}"},
            "pastTenseMessage": {"value": f"Used {tool}"},
        }
    )


def cline(steps: Sequence[Step]) -> str:
    messages: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        stamp = 1795000000000 + number * 1000
        match step:
            case Owner(text):
                messages.append(
                    {
                        "ts": stamp,
                        "type": "say",
                        "say": "user_feedback" if messages else "task",
                        "text": text,
                    }
                )
            case Agent(text):
                messages.append(
                    {"ts": stamp, "type": "say", "say": "text", "text": text[:3], "partial": True}
                )
                messages.append(
                    {"ts": stamp, "type": "say", "say": "text", "text": text, "partial": False}
                )
            case Summary(text):
                condensation = {"summary": text, "prevContextTokens": 9, "newContextTokens": 1}
                messages.append(
                    {
                        "ts": stamp,
                        "type": "say",
                        "say": "condense_context",
                        "contextCondense": condensation,
                    }
                )
            case Tool("Bash", argument, output):
                messages.append({"ts": stamp, "type": "ask", "ask": "command", "text": argument})
                messages.append(
                    {"ts": stamp + 1, "type": "say", "say": "command_output", "text": output}
                )
            case Tool("Read", argument, output):
                tool = json.dumps({"tool": "readFile", "path": argument, "content": output})
                messages.append({"ts": stamp, "type": "say", "say": "tool", "text": tool})
            case Tool(name, argument, output):
                server = name.removeprefix("mcp__").partition("__")[0]
                request = {
                    "type": "use_mcp_tool",
                    "serverName": server,
                    "toolName": name.rsplit("__", 1)[-1],
                    "arguments": json.dumps({"query": argument}),
                }
                messages.append(
                    {
                        "ts": stamp,
                        "type": "ask",
                        "ask": "use_mcp_server",
                        "text": json.dumps(request),
                    }
                )
                messages.append(
                    {"ts": stamp + 1, "type": "say", "say": "mcp_server_response", "text": output}
                )
    return json.dumps(messages)


def cline_history(steps: Sequence[Step]) -> str:
    messages: list[dict[str, Any]] = []
    details = "<environment_details>\n# Current Working Directory (/code/acme) Files\na.py\n</environment_details>"
    for number, step in enumerate(steps):
        stamp = 1795000000000 + number * 1000
        match step:
            case Owner(text):
                tag = "feedback" if messages else "task"
                content = [
                    {"type": "text", "text": f"<{tag}>\n{text}\n</{tag}>"},
                    {"type": "text", "text": details},
                ]
                messages.append({"role": "user", "content": content, "ts": stamp})
            case Agent(text) | Summary(text):
                messages.append(
                    {"role": "assistant", "content": [{"type": "text", "text": text}], "ts": stamp}
                )
            case Tool(name, argument, output):
                call = {
                    "type": "tool_use",
                    "id": f"t{number}",
                    "name": name,
                    "input": {_ARGUMENTS.get(name, "query"): argument},
                }
                answer = {
                    "type": "tool_result",
                    "tool_use_id": f"t{number}",
                    "content": [{"type": "text", "text": output}],
                }
                messages.append({"role": "assistant", "content": [call], "ts": stamp})
                messages.append(
                    {
                        "role": "user",
                        "content": [answer, {"type": "text", "text": details}],
                        "ts": stamp + 1,
                    }
                )
    return json.dumps(messages)


def cline_sessions(steps: Sequence[Step]) -> str:
    messages: list[dict[str, Any]] = []
    for number, message in enumerate(json.loads(cline_history(steps))):
        parts = [part for part in message["content"] if "<environment_details>" not in str(part)]
        for part in parts:
            if message["role"] == "user" and part["type"] == "text":
                words = part["text"].split("\n", 1)[1].rsplit("\n", 1)[0]
                part["text"] = f'<user_input mode="act">{words}</user_input>'
        messages.append({**message, "id": f"msg_{number}", "content": parts})
    return json.dumps({"version": 1, "messages": messages})


def continue_dev(steps: Sequence[Step]) -> str:
    history: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        own = f"00000000-0000-4000-c000-{number:012d}"
        match step:
            case Owner(text):
                message: dict[str, Any] = {
                    "role": "user",
                    "content": [{"type": "text", "text": text}],
                    "id": own,
                }
                history.append(
                    {"message": message, "contextItems": [], "editorState": {"text": text}}
                )
            case Agent(text):
                message = {"role": "assistant", "content": text, "id": own}
                history.append(
                    {"message": message, "contextItems": [], "promptLogs": [{"prompt": "much"}]}
                )
            case Summary(text):
                history[-1]["conversationSummary"] = text
            case Tool(name, argument, output):
                arguments = {_ARGUMENTS.get(name, "query"): argument}
                function = {"name": name, "arguments": json.dumps(arguments)}
                call = {"id": f"call_{number}", "type": "function", "function": function}
                state = {
                    "status": "done",
                    "toolCallId": f"call_{number}",
                    "toolCall": call,
                    "parsedArgs": arguments,
                    "output": [{"name": "Result", "content": output}],
                }
                message = {"role": "assistant", "content": "", "id": own, "toolCalls": [call]}
                history.append({"message": message, "contextItems": [], "toolCallStates": [state]})
                answer = {
                    "role": "tool",
                    "content": output,
                    "toolCallId": f"call_{number}",
                    "id": own[:-1] + "f",
                }
                history.append({"message": answer, "contextItems": []})
    return json.dumps(
        {
            "sessionId": "c0e70000-0000-4000-8000-000000000000",
            "title": "Acme",
            "workspaceDirectory": "file:///code/acme",
            "history": history,
        },
        indent=2,
    )


def kiro(steps: Sequence[Step]) -> str:
    session = json.loads(continue_dev(steps))
    for number, item in enumerate(session["history"]):
        item["executionId"] = f"x{number}"
    return json.dumps(session, indent=2)


def cursor(steps: Sequence[Step]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    names = {"WebFetch": "WebFetch", "Bash": "Shell", "Read": "Read"}
    for step in steps:
        match step:
            case Owner(text):
                query = f"<git_status>\nclean\n</git_status>\n<user_query>\n{text}\n</user_query>"
                records.append(_cursor("user", {"type": "text", "text": query}))
            case Agent(text) | Summary(text):
                records.append(_cursor("assistant", {"type": "text", "text": text}))
            case Tool(name, argument, output):
                arguments = {_ARGUMENTS.get(name, "query"): argument}
                records.append(
                    _cursor(
                        "assistant",
                        {"type": "tool_use", "name": names.get(name, name), "input": arguments},
                    )
                )
                records.append(
                    _cursor(
                        "user",
                        {"type": "tool_result", "content": [{"type": "text", "text": output}]},
                    )
                )
    return records


def _cursor(role: str, block: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "message": {"content": [block]}}


def aider(steps: Sequence[Step]) -> str:
    parts = [
        "\n# aider chat started at 2026-11-18 09:00:00\n\n> Aider v0.86.1  \n> Main model: model-1 with diff edit"
        " format  \n"
    ]
    for step in steps:
        match step:
            case Owner(text):
                parts.append("\n#### " + "  \n#### ".join(text.splitlines()) + "  \n")
            case Agent(text) | Summary(text):
                parts.append(f"\n{text}\n\n")
            case Tool(_, argument, output):
                lines = [f"Scraping {argument}...", *output.splitlines()]
                parts += [f"> {line}  \n" for line in lines]
    return "".join(parts)


def chatgpt(steps: Sequence[Step]) -> str:
    nodes: dict[str, Any] = {"n0": {"id": "n0", "message": None, "parent": None, "children": []}}

    def add(
        role: str, text: str, kind: str = "text", recipient: str = "all", name: str | None = None
    ) -> None:
        own, parent = f"n{len(nodes)}", f"n{len(nodes) - 1}"
        content = (
            {"content_type": kind, "parts": [text]}
            if kind == "text"
            else {"content_type": kind, "text": text}
        )
        message = {
            "id": own,
            "author": {"role": role, "name": name},
            "create_time": 1795000000.0 + len(nodes),
            "content": content,
            "metadata": {},
            "recipient": recipient,
        }
        nodes[parent]["children"].append(own)
        nodes[own] = {"id": own, "parent": parent, "children": [], "message": message}

    for step in steps:
        match step:
            case Owner(text):
                add("user", text)
            case Agent(text) | Summary(text):
                add("assistant", text)
            case Tool(name, argument, output):
                add("assistant", argument, "code", name)
                add("tool", output, name=name)
    return json.dumps(
        [
            {
                "title": "Acme",
                "create_time": 1795000000.0,
                "conversation_id": "c4a70000",
                "current_node": f"n{len(nodes) - 1}",
                "mapping": nodes,
            }
        ]
    )


def claude_ai(steps: Sequence[Step]) -> str:
    messages: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        common = {"uuid": f"m{number}", "created_at": _at(number), "attachments": [], "files": []}
        match step:
            case Owner(text):
                messages.append({**common, "sender": "human", "text": text})
            case Agent(text) | Summary(text):
                content = [{"type": "text", "text": text}]
                messages.append({**common, "sender": "assistant", "text": text, "content": content})
            case Tool(name, argument, output):
                arguments = {_ARGUMENTS.get(name, "query"): argument}
                answer = {
                    "type": "tool_result",
                    "tool_use_id": f"t{number}",
                    "name": name,
                    "content": [{"type": "text", "text": output}],
                }
                content = [
                    {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments},
                    answer,
                ]
                messages.append({**common, "sender": "assistant", "text": "", "content": content})
    return json.dumps(
        [{"uuid": "c1a0de00", "name": "Acme", "created_at": _at(0), "chat_messages": messages}]
    )


def cursor_state(steps: Sequence[Step]) -> Database:
    bubbles: list[dict[str, Any]] = []
    names = {"WebFetch": "web_fetch", "Bash": "run_terminal_cmd", "Read": "read_file"}
    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                item = bubble(1, text)
            case Agent(text) | Summary(text):
                item = bubble(2, text)
            case Tool(name, argument, output):
                item = tool_bubble(
                    names.get(name, name),
                    {_ARGUMENTS.get(name, "query"): argument},
                    {"output": output},
                )
        bubbles.append({**item, "bubbleId": f"b{number:03d}", "createdAt": _at(number)})
    values = conversation("c0de0000-0000-4000-8000-000000000001", bubbles)
    return lambda path: write_state(path, {}, values)


def cursor_store(steps: Sequence[Step]) -> Database:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    names = {"WebFetch": "WebFetch", "Bash": "Shell", "Read": "Read"}
    for number, step in enumerate(steps):
        match step:
            case Owner(text):
                words = {
                    "type": "text",
                    "text": f"<user_info>OS: linux</user_info><user_query>\n{text}\n</user_query>",
                }
                messages.append({"role": "user", "content": [words]})
            case Agent(text) | Summary(text):
                messages.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
            case Tool(name, argument, output):
                common = {"toolCallId": f"t{number}", "toolName": names.get(name, name)}
                call = {
                    "type": "tool-call",
                    **common,
                    "args": {_ARGUMENTS.get(name, "query"): argument},
                }
                result = {"type": "tool-result", **common, "result": output}
                messages += [
                    {"role": "assistant", "content": [call]},
                    {"role": "tool", "content": [result]},
                ]
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
                    arguments = {_ARGUMENTS.get(name, "query"): argument}
                    store.message(
                        session,
                        "assistant",
                        opencode_tool(names.get(name, name), arguments, output),
                    )
        store.close()

    return write_to


def opencode_2(steps: Sequence[Step]) -> Database:
    names = {"WebFetch": "webfetch", "Bash": "shell", "Read": "read"}

    def write_to(path: Path) -> None:
        store = OpenCode2(path)
        session = store.session("ses_0002")
        for step in steps:
            match step:
                case Owner(text):
                    store.row(session, "user", {"text": text})
                case Agent(text):
                    store.answer(session, {"type": "text", "text": text})
                case Summary(text):
                    store.row(session, "compaction", {"status": "completed", "summary": text})
                case Tool(name, argument, output):
                    arguments = {_ARGUMENTS.get(name, "query"): argument}
                    store.answer(session, opencode_2_tool(names.get(name, name), arguments, output))
        store.close()

    return write_to


def opencode_files(steps: Sequence[Step]) -> str:
    names = {"WebFetch": "webfetch", "Bash": "bash", "Read": "read"}
    messages: list[dict[str, Any]] = []

    def add(role: str, part: dict[str, Any], **more: Any) -> None:
        number = len(messages) + 1
        own = {"id": f"msg_{number:05d}", "sessionID": "ses_0001"}
        info = {
            **own,
            "role": role,
            "time": {"created": START + number * 1000},
            "agent": "build",
            **more,
        }
        parts = [
            {
                "type": "text",
                **part,
                "id": f"prt_{number:05d}",
                "messageID": own["id"],
                "sessionID": "ses_0001",
            }
        ]
        messages.append({"info": info, "parts": parts})

    for step in steps:
        match step:
            case Owner(text):
                add("user", {"text": text})
            case Agent(text):
                add("assistant", {"text": text}, modelID="model-1", finish="stop")
            case Summary(text):
                add("assistant", {"text": text}, summary=True)
            case Tool(name, argument, output):
                arguments = {_ARGUMENTS.get(name, "query"): argument}
                add(
                    "assistant",
                    opencode_tool(names.get(name, name), arguments, output),
                    modelID="model-1",
                )
    info = {
        "id": "ses_0001",
        "title": "Fix the build",
        "directory": "/code/acme",
        "version": "1.17.2",
        "time": {"created": START},
    }
    return json.dumps({"info": info, "messages": messages}, indent=2)


def openclaw_store(steps: Sequence[Step]) -> Database:
    def write_to(path: Path) -> None:
        store = OpenClaw(path)
        store.window("7d9c1a00-aaaa-4bbb-8ccc-dddd00001112")
        for event in openclaw(steps)[1:]:
            store.event("7d9c1a00-aaaa-4bbb-8ccc-dddd00001112", event)
        store.close()

    return write_to


Database = Callable[[Path], object]
"""A function that writes a database."""

Render = Callable[[Sequence[Step]], "list[dict[str, Any]] | str | Database"]

SHAPES: dict[str, tuple[str, Render]] = {
    "claude-code": ("5e55-0001.jsonl", claude_code),
    "codex": ("rollout-2026-11-18T09-00-00-019fa000-1111-7222-8333-444455556666.jsonl", codex),
    "openclaw": ("7d9c1a00-aaaa-4bbb-8ccc-dddd00001111.jsonl", openclaw),
    "jsonl": ("talk.jsonl", jsonl),
    "markdown": ("2026-11-18_talk.md", specstory),
    "copilot-cli": ("session-state/0c0p1107-0000-4000-8000-000000000000/events.jsonl", copilot_cli),
    "gemini-cli": ("chats/session-2026-11-18T09-00-6e111111.json", gemini),
    "gemini-cli/log": ("chats/session-2026-11-18T09-00-6e111111.jsonl", gemini_log),
    "qwen-code": ("chats/0e0e0e0e-0000-4000-8000-000000000000.jsonl", qwen),
    "copilot-chat": ("chatSessions/c0c0c0c0-0000-4000-8000-000000000000.json", copilot_chat),
    "cline": ("tasks/1795000000000/ui_messages.json", cline),
    "cline/history": ("tasks/1795000000000/api_conversation_history.json", cline_history),
    "cline-sessions": ("session_1/session_1.messages.json", cline_sessions),
    "continue": ("sessions/c0e70000-0000-4000-8000-000000000000.json", continue_dev),
    "cursor-transcripts": ("agent-transcripts/c0de/c0de.jsonl", cursor),
    "aider": (".aider.chat.history.md", aider),
    "chatgpt": ("chatgpt/conversations.json", chatgpt),
    "claude-ai": ("claude/conversations.json", claude_ai),
    "cursor-state": ("globalStorage/state.vscdb", cursor_state),
    "cursor-store": ("0c0ffee0/a6e17000-0000-4000-8000-000000000001/store.db", cursor_store),
    "opencode": ("opencode.db", opencode),
    "opencode/2": ("opencode-2.db", opencode_2),
    "opencode-files": ("ses_0001.json", opencode_files),
    "openclaw-store": ("openclaw-agent.sqlite", openclaw_store),
    **agent_shapes.SHAPES,
    "kiro": ("workspace-sessions/L2xha2U_/c0e70000-0000-4000-8000-000000000000.json", kiro),
    **AGENT_SHAPES,
}
"""File name and renderer by the adapter's name in the registry.

The second format of an adapter has a suffix, such as ``gemini-cli/log``."""

LIKE = {
    "roo-code": "cline",
    "kilo-code": "opencode",
    "kilo-code-tasks": "cline",
}
"""Adapters that read the shape of a different adapter in other folders."""

WITHOUT_SHAPE = {
    "aider-llm": "requests that repeat all that went before",
    "cursor-text": "text in which tool output may look like the owner's turn, so that what follows is not trusted",
    "nacre-chat": "people and an agent that write to each other: what the agent did besides is not in it",
    "plaud": "people in a room, and no agent",
    "text": "one speaker",
}
"""Adapters whose formats cannot express the tests' conversations, with their content."""


def adapter_of(shape: str) -> str:
    """Return the name of the adapter that reads a shape."""
    return shape.partition("/")[0]


DATABASES = tuple(shape for shape, (_, render) in SHAPES.items() if callable(render(())))


def render(shape: str, steps: Sequence[Step]) -> str | None:
    """Return the steps as the text of a transcript, or ``None`` if the shape is a database."""
    rendered = SHAPES[shape][1](steps)
    return None if callable(rendered) else _text(rendered)


def _text(rendered: list[dict[str, Any]] | str) -> str:
    return (
        rendered
        if isinstance(rendered, str)
        else "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in rendered)
    )


WITHOUT_OUTPUT = frozenset({"markdown", "aider"})
"""Shapes that omit the output of tools."""


def write(folder: Path, shape: str, steps: Sequence[Step]) -> Path:
    """Write a transcript of the steps and return its path."""
    path = folder / SHAPES[shape][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    rendered = SHAPES[shape][1](steps)
    if callable(rendered):
        path.unlink(missing_ok=True)
        rendered(path)
    else:
        path.write_text(_text(rendered), encoding="utf-8")
    return path
