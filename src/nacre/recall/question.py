"""Analysis of questions and prompts: words, names, synonyms, kinds, times and spelling."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from nacre.base.frozen import frozen
from nacre.base.text import (
    STOP_WORDS,
    excerpt,
    identifiers,
    is_unspaced,
    words,
)
from nacre.base.text import stem as text_stem
from nacre.base.times import Window, find_window
from nacre.home.home import Home
from nacre.values.memory import Kind
from nacre.values.recall import Lane, LaneState

_QUESTION_WORDS = frozenset(
    """
    kind kinds type types sort sorts way ways name names named much many often long far likely possibly probably maybe
    might must ever never still already yet again else really actually usually consider considered describe described
    description explain explained remind show list give gave given mention mentioned say says said tell told call
    called use uses used using current currently exact exactly complete completely full overall entire main major
    first last latest recent recently new old thing things stuff something anything someone anyone item items event
    events activity activities person people somebody place places time times part parts example examples reason
    reasons cause causes caused purpose happen happens happened attend attended take takes took taken make makes made
    get gets got getting go goes went gone come comes came see saw seen know knew known find found think thought feel
    felt believe keep kept receive received have want wanted need needed start started begin began plan planned plans
    decide decided agree agreed choose chose chosen prefer preferred learn learned learnt talk talked discuss
    discussed answer question questions one two three year years month months week weeks day days date dates today
    yesterday tomorrow different various several certain specific particular able help please thanks thank ok okay yes
    yeah yep sure perfect cool great nice good fine fix hi hello hey welcome sorry continue next ready wait moment
    looks sounds right alright bye lgtm problem
    problems issue issues trouble early late
    """.split()
)
"""English words that only form a question or are small talk."""

_PARTICLES = re.compile(
    "请问|什么时候|什么样|什么|怎么样|怎么办|怎么|怎样|如何|为什么|为何|哪一个|哪个|哪里|哪儿|哪些|哪种|哪|谁|多少|多久|多长时间|多长|多大|多远|几个|是不是|有没有|"
    "是否|能不能|可不可以|我们|你们|他们|她们|咱们|我|你|他|她|它们|它|一下|还有|以及|还是|或者|因为|所以|但是|之前|之后|时候|现在|目前|"
    "当前|最近|上次|这个|那个|这些|那些|谢谢|好的|继续|可以|嗯|[的了吗呢吧啊呀嘛]"
)
"""Chinese question words and particles. If they stayed, character pairs would span two words."""


def is_question_word(word: str) -> bool:
    """Return True if a word is a single letter or a question word."""
    return word in _QUESTION_WORDS or (len(word) == 1 and word.isascii() and not word.isdecimal())


def without_particles(text: str) -> str:
    """Replace Chinese question words and particles with spaces."""
    return text if text.isascii() else _PARTICLES.sub(" ", text)


def only_asks(text: str) -> bool:
    """Return True if every sentence of a text is a question."""
    text = text.strip()
    if not text.endswith(("?", "？")):
        return False
    return all(
        part.rstrip().endswith(("?", "？")) for part in _SENTENCE_END.split(text) if part.strip()
    )


def has_question(text: str) -> bool:
    """Return True if a text contains a question."""
    return bool(_QUESTION_END.search(text))


_QUESTION_END = re.compile(r"\?(?=\s|$)|？")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


# -- Questions that ask for a list: "open todos", "what decisions were made for billing?", 待办 ----


_NAMES = {
    Kind.FACT: "fact facts 事实",
    Kind.DECISION: "decision decisions 决定 决策",
    Kind.PREFERENCE: "preference preferences convention conventions 偏好 规范",
    Kind.TODO: "todo todos task tasks reminder reminders 待办 待办事项",
    Kind.RELATIONSHIP: "relationship relationships 关系",
    Kind.EVENT: "event events 事件",
    Kind.LESSON: "lesson lessons learnings 教训 经验",
}
"""Nouns for each kind. Verbs, as in "what did we decide", do not ask for a list."""

_KINDS = {
    name: kind
    for kind, names in _NAMES.items()
    for name in sorted(names.split(), key=len, reverse=True)
}

_QUALIFIERS = frozenset(
    "open active current pending outstanding unfinished left all my our made team user".split()
)
"""Words that do not restrict a list, such as "active": every recalled memory is active."""


def kinds_listed(text: str, names: Collection[str]) -> tuple[Kind, ...]:
    """Return the kinds of memories that a question asks to list, if it names nothing else.

    Words in ``names``, which belong to names of people and projects, do not count.
    """
    kinds: dict[Kind, None] = {}
    remaining = without_particles(text.lower())
    for name, kind in _KINDS.items():
        if not name.isascii() and name in remaining:
            kinds[kind] = None
            remaining = remaining.replace(name, " ")
    for word in words(remaining):
        if word in _KINDS:
            kinds[_KINDS[word]] = None
        elif not (
            word in STOP_WORDS or word in names or word in _QUALIFIERS or is_question_word(word)
        ):
            return ()
    return tuple(kinds)


# -- Synonyms (``synonyms.toml``) ------------------------------------------------------------------
# A prompt and a memory can use different words ("PR", "pull request") or languages. Languages that
# the embedding model reads badly are translated into English.


SAME_SHARE = 0.8
"""Weight of a synonym relative to the word in the prompt."""

_MIN_STEM_LETTERS = 5
_MAX_ENDING_LETTERS = 3
"""Maximum length of the endings by which two forms of a foreign word may differ."""

_KEY_LETTERS = 3
_MIN_FILLERS = 2
_WORD_RUN = re.compile(r"[^\W_]+")

SynonymShares = Mapping[str, Mapping[str, float]]
"""The weights of the synonyms of each word in a prompt."""


class Synonyms(NamedTuple):
    """The synonyms of a prompt's words."""

    forms: SynonymShares
    terms: Mapping[str, Sequence[str]]
    """For each word, the synonyms of longer terms that contain it, such as "pull request"."""

    within: frozenset[str]
    """Pairs of Chinese characters inside a longer word."""


