"""A first look at nacre: read what the agents of this machine wrote, show what was learned, answer a few questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from nacre.home.home import Home
from nacre.indexing.vectors import embed_pending
from nacre.ingestion import discovery
from nacre.ingestion.ingest import ingest
from nacre.ingestion.requests import IngestOptions
from nacre.retrieval.recall import recall
from nacre.setup import examples, questions
from nacre.setup.reach import Reach, reach
from nacre.transcripts.registry import get_adapter
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter, RecallQuery, RecallResult
from nacre.values.reports import IngestReport, OnProgress

SECONDS_FOR_VECTORS = 20.0
"""How long a first look may take over vectors before it answers; its face goes on with the rest afterwards."""

MAX_BEST = 12
MAX_ANSWERS = 3

_HITS = 3
_TURNS = 2
_POOL = 24
"""Memories of each kind that are weighed for the best; some may be those of examples."""

_LOOKED_AT = 50
_KIND_DISCOUNT = 0.5
"""What each memory of a kind takes from the importance of the next one: a table of twelve rules teaches little."""

_EXAMPLE_QUESTIONS = (
    "Why did hivelog move away from SQLite?",
    "Which search does choirbook use, and why?",
    "中文歌词用什么字体？",
)
Origin = Literal["discovered", "examples"]


@dataclass(frozen=True, slots=True)
class SampleAnswer:
    """A question to the memories just made, and what recall answered."""

    question: str
    result: RecallResult


@dataclass(frozen=True, slots=True)
class QuickstartResult:
    """What a first look found.

    ``source`` says whether transcripts were found on this machine, or the example sessions stood in for them.
    ``tools`` counts the transcripts by the label of the tool that wrote them. ``best`` are the memories to show,
    the best first; ``answers`` were all found, each with evidence. ``changed`` is the name of the file that most
    sessions changed, and how many did, where more than one did. ``has_examples``: example sessions are in the home,
    also of an earlier look.
    """

    source: Origin
    report: IngestReport
    tools: dict[str, int]
    best: tuple[Memory, ...]
    answers: tuple[SampleAnswer, ...]
    reach: Reach
    changed: tuple[str, int] | None = None
    has_examples: bool = False


def run_quickstart(
    home: Home,
    on_progress: OnProgress | None = None,
    *,
    seconds_for_vectors: float = SECONDS_FOR_VECTORS,
) -> QuickstartResult:
    """Read what discovery finds under the home, else the example sessions; a second run doubles nothing."""
    source: Origin = "discovered"
    files = [file.path for file in discovery.find(home, (), with_discovery=True).files]
    report = ingest(home, IngestOptions(discover=True, vectors=False), on_progress)
    if not _were_heard(home, files):
        source = "examples"
        files = examples.lay_out(home)
        found, report = report, ingest(home, IngestOptions(paths=tuple(files), vectors=False), on_progress)
        report = replace(report, problems=(*found.problems, *report.problems))
    made = embed_pending(home, on_progress or (lambda _: None), seconds=seconds_for_vectors)
    report = replace(report, vectors_made=made.made, vectors_left=made.left, vectors_note=made.note)
    best = _best_memories(home, own=source == "discovered")
    answers = _examples_answered(home) if source == "examples" else _best_answered(home, best)
    return QuickstartResult(
        source, report, _tools(home, files), best, tuple(islice(answers, MAX_ANSWERS)), reach(home), _changed(home),
        bool(examples.present(home)),
    )  # fmt: skip


def _changed(home: Home) -> tuple[str, int] | None:
    found = home.deeds.most_changed()
    return (re.split(r"[\\/]", found[0])[-1], found[1]) if found and found[1] > 1 else None


def _best_memories(home: Home, *, own: bool) -> tuple[Memory, ...]:
    """Up to twelve memories to show: by importance, with a preference for kinds not shown yet, then the newest.

    ``own``: none that examples taught.
    """
    rows = [
        row
        for kind in Kind
        for row in home.selection.browse_memories(Filter(kinds=(kind,)), limit=_POOL, today=home.today())
    ]
    every = home.memories.by_rows(rows).values()
    found = [memory for memory in every if not (own and examples.is_from_one(home, memory.source.file))]
    waiting = sorted(found, key=lambda memory: (memory.created, memory.id), reverse=True)
    chosen: list[Memory] = []
    kinds: Counter[Kind] = Counter()
    while waiting and len(chosen) < MAX_BEST:
        best = max(waiting, key=lambda memory: memory.importance - _KIND_DISCOUNT * kinds[memory.kind])
        waiting.remove(best)
        chosen.append(best)
        kinds[best.kind] += 1
    return tuple(chosen)


def _were_heard(home: Home, files: Iterable[Path]) -> bool:
    """Whether anything was said in these transcripts: a tool that was only ever started leaves files, too."""
    paths = {str(path) for path in files}
    return any(session.file in paths for session in home.sessions.newest(limit=_LOOKED_AT))


def _tools(home: Home, files: Iterable[Path]) -> dict[str, int]:
    paths = {str(path) for path in files}
    counts = Counter(file.tool for file in home.sessions.seen_files() if file.path in paths)
    return {get_adapter(tool).label: count for tool, count in counts.most_common()}


def _examples_answered(home: Home) -> Iterator[SampleAnswer]:
    for question in _EXAMPLE_QUESTIONS:
        result = _ask(home, question)
        if result.hits:
            yield SampleAnswer(question, result)


def _best_answered(home: Home, best: Sequence[Memory]) -> Iterator[SampleAnswer]:
    """Questions after the best memories, one a kind as far as kinds go, then after what came up in several sessions;
    only those whose answer is found.
    """
    asked: set[str] = set()
    for memory in _by_turns(best):
        question = questions.about(memory)
        if question is None or question in asked:
            continue
        asked.add(question)
        result = _ask(home, question)
        if any(hit.memory.id == memory.id and hit.evidence for hit in result.hits):
            yield SampleAnswer(question, result)
    for question, thing in questions.about_sessions(home):
        result = _ask(home, question)
        found = (hit.turn.text for hit in result.turns[:1]) if not result.hits else ()
        if questions.says(found, thing):
            yield SampleAnswer(question, result)


def _by_turns(best: Sequence[Memory]) -> list[Memory]:
    """The best of each kind, then the second best of each, and so on."""
    seen: Counter[Kind] = Counter()
    ranked = []
    for at, memory in enumerate(best):
        ranked.append((seen[memory.kind], at, memory))
        seen[memory.kind] += 1
    return [memory for *_, memory in sorted(ranked, key=lambda item: item[:2])]


def _ask(home: Home, question: str) -> RecallResult:
    return recall(home, RecallQuery(question, limit=_HITS, turns=_TURNS, confident=True, update=False))
