"""Settles: statements that did not last: taken back, undone, replaced by a later one, already done."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.speech import Utterance
from nacre.extraction.rules.findings import Finding
from nacre.text.passages import normalise, words
from nacre.text.stems import stem
from nacre.values.memory import Kind

SAME = 0.9
ABOUT_THE_SAME = 0.34
MOST = 60
"""Findings compared with each other: beyond the surest sixty nothing is kept anyway."""

_SHARED_WORDS = 2
_WORD = re.compile(r"[a-z0-9_./]{2,}|[\u4e00-\u9fff]{2}", re.IGNORECASE)


def settle(findings: Sequence[Finding], utterances: Sequence[Utterance]) -> list[Finding]:
    """What still holds at the end of the session, and is neither decided anew in it nor said more fully."""
    lasting = not_taken_back(findings, utterances)
    known = {one.content: content_words(one.content, language_of(one.content)) for one in lasting}
    return [one for one in lasting if not any(_replaces(other, one, known) for other in lasting if other is not one)]


def not_taken_back(findings: Sequence[Finding], utterances: Sequence[Utterance]) -> list[Finding]:
    """What is not taken back in the session, in order, and once where it is said again in the same words."""
    surest = sorted(_once(findings), key=lambda one: (-one.score, one.index))[:MOST]
    takings = list(_takings(utterances))
    held = sorted(surest, key=lambda one: one.index)
    return [one for one in held if not _dropped(one, takings)]


def _once(findings: Sequence[Finding]) -> Collection[Finding]:
    """Without those that say again what was said last of the same: what "never" came between is said anew."""
    found: dict[int, Finding] = {}
    last: dict[frozenset[str], int] = {}
    for at, one in enumerate(sorted(findings, key=lambda one: one.index)):
        about = content_words(one.content, language_of(one.content))
        before = found.get(last.get(about, -1))
        if before and normalise(before.content) == normalise(one.content):
            found[last[about]] = max(before, one, key=lambda said: (said.score, said.importance))
        else:
            found[at], last[about] = one, at
    return found.values()


@dataclass(frozen=True, slots=True)
class _Taking:
    """A statement that takes something back: what was said in the message before (``undone``), what shares words with
    it (``removal``, or a ``request`` that does what was to do), a choice it names (``scrapped``), or whatever was said
    of something (``revoked``).
    """

    index: int
    text: str
    words: frozenset[str]
    undone: int | None
    removal: bool
    request: bool
    scrapped: frozenset[str]
    revoked: frozenset[str]


def _takings(utterances: Sequence[Utterance]) -> Iterator[_Taking]:
    before: int | None = None
    for utterance in utterances:
        for place, one in enumerate(utterance.statements):
            language = language_of(one.text)
            cues, text = language.reversal, language.trim(one.text)
            scrap = cues.scrap.search(text)
            undone = before if place == 0 and cues.undo.match(one.text) else None
            removal, request = bool(cues.removal.search(text)), bool(cues.request.match(text))
            revoked = revoked_in(one.text)
            if removal or request or scrap or revoked or undone is not None:
                scrapped = content_words(scrap["what"], language) if scrap else frozenset[str]()
                said = content_words(text, language)
                yield _Taking(utterance.index, text, said, undone, removal, request, scrapped, revoked)
        before = utterance.index


def revoked_in(text: str) -> frozenset[str]:
    """Content words of what a statement takes back whatever was said of: "forget the rule about the demo"."""
    return _named_by(language_of(text).reversal.revoke.search(text))


def dismissed_in(text: str) -> tuple[frozenset[str], bool | None]:
    """Content words of what a statement says is not to matter any more ("forget about the demo"), and whether only what
    forbids that is meant ("you may …"), or only what does not ("stop …").
    """
    found = language_of(text).reversal.dismiss.search(text)
    return _named_by(found), {"allowed": True, "stopped": False}.get(found.lastgroup or "") if found else None


def _named_by(found: re.Match[str] | None) -> frozenset[str]:
    """Content words of the one thing that an expression names; in Chinese, those between words without content."""
    named: str = next(filter(None, found.groups()), "") if found else ""
    language = language_of(found.string if found else "")
    if language.joiner:
        return content_words(named, language)
    silent = sorted(language.subject.stop, key=len, reverse=True)
    parts = re.split("|".join(map(re.escape, silent)), named)
    return frozenset(word for part in parts for word in content_words(part, language))


def taken_back(kind: Kind, content: str, index: int, utterances: Sequence[Utterance], *, begin: int = 0) -> str | None:
    """The words of the owner at or after ``begin`` that take back what was said in the turn at ``index``."""
    said = content_words(content, language_of(content))
    later = [one for one in _takings(utterances) if one.index > index and one.index >= begin]
    return next((one.text for one in later if _takes_back(one, kind, content, index, said)), None)


def _dropped(finding: Finding, takings: Sequence[_Taking]) -> bool:
    said = content_words(finding.content, language_of(finding.content))
    later = [one for one in takings if one.index > finding.index]
    return any(_takes_back(one, finding.kind, finding.content, finding.index, said) for one in later)


def _takes_back(taking: _Taking, kind: Kind, content: str, index: int, said: frozenset[str]) -> bool:
    if taking.undone == index or (taking.revoked and taking.revoked <= said):
        return True
    if kind not in (Kind.DECISION, Kind.TODO):
        return False
    if taking.scrapped and taking.scrapped <= said:
        return True
    removed = taking.removal and content != taking.text
    done = kind is Kind.TODO and taking.request
    return (removed or done) and len(said & taking.words) >= _SHARED_WORDS


def _replaces(other: Finding, one: Finding, known: dict[str, frozenset[str]]) -> bool:
    """The same said more fully, or the same thing decided anew."""
    theirs, mine = known[other.content], known[one.content]
    if not theirs or not mine:
        return False
    overlap = len(mine & theirs) / min(len(mine), len(theirs))
    later = other.index > one.index
    change = language_of(other.content).reversal.change
    if later and other.kind is one.kind and change.search(other.spoken):
        return overlap >= ABOUT_THE_SAME or _same_key(other, one)
    if overlap >= SAME and (other.kind in (one.kind, Kind.LESSON) or not later):
        return (len(other.content), -other.index) > (len(one.content), -one.index)
    return later and _same_key(other, one)


def _same_key(other: Finding, one: Finding) -> bool:
    return other.canonical_key is not None and other.canonical_key == one.canonical_key


def content_words(text: str, language: Language, silent: frozenset[str] = frozenset()) -> frozenset[str]:
    """The stems of a text's content words, without those of ``silent``; pairs of characters in Chinese."""
    stop = language.subject.stop
    if not language.joiner:
        return frozenset(word for word in words(text) if len(word) > 1) - stop - silent
    found = (word.lower().strip("./") for word in _WORD.findall(text))
    return frozenset(stem(word) for word in found if word not in stop) - {stem(word) for word in silent}