class Reading(NamedTuple):
    """A word-by-word translation of a foreign prompt.

    ``fillers`` are the words that a search ignores, and ``english_of`` translates the others.
    """

    fillers: frozenset[str]
    english: str
    english_of: Mapping[str, str]


class _Line(NamedTuple):
    english: tuple[str, ...]
    stems: tuple[tuple[str, ...], ...]
    latin: tuple[str, ...]
    chinese: tuple[str, ...]


class _Table(NamedTuple):
    rows: Sequence[str]
    places: Mapping[str, Sequence[int]]
    fillers: Mapping[str, frozenset[str]]


def reading(text: str) -> Reading | None:
    """Translate a foreign prompt word by word.

    Return ``None`` if the prompt is English or has no known words.
    """
    if is_unspaced(text):
        glosses = [_line(at).english[0] for _, at in _unspaced_in(text)]
        return Reading(frozenset(), " ".join(dict.fromkeys(glosses)), {}) if glosses else None
    prompt_words = words(text)
    fillers = max(
        _table().fillers.values(),
        key=lambda candidates: sum(word in candidates for word in prompt_words),
    )
    count = sum(word in fillers for word in prompt_words)
    if count < _MIN_FILLERS or count <= sum(word in STOP_WORDS for word in prompt_words):
        return None
    english_of = {
        word: _line(places[0]).english[0]
        for at, word in enumerate(prompt_words)
        if (places := _foreign_rows(prompt_words[at:]))
    }
    spelled_words = (("".join(words(word)), word) for word in _WORD_RUN.findall(text))
    gloss = dict.fromkeys(
        english_of.get(plain, word) for plain, word in spelled_words if plain not in fillers
    )
    return Reading(fillers, " ".join(gloss), english_of)


