"""The real commands as writers see only the question, finish in time and report failures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from nacre.values.models import OWN_CALL
from tests.fakes.conversation import Line, conversation
from tests.fakes.provider import FakeProvider, Reply, Request
from tests.hosts.conftest import staged
from tests.hosts.programs import missing
from tests.hosts.stage import ProgramResult, Stage, eventually
from tests.hosts.story import COMES_BACK
from tests.hosts.writers import (
    BY_SIGN_IN,
    CLAUDE,
    CODEX,
    GEMINI,
    OPENCODE,
    RULE,
    TRAP,
    WORDS,
    Answers,
    Writer,
    check,
    contents,
    let_write,
    programs_run,
    session_over,
    set_up,
    sign_in,
    tools,
    writing,
)

pytestmark = pytest.mark.hosts

WRITERS = (CLAUDE, CODEX, GEMINI, OPENCODE)

LIMITED = Reply(status=429, message="You have hit your usage limit.", code="usage_limit_reached")


@dataclass
class WrittenSession:
    """A writer's prompt about a finished session, and other observations."""

    writer: Writer
    stage: Stage
    requests: list[Request] = field(default_factory=list)
    hooks: int = 0
    before: dict[str, bytes] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)


@contextmanager
def stage_of(writer: Writer, answers: Answers, folders: pytest.TempPathFactory) -> Iterator[Stage]:
    """A machine with a configured writer and a pending session, which no daemon reads earlier."""
    if reason := missing(writer.driver.name):
        pytest.skip(reason)
    with FakeProvider(answers, models=("fake-model",)) as provider:
        stage = Stage(folders.mktemp("writer"), provider)
        set_up(writer, stage)
        try:
            yield stage
        finally:
            stage.close()


@pytest.fixture(scope="module", params=WRITERS, ids=lambda writer: writer.driver.program)
def written_session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WrittenSession]:
    """Have the real program write a session in a home with nacre connected and many files of the
    owner."""
    writer: Writer = request.param
    with stage_of(writer, writing(), tmp_path_factory) as stage:
        stage.nacre("init", "--host", writer.driver.name, *writer.driver.options, "--yes")
        stage.close()
        for mark in stage.folder.glob("*.ran"):
            mark.unlink()
        let_write(writer, stage)
        session_over(stage)
        observed = WrittenSession(
            writer, stage, before=stage.settings(), hooks=len(stage.hook_runs())
        )
        start = len(stage.provider.requests)
        stage.nacre("ingest")
        observed.requests, observed.after, observed.own = (
            stage.provider.requests[start:],
            stage.settings(),
            programs_run(stage),
        )
        yield observed


def test_writer_output_is_stored(written_session: WrittenSession) -> None:
    assert contents(written_session.stage) == [RULE]


def test_session_takes_two_calls_and_tokens_are_counted(written_session: WrittenSession) -> None:
    assert [request.method for request in written_session.requests] == ["POST", "POST"]
    report = written_session.stage.nacre("writer", "--json").record
    assert (report["state"], report["calls_today"], report["waiting"]) == ("ready", 2, 0)
    assert 1_000 < report["tokens_today"] < 15_000


def test_each_question_is_marked_as_an_own_call(written_session: WrittenSession) -> None:
    assert [json.dumps(request.body).count(OWN_CALL) for request in written_session.requests] == [
        1,
        1,
    ]


def test_owner_settings_are_not_sent_to_the_writer(written_session: WrittenSession) -> None:
    assert TRAP not in "".join(json.dumps(request.body) for request in written_session.requests)


def test_nacre_context_is_not_sent_to_the_writer(written_session: WrittenSession) -> None:
    assert "nacre-context" not in "".join(
        json.dumps(request.body) for request in written_session.requests
    )


def test_writer_is_offered_no_effective_tools(written_session: WrittenSession) -> None:
    assert (
        set.union(*(tools(request) for request in written_session.requests))
        <= written_session.writer.own
    )


def test_request_adds_little_overhead_to_the_question(written_session: WrittenSession) -> None:
    for request in written_session.requests:
        (question,) = (text for text in _texts(request.body) if OWN_CALL in text)
        assert (
            len(json.dumps(request.body)) - len(json.dumps(question))
            < written_session.writer.extra_chars
        )


def test_writer_runs_no_hooks_or_servers(written_session: WrittenSession) -> None:
    assert written_session.own == set()
    assert len(written_session.stage.hook_runs()) == written_session.hooks


def test_writer_leaves_no_files_in_the_home(written_session: WrittenSession) -> None:
    new_files = [path for path in written_session.after if path not in written_session.before]
    # Claude Code copies its own settings there when it starts for the first time.
    assert [path for path in new_files if "/.claude/backups/" not in path] == []
    assert not any(OWN_CALL.encode() in text for text in written_session.after.values())
    assert not list((written_session.stage.folder / "tmp").glob("nacre-call-*"))


def test_writer_calls_are_not_ingested_as_sessions(written_session: WrittenSession) -> None:
    written_session.stage.nacre("ingest", "--force")
    (sessions,) = written_session.stage.nacre("sessions", "list", "--json").record["lines"]
    session = sessions["session"]["session"]
    assert (session["tool"], session["native_id"]) == ("claude-code", "0123abcd-0000")


