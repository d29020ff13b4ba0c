"""Provider errors, checked answers, cancellable calls, and the billing of agents' commands."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from nacre.base import json as json_values
from nacre.base.environment import install_hint
from nacre.base.frozen import frozen
from nacre.base.text import shorten
from nacre.errors import (
    ModelDeclinedError,
    ModelRefusedError,
    ModelUnavailableError,
    NacreError,
    PromptTooLongError,
    UnexpectedServiceError,
    UnreadableModelError,
    UnusableAnswerError,
    UnusableCredentialsError,
)
from nacre.llm import credentials
from nacre.llm.credentials import (
    API_KEY,
    BEARER,
    COMMANDS,
    Credential,
    Provider,
    methods,
)
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.values.models import Completion, Prompt

_QUOTED_CHARACTERS = 200
_KEYS = re.compile(r"\b(?:sk|pk|gsk|xai|key|AIza)[-_]?[\w*.…-]{12,}")
_RETRIED_STATUSES = frozenset({408, 409, 425, 429})
_UNPROCESSED_STATUSES = _RETRIED_STATUSES | {503, 529}
"""HTTP statuses of calls that a provider rejects without processing or billing them."""
_LIMITED = (
    r"rate.?limit|usage limit|limit reached|quota|exhausted|(hit|reached) your .{0,60}limit|"
    r"out of .{0,20}(usage|credits)|too many requests|overloaded|\b429\b|\b529\b"
)
_SIGNED_OUT = r"\b(?:log|sign|logged|signed)[ -]?(?:in|out)\b|\bapi key|unauthori[sz]ed|authenticat|\b401\b|credentials"
_OFFLINE = r"\bconnect(ion|ing)?\b|\bnetwork\b|disconnected"
ANOTHER = (
    "choose another model: nacre config set models.default, or nacre writer set for the writer"
)


@frozen
class CallTarget:
    """The provider and model to call, with the credential for it."""

    provider: Provider
    model: str
    credential: Credential | None = None
    window: int = 0

    @property
    def name(self) -> str:
        """The name ``provider:model``."""
        return f"{self.provider.name}:{self.model}"

    @property
    def host(self) -> str:
        """The host in the provider's address."""
        return urlsplit(self.provider.base_url).netloc.rpartition("@")[2] or self.provider.label

    @property
    def needs_certificates(self) -> bool:
        """True unless the address is plain HTTP. Loading certificates takes 20 ms."""
        return not self.provider.base_url.startswith("http:")


@frozen
class _Row:
    """A rule that turns a provider's refusal into an error.

    ``pattern`` is matched against the status, the error codes and the message, joined by spaces.
    """

    pattern: str
    message: str
    hint: str
    kind: Callable[..., NacreError] = ModelRefusedError


_ROWS = (
    _Row(
        r"402 |(400|403|429) .*(insufficient[_ ](quota|balance|credit)|credit balance|billing_hard_limit|"
        r"out of credits)",
        "{label} has no credit left for {name}",
        "add credit at {label}, or {another}",
    ),
    _Row(
        r"401 |400 .*(api[_ ]key.{0,20}(not valid|invalid)|invalid.{0,20}api[_ ]key)",
        "{label} does not accept {key} for {name}",
        "{renew}",
    ),
    _Row(
        r"(400|422) .*max(_output|_completion)?_tokens.{0,80}(too large|maximum|at most|exceed|less than)",
        "{name} cannot write an answer of this length{quote}",
        'set its limit: models.capabilities."{name}" = {{output = …}}',
    ),
    _Row(
        "403 ",
        "{label} does not let {key} use {name}{quote}",
        "allow the model for that key, or {another}",
    ),
    _Row(
        r"413 |(400|422|500) .*(context[_ ]length|context window|maximum context|prompt is too long|"
        r"too many tokens|token limit|request_too_large|input is too long|exceeds? .{0,30}context|"
        r"maximum .{0,20}tokens)",
        "the text is too long for {name}{window}",
        "use a model with a larger window: nacre writer models",
        PromptTooLongError,
    ),
    _Row(
        "404 .*(response_format|json_schema|structured)",
        "{label} rejected the call to {name}{quote}",
        "{another}",
    ),
    _Row(
        r"404 .*(model|deployment|engine)|400 .*(model.{0,60}(not (found|exist)|does not exist|unknown|invalid|"
        r"not a valid)|unknown model)",
        "{label} has no model {model} ({name})",
        "{pull}",
    ),
    _Row(
        "404 ",
        "{host} does not have this address, or the model {model} ({name}){quote}",
        "check models.providers.{provider}.base_url and the model's name, or {another}",
    ),
)