def synonyms_of(text: str, *, foreign: bool = False) -> Synonyms:
    """Return the synonyms of a prompt's words, with ``foreign`` also in other languages."""
    prompt_words = words(text)
    stems = tuple(map(text_stem, prompt_words))
    forms_of: dict[str, dict[str, float]] = {}
    terms: dict[str, Sequence[str]] = {}
    for at, word in enumerate(prompt_words):
        for place, length in _matching_rows(stems[at:]):
            _add(forms_of, word, place, without=stems[at : at + length])
            terms |= dict.fromkeys(
                prompt_words[at : at + length] if length > 1 else (), _line(place).english
            )
        for place in _foreign_rows(prompt_words[at:]) if foreign else ():
            _add(forms_of, word, place)
    within: set[str] = set()
    for phrase, place in _unspaced_in(text):
        first, *later_words = words(phrase)
        _add(forms_of, first, place)
        within.update(later_words)
    return Synonyms(forms_of, terms, frozenset(within))


def _add(
    forms_of: dict[str, dict[str, float]], word: str, place: int, without: tuple[str, ...] = ()
) -> None:
    forms = forms_of.setdefault(word, {})
    line = _line(place)
    english = (
        form for form, stems in zip(line.english, line.stems, strict=True) if stems != without
    )
    for form in (*english, *line.latin, *line.chinese):
        forms[form] = SAME_SHARE


def _matching_rows(stems: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for place in _table().places.get(stems[0][:_KEY_LETTERS], ()):
        for form in _line(place).stems:
            if stems[: len(form)] == form:
                yield place, len(form)


def _foreign_rows(foreign_words: Sequence[str]) -> list[int]:
    near = []
    for place in _table().places.get(foreign_words[0][:_KEY_LETTERS], ()):
        for form in _line(place).latin:
            parts = form.split()
            if len(parts) > 1:
                if list(foreign_words[: len(parts)]) == parts:
                    near.append((-len(parts), place))
                continue
            longest = max(len(form), len(foreign_words[0]))
            least = max(min(len(form), _MIN_STEM_LETTERS), longest - _MAX_ENDING_LETTERS)
            if form[:least] == foreign_words[0][:least]:
                near.append((abs(len(form) - len(foreign_words[0])), place))
    return [place for _, place in sorted(near)]


def _unspaced_in(text: str) -> list[tuple[str, int]]:
    if text.isascii():
        return []
    places = _unspaced()
    positions, remaining = [], text
    for form in sorted((form for form in places if form in text), key=len, reverse=True):
        if form in remaining:
            positions.append((text.index(form), form))
            remaining = remaining.replace(form, " ")
    return [(form, places[form]) for _, form in sorted(positions)]


@cache
def _unspaced() -> Mapping[str, int]:
    table = _table()
    return {
        form: at for at, row in enumerate(table.rows) for form in row.rpartition("|")[2].split()
    }


@cache
def _line(place: int) -> _Line:
    """Return a single parsed row, because parsing all rows would take too long in a hook."""
    table = _table()
    english, *latin, chinese = table.rows[place].split("|")
    forms = _forms(english)
    return _Line(
        forms,
        tuple(tuple(map(text_stem, form.split())) for form in forms),
        _forms(" ".join(latin)),
        _forms(chinese),
    )


def _forms(column: str) -> tuple[str, ...]:
    return tuple([form.replace("_", " ") for form in column.split()])


@cache
def _table() -> _Table:
    tables = tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text(encoding="utf-8"))
    rows = tables["same"].strip().splitlines()
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        for key in {form.partition("_")[0][:_KEY_LETTERS] for form in row.split()}:
            places.setdefault(key, []).append(place)
    fillers = {
        language: frozenset(words_.split()) for language, words_ in tables["fillers"].items()
    }
    return _Table(rows, places, fillers)


# -- The question ----------------------------------------------------------------------------------


MAX_WORDS = 120
"""Maximum number of distinct words to search for."""

MAX_NAMES = 12

COMMON_TERM_SHARE = 0.3
"""Weight of an everyday word in a prompt, relative to other words."""

