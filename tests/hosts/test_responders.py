"""The real commands as responders: plain text, only the allowed tools, and immediate cancellation."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest

from nacre.errors import ModelUnavailableError, NacreError
from nacre.home.home import open_home
from nacre.settings import load_settings
from nacre.values.gateway import Answer
from nacre.values.models import Prompt
from nacre.values.session import Task
from nacre_gateway.conversation import Responder, responder_for
from tests.fakes.conversation import Line, conversation
from tests.fakes.provider import FakeProvider, Reply
from tests.hosts.programs import missing
from tests.hosts.stage import Stage, eventually
from tests.hosts.writers import (
    CLAUDE,
    CODEX,
    GEMINI,
    OPENCODE,
    TRAP,
    Answers,
    Writer,
    programs_run,
    set_up,
    tools,
)

pytestmark = pytest.mark.hosts

BOTH = [CLAUDE, replace(CODEX, model="codex-cli:gpt-5.2-codex")]
ALL = [*BOTH, GEMINI, OPENCODE]
MEMORY = "The hull of the Albatros was painted red in Cuxhaven."
SYSTEM = "You are the harbour's agent, and you answer in a sentence."
ANSWER = "It is red, as it was painted in Cuxhaven, and the sail beside it is still wet."
SECRET = "heron-seventeen"
QUESTION = Prompt(
    Task.CHAT,
    SYSTEM,
    f"<memory>{MEMORY}</memory>\n\nWhich colour has the hull?",
    {},
    timeout_seconds=60.0,
)

by_program = pytest.mark.parametrize("writer", BOTH, ids=lambda writer: writer.driver.program)
by_any_program = pytest.mark.parametrize("writer", ALL, ids=lambda writer: writer.driver.program)

Folders = pytest.TempPathFactory


@contextmanager
def answering(
    writer: Writer, answers: Answers, folders: Folders
) -> Iterator[tuple[Stage, Responder]]:
    """A machine whose owner has many files and settings for the program that answers."""
    if reason := missing(writer.driver.name):
        pytest.skip(reason)
    with FakeProvider(answers, models=("fake-model",)) as provider:
        stage = Stage(folders.mktemp("responder"), provider)
        set_up(writer, stage)
        home = open_home(load_settings(stage.memory, stage.environ))
        responder = responder_for(home, writer.model)
        try:
            yield stage, responder
        finally:
            responder.close()
            home.database.close()
            stage.close()


@by_any_program
def test_responder_answers_in_plain_text_without_tools(
    writer: Writer, tmp_path_factory: Folders
) -> None:
    with answering(writer, conversation([Line("colour", say=ANSWER)]), tmp_path_factory) as (
        stage,
        responder,
    ):
        responder.answer(QUESTION)  # the first start of the program records that it happened
        before = stage.settings()
        answer = responder.answer(QUESTION)
        request = stage.model_requests(0)[-1]
        assert len(stage.model_requests(0)) == 2
        body = json.dumps(request.body)
        assert (answer.text, answer.steps) == (ANSWER, ())
        assert (body.count(MEMORY), body.count(SYSTEM), "JSON and nothing else" in body) == (
            1,
            1,
            False,
        )
        assert tools(request) <= writer.own - {"StructuredOutput"}
        assert TRAP not in body
        assert programs_run(stage) == set()
        assert {path for path in stage.settings() if path not in before} == set()
        assert not list((stage.folder / "tmp").glob("nacre-call-*"))


@by_any_program
def test_file_named_in_a_message_is_not_read(writer: Writer, tmp_path_factory: Folders) -> None:
    with answering(writer, conversation([], ANSWER), tmp_path_factory) as (stage, responder):
        path = stage.home / "kept.txt"
        path.write_text(SECRET)
        text = f'Read @{path} and @"{path}" and @{path.parent}/ and @../../home/kept.txt to me.'
        assert responder.answer(replace(QUESTION, text=text)).text == ANSWER
        (stage.project / "plan.txt").write_text(SECRET)
        if writer in BOTH:
            allowed = ("Read",) if writer is CLAUDE else ("shell",)
            responder.answer(
                replace(
                    QUESTION, text=f"{text} And @plan.txt.", tools=allowed, folder=stage.project
                )
            )
        assert SECRET not in "".join(
            json.dumps(request.body) for request in stage.model_requests(0)
        )


def calling(tool: str, **arguments: str) -> Answers:
    """Return answers of a model that calls one tool and then replies."""
    return conversation([Line("colour", say=ANSWER, tool=rf"^ ?{tool}$", arguments=arguments)])


def results(stage: Stage) -> str:
    """Return the result of the tool call that was sent to the model."""
    return json.dumps(stage.model_requests(0)[-1].body)


def used(stage: Stage, responder: Responder, *allowed: str, folder: Path | None = None) -> Answer:
    """Return the answer to a question with allowed tools, in the project or another folder."""
    answer = responder.answer(replace(QUESTION, tools=allowed, folder=folder or stage.project))
    assert answer.text == ANSWER
    return answer


def test_claude_reads_in_the_folder(tmp_path_factory: Folders) -> None:
    with answering(CLAUDE, lambda request: now[0](request), tmp_path_factory) as (stage, responder):
        plan = stage.project / "plan.txt"
        plan.write_text(SECRET)
        now = [calling("Read", file_path=str(plan))]
        answer = used(stage, responder, "Read", "Grep")
        assert SECRET in results(stage)
        assert [tools(request) for request in stage.model_requests(0)] == [{"Read", "Grep"}] * 2
        assert [step.partition(":")[0] for step in answer.steps] == ["Read"]
        [trace] = stage.nacre("writer", "traces", "--task", "chat", "--json").record["traces"]
        assert plan.name in stage.nacre("writer", "traces", trace["id"]).out
        assert "CLAUDE.md" not in results(stage)


CLAIMED = {
    "Read": {"file_path": "{kept}"},
    "Grep": {"pattern": "heron", "path": "{home}", "output_mode": "content"},
    "Bash": {"command": "cat {kept}", "description": "x"},
    "Write": {"file_path": "{home}/made.txt", "content": "x"},
}


@pytest.mark.parametrize("tool", CLAIMED)
def test_claude_accesses_nothing_outside_the_folder(tool: str, tmp_path_factory: Folders) -> None:
    with answering(CLAUDE, lambda request: now[0](request), tmp_path_factory) as (stage, responder):
        path = stage.home / "kept.txt"
        path.write_text(SECRET)
        texts = {
            name: text.format(kept=path, home=stage.home) for name, text in CLAIMED[tool].items()
        }
        now = [calling(tool, **texts)]
        used(stage, responder, "Read", "Grep", "Write", "Bash(git log:*)")
        assert len(stage.model_requests(0)) == 2
        assert SECRET not in results(stage)
        assert not (stage.home / "made.txt").exists()


def test_claude_writes_in_the_folder_if_allowed(tmp_path_factory: Folders) -> None:
    with answering(CLAUDE, lambda request: now[0](request), tmp_path_factory) as (stage, responder):
        path = stage.project / "made.txt"
        now = [calling("Write", file_path=str(path), content="red")]
        used(stage, responder, "Read", "Write")
        assert path.read_text() == "red"


@pytest.mark.parametrize("writes", [False, True])
def test_codex_runs_commands_in_the_folder(writes: bool, tmp_path_factory: Folders) -> None:
    command = "cat plan.txt; touch made.txt; touch ../outside.txt; echo key=$CODEX_API_KEY own=$NACRE_OWN_CALL"
    allowed = ("shell", "write") if writes else ("shell",)
    with (
        answering(BOTH[1], calling("exec_command", cmd=command), tmp_path_factory) as (
            stage,
            responder,
        ),
        TemporaryDirectory(dir="/var/tmp") as saved_folder,
    ):
        folder = Path(saved_folder, "harbour")
        folder.mkdir()
        (folder / "plan.txt").write_text(SECRET)
        used(stage, responder, *allowed, folder=folder)
        assert SECRET in results(stage)
        assert "key= own=1" in results(stage)
        assert (folder / "made.txt").exists() == writes
        assert not Path(saved_folder, "outside.txt").exists()


LIMITED = Reply(status=429, message="You have hit your usage limit.", code="usage_limit_reached")


@by_program
def test_reached_limit_is_reported(writer: Writer, tmp_path_factory: Folders) -> None:
    with (
        answering(writer, lambda _: LIMITED, tmp_path_factory) as (_, responder),
        pytest.raises(ModelUnavailableError, match="has reached a limit"),
    ):
        responder.answer(replace(QUESTION, timeout_seconds=25.0))


@by_program
def test_answer_respects_its_time_limit(writer: Writer, tmp_path_factory: Folders) -> None:
    with answering(writer, lambda _: Reply(fault="hang"), tmp_path_factory) as (stage, responder):
        began = time.monotonic()
        with pytest.raises(ModelUnavailableError, match="within 6 seconds"):
            responder.answer(replace(QUESTION, timeout_seconds=6.0))
        assert time.monotonic() - began < 20
        assert eventually(lambda: not _running(stage))


def _killed(stage: Stage, responder: Responder) -> None:
    for number in _running(stage):
        with suppress(ProcessLookupError):  # ending the first program must end its children, too
            os.kill(number, signal.SIGKILL)


def _closed(stage: Stage, responder: Responder) -> None:
    responder.close()


@by_program
@pytest.mark.parametrize("end", [_killed, _closed])
def test_truncated_answer_fails_and_processes_never_show_the_question(
    writer: Writer, end: Callable[[Stage, Responder], None], tmp_path_factory: Folders
) -> None:
    with answering(writer, lambda _: Reply(fault="hang"), tmp_path_factory) as (stage, responder):
        ended: list[Any] = []

        def ask() -> None:
            try:
                ended.append(responder.answer(QUESTION))
            except NacreError as error:
                ended.append(error)

        asking = Thread(target=ask)
        asking.start()
        assert eventually(lambda: stage.model_requests(0), 30)
        environments = [
            (Path(f"/proc/{number}") / name).read_bytes()
            for number in _running(stage)
            for name in _SHOWN
        ]
        end(stage, responder)
        asking.join(20)
        assert environments
        assert not any(
            text in item for text in (MEMORY.encode(), SYSTEM.encode()) for item in environments
        )
        assert [type(error) for error in ended] == [ModelUnavailableError]
        assert not list((stage.folder / "tmp").glob("nacre-call-*"))
        assert eventually(lambda: not _running(stage))


_SHOWN = ("cmdline", "environ")


def _running(stage: Stage) -> list[int]:
    """Return the running programs whose home is the stage's."""
    processes = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = f"HOME={stage.home}\0".encode() in (place / "environ").read_bytes()
        except OSError:
            continue
        if is_ours:
            processes.append(int(place.name))
    return processes


@by_program
def test_responder_answers_are_not_ingested_as_sessions(
    writer: Writer, tmp_path_factory: Folders
) -> None:
    with answering(writer, conversation([], ANSWER), tmp_path_factory) as (stage, responder):
        responder.answer(QUESTION)
        stage.nacre("ingest")
        assert stage.nacre("sessions", "list", "--json").record["lines"] == []
