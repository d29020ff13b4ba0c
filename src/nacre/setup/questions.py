"""Questions that a person would ask about what is there: after a memory, or after what came up again and again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from nacre.extraction.reading.speech import utterances
from nacre.extraction.rules.findings import subject_of
from nacre.home.home import Home
from nacre.setup.examples import is_one
from nacre.text.passages import STOP_WORDS
from nacre.text.time_expressions import find_window
from nacre.values.memory import Kind, Memory

_QUESTIONS = {
    Kind.DECISION: ("What did we decide about {}?", "关于{}，我们决定了什么？"),
    Kind.PREFERENCE: ("What is my rule about {}?", "关于{}，我有什么要求？"),
    Kind.LESSON: ("What did we learn about {}?", "关于{}，我们学到了什么？"),
    Kind.TODO: ("What is left to do about {}?", "关于{}，还要做什么？"),
    Kind.EVENT: ("What happened with {}?", "关于{}，发生了什么？"),
}
_ANY_KIND = ("What do we know about {}?", "关于{}，我们知道什么？")
_SAID = "What did we say about the {}?"

_HAN = re.compile(r"[\u4e00-\u9fff]")
_MOST_HAN = 12
_PHRASE = re.compile(r"[\w./-]{2,}(?: [\w./'-]+){0,4}")
_CAPITALISED = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z]\w*[a-z]\w*|\w+[a-z][A-Z]\w*)(?: [A-Z]\w+)?")
"""A word that is written like a name within a sentence."""

_NOUNS = re.compile(r"\b(?:the|our|my) ([A-Za-z][\w-]+\w [A-Za-z][\w-]+\w)(?=[\s,.;:!?)]|$)")
"""Two words after an article, which are a thing more often than not."""

_VAGUE = frozenset(
    """active actual best better current different existing first following full good last latest main new
    next old other right same second separate whole""".split()
)
_PREPOSITIONS = frozenset(
    """across against along among around behind beneath beside beyond despite except inside near onto outside past per
    since throughout toward upon versus via vs within without""".split()
)
"""Those that are no stop words: what an article and a word stand before ends there."""
_SESSIONS = 200
_ENOUGH = 2
"""Sessions in which the owner speaks of a thing, before a question asks for it."""


def about(memory: Memory) -> str | None:
    """A question in plain words that a memory answers; ``None`` where its words give none that a person would ask."""
    spaced, unspaced = _QUESTIONS.get(memory.kind, _ANY_KIND)
    subject = memory.subject
    if _HAN.search(subject):
        return unspaced.format(subject) if len(subject) <= _MOST_HAN and not subject.endswith("…") else None
    if subject != subject_of(memory.content) and _PHRASE.fullmatch(subject):
        return spaced.format(_within_a_sentence(memory))
    name = next((one for one in _NAME.findall(memory.content) if not _is_time(one, memory.created)), None)
    if name:
        return spaced.format(name)
    things = list(_things(memory.content))
    return spaced.format(f"the {things[0]}") if things else None


def about_sessions(home: Home) -> list[tuple[str, str]]:
    """Questions after what the owner spoke of in several sessions, the most first, each with the words it is about."""
    spoken: defaultdict[str, set[int]] = defaultdict(set)
    for one in home.sessions.newest(limit=_SESSIONS):
        if is_one(home, one):
            continue
        said = (part.text for spoken_by in utterances(home.sessions.whole(one.row)) for part in spoken_by.statements)
        for thing in {thing for text in said for thing in _things(text)}:
            spoken[thing].add(one.row)
    often = sorted((-len(sessions), thing) for thing, sessions in spoken.items() if len(sessions) >= _ENOUGH)
    return [(_SAID.format(thing), thing) for _, thing in often]


def says(texts: Iterable[str], thing: str) -> bool:
    """Whether any of the texts speaks of a thing."""
    return any(thing in text.lower() for text in texts)


def _things(text: str) -> Iterator[str]:
    for match in _NOUNS.finditer(text):
        thing = match.group(1).lower()
        if not (STOP_WORDS | _VAGUE | _PREPOSITIONS).intersection(thing.split()):
            yield thing


def _is_time(name: str, now: datetime) -> bool:
    """Whether a name is that of a month or a day, about which nobody asks."""
    return any(find_window(f"{at} {name}", now) for at in ("in", "on"))


def _within_a_sentence(memory: Memory) -> str:
    """The subject without the capital of its first word, unless the memory uses that word as a name."""
    first = memory.subject.split(" ", 1)[0]
    is_name = re.search(rf"[^\s.!?:]\s+{re.escape(first)}(?!\w)", memory.content)
    if is_name or not _CAPITALISED.fullmatch(first):
        return memory.subject
    return memory.subject[0].lower() + memory.subject[1:]
