"""Operations are committed to git completely and once, without damage to other commits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nacre.care.database import rebuild
from nacre.data.history import Committed, commit_operations
from nacre.data.undo import changes_of, log, undo
from nacre.errors import GitUnavailableError, UnusableRepositoryError
from nacre.memories.edit import scan
from nacre.values.memory import FOREIGN
from tests.app.conftest import World, says
from tests.processes import Processes

KEY = "AKIA" + "Q7R2T4W6Y8Z3B5D9"


def git(world: World, *arguments: str, code: int = 0) -> str:
    environ = {**os.environ, "HOME": str(world.user_home), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=Nadia", "-c", "user.email=nadia@example.org"]
    process = subprocess.run(
        ["git", *identity, *arguments],
        cwd=world.vault,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == code, process.stderr
    return process.stdout


def commit(world: World) -> Committed:
    context = world.context()
    scan(context)
    committed = commit_operations(context)
    context.database.close()
    return committed


def store(world: World, *texts: str) -> list[str]:
    with world.open() as memory:
        return [memory.store(text, subject=text.split(" is")[0]).memory_id for text in texts]


def titles(world: World) -> list[str]:
    return git(world, "log", "--format=%s").splitlines()


def operations_in_history(world: World) -> list[str]:
    """Return the operations named in the history, the oldest first."""
    lines = git(world, "log", "--reverse", "--format=%B").splitlines()
    return [line.split()[1] for line in lines if line.startswith("Nacre-Operation:")]


def is_clean(world: World) -> bool:
    return git(world, "status", "--porcelain") == ""


def test_operations_become_named_commits_and_leave_git_status_clean(world: World) -> None:
    store(world, "Tea is served at four.", "The lamp is green.")
    with world.open() as memory:
        memory.retire("Tea", reason="nobody came")
    committed = commit(world)
    assert committed.operations == 3
    assert titles(world)[0] == "retire: Tea"
    assert "2 operations: 2 store" in titles(world)
    body = git(world, "log", "-1", "--format=%B")
    assert "why: nobody came" in body
    assert "path: retired/global/fact/tea.md" in body
    assert is_clean(world)
    assert commit(world).commits == ()


def test_second_operation_on_a_file_has_its_own_commit(world: World) -> None:
    (lamp,) = store(world, "The lamp is green.")
    with world.open() as memory:
        memory.edit(lamp, content="The lamp is blue.")
        memory.edit(lamp, content="The lamp is red.")
    commit(world)
    texts = [git(world, "show", f"HEAD~{back}:global/fact/the-lamp.md") for back in (2, 1, 0)]
    assert [text.split()[-1] for text in texts] == ["green.", "blue.", "red."]


def test_commit_keeps_staged_files_and_includes_unignored_files(world: World) -> None:
    store(world, "The lamp is green.")
    commit(world)
    world.write("plan.txt", "staged by the owner\n")
    git(world, "add", "plan.txt")
    world.write("notes.txt", "put here by the owner\n")
    world.write(".gitignore", "private/\n")
    world.write("private/diary.txt", "not for git\n")
    store(world, "The door is red.")
    commit(world)
    assert git(world, "status", "--porcelain") == "A  plan.txt\n"
    assert "notes.txt" in git(world, "ls-tree", "-r", "--name-only", "HEAD")
    assert "diary" not in git(world, "ls-tree", "-r", "--name-only", "HEAD")


def test_ignored_memory_folder_is_never_committed(world: World) -> None:
    store(world, "The lamp is green.")
    commit(world)
    world.write(".gitignore", "projects/secret/\n")
    with world.open() as memory:
        memory.store("The treasure is under the oak.", project="secret")
    commit(world)
    assert "oak" not in git(world, "log", "-p", "--", "projects")
    assert is_clean(world)


def test_concurrent_commit_by_the_owner_is_kept_without_repetition(
    world: World,
) -> None:
    store(world, "The lamp is green.")
    commit(world)
    store(world, "The door is red.")
    git(world, "add", "-A")
    git(world, "commit", "-m", "By my own hand")
    committed = commit(world)
    assert committed.commits == ()
    assert titles(world)[0] == "By my own hand"
    assert is_clean(world)
    context = world.context()
    assert sorted(item.operation.action for item in log(context)) == [FOREIGN, "store", "store"]
    assert context.journal.pending() == []


def test_edit_with_a_secret_waits_until_fixed_or_allowed(world: World) -> None:
    (lamp, door) = store(world, "The lamp is green.", "The door is red.")
    commit(world)
    file = world.memory_file(lamp)
    file.write_text(file.read_text().replace("green", f"lit by {KEY}"))
    world.write("keys.txt", f"{KEY}\n")
    door_file = world.memory_file(door)
    door_file.write_text(door_file.read_text().replace("red", "blue"))
    committed = commit(world)
    assert {item.path for item in committed.held} == {"global/fact/the-lamp.md", "keys.txt"}
    assert KEY not in git(world, "log", "-p", "--all")
    assert "blue" in git(world, "show", "HEAD:global/fact/the-door.md")
    file.write_text(file.read_text().replace(KEY, "gas"))
    world.environ["NACRE_REDACTION_ALLOW"] = f'["{KEY}"]'
    assert commit(world).held == ()
    assert "gas" in git(world, "show", "HEAD:global/fact/the-lamp.md")
    assert is_clean(world)


def test_vault_inside_another_repository_never_commits_there(world: World) -> None:
    subprocess.run(["git", "init", "-q", str(world.user_home)], check=True)
    world.environ |= {
        "GIT_DIR": str(world.user_home / ".git"),
        "GIT_WORK_TREE": str(world.user_home),
    }
    store(world, "The lamp is green.")
    commit(world)
    assert (world.vault / ".git").is_dir()
    outer = ["git", "-C", str(world.user_home), "log"]
    assert subprocess.run(outer, capture_output=True, check=False).returncode != 0
    assert len(titles(world)) == 2


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda world: git(world, "checkout", "-q", "--detach"), "detached HEAD"),
        (
            lambda world: (world.vault / ".git/MERGE_HEAD").write_text(
                git(world, "rev-parse", "HEAD")
            ),
            "merge is in progress",
        ),
        (lambda world: (world.vault / ".git" / "HEAD").write_text("nonsense"), "is broken"),
        (lambda world: git(world, "config", "core.bare", "true"), "bare"),
    ],
)
def test_repository_that_rejects_commits_is_reported_without_loss(
    world: World, damage: object, message: str
) -> None:
    store(world, "The lamp is green.")
    commit(world)
    before = git(world, "rev-parse", "HEAD")
    damage(world)  # type: ignore[operator]
    store(world, "The door is red.")
    with pytest.raises(UnusableRepositoryError, match=message) as error:
        commit(world)
    assert error.value.hint
    assert len(world.context().journal.pending()) == 1
    (world.vault / ".git" / "MERGE_HEAD").unlink(missing_ok=True)
    (world.vault / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    git(world, "config", "core.bare", "false")
    assert commit(world).operations == 1
    assert git(world, "rev-parse", "HEAD~1") == before


def test_stale_git_lock_does_not_prevent_a_commit(world: World) -> None:
    store(world, "The lamp is green.")
    commit(world)
    lock = world.vault / ".git" / "index.lock"
    lock.touch()
    store(world, "The door is red.")
    committed = commit(world)
    assert committed.operations == 1
    assert "is out of date" in (committed.note or "")
    lock.unlink()
    store(world, "The roof is flat.")
    commit(world)
    assert is_clean(world)


def test_memories_and_undo_work_without_git(world: World, tmp_path: Path) -> None:
    world.environ["PATH"] = str(tmp_path)
    (lamp,) = store(world, "The lamp is green.")
    world.clock.pass_days(1)
    with world.open() as memory:
        memory.edit(lamp, content="The lamp is blue.")
    with pytest.raises(GitUnavailableError, match="not installed"):
        commit(world)
    context = world.context()
    undo(context, log(context)[0].operation.id)
    with world.open() as memory:
        assert memory.get(lamp).content == "The lamp is green."


def test_rebuilt_database_reads_operations_from_history(world: World) -> None:
    (lamp,) = store(world, "The lamp is green.")
    world.clock.pass_days(1)
    with world.open() as memory:
        memory.edit(lamp, content="The lamp is blue.")
    commit(world)
    for file in world.home.glob("nacre.db*"):
        file.unlink()
    rebuild(world.settings(), vectors=False, open_home=world.context)
    context = world.context()
    entries = log(context, reference=lamp)
    assert [item.operation.action for item in entries] == ["update", "store"]
    assert entries[0].memories == (lamp,)
    assert context.journal.pending() == []
    (change,) = changes_of(context, entries[0].operation)
    assert change.before is not None
    assert "green" in change.before.text
    undo(context, entries[0].operation.id)
    with world.open() as memory:
        assert memory.get(lamp).content == "The lamp is green."
    assert commit(world).operations == 1


KILLER = """
import os, signal, sys
from datetime import UTC, datetime
from nacre.data.history import commit_operations
from nacre.home.home import open_home
from nacre.settings import load_settings

