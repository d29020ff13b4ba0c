"""Connections to model providers, and the models behind the Anthropic and OpenAI APIs and MCP sampling."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import httpx2
import msgspec

from nacre.base import json as json_values
from nacre.base.plain import JsonObject, Values, mapping, objects, total
from nacre.errors import ModelRefusedError, ModelUnavailableError, NacreError, PromptTooLongError
from nacre.llm import failures
from nacre.llm.credentials import Provider
from nacre.llm.failures import Calls, CallTarget, TruncatedAnswerError
from nacre.values.models import Capabilities, Completion, Prompt, Tokens, most_written

S = TypeVar("S", bound=msgspec.Struct)


CONNECT_SECONDS = 10.0
CHARACTERS_PER_TOKEN = 4
MAKERS = ("api.anthropic.com", "api.openai.com")
_UNABLE = re.compile(
    r"response_format|json_schema|json_object|text\.format|output_config|output_format|tool_choice|structured output",
    re.I,
)
_GRACE_SECONDS = 1.0
"""Extra seconds to wait for the library's own timeout error, which has more details."""

_RETRY_SECONDS = 5.0
_call = threading.local()


def load_library(name: str, target: CallTarget) -> ModuleType:
    """Import a provider's library. Raises ModelRefusedError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise failures.no_library(target, name) from error


def http_client(target: CallTarget, library: ModuleType) -> Any:
    """Return the HTTP client for a provider's library.

    Calls to this machine bypass proxies. Redirects are not followed, because they could reveal the key and the prompt.
    """
    client = library.DefaultHttpxClient
    hooks = {"request": [_refuse_late], "response": [_forbid_late_retry]}
    return client(
        follow_redirects=False,
        event_hooks=hooks,
        verify=target.needs_certificates,
        **({"trust_env": False} if target.is_here else {}),
    )


def _refuse_late(request: Any) -> None:
    """Stop a request after the deadline of the call. The library's own retries ignore this deadline."""
    if time.monotonic() >= getattr(_call, "end", math.inf):
        raise httpx2.ReadTimeout("the call ran out of time", request=request)


def _forbid_late_retry(response: Any) -> None:
    """Tell the library not to retry a request if too little time remains."""
    retry_after = response.headers.get("retry-after", "")
    wait = float(retry_after) if retry_after.isdigit() else 0.0
    if response.status_code >= 400 and time.monotonic() + wait + _RETRY_SECONDS >= getattr(
        _call, "end", math.inf
    ):
        response.headers["x-should-retry"] = "false"


def keep_to_maker(client: Any, target: CallTarget, headers: Mapping[str, str]) -> None:
    """Send a vendor's own headers only to that vendor.

    The libraries add ``ANTHROPIC_CUSTOM_HEADERS``, ``OPENAI_CUSTOM_HEADERS`` and ``OPENAI_ORG_ID`` to all calls to all
    servers, and no option prevents it.
    """
    if target.host in MAKERS:
        return
    client._custom_headers = dict(headers)
    if hasattr(client, "organization"):
        client.organization = client.project = None


