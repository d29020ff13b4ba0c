"""``nacre writer``: an agent's command writes within its limits after the owner agreed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre, Outcome, said, write_transcript
from tests.daemon.conftest import serving  # noqa: F401 - a fixture
from tests.daemon.test_following import follow  # noqa: F401 - a fixture
from tests.processes import wait

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="the stand-in for the command is a script"
)

WORDS = "For the invoices let us take the numbers from the database, two servers gave out the same number once."
RULE = "Invoices get their numbers from the database, because two servers gave out the same number once."

CLAUDE = f"""#!{sys.executable}
import json, sys
asked, about = sys.stdin.read(), " ".join(sys.argv)
told = {{
    "kind": "decision", "subject": "Numbers of invoices", "content": {RULE!r}, "quote": {WORDS[:60]!r},
    "always": False,
}}
compared = "verdicts" in about + asked
verdict = {{"number": 1, "support": {WORDS!r}, "finding": "holds", "wrong": []}}
answer = {{"verdicts": [verdict]}} if compared else {{"memories": [told], "over": []}}
print(json.dumps({{
    "type": "result", "subtype": "success", "is_error": False, "result": "", "structured_output": answer,
    "modelUsage": {{"claude-haiku-4-5": {{}}}}, "usage": {{"input_tokens": 900, "output_tokens": 100}},
}}))
"""


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake Claude Code command for a writer, without the other programs of this machine."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


@pytest.fixture
def session(user_home: Path) -> Callable[[str, timedelta], Path]:
    """Write a session of the owner that ended some time ago."""

    def write(name: str, ago: timedelta) -> Path:
        ended = (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        records = [
            {**said(role, text, at, session=name), "timestamp": ended}
            for at, (role, text) in enumerate((("user", WORDS), ("assistant", "Done.")))
        ]
        return write_transcript(
            user_home / ".claude" / "projects" / "-code-acme" / f"{name}.jsonl", records
        )

    return write


def let_write(nacre: Nacre, tokens: int) -> None:
    """Let Claude Code write from all sessions of this year, with a daily token limit."""
    nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "50000")
    nacre("config", "set", "writer.tokens_per_day", str(tokens))
    nacre("config", "set", "writer.since", "2026-01-01T00:00:00Z")


def contents(nacre: Nacre) -> Sequence[str]:
    return [memory["content"] for memory in nacre("list", "--json").json["memories"]]


def test_missing_writer_suggests_the_set_command(nacre: Nacre) -> None:
    assert "No writer" in nacre("writer").out
    assert "nacre writer set" in nacre("writer").out
    assert nacre("writer", "--json").json["state"] == "off"


def test_writer_for_requests_only_shows_the_command_to_run(nacre: Nacre) -> None:
    nacre("config", "set", "models.extraction", "ollama:qwen3:8b")
    output = nacre("writer").out
    assert "No writer" in output
    assert "nacre writer set ollama:qwen3:8b" in output


@pytest.mark.parametrize("change", ["pause", "resume"])
def test_pause_and_resume_without_a_writer_write_nothing(nacre: Nacre, change: str) -> None:
    assert "No writer" in nacre("writer", change).out
    assert not Path(nacre("config", "show", "--json").json["config"]).exists()


def test_start_time_is_shown_in_local_time(
    nacre: Nacre, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_write(nacre, 50000)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        output = nacre("writer").out
    time.tzset()
    assert "sessions that ended after 2026-01-01 09:00" in output


def test_disconnecting_agents_reports_the_remaining_writer(nacre: Nacre, claude: Path) -> None:
    assert "nacre writer set none" not in nacre("init", "--uninstall", "--yes").err
    let_write(nacre, 50000)
    assert "a writer still reads your sessions" in nacre("init", "--uninstall", "--yes").err
    refused = nacre("writer", "set", "none", "--tokens-per-day", "5", code=2)
    assert "none cannot be combined with a limit" in refused.err
    nacre("writer", "set", "none")
    assert "nacre writer set none" not in nacre("init", "--uninstall", "--yes").err


def test_missing_sign_in_is_reported_with_its_remedy(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    let_write(nacre, 50000)
    refused = {"is_error": True, "api_error_status": 401, "result": "Please run /login"}
    claude.write_text(
        f"#!/bin/sh\ncat >/dev/null\necho '{json.dumps(refused)}'\n", encoding="utf-8"
    )
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    assert "sign in with Claude Code itself" in " ".join(nacre("writer").out.split())
    assert "sign in with Claude Code itself" in " ".join(
        nacre("admin", "doctor", code=None).out.split()
    )


def test_writer_with_unreadable_output_pauses_for_a_day(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    let_write(nacre, 50000)
    claude.write_text("#!/bin/sh\ncat >/dev/null\necho 'It is a fine day.'\n", encoding="utf-8")
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    answer = nacre("writer", "--json").json
    assert (answer["state"], answer["waiting"]) == ("failing", 1)
    session("0123new0-0000", timedelta(minutes=32))
    nacre("ingest")
    after = nacre("writer", "--json").json
    assert (after["calls_today"], after["waiting"]) == (answer["calls_today"], 2)


def test_subscription_writer_needs_a_token_limit(nacre: Nacre, claude: Path) -> None:
    refused = nacre("writer", "set", "claude-cli:haiku", code=2)
    assert "--tokens-per-day" in refused.err
    assert nacre("writer", "--json").json["writer"] == "none"


def least_bound(nacre: Nacre) -> int:
    """Return the smallest accepted limit."""
    refused = nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "1000", code=2)
    (least,) = re.findall("at least ([0-9,]+)", refused.err)
    return int(least.replace(",", ""))


def test_limit_below_the_smallest_session_is_refused_with_minimum(
    nacre: Nacre, claude: Path
) -> None:
    least = least_bound(nacre)
    assert nacre("writer", "--json").json["writer"] == "none"
    nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", str(least))
    few = nacre("config", "set", "writer.tokens_per_day", str(least - 100)).err
    assert "are too few for one small session with claude-cli:haiku" in few


def test_smallest_limit_still_covers_a_small_session(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    text = 'asked, about = sys.stdin.read(), " ".join(sys.argv)'
    dear = CLAUDE.replace(text, f"{text}\nread = (len(asked) + len(about)) // 4 + 500")
    claude.write_text(dear.replace('"input_tokens": 900', '"input_tokens": read'), encoding="utf-8")
    nacre("store", "Invoices get their numbers from the first server of the two.", "--kind", "fact")
    let_write(nacre, least_bound(nacre))
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    assert nacre("writer", "--json").json["calls_today"] == 2
    assert RULE in contents(nacre)
    assert nacre("writer", "--json").json["state"] == "spent"


@pytest.mark.parametrize("tokens", ["0", "1000"])
def test_writer_with_too_small_a_limit_is_reported(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path], tokens: str
) -> None:
    nacre("config", "set", "models.extraction", "claude-cli:haiku")
    nacre("config", "set", "models.background", "true")
    nacre("config", "set", "writer.tokens_per_day", tokens)
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    output = nacre("writer").out
    assert "daily limit too low to write" in output
    assert "nacre writer set claude-cli:haiku --tokens-per-day 100000" in output
    assert "goes on at" not in output
    assert checked(nacre, "admin doctor")["state"] == "warning"
    assert (
        nacre("status", "--json").json["writer"]["state"]
        == nacre("writer", "--json").json["state"]
        == "short"
    )


def test_consent_starts_the_writer_with_sessions_ending_later(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    session("0123old0-0000", timedelta(hours=5))
    nacre("ingest")
    outcome = nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "20000")
    assert "claude-cli:haiku" in outcome.out
    nacre("ingest")
    assert contents(nacre) == []
    session("0123new0-0000", timedelta(minutes=1))
    nacre("ingest")
    assert contents(nacre) == []
    assert nacre("writer", "--json").json["waiting"] == 1
    session("0123new0-0000", timedelta(minutes=29, seconds=59)).touch()
    nacre("config", "set", "writer.since", "2026-01-01T00:00:00Z")
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    assert contents(nacre) == [RULE]
    answer = nacre("writer", "--json").json
    assert (answer["calls_today"], answer["tokens_today"]) == (2, 2000)


def test_withheld_local_sessions_are_reported_with_their_models(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    let_write(nacre, 50_000)
    path = session("0123own0-0000", timedelta(hours=2))
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    records[1]["message"]["model"] = "local:homelab/acme-tuned"
    write_transcript(path, records)
    nacre("ingest")
    assert nacre("writer", "--json").json["kept_here"] == ["homelab/acme-tuned"]
    output = " ".join(nacre("writer").out.split())
    assert (
        "1 session of the last 7 days, with models that may run on this machine: homelab/acme-tuned"
        in output
    )
    session("0123two0-0000", timedelta(hours=1))
    nacre("ingest")
    assert len(nacre("writer", "--json").json["kept_here"]) == 1
    nacre("config", "set", "writer.exclude_tools", "claude-code")
    assert nacre("writer", "--json").json["kept_here"] == []


def test_command_overhead_is_counted_before_asking(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    codex = claude.with_name("codex")
    codex.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    codex.chmod(0o755)
    session("0123two0-0000", timedelta(minutes=31))
    calls = {}
    for name in ("codex-cli:default", "claude-cli:haiku"):
        nacre("writer", "set", name, "--tokens-per-day", "50000")
        nacre("config", "set", "writer.tokens_per_day", "6000")
        nacre("config", "set", "writer.since", "2026-01-01T00:00:00Z")
        nacre("ingest")
        calls[name] = nacre("writer", "--json").json["calls_today"]
    assert calls == {"codex-cli:default": 0, "claude-cli:haiku": 2}


def test_writer_respects_its_limit_and_the_session_waits(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    let_write(nacre, 1000)
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    assert contents(nacre) == []
    waits = nacre("writer", "--json").json
    assert (waits["calls_today"], waits["waiting"]) == (0, 1)
    assert "0 of 1,000 tokens today; sessions waiting: 1" in " ".join(
        nacre("admin", "doctor", code=None).out.split()
    )
    nacre("config", "set", "writer.tokens_per_day", "50000")
    nacre("ingest")
    assert contents(nacre) == [RULE]


def test_older_sessions_are_read_after_consent_to_usage(
    nacre: Nacre,
    dialog_process: Callable[..., Outcome],
    claude: Path,
    session: Callable[[str, timedelta], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session("0123old0-0000", timedelta(days=40))
    nacre("ingest")
    assert "nacre writer set" in nacre("ingest", "--older", "--yes", code=None).err
    nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "50000")
    assert nacre("ingest", "--older", "--estimate", "--json").json["waiting"] == 1
    assert nacre("ingest", "--estimate", "--json").json["waiting"] == 0
    assert "not interactive: pass --yes" in nacre("ingest", "--older", code=2).err
    monkeypatch.setenv("CLAUDECODE", "1")
    assert nacre("ingest", "--older", "--yes", code=None).code != 0
    monkeypatch.delenv("CLAUDECODE")
    text = "Let the writer read them, within its daily limit?"
    assert (
        "1 session with content"
        in dialog_process("ingest", "--older", answers=[(text, "n")], code=None).out
    )
    nacre("writer", "pause")
    assert "the writer is paused" in nacre("ingest", "--older", "--yes", code=2).err
    refused = dialog_process("ingest", "--older", answers=[], code=None)
    assert "the writer is paused" in refused.out
    assert text not in refused.out
    nacre("writer", "resume")
    assert contents(nacre) == []
    assert (
        "leave out --no-extract" in nacre("ingest", "--older", "--no-extract", "--yes", code=2).err
    )
    assert "--yes is only for --older" in nacre("ingest", "--yes", code=2).err
    nacre("ingest", "--older", "--yes")
    assert contents(nacre) == [RULE]
    assert nacre("ingest", "--older", "--estimate", "--json").json["waiting"] == 0


def test_waiting_sessions_pass_to_the_next_writer(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    let_write(nacre, 1000)
    session("0123two0-0000", timedelta(minutes=45))
    nacre("ingest")
    assert (
        nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "50000", "--json").json[
            "waiting"
        ]
        == 1
    )
    nacre("ingest")
    assert contents(nacre) == [RULE]
    nacre("writer", "set", "none")
    nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "50000")
    session("0123more-0000", timedelta(minutes=45))
    before = nacre("writer", "--json").json["calls_today"]
    nacre("ingest")
    assert nacre("writer", "--json").json["calls_today"] == before


BY_HAND = """
[models]
extraction = "claude-cli:haiku"
background = true
[writer]
tokens_per_day = 1000
"""


def test_configured_writer_starts_from_its_first_use(
    nacre: Nacre, claude: Path, user_home: Path, session: Callable[[str, timedelta], Path]
) -> None:
    session("0123two0-0000", timedelta(days=9))
    nacre("config", "set", "embedding.model", "none")
    config = user_home / ".nacre" / "config.toml"
    config.write_text(config.read_text("utf-8") + BY_HAND, encoding="utf-8")
    nacre("ingest")
    answer = nacre("writer", "--json").json
    assert (answer["waiting"], answer["calls_today"]) == (0, 0)
    assert answer["since"] > "2026"
    session("0123more-0000", timedelta(seconds=1))
    nacre("ingest")
    assert nacre("writer", "--json").json["since"] == answer["since"]


def test_waiting_sessions_keep_waiting_without_a_start_date(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    let_write(nacre, 1000)
    session("0123two0-0000", timedelta(minutes=45))
    nacre("ingest")
    nacre("config", "unset", "writer.since")
    assert (
        nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "50000", "--json").json[
            "waiting"
        ]
        == 1
    )


def test_subscription_cost_does_not_block_other_models(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    dear = CLAUDE.replace('"usage":', '"total_cost_usd": 5.0, "usage":')
    claude.write_text(dear, encoding="utf-8")
    let_write(nacre, 50000)
    session("0123two0-0000", timedelta(minutes=45))
    nacre("ingest")
    assert contents(nacre) == [RULE]
    answer = nacre("writer", "cost", "--json").json
    (task,) = answer["tasks"]
    assert (task["calls"], task["tokens"], task["cost"], task["unpriced"]) == (2, 2000, 0, 0)
    assert answer["budget"]["spent"] == nacre("status", "--json").json["cost"] == 0
    models = " ".join(nacre("writer", "models").out.split())
    assert "price none: paid by subscription, tokens are counted" in models
    assert "$" not in models


def test_subscription_model_test_shows_no_dollars(nacre: Nacre, claude: Path) -> None:
    answers = claude.read_text(encoding="utf-8").replace(
        "print(json", 'answer = {"metal": "Mercury"}\nprint(json'
    )
    claude.write_text(answers, encoding="utf-8")
    output = nacre("writer", "models", "--test", "claude-cli:haiku").out
    assert "by subscription" in output
    assert "$" not in output
    assert nacre("writer", "models", "--test", "claude-cli:haiku", "--json").json[
        "is_by_subscription"
    ]


def test_estimate_counts_remaining_subscription_tokens(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    let_write(nacre, 1000)
    nacre("config", "set", "models.daily_budget_usd", "0")
    session("0123two0-0000", timedelta(minutes=45))
    few = nacre("ingest", "--estimate")
    assert "Left today: 1,000 tokens of the writer's daily limit" in few.out
    assert "on the next days" in few.out
    nacre("config", "set", "writer.tokens_per_day", "50000")
    assert nacre("ingest", "--estimate", "--json").json["now"] == 1
    assert "which is enough" in nacre("ingest", "--estimate").out
    nacre("config", "set", "writer.exclude_tools", '["claude-code"]')
    assert nacre("ingest", "--estimate", "--json").json["waiting"] == 0


def test_estimate_counts_unshared_sessions_and_explains_others(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    for number in range(5):
        session(f"0123old{number}-0000", timedelta(days=number + 1))
    nacre("ingest")
    nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "100000")
    answer = nacre("ingest", "--older", "--estimate", "--json").json
    assert (answer["waiting"], answer["now"]) == (5, 5)
    assert (answer["calls"] >= 5 * 2, answer["cost"]) == (True, 0)
    assert answer["tokens"] > 5 * 2_500
    nacre("config", "set", "writer.tokens_per_day", "5000")
    output = " ".join(nacre("ingest", "--older", "--estimate").out.split())
    assert "by subscription" in output
    assert "and the others with the next nacre ingest --older" in output
    assert "Left today: 5,000 tokens of the writer's daily limit" in output


def test_unusable_writer_is_reported_until_an_answer_works(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    claude.write_text(
        CLAUDE.replace('"structured_output": answer', '"structured_output": {"poem": "None."}')
    )
    let_write(nacre, 50000)
    session("0123two0-0000", timedelta(minutes=45))
    nacre("ingest")
    answer = nacre("writer", "--json").json
    assert (answer["state"], answer["waiting"]) == ("failing", 1)
    assert "claude-cli:haiku" in answer["problem"]
    (record,) = (
        item
        for item in nacre("admin", "doctor", "--json", code=None).json["checks"]
        if item["name"] == "writer"
    )
    assert record["state"] == "warning"
    claude.write_text(CLAUDE)
    nacre("writer", "models", "--test", "claude-cli:haiku", code=None)
    assert nacre("writer", "--json").json["state"] == "ready"


def test_rebuild_keeps_waiting_sessions_and_doubts(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    let_write(nacre, 50000)
    nacre("writer", "pause")
    session("0123two0-0000", timedelta(minutes=45))
    nacre("ingest")
    assert nacre("writer", "--json").json["waiting"] == 1
    nacre("admin", "db", "rebuild", "--yes")
    assert nacre("writer", "--json").json["waiting"] == 1
    nacre("writer", "resume")
    nacre("ingest")
    assert contents(nacre) == [RULE]
    nacre("admin", "db", "rebuild", "--yes")
    assert nacre("writer", "--json").json["waiting"] == 0
    session("0123new0-0000", timedelta(minutes=44))
    nacre("admin", "db", "rebuild", "--yes")
    nacre("ingest")
    assert (
        nacre("writer", "--json").json["calls_today"] > 2
    )  # a rebuild also learns from newly read sessions


def is_running(number: int) -> bool:
    """Return True if a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


