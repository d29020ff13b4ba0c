"""A provider of language models on loopback, for tests: real wire formats, scripted answers, all kinds of failures.

It implements Anthropic's messages, OpenAI's chat completions, responses and embeddings (also under Voyage's names),
Gemini's contents and embeddings and Ollama's chat, with streaming on request and tool calls. It also serves real
agents, with the rules of :mod:`tests.fakes.conversation`. ::

    with FakeProvider([{"word": "hull"}, Reply(status=429, headers={"retry-after": "2"})]) as provider:
        config.write_text(provider.config())   # models.default = "fake:m"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any

import msgspec

from tests.fakes.wire_formats import Answer as WireAnswer
from tests.fakes.wire_formats import (
    Call,
    Chat,
    Ollama,
    Wire,
    embeddings,
    forced,
    gemini_embeddings,
    is_streamed,
    wire_at,
)

FAULTS = ("html", "garbage", "truncated", "half-stream", "hang", "drip", "drop")
_HTML = b"<!doctype html><html><body><h1>Please sign in to this network</h1></body></html>"
_DRIP_SECONDS = 0.02
_MODELS = ("/v1/models", "/models", "/api/tags")


@dataclass(frozen=True, slots=True)
class Request:
    """A received request. Header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Return the caller's credentials."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix(
            "Bearer "
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to one request.

    ``answer`` is an object, returned as JSON, or text, returned unchanged, or a :class:`Call` of a tool. ``tokens`` is
    the reported size of the question; 0 counts its characters. A ``status`` other than 200 is sent with ``message`` and
    ``code`` in the format's error shape. ``fault`` is one of ``FAULTS``: a page of HTML with 200, bytes that are not
    JSON, half an answer with 200, a stream that breaks off, an endless silence, an answer sent byte by byte, a closed
    connection.
    """

    answer: Any = ""
    status: int = 200
    message: str = "it went wrong"
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""
    is_cut: bool = False
    tokens: int = 0


Answer = Reply | Call | msgspec.Struct | dict[str, Any] | str | Callable[[Request], Any]


class FakeProvider:
    """A server on loopback within a ``with`` block; safe to use from many threads.

    ``answers`` are used in order, or computed by a function of the :class:`Request`. After the last answer the server
    returns status 500, unless it ``repeats``. Embeddings need no answers; the first requests for them fail by
    ``embedding_faults``, or return the object in a fault's answer. ``requests`` are the received requests; ``models``
    are the listed names.
    """

    def __init__(
        self,
        answers: Iterable[Answer] | Callable[[Request], Any] = (),
        *,
        repeats: bool = False,
        models: tuple[str, ...] = ("m",),
        dimensions: int = 64,
        embedding_faults: Iterable[Reply] = (),
    ) -> None:
        self.models = models
        self.dimensions = dimensions
        self.requests: list[Request] = []
        self._answers: list[Any] = [answers] if callable(answers) else list(answers)
        self._repeats = repeats or callable(answers)
        self.embedding_faults = list(embedding_faults)
        self._taken = 0
        self._prefixes: set[str] = set()
        self._lock = Lock()
        self._closing = Event()
        self._server: ThreadingHTTPServer | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """Return its address: ``http://127.0.0.1:<port>``, without a path."""
        assert self._server is not None, "the server runs only within `with`"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def calls(self) -> list[Request]:
        """Return the requests for a model's answer."""
        return [request for request in self.requests if wire_at(request.path)]

    def config(self, api: str = "chat", *, model: str = "m", more: str = "") -> str:
        """Return a ``config.toml`` that uses this model for every task, with the format ``api``."""
        base = self.url if api == "anthropic" else f"{self.url}/v1"
        return f'[models]\ndefault = "fake:{model}"\n{more}\n[models.providers.fake]\napi = "{api}"\nbase_url = "{base}"\n'  # noqa: E501

    def __enter__(self) -> FakeProvider:
        provider = self

        class Handler(_Handler):
            owner = provider

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def note(self, request: Request) -> None:
        """Record a request."""
        with self._lock:
            self.requests.append(request)

    def reply_to(self, request: Request) -> Reply:
        """Return the reply to a request."""
        with self._lock:
            number = self._taken
            self._taken += 1
        if number >= len(self._answers) and not (self._repeats and self._answers):
            return Reply(status=500, message="the fake provider has no more answers")
        answer = self._answers[min(number, len(self._answers) - 1)]
        if callable(answer) and not isinstance(answer, type):
            answer = answer(request)
        return answer if isinstance(answer, Reply) else Reply(answer)

    def embedding_fault(self) -> Reply | None:
        """Return the failure of the next request for embeddings, if any."""
        with self._lock:
            return self.embedding_faults.pop(0) if self.embedding_faults else None

    def answer_for(self, reply: Reply, request: Request, wire: Wire) -> WireAnswer:
        """Return an answer with its tokens (four characters each). A prefix seen in an earlier request counts as
        cached."""
        size_of_request = len(json.dumps(request.body)) // 4
        prefix = wire.prefix(request.body)
        size = len(prefix) // 4
        with self._lock:
            number = self._taken
            is_cached = bool(prefix) and prefix in self._prefixes
            self._prefixes.add(prefix)
        marked = wire.path == "/v1/messages"
        cached, written = (size, 0) if is_cached else (0, size if marked else 0)
        new = max(1, size_of_request - cached - written)
        if reply.tokens:
            new, cached, written = reply.tokens, 0, 0
        model = str(request.body.get("model", ""))
        call = _call(reply, request)
        text = call.arguments if call else _text(reply.answer)
        return WireAnswer(text, model, number, new, cached, written, reply.is_cut, call)

    def wait_for_end(self, seconds: float | None = None) -> bool:
        """Wait for the server to close, or for a timeout; return True if it closes."""
        return self._closing.wait(seconds)