def timeout_of(seconds: float) -> Any:
    """Return the timeouts of a call, for connecting and for reading."""

    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def call(
    calls: Calls, target: CallTarget, library: ModuleType, seconds: float, work: Callable[[], Any]
) -> Any:
    """Return the result of ``work``, and convert the library's errors to nacre's."""

    def in_time() -> Any:
        _call.end = time.monotonic() + seconds
        return work()

    try:
        return calls.run(in_time, seconds + _GRACE_SECONDS)
    except NacreError:
        raise
    except TruncatedAnswerError:
        raise failures.cut_off(target) from None
    except library.APIStatusError as error:
        codes, message = _error_details(error.body)
        raise failures.refusal(
            target, error.status_code, message, error.response.headers, codes
        ) from error
    except (TimeoutError, library.APITimeoutError, httpx2.TimeoutException) as error:
        raise _late(target, seconds, error) from error
    except library.APIConnectionError as error:
        raise failures.unreachable(target, error) from error
    except httpx2.TransportError as error:
        raise failures.broken(target) from error
    except (
        library.APIError,
        json.JSONDecodeError,
        AssertionError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        raise failures.strange(
            target
        ) from error  # raised by a library that cannot parse the answer


def plain_client(target: CallTarget) -> Any:
    """Return an HTTP client that does not need a vendor's library, which takes half a second to load.

    Redirects are not followed, because they could reveal the key.
    """
    return httpx2.Client(
        trust_env=not target.is_here,
        verify=target.needs_certificates,
        headers={"user-agent": "nacre"},
    )


def post(
    calls: Calls,
    target: CallTarget,
    client: Any,
    url: str,
    body: Any,
    headers: Mapping[str, str],
    seconds: float,
) -> Any:
    """Send a JSON request and return the successful response, or raise one of nacre's errors."""

    def work() -> Any:
        return client.post(url, json=body, headers=headers, timeout=timeout_of(seconds))

    try:
        response = calls.run(work, seconds + _GRACE_SECONDS)
    except TruncatedAnswerError:
        raise failures.cut_off(target) from None
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise _late(target, seconds, error) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, RuntimeError, ValueError) as error:
        raise failures.unreachable(target, error) from error
    if response.status_code >= 300:
        codes, message = _error_details(_parsed(response.content))
        raise failures.refusal(target, response.status_code, message, response.headers, codes)
    return response


def _late(target: CallTarget, seconds: float, error: BaseException) -> ModelUnavailableError:

    has_connected = not any(
        isinstance(cause, httpx2.ConnectTimeout) for cause in (error, error.__cause__)
    )
    return failures.late(target, seconds) if has_connected else failures.unreachable(target, error)


def _parsed(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return body.decode("utf-8", "replace")


def body_of(target: CallTarget, response: Any, shape: type[S]) -> S:
    """Parse a successful response's body. Raises ModelUnavailableError if another server has sent it."""
    body: bytes = response.content
    try:
        return json_values.parse_json_tree(body, shape)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        parsed = _parsed(body)
        if isinstance(parsed, Mapping) and parsed.get(
            "error"
        ):  # some gateways report failures this way, with status 200
            codes, message = _error_details(parsed)
            status = re.match(r"[45]\d\d\b", codes)
            raise failures.refusal(
                target, int(status[0]) if status else 500, message, {}, codes
            ) from error
        raise failures.strange(target, response.headers.get("content-type", ""), body) from error


def less(able: Capabilities, error: ModelRefusedError, steps: Mapping[str, str]) -> Capabilities:
    """Return the capabilities for another attempt after a provider refused an answer format.

    ``steps`` maps each format to the next, simpler format. Raises ``error`` if another attempt
    would not help.
    """
    if (
        able.answers not in steps
        or isinstance(error, PromptTooLongError)
        or not _UNABLE.search(error.message)
    ):
        raise error
    return replace(able, answers=steps[able.answers])


def _error_details(body: Any) -> tuple[str, str]:
    """Return the codes and the message in a provider's error."""
    if isinstance(body, list) and body:  # the format used by Gemini
        body = body[0]
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, Mapping):
        codes = " ".join(str(inner[key]) for key in ("code", "type", "status") if inner.get(key))
        return codes, str(inner.get("message") or "")
    return "", "" if "<" in str(inner or "")[:200] else str(inner or "")


# -- Schemas for strict providers ------------------------------------------------------------------


_UNENFORCED = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems "
    "uniqueItems default examples".split()
)
_NAMED = ("properties", "$defs")
"""Keywords that map names to schemas."""


def strict(schema: Values) -> JsonObject:
    """Return a schema without keywords that strict providers refuse. Answers are checked against the full schema."""
    result: JsonObject = {}
    for key, value in schema.items():
        if key in _UNENFORCED:
            continue
        if key in _NAMED and isinstance(value, Mapping):
            result[key] = {
                name: strict(part) if isinstance(part, Mapping) else part
                for name, part in value.items()
            }
        else:
            result[key] = _stricter(value)
    if result.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


