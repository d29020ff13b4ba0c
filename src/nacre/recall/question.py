"""Words that ask rather than tell: what an answer need not hold."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nacre.base.text import STOP_WORDS, identifiers, is_unspaced, words
from nacre.base.text import stem as text_stem
from nacre.base.times import Window, find_window
from nacre.home.home import Home
from nacre.values.memory import Kind
from nacre.values.recall import Lane, LaneState

_ASKING = frozenset(
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
"""The frame of a question, and what people say in passing (English)."""

_PARTICLES = re.compile(
    "请问|什么时候|什么样|什么|怎么样|怎么办|怎么|怎样|如何|为什么|为何|哪一个|哪个|哪里|哪儿|哪些|哪种|哪|谁|多少|多久|多长时间|多长|多大|多远|几个|是不是|有没有|"
    "是否|能不能|可不可以|我们|你们|他们|她们|咱们|我|你|他|她|它们|它|一下|还有|以及|还是|或者|因为|所以|但是|之前|之后|时候|现在|目前|"
    "当前|最近|上次|这个|那个|这些|那些|谢谢|好的|继续|可以|嗯|[的了吗呢吧啊呀嘛]"
)
"""The same for Chinese, which writes them without spaces: left in, every pair of characters across their border would
be looked for."""


def asks(word: str) -> bool:
    """Whether a word belongs to the asking; a single letter tells nothing either."""
    return word in _ASKING or (len(word) == 1 and word.isascii() and not word.isdecimal())


def without_particles(text: str) -> str:
    """A text without the Chinese words that only ask, whose places become spaces."""
    return text if text.isascii() else _PARTICLES.sub(" ", text)


def only_asks(text: str) -> bool:
    """Whether every sentence of a text is a question."""
    text = text.strip()
    if not text.endswith(("?", "？")):
        return False
    return all(
        part.rstrip().endswith(("?", "？")) for part in _SENTENCE_END.split(text) if part.strip()
    )


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


# ----------------------------------------------------------------------------
# Questions that ask for a list: "open todos", "what decisions were made for billing?", 待办.


_NAMES = {
    Kind.FACT: "fact facts 事实",
    Kind.DECISION: "decision decisions 决定 决策",
    Kind.PREFERENCE: "preference preferences convention conventions 偏好 规范",
    Kind.TODO: "todo todos task tasks reminder reminders 待办 待办事项",
    Kind.RELATIONSHIP: "relationship relationships 关系",
    Kind.EVENT: "event events 事件",
    Kind.LESSON: "lesson lessons learnings 教训 经验",
}
"""The plain nouns for each kind. Verbs ("what did we decide about …") ask for what was decided, not for a list."""

_KINDS = {
    name: kind
    for kind, names in _NAMES.items()
    for name in sorted(names.split(), key=len, reverse=True)
}

_QUALIFIERS = frozenset(
    "open active current pending outstanding unfinished left all my our made team user".split()
)
"""Words that such a list may be asked for with and that choose nothing: every memory in recall is active."""


def kinds_listed(text: str, known: Collection[str]) -> tuple[Kind, ...]:
    """The kinds of memories a question wants listed; none where it asks for something in particular.

    ``known`` are the words that belong to names of people and projects.
    """
    kinds: dict[Kind, None] = {}
    rest = without_particles(text.lower())
    for name, kind in _KINDS.items():
        if not name.isascii() and name in rest:
            kinds[kind] = None
            rest = rest.replace(name, " ")
    for word in words(rest):
        if word in _KINDS:
            kinds[_KINDS[word]] = None
        elif not (word in STOP_WORDS or word in known or word in _QUALIFIERS or asks(word)):
            return ()
    return tuple(kinds)


# ----------------------------------------------------------------------------
# Words that stand for each other: a prompt names what it is about otherwise than the memory does.
#
# In other words ("PR", "pull request"), by a tool of the same kind ("SQLAlchemy", where the memory
# says "no ORM"), or in
# another language. The table is ``synonyms.toml``. A prompt in a language that the model does not
# read well is read as
# English, word by word.


SAME_SHARE, KIND_SHARE = 0.8, 0.6
"""What a word that means the same counts of the very one, and what names another thing of its kind."""

_ROOT = 5
_ENDING = 3
"""A word of another language is known by its first letters, however it is inflected: at least so many, and all but so
many of the last."""

_KEY = 3
_LEAST_FILLERS = 2
_RUN = re.compile(r"[^\W_]+")

SynonymShares = Mapping[str, Mapping[str, float]]
"""For words of a prompt what stands for them, words or phrases, each with its share."""


class Synonyms(NamedTuple):
    """What stands for the words of a prompt; for the words that are part of a longer term ("pull request") what else
    that is called; and the pairs of characters that say no more than the one before, as they are of one word."""

    forms: SynonymShares
    terms: Mapping[str, Sequence[str]]
    within: frozenset[str]


class Reading(NamedTuple):
    """A prompt in another language: its words that carry no meaning, what it says, word by word, in English, and which
    word says what."""

    fillers: frozenset[str]
    english: str
    english_of: Mapping[str, str]


class _Line(NamedTuple):
    """A meaning: its forms in English, with their stems, in other languages that write words, and in Chinese."""

    english: tuple[str, ...]
    stems: tuple[tuple[str, ...], ...]
    latin: tuple[str, ...]
    chinese: tuple[str, ...]
    share: float


class _Table(NamedTuple):
    """The rows as they are written, those of the same meaning first; their places by how a word in them begins; the
    words without meaning by language."""

    rows: Sequence[str]
    same: int
    places: Mapping[str, Sequence[int]]
    fillers: Mapping[str, frozenset[str]]


def reading(text: str) -> Reading | None:
    """How a prompt in another language is read; ``None`` for English, and where nothing of it is known."""
    if is_unspaced(text):
        glosses = [_line(at).english[0] for _, at in _unspaced_in(text)]
        return Reading(frozenset(), " ".join(dict.fromkeys(glosses)), {}) if glosses else None
    said = words(text)
    fillers = max(_table().fillers.values(), key=lambda known: sum(word in known for word in said))
    count = sum(word in fillers for word in said)
    if count < _LEAST_FILLERS or count <= sum(word in STOP_WORDS for word in said):
        return None
    english_of = {
        word: _line(found[0]).english[0]
        for at, word in enumerate(said)
        if (found := _foreign(said[at:]))
    }
    written = (("".join(words(word)), word) for word in _RUN.findall(text))
    told = dict.fromkeys(
        english_of.get(plain, word) for plain, word in written if plain not in fillers
    )
    return Reading(fillers, " ".join(told), english_of)


def synonyms_of(text: str, *, foreign: bool = False) -> Synonyms:
    """What stands for the words of a prompt; ``foreign`` looks them up in other languages, too."""
    said = words(text)
    stems = tuple(map(text_stem, said))
    found: dict[str, dict[str, float]] = {}
    terms: dict[str, Sequence[str]] = {}
    for at, word in enumerate(said):
        for place, length in _beginning(stems[at:]):
            _add(found, word, place, without=stems[at : at + length])
            terms |= dict.fromkeys(
                said[at : at + length] if length > 1 else (), _line(place).english
            )
        for place in _foreign(said[at:]) if foreign else ():
            _add(found, word, place)
    within: set[str] = set()
    for form, place in _unspaced_in(text):
        first, *others = words(form)
        _add(found, first, place)
        within.update(others)
    return Synonyms(found, terms, frozenset(within))


def _add(
    found: dict[str, dict[str, float]], word: str, place: int, without: tuple[str, ...] = ()
) -> None:
    """Add what stands for a word by a line: what means the same, and what is of the same kind as that."""
    forms = found.setdefault(word, {})
    line = _line(place)
    others = (
        form for form, stems in zip(line.english, line.stems, strict=True) if stems != without
    )
    for form in (*others, *line.latin, *line.chinese):
        forms[form] = max(forms.get(form, 0.0), line.share)
    if line.share == SAME_SHARE:
        for kind, length in _beginning(line.stems[0]):
            if _line(kind).share == KIND_SHARE and length == len(line.stems[0]):
                _add(found, word, kind, line.stems[0])


def _beginning(stems: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """The lines that have an English form with which some stems begin, and of how many words it is."""
    for place in _table().places.get(stems[0][:_KEY], ()):
        for form in _line(place).stems:
            if stems[: len(form)] == form:
                yield place, len(form)


def _foreign(said: Sequence[str]) -> list[int]:
    """The meanings of the first of some words of another language, or of a term that it begins, the likeliest first."""
    near = []
    for place in _table().places.get(said[0][:_KEY], ()):
        for form in _line(place).latin:
            parts = form.split()
            if len(parts) > 1:
                if list(said[: len(parts)]) == parts:
                    near.append((-len(parts), place))
            elif _shared(form, said[0]) >= max(
                min(len(form), _ROOT), max(len(form), len(said[0])) - _ENDING
            ):
                near.append((abs(len(form) - len(said[0])), place))
    return [place for _, place in sorted(near)]


def _shared(one: str, other: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _unspaced_in(text: str) -> list[tuple[str, int]]:
    """What is known of a text without spaces, in its order; a longer form before those within it."""
    if text.isascii():
        return []
    known = _unspaced()
    found, rest = [], text
    for form in sorted((form for form in known if form in text), key=len, reverse=True):
        if form in rest:
            found.append((text.index(form), form))
            rest = rest.replace(form, " ")
    return [(form, known[form]) for _, form in sorted(found)]


@cache
def _unspaced() -> Mapping[str, int]:
    table = _table()
    return {
        form: at for at in range(table.same) for form in table.rows[at].rpartition("|")[2].split()
    }


@cache
def _line(place: int) -> _Line:
    """A line, taken apart only once a prompt has a word of it: a hook has no time for all of them."""
    table = _table()
    english, *others = table.rows[place].split("|")
    forms = _forms(english)
    latin, chinese = (" ".join(others[:-1]), others[-1]) if others else ("", "")
    share = SAME_SHARE if place < table.same else KIND_SHARE
    return _Line(
        forms,
        tuple(tuple(map(text_stem, form.split())) for form in forms),
        _forms(latin),
        _forms(chinese),
        share,
    )


def _forms(column: str) -> tuple[str, ...]:
    return tuple([form.replace("_", " ") for form in column.split()])


@cache
def _table() -> _Table:
    written = tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text(encoding="utf-8"))
    same, kinds = written["same"].strip().splitlines(), written["kinds"].strip().splitlines()
    rows = [*same, *kinds]
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        for key in {form.partition("_")[0][:_KEY] for form in row.split()}:
            places.setdefault(key, []).append(place)
    fillers = {language: frozenset(known.split()) for language, known in written["fillers"].items()}
    return _Table(rows, len(same), places, fillers)


# ----------------------------------------------------------------------------
# What a question asks for: its words, the names of code in it, people, and time.


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
    ``is_prompt`` says that it was typed to an agent, not to nacre; :mod:`nacre.recall.question` then adds
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
    text: str,
    *,
    now: datetime,
    authors: Iterable[str] = (),
    projects: Iterable[str] = (),
    ignore_time: bool = False,
) -> Question:
    """Take a question apart. ``authors`` are people known from transcripts, ``projects`` known projects.

    A name counts as it is written, so that "will" is not Will; a question without capitals may mean either.
    """
    window = find_window(text, now)
    about = text.lower().replace(window.words, " ") if window else text
    wanted = [
        word for word in dict.fromkeys(words(without_particles(about))) if word not in STOP_WORDS
    ]
    if window and set(wanted) <= _GENERIC:
        wanted = []
    asked_only = not wanted
    if not wanted and (ignore_time or not window):
        wanted = list(dict.fromkeys(words(text)))
    as_written = re.IGNORECASE if text == text.lower() else re.NOFLAG
    named = tuple(
        name for name in authors if re.search(rf"\b{re.escape(name)}\b", text, as_written)
    )
    semantic = text
    for name in named:
        semantic = re.sub(rf"\b{re.escape(name)}(?:['’]s)?\b", " ", semantic, flags=re.IGNORECASE)
    about_projects = _named_projects(text, projects)
    known = {word for name in (*named, *about_projects) for word in words(name)}
    spellings = tuple(_spellings(text))
    wanted = list(
        dict.fromkeys(
            [*wanted[:MAX_WORDS], *(word for one, parts in spellings for word in (one, *parts))]
        )
    )
    silent = known | _heads(text)
    telling = (
        ()
        if asked_only
        else tuple(word for word in wanted if word not in silent and not asks(word))
    )
    return Question(
        text=text,
        words=tuple(wanted),
        names=tuple(name for name in _parts(text) if name.lower() not in about_projects)[
            :MAX_NAMES
        ],
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


# ----------------------------------------------------------------------------
# Times told by what happened: "before the migration", "迁移之后".
#
# When it happened is looked up: the time of the turn that speaks of it most surely. The window only
# nudges turns, as any
# time does, and narrows memories where that leaves an answer.


_ENGLISH = re.compile(
    r"\b(?P<side>before|after|since|until)\s+(?:the|our|my|we|i|they)\s+(?P<event>[^?.,;!\n]{3,60})",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"(?P<event>[^\s,，。？?！!；;、]{2,12}?)(?P<side>之前|以前|之后|以后)")
_SAME_DAY = timedelta(days=1)
"""What led to an event and what followed at once is told with it."""

_BEFORE = ("before", "until", "之前", "以前")


@dataclass(frozen=True, slots=True)
class Anchor:
    """What happened, in the question's words, and on which side of it the question lies."""

    event: str
    side: str
    words: str


