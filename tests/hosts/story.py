"""The story that is run once with every host, and the observations that the tests check."""

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
from tests.hosts.driving import Driver, PromptResult
from tests.hosts.programs import command
from tests.hosts.stage import ProgramResult, Stage, eventually

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
"""The model's scripted answers."""


@dataclass
class Scene:
    """One prompt with its result, the model's requests and the hooks that ran."""

    result: PromptResult
    requests: list[Request]
    hooks: list[dict[str, Any]]

    @property
    def bodies(self) -> str:
        """The bodies of all requests to the model."""
        return "\n".join(json.dumps(request.body, ensure_ascii=False) for request in self.requests)


@dataclass
class Story:
    """One host, from its connection until its removal."""

    driver: Driver
    stage: Stage
    doctor: ProgramResult | None = None
    before: dict[str, bytes] = field(default_factory=dict)
    """The host's own files before nacre was connected; ``after`` contains them after the removal."""
    after: dict[str, bytes] = field(default_factory=dict)
    scenes: dict[str, Scene] = field(default_factory=dict)
    read: dict[str, Any] = field(default_factory=dict)
    """The report of ``nacre ingest`` on all its transcripts."""

    def scene(self, name: str, prompt: str, session: str = "", *, compacts: bool = False) -> Scene:
        """Run one prompt and save its scene under a name."""
        start, hook_count = len(self.stage.provider.requests), len(self.stage.hook_runs())
        response = self.driver.say(self.stage, prompt, session, compacts=compacts)
        self.scenes[name] = Scene(
            response, self.stage.model_requests(start), self.stage.hook_runs()[hook_count:]
        )
        return self.scenes[name]


def play(driver: Driver, stage: Stage) -> Story:
    """Run the whole story once."""
    story = Story(driver, stage)
    stage.install(driver.program, command(driver.name))
    driver.set_up(stage)
    stage.nacre("store", KNOWN, "--kind", "fact", "--subject", "Retries of the mailer")
    stage.nacre("store", INTENT, "--trigger", TRIGGER, "--times", "1")
    _read_earlier_session(stage)
    story.before = stage.settings()
    stage.nacre("init", "--host", driver.name, *driver.options, "--yes")
    first = story.scene("first", DECIDED)
    story.scene("lookup", ASKS, first.result.session)
    _until_read(story, first.result.session)
    story.scene("second", COMES_BACK)
    story.scene("pointed", REFERS)
    story.scene("compaction", COMES_BACK, first.result.session, compacts=True)
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
    """Wait until the first session has been read, either at its end or by the daemon."""
    name = f"{story.driver.tool}:{session}"
    eventually(lambda: name in story.stage.nacre("sessions", "list", "--json").out)


@contextmanager
def _hung_daemon(stage: Stage) -> Iterator[None]:
    """Run a daemon that accepts every call and never answers."""
    stage.run([str(stage.programs / "nacre"), "serve", "stop"])
    path = stage.memory / "daemon.sock"
    path.unlink(missing_ok=True)
    connections: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)

        def take() -> None:
            with suppress(OSError):
                while True:
                    connections.append(listener.accept()[0])

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for connection in connections:
                connection.close()
            path.unlink(missing_ok=True)
