"""Statements that did not last: taken back, undone, replaced by a later one, already done."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nacre.extract.cues import Language, language_of
from nacre.extract.findings import Finding
from nacre.extract.speech import Utterance
from nacre.model.memory import Kind

SAME = 0.9
ABOUT_THE_SAME = 0.34
_SHARED_WORDS = 2
_WORD = re.compile(r"[a-z0-9_./]{3,}|[\u4e00-\u9fff]{2}", re.IGNORECASE)


def settle(findings: Sequence[Finding], utterances: Sequence[Utterance]) -> list[Finding]:
    """What still holds at the end of the session."""
    once = {one.content: one for one in reversed(findings)}
    lasting = [one for one in reversed(once.values()) if not _dropped(one, utterances)]
    return [one for one in lasting if not any(_replaces(other, one) for other in lasting if other is not one)]


def _dropped(finding: Finding, utterances: Sequence[Utterance]) -> bool:
    later = [one for one in utterances if one.index > finding.index]
    for at, utterance in enumerate(later):
        language = language_of(utterance.text)
        text = utterance.statements[0].text
        if at == 0 and language.reversal.undo.match(text):
            return True
        if any(_removes(finding, language.trim(one.text), language) for one in utterance.statements):
            return True
    return False


def _removes(finding: Finding, text: str, language: Language) -> bool:
    if finding.kind not in (Kind.DECISION, Kind.TODO):
        return False
    removed = language.reversal.removal.search(text) and finding.content != text
    done = finding.kind is Kind.TODO and language.reversal.request.match(text)
    if not (removed or done):
        return False
    return len(words(finding.content, language) & words(text, language)) >= _SHARED_WORDS


def _replaces(other: Finding, one: Finding) -> bool:
    """The same said more fully, or the same thing decided anew."""
    language = language_of(other.content)
    theirs, mine = words(other.content, language), words(one.content, language)
    if not theirs or not mine:
        return False
    overlap = len(mine & theirs) / min(len(mine), len(theirs))
    later = other.index > one.index
    if later and language.reversal.change.search(other.spoken) and other.kind is one.kind:
        return overlap >= ABOUT_THE_SAME or _same_key(other, one)
    if overlap >= SAME:
        return (len(other.content), -other.index) > (len(one.content), -one.index)
    return later and _same_key(other, one)


def _same_key(other: Finding, one: Finding) -> bool:
    return other.canonical_key is not None and other.canonical_key == one.canonical_key


def words(text: str, language: Language) -> frozenset[str]:
    """The content words of a text, with plural and verb endings off; pairs of characters in Chinese."""
    if not language.joiner:
        return frozenset(_pairs(text)) - language.subject.stop
    found = (word.lower().strip("./") for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in found if word not in language.subject.stop)


def _pairs(text: str) -> list[str]:
    runs = re.findall(r"[\u4e00-\u9fff]+|[a-z0-9_]{2,}", text.lower())
    pairs: list[str] = []
    for run in runs:
        pairs += [run] if run.isascii() else [run[at : at + 2] for at in range(len(run) - 1)]
    return pairs


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
