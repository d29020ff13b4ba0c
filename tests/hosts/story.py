"""What every host is put through once, and what was seen on the way; the tests look at it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacre.testing.conversation import Line
from nacre.testing.fake_provider import Request
from tests.hosts.driving import Driver, Said
from tests.hosts.stage import Ran, Stage, eventually

KNOWN = "The mailer of the harbour app retries five times before it gives up."
DECIDED = "We decided: the queue of the mailer runs on NATS, not on RabbitMQ, because replays are cheap there."
ASKS = "Look up how often the mailer retries."
COMES_BACK = "What did we decide about the queue of the mailer?"
FILLS = "Fill your window."

LINES = (
    Line(FILLS, say="It is full now.", tokens=390_000),
    Line(ASKS, say="It retries five times.", tool="memory_search", arguments={"query": "how often the mailer retries"}),
    Line(DECIDED, say="Noted: NATS for the queue of the mailer."),
    Line(COMES_BACK, say="On NATS."),
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
    wired: Ran | None = None
    scenes: dict[str, Scene] = field(default_factory=dict)
    before: dict[Path, bytes] = field(default_factory=dict)
    after: dict[Path, bytes] = field(default_factory=dict)

    def scene(self, name: str, prompt: str, session: str = "", *, compacts: bool = False) -> Scene:
        """Play one prompt and keep it under a name."""
        asked, ran = len(self.stage.provider.requests), len(self.stage.hook_runs())
        said = self.driver.say(self.stage, prompt, session, compacts=compacts)
        self.scenes[name] = Scene(said, self.stage.asked(asked), self.stage.hook_runs()[ran:])
        return self.scenes[name]


def play(driver: Driver, stage: Stage) -> Story:
    """The whole of it, once."""
    story = Story(driver, stage)
    driver.set_up(stage)
    stage.nacre("store", KNOWN, "--kind", "fact", "--subject", "Retries of the mailer")
    story.before = _files(stage)
    story.wired = _wire(driver, stage)
    stage.serve()
    first = story.scene("first", DECIDED)
    story.scene("lookup", ASKS, first.said.session)
    _until_read(story, first.said.session)
    story.scene("second", COMES_BACK)
    story.scene("compaction", COMES_BACK, first.said.session, compacts=True)
    with _hung_daemon(stage):
        story.scene("hung", COMES_BACK)
    stage.nacre("ingest")
    return story


def unwire(story: Story) -> None:
    """Take nacre out of the host again, and use the host once more."""
    _unwire(story.driver, story.stage)
    story.after = _files(story.stage)
    story.scene("without", COMES_BACK)


def has_init(stage: Stage) -> bool:
    """Whether this nacre wires hosts by itself."""
    return stage.run([str(stage.programs / "nacre"), "init", "--help"]).code == 0


def _wire(driver: Driver, stage: Stage) -> Ran | None:
    if has_init(stage):
        return stage.nacre("init", "--host", driver.name, "--yes")
    driver.wire_by_hand(stage)
    return None


def _unwire(driver: Driver, stage: Stage) -> None:
    stage.nacre("init", "--host", driver.name, "--uninstall", "--yes")


def _until_read(story: Story, session: str) -> None:
    """Wait until what the first session said has been read, as its end or the daemon has it done."""
    name = f"{story.driver.tool}:{session}"
    eventually(lambda: name in story.stage.nacre("sessions", "list", "--json").out)


def _files(stage: Stage) -> dict[Path, bytes]:
    """What stands in the home and the project, but for nacre's own, git's and what hosts keep for themselves."""
    return {
        path: path.read_bytes()
        for root in (stage.home, stage.project) for path in sorted(root.rglob("*"))
        if path.is_file() and not {".nacre", ".git"} & set(path.relative_to(root).parts)
    }  # fmt: skip


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

        threading.Thread(target=take, daemon=True).start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for connection in taken:
                connection.close()
            path.unlink(missing_ok=True)
