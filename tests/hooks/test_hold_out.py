"""A share of sessions is told nothing, where the owner wants to see what telling does: the same ones each time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import nacre
from nacre.base.link import CHORES_LOCK
from nacre.base.locks import FileLock
from tests.hooks.conftest import DECIDED, QUESTION, Hooked, Ran, serving

NAMES = [f"5e55-{number:04d}" for number in range(16)]
RULE = "Never amend commits here: the review tool loses their comments."


def hold_out(hooked: Hooked, share: str) -> None:
    """Have a share held out from now on, with a salt by which the same sessions are."""
    if not (hooked.home / "hold-out.json").exists():
        (hooked.home / "hold-out.json").write_text(json.dumps({"salt": "5a17", "shares": []}))
    subprocess.run(
        [sys.executable, "-m", "nacre", "config", "set", "usefulness.hold_out", share], check=True
    )


def start(hooked: Hooked, name: str, source: str = "startup") -> Ran:
    with FileLock(hooked.home / CHORES_LOCK):  # else a process does what is left, at its own time
        return hooked.run("SessionStart", hooked.given(session_id=name, source=source))


def told_at_start(hooked: Hooked) -> list[bool]:
    return [bool(start(hooked, name).out) for name in NAMES]


def forget_states(hooked: Hooked) -> None:
    """As if no hook had run before."""
    for path in (hooked.home / "run" / "sessions").iterdir():
        path.unlink()


def test_disabled_holdout_gives_context_and_logs_nothing(hooked: Hooked) -> None:
    assert all(told_at_start(hooked)[:4])
    assert not (hooked.home / "hold-out.json").exists()
    assert {line["how"] for line in hooked.log()} == {"alone"}


def test_holdout_is_stable_across_daemon_and_cli(
    hooked: Hooked,
) -> None:
    hold_out(hooked, "0.5")
    alone = told_at_start(hooked)
    assert 4 <= sum(alone) <= 12
    assert [line["how"] for line in hooked.log()] == [
        "alone" if one else "held-out" for one in alone
    ]
    forget_states(hooked)
    with serving(hooked.home):
        assert told_at_start(hooked) == alone
        forget_states(hooked)
        with nacre.open_memory(hooked.home) as memory:
            blocks = [
                memory.context(session=f"claude-code:{name}", folder=hooked.folder)
                for name in NAMES
            ]
    assert [bool(block.text) for block in blocks] == alone


def test_smaller_share_is_a_subset_of_a_larger_share(hooked: Hooked) -> None:
    hold_out(hooked, "0.5")
    half = told_at_start(hooked)
    forget_states(hooked)
    hold_out(hooked, "0.2")
    fifth = told_at_start(hooked)
    assert sum(fifth) > sum(half)
    assert all(here for before, here in zip(half, fifth, strict=True) if before)


@pytest.fixture
def untold(hooked: Hooked) -> str:
    """The name of a session that is held out, in a home whose daemon would tell it a rule before a tool."""
    with nacre.open_memory(hooked.home) as memory:
        memory.store(RULE, kind=nacre.Kind.PREFERENCE)
    hold_out(hooked, "0.5")
    return next(name for name in NAMES if not start(hooked, name).out)


def test_held_out_session_receives_nothing_at_any_event(
    hooked: Hooked, untold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_CONTEXT_PROPOSALS_AFTER", "1")
    commit = {"tool_name": "Bash", "tool_input": {"command": "git commit --amend --no-edit"}}
    with serving(hooked.home):
        for _ in range(9):  # a reminder would be due
            assert hooked.run("UserPromptSubmit", hooked.given(session_id=untold)).out == ""
        assert hooked.run("PreToolUse", hooked.given(session_id=untold, **commit)).out == ""
        assert hooked.run("Stop", hooked.given(session_id=untold)).out == ""
        for source in ("resume", "compact", "clear"):
            assert start(hooked, untold, source).out == ""
    assert {line["how"] for line in hooked.log()[-13:]} == {"held-out"}


def test_recall_by_a_held_out_agent_is_answered(
    hooked: Hooked, untold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", untold)
    found = subprocess.run(
        [sys.executable, "-m", "nacre", "recall", QUESTION], capture_output=True, check=True
    )
    assert DECIDED.rstrip(".") in found.stdout.decode()


def test_held_out_session_is_visible_to_people(hooked: Hooked, untold: str) -> None:
    line = [sys.executable, "-m", "nacre", "statusline"]
    given = json.dumps({"session_id": untold}).encode()
    assert (
        subprocess.run(line, input=given, capture_output=True, check=True).stdout
        == b"nacre: held out\n"
    )
    asked = [
        sys.executable,
        "-m",
        "nacre",
        "context",
        QUESTION,
        "--session",
        f"claude-code:{untold}",
    ]
    ran = subprocess.run(asked, capture_output=True, check=True, cwd=hooked.folder)
    assert (ran.stdout, b"held out: this session gets no context" in ran.stderr) == (b"", True)
    health = subprocess.run(
        [sys.executable, "-m", "nacre", "admin", "doctor"], capture_output=True, check=False
    ).stdout.decode()
    assert "50% of sessions get no memories" in health


def test_disabling_holdout_takes_effect_immediately(hooked: Hooked, untold: str) -> None:
    hold_out(hooked, "0")
    assert start(hooked, untold, "clear").out
    line = [sys.executable, "-m", "nacre", "statusline"]
    given = json.dumps({"session_id": untold}).encode()
    assert b"told" in subprocess.run(line, input=given, capture_output=True, check=True).stdout


def test_handwritten_holdout_share_applies_from_the_next_session(
    hooked: Hooked,
) -> None:
    (hooked.home / "config.toml").write_text("[usefulness]\nhold_out = 0.5\n")
    assert start(hooked, NAMES[0]).out
    subprocess.run([sys.executable, "-m", "nacre", "chores"], check=True, capture_output=True)
    noted = json.loads((hooked.home / "hold-out.json").read_text())
    assert [share for _, share in noted["shares"]] == [0.5]
    later = [bool(start(hooked, f"later-{name}").out) for name in NAMES]
    assert 0 < sum(later) < len(NAMES)


@pytest.mark.parametrize(
    "damage",
    ["", "{", '{"salt": 7}', '{"salt": "zz", "shares": [[0, 0.5]]}', '{"salt": "", "shares": 1}'],
)
def test_damaged_holdout_file_disables_holdout(hooked: Hooked, damage: str) -> None:
    hold_out(hooked, "0.5")
    (hooked.home / "hold-out.json").write_text(damage)
    prompts = [hooked.run("UserPromptSubmit", hooked.given(session_id=name)) for name in NAMES[:6]]
    assert all(DECIDED in ran.context for ran in prompts)


@pytest.mark.parametrize("share", ["0.6", "-0.1", "nan", "half"])
def test_holdout_share_above_half_is_refused(hooked: Hooked, share: str) -> None:
    command = [sys.executable, "-m", "nacre", "config", "set", "usefulness.hold_out", "--", share]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    assert not Path(hooked.home / "hold-out.json").exists()
