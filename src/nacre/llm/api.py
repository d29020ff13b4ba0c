"""Connections to providers, and the errors that every maker's library raises in the same way."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import httpx2
import msgspec

from nacre.base import json as json_values
from nacre.errors import ModelRefused, ModelUnavailable, NacreError, PromptTooLong
from nacre.llm import failures
from nacre.llm.credentials import Provider
from nacre.llm.failures import Calls, CallTarget, CutOff
from nacre.values.models import Capabilities, Completion, Prompt, Tokens, most_written

S = TypeVar("S", bound=msgspec.Struct)

CONNECT_SECONDS = 10.0
MAKERS = ("api.anthropic.com", "api.openai.com")
_UNABLE = re.compile(
    r"response_format|json_schema|json_object|text\.format|output_config|output_format|tool_choice|structured output",
    re.I,
)
_GRACE_SECONDS = 1.0
"""So much longer than the library waits, that its own error, which says more, comes first."""

_RETRY_SECONDS = 5.0
_call = threading.local()


def load_library(name: str, asked: CallTarget) -> ModuleType:
    """A maker's library. Raises ModelRefused where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise failures.no_library(asked, name) from error


def http_client(asked: CallTarget, library: ModuleType) -> Any:
    """The connections a library uses. No proxy stands between nacre and this very machine, and no redirect is followed:
    a key in a header, and the prompt, would go along.
    """
    client = library.DefaultHttpxClient
    hooks = {"request": [_refuse_late], "response": [_forbid_late_retry]}
    return client(
        follow_redirects=False, event_hooks=hooks, **({"trust_env": False} if asked.is_here else {})
    )


def _refuse_late(request: Any) -> None:
    """Send nothing again once the time of a call is over: a library that tries again does not know of it."""
    if time.monotonic() >= getattr(_call, "end", math.inf):
        raise httpx2.ReadTimeout("the time of the call is over", request=request)


def _forbid_late_retry(response: Any) -> None:
    """Have a failure told instead of a timeout where the time that is left does not hold another try."""
    asked = response.headers.get("retry-after", "")
    wait = float(asked) if asked.isdigit() else 0.0
    if response.status_code >= 400 and time.monotonic() + wait + _RETRY_SECONDS >= getattr(
        _call, "end", math.inf
    ):
        response.headers["x-should-retry"] = "false"


def keep_to_maker(client: Any, asked: CallTarget, headers: Mapping[str, str]) -> None:
    """Send a maker's own headers to the maker alone.

    The libraries add what stands in ``ANTHROPIC_CUSTOM_HEADERS``, ``OPENAI_CUSTOM_HEADERS`` and ``OPENAI_ORG_ID`` to
    every call, to whichever server it goes, and have no option against it.
    """
    if asked.host in MAKERS:
        return
    client._custom_headers = dict(headers)
    if hasattr(client, "organization"):
        client.organization = client.project = None


def timeout_of(seconds: float) -> Any:
    """The times a library waits: for a connection, and for bytes."""

    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def call(
    calls: Calls, asked: CallTarget, library: ModuleType, seconds: float, work: Callable[[], Any]
) -> Any:
    """What ``work`` returns; whatever the library raises is said in nacre's words."""

    def in_time() -> Any:
        _call.end = time.monotonic() + seconds
        return work()

    try:
        return calls.run(in_time, seconds + _GRACE_SECONDS)
    except NacreError:
        raise
    except CutOff:
        raise failures.cut_off(asked) from None
    except library.APIStatusError as error:
        codes, said = _said(error.body)
        raise failures.refusal(
            asked, error.status_code, said, error.response.headers, codes
        ) from error
    except (TimeoutError, library.APITimeoutError, httpx2.TimeoutException) as error:
        raise _late(asked, seconds, error) from error
    except library.APIConnectionError as error:
        raise failures.unreachable(asked, error) from error
    except httpx2.TransportError as error:
        raise failures.broken(asked) from error
    except (
        library.APIError,
        json.JSONDecodeError,
        AssertionError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        raise failures.strange(asked) from error  # what a library makes of an answer that is none


def plain_client(asked: CallTarget) -> Any:
    """Connections without a maker's library, which takes half a second to load. Redirects are not followed: a key in a
    header would go along. Raises ModelRefused where httpx2 is missing, which comes with the libraries."""
    try:
        make = httpx2.Client
    except ImportError as error:
        raise failures.no_library(asked, "openai") from error
    return make(trust_env=not asked.is_here, headers={"user-agent": "nacre"})


def post(
    calls: Calls,
    asked: CallTarget,
    client: Any,
    url: str,
    body: Any,
    headers: Mapping[str, str],
    seconds: float,
) -> Any:
    """The response to a request in JSON, if it is a success; whatever goes wrong is said in nacre's words."""

    def work() -> Any:
        return client.post(url, json=body, headers=headers, timeout=timeout_of(seconds))

    try:
        response = calls.run(work, seconds + _GRACE_SECONDS)
    except CutOff:
        raise failures.cut_off(asked) from None
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise _late(asked, seconds, error) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, RuntimeError, ValueError) as error:
        raise failures.unreachable(asked, error) from error
    if response.status_code >= 300:
        codes, said = _said(_parsed(response.content))
        raise failures.refusal(asked, response.status_code, said, response.headers, codes)
    return response