def find_anchor(question: Question) -> Anchor | None:
    """The event a question is told by; ``None`` when it names a time itself, or none."""
    if question.window:
        return None
    match = _ENGLISH.search(question.text) or _CHINESE.search(question.text)
    return Anchor(match["event"].strip(), match["side"].lower(), match.group()) if match else None


def anchored(question: Question, when: Callable[[str], datetime | None]) -> Question:
    """The question with the window that its event gives; ``when`` finds the time of an event."""
    anchor = find_anchor(question)
    moment = when(anchor.event) if anchor else None
    if anchor is None or moment is None:
        return question
    before = anchor.side in _BEFORE
    window = (
        Window(None, moment + _SAME_DAY, anchor.words)
        if before
        else Window(moment - _SAME_DAY, None, anchor.words)
    )
    return replace(question, window=window)


# ----------------------------------------------------------------------------
# What a person types to an agent, read as a question to the memory: most prompts are orders, not
# questions.


_BETWEEN = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+|,?\s+(?:and\s+)?then\s+")
_ASKS = re.compile(
    r"^\W*(?:so|and|ok|okay|hey|hi|now|please)?,?\s*(?:what|which|who|when|where|why|how|show|list|any|(?:are|is) there"
    r"|do (?:we|i)|did (?:we|i)|have (?:we|i)|tell me|remind me|summari[sz]e|was|welche|gibt es|quels?|quelles?|hay)\b"
    r"|什么|哪|吗|多少|有没有|列出|总结|なに|何|どの",
    re.IGNORECASE,
)
"""How a question for a list begins, in the languages that the kinds are named in and some near them."""

