"""Qwen Code: ``~/.qwen/projects/<folder>/chats/<id>.jsonl``, one record per line."""

from __future__ import annotations

from typing import Any

from nacre.base.plain import Values, mapping, objects, string, total
from nacre.readers.adapter import Adapter, Root, parse_time
from nacre.readers.claude_code import is_qwen
from nacre.readers.gemini_cli import SNAPSHOT, Reader, responses_of, words_of
from nacre.values.session import Session, SessionKind

TOOL = "qwen-code"

_TYPED = (None, "mid_turn_user_message")
_QUIET = frozenset(
    "session_notes ui_telemetry at_command attribution_snapshot background_task_completed rewind "
    "session_source session_execution_engine omni_recall session_model session_approval_mode "
    "agent_bootstrap agent_launch_prompt agent_retry agent_session_ready file_history_snapshot "
    "user_text_elements session_artifact_event session_artifact_snapshot branch_checkpoint "
    "session_sources_snapshot goal_state goal_turn_end realtime_message turn_result".split()
)


class _Reader(Reader):
    """Converts records into messages of Gemini CLI, from which Qwen Code was forked."""

    calls: dict[str, dict[str, Any]]

    def take(self, event: Values) -> None:
        if not self.header:
            self.header, self.calls = {**event}, {}
        kind, identity = event.get("type"), str(event.get("uuid"))
        parts, payload = (
            objects(mapping(event, "message"), "parts"),
            mapping(event, "systemPayload"),
        )
        if "forkedFrom" in event:
            return  # a copy: the original session has this record
        if kind == "user":
            self.user_record(identity, event, parts, payload)
        elif kind == "assistant":
            self.agent_record(identity, event, parts)
        elif kind == "tool_result":
            self.results(mapping(event, "toolCallResult"), parts)
        elif kind == "system":
            self.system_record(identity, event, payload)
        else:
            self.source.unknown(f"record {kind}")

    def user_record(
        self, identity: str, event: Values, parts: list[Values], payload: Values
    ) -> None:
        origin = event.get("provenance")
        self.messages[identity] = {
            **event,
            "provenance": None if origin == "real_user" else origin,
            "isSystemInitiated": event.get("subtype") not in _TYPED
            or event.get("externalInputKind"),
            "content": parts,
            "displayContent": payload.get("displayText"),
        }

    def agent_record(self, identity: str, event: Values, parts: list[Values]) -> None:
        usage, calls = mapping(event, "usageMetadata"), []
        for number, call in enumerate(
            filter(None, (mapping(part, "functionCall") for part in parts))
        ):
            name = str(call.get("id") or f"{identity}#{number}")
            calls.append({**call, "id": name})
            self.calls[name] = calls[-1]
        read = total(usage, "promptTokenCount")
        self.messages[identity] = {
            **event,
            "type": "model",
            "content": parts,
            "toolCalls": calls,
            "tokens": {
                "input": read,
                "cached": usage.get("cachedContentTokenCount"),
                "output": max(0, total(usage, "totalTokenCount") - read)
                or usage.get("candidatesTokenCount"),
            },
        }

    def results(self, facts: Values, parts: list[Values]) -> None:
        for response in responses_of(parts):
            call = self.calls.get(str(response.get("id") or facts.get("callId")), {})
            call["result"] = [{"functionResponse": response}]
            call["status"] = facts.get("status") or "success"

    def system_record(self, identity: str, event: Values, payload: Values) -> None:
        kind = event.get("subtype")
        if kind == "custom_title":
            self.header["summary"] = payload.get("customTitle")
        elif kind == "parent_session":
            self.header["parent"] = payload.get("parentSessionId")
        elif kind == "slash_command":
            if payload.get("phase") == "invocation":
                command = {**event, "type": "user", "content": payload.get("rawCommand")}
                self.messages[identity] = command
        elif kind == "chat_compression":
            words = words_of(
                [
                    part
                    for content in objects(payload, "compressedHistory")[:1]
                    for part in objects(content, "parts")
                ]
            )
            self.messages[identity] = {**event, "type": "user", "content": SNAPSHOT + words}
        elif kind not in _QUIET:
            self.source.unknown(f"system {kind}")

    def session(self) -> Session:
        header = self.header
        name, parent = (
            string(header, "sessionId") or self.source.path.stem,
            string(header, "parent"),
        )
        if header.get("isSidechain") is True:
            name, parent = string(header, "agentId") or self.source.path.stem, name
        return Session(
            TOOL,
            name,
            title=string(header, "summary"),
            cwd=string(header, "cwd"),
            branch=string(header, "gitBranch"),
            kind=SessionKind.SUBAGENT if parent else SessionKind.MAIN,
            parent=parent,
            started=parse_time(header.get("timestamp")),
            tool_version=string(header, "version"),
        )


ADAPTER = Adapter(
    tool=TOOL,
    label="Qwen Code",
    roots=lambda places: [
        Root(
            places.folder(
                "QWEN_RUNTIME_DIR" if places.environ.get("QWEN_RUNTIME_DIR") else "QWEN_HOME",
                ".qwen",
            )
            / "projects",
            ("*/chats/*.jsonl", "*/subagents/*/*.jsonl"),
        )
    ],
    sniff=is_qwen,
    parse=lambda source: _Reader(source).read(),
    whole=True,
    resume=("qwen", "--resume", "{id}"),
    versions="0.19 (from documentation)",
    reads=(
        "messages; commands; tool calls with outcome; folder, branch and version; model; tokens; "
        "title; sub-agents; summaries"
    ),
    leaves_out="thoughts; pictures; notifications; copies in forks; goals and other system records",
    environment=("QWEN_HOME", "QWEN_RUNTIME_DIR"),
)
