"""nacre's git calls run programs from the owner's configuration, but none from the vault's repository."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.conftest import Nacre

PLANTS = (
    ("filter.planted.clean", "{}"),
    ("filter.planted.smudge", "{}"),
    ("filter.planted.process", "{}"),
    ("filter.planted.required", "true"),
    ("filter.a=b.clean", "{}"),
    ("core.fsmonitor", "{}"),
    ("core.hooksPath", "{hooks}"),
    ("core.sshCommand", "{}"),
    ("core.askPass", "{}"),
    ("core.editor", "{}"),
    ("core.pager", "{}"),
    ("core.gitProxy", "{}"),
    ("core.alternateRefsCommand", "{}"),
    ("core.attributesFile", "{attributes}"),
    ("diff.external", "{}"),
    ("diff.planted.command", "{}"),
    ("diff.planted.textconv", "{}"),
    ("merge.planted.driver", "{}"),
    ("merge.default", "planted"),
    ("gpg.program", "{}"),
    ("commit.gpgSign", "true"),
    ("push.gpgSign", "true"),
    ("log.showSignature", "true"),
    ("credential.helper", "!{}"),
    ("sequence.editor", "{}"),
    ("gc.recentObjectsHook", "{}"),
    ("hook.planted.command", "{}"),
    ("hook.planted.event", "reference-transaction"),
    ("remote.origin.promisor", "true"),
    ("remote.origin.proxy", "{}"),
    ("protocol.ext.allow", "always"),
    ("pager.log", "{}"),
    ("alias.status", "!{}"),
    ("include.path", "{include}"),
)
"""Settings and their values; ``{}`` is a program that leaves a mark."""

HOOKS = (
    "pre-commit",
    "post-commit",
    "pre-push",
    "reference-transaction",
    "post-index-change",
    "pre-auto-gc",
)
COMMANDS = (
    ("store", "The mill runs on river water, not on steam."),
    (
        "admin",
        "commit",
    ),
    ("log",),
    (
        "log",
        "--diff",
    ),
    (
        "admin",
        "doctor",
    ),
    ("admin", "doctor", "--deep"),
    ("sync",),
    ("admin", "scrub", "--yes", "--no-vectors"),
    ("admin", "scrub", "--yes", "--history", "--no-vectors"),
    ("store", "The bakery opens at six on weekdays."),
    ("undo", "{last}", "--yes"),
    (
        "admin",
        "commit",
    ),
    ("sync", "--accept-rewritten"),
    ("data", "backup", "create", "{backup}"),
)


class Planted:
    """A vault with a remote, whose repository configures a program wherever git allows it."""

    def __init__(self, folder: Path, vault: Path) -> None:
        self.folder = folder
        self.vault = vault
        self.marks = folder / "marks"
        self.program = folder / "program"
        self.remote = folder / "remote.git"
        self.git("init", "--bare", "--quiet", str(self.remote))

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.vault, check=True, capture_output=True)

    def plant(self) -> None:
        self.write_program("program")
        hooks = self.folder / "hooks"
        for place in (hooks, self.vault / ".git" / "hooks"):
            place.mkdir(exist_ok=True)
            for name in HOOKS:
                self._write(place / name, self.program.read_text())
        attributes = "* filter=planted diff=planted merge=planted\n*.md filter=a=b\n"
        (self.vault / ".gitattributes").write_text(attributes)
        (self.vault / ".git" / "info").mkdir(exist_ok=True)
        (self.vault / ".git" / "info" / "attributes").write_text(attributes.splitlines()[0] + "\n")
        (self.folder / "attributes").write_text(attributes)
        (self.folder / "include").write_text(f'[filter "planted"]\n\tclean = {self.program}\n')
        for name, value in PLANTS:
            command = value.replace("{}", str(self.program))
            for word in ("hooks", "attributes", "include"):
                command = command.replace(f"{{{word}}}", str(self.folder / word))
            self.git("config", "--local", name, command)

    def marked(self) -> str:
        return self.marks.read_text() if self.marks.exists() else ""

    def touch(self) -> None:
        """Make files differ from git's index so that git reads them."""
        for file in self.vault.rglob("*.md"):
            os.utime(file, (1, 1))

    def write_program(self, name: str) -> Path:
        """Write a program that leaves a mark and fails."""
        path = self.folder / name
        self._write(path, f'#!/bin/sh\necho "$0 $*" >> {self.marks}\nexit 1\n')
        return path

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text)
        file.chmod(0o700)


