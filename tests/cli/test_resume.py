"""``nacre resume`` opens the right session in its own tool and folder."""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path

import pytest

from nacre.readers.registry import adapters
from nacre.testing import samples
from nacre.values.models import OWN_CALL
from tests.cli.conftest import SESSION, Nacre, said, write_transcript

OTHER = "1a2b3c4d-0000-4000-8000-000000000002"
FAKE = """#!/bin/sh
umask > "$0.umask"
pwd > "$0.pwd"
printf '%s\\n' "$@" > "$0.words"
exit 7
"""


def talk(home: Path, folder: Path, session: str, day: str, *texts: str) -> Path:
    """A session with Claude Code in a folder, stored like Claude Code stores it."""
    records = [
        said(role, text, number, session=session, day=day, cwd=str(folder))
        for number, text in enumerate(texts)
        for role in (("user", "assistant")[number % 2],)
    ]
    place = str(folder).replace("/", "-").replace("_", "-").replace(".", "-")
    return write_transcript(home / ".claude" / "projects" / place / f"{session}.jsonl", records)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "ledger books"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "harbour"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def sessions(nacre: Nacre, user_home: Path, ledger: Path, harbour: Path) -> None:
    """Two sessions with Claude Code: an older one about the ledger, and a later one about the harbour."""
    talk(
        user_home,
        ledger,
        SESSION,
        "2026-11-17",
        "Round the amounts of the ledger half to even",
        "Done: banker's.",
    )
    talk(
        user_home,
        harbour,
        OTHER,
        "2026-11-18",
        "When do the boats leave the harbour?",
        "They leave at nine.",
    )
    nacre("ingest", "--no-vectors")


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that records how it was started, as the only ``claude`` on the PATH."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(FAKE, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def noted(program: Path, what: str) -> str:
    return program.with_name(f"{program.name}.{what}").read_text(encoding="utf-8").strip()


@pytest.mark.usefixtures("sessions")
def test_session_is_opened_by_its_own_tool_in_its_folder(
    terminal_process: Nacre, claude: Path, ledger: Path
) -> None:
    outcome = terminal_process("resume", SESSION[:8])
    assert outcome.code == 7  # nacre was replaced by the program
    assert noted(claude, "words") == f"--resume\n{SESSION}"
    assert noted(claude, "pwd") == str(ledger)
    assert "Round the amounts of the ledger" in outcome.out
    assert f"claude --resume {SESSION}" in outcome.out


@pytest.mark.usefixtures("sessions")
def test_resumed_tool_keeps_the_users_umask(terminal_process: Nacre, claude: Path) -> None:
    before = os.umask(0o027)
    try:
        terminal_process("resume", SESSION[:8])
    finally:
        os.umask(before)
    assert noted(claude, "umask") == "0027"


def _resumed(nacre: Nacre, *words: str) -> str:
    session = nacre("resume", *words, "--json").json["line"]["session"]["session"]
    return str(session["native_id"])


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize(
    ("what", "session"),
    [
        ([OTHER], OTHER),
        ([f"claude-code:{SESSION[:6]}"], SESSION),
        (["amounts", "ledger"], SESSION),
        (["banker's"], SESSION),
        (["boats"], OTHER),
    ],
)
def test_session_is_found_by_id_prefix_or_words(
    nacre: Nacre, what: list[str], session: str
) -> None:
    assert nacre("resume", *what, "--json").json["command"] == ["claude", "--resume", session]


@pytest.mark.usefixtures("sessions")
def test_last_session_of_this_folder_is_the_default(
    nacre: Nacre, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ledger)
    printed = nacre("resume", "--print").out
    assert printed == f"cd {shlex.quote(str(ledger))} && claude --resume {SESSION}\n"
    monkeypatch.chdir(tmp_path)
    refused = nacre("resume", "--json", code=3).error
    assert (refused["code"], refused["hint"]) == (
        "not_found",
        "give an id from nacre sessions list",
    )


