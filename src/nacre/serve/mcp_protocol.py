"""The Model Context Protocol as a server with tools, resources and prompts speaks it: what is asked, and in which form.

Revisions up to 2025-11-25 begin with a handshake; since 2026-07-28 each request brings what a handshake said. Tests
hold all of it against the official SDK.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from nacre import __version__
from nacre.base import json as json_values
from nacre.errors import InvalidInput, ModelUnavailable
from nacre.home import home
from nacre.llm import api
from nacre.serve import mcp_pages
from nacre.serve.mcp import INSTRUCTIONS, Call, Face, HomeCalls, kept, load_operations, refusal

if TYPE_CHECKING:
    from nacre.protocols import LanguageModel
    from nacre.settings import Settings

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions with a handshake, the latest last."""

ENVELOPES = ("2026-07-28",)
"""The revisions without one."""

ABOUT: Mapping[str, Any] = {
    "name": "nacre",
    "title": "nacre, long-term memory",
    "version": __version__,
}
CAPABILITIES: Mapping[str, Any] = {
    "prompts": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
RESOURCE_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION = -32002, -32020, -32022

VERSION = "io.modelcontextprotocol/protocolVersion"
_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_CACHED = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "server/discover",
)


class ProtocolError(Exception):
    """What a request is answered that cannot be done."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def answer(self, number: int | str | None) -> dict[str, Any]:
        """The message that says so."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": number, "error": error}


class _Meta(msgspec.Struct, frozen=True):
    progress_token: int | str | None = msgspec.field(name="progressToken", default=None)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a request."""

    meta: _Meta | None = msgspec.field(name="_meta", default=None)

    @property
    def token(self) -> int | str | None:
        """With what the client wants to be told how far it is."""
        return self.meta.progress_token if self.meta else None


class ListAsked(Asked, frozen=True, kw_only=True):
    """Of a list; all of it is one page."""

    cursor: str | None = None


class CallAsked(Asked, frozen=True, kw_only=True):
    """Of a tool's call."""

    name: str
    arguments: dict[str, Any] | None = None


class ReadAsked(Asked, frozen=True, kw_only=True):
    """Of a resource."""

    uri: str


class PromptAsked(Asked, frozen=True, kw_only=True):
    """Of a prompt."""

    name: str
    arguments: dict[str, str] | None = None


class _Client(msgspec.Struct, frozen=True):
    name: str
    version: str


class Greeting(Asked, frozen=True, kw_only=True):
    """Of a handshake."""

    revision: str = msgspec.field(name="protocolVersion")
    capabilities: dict[str, Any]
    client: _Client = msgspec.field(name="clientInfo")


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    capabilities: dict[str, Any] = msgspec.field(name=_CLIENT_CAPABILITIES)
    client: _Client | None = msgspec.field(name=_CLIENT_INFO, default=None)


_SHARED: dict[str, type[Asked]] = {
    "tools/list": ListAsked,
    "tools/call": CallAsked,
    "resources/list": ListAsked,
    "resources/read": ReadAsked,
    "resources/templates/list": ListAsked,
    "prompts/list": ListAsked,
    "prompts/get": PromptAsked,
}
WITH_HANDSHAKE: Mapping[str, type[Asked]] = {**_SHARED, "initialize": Greeting, "ping": Asked}
WITH_ENVELOPE: Mapping[str, type[Asked]] = {**_SHARED, "server/discover": Asked}


def parsed(line: bytes) -> dict[str, Any]:
    """A message of JSON-RPC. Raises ProtocolError. Halves of characters become question marks."""
    try:
        told = json.loads(line)
        if b"\\ud" in line.lower():
            told = json.loads(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "this is no JSON") from None
    if not _is_message(told):
        raise WrongMessageError(number_of(told), "this is no message of JSON-RPC 2.0")
    if told.get("id") is not None and number_of(told) is None:
        raise WrongMessageError(None, "an id is a text or a whole number")
    return dict(told)