def _late(asked: CallTarget, seconds: float, error: BaseException) -> ModelUnavailable:
    """The error for a wait that was too long: for an answer, or for a connection."""

    has_connected = not any(
        isinstance(one, httpx2.ConnectTimeout) for one in (error, error.__cause__)
    )
    return failures.late(asked, seconds) if has_connected else failures.unreachable(asked, error)


def _parsed(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return body.decode("utf-8", "replace")


def body_of(asked: CallTarget, response: Any, shape: type[S]) -> S:
    """The body of a success, as the provider writes it. Raises ModelUnavailable for anything else."""
    body: bytes = response.content
    try:
        return json_values.parse_json_values(body, shape)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        told = _parsed(body)
        if isinstance(told, Mapping) and told.get(
            "error"
        ):  # as some gateways tell it, with a success
            codes, said = _said(told)
            status = re.match(r"[45]\d\d\b", codes)
            raise failures.refusal(
                asked, int(status[0]) if status else 500, said, {}, codes
            ) from error
        raise failures.strange(asked, response.headers.get("content-type", ""), body) from error


def less(able: Capabilities, error: ModelRefused, steps: Mapping[str, str]) -> Capabilities:
    """What to ask with instead, where a provider says it cannot hold this model to a schema in that way.

    ``steps`` says what comes after each way. Raises the error where that was not the reason, or nothing is left.
    """
    if (
        able.answers not in steps
        or isinstance(error, PromptTooLong)
        or not _UNABLE.search(error.message)
    ):
        raise error
    return replace(able, answers=steps[able.answers])


def _said(body: Any) -> tuple[str, str]:
    """What a provider says of an error: its codes, and its message."""
    if isinstance(body, list) and body:  # as Gemini writes it
        body = body[0]
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, Mapping):
        codes = " ".join(str(inner[key]) for key in ("code", "type", "status") if inner.get(key))
        return codes, str(inner.get("message") or "")
    return "", "" if "<" in str(inner or "")[:200] else str(inner or "")


# ----------------------------------------------------------------------------
# JSON schemas as providers take them: strict ones refuse what they cannot enforce.


