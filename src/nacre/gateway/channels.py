"""What a channel is, and what it is given."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import SplitResult, urlsplit

import httpx2
import msgspec

from nacre.base.environment import install_hint, is_installed
from nacre.base.files import new_file
from nacre.base.lazy import Module, load
from nacre.errors import ChannelRefused, ChannelUnavailable, NotFound, SettingsInvalid, Unavailable
from nacre.llm.credentials import is_loopback
from nacre.settings import Settings
from nacre.values.gateway import Attachment, Chat, Incoming, Limits, Outgoing

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


class Inbox(Protocol):
    """Where a channel puts what it received. All of it runs in the gateway's event loop."""

    def state(self, name: str) -> str:
        """What the channel kept under a name (an offset, a session to resume); empty where it kept nothing."""

    async def receive(self, messages: Sequence[Incoming], **state: str) -> int:
        """Keep messages, and what the channel wants to remember, in one transaction: on disk when this returns.

        Only then may a channel confirm them to its platform. Messages that came before are left out: it returns how
        many are new. It waits while too many messages wait to be answered.
        """


class Channel(Protocol):
    """One connection to a platform, for one account of the owner's.

    A channel converts; it decides nothing: who may write, what is answered, and how often a send is tried again is the
    gateway's.
    """

    limits: Limits

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled. It reconnects by itself after short disturbances, as its platform documents.

        Raises ChannelUnavailable where it cannot go on for now (the gateway runs it again later, ever more seldom) and
        ChannelRefused where trying again does not help, as with a wrong token.
        """

    async def send(self, outgoing: Outgoing) -> str:
        """Send one part; the platform's id of the message. The text is within ``limits``.

        Raises ChannelUnavailable (with ``retry_after`` where the platform says so) where it may be tried again,
        ChannelRefused where this message can never be delivered.
        """

    async def show_typing(self, chat: Chat) -> None:
        """Show that an answer is being written, for ``limits.typing_seconds``. What fails is passed over."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Write the file to a path in a folder of the gateway's. Raises ChannelUnavailable, ChannelRefused."""

    async def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class ServesHttp(Protocol):
    """A channel that a platform calls: its routes are served by the gateway's own listener (``gateway.listen``)."""

    def routes(self) -> Sequence[BaseRoute]:
        """Routes below ``/<name of the channel>``. They check signatures before anything else is read."""


@runtime_checkable
class ShowsPieces(Protocol):
    """A channel that shows an answer while it is made. What it shows is not the answer: that is sent in the end."""

    async def show_piece(self, chat: Chat, piece: str) -> None:
        """Show a piece more, in the order in which they come. What fails is passed over."""


@dataclass(frozen=True, slots=True)
class ChannelSetup:
    """What a channel is made from: its name, the values of its options, and the secrets that they name, resolved.

    ``folder`` is a private folder of its own in the home. ``tell`` writes a line to the gateway's log.
    """

    name: str
    options: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    folder: Path
    tell: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a kind of channel, in ``gateway.channels.<name>``."""

    name: str
    summary: str
    default: Any = None
    is_secret: bool = False
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """A kind of channel. Third parties register theirs in the entry-point group ``nacre.channels``.

    ``libraries`` are importable names that it needs, ``extra`` the extra of nacre that brings them. ``secrets`` of
    ``options`` are written as ``env:NAME`` or ``file:PATH``. ``identity`` is the form of a sender's id for people.
    """

    name: str
    label: str
    make: Callable[[ChannelSetup], Channel]
    options: tuple[Option, ...] = ()
    libraries: tuple[str, ...] = ()
    extra: str = ""
    identity: str = ""


# ----------------------------------------------------------------------------
# Read what a platform sent: of any size and shape, until it was looked at.


MOST_TEXT = 20_000
"""Characters of one message. No platform allows as many."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_LARGEST = 2**63
_MOST_FILE_NAME = 120
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\:]+")


