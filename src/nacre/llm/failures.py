"""What providers say when they do not answer, in nacre's words: one table for all of them."""

from __future__ import annotations

import hashlib
import json
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from threading import Event, Lock, Thread
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from nacre.base import json as json_values
from nacre.base.environment import install_hint
from nacre.base.text import shorten
from nacre.errors import (
    AnswerUnusable,
    CredentialsUnusable,
    ModelDeclined,
    ModelRefused,
    ModelUnavailable,
    ModelUnreadable,
    NacreError,
    PromptTooLong,
    UnexpectedService,
)
from nacre.llm import credentials
from nacre.llm.credentials import (
    API_KEY,
    BEARER,
    COMMANDS,
    Credential,
    Provider,
    is_loopback,
    methods,
)
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.values.models import Completion, Prompt, Tokens
from nacre.values.session import Task

_SAID_CHARACTERS = 200
_KEYS = re.compile(r"\b(?:sk|pk|gsk|xai|key|AIza)[-_]?[\w*.…-]{12,}")
_RETRIED = frozenset({408, 409, 425, 429})
_UNREAD = _RETRIED | {503, 529}
"""A provider that says so has not begun to work."""
_LIMITED = (
    r"rate.?limit|usage limit|limit reached|quota|exhausted|(hit|reached) your .{0,60}limit|"
    r"out of .{0,20}(usage|credits)|too many requests|overloaded|\b429\b|\b529\b"
)
_SIGNED_OUT = r"\b(?:log|sign|logged|signed)[ -]?(?:in|out)\b|\bapi key|unauthori[sz]ed|authenticat|\b401\b|credentials"
_OFFLINE = r"\bconnect(ion|ing)?\b|\bnetwork\b|disconnected"
"""What agents' commands say in words where a limit is reached, where nobody is signed in, and where nobody answers."""
ANOTHER = "choose another model: nacre setup, or nacre writer set for the writer"


@dataclass(frozen=True, slots=True)
class CallTarget:
    """Whom a call went to, as its errors name it."""

    provider: Provider
    model: str
    credential: Credential | None = None
    window: int = 0

    @property
    def name(self) -> str:
        """``provider:model``."""
        return f"{self.provider.name}:{self.model}"

    @property
    def host(self) -> str:
        """The machine that was asked; a name and password in its address are not told."""
        return urlsplit(self.provider.base_url).netloc.rpartition("@")[2] or self.provider.label

    @property
    def is_here(self) -> bool:
        """Whether that is this machine."""
        return is_loopback(urlsplit(self.provider.base_url).hostname or "")


@dataclass(frozen=True, slots=True)
class _Row:
    """Statuses (none: any) and words that a refusal has, and what is told then."""

    statuses: tuple[int, ...]
    words: str
    message: str
    hint: str
    kind: Callable[..., NacreError] = ModelRefused


_ROWS = (
    _Row(
        (402,), "", "{label} has no credit left for {name}", "add credit at {label}, or {another}"
    ),
    _Row(
        (400, 403, 429),
        r"insufficient[_ ](quota|balance|credit)|credit balance|billing_hard_limit|out of credits",
        "{label} has no credit left for {name}",
        "add credit at {label}, or {another}",
    ),
    _Row((401,), "", "{label} does not accept {key} for {name}", "{renew}"),
    _Row(
        (400,),
        r"api[_ ]key.{0,20}(not valid|invalid)|invalid.{0,20}api[_ ]key",
        "{label} does not accept {key} for {name}",
        "{renew}",
    ),
    _Row(
        (400, 422),
        r"max(_output|_completion)?_tokens.{0,80}(too large|maximum|at most|exceed|less than)",
        "{name} does not write so long an answer{said}",
        'tell its limit: models.capabilities."{name}" = {{output = …}}',
    ),
    _Row(
        (403,),
        "",
        "{label} does not let {key} use {name}{said}",
        "allow the model for that key, or {another}",
    ),
    _Row(
        (400, 413, 422, 500),
        r"context[_ ]length|context window|maximum context|prompt is too long|too many tokens|token limit|"
        r"request_too_large|input is too long|exceeds? .{0,30}context|maximum .{0,20}tokens",
        "the text is too long for {name}{window}",
        "a model with a larger window reads it whole: nacre models",
        PromptTooLong,
    ),
    _Row(
        (413,),
        "",
        "the text is too long for {name}{window}",
        "a model with a larger window reads it whole: nacre models",
        PromptTooLong,
    ),
    _Row(
        (404,),
        "response_format|json_schema|tool_choice|structured",
        "{label} refuses the call of {name}{said}",
        "{another}",
    ),
    _Row((404,), "model|deployment|engine", "{label} has no model {model} ({name})", "{pull}"),
    _Row(
        (404,),
        "",
        "{host} knows no such address, or no model {model} ({name}){said}",
        "check models.providers.{provider}.base_url and the model's name, or {another}",
    ),
    _Row(
        (400,),
        r"model.{0,60}(not (found|exist)|does not exist|unknown|invalid|not a valid)|unknown model",
        "{label} has no model {model} ({name})",
        "{pull}",
    ),
)


