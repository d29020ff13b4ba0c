"""``nacre admin events``, and signals that end a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import closing
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import click
import msgspec

from nacre.base import ids
from nacre.base.text import one_line
from nacre.base.times import shown
from nacre.cli.command import (
    Run,
    command,
    cut,
    printable,
    unsteered,
)
from nacre.cli.options import count
from nacre.home import home
from nacre.serve import events as event_bus

if TYPE_CHECKING:
    from nacre.serve.events import Event

_SIGNALS = ("SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP")


def stopped_by_signals() -> threading.Event:
    """An event that is set when this process is told to end. Call in the main thread.

    A handler of signals must not set it: it may interrupt the main thread while that holds the event's own lock, and
    would wait for it for ever. So it leaves word, and another thread sets the event.
    """
    stop = threading.Event()
    told: SimpleQueue[None] = SimpleQueue()

    def wait() -> None:
        told.get()
        stop.set()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    for name in _SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: told.put(None))
    return stop


# ----------------------------------------------------------------------------
# ``nacre admin events``.


_WAIT_SECONDS = 0.5
_MOST_SHOWN = 5
_CELLS_LIVE_EVENTS = 72


@command(
    "events",
    examples=["nacre admin events", "nacre admin events --json | grep --line-buffered stored"],
)
@click.pass_obj
def events(run: Run) -> None:
    """Print changes in the home as they happen.

    Whatever changed it: a command, an agent, the daemon, an editor once nacre has read the file. No daemon is needed.
    With --json it prints one object for each event, each on a line of its own (docs/events.md). It runs until Ctrl-C.
    """
    stop, woken = stopped_by_signals(), threading.Event()
    live = event_bus.Live(lambda: home.open_home(run.settings), event_bus.Bus(ids.utc_now))
    looking = threading.Thread(target=live.run, args=(stop,), daemon=True, name="looking")
    looking.start()
    live.wait_ready()
    listener = live.bus.listen(woken.set)
    run.keeps_history = False
    while not stop.is_set():
        woken.clear()
        found = listener.take()
        for event in found:
            _tell(run, event)
        if not found:
            woken.wait(_WAIT_SECONDS)
    looking.join()


def _tell(run: Run, event: Event) -> None:
    if run.as_json:
        click.echo(unsteered(event.data.decode()))
        return
    told: dict[str, Any] = msgspec.json.decode(event.data)
    for line in _LINES[event.kind](run, told) if event.kind in _LINES else ():
        click.echo(printable(f"{shown(ids.utc_now(), '%H:%M:%S')}  {line}"))


def _memories(run: Run, told: dict[str, Any]) -> list[str]:
    if told["total"] > _MOST_SHOWN:
        return [f"{told['change']}: {told['total']:,} memories"]
    with closing(home.open_home(run.settings)) as opened:  # the database may be another one by now
        subjects = {
            memory.id: memory.subject for memory in opened.memories.in_any_state(told["ids"])
        }
    return [
        f"{told['change']}: {cut(one_line(subjects.get(item, 'a memory')), _CELLS_LIVE_EVENTS)}  {item[-8:]}"
        for item in told["ids"]
    ]


def _session(_: Run, told: dict[str, Any]) -> list[str]:
    return [
        f"session {told['id']}: {count(told['turns'], 'turn')}"
        if told["id"]
        else "and more sessions"
    ]


def _chat(_: Run, told: dict[str, Any]) -> list[str]:
    where = told["key"] or told["channel"]
    return [f"chat {where}: {_CHATS.get(told['change'], told['change'])}"]


_CHATS = {
    "grew": "there are new messages",
    "ended": "it ended",
    "waiting": "a message waits",
    "answering": "an answer is being made",
    "pairing": "who may write, or asks to, changed",
    "undelivered": "what could not be delivered changed",
}

_LINES: dict[str, Callable[[Run, dict[str, Any]], list[str]]] = {
    "hello": lambda _, __: ["listening; Ctrl-C ends it"],
    "missed": lambda _, __: ["the database was replaced: anything may have changed"],
    "memory": _memories,
    "session": _session,
    "chat": _chat,
    "candidate": lambda _, told: [f"{count(told['waiting'], 'candidate')} to review"],
    "doubt": lambda _, told: [
        f"{count(told['total'], 'memory', 'memories')} in doubt, or in doubt no more"
    ],
    "cost": lambda _, told: [
        f"{told['task']}: ${told['usd']:.4f} today, ${told['today_usd']:.4f} in all"
    ],
}
