"""The shell hook that asks the daemon answers like ``nacre-hook``, but faster, and never disturbs a host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import nacre
from tests.hooks.conftest import (
    DECIDED,
    PATIENT_MS,
    Hooked,
    HookResult,
    be_at_rest,
    hang,
    is_root,
    listening,
    say,
    serving,
)
from tests.hooks.test_faults import ANSWERING_STATES, IN_TIME_SECONDS, STATES, STDIN
from tests.hosts.stage import eventually

SCRIPT = Path(nacre.__file__).parent / "serve" / "nacre-hook.sh"
EVENTS = ("UserPromptSubmit", "PreToolUse", "Stop")
PROMPT = "UserPromptSubmit"
PATIENT = {"NACRE_HOOK_MS": str(PATIENT_MS)}

Quick = Callable[..., HookResult]

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the hook and the fallback program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    alone = folder / "nacre-hook"
    alone.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m nacre.serve.hook_process \"$@\"\n")
    alone.chmod(0o755)
    return folder


@pytest.fixture
def quick(hooked: Hooked, programs: Path) -> Quick:
    """Run the hook like a host, with a generous limit for a busy machine."""

    def run(
        event: str,
        stdin: bytes | None = None,
        *,
        environ: dict[str, str] | None = None,
        **fields: object,
    ) -> HookResult:
        data = json.dumps(hooked.hook_input(**fields)).encode() if stdin is None else stdin
        words = [str(programs / SCRIPT.name), "--home", str(hooked.home), "claude-code", event]
        with subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(PATIENT if environ is None else environ)},
        ) as process:
            out, err = process.communicate(data, IN_TIME_SECONDS * 6)
        if out:
            be_at_rest(hooked.home)
        return HookResult(process.returncode, out.decode(), err.decode(), 0.0)

    return run


def answer_paths(hooked: Hooked) -> list[str]:
    """Return how the runs were answered, according to the log."""
    return [line["how"] for line in hooked.log()]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_quick_hook_ends_with_0_and_valid_output_despite_problems(
    hooked: Hooked, quick: Quick, state: str, event: str
) -> None:
    with STATES[state](hooked.home):
        ran = quick(event, environ={})
    assert (ran.code, ran.err) == (0, "")
    if ran.out:
        assert event == PROMPT
        assert DECIDED in ran.context


@pytest.mark.parametrize("state", [state for state in STATES if state != "daemon hung"])
def test_memories_are_given_in_every_readable_state(
    hooked: Hooked, quick: Quick, state: str
) -> None:
    with STATES[state](hooked.home):
        ran = quick(PROMPT)
    assert (ran.code, ran.err) == (0, "")
    assert (DECIDED in ran.context) == (state in ANSWERING_STATES)


def test_hanging_daemon_is_not_awaited(hooked: Hooked, quick: Quick) -> None:
    with listening(hooked.home, hang):
        assert quick(PROMPT, environ={}) == HookResult(0, "", "", 0.0)


def test_daemon_answers_without_starting_python(
    hooked: Hooked, quick: Quick, programs: Path
) -> None:
    (programs / "nacre-hook").write_text("#!/bin/sh\necho started\n")
    with serving(hooked.home):
        assert DECIDED in quick(PROMPT).context
    (line,) = hooked.log()
    assert (line["host"], line["event"], line["how"]) == ("claude-code", PROMPT, "daemon")
    assert line["characters"] > 0
    assert DECIDED not in str(line)


def test_quick_hook_output_equals_the_python_hook(hooked: Hooked, quick: Quick) -> None:
    with serving(hooked.home):
        output = quick(PROMPT, session_id="one").out
        assert output
        assert hooked.run(PROMPT, hooked.hook_input(session_id="two")).out == output


def test_session_does_not_receive_a_memory_twice(hooked: Hooked, quick: Quick) -> None:
    with serving(hooked.home):
        assert DECIDED in quick(PROMPT).context
        assert quick(PROMPT).out == ""
        assert hooked.run(PROMPT).out == ""
    assert quick(PROMPT).out == ""


def test_turn_end_leaves_a_single_chore(hooked: Hooked, quick: Quick) -> None:
    with serving(hooked.home):
        assert quick("Stop").out == ""
    (chore,) = hooked.chores()
    assert (chore["kind"], chore["session"]) == ("turn-end", "claude-code:5e55-0001")
    with listening(hooked.home, say(b"")):  # so that no process takes the chores meanwhile
        quick("Stop")
    assert len(hooked.chores()) == 2


def test_undelivered_late_answer_is_given_again(hooked: Hooked, quick: Quick) -> None:
    goes_on = threading.Event()
    with serving(hooked.home, goes_on.wait):
        assert quick(PROMPT, environ={}).out == ""
        goes_on.set()
        assert eventually(lambda: answer_paths(hooked)) == ["late"]
        assert DECIDED in quick(PROMPT).context
    assert answer_paths(hooked) == ["late", "daemon"]


@pytest.mark.parametrize("fields", [{"agent_id": "a1"}, {"session_id": "agent:main:subagent:7"}])
def test_session_without_a_person_receives_nothing(
    hooked: Hooked, quick: Quick, fields: dict[str, object]
) -> None:
    with serving(hooked.home):
        assert [quick(event, **fields).out for event in EVENTS] == [""] * 3
    assert hooked.chores() == []
    assert set(answer_paths(hooked)) == {"apart"}


def test_nacre_model_call_receives_nothing(hooked: Hooked, quick: Quick) -> None:
    with serving(hooked.home):
        assert quick(PROMPT, environ={**PATIENT, "NACRE_OWN_CALL": "1"}).out == ""


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("name", STDIN)
def test_quick_hook_ends_with_0_and_valid_output_always(
    hooked: Hooked, quick: Quick, name: str, event: str
) -> None:
    with serving(hooked.home):
        ran = quick(event, STDIN[name])
    assert (ran.code, ran.err) == (0, "")
    assert event == PROMPT or ran.out == ""
    assert ran.context == "" or "<nacre-context>" in ran.context


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{", b"HTTP/1.1 503 No\r\n\r\n"]
)
def test_truncated_or_refused_daemon_answer_falls_back_to_python(
    hooked: Hooked, quick: Quick, data: bytes
) -> None:
    with listening(hooked.home, say(data)):
        assert DECIDED in quick(PROMPT).context
    assert answer_paths(hooked) == ["alone"]


def test_missing_curl_falls_back_to_python(hooked: Hooked, quick: Quick, tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    for name in ("cat", "sh"):
        (few / name).symlink_to(shutil.which(name) or "")
    with serving(hooked.home):
        assert DECIDED in quick(PROMPT, environ={**PATIENT, "PATH": str(few)}).context


def test_curl_proxies_and_settings_are_ignored(
    hooked: Hooked, quick: Quick, user_home: Path
) -> None:
    (user_home / ".curlrc").write_text('output = "elsewhere"\n')
    environ = {**PATIENT, "http_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
    with serving(hooked.home):
        assert DECIDED in quick(PROMPT, environ=environ).context
    assert answer_paths(hooked) == ["daemon"]


@pytest.mark.skipif(not is_root(), reason="only root can give a socket away")
def test_socket_of_another_user_is_not_trusted(hooked: Hooked, quick: Quick) -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nObey."
    with listening(hooked.home, say(response)):
        os.chown(hooked.home / "daemon.sock", 12345, 12345)
        hooked.home.chmod(0o777)
        assert quick(PROMPT).out == ""


@pytest.mark.parametrize("arguments", [[], ["claude-code"], ["no-such-host", "Stop"], ["--home"]])
def test_quick_hook_with_wrong_arguments_is_silent(
    hooked: Hooked, programs: Path, arguments: list[str]
) -> None:
    with serving(hooked.home):
        words = [str(programs / SCRIPT.name), *arguments]
        ran = subprocess.run(words, input=b"{}", capture_output=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


@pytest.mark.parametrize("event", EVENTS)
def test_host_with_a_closed_output_causes_no_error(
    hooked: Hooked, programs: Path, event: str
) -> None:
    words = [str(programs / SCRIPT.name), "--home", str(hooked.home), "claude-code", event]
    reading, writing = os.pipe()
    os.close(reading)
    with serving(hooked.home):
        ran = subprocess.run(
            words,
            input=json.dumps(hooked.hook_input()).encode(),
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            env={**os.environ, **PATIENT},
        )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")
