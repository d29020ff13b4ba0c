"""Machines that sync with one remote converge to the same vault and index."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nacre.care.database import rebuild
from nacre.data.forget import ForgetRequest, forget, prepare
from nacre.data.history import commit_operations
from nacre.data.sync import State, Synced, SyncRequest, last_sync, long_failing, sync
from nacre.data.undo import log, undo
from nacre.errors import (
    EditConflictError,
    HistoryRewrittenError,
    InvalidInputError,
    NacreError,
    RemoteRefusedError,
    RemoteUnreachableError,
    SecretFoundError,
    UnusableRepositoryError,
    UnusableVaultError,
)
from nacre.home.home import Home
from nacre.memories.edit import scan
from nacre.memories.graph import NewLink, Relation, link
from nacre.memories.requests import StoreRequest
from nacre.memories.store import edit, get, list_active, retire, store
from nacre.recall.pins import check_pins, pin
from nacre.review import queue
from nacre.values.memory import Kind
from nacre.values.recall import Filter
from nacre.vault.documents import MergeOutcome
from tests.app.conftest import Clock, World
from tests.processes import Processes

MAX_PROCESSES = 5
"""Limit of git processes for a sync without changes."""

MAX_PROCESSES_TO_SEND = 20
"""Limit of git processes for a sync that commits and sends one memory."""

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@dataclass
class Machine:
    """A machine of the owner with a home, a clock and direct access to git."""

    world: World
    remote: Path

    @property
    def vault(self) -> Path:
        return self.world.vault

    def do(self, work, *arguments, **options):  # type: ignore[no-untyped-def]
        """Call a function with a newly opened home, an hour later."""
        self.world.clock.pass_days(1 / 24)
        context = self.world.context()
        try:
            return work(context, *arguments, **options)
        finally:
            context.database.close()

    def sync(self, **options: object) -> Synced:
        return self.do(sync, SyncRequest(**{"timeout_seconds": 20.0, **options}))  # type: ignore[no-any-return, arg-type]

    def store(self, content: str, **values: object) -> str:
        return self.do(store, StoreRequest(content=content, force=True, **values)).memory_id  # type: ignore[no-any-return, arg-type]

    def git(self, *arguments: str, check: bool = True) -> str:
        return git(self.vault, *arguments, check=check)

    def path(self, memory_id: str) -> Path:
        return self.world.memory_file(memory_id)

    def active(self) -> list[str]:
        return sorted(memory.content for memory in self.do(list_active, Filter(), limit=10_000)[0])

    def state(self) -> object:
        """Return all files and active memories of this machine."""
        files = {
            str(path.relative_to(self.vault)): path.read_bytes()
            for path in self.vault.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(self.vault).parts
        }
        memories, _ = self.do(list_active, Filter(), limit=10_000)
        return files, sorted(memories, key=lambda memory: memory.id)


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "GIT_AUTHOR_NAME": "owner",
        "GIT_AUTHOR_EMAIL": "owner@localhost",
        "GIT_COMMITTER_NAME": "owner",
        "GIT_COMMITTER_EMAIL": "owner@localhost",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_EDITOR": "true",
    }
    process = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, env=environ
    )
    assert not check or process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    return folder


def machine(tmp_path: Path, remote: Path, name: str) -> Machine:
    home = tmp_path / name
    home.mkdir()
    # The clocks differ slightly, so ids of two machines have different times.
    clock = Clock()
    clock.pass_days(len(name) / 86400 + ord(name[0]) / 1e6)
    return Machine(World(home, clock=clock, environ={"PATH": os.environ["PATH"]}), remote)


@pytest.fixture
def pair(tmp_path: Path, remote: Path) -> tuple[Machine, Machine]:
    """Two machines that share a memory of the bridge and a memory of the yard."""
    first, second = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    first.store(
        "The bridge opens at eight. Its keeper is Osk.", subject="Bridge", project="harbour"
    )
    first.store("Lorries wait in the yard.", subject="Yard", project="harbour")
    first.sync(remote=str(remote))
    second.sync(remote=str(remote))
    assert first.sync().state in (State.SYNCED, State.UP_TO_DATE)
    assert first.state() == second.state()
    return first, second


def converge(*machines: Machine) -> list[Synced]:
    results = [item.sync() for item in (*machines, *machines)]
    for item in machines:
        assert item.state() == machines[0].state()
        assert item.git("status", "--short") == ""
        assert item.git("rev-parse", "HEAD") == git(item.remote, "rev-parse", "HEAD")
    for item in machines:
        before = item.state()
        rebuild(item.world.settings(), open_home=item.world.context)
        assert item.state() == before
    return results


def commit(context: Home) -> None:
    scan(context)
    commit_operations(context)


def bridge(device: Machine) -> Path:
    return next(
        path for path in device.vault.rglob("*.md") if "subject: Bridge" in path.read_text()
    )


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_sync_without_a_remote_commits_and_reports_the_missing_remote(
    tmp_path: Path, remote: Path
) -> None:
    device = machine(tmp_path, remote, "one")
    device.store("Low tide is at noon.")
    assert device.sync().state is State.NO_REMOTE
    assert "Low tide" in device.git("log", "--format=%B")


def test_memories_sync_in_both_directions(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    second.store("The mill grinds on Mondays.")
    sent = second.sync()
    assert (sent.sent, sent.received) == (1, 0)
    received = first.sync()
    assert (received.sent, received.received) == (0, 1)
    assert "The mill grinds on Mondays." in first.active()
    assert first.git("rev-parse", "HEAD") == second.git("rev-parse", "HEAD")
    assert first.sync().state is State.UP_TO_DATE
    assert {"store"} <= {entry.operation.action for entry in first.do(log, limit=50)}


def test_changes_to_different_fields_are_merged(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    first.do(edit, "Bridge", importance=9)
    second.do(edit, "Bridge", content="The bridge opens at nine. Its keeper is Osk.")
    results = converge(first, second)
    bridge_memory = first.do(get, "Bridge")
    assert (bridge_memory.importance, bridge_memory.content) == (
        9,
        "The bridge opens at nine. Its keeper is Osk.",
    )
    assert [note.outcome for note in results[1].notes] == [MergeOutcome.MERGED]
    assert (results[1].sent, results[1].received) == (1, 1)


def test_conflicting_sentences_keep_both_versions(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    first.do(edit, "Bridge", content="The bridge opens at seven. Its keeper is Osk.")
    second.do(edit, "Bridge", content="The bridge opens at nine. Its keeper is Osk.")
    results = converge(first, second)
    (note,) = results[1].notes
    assert note.outcome is MergeOutcome.KEPT_TWICE
    assert {
        "The bridge opens at seven. Its keeper is Osk.",
        "The bridge opens at nine. Its keeper is Osk.",
    } < set(first.active())
    for device in (first, second):
        (waiting,) = device.do(queue.list_conflicts)
        assert (waiting.newer.id, waiting.newer.content) == (
            note.memory,
            "The bridge opens at seven. Its keeper is Osk.",
        )
        assert waiting.older.content == "The bridge opens at nine. Its keeper is Osk."


def test_memory_moved_and_edited_on_two_machines_keeps_both_changes(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    target = first.vault / "projects/town/event/bridge.md"
    target.parent.mkdir(parents=True)
    bridge(first).rename(target)
    second.do(edit, "Bridge", content="The bridge is closed.")
    converge(first, second)
    bridge_memory = second.do(get, "Bridge")
    assert (bridge_memory.project, bridge_memory.kind, bridge_memory.content) == (
        "town",
        Kind.EVENT,
        "The bridge is closed.",
    )


def test_memory_retired_here_stays_retired_despite_a_remote_edit(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    first.do(retire, ["Bridge"], "torn down")
    second.do(edit, "Bridge", content="The bridge is closed.")
    results = converge(first, second)
    assert [note.outcome for note in results[1].notes] == [MergeOutcome.STAYS_RETIRED]
    bridge_memory = second.do(get, "Bridge")
    assert bridge_memory.retired
    assert (bridge_memory.content, bridge_memory.retired.reason) == (
        "The bridge is closed.",
        "torn down",
    )


def test_memory_deleted_with_git_and_edited_in_nacre_is_kept(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    first, second = pair
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(first.remote), str(clone))
    git(clone, "rm", "--quiet", str(bridge(first).relative_to(first.vault)))
    git(clone, "rm", "--quiet", "projects/harbour/fact/yard.md")
    git(clone, "commit", "--quiet", "-m", "Away with both")
    git(clone, "push", "--quiet")
    second.do(edit, "Bridge", content="The bridge is closed.")
    results = converge(second, first)
    assert [note.outcome for note in results[0].notes] == [MergeOutcome.KEPT_EDITED]
    assert first.active() == ["The bridge is closed."]
    assert first.do(get, "Yard").retired


def test_memories_with_the_same_name_are_both_kept(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    first.store("The mill grinds on Mondays.", subject="Mill")
    second.store("The mill belongs to Ida.", subject="Mill")
    converge(first, second)
    assert {"The mill grinds on Mondays.", "The mill belongs to Ida."} < set(first.active())


def test_memories_stored_identically_on_two_machines_become_one_memory(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    for device in pair:
        device.store("The mill grinds on Mondays.", subject="Mill")
    converge(first, second)
    assert first.active().count("The mill grinds on Mondays.") == 1
    retired = first.vault / "retired"
    assert not list(retired.rglob("*.md"))


def test_note_without_an_id_pulled_by_both_machines_stays_unique(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    first, second = pair
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(first.remote), str(clone))
    (clone / "inbox").mkdir()
    (clone / "inbox/tides.md").write_text("# Tides\n\nLow at noon.\n")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "A note from the telephone")
    git(clone, "push", "--quiet")
    for device in pair:
        device.git("pull", "--quiet", "origin", "main")
        device.do(commit)
    converge(first, second)
    assert first.active().count("Low at noon.") == 1


def test_unrelated_vaults_are_joined(tmp_path: Path, remote: Path) -> None:
    first, second = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    for device, words in ((first, "The mill grinds."), (second, "The bridge opens.")):
        device.store(words, project="harbour")
        device.sync(remote=str(remote))
    converge(first, second)
    assert first.active() == ["The bridge opens.", "The mill grinds."]


def test_three_machines_converge(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    first, second = pair
    third = machine(tmp_path, first.remote, "third")
    third.sync(remote=str(first.remote))
    for number, device in enumerate((first, second, third)):
        device.do(edit, "Bridge", content=f"The bridge opens at {number + 7}. Its keeper is Osk.")
        device.store(f"Ship {number} lies at the quay.")
    for device in (first, second, third):
        device.sync()
    converge(third, second, first)
    assert sum(words.startswith("The bridge opens") for words in first.active()) == 3


def test_undo_on_one_machine_applies_to_other_machines(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    first.do(edit, "Bridge", content="The bridge is closed.")
    converge(first, second)
    last = next(
        entry.operation for entry in second.do(log, limit=5) if entry.operation.action == "update"
    )
    second.do(undo, last.id)
    converge(second, first)
    assert "The bridge opens at eight. Its keeper is Osk." in first.active()


def test_memory_forgotten_remotely_is_not_restored_by_an_edit(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    memory = first.do(get, "Bridge")
    ledger = first.vault / "ledger.jsonl"
    line = {
        "op": "0199-0001",
        "at": "2026-11-21T00:00:00Z",
        "action": "forget",
        "memories": {memory.id: []},
    }
    ledger.write_text((ledger.read_text() if ledger.exists() else "") + json.dumps(line) + "\n")
    bridge(first).unlink()
    first.git("add", "-A")
    first.git("commit", "--quiet", "-m", "Forget the bridge")
    first.git("push", "--quiet", "origin", "main")
    second.do(edit, "Bridge", content="The bridge is closed for ever.")
    second.sync()
    assert not [path for path in second.vault.rglob("*.md") if "The bridge" in path.read_text()]
    assert git(first.remote, "grep", "closed for ever", "main", check=False) == ""
    assert "Lorries wait in the yard." in second.active()


def test_sync_merges_ledgers(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    first.do(retire, ["Bridge"], "torn down")
    second.do(retire, ["Yard"], "paved over")
    converge(first, second)
    lines = [json.loads(line) for line in (first.vault / "ledger.jsonl").read_text().splitlines()]
    assert {"torn down", "paved over"} <= {line.get("reason") for line in lines}
    assert [line["op"] for line in lines] == sorted(line["op"] for line in lines)


def test_sync_transfers_other_files(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    (first.vault / "tide.png").write_bytes(b"\x89PNG\0one")
    (second.vault / "tide.png").write_bytes(b"\x89PNG\0two")
    (second.vault / ".obsidian").mkdir()
    (second.vault / ".obsidian/app.json").write_text("{}\n")
    results = converge(first, second)
    assert [note.outcome for note in results[1].notes] == [MergeOutcome.KEPT_BESIDE]
    contents_kept = {path.read_bytes() for path in first.vault.glob("tide.png*")}
    assert contents_kept == {b"\x89PNG\0one", b"\x89PNG\0two"}
    assert (first.vault / ".obsidian/app.json").exists()


def test_pins_of_two_machines_are_merged(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    first.store("The bridge is open in May.")
    first.store("The ferry sails on Mondays.")
    converge(first, second)
    first.do(pin, "when is the bridge open?", answer="May")
    converge(first, second)
    first.do(pin, "when does the ferry sail?", answer="Mondays")
    second.do(pin, "when is the bridge open?", answer="in May")
    converge(first, second)
    lines = (second.vault / "pinned.txt").read_text().splitlines()
    assert sorted(lines) == [
        "when does the ferry sail? => Mondays",
        "when is the bridge open? => in May",
    ]
    assert [check.holds for check in second.do(check_pins)] == [True, True]


def test_file_conflicting_with_a_folder_is_renamed(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    (second.vault / "projects/town").write_text("A list of towns.\n")
    first.store("The mill grinds.", project="town")
    converge(first, second)
    assert "The mill grinds." in second.active()
    assert [path.read_text() for path in first.vault.glob("projects/town.other-*")] == [
        "A list of towns.\n"
    ]


def test_full_disk_is_reported_and_the_next_sync_continues(
    pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    second.do(edit, "Yard", importance=9)
    second.store("The mill grinds.")
    second.sync()

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("nacre.vault.files._Folder.replace", fail)
        with pytest.raises(UnusableVaultError, match="No space left"):
            first.sync()
    converge(first, second)
    assert len(first.active()) == 3


def test_sync_imports_manual_edits_first(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    replace_in(bridge(first), "at eight", "at nine")
    second.do(edit, "Bridge", importance=9)
    second.sync()
    first.sync()
    assert "at nine" in bridge(first).read_text()
    assert "importance: 9" in bridge(first).read_text()


# Changes made with git directly.


def test_sync_works_after_a_manual_pull_with_rebase(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    second.do(edit, "Yard", importance=9)
    second.sync()
    first.do(edit, "Bridge", importance=8)
    first.do(commit)
    first.git("pull", "--quiet", "--rebase", "origin", "main")
    first.store("The mill grinds.")
    converge(first, second)
    assert first.do(get, "Yard").importance == 9
    assert second.do(get, "Bridge").importance == 8


def test_file_with_conflict_markers_is_reported_and_not_read(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    first, second = pair
    path = bridge(first).relative_to(first.vault)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(first.remote), str(clone))
    replace_in(
        clone / path,
        "at eight. Its keeper is Osk.",
        "\n<<<<<<< HEAD\nat six\n=======\nat ten\n>>>>>>> other\n",
    )
    git(clone, "commit", "--quiet", "-am", "Merged, more or less")
    git(clone, "push", "--quiet")
    result = first.sync()
    assert any(str(path) in problem and "marks" in problem for problem in result.problems)
    assert "The bridge opens at eight. Its keeper is Osk." in first.active()
    (clone / path).write_text(
        (first.vault / path).read_text().split("The bridge")[0] + "The bridge opens at six.\n"
    )
    git(clone, "commit", "--quiet", "-am", "Merged")
    git(clone, "push", "--quiet")
    assert not first.sync().problems
    converge(second, first)
    assert "The bridge opens at six." in second.active()


def test_sync_works_after_amending_a_pushed_commit(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    first.do(edit, "Bridge", importance=9)
    first.sync()
    first.git("commit", "--quiet", "--amend", "-m", "In other words")
    first.store("The mill grinds.")
    converge(first, second)
    assert second.do(get, "Bridge").importance == 9


def test_rewritten_history_is_refused_until_accepted(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    first, second = pair
    second.store("This was not meant to be said.")
    second.sync()
    first.sync()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(first.remote), str(clone))
    git(clone, "reset", "--quiet", "--hard", "HEAD~1")
    (clone / "profile.md").write_text("Always ask.\n")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "Nothing happened")
    git(clone, "push", "--quiet", "--force")
    first.store("The mill grinds.")
    head = first.git("rev-parse", "HEAD")
    with pytest.raises(HistoryRewrittenError) as refused:
        first.sync()
    assert "--accept-rewritten" in (refused.value.hint or "")
    assert first.git("merge-base", "HEAD", head.strip()).strip() == head.strip()
    first.sync(accept_rewritten=True)
    assert "not meant" not in git(first.remote, "log", "-p", "--all")
    assert {"The mill grinds."} < set(first.active())
    assert "This was not meant to be said." not in first.active()
    second.sync(accept_rewritten=True)
    converge(first, second)


def test_merge_in_progress_and_detached_head_are_refused(
    pair: tuple[Machine, Machine],
) -> None:
    device, _ = pair
    (device.vault / ".git/MERGE_HEAD").write_text(device.git("rev-parse", "HEAD"))
    with pytest.raises(UnusableRepositoryError, match="a merge is in progress"):
        device.sync()
    (device.vault / ".git/MERGE_HEAD").unlink()
    device.git("switch", "--quiet", "--detach")
    with pytest.raises(UnusableRepositoryError, match="detached"):
        device.sync()
    device.git("switch", "--quiet", "main")
    assert device.sync().state is State.UP_TO_DATE


def test_sync_keeps_staged_files_staged(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    (first.vault / "draft.txt").write_text("Not yet.\n")
    first.git("add", "draft.txt")
    second.store("The mill grinds.")
    second.sync()
    first.sync()
    assert first.git("status", "--short") == "A  draft.txt\n"


# Remotes.


def test_sync_uses_the_default_branch_of_the_remote(tmp_path: Path, remote: Path) -> None:
    git(remote, "symbolic-ref", "HEAD", "refs/heads/trunk")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(remote), str(clone))
    git(clone, "checkout", "--quiet", "-b", "trunk")
    (clone / "README.md").write_text("Memories.\n")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "Begin")
    git(clone, "push", "--quiet", "origin", "trunk")
    device = machine(tmp_path, remote, "one")
    device.store("The mill grinds.")
    assert device.sync(remote=str(remote)).branch == "trunk"
    assert git(remote, "branch", "--format=%(refname:short)") == "trunk\n"
    assert (device.vault / "README.md").exists()


@pytest.mark.parametrize(
    "address",
    [
        "https://owner:hunter2@example.org/memories.git",
        "ext::sh -c true",
        "--upload-pack=true",
        "nowhere/at/all",
    ],
)
def test_remote_addresses_with_passwords_or_unsafe_schemes_are_refused(
    tmp_path: Path, remote: Path, address: str
) -> None:
    device = machine(tmp_path, remote, "one")
    with pytest.raises(InvalidInputError):
        device.sync(remote=address)
    assert device.git("remote") == ""


def test_unreachable_remote_is_reported_and_the_next_sync_continues(
    pair: tuple[Machine, Machine],
) -> None:
    first, second = pair
    away = first.remote.with_name("away.git")
    first.remote.rename(away)
    first.store("The mill grinds.")
    with pytest.raises(RemoteRefusedError, match="no repository"):
        first.sync()
    failed = first.do(last_sync)
    assert failed.failing_since
    assert first.do(long_failing) is None
    first.world.clock.pass_days(2)
    assert first.do(long_failing).message == failed.message
    assert first.do(long_failing) is None
    away.rename(first.remote)
    assert first.sync().sent == 1
    assert first.do(last_sync).failing_since is None
    second.sync()
    assert "The mill grinds." in second.active()


def test_unreachable_host_is_reported(tmp_path: Path, remote: Path) -> None:
    device = machine(tmp_path, remote, "one")
    with pytest.raises(RemoteUnreachableError, match="cannot be reached"):
        device.sync(remote="http://127.0.0.1:1/memories.git")


def test_unreachable_address_does_not_replace_a_working_remote(
    pair: tuple[Machine, Machine],
) -> None:
    device, _ = pair
    with pytest.raises(RemoteUnreachableError):
        device.sync(remote="http://127.0.0.1:1/memories.git")
    assert device.sync().url == str(device.remote)


def test_unresponsive_remote_is_abandoned_after_the_timeout(tmp_path: Path, remote: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nsleep 60\n")
    silent.chmod(0o755)
    device = machine(tmp_path, remote, "one")
    device.world.environ["GIT_SSH_COMMAND"] = str(silent)
    with pytest.raises(RemoteUnreachableError, match="did not answer within 1 second"):
        device.sync(remote="owner@example.invalid:memories.git", timeout_seconds=1.0)


def test_rejected_credentials_are_reported_without_a_prompt(tmp_path: Path, remote: Path) -> None:
    refusing = tmp_path / "refusing"
    refusing.write_text(
        "#!/bin/sh\necho 'owner@host: Permission denied (publickey).' >&2\nexit 255\n"
    )
    refusing.chmod(0o755)
    device = machine(tmp_path, remote, "one")
    device.world.environ["GIT_SSH_COMMAND"] = str(refusing)
    with pytest.raises(RemoteRefusedError, match="credentials"):
        device.sync(remote="owner@example.invalid:memories.git")


def test_rejection_by_a_remote_hook_shows_its_message(pair: tuple[Machine, Machine]) -> None:
    device, _ = pair
    hook = device.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'Only on weekdays.' >&2\nexit 1\n")
    hook.chmod(0o755)
    device.store("The mill grinds.")
    with pytest.raises(RemoteRefusedError, match="Only on weekdays"):
        device.sync()
    hook.unlink()
    assert device.sync().sent == 1


def test_sync_retries_if_the_remote_changes_during_push(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    second.store("The mill grinds.")
    second.do(commit)
    hook = first.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    # The second machine's commit arrives during the push of the first.
    hook.write_text(
        f"#!/bin/sh\nunset GIT_QUARANTINE_PATH $(git rev-parse --local-env-vars)\nrm {hook}\n"
        f"git -C {second.vault} push --quiet {first.remote} main\nexit 0\n"
    )
    hook.chmod(0o755)
    first.store("The bridge opens.")
    result = first.sync()
    assert result.sent == 1
    assert result.received == 1
    converge(first, second)


# Secrets.


def test_secret_in_outgoing_commits_stops_the_push(pair: tuple[Machine, Machine]) -> None:
    device, _ = pair
    (device.vault / "notes.txt").write_text(f"token = {SECRET}\n")
    device.git("add", "-A")
    device.git("commit", "--quiet", "-m", "By hand")
    before = git(device.remote, "rev-parse", "HEAD")
    with pytest.raises(SecretFoundError) as error:
        device.sync()
    assert "notes.txt" in error.value.message
    assert SECRET not in error.value.message
    assert "nacre admin scrub" in (error.value.hint or "")
    assert git(device.remote, "rev-parse", "HEAD") == before


def test_sync_without_changes_starts_few_processes(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process delays the owner by milliseconds, so git settings are read in a single call."""
    log, wrapper = tmp_path / "calls", tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f'#!/bin/sh\necho "$*" >> {log}\nexec {shutil.which("git")} "$@"\n', encoding="utf-8"
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    desk = machine(tmp_path, remote, "desk")
    desk.store("The mast stands on pier 9.")
    desk.sync(remote=str(remote))

    def count_calls() -> int:
        log.unlink()
        desk.sync()
        return log.read_bytes().count(b"\n")

    assert 0 < count_calls() <= MAX_PROCESSES, log.read_text(encoding="utf-8")
    desk.git("pack-refs", "--all")
    assert count_calls() <= MAX_PROCESSES, log.read_text(encoding="utf-8")
    desk.store("The buoy lies off pier 9.")
    assert count_calls() <= MAX_PROCESSES_TO_SEND, log.read_text(encoding="utf-8")
    assert desk.git("rev-parse", "HEAD") == git(remote, "rev-parse", "HEAD")


