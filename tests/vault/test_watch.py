"""A watch knows at once, and without a look at each file, what a look at each file would find."""

from __future__ import annotations

import mmap
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.vault import watch as watching
from nacre.vault.files import Vault
from nacre.vault.watch import VaultWatch

TEA, COFFEE = "global/fact/tea.md", "projects/acme/fact/coffee.md"
_ENOUGH = 20_000
"""More changes than Linux keeps for who does not ask (``max_queued_events`` is 16,384 as it comes)."""

Edit = Callable[[Path], object]


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(tmp_path / "home/vault")
    for path in (TEA, COFFEE):
        (made.root / path).parent.mkdir(parents=True)
        (made.root / path).write_text("Tea is at four.")
    return made


@pytest.fixture
def watch(vault: Vault) -> Iterator[VaultWatch]:
    made = VaultWatch(vault)
    assert made.times() == vault.times()
    if not made.is_live:
        pytest.skip("this system does not tell of changes")
    yield made
    made.close()


def _keeping_time_and_size(vault: Path) -> None:
    before = (vault / TEA).stat()
    with (vault / TEA).open("r+") as file:
        file.write("Tea is at five.")
    os.utime(vault / TEA, ns=(before.st_atime_ns, before.st_mtime_ns))


def _through_a_mapping(vault: Path) -> None:
    with (vault / TEA).open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:3] = b"Sea"


def _renamed_over(vault: Path) -> None:
    (vault / "tea.tmp").write_text("Tea is at six.")
    (vault / "tea.tmp").replace(vault / TEA)


def _folder_swapped_for_a_link(vault: Path) -> None:
    (vault / "projects/acme").rename(vault.parent / "acme")
    (vault / "projects/acme").symlink_to(vault.parent / "acme")


def _another_in_its_place(folder: Path) -> None:
    folder.rename(folder.with_name("older"))
    shutil.copytree(folder.with_name("older"), folder)


def _a_second_name(vault: Path) -> None:
    (vault / "global/fact/again.md").hardlink_to(vault / TEA)


def _file_for_folder(vault: Path) -> None:
    (vault / COFFEE).unlink()
    (vault / COFFEE).mkdir()
    (vault / COFFEE / "deep.md").write_text("Deep.")


EDITS: dict[str, Edit] = {
    "in place": lambda vault: (vault / TEA).write_text("Tea is at five."),
    "time and size kept": _keeping_time_and_size,
    "cut short": lambda vault: os.truncate(vault / TEA, 3),
    "a mapping": _through_a_mapping,
    "renamed over": _renamed_over,
    "a new file": lambda vault: (vault / "global/fact/new.md").write_text("New."),
    "a new file at the top": lambda vault: (vault / "new.md").write_text("New."),
    "no longer to be read": lambda vault: (vault / TEA).chmod(0o200),
    "removed": lambda vault: (vault / TEA).unlink(),
    "moved": lambda vault: (vault / TEA).rename(vault / "projects/acme/fact/tea.md"),
    "moved out": lambda vault: (vault / TEA).rename(vault.parent / "tea.md"),
    "a folder moved": lambda vault: (vault / "projects/acme").rename(vault / "projects/ledger"),
    "a folder moved out": lambda vault: (vault / "projects/acme").rename(vault.parent / "acme"),
    "a folder removed": lambda vault: shutil.rmtree(vault / "projects"),
    "folders made and filled": lambda vault: shutil.copytree(
        vault / "projects/acme", vault / "projects/zed/deep/er"
    ),
    "a folder swapped for a link": _folder_swapped_for_a_link,
    "a link": lambda vault: (vault / "global/fact/link.md").symlink_to(vault / TEA),
    "a pipe": lambda vault: os.mkfifo(vault / "global/fact/pipe.md"),
    "a name that is no text": lambda vault: (
        vault / os.fsdecode(b"global/fact/caf\xe9.md")
    ).write_text("Coffee."),
    "a folder where a file was": _file_for_folder,
    "another vault in its place": _another_in_its_place,
    "another home in its place": lambda vault: _another_in_its_place(vault.parent),
    "a second name": _a_second_name,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_watch_equals_a_full_scan_after_every_change(
    vault: Vault, watch: VaultWatch, edit: Edit
) -> None:
    before = watch.times()
    edit(vault.root)
    assert watch.times() == vault.times() != before
    (vault.root / "global/fact").mkdir(exist_ok=True)
    (vault.root / "global/fact/after.md").write_text("After that, too.")
    assert watch.times() == vault.times()
    assert watch.is_live


def test_unchanged_vault_is_not_scanned(vault: Vault, watch: VaultWatch) -> None:
    known = watch.times()
    (vault.root / "ledger.jsonl").write_text("{}\n")
    (vault.root / "global/fact/.tea.md.tmp").write_text("Tea")
    assert watch.times() is known
    (vault.root / TEA).write_text("Tea is at nine.")
    assert watch.times() is not known


def test_write_through_another_hard_link_is_noticed(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "outside.md").hardlink_to(vault.root / TEA)
    watch = VaultWatch(vault)
    watch.times()
    for other in (tmp_path / "outside.md", vault.root / "global/fact/again.md"):
        if not other.exists():
            other.hardlink_to(vault.root / COFFEE)
        assert watch.times() == vault.times()
        other.write_text(f"Written by {other.name}.")
        assert watch.times() == vault.times()
    watch.close()


def test_event_queue_overflow_loses_no_changes(vault: Vault, watch: VaultWatch) -> None:
    files = [vault.root / TEA, vault.root / COFFEE]
    for number in range(_ENOUGH):
        os.utime(files[number % 2], ns=(number, number))
    (vault.root / "global/fact/last.md").write_text("Last.")
    assert watch.times() == vault.times()
    assert watch.is_live


def test_changes_during_a_scan_are_noticed_afterwards(vault: Vault, watch: VaultWatch) -> None:
    def work() -> None:
        for number in range(200):
            folder = vault.root / f"projects/p{number % 7}/fact"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"n{number}.md").write_text("x" * number)
            if number % 3 == 0:
                shutil.rmtree(vault.root / f"projects/p{(number + 3) % 7}", ignore_errors=True)

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        watch.times()
    worker.join()
    assert watch.times() == vault.times()
    assert watch.is_live


