"""Interfaces and options of channels, and the HTTP and WebSocket clients that they share."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import httpx2

from nacre.base import json
from nacre.base.frozen import frozen
from nacre.base.lazy import Module, load
from nacre.base.plain import mapping, objects_in
from nacre.base.plugins import load_plugins
from nacre.errors import ChannelUnavailableError, InvalidSettingsError, NotFoundError
from nacre.llm.credentials import is_local
from nacre.settings import Settings
from nacre.values.gateway import Attachment, Chat, Incoming, Limits, Outgoing

Fields = Mapping[str, Any]
Tell = Callable[[str], None]


class Inbox(Protocol):
    """A receiver of a channel's messages. Call its methods in the gateway's event loop."""

    def state(self, name: str) -> str:
        """Return a value that the channel has stored, such as an offset, or an empty string."""

    async def receive(self, messages: Sequence[Incoming], **state: str) -> None:
        """Store new messages and the channel's state in one transaction.

        A channel must not confirm messages to its platform before this returns.
        """


class Channel(Protocol):
    """A connection to a chat platform, which only converts messages.

    The gateway decides who may write, what to answer, and when to retry.
    """

    limits: Limits

    async def run(self, inbox: Inbox) -> None:
        """Receive messages until the connection ends.

        Raises ChannelRefusedError if a retry is useless, for example with a wrong token, and
        otherwise ChannelUnavailableError.
        """

    async def send(self, outgoing: Outgoing) -> str:
        """Send a message within ``limits``, and return the id that the platform gives it.

        Raises ChannelRefusedError if it can never be delivered, and otherwise
        ChannelUnavailableError.
        """

    async def show_typing(self, chat: Chat) -> None:
        """Show a typing indicator for ``limits.typing_seconds``. The gateway ignores errors."""

    async def close(self) -> None:
        """Close all connections."""


@frozen
class ChannelSetup:
    """The arguments for creating a channel. ``log`` writes a line to the gateway's log."""

    name: str
    options: Fields
    secrets: Mapping[str, str] = field(repr=False)
    log: Tell


@frozen
class Option:
    """An option of a channel in the table ``gateway.channels.<name>``."""

    name: str
    summary: str
    default: Any = None
    is_secret: bool = False
    is_required: bool = False
    choices: tuple[str, ...] = ()


@frozen
class ChannelKind:
    """A kind of channel, which packages register in the entry-point group ``nacre.channels``.

    Secret options can be given as ``env:NAME`` or ``file:PATH``.
    """

    name: str
    make: Callable[[ChannelSetup], Channel]
    options: tuple[Option, ...] = ()


# ----------------------------------------------------------------------------
# Parsing of untrusted data from platforms.


MAX_TEXT = 20_000
"""Maximum length of a message in characters. No platform allows longer messages."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_INTEGER_LIMIT = 2**63
_MAX_FILE_NAME = 120
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\:]+")


class SkippedItems:
    """A counter of unreadable messages and frames, which logs the first one."""

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
        """Return the result of ``parse``, or count the item and return ``None`` on ValueError."""
        try:
            return parse(*args)
        except ValueError:
            self.note(item)
            return None


def decode_object(data: str | bytes) -> Fields:
    """Decode a JSON object. Raises ValueError."""
    value = json.parse(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def text(values: Fields, key: str, most: int = 200) -> str:
    """Return a string field, cut to ``most`` characters, or an empty string."""
    value = values.get(key)
    return value[:most].replace("\0", "") if isinstance(value, str) else ""


def number(values: Fields, key: str) -> float | None:
    """Return a numeric field, or ``None`` if it is negative or too large."""
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None


def integer(value: object) -> int | None:
    """Convert an integer or decimal string, or return ``None`` if it exceeds 64 bits."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_INTEGER_LIMIT <= value < _INTEGER_LIMIT else None


def moment(seconds: float | None) -> datetime | None:
    """Convert seconds since 1970 to a time, or return ``None`` if they are out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (OverflowError, OSError, ValueError):
        return None


def attachment(
    values: Fields,
    name: str,
    media_type: str,
    size: str = "size",
    defaults: tuple[str, str] = ("file", ""),
) -> Attachment:
    """Convert an attachment from the given fields, without folders in its name."""
    plain = _NOT_IN_NAMES.sub("_", text(values, name)).strip(" ._")[-_MAX_FILE_NAME:]
    return Attachment(
        plain or defaults[0],
        text(values, media_type, 100) or defaults[1],
        integer(values.get(size)),
    )


def identifier(values: Fields, key: str) -> str:
    """Return a field that is a platform's id. Raises ValueError unless it is safe in a URL."""
    value = values.get(key)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(f"{key} is not a valid id")
    return value


# ----------------------------------------------------------------------------
# HTTP.


