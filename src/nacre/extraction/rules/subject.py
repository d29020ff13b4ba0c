"""Finishes: what a statement is about, a noun phrase where there is a clean one, else its head."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from nacre.extraction.reading.cues import Language
from nacre.extraction.rules.validate import is_generic
from nacre.extraction.rules.wording import capitalised, unlabelled
from nacre.values.memory import Kind

MAX_CHARACTERS = 60
MAX_WIDE = 24

_MIN_CHARACTERS = 20
_MIN_WIDE = 3
_TOKEN = re.compile(r"@?[\w][\w./+#@:'’&-]*[\w+#/]|\w|[^\s\w]")
_IDENTIFIER = re.compile(r"[_/]|\w\.\w|[a-z][A-Z]|^[A-Z]{2,}s?$|\d")
_FOLDERS = re.compile(r"(?<!\S)@?(?:[\w.~-]*/){2,}(?=[\w-]+\.\w+)")
_MARKUP = re.compile(r"[(（][^()（）]*[)）]|\{[^{}]*\}|[`\"“”*]")
_SPACES = re.compile(r"\s+")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_CALL = re.compile(r"\W*(?P<name>[a-z]\w*)\(\)")
_WORD_ACROSS = re.compile(r"[^\W\u2e80-\uffff]{2}")
_BORDER_SIGNS = " \t,;:.!?@—–-，。；：！？、"


def subject_of(text: str, language: Language, kind: Kind) -> str | None:
    """The subject of a statement, or ``None`` when it has none worth the name.

    A lesson keeps its verb: what went wrong says more than what it went wrong with. Of a decision to add a thing the
    thing is told.
    """
    words, whole = language.subject, kind is Kind.LESSON
    plain = _FOLDERS.sub("", _MARKUP.sub("", text))
    plain = _SPACES.sub(" ", words.noise.sub("", unlabelled(plain, language))).strip()
    plain = words.carried.sub(r"\g<object> ", plain, count=1)
    asked = words.asked.match(plain)
    told = None if asked else _told(plain, language)
    if told:
        return subject_of(told, language, kind) or subject_of(plain[: -len(told)], language, kind)
    front = None if asked else words.front.match(plain)
    subject = _answered(asked, plain[asked.end() :], language) if asked else None
    subject = subject or (_fronted(front, plain[front.end() :], language) if front else None)
    subject = (
        subject
        or _head(plain, language, whole=whole)
        or _placed(plain, language)
        or _uncued(_unled(plain, language), language, 2)
    )
    if not subject:
        return None
    made = words.making.match(subject) if kind in (Kind.DECISION, Kind.FACT) else None
    if made and _says_something(subject[made.end() :], language, 2):
        subject = subject[made.end() :]
    title = _title(subject, language)
    return title[0].lower() + title[1:] if title and _begins_with_code(text, subject) else title


def _told(text: str, language: Language) -> str:
    """The answer to a question of two ways: what was decided, not what was asked."""
    question, mark, answer = text.partition("? ")
    return answer if mark and language.answers.either.search(f"{question}?") else ""


def _begins_with_code(text: str, subject: str) -> bool:
    """Whether a subject begins with the name of a function that the text begins with."""
    call = _CALL.match(text)
    return call is not None and subject.partition(" ")[0] == call["name"]


def names_something(text: str, language: Language) -> bool:
    """Whether a noun stands in the text that a later pronoun could stand for."""
    return next(_nouns(text, language), None) is not None


def _answered(asked: re.Match[str], answer: str, language: Language) -> str | None:
    """ "Which tools should we use? Black" as "tools: Black", the answer only where it is short."""
    topic = asked["topic"]
    border = language.subject.border.search(answer)
    told = language.subject.ending.sub("", answer[: border.start() if border else None].strip())
    if not _is_phrase(topic, language, least=1):
        return None
    together = f"{topic}: {told}"
    return together if told and len(together) <= MAX_CHARACTERS else topic


def _placed(text: str, language: Language) -> str | None:
    """What stands after a preposition, where a statement begins with one and says nothing else: "in cart.js, it …"."""
    words = language.subject
    found = ((rest, words.stray.match(rest)) for rest in _unopened(text, language))
    rest, place = next(((rest, at) for rest, at in found if at), (text, None))
    if not place:
        return None
    rest = _unarticled(rest[place.end() :].strip(), language)
    border = words.border.search(rest)
    named = rest[: border.start()] if border else rest
    condition = words.condition.match(rest[border.end() :]) if border else None
    together = f"{named} {condition.group()}" if condition else named
    best = together if len(together) <= MAX_CHARACTERS else named
    return best if not words.predicate.search(named) and _says_something(best, language, 1) else None


def _unled(text: str, language: Language) -> str:
    """The text without a word before it that only ties it to something else: "if", "in"."""
    words = language.subject
    found = ((rest, words.stray.match(rest)) for rest in _unopened(text, language))
    return next((rest[at.end() :] for rest, at in found if at), text)


def _unarticled(text: str, language: Language) -> str:
    head, _, rest = text.partition(" ")
    return rest if rest and head.lower() in language.subject.articles else text


def _fronted(front: re.Match[str], rest: str, language: Language) -> str | None:
    """ "For this, that" as "this: that", "when this, that" as "that when this"."""
    topic, condition = front["topic"], front["condition"]
    if condition and language.subject.stray.match(rest):
        return None
    main = _head(rest, language, whole=bool(topic), least=1 if topic else 2)
    main = main or (_placed(rest, language) if topic else None)
    if condition and main:
        together = f"{main} {condition[0].lower()}{condition[1:]}"
        return together if len(together) <= MAX_CHARACTERS else main
    if not main or not _is_phrase(topic, language, least=1):
        return None
    return f"{topic}: {main}"


def _head(text: str, language: Language, *, whole: bool, least: int = 2) -> str | None:
    """The first clause that says something, without its cue words; its noun phrase where that stands apart.

    A clause with only one noun takes in the next one; one that says only where or when is none.
    """
    start = strays = 0
    for border in [*language.subject.border.finditer(text), None]:
        clause = text[start : border.start() if border else None]
        bare = _uncued(clause, language, least)
        is_stray = _strays(clause.strip(), bare, language, first=start == 0)
        strays += is_stray
        if strays > 1:
            return None
        if bare and not is_stray:
            return bare if whole else _before_verb(bare, language) or bare
        if border and (is_stray or not names_something(clause, language)):
            start = border.end()
    return None


def _strays(clause: str, bare: str, language: Language, *, first: bool) -> bool:
    """Whether a clause says only where or when, or goes on about the one before it."""
    words = language.subject
    leaning = not first and words.stray.match(clause)
    return bool(words.stray.match(bare or clause) or words.condition.match(clause) or leaning)


def _uncued(clause: str, language: Language, least: int) -> str:
    """The clause without as many of the words before its matter as it can lose and still say something."""
    words = language.subject
    best = ""
    for rest in _unopened(words.ending.sub("", clause), language):
        best = rest if _says_something(rest, language, least) else best
    named = not best or _is_name(best.partition(" ")[0], language)
    best = best if named else best[0].lower() + best[1:]
    for rewrite in words.rewrite if best else ():
        best = rewrite.pattern.sub(rewrite.by, best, count=1)
    return best


def _unopened(text: str, language: Language) -> Iterator[str]:
    """The text without one, two, … of the words it begins with that only say what kind of a statement it is."""
    rest = text.strip(_BORDER_SIGNS)
    while rest:
        yield rest
        opener = language.subject.opener.match(rest)
        if not opener or not opener.end():
            return
        rest = rest[opener.end() :].strip(_BORDER_SIGNS)


def _says_something(text: str, language: Language, least: int) -> bool:
    """Whether one word of a text is a noun, and it is a name or not alone."""
    nouns = list(_nouns(text, language))
    if not nouns or is_generic(text, language):
        return False
    if not language.joiner or any(_is_name(noun, language) for noun in nouns):
        return True
    return len([token for token in _TOKEN.findall(text) if not _is_small(token, language)]) >= least


def _is_name(word: str, language: Language) -> bool:
    return "-" in word or bool(_IDENTIFIER.search(word) or language.names.fullmatch(word))


def _before_verb(clause: str, language: Language) -> str | None:
    """What a rule or a fact is about stands before its verb."""
    verb = language.subject.predicate.search(clause)
    phrase = clause[: verb.start()].strip() if verb else ""
    least = 1 if _IDENTIFIER.search(phrase) and any(map(str.isalpha, phrase)) else 2
    return phrase if phrase and _is_phrase(phrase, language, least=least) else None


def _is_phrase(text: str, language: Language, *, least: int) -> bool:
    """Whether a text is nothing but nouns, what describes them and what ties them."""
    if not language.joiner:
        return _MIN_WIDE <= len(text) <= MAX_WIDE and names_something(text, language)
    words = language.subject
    tokens = _TOKEN.findall(text)
    tying = words.links | words.determiners
    if tokens[0].lower() in words.determiners or tokens[-1].lower() in tying:
        return False
    tokens = [token for token in tokens if token.lower() not in tying]
    if len(tokens) < least or any(_divides(token, language) for token in tokens[:-1]):
        return False
    return names_something(text, language) and not _is_small(tokens[-1], language)


def _nouns(text: str, language: Language) -> Iterator[str]:
    """The words that could be what a statement is about; runs between function words in Chinese."""
    words = language.subject
    if not language.joiner:
        runs = re.split(_stops(words.stop), text)
        yield from (run for run in runs if len(run) >= 2 and not is_generic(run, language))
        return
    for token in _TOKEN.findall(text):
        lower = token.lower()
        if not _divides(token, language) and lower not in words.weak | words.generic and _names(lower):
            yield token


def _names(lower: str) -> bool:
    """Whether a token is a word or a version."""
    return any(map(str.isalpha, lower)) or bool(_VERSION.fullmatch(lower))


def _divides(token: str, language: Language) -> bool:
    lower = token.lower().replace("’", "'")
    return (not lower[0].isalnum() and lower[0] not in "@_") or _is_small(token, language) or _is_verb(lower, language)


def _is_small(token: str, language: Language) -> bool:
    """Whether a word says nothing by itself: an article, a pronoun, a preposition, "would", "it's"."""
    words = language.subject
    lower = token.lower().replace("’", "'")
    base = lower.partition("'")[0]
    return any(one in words.stop or one in words.links or words.predicate.fullmatch(one) for one in (lower, base))


def _is_verb(lower: str, language: Language) -> bool:
    return lower in _inflected(language.subject.verbs) and lower not in language.subject.weak


@lru_cache(maxsize=8)
def _inflected(verbs: frozenset[str]) -> frozenset[str]:
    forms = set(verbs)
    for verb in verbs:
        stem = verb[:-1] if verb.endswith("e") else verb
        double = stem + stem[-1]
        forms |= {verb + "s", verb + "es", stem + "ed", stem + "ing", double + "ed", double + "ing"}
    return frozenset(forms)


@lru_cache(maxsize=8)
def _stops(stop: frozenset[str]) -> re.Pattern[str]:
    words = "|".join(map(re.escape, sorted(stop, key=len, reverse=True)))
    signs = re.escape(_BORDER_SIGNS)
    return re.compile(rf"[\s{signs}]*(?:{words})[\s,，]*|[{signs}]+")


def _title(text: str, language: Language) -> str | None:
    """At most sixty characters, cut where a clause or phrase begins, with a capital unless it begins with a name."""
    most = MAX_CHARACTERS if language.joiner else MAX_WIDE
    short = _shortened(text, most, language)
    text = _untied(short.strip(_BORDER_SIGNS), language, cut=len(short) < len(text))
    if not text or is_generic(text, language):
        return None
    return text if _IDENTIFIER.search(text.partition(" ")[0]) else capitalised(text, language)


def _shortened(text: str, most: int, language: Language) -> str:
    if len(text) <= most:
        return text
    words = language.subject
    joints = [at.start() for one in (words.joint, words.predicate) for at in one.finditer(text, _MIN_CHARACTERS)]
    space = text.rfind(" ", _MIN_CHARACTERS if language.joiner else 1, most + 1)
    if not language.joiner and not _WORD_ACROSS.fullmatch(text[most - 1 : most + 1]):
        space = -1
    return text[: max((at for at in joints if at <= most), default=space if space > 0 else most)]


def _untied(text: str, language: Language, *, cut: bool) -> str:
    """The text without words at its end that tie it to what is no longer there, nor a verb where it was ``cut``."""
    words = language.subject
    kept = text.split(" ")
    while len(kept) > 1 and (
        kept[-1].lower() in words.articles
        or words.joint.fullmatch(f" {kept[-1]}")
        or (cut and _leads_on(kept[-1], language))
    ):
        kept.pop()
    return " ".join(kept).strip(_BORDER_SIGNS)


def _leads_on(word: str, language: Language) -> bool:
    """Whether a word at the end of a cut text waits for what was cut off: a verb, "only"."""
    lower = word.lower()
    return bool(language.joiner) and (_is_verb(lower, language) or (lower.endswith(("ed", "ly")) and len(lower) > 4))