def _stricter(value: Any) -> Any:
    if isinstance(value, Mapping):
        return strict(value)
    return [_stricter(item) for item in value] if isinstance(value, list) else value


def schema_text(prompt: Prompt) -> str:
    """Return the prompt's description of the schema, or an empty string if the answer is plain text."""
    if not prompt.answer:
        return ""
    schema = json.dumps(prompt.answer, ensure_ascii=False, sort_keys=True)
    return f"Answer with one JSON object of this schema, and nothing else:\n{schema}"


def system_of(prompt: Prompt, able: Capabilities) -> str:
    """Return the system prompt, with the schema if nothing else enforces it."""
    is_held = able.answers in ("schema", "tool")
    return "\n\n".join(
        part for part in (prompt.system, "" if is_held else schema_text(prompt)) if part
    )


# -- Anthropic messages ----------------------------------------------------------------------------


STREAMED_TOKENS = 8_192
"""Longer answers are streamed, because proxies close connections that are silent for minutes."""

_LOGIN = {"anthropic-beta": "oauth-2025-04-20"}
_LESS = {"schema": "tool", "tool": "text"}
_CUT = ("max_tokens", "model_context_window_exceeded")
_CACHE_CONTROL = {"type": "ephemeral"}


class _Answer(msgspec.Struct, kw_only=True):
    usage: JsonObject | None = None
    model: str = ""
    id: str = ""


class _LibraryModel:
    """A model that is called through a provider's library. Implements LanguageModel.

    ``steps``: mapping from answer formats to simpler formats. Raises ModelRefusedError if the
    library is missing.
    """

    library: str
    steps: Mapping[str, str]

    def __init__(self, target: CallTarget, capabilities: Capabilities) -> None:
        self.name = target.name
        self.capabilities = capabilities
        self._target = target
        self._calls = Calls()
        self._library: Any = load_library(self.library, target)
        self._client = self._connect()

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailableError, ModelRefusedError."""
        seconds = prompt.timeout_seconds
        while True:
            able = (
                self.capabilities if prompt.answer else replace(self.capabilities, answers="text")
            )
            request = {
                **self._request(prompt, able),
                "model": self._target.model,
                "timeout": timeout_of(seconds),
            }
            try:
                completion: Completion = call(
                    self._calls,
                    self._target,
                    self._library,
                    seconds,
                    partial(self._send, request),
                )
                return completion
            except ModelRefusedError as error:
                self.capabilities = less(able, error, self.steps)

    def close(self) -> None:
        """Cancel the running calls."""
        self._calls.close()
        self._client.close()

    def _connect(self) -> Any:
        raise NotImplementedError

    def _request(self, prompt: Prompt, able: Capabilities) -> JsonObject:
        raise NotImplementedError

    def _send(self, request: JsonObject) -> Completion:
        raise NotImplementedError

    def _check_stream(self, response: Any) -> None:
        kind = response.headers.get("content-type", "")
        if "event-stream" not in kind:
            raise failures.strange(self._target, kind, response.read())


class _Message(_Answer, kw_only=True):
    content: list[JsonObject]
    stop_reason: str | None


def anthropic_tokens(usage: Values) -> Tokens:
    """Return the token counts from Anthropic's ``usage``."""
    return Tokens(
        total(usage, "input_tokens"),
        total(usage, "output_tokens"),
        total(usage, "cache_read_input_tokens"),
        total(usage, "cache_creation_input_tokens"),
    )