HANGING = f"""#!{sys.executable}
import os, pathlib, time
pathlib.Path(__file__).with_name("runs").write_text(str(os.getpid()))
time.sleep(60)
"""


AS_BY_HAND = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may have it ignored
os.execv(sys.executable, [sys.executable, "-m", "nacre", "ingest"])
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_running_command_ends_with_its_caller(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path], name: str
) -> None:
    claude.write_text(HANGING, encoding="utf-8")
    let_write(nacre, 50000)
    session("0123two0-0000", timedelta(minutes=45))
    runs, deadline = claude.with_name("runs"), time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", AS_BY_HAND], stdout=subprocess.DEVNULL) as asking:
        while not (runs.exists() and runs.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        asking.send_signal(getattr(signal, name))
        assert asking.wait(30) == 128 + getattr(signal, name)
    assert not is_running(int(runs.read_text()))


MEANWHILE = f"""#!{sys.executable}
import os, pathlib, subprocess, sys
calls = pathlib.Path(__file__).with_name("calls")
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
if calls.read_text() == "x":
    environ = {{name: value for name, value in os.environ.items() if name != "NACRE_OWN_CALL"}}
    told = subprocess.run([sys.executable, "-m", "nacre", "ingest"], env=environ, check=True, capture_output=True)
    pathlib.Path(__file__).with_name("meanwhile").write_bytes(told.stdout)
"""


def test_concurrent_processes_do_not_read_the_same_session(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    claude.write_text(MEANWHILE + CLAUDE.partition("\n")[2], encoding="utf-8")
    let_write(nacre, 20000)
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    assert contents(nacre) == [RULE]
    assert claude.with_name("calls").read_text() == "xx"
    assert "1 session being read in another process" in claude.with_name("meanwhile").read_text()


def test_installed_agent_is_proposed_in_terminals(
    dialog: Callable[..., Outcome], claude: Path, nacre: Nacre
) -> None:
    outcome = dialog("writer", "set", answers=[("write memories?", "y")])
    assert "Claude Code, haiku can read each session once" in outcome.out
    assert "Sessions with a model that may run on your own machine" in " ".join(outcome.out.split())
    assert nacre("writer", "--json").json["state"] == "ready"


def test_quickstart_proposes_a_writer_and_reports_a_set_writer(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    session("0123new0-0000", timedelta(hours=5))
    output = " ".join(nacre("quickstart").out.split())
    assert (
        "Claude Code, haiku can write other memories after each session: nacre writer set" in output
    )
    result = nacre("quickstart", "--json").json
    assert (result["status"]["writer"]["writer"], result["found"]["name"]) == (
        "none",
        "claude-cli:haiku",
    )
    nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "20000")
    assert "claude-cli:haiku writes other memories after each session" in " ".join(
        nacre("quickstart").out.split()
    )


@pytest.mark.parametrize("reply", ["w", "y"])
def test_init_shows_the_writers_limit_and_scope_before_consent(
    dialog_process: Callable[..., Outcome],
    nacre: Nacre,
    claude: Path,
    session: Callable[[str, timedelta], Path],
    reply: str,
) -> None:
    session("0123new0-0000", timedelta(hours=5))
    outcome = dialog_process("init", answers=[("Do this?", reply)], environ={"NO_COLOR": "1"})
    before, _, after = (" ".join(part.split()) for part in outcome.out.partition("Do this?"))
    assert (
        "Claude Code, haiku can read each session once, after it ends, and write memories from it. "
        "It stops at 100,000 tokens a day (the last answer may exceed this slightly)." in before
    )
    assert "You do not seem to be signed in to Claude Code." in before
    assert "all tools and projects that nacre reads, with secrets removed" in before
    assert "y(es), w(ith writer), l(ater: read no sessions now), n(o), d(iff)" in after
    assert "Sessions with a model that may run on your own machine" in before
    assert "1 session: claude-code (1)" in after
    assert ("claude-cli:haiku writes after each session" in after) is (reply == "w")
    answer = nacre("writer", "--json").json
    assert (answer["state"], answer["limit"]) == (
        ("ready", 100_000) if reply == "w" else ("off", None)
    )


def test_signed_in_agent_is_proposed_first(
    dialog: Callable[..., Outcome], claude: Path, user_home: Path, nacre: Nacre
) -> None:
    for name in ("gemini", "opencode"):
        program = claude.with_name(name)
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
    signed_in = user_home / ".gemini" / "oauth_creds.json"
    signed_in.parent.mkdir()
    signed_in.write_text("{}", encoding="utf-8")
    assert "Gemini CLI, flash" in dialog("writer", "set", answers=[("write memories?", "y")]).out
    assert nacre("writer", "--json").json["writer"] == "gemini-cli:flash"


def test_declined_writer_is_not_set(
    dialog: Callable[..., Outcome], claude: Path, nacre: Nacre
) -> None:
    assert "No writer was set" in dialog("writer", "set", answers=[("write memories?", "n")]).out
    assert nacre("writer", "--json").json["writer"] == "none"


def test_agent_cannot_set_a_writer(
    nacre: Nacre, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    refused = nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "20000", code=None)
    assert refused.code != 0
    monkeypatch.delenv("CLAUDECODE")
    assert nacre("writer", "--json").json["writer"] == "none"


@pytest.mark.parametrize("key", ["writer.exclude_tools", "ingest.exclude_tools"])
def test_unknown_tool_in_a_setting_is_refused(nacre: Nacre, key: str) -> None:
    refused = nacre("config", "set", key, '["claude"]', code=None)
    assert refused.code != 0
    assert "there is no tool 'claude'" in refused.err
    assert "claude-code" in refused.err
    assert nacre("config", "show", key, "--json").json["value"] == []


@pytest.mark.parametrize("key", ["writer.exclude_tools", "ingest.exclude_projects"])
def test_single_word_setting_becomes_a_list(nacre: Nacre, user_home: Path, key: str) -> None:
    nacre("config", "set", key, "codex")
    assert nacre("config", "show", key, "--json").json["value"] == ["codex"]
    section, _, name = key.partition(".")
    (user_home / ".nacre" / "config.toml").write_text(
        f'[{section}]\n{name} = "cline"\n', encoding="utf-8"
    )
    assert nacre("config", "show", key, "--json").json["value"] == ["cline"]
    nacre("config", "set", key, ' ["codex", "cline"]')
    assert nacre("config", "show", key, "--json").json["value"] == ["codex", "cline"]
    for several in ("[codex, cline]", "codex, cline"):
        refused = nacre("config", "set", key, several, code=None)
        assert refused.code != 0
        assert '["one", "two"]' in refused.err


def test_unknown_excluded_project_is_accepted_with_a_warning(
    nacre: Nacre, session: Callable[[str, timedelta], Path]
) -> None:
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    outcome = nacre(
        "config", "set", "writer.exclude_projects", '["acme-*", "acme_billing", "/code/acme"]'
    )
    assert re.findall("no project matches '(.+?)'", outcome.err) == ["acme_billing", "/code/acme"]
    assert len(nacre("config", "show", "writer.exclude_projects", "--json").json["value"]) == 3


def test_readers_of_sessions_are_reported_with_alternatives(
    nacre: Nacre, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    output = nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "20000").out
    for text in (output, nacre("writer").out, checked(nacre, "admin doctor")["detail"]):
        assert "run nacre ingest, or nacre init to connect your agents" in " ".join(text.split())
    nacre("init", "--host", "codex", "--yes", code=None)
    for text in (nacre("writer").out, checked(nacre, "admin doctor")["detail"]):
        assert "hooks from nacre init in codex" in " ".join(text.split())
    assert nacre("writer", "--json").json["read_by"] == ["hooks from nacre init in codex"]
    nacre("init", "--uninstall", "--yes")
    assert nacre("writer", "--json").json["read_by"] == []
    assert "hooks start one" not in nacre("admin", "doctor", code=None).out


def test_writer_can_be_paused_resumed_and_removed(nacre: Nacre, claude: Path) -> None:
    nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "20000")
    assert "paused" in nacre("writer", "pause").out
    assert "writes after each session" in nacre("writer", "resume").out
    assert "No writer" in nacre("writer", "set", "none").out


def test_writer_failure_is_shown_until_it_answers(
    nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]
) -> None:
    nacre("writer", "set", "claude-cli:haiku", "--tokens-per-day", "20000")
    limit = {"is_error": True, "api_error_status": 429, "result": "You have hit your session limit"}
    claude.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{json.dumps(limit)}'\n", encoding="utf-8")
    nacre("config", "set", "writer.since", "2026-01-01T00:00:00Z")
    session("0123two0-0000", timedelta(minutes=31))
    nacre("ingest")
    failing = nacre("writer", "--json").json
    assert (failing["state"], failing["waiting"]) == ("failing", 1)
    assert "hit your session limit" in " ".join(nacre("admin", "doctor", code=None).out.split())
    claude.write_text(CLAUDE, encoding="utf-8")
    nacre("ingest")
    assert contents(nacre) == [RULE]
    assert nacre("writer", "--json").json["state"] == "ready"