_SHOUTED = re.compile(r"\b[A-Z]{2,}\b")
_KEPT = (3, 2)
_LEAST_WORDS = 3


def as_prompt(question: Question) -> Question:
    """The question as a prompt asks it.

    The words of everyday work ("add a field to the table") count less than what is particular to it, and a name that
    the memory does not know is no sign that it has nothing to say: orders name what is to be made. Where a person asks
    what they themselves have done or wanted, the plain words are what it is about ("which database are we on?"). A list
    of what there is of a time or kind ("open todos") is wanted only where that is asked for.
    """
    text = question.text
    if question.is_open and not _ASKS.search(text):
        question = replace(question, lists=(), window=None)
    other = reading(text)
    if other:
        question = _in_english(question, other)
    synonyms = synonyms_of(text, foreign=bool(other))
    english = other.english_of if other else {}
    plain = frozenset(
        word for word in question.telling if text_stem(english.get(word, word)) in _common_terms()
    )
    idle = synonyms.within | {
        word for name in identifiers(text) for word in words(name) if word.isdecimal()
    }
    rest = _beside_what_is_left(text)
    leans = () if rest is None else (Kind.TODO,)
    if leans and not question.is_open and not {*question.telling}.intersection(rest or ()) - plain:
        question = replace(question, lists=leans)
    common_terms = plain - {
        word
        for word, names in synonyms.terms.items()
        if _common_terms().isdisjoint(map(text_stem, names))
    }
    return replace(
        question,
        is_prompt=True,
        telling=tuple(word for word in question.telling if word not in idle),
        synonyms={
            word: synonyms.forms[word] if word in common_terms else _sober(synonyms.forms[word])
            for word in question.telling
            if word in synonyms.forms
        },
        common_terms=common_terms,
        is_about_us=_asks_about_us(text),
        is_foreign=other is not None,
        leans=leans,
        proper=question.proper - _to_be_made(text),
    )


