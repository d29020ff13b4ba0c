"""Regressions of earlier faults, at the points that revealed them. ``test_crash.py`` covers the other points."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.trust.client import Client, Event, Fault, kills, sample, serving

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the shim knows Linux' system calls"
)

MOST = 5
"""The number of points in a run, spread evenly over all matching events."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    memory = Path("/dev/shm")  # noqa: S108 - a new folder is created there
    folder = Path(
        tempfile.mkdtemp(prefix="nacre-trust-", dir=memory if os.access(memory, os.W_OK) else None)
    )
    try:
        with serving(folder) as client:
            yield client
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def failing_runs(
    client: Client,
    scenario: str,
    kind: str,
    kinds: Sequence[Event],
    *,
    lasting: bool = False,
    most: int = MOST,
) -> list[dict[str, Any]]:
    """Run a scenario with failing calls of some kinds, and check each run completely; return the runs."""
    events, _ = client.events(scenario)
    numbers = [at for at, event in enumerate(events) if tuple(event) in kinds]
    chosen = [numbers[at] for at in sample([events[number] for number in numbers], most)]
    assert chosen, (scenario, kinds)
    faults: list[Fault] = [{"at": at, "what": kind, "lasting": lasting} for at in chosen]
    return [sound_run(client, scenario, fault, events) for fault in faults]


def sound_run(
    client: Client, scenario: str, fault: Fault, events: Sequence[Event]
) -> dict[str, Any]:
    """Run a scenario with a fault and check it; return the run."""
    run = client.run(scenario, fault, deep=True, git=False)
    assert not run["wrong"], (scenario, fault, events[fault["at"]], run)
    return run


def failures(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers of failed runs."""
    return [run["failed"] for run in runs if run["failed"]]


@pytest.mark.parametrize("what", ["ENOSPC", "EROFS", "EIO", "EACCES"])
def test_failed_archive_repair_names_the_pack_and_stays_open(client: Client, what: str) -> None:
    runs = failing_runs(client, "mend the archive", what, [("create", "other")])
    findings = [
        finding
        for answer in failures(runs)
        for finding in answer.get("checks", ())
        if "cannot be archived" in finding["detail"]
    ]
    assert findings
    assert all(finding["hint"] for finding in findings)


def test_chores_on_a_full_disk_fail_and_wait(client: Client) -> None:
    sorts = [
        ("write", "wal"),
        ("create", "other"),
        ("write", "other"),
        ("create", "temporary file"),
    ]
    runs = failing_runs(client, "chores", "ENOSPC", sorts, lasting=True)
    assert failures(runs)
    assert all(run["seconds"] < 60 for run in runs)


@pytest.mark.parametrize("what", ["ENOSPC", "EACCES"])
def test_unsaved_session_state_keeps_the_handoff_pending(client: Client, what: str) -> None:
    sorts = [("create", "other"), ("write", "other"), ("rename", "other")]
    messages = [
        answer["error"]["message"]
        for answer in failures(failing_runs(client, "hand over", what, sorts))
    ]
    assert "what the session was given cannot be kept" in messages


def test_temporary_session_state_of_a_kill_is_replaced(
    client: Client,
) -> None:
    events, _ = client.events("hand over")
    halves = [
        fault
        for fault in kills(events)
        if events[fault["at"]] == ("write", "other") and fault["what"] == "half"
    ]
    assert halves
    assert all(sound_run(client, "hand over", fault, events)["killed"] for fault in halves)


def test_temporary_pack_of_a_kill_is_replaced(client: Client) -> None:
    events, _ = client.events("forget")
    packs = [
        fault
        for fault in kills(events)
        if events[fault["at"]] in (("write", "other"), ("sync", "other"))
    ]
    assert packs
    assert all(sound_run(client, "forget", fault, events)["killed"] for fault in packs[:MOST])


@pytest.mark.parametrize("what", ["EROFS", "EACCES"])
@pytest.mark.parametrize("scenario", ["consolidate", "import own"])
def test_operation_continues_despite_a_briefly_unreadable_lock(
    client: Client, scenario: str, what: str
) -> None:
    failing_runs(client, scenario, what, [("open", "lock")], most=4 * MOST)


@pytest.mark.parametrize("what", ["EROFS", "EACCES"])
def test_rebuild_keeps_costs_despite_a_briefly_unreadable_database(
    client: Client, what: str
) -> None:
    assert failures(
        failing_runs(client, "rebuild", what, [("open", "copy of the database")], most=4 * MOST)
    )


def test_history_rewrite_without_delete_permission_is_reported(client: Client) -> None:
    runs = failing_runs(
        client, "scrub history", "EACCES", [("unlink", "git"), ("unlink", "other")], lasting=True
    )
    assert all(answer["error"]["code"] != "unexpected" for answer in failures(runs))


def test_writes_to_a_restored_transcript_are_archived_or_reported(
    client: Client,
) -> None:
    runs = failing_runs(
        client, "go on with what was restored", "EIO", [("truncate", "other"), ("write", "other")]
    )
    assert any("archived" in answer for answer in failures(runs))