def test_file_with_a_secret_is_held_and_other_files_sync(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    replace_in(bridge(first), "Its keeper is Osk.", f"Its token is {SECRET}.")
    first.store("The mill grinds.")
    result = first.sync()
    assert [item.path for item in result.held] == [str(bridge(first).relative_to(first.vault))]
    assert SECRET not in git(first.remote, "log", "-p", "--all")
    second.do(edit, "Bridge", importance=9)
    second.sync()
    with pytest.raises(EditConflictError, match="has a problem"):
        first.sync()
    assert SECRET in bridge(first).read_text()
    replace_in(bridge(first), SECRET, "gone")
    converge(first, second)
    assert first.do(get, "Bridge").importance == 9


# Crashes.


class KilledError(BaseException):
    """Raised where the process is killed."""


@pytest.mark.parametrize("point", ["intents", "written", "moved", "index", "pushed"])
def test_next_sync_continues_a_killed_sync(
    pair: tuple[Machine, Machine], point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nacre.data import sync as import_remote
    from nacre.vault.git import Repository
    from nacre.vault.remotes import Remote

    first, second = pair
    first.do(edit, "Bridge", content="The bridge opens at seven. Its keeper is Osk.")
    second.do(edit, "Bridge", content="The bridge opens at nine. Its keeper is Osk.")
    target = second.vault / "projects/town/fact/yard.md"
    target.parent.mkdir(parents=True)
    (second.vault / "projects/harbour/fact/yard.md").rename(target)
    second.sync()

    def kill(*_: object, **__: object) -> None:
        raise KilledError

    places = {
        "intents": (import_remote, "apply_intents"),
        "written": (Repository, "move_head"),
        "moved": (import_remote, "step_index"),
        "index": (import_remote, "scan"),
        "pushed": (Remote, "remember"),
    }
    with monkeypatch.context() as patched:
        patched.setattr(*places[point], kill)
        with pytest.raises(KilledError):
            first.sync()
    first.do(commit)
    converge(first, second)
    words = first.active()
    assert len(words) == 3
    assert len(set(words)) == 3
    assert not list((first.vault / "retired").rglob("*.md"))


# Many memories and random changes.


def test_hundreds_of_memories_sync_together(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    for number in range(600):
        first.world.write(
            f"projects/harbour/fact/ship-{number}.md",
            f"# Ship {number}\n\nShip {number} lies at the quay.\n",
        )
    converge(first, second)
    assert len(second.active()) == 602


def make_random_change(random_: random.Random, device: Machine, number: int) -> None:
    """Make a random change, as a person would."""
    active, _ = device.do(list_active, Filter(), limit=100)
    memory = random_.choice(active) if active else None
    action = random_.choice(["store", "edit", "retire", "move", "delete", "append", "tag"])
    if action == "store" or memory is None:
        device.store(
            f"{random_.choice(['Ship', 'Crane'])} {number} lies at quay {random_.randint(1, 9)}.",
            subject=random_.choice(["Ship", "Crane", f"Quay {number}"]),
        )
    elif action == "edit":
        device.do(
            edit, memory.id, content=f"It lies at quay {random_.randint(1, 9)} since day {number}."
        )
    elif action == "retire":
        device.do(retire, [memory.id], f"gone on day {number}")
    elif action == "tag":
        device.do(edit, memory.id, tags=[*memory.tags, f"day-{number}"])
    elif action == "move":
        target = (
            device.vault / f"projects/{random_.choice(['harbour', 'town'])}/fact/moved-{number}.md"
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        device.path(memory.id).rename(target)
    elif action == "delete":
        device.path(memory.id).unlink()
    else:
        path = device.path(memory.id)
        path.write_text(path.read_text() + f"\nSeen on day {number}.\n")


@pytest.mark.parametrize("seed", range(6))
def test_random_changes_on_two_machines_converge(pair: tuple[Machine, Machine], seed: int) -> None:
    random_ = random.Random(seed)  # noqa: S311 - not for cryptography
    for turn in range(3):
        for number in range(4):
            for device in pair:
                make_random_change(random_, device, turn * 10 + number)
        if turn == 1:
            random_.choice(pair).sync()
    converge(*pair)


def test_remote_option_does_not_hide_errors(tmp_path: Path, remote: Path) -> None:
    device = machine(tmp_path, remote, "one")
    with pytest.raises(NacreError):
        device.sync(remote=str(tmp_path / "one" / ".nacre" / "vault"))


def test_repeatedly_killed_syncs_neither_lose_nor_duplicate_memories(
    pair: tuple[Machine, Machine], processes: Processes
) -> None:
    first, second = pair
    random_ = random.Random(4)  # noqa: S311 - not for cryptography
    source = str(Path(__file__).parents[2] / "src")
    for number in range(6):
        first.store(f"Ship {number} lies at the quay.")
        second.store(f"Crane {number} stands at the quay.")
        second.do(edit, "Bridge", importance=number + 1)
        second.sync()
        environ = {
            **os.environ,
            "PYTHONPATH": source,
            "NACRE_HOME": str(first.world.home),
            "HOME": str(first.vault.parent),
        }
        process = processes.start(
            [sys.executable, "-m", "nacre", "sync"],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(random_.uniform(0.2, 1.5))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for lock in (first.vault / ".git").rglob("*.lock"):
        lock.unlink()
    converge(first, second)
    assert len(first.active()) == 14
    assert len(set(first.active())) == 14
    assert not list((first.vault / "retired").rglob("*.md"))


def test_sync_without_incoming_changes_creates_no_operation(pair: tuple[Machine, Machine]) -> None:
    first, second = pair

    def sync_counts() -> list[int]:
        return [
            sum(item.operation.action == "sync" for item in device.do(log, limit=100))
            for device in pair
        ]

    before = sync_counts()
    for device in pair:
        (path,) = device.vault.rglob("yard.md")
        path.write_text(path.read_text(encoding="utf-8").replace("wait", "queue"), encoding="utf-8")
    converge(first, second)
    assert sync_counts() == before
    assert (
        second.git("log", "--format=%s", "--merges").split("\n")[0]
        == "Merge changes from the remote"
    )


# Memories that are forgotten on one machine and changed on the other.

SECRET_NAME = "Ostermann"


def client_file(device: Machine, client: str) -> Path:
    return next(
        path for path in device.vault.rglob("*.md") if f"subject: {client}" in path.read_text()
    )


def add_secret_link(device: Machine, source: str, target: str) -> None:
    new_link = NewLink(
        source=source, relation=Relation.DEPENDS_ON, target=target, reason=f"{SECRET_NAME} owns it"
    )
    device.do(link, links=(new_link,))


def rename_client(device: Machine, client: str) -> None:
    path = client_file(device, client)
    path.rename(path.with_name("ostermann.md"))


CHANGES: dict[str, Callable[[Machine, str], object]] = {
    "content": lambda item, client: item.do(edit, client, content=f"{SECRET_NAME} pays it all."),
    "subject": lambda item, client: item.do(edit, client, subject=f"Discount of {SECRET_NAME}"),
    "importance": lambda item, client: item.do(edit, client, importance=9),
    "tags": lambda item, client: item.do(edit, client, add_tags=[SECRET_NAME.lower()]),
    "project": lambda item, client: item.do(edit, client, project="town"),
    "retired": lambda item, client: item.do(retire, [client], f"{SECRET_NAME} left"),
    "renamed": rename_client,
    "edited by hand": lambda item, client: replace_in(
        client_file(item, client), "a discount", "two discounts"
    ),
    "deleted by hand": lambda item, client: client_file(item, client).unlink(),
    "linked to": lambda item, client: add_secret_link(item, "Bridge", client),
    "linked from": lambda item, client: add_secret_link(item, client, "Bridge"),
}


def traces_of(device: Machine, word: str, since: str) -> list[str]:
    """Return files, log entries and lines of commits after ``since`` that contain a word."""
    home = device.world.home
    files = [path for path in home.rglob("*") if path.is_file() and ".git" not in path.parts]
    traces = [
        str(path)
        for path in files
        if word.encode() in path.read_bytes() or word.lower() in path.name.lower()
    ]
    traces += [str(entry.operation) for entry in device.do(log, limit=200) if word in str(entry)]
    return traces + re.findall(
        f".*{word}.*", device.git("log", "--format=%B", "--name-only", f"{since}..HEAD")
    )


@pytest.mark.parametrize("selection", ["memories", "match"])
@pytest.mark.parametrize("is_sent", [False, True])
def test_sync_does_not_restore_forgotten_words(
    tmp_path: Path, remote: Path, selection: str, *, is_sent: bool
) -> None:
    first, second = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    clients = {change: f"{SECRET_NAME} client {change} gets a discount" for change in CHANGES}
    ids = {
        change: first.store(f"{client}.", project="harbour") for change, client in clients.items()
    }
    first.store("The bridge opens at eight.", subject="Bridge", project="harbour")
    first.sync(remote=str(remote))
    second.sync(remote=str(remote))
    for change, client in clients.items():
        CHANGES[change](second, client)
    if is_sent:
        second.sync()
    request = (
        ForgetRequest(match=SECRET_NAME)
        if selection == "match"
        else ForgetRequest(memories=tuple(ids.values()))
    )
    first.do(lambda home: forget(home, prepare(home, request)))
    results = [first.sync()]
    since = first.git("rev-parse", "HEAD").strip()
    results += [second.sync(), first.sync(), second.sync(), first.sync()]
    assert first.state() == second.state()
    forgotten = [note for note in results[1].notes if note.outcome is MergeOutcome.FORGOTTEN]
    assert {note.memory for note in forgotten} == {*ids.values()}
    assert SECRET_NAME.lower() not in str([device.notes for device in results]).lower()
    for device in (first, second):
        assert traces_of(device, SECRET_NAME, since) == []
        assert device.active() == ["The bridge opens at eight."]
