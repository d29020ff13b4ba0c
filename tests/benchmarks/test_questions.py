"""The benchmark of ``nacre review gaps``, and the border it stands on."""

from __future__ import annotations

from benchmarks.retrieval.questions import measure_grouping
from nacre.review.queue import COSINE, JACCARD


def test_vectors_group_questions_better_than_stems() -> None:
    found = {(one.by, one.border): one for one in measure_grouping()}
    vectors, stems = found["vectors", f"{COSINE}"], found["stems", f"{JACCARD}"]
    assert vectors.chosen_on.precision >= 0.95
    assert vectors.held_out.precision >= 0.95
    assert vectors.held_out.recall > stems.held_out.recall
    assert vectors.chosen_on.recall > stems.chosen_on.recall