def test_waiting_sessions_are_read_soon_after_the_limit_rises(
    nacre: Nacre,
    claude: Path,
    session: Callable[[str, timedelta], Path],
    follow: Callable[..., Any],  # noqa: F811 - the fixture
) -> None:
    let_write(nacre, 20000)
    claude.write_text("#!/bin/sh\ncat >/dev/null\nexit 1\n", encoding="utf-8")
    session("0123two0-0000", timedelta(minutes=31))
    follow()
    wait(lambda: nacre("writer", "--json").json["state"] == "failing")
    claude.write_text(CLAUDE, encoding="utf-8")
    nacre("config", "set", "writer.tokens_per_day", "30000")
    wait(lambda: contents(nacre) == [RULE])


def checked(nacre: Nacre, command: str) -> dict[str, str]:
    (check,) = (
        item
        for item in nacre(*command.split(), "--json", code=None).json["checks"]
        if item["name"] == "writer"
    )
    return check


@pytest.fixture
def check(nacre: Nacre) -> Callable[[], dict[str, str]]:
    """Return the writer's result of nacre admin doctor."""
    return lambda: checked(nacre, "admin doctor")


Check = Callable[[], dict[str, str]]


@pytest.fixture
def waits(nacre: Nacre, claude: Path, session: Callable[[str, timedelta], Path]) -> None:
    """A configured writer and an unread, finished session."""
    let_write(nacre, 20000)
    session("0123two0-0000", timedelta(minutes=31))


