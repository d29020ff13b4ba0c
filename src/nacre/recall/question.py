"""Analysis of questions and prompts: content words, names, synonyms, kinds, times and spelling."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nacre.base.frozen import frozen
from nacre.base.text import STOP_WORDS, identifiers, is_unspaced, words
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
"""English words that only phrase a question, and small talk."""

_PARTICLES = re.compile(
    "请问|什么时候|什么样|什么|怎么样|怎么办|怎么|怎样|如何|为什么|为何|哪一个|哪个|哪里|哪儿|哪些|哪种|哪|谁|多少|多久|多长时间|多长|多大|多远|几个|是不是|有没有|"
    "是否|能不能|可不可以|我们|你们|他们|她们|咱们|我|你|他|她|它们|它|一下|还有|以及|还是|或者|因为|所以|但是|之前|之后|时候|现在|目前|"
    "当前|最近|上次|这个|那个|这些|那些|谢谢|好的|继续|可以|嗯|[的了吗呢吧啊呀嘛]"
)
"""Pattern for Chinese question words and particles.

Unless they are removed, pairs of characters would span two words.
"""


def asks(word: str) -> bool:
    """Return True if a word is a single letter or often occurs in questions."""
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
"""Nouns for each kind. Verbs are left out, because "what did we decide" does not ask for a list."""

_KINDS = {
    name: kind
    for kind, names in _NAMES.items()
    for name in sorted(names.split(), key=len, reverse=True)
}

_QUALIFIERS = frozenset(
    "open active current pending outstanding unfinished left all my our made team user".split()
)
"""Words that do not restrict a list. "Active", for example, applies to every recalled memory."""


def kinds_listed(text: str, names: Collection[str]) -> tuple[Kind, ...]:
    """Return the kinds of memories that a question asks to list. A specific question lists none.

    ``names``: words in the names of people and projects.
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
        elif not (word in STOP_WORDS or word in names or word in _QUALIFIERS or asks(word)):
            return ()
    return tuple(kinds)


# -- Synonyms (``synonyms.toml``) ------------------------------------------------------------------
# A prompt and a memory can name the same subject in different words ("PR", "pull request") or
# languages. Languages that the embedding model reads badly are translated into English, word by
# word.


SAME_SHARE = 0.8
"""Weight of a synonym relative to the word in the prompt."""

_MIN_STEM_LETTERS = 5
_MAX_ENDING_LETTERS = 3
"""Maximum length of the endings in which inflected foreign words can differ. The first five letters must match."""

_KEY_LETTERS = 3
_MIN_FILLERS = 2
_WORD_RUN = re.compile(r"[^\W_]+")

SynonymShares = Mapping[str, Mapping[str, float]]
"""The synonyms of each word in a prompt, with their weights relative to the word."""


class Synonyms(NamedTuple):
    """The synonyms of a prompt's words.

    ``forms``: synonyms of each word. ``terms``: longer terms that contain a word, such as "pull
    request". ``within``: character pairs that a longer word already covers.
    """

    forms: SynonymShares
    terms: Mapping[str, Sequence[str]]
    within: frozenset[str]


class Reading(NamedTuple):
    """A word-by-word translation of a foreign prompt.

    ``fillers``: the filler words of the prompt. ``english_of``: the translation of each word.
    """

    fillers: frozenset[str]
    english: str
    english_of: Mapping[str, str]


class _Line(NamedTuple):
    """The words for one meaning.

    ``english``: English words. ``stems``: the stems of the English words. ``latin``: words in other
    alphabetic languages. ``chinese``: Chinese words.
    """

    english: tuple[str, ...]
    stems: tuple[tuple[str, ...], ...]
    latin: tuple[str, ...]
    chinese: tuple[str, ...]


class _Table(NamedTuple):
    """The table of synonyms and translations.

    ``rows``: unparsed rows. ``places``: row numbers by initial letters. ``fillers``: filler words
    of each language.
    """

    rows: Sequence[str]
    places: Mapping[str, Sequence[int]]
    fillers: Mapping[str, frozenset[str]]


