"""The documents tell the truth: what they show runs, what they name exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import benchmarks
from nacre.cli.root import HIDDEN, cli

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")


def test_readme_is_at_most_150_lines() -> None:
    assert len(README.splitlines()) <= 150


PAGES = [
    *PROJECT.glob("*.md"),
    PROJECT / "benchmarks" / "README.md",
    *(PROJECT / "docs").rglob("*.md"),
]


def without_code(text: str) -> str:
    return re.sub(r"^ *(```|~~~).*?^ *\1|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(
        r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    found: Counter[str] = Counter()
    named = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        named.add(f"{anchor}-{found[anchor]}" if found[anchor] else anchor)
        found[anchor] += 1
    return named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_document_links_and_anchors_exist(page: Path) -> None:
    for target, anchor in re.findall(
        r"\]\(([^)#:]*)(?:#([^)]*))?\)", without_code(page.read_text(encoding="utf-8"))
    ):
        found = page.parent / target if target else page
        assert found.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(found), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_listed_in_the_documentation_index() -> None:
    listed = (PROJECT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in (PROJECT / "docs").glob("*.md") if page.name != "README.md"]
    assert [
        name for name in pages if not re.search(rf"^- \[[^\]]+\]\({name}\): ", listed, re.MULTILINE)
    ] == []


PROSE = frozenset(
    (
        "answers as begins commits connects does has is knows keeps needs never no plugs reads records "
        "refuses refused takes uses was works writes"
    ).split()
)
"""What follows the name in a sentence that is not about a command."""


def test_every_mentioned_command_exists() -> None:
    found = [
        (page, name)
        for page in PAGES
        for name in re.findall(r"`nacre ([a-z]+(?:-[a-z]+)*)", page.read_text(encoding="utf-8"))
    ]
    for file in (PROJECT / "src").rglob("*.py"):
        named = re.findall(
            r"(?:[`\"']|[:;] )nacre ([a-z]+(?:-[a-z]+)*)\b", file.read_text(encoding="utf-8")
        )
        found += [(file, name) for name in named if name not in PROSE]
    assert {name for _, name in found} >= {"recall", "retire", "admin"}
    wrong = [
        f"{file.name}: nacre {name}"
        for file, name in found
        if name not in {*cli.list_commands(None), *HIDDEN}
    ]
    assert wrong == []


def test_every_mentioned_subcommand_exists() -> None:
    context = click.Context(cli)
    texts = [*PAGES, *(PROJECT / "src").rglob("*.py"), *(PROJECT / "deploy").rglob("*.*")]
    for name in ("data", "admin", "server"):
        group = cli.get_command(context, name)
        assert isinstance(group, click.Group)
        named = {
            (file.name, word)
            for file in texts
            for word in re.findall(rf"\bnacre {name} ([a-z]+)", file.read_text(encoding="utf-8"))
        }
        assert len(named) > 10
        assert {
            (file, word) for file, word in named if word not in group.list_commands(context)
        } == (set())


def test_every_mentioned_benchmark_exists() -> None:
    files = [
        *PAGES,
        *(file for name in ("src", "benchmarks") for file in (PROJECT / name).rglob("*.py")),
    ]
    found = {
        (file.name, name)
        for file in files
        for name in re.findall(r"python -m benchmarks ([a-z]+)", file.read_text(encoding="utf-8"))
    }
    assert {name for _, name in found} >= {"retrieval", "redaction", "hooks"}
    assert {name for _, name in found} <= set(benchmarks.list_commands(None))


def commands_in(text: str) -> list[list[str]]:
    shown = re.findall(r"^\$ nacre (.+)$", text, re.MULTILINE)
    return [shlex.split(command) for command in shown]


def test_terminal_recording_is_up_to_date(tmp_path: Path) -> None:
    pytest.importorskip("pty")
    script, recorded = PROJECT / "scripts" / "record_terminal.py", tmp_path / "terminal.svg"
    subprocess.run([sys.executable, script, recorded], check=True, capture_output=True)
    assert recorded.read_bytes() == (PROJECT / "docs" / "terminal.svg").read_bytes(), (
        "run scripts/record_terminal.py"
    )


@pytest.mark.parametrize("arguments", commands_in(README), ids=" ".join)
def test_every_command_in_the_readme_runs(arguments: list[str]) -> None:
    runner = CliRunner()
    runner.invoke(cli, ["quickstart"], catch_exceptions=False)
    result = runner.invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_python_code_in_the_readme_runs(capsys: Any) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code
    exec(compile(code.group(1), "README.md", "exec"), {})  # noqa: S102
    assert "deploy" in capsys.readouterr().out.lower()


def test_files_named_in_guides_exist() -> None:
    guides = [
        (PROJECT / name).read_text(encoding="utf-8") for name in ("AGENTS.md", "docs/extending.md")
    ]
    for path in re.findall(r"`((?:src|docs|tests|benchmarks)/[\w./-]+)`", "\n".join(guides)):
        assert (PROJECT / path).exists(), path


def test_modules_named_on_pages_exist() -> None:
    """Also where a page names a module by the end of its path; what users' projects hold begins with their ``src``."""
    known = [
        f"/{path.relative_to(PROJECT)}"
        for path in PROJECT.rglob("*.py")
        if ".venv" not in path.parts
    ]
    for page in (PROJECT / "docs").glob("*.md"):
        for path in re.findall(r"`(\w[\w/]*\.py)`", page.read_text(encoding="utf-8")):
            is_of_users = path.startswith("src/") and not path.startswith("src/nacre/")
            assert is_of_users or any(name.endswith(f"/{path}") for name in known), (
                f"{page.name} names {path}"
            )