@pytest.mark.parametrize("writer", [CLAUDE, CODEX], ids=lambda writer: writer.driver.program)
def test_writer_prompt_in_a_transcript_is_not_a_session(
    writer: Writer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if reason := missing(writer.driver.name):
        pytest.skip(reason)
    with staged(writer.driver.name, tmp_path_factory) as stage:
        writer.driver.set_up(stage)
        writer.driver.say(stage, f"{OWN_CALL}\n\nWe decided: the mailer runs on NATS.")
        paths = [
            path
            for path, text in stage.settings().items()
            if path.endswith(".jsonl") and OWN_CALL.encode() in text
        ]
        assert paths, "the program saved no transcript"
        stage.nacre("ingest")
        assert stage.nacre("sessions", "list", "--json").record["lines"] == []


@pytest.mark.parametrize(
    "writer", [CLAUDE, CODEX, GEMINI], ids=lambda writer: writer.driver.program
)
def test_next_session_receives_memories_of_the_writer(
    writer: Writer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    talk = conversation([Line(WORDS, say="Done."), Line(COMES_BACK, say="From the database.")])
    with stage_of(writer, writing(otherwise=talk), tmp_path_factory) as stage:
        stage.nacre("init", "--host", writer.driver.name, *writer.driver.options, "--yes")
        elsewhere = '{fake = {base_url = "https://models.example/v1"}}'  # otherwise its sessions stay on this machine
        stage.nacre("config", "set", "models.providers", elsewhere)
        stage.nacre("writer", "set", writer.model, "--tokens-per-day", "100000")
        start = len(stage.provider.requests)
        sessions = [writer.driver.say(stage, WORDS).session]
        assert eventually(lambda: RULE in contents(stage), 180), contents(stage)
        by_itself = [
            request
            for request in stage.model_requests(start)
            if OWN_CALL in json.dumps(request.body)
        ]
        assert len(by_itself) == 2
        start = len(stage.provider.requests)
        result = writer.driver.say(stage, COMES_BACK)
        first = json.dumps(stage.model_requests(start)[0].body)
        assert result.text == "From the database."
        assert "nacre-context" in first
        assert RULE in first
        sessions.append(result.session)
        session_lines = stage.nacre("sessions", "list", "--json").record["lines"]
        ids = [line["session"]["session"] for line in session_lines]
        assert {(session["tool"], session["native_id"]) for session in ids} <= {
            (writer.driver.tool, session) for session in sessions
        }


def _ingested(stage: Stage) -> str:
    """Return nacre's output of reading a session, on one line."""
    ended: ProgramResult = stage.run([str(stage.programs / "nacre"), "ingest"])
    assert ended.code == 0, ended.err
    return " ".join(f"{ended.out} {ended.err}".split())


TROUBLES = {
    "limit": (LIMITED, 25, "has reached a limit", "try again later"),
    "sign-in": (Reply(status=401, message="no such key"), 60, "is not signed in", "sign in with"),
    "hang": (Reply(fault="hang"), 8, "did not answer within 8 seconds", "check the network"),
    "garbage": ("Once upon a time {", 60, "is not JSON", "choose another model"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.driver.program)
def test_writer_failure_is_reported_and_the_session_waits(
    writer: Writer, trouble: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    answer, seconds, message, remedy = TROUBLES[trouble]
    now: list[Answers] = [writing(answer)]
    with stage_of(writer, lambda request: now[0](request), tmp_path_factory) as stage:
        let_write(writer, stage, seconds)
        session_over(stage)
        output = _ingested(stage)
        assert message in output
        assert f"hint: {remedy}" in output
        assert contents(stage) == []
        status = stage.nacre("writer", "--json").record
        assert status["waiting"] == 1
        if trouble != "garbage":  # this says nothing about the next call
            assert (status["state"], message in status["problem"]) == ("failing", True)
            assert (
                check(stage, "writer")["state"],
                message in check(stage, "writer")["detail"],
            ) == (
                "warning",
                True,
            )
        now[0] = writing()
        stage.nacre("config", "set", "models.timeout_seconds", "60")
        stage.nacre("writer", "models", "--test", writer.model)
        stage.nacre("ingest")
        assert contents(stage) == [RULE]
        assert stage.nacre("writer", "--json").record["state"] == "ready"


def test_claude_subscription_limit_is_quoted(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "4102444800",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "retry-after": "7200",
    }
    limit = Reply(
        status=429, message="This request would exceed your account's rate limit.", headers=headers
    )
    with stage_of(CLAUDE, writing(limit), tmp_path_factory) as stage:
        del stage.environ["ANTHROPIC_API_KEY"]
        stage.environ["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-fake"
        let_write(CLAUDE, stage)
        session_over(stage)
        output = _ingested(stage)
        assert re.search(
            r"has reached a limit \(claude-cli:haiku\): You've hit your (session|5-hour) limit",
            output,
        )
        assert len(stage.model_requests(0)) == 1


def test_codex_retrying_at_the_timeout_reports_its_reason(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    limit = Reply(status=429, message="Rate limit reached.", headers={"retry-after": "30"})
    with stage_of(CODEX, writing(limit), tmp_path_factory) as stage:
        let_write(CODEX, stage, 8)
        session_over(stage)
        assert "Codex has reached a limit" in _ingested(stage)


def test_codex_sign_in_renewed_during_a_call_is_saved(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with stage_of(BY_SIGN_IN, writing(), tmp_path_factory) as stage, sign_in() as signed_in:
        del stage.environ["CODEX_API_KEY"]
        stage.environ.update(signed_in.environ)
        path = stage.home / ".codex" / "auth.json"
        path.write_text(signed_in.file, encoding="utf-8")
        let_write(BY_SIGN_IN, stage)
        session_over(stage)
        stage.nacre("ingest")
        assert contents(stage) == [RULE]
        assert signed_in.renewed == ["first"]
        assert json.loads(path.read_text(encoding="utf-8"))["tokens"]["refresh_token"] == "second"
        assert TRAP not in "".join(json.dumps(request.body) for request in stage.model_requests(0))


def _texts(value: object) -> Iterator[str]:
    """Return all texts in a body at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