point = int(sys.argv[2])
calls = 0

def trace(frame, event, argument):
    global calls
    if event == "call" and "/nacre/" in frame.f_code.co_filename and frame.f_code.co_name in NAMES:
        calls += 1
        if calls == point:
            os.kill(os.getpid(), signal.SIGKILL)

NAMES = {"run", "add_commits", "move_head", "_record", "set_git_state", "update_index"}
context = open_home(load_settings(sys.argv[1]))
sys.setprofile(trace)
commit_operations(context)
sys.setprofile(None)
print(calls)
"""


def test_kill_during_a_commit_loses_and_repeats_nothing(world: World) -> None:
    environ = {**os.environ, "HOME": str(world.user_home), "PYTHONPATH": os.pathsep.join(sys.path)}
    expected = 0
    number = 0
    for point in range(2, 38, 3):
        (lamp,) = store(world, f"Lamp number {point} is green.")
        with world.open() as memory:
            memory.edit(lamp, importance=9)
        expected += 2
        process = subprocess.run(
            [sys.executable, "-c", KILLER, str(world.home), str(point)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr
        number += 1
    assert number >= 8
    commit(world)
    operations = operations_in_history(world)
    assert len(operations) == len(set(operations)) == expected
    assert is_clean(world)
    git(world, "fsck", "--strict")
    assert world.context().journal.pending() == []


def test_clones_merged_by_plain_git_log_the_same_operations(world: World, tmp_path: Path) -> None:
    (lamp, door) = store(world, "The lamp is green.", "The door is red.")
    commit(world)
    other = World(tmp_path / "other")
    other.home.mkdir(parents=True)
    subprocess.run(["git", "clone", "-q", str(world.vault), str(other.vault)], check=True)
    for machine, action in ((world, "retire"), (other, "edit")):
        machine.clock.pass_days(1)
        with machine.open() as memory:
            if action == "retire":
                memory.retire(door)
            else:
                memory.edit(lamp, content="The lamp is blue.")
        commit(machine)
    git(world, "pull", "-q", "--no-rebase", "--no-edit", str(other.vault), "main")
    committed = commit(world)
    assert committed.commits == ()
    assert is_clean(world)
    context = world.context()
    assert sorted(item.operation.action for item in log(context)) == [
        "retire",
        "store",
        "store",
        "update",
    ]
    assert len((world.vault / "ledger.jsonl").read_text().splitlines()) == 4
    update = next(
        item.operation for item in log(context, reference=lamp) if item.operation.action == "update"
    )
    undo(context, update.id)
    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["The lamp is green."]


def test_incomplete_repository_is_repaired(world: World) -> None:
    store(world, "The lamp is green.")
    (world.vault / ".git" / "refs").mkdir(parents=True)
    assert commit(world).operations == 1
    files = [path for path in (world.vault / ".git").rglob("*") if path.is_file()]
    assert [path for path in files if path.stat().st_mode & 0o077] == []
    assert is_clean(world)


def test_concurrent_committers_commit_each_operation_once(
    world: World, processes: Processes
) -> None:
    store(world, *(f"Lamp number {number} is green." for number in range(30)))
    environ = {**os.environ, "HOME": str(world.user_home), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "nacre", "admin", "commit", "--json"]
    running = [
        processes.start(
            command, env={**environ, "NACRE_HOME": str(world.home)}, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    for item in running:
        item.communicate(timeout=60)
        assert item.returncode == 0
    operations = operations_in_history(world)
    assert len(operations) == len(set(operations)) == 30


def test_undone_ingest_is_not_learned_again(world: World) -> None:
    world.transcript(
        "s1",
        says(
            "user",
            "Remember that the staging database is called heron and lives in Frankfurt.",
            uuid="u1",
        ),
        says("user", "From now on always run the linter before you commit anything.", uuid="u2"),
    )
    with world.open() as memory:
        assert len(memory.ingest().memories) > 1
    context = world.context()
    operation = next(item.operation for item in log(context) if item.operation.action == "ingest")
    undo(context, operation.id)
    commit(world)
    for file in world.home.glob("nacre.db*"):
        file.unlink()
    with world.open() as memory:
        assert memory.ingest().memories == ()
        assert memory.list() == []
    context = world.context()
    last = next(item.operation for item in log(context) if item.operation.action == "undo")
    undo(context, last.id)
    with world.open() as memory:
        assert len(memory.list()) > 1


def test_stale_git_index_is_updated_with_a_new_database(
    world: World,
) -> None:
    context = world.context()
    with world.open() as memory:
        memory.store("The lamp is lit at dusk.", subject="Lamp")
    commit_operations(context)
    context.database.close()
    (world.vault / ".git/index").unlink()
    rebuild(world.settings(), vectors=False, open_home=world.context)
    commit_operations(world.context())
    status = subprocess.run(
        ["git", "-C", world.vault, "status", "--porcelain"], capture_output=True, check=True
    )
    assert status.stdout == b""


def test_undo_removes_only_its_own_lines_from_edited_text(
    world: World,
) -> None:
    with world.open() as memory:
        lamp = memory.store(
            "The lamp is green.\n\nIt hangs over the gate.\n\nIt burns oil.", subject="Lamp"
        ).memory_id
        memory.edit(lamp, content="The lamp is blue.\n\nIt hangs over the gate.\n\nIt burns oil.")
        memory.edit(
            lamp,
            content="The lamp is blue.\n\nIt hangs over the gate.\n\nIt burns gas.",
            tags=["light"],
        )
        context = world.context()
        first, second = (item.operation for item in log(context)[:2][::-1])
        undo(context, first.id)
        context.database.close()
        lamp_after = memory.get(lamp)
    assert lamp_after.content == "The lamp is green.\n\nIt hangs over the gate.\n\nIt burns gas."
    assert lamp_after.tags == ("light",)
    assert second.id != first.id