_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_MAX_ANSWER_BYTES = 8 << 20
"""Maximum size of a response, which can contain a hundred of the longest messages."""

logging.getLogger("httpx2").setLevel(
    logging.WARNING
)  # these libraries log addresses, some of which contain a token


@frozen
class Reply:
    """An HTTP response.

    ``body`` is its JSON object, or ``rows`` the objects in its JSON list. ``retry_after`` is in
    seconds.
    """

    status: int
    body: Fields
    rows: tuple[Fields, ...]
    retry_after: float | None


class WebApi:
    """An HTTP client for one platform.

    It limits the size of responses, follows no redirects, and keeps addresses and secrets out of
    errors.
    """

    def __init__(self, platform: str, address: str, headers: Mapping[str, str]) -> None:
        """Create a client for paths below ``address``.

        Raises InvalidSettingsError for plain http to another machine.
        """
        check_address(platform, address)
        self.platform = platform
        self._address = address.rstrip("/")
        self._headers = dict(headers)
        self._client: httpx2.AsyncClient | None = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
    ) -> Reply:
        """Send a request and return the response, whatever its status.

        Raises ChannelUnavailableError if there is no response within ``seconds``.
        """
        if self._client is None:
            # no proxy for this machine
            self._client = httpx2.AsyncClient(
                trust_env=not is_local(self._address), follow_redirects=False
            )
        data = bytearray()
        try:
            # the total timeout stops responses that trickle in
            async with (
                asyncio.timeout(seconds),
                self._client.stream(
                    method,
                    f"{self._address}{path}",
                    timeout=httpx2.Timeout(seconds, connect=_CONNECT_SECONDS),
                    json=body,
                    params=params,
                    headers={**self._headers, **(headers or {})},
                ) as response,
            ):
                async for piece in response.aiter_bytes():
                    data += piece
                    if len(data) > _MAX_ANSWER_BYTES:
                        raise ChannelUnavailableError(
                            f"{self.platform} sent a response larger than {_MAX_ANSWER_BYTES >> 20} MB"
                        )
        except (TimeoutError, httpx2.TimeoutException):
            raise ChannelUnavailableError(f"{self.platform} did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            # the library's message can contain the address, and with it a secret
            raise ChannelUnavailableError(
                f"{self.platform} cannot be reached ({type(error).__name__})"
            ) from None
        value = seconds_to_wait = None
        with suppress(ValueError):
            value = json.parse(bytes(data))
        with suppress(ValueError):
            header = response.headers.get("retry-after", "")
            seconds_to_wait = min(max(0.0, float(header)), 86_400.0)
        rows = tuple(objects_in(value))
        return Reply(response.status_code, mapping(value), rows, seconds_to_wait)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def check_address(platform: str, address: str) -> None:
    """Raise InvalidSettingsError unless the address is encrypted or on this machine."""
    with suppress(ValueError):
        url = urlsplit(address)
        is_encrypted = url.scheme in ("https", "wss") and url.hostname
        if is_encrypted or (url.scheme in ("http", "ws") and is_local(address)):
            return
    raise InvalidSettingsError(
        f"the address configured for {platform} is not encrypted",
        hint="use https, or http on this machine",
    )


# ----------------------------------------------------------------------------
# Configured channels.


GROUP = "nacre.channels"
"""The entry-point group for channels of other packages, for example ``irc = "my_irc:KIND"``."""

BUILTINS: dict[str, str] = {
    "telegram": "nacre_gateway.telegram:KIND",
    "discord": "nacre_gateway.discord:KIND",
    "slack": "nacre_gateway.slack:KIND",
}

COMMON = (
    Option("kind", "kind of channel: telegram, discord, …; by default its name"),
    Option("enabled", "false: do not open the channel", default=True),
    Option("allow", "ids of senders who need no pairing; * admits everyone", default=[]),
    Option(
        "groups",
        "messages answered in groups: mention (those that mention it), all, or off",
        default="mention",
        choices=("mention", "all", "off"),
    ),
    Option(
        "hears",
        "group messages seen between answers: paired (of paired senders), or all",
        default="paired",
        choices=("paired", "all"),
    ),
    Option(
        "memories",
        "answers that use your memories: owner (to you, in direct chats), all, or none",
        default="owner",
        choices=("owner", "all", "none"),
    ),
    Option("model", "model that answers here (provider:model); empty: models.chat", default=""),
    Option("tools", "tools that the agent may use here, by the agent's names", default=[]),
    Option("folder", "folder in which the agent uses tools", default=""),
    Option(
        "instructions", "instructions for the agent here; empty: gateway.instructions", default=""
    ),
)
"""Options of all channels."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_RESERVED_NAMES = ("agent", "terminal")
"""Names that no channel can have, because other conversations use them in their keys."""


def kinds() -> dict[str, str | ChannelKind]:
    """Return all kinds of channels by name. Built-in kinds are loaded later, by :func:`kind_of`."""
    return {**BUILTINS, **load_plugins(GROUP, ChannelKind)}


def kind_of(name: str) -> ChannelKind:
    """Return the kind of channel with a name.

    Raises NotFoundError, or UnavailableError if it cannot be loaded.
    """
    entry = kinds().get(name)
    if entry is None:
        raise NotFoundError(
            f"unknown kind of channel {name!r}", hint=f"kinds: {', '.join(kinds())}"
        )
    kind: ChannelKind = load(entry) if isinstance(entry, str) else entry
    return kind


def options_of(settings: Settings, name: str) -> tuple[ChannelKind, dict[str, Any]]:
    """Return a channel's kind and all its options.

    Raises NotFoundError if the channel is not configured, and InvalidSettingsError for invalid
    options.
    """
    channels = settings["gateway.channels"]
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
        has_type = option.default is None or isinstance(values[key], type(option.default))
        if not has_type or (option.choices and values[key] not in option.choices):
            raise InvalidSettingsError(
                f"gateway.channels.{name}.{key} cannot be {values[key]!r}", hint=option.summary
            )
    return kind, values


def open_channel(settings: Settings, name: str, log: Tell) -> Channel:
    """Create a channel without connecting it. Raises the errors of :func:`options_of` and
    :func:`resolve`.
    """
    kind, values = options_of(settings, name)
    secrets = {
        option.name: resolve(
            settings, f"gateway.channels.{name}.{option.name}", str(values[option.name])
        )
        for option in kind.options
        if option.is_secret and values[option.name]
    }
    return kind.make(ChannelSetup(name, values, secrets, lambda line: log(f"{name}: {line}")))


def resolve(settings: Settings, key: str, value: str) -> str:
    """Return the secret at ``env:NAME`` or ``file:PATH``. Any other value is the secret itself.

    Raises InvalidSettingsError if the secret is missing.
    """
    if value.startswith("env:"):
        secret = settings.environ.get(value.removeprefix("env:"), "")
        hint = f"set {value.removeprefix('env:')} in the environment in which the gateway runs"
    elif value.startswith("file:"):
        path = Path(value.removeprefix("file:")).expanduser()
        hint = f"write the secret to {path}"
        try:
            secret = path.read_text(encoding="utf-8").strip()
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
# WebSockets.


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
"""Maximum number of unread frames."""


class SocketClosedError(ChannelUnavailableError):
    """The WebSocket was closed, or the connection broke and ``close_code`` is ``None``."""

    def __init__(self, platform: str, close_code: int | None) -> None:
        super().__init__(
            f"{platform} closed the connection{f' (code {close_code})' if close_code else ''}"
        )
        self.close_code = close_code


class Socket:
    """A WebSocket that exchanges JSON objects."""

    def __init__(self, platform: str, connection: client.ClientConnection) -> None:
        self._platform = platform
        self._connection = connection

    async def receive(self) -> Fields:
        """Return the next JSON object.

        Raises SocketClosedError, or ValueError if the frame is not an object.
        """
        with self._translated_errors():
            frame = await self._connection.recv()
        return decode_object(frame)

    async def send(self, value: Fields) -> None:
        with self._translated_errors():
            await self._connection.send(json.encode(value).decode())

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except problems.ConnectionClosed as error:
            code = error.rcvd.code if error.rcvd else None
            raise SocketClosedError(self._platform, code) from None

    async def close(self, code: int = 1000) -> None:
        await self._connection.close(code)


async def open_socket(platform: str, url: str, ping_seconds: float | None = None) -> Socket:
    """Open a WebSocket, and ping its server every ``ping_seconds``, if given.

    Raises ChannelUnavailableError.
    """
    try:
        check_address(platform, url)
    except InvalidSettingsError:
        raise ChannelUnavailableError(
            f"{platform} returned an address that is not encrypted"
        ) from None
    try:
        connection = await client.connect(
            url,
            open_timeout=_CONNECT_SECONDS_SOCKET,
            close_timeout=_CLOSE_SECONDS,
            ping_interval=ping_seconds,
            ping_timeout=ping_seconds,
            max_size=_MAX_FRAME_BYTES,
            max_queue=_MAX_QUEUED_FRAMES,
            proxy=None if is_local(url) else True,
        )
    except (OSError, ImportError, problems.WebSocketException) as error:
        # the library's message can contain the address, and with it a ticket; ImportError: no SOCKS
        # support
        raise ChannelUnavailableError(
            f"{platform} cannot be reached ({type(error).__name__})"
        ) from None
    return Socket(platform, connection)