_UNENFORCED = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems "
    "uniqueItems default examples".split()
)
_NAMED = ("properties", "$defs")
"""Keys whose values are schemas by names of their own."""


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without what strict providers refuse; code checks the answer against all of it."""
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _UNENFORCED:
            continue
        if key in _NAMED and isinstance(value, Mapping):
            found[key] = {
                name: strict(part) if isinstance(part, Mapping) else part
                for name, part in value.items()
            }
        else:
            found[key] = _stricter(value)
    if found.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found


def _stricter(value: Any) -> Any:
    if isinstance(value, Mapping):
        return strict(value)
    return [_stricter(item) for item in value] if isinstance(value, list) else value


def told(prompt: Prompt) -> str:
    """What a model is told of the schema where nothing else holds it to one; nothing where it answers in plain text."""
    if not prompt.answer:
        return ""
    schema = json.dumps(prompt.answer, ensure_ascii=False, sort_keys=True)
    return f"Answer with one JSON object of this schema, and nothing else:\n{schema}"


def held(able: Capabilities, prompt: Prompt) -> Capabilities:
    """What a model can do, as far as a prompt wants it: one that wants plain text holds it to no schema."""
    return able if prompt.answer else replace(able, answers="text")


def system_of(prompt: Prompt, able: Capabilities) -> str:
    """The system prompt, with the schema where the model is only told of it."""
    is_held = able.answers in ("schema", "tool")
    return "\n\n".join(part for part in (prompt.system, "" if is_held else told(prompt)) if part)


# ----------------------------------------------------------------------------
# Anthropic's messages, by its official library.


STREAMED_TOKENS = 8_192
"""Longer answers are streamed: a connection on which nothing comes for minutes is cut by what lies in between."""

_LOGIN = {"anthropic-beta": "oauth-2025-04-20"}
_LESS = {"schema": "tool", "tool": "text"}
_CUT = ("max_tokens", "model_context_window_exceeded")
_KEPT = {"type": "ephemeral"}


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None
    usage: _Usage
    model: str = ""
    id: str = ""


class AnthropicModel:
    """A model by Anthropic's messages; implements LanguageModel.

    A schema is enforced as the model can: as the format of its output, or as a tool that it must call. A model that
    takes neither is told of it, from its first refusal on. Raises ModelRefused where the library is missing.
    """

    def __init__(self, asked: CallTarget, capabilities: Capabilities) -> None:
        self.name = asked.name
        self.capabilities = capabilities
        self._asked = asked
        self._calls = Calls()
        self._library: Any = load_library("anthropic", asked)
        credential = asked.credential
        secret = credential.secret if credential else "none"
        is_login = credential is not None and credential.kind == "bearer"
        self._client = self._library.Anthropic(
            **(
                {"auth_token": secret, "default_headers": _LOGIN}
                if is_login
                else {"api_key": secret}
            ),
            base_url=asked.provider.base_url,
            http_client=http_client(asked, self._library),
        )
        keep_to_maker(self._client, asked, _LOGIN if is_login else {})

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, ModelRefused."""
        while True:
            able = held(self.capabilities, prompt)
            try:
                return self._ask(prompt, able)
            except ModelRefused as error:
                self.capabilities = less(able, error, _LESS)

    def _ask(self, prompt: Prompt, able: Capabilities) -> Completion:
        seconds = prompt.timeout_seconds
        request = {
            **_request(prompt, able),
            "model": self._asked.model,
            "timeout": timeout_of(seconds),
        }
        is_streamed = prompt.hear or request["max_tokens"] > STREAMED_TOKENS

        def work() -> _Message:
            return self._stream(request, prompt.hear) if is_streamed else self._whole(request)

        message: _Message = call(self._calls, self._asked, self._library, seconds, work)
        return self._completion(message)

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
        self._client.close()

    def _whole(self, request: dict[str, Any]) -> _Message:
        raw = self._client.messages.with_raw_response.create(**request)
        return body_of(self._asked, raw.http_response, _Message)

    def _stream(self, request: dict[str, Any], hear: Callable[[str], None] | None) -> _Message:
        with self._client.messages.stream(**request) as stream:
            kind = stream.response.headers.get("content-type", "")
            if "event-stream" not in kind:
                raise failures.strange(self._asked, kind, stream.response.read())
            if hear:
                for piece in stream.text_stream:
                    hear(piece)
            whole = stream.get_final_message()
        return json_values.parse_json_values(whole.to_json(), _Message)

    def _completion(self, message: _Message) -> Completion:
        if message.stop_reason is None:
            raise failures.broken(self._asked)
        if message.stop_reason == "refusal":
            raise failures.declined(self._asked)
        called = [
            bytes(block.input).decode() for block in message.content if block.type == "tool_use"
        ]
        said = "".join(block.text for block in message.content if block.type == "text")
        usage = message.usage
        tokens = Tokens(
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens or 0,
            usage.cache_creation_input_tokens or 0,
        )
        is_cut = message.stop_reason in _CUT
        return Completion(
            called[0] if called else said, tokens, message.model, is_cut, more={"id": message.id}
        )