class WrongMessageError(ProtocolError):
    """JSON that is no message; ``number`` is the one it gives."""

    def __init__(self, number: int | str | None, message: str) -> None:
        super().__init__(INVALID_REQUEST, message)
        self.number = number


def number_of(told: Any) -> int | str | None:
    """The number of a request or an answer."""
    number = told.get("id") if isinstance(told, dict) else None
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _is_message(told: Any) -> bool:
    if not isinstance(told, dict) or told.get("jsonrpc") != "2.0":
        return False
    if "method" in told:
        return isinstance(told["method"], str) and isinstance(told.get("params"), dict | None)
    return "id" in told and ("result" in told or "error" in told)


def has_envelope_protocol(params: Mapping[str, Any]) -> bool:
    """Whether a request is one of the revisions without a handshake."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION in meta


def check_envelope(params: Mapping[str, Any], *, is_known: bool = True) -> None:
    """Raise ProtocolError where a request lacks what each has to bring, or is of an unknown revision.

    With ``is_known`` false the revision may be any.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        keys = f"{VERSION!r} and {_CLIENT_CAPABILITIES!r}"
        raise ProtocolError(
            INVALID_PARAMS,
            f"params._meta must be an object carrying the required {keys} envelope keys",
        )
    missing = [key for key in (VERSION, _CLIENT_CAPABILITIES) if key not in meta]
    if missing:
        raise ProtocolError(
            INVALID_PARAMS,
            f"params._meta is missing the required envelope key(s): {', '.join(missing)}",
        )
    revision = meta[VERSION]
    if not is_known:
        return
    if not isinstance(revision, str):
        raise ProtocolError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if revision not in ENVELOPES:
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", _served(revision))


def refused_handshake(params: Mapping[str, Any]) -> ProtocolError:
    """What a handshake is answered where the client began without one."""
    message = f"connection is serving the {ENVELOPES[-1]} protocol; the initialize handshake is not accepted"
    return ProtocolError(UNSUPPORTED_VERSION, message, _served(params.get("protocolVersion")))


def _served(revision: Any) -> dict[str, Any]:
    return {
        "supported": list(ENVELOPES),
        **({"requested": revision} if isinstance(revision, str) else {}),
    }


def asked_of(method: str, params: Mapping[str, Any], *, with_envelope: bool) -> Asked:
    """The parameters of a request. Raises ProtocolError, also for a method that is not served."""
    known = WITH_ENVELOPE if with_envelope else WITH_HANDSHAKE
    if method not in known:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", method)
    try:
        if with_envelope:
            json_values.convert(params["_meta"], _Envelope)
        return json_values.convert(params, known[method])
    except msgspec.ValidationError:
        raise invalid_params() from None


def invalid_params() -> ProtocolError:
    """What a request is answered whose parameters make no sense, or that comes before the handshake."""
    return ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")


def greeted(asked: Greeting) -> dict[str, Any]:
    """The server's side of a handshake."""
    revision = asked.revision if asked.revision in HANDSHAKES else HANDSHAKES[-1]
    return {
        "protocolVersion": revision,
        "capabilities": CAPABILITIES,
        "serverInfo": ABOUT,
        "instructions": INSTRUCTIONS,
    }


def discovered() -> dict[str, Any]:
    """What a client without a handshake may ask first."""
    return {
        "supportedVersions": list(ENVELOPES),
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
    }