_PATH_TAIL = re.compile(r"[^/\\]+[/\\][^/\\]+$")
_NAME = re.compile(r"(?<=[\w,;)\"'’”] )[\"'“(]?([A-Z][\w’'-]*)")
"""Matches a capitalised word that does not start a sentence."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_PHRASED_WORDS = 16
_HYPHENATED = re.compile(r"[A-Za-z]?[a-z]*(?:-[A-Za-z]?[a-z]*)+")


_ANSWER_TYPES = tuple(
    (re.compile(asks, re.IGNORECASE), re.compile(answer))
    for asks, answer in (
        (
            r"\b(?:when|until|what (?:time|day|date)|which (?:day|date|month))\b|什么时候|几点|哪天",
            r"\d|\b(?i:today|tomorrow|tonight|yesterday|week|month|(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
            r"january|february|march|april|june|july|august|september|october|november|december)\b|[天周月日点]",
        ),
        (
            r"\bhow (?:many|much|long|often|fast|big|large|far|old)\b|"
            r"\b(?:version|port|number|size|limit|percentage|rate|price|cost)\b|多少|多久|几",
            r"\d|[一二三四五六七八九十]",
        ),
        (
            r"\bwho(?:se|m)?\b|谁",
            r"(?<=[\w,;] )[A-Z][a-z]+|^[A-Z][a-z]+ (?:says|said|wants|asked)\b",
        ),
        (
            r"\b(?:why|reasons?|causes?|caused)\b|为什么|为何|原因",
            r"\b(?i:because|since|so that|due to|caused?|reason)\b|因为|由于|所以|原因",
        ),
    )
)
"""Patterns for types of questions and for their answers: times, numbers, people and reasons."""


@lru_cache(100)
def _answer_of(question: str) -> re.Pattern[str] | None:
    return next((answer for asks, answer in _ANSWER_TYPES if asks.search(question)), None)


@frozen
class Question:
    """A parsed question. :func:`as_prompt` sets ``is_prompt`` and the fields after it."""

    text: str
    words: tuple[str, ...]
    """The words for the lexical lane."""

    names: tuple[str, ...]
    """Paths and identifiers."""

    authors: tuple[str, ...]
    """The people in the question whom nacre knows."""

    semantic: str
    """The text for the vector lane, without people's names."""

    window: Window | None
    projects: tuple[str, ...] = ()
    """The projects in the question that nacre knows."""

    telling: tuple[str, ...] = ()
    """The distinctive words, without question words and known names."""

    proper: frozenset[str] = frozenset()
    """The distinctive words that are written as names."""

    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The joined and split forms of identifiers (``readLine``, ``read_line``)."""

    lists: tuple[Kind, ...] = ()
    """The kinds of memories to list ("open todos")."""

    is_prompt: bool = False
    common_terms: frozenset[str] = frozenset()
    """The everyday words in ``telling``."""

    synonyms: SynonymShares = field(default_factory=dict)
    leans: tuple[Kind, ...] = ()
    """The kinds of memories that the prompt suggests."""

    is_about_us: bool = False
    """True if the question is about the user's past."""

    is_foreign: bool = False
    """True if the prompt was translated."""

    @property
    def is_pasted(self) -> bool:
        """True if the text has several lines or is so long that it was probably pasted."""
        return "\n" in self.text.strip() or len(self.telling) > _MAX_PHRASED_WORDS

    @property
    def is_only_time(self) -> bool:
        """True if the question names only a time, as in "what did we do yesterday"."""
        return self.window is not None and not self.words

    @property
    def is_open(self) -> bool:
        """True if the question asks for all memories of one kind or period."""
        return self.is_only_time or bool(self.lists)

    @property
    def says_nothing(self) -> bool:
        """True if the question has no distinctive words, as in "ok, go on"."""
        return not (self.telling or self.names or self.authors or self.projects or self.window)

    def is_answered_by(self, text: str) -> bool:
        """Return True if a text contains an answer of the type that the question asks for."""
        answer = _answer_of(self.text)
        return bool(answer and answer.search(text))

    def excerpt(self, text: str) -> str:
        """Return the excerpt of a text that probably answers the question."""
        return excerpt(text, self.telling or self.words, answer=_answer_of(self.text))