def reading(text: str) -> Reading | None:
    """Translate a foreign prompt word by word. Return ``None`` if it is English or no word is known."""
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
    """Return the synonyms of a prompt's words. With ``foreign``, also look up words in other languages."""
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
        first, *others = words(phrase)
        _add(forms_of, first, place)
        within.update(others)
    return Synonyms(forms_of, terms, frozenset(within))


def _add(
    forms_of: dict[str, dict[str, float]], word: str, place: int, without: tuple[str, ...] = ()
) -> None:
    forms = forms_of.setdefault(word, {})
    line = _line(place)
    others = (
        form for form, stems in zip(line.english, line.stems, strict=True) if stems != without
    )
    for form in (*others, *line.latin, *line.chinese):
        forms[form] = SAME_SHARE


def _matching_rows(stems: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the rows with an English form that begins ``stems``, and the form's word count."""
    for place in _table().places.get(stems[0][:_KEY_LETTERS], ()):
        for form in _line(place).stems:
            if stems[: len(form)] == form:
                yield place, len(form)


def _foreign_rows(foreign_words: Sequence[str]) -> list[int]:
    """Return the rows for the first word or for a phrase at the start, likeliest first."""
    near = []
    for place in _table().places.get(foreign_words[0][:_KEY_LETTERS], ()):
        for form in _line(place).latin:
            parts = form.split()
            if len(parts) > 1:
                if list(foreign_words[: len(parts)]) == parts:
                    near.append((-len(parts), place))
            elif _common_prefix(form, foreign_words[0]) >= max(
                min(len(form), _MIN_STEM_LETTERS),
                max(len(form), len(foreign_words[0])) - _MAX_ENDING_LETTERS,
            ):
                near.append((abs(len(form) - len(foreign_words[0])), place))
    return [place for _, place in sorted(near)]


def _common_prefix(first: str, second: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )


def _unspaced_in(text: str) -> list[tuple[str, int]]:
    """Return the known words in a text without spaces, in order. Longer words take precedence."""
    if text.isascii():
        return []
    places = _unspaced()
    positions, rest = [], text
    for form in sorted((form for form in places if form in text), key=len, reverse=True):
        if form in rest:
            positions.append((text.index(form), form))
            rest = rest.replace(form, " ")
    return [(form, places[form]) for _, form in sorted(positions)]


@cache
def _unspaced() -> Mapping[str, int]:
    table = _table()
    return {
        form: at for at, row in enumerate(table.rows) for form in row.rpartition("|")[2].split()
    }


@cache
def _line(place: int) -> _Line:
    """Parse a single row. Parsing all rows would take too long in a hook."""
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
"""Maximum number of distinct words, for example in a pasted stack trace. The rarest indexed words are searched."""

MAX_NAMES = 12

COMMON_TERM_SHARE = 0.3
"""Weight of an everyday word in a prompt, relative to other words."""

_PATH_TAIL = re.compile(r"[^/\\]+[/\\][^/\\]+$")
_NAME = re.compile(r"(?<=[\w,;)\"'’”] )[\"'“(]?([A-Z][\w’'-]*)")
"""Pattern for a capitalised word that does not start a sentence."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_PHRASED_WORDS = 16
_HYPHENATED = re.compile(r"[A-Za-z]?[a-z]*(?:-[A-Za-z]?[a-z]*)+")


@frozen
class Question:
    """A parsed question.

    ``words``: words to search for in the lexical lane. ``names``: paths and identifiers.
    ``authors``: known people in the question. ``projects``: known projects in the question.
    ``semantic``: the text for the vector lane, without people's names. ``telling``: the distinctive
    words, without question words and known names. ``proper``: distinctive words that are written as
    names. ``spellings``: the joined and split spellings of identifiers (``readLine``,
    ``read_line``). ``lists``: kinds of memories to list ("open todos").

    :func:`as_prompt` sets the other fields. ``common_terms``: everyday words in ``telling``.
    ``leans``: kinds that the prompt suggests. ``is_about_us``: whether the prompt asks about the
    user's past. ``is_foreign``: whether the prompt was translated.
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
        """True if the text seems to be pasted, because it is long or has several lines."""
        return "\n" in self.text.strip() or len(self.telling) > _MAX_PHRASED_WORDS

    @property
    def is_only_time(self) -> bool:
        """True if the question contains only a time, as in "what did we do yesterday"."""
        return self.window is not None and not self.words

    @property
    def is_open(self) -> bool:
        """True if the question asks for all memories of a kind or from a time."""
        return self.is_only_time or bool(self.lists)

    @property
    def says_nothing(self) -> bool:
        """True if the question has no distinctive words. An example is "ok, go on"."""
        return not (self.telling or self.names or self.authors or self.projects or self.window)


def read_question(
    text: str,
    *,
    now: datetime,
    authors: Iterable[str] = (),
    projects: Iterable[str] = (),
    ignore_time: bool = False,
) -> Question:
    """Parse a question. ``authors``: names of people in transcripts.

    The word "will" means the person Will only if the whole question is in lower case.
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
        else tuple(word for word in search_words if word not in ignored and not asks(word))
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
    """Return the identifiers in a text, and the last two parts of longer paths."""
    names: dict[str, None] = {}
    for name in identifiers(text):
        names[name] = None
        tail = _PATH_TAIL.search(name)
        if tail and tail.start():
            names[tail.group()] = None
    return names


def _path_heads(text: str) -> set[str]:
    """Return the words of long paths that are not in the last two parts of the path."""
    heads: set[str] = set()
    for name in identifiers(text):
        tail = _PATH_TAIL.search(name)
        if tail and tail.start():
            heads |= set(words(name[: tail.start()])) - set(words(tail.group()))
    return heads


def _spellings(text: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield each identifier that consists of several words, joined and as separate words."""
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
    "something 决定 做 干 说 聊 提".split()
)
"""Words without meaning in a question that names a time."""


