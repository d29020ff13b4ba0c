"""The list of slow tests names tests that exist, with reasons, and holds what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu_time import is_slow, slow_cases

PROJECT = Path(__file__).parents[2]


def test_each_slow_list_entry_names_a_test_and_reason() -> None:
    missing = []
    for name, reason in slow_cases().items():
        path, _, function = name.partition("::")
        file = PROJECT / path
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if not text or f"def {function.partition('[')[0]}" not in text or not reason:
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize(
    ("case", "slow"),
    [
        ("tests/app/test_many_processes.py::test_concurrent_ingests_learn_everything_once", True),
        ("tests/docs/test_site.py::anything[x]", True),
        ("tests/app/test_recall.py::anything", False),
    ],
)
def test_slow_cases_match_by_file_function_or_parameters(case: str, slow: bool) -> None:
    assert is_slow(case) is slow
