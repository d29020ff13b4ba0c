"""Connections to providers, and the errors that every maker's library raises in the same way."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import httpx2
import msgspec

from nacre.errors import ModelRefused, ModelUnavailable, NacreError, PromptTooLong
from nacre.llm import failures
from nacre.llm.cancellable import Calls, CutOff
from nacre.llm.failures import CallTarget
from nacre.platform import json_values
from nacre.values.model_calls import Capabilities

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
    return client(follow_redirects=False, event_hooks=hooks, **({"trust_env": False} if asked.is_here else {}))


def _refuse_late(request: Any) -> None:
    """Send nothing again once the time of a call is over: a library that tries again does not know of it."""
    if time.monotonic() >= getattr(_call, "end", math.inf):
        raise httpx2.ReadTimeout("the time of the call is over", request=request)


def _forbid_late_retry(response: Any) -> None:
    """Have a failure told instead of a timeout where the time that is left does not hold another try."""
    asked = response.headers.get("retry-after", "")
    wait = float(asked) if asked.isdigit() else 0.0
    if response.status_code >= 400 and time.monotonic() + wait + _RETRY_SECONDS >= getattr(_call, "end", math.inf):
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


def call(calls: Calls, asked: CallTarget, library: ModuleType, seconds: float, work: Callable[[], Any]) -> Any:
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
        raise failures.refusal(asked, error.status_code, said, error.response.headers, codes) from error
    except (TimeoutError, library.APITimeoutError, httpx2.TimeoutException) as error:
        raise _late(asked, seconds, error) from error
    except library.APIConnectionError as error:
        raise failures.unreachable(asked, error) from error
    except httpx2.TransportError as error:
        raise failures.broken(asked) from error
    except (library.APIError, json.JSONDecodeError, AssertionError, KeyError, TypeError, ValueError) as error:
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
    calls: Calls, asked: CallTarget, client: Any, url: str, body: Any, headers: Mapping[str, str], seconds: float
) -> Any:  # fmt: skip
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

    has_connected = not any(isinstance(one, httpx2.ConnectTimeout) for one in (error, error.__cause__))
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
        return json_values.parse(body, shape)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        told = _parsed(body)
        if isinstance(told, Mapping) and told.get("error"):  # as some gateways tell it, with a success
            codes, said = _said(told)
            status = re.match(r"[45]\d\d\b", codes)
            raise failures.refusal(asked, int(status[0]) if status else 500, said, {}, codes) from error
        raise failures.strange(asked, response.headers.get("content-type", ""), body) from error


def less(able: Capabilities, error: ModelRefused, steps: Mapping[str, str]) -> Capabilities:
    """What to ask with instead, where a provider says it cannot hold this model to a schema in that way.

    ``steps`` says what comes after each way. Raises the error where that was not the reason, or nothing is left.
    """
    if able.answers not in steps or isinstance(error, PromptTooLong) or not _UNABLE.search(error.message):
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
