"""What a question asks for: its words, the names of code in it, people, and time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from nacre.retrieval.question.listing import kinds_listed
from nacre.retrieval.question.question_words import asks, without_particles
from nacre.retrieval.question.synonyms import SynonymShares
from nacre.text.passages import STOP_WORDS, identifiers, words
from nacre.text.time_expressions import Window, find_window
from nacre.values.memory import Kind

MAX_WORDS = 120
"""A pasted stack trace is a question too. Of so many distinct words the search takes the rarest that it knows."""

MAX_NAMES = 12

COMMON_TERM_SHARE = 0.3
"""Of its weight, what a word of everyday work counts of those that a prompt is recognised by."""

_PATH_TAIL = re.compile(r"[^/\\]+[/\\][^/\\]+$")
_NAME = re.compile(r"(?<=[\w,;)\"'’”] )[\"'“(]?([A-Z][\w’'-]*)")
"""A word with a capital that begins no sentence."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST_PHRASED = 16
_HYPHENATED = re.compile(r"[A-Za-z]?[a-z]*(?:-[A-Za-z]?[a-z]*)+")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, taken apart.

    ``words`` are what the lexical lane looks for; ``names`` paths and identifiers; ``authors`` and ``projects`` the
    known people and projects it names; ``semantic`` the text the vector lane embeds (people's names left out: they
    pull towards greetings). ``telling`` are the words that an answer is recognised by: neither those that only ask
    ("what kind of"), nor people and projects, whose name is in everything about them; ``proper`` those of them that
    are written as names. ``spellings`` are identifiers as one word and as several: ``readLine`` and ``read_line``.
    ``lists`` are the kinds of memories it wants listed, where it asks for nothing in particular ("open todos").
    ``is_prompt`` says that it was typed to an agent, not to nacre; :mod:`nacre.retrieval.question.prompts` then adds
    the rest.
    ``common_terms`` are the telling words that tell little, ``synonyms`` is what stands for telling words, each with
    its share, ``leans`` are the kinds that it sounds like; ``is_about_us``: it asks what only those who ask can know;
    ``is_foreign``: it is read from another language, word by word.
    """

    text: str
    words: tuple[str, ...]
    names: tuple[str, ...]
    authors: tuple[str, ...]
    semantic: str
    window: Window | None
    projects: tuple[str, ...] = ()
    telling: tuple[str, ...] = ()
    proper: frozenset[str] = frozenset()
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    lists: tuple[Kind, ...] = ()
    is_prompt: bool = False
    common_terms: frozenset[str] = frozenset()
    synonyms: SynonymShares = field(default_factory=dict)
    leans: tuple[Kind, ...] = ()
    is_about_us: bool = False
    is_foreign: bool = False

    @property
    def is_pasted(self) -> bool:
        """Whether it is an excerpt rather than something somebody phrased."""
        return "\n" in self.text.strip() or len(self.telling) > _LONGEST_PHRASED

    @property
    def is_only_time(self) -> bool:
        """Whether nothing but a time expression is left, as in "what did we do yesterday"."""
        return self.window is not None and not self.words

    @property
    def is_open(self) -> bool:
        """Whether it asks for whatever there is of a time or of a kind."""
        return self.is_only_time or bool(self.lists)

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing in it to recognise an answer by, as in "ok, go on"."""
        return not (self.telling or self.names or self.authors or self.projects or self.window)


def read_question(
    text: str, *, now: datetime, authors: Iterable[str] = (), projects: Iterable[str] = (), ignore_time: bool = False
) -> Question:  # fmt: skip
    """Take a question apart. ``authors`` are people known from transcripts, ``projects`` known projects.

    A name counts as it is written, so that "will" is not Will; a question without capitals may mean either.
    """
    window = find_window(text, now)
    about = text.lower().replace(window.words, " ") if window else text
    wanted = [word for word in dict.fromkeys(words(without_particles(about))) if word not in STOP_WORDS]
    if window and set(wanted) <= _GENERIC:
        wanted = []
    asked_only = not wanted
    if not wanted and (ignore_time or not window):
        wanted = list(dict.fromkeys(words(text)))
    as_written = re.IGNORECASE if text == text.lower() else re.NOFLAG
    named = tuple(name for name in authors if re.search(rf"\b{re.escape(name)}\b", text, as_written))
    semantic = text
    for name in named:
        semantic = re.sub(rf"\b{re.escape(name)}(?:['’]s)?\b", " ", semantic, flags=re.IGNORECASE)
    about_projects = _named_projects(text, projects)
    known = {word for name in (*named, *about_projects) for word in words(name)}
    spellings = tuple(_spellings(text))
    wanted = list(dict.fromkeys([*wanted[:MAX_WORDS], *(word for one, parts in spellings for word in (one, *parts))]))
    silent = known | _heads(text)
    telling = () if asked_only else tuple(word for word in wanted if word not in silent and not asks(word))
    return Question(
        text=text,
        words=tuple(wanted),
        names=tuple(name for name in _parts(text) if name.lower() not in about_projects)[:MAX_NAMES],
        authors=named,
        semantic=" ".join(semantic.split()) or text,
        window=None if ignore_time else window,
        projects=about_projects,
        telling=telling,
        proper=frozenset(telling) & _proper(text),
        spellings=spellings,
        lists=kinds_listed(about, known),
    )


def _named_projects(text: str, projects: Iterable[str]) -> tuple[str, ...]:
    asked = f" {' '.join(words(text))} "
    return tuple(project for project in projects if f" {' '.join(words(project))} " in asked)


def _parts(text: str) -> Iterable[str]:
    """Identifiers, and the last two parts of every longer path: a checkout lies elsewhere on every machine."""
    found: dict[str, None] = {}
    for name in identifiers(text):
        found[name] = None
        tail = _PATH_TAIL.search(name)
        if tail and tail.start():
            found[tail.group()] = None
    return found


def _heads(text: str) -> set[str]:
    """The words of longer paths before their last two parts, which tell where a checkout lies."""
    heads: set[str] = set()
    for name in identifiers(text):
        tail = _PATH_TAIL.search(name)
        if tail and tail.start():
            heads |= set(words(name[: tail.start()])) - set(words(tail.group()))
    return heads


def _spellings(text: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Identifiers of several words, as one and as several: the index knows them as they were written."""
    for name in identifiers(text)[:MAX_NAMES]:
        if "/" in name or "\\" in name or _HYPHENATED.fullmatch(name):
            continue
        parts = tuple(dict.fromkeys(words(_HUMP.sub(" ", name))))
        if len(parts) > 1:
            yield "".join(words(_HUMP.sub(" ", name))), parts


def _proper(text: str) -> set[str]:
    """Words written as names: with a capital within a sentence, or as identifiers."""
    if text == text.upper():
        return set()
    capitals = (match.group(1) for match in _NAME.finditer(text))
    coded = (name for name in identifiers(text) if not _HYPHENATED.fullmatch(name))
    return {word for name in (*capitals, *coded) for word in words(name) if not word.isdecimal()}


_GENERIC = frozenset(
    "decide decided decision decisions learn learned learnt happen happened work worked working change changed talk "
    "talked discuss discussed agree agreed say said tell told mention mentioned going new anything everything "
    "something 决定 做 干 说 聊 提".split()
)
"""Words that ask for anything at all, once a time is named."""
