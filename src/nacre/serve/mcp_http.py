"""MCP over streamable HTTP. Requests are independent, so that any replica can answer them."""

from __future__ import annotations

import asyncio
import base64
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from nacre.serve import mcp_protocol as mcp
from nacre.serve.mcp import Face
from nacre.serve.mcp_protocol import ProtocolError, Session
from nacre.serve.web import OtherKindError, TooLargeError, json_body

_MAX_PARALLEL = 8
_PING_SECONDS = 15.0
_REVISION, _METHOD, _NAME = "mcp-protocol-version", "mcp-method", "mcp-name"
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_HTTP_STATUS = {
    mcp.PARSE_ERROR: 400,
    mcp.INVALID_REQUEST: 400,
    mcp.INVALID_PARAMS: 400,
    mcp.HEADER_MISMATCH: 400,
    mcp.UNSUPPORTED_VERSION: 400,
    mcp.METHOD_NOT_FOUND: 404,
}
_STREAM_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}

Message = dict[str, Any]


def endpoint(make_face: Callable[[], Face]) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler of MCP requests. Its first request calls ``make_face`` to load the tools."""
    face, slots = cache(make_face), threading.BoundedSemaphore(_MAX_PARALLEL)

    async def answer(request: Request) -> Response:
        status = _rejection(request)
        if status:
            return Response(
                status_code=status, headers={"Allow": "POST"} if status == 405 else None
            )
        try:
            body = await json_body(request)
        except TooLargeError:
            return Response(status_code=413)
        except (OtherKindError, ClientDisconnect):
            return Response(status_code=400)
        return await _respond(face(), slots, request, body)

    return answer


def _rejection(request: Request) -> int:
    if request.method != "POST":
        return 405
    accepted = request.headers.get("accept", "*/*").lower()
    if "*/*" not in accepted and not (
        "application/json" in accepted and "text/event-stream" in accepted
    ):
        return 406
    return 0


async def _respond(
    face: Face, slots: threading.BoundedSemaphore, request: Request, body: bytes
) -> Response:
    revision = request.headers.get(_REVISION)
    with_envelope = revision is not None and revision not in mcp.HANDSHAKES
    try:
        message = mcp.parse_message(body)
        if with_envelope and "method" in message and "id" in message:
            _check_headers(request, message)
    except ProtocolError as error:
        return _json_response(error.answer(), with_envelope=True)
    if "method" not in message or mcp.number_of(message) is None:
        return Response(status_code=202)
    answers: asyncio.Queue[Message] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def send(answer: Message) -> None:
        try:
            loop.call_soon_threadsafe(answers.put_nowait, answer)
        except RuntimeError as error:  # the loop has ended
            raise BrokenPipeError from error

    Session(face, send, with_envelope=with_envelope, slots=slots).answer(message)
    first = await _next(answers)
    if first and "id" in first:
        return _json_response(first, with_envelope=with_envelope)
    return StreamingResponse(
        _events(first, answers), media_type="text/event-stream", headers=_STREAM_HEADERS
    )


def _check_headers(request: Request, message: Message) -> None:
    """Raise ProtocolError if headers contradict the message, because proxies use the headers for
    routing.
    """
    params = message.get("params") or {}
    meta = params.get("_meta")
    mcp.check_envelope(params, is_known=False)
    expected = {_REVISION: (meta or {}).get(mcp.VERSION), _METHOD: message["method"]}
    if message["method"] == "tools/call" and params.get("name") is not None:
        expected[_NAME] = params["name"]
    for header, value in expected.items():
        values = request.headers.getlist(header)
        if len(values) != 1 or _decoded(values[0]) != value:
            raise ProtocolError(mcp.HEADER_MISMATCH, f"{header} header does not match the request")


def _decoded(value: str) -> str | None:
    encoded = _ENCODED.fullmatch(value)
    try:
        return base64.b64decode(encoded[1], validate=True).decode() if encoded else value
    except ValueError:
        return None


def _json_response(answer: Message, *, with_envelope: bool) -> Response:
    status = _HTTP_STATUS.get(answer.get("error", {}).get("code", 0), 200) if with_envelope else 200
    return Response(mcp.encode_message(answer), status, media_type="application/json")


async def _next(answers: asyncio.Queue[Message]) -> Message | None:
    try:
        return await asyncio.wait_for(answers.get(), _PING_SECONDS)
    except TimeoutError:
        return None


async def _events(message: Message | None, answers: asyncio.Queue[Message]) -> AsyncIterator[bytes]:
    while True:
        yield (
            b"event: message\r\ndata: " + mcp.encode_message(message) + b"\r\n\r\n"
            if message
            else b": ping\r\n\r\n"
        )
        if message and "id" in message:
            return
        message = await _next(answers)