def _sober(forms: Mapping[str, float]) -> dict[str, float]:
    """What stands for a word that tells something: a word of everyday work does so less."""
    return {
        form: share * (COMMON_TERM_SHARE if text_stem(form) in _common_terms() else 1)
        for form, share in forms.items()
    }


def _in_english(question: Question, read: Reading) -> Question:
    """A prompt in another language, read word by word; that a noun is written large is no sign of a name there."""
    return replace(
        question,
        words=tuple(word for word in question.words if word not in read.fillers),
        telling=tuple(word for word in question.telling if word not in read.fillers),
        proper=frozenset(),
        semantic=read.english or question.semantic,
    )


def parts_of(prompt: str) -> list[str]:
    """The sentences of a prompt of several: each may touch something else, and drowns in the whole.

    Of a long prompt the first three and the last two: what it is about stands at its beginning, what is to be done at
    the end.
    """
    found = [
        part.strip()
        for part in _BETWEEN.split(prompt)
        if len(part.split()) >= _LEAST_WORDS or is_unspaced(part)
    ]
    told = [part for part in found if part]
    return (
        []
        if len(told) < 2
        else told
        if len(told) <= sum(_KEPT)
        else told[: _KEPT[0]] + told[-_KEPT[1] :]
    )


def _to_be_made(text: str) -> set[str]:
    """Names of code, and words in capitals alone: no people and places."""
    shouted = (word for word in _SHOUTED.findall(text))
    return {word for name in (*identifiers(text), *shouted) for word in words(name)}


