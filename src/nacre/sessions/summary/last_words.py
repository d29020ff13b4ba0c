"""Reads: what an agent's last words say of its work: that it is done, that it is not, what it asks, what comes next."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.extraction.reading.cue_sets import ConcludedCues
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.patterns import Pattern
from nacre.extraction.reading.reports import passages
from nacre.values.session import Turn

_FINAL = 200
_BRIEF = 25
_ENDS = 3
"""Statements at the beginning and at the end of a report that tell how things stand; those between explain."""


def is_report(turn: Turn) -> bool:
    """Whether a turn ends with words: it has no calls, or, in tools that put both into one, its words sound final."""
    if announces(turn.text):
        return False
    if not turn.tool_calls:
        return bool(turn.text)
    if turn.tool_calls[-1].outcome in (None, "rejected"):
        return False
    return says_done(turn.text) or len(turn.text) >= _FINAL or _is_question(turn.text)


def announces(text: str) -> bool:
    """Whether words end with what their speaker does next: "Let me run the tests:"."""
    if _leads(text.rstrip()):
        return True
    return any(language_of(one).summary.announces.search(one) for one in _without_offers(text)[-1:])


def says_done(text: str) -> bool:
    """Whether words say that it is done: "All tests pass"."""
    return _holds(text, language_of(text).concluded.done)


def tells_work(text: str) -> bool:
    """Whether words tell what was done: "The pears are pruned"."""
    return any(language_of(one).concluded.work.search(one) for one in _telling(text))


def speaks_against(text: str) -> str:
    """The first sentence that says that the work failed, or is left: of a long text only how it opens is taken so."""
    said = _said(text)
    denied = said if len(said) <= _ENDS else said[:1]
    held = (one for at, one in enumerate(denied) if _speaks_against(one, " ".join(said[at + 1 :][:_ENDS])))
    return next(held, "") or says_undone(text)


def says_undone(text: str) -> str:
    """The first sentence that says so outright; of a long text the ends and headings are read."""
    return giving_up(text) or next((one for one in _telling(text) if _holds_besides(one, _cues(one).undone)), "")


def giving_up(text: str) -> str:
    """The last sentence that says that it did not get there, with what follows where it is short."""
    wanted = language_of(text).summary.gave_up
    said = _said(text)
    return next((_with_next(said, at) for at in reversed(range(len(said))) if wanted.search(said[at])), "")


def questions(text: str) -> list[str]:
    """What an agent asks at the end of its words, without what asks for nothing in particular."""
    return [one for one in _said(text)[-_ENDS:] if _is_question(one) and not _offers(one)]


def asks_last(text: str) -> str:
    """The question with which words end, or what they say they need of the owner; not an offer to do more."""
    needed = next((one for one in _said(text)[-2:] if language_of(one).summary.awaits.search(one)), "")
    last = _without_offers(text)[-1:]
    return needed or next((one for one in last if _is_question(one)), "")


def opening(text: str) -> str:
    """The first sentence, with what follows where it is short: "Done."; none where it only leads into something."""
    said = _said(text)
    at = next((at for at, one in enumerate(said) if not _leads(one)), None)
    return "" if at is None else _with_next(said, at)


def _said(text: str) -> list[str]:
    return [one.text for passage in passages(text) for one in passage.statements]


def _telling(text: str) -> list[str]:
    """Sentences that tell how things stand."""
    said = _said(text)
    between = [one for one in said[_ENDS:-_ENDS] if _leads(one)]
    headings = [passage.heading for passage in passages(text) if passage.heading]
    return [*said[:_ENDS], *headings, *between, *said[_ENDS:][-_ENDS:]]


def _cues(sentence: str) -> ConcludedCues:
    return language_of(sentence).concluded


def _holds_besides(sentence: str, wanted: Pattern) -> bool:
    """Whether a sentence says so itself, and not of a reason, or of the trouble that was mended."""
    return bool(wanted.search(_cues(sentence).beside.sub("", sentence)))


def _speaks_against(sentence: str, following: str) -> bool:
    """Whether a sentence denies the work, and tells of no trouble that is over by what follows."""
    cues = _cues(sentence)
    told = cues.mended.sub("", f"{cues.beside.sub('', sentence)}\n{following}").partition("\n")[0]
    return bool(cues.against.search(told))


def _without_offers(text: str) -> list[str]:
    said = _said(text)
    while said and _offers(said[-1]):
        said.pop()
    return said


def _holds(text: str, wanted: Pattern) -> bool:
    """Whether a line of a text says so. Over many lines of signs alone, expressions would go back and forth."""
    return any(wanted.search(line) for line in text.splitlines() if line.strip())


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("*_ )）\"'").endswith(("?", "？"))


def _offers(sentence: str) -> bool:
    return bool(language_of(sentence).summary.offer.search(sentence))


def _with_next(said: Sequence[str], at: int) -> str:
    following = [one for one in said[at + 1 : at + 2] if not _leads(one)]
    return language_of(said[at]).joiner.join([said[at], *following]) if len(said[at]) <= _BRIEF else said[at]


def _leads(sentence: str) -> bool:
    return sentence.endswith((":", "："))
