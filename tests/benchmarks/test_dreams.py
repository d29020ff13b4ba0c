"""The dream benchmark rewards a correct writer and ignores a writer with false claims."""

from __future__ import annotations

import pytest

from benchmarks.dataset import load_cases
from benchmarks.dreams.measuring import WAYS, DreamData, DreamResult, Year, measure
from benchmarks.dreams.writers import ORDER

DATA = load_cases(None, "dreams", DreamData)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DreamResult]:
    smaller = min(DATA.years, key=lambda year: len(year.memories))
    figures = measure(DreamData((smaller,)), tmp_path_factory.mktemp("dreams"))
    return {item.writer: item for item in figures}


@pytest.mark.parametrize("year", DATA.years, ids=lambda year: year.name)
def test_labels_name_existing_memories_and_groups_are_disjoint(year: Year) -> None:
    memory_ids = {memory.id for memory in year.memories}
    labels = year.labels
    names = [item for group in labels.same for item in group]
    assert len(set(names)) == len(names)
    pairs = (*labels.distinct, *labels.outdated, *labels.general_special)
    ids = {
        item
        for question in labels.questions
        for item in (*question.answer_ids, *question.stale_ids)
    }
    assert memory_ids >= {*names, *ids, *(item for pair in pairs for item in pair[:2])}
    assert not any(ORDER in memory.content for memory in year.memories)


def test_any_writer_loses_nothing_and_is_undone_completely(
    results: dict[str, DreamResult],
) -> None:
    assert set(results) == set(WAYS)
    assert {(result.lost, result.planted, result.is_undone) for result in results.values()} == {
        (0, 0, True)
    }


def test_correct_writer_makes_no_mistakes_and_reduces_outdated_hits(
    results: dict[str, DreamResult],
) -> None:
    well = results["well"]
    assert (well.wrong, well.wrong_ends) == (0, 0)
    assert well.merges > 0
    assert well.ends > 0
    assert well.after.stale < well.before.stale
    assert well.after.first >= well.before.first


def test_merging_or_lying_writer_changes_nothing(
    results: dict[str, DreamResult],
) -> None:
    assert [(results[way].merges, results[way].ends) for way in ("badly", "maliciously")] == [
        (0, 0),
        (0, 0),
    ]