def read_question(
    text: str,
    *,
    now: datetime,
    authors: Iterable[str] = (),
    projects: Iterable[str] = (),
    ignore_time: bool = False,
) -> Question:
    """Parse a question. ``authors`` are the people in the transcripts.

    The word "will" is the name Will only if the whole question is in lower case.
    """
    window = find_window(text, now)
    about = text.lower().replace(window.words, " ") if window else text
    search_words = [
        word for word in dict.fromkeys(words(without_particles(about))) if word not in STOP_WORDS
    ]
    if window and set(search_words) <= _GENERIC:
        search_words = []
    has_no_content = not search_words
    if not search_words and (ignore_time or not window):
        search_words = list(dict.fromkeys(words(text)))
    as_written = re.IGNORECASE if text == text.lower() else re.NOFLAG
    people = tuple(
        name for name in authors if re.search(rf"\b{re.escape(name)}\b", text, as_written)
    )
    semantic = text
    for name in people:
        semantic = re.sub(rf"\b{re.escape(name)}(?:['’]s)?\b", " ", semantic, flags=re.IGNORECASE)
    padded = f" {' '.join(words(text))} "
    about_projects = tuple(
        project for project in projects if f" {' '.join(words(project))} " in padded
    )
    name_words = {word for name in (*people, *about_projects) for word in words(name)}
    spellings = tuple(_spellings(text))
    search_words = list(
        dict.fromkeys(
            [
                *search_words[:MAX_WORDS],
                *(word for joined, parts in spellings for word in (joined, *parts)),
            ]
        )
    )
    ignored = name_words | _path_heads(text)
    telling = (
        ()
        if has_no_content
        else tuple(
            word for word in search_words if word not in ignored and not is_question_word(word)
        )
    )
    return Question(
        text=text,
        words=tuple(search_words),
        names=tuple(name for name in _parts(text) if name.lower() not in about_projects)[
            :MAX_NAMES
        ],
        authors=people,
        semantic=" ".join(semantic.split()) or text,
        window=None if ignore_time else window,
        projects=about_projects,
        telling=telling,
        proper=frozenset(telling) & _proper(text),
        spellings=spellings,
        lists=kinds_listed(about, name_words),
    )


def _parts(text: str) -> Iterable[str]:
    names: dict[str, None] = {}
    for name in identifiers(text):
        names[name] = None
        tail = _PATH_TAIL.search(name)
        if tail and tail.start():
            names[tail.group()] = None
    return names


def _path_heads(text: str) -> set[str]:
    heads: set[str] = set()
    for name in identifiers(text):
        tail = _PATH_TAIL.search(name)
        if tail and tail.start():
            heads |= set(words(name[: tail.start()])) - set(words(tail.group()))
    return heads


