"""Whether two statements may say the same: only where no word, number or order is one side's own."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import pairwise

from nacre.dedup.had import says
from nacre.dedup.pair import Pair
from nacre.dedup.statement import Statement
from nacre.dedup.words import Amount, Word, as_one, is_chinese, tokens

_SIGNS = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*|[<>=~≤≥]=?|!=")
"""Options, and signs that compare: one more or in other letters is something else."""


def plain(pair: Pair) -> Pair:
    """The two without what says nothing more in an order or a preference: "from now on", "please", "always"."""
    return replace(pair, old=_plain(pair.old), new=_plain(pair.new))


def _plain(one: Statement) -> Statement:
    text = one.text
    for way, put in one.language.plain:
        text = way.sub(put, text)
    return one if text == one.text else replace(one, text=text, every=tuple(tokens(text, one.language)))


def differ(pair: Pair) -> bool:
    """Whether anything forbids that both say the same: negation, scope, order, a small word, another thing."""
    old, new = pair.old, pair.new
    if old.is_negative != new.is_negative or pair.has_other_scope or _scopes(old, new) != _scopes(new, old):
        return True
    if set(_SIGNS.findall(old.text)) != set(_SIGNS.findall(new.text)):
        return True
    if _is_reordered(old, new) or _is_one_word_apart(old, new) or _operators(old) != _operators(new):
        return True
    return pair.has_other_thing or pair.is_swapped or (bool(new.phrases) and not old.phrases)


def alone(pair: Pair) -> tuple[list[Word | Amount], list[Word | Amount]]:
    """The words and numbers that only the earlier one has, and those that only the later one has, in order."""
    return _alone(pair.old, pair.new, pair.light), _alone(pair.new, pair.old, pair.light)


def _alone(one: Statement, other: Statement, light: frozenset[str]) -> list[Word | Amount]:
    compound = {
        word.start for pair in pairwise(one.every) if as_one(*pair, one.language) in other.words for word in pair
    }
    reasons = {word.stem for word in other.because}
    told = [*one.content, *(word for word in one.because if word.text.lower() not in one.language.words.stop)]
    own = (word for word in told if not says(word.stem, other) and word.stem not in reasons)
    words = [word for word in own if word.start not in compound and (word.is_name or word.stem not in light)]
    given = {(figure.sort, figure.value) for figure in other.figures}
    silent = one.language.words.stop  # "one" may be an article
    figures = [one for one in one.figures if (one.sort, one.value) not in given and one.text.lower() not in silent]
    return sorted((*words, *figures), key=lambda found: found.start)


def _scopes(one: Statement, other: Statement) -> set[tuple[str, str]]:
    """What a statement is restricted to; a day that the other one gives, too, need not come first there."""
    days = {figure.value for figure in other.figures}
    return {(name, word) for name, word in one.scopes if word not in days}


def _operators(one: Statement) -> frozenset[str]:
    """The small words that change what is said: "all", "only", "or"."""
    known = one.language.words.operator
    written = {word.text.lower() for word in one.every}
    return frozenset(word for word in known if (word in written if word.isascii() else word in one.text))


def _is_reordered(old: Statement, new: Statement) -> bool:
    """Whether both are the same words in another order: who does it to whom, what comes first.

    Where words have no borders, and no endings, the order alone tells that, also of a part of them.
    """
    for mine, theirs in ((old.order, new.order), (_structure(old), _structure(new))):
        if mine != theirs and sorted(mine) == sorted(theirs):
            return True
    shorter, longer = sorted((_characters(old), _characters(new)), key=len)
    left = iter(longer)
    return not all(sign in left for sign in shorter)


def _structure(one: Statement) -> tuple[str, ...]:
    """The words that tell who does what to whom: without articles and the like, and verbs without a topic."""
    words = one.language.words
    silent = (words.stop - words.border) | words.light
    return tuple(word.stem for word in _kept(one) if word.text.lower() not in silent)


def _characters(one: Statement) -> list[str]:
    """What a statement says in a script without borders between words, one character after the other."""
    if not any(map(is_chinese, one.text)):
        return []
    silent = one.language.words.stop | one.language.words.light
    found: dict[int, str] = {}
    for word in _kept(one):
        is_whole = word.text.isascii() or word.text in one.language.alike
        if word.text not in silent:
            found |= (
                {word.start: word.stem} if is_whole else {word.start + at: sign for at, sign in enumerate(word.text)}
            )
    return [found[at] for at in sorted(found)]


def _is_one_word_apart(old: Statement, new: Statement) -> bool:
    """Whether all is the same but what stands in one place: be it a small word, it was put there on purpose."""
    blocks = SequenceMatcher(None, _uncounted(old), _uncounted(new), autojunk=False).get_opcodes()
    return [block[0] for block in blocks if block[0] != "equal"] == ["replace"]


def _uncounted(one: Statement) -> list[str]:
    """The stems of all words that are no part of a number or amount, as they stand."""
    return [word.stem for word in _kept(one) if word.start not in one.counted]


def _kept(one: Statement) -> list[Word]:
    return [word for word in one.every if word.stem not in one.own]
