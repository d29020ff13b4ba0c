"""The wire formats of language model providers, one class each, for :mod:`tests.fakes.provider`."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_PART = 24
"""Characters per event of a stream."""
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
class Answer:
    """One answer without a format: text, or a call with its arguments as text.

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
        """Tokens of the answer (four characters each)."""
        return max(1, len(self.text) // 4)

    @property
    def parts(self) -> list[str]:
        """The parts of the text in a stream."""
        return [self.text[at : at + _PART] for at in range(0, len(self.text), _PART)]


class Anthropic:
    """``POST /v1/messages``."""

    path = "/v1/messages"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """Return the cacheable part of a request: up to its last cache mark."""
        system = body.get("system") or []
        blocks = [block for block in system if isinstance(block, dict)]
        for message in body.get("messages", []):
            blocks += message["content"] if isinstance(message.get("content"), list) else []
        marks = [place for place, block in enumerate(blocks) if "cache_control" in block]
        return json.dumps(blocks[: marks[-1] + 1]) if marks else ""

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the complete answer."""
        text = {"type": "text", "text": answer.text}
        content = [_tool_use(answer, answer.call, json.loads(answer.text)) if answer.call else text]
        return {
            "id": f"msg_{answer.number:04}",
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": content,
            "stop_reason": self._reason(answer),
            "stop_sequence": None,
            "usage": {**self._input(answer), "output_tokens": answer.output},
        }

    def stream(self, answer: Answer) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the answer as events: name and data."""
        block = _tool_use(answer, answer.call, {}) if answer.call else {"type": "text", "text": ""}
        start = {**self.whole(answer), "content": [], "stop_reason": None}
        start["usage"] = {**self._input(answer), "output_tokens": 1}
        yield "message_start", {"type": "message_start", "message": start}
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": block},
        )
        yield "ping", {"type": "ping"}
        for part in answer.parts:
            text = {"type": "text_delta", "text": part}
            delta = {"type": "input_json_delta", "partial_json": part} if answer.call else text
            yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        ended = {"stop_reason": self._reason(answer), "stop_sequence": None}
        yield (
            "message_delta",
            {
                "type": "message_delta",
                "delta": ended,
                "usage": {"output_tokens": answer.output},
            },
        )
        yield "message_stop", {"type": "message_stop"}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Return the body of an error response."""
        kind = code or _NAMES.get(status, "api_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": "req_0001",
        }

    @staticmethod
    def _reason(answer: Answer) -> str:
        return "max_tokens" if answer.is_cut else "tool_use" if answer.call else "end_turn"

    @staticmethod
    def _input(answer: Answer) -> dict[str, int]:
        return {
            "input_tokens": answer.new,
            "cache_read_input_tokens": answer.cached,
            "cache_creation_input_tokens": answer.written,
        }


class Chat:
    """``POST /v1/chat/completions``."""

    path = "/v1/chat/completions"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """Return the cacheable part of a request: all but its last message."""
        return json.dumps(body.get("messages", [])[:-1])

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the complete answer."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if answer.call else answer.text,
            "refusal": None,
        }
        if answer.call:
            function = {"name": answer.call.name, "arguments": answer.text}
            message["tool_calls"] = [
                {"id": f"call_{answer.number}", "type": "function", "function": function}
            ]
        choice = {
            "index": 0,
            "finish_reason": self._reason(answer),
            "logprobs": None,
            "message": message,
        }
        return {
            **self._head(answer, "chat.completion"),
            "choices": [choice],
            "usage": self._usage(answer),
        }

    def stream(self, answer: Answer) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the answer as events without a name."""
        head = self._head(answer, "chat.completion.chunk")
        for place, part in enumerate(answer.parts):
            delta: dict[str, Any] = {"content": part}
            if answer.call:
                function = {"arguments": part, **({"name": answer.call.name} if place == 0 else {})}
                call = {
                    "index": 0,
                    "type": "function",
                    "id": f"call_{answer.number}",
                    "function": function,
                }
                delta = {"tool_calls": [call]}
            yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield (
            "",
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self._reason(answer)}]},
        )
        yield "", {**head, "choices": [], "usage": self._usage(answer)}
        yield "", {}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Return the body of an error response."""
        kind = _NAMES.get(status, "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}

    @staticmethod
    def _reason(answer: Answer) -> str:
        if answer.is_cut:
            return "length"
        return "tool_calls" if answer.call and not answer.call.is_forced else "stop"

    @staticmethod
    def _head(answer: Answer, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{answer.number:04}",
            "object": kind,
            "created": 1_760_000_000,
            "model": answer.model,
        }

    @staticmethod
    def _usage(answer: Answer) -> dict[str, Any]:
        total = answer.new + answer.cached + answer.written
        return {
            "prompt_tokens": total,
            "completion_tokens": answer.output,
            "total_tokens": total + answer.output,
            "prompt_tokens_details": {"cached_tokens": answer.cached},
        }


class Responses:
    """``POST /v1/responses``."""

    path = "/v1/responses"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """Return the cacheable part of a request: all but its last message."""
        items = body.get("input")
        return json.dumps(
            [body.get("instructions"), items[:-1] if isinstance(items, list) else None]
        )

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the complete answer."""
        total = answer.new + answer.cached + answer.written
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        item: dict[str, Any] = {
            "type": "message",
            "id": f"msg_{answer.number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        if answer.call:
            space = {"namespace": answer.call.namespace} if answer.call.namespace else {}
            item = {
                "type": "function_call",
                "id": f"fc_{answer.number}",
                "call_id": f"call_{answer.number}",
                **space,
                "name": answer.call.name,
                "arguments": answer.text,
                "status": "completed",
            }
        return {
            "id": f"resp_{answer.number:04}",
            "object": "response",
            "created_at": 1_760_000_000,
            "model": answer.model,
            "status": "incomplete" if answer.is_cut else "completed",
            "error": None,
            "output": [item],
            "incomplete_details": {"reason": "max_output_tokens"} if answer.is_cut else None,
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": total,
                "input_tokens_details": {"cached_tokens": answer.cached},
                "output_tokens": answer.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": total + answer.output,
            },
        }

    def stream(self, answer: Answer) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the answer as events: name and data."""
        whole = self.whole(answer)
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
        events += [{"type": name, **place, "delta": part} for part in answer.parts]
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        ended = "response.incomplete" if answer.is_cut else "response.completed"
        events.append({"type": ended, "response": whole})
        for number, event in enumerate(events):
            yield event["type"], {**event, "sequence_number": number}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Return the body of an error response."""
        return Chat().error(status, message, code)


