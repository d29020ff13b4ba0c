"""The labelled redaction sets are complete, and the targets are met on unseen sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.redaction.building import build, read_samples, write_samples
from benchmarks.redaction.measuring import is_gone, measure
from nacre.errors import InvalidInputError


@pytest.fixture(autouse=True)
def _brief_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the speed with little text, since no test uses the result."""
    monkeypatch.setattr("benchmarks.redaction.measuring._CLEAN_BYTES", 50_000)
    monkeypatch.setattr("benchmarks.redaction.measuring._REPETITIONS", 1)


def test_set_is_reproducible_and_contains_the_requested_families() -> None:
    samples = build()
    positives = [sample for sample in samples if sample.secrets]
    assert samples == build()
    assert len(positives) >= 500
    assert len({sample.family for sample in positives}) >= 60
    assert len(samples) - len(positives) >= 2000
    assert all(secret in sample.text for sample in positives for secret in sample.secrets)


@pytest.mark.parametrize("seed", [1, 20_261_120])
def test_redaction_targets_are_met(seed: int) -> None:
    result = measure(build(seed), with_scanner=False)
    assert result.own.recall >= 0.97
    assert result.own.false_positives <= 0.01


def test_custom_sample_set_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    write_samples(file, build()[:20])
    assert read_samples(file) == build()[:20]
    file.write_text(
        json.dumps({"text": "PASSWORD=hunter2hunter2", "secret": "hunter2hunter2"}) + "\n",
        encoding="utf-8",
    )
    assert measure(read_samples(file), with_scanner=False).own.recall == 1


def test_broken_sample_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text('{"text": "a"}\nno json\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match="line 2"):
        read_samples(file)


def test_partial_secret_leak_counts_as_a_leak() -> None:
    assert not is_gone("abcdefghij", "leaks abcdefg here")
    assert is_gone("abcdefghij", "leaks abc here")