def refusal(
    asked: CallTarget, status: int, said: str, headers: Mapping[str, str], codes: str = ""
) -> NacreError:
    """The error for a status that is no success. ``said`` is what the provider says of it, ``codes`` are for programs:
    they are looked at, and not told where there are words."""
    whole = f"{codes} {said}"
    said = said or codes
    for row in _ROWS:
        if (not row.statuses or status in row.statuses) and re.search(
            row.words, whole, re.I | re.S
        ):
            return row.kind(_filled(row.message, asked, said), hint=_filled(row.hint, asked, said))
    if status in _RETRIED or status >= 500:
        return _busy(asked, status, said, headers)
    message = f"{asked.provider.label} refuses the call of {asked.name} with {status}{_quoted(asked, said)}"
    return ModelRefused(message, hint=f"check models.providers, or {ANOTHER}")


def _busy(
    asked: CallTarget, status: int, said: str, headers: Mapping[str, str]
) -> ModelUnavailable:
    told = (
        "asks for fewer calls"
        if status == 429
        else "is overloaded"
        if status in (503, 529)
        else f"fails ({status})"
    )
    message = (
        f"{asked.provider.label} {told}: {asked.name} does not answer now{_quoted(asked, said)}"
    )
    return ModelUnavailable(
        message,
        hint=f"try again later, or {ANOTHER}",
        after_seconds=_after(headers),
        may_cost=status not in _UNREAD,
    )


def unreachable(asked: CallTarget, error: BaseException) -> ModelUnavailable:
    """The error for a connection that was not made, or broke."""
    causes = list(_causes(error))
    told = " ".join(str(cause) for cause in causes)
    if "CERTIFICATE" in told.upper():
        return UnexpectedService(
            f"the connection to {asked.host} for {asked.name} cannot be trusted: its certificate is not accepted",
            hint="a proxy may be in between: set SSL_CERT_FILE to its certificate, or check models.providers",
            retry=False,
            may_cost=False,
        )
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        hint = f"check models.providers.{asked.provider.name}.base_url: a server on a machine of yours may want http"
        message = f"{asked.host} does not speak TLS ({asked.name})"
        return UnexpectedService(message, hint=hint, retry=False, may_cost=False)
    has_begun = _broke(told)
    if asked.is_here:
        hint = f"start {asked.provider.label}, or check models.providers.{asked.provider.name}.base_url"
        message = f"nothing answers at {asked.host} for {asked.name}"
        return ModelUnavailable(message, hint=hint, retry=has_begun, may_cost=has_begun)
    return ModelUnavailable(
        f"{asked.provider.label} cannot be reached at {asked.host} for {asked.name}",
        hint="check the network, and HTTPS_PROXY if there is a proxy",
        may_cost=has_begun,
    )


def _broke(told: str) -> bool:
    return bool(re.search(r"disconnect|reset|peer closed|incomplete", told, re.I))


def late(asked: CallTarget, seconds: float) -> ModelUnavailable:
    """The error for an answer that did not come in time."""
    return ModelUnavailable(
        f"{asked.name} did not answer within {round(seconds, 1):g} seconds ({asked.host})",
        hint="check the network and its proxy, or raise models.timeout_seconds",
    )


