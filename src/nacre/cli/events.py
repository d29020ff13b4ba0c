"""``nacre admin events``, and the handling of signals that end a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import closing
from queue import SimpleQueue
from typing import Any

import click
import msgspec

from nacre.base import ids
from nacre.base.text import one_line
from nacre.base.times import shown
from nacre.cli.command import Run, command, cut, printable, unsteered
from nacre.cli.options import count
from nacre.home import home
from nacre.serve import events as event_bus

_SIGNALS = ("SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP")


def stopped_by_signals() -> threading.Event:
    """Return an event that is set when a signal ends this process. Call this function in the main thread.

    A different thread sets the event. A signal handler could not do this safely: if the main thread holds the event's
    lock at that moment, the handler waits forever.
    """
    stop = threading.Event()
    signals: SimpleQueue[None] = SimpleQueue()

    def wait() -> None:
        signals.get()
        stop.set()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    for name in _SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: signals.put(None))
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
def events(run: Run) -> None:
    """Print changes in the home as they happen.

    The changes come from commands, agents, the daemon, or an editor. With --json, each event is a JSON object on its
    own line (docs/events.md). Ctrl-C ends the command.
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
            _show(run, event)
        if not found:
            woken.wait(_WAIT_SECONDS)
    looking.join()


def _show(run: Run, event: event_bus.Event) -> None:
    if run.as_json:
        click.echo(unsteered(event.data.decode()))
        return
    values: dict[str, Any] = msgspec.json.decode(event.data)
    for line in _LINES[event.kind](run, values) if event.kind in _LINES else ():
        click.echo(printable(f"{shown(ids.utc_now(), '%H:%M:%S')}  {line}"))


def _memories(run: Run, values: dict[str, Any]) -> list[str]:
    if values["total"] > _MOST_SHOWN:
        return [f"{values['change']}: {values['total']:,} memories"]
    with closing(home.open_home(run.settings)) as opened:  # the database may have been replaced
        subjects = {
            memory.id: memory.subject for memory in opened.memories.in_any_state(values["ids"])
        }
    return [
        f"{values['change']}: {cut(one_line(subjects.get(item, 'a memory')), _CELLS_LIVE_EVENTS)}  {item[-8:]}"
        for item in values["ids"]
    ]


def _session(_: Run, values: dict[str, Any]) -> list[str]:
    return [
        f"session {values['id']}: {count(values['turns'], 'turn')}"
        if values["id"]
        else "and more sessions"
    ]


_LINES: dict[str, Callable[[Run, dict[str, Any]], list[str]]] = {
    "hello": lambda _, __: ["listening; Ctrl-C ends it"],
    "missed": lambda _, __: ["the database was replaced"],
    "memory": _memories,
    "session": _session,
    "chat": lambda _, __: ["chat: messages or senders changed"],
    "candidate": lambda _, values: [f"{count(values['waiting'], 'candidate')} to review"],
    "doubt": lambda _, values: [
        f"{count(values['total'], 'memory', 'memories')} newly or no longer in doubt"
    ],
    "cost": lambda _, values: [
        f"{values['task']}: ${values['usd']:.4f} today, ${values['today_usd']:.4f} in all"
    ],
}
