"""The real commands as writers: alone with the question, within their time, and what goes wrong is told."""

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
from tests.hosts.stage import Ran, Stage, eventually
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
    ran,
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
class Written:
    """What a writer was asked about a session that is over, and what was seen besides."""

    writer: Writer
    stage: Stage
    requests: list[Request] = field(default_factory=list)
    hooks: int = 0
    before: dict[str, bytes] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)


@contextmanager
def stage_of(writer: Writer, answers: Answers, folders: pytest.TempPathFactory) -> Iterator[Stage]:
    """A machine on which a writer is set, and a session waits for it. No daemon reads it before."""
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
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Written]:
    """One session, written down by the real program in a home where nacre is wired and the owner keeps much."""
    writer: Writer = request.param
    with stage_of(writer, writing(), tmp_path_factory) as stage:
        stage.nacre("init", "--host", writer.driver.name, *writer.driver.options, "--yes")
        stage.close()
        for mark in stage.folder.glob("*.ran"):
            mark.unlink()
        let_write(writer, stage)
        session_over(stage)
        seen = Written(writer, stage, before=stage.settings(), hooks=len(stage.hook_runs()))
        asked = len(stage.provider.requests)
        stage.nacre("ingest")
        seen.requests, seen.after, seen.own = (
            stage.provider.requests[asked:],
            stage.settings(),
            ran(stage),
        )
        yield seen


def test_writer_output_is_stored(written: Written) -> None:
    assert contents(written.stage) == [RULE]


def test_session_takes_two_calls_and_tokens_are_counted(written: Written) -> None:
    assert [request.method for request in written.requests] == ["POST", "POST"]
    told = written.stage.nacre("writer", "--json").record
    assert (told["state"], told["calls_today"], told["waiting"]) == ("ready", 2, 0)
    assert 1_000 < told["tokens_today"] < 15_000


def test_each_question_is_marked_as_an_own_call(written: Written) -> None:
    assert [json.dumps(request.body).count(OWN_CALL) for request in written.requests] == [1, 1]


def test_owner_settings_are_not_sent_to_the_writer(written: Written) -> None:
    assert TRAP not in "".join(json.dumps(request.body) for request in written.requests)


def test_nacre_context_is_not_sent_to_the_writer(written: Written) -> None:
    assert "nacre-context" not in "".join(json.dumps(request.body) for request in written.requests)


def test_writer_is_offered_no_effective_tools(written: Written) -> None:
    assert set.union(*(tools(request) for request in written.requests)) <= written.writer.own


def test_request_adds_little_overhead_to_the_question(written: Written) -> None:
    for request in written.requests:
        (question,) = (text for text in _texts(request.body) if OWN_CALL in text)
        assert len(json.dumps(request.body)) - len(json.dumps(question)) < written.writer.beside


def test_writer_runs_no_hooks_or_servers(written: Written) -> None:
    assert written.own == set()
    assert len(written.stage.hook_runs()) == written.hooks


def test_writer_leaves_no_files_in_the_home(written: Written) -> None:
    assert {path for path in written.after if path not in written.before} == set()
    assert not any(OWN_CALL.encode() in text for text in written.after.values())
    assert not list((written.stage.folder / "tmp").glob("nacre-call-*"))


def test_writer_calls_are_not_ingested_as_sessions(written: Written) -> None:
    written.stage.nacre("ingest", "--force")
    (listed,) = written.stage.nacre("sessions", "list", "--json").record["lines"]
    session = listed["session"]["session"]
    assert (session["tool"], session["native_id"]) == ("claude-code", "0123abcd-0000")


@pytest.mark.parametrize("writer", [CLAUDE, CODEX], ids=lambda writer: writer.driver.program)
def test_marked_question_in_a_kept_transcript_is_not_a_session(
    writer: Writer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if reason := missing(writer.driver.name):
        pytest.skip(reason)
    with staged(writer.driver.name, tmp_path_factory) as stage:
        writer.driver.set_up(stage)
        writer.driver.say(stage, f"{OWN_CALL}\n\nWe decided: the mailer runs on NATS.")
        kept = [
            path
            for path, text in stage.settings().items()
            if path.endswith(".jsonl") and OWN_CALL.encode() in text
        ]
        assert kept, "the program kept no transcript of it"
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
        elsewhere = '{fake = {base_url = "https://models.example/v1"}}'  # else its sessions stay on this machine
        stage.nacre("config", "set", "models.providers", elsewhere)
        stage.nacre("writer", "set", writer.model, "--tokens-per-day", "100000")
        asked = len(stage.provider.requests)
        sessions = [writer.driver.say(stage, WORDS).session]
        assert eventually(lambda: RULE in contents(stage), 180), contents(stage)
        by_itself = [
            request for request in stage.asked(asked) if OWN_CALL in json.dumps(request.body)
        ]
        assert len(by_itself) == 2
        asked = len(stage.provider.requests)
        said = writer.driver.say(stage, COMES_BACK)
        first = json.dumps(stage.asked(asked)[0].body)
        assert said.text == "From the database."
        assert "nacre-context" in first
        assert RULE in first
        sessions.append(said.session)
        listed = stage.nacre("sessions", "list", "--json").record["lines"]
        stored = [line["session"]["session"] for line in listed]
        assert {(session["tool"], session["native_id"]) for session in stored} <= {
            (writer.driver.tool, session) for session in sessions
        }


def _ingested(stage: Stage) -> str:
    """What nacre says as it reads, on one line."""
    ended: Ran = stage.run([str(stage.programs / "nacre"), "ingest"])
    assert ended.code == 0, ended.err
    return " ".join(f"{ended.out} {ended.err}".split())


TROUBLES = {
    "limit": (LIMITED, 25, "has reached a limit", "try again later"),
    "sign-in": (Reply(status=401, message="no such key"), 60, "is not signed in", "sign in with"),
    "hang": (Reply(fault="hang"), 8, "did not answer within 8 seconds", "check the network"),
    "garbage": ("Once upon a time {", 60, "is no JSON", "choose another model"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.driver.program)
def test_writer_failure_is_reported_and_the_session_waits(
    writer: Writer, trouble: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    answer, seconds, told, remedy = TROUBLES[trouble]
    now: list[Answers] = [writing(answer)]
    with stage_of(writer, lambda request: now[0](request), tmp_path_factory) as stage:
        let_write(writer, stage, seconds)
        session_over(stage)
        said = _ingested(stage)
        assert told in said
        assert f"hint: {remedy}" in said
        assert contents(stage) == []
        status = stage.nacre("writer", "--json").record
        assert status["waiting"] == 1
        if trouble != "garbage":  # which says nothing of the next call
            assert (status["state"], told in status["problem"]) == ("failing", True)
            assert (check(stage, "writer")["state"], told in check(stage, "writer")["detail"]) == (
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
        said = _ingested(stage)
        assert re.search(
            r"has reached a limit \(claude-cli:haiku\): You've hit your (session|5-hour) limit",
            said,
        )
        assert len(stage.asked(0)) == 1


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
        kept = stage.home / ".codex" / "auth.json"
        kept.write_text(signed_in.file, encoding="utf-8")
        let_write(BY_SIGN_IN, stage)
        session_over(stage)
        stage.nacre("ingest")
        assert contents(stage) == [RULE]
        assert signed_in.renewed == ["first"]
        assert json.loads(kept.read_text(encoding="utf-8"))["tokens"]["refresh_token"] == "second"
        assert TRAP not in "".join(json.dumps(request.body) for request in stage.asked(0))


def _texts(value: object) -> Iterator[str]:
    """All texts in a body, wherever they stand."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
