"""Has the writer look at what may say the same: which clusters, within which bounds, and what it would take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from math import ceil

from nacre.dream.clusters import Cluster, clusters, fingerprint
from nacre.dream.consulting import Consultation, Outcome
from nacre.dream.questions import COMPARE, SORT, batches, size_of, words_of
from nacre.dream.values import DreamEstimate
from nacre.errors import ModelRefused, NacreError
from nacre.extraction.coverage import is_covered
from nacre.extraction.with_model import rests
from nacre.home.home import Home
from nacre.indexing.vectors import embed_memories
from nacre.llm.registry import describe
from nacre.spending.models import NONE, model_for, name_for
from nacre.spending.parallel import Answered, ask_all, is_final
from nacre.spending.tracing import tracing
from nacre.text.passages import count_tokens
from nacre.values.memory import Memory
from nacre.values.model_calls import Task, Tokens
from nacre.values.reports import OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.spending import DOLLAR
from nacre.values.trace import TraceKind

MOST_CLUSTERS = 120
"""So many clusters are asked about in one dream; the rest waits."""

_ASKED = "dream asked"
_MOST_ASKED = 4_000
_AT_ONCE = 3
_ANSWER_TOKENS = 200
"""What the answers about a cluster take, both looks together."""

Ask = Callable[[], Outcome]


def asked_of_writer(
    home: Home, memories: Sequence[Memory], usage: Mapping[str, Usage], *, background: bool,
    on_progress: OnProgress | None = None,
) -> tuple[Outcome, int, str | None]:  # fmt: skip
    """What a writer would make of some memories, how many clusters wait for another time, and what went wrong.

    Nothing is changed. What it answered lately it is not asked again, so that a dream that was interrupted goes on
    where it stopped. Raises ModelRefused where the model that is set cannot be opened.
    """
    name = name_for(home, Task.DREAM)
    model = model_for(home, Task.DREAM, background=background)
    if model is None:
        return Outcome(), 0, _NO_WRITER if name == NONE else "models.background is off"
    if background and rests(home):
        model.close()
        return Outcome(), 0, "the writer is paused, or waits for the mains"
    try:
        wanted, unasked, note = _wanted(home, memories, name)
        consultation = Consultation(model, home.redactor, usage, home.settings.number("models.timeout_seconds"))
        with tracing(home, TraceKind.DREAM, f"{len(wanted)} clusters"):
            found, problem = _all(home, consultation, wanted, on_progress)
    finally:
        model.close()
    return found, unasked, problem or note


_NO_WRITER = "no writer is set: nacre writer set"
_MISLED = "{} of {} answers of the writer are not used: it took for the same, or for over, what surely is not"


def _all(
    home: Home, consultation: Consultation, wanted: Sequence[Cluster], on_progress: OnProgress | None
) -> tuple[Outcome, str | None]:  # fmt: skip
    parts = batches(wanted)
    answers: list[Answered[Outcome] | NacreError | None] = []
    for start in range(0, len(parts), _AT_ONCE):
        if on_progress:
            on_progress(Progress("asking", start, len(parts)))
        questions: list[Ask] = [partial(consultation.about, part) for part in parts[start : start + _AT_ONCE]]
        answers += ask_all(home, questions, _AT_ONCE)
        if any(one is None or is_final(one) for one in answers):
            break
    good = [one.value for one in answers if isinstance(one, Answered)]
    failed = next((one for one in answers if isinstance(one, NacreError)), None)
    whole = Outcome(
        tuple(step for one in good for step in one.steps), tuple(step for one in good for step in one.refused),
        tuple(name for one in good for name in one.settled), sum(one.misled for one in good),
    )  # fmt: skip
    return whole, failed.message if failed else _MISLED.format(whole.misled, len(parts)) if whole.misled else None


def estimate(home: Home, memories: Sequence[Memory]) -> DreamEstimate:
    """What asking the writer about some memories would take, at most. No model is asked."""
    name = name_for(home, Task.DREAM)
    if name == NONE:
        return DreamEstimate(NONE, note=_NO_WRITER)
    wanted, unasked, note = _wanted(home, memories, name)
    calls = 2 * len(batches(wanted))
    asking = sum(count_tokens(words_of(one)) for one in (SORT, COMPARE)) * calls // 2
    tokens = Tokens(asking + 2 * sum(map(size_of, wanted)), _ANSWER_TOKENS * len(wanted))
    try:
        price = describe(home.settings, name)[1].price
    except ModelRefused:
        price = None
    return DreamEstimate(
        name, len(wanted), sum(map(len, wanted)), calls, tokens.input + tokens.output,
        ceil(tokens.cost(price) * DOLLAR) if price else None, unasked, note,
    )  # fmt: skip


def _wanted(home: Home, memories: Sequence[Memory], writer: str) -> tuple[list[Cluster], int, str | None]:
    """The clusters to ask about, how many are left for another time, and why there are none where nothing can tell."""
    embed_memories(home, begins=True)
    if home.vectors.model() is None:
        return [], 0, "there are no vectors to tell what is alike: nacre embed"
    asked = set(_asked(home))
    found = [one for one in clusters(home, memories) if fingerprint(one) not in asked]
    found = [one for one in found if all(_may_be_shown(home, memory, writer) for memory in one)]
    return found[:MOST_CLUSTERS], max(0, len(found) - MOST_CLUSTERS), None


def _may_be_shown(home: Home, memory: Memory, writer: str) -> bool:
    """Whether a writer may be shown a memory: it is of no project and of no session that is left out."""
    patterns = home.settings.texts("writer.exclude_projects")
    if any(fnmatch(memory.project or "", pattern) for pattern in patterns):
        return False
    named = {one for one in (memory.source.session, *(one.session for one in memory.confirmed)) if one}
    excluded = set(home.settings.texts("writer.exclude_tools"))
    if any(one.partition(":")[0] in excluded for one in named):
        return False
    sessions = [found for one in named for found in home.sessions.find(one)]
    return all(is_covered(home.settings, one, writer) for one in sessions)


def _asked(home: Home) -> list[str]:
    return list(json.loads(home.usage.value(_ASKED) or "[]"))


def note_settled(home: Home, settled: Sequence[str]) -> None:
    """These clusters are answered, and need not be asked about again. Call it in a transaction."""
    if settled:
        home.usage.set_value(_ASKED, json.dumps([*_asked(home), *settled][-_MOST_ASKED:]))
