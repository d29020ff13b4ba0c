"""Tokens of each answer are counted once, in a single reading and in repeated readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nacre.readers import claude_code, codex, openclaw
from nacre.readers import copilot as copilot_cli
from nacre.readers import gemini_cli as gemini
from nacre.readers.adapter import Adapter
from nacre.readers.registry import adapters
from nacre.values.session import Tokens
from nacre_extras.documents import ADAPTER_CONTINUE

CLAUDE = "claude-code"
CODEX = "codex"
OPENCLAW = "openclaw"
COPILOT = "copilot-cli"
AT = "2026-03-01T09:00:{:02d}.000Z"


def claude(second: int, message: str, text: str, **usage: int) -> dict[str, Any]:
    body = {
        "role": "assistant",
        "id": message,
        "model": "m",
        "content": [{"type": "text", "text": text}],
        "usage": usage,
    }
    return {
        "type": "assistant",
        "uuid": f"a{second}",
        "sessionId": "5e55",
        "timestamp": AT.format(second),
        "message": body,
    }


def claude_owner(second: int, text: str) -> dict[str, Any]:
    body = {"role": "user", "content": text}
    return {
        "type": "user",
        "uuid": f"u{second}",
        "sessionId": "5e55",
        "timestamp": AT.format(second),
        "message": body,
    }


def token_count(second: int, read: int, cached: int, output: int) -> dict[str, Any]:
    total = {
        "input_tokens": read,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_output_tokens": 1,
    }
    payload = {
        "type": "token_count",
        "info": {"total_token_usage": total, "last_token_usage": total},
    }
    return {"timestamp": AT.format(second), "type": "event_msg", "payload": payload}


def codex_message(second: int, kind: str, text: str) -> dict[str, Any]:
    return {
        "timestamp": AT.format(second),
        "type": "event_msg",
        "payload": {"type": kind, "message": text},
    }


def openclaw_message(second: int, role: str, text: str, **facts: Any) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}], **facts}
    return {
        "type": "message",
        "id": f"{second:08x}",
        "timestamp": AT.format(second),
        "message": message,
    }


def copilot(second: int, kind: str, **data: Any) -> dict[str, Any]:
    identity = f"00000000-0000-4000-8000-{second:012d}"
    return {
        "type": kind,
        "data": data,
        "id": identity,
        "timestamp": AT.format(second),
        "parentId": None,
    }


def copilot_run(read: int, cached: int, output: int) -> dict[str, Any]:
    usage = {
        "inputTokens": read,
        "outputTokens": output,
        "cacheReadTokens": cached,
        "cacheWriteTokens": 0,
    }
    return {"model-1": {"requests": {"count": 2}, "usage": usage}}


CASES: dict[str, tuple[Adapter, list[dict[str, Any]], Tokens]] = {
    # every line of a multi-line message reports its tokens; the last line has the final count
    CLAUDE: (
        claude_code.ADAPTER,
        [
            claude_owner(1, "Count the trees in the orchard, please."),
            claude(
                2, "m1", "I will.", input_tokens=5, cache_read_input_tokens=100, output_tokens=1
            ),
            claude(
                3, "m1", "Row by row.", input_tokens=5, cache_read_input_tokens=100, output_tokens=9
            ),
            claude_owner(4, "Take your time."),
            claude(
                5, "m1", "Thanks.", input_tokens=5, cache_read_input_tokens=100, output_tokens=12
            ),
            claude(
                6,
                "m2",
                "There are 12.",
                input_tokens=3,
                cache_creation_input_tokens=40,
                output_tokens=4,
            ),
        ],
        Tokens(48, 100, 16),
    ),
    # running totals, which restart at zero when Codex restarts
    CODEX: (
        codex.ADAPTER,
        [
            {
                "timestamp": AT.format(0),
                "type": "session_meta",
                "payload": {
                    "id": "019fa000-1111-7222-8333-444455556666",
                    "timestamp": AT.format(0),
                    "cwd": "/code/x",
                },
            },
            codex_message(1, "user_message", "Count the trees in the orchard, please."),
            {
                "timestamp": AT.format(2),
                "type": "event_msg",
                "payload": {"type": "token_count", "info": None},
            },
            codex_message(3, "agent_message", "I will."),
            token_count(4, 100, 60, 7),
            codex_message(5, "agent_message", "There are 12."),
            token_count(6, 250, 160, 9),
            codex_message(7, "user_message", "And in the other one?"),
            codex_message(8, "agent_message", "There are 13."),
            token_count(9, 50, 10, 2),
        ],
        Tokens(130, 170, 11),
    ),
    OPENCLAW: (
        openclaw.ADAPTER,
        [
            {
                "type": "session",
                "version": 3,
                "id": "0a0a",
                "timestamp": AT.format(0),
                "cwd": "/code/x",
            },
            openclaw_message(1, "user", "Count the trees in the orchard, please."),
            openclaw_message(
                2,
                "assistant",
                "I will.",
                usage={"input": 4, "output": 2, "cacheRead": 30, "cacheWrite": 6},
            ),
            openclaw_message(
                3,
                "assistant",
                "There are 12.",
                usage={"input": 1, "output": 3, "cost": {"total": 0.1}},
            ),
        ],
        Tokens(11, 30, 5),
    ),
    # messages report their output; the shutdown of a run reports the total, messages included
    COPILOT: (
        copilot_cli.ADAPTER_CLI,
        [
            copilot(0, "session.start", sessionId="0c0p", startTime=AT.format(0)),
            copilot(1, "user.message", content="Count the trees in the orchard, please."),
            copilot(2, "assistant.message", content="I will.", outputTokens=12, messageId="m1"),
            copilot(
                3, "assistant.message", content="There are 12.", outputTokens=3, messageId="m2"
            ),
            copilot(4, "session.shutdown", modelMetrics=copilot_run(100, 80, 20)),
            copilot(5, "session.resume", sessionId="0c0p"),
            copilot(6, "user.message", content="And in the other one?"),
            copilot(
                7, "assistant.message", content="There are 13.", outputTokens=4, messageId="m3"
            ),
            copilot(
                8,
                "session.shutdown",
                modelMetrics={"model-1": {"requests": 1}},
                tokenDetails={
                    "input": {"tokenCount": 7},
                    "output": {"tokenCount": 4},
                    "cache_read": {"tokenCount": 5},
                    "cache_write": {"tokenCount": 2},
                },
            ),
            copilot(9, "user.message", content="Thanks."),
            copilot(10, "assistant.message", content="Good night.", outputTokens=6, messageId="m4"),
        ],
        Tokens(29, 85, 30),
    ),
}


AGENTS = "../../plugins/nacre-extras/tests/extras/test_agents.py"
HERE = {"continue", "gemini-cli"}
"""Covered by separate tests below."""
ELSEWHERE = {
    "aider": "../../plugins/nacre-extras/tests/extras/test_aider.py",
    **dict.fromkeys(
        ("amp", "goose", "goose-files", "zed"),
        "../../plugins/nacre-extras/tests/extras/test_agents.py",
    ),
    "cline": "test_cline.py",
    "cline-sessions": "test_cline.py",
    "kilo-code": "test_opencode.py",
    "kilo-code-tasks": "test_cline.py",
    "qwen-code": "../../plugins/nacre-extras/tests/extras/test_qwen.py",
    "roo-code": "test_cline.py",
    "cursor-state": "test_cursor_state.py",
    "openclaw-store": "test_openclaw_store.py",
    "opencode": "test_opencode.py",
    "opencode-files": "test_opencode.py",
    "nacre-chat": "test_nacre_chat.py",
    **dict.fromkeys(("droid", "gptme", "grok", "hermes", "iflow", "kimi"), AGENTS),
}
"""Covered by the test files of these tools."""


def test_every_adapter_that_reads_tokens_is_tested() -> None:
    reading = {
        name
        for name, adapter in adapters().items()
        if "tokens" not in adapter.leaves_out.split("; ")
    }
    assert reading == CASES.keys() | HERE | ELSEWHERE.keys()
    for file in ELSEWHERE.values():
        assert "Tokens(" in Path(__file__).parent.joinpath(file).read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", CASES)
def test_each_answer_is_counted_once_in_repeated_reads(tool: str, read: Any, write: Any) -> None:
    adapter, records, tokens = CASES[tool]
    whole, _, _ = read(adapter, write("whole.jsonl", *records))
    assert whole[-1].tokens == tokens
    for cut in range(2, len(records)):
        path = write("grown.jsonl", *records[:cut])
        _, _, source = read(adapter, path)
        write("grown.jsonl", *records)
        later, _, _ = read(adapter, path, source.cursor())
        assert later[-1].tokens == tokens, cut


def test_thoughts_are_output_and_cached_tokens_are_not_new_input(read: Any, write: Any) -> None:
    header = {"sessionId": "s1", "projectHash": "0" * 64, "startTime": AT.format(0), "kind": "main"}
    question = {
        "id": "u",
        "type": "user",
        "timestamp": AT.format(1),
        "content": "Count the trees in the orchard.",
    }
    tokens = {"input": 90, "cached": 70, "output": 8, "thoughts": 5, "tool": 2, "total": 105}
    answer = {
        "id": "a",
        "type": "gemini",
        "timestamp": AT.format(2),
        "content": "There are 12.",
        "tokens": tokens,
    }
    sessions, _, _ = read(gemini.ADAPTER, write("session.jsonl", header, question, answer))
    assert sessions[-1].tokens == Tokens(22, 70, 13)


def test_continue_tokens_are_counted_by_answer_or_session(read: Any, write: Any) -> None:
    whole = {
        "promptTokens": 900,
        "completionTokens": 40,
        "promptTokensDetails": {"cachedTokens": 300},
        "totalCost": 1,
    }
    apart = {
        "promptTokens": 20,
        "completionTokens": 5,
        "promptTokensDetails": {"cachedTokens": 800},
    }
    totals = []
    for name, by_answer in (("a", True), ("b", False), ("c", None)):
        answer = {
            "role": "assistant",
            "id": "a1",
            "content": "There are 12.",
            "usage": apart if by_answer else None,
        }
        values = {
            "sessionId": name,
            "workspaceDirectory": "file:///code/x",
            "usage": None if by_answer is None else whole,
            "history": [
                {"message": {"role": "user", "id": "u1", "content": "Count the trees."}},
                {"message": answer},
            ],
        }
        sessions, _, _ = read(ADAPTER_CONTINUE, write(f"{name}.json", values))
        totals.append(sessions[-1].tokens)
    assert totals == [Tokens(20, 800, 5), Tokens(600, 300, 40), None]


@pytest.mark.parametrize(
    "usage", [{"input_tokens": 10**30}, {"input_tokens": "many"}, [], {"input_tokens": -5}]
)
def test_impossible_token_counts_are_ignored(usage: Any, read: Any, write: Any) -> None:
    record = claude(2, "m1", "There are 12.")
    record["message"]["usage"] = usage
    sessions, turns, source = read(claude_code.ADAPTER, write("s.jsonl", record))
    assert (len(turns), source.tally.corrupt) == (1, 0)
    assert sessions[-1].tokens in (None, Tokens())
