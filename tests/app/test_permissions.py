"""Files of the home are private to the owner, and unsafe homes are refused."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nacre.care import database
from nacre.care.health import doctor
from nacre.data import backup
from nacre.errors import NacreError, UnusableStoreError
from nacre.home.home import open_home
from nacre.memories.edit import scan
from nacre.settings import write_setting
from tests.app.conftest import World, says

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")


@pytest.fixture(autouse=True)
def _create_all_files(world: World) -> None:
    world.has_database = False


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_nacre_files_are_private_under_any_umask(world: World, umask: None) -> None:
    before = os.umask(0o022)
    world.transcript(
        "talk", says("user", "Remember that the staging cluster is rebuilt on Sundays.", uuid="u1")
    )
    os.umask(before)
    with world.open() as memory:
        memory.store("Invoices are numbered per year.", project="acme-billing", kind="decision")
        outcome = memory.store("The north gate is red.", subject="North gate")
        memory.ingest()
        memory.edit(outcome.memory_id, importance=9)
        memory.recall("which gate is red?")
        memory.retire(outcome.memory_id)
        write_setting(world.settings().config, "recall.limit", 7)
        context = world.context()
        backup.create(context, world.user_home / "copies" / "backup.zip")
        assert _modes(world.user_home / "copies") <= {0o700, 0o600}
        assert _modes(world.home) <= {0o700, 0o600, 0o400}  # git keeps its objects read-only
    database.rebuild(
        world.settings(), open_home=lambda settings: open_home(settings, clock=world.clock)
    )
    database.reset(
        world.settings(), open_home=lambda settings: open_home(settings, clock=world.clock)
    )
    assert _modes(world.home) <= {0o700, 0o600, 0o400}  # git keeps its objects read-only


def test_command_line_creates_private_files_under_any_umask(world: World, tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "NACRE_HOME": str(world.home),
    }
    command = f"umask 0; exec {sys.executable} -m nacre store 'The north gate is red.'"
    subprocess.run(["sh", "-c", command], env=environ, check=True, capture_output=True)
    assert _modes(world.home) <= {0o700, 0o600, 0o400}  # git keeps its objects read-only


@pytest.mark.parametrize("folder", ["", "vault"])
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_folder_writable_by_others_is_refused_with_a_hint(
    world: World, folder: str, mode: int
) -> None:
    with world.open() as memory:
        memory.store("The north gate is red.")
    path = world.home / folder if folder else world.home
    path.chmod(mode)
    with pytest.raises(UnusableStoreError) as refused:
        world.context()
    assert f"{path} can be written to by other users" in refused.value.message
    hint = refused.value.hint or ""
    subprocess.run(["sh", "-c", hint[hint.index("chmod") :]], check=True)
    with world.open() as memory:
        assert len(memory.list()) == 1


def test_readable_home_works_and_doctor_repairs_its_permissions(world: World) -> None:
    with world.open() as memory:
        memory.store("The north gate is red.")
    for path in (world.home, world.vault, world.home / "nacre.db", next(world.vault.rglob("*.md"))):
        path.chmod(0o755 if path.is_dir() else 0o644)
    context = world.context()
    permissions = {check.name: check for check in doctor(context)}["permissions"]
    assert (permissions.state, permissions.hint) == ("warning", "nacre admin doctor --repair")
    permissions = {check.name: check for check in doctor(context, repair=True)}["permissions"]
    assert permissions.state == "ok"
    assert _modes(world.home) <= {0o700, 0o600, 0o400}  # git keeps its objects read-only


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away"
)
def test_home_of_another_user_is_refused(world: World) -> None:
    with world.open():
        pass
    os.chown(world.home, 12345, 12345)
    with pytest.raises(UnusableStoreError, match="belongs to another user"):
        world.context()


def test_symbolic_link_to_a_home_is_followed_and_checked(world: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir(0o700)
    world.home.symlink_to(elsewhere)
    with world.open() as memory:
        memory.store("The north gate is red.")
    assert (elsewhere / "vault").is_dir()
    elsewhere.chmod(0o777)
    with pytest.raises(UnusableStoreError, match="can be written to by other users"):
        world.context()


def test_dangling_link_or_file_is_refused_as_home(world: World, tmp_path: Path) -> None:
    world.home.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UnusableStoreError):
        world.context()
    world.home.unlink()
    world.home.write_text("")
    with pytest.raises(UnusableStoreError):
        world.context()


@pytest.mark.parametrize("name", ["nacre.db", "vault.lock", "config.toml", "usage.jsonl"])
def test_pipe_in_place_of_a_home_file_does_not_block(world: World, name: str) -> None:
    with world.open() as memory:
        memory.store("The north gate is red.", subject="North gate")
    for path in world.home.glob(f"{name}*"):
        path.unlink()
    os.mkfifo(world.home / name)
    try:
        with world.open() as memory:
            memory.recall("which gate is red?")
            memory.store("The south gate is tin.")
    except (NacreError, OSError):
        pass  # an immediate refusal is acceptable, too


@pytest.mark.parametrize("name", [".north-gate.md.tmp", "north-gate.md", "../fact"])
def test_nacre_does_not_write_through_planted_links(
    world: World, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "elsewhere"
    with world.open():
        pass
    folder = world.vault / "global" / "fact"
    folder.mkdir(parents=True)
    if name == "../fact":
        target.mkdir()
        folder.rmdir()
        folder.symlink_to(target)
    else:
        target.write_text("mine")
        (folder / name).symlink_to(target)
    context = world.context()
    with world.open() as memory:
        outcome = memory.store("The north gate is red.", subject="North gate")
        scan(context)
        assert memory.get(outcome.memory_id).content == "The north gate is red."
    assert list(target.iterdir()) == [] if target.is_dir() else target.read_text() == "mine"
    if name == "../fact":
        assert any("symbolic link" in problem for problem in context.problems)


def _modes(home: Path) -> set[int]:
    return {
        stat.S_IMODE(path.lstat().st_mode)
        for path in (home, *home.rglob("*"))
        if not path.is_symlink()
    }