def test_ambiguous_words_select_the_last_session_of_this_folder(
    nacre: Nacre, user_home: Path, ledger: Path, harbour: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(
        user_home, ledger, SESSION, "2026-11-17", "The tests are slow, make them quick", "They are."
    )
    talk(
        user_home, harbour, OTHER, "2026-11-18", "The tests are slow, make them quick", "They are."
    )
    nacre("ingest", "--no-vectors")
    assert _resumed(nacre, "tests are slow") == OTHER
    monkeypatch.chdir(ledger)
    assert _resumed(nacre, "tests are slow") == SESSION


@pytest.mark.usefixtures("sessions")
def test_command_is_only_printed_without_a_terminal(process: Nacre, claude: Path) -> None:
    refused = process("resume", SESSION, code=2)
    assert "--print only prints its command" in refused.err
    assert process("resume", SESSION, "--print").out.endswith(f"claude --resume {SESSION}\n")
    assert not list(claude.parent.glob("claude.*"))


@pytest.mark.usefixtures("sessions")
def test_missing_tool_is_named_with_the_command(
    terminal_process: Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    outcome = terminal_process("resume", SESSION)
    assert outcome.code == 5
    assert "claude is not on the PATH" in outcome.out
    assert f"claude --resume {SESSION}" in " ".join(outcome.out.split())


@pytest.mark.usefixtures("sessions")
def test_missing_transcript_or_folder_is_reported_with_a_remedy(
    nacre: Nacre, user_home: Path, ledger: Path, harbour: Path
) -> None:
    ledger.rmdir()
    refused = nacre("resume", SESSION, "--json", code=3).error
    assert f"the folder of claude-code:{SESSION} is gone: {ledger}" in refused["message"]
    assert f"nacre sessions show claude-code:{SESSION}" in refused["hint"]
    next((user_home / ".claude" / "projects").glob(f"*/{OTHER}.jsonl")).unlink()
    refused = nacre("resume", OTHER, "--json", code=3).error
    assert f"nacre sessions restore claude-code:{OTHER}" in refused["hint"]
    nacre("sessions", "restore", OTHER)
    assert nacre("resume", OTHER, "--json").json["folder"] == str(harbour)


@pytest.mark.usefixtures("sessions")
def test_unmatched_words_find_no_session(nacre: Nacre) -> None:
    refused = nacre("resume", "zebra", "crossing", "--json", code=3).error
    assert refused["message"] == "no session has 'zebra crossing' in its title or its text"


def test_sub_agent_session_points_to_its_parent(
    nacre: Nacre, user_home: Path, ledger: Path
) -> None:
    main = talk(
        user_home,
        ledger,
        SESSION,
        "2026-11-17",
        "Look for places that round amounts",
        "I send somebody.",
    )
    task = [
        said("user", "List all that rounds", 6, cwd=str(ledger)),
        said("assistant", "None.", 7, cwd=str(ledger)),
    ]
    for record in task:
        record |= {"isSidechain": True, "agentId": "0a0b0c", "uuid": f"sub-{record['uuid']}"}
    write_transcript(main.parent / "agent-0a0b0c.jsonl", task)
    nacre("ingest", "--no-vectors")
    refused = nacre("resume", "agent-0a0b0c", "--json", code=4).error
    assert "subagent" in refused["message"]
    assert f"nacre resume claude-code:{SESSION}" in refused["hint"]


@pytest.mark.parametrize("tool", ["claude-code", "codex", "gemini-cli", "copilot-cli"])
def test_each_tool_has_its_own_resume_command(tool: str, nacre: Nacre, user_home: Path) -> None:
    put(user_home, tool)
    nacre("ingest", "--no-vectors")
    (listed,) = nacre("sessions", "list", "--json").json["lines"]
    session = listed["session"]["session"]
    reference = f"{session['tool']}:{session['native_id']}"
    if session["cwd"]:  # of another machine
        assert nacre("resume", reference, "--json", code=3).error["code"] == "not_found"
        return
    expected = [word.replace("{id}", session["native_id"]) for word in adapters()[tool].resume]
    assert nacre("resume", reference, "--json").json["command"] == expected


@pytest.mark.parametrize("tool", ["continue", "cline", "cursor-transcripts"])
def test_tool_without_resume_support_explains_alternatives(
    tool: str, nacre: Nacre, user_home: Path
) -> None:
    put(user_home, tool)
    nacre("ingest", "--no-vectors")
    (listed,) = nacre("sessions", "list", "--json").json["lines"]
    session = listed["session"]["session"]
    reference = f"{session['tool']}:{session['native_id']}"
    refused = nacre("resume", reference, "--json", code=5).error
    assert (refused["code"], refused["hint"]) == (
        "unavailable",
        f"nacre sessions show {reference} reads it",
    )


def test_transcript_from_another_place_cannot_be_resumed(
    nacre: Nacre, tmp_path: Path, ledger: Path
) -> None:
    copy = write_transcript(
        tmp_path / "copies" / f"{SESSION}.jsonl",
        [
            said("user", "Round the amounts", 1, cwd=str(ledger)),
            said("assistant", "Done.", 2, cwd=str(ledger)),
        ],
    )
    nacre("ingest", str(copy), "--no-vectors")
    refused = nacre("resume", SESSION, "--json", code=5).error
    assert refused["message"].endswith(f"has no command that opens transcripts in {copy.parent}")


@pytest.mark.parametrize("name", ["--dangerously-skip-permissions", "-p", "$(touch x)", "../../x"])
def test_option_like_session_id_is_not_passed_to_a_program(
    name: str, nacre: Nacre, user_home: Path, ledger: Path
) -> None:
    talk(user_home, ledger, SESSION, "2026-11-17", "Round the amounts of the ledger", "Done.")
    path = next((user_home / ".claude" / "projects").glob(f"*/{SESSION}.jsonl"))
    path.write_text(
        path.read_text(encoding="utf-8").replace(f'"{SESSION}"', json.dumps(name)), encoding="utf-8"
    )
    nacre("ingest", "--no-vectors")
    refused = nacre("resume", "amounts of the ledger", "--json", code=5).error
    assert refused["code"] == "unavailable"


def test_nacre_model_sessions_are_not_resumed(nacre: Nacre, user_home: Path) -> None:
    name, data = samples()["gemini-cli"]
    folder = user_home / ".gemini" / "tmp" / "ab" / "chats"
    folder.mkdir(parents=True)
    first = "When do the boats leave the harbour?"
    own = (
        data.decode()
        .replace(first, f"{OWN_CALL} {first}")
        .replace("6e111111", "6e222222")
        .replace("4000-b000", "4000-a000")
    )
    (folder / name).write_bytes(data)
    (folder / name.replace("6e111111", "6e222222")).write_text(
        own.replace("2026-11-18", "2026-11-19"), encoding="utf-8"
    )
    nacre("ingest", "--no-vectors")
    assert len(nacre("sessions", "list", "--json").json["lines"]) == 2
    assert nacre("resume", "6e222222", "--json", code=4).error["code"] == "conflict"
    assert _resumed(nacre, "boats", "harbour").startswith("6e111111")


def put(home: Path, adapter: str) -> Path:
    """A sample transcript in its tool's folder."""
    name, data = samples()[adapter]
    place = {
        "claude-code": ".claude/projects/-code-acme",
        "codex": ".codex/sessions/2026/11/18",
        "gemini-cli": ".gemini/tmp/ab/chats",
        "copilot-cli": ".copilot/session-state/c0de",
        "continue": ".continue/sessions",
        "cursor-transcripts": ".cursor/projects/code-acme/agent-transcripts",
        "cline": ".cline/data/tasks/1795000000000",
    }[adapter]
    (home / place).mkdir(parents=True)
    (home / place / name).write_bytes(data)
    return home / place / name
