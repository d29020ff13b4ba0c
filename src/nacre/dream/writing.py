"""Has the writer look at what may say the same: which clusters, within which bounds, and what it would take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil

from nacre.dream.clusters import Cluster, clusters, fingerprint
from nacre.dream.consulting import Consultation, Outcome
from nacre.dream.questions import COMPARE, SORT, batches, size_of, words_of
from nacre.dream.third_tier import consulting_takes
from nacre.dream.values import DreamEstimate
from nacre.dream.writer import NO_WRITER, answers, writer_of
from nacre.errors import ModelRefused
from nacre.extraction.coverage import may_be_shown
from nacre.home.home import Home
from nacre.indexing.vectors import embed_memories
from nacre.llm.registry import describe
from nacre.spending.models import NONE, name_for
from nacre.spending.tracing import tracing
from nacre.text.passages import count_tokens
from nacre.values.memory import Memory
from nacre.values.model_calls import Task, Tokens
from nacre.values.reports import OnProgress
from nacre.values.review import Usage
from nacre.values.spending import DOLLAR
from nacre.values.trace import TraceKind

MOST_CLUSTERS = 120
"""So many clusters are asked about in one dream; the rest waits."""

_ASKED = "dream asked"
_MOST_ASKED = 4_000
_ANSWER_TOKENS = 200
"""What the answers about a cluster take, both looks together."""


def asked_of_writer(
    home: Home, memories: Sequence[Memory], usage: Mapping[str, Usage], *, background: bool,
    on_progress: OnProgress | None = None,
) -> tuple[Outcome, int, str | None]:  # fmt: skip
    """What a writer would make of some memories, how many clusters wait for another time, and what went wrong.

    Nothing is changed. What it answered lately it is not asked again, so that a dream that was interrupted goes on
    where it stopped. Raises ModelRefused where the model that is set cannot be opened.
    """
    with writer_of(home, background=background) as (model, why_not):
        if model is None:
            return Outcome(), 0, why_not
        wanted, unasked, note = _wanted(home, memories, name_for(home, Task.DREAM))
        consultation = Consultation(model, home.redactor, usage, home.settings.number("models.timeout_seconds"))
        with tracing(home, TraceKind.DREAM, f"{len(wanted)} clusters"):
            found, problem = _all(home, consultation, wanted, on_progress)
    return found, unasked, problem or note


_MISLED = "{} of {} answers of the writer are not used: it took for the same, or for over, what surely is not"


def _all(
    home: Home, consultation: Consultation, wanted: Sequence[Cluster], on_progress: OnProgress | None
) -> tuple[Outcome, str | None]:  # fmt: skip
    parts = batches(wanted)
    found, failed = answers(home, [partial(consultation.about, part) for part in parts], on_progress)
    good = [one for one in found if one]
    whole = Outcome(
        tuple(step for one in good for step in one.steps), tuple(step for one in good for step in one.refused),
        tuple(name for one in good for name in one.settled), sum(one.misled for one in good),
    )  # fmt: skip
    return whole, failed or (_MISLED.format(whole.misled, len(parts)) if whole.misled else None)


def estimate(
    home: Home, memories: Sequence[Memory], all_memories: Sequence[Memory] | None, project: str | None
) -> DreamEstimate:
    """What asking the writer about some memories would take, at most; with ``all_memories`` also about pages and links
    of these (tier 3). No model is asked."""
    name = name_for(home, Task.DREAM)
    if name == NONE:
        return DreamEstimate(NONE, note=NO_WRITER)
    wanted, unasked, note = _wanted(home, memories, name)
    calls = 2 * len(batches(wanted))
    asking = sum(count_tokens(words_of(one)) for one in (SORT, COMPARE)) * calls // 2
    tokens = Tokens(asking + 2 * sum(map(size_of, wanted)), _ANSWER_TOKENS * len(wanted))
    pages = pairs = 0
    if all_memories is not None:
        pages, pairs, more_calls, more = consulting_takes(home, all_memories, project, asked(home))
        calls, tokens = calls + more_calls, Tokens(tokens.input + more.input, tokens.output + more.output)
    try:
        price = describe(home.settings, name)[1].price
    except ModelRefused:
        price = None
    return DreamEstimate(
        name, len(wanted), sum(map(len, wanted)), calls, tokens.input + tokens.output,
        ceil(tokens.cost(price) * DOLLAR) if price else None, unasked, note, pages, pairs,
    )  # fmt: skip


def _wanted(home: Home, memories: Sequence[Memory], writer: str) -> tuple[list[Cluster], int, str | None]:
    """The clusters to ask about, how many are left for another time, and why there are none where nothing can tell."""
    embed_memories(home, begins=True)
    if home.vectors.model() is None:
        return [], 0, "there are no vectors to tell what is alike: nacre embed"
    known = set(asked(home))
    found = [one for one in clusters(home, memories) if fingerprint(one) not in known]
    found = [one for one in found if all(may_be_shown(home, memory, writer) for memory in one)]
    return found[:MOST_CLUSTERS], max(0, len(found) - MOST_CLUSTERS), None


def asked(home: Home) -> list[str]:
    """What the writer answered, and need not be asked about again: fingerprints of clusters, marks of pairs."""
    return list(json.loads(home.usage.value(_ASKED) or "[]"))


def note_settled(home: Home, settled: Sequence[str]) -> None:
    """These clusters and pairs are answered, and need not be asked about again. Call it in a transaction."""
    if settled:
        home.usage.set_value(_ASKED, json.dumps([*asked(home), *settled][-_MOST_ASKED:]))