def refusal(
    target: CallTarget, status: int, detail: str, headers: Mapping[str, str], codes: str = ""
) -> NacreError:
    """Return the error for an unsuccessful HTTP status.

    It contains the provider's message (``detail``) or, without one, the error ``codes``.
    """
    response = f"{status} {codes} {detail}"
    detail = detail or codes
    for row in _ROWS:
        if re.match(row.pattern, response, re.I | re.S):
            words = _words(target, detail)
            return row.kind(row.message.format(**words), hint=row.hint.format(**words))
    if status in _RETRIED_STATUSES or status >= 500:
        return _busy(target, status, detail, headers)
    message = f"{target.provider.label} refused the call to {target.name} with {status}{_quoted(target, detail)}"
    return ModelRefusedError(message, hint=f"check models.providers, or {ANOTHER}")


def _busy(
    target: CallTarget, status: int, detail: str, headers: Mapping[str, str]
) -> ModelUnavailableError:
    state = (
        "limits the rate of calls"
        if status == 429
        else "is overloaded"
        if status in (503, 529)
        else f"fails ({status})"
    )
    message = f"{target.provider.label} {state}, so {target.name} cannot answer now{_quoted(target, detail)}"
    return ModelUnavailableError(
        message,
        hint=f"try again later, or {ANOTHER}",
        after_seconds=_after(headers),
        may_cost=status not in _UNPROCESSED_STATUSES,
    )


def unreachable(target: CallTarget, error: BaseException) -> ModelUnavailableError:
    """Return the error for a connection that failed or was lost."""
    causes = list(_causes(error))
    text = " ".join(str(cause) for cause in causes)
    if "CERTIFICATE" in text.upper():
        return UnexpectedServiceError(
            f"the connection to {target.host} for {target.name} is not secure: the server's certificate was rejected",
            hint="if there is a proxy, set SSL_CERT_FILE to its certificate, or check models.providers",
            retry=False,
            may_cost=False,
        )
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        hint = (
            f"check models.providers.{target.provider.name}.base_url: a local server may need http"
        )
        message = f"{target.host} does not support TLS ({target.name})"
        return UnexpectedServiceError(message, hint=hint, retry=False, may_cost=False)
    has_begun = bool(re.search(r"disconnect|reset|peer closed|incomplete", text, re.I))
    if target.provider.is_here:
        hint = f"start {target.provider.label}, or check models.providers.{target.provider.name}.base_url"
        message = f"nothing answers at {target.host} for {target.name}"
        return ModelUnavailableError(message, hint=hint, retry=has_begun, may_cost=has_begun)
    return ModelUnavailableError(
        f"{target.provider.label} cannot be reached at {target.host} for {target.name}",
        hint="check the network, and HTTPS_PROXY if there is a proxy",
        may_cost=has_begun,
    )


def late(target: CallTarget, seconds: float) -> ModelUnavailableError:
    """Return the error for a call that timed out."""
    return ModelUnavailableError(
        f"{target.name} did not answer within {round(seconds, 1):g} seconds ({target.host})",
        hint="check the network and its proxy, or raise models.timeout_seconds",
    )


def cut_off(target: CallTarget) -> ModelUnavailableError:
    """Return the error for a call that nacre cancelled."""
    return ModelUnavailableError(
        f"the call to {target.name} was cut off", hint="run the command again", retry=False
    )