def cut_off(asked: CallTarget) -> ModelUnavailable:
    """The error for a call that nacre itself ended."""
    return ModelUnavailable(
        f"the call of {asked.name} was cut off", hint="run the command again", retry=False
    )


def ended(asked: CallTarget) -> ModelUnavailable:
    """The error for an agent's command that somebody else ended, or the system."""
    message = f"the command of {asked.provider.label} was ended from outside before it answered ({asked.name})"
    return ModelUnavailable(
        message, hint="try again; where memory is short, the system ends programs", retry=False
    )


def broken(asked: CallTarget) -> ModelUnavailable:
    """The error for an answer of which only a part came."""
    return ModelUnavailable(
        f"the answer of {asked.name} broke off ({asked.host})", hint="try again later"
    )


def strange(asked: CallTarget, kind: str = "", body: bytes = b"") -> ModelUnavailable:
    """The error for a success that is not the provider's: another's page, bytes that are no JSON."""
    if "html" in kind or body.lstrip()[:1] == b"<":
        return UnexpectedService(
            f"{asked.host} answers with a web page, not as {asked.provider.label} does ({asked.name})",
            hint=f"a network may want a sign-in, or models.providers.{asked.provider.name}.base_url is wrong",
            retry=False,
            may_cost=False,
        )
    if _is_json(body):
        return UnexpectedService(
            f"{asked.host} answers in another form than {asked.provider.label} does ({asked.name})",
            hint=f"check models.providers.{asked.provider.name}.base_url and api",
            retry=False,
        )
    if not body.strip() or body.lstrip()[:1] in (b"{", b"["):
        return broken(asked)
    return UnexpectedService(
        f"{asked.host} answers with something that is no JSON ({asked.name})",
        hint=f"check models.providers.{asked.provider.name}.base_url, or try again later",
    )


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict | list)
    except (ValueError, RecursionError):
        return False


def no_answer(asked: CallTarget, said: str) -> ModelUnreadable:
    """The error for an agent's command that ends well and does not answer in its form: asked again it would do the
    same.
    """
    label = asked.provider.label
    told = f"the command of {label} ends well, and its answer cannot be read ({asked.name})"
    message = f"{told}{_quoted(asked, said.strip())}"
    return ModelUnreadable(
        message, hint=f"run {label} by hand to see why, or {ANOTHER}", retry=False
    )


def program_failed(asked: CallTarget, said: str, status: int = 0) -> NacreError:
    """The error for an agent's command that failed, by the status that its provider gave, if it tells, and by what it
    says."""
    label = asked.provider.label
    if status == 429 or (not status and re.search(_LIMITED, said, re.I)):
        message = f"{label} answers no more for now ({asked.name}){_quoted(asked, said)}"
        return ModelUnavailable(
            message, hint=f"try again later, or {ANOTHER}", retry=False, may_cost=False
        )
    if status == 401 or re.search(_SIGNED_OUT, said, re.I):
        message = (
            f"{label} is not signed in, and does not answer for {asked.name}{_quoted(asked, said)}"
        )
        return ModelRefused(
            message, hint=f"sign in with {label} itself, then run the command again"
        )
    if status >= 500:
        message = f"{label} fails for now ({asked.name}){_quoted(asked, said)}"
        return ModelUnavailable(
            message, hint=f"try again later, or {ANOTHER}", may_cost=status not in _UNREAD
        )
    if re.search(_OFFLINE, said, re.I):
        message = f"{label} reaches nobody for {asked.name}{_quoted(asked, said)}"
        return ModelUnavailable(
            message, hint="check the network and its proxy", retry=False, may_cost=False
        )
    if re.search(r"too long|context", said, re.I):
        return PromptTooLong(
            f"the text is too long for {asked.name}{_quoted(asked, said)}", hint=ANOTHER
        )
    if re.search(r"model", said, re.I):
        return ModelRefused(
            f"{label} has no answer of {asked.name}{_quoted(asked, said)}", hint=ANOTHER
        )
    message = f"the command of {label} failed for {asked.name}{_quoted(asked, said)}"
    return ModelUnavailable(
        message, hint=f"run {label} by hand to see why, or {ANOTHER}", retry=False
    )