def enveloped(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result as the revisions without a handshake have it."""
    cache = {"cacheScope": "private", "ttlMs": 0} if method in _CACHED else {}
    return {**result, **cache, "resultType": "complete", "_meta": {_SERVER_INFO: ABOUT}}


# ----------------------------------------------------------------------------
# The client's own model, for the operations that may ask one: where the settings name it and the
# client offers it.


PROVIDER = "mcp-sampling"
_ASKING = frozenset({"deep-recall", "extract"})

Asker = Callable[[str, str, int], tuple[str, str]]
"""Asks the client: system, text, most tokens; gives the answer and the model's name. From any thread but the loop's."""


def sampled(call: Call, asker: Asker | None) -> Call:
    """The same calls, of which those that may ask a model ask the client's, if it offers one and it is the one set.

    They run in this process then: the daemon has no client to ask.
    """
    if asker is None or not isinstance(call, HomeCalls):
        return call

    def asking(operation: str, request: Any) -> Any:
        if operation not in _ASKING or not call.is_set_to(PROVIDER):
            return call(operation, request)
        return call(operation, request, load_model=_loader(asker))

    return asking


def _loader(asker: Asker) -> Callable[[Settings, str], LanguageModel]:
    def load(settings: Settings, name: str) -> LanguageModel:
        return (
            api.SamplingModel(asker)
            if name.partition(":")[0] == PROVIDER
            else home.load_configured_model(settings, name)
        )

    return load


# ----------------------------------------------------------------------------
# One client: requests are answered as they come, and what takes long in threads of its own.
#
# So a ping is answered while a tool is at work, and whoever cancels does not wait.


PATIENCE_SECONDS = 5.0
"""At the end of input, so long what was asked before is still answered."""

_TICK_SECONDS = 1.0
_AT_ONCE = 8
_LONGEST_ANSWER_SECONDS = 600.0

Send = Callable[[dict[str, Any]], None]
Result = dict[str, Any]


@dataclass(eq=False)
class _Work:
    """A request that a thread works at."""

    number: int | str
    method: str
    words: str = ""
    is_over: threading.Event = field(default_factory=threading.Event)

    def tell(self, words: str) -> None:
        """Say how far it is."""
        self.words = words


class Session:
    """Answers one client. ``send`` writes a message; it raises OSError where nobody reads any more.

    Of a client whose requests stand by themselves it is told whether they have an envelope; no handshake comes before
    them then. ``slots`` bound how much is done at once.
    """

    def __init__(
        self,
        face: Face,
        send: Send,
        *,
        with_envelope: bool | None = None,
        slots: threading.BoundedSemaphore | None = None,
    ) -> None:
        self._face = face
        self._send = send
        self._with_envelope = with_envelope
        self._client: Mapping[str, Any] | None = None if with_envelope is None else {}
        self._open: dict[int | str, _Work] = {}
        self._changed = threading.Condition()
        self._slots = slots or threading.BoundedSemaphore(_AT_ONCE)
        self._numbers = count(1)
        self._asked: dict[int | str | None, SimpleQueue[dict[str, Any]]] = {}

    def take(self, line: bytes) -> None:
        """Take a line that came in. Raises OSError where nobody reads any more."""
        try:
            message = parsed(line)
        except ProtocolError as error:
            self._send(error.answer(error.number if isinstance(error, WrongMessageError) else None))
            return
        self.answer(message)

    def answer(self, message: dict[str, Any]) -> None:
        """Take a message. Raises OSError where nobody reads any more."""
        number = number_of(message)
        if "method" not in message:
            if number in self._asked:
                self._asked[number].put(message)
        elif number is None:
            self._notice(message)
        else:
            self._request(number, message["method"], message.get("params") or {})

    def finish(self) -> None:
        """Wait a little until what was asked is answered."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open, PATIENCE_SECONDS)

    def _notice(self, message: dict[str, Any]) -> None:
        if message["method"] == "notifications/cancelled":
            number = (message.get("params") or {}).get("requestId")
            if isinstance(number, int | str):
                self._close(number)

    def _request(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        try:
            asked = self._understood(method, params)
            result = self._at_once(method, asked)
            if result is None:
                self._start(_Work(number, method), asked)
            else:
                self._send(self._result(number, method, result))
        except ProtocolError as error:
            self._send(error.answer(number))

    def _understood(self, method: str, params: dict[str, Any]) -> Asked:
        """What is asked, in the form that the client began with. Raises ProtocolError."""
        is_greeting, has_envelope = method == "initialize", has_envelope_protocol(params)
        if self._with_envelope is None:
            self._with_envelope = has_envelope and not is_greeting
        if self._with_envelope:
            if is_greeting:
                raise refused_handshake(params)
            check_envelope(params)
        elif has_envelope and not is_greeting:
            message = "this connection serves the handshake protocol era; "
            message += f"requests carrying the {ENVELOPES[-1]} envelope are not accepted on it"
            raise ProtocolError(INVALID_REQUEST, message)
        asked = asked_of(method, params, with_envelope=self._with_envelope)
        if (
            not self._with_envelope
            and self._client is None
            and method not in ("initialize", "ping")
        ):
            raise invalid_params()
        return asked

    def _at_once(self, method: str, asked: Asked) -> Result | None:
        """The result of what takes no time; ``None`` is for a thread."""
        if isinstance(asked, Greeting):
            self._client = self._client if self._client == {} else asked.capabilities
            return greeted(asked)
        if isinstance(asked, PromptAsked):
            return _prompt(asked)
        if isinstance(asked, CallAsked | ReadAsked):
            return None
        return {
            "ping": {},
            "server/discover": discovered(),
            "tools/list": {"tools": self._face.tools},
            "resources/list": {"resources": mcp_pages.RESOURCES},
            "prompts/list": {"prompts": mcp_pages.PROMPTS},
            "resources/templates/list": {"resourceTemplates": mcp_pages.TEMPLATES},
        }[method]

    def _start(self, work: _Work, asked: Asked) -> None:
        job = self._read(work, asked) if isinstance(asked, ReadAsked) else self._call(work, asked)
        with self._changed:
            self._open[work.number] = work
        self._spawn(self._run, work, job)
        if asked.token is not None:
            self._spawn(self._report, work, asked.token)

    def _spawn(self, run: Callable[..., None], work: _Work, more: Any) -> None:
        target = partial(copy_context().run, run, work, more)  # the context says for whom it is
        threading.Thread(target=target, daemon=True, name=f"nacre-mcp-{work.number}").start()

    def _call(self, work: _Work, asked: Any) -> Callable[[], Result]:
        offer = self._face.named.get(asked.name)
        if offer is None:
            names = ", ".join(self._face.named)
            raise ProtocolError(
                INVALID_PARAMS, f"there is no tool {asked.name[:80]!r}; there are {names}"
            )
        desk = self._face.desk(work.tell, sampled(self._face.call, self._asker()))
        return partial(self._face.answer, offer, asked.arguments or {}, desk)

    def _read(self, work: _Work, asked: ReadAsked) -> Callable[[], Result]:
        def read() -> Result:
            text = kept(partial(mcp_pages.read, self._face.desk(work.tell), asked.uri))
            if isinstance(text, dict):
                raise ProtocolError(
                    RESOURCE_NOT_FOUND, text["error"]["message"], {"uri": asked.uri, **text}
                )
            return {"contents": [{"uri": asked.uri, "mimeType": mcp_pages.MIME, "text": text}]}

        return read

    def _run(self, work: _Work, job: Callable[[], Result]) -> None:
        with self._slots:
            try:
                message = self._result(work.number, work.method, job())
            except ProtocolError as error:
                message = error.answer(work.number)
        self._close(work.number, message)

    def _close(self, number: int | str, message: dict[str, Any] | None = None) -> None:
        """End a request that is still open: with its answer, or cancelled, with none."""
        with self._changed:
            work = self._open.get(number)
        if work is None:
            return
        work.is_over.set()
        try:
            if message is not None:
                self._send(message)
        except OSError:
            pass  # whoever reads the next line ends the connection
        finally:
            with self._changed:
                self._open.pop(number, None)
                self._changed.notify_all()

    def _report(self, work: _Work, token: int | str) -> None:
        """Once a second, tell a client that wants to know that work goes on."""
        passed = 0.0
        while not work.is_over.wait(_TICK_SECONDS):
            passed += _TICK_SECONDS
            told = {"progressToken": token, "progress": passed, "message": work.words or "working"}
            try:
                self._send({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
            except OSError:
                return

    def _result(self, number: int | str, method: str, result: Result) -> dict[str, Any]:
        shaped = enveloped(method, result) if self._with_envelope else result
        return {"jsonrpc": "2.0", "id": number, "result": shaped}

    def _asker(self) -> Asker | None:
        """A way to the client's own model, where it offers one: only where there was a handshake."""
        return self._ask if self._client and self._client.get("sampling") is not None else None

    def _ask(self, system: str, text: str, most_tokens: int) -> tuple[str, str]:
        number = f"nacre-{next(self._numbers)}"
        answers = self._asked[number] = SimpleQueue()
        said = {"role": "user", "content": {"type": "text", "text": text}}
        params = {"messages": [said], "systemPrompt": system, "maxTokens": most_tokens}
        try:
            self._send(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "sampling/createMessage",
                    "params": params,
                }
            )
            answer = answers.get(timeout=_LONGEST_ANSWER_SECONDS).get("result")
        except (Empty, OSError):
            answer = None
        finally:
            del self._asked[number]
        content = answer.get("content") if isinstance(answer, dict) else None
        if not isinstance(answer, dict) or not isinstance(content, dict):
            raise ModelUnavailable(
                "the client gives no answer of its model", hint="allow sampling there", retry=False
            )
        return str(content.get("text", "")), str(answer.get("model", ""))


def _prompt(asked: PromptAsked) -> Result:
    try:
        description, text = mcp_pages.prompt_text(asked.name, asked.arguments or {})
    except InvalidInput as error:
        raise ProtocolError(INVALID_PARAMS, error.message, refusal(error)) from None
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": description, "messages": [message]}


# ----------------------------------------------------------------------------
# A connection over standard input and output.
#
# Nothing but JSON-RPC reaches standard output: its descriptor is put aside, and whatever prints, in
# this process or in
# one that it starts, prints to standard error. The end of standard input ends the server.


LONGEST_LINE = 16_000_000
"""Bytes; what is longer is refused as no JSON."""


@dataclass
class Wire:
    """The two ends of a connection: lines that come in, and where answers go. Lines of answers never mix."""

    incoming: BinaryIO
    outgoing: BinaryIO
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def taken(cls) -> Wire:
        """Standard input and output, put aside: from now on nothing else reads or writes them."""
        incoming, outgoing = os.dup(0), os.dup(1)
        os.set_inheritable(incoming, False)
        os.set_inheritable(outgoing, False)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        return cls(os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb", buffering=0))

    def lines(self) -> Iterator[bytes]:
        """What comes in, line by line; of a line that is too long nothing is kept but a sign of it."""
        while line := self.incoming.readline(LONGEST_LINE):
            if len(line) >= LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := self.incoming.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                line = b"!"
            if line.strip():
                yield line

    def send(self, message: dict[str, Any]) -> None:
        """Write one message. Raises BrokenPipeError where nobody reads any more."""
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        data = memoryview(text.encode("utf-8", "replace") + b"\n")
        with self._lock:
            while data:
                data = data[self.outgoing.write(data) :]


def serve(face: Face, wire: Wire) -> None:
    """Serve one client until it closes its end, or reads no more."""

    def load() -> None:
        try:
            load_operations(everything=face.everything)
        finally:
            gc.freeze()
            gc.enable()

    gc.disable()  # until all is loaded, which stays: looking through it again and again is a fifth of the work
    threading.Thread(target=load, daemon=True, name="nacre-mcp-load").start()
    session = Session(face, wire.send)
    with suppress(OSError):  # nobody reads any more
        for line in wire.lines():
            session.take(line)
    session.finish()