def is_common_name(name: str) -> bool:
    """Whether a name is made of nothing but words of everyday work."""
    return all(text_stem(word) in _common_terms() for word in words(name))


def _asks_about_us(text: str) -> bool:
    """Whether it asks what only those who ask can know: what they did, have, decided or wanted."""
    said = set(words(text))
    return any(
        not (said.isdisjoint(asks) or said.isdisjoint(us))
        if text.isascii() or next(iter(us)).isascii()
        else any(word in text for word in asks) and any(word in text for word in us)
        for asks, us in _ways()[0]
    )


def _beside_what_is_left(text: str) -> list[str] | None:
    """The words beside those with which a prompt asks what is still to be done; ``None`` where it does not ask that."""
    said = f" {' '.join(words(text))} " if not is_unspaced(text) else text
    rest = said
    for phrase in _ways()[1]:
        rest = rest.replace(f" {phrase} " if phrase.isascii() else phrase, " ")
    return None if rest == said else words(without_particles(rest))


@cache
def _ways() -> tuple[tuple[tuple[frozenset[str], frozenset[str]], ...], tuple[str, ...]]:
    """How prompts ask: words that ask with words for those who ask, by language; phrases for what is left to do."""
    tables = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))
    about_us = (line.split("|") for line in tables["about_us"].strip().splitlines())
    left = (phrase.strip() for phrase in tables["left"].replace("\n", ",").split(","))
    return (
        tuple((frozenset(asks.split()), frozenset(us.split())) for asks, us in about_us),
        tuple(phrase for phrase in left if phrase),
    )


@cache
def _common_terms() -> frozenset[str]:
    tables = tomllib.loads(
        Path(__file__).with_name("common_terms.toml").read_text(encoding="utf-8")
    )
    return frozenset(text_stem(word) for words in tables.values() for word in words.split())


# ----------------------------------------------------------------------------
# Words of a question that nothing in the home holds, read as the nearest words that something does
# hold.
#
# Opt-in: what is unknown is often just that, and a word that merely looks alike would make an answer
# of silence.


LEAST_CHARACTERS = 4
"""Shorter words have too many neighbours."""

_TWO_SLIPS_FROM = 7
"""From so many characters on a word may differ in two places, below in one."""

_WORD = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 12
_TEXTS = 20
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
"""What the index takes off words: a slip within an ending keeps it from being taken off."""

_LONGEST_ENDING = max(map(len, _ENDINGS))


