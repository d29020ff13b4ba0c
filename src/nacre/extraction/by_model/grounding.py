"""Refuses: what a model proposes and the session does not show. Code alone says who spoke, and whom to trust."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from nacre.extraction.by_model.answer import Told
from nacre.extraction.by_model.evidence import is_turned_round, mood_refusal, said_in
from nacre.extraction.by_model.stances import data
from nacre.extraction.by_model.voices import Voice, Voices, is_in
from nacre.extraction.reading.course import doubted
from nacre.extraction.reading.cues import Language, language_of, languages
from nacre.extraction.rules.importance import AGENT_CAP, STRONG
from nacre.extraction.rules.reversal import content_words, taken_back
from nacre.extraction.rules.tags import MAX_TAGS
from nacre.extraction.rules.validate import is_generic, size_refusal
from nacre.text.passages import identifiers, normalise, one_line
from nacre.values.candidate import Candidate
from nacre.values.memory import Confidence, Expiry, Kind
from nacre.values.session import Speaker, Trust, Turn

LEAST_IMPORTANCE = 5
REMEMBERED = 7
UNVERIFIED = "unverified"
HEDGED_CAP = 5

LEAST_SHOWN = 0.3
"""Of the content's words must be in its evidence or around it."""

LEAST_SAID = 0.6
"""Of the content's words must have been said in the session by somebody who can be trusted."""

LEAST_SAID_IN_PAIRS = 0.5
"""Where pairs of characters stand for words: those across two words are nobody's."""

MOST_FOREIGN = 1
"""Words of the content may be found in text from outside alone: one in common says nothing yet. A sentence that tells
agents what to do may have none."""