def no_such_tool(asked: CallTarget, tools: Iterable[str], known: str) -> ModelRefused:
    """The error for tools that an agent's command has not."""
    told = ", ".join(tools)
    return ModelRefused(
        f"{asked.provider.label} has no tools called {told} ({asked.name})", hint=f"tools: {known}"
    )


def declined(asked: CallTarget) -> ModelRefused:
    """The error for a model that says it does not want to answer."""
    return ModelDeclined(f"{asked.name} declined to answer", hint=ANOTHER)


def _filled(text: str, asked: CallTarget, said: str) -> str:
    credential, provider = asked.credential, asked.provider
    kind = "token" if credential and credential.kind == BEARER else "API key"
    key = f"the {kind} in {credential.origin}" if credential else "a call without a key"
    pull = (
        f"ollama pull {asked.model}"
        if provider.name == "ollama"
        else f"check its name, or {ANOTHER}"
    )
    return text.format(
        label=provider.label,
        name=asked.name,
        model=asked.model,
        another=ANOTHER,
        key=key,
        pull=pull,
        renew=_renew(asked),
        said=_quoted(asked, said),
        host=asked.host,
        provider=provider.name,
        window=f", whose window is {asked.window:,} tokens" if asked.window else "",
    )


def _renew(asked: CallTarget) -> str:
    """The command that gives nacre another key."""
    credential, provider = asked.credential, asked.provider
    if credential and credential.origin.startswith("$"):
        return f"export {credential.origin[1:]}=NEW_KEY"
    if credential and credential.kind == BEARER:
        is_kept = credential.origin == "keyring" or credential.origin.endswith(credentials.NAME)
        own = [
            one
            for one in methods().values()
            if one.provider == provider.name and one.kind == BEARER
        ]
        return next(
            (one.renew for one in own if bool(one.login) != is_kept),
            f"nacre auth set {provider.name}",
        )
    return f"nacre auth set {provider.name}"


def _where_key(provider: Provider) -> str:
    return f"nacre auth set {provider.name}" + (
        f", or set {provider.variables[0]}" if provider.variables else ""
    )


def no_key(asked: CallTarget) -> ModelRefused:
    """The error for a provider that wants a key where there is none."""
    return ModelRefused(
        f"there is no key for {asked.provider.label}, which {asked.name} needs",
        hint=f"{_where_key(asked.provider)}; nacre setup chooses another model",
    )


def no_library(asked: CallTarget, library: str) -> ModelRefused:
    """The error for a maker's library that is not installed."""
    message = f"the library {library!r} is not installed, which {asked.name} needs"
    return ModelRefused(message, hint=install_hint(library))


def no_program(asked: CallTarget, program: str) -> ModelRefused:
    """The error for an agent's command that is not installed."""
    hint = f"install {asked.provider.label}, sign in with it once, and have {program!r} on PATH"
    return ModelRefused(
        f"the command {program!r} is not installed, which {asked.name} needs", hint=hint
    )


def _quoted(asked: CallTarget, said: str) -> str:
    """What the provider says, on one line, without anything that looks like a key."""
    text = " ".join(said.split())
    if asked.credential and asked.credential.secret:
        text = text.replace(asked.credential.secret, "…")
    text = _KEYS.sub("…", text)
    return f": {shorten(text, _SAID_CHARACTERS).rstrip('.')}" if text else ""


def _after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider asks to wait: ``retry-after-ms``, or ``retry-after`` as seconds or as a date."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        told = headers.get("retry-after", "")
        return max(0.0, float(told)) if told else None
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, (when - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, TypeError, ValueError):
        return None


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


# ----------------------------------------------------------------------------
# Ask a model for an answer of a shape, and take no other.


A = TypeVar("A", bound=msgspec.Struct)

_FENCE = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_SHOWN_CHARACTERS = 4_000
_OTHERWISE = "choose another model: nacre setup; or say what this one can do, in models.capabilities (docs/models.md)"