# -- Times relative to an event: "before the migration", "迁移之后" --------------------------------
# The best matching turn dates an event. Like any other time window, the resulting window boosts
# turns, and it filters memories unless none would remain.


_ENGLISH = re.compile(
    r"\b(?P<side>before|after|since|until)\s+(?:the|our|my|we|i|they)\s+(?P<event>[^?.,;!\n]{3,60})",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"(?P<event>[^\s,，。？?！!；;、]{2,12}?)(?P<side>之前|以前|之后|以后)")
_SAME_DAY = timedelta(days=1)
"""Time by which a window before or after an event reaches beyond the event."""

_BEFORE_WORDS = ("before", "until", "之前", "以前")


@frozen
class Anchor:
    """A reference to an event, as in "before the release".

    ``event``: name of the event. ``side``: word such as "before". ``words``: whole phrase.
    """

    event: str
    side: str
    words: str


def find_anchor(question: Question) -> Anchor | None:
    """Return the event in a question such as "what changed after the release?", or ``None``.

    Return ``None`` if the question already names a time.
    """
    if question.window:
        return None
    match = _ENGLISH.search(question.text) or _CHINESE.search(question.text)
    return Anchor(match["event"].strip(), match["side"].lower(), match.group()) if match else None


def resolve_anchor(question: Question, when: Callable[[str], datetime | None]) -> Question:
    """Return the question with a time window for an expression such as "before the release".

    ``when``: function that returns an event's time.
    """
    anchor = find_anchor(question)
    moment = when(anchor.event) if anchor else None
    if anchor is None or moment is None:
        return question
    before = anchor.side in _BEFORE_WORDS
    window = (
        Window(None, moment + _SAME_DAY, anchor.words)
        if before
        else Window(moment - _SAME_DAY, None, anchor.words)
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
"""Pattern for the start of an order, which can have the form of a question."""

_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_KEPT_SENTENCES = (3, 2)
_MIN_SENTENCE_WORDS = 3


def as_prompt(question: Question) -> Question:
    """Adapt a question that is a prompt to an agent.

    Everyday words ("add a field to the table") get less weight, unless the prompt asks about past
    work ("which database are we on?"). Unknown names keep the confidence, because prompts often
    name new things.
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
    rest = _remaining(text, "left")
    leans = () if rest is None else (Kind.TODO,)
    if (
        leans
        and not question.is_open
        and not {*question.telling}.intersection(words(without_particles(rest or ""))) - plain
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
            not (text_words.isdisjoint(asks) or text_words.isdisjoint(us))
            if not is_unspaced(next(iter(us)))
            else any(word in text for word in asks) and any(word in text for word in us)
            for asks, us in _languages()
        ),
        is_foreign=gloss is not None,
        leans=leans,
        proper=question.proper
        - {word for name in (*identifiers(text), *capitals) for word in words(name)},
    )


def parts_of(prompt: str) -> list[str]:
    """Return the sentences of a prompt, or nothing for a single sentence.

    Of a long prompt, only the first three and last two sentences are returned.
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
    """Return True if a prompt asks a question or refers to earlier work.

    An order such as "can you …?" does not count.
    """
    if refers_back(prompt):
        return True
    clauses = [_OPENING.sub("", clause, count=1) for clause in _CLAUSE_END.split(prompt.rstrip())]
    return any(
        clause.endswith(("?", "？"))
        or any(
            not asks.isdisjoint(words(clause)[:1])
            or any(word in clause for word in asks if is_unspaced(word))
            for asks, _ in _languages()
        )
        for clause in clauses
        if not _ORDER.match(clause)
    )


def refers_back(prompt: str) -> bool:
    """Return True if a prompt refers to earlier work, such as "the way we did it"."""
    return _remaining(prompt, "back") is not None


def _remaining(text: str, name: str) -> str | None:
    """Return a text without the phrases in ``prompts.toml``, or ``None`` if it contains none of them."""
    padded = text if is_unspaced(text) else f" {' '.join(words(text))} "
    rest = padded
    for phrase in _phrases()[name].replace("\n", ",").split(","):
        phrase = phrase.strip()
        if phrase:
            rest = rest.replace(f" {phrase} " if phrase.isascii() else phrase, " ")
    return None if rest == padded else rest


@cache
def _languages() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Load each language's question words and first-person words."""
    lines = (line.split("|") for line in _phrases()["about_us"].strip().splitlines())
    return tuple((frozenset(asks.split()), frozenset(us.split())) for asks, us in lines)


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
# Each word that does not occur in nacre's home is replaced with the most similar word that does.
# This is opt-in, because most unknown words are correct, and a similar word would give a wrong
# answer.


LEAST_CHARACTERS = 4
"""Minimum length of a corrected word. Shorter words have too many neighbours."""

_TWO_SLIPS_MIN_CHARACTERS = 7
"""Minimum length of a word that can contain two mistakes. Shorter words can contain one."""

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
"""Word endings that the index removes if the word is spelt correctly."""

_MAX_ENDING_CHARACTERS = max(map(len, _ENDINGS))


def correct_spelling(home: Home, text: str) -> tuple[str, Lane]:
    """Return the question with corrected spelling, and a report that lists the corrections."""
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
    """Return the most similar known word, if any. Prefer the most frequent of equally similar words."""
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
    """Return the possible stems of a misspelt word, each with the number of mistakes.

    At most ``slips`` mistakes are accepted. Common endings are also tried.
    """
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
    """Return the optimal string alignment distance, which counts insertions, deletions, substitutions and swaps."""
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
    """Return the stored word with this stem that is nearest to the misspelt word.

    Return the stem if no text contains such a word.
    """
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
