"""Reads: what was asked for in a session, the main things first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nacre.extract.course import is_own, objects
from nacre.extract.cues import language_of
from nacre.extract.reversal import content_words
from nacre.extract.speech import Utterance, acceptance, is_content
from nacre.model.session import Flag, Speaker, Trust, Turn
from nacre.model.summary import Topic
from nacre.text import one_line, shorten

MOST = 8
LONGEST = 300
"""Characters of a topic."""

_SHORT = 120
_LEAST_WORDS = 3
_LEAST_SIGNS = 5
_ALIKE = 0.6
_FIRST = 1.5
_SPARE = Flag.META | Flag.SUMMARY


@dataclass(slots=True)
class _Request:
    """What was asked for, the turn it was asked in, and what followed. ``is_new`` is false for what goes on with the
    request before."""

    text: str
    turn: Turn
    is_new: bool = True
    work: int = 0


def topics(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[Topic]:
    """What was asked for: by how much work followed, the first request a little ahead."""
    found = _merged(_requests(turns, spoken))
    weights = {id(one): one.work * (_FIRST if number == 0 else 1.0) for number, one in enumerate(found)}
    found.sort(key=lambda one: -weights[id(one)])
    return [Topic(one.text, one.turn.id, one.turn.speaker, one.work) for one in found[:MOST]]


def first_request(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> str | None:
    """The first thing that was asked for, else the first words of anyone."""
    requests = _requests(turns, spoken)
    said = next((one for one in requests if one.is_new), next(iter(requests), None))
    if said:
        return said.text
    return next((one_line(turn.text) for turn in turns if turn.text and not turn.flags & _SPARE), None)


def is_idle(text: str) -> bool:
    """Whether words ask for nothing: a greeting, thanks, a yes."""
    return len(text) <= _SHORT and bool(language_of(text).summary.idle.match(text))


def _requests(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[_Request]:
    found = [_Request(_words(turns[one.index], one), turns[one.index], _asks(one)) for one in spoken]
    places = [one.index for one in spoken]
    if not found:
        found, places = _without_owner(turns)
    for one, begin, end in zip(found, places, [*places, len(turns)][1:], strict=True):
        done = turns[begin + 1 : end]
        one.work = 1 + sum(len(turn.tool_calls) + is_own(turn) for turn in done)
    return found


def _without_owner(turns: Sequence[Turn]) -> tuple[list[_Request], list[int]]:
    """The task of a sub-agent, or what the owner only pasted."""
    for speaker in (Speaker.OWNER, Speaker.AGENT):
        at = next((at for at, turn in enumerate(turns[:2]) if turn.speaker is speaker and _is_plain(turn)), None)
        if at is not None:
            return [_Request(shorten(turns[at].text, LONGEST), turns[at])], [at]
    return [], []


def _is_plain(turn: Turn) -> bool:
    return turn.trust is Trust.TRUSTED and is_content(turn) and not turn.tool_calls


def _words(turn: Turn, utterance: Utterance) -> str:
    """The words as they were typed where these are few, else without what was pasted."""
    raw = one_line(utterance.text)
    if len(raw) <= LONGEST and "\n" not in utterance.text.strip() and turn.speaker is Speaker.OWNER:
        return raw
    joiner = language_of(utterance.text).joiner
    kept = [one.text for one in utterance.statements]
    while len(kept) > 1 and is_idle(kept[0]):
        kept.pop(0)
    return shorten(joiner.join(kept), LONGEST)


def _asks(utterance: Utterance) -> bool:
    """Whether a message asks for something of its own, rather than to go on, or again, or otherwise."""
    text = utterance.text.strip()
    language = language_of(text)
    cues = language.summary
    telling = sum(map(str.isalnum, text)) if not language.joiner else len(text.split())
    if telling < (_LEAST_WORDS if language.joiner else _LEAST_SIGNS) or is_idle(text):
        return False
    if len(text) <= _SHORT and (cues.onward.match(text) or cues.stop.match(text)):
        return False
    rest = acceptance(utterance, language)
    return not (rest == [] or utterance.correcting or (len(text) <= _SHORT and objects(utterance, language)))


def _merged(requests: Sequence[_Request]) -> list[_Request]:
    """Requests with what went on with them; one that is made again is one."""
    found: list[_Request] = []
    known: list[frozenset[str]] = []
    for one in requests:
        words = content_words(one.text, language_of(one.text))
        same = next(_alike(words, known), None) if one.is_new else len(found) - 1
        if same is None or same < 0:
            found.append(one)
            known.append(words)
        else:
            found[same].work += one.work
    if len(found) > 1 and not found[0].is_new:
        found[1].work += found.pop(0).work
    return found


def _alike(words: frozenset[str], known: Sequence[frozenset[str]]) -> Iterator[int]:
    for at, other in enumerate(known):
        if words and other and len(words & other) >= _ALIKE * len(words | other):
            yield at