def ended(target: CallTarget) -> ModelUnavailableError:
    """Return the error for an agent's command that was killed, for example by the system."""
    message = f"the {target.provider.label} command was killed before it answered ({target.name})"
    return ModelUnavailableError(
        message, hint="try again; the system may be short of memory", retry=False
    )


def broken(target: CallTarget) -> ModelUnavailableError:
    """Return the error for an incomplete answer."""
    return ModelUnavailableError(
        f"the answer of {target.name} was cut off ({target.host})", hint="try again later"
    )


def strange(target: CallTarget, kind: str = "", body: bytes = b"") -> ModelUnavailableError:
    """Return the error for a successful response in the wrong format, such as a web page."""
    if "html" in kind or body.lstrip()[:1] == b"<":
        return UnexpectedServiceError(
            f"{target.host} sent a web page instead of {target.provider.label}'s format ({target.name})",
            hint=f"the network may require a sign-in, or models.providers.{target.provider.name}.base_url is wrong",
            retry=False,
            may_cost=False,
        )
    if _is_json(body):
        return UnexpectedServiceError(
            f"the answer of {target.host} is not in {target.provider.label}'s format ({target.name})",
            hint=f"check models.providers.{target.provider.name}.base_url and api",
            retry=False,
        )
    if not body.strip() or body.lstrip()[:1] in (b"{", b"["):
        return broken(target)
    return UnexpectedServiceError(
        f"the answer of {target.host} is not JSON ({target.name})",
        hint=f"check models.providers.{target.provider.name}.base_url, or try again later",
    )


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict | list)
    except (ValueError, RecursionError):
        return False


def no_answer(target: CallTarget, detail: str) -> UnreadableModelError:
    """Return the error for an agent's command that succeeded without a readable answer."""
    label = target.provider.label
    problem = f"the {label} command succeeded, but its answer cannot be read ({target.name})"
    message = f"{problem}{_quoted(target, detail.strip())}"
    return UnreadableModelError(
        message, hint=f"run {label} yourself to see why, or {ANOTHER}", retry=False
    )


def program_failed(target: CallTarget, detail: str, status: int = 0) -> NacreError:
    """Return the error for an agent's failed command, judging by its output and HTTP status."""
    label, name, quote = target.provider.label, target.name, _quoted(target, detail)
    later = f"try again later, or {ANOTHER}"
    if status == 429 or (not status and re.search(_LIMITED, detail, re.I)):
        message = f"{label} has reached a limit ({name}){quote}"
        return ModelUnavailableError(message, hint=later, retry=False, may_cost=False)
    if status == 401 or re.search(_SIGNED_OUT, detail, re.I):
        hint = f"sign in with {label} itself, then run the command again"
        return ModelRefusedError(f"{label} is not signed in ({name}){quote}", hint=hint)
    if status >= 500:
        message = f"{label} is temporarily unavailable ({name}){quote}"
        may_cost = status not in _UNPROCESSED_STATUSES
        return ModelUnavailableError(message, hint=later, may_cost=may_cost)
    if re.search(_OFFLINE, detail, re.I):
        message, hint = f"{label} cannot connect ({name}){quote}", "check the network and its proxy"
        return ModelUnavailableError(message, hint=hint, retry=False, may_cost=False)
    if re.search(r"too long|context", detail, re.I):
        return PromptTooLongError(f"the text is too long for {name}{quote}", hint=ANOTHER)
    if re.search(r"model", detail, re.I):
        return ModelRefusedError(f"{label} returned no answer from {name}{quote}", hint=ANOTHER)
    hint = f"run {label} yourself to see why, or {ANOTHER}"
    return ModelUnavailableError(
        f"the {label} command failed for {name}{quote}", hint=hint, retry=False
    )


def no_such_tool(target: CallTarget, tools: Iterable[str], available: str) -> ModelRefusedError:
    """Return the error for requested tools that an agent's command lacks."""
    names = ", ".join(tools)
    return ModelRefusedError(
        f"{target.provider.label} has no tools named {names} ({target.name})",
        hint=f"tools: {available}",
    )