_MAX_SUBJECT = 120
_LEAST_QUOTE = 8
_SUBJECTS = frozenset(
    "system developer engineer maintainer team conversation project task agent owner session transcript chat".split()
)
_ARTICLE = re.compile(r"^(?:the|this|our|my|that|a) ", re.IGNORECASE)
_NAME = re.compile(r"[/\\_.]|\d|[a-z][A-Z]|::")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_ELLIPSIS = re.compile(r"\s*(?:\.{3,}|…)\s*")
_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){1,4}")
_TAG = re.compile(r"[\w.+#-]{2,30}")
_DIRECTIVE = re.compile(
    r"\b(?:always|never|from now on|must|ignore|disregard|remember to|make sure|do not|don't)\b|\|\s*(?:ba|z)?sh\b"
    r"|总是|永远|务必|必须|一律|不要|记住|从现在起|以后都",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why a proposal was not taken."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Quoted:
    """The words of a quote, the turn that holds them, and whose they are."""

    words: str
    at: int
    voice: Voice


class Grounds:
    """What one session shows. ``begin`` is its first turn that extraction has not seen yet."""

    def __init__(self, turns: Sequence[Turn], *, begin: int = 0) -> None:
        self.turns = turns
        self.begin = begin
        self.voices = Voices(turns)
        self._words: dict[int, frozenset[str]] = {}
        usable = [at for at in range(len(turns)) if self.voices.of(at) not in (Voice.UNTRUSTED, Voice.NOBODY)]
        known = set(usable)
        self._trusted = frozenset[str]().union(*map(self._words_at, usable))
        self._owned = frozenset[str]().union(*(_all_words(self.voices.typed(at)) for at in usable))
        foreign = [turn for at, turn in enumerate(turns) if turn.speaker is Speaker.OWNER or at not in known]
        self._foreign = frozenset[str]().union(*(_all_words(turn.text) for turn in foreign), *map(_outcomes, turns))
        files = [path for at in usable for call in turns[at].tool_calls for path in call.paths]
        self._foreign -= self._trusted | _all_words(re.sub(r"[/\\]", " ", " ".join(files)))
        self._names = frozenset(name.lower() for at in usable for name in identifiers(turns[at].text))
        self._text = "\n".join([*(turns[at].text for at in usable), *files]).lower()
        self._is_coding = any(turn.tool_calls for turn in turns)

    def judge(self, told: Told, shown: Set[int]) -> Candidate | Dropped:
        """A proposal as a candidate, if the turns that were ``shown`` bear it out."""
        content, subject = one_line(told.content), one_line(told.subject)
        language = language_of(content)
        reason = _refusal(told, content, subject, language) or self._evidence_refusal(told.evidence, shown)
        if reason:
            return Dropped(reason)
        evidence = self._vouched(told.evidence)
        quoted = self._quoted(told.quote, evidence)
        if quoted is None:
            return Dropped("no quote" if set(evidence) == set(told.evidence) else "untrusted")
        reason = self._voice_refusal(quoted, evidence, content) or self._word_refusal(content, evidence, language)
        said = self._as_said(quoted, evidence, content)
        reason = reason or self._voice_refusal(said, evidence, content)
        reason = reason or self._stance_refusal(Kind(told.kind), content, quoted, evidence)
        reason = reason or self._later_refusal(Kind(told.kind), content, said, evidence[-1])
        return Dropped(reason) if reason else self._candidate(told, content, subject, said, evidence)

    def _evidence_refusal(self, evidence: Sequence[int], shown: Set[int]) -> str | None:
        if not evidence or not set(evidence) <= shown:
            return "no such turn"
        vouched = self._vouched(evidence)
        if not vouched:
            is_untrusted = any(self.voices.of(at) is Voice.UNTRUSTED for at in evidence)
            return "untrusted" if is_untrusted else "no statement"
        return None if vouched[-1] >= self.begin else "read before"

    def _vouched(self, evidence: Iterable[int]) -> tuple[int, ...]:
        """The turns of some evidence that can be evidence; others beside them show nothing, and spoil nothing."""
        nobodys = (Voice.UNTRUSTED, Voice.NOBODY)
        return tuple(at for at in sorted(set(evidence)) if self.voices.of(at) not in nobodys)

    def _quoted(self, quote: str, evidence: Sequence[int]) -> _Quoted | None:
        """Where the words of a quote are, the owner's first."""
        parts = _parts(quote)
        found = [_Quoted(quote, at, self.voices.of(at, parts)) for at in evidence if parts and self._holds(at, parts)]
        return min(found, key=lambda one: one.voice is not Voice.OWNER, default=None)

    def _holds(self, at: int, parts: Sequence[str]) -> bool:
        said = self.voices.said(at)
        if sum(map(_length, parts)) < _LEAST_QUOTE and parts != [said]:
            return False
        return all(is_in(part, said) for part in parts)

    def _as_said(self, quoted: _Quoted, evidence: Sequence[int], content: str) -> _Quoted:
        """The quote; or the agent's turn that it answers, where most words of the content are the agent's alone:
        then it is not the owner who says it.
        """
        words = content_words(content, language_of(content))
        if quoted.voice is not Voice.OWNER or 2 * len(words & self._owned) > len(words & self._trusted):
            return quoted
        by_agent = [at for at in evidence if self.turns[at].speaker is Speaker.AGENT]
        at = by_agent[-1] if by_agent else self.voices.agent_before(quoted.at)
        return replace(quoted, voice=Voice.AGENT) if at is None else replace(quoted, at=at, voice=self.voices.of(at))

    def _voice_refusal(self, quoted: _Quoted, evidence: Sequence[int], content: str) -> str | None:
        """Why the words of a quote are nothing that the owner said or accepted, if so."""
        if quoted.voice is Voice.OWNER:
            return None
        if quoted.voice is Voice.PASTED:
            return "pasted"
        after = self.voices.next_of_owner(quoted.at)
        is_left_alone = quoted.voice is Voice.AGENT and (after is None or after.index not in evidence)
        if is_left_alone or self.voices.is_objected(quoted.at):
            return "not accepted"
        return "not accepted" if quoted.voice is not Voice.ACCEPTED and _DIRECTIVE.search(content) else None

    def _word_refusal(self, content: str, evidence: Sequence[int], language: Language) -> str | None:
        """Whether the content has words that nobody said, or text from outside alone."""
        names = [name for name in identifiers(content) if _NAME.search(name)]
        if not all(map(self._is_said, names)):
            return "invented"
        words = content_words(content, language)
        telling = " ".join(one for one in _SENTENCE.split(content) if _DIRECTIVE.search(one))
        if len(words & self._foreign) > MOST_FOREIGN or content_words(telling, language) & self._foreign:
            return "untrusted"
        least = LEAST_SAID if language.joiner else LEAST_SAID_IN_PAIRS
        words = content_words(content, language, data().silent) or words
        if self._support(words, evidence) < LEAST_SHOWN or _share(words, self._trusted) < least:
            return "unsupported"
        return None

    def _is_said(self, name: str) -> bool:
        """Whether somebody said a name, or each of the names that a slash puts side by side."""
        if name.lower() in self._names or name.lower() in self._text:
            return True
        parts = name.lower().split("/")
        return len(parts) > 1 and all(part in self._names and _NAME.search(part) for part in parts)

    def _stance_refusal(self, kind: Kind, content: str, quoted: _Quoted, evidence: Sequence[int]) -> str | None:
        """Whether the evidence says the opposite, or only asks, supposes, or tells what others want."""
        every = said_in(self.voices, evidence)
        if is_turned_round(content, every, self._trusted):
            return "turned round"
        return mood_refusal(kind, content, _parts(quoted.words), quoted.at, every, self.voices)

    def _later_refusal(self, kind: Kind, content: str, quoted: _Quoted, last: int) -> str | None:
        """Whether what was said after the evidence takes it back."""
        spoken = self.voices.spoken
        if quoted.voice is not Voice.OWNER and doubted(quoted.words, quoted.at + 1, self.turns, spoken):
            return "refuted"
        return "taken back" if taken_back(kind, content, last, spoken) else None

    def _candidate(
        self, told: Told, content: str, subject: str, quoted: _Quoted, evidence: tuple[int, ...]
    ) -> Candidate:  # fmt: skip
        language = language_of(content)
        is_owner = quoted.voice is Voice.OWNER
        hedges = (language_of(told.quote).concluded.hedge.search(told.quote), language.concluded.hedge.search(content))
        is_hedged = not is_owner and any(hedges)
        return Candidate(
            kind=Kind(told.kind), subject=subject, content=content, turns=tuple(self.turns[one].id for one in evidence),
            importance=self._importance(told, quoted, is_hedged=is_hedged), expiry=Expiry(told.expiry),
            tags=_tags(told.tags, is_hedged=is_hedged), speaker=Speaker.OWNER if is_owner else Speaker.AGENT,
            canonical_key=_key(told.canonical_key), confidence=Confidence.EXTRACTED,
            confidence_score=round(self._support(content_words(content, language), evidence), 2),
        )  # fmt: skip

    def _importance(self, told: Told, quoted: _Quoted, *, is_hedged: bool) -> int:
        """As the model weighs it, within what seed facts 1.5 allow."""
        weight = min(told.importance, 10)
        if quoted.voice is not Voice.OWNER:
            return min(weight, HEDGED_CAP if is_hedged else AGENT_CAP)
        said = self.turns[quoted.at].text
        language = language_of(said)
        if language.remember.strip.search(said):
            return max(weight, REMEMBERED)
        shows = bool(identifiers(told.content) or identifiers(told.quote)) or language.importance.strong.search(said)
        return STRONG - 1 if weight >= STRONG and self._is_coding and not shows else weight

    def _support(self, words: frozenset[str], evidence: Sequence[int]) -> float:
        """The share of some words that is in the evidence, or in the trusted turns around it, two to either side."""
        beside = {one for at in evidence for one in range(at - 2, at + 3) if 0 <= one < len(self.turns)}
        usable = [one for one in beside if self.voices.of(one) not in (Voice.UNTRUSTED, Voice.NOBODY)]
        return _share(words, frozenset[str]().union(*map(self._words_at, usable)))

    def _words_at(self, at: int) -> frozenset[str]:
        if at not in self._words:
            self._words[at] = _all_words(self.voices.vouched(at))
        return self._words[at]


def _refusal(told: Told, content: str, subject: str, language: Language) -> str | None:
    """What is wrong with a proposal whatever the session says."""
    bare = _ARTICLE.sub("", subject).strip().lower()
    if told.importance < LEAST_IMPORTANCE:
        return "unimportant"
    if not bare or len(subject) > _MAX_SUBJECT or bare in _SUBJECTS or is_generic(bare, language_of(subject)):
        return "generic"
    if language.reject["meta"].search(content) or language.reject["boilerplate"].search(content):
        return "about the session"
    return size_refusal(content)


def _parts(quote: str) -> list[str]:
    """What a quote joins with an ellipsis, normalised."""
    return [part for part in (normalise(one) for one in _ELLIPSIS.split(quote)) if part]


def _length(part: str) -> int:
    """How long words are; a Chinese character says as much as two letters, at least."""
    return len(part) + sum(character > "\u2e7f" for character in part)


def _share(words: frozenset[str], known: frozenset[str]) -> float:
    return len(words & known) / len(words) if words else 0.0


def _all_words(text: str) -> frozenset[str]:
    """The words of a text in every way in which a language takes them apart."""
    return frozenset[str]().union(*(content_words(text, language) for language in languages()))


def _outcomes(turn: Turn) -> frozenset[str]:
    """The words that a turn's calls brought; what calls were given, too, where the turn draws on text from outside."""
    is_foreign = turn.trust is Trust.UNTRUSTED
    told = [text for call in turn.tool_calls for text in (call.outcome or "", call.input if is_foreign else "") if text]
    return _all_words(" ".join(told)) if told else frozenset()


def _tags(told: Iterable[str], *, is_hedged: bool) -> tuple[str, ...]:
    plain = (re.sub(r"\s+", "-", tag.strip().lower()) for tag in told)
    found = [tag for tag in dict.fromkeys(plain) if _TAG.fullmatch(tag)]
    return tuple(dict.fromkeys([UNVERIFIED, *found] if is_hedged else found))[:MAX_TAGS]


def _key(told: str | None) -> str | None:
    key = (told or "").strip().lower()
    return key if _KEY.fullmatch(key) else None
