"""A secret is planted in every field of every adapter's examples and in every option that stores words: none stays."""

from __future__ import annotations

import json
import os
import random
import string
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nacre.cli.root import cli

CORE = "".join(random.Random(7).choices(string.ascii_letters, k=12))  # noqa: S311
SECRET = "gh" + "p_" + CORE + "7k" + CORE[::-1] + "3Qx9"
PRIVATE = "<private>" + CORE.lower() + "ward</private>"

Leaf = tuple[str | int, ...]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NACRE_GIT_BACKGROUND", "false")
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "none")
    return Path(os.environ["NACRE_HOME"])


def nacre(*arguments: str, code: int | None = 0, stdin: str | None = None) -> str:
    result = CliRunner().invoke(cli, list(arguments), input=stdin)
    assert code is None or result.exit_code == code, result.output
    return result.stdout


def leaves(value: Any, path: Leaf = ()) -> Iterator[Leaf]:
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))


def planted(value: Any, path: Leaf, words: str) -> Any:
    if not path:
        return f"{value} {words}"
    first, *rest = path
    if isinstance(value, dict):
        return {key: planted(item, tuple(rest), words) if key == first else item for key, item in value.items()}
    return [planted(item, tuple(rest), words) if number == first else item for number, item in enumerate(value)]


def is_kept(home: Path, needle: str) -> list[str]:
    """Where a text is, in any case, in any file of a home or any object of its git repository."""
    wanted = needle.lower().encode()
    found = [str(path) for path in home.rglob("*") if path.is_file() and wanted in path.read_bytes().lower()]
    found += [str(path) for path in home.rglob("*") if needle.lower() in path.name.lower()]
    vault = home / "vault"
    if (vault / ".git").exists():
        command = ["git", "-C", str(vault), "cat-file", "--batch-all-objects", "--batch"]
        objects = subprocess.run(command, capture_output=True, check=True).stdout
        found += ["git"] if wanted in objects.lower() else []
    return found


def examples() -> list[Path]:
    folder = Path(str(files("nacre.examples")))
    return sorted(path for path in folder.rglob("*.jsonl"))


@pytest.mark.parametrize("words", [SECRET, PRIVATE], ids=["secret", "private"])
@pytest.mark.parametrize("example", examples(), ids=lambda path: path.parent.name + "-" + path.stem[:12])
def test_nothing_of_it_stays_whichever_field_of_a_transcript_holds_it(
    home: Path, tmp_path: Path, example: Path, words: str
) -> None:
    records = [json.loads(line) for line in example.read_text(encoding="utf-8").splitlines() if line.strip()][:12]
    session = next(
        (str(record[key]) for record in records for key in ("sessionId", "id") if isinstance(record.get(key), str)), "-"
    )
    shapes: dict[tuple[object, ...], tuple[int, Leaf]] = {}
    for number, record in enumerate(records):
        for leaf in leaves(record):
            shape = (record.get("type"), *(part if isinstance(part, str) else 0 for part in leaf))
            shapes.setdefault(shape, (number, leaf))
    for variant, (number, leaf) in enumerate(shapes.values()):
        lines = [planted(one, leaf, words) if at == number else one for at, one in enumerate(records)]
        text = "\n".join(json.dumps(line) for line in lines) + "\n"
        tail = f"{variant:04d}"
        target = tmp_path / "in" / tail / example.name
        target.parent.mkdir(parents=True)
        target.write_text(text.replace(session, session[:-4] + tail), encoding="utf-8")
    assert len(shapes) > 5
    nacre("ingest", str(tmp_path / "in"), code=None)
    nacre("commit")
    assert int(json.loads(nacre("db", "stats", "--json"))["tools"][0]["turns"]) > 5
    assert is_kept(home, CORE) == []