def declined(target: CallTarget) -> ModelRefusedError:
    """Return the error for a model that declined to answer."""
    return ModelDeclinedError(f"{target.name} declined to answer", hint=ANOTHER)


def _words(target: CallTarget, detail: str) -> dict[str, str]:
    credential, provider = target.credential, target.provider
    kind = "token" if credential and credential.kind == BEARER else "API key"
    key = f"the {kind} in {credential.origin}" if credential else "a call without a key"
    pull = (
        f"ollama pull {target.model}"
        if provider.name == "ollama"
        else f"check its name, or {ANOTHER}"
    )
    return {
        "label": provider.label,
        "name": target.name,
        "model": target.model,
        "another": ANOTHER,
        "key": key,
        "pull": pull,
        "renew": _renew(target),
        "quote": _quoted(target, detail),
        "host": target.host,
        "provider": provider.name,
        "window": f", whose window is {target.window:,} tokens" if target.window else "",
    }


def _renew(target: CallTarget) -> str:
    credential, provider = target.credential, target.provider
    if credential and credential.origin.startswith("$"):
        return f"export {credential.origin[1:]}=NEW_KEY"
    if credential and credential.kind == BEARER:
        is_own_file = credential.origin.endswith(credentials.NAME)
        for method in methods().values():
            if (method.provider, method.kind) == (provider.name, BEARER) and (
                bool(method.login) != is_own_file
            ):
                return method.renew
    return f"nacre writer keys {provider.name}"


def no_key(target: CallTarget) -> ModelRefusedError:
    """Return the error for a provider whose key is missing."""
    provider = target.provider
    other = f", or set {provider.variables[0]}" if provider.variables else ""
    return ModelRefusedError(
        f"{target.name} needs a key for {provider.label}",
        hint=f"nacre writer keys {provider.name}{other}; or {ANOTHER}",
    )


def no_library(target: CallTarget, library: str) -> ModelRefusedError:
    """Return the error for a provider whose library is not installed."""
    message = f"{target.name} needs the library {library!r}, which is not installed"
    return ModelRefusedError(message, hint=install_hint(library))


def no_program(target: CallTarget, program: str) -> ModelRefusedError:
    """Return the error for an agent whose command is not installed."""
    hint = f"install {target.provider.label}, sign in with it, and make sure that {program!r} is on PATH"
    return ModelRefusedError(
        f"{target.name} needs the command {program!r}, which is not installed", hint=hint
    )


def _quoted(target: CallTarget, detail: str) -> str:
    text = " ".join(detail.split())
    if target.credential and target.credential.secret:
        text = text.replace(target.credential.secret, "…")
    text = _KEYS.sub("…", text)
    return f": {shorten(text, _QUOTED_CHARACTERS).rstrip('.')}" if text else ""


def _after(headers: Mapping[str, str]) -> float | None:
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        seconds = headers.get("retry-after", "")
        return max(0.0, float(seconds)) if seconds else None
    except ValueError:  # a date, which providers do not send
        return None


def _causes(error: BaseException | None) -> list[BaseException]:
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes


# -- Answers of a given type -----------------------------------------------------------------------


class Schema(msgspec.Struct, forbid_unknown_fields=True):
    """The base of answers. Their docstrings are part of the schema that models see."""


A = TypeVar("A", bound=msgspec.Struct)

_FENCE = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_SHOWN_CHARACTERS = 4_000
_OTHERWISE = f"{ANOTHER}; or set its abilities in models.capabilities (docs/models.md)"

REPAIR = "\n\nYou answered:\n"
"""Text before the unusable answer when nacre asks the model again."""