def _request(prompt: Prompt, able: Capabilities) -> dict[str, Any]:
    mark = {"cache_control": _KEPT} if able.caches else {}
    system = system_of(prompt, able)
    content = [{"type": "text", "text": prompt.shared, **mark}] if prompt.shared else []
    request: dict[str, Any] = {
        "max_tokens": most_written(prompt, able),
        **({"system": [{"type": "text", "text": system, **mark}]} if system else {}),
        "messages": [
            {"role": "user", "content": [*content, {"type": "text", "text": prompt.text}]}
        ],
    }
    if able.answers == "schema":
        request["output_config"] = {
            "format": {"type": "json_schema", "schema": strict(prompt.answer)}
        }
    elif able.answers == "tool":
        tool = {
            "name": prompt.name,
            "description": "Gives the answer.",
            "input_schema": dict(prompt.answer),
        }
        request |= {"tools": [tool], "tool_choice": {"type": "tool", "name": prompt.name}}
    return request


# ----------------------------------------------------------------------------
# OpenAI's responses, and the chat completions of all servers that are compatible with it, by OpenAI's
# library.


_LESS_OPENAI_API = {"schema": "json", "tool": "json", "json": "text"}
_ENDS = ("response.completed", "response.incomplete", "response.failed")

Hear = Callable[[str], None]


class _Details(msgspec.Struct):
    cached_tokens: int | None = 0


class _OpenaiApiUsage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    input_tokens_details: _Details | None = None
    prompt_tokens_details: _Details | None = None


class _Function(msgspec.Struct):
    arguments: str = ""


class _Call(msgspec.Struct):
    function: _Function


class _Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None


class _Counted(msgspec.Struct, kw_only=True):
    usage: _OpenaiApiUsage | None = None
    model: str = ""
    id: str = ""


class _Chat(_Counted, kw_only=True):
    choices: list[_Choice]


class _ChoicePiece(msgspec.Struct):
    delta: _Said
    finish_reason: str | None = None


class _ChatPiece(_Counted, kw_only=True):
    """One event of a chat that is streamed; the last one has the tokens, and no choices."""

    choices: list[_ChoicePiece]


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Item(msgspec.Struct):
    type: str
    content: list[_Part] | None = None
    arguments: str = ""


class _Response(msgspec.Struct):
    output: list[_Item]
    status: str | None = None
    incomplete_details: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    usage: _OpenaiApiUsage | None = None
    model: str = ""
    id: str = ""


class _ResponsePiece(msgspec.Struct):
    """One event of a response that is streamed."""

    type: str
    delta: Any = None
    response: Any = None