def keys_of(value: Any) -> set[str]:
    """The names in an answer, also those of the first object in each list."""
    if isinstance(value, list):
        return keys_of(value[0]) if value else set()
    if not isinstance(value, dict):
        return set()
    free = {"components", "unknown", "tools", "extra", "memories", "sessions", "parts"} & {
        key for key, item in value.items() if isinstance(item, dict)
    }
    return set(value) | {
        name for key, item in value.items() if key not in free for name in keys_of(item)
    }


@pytest.mark.parametrize(
    "command",
    [
        "recall swarm",
        "sessions search cache",
        "sessions list",
        "sessions show {session}",
        "sessions summary {session}",
        "sessions show --tail {session}",
        "sessions export {session}",
        "recall --deep deploy",
        "list",
        "todo",
        "doctor",
        "db stats",
        "cost",
        "traces",
        "ingest --estimate",
        "review",
        "config show",
        "config show recall.limit",
        "auth status",
        "ingest",
        "store something-new-to-keep",
        "log",
        "diff",
        "commit",
        "admin check",
        "extract --session {session}",
        "doctor --deep",
        "export {tmp}/out.jsonl",
        "import {tmp}/in.jsonl --dry-run",
        "import {tmp}/in.jsonl",
        "backup create {tmp}/out.zip",
        "backup verify {tmp}/in.zip",
        "backup restore {tmp}/in.zip --to {tmp}/home",
        "serve status",
        "serve stop",
        "serve install --dry-run",
        "serve logs",
        "init --host codex --dry-run",
        "init --host codex --yes",
        "doctor hosts",
        "retire --list",
        "retire swarm* --dry-run",
        "forget --match swarm --dry-run",
        "forget --match swarm --yes",
        "forget --list",
    ],
)
def test_every_field_in_an_answer_is_documented(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    page = (PROJECT / "docs" / "json.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)`", page))
    runner = CliRunner()
    runner.invoke(cli, ["quickstart"], catch_exceptions=False)
    if "{tmp}/in" in command:
        runner.invoke(cli, ["data", "export", f"{tmp_path}/in.jsonl"], catch_exceptions=False)
        runner.invoke(
            cli, ["data", "backup", "create", f"{tmp_path}/in.zip"], catch_exceptions=False
        )
    listed = json.loads(
        runner.invoke(cli, ["sessions", "list", "--json"], catch_exceptions=False).stdout
    )
    session = listed["lines"][0]["session"]["session"]
    places = {
        "{tmp}": str(tmp_path),
        "{session}": f"{session['tool']}:{session['native_id']}",
    }
    arguments = [
        re.sub(r"\{\w+\}", lambda match: places[match[0]], word) for word in command.split()
    ]
    answer = json.loads(runner.invoke(cli, [*arguments, "--json"], catch_exceptions=False).stdout)
    assert keys_of(answer) <= documented


@pytest.mark.parametrize("command", ["extraction --no-vectors", "redaction --no-scanner"])
def test_every_field_in_a_benchmark_answer_is_documented(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.redaction.measuring._CLEAN_BYTES", 50_000)
    monkeypatch.setattr("benchmarks.redaction.measuring._REPETITIONS", 1)
    page = (PROJECT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    result = CliRunner().invoke(benchmarks, [*command.split(), "--json"], catch_exceptions=False)
    answer = json.loads(result.stdout)
    answer.pop("machine", None)
    assert keys_of(answer) <= set(re.findall(r"`(\w+)`", page))


def test_agents_page_matches_the_adapters() -> None:
    script = PROJECT / "scripts" / "write_agents.py"
    shown = subprocess.run(
        [sys.executable, str(script), "--show"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "src"), "PYTHONIOENCODING": "utf-8"},
    ).stdout
    assert shown == (PROJECT / "docs" / "agents.md").read_text(encoding="utf-8"), (
        "run scripts/write_agents.py"
    )


def test_json_documentation_matches_the_operations() -> None:
    script = PROJECT / "scripts" / "write_json_docs.py"
    shown = subprocess.run(
        [sys.executable, script, "--show"], capture_output=True, text=True, check=True
    ).stdout
    assert shown == (PROJECT / "docs" / "json.md").read_text(encoding="utf-8"), (
        "run scripts/write_json_docs.py"
    )
