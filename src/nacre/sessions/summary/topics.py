"""Reads: what was asked for in a session, the main things first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nacre.extraction.reading.course import is_own, objects
from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.leaning import leans
from nacre.extraction.reading.sentences import is_pasted
from nacre.extraction.reading.speech import Utterance, acceptance, is_content
from nacre.extraction.rules.reversal import content_words
from nacre.text.passages import is_unspaced, one_line, shorten
from nacre.values.session import Flag, Speaker, Trust, Turn
from nacre.values.summary import Topic

MOST = 8
LONGEST = 300
"""Characters of a topic."""

_SHORT = 120
_LEAST_WORDS = 3
_LEAST_SIGNS = 5
_ALIKE = 0.6
_ANSWER = 8
_LEANING = 6
FORMS = frozenset({"AskUserQuestion", "ask_followup_question", "request_user_input", "question", "ask_user"})
_HEADING = re.compile(r"^#{1,4} +(\S.*)$", re.MULTILINE)
_ERROR_PLACE = re.compile(r"[\w./\\-]+\.\w{1,4}:\d+")
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
    """What was asked for: first what began it, then by how much work followed."""
    found = [one for one in _merged(_requests(turns, spoken)) if not is_idle(one.text)]
    found = [*found[:1], *sorted(found[1:], key=lambda one: -one.work)]
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


def asks_for_work(sentence: str) -> bool:
    """Whether a sentence asks for something to be done: no question, no nod, and not only something to look at."""
    language = language_of(sentence)
    told = language.trim(sentence)
    if not is_telling(told) or language.summary.look.match(told) or language.summary.onward.match(told):
        return False
    is_order = language.reject["errand"].search(told)
    return bool(is_order) or not (language.reject["question"].search(told) or told.endswith(("?", "？")))


def _requests(turns: Sequence[Turn], spoken: Sequence[Utterance]) -> list[_Request]:
    found = [_Request(words_of(turns[one.index], one), turns[one.index], asks(turns, one)) for one in spoken]
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


def words_of(turn: Turn, utterance: Utterance) -> str:
    """The words as they were typed where these are few, else without what was pasted; a bare command by its name."""
    raw = utterance.text.strip()
    if is_bare_command(turn, utterance):
        return shorten(one_line(turn.text), LONGEST)
    if len(raw) <= LONGEST and turn.speaker is Speaker.OWNER and _is_typed(raw):
        return one_line(raw)
    joiner = language_of(raw).joiner
    kept = [one.text for one in utterance.statements]
    while len(kept) > 1 and is_idle(kept[0]):
        kept.pop(0)
    text = joiner.join(kept)
    if text.endswith((":", "：")):
        heading = _HEADING.search(raw)
        text = f"{text}{joiner}{heading[1].strip(' #*')}" if heading else text
    return shorten(text, LONGEST)


def is_bare_command(turn: Turn, utterance: Utterance) -> bool:
    """Whether a message is a slash command with nothing that tells by itself what was wanted: "/model opus"."""
    return bool(turn.flags & Flag.COMMAND) and turn.text.startswith("/") and not is_telling(utterance.text)


def _is_typed(raw: str) -> bool:
    """Whether nothing in a message seems to be pasted."""
    lines = [line for line in raw.splitlines() if line.strip()]
    if _HEADING.search(raw):
        return False
    return len(lines) == 1 or ("```" not in raw and "</" not in raw and not any(map(is_pasted, lines)))


def asks(turns: Sequence[Turn], utterance: Utterance) -> bool:
    """Whether a message asks for something of its own, rather than to go on, or again, or otherwise."""
    text = utterance.text.strip()
    language = language_of(text)
    if not is_telling(text) or is_pasted(text.splitlines()[0]) or _ERROR_PLACE.match(text):
        return False
    if utterance.correcting or acceptance(utterance, language) == [] or _was_asked(turns, utterance):
        return False
    return not (len(text) <= _SHORT and _goes_on(utterance, language))


def is_telling(text: str) -> bool:
    """Whether a message has words enough to ask for something, besides paths and addresses."""
    if is_idle(text):
        return False
    if not language_of(text).joiner or is_unspaced(text):
        return sum(map(str.isalnum, text)) >= _LEAST_SIGNS
    return sum("/" not in word and any(map(str.isalpha, word)) for word in text.split()) >= _LEAST_WORDS


def _goes_on(utterance: Utterance, language: Language) -> bool:
    """Whether a short message only goes on with what was asked before, ends it, or has it committed."""
    text = utterance.text.strip()
    cues = language.summary
    if cues.onward.match(text) or cues.stop.match(text) or objects(utterance, language):
        return True
    if language.accepted.finished.match(text):
        return True
    words = len(text.split()) if language.joiner else len(text) // 2
    return (words <= _ANSWER and bool(language.answers.yes.match(text))) or (
        words <= _LEANING and leans(text, language)
    )


def _was_asked(turns: Sequence[Turn], utterance: Utterance) -> bool:
    """Whether a message answers what the agent has just asked: in a form, or in a few words."""
    places = range(utterance.index - 1, -1, -1)
    before = next((turns[at] for at in places if turns[at].speaker is Speaker.AGENT), None)
    if before is None:
        return False
    if before.tool_calls and before.tool_calls[-1].name in FORMS:
        return True
    words = len(utterance.text.split()) if language_of(utterance.text).joiner else len(utterance.text) // 2
    return words <= _ANSWER and before.text.rstrip(" *_)`").endswith(("?", "？"))


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
