"""Modules of nacre run when something in them is first used, once, whichever thread needs them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import nacre

SAMPLE = """
import threading
STARTED.set()
assert GO.wait(20)
COUNT.append(1)
VALUE = 7
"""


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module ``nacre.late_sample``, not imported yet."""
    monkeypatch.setattr(nacre, "__path__", [*nacre.__path__, str(tmp_path)])
    yield tmp_path / "late_sample.py"
    sys.modules.pop("nacre.late_sample", None)
    vars(nacre).pop("late_sample", None)


def test_module_runs_on_first_use(sample: Path) -> None:
    sample.write_text("VALUE = 7\n")
    module = import_module("nacre.late_sample")
    assert type(module) is not ModuleType
    assert module.VALUE == 7
    assert type(module) is ModuleType


def test_value_set_before_a_module_runs_is_preserved(sample: Path) -> None:
    sample.write_text("VALUE = 7\n")
    module = import_module("nacre.late_sample")
    module.VALUE = 8
    assert module.VALUE == 8


def test_concurrent_threads_wait_until_a_module_has_run(sample: Path) -> None:
    started, go, count = threading.Event(), threading.Event(), list[int]()
    sample.write_text(SAMPLE)
    module = import_module("nacre.late_sample")
    for name, value in {"STARTED": started, "GO": go, "COUNT": count}.items():
        ModuleType.__setattr__(module, name, value)
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(module.VALUE)) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert started.wait(20)
    go.set()
    for thread in threads:
        thread.join(20)
    assert seen == [7] * 8
    assert count == [1]


def test_failed_module_runs_again_on_next_use(sample: Path) -> None:
    sample.write_text("import nowhere_to_be_found\n")
    module = import_module("nacre.late_sample")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            _ = module.VALUE
