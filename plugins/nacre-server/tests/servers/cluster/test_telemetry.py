"""Traces and figures for OpenTelemetry: what was done and how it ended, and no word of what it was about."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from servers.cluster.collector import collecting
from servers.cluster.conftest import PATIENCE_SECONDS, Api, key_of
from servers.spaces.conftest import Server
from tests.cli.conftest import Nacre, command, environment
from tests.processes import Processes

_FACT = "The ferry timetable is kept in the file tides.csv."
_TRACE, _SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def _parent(span: Any) -> tuple[str, str]:
    return span.trace_id.hex(), span.parent_span_id.hex()


def test_collector_gets_a_child_span_for_each_operation(
    team: Server, api: Callable[..., Api]
) -> None:
    ben, rita = key_of(team, "ben"), key_of(team, "rita")
    below = {"traceparent": f"00-{_TRACE}-{_SPAN}-01"}
    with collecting() as collector:
        one = api("--otlp", collector.url)
        one.post("store", {"content": _FACT, "scope": "personal"}, ben)
        one.post("store", {"content": _FACT}, rita)
        one.post("list", {}, rita | below)
        one.tool("memory_search", {"query": "where is the timetable?"}, rita | below)
        assert one.end() == 0
    spans = {(span.name, span.attributes[0].value.string_value): span for span in collector.spans()}
    below_it = {name for name, one in spans.items() if _parent(one) == (_TRACE, _SPAN)}
    assert below_it == {("list", "ok"), ("place", "ok"), ("recall", "ok")}
    assert not spans["store", "ok"].parent_span_id
    counts = collector.counts("nacre.requests.duration")
    assert (counts["ok", "store"], counts["not_allowed", "store"], counts["ok", "recall"]) == (
        1,
        1,
        1,
    )
    assert collector.services() == {"nacre-api"}
    for word in (b"ferry", b"timetable", b"ben", b"rita"):
        assert word not in collector.sent


def test_worker_reports_its_jobs_to_the_collector(
    team: Server, process: Nacre, processes: Processes
) -> None:
    process("server", "cluster", "migrate")
    team.opened("anna").call("store", content=_FACT)
    with collecting() as collector:
        worker = processes.start(
            command("server", "cluster", "worker", "--otlp", collector.url, "--every", "0.2"),
            env=environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert worker.stdout
        next(line for line in iter(worker.stdout.readline, "") if "anna: done" in line)
        worker.terminate()
        worker.communicate(timeout=PATIENCE_SECONDS)
    assert {span.name for span in collector.spans()} == {"tend"}
    assert collector.counts("nacre.jobs.duration").keys() == {("ok", "tend")}
    assert collector.services() == {"nacre-worker"}
    assert b"anna" not in collector.sent


def test_unreachable_collector_is_reported_once_and_fails_no_request(
    team: Server, api: Callable[..., Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        address = collector.url
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    one = api("--otlp", address)
    for _ in range(3):
        assert one.post("recall", {"text": "where?"}, key_of(team, "ben")).status_code == 200
    one.process.terminate()
    said, _ = one.process.communicate(timeout=PATIENCE_SECONDS)
    assert said.count("the collector rejects data") == 1
    assert "Traceback" not in said
    assert one.process.returncode == 0


@pytest.mark.parametrize("address", ["localhost:4318", "ftp://localhost", "http://"])
def test_invalid_collector_address_is_refused(team: Server, process: Nacre, address: str) -> None:
    process("server", "cluster", "migrate")
    told = process("server", "cluster", "api", "--http", "0", "--otlp", address, code=2).err
    assert "is not the address of a collector" in told
