"""Output of hooks in the hosts' own formats, files that hooks leave, and modules that they load."""

from __future__ import annotations

import json
import os
import select
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

import nacre
from nacre.base.link import CHORES_LOCK, socket_path
from nacre.base.locks import FileLock
from nacre.serve.hook_shapes import SHAPES
from tests.hooks.conftest import (
    DECIDED,
    PATIENT_MS,
    QUESTION,
    SESSION,
    Hooked,
    hang,
    listening,
    locked_against_readers,
    respond,
    serving,
)
from tests.processes import Processes

BLOCK = ("<nacre-context>", "</nacre-context>")


@pytest.mark.parametrize("host", ["claude-code", "codex"])
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_claude_code_and_codex_share_an_output_format(
    hooked: Hooked, host: str, event: str
) -> None:
    output = json.loads(hooked.run(event, host=host).out)
    assert output.keys() == {"hookSpecificOutput"}
    assert output["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    assert output["hookSpecificOutput"]["hookEventName"] == event
    assert output["hookSpecificOutput"]["additionalContext"].startswith(BLOCK[0])
    assert output["hookSpecificOutput"]["additionalContext"].rstrip().endswith(BLOCK[1])


def test_gemini_receives_json_even_without_context(hooked: Hooked) -> None:
    output = json.loads(hooked.run("BeforeAgent", host="gemini-cli").out)
    assert DECIDED in output["hookSpecificOutput"]["additionalContext"]
    for event, prompt in (
        ("BeforeAgent", "ok"),
        ("AfterAgent", ""),
        ("SessionEnd", ""),
        ("PreCompress", ""),
    ):
        assert hooked.run(event, hooked.hook_input(prompt=prompt), host="gemini-cli").out == "{}"


def test_gemini_hook_context_is_not_part_of_the_prompt(hooked: Hooked) -> None:
    prompt = f"<hook_context>{QUESTION} {DECIDED}</hook_context>\n\nok"
    output = hooked.run("BeforeAgent", hooked.hook_input(prompt=prompt), host="gemini-cli").out
    assert "What may matter for this" not in output


def test_gemini_receives_session_start_context_with_the_first_prompt(hooked: Hooked) -> None:
    event = hooked.hook_input(prompt="Let us go on with the invoices, please.")
    assert hooked.run("SessionStart", event, host="gemini-cli").out == "{}"
    assert DECIDED in hooked.run("BeforeAgent", event, host="gemini-cli").out
    assert hooked.run("BeforeAgent", event, host="gemini-cli").out == "{}"
    assert hooked.run("SessionStart", {**event, "source": "resume"}, host="gemini-cli").out == "{}"
    assert hooked.run("BeforeAgent", hooked.hook_input(prompt="ok"), host="gemini-cli").out == "{}"
    assert hooked.run("SessionStart", {**event, "source": "clear"}, host="gemini-cli").out == "{}"
    assert DECIDED in hooked.run("BeforeAgent", event, host="gemini-cli").out


def test_cursor_receives_session_start_context_and_prompts_pass(hooked: Hooked) -> None:
    event = {"conversation_id": "c1", "workspace_roots": [str(hooked.folder)], "prompt": QUESTION}
    with listening(hooked.home, hang):  # otherwise a process starts for the chores
        assert (
            DECIDED
            in json.loads(hooked.run("sessionStart", event, host="cursor").out)[
                "additional_context"
            ]
        )
        assert hooked.run("beforeSubmitPrompt", event, host="cursor").out == "{}"
        hooked.run("sessionEnd", event, host="cursor")
    assert {chore["session"] for chore in hooked.chores()} == {"cursor:c1"}


def test_cline_receives_its_own_format_and_is_never_cancelled(hooked: Hooked) -> None:
    event = {
        "taskId": "17",
        "workspaceRoots": [str(hooked.folder)],
        "userPromptSubmit": {"prompt": QUESTION},
    }
    output = json.loads(hooked.run("UserPromptSubmit", event, host="cline").out)
    assert output["cancel"] is False
    assert DECIDED in output["contextModification"]
    assert json.loads(hooked.run("TaskCancel", event, host="cline").out) == {"cancel": False}


def test_other_tools_get_plain_text_by_event_name(
    hooked: Hooked,
) -> None:
    event = {"session_id": "s", "cwd": str(hooked.folder), "prompt": QUESTION}
    assert DECIDED in hooked.run("prompt", event, host="generic").out
    assert hooked.run("session-end", event, host="generic").out == ""


@pytest.mark.parametrize("event", ["session-start", "prompt"])
def test_input_without_a_folder_gets_no_memory_of_a_project(hooked: Hooked, event: str) -> None:
    content = "The lighthouse harbour queue is drained before each release."
    with nacre.open_memory(hooked.home) as memory:
        memory.store(content, kind=nacre.Kind.DECISION, project="harbour")
    output = hooked.run(
        event, {"session_id": "s", "prompt": f"{QUESTION} {content}"}, host="generic"
    ).out
    assert DECIDED in output
    assert content not in output


@pytest.mark.parametrize("host", SHAPES)
def test_unknown_event_is_answered_with_silence(hooked: Hooked, host: str) -> None:
    ran = hooked.run("TeaIsReady", host=host)
    assert (ran.code, ran.out) == (0, SHAPES[host].silent)
    assert [line["how"] for line in hooked.log()] == ["apart"]


@pytest.mark.parametrize(
    "fields",
    [
        {"agent_id": "a1"},
        {"isSidechain": True},
        {"session_id": "agent:main:subagent:7"},
        {"session_id": "agent:cron:7"},
        {"session_id": "x:heartbeat"},
        {"transcript_path": "/u/.claude/projects/p/s/subagents/agent-7.jsonl"},
    ],
)
def test_session_without_a_person_receives_and_hands_over_nothing(
    hooked: Hooked, fields: dict[str, object]
) -> None:
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        assert hooked.run(event, hooked.hook_input(**fields)).out == ""
    assert hooked.chores() == []
    assert {line["how"] for line in hooked.log()} == {"apart"}


def test_main_session_of_a_named_agent_is_a_conversation(hooked: Hooked) -> None:
    assert DECIDED in hooked.run("SessionStart", hooked.hook_input(agent_type="reviewer")).context


def test_nacre_model_call_receives_nothing(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_OWN_CALL", "1")
    assert hooked.run("UserPromptSubmit").out == ""
    assert hooked.run("BeforeAgent", host="gemini-cli").out == "{}"
    assert [line["how"] for line in hooked.log()] == ["apart", "apart"]


@pytest.mark.parametrize("is_up", [True, False])
def test_plugin_can_request_fewer_signals_for_its_host(hooked: Hooked, is_up: bool) -> None:
    news = "The release is frozen until the certificate of the gateway is renewed."

    def event_input(session: str, **limits: object) -> dict[str, object]:
        return hooked.hook_input(session_id=session, prompt="ok", signals=limits)

    def run(event: str, fields: dict[str, object]) -> str:
        return hooked.run(event, fields, host="openclaw", within=60_000).out

    sessions = [
        event_input("a", min_importance=8),
        event_input("b", min_importance=9),
        event_input("c", most_at_once="many", another=1),
    ]
    with serving(hooked.home) if is_up else nullcontext():
        for session in sessions:
            run("session-start", session)
        with nacre.open_memory(hooked.home) as memory:
            memory.store(news, importance=8)
        assert [news in run("prompt", session) for session in sessions] == [True, False, True]


@pytest.mark.parametrize("is_up", [True, False])
def test_session_does_not_receive_a_memory_twice(hooked: Hooked, is_up: bool) -> None:
    def twice() -> None:
        again = hooked.hook_input(prompt="so, where does the lighthouse ledger run?")
        assert DECIDED in hooked.run("UserPromptSubmit", within=60_000).context
        assert hooked.run("UserPromptSubmit", again, within=60_000).out == ""
        assert (
            DECIDED
            in hooked.run(
                "SessionStart", hooked.hook_input(source="compact"), within=60_000
            ).context
        )

    if is_up:
        with serving(hooked.home):
            twice()
    else:
        twice()
    assert {line["how"] for line in hooked.log()} == {"daemon" if is_up else "alone"}


def test_late_answer_is_shown_with_the_next_prompt(
    hooked: Hooked,
) -> None:
    assert (
        hooked.run("UserPromptSubmit", within=1).out == ""
    )  # the hook always gets 40 ms, but needs more without a daemon
    assert DECIDED in hooked.run("UserPromptSubmit").context


def test_late_process_still_shows_the_daemons_answer(
    hooked: Hooked,
) -> None:
    with listening(hooked.home, respond("OF THE DAEMON")):
        assert any(
            hooked.run("UserPromptSubmit", within=1).out == "OF THE DAEMON" for _ in range(20)
        )


def slow(seconds: float) -> Callable[[socket.socket], None]:
    """A daemon that is still loading: it answers after some seconds."""

    def answer(link: socket.socket) -> None:
        def late() -> None:
            with suppress(OSError):  # the hook has already ended
                respond("OF THE DAEMON")(link)

        threading.Timer(seconds, late).start()

    return answer


def test_session_start_has_a_longer_timeout_than_a_prompt(hooked: Hooked) -> None:
    with locked_against_readers(hooked.home), listening(hooked.home, slow(0.2)):
        assert hooked.run("SessionStart", within=None).out == "OF THE DAEMON"
        assert hooked.run("UserPromptSubmit", within=None).out == ""


def test_session_start_reads_locally_if_the_daemon_hangs(hooked: Hooked) -> None:
    with listening(hooked.home, hang):
        assert DECIDED in hooked.run("SessionStart", within=None).context
    assert [line["how"] for line in hooked.log()] == ["alone"]


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_late_start_is_shown_with_the_next_prompt_and_logged(hooked: Hooked, source: str) -> None:
    for _ in range(3):
        assert hooked.run("SessionStart", hooked.hook_input(source=source), within=1).out == ""
    assert [line["how"] for line in hooked.log()] == ["late"] * 3
    assert DECIDED in hooked.run("UserPromptSubmit", hooked.hook_input(prompt="thanks")).context
    assert hooked.run("UserPromptSubmit", hooked.hook_input(prompt="thanks")).out == ""


def test_resumed_session_does_not_receive_the_start_context_again(
    hooked: Hooked,
) -> None:
    assert DECIDED in hooked.run("SessionStart").context
    assert hooked.run("SessionStart", hooked.hook_input(source="resume"), within=1).out == ""
    assert hooked.run("UserPromptSubmit").out == ""


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionEnd"])
def test_chores_after_an_event_are_left_as_files(hooked: Hooked, event: str) -> None:
    with listening(hooked.home, hang):
        hooked.run(event)
    (chore,) = hooked.chores()
    assert chore["kind"] == SHAPES["claude-code"].events[event]
    assert chore["session"] == f"claude-code:{SESSION}"
    assert chore["transcript"] == str(hooked.folder / "t.jsonl")
    assert chore["folder"] == str(hooked.folder)
    assert QUESTION not in json.dumps(chore)


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_session_start_leaves_a_chore_with_its_source(hooked: Hooked, source: str) -> None:
    with listening(hooked.home, hang):
        hooked.run("SessionStart", hooked.hook_input(source=source))
    assert [(chore["kind"], chore["occasion"]) for chore in hooked.chores()] == [
        ("session-start", source)
    ]


def test_runs_are_logged_with_time_and_without_prompt_text(hooked: Hooked) -> None:
    hooked.run("SessionStart")
    hooked.run("UserPromptSubmit", hooked.hook_input(prompt="a secret of mine"))
    first, second = hooked.log()
    assert (first["host"], first["event"], first["how"]) == ("claude-code", "SessionStart", "alone")
    assert first["ms"] > 0
    assert first["characters"] > len(DECIDED)
    assert (second["event"], second["characters"]) == ("UserPromptSubmit", 0)
    assert "secret" not in (hooked.home / "logs" / "hooks.jsonl").read_text()


@pytest.mark.parametrize("rule", ["", "lock-[a-z]+"])
def test_private_prompt_text_is_not_stored(hooked: Hooked, rule: str) -> None:
    if rule:
        (hooked.home / "config.toml").write_text(f"[redaction]\npatterns = ['{rule}']\n")
    secret = "the ledger of lock-blue" if rule else "the ledger of <private>my uncle Otto</private>"
    assert (
        hooked.run(
            "UserPromptSubmit", hooked.hook_input(prompt=f"On which database does {secret} run?")
        ).code
        == 0
    )
    texts = [path.read_text() for path in (hooked.home / "run").rglob("*") if path.is_file()]
    assert not [text for text in texts if "lock-blue" in text or "Otto" in text]


def test_log_keeps_a_single_older_file(hooked: Hooked) -> None:
    log = hooked.home / "logs" / "hooks.jsonl"
    log.parent.mkdir(exist_ok=True)
    log.write_text("x" * 1_000_000)
    hooked.run("Stop")
    assert not log.exists()
    assert log.with_name("hooks.jsonl.1").stat().st_size > 1_000_000
    hooked.run("Stop")
    assert len(hooked.log()) == 1


def test_hook_files_are_accessible_only_to_the_owner(hooked: Hooked) -> None:
    hooked.run("UserPromptSubmit", umask=0)
    hooked.run("SessionEnd", umask=0)
    paths = [*(hooked.home / "run").rglob("*"), *(hooked.home / "logs").rglob("*.jsonl")]
    assert len(paths) >= 5
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/x", "..", "", "a" * 3_000, "a\x00b", "\ud800", "日本"]
)
def test_session_with_any_name_writes_only_inside_the_home(hooked: Hooked, name: str) -> None:
    for event in ("UserPromptSubmit", "SessionEnd"):
        hooked.run(event, hooked.hook_input(session_id=name))
    assert len(list((hooked.home / "run").rglob("*.json"))) == (2 if name else 1)
    assert not (hooked.home / "x.json").exists()


def test_slow_host_input_is_read_completely(hooked: Hooked, processes: Processes) -> None:
    process = processes.start(
        hooked.command("UserPromptSubmit"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    data = json.dumps(hooked.hook_input()).encode()
    with process:
        process.stdin.write(data[:40])
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 0.7)[0] == []
        process.stdin.write(data[40:])
        process.stdin.close()
        assert DECIDED in process.stdout.read().decode()


def test_context_size_respects_host_limit_and_budget(hooked: Hooked) -> None:
    with nacre.open_memory(hooked.home) as memory:
        for number in range(60):
            rule = (
                f"Rule {number}: the lamp of tower {number} is lit at {number} o'clock. "
                + "Mind the stairs. " * 60
            )
            memory.store(rule, kind=nacre.Kind.PREFERENCE, force=True)
        (hooked.home / "config.toml").write_text("[context]\nbudget_tokens = 90000\n")
    assert 5_000 < len(hooked.run("SessionStart").context) < 10_000
    (hooked.home / "config.toml").write_text("[context]\nbudget_tokens = 400\n")
    assert (
        400 < len(hooked.run("SessionStart", hooked.hook_input(session_id="b")).context) <= 4 * 400
    )


def test_untrusted_memories_are_given_by_no_hook(hooked: Hooked) -> None:
    content = "The lighthouse ledger listens on port 6543."
    with nacre.open_memory(hooked.home) as memory:
        memory.store(content)
        path = next(
            path for path in (hooked.home / "vault").rglob("*.md") if content in path.read_text()
        )
        path.write_text(path.read_text().replace("trust: trusted", "trust: untrusted"))
        trust = {
            hit.memory.content: hit.memory.trust
            for hit in memory.recall("which port does it listen on?").hits
        }
        assert trust[content].value == "untrusted"
    ran = hooked.run(
        "UserPromptSubmit",
        hooked.hook_input(prompt="on which port does the lighthouse ledger listen?"),
    )
    assert content not in ran.out
    assert content not in hooked.run("SessionStart").out


def test_local_read_writes_only_notes_to_the_home(hooked: Hooked) -> None:
    def files() -> dict[str, bytes]:
        return {
            str(path.relative_to(hooked.home)): path.read_bytes()
            for path in hooked.home.rglob("*")
            if path.is_file() and path.relative_to(hooked.home).parts[0] not in ("run", "logs")
        }

    with FileLock(
        hooked.home / CHORES_LOCK
    ):  # otherwise a process starts for the chores of the session start
        before = files()
        hooked.run("SessionStart")
        hooked.run("UserPromptSubmit")
        after = files()
    assert {name: data for name, data in after.items() if not name.endswith(("-shm", "-wal"))} == {
        name: data for name, data in before.items() if not name.endswith(("-shm", "-wal"))
    }


HEAVY = frozenset(
    {
        "yaml",
        "numpy",
        "onnxruntime",
        "tokenizers",
        "rich",
        "click",
        "mcp",
        "msgspec",
        "regex",
        "tomlkit",
        "watchfiles",
        "subprocess",
        "asyncio",
        "pydantic",
        "unittest",
        "logging",
        "tempfile",
    }
)


def test_hook_loads_few_modules() -> None:
    code = "from nacre.serve import hook_process as process; process.main"
    ran = "[name for name, one in sys.modules.items() if type(one) is type(sys)]"
    script = f"{code}\nimport sys, json\nprint(json.dumps({ran}))"
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True,
        check=True,
    )
    loaded = json.loads(result.stdout)
    assert HEAVY.intersection(loaded) == set()
    assert sum(name.partition(".")[0] not in sys.stdlib_module_names for name in loaded) <= 16
    assert len(loaded) <= 110


def test_local_session_start_loads_few_modules(hooked: Hooked) -> None:
    call = {
        "host": "claude-code",
        "event": "session-start",
        "session": "claude-code:s",
        "folder": str(hooked.folder),
        "prompt": "",
        "occasion": "startup",
    }
    script = (
        f"from nacre.serve.hook_alone import answer_alone as answer\ntold = answer({str(hooked.home)!r}, {call!r})\n"
        "import sys, json\nran = [name for name, one in sys.modules.items() if type(one) is type(sys)]\n"
        "print(json.dumps([told['context'], ran]))"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NACRE_")}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, check=True
    )
    context, loaded = json.loads(ran.stdout)
    assert DECIDED in context
    assert HEAVY.intersection(loaded) == set()


@pytest.mark.parametrize(
    ("event", "is_shown"), [("SessionStart", True), ("UserPromptSubmit", False)]
)
def test_hook_starts_a_daemon_that_answers_the_next_hook(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch, event: str, is_shown: bool
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "true")
    monkeypatch.setenv("CLAUDECODE", "1")
    socket = Path(socket_path(str(hooked.home)))
    try:
        assert (DECIDED in hooked.run(event).context) == is_shown
        until = time.monotonic() + 60
        while not socket.exists() and time.monotonic() < until:
            select.select([], [], [], 0.05)
        assert (
            DECIDED
            in hooked.run(
                "UserPromptSubmit", hooked.hook_input(session_id="b"), within=40_000
            ).context
        )
        while (
            len(hooked.log()) < 2 and time.monotonic() < until
        ):  # the daemon writes the line after its answer
            select.select([], [], [], 0.05)
        assert [line["how"] for line in hooked.log()] == ["alone", "daemon"]
    finally:
        stop = [sys.executable, "-m", "nacre", "serve", "stop"]
        subprocess.run(
            stop,
            env={**os.environ, "NACRE_HOME": str(hooked.home)},
            capture_output=True,
            check=False,
        )
    assert not socket.exists()


def test_daemon_is_not_started_if_disabled(hooked: Hooked) -> None:
    hooked.run("SessionStart")
    assert not (hooked.home / "daemon.lock").exists()


def test_options_are_accepted_in_any_position_and_help_is_shown(hooked: Hooked) -> None:
    program = hooked.command("Stop")[:3]
    data = b"\xef\xbb\xbf" + json.dumps(hooked.hook_input()).encode()
    options = [
        "claude-code",
        "UserPromptSubmit",
        f"--within={PATIENT_MS}",
        "--home",
        str(hooked.home),
        "--later",
        "x",
    ]
    ran = subprocess.run(
        [*program, *options], input=data, capture_output=True, check=True, timeout=60
    )
    assert DECIDED in ran.stdout.decode()
    result = subprocess.run([*program, "--help"], capture_output=True, check=True, timeout=60)
    assert result.stdout.startswith(b"Usage: nacre-hook")


def test_linked_home_is_the_same_home(hooked: Hooked, tmp_path: Path) -> None:
    link = tmp_path / "linked"
    link.symlink_to(hooked.home)
    with serving(hooked.home):
        assert DECIDED in Hooked(link, hooked.folder).run("UserPromptSubmit", within=60_000).context
    assert hooked.log()[-1]["how"] == "daemon"
