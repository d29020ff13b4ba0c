"""Channel interfaces, options and lookup, and HTTP and WebSocket clients for all channels."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

import httpx2
import msgspec

from nacre.base.environment import install_hint, is_installed
from nacre.base.files import new_file
from nacre.base.frozen import frozen
from nacre.base.lazy import Module, load
from nacre.base.plugins import load_plugins
from nacre.errors import (
    ChannelRefusedError,
    ChannelUnavailableError,
    InvalidSettingsError,
    NotFoundError,
    UnavailableError,
)
from nacre.llm.credentials import is_loopback
from nacre.settings import Settings
from nacre.values.gateway import Attachment, Chat, Incoming, Limits, Outgoing

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


Fields = Mapping[str, Any]
Tell = Callable[[str], None]


class Inbox(Protocol):
    """Receives the messages of a channel. All methods run in the gateway's event loop."""

    def state(self, name: str) -> str:
        """Return a value that the channel stored, such as an offset or a session to resume, or an empty string."""

    async def receive(self, messages: Sequence[Incoming], **state: str) -> int:
        """Store messages and the channel's state in one transaction. Return the number of new messages.

        Messages that were received before are skipped. A channel must not confirm messages to its
        platform before this returns, because only then are they on disk. This waits while too many
        messages are pending.
        """


class Channel(Protocol):
    """A connection to a platform for one of the owner's accounts.

    A channel only converts messages. The gateway decides who can write, what to answer, and how
    often to retry sending.
    """

    limits: Limits

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled. Reconnect after short interruptions, as the platform documents.

        Raises ChannelUnavailableError if it cannot continue for now (the gateway retries at growing
        intervals), and ChannelRefusedError if retrying does not help, for example with a wrong
        token.
        """

    async def send(self, outgoing: Outgoing) -> str:
        """Send one part and return the platform's message id. The text is within ``limits``.

        Raises ChannelUnavailableError if a retry is possible (with ``retry_after`` if the platform
        specifies it), and ChannelRefusedError if this message can never be delivered.
        """

    async def show_typing(self, chat: Chat) -> None:
        """Show that an answer is being written, for ``limits.typing_seconds``. Failures are ignored."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Write an attachment to a path in one of the gateway's folders.

        Raises ChannelUnavailableError, ChannelRefusedError.
        """

    async def close(self) -> None:
        """Close connections."""


class Listening:
    """The part of a channel that receives messages in HTTP requests while the channel runs."""

    _inbox: Inbox | None = None

    async def run(self, inbox: Inbox) -> None:
        """Wait until cancelled. Meanwhile, messages arrive in HTTP requests."""
        self._inbox = inbox
        try:
            await asyncio.Event().wait()
        finally:
            self._inbox = None


@runtime_checkable
class ServesHttp(Protocol):
    """A channel that its platform calls. The gateway's listener (``gateway.listen``) serves the routes."""

    def routes(self) -> Sequence[BaseRoute]:
        """Return routes below ``/<name of the channel>``. They must check signatures before they read anything else."""


@frozen
class ChannelSetup:
    """The name, option values and resolved secrets for creating a channel.

    ``folder`` is the channel's private folder in the home. ``log`` writes a line to the gateway's
    log.
    """

    name: str
    options: Fields
    secrets: Mapping[str, str] = field(repr=False)
    folder: Path
    log: Tell


@frozen
class Option:
    """An option of a channel kind, in ``gateway.channels.<name>``."""

    name: str
    summary: str
    default: Any = None
    is_secret: bool = False
    is_required: bool = False


@frozen
class ChannelKind:
    """A kind of channel. Third parties register kinds in the entry-point group ``nacre.channels``.

    ``libraries`` are the module names that it needs, and ``extra`` is the extra of nacre that
    installs them. Secret ``options`` are written as ``env:NAME`` or ``file:PATH``. ``identity``
    describes to people what a sender's id looks like.
    """

    name: str
    label: str
    make: Callable[[ChannelSetup], Channel]
    options: tuple[Option, ...] = ()
    libraries: tuple[str, ...] = ()
    extra: str = ""
    identity: str = ""