class AnthropicModel(_LibraryModel):
    """A model that is called through Anthropic's messages API.

    The provider enforces the schema of the answer. If the provider refuses to enforce the schema,
    the prompt describes the schema.
    """

    library = "anthropic"
    steps = _LESS

    def _connect(self) -> Any:
        target = self._target
        credential = target.credential
        secret = credential.secret if credential else "none"
        is_login = credential is not None and credential.kind == "bearer"
        client = self._library.Anthropic(
            **(
                {"auth_token": secret, "default_headers": _LOGIN}
                if is_login
                else {"api_key": secret}
            ),
            base_url=target.provider.base_url,
            http_client=http_client(target, self._library),
        )
        keep_to_maker(client, target, _LOGIN if is_login else {})
        return client

    def _request(self, prompt: Prompt, able: Capabilities) -> JsonObject:
        return _request(prompt, able)

    def _send(self, request: JsonObject) -> Completion:
        if request["max_tokens"] > STREAMED_TOKENS:
            message = self._stream(request)
        else:
            raw = self._client.messages.with_raw_response.create(**request)
            message = body_of(self._target, raw.http_response, _Message)
        if message.stop_reason is None:
            raise failures.broken(self._target)
        if message.stop_reason == "refusal":
            raise failures.declined(self._target)
        called = [
            block.get("input", {}) for block in message.content if block["type"] == "tool_use"
        ]
        text = "".join(block["text"] for block in message.content if block["type"] == "text")
        return Completion(
            msgspec.json.encode(called[0]).decode() if called else text,
            anthropic_tokens(message.usage or {}),
            message.model,
            message.stop_reason in _CUT,
            more={"id": message.id},
        )

    def _stream(self, request: JsonObject) -> _Message:
        with self._client.messages.stream(**request) as stream:
            self._check_stream(stream.response)
            return json_values.convert(stream.get_final_message().to_dict(), _Message)