def test_unreported_change_is_found_by_the_periodic_scan(
    vault: Vault, watch: VaultWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tea.md").hardlink_to(vault.root / TEA)
    (tmp_path / "tea.md").write_text("Written from outside.")
    assert watch.times() != vault.times()  # docs/trust.md says so
    monkeypatch.setattr(watching, "LONGEST_SECONDS", 0.0)
    (vault.root / "projects/new").mkdir()  # so each file is looked at, and the time begins anew
    assert watch.times() == vault.times()
    (tmp_path / "coffee.md").hardlink_to(vault.root / COFFEE)
    (tmp_path / "coffee.md").write_text("Written from outside.")
    assert watch.times() == vault.times()


@pytest.mark.parametrize("kinds", [frozenset(), frozenset({0x6969})])
def test_unsupported_file_system_scans_every_file(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, kinds: frozenset[int]
) -> None:
    monkeypatch.setattr(watching, "_LOCAL_FILE_SYSTEMS", kinds)
    watch = VaultWatch(vault)
    for number in range(3):
        (vault.root / TEA).write_text(f"Tea is at {number}." * number)
        assert watch.times() == vault.times()
    assert not watch.is_live


_PATHS = st.sampled_from(
    ["a.md", "global/a.md", "global/b/a.md", "global/b/c.md", "projects/b/a.md", "inbox/b.md"]
)
_STEPS = st.tuples(st.sampled_from(["write", "remove", "move", "ask"]), _PATHS, _PATHS)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(_STEPS, max_size=25))
def test_watch_equals_a_full_scan_after_random_steps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    vault = Vault(tmp_path_factory.mktemp("vault"))
    watch = VaultWatch(vault)
    watch.times()
    for number, (what, path, other) in enumerate(steps):
        _step(vault.root, what, path, other, number)
        if what == "ask":
            assert watch.times() == vault.times()
    assert watch.times() == vault.times()
    watch.close()


def _step(root: Path, what: str, path: str, other: str, number: int) -> None:
    one, two = root / path, root / other
    if what == "write":
        one.parent.mkdir(parents=True, exist_ok=True)
        one.write_text("word " * (number % 3))
    elif what == "remove" and number % 2 and one.parent != root:
        shutil.rmtree(one.parent, ignore_errors=True)
    elif what == "remove":
        one.unlink(missing_ok=True)
    elif what == "move" and one.exists() and one.parent != two.parent:
        two.parent.mkdir(parents=True, exist_ok=True)
        one.replace(two)
