"""A rule-based model for a conversation of a host: it calls an offered tool, then answers.

For :class:`tests.fakes.provider.FakeProvider` with requests of a real host. ::

    with FakeProvider(conversation([Line("database", say="PostgreSQL.", tool="memory_search")])) as provider:
        ...   # run the host; its requests are in provider.requests
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
    """The model's reaction if the owner's latest message contains ``heard``.

    ``tool`` is a pattern of a tool's name, with its namespace if any. If such a tool is offered, it is called once with
    ``arguments``; after that, or without the tool, the model answers ``say``. ``tokens`` is the reported size of the
    request; 0 counts the characters.
    """

    heard: str
    say: str = "Done."
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """The content of a request in any format: the owner's latest message without nacre's context, and the offered
    tools. ``is_answer`` is True if the latest message is a tool's answer."""

    words: str
    is_answer: bool
    tools: tuple[Call, ...]


def conversation(
    lines: Sequence[Line], otherwise: str = "All right."
) -> Callable[[Request], Reply]:
    """Answer by the first line that matches; ``otherwise`` if none does, as for titles and summaries."""

    def answer(request: Request) -> Reply:
        prompt = asked_of(request)
        line = next((line for line in lines if line.heard in prompt.words), Line("", otherwise))
        pattern = re.compile(line.tool) if line.tool else _NEVER
        offered = [tool for tool in prompt.tools if pattern.search(f"{tool.namespace} {tool.name}")]
        if offered and not prompt.is_answer:
            call = Call(offered[0].name, json.dumps(dict(line.arguments)), offered[0].namespace)
            return Reply(call, tokens=line.tokens)
        return Reply(line.say, tokens=line.tokens)

    return answer


def asked_of(request: Request) -> Prompt:
    """Parse a request; the result is empty for an unknown format."""
    read = next((read for end, read in _READERS.items() if request.path.endswith(end)), None)
    if read is None:
        return Prompt("", False, ())
    messages, tools = read(request.body)
    turns = list(_turns(messages))[::-1]
    words = next((turn.texts for turn in turns if turn.texts and not turn.answers), ())
    is_answer = bool(turns) and turns[0].answers
    return Prompt(clean("\n".join(words)).text, is_answer, tuple(tools))


@dataclass(frozen=True, slots=True)
class Message:
    """A message's texts, whether it answers a tool call, and whether it comes from the agent."""

    texts: tuple[str, ...] = ()
    answers: bool = False
    is_agents: bool = False


Read = tuple[Iterator[Message], Iterator[Call]]


def _turns(messages: Iterator[Message]) -> Iterator[Message]:
    """Join the messages between those of the agent: hosts add their own to the owner's."""
    turn = Message()
    for message in messages:
        if message.is_agents:
            yield turn
            turn = Message()
        else:
            turn = Message(turn.texts + message.texts, turn.answers or message.answers)
    yield turn


def _messages(body: Body) -> Read:
    """Parse Anthropic messages."""
    return _by_role(body.get("messages", [])), (
        Call(str(tool.get("name")), "") for tool in body.get("tools", [])
    )


def _completions(body: Body) -> Read:
    """Parse OpenAI chat completions."""
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
    """Parse OpenAI responses, whose tools may have a namespace."""
    return _items(body), _namespaced(body.get("tools", []))


def _items(body: Body) -> Iterator[Message]:
    items = body.get("input", [])
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
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
    """Parse Gemini contents."""
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
