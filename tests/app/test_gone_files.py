"""Memories that name a file which a later session renames or deletes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import World, doubts, says
from tests.app.test_deeds import calls, gives

AT = "2026-11-18T09:00:00.000Z"
MEMORY = "The port of the gate is set in config/gate.yaml and nowhere else."


def after(world: World, *records: dict[str, Any], content: str = MEMORY) -> list[str]:
    """Return the reasons for doubting a memory that was stored before a session."""
    with world.open() as memory:
        world.clock.pass_days(-9)
        memory.store(content=content, kind="fact", project="acme-billing")
        world.clock.pass_days(9)
    ask = says("user", "Please tidy up the settings of the gate for me.", uuid="g-0")
    world.transcript("tidy", ask, *records)
    with world.open() as memory:
        memory.ingest()
        return [item.detail or "" for item in doubts(memory._home)]


def ran(command: str, *, is_error: bool = False) -> tuple[dict[str, Any], ...]:
    return (
        calls(command, "Bash", AT, command=command),
        gives(command, "", AT, fails=is_error),
    )


@pytest.mark.parametrize(
    "command",
    [
        "git mv config/gate.yaml config/gate.toml",
        "cd /code && rm -f config/gate.yaml && git status",
        "git rm -q ./config/gate.yaml",
    ],
)
def test_a_renamed_or_deleted_file_doubts_its_memories(world: World, command: str) -> None:
    assert after(world, *ran(command)) == [f"a later session ran: {command}"]


@pytest.mark.parametrize(
    "records",
    [
        ran("git mv config/lamp.yaml config/lamp.toml"),
        ran("git rm config/gate.yaml", is_error=True),
        ran("cat config/gate.yaml"),
        ran("git rm --cached config/gate.yaml"),
        ran("git mv config/gate.yaml config/old.yaml")
        + ran("git mv config/old.yaml config/gate.yaml"),
        (
            *ran("rm config/gate.yaml"),
            calls("w-1", "Write", AT, file_path="config/gate.yaml", content="port: 1"),
            gives("w-1", "", AT),
        ),
    ],
    ids=[
        "another file",
        "a failed command",
        "only read",
        "only untracked",
        "moved back",
        "written again",
    ],
)
def test_other_commands_doubt_nothing(world: World, records: tuple[dict[str, Any], ...]) -> None:
    assert after(world, *records) == []


def test_a_memory_that_names_no_file_is_not_doubted(world: World) -> None:
    content = "The gate of the harbour is painted green every spring."
    assert after(world, *ran("rm config/gate.yaml"), content=content) == []


def edited(path: str, old: str, new: str, uuid: str = "e-1") -> tuple[dict[str, Any], ...]:
    return (
        calls(uuid, "Edit", AT, file_path=path, old_string=old, new_string=new),
        gives(uuid, "", AT),
    )


@pytest.mark.parametrize(
    ("content", "records", "reason"),
    [
        (
            "Run `make lint` before every push, since the server rejects long lines.",
            edited("/code/Makefile", "lint: deps\n\truff check", "check: deps\n\truff check"),
            "(make lint → make check)",
        ),
        (
            "The fixtures are rebuilt with npm run seed after each migration.",
            edited("package.json", '"seed": "node seed.js",\n"dev": "vite"', '"dev": "vite"'),
            "(without run seed)",
        ),
        (
            "Retries go through fetch_with_retry, because the gate drops connections.",
            edited("gate.py", "def fetch_with_retry(url):", "def fetch_patiently(url):"),
            "(fetch_with_retry → fetch_patiently)",
        ),
        (
            "Set TIDE_LIMIT to 3, because the pier floods above it.",
            (
                *edited("a.py", "return TIDE_LIMIT", "return WATER_LIMIT"),
                *edited("b.py", "if x > TIDE_LIMIT:", "if x > WATER_LIMIT:", "e-2"),
            ),
            "(TIDE_LIMIT → WATER_LIMIT)",
        ),
        (
            "Files in src/pump/old.py count strokes, since the meter is blind.",
            (*ran("git rm -r src/pump"), *ran('git commit -m "remove src/pump"')),
            "src/pump",
        ),
        (
            "Start it with --dry-run, because the pump is loud.",
            edited("cli.py", 'parser.add_argument("--dry-run")', 'parser.add_argument("--check")'),
            "(--dry-run → --check)",
        ),
        (
            "The pump is read by readPump every minute, since it forgets its state.",
            ran("git grep -l readPump | xargs sed -i 's/readPump/samplePump/g'"),
            "samplePump/g'",
        ),
    ],
)
def test_a_renamed_or_deleted_command_or_name_doubts_its_memories(
    world: World, content: str, records: tuple[dict[str, Any], ...], reason: str
) -> None:
    (why,) = after(world, *records, content=content)
    assert why.startswith("a later session ")
    assert why.endswith(reason)


DEFINED = edited("gate.py", "def fetch_with_retry(url):\n    ...", "")


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (
            "Call fetch_with_retry.",
            (*edited("net.py", "", "def fetch_with_retry(url):", "e-0"), *DEFINED),
        ),
        (
            "Call fetch_with_retry.",
            (*DEFINED, *edited("net.py", "", "def fetch_with_retry(url):", "e-2")),
        ),
        ("Call fetch_with_retry.", (*DEFINED, *ran("git checkout -- gate.py"))),
        ("Call fetch_with_retry.", (*DEFINED, *ran("grep -rn fetch_with_retry src"))),
        ("fetch_with_retry was renamed to fetch_patiently on purpose.", DEFINED),
        (
            "Call fetch_with_retry.",
            edited("gate.py", "fetch_with_retry(url)", "fetch_once(url)"),
        ),
        ("The process waits for the tide.", edited("a.py", "def process():", "def flow():")),
        ("The gate.py opens the gate.", ran("git mv src/gate.py lib/gate.py")),
        ("The gate.py opens the gate.", ran("rm -rf tmp/gate.py")),
        ("Call fetch_with_retry.", edited("README.md", "def fetch_with_retry(url):", "")),
        (
            "Run `make lint-all` nightly.",
            edited("Makefile", "lint:\n\truff", "check:\n\truff"),
        ),
    ],
    ids="before|after|reverted|still found|says so|one call|a word|same name|elsewhere|prose|longer".split(
        "|"
    ),
)
def test_a_name_that_may_still_exist_doubts_nothing(
    world: World, content: str, records: tuple[dict[str, Any], ...]
) -> None:
    assert after(world, *records, content=f"{content} It is slow otherwise.") == []