def _spellings(text: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name in identifiers(text)[:MAX_NAMES]:
        if "/" in name or "\\" in name or _HYPHENATED.fullmatch(name):
            continue
        parts = tuple(dict.fromkeys(words(_HUMP.sub(" ", name))))
        if len(parts) > 1:
            yield "".join(words(_HUMP.sub(" ", name))), parts


def _proper(text: str) -> set[str]:
    if text == text.upper():
        return set()
    capitals = (match.group(1) for match in _NAME.finditer(text))
    code_names = (name for name in identifiers(text) if not _HYPHENATED.fullmatch(name))
    return {
        word for name in (*capitals, *code_names) for word in words(name) if not word.isdecimal()
    }


_GENERIC = frozenset(
    "decide decided decision decisions learn learned learnt happen happened work worked working change changed talk "
    "talked discuss discussed agree agreed say said tell told mention mentioned going new anything everything "
    "something show list give summarize summarise summary recap overview finish finished agent "
    "agents 决定 做 干 说 聊 提".split()
)
"""Words that add nothing to a question about a time."""


# -- Times relative to an event: "before the migration", "迁移之后" --------------------------------
# The best matching turn dates the event.


_ENGLISH = re.compile(
    r"\b(?P<side>before|after|since|until)\s+(?:the|our|my|we|i|they)\s+(?P<event>[^?.,;!\n]{3,60})",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"(?P<event>[^\s,，。？?！!；;、]{2,12}?)(?P<side>之前|以前|之后|以后)")
_SAME_DAY = timedelta(days=1)
"""How far a period before or after an event reaches beyond the event."""

_BEFORE_WORDS = ("before", "until", "之前", "以前")


def resolve_anchor(question: Question, when: Callable[[str], datetime | None]) -> Question:
    """Add a period to a question with an expression such as "before the release".

    ``when`` returns the time of an event. A question that already names a time stays unchanged.
    """
    match = _ENGLISH.search(question.text) or _CHINESE.search(question.text)
    moment = when(match["event"].strip()) if match and not question.window else None
    if match is None or moment is None:
        return question
    window = (
        Window(None, moment + _SAME_DAY, match.group())
        if match["side"].lower() in _BEFORE_WORDS
        else Window(moment - _SAME_DAY, None, match.group())
    )
    return replace(question, window=window)


# -- Prompts to an agent, parsed as questions (most are orders) ------------------------------------


_BETWEEN = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+|,?\s+(?:and\s+)?then\s+|,\s+and\s+")
_CLAUSE_END = re.compile(r"(?<=[.!?;:,\n—–])\s+|(?<=[。！？；，：])")
_OPENING = re.compile(
    r"\W*(?:(?:ok|okay|and|but|so|now|also|then|yes|please|alright|right|und|aber|et|y|e)\b\W*)*",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:can|could|would|will|shall|may|must|should|(?:do|have)(?! (?:we|i|they|you)\b)|kann\w*|könn\w+|würd\w+|soll\w*"
    r"|peux|peut|pouvez|pourr\w+|pued\w+|podr\w+|pode\w*|por favor)\b|请|能不能|可以|帮我",
    re.IGNORECASE,
)
"""Matches the start of an order, which may be phrased as a question."""

_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_KEPT_SENTENCES = (3, 2)
_MIN_SENTENCE_WORDS = 3


def as_prompt(question: Question) -> Question:
    """Return the question adapted to a person's prompt to an agent.

    Everyday words ("add a field to the table") count less, unless it asks about past work ("which
    database are we on?"). Unknown names do not lower the confidence.
    """
    text = question.text
    if question.is_open and not asks_or_refers_back(text):
        question = replace(question, lists=(), window=None)
    gloss = reading(text)
    if gloss:
        question = replace(
            question,
            words=tuple(word for word in question.words if word not in gloss.fillers),
            telling=tuple(word for word in question.telling if word not in gloss.fillers),
            # Some languages capitalise nouns.
            proper=frozenset(),
            semantic=gloss.english or question.semantic,
        )
    synonyms = synonyms_of(text, foreign=bool(gloss))
    english = gloss.english_of if gloss else {}
    plain = frozenset(
        word for word in question.telling if text_stem(english.get(word, word)) in _common_terms()
    )
    topic = _remaining(text, "left")
    leans = () if topic is None else (Kind.TODO,)
    if (
        leans
        and not question.is_open
        and not {*question.telling}.intersection(words(without_particles(topic or ""))) - plain
    ):
        question = replace(question, lists=leans)
    common_terms = plain - {
        word
        for word, names in synonyms.terms.items()
        if _common_terms().isdisjoint(map(text_stem, names))
    }
    capitals = _CAPITALS.findall(text)
    text_words = set(words(text))
    return replace(
        question,
        is_prompt=True,
        telling=tuple(word for word in question.telling if word not in synonyms.within),
        synonyms={
            word: synonyms.forms[word]
            if word in common_terms
            else {
                form: share * (COMMON_TERM_SHARE if text_stem(form) in _common_terms() else 1)
                for form, share in synonyms.forms[word].items()
            }
            for word in question.telling
            if word in synonyms.forms
        },
        common_terms=common_terms,
        is_about_us=any(
            not (text_words.isdisjoint(question_words) or text_words.isdisjoint(us))
            if not is_unspaced(next(iter(us)))
            else any(word in text for word in question_words) and any(word in text for word in us)
            for question_words, us in _languages()
        ),
        is_foreign=gloss is not None,
        leans=leans,
        proper=question.proper
        - {word for name in (*identifiers(text), *capitals) for word in words(name)},
    )


def parts_of(prompt: str) -> list[str]:
    """Return the sentences of a prompt, or nothing for a single one.

    Of a long prompt, return only the first three and the last two.
    """
    parts = [
        part.strip()
        for part in _BETWEEN.split(prompt)
        if len(part.split()) >= _MIN_SENTENCE_WORDS or is_unspaced(part)
    ]
    sentences = [part for part in parts if part]
    return (
        []
        if len(sentences) < 2
        else sentences
        if len(sentences) <= sum(_KEPT_SENTENCES)
        else sentences[: _KEPT_SENTENCES[0]] + sentences[-_KEPT_SENTENCES[1] :]
    )


def is_common_name(name: str) -> bool:
    """Return True if a name consists only of everyday words."""
    return all(text_stem(word) in _common_terms() for word in words(name))


def asks_or_refers_back(prompt: str) -> bool:
    """Return True if a prompt asks a question or refers to earlier work."""
    return refers_back(prompt) or asks(prompt)


def asks(prompt: str) -> bool:
    """Return True if a prompt asks a question, even without a question mark.

    An order such as "can you …?" does not count.
    """
    clauses = [_OPENING.sub("", clause, count=1) for clause in _CLAUSE_END.split(prompt.rstrip())]
    return any(
        clause.endswith(("?", "？"))
        or any(
            not question_words.isdisjoint(words(clause)[:1])
            or any(word in clause for word in question_words if is_unspaced(word))
            for question_words, _ in _languages()
        )
        for clause in clauses
        if not _ORDER.match(clause)
    )


def asks_or_orders(prompt: str) -> bool:
    """Return True if a prompt contains a question or begins with an order ("can you …")."""
    return has_question(prompt) or bool(_ORDER.match(_OPENING.sub("", prompt, count=1)))


def refers_back(prompt: str) -> bool:
    """Return True if a prompt refers to earlier work ("the way we did it")."""
    return _remaining(prompt, "back") is not None


def _remaining(text: str, name: str) -> str | None:
    padded = text if is_unspaced(text) else f" {' '.join(words(text))} "
    remaining = padded
    for phrase in _phrases()[name].replace("\n", ",").split(","):
        phrase = phrase.strip()
        if phrase:
            remaining = remaining.replace(f" {phrase} " if phrase.isascii() else phrase, " ")
    return None if remaining == padded else remaining


@cache
def _languages() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    lines = (line.split("|") for line in _phrases()["about_us"].strip().splitlines())
    return tuple(
        (frozenset(question_words.split()), frozenset(us.split())) for question_words, us in lines
    )


@cache
def _phrases() -> Mapping[str, str]:
    return tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))


