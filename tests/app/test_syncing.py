"""Two machines, one remote: they come to the same vault and the same index, whatever happened in between."""

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
from nacre.memories.decision import RetireRequest, StoreRequest
from nacre.memories.edit import scan
from nacre.memories.graph import NewLink, Relation, link
from nacre.memories.retire import choose, list_retired, retire_chosen, unretire
from nacre.memories.store import edit, get, list_active, retire, store
from nacre.memories.tombstones import heed_ledger
from nacre.recall.pins import check_pins, pin
from nacre.review import contradictions
from nacre.values.memory import Kind
from nacre.values.recall import Filter
from nacre.vault.documents import MergeOutcome
from tests.app.conftest import Clock, World
from tests.processes import Processes

MOST_PROGRAMS = 5
"""That a sync starts in which nothing is new."""

MOST_TO_SEND = 20
"""That a sync starts which commits and sends one memory."""

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@dataclass
class Machine:
    """A machine of the owner's: a home, a clock, and a plain git beside nacre."""

    world: World
    remote: Path

    @property
    def vault(self) -> Path:
        return self.world.vault

    def do(self, work, *arguments, **options):  # type: ignore[no-untyped-def]
        """Do one thing in a nacre that is opened for it."""
        self.world.clock.pass_days(1 / 24)
        context = self.world.context()
        try:
            return work(context, *arguments, **options)
        finally:
            context.database.close()

    def sync(self, **wanted: object) -> Synced:
        return self.do(sync, SyncRequest(**{"timeout_seconds": 20.0, **wanted}))  # type: ignore[no-any-return, arg-type]

    def store(self, content: str, **values: object) -> str:
        return self.do(store, StoreRequest(content=content, force=True, **values)).memory_id  # type: ignore[no-any-return, arg-type]

    def git(self, *arguments: str, check: bool = True) -> str:
        return git(self.vault, *arguments, check=check)

    def path(self, memory_id: str) -> Path:
        return self.world.memory_file(memory_id)

    def active(self) -> list[str]:
        return sorted(memory.content for memory in self.do(list_active, Filter(), limit=10_000)[0])

    def state(self) -> object:
        """What this machine knows: files, active memories in full, retired ones."""
        files = {
            str(path.relative_to(self.vault)): path.read_bytes()
            for path in self.vault.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(self.vault).parts
        }
        found, _ = self.do(list_active, Filter(), limit=10_000)
        return files, sorted(found, key=lambda memory: memory.id)


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
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, env=environ
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    return folder


def machine(tmp_path: Path, remote: Path, name: str) -> Machine:
    home = tmp_path / name
    home.mkdir()
    # The clocks differ a little, as clocks do: ids of two machines do not come from one moment.
    clock = Clock()
    clock.pass_days(len(name) / 86400 + ord(name[0]) / 1e6)
    return Machine(World(home, clock=clock, environ={"PATH": os.environ["PATH"]}), remote)


@pytest.fixture
def pair(tmp_path: Path, remote: Path) -> tuple[Machine, Machine]:
    """Two machines that share one memory of the bridge and one of the yard."""
    one, other = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    one.store("The bridge opens at eight. Its keeper is Osk.", subject="Bridge", project="harbour")
    one.store("Lorries wait in the yard.", subject="Yard", project="harbour")
    one.sync(remote=str(remote))
    other.sync(remote=str(remote))
    assert one.sync().state in (State.SYNCED, State.UP_TO_DATE)
    assert one.state() == other.state()
    return one, other


def converge(*machines: Machine) -> list[Synced]:
    done = [one.sync() for one in (*machines, *machines)]
    for one in machines:
        assert one.state() == machines[0].state()
        assert one.git("status", "--short") == ""
        assert one.git("rev-parse", "HEAD") == git(one.remote, "rev-parse", "HEAD")
    for one in machines:
        before = one.state()
        rebuild(one.world.settings(), one.world.context)
        assert one.state() == before
    return done


def commit(context: Home) -> None:
    scan(context)
    commit_operations(context)


def bridge(one: Machine) -> Path:
    return next(path for path in one.vault.rglob("*.md") if "subject: Bridge" in path.read_text())


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_sync_without_a_remote_commits_and_reports_the_missing_remote(
    tmp_path: Path, remote: Path
) -> None:
    one = machine(tmp_path, remote, "one")
    one.store("Low tide is at noon.")
    assert one.sync().state is State.NO_REMOTE
    assert "Low tide" in one.git("log", "--format=%B")


