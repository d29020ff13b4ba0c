"""A score is what its components say: their product, whatever a memory is like and however it was used."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.recall.lanes import Ranking, score_of
from nacre.recall.ranking import diversify
from nacre.values.memory import Confidence, Expiry, Kind, Memory
from nacre.values.review import Usage

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
AGES = st.floats(0, 4_000).map(lambda days: NOW - timedelta(days=days))
MEMORIES = st.builds(
    Memory,
    id=st.just("one"),
    kind=st.sampled_from(Kind),
    subject=st.just("Ferry"),
    content=st.just("The ferry."),
    created=AGES,
    updated=AGES,
    importance=st.integers(1, 10),
    expiry=st.sampled_from(Expiry),
    confidence=st.sampled_from(Confidence),
    evergreen=st.booleans(),
)
USAGES = st.builds(
    Usage,
    recall_count=st.integers(0, 500),
    last_recalled=st.one_of(st.none(), AGES),
    quality=st.floats(0, 1),
    access_count=st.integers(0, 60),
)
RANKINGS = st.builds(
    Ranking,
    now=st.just(NOW),
    around=st.one_of(st.none(), AGES),
    radius_days=st.floats(1, 60),
    boost=st.booleans(),
    clamped=st.booleans(),
    as_seen=st.one_of(st.none(), AGES),
    prefer_kinds=st.sampled_from([(), (Kind.FACT, Kind.TODO)]),
)
LANES = st.dictionaries(
    st.sampled_from(["lexical", "vector", "name", "link"]), st.floats(0.01, 0.5), min_size=1
)


@given(
    memory=MEMORIES,
    usage=USAGES,
    ranking=RANKINGS,
    lanes=LANES,
    found=st.booleans(),
    cosine=st.floats(0.05, 1),
)
def test_components_multiply_to_the_score(
    memory: Memory,
    usage: Usage,
    ranking: Ranking,
    lanes: dict[str, float],
    found: bool,
    cosine: float,
) -> None:
    score, parts = score_of(memory, lanes, usage, ranking, found_in_text=found, cosine=cosine)
    told = parts["relevance"] * math.prod(
        value for name, value in parts.items() if name.startswith("x_")
    )
    assert told == pytest.approx(
        score, rel=0.03, abs=0.001
    )  # each component is rounded to four places
    assert 0 <= score <= 1


@given(scores=st.lists(st.floats(0.01, 1), min_size=2, max_size=12), share=st.floats(0.05, 1))
def test_diversified_scores_decrease_monotonically(scores: list[float], share: float) -> None:
    items = [
        (score, f"ferry harbour bell{number % 3} rope{number % 4}")
        for number, score in enumerate(scores)
    ]
    chosen = diversify(
        items,
        score=lambda entry: entry[0],
        text=lambda entry: entry[1],
        limit=len(items),
        relevance_share=share,
    )
    bags = [{*text.split()} for _, text in chosen]
    worths = []
    for at, (score, _) in enumerate(chosen):
        likeness = max((len(bags[at] & bag) / len(bags[at] | bag) for bag in bags[:at]), default=0)
        if likeness < 0.75:
            worths.append(share * score - (1 - share) * likeness)
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(worths))