@contextmanager
def asking_for_credentials() -> Iterator[str]:
    """The address of a server on loopback that refuses all logins."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="mill"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/memories.git"
        server.shutdown()
        thread.join(timeout=30)


@pytest.fixture
def planted(nacre: Nacre, tmp_path: Path) -> Iterator[Planted]:
    nacre("store", "Billing keeps its data in PostgreSQL.", "--yes", code=None)
    nacre("admin", "commit")
    setup = Planted(tmp_path, Path(os.environ["NACRE_HOME"]) / "vault")
    nacre("sync", "--remote", str(setup.remote))
    return setup


def test_programs_in_the_vault_repository_never_run(planted: Planted, nacre: Nacre) -> None:
    planted.plant()
    for command in COMMANDS:
        planted.touch()
        last = nacre("log", "--json").json["operations"][0]["operation"]["id"]
        words = {"{last}": last, "{backup}": str(planted.folder / "kept.zip")}
        outcome = nacre(*(words.get(word, word) for word in command), code=None)
        assert (planted.marked(), outcome.code) == ("", 0), command
    planted.touch()
    subprocess.run(["git", "status"], cwd=planted.vault, check=False, capture_output=True)
    assert str(planted.program) in planted.marked()


@pytest.mark.parametrize("name", ["uploadpack", "receivepack", "vcs"])
def test_programs_configured_in_the_vault_repository_are_refused(
    name: str, planted: Planted, nacre: Nacre
) -> None:
    planted.plant()
    planted.git("config", "--local", f"remote.origin.{name}", str(planted.program))
    outcome = nacre("store", "The mill runs on river water, not on steam.")
    refused = nacre("sync", "--json", code=None).error
    assert f"remote.origin.{name}" in refused["message"]
    assert "config --unset-all" in refused["hint"]
    assert nacre("admin", "doctor", code=None).out.count(f"remote.origin.{name}")
    assert (planted.marked(), outcome.code) == ("", 0)
    planted.git("config", "--local", "--unset-all", f"remote.origin.{name}")
    assert "Sent" in nacre("sync").out


def test_vault_files_run_none_of_the_owners_filters(planted: Planted, nacre: Nacre) -> None:
    planted.write_program("program")
    (planted.vault / ".gitattributes").write_text("* filter=owners\n")
    planted.git("config", "--global", "filter.owners.clean", str(planted.program))
    planted.touch()
    nacre("store", "The mill runs on river water, not on steam.")
    nacre("admin", "commit")
    nacre("sync")
    assert planted.marked() == ""


def test_ssh_command_comes_from_user_settings_only(planted: Planted, nacre: Nacre) -> None:
    planted.plant()
    owners = planted.write_program("owners")
    planted.git("config", "--global", "core.sshCommand", str(owners))
    nacre("sync", "--remote", "me@mill.example:memories.git", code=None)
    assert planted.marked().startswith(f"{owners} ")
    assert str(planted.program) not in planted.marked()


def test_credential_helper_comes_from_user_settings_only(planted: Planted, nacre: Nacre) -> None:
    planted.plant()
    owners = planted.write_program("owners")
    planted.git("config", "--global", "credential.helper", f"!{owners}")
    with asking_for_credentials() as url:
        nacre("sync", "--remote", url, code=None)
    assert f"{owners} get" in planted.marked()
    assert str(planted.program) not in planted.marked()