@cache
def _common_terms() -> frozenset[str]:
    tables = tomllib.loads(
        Path(__file__).with_name("common_terms.toml").read_text(encoding="utf-8")
    )
    return frozenset(text_stem(word) for words in tables.values() for word in words.split())


# -- Spelling correction ---------------------------------------------------------------------------
# Each unknown word is replaced with the most similar known one. This is opt-in, because most unknown
# words are correct.


LEAST_CHARACTERS = 4
"""Minimum length of a word to correct."""

_TWO_SLIPS_MIN_CHARACTERS = 7
"""Minimum length of a word that can contain two mistakes instead of one."""

_WORD = re.compile(r"[^\W\d_]+")
_MAX_UNKNOWN_WORDS = 12
_MAX_TEXTS = 20
_ENDINGS = (
    "",
    "e",
    "s",
    "es",
    "ed",
    "ing",
    "ion",
    "ions",
    "ate",
    "ated",
    "ation",
    "er",
    "ers",
    "ly",
    "ment",
    "y",
)
"""Endings that the index removes."""

_MAX_ENDING_CHARACTERS = max(map(len, _ENDINGS))


def correct_spelling(home: Home, text: str) -> tuple[str, Lane]:
    """Return a question with its spelling corrected, and the corrections."""
    question_words = [match.group().lower() for match in _WORD.finditer(text)]
    question_words = [
        word
        for word in dict.fromkeys(question_words)
        if word.isascii() and len(word) >= LEAST_CHARACTERS
    ]
    authors, projects = home.sessions.authors(), home.sessions.projects()
    known_words = {word for name in (*authors, *projects) for word in words(name)} | STOP_WORDS
    unknown = [word for word in question_words if word not in known_words][:_MAX_UNKNOWN_WORDS]
    terms = home.memory_search.terms(unknown)
    in_memories = home.memory_search.corpus(terms).frequencies
    in_turns = home.turn_search.corpus(terms).frequencies
    unknown = [
        term.word
        for term, *counts in zip(terms, in_memories, in_turns, strict=True)
        if not any(counts)
    ]
    corrections = {word: near for word in unknown if (near := _nearest(home, word))}
    if not corrections:
        return text, Lane(
            "spelling", LaneState.RAN, "no unknown word is near a known one" if unknown else None
        )
    corrected = _WORD.sub(lambda match: corrections.get(match.group().lower(), match.group()), text)
    note = "; ".join(f"{word} read as {near}" for word, near in corrections.items())
    return corrected, Lane("spelling", LaneState.RAN, note)


