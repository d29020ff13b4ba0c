"""Measure the CPU seconds of every case, with the processes it waited for; keep slow ones on a list.

``tests/slow.toml`` maps a file, or a case in it, to the reason why it is slow: at most one case in twenty. ``make
test`` leaves those out, and ``make test-slow`` runs them. In CI, a case that takes more than two CPU seconds and is not
on the list fails the run, if it does so whenever it runs by itself.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

MOST_SECONDS = 2.0
MOST_SLOW = 0.05
_WHOLE_SUITE = 10_000
"""So many cases are collected only where nobody named some."""

_RETRIES = 3
"""A case fails the run only if it is too slow in each of this many runs on its own."""

_REFERENCE_SECONDS = 0.055
"""The CPU seconds of the calibration loop on an idle reference machine; a slower machine gets a longer limit."""

_SHOWN, _MANY = 20, 500
"""So many of the slowest are shown after so many cases."""
_NAME = "cpu_seconds"
_LIST = Path(__file__).with_name("slow.toml")


@cache
def slow_cases() -> dict[str, str]:
    """Return the file or case → why it is slow."""
    reasons: dict[str, dict[str, str]] = tomllib.loads(_LIST.read_text("utf-8"))
    return {
        f"{folder if '/' in folder else f'tests/{folder}'}/{case}": why
        for folder, cases in reasons.items()
        for case, why in cases.items()
    }


def is_slow(case: str) -> bool:
    """Return whether the list holds the file of a case, its function, or the beginning of its parameters."""
    function = case.partition("[")[0]
    if function in slow_cases() or function.partition("::")[0] in slow_cases():
        return True
    return any(case.startswith(name) for name in slow_cases() if "[" in name)


_MARKER_OF_FILE = re.compile(r"(?m)^pytestmark = pytest\.mark\.(\w+)$")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files and folders without a selected case: each worker would load them and their libraries."""
    if collection_path.is_dir():
        files = list(collection_path.rglob("test_*.py"))
    else:
        files = [collection_path] if collection_path.suffix == ".py" else []
    selected = config.option.markexpr
    return (bool(files) and not any(_may_select(selected, file) for file in files)) or None


@cache
def _may_select(selected: str, file: Path) -> bool:
    """Return whether a file may hold cases that an expression of markers selects."""
    if selected.endswith(" and slow"):
        return any(file.as_posix().endswith(case.partition("::")[0]) for case in slow_cases())
    marker = _MARKER_OF_FILE.search(file.read_text(encoding="utf-8"))
    return not marker or f"not {marker[1]}" not in selected


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
    slow = sum(item.get_closest_marker("slow") is not None for item in items)
    if len(items) >= _WHOLE_SUITE and slow > MOST_SLOW * len(items):
        raise pytest.UsageError(
            f"{slow} of {len(items)} cases are slow; at most {MOST_SLOW:.0%} may be"
        )


def _seconds() -> float:
    return sum(_spent(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _spent(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    began = _seconds()
    try:
        return (yield)
    finally:
        item.user_properties.append((_NAME, _seconds() - began))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write the seconds of each case into the file that ``NACRE_TEST_TIMES`` names.

    A line has those of the case, of the case with its fixtures, of the programs in these, and the case.
    """
    began, began_programs = _seconds(), _spent(resource.RUSAGE_CHILDREN)
    try:
        return (yield)
    finally:
        if told := os.environ.get("NACRE_TEST_TIMES"):
            spent = dict(item.user_properties).get(_NAME, 0.0)
            programs = _spent(resource.RUSAGE_CHILDREN) - began_programs
            with Path(told).open("a", encoding="utf-8") as file:
                file.write(
                    f"{spent:.3f}\t{_seconds() - began:.3f}\t{programs:.3f}\t{item.nodeid}\n"
                )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    spent = _spent_by_case(terminalreporter)
    if len(spent) >= _MANY:
        terminalreporter.section("CPU seconds of the slowest cases")
        for seconds, case in spent[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:7.2f} {case}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("CI") or reporter is None or exitstatus != pytest.ExitCode.OK:
        return
    cases = _too_slow(reporter)
    with TemporaryDirectory() as folder:
        for _ in range(_RETRIES):
            cases = _again_too_slow(cases, Path(folder))
    for case in cases:
        reporter.write_line(
            f"takes more than {MOST_SECONDS} CPU seconds and is not in {_LIST.name}: {case}"
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _too_slow(reporter: pytest.TerminalReporter) -> list[str]:
    """The cases that belong on the list, of a run that leaves out those that are on it."""
    if "not slow" not in reporter.config.option.markexpr:
        return []
    return [case for seconds, case in _spent_by_case(reporter) if seconds > MOST_SECONDS]


def _again_too_slow(cases: list[str], folder: Path) -> list[str]:
    """Return the cases that are too slow by themselves, too: beside other workers a core does less in a second."""
    if not cases:
        return []
    functions = dict.fromkeys(case.partition("[")[0] for case in cases)
    times = folder / "times"
    times.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *functions]
    environ = {**os.environ, "NACRE_TEST_TIMES": str(times)}
    before = _seconds_of_a_loop()
    subprocess.run(command, env=environ, check=False, capture_output=True)
    slowness = max(1.0, (before + _seconds_of_a_loop()) / 2 / _REFERENCE_SECONDS)
    lines = times.read_text(encoding="utf-8").splitlines() if times.exists() else []
    spent = {
        case: float(seconds) for seconds, _, _, case in (line.split("\t", 3) for line in lines)
    }
    return [case for case in cases if spent.get(case, inf) > MOST_SECONDS * slowness]


def _seconds_of_a_loop() -> float:
    """Measure the CPU seconds of a fixed computation, to compare this machine, as it is now, with the reference."""
    began = _spent(resource.RUSAGE_SELF)
    words: dict[str, int] = {}
    for number in range(400_000):
        word = str(number % 1_000)
        words[word] = words.get(word, 0) + number
    return _spent(resource.RUSAGE_SELF) - began


def _spent_by_case(reporter: pytest.TerminalReporter) -> list[tuple[float, str]]:
    reports = [item for kind in ("passed", "failed") for item in reporter.stats.get(kind, ())]
    return sorted(
        ((dict(report.user_properties).get(_NAME, 0.0), report.nodeid) for report in reports),
        reverse=True,
    )
