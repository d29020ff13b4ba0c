"""The benchmark of dreams: a writer that knows merges and ends rightly, one that lies does nothing."""

from __future__ import annotations

import pytest

from benchmarks.dataset import load_cases
from benchmarks.dreams.measuring import WAYS, DreamData, DreamResult, Year, measure
from benchmarks.dreams.writers import ORDER

DATA = load_cases(None, "dreams", DreamData)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DreamResult]:
    smaller = min(DATA.years, key=lambda year: len(year.memories))
    found = measure(DreamData((smaller,)), tmp_path_factory.mktemp("dreams"))
    return {one.writer: one for one in found}


@pytest.mark.parametrize("year", DATA.years, ids=lambda year: year.name)
def test_labels_name_existing_memories_and_groups_are_disjoint(year: Year) -> None:
    known = {one.id for one in year.memories}
    labels = year.labels
    named = [one for group in labels.same for one in group]
    assert len(set(named)) == len(named)
    pairs = (*labels.distinct, *labels.outdated, *labels.general_special)
    asked = {
        one for question in labels.questions for one in (*question.answer_ids, *question.stale_ids)
    }
    assert known >= {*named, *asked, *(one for pair in pairs for one in pair[:2])}
    assert not any(ORDER in one.content for one in year.memories)


def test_any_writer_loses_nothing_and_is_undone_completely(
    results: dict[str, DreamResult],
) -> None:
    assert set(results) == set(WAYS)
    assert {(one.lost, one.planted, one.is_undone) for one in results.values()} == {(0, 0, True)}


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