class LeftOut:
    """Counts what could not be read, and tells of the first."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.count = 0
        self._tell = tell

    def note(self, what: str) -> None:
        """One more."""
        self.count += 1
        if self.count == 1:
            self._tell(
                f"{what} could not be read and was left out; further ones are left out in silence"
            )


def decode(data: str | bytes) -> Any:
    """The JSON in a text. Raises ValueError where it is none."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError("no JSON") from error


def decode_object(data: str | bytes) -> Mapping[str, Any]:
    """The JSON object in a text. Raises ValueError where it is none."""
    found = decode(data)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def text(values: Mapping[str, Any], key: str, most: int = 200) -> str:
    """A text, cut to ``most`` characters; empty where there is none."""
    found = values.get(key)
    return found[:most].replace("\0", "") if isinstance(found, str) else ""


def number(values: Mapping[str, Any], key: str) -> float | None:
    """A number that is not negative and finite."""
    found = values.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found < 1e15 else None


def whole(value: object) -> int | None:
    """A whole number of at most 64 bits, also where it is written as text."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_LARGEST <= value < _LARGEST else None


def moment(values: Mapping[str, Any], key: str) -> datetime | None:
    """A time in seconds since 1970."""
    seconds = whole(values.get(key))
    try:
        return None if not seconds else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def file_name(values: Mapping[str, Any], key: str, default: str) -> str:
    """The name of a file without folders and control characters."""
    return _NOT_IN_NAMES.sub("_", text(values, key)).strip(" ._")[-_MOST_FILE_NAME:] or default


def mapping(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object; an empty one where there is none."""
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def mappings(values: Mapping[str, Any], key: str, most: int = 50) -> list[Mapping[str, Any]]:
    """The objects of a list, ``most`` at most."""
    found = values.get(key)
    return [one for one in found[:most] if isinstance(one, dict)] if isinstance(found, list) else []


def identifier(values: Mapping[str, Any], key: str) -> str:
    """An id of the platform's, fit to stand in an address. Raises ValueError where it is none."""
    found = values.get(key)
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise ValueError(f"{key} is no id")
    return found


# ----------------------------------------------------------------------------
# A platform's HTTP interface: bounded answers, no redirects, and errors that name no address and no
# secret.


_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_DOWNLOAD_SECONDS = 300.0
_MOST_ANSWER = 8 << 20
"""Bytes of an answer: a hundred of the longest messages with room."""