def schema_of(answer: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a type's JSON schema, whose root is an object. The type must not have defaults,
    because strict providers require every field.
    """
    schema = msgspec.json.schema(answer)
    definitions = schema.get("$defs", {})
    name = str(schema["$ref"]).rpartition("/")[2] if "$ref" in schema else ""
    root = dict(definitions.pop(name)) if name else schema
    return {**root, "$defs": definitions} if definitions else root


def ask(
    model: LanguageModel,
    prompt: Prompt,
    answer: type[A],
    check: Callable[[A], object] | None = None,
) -> A:
    """Ask a model for an answer of the type ``answer``.

    If the answer is invalid or ``check`` raises UnusableAnswerError, the model gets a second chance
    before that error is raised. Errors of :meth:`LanguageModel.complete` are passed on.
    """
    completion = model.complete(prompt)
    try:
        return _checked(read(completion, answer, model.name), check)
    except UnusableAnswerError as error:
        if completion.is_cut:
            raise
        wrong = error.message.replace(f"the answer of {model.name}", "it")
    previous = completion.text[:_SHOWN_CHARACTERS]
    again = replace(
        prompt,
        text=f"{prompt.text}{REPAIR}{previous}\n\nThat cannot be used: {wrong}. "
        "Answer again, with JSON of the schema and nothing else.",
    )
    return _checked(read(model.complete(again), answer, model.name), check)


def _checked(value: A, check: Callable[[A], object] | None) -> A:
    if check:
        check(value)
    return value


def read(completion: Completion, answer: type[A], model: str) -> A:
    """Parse the answer in a completion, with or without a code fence."""
    text = completion.text.strip()
    fenced = _FENCE.match(text)
    try:
        return json_values.decode(fenced[1] if fenced else text, answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        reason = error if isinstance(error, msgspec.ValidationError) else "it is not JSON"
        problem = (
            "was cut off: it ran out of tokens"
            if completion.is_cut
            else f"does not have the requested form: {reason}"
        )
        raise UnusableAnswerError(f"the answer of {model} {problem}", hint=_OTHERWISE) from error


# -- Cancellable calls -----------------------------------------------------------------------------


R = TypeVar("R")


class TruncatedAnswerError(Exception):
    """The call was cancelled, because the model was closed."""


class Calls:
    """The running calls to a model.

    Cancelling a call releases its caller at once. Its thread ends at the library's timeout, but
    does not keep the process alive.
    """

    def __init__(self) -> None:
        self.closed = Event()
        self._running: set[Future[Any]] = set()

    def run(self, work: Callable[[], R], seconds: float) -> R:
        future: Future[R] = Future()

        def answer() -> None:
            try:
                give = partial(future.set_result, work())
            except BaseException as error:  # noqa: BLE001 - raised in the waiting caller
                give = partial(future.set_exception, error)
            with suppress(InvalidStateError):  # close() has cancelled the call
                give()

        self._running.add(future)  # first: close() must find it
        try:
            if self.closed.is_set():
                raise TruncatedAnswerError
            Thread(target=answer, name="nacre-model", daemon=True).start()
            return future.result(seconds)
        finally:
            self._running.discard(future)

    def close(self) -> None:
        self.closed.set()
        for future in list(self._running):
            with suppress(InvalidStateError):  # the call has just ended
                future.set_exception(TruncatedAnswerError())


# -- Billing of agents' commands -------------------------------------------------------------------
# Calls are paid by subscription, if the user is signed in, or by API key.


def key_of_billing(settings: Settings, provider: Provider) -> str:
    """Return the variable or file with the API key that pays for an agent's calls.

    Returns "" if the user is signed in or has no key.
    """
    tool = COMMANDS.get(provider.api)
    if not provider.subscription or tool is None or credentials.is_signed_in(settings, tool):
        return ""
    named = next((name for name in provider.keys if settings.environ.get(name)), "")
    if named:
        return f"${named}"
    with suppress(UnusableCredentialsError):
        for login in credentials.read_login(settings, tool):
            if login.kind == API_KEY:
                return str(login.path)
    return ""


def absence(settings: Settings, provider: Provider) -> str:
    """Return a notice if the user seems not to be signed in to an agent, otherwise ""."""
    tool = COMMANDS.get(provider.api)
    if tool is None or credentials.is_signed_in(settings, tool):
        return ""
    key = key_of_billing(settings, provider)
    if not key and credentials.may_be_in_keychain(settings, tool):
        return ""
    problem = f"You do not seem to be signed in to {provider.label}"
    return f"{problem}, so calls would be billed to the key in {key}." if key else f"{problem}."
