"""Every operation of the command line is run by a command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from nacre.operations import Operation
from nacre.serve.catalogue import CATALOGUE
from tests.catalogue.samples import COMMANDS, SAMPLES
from tests.cli.conftest import Nacre

IN_PARTS = {
    "retire": "the command retires the memories that it showed",
    "extract": "its answer names the request",
    "forget": "the command forgets the memories that it showed",
    "export": "it may go to standard output",
    "import-plan": "the command imports the items that it showed",
    "import": "the command imports the items that it showed",
    "models-test": "it shows its progress",
    "doctor-deep": "it repairs between two checks",
    "hosts-plan": "the command writes the changes that it showed",
    "hosts-wire": "the command writes the changes that it showed",
    "config": "it also prints the paths of the files",
    "config-set": "it warns of a variable that overrides the file",
    "config-unset": "it also repairs a file that no command can read",
}
"""Operations that their commands perform in steps, with narrower functions."""

OTHER_OUTCOMES: dict[str, tuple[str | None, ...]] = {
    "embed-try": (None,),
    "embed-switch": (None,),
}
"""The outcomes of commands that differ from the samples, because they name another model."""


@pytest.fixture(autouse=True)
def _no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")


WITHOUT_COMMAND = {
    *("get", "overview"),  # other commands show more
    *("hook", "context-given", "flush"),  # for hooks
    *("graph-central", "beliefs"),  # for agents and the dashboard
    *("graph-map", "today", "activity", "hosts", "hosts-preview"),  # for the dashboard
    *("remote-changes", "remote-versions", "remote-push", "remote-turns"),  # for other homes
}


def test_every_operation_has_a_command() -> None:
    assert CATALOGUE.keys() - COMMANDS.keys() == WITHOUT_COMMAND


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_command_runs_the_operation(
    name: str,
    nacre: Nacre,
    home: Path,
    resolve: Callable[[Any], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name in ("embed-try", "embed-switch"):
        monkeypatch.delenv(
            "NACRE_EMBEDDING_MODEL"
        )  # an environment variable would override the command's setting
    reply = tmp_path / "reply.md"
    reply.write_text("Billing uses PostgreSQL, so that accounts are charged", encoding="utf-8")
    words = shlex.split(resolve(COMMANDS[name].replace("{reply}", str(reply))))
    with called_operations() as names:
        outcome = nacre(*words, "--json", code=None, stdin="sk-invented-for-a-test-000000")
    assert name in names | IN_PARTS.keys()
    error = outcome.json.get("error") if isinstance(outcome.json, dict) else None
    assert (error["code"] if isinstance(error, dict) else None) in {
        SAMPLES[name].error,
        *OTHER_OUTCOMES.get(name, ()),
    }


@contextmanager
def called_operations() -> Iterator[set[str]]:
    """Yield the names of the operations that the command line calls meanwhile."""
    names: set[str] = set()

    def hear(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Operation.make.__code__:
            names.add(frame.f_locals["self"].name)

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        yield names
    finally:
        sys.setprofile(before)
