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
from nacre.setup import examples
from nacre.transcripts.registry import get_adapter
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter, RecallQuery, RecallResult
from nacre.values.reports import IngestReport, OnProgress

SECONDS_FOR_VECTORS = 20.0
"""How long a first look may take over vectors; ``nacre ingest`` goes on with the rest."""

MAX_BEST = 12
MAX_ANSWERS = 3

_HITS = 3
_TURNS = 2
_POOL = 12
"""Memories of each kind that are weighed for the best."""

_LOOKED_AT = 50
_KIND_DISCOUNT = 0.5
"""What each memory of a kind takes from the importance of the next one: a table of twelve rules teaches little."""

_EXAMPLE_QUESTIONS = (
    "Why did hivelog move away from SQLite?",
    "Which search does choirbook use, and why?",
    "中文歌词用什么字体？",
)
_QUESTIONS = {
    Kind.DECISION: ("What did we decide about “{}”?", "关于{}，我们决定了什么？"),
    Kind.PREFERENCE: ("What is my rule about “{}”?", "关于{}，我有什么要求？"),
    Kind.LESSON: ("What did we learn about “{}”?", "关于{}，我们学到了什么？"),
    Kind.TODO: ("What is left to do about “{}”?", "关于{}，还要做什么？"),
    Kind.EVENT: ("What happened with “{}”?", "关于{}，发生了什么？"),
}
_ANY_KIND = ("What do we know about “{}”?", "关于{}，我们知道什么？")

_HAN = re.compile(r"[\u4e00-\u9fff]")

_PHRASE = re.compile(r"[\w./-]{2,}(?: [\w./'-]+){1,4}")
_CAPITALISED = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*")

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
    the best first; ``answers`` were all found, each with evidence.
    """

    source: Origin
    report: IngestReport
    tools: dict[str, int]
    best: tuple[Memory, ...]
    answers: tuple[SampleAnswer, ...]


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
    note = made.note or (_note_on_rest(made.left) if made.left else None)
    report = replace(report, vectors_made=made.made, vectors_left=made.left, vectors_note=note)
    best = _best_memories(home)
    answers = _examples_answered(home) if source == "examples" else _best_answered(home, best)
    return QuickstartResult(source, report, _tools(home, files), best, tuple(islice(answers, MAX_ANSWERS)))


def _best_memories(home: Home) -> tuple[Memory, ...]:
    """Up to twelve memories to show: by importance, with a preference for kinds not shown yet, then the newest."""
    rows = [
        row
        for kind in Kind
        for row in home.selection.browse_memories(Filter(kinds=(kind,)), limit=_POOL, today=home.now().date())
    ]
    found = home.memories.by_rows(rows).values()
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


def _note_on_rest(left: int) -> str:
    return f"{left:,} texts have no vector yet and are found by their words; nacre ingest goes on with them"


def _examples_answered(home: Home) -> Iterator[SampleAnswer]:
    for question in _EXAMPLE_QUESTIONS:
        result = _ask(home, question)
        if result.hits:
            yield SampleAnswer(question, result)


def _best_answered(home: Home, best: Sequence[Memory]) -> Iterator[SampleAnswer]:
    """Questions after the best memories, one a kind as far as kinds go; only those whose answer is found."""
    asked: set[str] = set()
    for memory in _askable(best):
        question = _question_about(memory)
        if question in asked:
            continue
        asked.add(question)
        result = _ask(home, question)
        if any(hit.memory.id == memory.id and hit.evidence for hit in result.hits):
            yield SampleAnswer(question, result)


def _askable(best: Sequence[Memory]) -> list[Memory]:
    """The best of each kind, then the second best of each, and so on; those with a subject that reads well first."""
    seen: Counter[tuple[bool, Kind]] = Counter()
    ranked = []
    for at, memory in enumerate(best):
        is_clumsy = not (_HAN.search(memory.subject) or _PHRASE.fullmatch(memory.subject))
        ranked.append((is_clumsy, seen[is_clumsy, memory.kind], at, memory))
        seen[is_clumsy, memory.kind] += 1
    return [memory for *_, memory in sorted(ranked, key=lambda item: item[:3])]


def _question_about(memory: Memory) -> str:
    """A question in plain words that a memory answers."""
    spaced, unspaced = _QUESTIONS.get(memory.kind, _ANY_KIND)
    if _HAN.search(memory.subject):
        return unspaced.format(memory.subject)
    return spaced.format(_within_a_sentence(memory))


def _within_a_sentence(memory: Memory) -> str:
    """The subject without the capital of its first word, unless the memory uses that word as a name."""
    first = memory.subject.split(" ", 1)[0]
    is_name = re.search(rf"[^\s.!?:]\s+{re.escape(first)}(?!\w)", memory.content)
    if is_name or not _CAPITALISED.fullmatch(first):
        return memory.subject
    return memory.subject[0].lower() + memory.subject[1:]


def _ask(home: Home, question: str) -> RecallResult:
    return recall(home, RecallQuery(question, limit=_HITS, turns=_TURNS, update=False))
