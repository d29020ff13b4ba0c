"""Connections to model providers, and the models behind the Anthropic and OpenAI APIs."""

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
from nacre.base.plain import JsonObject, Values, mapping, total
from nacre.errors import ModelRefusedError, ModelUnavailableError, NacreError, PromptTooLongError
from nacre.llm import failures
from nacre.llm.failures import Calls, CallTarget, TruncatedAnswerError
from nacre.values.models import Capabilities, Completion, Prompt, Tokens, most_written

S = TypeVar("S", bound=msgspec.Struct)


CONNECT_SECONDS = 10.0
VENDORS = ("api.anthropic.com", "api.openai.com")
_UNABLE = re.compile(
    r"response_format|json_schema|json_object|text\.format|output_config|output_format|structured output",
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

    It bypasses proxies for servers on this machine. It follows no redirects, which could reveal the
    key and the prompt.
    """
    client = library.DefaultHttpxClient
    hooks = {"request": [_refuse_late], "response": [_forbid_late_retry]}
    return client(
        follow_redirects=False,
        event_hooks=hooks,
        verify=target.needs_certificates,
        **({"trust_env": False} if target.provider.is_here else {}),
    )


def _refuse_late(request: Any) -> None:
    # the library's own retries ignore the deadline of the call
    if time.monotonic() >= getattr(_call, "end", math.inf):
        raise httpx2.ReadTimeout("the call ran out of time", request=request)


def _forbid_late_retry(response: Any) -> None:
    retry_after = response.headers.get("retry-after", "")
    wait = float(retry_after) if retry_after.isdigit() else 0.0
    if response.status_code >= 400 and time.monotonic() + wait + _RETRY_SECONDS >= getattr(
        _call, "end", math.inf
    ):
        response.headers["x-should-retry"] = "false"


def strip_vendor_headers(client: Any, target: CallTarget, headers: Mapping[str, str]) -> None:
    """Remove the headers that a vendor's library adds to calls to other servers.

    They come from ``ANTHROPIC_CUSTOM_HEADERS``, ``OPENAI_CUSTOM_HEADERS`` and ``OPENAI_ORG_ID``.
    """
    if target.host in VENDORS:
        return
    client._custom_headers = dict(headers)
    if hasattr(client, "organization"):
        client.organization = client.project = None


def timeout_of(seconds: float) -> Any:
    """Return the timeouts for connecting to a server and for reading its response."""
    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def call(
    calls: Calls, target: CallTarget, library: ModuleType, seconds: float, work: Callable[[], Any]
) -> Any:
    """Run ``work`` within ``seconds``, converting the library's errors to nacre's."""

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
    """Return an HTTP client that loads quickly and does not follow redirects, which could reveal
    the key.
    """
    return httpx2.Client(
        trust_env=not target.provider.is_here,
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
    """Send a JSON request and return the response. Failures are raised as nacre's errors."""

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
        return json_values.parse(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def body_of(target: CallTarget, response: Any, shape: type[S]) -> S:
    """Parse a successful response. Raises ModelUnavailableError if its format is wrong."""
    body: bytes = response.content
    try:
        return json_values.decode(body, shape)
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


def _error_details(body: Any) -> tuple[str, str]:
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


def strict(schema: Any) -> Any:
    """Return a copy of a schema without the keywords that strict providers reject."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    result = {
        key: {name: strict(part) for name, part in value.items()}
        if key in _NAMED
        else strict(value)
        for key, value in schema.items()
        if key not in _UNENFORCED
    }
    if result.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


def schema_text(prompt: Prompt) -> str:
    """Return an instruction to answer in JSON of the prompt's schema, or "" for plain text."""
    if not prompt.answer:
        return ""
    schema = json.dumps(prompt.answer, ensure_ascii=False, sort_keys=True)
    return f"Answer with one JSON object of this schema, and nothing else:\n{schema}"


def system_of(prompt: Prompt, able: Capabilities) -> str:
    """Return the system prompt. It includes the schema if the provider does not enforce it."""
    form = "" if able.answers == "schema" else schema_text(prompt)
    return "\n\n".join(filter(None, (prompt.system, form)))


# -- Anthropic messages ----------------------------------------------------------------------------


STREAMED_TOKENS = 8_192
"""Maximum number of output tokens without streaming. Proxies close connections that are silent for minutes."""

_LOGIN = {"anthropic-beta": "oauth-2025-04-20"}
_CUT = ("max_tokens", "model_context_window_exceeded")


class _Answer(msgspec.Struct, kw_only=True):
    usage: JsonObject | None = None
    model: str = ""
    id: str = ""


class _LibraryModel:
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
                simpler = self.steps.get(able.answers)
                is_unable = _UNABLE.search(error.message) and not isinstance(
                    error, PromptTooLongError
                )
                if simpler is None or not is_unable:
                    raise
                self.capabilities = replace(able, answers=simpler)

    def close(self) -> None:
        self._calls.close()
        self._client.close()

    def _connect(self) -> Any:
        raise NotImplementedError

    def _request(self, prompt: Prompt, able: Capabilities) -> JsonObject:
        raise NotImplementedError

    def _send(self, request: JsonObject) -> Completion:
        raise NotImplementedError


class _Message(_Answer, kw_only=True):
    content: list[JsonObject]
    stop_reason: str | None


def anthropic_tokens(usage: Values) -> Tokens:
    """Return the token counts in an Anthropic ``usage`` record."""
    return Tokens(
        total(usage, "input_tokens"),
        total(usage, "output_tokens"),
        total(usage, "cache_read_input_tokens"),
        total(usage, "cache_creation_input_tokens"),
    )


class AnthropicModel(_LibraryModel):
    """A model called through Anthropic's messages API.

    If it refuses the answer's schema, the prompt describes the schema instead.
    """

    library = "anthropic"
    steps = {"schema": "text"}  # noqa: RUF012 - a constant

    def _connect(self) -> Any:
        target = self._target
        credential = target.credential
        secret = credential.secret if credential else "none"
        is_login = credential is not None and credential.kind == "bearer"
        headers = _LOGIN if is_login else {}
        client = self._library.Anthropic(
            **{"auth_token" if is_login else "api_key": secret},
            default_headers=headers,
            base_url=target.provider.base_url,
            http_client=http_client(target, self._library),
        )
        strip_vendor_headers(client, target, headers)
        return client

    def _request(self, prompt: Prompt, able: Capabilities) -> JsonObject:
        mark = {"cache_control": {"type": "ephemeral"}} if able.caches else {}
        system = system_of(prompt, able)
        content = [{"type": "text", "text": prompt.shared, **mark}] if prompt.shared else []
        content.append({"type": "text", "text": prompt.text})
        request: JsonObject = {
            "max_tokens": most_written(prompt, able),
            **({"system": [{"type": "text", "text": system, **mark}]} if system else {}),
            "messages": [{"role": "user", "content": content}],
        }
        if able.answers == "schema":
            form = {"type": "json_schema", "schema": strict(prompt.answer)}
            request["output_config"] = {"format": form}
        return request

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
        return Completion(
            "".join(block["text"] for block in message.content if block["type"] == "text"),
            anthropic_tokens(message.usage or {}),
            message.model,
            message.stop_reason in _CUT,
            more={"id": message.id},
        )

    def _stream(self, request: JsonObject) -> _Message:
        with self._client.messages.stream(**request) as stream:
            kind = stream.response.headers.get("content-type", "")
            if "event-stream" not in kind:
                raise failures.strange(self._target, kind, stream.response.read())
            return json_values.convert(stream.get_final_message().to_dict(), _Message)


# -- OpenAI chat completions, as on all compatible servers -----------------------------------------


class _Choice(msgspec.Struct):
    message: JsonObject
    finish_reason: str | None = None


class _Chat(_Answer, kw_only=True):
    choices: list[_Choice]


class OpenAIModel(_LibraryModel):
    """A model called through the chat completions API.

    If it refuses the answer's schema, this and all later prompts describe the schema instead.
    """

    library = "openai"
    steps = {"schema": "json", "json": "text"}  # noqa: RUF012 - a constant

    def _connect(self) -> Any:
        target = self._target
        client = self._library.OpenAI(
            api_key=target.credential.secret if target.credential else "none",
            base_url=target.provider.base_url,
            http_client=http_client(target, self._library),
        )
        strip_vendor_headers(client, target, {})
        return client

    def _request(self, prompt: Prompt, able: Capabilities) -> JsonObject:
        text = f"{prompt.shared}\n\n{prompt.text}" if prompt.shared else prompt.text
        is_openai = self._target.provider.api == "openai"
        request: JsonObject = {
            "messages": [
                {"role": "system", "content": system_of(prompt, able)},
                {"role": "user", "content": text},
            ],
            "max_completion_tokens" if is_openai else "max_tokens": most_written(prompt, able),
        }
        if able.answers == "schema":
            shape = {"name": prompt.name, "strict": True, "schema": strict(prompt.answer)}
            request["response_format"] = {"type": "json_schema", "json_schema": shape}
        elif able.answers == "json":
            request["response_format"] = {"type": "json_object"}
        return request

    def _send(self, request: JsonObject) -> Completion:
        raw = self._client.chat.completions.with_raw_response.create(**request)
        chat = body_of(self._target, raw.http_response, _Chat)
        if not chat.choices:
            raise failures.broken(self._target)
        choice = chat.choices[0]
        if choice.message.get("refusal") or choice.finish_reason == "content_filter":
            raise failures.declined(self._target)
        text = choice.message.get("content") or ""
        if not isinstance(text, str):
            raise failures.strange(self._target, body=b"{}")
        usage = chat.usage or {}
        cached = total(mapping(usage, "prompt_tokens_details"), "cached_tokens")
        sent = max(0, total(usage, "prompt_tokens") - cached)
        return Completion(
            text,
            Tokens(sent, total(usage, "completion_tokens"), cached),
            chat.model,
            choice.finish_reason == "length",
            more={"id": chat.id},
        )