def test_doctor_accepts_a_missing_writer(nacre: Nacre, check: Check) -> None:
    check_result = check()
    assert check_result["state"] == "ok"
    assert "nacre writer set" in check_result["detail"]


def test_doctor_names_a_ready_writer(nacre: Nacre, waits: None, check: Check) -> None:
    check_result = check()
    assert check_result["state"] == "ok"
    assert (
        "claude-cli:haiku, writes after each session, 0 of 20,000 tokens today"
        in check_result["detail"]
    )


def test_sessions_waiting_for_a_paused_writer_are_reported(
    nacre: Nacre, waits: None, check: Check
) -> None:
    nacre("writer", "pause")
    assert check()["state"] == "ok"
    nacre("ingest")
    check_result = check()
    assert (check_result["state"], check_result["hint"]) == ("warning", "nacre writer resume")
    assert "paused" in check_result["detail"]
    assert "sessions waiting: 1" in check_result["detail"]


def test_exhausted_writer_is_reported_with_alternatives(
    nacre: Nacre, waits: None, claude: Path, check: Check
) -> None:
    claude.write_text(
        CLAUDE.replace('"input_tokens": 900', '"input_tokens": 11000'), encoding="utf-8"
    )
    nacre("config", "set", "writer.tokens_per_day", "12000")
    nacre("ingest")
    check_result = check()
    assert check_result["state"] == "warning"
    assert "daily limit reached, 11,100 of 12,000 tokens" in check_result["detail"]
    assert "writer.tokens_per_day" in check_result["hint"]
    nacre("config", "set", "writer.tokens_per_day", "50000")
    assert check()["state"] == "ok"


def test_failing_writer_is_reported_with_its_error_until_success(
    nacre: Nacre, waits: None, claude: Path, check: Check
) -> None:
    works = claude.read_text(encoding="utf-8")
    claude.write_text("#!/bin/sh\necho 'Your limit is reached' >&2\nexit 1\n", encoding="utf-8")
    nacre("ingest")
    check_result = check()
    assert check_result["state"] == "warning"
    assert "Your limit is reached" in check_result["detail"]
    assert "nacre writer models --test claude-cli:haiku" in check_result["hint"]
    claude.write_text(works, encoding="utf-8")
    nacre("writer", "models", "--test", "claude-cli:haiku", code=None)
    assert check()["state"] == "ok"


def test_writer_with_a_missing_command_is_unreachable(
    nacre: Nacre, waits: None, claude: Path, check: Check
) -> None:
    claude.unlink()
    check_result = check()
    assert check_result["state"] == "warning"
    assert check_result["hint"]
    assert "not reachable" in nacre("writer").out


def test_writer_of_unknown_price_is_not_set(nacre: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-a-test")
    refused = nacre("writer", "set", "openai:a-model-of-tomorrow", code=None)
    assert refused.code != 0
    assert "the price of openai:a-model-of-tomorrow is unknown" in refused.err
