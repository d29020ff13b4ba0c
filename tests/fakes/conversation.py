"""What a model does in a conversation of a host, by rules: call a tool where it is offered, then say something.

For :class:`tests.fakes.provider.FakeProvider`, whose requests then come from a real host. ::

    with FakeProvider(conversation([Line("database", say="PostgreSQL.", tool="memory_search")])) as provider:
        ...   # run the host; what it asked is in provider.requests
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nacre.readers.conversation import clean
from tests.fakes.provider import Reply, Request
from tests.fakes.wire_formats import Call

Body = Mapping[str, Any]
_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Line:
    """What the model does where the owner's newest words hold ``heard``.

    ``tool`` is a pattern of a tool's name, with its namespace before it where it has one: the tool is called once, with
    ``arguments``, where it is offered; then, or where it is not, the model says ``say``. ``tokens`` is what it reports
    to have read; 0 counts.
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


def conversation(
    lines: Sequence[Line], otherwise: str = "All right."
) -> Callable[[Request], Reply]:
    """Answers by the first line that was heard; ``otherwise`` where none was, as for titles and summaries."""

    def answer(request: Request) -> Reply:
        asked = asked_of(request)
        line = next((line for line in lines if line.heard in asked.words), Line("", otherwise))
        wanted = re.compile(line.tool) if line.tool else _NEVER
        offered = [tool for tool in asked.tools if wanted.search(f"{tool.namespace} {tool.name}")]
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
    turns = list(_turns(messages))[::-1]
    words = next((turn.texts for turn in turns if turn.texts and not turn.answers), ())
    is_answer = bool(turns) and turns[0].answers
    return Asked(clean("\n".join(words)).text, is_answer, tuple(tools))


@dataclass(frozen=True, slots=True)
class Message:
    """What a message holds: texts, and whether tools' answers; the agent's own end a turn."""

    texts: tuple[str, ...] = ()
    answers: bool = False
    is_agents: bool = False


Read = tuple[Iterator[Message], Iterator[Call]]


def _turns(messages: Iterator[Message]) -> Iterator[Message]:
    """What stands between the agent's messages, as one each: hosts add some of their own to the owner's."""
    turn = Message()
    for message in messages:
        if message.is_agents:
            yield turn
            turn = Message()
        else:
            turn = Message(turn.texts + message.texts, turn.answers or message.answers)
    yield turn


def _messages(body: Body) -> Read:
    """Anthropic's."""
    return _by_role(body.get("messages", [])), (
        Call(str(tool.get("name")), "") for tool in body.get("tools", [])
    )


def _completions(body: Body) -> Read:
    """OpenAI's chat."""
    return _by_role(body.get("messages", [])), (
        Call(str(tool["function"]["name"]), "") for tool in body.get("tools", [])
    )


def _by_role(messages: Sequence[Body]) -> Iterator[Message]:
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            yield Message(is_agents=True)
        elif role == "tool":
            yield Message(answers=True)
        elif role == "user":
            yield _blocks(message.get("content"))


def _responses(body: Body) -> Read:
    """OpenAI's responses, whose tools may stand in a namespace."""
    return _items(body), _namespaced(body.get("tools", []))


def _items(body: Body) -> Iterator[Message]:
    given = body.get("input", [])
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if item.get("type") == "function_call_output":
            yield Message(answers=True)
        elif item.get("type") == "function_call" or item.get("role") == "assistant":
            yield Message(is_agents=True)
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
    return (_parts(content) for content in body.get("contents", [])), (
        Call(str(declared["name"]), "")
        for tool in body.get("tools", [])
        for declared in tool.get("functionDeclarations", [])
    )


def _parts(content: Body) -> Message:
    parts = content.get("parts", [])
    if content.get("role") == "model":
        return Message(is_agents=True)
    texts = tuple(str(part["text"]) for part in parts if "text" in part)
    return Message(texts, any("functionResponse" in part for part in parts))


def _blocks(content: Any) -> Message:
    if isinstance(content, str):
        return Message((content,))
    blocks = [block for block in content or [] if isinstance(block, dict)]
    answers = any(block.get("type") == "tool_result" for block in blocks)
    return Message(tuple(str(block["text"]) for block in blocks if "text" in block), answers)


_READERS: Mapping[str, Callable[[Body], Read]] = {
    "/v1/messages": _messages,
    "/chat/completions": _completions,
    "/responses": _responses,
    ":generateContent": _contents,
    ":streamGenerateContent": _contents,
}