def _call(reply: Reply, request: Request) -> Call | None:
    """Return the called tool: the one named by the reply, or the only one that the request allows."""
    if isinstance(reply.answer, Call):
        return reply.answer
    tool = forced(request.body)
    return Call(tool, _text(reply.answer), is_forced=True) if tool else None


def _text(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    return msgspec.json.encode(answer).decode()


class _Handler(BaseHTTPRequestHandler):
    owner: FakeProvider
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._send(200, b"", {})

    def do_GET(self) -> None:
        self.owner.note(Request("GET", self.path, self._headers(), {}))
        if self.path.rstrip("/") in _MODELS:
            names = self.owner.models
            data = [{"id": name, "object": "model"} for name in names]
            self._json(
                200, {"object": "list", "data": data, "models": [{"name": name} for name in names]}
            )
        else:
            self._json(200 if self.path == "/" else 404, {})

    def do_POST(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._post()

    def _post(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        request = Request("POST", path, self._headers(), json.loads(raw or b"{}"))
        self.owner.note(request)
        wire = wire_at(path)
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": max(1, len(raw) // 4)})
            return
        if path.endswith(("/embeddings", ":batchEmbedContents")):
            fault = self.owner.embedding_fault()
            if fault is None or isinstance(fault.answer, dict):
                embed = gemini_embeddings if path.endswith(":batchEmbedContents") else embeddings
                self._json(
                    200, fault.answer if fault else embed(request.body, self.owner.dimensions)
                )
                return
            wire, reply = Chat(), fault
        elif wire is None:
            self._json(
                404, {"error": {"message": f"nothing is at {path}", "type": "not_found_error"}}
            )
            return
        else:
            reply = self.owner.reply_to(request)
        self._answer(wire, reply, request)

    def _answer(self, wire: Wire, reply: Reply, request: Request) -> None:
        if reply.fault in ("hang", "drop"):
            if reply.fault == "hang":
                self.owner.wait_for_end()
            self.close_connection = True
        elif reply.fault == "drip":
            self._drip()
        elif reply.fault == "html":
            self._send(200, _HTML, {"content-type": "text/html"})
        elif reply.status != 200:
            self._json(
                reply.status, wire.error(reply.status, reply.message, reply.code), reply.headers
            )
        elif reply.fault == "garbage":
            self._send(200, b"\x00\xff{]", {"content-type": "application/json"})
        elif is_streamed(request.path, request.body):
            self._stream(wire, self.owner.answer_for(reply, request, wire), reply)
        else:
            body = json.dumps(wire.whole(self.owner.answer_for(reply, request, wire))).encode()
            half = body[: len(body) // 2] if reply.fault in ("truncated", "half-stream") else body
            self._send(200, half, {"content-type": "application/json", **reply.headers})

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "1000000")
        self.end_headers()
        self.close_connection = True
        while not self.owner.wait_for_end(_DRIP_SECONDS):
            self.wfile.write(b" ")
            self.wfile.flush()

    def _stream(self, wire: Wire, answer: WireAnswer, reply: Reply) -> None:
        kind = "application/x-ndjson" if isinstance(wire, Ollama) else "text/event-stream"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        events = list(wire.stream(answer))
        if reply.fault in ("truncated", "half-stream"):
            events = events[: len(events) // 2]
        for name, data in events:
            self.wfile.write(_event(kind, name, data))
            self.wfile.flush()

    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send(
            status,
            json.dumps(value).encode(),
            {"content-type": "application/json", **(headers or {})},
        )

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status, None if status in self.responses else "Overloaded")
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


def _event(kind: str, name: str, data: Mapping[str, Any]) -> bytes:
    text = json.dumps(data)
    if kind == "application/x-ndjson":
        return f"{text}\n".encode()
    if not data:
        return b"data: [DONE]\n\n"
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()
