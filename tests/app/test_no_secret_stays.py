"""Secrets in any transcript field or in any option that stores text never remain in the home."""

from __future__ import annotations

import json
import os
import re
import subprocess
from datetime import date, timedelta
from importlib.resources import files
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from nacre.cli.root import cli
from nacre.data.export import ExportOptions, export
from nacre.data.forget import ForgetRequest, forget, prepare
from nacre.data.sync import State
from nacre.data.undo import log
from nacre.readers.adapter import Head
from nacre.readers.registry import adapters
from nacre.recall.recall import recall
from nacre.values.recall import RecallQuery
from tests.app.shapes import (
    DATABASES,
    LIKE,
    SHAPES,
    Agent,
    Owner,
    Step,
    Summary,
    Tool,
    adapter_of,
    render,
)
from tests.app.test_syncing import machine, remote
from tests.canary import CORE, FORMS, PRIVATE, SECRET, is_kept, spoiled
from tests.fakes.provider import FakeProvider, Reply, Request
from tests.fuzz.inputs import seeds
from tests.fuzz.targets import TARGETS

__all__ = ["remote"]


NAME = SECRET.replace(CORE, CORE[::-1])
"""A secret for file names, which the index contains while the file has this name."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NACRE_GIT_BACKGROUND", "false")
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "none")
    return Path(os.environ["NACRE_HOME"])


def nacre(*arguments: str, code: int | None = 0, stdin: str | None = None) -> str:
    result = CliRunner().invoke(cli, list(arguments), input=stdin)
    assert code is None or result.exit_code == code, result.output
    return result.stdout


TALK: tuple[Step, ...] = (
    Owner("The gate controller hangs after every update. Which port does it listen on?"),
    Tool("Bash", "ss -ltnp", "LISTEN 0 128 *:9443 gate"),
    Tool("WebFetch", "https://gate.example/manual", "# Manual\n\nThe port is 9443."),
    Tool("Read", "/code/acme/gate.toml", "port = 9443"),
    Agent("It listens on port 9443."),
    Summary("The owner asked for the port of the gate."),
    Owner("Remember that the gate controller listens on port 9443."),
)
IDS = re.compile(
    r'"(?:uuid|id|sessionId|session_id|conversation_id|call_id|toolCallId|tool_use_id|requestId|responseId)"'
    r': ?"([^"]+)"'
)
DAY = re.compile(r"\d{4}-\d\d-\d\d(?=T\d\d:)")
UUID = re.compile(r"[0-9a-f]{4}(?=[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def examples() -> dict[str, tuple[str, str]]:
    """Return the file name and text of example transcripts of every tool, by a label."""
    folder = Path(str(files("nacre.setup"))) / "example_sessions"
    transcripts = {}
    for path in sorted(folder.rglob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:12]
        transcripts[f"{path.parent.name} {path.stem[:8]}"] = (path.name, "".join(lines))
    for shape, (name, _) in SHAPES.items():
        text = render(shape, TALK)
        if text is not None:  # databases are in test_databases.py
            transcripts[f"{shape} shape"] = (name, text)
    for name, adapter in adapters().items():
        for number, seed in enumerate(
            seeds(name) if name in TARGETS and not adapter.beside else ()
        ):
            if b"\0" not in seed and adapter.sniff(Head(Path("talk.txt"), seed)):
                transcripts[f"{name} seed {number}"] = (
                    "2026-11-18_talk.txt",
                    seed.decode("utf-8", "replace"),
                )
    return transcripts


EXAMPLES = examples()
IDENTIFIED_BY_WORDS = {"chatgpt seed 1", "plaud seed 0", "plaud seed 1"}
"""Examples without ids and times, in which a changed text makes a different turn."""


def with_own_ids(text: str, number: int) -> str:
    """Return a copy of a transcript with new ids and dates, so that it is read as new."""
    for name in sorted(set(IDS.findall(text))):
        new_name = f"{number:04d}{name[4:]}" if len(name) > 8 else f"{name}-{number}"
        text = text.replace(f'"{name}"', f'"{new_name}"')
    # A message without an id is identified by its time.
    return DAY.sub(lambda day: f"{date.fromisoformat(day[0]) + timedelta(number)}", text)


def transcript_path(folder: Path, name: str, number: int) -> Path:
    """Return a unique path for a numbered transcript; its file name can contain a session id."""
    path = Path(UUID.sub(f"{number:04d}", name))
    return folder / f"{number:04d}" / f"{path.stem}-{number:04d}{path.suffix}"


def test_examples_cover_every_adapter() -> None:
    covered = {adapter_of(name.split(" ", maxsplit=1)[0]) for name in EXAMPLES} | {
        adapter_of(database) for database in DATABASES
    }
    assert adapters().keys() - LIKE.keys() <= covered


@pytest.mark.parametrize("example", sorted(EXAMPLES.keys() - IDENTIFIED_BY_WORDS))
def test_numbered_copy_of_an_example_is_read_as_new_turns(
    home: Path, tmp_path: Path, example: str
) -> None:
    """Without new ids, the variants below would be skipped as known (IDS must list each id key)."""
    name, text = EXAMPLES[example]
    turns = []
    for number in range(2):
        path = transcript_path(tmp_path, name, number)
        path.parent.mkdir()
        path.write_text(with_own_ids(text, number), encoding="utf-8")
        turns.append(json.loads(nacre("ingest", str(path), "--json", code=None))["turns"])
    assert turns[0] == turns[1] > 0


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize(
    "forms", [("token", "url", "assignment"), ("header", "key", "private")], ids="+".join
)
def test_secrets_in_any_transcript_field_are_removed(
    home: Path, tmp_path: Path, example: str, forms: tuple[str, ...]
) -> None:
    name, text = EXAMPLES[example]
    words = " ".join(FORMS[form] for form in forms)
    for number in range(sum(1 for _ in spoiled(text, words))):
        variant = next(islice(spoiled(with_own_ids(text, number), words), number, None))
        target = transcript_path(tmp_path / "in", name, number)
        target.parent.mkdir(parents=True)
        target.write_text(variant, encoding="utf-8")
    nacre("ingest", str(tmp_path / "in"), code=None)
    nacre("admin", "commit")
    tools = json.loads(nacre("admin", "db", "stats", "--json"))["tools"]
    assert tools
    assert is_kept(home) == []


def test_secrets_in_transcript_or_folder_names_are_removed(home: Path, tmp_path: Path) -> None:
    for number, (example, (name, text)) in enumerate(EXAMPLES.items()):
        form = FORMS[("token", "assignment", "header")[number % 3]]
        folder = tmp_path / "in" / (f"{number} {form}" if number % 2 else str(number))
        folder.mkdir(parents=True)
        called = f"{form} {number}{Path(name).suffix}"
        (folder / called).write_text(with_own_ids(text, number), encoding="utf-8")
        assert example
    first = json.loads(nacre("ingest", str(tmp_path / "in"), "--json", code=None))
    assert first["turns"] > len(EXAMPLES)
    second_report = json.loads(nacre("ingest", str(tmp_path / "in"), "--json", code=None))
    assert (second_report["turns"], second_report["files"]) == (0, 0)
    nacre("admin", "commit")
    nacre("admin", "db", "rebuild", "--yes", code=None)
    nacre("admin", "commit")
    assert is_kept(home) == []


def test_transcripts_with_names_differing_in_a_secret_stay_separate(
    home: Path, tmp_path: Path
) -> None:
    for number in range(2):
        path = tmp_path / "in" / f"{SECRET[:-1]}{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"2026-11-18\nWe glued frame {number} of the kite with oak glue.\n", encoding="utf-8"
        )
    assert json.loads(nacre("ingest", str(tmp_path / "in"), "--json"))["sessions"] == 2
    assert json.loads(nacre("ingest", str(tmp_path / "in"), "--json"))["sessions"] == 0
    assert is_kept(home) == []


def test_secrets_in_any_command_option_are_removed(home: Path, tmp_path: Path) -> None:
    nacre(
        "store",
        f"The gate code is {SECRET} {PRIVATE}",
        "--subject",
        f"Gate {SECRET}",
        "--tag",
        f"t {SECRET}",
        "--key",
        f"gate {SECRET}",
        "--project",
        f"p {SECRET}",
    )
    nacre("store", f"Deploy uses {SECRET}")
    memories = json.loads(nacre("list", "--json"))["memories"]
    first, second = (memory["id"] for memory in memories)
    nacre(
        "edit",
        first,
        "--content",
        f"Now it is {SECRET}",
        "--subject",
        f"New {SECRET}",
        "--tag",
        f"u {SECRET}",
    )
    nacre("todo", "add", f"Rotate {SECRET}")
    nacre("recall", f"what is {SECRET}", "--session", f"s {SECRET}", code=None)
    nacre("search", f"{SECRET}", code=None)
    nacre("show", second, "--session", f"s {SECRET}")
    nacre(
        "review",
        "feedback",
        second,
        "--session",
        f"s {SECRET}",
        code=None,
        stdin=f"I used {SECRET}",
    )
    nacre("recall", f"the lamp and {SECRET}", "--pin")
    nacre("retire", second, "--reason", f"leaked {SECRET}", "--yes")
    nacre("retire", f"nothing {SECRET}", "--yes", code=None)
    nacre("admin", "doctor")
    nacre("admin", "commit")
    assert is_kept(home) == []


def test_secrets_in_export_sync_and_forget_options_are_removed(home: Path, tmp_path: Path) -> None:
    nacre("store", "The gate is painted green.", "--subject", "Gate", "--project", "acme")
    nacre("store", "The lamp hangs over the gate.", "--subject", "Lamp")
    lamp = json.loads(nacre("list", "--json"))["memories"][0]["id"]
    out = tmp_path / f"out {SECRET}"
    out.mkdir()
    for name in ("all.jsonl", "all.zip"):
        nacre(
            "data",
            "export",
            str(out / name),
            "--sessions",
            "--include-retired",
            "--project",
            f"p {SECRET}",
            code=None,
        )
        nacre("data", "export", str(out / name), "--sessions", "--include-retired", "--force")
    for form in FORMS.values():
        nacre(
            "data", "import", str(out / "all.jsonl"), "--trust", "--yes", "--project", f"q {form}"
        )
    nacre("forget", "--match", SECRET, "--yes", code=None)
    nacre("forget", "--match", f"{SECRET}.*|painted", "--regex", "--yes")
    nacre("forget", "--project", f"p {SECRET}", "--yes", code=None)
    nacre("forget", "--session", f"s {SECRET}", "--yes", code=None)
    nacre("forget", "--list")
    nacre("retire", f"lamp {SECRET}", "--persist", "--reason", f"r {SECRET}", "--yes")
    nacre("retire", "--contains", f"{SECRET} hook", "--persist", "--yes")
    nacre("sync", "--remote", str(tmp_path / SECRET), code=None)
    nacre("sync", "--remote", f"https://me:{SECRET}@127.0.0.1:9/x.git", "--timeout", "1", code=None)
    nacre("data", "backup", "create", str(out / "backup"), code=None)
    nacre("undo", SECRET, code=None)
    nacre("retire", "--restore", SECRET, code=None)
    nacre("show", lamp)
    nacre("admin", "commit")
    assert is_kept(home) == []


@pytest.mark.parametrize("shape", ["{}", "sk-ant-api03-{}", "sk-proj-{}"])
def test_api_key_is_stored_only_in_credentials_toml(home: Path, tmp_path: Path, shape: str) -> None:
    key = shape.format(f"{CORE}-plain-{CORE[::-1]}")

    def reply(request: Request) -> Reply | dict[str, str]:
        message = f"key {request.key} of {json.dumps(dict(request.headers))}"
        return (
            {"metal": "mercury"} if len(provider.calls) == 1 else Reply(status=401, message=message)
        )

    with FakeProvider(reply) as provider:
        table = f'{{mine = {{base_url = "{provider.url}/v1", key = "MINE_KEY"}}}}'
        output = nacre("config", "set", "models.providers", table)
        output += nacre("writer", "keys", "mine", "--json", stdin=key)
        output += nacre("config", "set", "models.background", "true")
        output += nacre("config", "set", "models.default", "mine:m")
        output += nacre("writer", "models", "--test")
        output += nacre("writer", "models", "--test", "mine:other", code=1)
        output += nacre("writer", "keys", "mine", "--json", stdin=f"{key} and more", code=2)
        for name, (file, text) in list(EXAMPLES.items())[:3]:
            path = tmp_path / "in" / name / file
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
        output += nacre("ingest", str(tmp_path / "in"), code=None)
        output += nacre("store", "The gate is painted green.", "--subject", "Gate")
        output += nacre("recall", "what is green?")
    for words in (
        "writer keys",
        "writer keys --json",
        "config show",
        "config show --json",
        "config show models.providers",
        "admin doctor",
        "admin commit",
        "log",
    ):
        output += nacre(*words.split(), code=None)
    nacre("data", "export", str(tmp_path / "all.jsonl"), "--sessions")
    nacre("data", "backup", "create", str(tmp_path / "backup.zip"))
    nacre("data", "backup", "restore", str(tmp_path / "backup.zip"), "--to", str(tmp_path / "back"))
    assert key not in output
    assert key in (home / "credentials.toml").read_text(encoding="utf-8")
    assert {place.partition(": ")[0] for place in is_kept(home)} == {str(home / "credentials.toml")}
    assert is_kept(tmp_path / "back") == []
    assert CORE not in (tmp_path / "all.jsonl").read_text(encoding="utf-8")


ADDRESS, FOLDER = "ana.li@mail.example.org", "/home/analisa"


def test_private_addresses_and_paths_are_removed_everywhere_if_enabled(
    home: Path, tmp_path: Path
) -> None:
    nacre("config", "set", "redaction.emails", "true")
    nacre("config", "set", "redaction.home_paths", "true")
    words = f"{ADDRESS} keeps the plan in {FOLDER}/pier.md"
    for number, (name, text) in enumerate(EXAMPLES.values()):
        for index, variant in enumerate(islice(spoiled(with_own_ids(text, number), words), 4)):
            target = (
                tmp_path
                / "in"
                / f"{number:04d}-{index}"
                / f"{Path(name).stem}-{number:04d}{index}{Path(name).suffix}"
            )
            target.parent.mkdir(parents=True)
            target.write_text(variant, encoding="utf-8")
    nacre("ingest", str(tmp_path / "in"), code=None)
    nacre("store", f"The pier: {words}.", "--subject", f"Pier of {ADDRESS}", "--tag", "pier")
    nacre("recall", f"where is the plan of {words}?")
    nacre("recall", f"nobody knows {words}")
    nacre("context", "--handoff", "--store", f"Goes on: {words}", code=None)
    nacre("admin", "commit")
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "-b", "main", str(tmp_path / "remote.git")], check=True
    )
    nacre("sync", "--remote", str(tmp_path / "remote.git"))
    nacre("data", "export", str(tmp_path / "out.jsonl"))
    assert "[REDACTED:email] keeps the plan in ~/pier.md" in nacre(
        "recall", "who keeps the plan of the pier?"
    )
    command = [
        "git",
        "-C",
        str(tmp_path / "remote.git"),
        "cat-file",
        "--batch-all-objects",
        "--batch",
    ]
    contents = (
        subprocess.run(command, capture_output=True, check=True).stdout
        + (tmp_path / "out.jsonl").read_bytes()
    )
    assert b"[REDACTED:email] keeps the plan in ~/pier.md" in contents
    for needle in (ADDRESS, FOLDER):
        assert needle.encode() not in contents
        assert is_kept(home, needle) == []


def test_secrets_synced_from_a_remote_remain_only_in_vault_files(
    tmp_path: Path, remote: Path
) -> None:
    """A vault file of a shared remote keeps its secret; no other file of the home contains it."""
    first, second = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    first.store("The bridge opens at eight.", subject="Bridge", project="harbour")
    first.sync(remote=str(remote))
    second.sync(remote=str(remote))
    folder = second.vault / "projects" / "harbour" / "fact"
    words = " ".join(FORMS.values())
    (folder / f"gate {NAME}.md").write_text("# Gate\n\nThe gate is green.\n", encoding="utf-8")
    (folder / "key.md").write_text(
        f"---\ntags: [{SECRET}]\n---\n# Key\n\nIt says {words}\n", encoding="utf-8"
    )
    (second.vault / "projects" / f"p {NAME}").mkdir()
    page = second.vault / "projects" / f"p {NAME}" / "project.md"
    page.write_text(
        f"---\nroots: [/code/{SECRET}]\naliases: [a {SECRET}]\n---\n# P {SECRET}\n",
        encoding="utf-8",
    )
    second.git("add", "--all")
    second.git("commit", "--quiet", "--message", f"Add {SECRET}\n\n{words}")
    second.git("push", "--quiet", str(remote), "HEAD:main")
    first.store("The quay is lit at night.", subject="Quay", project="harbour")
    sync_result = first.sync()
    assert sync_result.state is State.SYNCED
    assert "The gate is green." in first.active()
    context = first.world.context()
    try:
        assert log(context, limit=10)
        recall(context, RecallQuery("which gate is green?"))
        for name in ("all.jsonl", "all.zip"):
            options = ExportOptions(form=name.partition(".")[2])
            export(context, tmp_path / name, options)
        forget(context, prepare(context, ForgetRequest(match="quay")))
    finally:
        context.database.close()
    assert is_kept(first.world.home, outside=first.vault) == []
    exported = [path.read_bytes() for path in tmp_path.glob("all.*")]
    assert len(exported) == 2
    assert not any(NAME.encode() in data for data in exported)


def test_crash_report_contains_no_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot reach https://me:{SECRET}@db.example")

    monkeypatch.setattr("nacre.cli.status.perform", broken)
    nacre("admin", "doctor", code=1)
    assert (home / "logs" / "errors.log").exists()
    assert is_kept(home) == []


def test_scrub_removes_a_previously_unrecognised_key_everywhere(home: Path, tmp_path: Path) -> None:
    words = f"zz-{CORE}-4711"
    transcript = tmp_path / "in" / "a.jsonl"
    transcript.parent.mkdir()
    messages = [
        {
            "role": "user",
            "content": f"Remember that the wombat key is {words} for the northern gate, always.",
        },
        {"role": "assistant", "content": f"Noted: {words} opens it.", "author": f"Agent {words}"},
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in messages), encoding="utf-8")
    nacre("ingest", str(transcript))
    nacre("store", f"The gate opens with {words} in the evening", "--tag", words)
    nacre("admin", "commit")
    nacre("store", f"Second note on {words} and lamps")
    nacre(
        "retire",
        json.loads(nacre("list", "--json"))["memories"][0]["id"],
        "--reason",
        f"has {words}",
        "--yes",
    )
    nacre("recall", f"lamps and {words}?", "--pin")
    nacre("admin", "commit")
    (home / "nacre.db.old").write_bytes(b"an older copy")
    nacre("config", "set", "redaction.patterns", json.dumps([f"(?i)zz-{CORE}-4711"]))
    (home / "config.toml").rename(tmp_path / "config.toml")
    os.environ["NACRE_CONFIG"] = str(tmp_path / "config.toml")
    try:
        before = len(is_kept(home))
        dry = json.loads(nacre("admin", "scrub", "--dry-run", "--history", "--json"))
        assert dry["total"] > 0
        assert len(is_kept(home)) == before
        nacre("admin", "scrub", "--history", "--remove-copies", code=2)
        report = json.loads(
            nacre("admin", "scrub", "--history", "--remove-copies", "--yes", "--json")
        )
        assert report["turns"] == 2
        assert report["commits"] >= 2
        assert report["removed"] == [str(home / "nacre.db.old")]
        assert any("replace the key" in place for place in report["elsewhere"])
        nacre("admin", "commit")
        assert is_kept(home) == []
        assert json.loads(nacre("admin", "scrub", "--history", "--yes", "--json"))["total"] == 0
        assert "northern gate" in nacre("recall", "wombat key of the northern gate")
        assert "northern gate" in nacre("search", "northern gate")
        assert nacre("admin", "doctor")
        status = subprocess.run(
            ["git", "-C", str(home / "vault"), "status", "--short"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert status.stdout == ""
    finally:
        del os.environ["NACRE_CONFIG"]
