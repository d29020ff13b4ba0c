"""What faults once found, each at the points that showed it; the whole of it is in ``test_crash.py``."""

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
"""So many points are tried, spread evenly over all that are of the sorts."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    folder = Path(
        tempfile.mkdtemp(prefix="nacre-trust-", dir=memory if os.access(memory, os.W_OK) else None)
    )
    try:
        with serving(folder) as client:
            yield client
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tried(
    client: Client,
    scenario: str,
    what: str,
    of: Sequence[Event],
    *,
    lasting: bool = False,
    most: int = MOST,
) -> list[dict[str, Any]]:
    """Runs in which calls of some sorts fail, each looked at in full; nothing is amiss in any of them."""
    events, _ = client.events(scenario)
    numbers = [at for at, event in enumerate(events) if tuple(event) in of]
    chosen = [numbers[at] for at in sample([events[number] for number in numbers], most)]
    assert chosen, (scenario, of)
    faults: list[Fault] = [{"at": at, "what": what, "lasting": lasting} for at in chosen]
    return [sound(client, scenario, fault, events) for fault in faults]


def sound(client: Client, scenario: str, fault: Fault, events: Sequence[Event]) -> dict[str, Any]:
    """A run with a fault in which nothing is amiss."""
    run = client.run(scenario, fault, deep=True, git=False)
    assert not run["wrong"], (scenario, fault, events[fault["at"]], run)
    return run


def told(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was said in runs that failed."""
    return [run["failed"] for run in runs if run["failed"]]


@pytest.mark.parametrize("what", ["ENOSPC", "EROFS", "EIO", "EACCES"])
def test_failed_archive_repair_names_the_pack_and_stays_open(client: Client, what: str) -> None:
    runs = tried(client, "mend the archive", what, [("create", "other")])
    left = [
        finding
        for said in told(runs)
        for finding in said.get("findings", ())
        if "cannot be archived" in finding["sentence"]
    ]
    assert left
    assert all(finding["repair"] for finding in left)


def test_chores_on_a_full_disk_fail_and_wait(client: Client) -> None:
    sorts = [
        ("write", "wal"),
        ("create", "other"),
        ("write", "other"),
        ("create", "temporary file"),
    ]
    runs = tried(client, "chores", "ENOSPC", sorts, lasting=True)
    assert told(runs)
    assert all(run["seconds"] < 60 for run in runs)


@pytest.mark.parametrize("what", ["ENOSPC", "EACCES"])
def test_unsaved_session_state_keeps_the_handoff_pending(client: Client, what: str) -> None:
    sorts = [("create", "other"), ("write", "other"), ("rename", "other")]
    messages = [said["error"]["message"] for said in told(tried(client, "hand over", what, sorts))]
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
    assert all(sound(client, "hand over", fault, events)["killed"] for fault in halves)


def test_temporary_pack_of_a_kill_is_replaced(client: Client) -> None:
    events, _ = client.events("forget")
    packs = [
        fault
        for fault in kills(events)
        if events[fault["at"]] in (("write", "other"), ("sync", "other"))
    ]
    assert packs
    assert all(sound(client, "forget", fault, events)["killed"] for fault in packs[:MOST])


@pytest.mark.parametrize("what", ["EROFS", "EACCES"])
@pytest.mark.parametrize("scenario", ["consolidate", "import own"])
def test_operation_continues_despite_a_briefly_unreadable_lock(
    client: Client, scenario: str, what: str
) -> None:
    tried(client, scenario, what, [("open", "lock")], most=4 * MOST)


@pytest.mark.parametrize("what", ["EROFS", "EACCES"])
def test_rebuild_keeps_costs_despite_a_briefly_unreadable_database(
    client: Client, what: str
) -> None:
    assert told(tried(client, "rebuild", what, [("open", "copy of the database")], most=4 * MOST))


def test_history_rewrite_without_delete_permission_is_reported(client: Client) -> None:
    runs = tried(
        client, "scrub history", "EACCES", [("unlink", "git"), ("unlink", "other")], lasting=True
    )
    assert all(said["error"]["code"] != "unexpected" for said in told(runs))


def test_writes_to_a_restored_transcript_are_archived_or_reported(
    client: Client,
) -> None:
    runs = tried(
        client, "go on with what was restored", "EIO", [("truncate", "other"), ("write", "other")]
    )
    assert any("archived" in said for said in told(runs))
