"""Errors are one line with a remedy and an exit code, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nacre import errors
from nacre.cli import memories, output
from tests.cli.conftest import Nacre, command, environment, said, write_transcript
from tests.processes import Processes

ALL_ERRORS = sorted(
    (
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.NacreError)
    ),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.NacreError, 1),
        (errors.InvalidInputError, 2),
        (errors.InvalidSettingsError, 2),
        (errors.InvalidQueryError, 2),
        (errors.InvalidMemoryError, 2),
        (errors.UnreadableTranscriptError, 1),
        (errors.NotFoundError, 3),
        (errors.ConflictError, 4),
        (errors.EditConflictError, 4),
        (errors.UnavailableError, 5),
        (errors.StoreBusyError, 5),
        (errors.EmbedderUnavailableError, 5),
        (errors.UnusableStoreError, 1),
        (errors.SchemaTooNewError, 1),
        (errors.UnusableVaultError, 1),
    ],
)
def test_each_error_has_its_exit_code(kind: type[errors.NacreError], code: int) -> None:
    assert output.exit_code_of(kind("something")) == code


def test_every_error_is_in_the_table(request: pytest.FixtureRequest) -> None:
    assert {output.exit_code_of(kind("x")) for kind in ALL_ERRORS} <= {1, 2, 3, 4, 5}


def test_error_is_a_single_line_with_a_hint_on_stderr(process: Nacre) -> None:
    answer = process("show", "nope", code=3)
    assert answer.out == ""
    assert answer.err == "error: there is no memory 'nope'\nhint: nacre list shows ids\n"


def test_json_error_is_a_single_object_on_stdout(process: Nacre) -> None:
    answer = process("show", "nope", "--json", code=3)
    assert answer.err == ""
    assert answer.json == {
        "error": {
            "code": "not_found",
            "message": "there is no memory 'nope'",
            "hint": "nacre list shows ids",
        }
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recal", "x"), "there is no command 'recal'; did you mean recall?"),
        (("recall", "x", "--limit", "many"), "invalid value for '--limit'"),
        (("recall", "x", "--kind", "rumour"), "'rumour' is not one of 'fact', 'decision'"),
        (("recall", "x", "--since", "someday"), "'someday' is not a date"),
        (("recall", "x", "--since", "2026-13-45"), "'2026-13-45' is not a date"),
        (("recall", "x", "--since", "99999999y"), "'99999999y' is not a date"),
        (
            ("recall", "x", "--since", "2026-02-01", "--until", "2026-01-01"),
            "--since is after --until",
        ),
        (("recall", "x", "--around-radius", "0"), "0.0 is not in the range 0<x<=36500"),
        (("recall", "x" * 30_000), "the question is longer than"),
        (("store", "x", "--kind", "rumour"), "'rumour' is not one of"),
        (("store", "x", "--importance", "11"), "invalid value for '--importance'"),
        (("store", "  "), "the memory has no content"),
        (("store",), "missing argument 'content'"),
        (("search",), "the question is empty"),
        (("sessions", "shwo"), "did you mean show?"),
        (("admin", "completion", "tcsh"), "invalid value for 'shell': 'tcsh' is not one of"),
        (("list", "--frobnicate"), "no such option"),
    ],
)
def test_invalid_arguments_are_refused_with_a_reason(
    nacre: Nacre, arguments: tuple[str, ...], message: str
) -> None:
    answer = nacre(*arguments, code=2)
    lines = answer.err.splitlines()
    assert answer.out == ""
    assert message in lines[0].lower()
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    assert len(lines) == 2
    assert nacre(*arguments, "--json", code=2).error["message"] in lines[0]


def test_database_of_a_newer_nacre_is_not_changed(nacre: Nacre, user_home: Path) -> None:
    nacre("store", "Deploy on Fridays")
    database = user_home / ".nacre" / "nacre.db"
    _sql(database, "PRAGMA user_version = 9999")
    answer = nacre("recall", "deploy", code=1)
    assert "has schema 9999" in answer.err
    assert "hint: upgrade nacre" in answer.err
    assert nacre("list", "--json", code=1).error["code"] == "schema_too_new"


def test_invalid_database_is_reported_and_can_be_rebuilt(nacre: Nacre, user_home: Path) -> None:
    memory = nacre("store", "Deploy on Fridays", "--json").json["memory_id"]
    for file in (user_home / ".nacre").glob("nacre.db*"):
        file.write_bytes(os.urandom(5000))
    answer = nacre("recall", "deploy", code=1)
    assert "is not a nacre database" in answer.err
    assert "nacre admin db rebuild" in answer.err
    nacre("admin", "db", "rebuild", "--yes")
    assert nacre("list", "--json").json["memories"][0]["id"] == memory


def test_vault_path_that_is_a_file_is_named(nacre: Nacre, user_home: Path) -> None:
    (user_home / ".nacre").mkdir()
    (user_home / ".nacre" / "vault").write_text("not a folder", encoding="utf-8")
    assert nacre("recall", "x", "--json", code=1).error["code"] == "vault_unusable"
    assert "vault is a file" in nacre("store", "x", code=1).err


def test_a_home_that_is_a_file_is_named(nacre: Nacre, user_home: Path) -> None:
    (user_home / ".nacre").write_text("not a folder", encoding="utf-8")
    answer = nacre("recall", "x", code=1)
    assert f"cannot create {user_home / '.nacre'}" in answer.err
    assert "NACRE_HOME" in answer.err


def test_a_database_that_is_a_folder_is_named(nacre: Nacre, user_home: Path) -> None:
    (user_home / ".nacre" / "nacre.db").mkdir(parents=True)
    assert "cannot use the database" in nacre("recall", "x", code=1).err


def test_invalid_config_file_is_named_and_help_still_works(nacre: Nacre, user_home: Path) -> None:
    (user_home / ".nacre").mkdir()
    (user_home / ".nacre" / "config.toml").write_text("[recall]\nlimit = [", encoding="utf-8")
    assert "is not valid TOML" in nacre("recall", "x", code=2).err
    assert nacre("--help").out
    assert nacre("--version").out.startswith("nacre ")


@pytest.mark.parametrize("setting", ["recall.limti", "colours", "plumage.colour"])
def test_unknown_settings_cause_a_warning_and_can_be_removed(
    nacre: Nacre, user_home: Path, setting: str
) -> None:
    config = user_home / ".nacre" / "config.toml"
    config.parent.mkdir(mode=0o700)
    section, _, name = setting.partition(".")
    unknown = f"[{section}]\n{name} = 3\n" if name else f"{section} = [1, 2]\n"
    config.write_text(f"{unknown}[daemon]\nwatch = false\n", encoding="utf-8")
    nacre("store", "The heron nests in May")
    answer = nacre("recall", "heron")
    assert "nests in May" in answer.out
    assert f"warning: no setting is called {setting!r} (in {config}): " in answer.err
    assert f"nacre config unset {setting}" in answer.err
    assert setting in nacre("config", "unset", setting).out
    assert nacre("recall", "heron").err == ""
    assert "watch = false" in config.read_text(encoding="utf-8")
    assert "no setting is called" in nacre("config", "unset", setting, code=2).err


def test_broken_memory_file_permits_recall_and_is_not_overwritten(
    nacre: Nacre, user_home: Path
) -> None:
    nacre("store", "Deploy on Fridays", "--subject", "Deploys")
    file = user_home / ".nacre" / "vault" / "global" / "fact" / "deploys.md"
    broken = file.read_text(encoding="utf-8").replace("kind: fact", "kind: [fact")
    file.write_text(broken, encoding="utf-8")
    answer = nacre("recall", "deploy")
    assert "Deploy on Fridays" in answer.out
    assert "warning: global/fact/deploys.md: broken YAML at line" in answer.err
    assert nacre("recall", "deploy", "--json").json["hits"]
    for change in (("edit", "Deploys", "--importance", "9"), ("retire", "Deploys")):
        assert "correct the file" in nacre(*change, code=2).err
    assert file.read_text(encoding="utf-8") == broken


def test_ambiguous_id_is_a_conflict(nacre: Nacre) -> None:
    ids = [
        nacre("store", f"Memory number {number}", "--json").json["memory_id"] for number in range(2)
    ]
    answer = nacre("show", ids[0][:6], code=4)
    assert "matches several memories" in answer.err
    assert ids[0] in answer.err


def test_unexpected_error_is_a_single_line_with_a_redacted_log(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "ghp_" + "a1B2" * 9

    def fail(*_: object, **__: object) -> None:
        raise LookupError(f"the token {secret} is odd")

    monkeypatch.setattr(memories.show, "callback", fail)
    answer = nacre("show", "x", code=1)
    log = user_home / ".nacre" / "logs" / "errors.log"
    first, hint = answer.err.splitlines()
    assert first.startswith("error: unexpected error: LookupError: the token ")
    assert hint == f"hint: please report it with {log}"
    written = log.read_text(encoding="utf-8")
    assert "Traceback" in written
    assert secret not in written + answer.err
    assert log.stat().st_mode & 0o777 == 0o600
    log.write_bytes(b"x" * 1_000_000)
    assert nacre("show", "x", "--json", code=1).error["code"] == "unexpected"
    assert (log.parent / "errors.log.1").exists()
    assert not log.exists()


def test_custom_secret_pattern_is_redacted_in_the_log(
    nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise LookupError("the badge ACME-77881 is odd")

    nacre("config", "set", "redaction.patterns", '["ACME-[0-9]{5}"]')
    monkeypatch.setattr(memories.show, "callback", fail)
    answer = nacre("show", "x", code=1)
    assert "ACME-77881" not in answer.err + (
        user_home / ".nacre" / "logs" / "errors.log"
    ).read_text(encoding="utf-8")


def test_full_disk_error_is_a_single_line(nacre: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/vault/x.md")

    monkeypatch.setattr(memories.show, "callback", fail)
    answer = nacre("show", "x", code=5)
    assert answer.err.splitlines() == [
        "error: the disk is full (/vault/x.md)",
        "hint: free some space and repeat; nothing was lost",
    ]


def test_disk_error_during_a_write_is_a_single_line(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")  # a write error has no file name

    monkeypatch.setattr(memories.show, "callback", fail)
    assert nacre("show", "x", code=1).err.splitlines() == [
        "error: Input/output error",
        "hint: check the path, its permissions and the disk; nothing was lost",
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_stdout_on_a_full_disk_error_is_a_single_line(process: Nacre) -> None:
    process("store", "Deploy on Fridays")
    with Path("/dev/full").open("w") as full:
        answer = process("list", code=5, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert answer.err.startswith("error: the disk is full")
    assert "Traceback" not in answer.err


def test_a_closed_pipe_is_silent(process: Nacre, processes: Processes) -> None:
    for number in range(3):
        process("store", f"Memory number {number} " + "x" * 400)
    shell = f"{' '.join(command('list', '--json'))} | head -c 1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", shell], env=environment(), capture_output=True, text=True, check=False
    )
    assert result.stdout == "{"
    assert result.stderr == ""
    assert result.returncode == 0
    process_without_reader = processes.start(
        command("list"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process_without_reader.stdout
    assert process_without_reader.stderr
    process_without_reader.stdout.close()
    assert process_without_reader.wait(60) == 0
    assert process_without_reader.stderr.read() == b""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_prints_a_short_message_and_loses_nothing(
    user_home: Path, process: Nacre, processes: Processes
) -> None:
    folder = user_home / ".claude" / "projects" / "-work-acme"
    for file in range(40):
        session = f"{file:08x}-0000-4000-8000-000000000001"
        records = [
            said("user", f"Note {file} {turn}: " + "lorem ipsum " * 60, turn % 60, session=session)
            for turn in range(20)
        ]
        write_transcript(folder / f"{session}.jsonl", records)
    started = processes.start(
        command("ingest"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    database = user_home / ".nacre" / "nacre.db"
    for _ in range(500):
        if database.exists():
            break
        time.sleep(0.01)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode in (0, 130)
    if started.returncode:
        first, *rest = err.strip().splitlines()
        assert first == "error: interrupted"
        assert rest in ([], ["hint: finished work is kept; run the command again to continue"])
    report = process("ingest", "--json").json
    assert report["files"] + report["skipped"] == 40
    assert len(process("sessions", "list", "--limit", "100", "--json").json["lines"]) == 40


def test_unencodable_text_is_replaced(process: Nacre) -> None:
    process("store", "We ship naïve 中文 builds")
    answer = process("list", environ={"PYTHONIOENCODING": "ascii"})
    assert "builds" in answer.out
    assert process("list", "--json", environ={"PYTHONIOENCODING": "ascii"}).json["memories"][0][
        "content"
    ] == ("We ship naïve 中文 builds")


def test_invalid_utf8_arguments_are_accepted(process: Nacre) -> None:
    process("store", "Deploy on Fridays")
    result = subprocess.run(
        [*command("recall"), b"deploy \xff\xfe", "--json"],
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_text_from_transcripts_cannot_steer_the_terminal(nacre: Nacre) -> None:
    nacre("store", "Deploy \x1b[31mred\x1b]0;title\x07 on \u202eFridays")
    for text in (
        nacre("list").out,
        nacre("recall", "deploy").out,
        nacre("show", nacre("list", "--json").json["memories"][0]["id"]).out,
    ):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\u202e" not in text


def test_importing_the_command_line_does_not_load_settings(tmp_path: Path) -> None:
    probe = "import sys; from nacre.cli.root import cli; assert type(sys.modules['nacre.settings']) is not type(sys)"
    result = subprocess.run(
        [sys.executable, "-c", probe],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def _sql(database: Path, statement: str) -> Any:
    import sqlite3

    connection = sqlite3.connect(database)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.commit()
        connection.close()