logging.getLogger("httpx2").setLevel(
    logging.WARNING
)  # below that it logs addresses, and some hold a token


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status, its headers (names in lower case), and its JSON, wrapped where that is a list.

    ``body`` is empty where it was no JSON; ``rows`` holds the objects of a list.
    """

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...] = ()

    @property
    def retry_after(self) -> float | None:
        """Seconds that the header of that name asks to wait."""
        try:
            return min(max(0.0, float(self.headers.get("retry-after", ""))), 86_400.0)
        except ValueError:
            return None


class WebApi:
    """Requests to one platform. Connections are made with the first request."""

    def __init__(self, platform: str, address: str, headers: Mapping[str, str]) -> None:
        """``address`` is the base of all paths; plain http is for loopback only. Raises SettingsInvalid."""
        check_address(platform, address)
        self.platform = platform
        self._address = address.rstrip("/")
        self._headers = dict(headers)
        self._client: httpx2.AsyncClient | None = None

    @property
    def place(self) -> str:
        """Host and port of the address."""
        return urlsplit(self._address).netloc

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
        """The answer, whatever its status. ``content`` is sent as it is, ``json`` is encoded first.

        Raises ChannelUnavailable where there is none within ``seconds``.
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
                if len(data) > _MOST_ANSWER:
                    raise ChannelUnavailable(
                        f"{self.platform} answers with more than {_MOST_ANSWER >> 20} MB"
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
        server_name: str | None = None,
    ) -> None:
        """Write what is at an address into a file, ``most_bytes`` at most. The caller has judged the address.

        ``server_name`` is whom the certificate must name, where that is not the host of the address. Raises
        ChannelUnavailable, and ChannelRefused where there is no such file, or a larger one.
        """
        plain = {
            "accept-encoding": "identity",
            **headers,
        }  # a few bytes may expand to more than there is memory
        more = {"extensions": {"sni_hostname": server_name}} if server_name else {}
        async with self._stream("GET", url, _DOWNLOAD_SECONDS, headers=plain, **more) as response:
            if response.status_code >= 500 or response.status_code == 429:
                raise ChannelUnavailable(
                    f"{self.platform} does not give the file now (status {response.status_code})"
                )
            if (
                response.status_code != 200
                or response.headers.get("content-encoding", "identity") != "identity"
            ):
                raise ChannelRefused(
                    f"{self.platform} does not give the file (status {response.status_code})"
                )
            with new_file(target, overwrite=True) as file:
                size = 0
                async for piece in response.aiter_raw():
                    size += len(piece)
                    if size > most_bytes:
                        raise ChannelRefused(f"the file is larger than {most_bytes} bytes")
                    file.write(piece)

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _stream(
        self, method: str, url: str, seconds: float, **more: Any
    ) -> AsyncIterator[httpx2.Response]:
        if self._client is None:
            # no proxy stands between nacre and this very machine
            here = is_loopback(urlsplit(self._address).hostname or "")
            self._client = httpx2.AsyncClient(trust_env=not here, follow_redirects=False)
        timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
        try:
            # a byte now and then would keep an answer open for ever, but for the time of it all
            async with (
                asyncio.timeout(seconds),
                self._client.stream(method, url, timeout=timeout, **more) as response,
            ):
                yield response
        except (TimeoutError, httpx2.TimeoutException):
            raise ChannelUnavailable(f"{self.platform} did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            # the library's own words may name the address, and with it a secret
            raise ChannelUnavailable(
                f"{self.platform} cannot be reached ({type(error).__name__})"
            ) from None


def split_address(address: str) -> SplitResult:
    """The parts of an address that a platform sent. Raises ChannelRefused where it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        raise ChannelRefused("the address of a file is malformed") from None


def check_address(platform: str, address: str) -> None:
    """Raise SettingsInvalid unless the address is encrypted, or on this machine."""
    try:
        scheme, host = urlsplit(address).scheme, urlsplit(address).hostname or ""
    except ValueError:
        scheme, host = "", ""
    if scheme in ("https", "wss") and host:
        return
    if scheme not in ("http", "ws") or not is_loopback(host):
        hint = "https, or http on this machine"
        raise SettingsInvalid(
            f"{platform} cannot be reached safely at the address it is given", hint=hint
        )


def _reply(status: int, headers: Mapping[str, str], data: bytes) -> Reply:
    try:
        found = decode(data)
    except ValueError:
        found = {}
    if isinstance(found, list):
        return Reply(status, headers, {}, tuple(one for one in found if isinstance(one, dict)))
    return Reply(status, headers, found if isinstance(found, dict) else {})


# ----------------------------------------------------------------------------
# Fetch a file from a URL that a stranger may have written: from public addresses alone, and within
# bounds.


_RESOLVE_SECONDS = 10.0
_GLOBAL_V6 = ipaddress.ip_network("2000::/3")
_HINT = "attachments are fetched from public https addresses"


async def fetch_public(
    url: str, target: Path, most_bytes: int, *, may_be_private: bool = False
) -> None:
    """Write what lies at a URL to a file. Redirects are not followed.

    The name is resolved once, and what it is resolved to is checked and connected to, so that a second answer of its
    name server changes nothing. ``may_be_private`` admits all addresses, and http to this machine.

    Raises ChannelUnavailable, ChannelRefused.
    """
    address = _checked(url, may_be_private)
    found = await _resolved(address, may_be_private)
    place = f"[{found}]" if ":" in found else found
    pinned = address._replace(
        netloc=f"{place}:{address.port}" if address.port else place, fragment=""
    ).geturl()
    host = WebApi("the attachment's host", pinned, {})
    try:
        await host.download(
            pinned, target, most_bytes, {"host": address.netloc}, server_name=address.hostname
        )
    finally:
        await host.close()


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, whatever it is wrapped in."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):  # those that hold an IPv4 address are not
        return found in _GLOBAL_V6 and not found.sixtofour and not found.teredo and found.is_global
    return found.is_global and not found.is_multicast


def _checked(url: str, may_be_private: bool) -> SplitResult:
    try:
        address = urlsplit(url)
        host, _ = address.hostname, address.port
    except ValueError:
        host = None
    if not host or address.username is not None:
        raise ChannelRefused("an attachment has no valid URL", hint=_HINT)
    if address.scheme != "https" and not (
        address.scheme == "http" and may_be_private and is_loopback(host)
    ):
        raise ChannelRefused("an attachment has no https URL", hint=_HINT)
    return address


async def _resolved(address: SplitResult, may_be_private: bool) -> str:
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(
                address.hostname, None, type=socket.SOCK_STREAM
            )
    except (OSError, UnicodeError):
        raise ChannelUnavailable(
            "the host of an attachment cannot be found", hint="it is tried again"
        ) from None
    hosts = [str(info[4][0]) for info in found]
    if not may_be_private and not all(is_public(host) for host in hosts):
        raise ChannelRefused("an attachment lies at a private address", hint=_HINT)
    return hosts[0]


# ----------------------------------------------------------------------------
# Find kinds of channels by name, and open those that the owner configured. Third parties use the same
# door.


GROUP = "nacre.channels"
"""The entry-point group in which a third party registers ``<kind> = "<module>:<kind record>"``."""

BUILTINS: dict[str, str] = {
    "telegram": "nacre.gateway.telegram:KIND",
    "discord": "nacre.gateway.discord:KIND",
    "slack": "nacre.gateway.slack:KIND",
    "whatsapp": "nacre.gateway.whatsapp:KIND",
    "webhook": "nacre.gateway.webhook:KIND",
}

COMMON = (
    Option("kind", "what the channel is: telegram, discord, …; by default its name"),
    Option("enabled", "false: it is not opened", default=True),
    Option("allow", "senders who need no pairing: their ids; * admits everybody", default=[]),
    Option(
        "groups",
        "in groups: mention (answer where it is mentioned), all, or off",
        default="mention",
    ),
    Option(
        "hears",
        "what it sees of a group between answers: paired (of those let in), or all",
        default="paired",
    ),
    Option(
        "memories",
        "whose answers draw on your memories: owner (you, in direct chats), all, or none",
        default="owner",
    ),
    Option("model", "who answers here (provider:model); empty takes models.chat", default=""),
    Option("tools", "tools that the agent may use here, by its own names", default=[]),
    Option("folder", "where it works while it may use tools", default=""),
    Option(
        "instructions",
        "what it is told of itself here; empty takes gateway.instructions",
        default="",
    ),
    Option(
        "session_hours",
        "hours of silence after which a conversation begins anew; 0 takes the setting",
        default=0.0,
    ),
)
"""What every kind takes."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_TAKEN = ("agent", "terminal")
"""Keys of conversations begin with these where no channel of that name is meant."""

_MOST_SECRET = 10_000


def kinds() -> dict[str, str | ChannelKind]:
    """All kinds by name; those of third parties are loaded only with :func:`kind_of`."""
    return {**BUILTINS, **_outside()}


def kind_of(name: str) -> ChannelKind:
    """A kind of channel. Raises NotFound, and Unavailable where it cannot be loaded or a library is missing."""
    found = kinds().get(name)
    if found is None:
        raise NotFound(
            f"there is no channel of the kind {name!r}", hint=f"kinds: {', '.join(kinds())}"
        )
    kind: ChannelKind = load(found) if isinstance(found, str) else found
    for library in kind.libraries:
        if not is_installed(library):
            hint = install_hint(kind.extra) if kind.extra else f"pip install {library}"
            raise Unavailable(f"{kind.label} needs a library: {library}", hint=hint)
    return kind


def options_of(settings: Settings, name: str) -> tuple[ChannelKind, dict[str, Any]]:
    """The kind of a channel that is configured, and the values of all its options. Raises SettingsInvalid, NotFound."""
    channels: Mapping[str, Mapping[str, Any]] = settings["gateway.channels"]
    own = channels.get(name)
    if own is None:
        hint = (
            f"configured: {', '.join(channels)}"
            if channels
            else f"add [gateway.channels.{name}] to {settings.config}"
        )
        raise NotFound(f"no channel is called {name!r}", hint=hint)
    if not _NAME.fullmatch(name):
        raise SettingsInvalid(
            f"a channel cannot be called {name!r}", hint="lower-case letters, digits, - and _"
        )
    if name in _TAKEN or str(own.get("kind", name)) != name in kinds():
        hint = "it would be taken for another one: identities and conversations are spelt with the channel's name"
        raise SettingsInvalid(f"a channel of this kind cannot be called {name!r}", hint=hint)
    kind = kind_of(str(own.get("kind", name)))
    known = {option.name: option for option in (*COMMON, *kind.options)}
    if unknown := next((key for key in own if key not in known), None):
        raise SettingsInvalid(
            f"gateway.channels.{name} has no option {unknown!r}",
            hint=f"options: {', '.join(known)}",
        )
    values = {key: own.get(key, option.default) for key, option in known.items()}
    for key, option in known.items():
        if option.is_required and values[key] in (None, ""):
            raise SettingsInvalid(
                f"gateway.channels.{name} needs {key}: {option.summary}",
                hint=_example(name, option),
            )
        if option.default is not None and not isinstance(values[key], _types(option.default)):
            raise SettingsInvalid(
                f"gateway.channels.{name}.{key} cannot be {values[key]!r}", hint=option.summary
            )
    return kind, values


def open_channel(settings: Settings, name: str, tell: Callable[[str], None]) -> Channel:
    """The channel of that name. Nothing is connected yet. Raises what :func:`options_of` raises, and Unavailable."""
    kind, values = options_of(settings, name)
    secrets = {
        option.name: resolve(
            settings, f"gateway.channels.{name}.{option.name}", str(values[option.name])
        )
        for option in kind.options
        if option.is_secret and values[option.name]
    }
    return kind.make(
        ChannelSetup(name, values, secrets, settings.home / "gateway" / "channels" / name, tell)
    )


def resolve(settings: Settings, key: str, value: str) -> str:
    """What a secret is: ``env:NAME`` and ``file:PATH`` say where it is kept; anything else is the secret itself.

    Raises SettingsInvalid.
    """
    if value.startswith("env:"):
        found = settings.environ.get(value.removeprefix("env:"), "")
        hint = f"set {value.removeprefix('env:')} in the environment in which the gateway runs"
    elif value.startswith("file:"):
        path = Path(value.removeprefix("file:")).expanduser()
        hint = f"write it into {path}"
        try:
            with open(path, encoding="utf-8") as file:
                found = file.read(_MOST_SECRET).strip()
        except OSError as error:
            raise SettingsInvalid(
                f"{key}: cannot read {path}: {error.strerror}", hint=hint
            ) from error
    else:
        return value
    if not found:
        raise SettingsInvalid(f"{key} is empty", hint=hint)
    return found


def _types(default: object) -> tuple[type, ...]:
    return (int, float) if isinstance(default, float) else (type(default),)


def _example(name: str, option: Option) -> str:
    value = f"env:{name.upper()}_{option.name.upper()}" if option.is_secret else "…"
    return f'[gateway.channels.{name}] {option.name} = "{value}"'


@cache
def _outside() -> dict[str, str | ChannelKind]:
    found: dict[str, str | ChannelKind] = {}
    for point in entry_points(group=GROUP):
        try:
            kind = point.load()
        except (ImportError, AttributeError, SyntaxError) as error:
            hint = "mend or uninstall the package it comes with"
            raise Unavailable(
                f"the channel {point.name!r} ({point.value}) cannot be loaded: {error}", hint=hint
            ) from error
        if not isinstance(kind, ChannelKind):
            raise Unavailable(
                f"{point.value} is not a kind of channel",
                hint="mend or uninstall the package it comes with",
            )
        found[point.name] = kind
    return found


# ----------------------------------------------------------------------------
# A platform's WebSocket: JSON objects in both directions, bounded.


if TYPE_CHECKING:
    import websockets.asyncio.client as client
    import websockets.exceptions as problems
else:
    client = Module("websockets.asyncio.client")
    problems = Module("websockets.exceptions")

_CONNECT_SECONDS_SOCKET = 15.0
_CLOSE_SECONDS = 1.0
"""How long the other side may take to say goodbye; Slack does not always."""
_MOST_FRAME = 4 << 20
_MOST_FRAMES = 256
"""Bytes of a frame, and frames that wait to be read; then the platform has to wait."""
_MOST_BREAKS = 5


class SocketClosed(ChannelUnavailable):
    """The platform closed its WebSocket, or the connection broke. ``close_code`` is None where none was given."""

    def __init__(self, platform: str, close_code: int | None) -> None:
        super().__init__(
            f"{platform} closed the connection{f' (code {close_code})' if close_code else ''}"
        )
        self.close_code = close_code


class Socket:
    """One open WebSocket."""

    def __init__(self, platform: str, connection: client.ClientConnection) -> None:
        self._platform = platform
        self._connection = connection

    async def receive(self) -> Mapping[str, Any]:
        """The next object. Raises ValueError where a frame holds none, and SocketClosed."""
        try:
            frame = await self._connection.recv()
        except problems.ConnectionClosed as error:
            raise SocketClosed(self._platform, error.rcvd.code if error.rcvd else None) from None
        return decode_object(frame)

    async def send(self, value: Mapping[str, Any]) -> None:
        """Send an object. Raises SocketClosed."""
        try:
            await self._connection.send(msgspec.json.encode(value).decode())
        except problems.ConnectionClosed as error:
            raise SocketClosed(self._platform, error.rcvd.code if error.rcvd else None) from None

    async def close(self, code: int = 1000) -> None:
        """Close it; nothing happens where it is closed."""
        await self._connection.close(code)


async def open_socket(platform: str, url: str, ping_seconds: float | None = None) -> Socket:
    """Open a WebSocket. With ``ping_seconds`` it pings so often, and breaks where no answer comes within as long.

    Raises ChannelUnavailable, also where the address is neither encrypted nor of this machine.
    """
    try:
        check_address(platform, url)
    except (SettingsInvalid, ValueError):
        raise ChannelUnavailable(
            f"{platform} names an address that is not safe to connect to"
        ) from None
    here = is_loopback(urlsplit(url).hostname or "")
    try:
        connection = await client.connect(
            url,
            open_timeout=_CONNECT_SECONDS_SOCKET,
            close_timeout=_CLOSE_SECONDS,
            ping_interval=ping_seconds,
            ping_timeout=ping_seconds,
            max_size=_MOST_FRAME,
            max_queue=_MOST_FRAMES,
            proxy=None if here else True,
        )
    except (OSError, ImportError, problems.WebSocketException) as error:
        # the library's own words may name the address, and with it a ticket; ImportError: it has no SOCKS proxies
        raise ChannelUnavailable(f"{platform} cannot be reached ({type(error).__name__})") from None
    return Socket(platform, connection)


@dataclass(slots=True)
class Breaks:
    """Connections to a platform that ended soon after they began, one after another.

    The first is replaced at once, each later one after a ``pause`` that grows, in seconds. One that lasted ``steady``
    seconds or brought something was none of them.
    """

    platform: str
    pause: float
    steady: float
    count: int = 0

    async def ended(self, seconds: float, *, was_useful: bool) -> None:
        """A connection ended after so long. Raises ChannelUnavailable after too many."""
        self.count = 0 if was_useful or seconds > self.steady else self.count + 1
        if self.count > _MOST_BREAKS:
            raise ChannelUnavailable(f"{self.platform} ends each connection soon after it began")
        await asyncio.sleep(self.pause * max(self.count - 1, 0))
