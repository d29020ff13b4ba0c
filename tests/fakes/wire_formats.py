"""What providers of language models send over the wire, one class a format, for :mod:`tests.fakes.provider`."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_PART = 24
"""Characters of one event of a stream."""
_GEMINI_ACTIONS = ("generateContent", "streamGenerateContent")
_NAMES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model calls. ``arguments`` is JSON; ``namespace`` groups tools in OpenAI's responses.

    ``is_forced`` says that the request left no choice: then the answer ends as any other, in some formats.
    """

    name: str
    arguments: str
    namespace: str = ""
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """One answer, before it has a format: text, or a call, whose arguments are the text then.

    ``new``, ``cached`` and ``written`` are tokens of the question.
    """

    text: str
    model: str
    number: int
    new: int
    cached: int
    written: int
    is_cut: bool
    call: Call | None = None

    @property
    def output(self) -> int:
        """Tokens of the answer: four characters each."""
        return max(1, len(self.text) // 4)

    @property
    def parts(self) -> list[str]:
        """The text as a stream sends it."""
        return [self.text[at : at + _PART] for at in range(0, len(self.text), _PART)]


class Anthropic:
    """``POST /v1/messages``."""

    path = "/v1/messages"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """What is kept of a request: up to its last mark."""
        system = body.get("system") or []
        blocks = [block for block in system if isinstance(block, dict)]
        for message in body.get("messages", []):
            blocks += message["content"] if isinstance(message.get("content"), list) else []
        marks = [place for place, block in enumerate(blocks) if "cache_control" in block]
        return json.dumps(blocks[: marks[-1] + 1]) if marks else ""

    def whole(self, said: Said) -> dict[str, Any]:
        """The answer in one piece."""
        text = {"type": "text", "text": said.text}
        content = [_tool_use(said, said.call, json.loads(said.text)) if said.call else text]
        return {
            "id": f"msg_{said.number:04}",
            "type": "message",
            "role": "assistant",
            "model": said.model,
            "content": content,
            "stop_reason": self._reason(said),
            "stop_sequence": None,
            "usage": {**self._input(said), "output_tokens": said.output},
        }

    def stream(self, said: Said) -> Iterator[tuple[str, dict[str, Any]]]:
        """The answer as events: name and data."""
        block = _tool_use(said, said.call, {}) if said.call else {"type": "text", "text": ""}
        start = {**self.whole(said), "content": [], "stop_reason": None}
        start["usage"] = {**self._input(said), "output_tokens": 1}
        yield "message_start", {"type": "message_start", "message": start}
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": block},
        )
        yield "ping", {"type": "ping"}
        for part in said.parts:
            text = {"type": "text_delta", "text": part}
            delta = {"type": "input_json_delta", "partial_json": part} if said.call else text
            yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        ended = {"stop_reason": self._reason(said), "stop_sequence": None}
        yield (
            "message_delta",
            {
                "type": "message_delta",
                "delta": ended,
                "usage": {"output_tokens": said.output},
            },
        )
        yield "message_stop", {"type": "message_stop"}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """What comes with a status that is no success."""
        kind = code or _NAMES.get(status, "api_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": "req_0001",
        }

    @staticmethod
    def _reason(said: Said) -> str:
        return "max_tokens" if said.is_cut else "tool_use" if said.call else "end_turn"

    @staticmethod
    def _input(said: Said) -> dict[str, int]:
        return {
            "input_tokens": said.new,
            "cache_read_input_tokens": said.cached,
            "cache_creation_input_tokens": said.written,
        }


