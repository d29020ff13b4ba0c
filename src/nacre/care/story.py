"""The story of a home: what happened in it, and what questions it can answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from nacre.base.frozen import frozen
from nacre.base.text import STOP_WORDS
from nacre.base.times import find_window
from nacre.home.home import Home
from nacre.home.views import SessionLine
from nacre.learn import reading, sentences
from nacre.recall import recall
from nacre.sessions import search, topics
from nacre.setup import examples
from nacre.values.memory import Kind, Memory, SessionFilter
from nacre.values.recall import Filter, HitConfidence, RecallQuery, TurnHit
from nacre.values.session import LargestChange, SessionKind, StoredSession

_SESSIONS = 4
_CHANGES = 3
_DECISIONS = 2
_QUESTIONS = 3
_CANDIDATES = 5
_SAMPLE = 60
_ATTEMPTS = 12
_OF_A_KIND = 2
_HITS = 3
_MIN_MENTIONS = 2


@frozen
class Story:
    """Highlights of a home. Example sessions are included only if there are no others."""

    sessions: tuple[SessionLine, ...]
    changes: tuple[LargestChange, ...]
    decisions: tuple[Memory, ...]
    questions: dict[str, HitConfidence]
    candidates: tuple[Memory, ...]


def story(home: Home) -> Story:
    """Return recent sessions, large changes, decisions, and questions that recall can answer."""
    newest = home.sessions.newest(SessionFilter(kind=SessionKind.MAIN), limit=_SAMPLE)
    sessions = [stored for stored in newest if not examples.is_example(home, stored.file)] or newest
    is_own = sessions is not newest
    memories = [
        memory
        for memory in latest_memories(home, Filter(), _SAMPLE)[0]
        if not (is_own and examples.is_example(home, memory.source.file))
    ]
    memories.sort(
        key=lambda memory: (
            memory.kind is Kind.DECISION,
            memory.importance,
            memory.created,
            memory.id,
        ),
        reverse=True,
    )
    changes = home.deeds.largest_changes(_ATTEMPTS, without=examples.folder(home) if is_own else "")
    questions = _questions(home, memories, sessions, changes)
    return Story(
        tuple(_line(home, stored) for stored in sessions[:_SESSIONS]),
        tuple(changes[:_CHANGES]),
        tuple(memory for memory in memories if memory.kind is Kind.DECISION)[:_DECISIONS],
        dict(islice(_answerable(home, questions), _QUESTIONS)),
        tuple(candidate.memory for candidate in home.candidates.pending()[:_CANDIDATES]),
    )


def latest_memories(home: Home, selection: Filter, limit: int) -> tuple[list[Memory], int]:
    """Return up to ``limit`` matching memories, newest first, and the number of all matches."""
    rows, total = home.selection.list_memories(selection, limit=limit, offset=0, today=home.today())
    return list(home.memories.by_rows(rows).values()), total


def _line(home: Home, stored: StoredSession) -> SessionLine:
    turns = home.sessions.all_turns(stored.row)
    ending = topics.outcome(turns, sentences.utterances(turns)).ending
    return SessionLine(stored, search.opening_of(home, stored), ending=ending)


# -- Questions about memories, session subjects and files -------------------------------------------


_ABOUT = {
    Kind.DECISION: ("What did we decide about {}?", "关于{}，我们决定了什么？"),
    Kind.PREFERENCE: ("What is my rule about {}?", "关于{}，我有什么要求？"),
    Kind.LESSON: ("What did we learn about {}?", "关于{}，我们学到了什么？"),
    Kind.TODO: ("What is left to do about {}?", "关于{}，还要做什么？"),
    Kind.EVENT: ("What happened with {}?", "关于{}，发生了什么？"),
}
_ANY_KIND = ("What do we know about {}?", "关于{}，我们知道什么？")

_HAN = re.compile(r"[\u4e00-\u9fff]")
_MAX_HAN_CHARACTERS = 12
_PHRASE = re.compile(r"[\w./-]{2,}(?: [\w./'-]+){0,4}")
_CAPITALISED = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z]\w*[a-z]\w*|\w+[a-z][A-Z]\w*)(?: [A-Z]\w+)?")
"""Pattern for a word within a sentence that looks like a name."""

_NOUNS = re.compile(
    r"\b(?:the|our|my) ([A-Za-z][\w-]+\w [A-Za-z][\w-]+\w)(?<!ed|ly)(?<!ing)(?=[\s,.;:!?)]|$)"
)
"""Pattern for two words after "the", "our" or "my", which are usually a noun phrase."""

_VAGUE = frozenset(
    """active actual best better current different existing first following full good last latest main new
    next old other right same second separate whole""".split()
)
_PREPOSITIONS = frozenset(
    """across against along among around behind beneath beside beyond despite except inside near onto outside past per
    since throughout toward upon versus via vs within without""".split()
)
"""Prepositions that are not stop words. A phrase ends before them."""


def _answerable(
    home: Home, questions: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, HitConfidence]]:
    for question, text in islice(questions, _ATTEMPTS):
        query = RecallQuery(question, limit=_HITS, turns=_HITS, confident=True, update=False)
        for hit in recall.recall(home, query).ranked[:_HITS]:
            answer = hit.turn.text if isinstance(hit, TurnHit) else hit.memory.content
            if hit.confidence is not HitConfidence.WEAK and text.lower() in answer.lower():
                yield question, hit.confidence
                break


def _questions(
    home: Home,
    memories: Sequence[Memory],
    sessions: Sequence[StoredSession],
    changes: Sequence[LargestChange],
) -> Iterator[tuple[str, str]]:
    by_question = {question: memory.content for memory in memories if (question := about(memory))}
    yield from islice(by_question.items(), _OF_A_KIND)
    mentions: Counter[str] = Counter()
    for stored in sessions:
        turns = home.sessions.read_turns(stored.row)
        for utterance in sentences.utterances(turns):
            mentions.update(
                {thing for part in utterance.statements for thing in _things(part.text)}
            )
    for thing, number in mentions.most_common(_OF_A_KIND):
        if number >= _MIN_MENTIONS:
            yield f"What did we say about the {thing}?", thing
    for change in changes:
        name = re.split(r"[\\/]", change.path)[-1]
        yield f"Why did we change {name}?", name


def about(memory: Memory) -> str | None:
    """Return a question that a memory answers, or ``None`` if none would sound natural."""
    spaced, unspaced = _ABOUT.get(memory.kind, _ANY_KIND)
    subject = memory.subject
    if _HAN.search(subject):
        is_short = len(subject) <= _MAX_HAN_CHARACTERS and not subject.endswith("…")
        return unspaced.format(subject) if is_short else None
    if subject != reading.subject_of(memory.content) and _PHRASE.fullmatch(subject):
        return spaced.format(_in_sentence_case(memory))
    names = (
        name
        for name in _NAME.findall(memory.content)
        if not any(find_window(f"{at} {name}", memory.created) for at in ("in", "on"))
    )
    things = (f"the {thing}" for thing in _things(memory.content))
    thing = next(names, None) or next(things, None)
    return spaced.format(thing) if thing else None


def _things(text: str) -> Iterator[str]:
    for match in _NOUNS.finditer(text):
        thing = match.group(1).lower()
        if not (STOP_WORDS | _VAGUE | _PREPOSITIONS).intersection(thing.split()):
            yield thing


def _in_sentence_case(memory: Memory) -> str:
    first = memory.subject.split(" ", 1)[0]
    is_name = re.search(rf"[^\s.!?:]\s+{re.escape(first)}(?!\w)", memory.content)
    if is_name or not _CAPITALISED.fullmatch(first):
        return memory.subject
    return memory.subject[0].lower() + memory.subject[1:]