def _nearest(home: Home, word: str) -> str | None:
    slips = 2 if len(word) >= _TWO_SLIPS_MIN_CHARACTERS else 1
    least, most = (
        max(LEAST_CHARACTERS - 1, len(word) - _MAX_ENDING_CHARACTERS - 1),
        len(word) + slips,
    )
    counts: dict[str, int] = {}
    for search in (home.memory_search, home.turn_search):
        # The first letter is seldom wrong, but can be swapped with the second.
        for initial in {word[0], word[1]}:
            for stem, count in search.vocabulary(initial, least, most):
                counts[stem] = counts.get(stem, 0) + count
    near = _within(word, counts, slips)
    if not near:
        return None
    best = min(near, key=lambda stem: (near[stem], -counts[stem], stem))
    return _as_written(home, best, word)


def _within(word: str, stems: Iterable[str], slips: int) -> Mapping[str, int]:
    pairs = _pairs(word)
    distances = {}
    for stem in stems:
        own = _pairs(stem)
        if not stem.isalpha() or len(pairs & own) < len(own) - 2 * slips - 1:
            continue
        forms = [
            stem + ending
            for ending in _ENDINGS
            if abs(len(stem) + len(ending) - len(word)) <= slips
        ]
        distance = min((slip_count(word, form) for form in forms), default=slips + 1)
        if distance <= slips:
            distances[stem] = distance
    return distances


def _pairs(word: str) -> set[str]:
    framed = f" {word} "
    return {framed[at : at + 2] for at in range(len(framed) - 1)}


def slip_count(word: str, other: str) -> int:
    """Return the optimal string alignment distance of two words."""
    before: Sequence[int] = ()
    last = list(range(len(other) + 1))
    for row, letter in enumerate(word, start=1):
        line = [row]
        for column, against in enumerate(other, start=1):
            cost = min(line[-1] + 1, last[column] + 1, last[column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == against:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, last = last, line
    return last[-1]


def _as_written(home: Home, stem: str, misspelt: str) -> str:
    memories = home.memories.by_rows(home.memory_search.rows_of_stem(stem, _MAX_TEXTS))
    stored_turns = home.sessions.by_rows(home.turn_search.rows_of_stem(stem, _MAX_TEXTS))
    texts = [
        *(f"{item.subject} {item.content} {' '.join(item.tags)}" for item in memories.values()),
        *(stored.turn.text for stored in stored_turns.values()),
    ]
    candidates = {
        word for text in texts for word in words(text) if stem in home.database.stems(word)
    }
    return min(candidates, key=lambda word: (slip_count(misspelt, word), word), default=stem)
