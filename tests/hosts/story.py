"""What every host is put through once, and what was seen on the way; the tests look at it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.conversation import Line
from tests.fakes.provider import Request
from tests.hosts.driving import Driver, Said
from tests.hosts.programs import command
from tests.hosts.stage import Ran, Stage, eventually

KNOWN = "The mailer of the harbour app retries five times before it gives up."
DECIDED = "We decided: the queue of the mailer runs on NATS, not on RabbitMQ, because replays are cheap there."
ASKS = "Look up how often the mailer retries."
COMES_BACK = "What did we decide about the queue of the mailer?"
FILLS = "Fill your window."
REFERS = "how long does Valkey cache the ferry timetable, and when do we flush it?"
PROMPTS = (DECIDED, ASKS, COMES_BACK, FILLS, REFERS)
OWN_WORDS = "cache the ferry timetable in Valkey for ninety seconds and flush it at midnight"
TRIGGER, INTENT = "decide about the queue", "The harbour master pauses the mailer on Sundays."

_EARLIER = (
    ("user", "the ferry timetable is slow"),
    ("assistant", "The ferry timetable is read from the disk each time."),
    ("user", OWN_WORDS),
    ("assistant", "Done, the timetable is now cached."),
    ("user", "and the Valkey port of the ferry timetable?"),
    ("assistant", "Valkey serves the ferry timetable on port 6390."),
)
"""An earlier session in the project, about another subject."""

_SEARCH = "nacre.*memory_search$"

LINES = (
    Line(FILLS, say="It is full now.", tokens=390_000),
    Line(
        ASKS,
        say="It retries five times.",
        tool=_SEARCH,
        arguments={"query": "how often the mailer retries"},
    ),
    Line(DECIDED, say="Noted: NATS for the queue of the mailer."),
    Line(COMES_BACK, say="On NATS."),
    Line(REFERS, say="For ninety seconds."),
)
"""The model's part."""


@dataclass
class Scene:
    """One prompt: what came of it, what the model was asked, and which hooks ran."""

    said: Said
    requests: list[Request]
    hooks: list[dict[str, Any]]

    @property
    def bodies(self) -> str:
        """All that the model was told."""
        return "\n".join(json.dumps(request.body, ensure_ascii=False) for request in self.requests)


@dataclass
class Story:
    """One host, from its wiring to the end of it."""

    driver: Driver
    stage: Stage
    doctor: Ran | None = None
    before: dict[str, bytes] = field(default_factory=dict)
    """The host's own files before it was wired; ``after`` are the same once it was undone."""
    after: dict[str, bytes] = field(default_factory=dict)
    scenes: dict[str, Scene] = field(default_factory=dict)
    read: dict[str, Any] = field(default_factory=dict)
    """What ``nacre ingest`` made of all its transcripts."""

    def scene(self, name: str, prompt: str, session: str = "", *, compacts: bool = False) -> Scene:
        """Play one prompt and keep it under a name."""
        asked, ran = len(self.stage.provider.requests), len(self.stage.hook_runs())
        said = self.driver.say(self.stage, prompt, session, compacts=compacts)
        self.scenes[name] = Scene(said, self.stage.asked(asked), self.stage.hook_runs()[ran:])
        return self.scenes[name]


def play(driver: Driver, stage: Stage) -> Story:
    """The whole of it, once."""
    story = Story(driver, stage)
    stage.install(driver.program, command(driver.name))
    driver.set_up(stage)
    stage.nacre("store", KNOWN, "--kind", "fact", "--subject", "Retries of the mailer")
    stage.nacre("store", INTENT, "--trigger", TRIGGER, "--times", "1")
    _read_earlier_session(stage)
    story.before = stage.settings()
    stage.nacre("init", "--host", driver.name, *driver.options, "--yes")
    first = story.scene("first", DECIDED)
    story.scene("lookup", ASKS, first.said.session)
    _until_read(story, first.said.session)
    story.scene("second", COMES_BACK)
    story.scene("pointed", REFERS)
    story.scene("compaction", COMES_BACK, first.said.session, compacts=True)
    with _hung_daemon(stage):
        story.scene("hung", COMES_BACK)
    story.scene("down", COMES_BACK)
    story.read = stage.nacre("ingest", "--force", "--json").record
    story.doctor = stage.run([str(stage.programs / "nacre"), "admin", "doctor", "hosts"])
    stage.nacre("init", "--host", driver.name, "--uninstall", "--yes")
    story.after = {path: text for path, text in stage.settings().items() if path in story.before}
    story.scene("without", COMES_BACK)
    return story


def _read_earlier_session(stage: Stage) -> None:
    records = [
        {
            "role": role,
            "content": text,
            "cwd": str(stage.project),
            "timestamp": f"2026-11-0{at}T09:00:00Z",
        }
        for at, (role, text) in enumerate(_EARLIER, 1)
    ]
    path = stage.folder / "ferry.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    stage.nacre("ingest", str(path))


def _until_read(story: Story, session: str) -> None:
    """Wait until what the first session said has been read, as its end or the daemon has it done."""
    name = f"{story.driver.tool}:{session}"
    eventually(lambda: name in story.stage.nacre("sessions", "list", "--json").out)


@contextmanager
def _hung_daemon(stage: Stage) -> Iterator[None]:
    """A daemon that takes every call and answers none."""
    stage.run([str(stage.programs / "nacre"), "serve", "stop"])
    path = stage.memory / "daemon.sock"
    path.unlink(missing_ok=True)
    taken: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)

        def take() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listener.accept()[0])

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for connection in taken:
                connection.close()
            path.unlink(missing_ok=True)