class OpenAIModel:
    """A model by OpenAI's responses (``openai``) or by chat completions (``chat``); implements LanguageModel.

    A schema is enforced as the model can. A server that says it cannot is asked again with less, and from then on so:
    JSON of any kind, then in words alone. Raises ModelRefused where the library is missing.
    """

    def __init__(self, asked: CallTarget, capabilities: Capabilities) -> None:
        self.name = asked.name
        self.capabilities = capabilities
        self._asked = asked
        self._calls = Calls()
        self._library: Any = load_library("openai", asked)
        self._client = self._library.OpenAI(
            api_key=asked.credential.secret if asked.credential else "none",
            base_url=asked.provider.base_url,
            http_client=http_client(asked, self._library),
        )
        keep_to_maker(self._client, asked, {})

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, ModelRefused."""
        while True:
            able = held(self.capabilities, prompt)
            try:
                return self._ask(prompt, able)
            except ModelRefused as error:
                self.capabilities = less(able, error, _LESS_OPENAI_API)

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
        self._client.close()

    def _ask(self, prompt: Prompt, able: Capabilities) -> Completion:
        seconds = prompt.timeout_seconds
        by_responses = self._asked.provider.api == "openai"
        request = _as_response(prompt, able) if by_responses else _as_chat(prompt, able)
        request |= {"model": self._asked.model, "timeout": timeout_of(seconds)}
        work = self._respond if by_responses else self._chat
        completion: Completion = call(
            self._calls, self._asked, self._library, seconds, lambda: work(request, prompt.hear)
        )
        return completion

    def _chat(self, request: dict[str, Any], hear: Hear | None) -> Completion:
        if hear:
            chat = self._streamed_chat(request, hear)
        else:
            raw = self._client.chat.completions.with_raw_response.create(**request)
            chat = body_of(self._asked, raw.http_response, _Chat)
        if not chat.choices:
            raise failures.broken(self._asked)
        choice = chat.choices[0]
        if choice.message.refusal or choice.finish_reason == "content_filter":
            raise failures.declined(self._asked)
        calls = choice.message.tool_calls
        text = calls[0].function.arguments if calls else choice.message.content or ""
        return _completion(text, chat, is_cut=choice.finish_reason == "length")

    def _streamed_chat(self, request: dict[str, Any], hear: Hear) -> _Chat:
        """A chat of which each piece is heard. Without its last piece it is broken."""
        whole, last, said = _Chat(choices=[]), _Choice(_Said()), list[str]()
        for piece in self._pieces(
            self._client.chat.completions, request, stream_options={"include_usage": True}
        ):
            part = json_values.parse_json_values(piece, _ChatPiece)
            whole = _Chat(
                choices=[last], usage=part.usage or whole.usage, model=part.model, id=part.id
            )
            for choice in part.choices:
                last.finish_reason = choice.finish_reason or last.finish_reason
                last.message.refusal = choice.delta.refusal or last.message.refusal
                if choice.delta.content:
                    said.append(choice.delta.content)
                    hear(choice.delta.content)
        if last.finish_reason is None:
            raise failures.broken(self._asked)
        last.message.content = "".join(said)
        whole.usage = whole.usage or _estimated(request, last.message.content)
        return whole

    def _streamed_response(self, request: dict[str, Any], hear: Hear) -> _Response:
        for piece in self._pieces(self._client.responses, request):
            event = json_values.parse_json_values(piece, _ResponsePiece)
            if event.type == "response.output_text.delta" and event.delta:
                hear(event.delta)
            if event.type in _ENDS:
                return json_values.convert(event.response, _Response)
        raise failures.broken(self._asked)

    def _pieces(self, api: Any, request: dict[str, Any], **more: Any) -> Iterator[str]:
        """The events of a streamed answer, as JSON."""
        with api.create(**request, stream=True, **more) as stream:
            kind = stream.response.headers.get("content-type", "")
            if "event-stream" not in kind:
                raise failures.strange(self._asked, kind, stream.response.read())
            for event in stream:
                yield event.to_json(indent=None)

    def _respond(self, request: dict[str, Any], hear: Hear | None) -> Completion:
        if hear:
            response = self._streamed_response(request, hear)
        else:
            raw = self._client.responses.with_raw_response.create(**request)
            response = body_of(self._asked, raw.http_response, _Response)
        if response.error:
            codes, said = (
                str(response.error.get("code") or ""),
                str(response.error.get("message") or ""),
            )
            raise failures.refusal(self._asked, 500, said, {}, codes)
        parts = [
            part
            for item in response.output
            for part in item.content or []
            if item.type == "message"
        ]
        why = (response.incomplete_details or {}).get("reason")
        if any(part.type == "refusal" for part in parts) or why == "content_filter":
            raise failures.declined(self._asked)
        called = [item.arguments for item in response.output if item.type == "function_call"]
        text = called[0] if called else "".join(part.text for part in parts)
        return _completion(text, response, is_cut=response.status == "incomplete")


def _completion(text: str, answer: _Chat | _Response, *, is_cut: bool) -> Completion:
    usage = answer.usage or _OpenaiApiUsage()
    details = usage.input_tokens_details or usage.prompt_tokens_details or _Details()
    cached = details.cached_tokens or 0
    asked = usage.input_tokens or usage.prompt_tokens
    tokens = Tokens(max(0, asked - cached), usage.output_tokens or usage.completion_tokens, cached)
    return Completion(text, tokens, answer.model, is_cut, more={"id": answer.id})


def _estimated(request: dict[str, Any], said: str) -> _OpenaiApiUsage:
    """What a stream took whose server counts nothing: four characters a token."""
    asked = sum(len(str(message["content"])) for message in request["messages"])
    return _OpenaiApiUsage(prompt_tokens=asked // 4, completion_tokens=len(said) // 4)


def _as_chat(prompt: Prompt, able: Capabilities) -> dict[str, Any]:
    text = f"{prompt.shared}\n\n{prompt.text}" if prompt.shared else prompt.text
    request: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": system_of(prompt, able)},
            {"role": "user", "content": text},
        ],
        "max_tokens": most_written(prompt, able),
    }
    if able.answers == "schema":
        shape = {"name": prompt.name, "strict": True, "schema": strict(prompt.answer)}
        request["response_format"] = {"type": "json_schema", "json_schema": shape}
    elif able.answers == "json":
        request["response_format"] = {"type": "json_object"}
    elif able.answers == "tool":
        function = {
            "name": prompt.name,
            "description": "Gives the answer.",
            "parameters": dict(prompt.answer),
        }
        request["tools"] = [{"type": "function", "function": function}]
        request["tool_choice"] = {"type": "function", "function": {"name": prompt.name}}
    return request


def _as_response(prompt: Prompt, able: Capabilities) -> dict[str, Any]:
    parts = [prompt.shared, prompt.text] if prompt.shared else [prompt.text]
    request: dict[str, Any] = {
        "instructions": system_of(prompt, able),
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": part} for part in parts]}
        ],
        "max_output_tokens": most_written(prompt, able),
        "store": False,
    }
    if able.answers == "schema":
        shape = {
            "type": "json_schema",
            "name": prompt.name,
            "strict": True,
            "schema": strict(prompt.answer),
        }
        request["text"] = {"format": shape}
    elif able.answers == "json":
        request["text"] = {"format": {"type": "json_object"}}
    elif able.answers == "tool":
        request["tools"] = [
            {
                "type": "function",
                "name": prompt.name,
                "description": "Gives the answer.",
                "strict": False,
                "parameters": dict(prompt.answer),
            }
        ]
        request["tool_choice"] = {"type": "function", "name": prompt.name}
    return request


# ----------------------------------------------------------------------------
# The model of a connected MCP client, where it offers one.


Sample = Callable[[str, str, int], tuple[str, str]]
"""Asks the client: system, text, most tokens of the answer; gives back the answer and the model that gave it."""

CHARACTERS_PER_TOKEN = 4


class SamplingModel:
    """A model made of a callback; implements LanguageModel. Clients count no tokens: four characters are one."""

    def __init__(self, sample: Sample, *, client: str = "the connected client") -> None:
        self._asked = CallTarget(
            Provider("mcp-sampling", client, "mcp-sampling", needs_key=False), "client"
        )
        self.name = self._asked.name
        self.capabilities = Capabilities(answers="text")
        self._sample = sample
        self._calls = Calls()

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailable, also where the client or its user says no."""
        system = system_of(prompt, self.capabilities)
        text = f"{prompt.shared}\n\n{prompt.text}" if prompt.shared else prompt.text
        most = min(prompt.output_tokens, self.capabilities.output)
        try:
            said, model = self._calls.run(
                lambda: self._sample(system, text, most), prompt.timeout_seconds
            )
        except NacreError:
            raise
        except CutOff:
            raise failures.cut_off(self._asked) from None
        except TimeoutError:
            raise failures.late(self._asked, prompt.timeout_seconds) from None
        except Exception as error:  # anybody's callback: whatever it raises, there is no answer
            message = f"{self._asked.provider.label} gives no answer for {self.name}: {type(error).__name__}"
            raise ModelUnavailable(
                message, hint="allow sampling there, or set another model", retry=False
            ) from error
        asked = len(system) + len(text)
        return Completion(
            said, Tokens(asked // CHARACTERS_PER_TOKEN, len(said) // CHARACTERS_PER_TOKEN), model
        )

    def close(self) -> None:
        """Cut off what runs."""
        self._calls.close()