# ----------------------------------------------------------------------------
# Read untrusted data from a platform. It can have any size and structure.


MAX_TEXT = 20_000
"""Maximum length of a message in characters, more than any platform allows."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_INTEGER_LIMIT = 2**63
_MAX_FILE_NAME = 120
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\:]+")


class SkippedItems:
    """Counts unreadable items and logs the first one."""

    def __init__(self, log: Tell) -> None:
        self.count = 0
        self._tell = log

    def note(self, item: str) -> None:
        self.count += 1
        if self.count == 1:
            self._tell(f"{item} could not be read and was skipped; further ones are not logged")

    def parsed(
        self, item: str, parse: Callable[..., Incoming | None], *args: Any
    ) -> Incoming | None:
        """Return the result of ``parse``, or ``None`` if it raises ValueError."""
        try:
            return parse(*args)
        except ValueError:
            self.note(item)
            return None


def decode(data: str | bytes) -> Any:
    """Decode JSON. Raises ValueError."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError("not JSON") from error


def decode_object(data: str | bytes) -> Fields:
    """Decode a JSON object. Raises ValueError."""
    value = decode(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def text(values: Fields, key: str, most: int = 200) -> str:
    """Return a text, cut to ``most`` characters, or an empty string."""
    value = values.get(key)
    return value[:most].replace("\0", "") if isinstance(value, str) else ""


def number(values: Fields, key: str) -> float | None:
    """Return a finite non-negative number, or ``None``."""
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None


def whole(value: object) -> int | None:
    """Return an integer of at most 64 bits, which can be written as text, or ``None``."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_INTEGER_LIMIT <= value < _INTEGER_LIMIT else None


def moment(values: Fields, key: str) -> datetime | None:
    """Return a time that is given in seconds since 1970, or ``None``."""
    seconds = whole(values.get(key))
    try:
        return None if not seconds else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def file_name(values: Fields, key: str, default: str) -> str:
    """Return a file name without folders and control characters."""
    return _NOT_IN_NAMES.sub("_", text(values, key)).strip(" ._")[-_MAX_FILE_NAME:] or default


def attachment(values: Fields, name: str, media_type: str, *sources: str) -> Attachment:
    """Return an attachment.

    ``name``, ``media_type``, ``sources``: names of fields. The first source with a value is the
    address.
    """
    size = number(values, "size")
    addresses = (text(values, key, 2_000) for key in sources)
    return Attachment(
        file_name(values, name, "file"),
        text(values, media_type, 100),
        None if size is None else int(size),
        next(filter(None, addresses), ""),
    )


def mapping(values: Fields, key: str) -> Fields:
    """Return an object, by default empty."""
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def mappings(values: Fields, key: str, most: int = 50) -> list[Fields]:
    """Return at most ``most`` objects of a list."""
    items = values.get(key)
    return (
        [item for item in items[:most] if isinstance(item, dict)] if isinstance(items, list) else []
    )


def identifier(values: Fields, key: str) -> str:
    """Return a platform id that is safe in a URL. Raises ValueError."""
    value = values.get(key)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(f"{key} is not a valid id")
    return value


# ----------------------------------------------------------------------------
# A platform's HTTP interface, with bounded responses, no redirects, and errors that contain no
# addresses or secrets.


_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_DOWNLOAD_SECONDS = 300.0
_MAX_ANSWER_BYTES = 8 << 20
"""Maximum size of a response, enough for more than a hundred of the longest messages."""

logging.getLogger("httpx2").setLevel(
    logging.WARNING
)  # these libraries log addresses, some of which contain a token


@frozen
class Reply:
    """A response to an HTTP request.

    ``headers``: headers with names in lower case. ``body``: JSON object, or empty. ``rows``:
    objects of a JSON list.
    """

    status: int
    headers: Mapping[str, str]
    body: Fields
    rows: tuple[Fields, ...] = ()

    @property
    def retry_after(self) -> float | None:
        """The number of seconds that the ``Retry-After`` header asks for."""
        try:
            return min(max(0.0, float(self.headers.get("retry-after", ""))), 86_400.0)
        except ValueError:
            return None


class WebApi:
    """A client for one platform. It connects at the first request."""

    def __init__(self, platform: str, address: str, headers: Mapping[str, str]) -> None:
        """Prepare requests to paths below ``address``.

        Plain http is allowed only on this machine. Raises InvalidSettingsError.
        """
        check_address(platform, address)
        self.platform = platform
        self._address = address.rstrip("/")
        self._headers = dict(headers)
        self._client: httpx2.AsyncClient | None = None

    def require_own(self, url: str, owner: str, *hosts: str) -> None:
        """Check that a file is on the API's server or, with https, on one of the ``hosts``.

        Subdomains are included. Raises ChannelRefusedError.
        """
        try:
            address, own = urlsplit(url), urlsplit(self._address)
        except ValueError:
            raise ChannelRefusedError("the address of a file is malformed") from None
        host = f".{address.hostname}"
        is_safe = address.scheme == "https" and any(host.endswith(f".{name}") for name in hosts)
        if not is_safe and (address.scheme, address.netloc) != (own.scheme, own.netloc):
            raise ChannelRefusedError(f"the file is not on {owner}'s servers")

    async def ask(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
    ) -> Reply:
        """Send a request and return the response with any status.

        ``content`` is sent unchanged, and ``json`` is encoded. Raises ChannelUnavailableError if
        there is no response within ``seconds``.
        """
        sent = {**self._headers, **(headers or {})}
        async with self._stream(
            method,
            f"{self._address}{path}",
            seconds,
            json=json,
            content=content,
            params=params,
            headers=sent,
        ) as response:
            data = bytearray()
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > _MAX_ANSWER_BYTES:
                    raise ChannelUnavailableError(
                        f"{self.platform} sent a response larger than {_MAX_ANSWER_BYTES >> 20} MB"
                    )
            return _reply(
                response.status_code,
                {k.lower(): v for k, v in response.headers.items()},
                bytes(data),
            )

    async def download(
        self,
        url: str,
        target: Path,
        most_bytes: int,
        headers: Mapping[str, str],
    ) -> None:
        """Download at most ``most_bytes`` from a URL to a file. The caller has checked the address.

        Raises ChannelUnavailableError, or ChannelRefusedError if the file is missing or too large.
        """
        plain = {
            "accept-encoding": "identity",
            **headers,
        }  # a few compressed bytes can expand beyond the available memory
        async with self._stream("GET", url, _DOWNLOAD_SECONDS, headers=plain) as response:
            if response.status_code >= 500 or response.status_code == 429:
                raise ChannelUnavailableError(
                    f"{self.platform} cannot send the file now (status {response.status_code})"
                )
            if (
                response.status_code != 200
                or response.headers.get("content-encoding", "identity") != "identity"
            ):
                raise ChannelRefusedError(
                    f"{self.platform} refused to send the file (status {response.status_code})"
                )
            with new_file(target, overwrite=True) as file:
                size = 0
                async for piece in response.aiter_raw():
                    size += len(piece)
                    if size > most_bytes:
                        raise ChannelRefusedError(f"the file is larger than {most_bytes} bytes")
                    file.write(piece)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _stream(
        self, method: str, url: str, seconds: float, **more: Any
    ) -> AsyncIterator[httpx2.Response]:
        if self._client is None:
            # no proxy for this machine
            is_local = is_loopback(urlsplit(self._address).hostname or "")
            self._client = httpx2.AsyncClient(trust_env=not is_local, follow_redirects=False)
        timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
        try:
            # the total timeout stops responses that trickle in
            async with (
                asyncio.timeout(seconds),
                self._client.stream(method, url, timeout=timeout, **more) as response,
            ):
                yield response
        except (TimeoutError, httpx2.TimeoutException):
            raise ChannelUnavailableError(f"{self.platform} did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            # the library's message can contain the address, and with it a secret
            raise ChannelUnavailableError(
                f"{self.platform} cannot be reached ({type(error).__name__})"
            ) from None


def check_address(platform: str, address: str) -> None:
    """Raise InvalidSettingsError unless the address is encrypted or on this machine."""
    try:
        scheme, host = urlsplit(address).scheme, urlsplit(address).hostname or ""
    except ValueError:
        scheme, host = "", ""
    if scheme in ("https", "wss") and host:
        return
    if scheme not in ("http", "ws") or not is_loopback(host):
        hint = "https, or http on this machine"
        raise InvalidSettingsError(
            f"the address configured for {platform} is not encrypted", hint=f"use {hint}"
        )


def _reply(status: int, headers: Mapping[str, str], data: bytes) -> Reply:
    try:
        value = decode(data)
    except ValueError:
        value = {}
    if isinstance(value, list):
        return Reply(status, headers, {}, tuple(item for item in value if isinstance(item, dict)))
    return Reply(status, headers, value if isinstance(value, dict) else {})


# ----------------------------------------------------------------------------
# Find kinds of channels by name, including those of third parties, and open the configured
# channels.


GROUP = "nacre.channels"
"""The entry-point group for third-party channels: ``<kind> = "<module>:<kind record>"``."""

BUILTINS: dict[str, str] = {
    "telegram": "nacre_gateway.telegram:KIND",
    "discord": "nacre_gateway.discord:KIND",
    "slack": "nacre_gateway.slack:KIND",
    "webhook": "nacre_gateway.webhook:KIND",
}

COMMON = (
    Option("kind", "kind of channel: telegram, discord, …; by default its name"),
    Option("enabled", "false: do not open the channel", default=True),
    Option("allow", "ids of senders who need no pairing; * admits everyone", default=[]),
    Option(
        "groups",
        "messages answered in groups: mention (those that mention it), all, or off",
        default="mention",
    ),
    Option(
        "hears",
        "group messages seen between answers: paired (of paired senders), or all",
        default="paired",
    ),
    Option(
        "memories",
        "answers that use your memories: owner (to you, in direct chats), all, or none",
        default="owner",
    ),
    Option("model", "model that answers here (provider:model); empty: models.chat", default=""),
    Option("tools", "tools that the agent may use here, by the agent's names", default=[]),
    Option("folder", "folder in which the agent uses tools", default=""),
    Option(
        "instructions", "instructions for the agent here; empty: gateway.instructions", default=""
    ),
    Option(
        "session_hours",
        "hours of silence after which a new conversation begins; 0: 4 hours",
        default=0.0,
    ),
)
"""Options of all kinds of channels."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_RESERVED_NAMES = ("agent", "terminal")
"""Names that no channel can have, because other conversation keys begin with them."""

_MAX_SECRET_CHARACTERS = 10_000


def kinds() -> dict[str, str | ChannelKind]:
    """Return all kinds by name. Third-party kinds are not loaded before :func:`kind_of`."""
    return {**BUILTINS, **load_plugins(GROUP, ChannelKind)}


def kind_of(name: str) -> ChannelKind:
    """Return a kind of channel.

    Raises NotFoundError, or UnavailableError if the kind cannot be loaded or a library is missing.
    """
    entry = kinds().get(name)
    if entry is None:
        raise NotFoundError(
            f"unknown kind of channel {name!r}", hint=f"kinds: {', '.join(kinds())}"
        )
    kind: ChannelKind = load(entry) if isinstance(entry, str) else entry
    for library in kind.libraries:
        if not is_installed(library):
            hint = install_hint(kind.extra) if kind.extra else f"pip install {library}"
            raise UnavailableError(f"{kind.label} needs the library {library}", hint=hint)
    return kind


def options_of(settings: Settings, name: str) -> tuple[ChannelKind, dict[str, Any]]:
    """Return the kind of a configured channel, and the values of all its options.

    Raises InvalidSettingsError, NotFoundError.
    """
    channels: Mapping[str, Fields] = settings["gateway.channels"]
    own = channels.get(name)
    if own is None:
        hint = (
            f"configured: {', '.join(channels)}"
            if channels
            else f"add [gateway.channels.{name}] to {settings.config}"
        )
        raise NotFoundError(f"no channel is called {name!r}", hint=hint)
    if not _NAME.fullmatch(name):
        raise InvalidSettingsError(
            f"a channel cannot be called {name!r}", hint="use lower-case letters, digits, - and _"
        )
    if name in _RESERVED_NAMES or str(own.get("kind", name)) != name in kinds():
        hint = "choose another name: identities and conversation keys contain it"
        raise InvalidSettingsError(f"a channel of this kind cannot be called {name!r}", hint=hint)
    kind = kind_of(str(own.get("kind", name)))
    options = {option.name: option for option in (*COMMON, *kind.options)}
    if unknown := next((key for key in own if key not in options), None):
        raise InvalidSettingsError(
            f"gateway.channels.{name} has no option {unknown!r}",
            hint=f"options: {', '.join(options)}",
        )
    values = {key: own.get(key, option.default) for key, option in options.items()}
    for key, option in options.items():
        if option.is_required and values[key] in (None, ""):
            value = f"env:{name.upper()}_{option.name.upper()}" if option.is_secret else "…"
            raise InvalidSettingsError(
                f"gateway.channels.{name} needs {key}: {option.summary}",
                hint=f'[gateway.channels.{name}] {option.name} = "{value}"',
            )
        if option.default is not None and not isinstance(
            values[key],
            (int, float) if isinstance(option.default, float) else (type(option.default),),
        ):
            raise InvalidSettingsError(
                f"gateway.channels.{name}.{key} cannot be {values[key]!r}", hint=option.summary
            )
    return kind, values


def open_channel(settings: Settings, name: str, log: Tell) -> Channel:
    """Create a channel that is not connected yet. Raises the errors of :func:`options_of`, and UnavailableError."""
    kind, values = options_of(settings, name)
    secrets = {
        option.name: resolve(
            settings, f"gateway.channels.{name}.{option.name}", str(values[option.name])
        )
        for option in kind.options
        if option.is_secret and values[option.name]
    }
    return kind.make(
        ChannelSetup(name, values, secrets, settings.home / "gateway" / "channels" / name, log)
    )


def resolve(settings: Settings, key: str, value: str) -> str:
    """Return a secret. ``env:NAME`` and ``file:PATH`` name its location, and any other value is the secret itself.

    Raises InvalidSettingsError.
    """
    if value.startswith("env:"):
        secret = settings.environ.get(value.removeprefix("env:"), "")
        hint = f"set {value.removeprefix('env:')} in the environment in which the gateway runs"
    elif value.startswith("file:"):
        path = Path(value.removeprefix("file:")).expanduser()
        hint = f"write the secret to {path}"
        try:
            with open(path, encoding="utf-8") as file:
                secret = file.read(_MAX_SECRET_CHARACTERS).strip()
        except OSError as error:
            raise InvalidSettingsError(
                f"{key}: cannot read {path}: {error.strerror}", hint=hint
            ) from error
    else:
        return value
    if not secret:
        raise InvalidSettingsError(f"{key} is empty", hint=hint)
    return secret


# ----------------------------------------------------------------------------
# A platform's WebSocket, which exchanges JSON objects of limited size.


if TYPE_CHECKING:
    import websockets.asyncio.client as client
    import websockets.exceptions as problems
else:
    client = Module("websockets.asyncio.client")
    problems = Module("websockets.exceptions")

_CONNECT_SECONDS_SOCKET = 15.0
_CLOSE_SECONDS = 1.0
"""Maximum time for the closing handshake, which Slack does not always complete."""
_MAX_FRAME_BYTES = 4 << 20
_MAX_QUEUED_FRAMES = 256
"""Maximum number of unread frames. The platform has to wait while there are more."""
_MAX_BREAKS = 5


class SocketClosedError(ChannelUnavailableError):
    """The platform closed its WebSocket, or the connection broke. ``close_code`` is ``None`` if there is no code."""

    def __init__(self, platform: str, close_code: int | None) -> None:
        super().__init__(
            f"{platform} closed the connection{f' (code {close_code})' if close_code else ''}"
        )
        self.close_code = close_code


class Socket:
    """An open WebSocket."""

    def __init__(self, platform: str, connection: client.ClientConnection) -> None:
        self._platform = platform
        self._connection = connection

    async def receive(self) -> Fields:
        """Return the next object. Raises ValueError if a frame contains no object, and SocketClosedError."""
        try:
            frame = await self._connection.recv()
        except problems.ConnectionClosed as error:
            raise SocketClosedError(
                self._platform, error.rcvd.code if error.rcvd else None
            ) from None
        return decode_object(frame)

    async def send(self, value: Fields) -> None:
        try:
            await self._connection.send(msgspec.json.encode(value).decode())
        except problems.ConnectionClosed as error:
            raise SocketClosedError(
                self._platform, error.rcvd.code if error.rcvd else None
            ) from None

    async def close(self, code: int = 1000) -> None:
        await self._connection.close(code)


async def open_socket(platform: str, url: str, ping_seconds: float | None = None) -> Socket:
    """Open a WebSocket. With ``ping_seconds``, ping at this interval, and break if no reply arrives within it.

    Raises ChannelUnavailableError, also if the address is neither encrypted nor on this machine.
    """
    try:
        check_address(platform, url)
    except (InvalidSettingsError, ValueError):
        raise ChannelUnavailableError(
            f"{platform} returned an address that is not encrypted"
        ) from None
    is_local = is_loopback(urlsplit(url).hostname or "")
    try:
        connection = await client.connect(
            url,
            open_timeout=_CONNECT_SECONDS_SOCKET,
            close_timeout=_CLOSE_SECONDS,
            ping_interval=ping_seconds,
            ping_timeout=ping_seconds,
            max_size=_MAX_FRAME_BYTES,
            max_queue=_MAX_QUEUED_FRAMES,
            proxy=None if is_local else True,
        )
    except (OSError, ImportError, problems.WebSocketException) as error:
        # the library's message can contain the address, and with it a ticket; ImportError: no SOCKS
        # support
        raise ChannelUnavailableError(
            f"{platform} cannot be reached ({type(error).__name__})"
        ) from None
    return Socket(platform, connection)


@dataclass(slots=True)
class Breaks:
    """Counts connections in a row that end soon after they begin.

    The first connection is replaced immediately, and later connections after a growing ``pause`` in
    seconds. A connection that lasted ``steady`` seconds or received data does not count.
    """

    platform: str
    pause: float
    steady: float
    count: int = 0

    async def ended(self, seconds: float, *, was_useful: bool) -> None:
        """Count a connection that ended after ``seconds``. Raises ChannelUnavailableError after too many."""
        self.count = 0 if was_useful or seconds > self.steady else self.count + 1
        if self.count > _MAX_BREAKS:
            raise ChannelUnavailableError(
                f"{self.platform} keeps closing connections soon after they begin"
            )
        await asyncio.sleep(self.pause * max(self.count - 1, 0))
