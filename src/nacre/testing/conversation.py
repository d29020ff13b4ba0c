"""What a model does in a conversation of a host, by rules: call a tool where it is offered, then say something.

For :class:`nacre.testing.fake_provider.FakeProvider`, whose requests then come from a real host. ::

    with FakeProvider(conversation([Line("database", say="PostgreSQL.", tool="memory_search")])) as provider:
        ...   # run the host; what it asked is in provider.requests
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nacre.testing.fake_provider import Reply, Request
from nacre.testing.wire_formats import Call
from nacre.transcripts.injected import clean

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """What the model does where the owner's newest words hold ``heard``.

    ``tool`` is how the name of a tool ends: it is called once, with ``arguments``, where it is offered; then, or where
    it is not, the model says ``say``. ``tokens`` is what it reports to have read; 0 counts.
    """

    heard: str
    say: str = "Done."
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks, whatever its format: the owner's newest words, without what nacre put there, and the tools
    that are offered. ``is_answer`` says that a tool's answer is the newest of all."""

    words: str
    is_answer: bool
    tools: tuple[Call, ...]


def conversation(lines: Sequence[Line], otherwise: str = "All right.") -> Callable[[Request], Reply]:
    """Answers by the first line that was heard; ``otherwise`` where none was, as for titles and summaries."""

    def answer(request: Request) -> Reply:
        asked = asked_of(request)
        line = next((line for line in lines if line.heard in asked.words), Line("", otherwise))
        offered = [tool for tool in asked.tools if line.tool and tool.name.endswith(line.tool)]
        if offered and not asked.is_answer:
            call = Call(offered[0].name, json.dumps(dict(line.arguments)), offered[0].namespace)
            return Reply(call, tokens=line.tokens)
        return Reply(line.say, tokens=line.tokens)

    return answer


def asked_of(request: Request) -> Asked:
    """What a request asks. An unknown format asks nothing."""
    read = next((read for end, read in _READERS.items() if request.path.endswith(end)), None)
    if read is None:
        return Asked("", False, ())
    messages, tools = read(request.body)
    newest_first = list(messages)[::-1]
    words = next((texts for texts, answers in newest_first if texts and not answers), [])
    is_answer = bool(newest_first) and newest_first[0][1]
    return Asked(clean("\n".join(words)).text, is_answer, tuple(tools))


Message = tuple[list[str], bool]
"""What a message of the owner holds: texts, and whether tools' answers."""
Read = tuple[Iterator[Message], Iterator[Call]]


def _messages(body: Body) -> Read:
    """Anthropic's."""
    said = (_blocks(message.get("content")) for message in body.get("messages", []) if message.get("role") == "user")
    return said, (Call(str(tool.get("name")), "") for tool in body.get("tools", []))


def _completions(body: Body) -> Read:
    """OpenAI's chat."""
    said = (
        ([], True) if message["role"] == "tool" else _blocks(message.get("content"))
        for message in body.get("messages", []) if message.get("role") in ("user", "tool")
    )  # fmt: skip
    return said, (Call(str(tool["function"]["name"]), "") for tool in body.get("tools", []))


def _responses(body: Body) -> Read:
    """OpenAI's responses, whose tools may stand in a namespace."""
    return _items(body), _namespaced(body.get("tools", []))


def _items(body: Body) -> Iterator[Message]:
    given = body.get("input", [])
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if item.get("type") == "function_call_output":
            yield [], True
        elif item.get("role") == "user":
            yield _blocks(item.get("content"))


def _namespaced(tools: Sequence[Body], space: str = "") -> Iterator[Call]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _namespaced(tool.get("tools", []), str(tool.get("name")))
        else:
            yield Call(str(tool.get("name")), "", space)


def _contents(body: Body) -> Read:
    """Gemini's."""
    said = (_parts(content) for content in body.get("contents", []) if content.get("role") == "user")
    return said, (
        Call(str(declared["name"]), "")
        for tool in body.get("tools", []) for declared in tool.get("functionDeclarations", [])
    )  # fmt: skip


def _parts(content: Body) -> Message:
    parts = content.get("parts", [])
    return [part["text"] for part in parts if "text" in part], any("functionResponse" in part for part in parts)


def _blocks(content: Any) -> Message:
    if isinstance(content, str):
        return [content], False
    blocks = [block for block in content or [] if isinstance(block, dict)]
    answers = any(block.get("type") == "tool_result" for block in blocks)
    return [str(block["text"]) for block in blocks if "text" in block], answers


_READERS: Mapping[str, Callable[[Body], Read]] = {
    "/v1/messages": _messages,
    "/chat/completions": _completions,
    "/responses": _responses,
    ":generateContent": _contents,
    ":streamGenerateContent": _contents,
}