def test_memories_sync_in_both_directions(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    other.store("The mill grinds on Mondays.")
    sent = other.sync()
    assert (sent.sent, sent.received) == (1, 0)
    received = one.sync()
    assert (received.sent, received.received) == (0, 1)
    assert "The mill grinds on Mondays." in one.active()
    assert one.git("rev-parse", "HEAD") == other.git("rev-parse", "HEAD")
    assert one.sync().state is State.UP_TO_DATE
    assert {"store"} <= {listed.operation.action for listed in one.do(log, limit=50)}


def test_changes_to_different_fields_are_merged(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    one.do(edit, "Bridge", importance=9)
    other.do(edit, "Bridge", content="The bridge opens at nine. Its keeper is Osk.")
    done = converge(one, other)
    found = one.do(get, "Bridge")
    assert (found.importance, found.content) == (9, "The bridge opens at nine. Its keeper is Osk.")
    assert [note.outcome for note in done[1].notes] == [MergeOutcome.MERGED]
    assert (done[1].sent, done[1].received) == (1, 1)


def test_conflicting_sentences_keep_both_versions(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    one.do(edit, "Bridge", content="The bridge opens at seven. Its keeper is Osk.")
    other.do(edit, "Bridge", content="The bridge opens at nine. Its keeper is Osk.")
    done = converge(one, other)
    (note,) = done[1].notes
    assert note.outcome is MergeOutcome.KEPT_TWICE
    assert {
        "The bridge opens at seven. Its keeper is Osk.",
        "The bridge opens at nine. Its keeper is Osk.",
    } < set(one.active())
    for each in (one, other):
        (waiting,) = each.do(contradictions.list_pending)
        assert (waiting.newer.id, waiting.newer.content) == (
            note.memory,
            "The bridge opens at seven. Its keeper is Osk.",
        )
        assert waiting.older.content == "The bridge opens at nine. Its keeper is Osk."


def test_memory_moved_and_edited_on_two_machines_keeps_both_changes(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    target = one.vault / "projects/town/event/bridge.md"
    target.parent.mkdir(parents=True)
    bridge(one).rename(target)
    other.do(edit, "Bridge", content="The bridge is closed.")
    converge(one, other)
    found = other.do(get, "Bridge")
    assert (found.project, found.kind, found.content) == (
        "town",
        Kind.EVENT,
        "The bridge is closed.",
    )


def test_memory_retired_here_stays_retired_despite_a_remote_edit(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    one.do(retire, ["Bridge"], "torn down")
    other.do(edit, "Bridge", content="The bridge is closed.")
    done = converge(one, other)
    assert [note.outcome for note in done[1].notes] == [MergeOutcome.STAYS_RETIRED]
    found = other.do(get, "Bridge")
    assert found.retired
    assert (found.content, found.retired.reason) == ("The bridge is closed.", "torn down")


def test_memory_deleted_with_git_and_edited_in_nacre_is_kept(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    one, other = pair
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(one.remote), str(clone))
    git(clone, "rm", "--quiet", str(bridge(one).relative_to(one.vault)))
    git(clone, "rm", "--quiet", "projects/harbour/fact/yard.md")
    git(clone, "commit", "--quiet", "-m", "Away with both")
    git(clone, "push", "--quiet")
    other.do(edit, "Bridge", content="The bridge is closed.")
    done = converge(other, one)
    assert [note.outcome for note in done[0].notes] == [MergeOutcome.KEPT_EDITED]
    assert one.active() == ["The bridge is closed."]
    assert one.do(get, "Yard").retired


def test_memories_with_the_same_name_are_both_kept(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    one.store("The mill grinds on Mondays.", subject="Mill")
    other.store("The mill belongs to Ida.", subject="Mill")
    converge(one, other)
    assert {"The mill grinds on Mondays.", "The mill belongs to Ida."} < set(one.active())


def test_memories_stored_identically_on_two_machines_become_one_memory(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    for each in pair:
        each.store("The mill grinds on Mondays.", subject="Mill")
    converge(one, other)
    assert one.active().count("The mill grinds on Mondays.") == 1
    retired = one.vault / "retired"
    assert not list(retired.rglob("*.md"))


def test_note_without_an_id_pulled_by_both_machines_stays_unique(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    one, other = pair
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(one.remote), str(clone))
    (clone / "inbox").mkdir()
    (clone / "inbox/tides.md").write_text("# Tides\n\nLow at noon.\n")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "A note from the telephone")
    git(clone, "push", "--quiet")
    for each in pair:
        each.git("pull", "--quiet", "origin", "main")
        each.do(commit)
    converge(one, other)
    assert one.active().count("Low at noon.") == 1


def test_unrelated_vaults_are_joined(tmp_path: Path, remote: Path) -> None:
    one, other = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    for each, words in ((one, "The mill grinds."), (other, "The bridge opens.")):
        each.store(words, project="harbour")
        each.sync(remote=str(remote))
    converge(one, other)
    assert one.active() == ["The bridge opens.", "The mill grinds."]


def test_three_machines_converge(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    one, other = pair
    third = machine(tmp_path, one.remote, "third")
    third.sync(remote=str(one.remote))
    for number, each in enumerate((one, other, third)):
        each.do(edit, "Bridge", content=f"The bridge opens at {number + 7}. Its keeper is Osk.")
        each.store(f"Ship {number} lies at the quay.")
    for each in (one, other, third):
        each.sync()
    converge(third, other, one)
    assert sum(words.startswith("The bridge opens") for words in one.active()) == 3


def test_undo_on_one_machine_applies_to_other_machines(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    one.do(edit, "Bridge", content="The bridge is closed.")
    converge(one, other)
    last = next(
        listed.operation for listed in other.do(log, limit=5) if listed.operation.action == "update"
    )
    other.do(undo, last.id)
    converge(other, one)
    assert "The bridge opens at eight. Its keeper is Osk." in one.active()


def test_memory_forgotten_remotely_is_not_restored_by_an_edit(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    memory = one.do(get, "Bridge")
    ledger = one.vault / "ledger.jsonl"
    line = {
        "op": "0199-0001",
        "at": "2026-11-21T00:00:00Z",
        "action": "forget",
        "memories": {memory.id: []},
    }
    ledger.write_text((ledger.read_text() if ledger.exists() else "") + json.dumps(line) + "\n")
    bridge(one).unlink()
    one.git("add", "-A")
    one.git("commit", "--quiet", "-m", "Forget the bridge")
    one.git("push", "--quiet", "origin", "main")
    other.do(edit, "Bridge", content="The bridge is closed for ever.")
    other.sync()
    assert not [path for path in other.vault.rglob("*.md") if "The bridge" in path.read_text()]
    assert git(one.remote, "grep", "closed for ever", "main", check=False) == ""
    assert "Lorries wait in the yard." in other.active()


def test_sync_merges_ledgers(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    one.do(retire, ["Bridge"], "torn down")
    other.do(retire, ["Yard"], "paved over")
    converge(one, other)
    lines = [json.loads(line) for line in (one.vault / "ledger.jsonl").read_text().splitlines()]
    assert {"torn down", "paved over"} <= {line.get("reason") for line in lines}
    assert [line["op"] for line in lines] == sorted(line["op"] for line in lines)


def test_sync_transfers_other_files(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    (one.vault / "tide.png").write_bytes(b"\x89PNG\0one")
    (other.vault / "tide.png").write_bytes(b"\x89PNG\0two")
    (other.vault / ".obsidian").mkdir()
    (other.vault / ".obsidian/app.json").write_text("{}\n")
    done = converge(one, other)
    assert [note.outcome for note in done[1].notes] == [MergeOutcome.KEPT_BESIDE]
    kept = {path.read_bytes() for path in one.vault.glob("tide.png*")}
    assert kept == {b"\x89PNG\0one", b"\x89PNG\0two"}
    assert (one.vault / ".obsidian/app.json").exists()


def test_pins_of_two_machines_are_merged(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    one.store("The bridge is open in May.")
    one.store("The ferry sails on Mondays.")
    converge(one, other)
    one.do(pin, "when is the bridge open?", answer="May")
    converge(one, other)
    one.do(pin, "when does the ferry sail?", answer="Mondays")
    other.do(pin, "when is the bridge open?", answer="in May")
    converge(one, other)
    lines = (other.vault / "pinned.txt").read_text().splitlines()
    assert sorted(lines) == [
        "when does the ferry sail? => Mondays",
        "when is the bridge open? => in May",
    ]
    assert [check.holds for check in other.do(check_pins)] == [True, True]


def test_file_conflicting_with_a_folder_is_renamed(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    (other.vault / "projects/town").write_text("A list of towns.\n")
    one.store("The mill grinds.", project="town")
    converge(one, other)
    assert "The mill grinds." in other.active()
    assert [path.read_text() for path in one.vault.glob("projects/town.other-*")] == [
        "A list of towns.\n"
    ]


def test_full_disk_is_reported_and_the_next_sync_continues(
    pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair
    other.do(edit, "Yard", importance=9)
    other.store("The mill grinds.")
    other.sync()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("nacre.vault.files._Folder.replace", full)
        with pytest.raises(UnusableVaultError, match="No space left"):
            one.sync()
    converge(one, other)
    assert len(one.active()) == 3


def test_sync_imports_manual_edits_first(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    replace_in(bridge(one), "at eight", "at nine")
    other.do(edit, "Bridge", importance=9)
    other.sync()
    one.sync()
    assert "at nine" in bridge(one).read_text()
    assert "importance: 9" in bridge(one).read_text()


# A plain git in between.


def test_sync_works_after_a_manual_pull_with_rebase(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    other.do(edit, "Yard", importance=9)
    other.sync()
    one.do(edit, "Bridge", importance=8)
    one.do(commit)
    one.git("pull", "--quiet", "--rebase", "origin", "main")
    one.store("The mill grinds.")
    converge(one, other)
    assert one.do(get, "Yard").importance == 9
    assert other.do(get, "Bridge").importance == 8


def test_file_with_conflict_markers_is_reported_and_not_read(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    one, other = pair
    path = bridge(one).relative_to(one.vault)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(one.remote), str(clone))
    replace_in(
        clone / path,
        "at eight. Its keeper is Osk.",
        "\n<<<<<<< HEAD\nat six\n=======\nat ten\n>>>>>>> other\n",
    )
    git(clone, "commit", "--quiet", "-am", "Merged, more or less")
    git(clone, "push", "--quiet")
    done = one.sync()
    assert any(str(path) in problem and "marks" in problem for problem in done.problems)
    assert "The bridge opens at eight. Its keeper is Osk." in one.active()
    (clone / path).write_text(
        (one.vault / path).read_text().split("The bridge")[0] + "The bridge opens at six.\n"
    )
    git(clone, "commit", "--quiet", "-am", "Merged")
    git(clone, "push", "--quiet")
    assert not one.sync().problems
    converge(other, one)
    assert "The bridge opens at six." in other.active()


def test_sync_works_after_amending_a_pushed_commit(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    one.do(edit, "Bridge", importance=9)
    one.sync()
    one.git("commit", "--quiet", "--amend", "-m", "In other words")
    one.store("The mill grinds.")
    converge(one, other)
    assert other.do(get, "Bridge").importance == 9


def test_rewritten_history_is_refused_until_accepted(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    one, other = pair
    other.store("This was not meant to be said.")
    other.sync()
    one.sync()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(one.remote), str(clone))
    git(clone, "reset", "--quiet", "--hard", "HEAD~1")
    (clone / "profile.md").write_text("Always ask.\n")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "Nothing happened")
    git(clone, "push", "--quiet", "--force")
    one.store("The mill grinds.")
    head = one.git("rev-parse", "HEAD")
    with pytest.raises(HistoryRewrittenError) as refused:
        one.sync()
    assert "--accept-rewritten" in (refused.value.hint or "")
    assert one.git("merge-base", "HEAD", head.strip()).strip() == head.strip()
    one.sync(accept_rewritten=True)
    assert "not meant" not in git(one.remote, "log", "-p", "--all")
    assert {"The mill grinds."} < set(one.active())
    assert "This was not meant to be said." not in one.active()
    other.sync(accept_rewritten=True)
    converge(one, other)


def test_merge_in_progress_and_detached_head_are_refused(
    pair: tuple[Machine, Machine],
) -> None:
    one, _ = pair
    (one.vault / ".git/MERGE_HEAD").write_text(one.git("rev-parse", "HEAD"))
    with pytest.raises(UnusableRepositoryError, match="a merge is in progress"):
        one.sync()
    (one.vault / ".git/MERGE_HEAD").unlink()
    one.git("switch", "--quiet", "--detach")
    with pytest.raises(UnusableRepositoryError, match="detached"):
        one.sync()
    one.git("switch", "--quiet", "main")
    assert one.sync().state is State.UP_TO_DATE


def test_sync_keeps_staged_files_staged(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    (one.vault / "draft.txt").write_text("Not yet.\n")
    one.git("add", "draft.txt")
    other.store("The mill grinds.")
    other.sync()
    one.sync()
    assert one.git("status", "--short") == "A  draft.txt\n"


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
    one = machine(tmp_path, remote, "one")
    one.store("The mill grinds.")
    assert one.sync(remote=str(remote)).branch == "trunk"
    assert git(remote, "branch", "--format=%(refname:short)") == "trunk\n"
    assert (one.vault / "README.md").exists()


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
    one = machine(tmp_path, remote, "one")
    with pytest.raises(InvalidInputError):
        one.sync(remote=address)
    assert one.git("remote") == ""


def test_unreachable_remote_is_reported_and_the_next_sync_continues(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    away = one.remote.with_name("away.git")
    one.remote.rename(away)
    one.store("The mill grinds.")
    with pytest.raises(RemoteRefusedError, match="no repository"):
        one.sync()
    failed = one.do(last_sync)
    assert failed.failing_since
    assert one.do(long_failing) is None
    one.world.clock.pass_days(2)
    assert one.do(long_failing).message == failed.message
    assert one.do(long_failing) is None
    away.rename(one.remote)
    assert one.sync().sent == 1
    assert one.do(last_sync).failing_since is None
    other.sync()
    assert "The mill grinds." in other.active()


def test_unreachable_host_is_reported(tmp_path: Path, remote: Path) -> None:
    one = machine(tmp_path, remote, "one")
    with pytest.raises(RemoteUnreachableError, match="cannot be reached"):
        one.sync(remote="http://127.0.0.1:1/memories.git")


def test_unreachable_address_does_not_replace_a_working_remote(
    pair: tuple[Machine, Machine],
) -> None:
    one, _ = pair
    with pytest.raises(RemoteUnreachableError):
        one.sync(remote="http://127.0.0.1:1/memories.git")
    assert one.sync().url == str(one.remote)


def test_unresponsive_remote_is_abandoned_after_the_timeout(tmp_path: Path, remote: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nsleep 60\n")
    silent.chmod(0o755)
    one = machine(tmp_path, remote, "one")
    one.world.environ["GIT_SSH_COMMAND"] = str(silent)
    with pytest.raises(RemoteUnreachableError, match="did not answer within 1 second"):
        one.sync(remote="owner@example.invalid:memories.git", timeout_seconds=1.0)


def test_rejected_credentials_are_reported_without_a_prompt(tmp_path: Path, remote: Path) -> None:
    refusing = tmp_path / "refusing"
    refusing.write_text(
        "#!/bin/sh\necho 'owner@host: Permission denied (publickey).' >&2\nexit 255\n"
    )
    refusing.chmod(0o755)
    one = machine(tmp_path, remote, "one")
    one.world.environ["GIT_SSH_COMMAND"] = str(refusing)
    with pytest.raises(RemoteRefusedError, match="credentials"):
        one.sync(remote="owner@example.invalid:memories.git")


def test_rejection_by_a_remote_hook_shows_its_message(pair: tuple[Machine, Machine]) -> None:
    one, _ = pair
    hook = one.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'Only on weekdays.' >&2\nexit 1\n")
    hook.chmod(0o755)
    one.store("The mill grinds.")
    with pytest.raises(RemoteRefusedError, match="Only on weekdays"):
        one.sync()
    hook.unlink()
    assert one.sync().sent == 1


def test_sync_retries_if_the_remote_changes_during_push(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    other.store("The mill grinds.")
    other.do(commit)
    hook = one.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    # The other machine is quicker: its commit arrives while ours is on its way.
    hook.write_text(
        f"#!/bin/sh\nunset GIT_QUARANTINE_PATH $(git rev-parse --local-env-vars)\nrm {hook}\n"
        f"git -C {other.vault} push --quiet {one.remote} main\nexit 0\n"
    )
    hook.chmod(0o755)
    one.store("The bridge opens.")
    done = one.sync()
    assert done.sent == 1
    assert done.received == 1
    converge(one, other)


# Secrets.


def test_secret_in_outgoing_commits_stops_the_push(pair: tuple[Machine, Machine]) -> None:
    one, _ = pair
    (one.vault / "notes.txt").write_text(f"token = {SECRET}\n")
    one.git("add", "-A")
    one.git("commit", "--quiet", "-m", "By hand")
    before = git(one.remote, "rev-parse", "HEAD")
    with pytest.raises(SecretFoundError) as found:
        one.sync()
    assert "notes.txt" in found.value.message
    assert SECRET not in found.value.message
    assert "nacre admin scrub" in (found.value.hint or "")
    assert git(one.remote, "rev-parse", "HEAD") == before


def test_sync_without_changes_starts_few_processes(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is some milliseconds that an owner waits: what is configured is asked once, and not setting by setting."""
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

    def calls_of_a_sync() -> int:
        log.unlink()
        desk.sync()
        return log.read_bytes().count(b"\n")

    assert 0 < calls_of_a_sync() <= MOST_PROGRAMS, log.read_text(encoding="utf-8")
    desk.git("pack-refs", "--all")
    assert calls_of_a_sync() <= MOST_PROGRAMS, log.read_text(encoding="utf-8")
    desk.store("The buoy lies off pier 9.")
    assert calls_of_a_sync() <= MOST_TO_SEND, log.read_text(encoding="utf-8")
    assert desk.git("rev-parse", "HEAD") == git(remote, "rev-parse", "HEAD")


def test_file_with_a_secret_is_held_and_other_files_sync(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    replace_in(bridge(one), "Its keeper is Osk.", f"Its token is {SECRET}.")
    one.store("The mill grinds.")
    done = one.sync()
    assert [held.path for held in done.held] == [str(bridge(one).relative_to(one.vault))]
    assert SECRET not in git(one.remote, "log", "-p", "--all")
    other.do(edit, "Bridge", importance=9)
    other.sync()
    with pytest.raises(EditConflictError, match="has a problem"):
        one.sync()
    assert SECRET in bridge(one).read_text()
    replace_in(bridge(one), SECRET, "gone")
    converge(one, other)
    assert one.do(get, "Bridge").importance == 9


# Crashes.


class KilledError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("point", ["intents", "written", "moved", "index", "pushed"])
def test_next_sync_continues_a_killed_sync(
    pair: tuple[Machine, Machine], point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nacre.data import sync as import_remote
    from nacre.vault.git import Repository
    from nacre.vault.remotes import Remote

    one, other = pair
    one.do(edit, "Bridge", content="The bridge opens at seven. Its keeper is Osk.")
    other.do(edit, "Bridge", content="The bridge opens at nine. Its keeper is Osk.")
    target = other.vault / "projects/town/fact/yard.md"
    target.parent.mkdir(parents=True)
    (other.vault / "projects/harbour/fact/yard.md").rename(target)
    other.sync()

    def killed(*_: object, **__: object) -> None:
        raise KilledError

    places = {
        "intents": (import_remote, "apply_intents"),
        "written": (Repository, "move_head"),
        "moved": (import_remote, "step_index"),
        "index": (import_remote, "scan"),
        "pushed": (Remote, "remember"),
    }
    with monkeypatch.context() as patched:
        patched.setattr(*places[point], killed)
        with pytest.raises(KilledError):
            one.sync()
    one.do(commit)
    converge(one, other)
    words = one.active()
    assert len(words) == 3
    assert len(set(words)) == 3
    assert not list((one.vault / "retired").rglob("*.md"))


# Many, and anything.


def test_hundreds_of_memories_sync_together(pair: tuple[Machine, Machine]) -> None:
    one, other = pair
    for number in range(600):
        one.world.write(
            f"projects/harbour/fact/ship-{number}.md",
            f"# Ship {number}\n\nShip {number} lies at the quay.\n",
        )
    converge(one, other)
    assert len(other.active()) == 602


def anything(random_: random.Random, one: Machine, number: int) -> None:
    """Do one thing that a person does."""
    active, _ = one.do(list_active, Filter(), limit=100)
    some = random_.choice(active) if active else None
    what = random_.choice(["store", "edit", "retire", "move", "delete", "append", "tag"])
    if what == "store" or some is None:
        one.store(
            f"{random_.choice(['Ship', 'Crane'])} {number} lies at quay {random_.randint(1, 9)}.",
            subject=random_.choice(["Ship", "Crane", f"Quay {number}"]),
        )
    elif what == "edit":
        one.do(
            edit, some.id, content=f"It lies at quay {random_.randint(1, 9)} since day {number}."
        )
    elif what == "retire":
        one.do(retire, [some.id], f"gone on day {number}")
    elif what == "tag":
        one.do(edit, some.id, tags=[*some.tags, f"day-{number}"])
    elif what == "move":
        target = (
            one.vault / f"projects/{random_.choice(['harbour', 'town'])}/fact/moved-{number}.md"
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        one.path(some.id).rename(target)
    elif what == "delete":
        one.path(some.id).unlink()
    else:
        path = one.path(some.id)
        path.write_text(path.read_text() + f"\nSeen on day {number}.\n")


@pytest.mark.parametrize("seed", range(6))
def test_random_changes_on_two_machines_converge(pair: tuple[Machine, Machine], seed: int) -> None:
    random_ = random.Random(seed)  # noqa: S311 - what people do is no secret
    for turn in range(3):
        for number in range(4):
            for each in pair:
                anything(random_, each, turn * 10 + number)
        if turn == 1:
            random_.choice(pair).sync()
    converge(*pair)


def test_remote_option_does_not_hide_errors(tmp_path: Path, remote: Path) -> None:
    one = machine(tmp_path, remote, "one")
    with pytest.raises(NacreError):
        one.sync(remote=str(tmp_path / "one" / ".nacre" / "vault"))


def test_repeatedly_killed_syncs_neither_lose_nor_duplicate_memories(
    pair: tuple[Machine, Machine], processes: Processes
) -> None:
    one, other = pair
    random_ = random.Random(4)  # noqa: S311 - when is no secret
    source = str(Path(__file__).parents[2] / "src")
    for number in range(6):
        one.store(f"Ship {number} lies at the quay.")
        other.store(f"Crane {number} stands at the quay.")
        other.do(edit, "Bridge", importance=number + 1)
        other.sync()
        environ = {
            **os.environ,
            "PYTHONPATH": source,
            "NACRE_HOME": str(one.world.home),
            "HOME": str(one.vault.parent),
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
    for lock in (one.vault / ".git").rglob("*.lock"):
        lock.unlink()
    converge(one, other)
    assert len(one.active()) == 14
    assert len(set(one.active())) == 14
    assert not list((one.vault / "retired").rglob("*.md"))


def keep_out(context: Home, subject: str) -> None:
    request = RetireRequest(references=(subject,), persist=True)
    retire_chosen(context, choose(context, request), "we moved", persist=True)


def test_standing_retirement_applies_to_earlier_memories_of_another_machine(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    other.store("The crane is serviced in May.", subject="Crane of the quay")
    other.store("The crane lifts nine tons.", subject="Crane")
    one.do(keep_out, "crane*")
    forced = one.store("The crane was sold.", subject="Crane sold")
    one.sync()
    other.sync()
    assert "The crane was sold." in other.active()
    assert not {"The crane is serviced in May.", "The crane lifts nine tons."} & set(other.active())
    (gone, _) = other.do(list_retired)
    assert gone.retired.reason == "we moved"
    assert gone.suppressed_contexts == ("session-start",)
    converge(one, other)
    assert "The crane was sold." in one.active()
    rebuild(other.world.settings(), other.world.context)
    assert other.do(get, forced).retired is None
    assert one.state() == other.state()


def test_memory_restored_despite_standing_retirement_stays_everywhere(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    one.do(keep_out, "yard")
    (yard,) = (memory.id for memory in one.do(list_retired))
    one.do(unretire, references=(yard,))
    one.sync()
    other.sync()
    assert "Lorries wait in the yard." in other.active()
    converge(one, other)


def test_incoming_standing_retirement_survives_a_kill(
    pair: tuple[Machine, Machine],
) -> None:
    one, other = pair
    other.store("The crane lifts nine tons.", subject="Crane")
    other.sync()
    one.do(keep_out, "crane")
    one.sync()
    other.git("pull", "--quiet", "--no-edit", str(one.remote), "main")
    context = other.world.context()
    heed_ledger(context)
    context.database.close()
    assert other.active() == [
        "Lorries wait in the yard.",
        "The bridge opens at eight. Its keeper is Osk.",
    ]


def test_sync_without_incoming_changes_creates_no_operation(pair: tuple[Machine, Machine]) -> None:
    one, other = pair

    def syncs() -> list[int]:
        return [
            sum(one.operation.action == "sync" for one in each.do(log, limit=100)) for each in pair
        ]

    before = syncs()
    for each in pair:
        (path,) = each.vault.rglob("yard.md")
        path.write_text(path.read_text(encoding="utf-8").replace("wait", "queue"), encoding="utf-8")
    converge(one, other)
    assert syncs() == before
    assert (
        other.git("log", "--format=%s", "--merges").split("\n")[0]
        == "Merge changes from the remote"
    )


# What one machine forgot, whatever the other one did to it before it learned of that.

SECRET_NAME = "Ostermann"


def client_file(one: Machine, client: str) -> Path:
    return next(
        path for path in one.vault.rglob("*.md") if f"subject: {client}" in path.read_text()
    )


def draw(one: Machine, source: str, target: str) -> None:
    wanted = NewLink(
        source=source, relation=Relation.DEPENDS_ON, target=target, reason=f"{SECRET_NAME} owns it"
    )
    one.do(link, links=(wanted,))


def rename_client(one: Machine, client: str) -> None:
    path = client_file(one, client)
    path.rename(path.with_name("ostermann.md"))


DEEDS: dict[str, Callable[[Machine, str], object]] = {
    "content": lambda one, client: one.do(edit, client, content=f"{SECRET_NAME} pays it all."),
    "subject": lambda one, client: one.do(edit, client, subject=f"Discount of {SECRET_NAME}"),
    "importance": lambda one, client: one.do(edit, client, importance=9),
    "tags": lambda one, client: one.do(edit, client, add_tags=[SECRET_NAME.lower()]),
    "project": lambda one, client: one.do(edit, client, project="town"),
    "retired": lambda one, client: one.do(retire, [client], f"{SECRET_NAME} left"),
    "renamed": rename_client,
    "edited by hand": lambda one, client: replace_in(
        client_file(one, client), "a discount", "two discounts"
    ),
    "deleted by hand": lambda one, client: client_file(one, client).unlink(),
    "linked to": lambda one, client: draw(one, "Bridge", client),
    "linked from": lambda one, client: draw(one, client, "Bridge"),
}


def traces_of(one: Machine, word: str, since: str) -> list[str]:
    """Where a machine still says a word: in files and their names, and in commits after one."""
    home = one.world.home
    files = [path for path in home.rglob("*") if path.is_file() and ".git" not in path.parts]
    found = [
        str(path)
        for path in files
        if word.encode() in path.read_bytes() or word.lower() in path.name.lower()
    ]
    found += [str(listed.operation) for listed in one.do(log, limit=200) if word in str(listed)]
    return found + re.findall(
        f".*{word}.*", one.git("log", "--format=%B", "--name-only", f"{since}..HEAD")
    )


@pytest.mark.parametrize("how", ["memories", "match"])
@pytest.mark.parametrize("is_sent", [False, True])
def test_sync_does_not_restore_forgotten_words(
    tmp_path: Path, remote: Path, how: str, *, is_sent: bool
) -> None:
    one, other = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    clients = {what: f"{SECRET_NAME} client {what} gets a discount" for what in DEEDS}
    ids = {what: one.store(f"{client}.", project="harbour") for what, client in clients.items()}
    one.store("The bridge opens at eight.", subject="Bridge", project="harbour")
    one.sync(remote=str(remote))
    other.sync(remote=str(remote))
    for what, client in clients.items():
        DEEDS[what](other, client)
    if is_sent:
        other.sync()
    wanted = (
        ForgetRequest(match=SECRET_NAME)
        if how == "match"
        else ForgetRequest(memories=tuple(ids.values()))
    )
    one.do(lambda home: forget(home, prepare(home, wanted)))
    told = [one.sync()]
    since = one.git("rev-parse", "HEAD").strip()
    told += [other.sync(), one.sync(), other.sync(), one.sync()]
    assert one.state() == other.state()
    forgotten = [note for note in told[1].notes if note.outcome is MergeOutcome.FORGOTTEN]
    assert {note.memory for note in forgotten} == {*ids.values()}
    assert SECRET_NAME.lower() not in str([each.notes for each in told]).lower()
    for each in (one, other):
        assert traces_of(each, SECRET_NAME, since) == []
        assert each.active() == ["The bridge opens at eight."]