class Ollama:
    """``POST /api/chat``; its streams are lines of JSON."""

    path = "/api/chat"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """Return nothing: Ollama does not report cached tokens."""
        return ""

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the complete answer."""
        return {
            "model": answer.model,
            "created_at": "2026-01-01T00:00:00Z",
            "done": True,
            "done_reason": "length" if answer.is_cut else "stop",
            "message": {"role": "assistant", "content": answer.text},
            "prompt_eval_count": answer.new,
            "eval_count": answer.output,
        }

    def stream(self, answer: Answer) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the answer as lines."""
        for part in answer.parts:
            yield (
                "",
                {
                    "model": answer.model,
                    "message": {"role": "assistant", "content": part},
                    "done": False,
                },
            )
        yield "", {**self.whole(answer), "message": {"role": "assistant", "content": ""}}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Return the body of an error response."""
        return {"error": message}


class Gemini:
    """``POST /v1beta/models/<model>:generateContent``, and ``:streamGenerateContent``, whose events have no name."""

    path = ":generateContent"

    def prefix(self, body: Mapping[str, Any]) -> str:
        """Return the cacheable part of a request: all but its last message."""
        return json.dumps([body.get("systemInstruction"), body.get("contents", [])[:-1]])

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the complete answer."""
        part: dict[str, Any] = {"text": answer.text}
        if answer.call:
            part = {"functionCall": {"name": answer.call.name, "args": json.loads(answer.text)}}
        return self._piece(answer, part, "MAX_TOKENS" if answer.is_cut else "STOP")

    def stream(self, answer: Answer) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the answer as events; a call is a single event."""
        if not answer.call:
            for part in answer.parts[:-1]:
                yield "", self._piece(answer, {"text": part}, None)
            answer = replace(answer, text=answer.parts[-1] if answer.parts else "")
        yield "", self.whole(answer)

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Return the body of an error response."""
        return {"error": {"code": status, "message": message, "status": code or "INTERNAL"}}

    @staticmethod
    def _piece(answer: Answer, part: dict[str, Any], reason: str | None) -> dict[str, Any]:
        total = answer.new + answer.cached + answer.written
        ended = {"finishReason": reason} if reason else {}
        return {
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, **ended}],
            "usageMetadata": {
                "promptTokenCount": total,
                "candidatesTokenCount": answer.output,
                "totalTokenCount": total + answer.output,
                "cachedContentTokenCount": answer.cached,
            },
            "modelVersion": answer.model,
        }


Wire = Anthropic | Chat | Responses | Ollama | Gemini
_WIRES: dict[str, Wire] = {
    wire.path: wire for wire in (Anthropic(), Chat(), Responses(), Ollama(), Gemini())
}


def wire_at(path: str) -> Wire | None:
    """Return the format of a path, if known."""
    action = path.rpartition(":")[2]
    return _WIRES.get(":generateContent" if action in _GEMINI_ACTIONS else path)


def is_streamed(path: str, body: Mapping[str, Any]) -> bool:
    """Return True if a request asks for a stream."""
    return bool(body.get("stream")) or path.endswith(":streamGenerateContent")


def forced(body: Mapping[str, Any]) -> str:
    """Return the tool that a request forces, if any."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return ""
    return str(choice.get("name") or (choice.get("function") or {}).get("name") or "")


def embeddings(body: Mapping[str, Any], dimensions: int) -> dict[str, Any]:
    """Answer ``POST /v1/embeddings``: equal texts have equal vectors, of length 1 with ``dimensions`` numbers."""
    value = body["input"]
    texts = [value] if isinstance(value, str) else value
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
    """Answer ``POST /v1beta/models/…:batchEmbedContents``, with vectors of another length than 1."""
    requests = []
    for request in body["requests"]:
        text = " ".join(part["text"] for part in request["content"]["parts"])
        size = int(request.get("outputDimensionality") or dimensions)
        requests.append({"values": [2 * number for number in vector_of(text, size)]})
    return {"embeddings": requests}


def vector_of(text: str, dimensions: int) -> list[float]:
    """Return a vector of length 1 made from a text's words: texts with common words are near each other."""
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


def _tool_use(answer: Answer, call: Call, arguments: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": f"toolu_{answer.number}",
        "name": call.name,
        "input": arguments,
    }
