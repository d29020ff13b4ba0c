"""Open the gateway of a home and run it: by ``nacre gateway run``, or in the daemon."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from typing import Any

from nacre.errors import Conflict, NacreError, NotFound
from nacre.gateway.answering import Answering, Lend, Respond
from nacre.gateway.channel_options import ChannelOptions, Open
from nacre.gateway.channels.channel import ServesHttp
from nacre.gateway.channels.registry import open_channel
from nacre.gateway.engine import Gateway, Parts
from nacre.platform.ids import utc_now, uuid7_source
from nacre.platform.lazy import load
from nacre.platform.locks import FileLock, is_held
from nacre.settings import Settings
from nacre.storage.gateway import FOLDER, GatewayStore

LOCK = f"{FOLDER}/gateway.lock"
_LOOK_SECONDS = 0.2

Tell = Callable[[str], None]


def is_running(settings: Settings) -> bool:
    """Whether a gateway serves this home."""
    return is_held(settings.home / LOCK)


def serve(
    settings: Settings, lend: Lend, tell: Tell, stop: threading.Event, *, respond: Respond | None = None,
    ready: Callable[[], object] = lambda: None,
) -> None:  # fmt: skip
    """Serve the channels that are configured, until ``stop`` is set; ``ready`` is called when it begins.

    A channel that cannot be opened is told of, and the others are served. Raises Conflict where another gateway serves
    this home, NotFound where no channel is configured or none can be opened, and what opening the store raises.
    """
    with closing(GatewayStore.open(settings.home)) as store:
        lock = FileLock(settings.home / LOCK)
        if not lock.acquire():
            hint = "nacre gateway status; the daemon runs it where gateway.enabled is set"
            raise Conflict(f"a gateway serves {settings.home} already", hint=hint)
        try:
            opened = _open_channels(settings, store, tell)
            answering = Answering(settings, lend, respond or load("nacre.gateway.responder:responder_for"))
            redactor = load("nacre.redact.redactor:Redactor")(*settings.redaction)
            parts = Parts(
                settings, store, opened, answering, redactor, utc_now, uuid7_source(), tell, _listening(settings, tell)
            )
            tell(f"answers in {', '.join(opened)}")
            asyncio.run(_run(Gateway(parts), stop, ready))
        finally:
            lock.release()


async def _run(gateway: Gateway, stop: threading.Event, ready: Callable[[], object]) -> None:
    ends = asyncio.Event()

    async def watch() -> None:
        while not stop.is_set():
            await asyncio.sleep(_LOOK_SECONDS)
        ends.set()

    watching = asyncio.create_task(watch())
    ready()
    await gateway.run(ends)
    watching.cancel()


def _open_channels(settings: Settings, store: GatewayStore, tell: Tell) -> Mapping[str, Open]:
    names = [name for name, own in settings["gateway.channels"].items() if own.get("enabled", True)]
    opened: dict[str, Open] = {}
    for name in names:
        try:
            options = ChannelOptions.of(settings, name)
            opened[name] = Open(open_channel(settings, name, _named(name, tell)), options)
        except (NacreError, ImportError) as error:
            hint = f" ({error.hint})" if isinstance(error, NacreError) and error.hint else ""
            store.note_problem(name, f"{error}{hint}")
            tell(f"{name}: {error}{hint}")
    if not opened:
        told = "no channel can be opened" if names else "no channel is configured"
        raise NotFound(told, hint=f"[gateway.channels.telegram] in {settings.config}; docs/gateway.md tells how")
    return opened


def _named(name: str, tell: Tell) -> Tell:
    return lambda line: tell(f"{name}: {line}")


def _listening(settings: Settings, tell: Tell) -> Callable[[Mapping[str, ServesHttp]], Coroutine[Any, Any, None]]:
    def listen(channels: Mapping[str, ServesHttp]) -> Coroutine[Any, Any, None]:
        listener = load("nacre.gateway.listener:Listener")(settings.text("gateway.listen"), channels, tell)
        running: Coroutine[Any, Any, None] = listener.run()
        return running

    return listen