class Chat:
    """``POST /v1/chat/completions``."""

    path = "/v1/chat/completions"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """What is kept of a request: all but its last message."""
        return json.dumps(body.get("messages", [])[:-1])

    def whole(self, said: Said) -> dict[str, Any]:
        """The answer in one piece."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if said.call else said.text,
            "refusal": None,
        }
        if said.call:
            function = {"name": said.call.name, "arguments": said.text}
            message["tool_calls"] = [
                {"id": f"call_{said.number}", "type": "function", "function": function}
            ]
        choice = {
            "index": 0,
            "finish_reason": self._reason(said),
            "logprobs": None,
            "message": message,
        }
        return {
            **self._head(said, "chat.completion"),
            "choices": [choice],
            "usage": self._usage(said),
        }

    def stream(self, said: Said) -> Iterator[tuple[str, dict[str, Any]]]:
        """The answer as events: the name is empty."""
        head = self._head(said, "chat.completion.chunk")
        for place, part in enumerate(said.parts):
            delta: dict[str, Any] = {"content": part}
            if said.call:
                function = {"arguments": part, **({"name": said.call.name} if place == 0 else {})}
                call = {
                    "index": 0,
                    "type": "function",
                    "id": f"call_{said.number}",
                    "function": function,
                }
                delta = {"tool_calls": [call]}
            yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield (
            "",
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self._reason(said)}]},
        )
        yield "", {**head, "choices": [], "usage": self._usage(said)}
        yield "", {}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """What comes with a status that is no success."""
        kind = _NAMES.get(status, "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}

    @staticmethod
    def _reason(said: Said) -> str:
        if said.is_cut:
            return "length"
        return "tool_calls" if said.call and not said.call.is_forced else "stop"

    @staticmethod
    def _head(said: Said, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{said.number:04}",
            "object": kind,
            "created": 1_760_000_000,
            "model": said.model,
        }

    @staticmethod
    def _usage(said: Said) -> dict[str, Any]:
        asked = said.new + said.cached + said.written
        return {
            "prompt_tokens": asked,
            "completion_tokens": said.output,
            "total_tokens": asked + said.output,
            "prompt_tokens_details": {"cached_tokens": said.cached},
        }


class Responses:
    """``POST /v1/responses``."""

    path = "/v1/responses"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """What is kept of a request: all but its last message."""
        given = body.get("input")
        return json.dumps(
            [body.get("instructions"), given[:-1] if isinstance(given, list) else None]
        )

    def whole(self, said: Said) -> dict[str, Any]:
        """The answer in one piece."""
        asked = said.new + said.cached + said.written
        part = {"type": "output_text", "text": said.text, "annotations": []}
        item: dict[str, Any] = {
            "type": "message",
            "id": f"msg_{said.number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        if said.call:
            space = {"namespace": said.call.namespace} if said.call.namespace else {}
            item = {
                "type": "function_call",
                "id": f"fc_{said.number}",
                "call_id": f"call_{said.number}",
                **space,
                "name": said.call.name,
                "arguments": said.text,
                "status": "completed",
            }
        return {
            "id": f"resp_{said.number:04}",
            "object": "response",
            "created_at": 1_760_000_000,
            "model": said.model,
            "status": "incomplete" if said.is_cut else "completed",
            "error": None,
            "output": [item],
            "incomplete_details": {"reason": "max_output_tokens"} if said.is_cut else None,
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": asked,
                "input_tokens_details": {"cached_tokens": said.cached},
                "output_tokens": said.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": asked + said.output,
            },
        }

    def stream(self, said: Said) -> Iterator[tuple[str, dict[str, Any]]]:
        """The answer as events: name and data."""
        whole = self.whole(said)
        item = whole["output"][0]
        begun = {
            **whole,
            "status": "in_progress",
            "output": [],
            "usage": None,
            "incomplete_details": None,
        }
        tool = item["type"] == "function_call"
        name = "response.function_call_arguments.delta" if tool else "response.output_text.delta"
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0, "logprobs": []}
        empty = {
            **item,
            **({"arguments": ""} if tool else {"content": []}),
            "status": "in_progress",
        }
        events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        events.append({"type": "response.output_item.added", "output_index": 0, "item": empty})
        if not tool:
            opened = {"type": "output_text", "text": "", "annotations": []}
            events.append({"type": "response.content_part.added", **place, "part": opened})
        events += [{"type": name, **place, "delta": part} for part in said.parts]
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        ended = "response.incomplete" if said.is_cut else "response.completed"
        events.append({"type": ended, "response": whole})
        for number, event in enumerate(events):
            yield event["type"], {**event, "sequence_number": number}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """What comes with a status that is no success."""
        return Chat().error(status, message, code)


class Ollama:
    """``POST /api/chat``; its streams are lines of JSON."""

    path = "/api/chat"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """It says nothing of what it keeps."""
        return ""

    def whole(self, said: Said) -> dict[str, Any]:
        """The answer in one piece."""
        return {
            "model": said.model,
            "created_at": "2026-01-01T00:00:00Z",
            "done": True,
            "done_reason": "length" if said.is_cut else "stop",
            "message": {"role": "assistant", "content": said.text},
            "prompt_eval_count": said.new,
            "eval_count": said.output,
        }

    def stream(self, said: Said) -> Iterator[tuple[str, dict[str, Any]]]:
        """The answer as lines."""
        for part in said.parts:
            yield (
                "",
                {
                    "model": said.model,
                    "message": {"role": "assistant", "content": part},
                    "done": False,
                },
            )
        yield "", {**self.whole(said), "message": {"role": "assistant", "content": ""}}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """What comes with a status that is no success."""
        return {"error": message}


class Gemini:
    """``POST /v1beta/models/<model>:generateContent``, and ``:streamGenerateContent``, whose events have no name."""

    path = ":generateContent"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """What is kept of a request: all but its last message."""
        return json.dumps([body.get("systemInstruction"), body.get("contents", [])[:-1]])

    def whole(self, said: Said) -> dict[str, Any]:
        """The answer in one piece."""
        part: dict[str, Any] = {"text": said.text}
        if said.call:
            part = {"functionCall": {"name": said.call.name, "args": json.loads(said.text)}}
        return self._piece(said, part, "MAX_TOKENS" if said.is_cut else "STOP")

    def stream(self, said: Said) -> Iterator[tuple[str, dict[str, Any]]]:
        """The answer as events; a call comes in one piece."""
        if not said.call:
            for part in said.parts[:-1]:
                yield "", self._piece(said, {"text": part}, None)
            said = replace(said, text=said.parts[-1] if said.parts else "")
        yield "", self.whole(said)

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """What comes with a status that is no success."""
        return {"error": {"code": status, "message": message, "status": code or "INTERNAL"}}

    @staticmethod
    def _piece(said: Said, part: dict[str, Any], reason: str | None) -> dict[str, Any]:
        asked = said.new + said.cached + said.written
        ended = {"finishReason": reason} if reason else {}
        return {
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, **ended}],
            "usageMetadata": {
                "promptTokenCount": asked,
                "candidatesTokenCount": said.output,
                "totalTokenCount": asked + said.output,
                "cachedContentTokenCount": said.cached,
            },
            "modelVersion": said.model,
        }


Wire = Anthropic | Chat | Responses | Ollama | Gemini
_WIRES: dict[str, Wire] = {
    wire.path: wire for wire in (Anthropic(), Chat(), Responses(), Ollama(), Gemini())
}


def wire_at(path: str) -> Wire | None:
    """The format that is spoken at a path, if any."""
    action = path.rpartition(":")[2]
    return _WIRES.get(":generateContent" if action in _GEMINI_ACTIONS else path)


def is_streamed(path: str, body: Mapping[str, Any]) -> bool:
    """Whether a request wants its answer in pieces."""
    return bool(body.get("stream")) or path.endswith(":streamGenerateContent")


def forced(body: Mapping[str, Any]) -> str:
    """The tool that a request says must be called."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return ""
    return str(choice.get("name") or (choice.get("function") or {}).get("name") or "")