def _request(prompt: Prompt, able: Capabilities) -> JsonObject:
    mark = {"cache_control": _CACHE_CONTROL} if able.caches else {}
    system = system_of(prompt, able)
    content = [{"type": "text", "text": prompt.shared, **mark}] if prompt.shared else []
    request: JsonObject = {
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


# -- OpenAI responses and chat completions ---------------------------------------------------------
# Chat completions also serve all compatible servers.


_LESS_OPENAI_API = {"schema": "json", "tool": "json", "json": "text"}


class _Choice(msgspec.Struct):
    message: JsonObject
    finish_reason: str | None = None


class _Chat(_Answer, kw_only=True):
    choices: list[_Choice]


class _Response(_Answer, kw_only=True):
    output: list[JsonObject]
    status: str | None = None
    incomplete_details: Values | None = None
    error: Values | None = None


class OpenAIModel(_LibraryModel):
    """A model that is called through OpenAI's responses API (``openai``) or chat completions (``chat``).

    The provider enforces the schema of the answer. If the provider refuses to enforce the schema,
    later calls ask for any JSON or for text, and the prompt describes the schema.
    """

    library = "openai"
    steps = _LESS_OPENAI_API

    def _connect(self) -> Any:
        target = self._target
        client = self._library.OpenAI(
            api_key=target.credential.secret if target.credential else "none",
            base_url=target.provider.base_url,
            http_client=http_client(target, self._library),
        )
        keep_to_maker(client, target, {})
        return client

    def _request(self, prompt: Prompt, able: Capabilities) -> JsonObject:
        by_responses = self._target.provider.api == "openai"
        return _as_response(prompt, able) if by_responses else _as_chat(prompt, able)

    def _send(self, request: JsonObject) -> Completion:
        by_responses = self._target.provider.api == "openai"
        return self._respond(request) if by_responses else self._chat(request)

    def _chat(self, request: JsonObject) -> Completion:
        raw = self._client.chat.completions.with_raw_response.create(**request)
        chat = body_of(self._target, raw.http_response, _Chat)
        if not chat.choices:
            raise failures.broken(self._target)
        choice = chat.choices[0]
        if choice.message.get("refusal") or choice.finish_reason == "content_filter":
            raise failures.declined(self._target)
        calls = objects(choice.message, "tool_calls")
        content = choice.message.get("content") or ""
        text = calls[0]["function"]["arguments"] if calls else content
        return _completion(self._target, text, chat, is_cut=choice.finish_reason == "length")

    def _respond(self, request: JsonObject) -> Completion:
        raw = self._client.responses.with_raw_response.create(**request)
        response = body_of(self._target, raw.http_response, _Response)
        if response.error:
            codes, message = (str(response.error.get(key) or "") for key in ("code", "message"))
            raise failures.refusal(self._target, 500, message, {}, codes)
        parts = [
            part
            for item in response.output
            for part in objects(item, "content")
            if item.get("type") == "message"
        ]
        why = (response.incomplete_details or {}).get("reason")
        if any(part.get("type") == "refusal" for part in parts) or why == "content_filter":
            raise failures.declined(self._target)
        called = [
            item["arguments"] for item in response.output if item.get("type") == "function_call"
        ]
        text = called[0] if called else "".join(part.get("text") or "" for part in parts)
        return _completion(self._target, text, response, is_cut=response.status == "incomplete")


def _completion(target: CallTarget, text: object, answer: _Answer, *, is_cut: bool) -> Completion:
    if not isinstance(text, str):
        raise failures.strange(target, body=b"{}")
    usage = answer.usage or {}
    details = mapping(usage, "input_tokens_details") or mapping(usage, "prompt_tokens_details")
    cached = total(details, "cached_tokens")
    prompt_tokens = total(usage, "input_tokens") or total(usage, "prompt_tokens")
    written = total(usage, "output_tokens") or total(usage, "completion_tokens")
    tokens = Tokens(max(0, prompt_tokens - cached), written, cached)
    return Completion(text, tokens, answer.model, is_cut, more={"id": answer.id})


def _as_chat(prompt: Prompt, able: Capabilities) -> JsonObject:
    text = f"{prompt.shared}\n\n{prompt.text}" if prompt.shared else prompt.text
    request: JsonObject = {
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


def _as_response(prompt: Prompt, able: Capabilities) -> JsonObject:
    parts = [prompt.shared, prompt.text] if prompt.shared else [prompt.text]
    request: JsonObject = {
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


# -- Sampling by an MCP client ---------------------------------------------------------------------


Sample = Callable[[str, str, int], tuple[str, str]]
"""Function that sends a system prompt, a text and a token limit, and returns the answer and the model's name."""


class SamplingModel:
    """The model of an MCP client, called through a function. Token counts are estimates."""

    def __init__(self, sample: Sample) -> None:
        self._target = CallTarget(
            Provider("mcp-sampling", "the connected client", "mcp-sampling", needs_key=False),
            "client",
        )
        self.name = self._target.name
        self.capabilities = Capabilities(answers="text")
        self._sample = sample
        self._calls = Calls()

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises ModelUnavailableError, for example if the user refuses the request."""
        system = system_of(prompt, self.capabilities)
        text = f"{prompt.shared}\n\n{prompt.text}" if prompt.shared else prompt.text
        max_tokens = min(prompt.output_tokens, self.capabilities.output)
        try:
            answer, model = self._calls.run(
                lambda: self._sample(system, text, max_tokens), prompt.timeout_seconds
            )
        except NacreError:
            raise
        except TruncatedAnswerError:
            raise failures.cut_off(self._target) from None
        except TimeoutError:
            raise failures.late(self._target, prompt.timeout_seconds) from None
        except Exception as error:  # the callback can raise anything
            message = f"{self._target.provider.label} gives no answer for {self.name}: {type(error).__name__}"
            raise ModelUnavailableError(
                message, hint="allow sampling in the client, or set another model", retry=False
            ) from error
        sent = len(system) + len(text)
        return Completion(
            answer, Tokens(sent // CHARACTERS_PER_TOKEN, len(answer) // CHARACTERS_PER_TOKEN), model
        )

    def close(self) -> None:
        self._calls.close()