def spelled(home: Home, text: str) -> tuple[str, Lane]:
    """A question with misspelt words as the home knows them, and which these are."""
    unknown = _unknown(home, text)
    found = {word: near for word in unknown if (near := _nearest(home, word))}
    if not found:
        return text, Lane(
            "spelling", LaneState.RAN, "no unknown word is near a known one" if unknown else None
        )
    corrected = _WORD.sub(lambda match: found.get(match.group().lower(), match.group()), text)
    note = "; ".join(f"{word} read as {near}" for word, near in found.items())
    return corrected, Lane("spelling", LaneState.RAN, note)


def _unknown(home: Home, text: str) -> list[str]:
    """The words that neither a memory nor a turn holds, nor a person or project is called by."""
    asked = [match.group().lower() for match in _WORD.finditer(text)]
    asked = [
        word for word in dict.fromkeys(asked) if word.isascii() and len(word) >= LEAST_CHARACTERS
    ]
    authors, projects = home.selection.names_known()
    known = {word for name in (*authors, *projects) for word in words(name)} | STOP_WORDS
    wanted = [word for word in asked if word not in known][:_MOST_WORDS]
    terms = home.memory_search.terms(wanted)
    in_memories = home.memory_search.corpus(terms).frequencies
    in_turns = home.turn_search.corpus(terms).frequencies
    return [
        term.word
        for term, *counts in zip(terms, in_memories, in_turns, strict=True)
        if not any(counts)
    ]


def _nearest(home: Home, word: str) -> str | None:
    """The known word that differs least, the commonest of several; ``None`` where none is near."""
    slips = 2 if len(word) >= _TWO_SLIPS_FROM else 1
    least, most = max(LEAST_CHARACTERS - 1, len(word) - _LONGEST_ENDING - 1), len(word) + slips
    counts: dict[str, int] = {}
    for search in (home.memory_search, home.turn_search):
        for initial in {
            word[0],
            word[1],
        }:  # the first letter is the one that people rarely miss, but may swap
            for known, count in search.vocabulary(initial, least, most):
                counts[known] = counts.get(known, 0) + count
    near = _within(word, counts, slips)
    if not near:
        return None
    best = min(near, key=lambda known: (near[known], -counts[known], known))
    return _as_written(home, best, word)


def _within(word: str, stems: Iterable[str], slips: int) -> Mapping[str, int]:
    """The known stems that so many slips at most lie between, with one of the endings of words, by how many do."""
    pairs = _pairs(word)
    found = {}
    for stem in stems:
        own = _pairs(stem)
        if not stem.isalpha() or len(pairs & own) < len(own) - 2 * slips - 1:
            continue
        forms = [
            stem + ending
            for ending in _ENDINGS
            if abs(len(stem) + len(ending) - len(word)) <= slips
        ]
        apart = min((slip_count(word, form) for form in forms), default=slips + 1)
        if apart <= slips:
            found[stem] = apart
    return found


def _pairs(word: str) -> set[str]:
    framed = f" {word} "
    return {framed[at : at + 2] for at in range(len(framed) - 1)}


def slip_count(one: str, other: str) -> int:
    """Letters added, left out, exchanged or swapped with their neighbour (optimal string alignment)."""
    before: Sequence[int] = ()
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        line = [row]
        for column, against in enumerate(other, start=1):
            cost = min(line[-1] + 1, last[column] + 1, last[column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, last = last, line
    return last[-1]


def _as_written(home: Home, stem: str, asked: str) -> str:
    """The word behind a stem, as a text that holds it writes it; the stem where none is found by it."""
    texts = [*_memories_with(home, stem), *_turns_with(home, stem)]
    written = {word for text in texts for word in words(text) if stem in home.database.stems(word)}
    return min(written, key=lambda word: (slip_count(asked, word), word), default=stem)


def _memories_with(home: Home, stem: str) -> list[str]:
    found = home.memories.by_rows(home.memory_search.rows_of_stem(stem, _TEXTS))
    return [
        f"{memory.subject} {memory.content} {' '.join(memory.tags)}" for memory in found.values()
    ]


def _turns_with(home: Home, stem: str) -> list[str]:
    found = home.sessions.by_rows(home.turn_search.rows_of_stem(stem, _TEXTS))
    return [stored.turn.text for stored in found.values()]
