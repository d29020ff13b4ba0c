"""One client: requests are answered as they come, and what takes long in threads of its own.

So a ping is answered while a tool is at work, and whoever cancels does not wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from nacre.errors import InvalidInput, ModelUnavailable
from nacre.mcp import pages
from nacre.mcp import protocol as mcp
from nacre.mcp.answers import refusal
from nacre.mcp.face import Face, kept
from nacre.mcp.protocol import ProtocolError
from nacre.mcp.sampling import Asker, sampled

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
        self, face: Face, send: Send, *, with_envelope: bool | None = None,
        slots: threading.BoundedSemaphore | None = None,
    ) -> None:  # fmt: skip
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
            message = mcp.parsed(line)
        except ProtocolError as error:
            self._send(error.answer(error.number if isinstance(error, mcp.WrongMessageError) else None))
            return
        self.answer(message)

    def answer(self, message: dict[str, Any]) -> None:
        """Take a message. Raises OSError where nobody reads any more."""
        number = mcp.number_of(message)
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

    def _understood(self, method: str, params: dict[str, Any]) -> mcp.Asked:
        """What is asked, in the form that the client began with. Raises ProtocolError."""
        is_greeting, has_envelope = method == "initialize", mcp.has_envelope(params)
        if self._with_envelope is None:
            self._with_envelope = has_envelope and not is_greeting
        if self._with_envelope:
            if is_greeting:
                raise mcp.refused_handshake(params)
            mcp.check_envelope(params)
        elif has_envelope and not is_greeting:
            message = "this connection serves the handshake protocol era; "
            message += f"requests carrying the {mcp.ENVELOPES[-1]} envelope are not accepted on it"
            raise ProtocolError(mcp.INVALID_REQUEST, message)
        asked = mcp.asked_of(method, params, with_envelope=self._with_envelope)
        if not self._with_envelope and self._client is None and method not in ("initialize", "ping"):
            raise mcp.invalid_params()
        return asked

    def _at_once(self, method: str, asked: mcp.Asked) -> Result | None:
        """The result of what takes no time; ``None`` is for a thread."""
        if isinstance(asked, mcp.Greeting):
            self._client = self._client if self._client == {} else asked.capabilities
            return mcp.greeted(asked)
        if isinstance(asked, mcp.PromptAsked):
            return _prompt(asked)
        if isinstance(asked, mcp.CallAsked | mcp.ReadAsked):
            return None
        return {
            "ping": {}, "server/discover": mcp.discovered(), "tools/list": {"tools": self._face.tools},
            "resources/list": {"resources": pages.RESOURCES}, "prompts/list": {"prompts": pages.PROMPTS},
            "resources/templates/list": {"resourceTemplates": pages.TEMPLATES},
        }[method]  # fmt: skip

    def _start(self, work: _Work, asked: mcp.Asked) -> None:
        job = self._read(work, asked) if isinstance(asked, mcp.ReadAsked) else self._call(work, asked)
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
            raise ProtocolError(mcp.INVALID_PARAMS, f"there is no tool {asked.name[:80]!r}; there are {names}")
        desk = self._face.desk(work.tell, sampled(self._face.call, self._asker()))
        return partial(self._face.answer, offer, asked.arguments or {}, desk)

    def _read(self, work: _Work, asked: mcp.ReadAsked) -> Callable[[], Result]:
        def read() -> Result:
            text = kept(partial(pages.read, self._face.desk(work.tell), asked.uri))
            if isinstance(text, dict):
                raise ProtocolError(mcp.RESOURCE_NOT_FOUND, text["error"]["message"], {"uri": asked.uri, **text})
            return {"contents": [{"uri": asked.uri, "mimeType": pages.MIME, "text": text}]}

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
        shaped = mcp.enveloped(method, result) if self._with_envelope else result
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
            self._send({"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage", "params": params})
            answer = answers.get(timeout=_LONGEST_ANSWER_SECONDS).get("result")
        except (Empty, OSError):
            answer = None
        finally:
            del self._asked[number]
        content = answer.get("content") if isinstance(answer, dict) else None
        if not isinstance(answer, dict) or not isinstance(content, dict):
            raise ModelUnavailable("the client gives no answer of its model", hint="allow sampling there", retry=False)
        return str(content.get("text", "")), str(answer.get("model", ""))


def _prompt(asked: mcp.PromptAsked) -> Result:
    try:
        description, text = pages.prompt_text(asked.name, asked.arguments or {})
    except InvalidInput as error:
        raise ProtocolError(mcp.INVALID_PARAMS, error.message, refusal(error)) from None
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": description, "messages": [message]}
