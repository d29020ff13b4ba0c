"""Every operation of the command line is run by a command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from nacre.operations import Operation
from nacre.serve.catalogue import CATALOGUE
from tests.catalogue.samples import QUESTION, SAMPLES
from tests.cli.conftest import Nacre

COMMANDS = {
    "gateway-status": "gateway",
    "gateway-sessions": "gateway sessions --limit 5",
    "gateway-session": "gateway show telegram:4711",
    "gateway-end": "gateway show telegram:4711 --end",
    "gateway-pairings": "gateway pair",
    "gateway-pair": "gateway pair K7QM-2XDP",
    "gateway-unpair": "gateway pair telegram:4711 --remove",
    "recall": f"recall '{QUESTION}' --turns 3 --kind decision",
    "deep-recall": f"recall --deep '{QUESTION}'",
    "list": "list --limit 10",
    "look": "show {memory} --no-update",
    "history": "show {memory} --history",
    "store": "store 'The mill stands on the left bank of the river' --importance 8",
    "store-rehearse": "store 'The mill has two wheels' --dry-run",
    "edit": "edit {memory} --importance 9 --add-tag ledger",
    "retire": "retire {other} --yes",
    "retire-plan": "retire {memory} --dry-run",
    "retired": "retire --list",
    "retired-standing": "retire --list",
    "unretire": "retire --restore {retired}",
    "todo-done": "todo done {todo}",
    "feedback": "review feedback {memory} --reply {reply}",
    "feedback-judge": "review feedback {memory} --good",
    "place": "list --project billing",
    "project-tie": "project tie acme-billing {folder}",
    "share": "server share {memory} --with ferry-team --as personal",
    "spaces": "server spaces",
    "spaces-create": "server spaces create ferry-team",
    "spaces-members": "server spaces members ferry-team",
    "spaces-add": "server spaces members ferry-team --add anna --role reader",
    "remote": "server remote",
    "remote-add": "server remote add http://127.0.0.1:1 --yes",
    "remote-sync": "server remote sync",
    "remote-remove": "server remote remove",
    "spaces-remove": "server spaces members ferry-team --remove anna",
    "spaces-log": "server spaces log",
    "keys": "server keys --space ferry-team",
    "keys-create": "server keys create --space ferry-team --role reader",
    "keys-revoke": "server keys revoke 3f9a01bc --space ferry-team",
    "project-list": "project list",
    "project-show": "project show acme-billing",
    "project-rename": "project rename ferry 'River Ferry' --reason 'there are two'",
    "project-merge-plan": "project merge ferry acme-billing --dry-run",
    "project-merge": "project merge ferry acme-billing --yes",
    "project-depend": "project depend acme-billing toll",
    "graph-ingest-code": "graph ingest-code {folder} --project shop",
    "graph-forget-code": "graph ingest-code --forget --project nothing-of-that",
    "graph-callers": "graph callers total --depth 2",
    "graph-importers": "graph importers billing.py",
    "graph-about": "graph about total",
    "graph-stale": "graph stale --days 60",
    "graph-impact": "graph impact billing.py total",
    "search-sessions": f"search '{QUESTION}' --role owner",
    "match-sessions": "search --regex 'postgres(ql)?'",
    "search-chats": f"gateway search '{QUESTION}' --channel telegram",
    "sessions": "sessions list --limit 10",
    "session": "sessions show {session}",
    "resume": "resume {session} --print",
    "session-summary": "sessions summary {session}",
    "session-restore": "sessions restore {session} --to {folder}",
    "did": "did ledger.py",
    "fix": "fix 'the ledger corrupts'",
    "extract": "sessions extract --session {session} --model none",
    "ingest": "ingest --no-vectors",
    "ingest-plan": "ingest --dry-run",
    "ingest-estimate": "ingest --estimate",
    "quickstart": "quickstart",
    "context": f"context '{QUESTION}' --folder /code/acme-billing",
    "pointers-on": "context --pointers --folder /code/acme-billing",
    "handoff": "context --handoff --folder /code/acme-billing",
    "chores": "chores --seconds 0",
    "page-own": "project page profile",
    "page-write": "project page profile 'Prefers short answers.'",
    "review": "review --limit 5",
    "review-keep": "review keep {candidate}",
    "review-drop": "review drop {unwanted} {worst} --yes",
    "review-undo": "undo {memory}",
    "writer": "writer",
    "writer-set": "writer set ollama:qwen3:8b",
    "writer-pause": "writer pause",
    "writer-resume": "writer resume",
    "writer-off": "writer set none",
    "review-resolve": "review resolve ffffffff keep-both",
    "dream-plan": "dream --dry-run",
    "dream": "dream --yes",
    "alike": "dream --alike",
    "graph-link": "graph link {memory} depends_on {other}",
    "graph-list": "graph list --of {memory}",
    "graph-show": "graph show {memory}",
    "graph-unlink": "graph unlink {memory} builds_on {other}",
    "graph-gaps": "graph gaps",
    "graph-brief": "graph brief",
    "unanswered": "review gaps",
    "log": "log --limit 10",
    "diff": "log --diff",
    "undo-plan": "undo {operation} --dry-run",
    "undo": "undo {operation} --yes",
    "commit": "admin commit",
    "sync": "sync --dry-run",
    "forget-plan": "forget --match 'the linter' --dry-run",
    "forget": "forget --memory {forgettable} --yes",
    "forgotten": "forget --list",
    "forget-allow-again": "forget --allow-again nothing-of-that",
    "scrub": "admin scrub --dry-run",
    "export": "data export {folder}/all.jsonl",
    "import-plan": "data import {exported} --dry-run",
    "import": "data import {exported} --no-vectors --yes",
    "backup-create": "data backup create {folder}/home.zip",
    "backup-verify": "data backup verify {backup}",
    "move": "data move --to postgresql://nobody@127.0.0.1:1/none --yes",
    "backup-restore": "data backup restore {backup} --to {folder}/restored",
    "archive-status": "data archive",
    "models": "writer models",
    "models-test": "writer models --test",
    "auth": "writer keys",
    "auth-set": "writer keys openai",
    "auth-remove": "writer keys anthropic --remove --yes",
    "embed": "writer embedding",
    "embed-plan": "writer embedding minilm --estimate",
    "embed-try": "writer embedding minilm",
    "embed-switch": "writer embedding minilm",
    "embed-resume": "writer embedding --resume",
    "cost": "writer cost",
    "traces": "writer traces",
    "trace": "writer traces {trace}",
    "status": "status",
    "doctor": "admin doctor",
    "doctor-deep": "admin doctor --deep",
    "doctor-hosts": "admin doctor hosts",
    "hosts-plan": "init --host claude-code --dry-run",
    "hosts-wire": "init --host claude-code --yes",
    "db-stats": "admin db stats",
    "db-vacuum": "admin db vacuum",
    "db-rebuild": "admin db rebuild --no-vectors --yes",
    "db-reset": "admin db reset --yes",
    "config": "config show",
    "config-get": "config show recall.limit",
    "config-set": "config set recall.limit 7",
    "config-unset": "config unset recall.limit",
    "usefulness": "admin usefulness",
    "check": "admin check",
    "pin": f"recall '{QUESTION}' --pin",
}
"""A command for each operation; names in braces as in the samples."""

IN_PARTS = {
    "retire": "the command retires the memories that it showed",
    "extract": "its answer names the request",
    "forget": "the command forgets the memories that it showed",
    "export": "it may go to standard output",
    "import-plan": "the command imports the items that it showed",
    "import": "the command imports the items that it showed",
    "models-test": "it shows its progress",
    "doctor-deep": "it repairs between two checks",
    "hosts-plan": "the command writes the changes that it showed",
    "hosts-wire": "the command writes the changes that it showed",
    "config": "it also prints the paths of the files",
    "config-set": "it warns of a variable that overrides the file",
    "config-unset": "it also repairs a file that no command can read",
}
"""Operations that their commands perform in steps, with narrower functions."""

OTHER_OUTCOMES: dict[str, tuple[str | None, ...]] = {
    "embed-try": (None,),
    "embed-switch": (None,),
}
"""The outcomes of commands that differ from the samples, because they name another model."""


@pytest.fixture(autouse=True)
def _no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")


WITHOUT_COMMAND = {
    *("get", "overview"),  # other commands show more
    *("hook", "context-given", "flush"),  # for hooks
    *("graph-central", "beliefs"),  # for agents and the dashboard
    *("graph-map", "today", "activity", "hosts", "hosts-preview"),  # for the dashboard
    *("remote-changes", "remote-versions", "remote-push", "remote-turns"),  # for other homes
}


def test_every_operation_has_a_command() -> None:
    assert CATALOGUE.keys() - COMMANDS.keys() == WITHOUT_COMMAND


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_command_runs_the_operation(
    name: str,
    nacre: Nacre,
    home: Path,
    resolve: Callable[[Any], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name in ("embed-try", "embed-switch"):
        monkeypatch.delenv(
            "NACRE_EMBEDDING_MODEL"
        )  # an environment variable would override the command's setting
    reply = tmp_path / "reply.md"
    reply.write_text("Billing uses PostgreSQL, so that accounts are charged", encoding="utf-8")
    words = shlex.split(resolve(COMMANDS[name].replace("{reply}", str(reply))))
    with called_operations() as names:
        outcome = nacre(*words, "--json", code=None, stdin="sk-invented-for-a-test-000000")
    assert name in names | IN_PARTS.keys()
    error = outcome.json.get("error") if isinstance(outcome.json, dict) else None
    assert (error["code"] if isinstance(error, dict) else None) in {
        SAMPLES[name].error,
        *OTHER_OUTCOMES.get(name, ()),
    }


@contextmanager
def called_operations() -> Iterator[set[str]]:
    """Yield the names of the operations that the command line calls meanwhile."""
    names: set[str] = set()

    def hear(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Operation.make.__code__:
            names.add(frame.f_locals["self"].name)

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        yield names
    finally:
        sys.setprofile(before)