REPAIR = "\n\nYou answered:\n"
"""What stands between a prompt and the answer that is sent back with it."""


def schema_of(answer: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a type, its root an object. Strict providers want each field required: give no defaults."""
    whole = msgspec.json.schema(answer)
    definitions = whole.get("$defs", {})
    name = str(whole["$ref"]).rpartition("/")[2] if "$ref" in whole else ""
    root = dict(definitions.pop(name)) if name else whole
    return {**root, "$defs": definitions} if definitions else root


def ask(
    model: LanguageModel,
    prompt: Prompt,
    answer: type[A],
    check: Callable[[A], object] | None = None,
) -> A:
    """A model's answer to a prompt, of the type its schema was made from.

    An answer of another shape, or for which ``check`` raises AnswerUnusable, is sent back once, with what is wrong.
    Raises AnswerUnusable, and what :meth:`LanguageModel.complete` raises.
    """
    completion = model.complete(prompt)
    try:
        return _checked(read(completion, answer, model.name), check)
    except AnswerUnusable as error:
        if completion.is_cut:
            raise
        wrong = error.message.replace(_answer_of(model.name), "it")
    again = replace(prompt, text=_repair(prompt, completion, wrong))
    return _checked(read(model.complete(again), answer, model.name), check)


def _checked(found: A, check: Callable[[A], object] | None) -> A:
    if check:
        check(found)
    return found


def read(completion: Completion, answer: type[A], model: str) -> A:
    """The answer in the completion of a model, out of its code fence if it has one. Raises AnswerUnusable."""
    text = completion.text.strip()
    fenced = _FENCE.match(text)
    try:
        return json_values.parse_json_values(fenced[1] if fenced else text, answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise AnswerUnusable(
            f"{_answer_of(model)} {_wrong(completion, error)}", hint=_OTHERWISE
        ) from error


def _answer_of(model: str) -> str:
    return f"the answer of {model}"


def _wrong(completion: Completion, error: Exception) -> str:
    if completion.is_cut:
        return "was cut off: it ran out of tokens"
    told = error if isinstance(error, msgspec.ValidationError) else "it is no JSON"
    return f"is not of the shape asked for: {told}"


def _repair(prompt: Prompt, completion: Completion, wrong: str) -> str:
    said = completion.text[:_SHOWN_CHARACTERS]
    return (
        f"{prompt.text}{REPAIR}{said}\n\nThat cannot be used: {wrong}. "
        "Answer again, with JSON of the schema and nothing else."
    )


# ----------------------------------------------------------------------------
# Calls that can be cut off: each runs in a thread of its own, and whoever asked waits no longer than
# its time.


R = TypeVar("R")


class CutOff(Exception):  # noqa: N818 - named for what is the case
    """The model was closed while the call ran, or before it began."""


class _Call(Generic[R]):
    def __init__(self, work: Callable[[], R]) -> None:
        self.done = Event()
        self.answer: R
        self.error: BaseException | None = None
        self.is_cut = False
        self._work = work

    def run(self) -> None:
        try:
            self.answer = self._work()
        except BaseException as error:  # noqa: BLE001 - carried over to whoever waits, and raised there
            self.error = error
        self.done.set()


class Calls:
    """The calls of one model. A library that waits for bytes cannot be woken, so that its thread is left behind.

    It ends by the library's own timeout, and holds up neither an answer nor the end of the process.
    """

    def __init__(self) -> None:
        self.closed = Event()
        self._running: set[_Call] = set()  # type: ignore[type-arg]
        self._lock = Lock()

    def run(self, work: Callable[[], R], seconds: float) -> R:
        """What ``work`` returns or raises. Raises TimeoutError after ``seconds``, CutOff when the model is closed."""
        call = _Call(work)
        with self._lock:
            if self.closed.is_set():
                raise CutOff
            self._running.add(call)
        try:
            Thread(target=call.run, name="nacre-model", daemon=True).start()
            if not call.done.wait(seconds):
                raise TimeoutError
        finally:
            with self._lock:
                self._running.discard(call)
        if call.is_cut:  # whatever the work came to: what it ran on was taken from it
            raise CutOff
        if call.error is not None:
            raise call.error
        return call.answer

    def close(self) -> None:
        """Cut off what runs."""
        with self._lock:
            self.closed.set()
            for call in self._running:
                call.is_cut = True
                call.done.set()


# ----------------------------------------------------------------------------
# A model that is not asked the same twice.


MOST_CHARACTERS = 200_000
"""Of an answer that is kept."""


class Answers(Protocol):
    """Where answers are kept, by a key."""

    def find(self, key: str) -> str | None:
        """The answer that is kept."""

    def keep(self, key: str, model: str, answer: str) -> None:
        """Keep an answer, if that is allowed."""

    def drop(self, key: str) -> None:
        """Keep it no longer."""


class Cached:
    """Another model; a prompt that it answered lately is answered from what was kept. Implements LanguageModel.

    The same is asked where model, version, schema and every text are the same. What was cut off, or too long, is not
    kept; nor is what had to be mended: then the answer before it goes, too. Trials of a model (Task.TEST) reach it
    always, and so do conversations (Task.CHAT), where the same may be asked again and be answered anew.
    """

    def __init__(self, model: LanguageModel, answers: Answers) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._answers = answers

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises."""
        if prompt.task in (Task.TEST, Task.CHAT):
            return self._model.complete(prompt)
        before, repair, _ = prompt.text.rpartition(REPAIR)
        if repair:
            self._answers.drop(key_of(self.name, replace(prompt, text=before)))
            return self._model.complete(prompt)
        key = key_of(self.name, prompt)
        kept = self._answers.find(key)
        if kept is not None:
            return Completion(kept, Tokens(), self.name, is_repeated=True)
        completion = self._model.complete(prompt)
        if not completion.is_cut and len(completion.text) <= MOST_CHARACTERS:
            self._answers.keep(key, self.name, completion.text)
        return completion

    def close(self) -> None:
        """Close the model."""
        self._model.close()


def key_of(model: str, prompt: Prompt) -> str:
    """A hash of all that decides an answer."""
    asked = (
        model,
        prompt.task.value,
        prompt.version,
        prompt.name,
        prompt.system,
        prompt.shared,
        prompt.text,
        prompt.answer,
        prompt.output_tokens,
    )
    return hashlib.blake2b(
        json.dumps(asked, sort_keys=True, default=dict).encode(), digest_size=20
    ).hexdigest()


# ----------------------------------------------------------------------------
# What pays the calls of an agent's own command: the subscription of whoever is signed in, or an API
# key.


def key_of_billing(settings: Settings, provider: Provider) -> str:
    """Where the API key is that an agent's command would be billed by; empty where somebody is signed in, or no key is
    found.
    """
    tool = COMMANDS.get(provider.api)
    if not provider.subscription or tool is None or credentials.is_signed_in(settings, tool):
        return ""
    named = next((name for name in provider.keys if settings.environ.get(name)), "")
    if named:
        return f"${named}"
    with suppress(CredentialsUnusable):
        return next(
            (
                str(one.path)
                for one in credentials.read_logins(settings, tool)
                if one.kind == API_KEY
            ),
            "",
        )
    return ""


def absence(settings: Settings, provider: Provider) -> str:
    """What is told of an agent's command to which nobody seems to be signed in; empty where somebody is, or may be."""
    tool = COMMANDS.get(provider.api)
    if tool is None or credentials.is_signed_in(settings, tool):
        return ""
    key = key_of_billing(settings, provider)
    if not key and credentials.may_be_in_keychain(settings, tool):
        return ""
    told = f"Nobody seems to be signed in to {provider.label}"
    return f"{told}, which would be billed to the key in {key}." if key else f"{told}."


def environment_of(settings: Settings, provider: Provider) -> dict[str, str]:
    """The environment of an agent's command: without API keys where a subscription pays, which they would go before."""
    kept = dict(settings.environ)
    if provider.subscription and not key_of_billing(settings, provider):
        for name in provider.keys:
            kept.pop(name, None)
    return kept