def test_nothing_of_it_stays_whichever_option_holds_it(home: Path, tmp_path: Path) -> None:
    nacre(
        "store", f"The gate code is {SECRET} {PRIVATE}", "--subject", f"Gate {SECRET}", "--tag", f"t {SECRET}",
        "--key", f"gate {SECRET}", "--project", f"p {SECRET}",
    )  # fmt: skip
    nacre("store", f"Deploy uses {SECRET}")
    memories = json.loads(nacre("list", "--json"))["memories"]
    first, second = (memory["id"] for memory in memories)
    nacre("edit", first, "--content", f"Now it is {SECRET}", "--subject", f"New {SECRET}", "--tag", f"u {SECRET}")
    nacre("todo", "add", f"Rotate {SECRET}")
    nacre("recall", f"what is {SECRET}", "--session", f"s {SECRET}", code=None)
    nacre("sessions", "search", f"{SECRET}", code=None)
    nacre("show", second, "--session", f"s {SECRET}")
    nacre("feedback", second, "--session", f"s {SECRET}", code=None, stdin=f"I used {SECRET}")
    nacre("eval", "add", f"where is {SECRET}?", "--id", f"q-{SECRET}")
    nacre("eval", "run", "--save", code=None)
    nacre("retire", second, "--reason", f"leaked {SECRET}", "--yes")
    nacre("retire", f"nothing {SECRET}", "--yes", code=None)
    nacre("health")
    nacre("commit")
    assert is_kept(home, CORE) == []


def test_a_crash_tells_nothing_of_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot reach https://me:{SECRET}@db.example")

    monkeypatch.setattr("nacre.app.checking.health", broken)
    nacre("health", code=1)
    assert (home / "logs" / "errors.log").exists()
    assert is_kept(home, CORE) == []


def test_a_key_that_leaked_before_its_rule_was_known_is_scrubbed_everywhere(home: Path, tmp_path: Path) -> None:
    words = f"zz-{CORE}-4711"
    transcript = tmp_path / "in" / "a.jsonl"
    transcript.parent.mkdir()
    said = [{"role": "user", "content": f"Remember that the wombat key is {words} for the northern gate, always."},
            {"role": "assistant", "content": f"Noted: {words} opens it.", "author": f"Agent {words}"}]  # fmt: skip
    transcript.write_text("".join(json.dumps(line) + "\n" for line in said), encoding="utf-8")
    nacre("ingest", str(transcript))
    nacre("store", f"The gate opens with {words} in the evening", "--tag", words)
    nacre("commit")
    nacre("store", f"Second note on {words} and lamps")
    nacre("retire", json.loads(nacre("list", "--json"))["memories"][0]["id"], "--reason", f"has {words}", "--yes")
    nacre("eval", "add", f"where is {words}?")
    nacre("commit")
    (home / "nacre.db.old").write_bytes(b"an older copy")
    nacre("config", "set", "redaction.patterns", json.dumps([f"(?i)zz-{CORE}-4711"]))
    (home / "config.toml").rename(tmp_path / "config.toml")
    os.environ["NACRE_CONFIG"] = str(tmp_path / "config.toml")
    try:
        before = len(is_kept(home, CORE))
        dry = json.loads(nacre("scrub", "--dry-run", "--history", "--json"))
        assert dry["total"] > 0
        assert len(is_kept(home, CORE)) == before
        nacre("scrub", "--history", "--remove-copies", code=2)
        report = json.loads(nacre("scrub", "--history", "--remove-copies", "--yes", "--json"))
        assert report["turns"] == 2
        assert report["commits"] >= 2
        assert report["removed"] == [str(home / "nacre.db.old")]
        assert any("replaced where it was made" in place for place in report["elsewhere"])
        nacre("commit")
        assert is_kept(home, CORE) == []
        assert json.loads(nacre("scrub", "--history", "--yes", "--json"))["total"] == 0
        assert "northern gate" in nacre("recall", "wombat key of the northern gate")
        assert "northern gate" in nacre("sessions", "search", "northern gate")
        assert nacre("health")
        status = subprocess.run(
            ["git", "-C", str(home / "vault"), "status", "--short"], capture_output=True, text=True, check=True
        )
        assert status.stdout == ""
    finally:
        del os.environ["NACRE_CONFIG"]