def embeddings(body: Mapping[str, Any], dimensions: int) -> dict[str, Any]:
    """``POST /v1/embeddings``: the same text has always the same vector, of length 1 and ``dimensions`` numbers."""
    given = body["input"]
    texts = [given] if isinstance(given, str) else given
    size = int(body.get("dimensions") or body.get("output_dimension") or dimensions)
    vectors = [vector_of(text, size) for text in texts]
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": place, "embedding": _packed(vector) if packed else vector}
        for place, vector in enumerate(vectors)
    ]
    spent = sum(max(1, len(text) // 4) for text in texts)
    usage = {"prompt_tokens": spent, "total_tokens": spent}
    return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}


def gemini_embeddings(body: Mapping[str, Any], dimensions: int) -> dict[str, Any]:
    """``POST /v1beta/models/…:batchEmbedContents``: its vectors are not of length 1."""
    given = []
    for request in body["requests"]:
        text = " ".join(part["text"] for part in request["content"]["parts"])
        size = int(request.get("outputDimensionality") or dimensions)
        given.append({"values": [2 * number for number in vector_of(text, size)]})
    return {"embeddings": given}


def vector_of(text: str, dimensions: int) -> list[float]:
    """A vector of length 1, by the words of a text: texts that share words are near each other."""
    numbers = [0.0] * dimensions
    for word in text.lower().split() or [""]:
        digest = hashlib.sha256(word.encode()).digest()
        for at in range(0, 16, 4):
            sign = 1.0 if digest[at + 3] & 1 else -1.0
            numbers[int.from_bytes(digest[at : at + 3], "big") % dimensions] += sign
    length = sum(number * number for number in numbers) ** 0.5
    return [number / length for number in numbers] if length else [1.0, *numbers[1:]]


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _tool_use(said: Said, call: Call, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{said.number}", "name": call.name, "input": given}
