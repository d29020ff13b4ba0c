"""Reads: whether a statement may be somebody else's, whom the owner only shows."""

from __future__ import annotations

from nacre.extraction.explicit.cues import cues
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.leads import leads_others
from nacre.extraction.reading.pasted_cues import words_of
from nacre.extraction.reading.questions import is_asking
from nacre.extraction.reading.sentences import Statement, split_typed
from nacre.text.passages import words

_FRAMES = (">", "<", "{", "|")
_BRIEF = 3
"""Words of an order that shows something: "please fix this:"."""


def may_be_others(statement: Statement) -> bool:
    """Whether a statement may be somebody else's: it is marked so, or stands on a later line of what was typed than the
    first, or behind a short order with a colon ("fix this:").

    Who pastes says first what it is, and in no words that could be listed. A later line is the owner's own where the
    first one is an order to keep something or a rule, or it or the line that leads into a list says with a colon that
    what follows is to hold.
    """
    before, colon, _ = statement.text.replace("：", ":").partition(":")
    if statement.marked or (colon and _is_errand(before) and not announces(before + colon)):
        return True
    if not statement.line or _is_order(statement.opening):
        return False
    return not any(map(announces, (statement.lead or "", statement.opening)))


def own_words(text: str) -> str:
    """What of a message is told as the owner's: without what is pasted in it, and what may only be shown."""
    if "\n" not in text.strip():
        return "" if text.lstrip().startswith(_FRAMES) else text
    typed = [one.text for one in split_typed(text) if not may_be_others(one)]
    return language_of(text).joiner.join(typed)


def _is_order(text: str) -> bool:
    """Whether a line orders to keep something, or states a rule: who begins so goes on in their own words."""
    order = language_of(text).trim(text)
    return not is_asking(text) and any(one.match(order) for one in (cues().remember, cues().rule, cues().ordered))


def _is_errand(text: str) -> bool:
    language = language_of(text)
    order = language.trim(text)
    return len(words(order)) <= _BRIEF and bool(language.reject["errand"].search(order))


def announces(text: str) -> bool:
    """Whether words before a colon say that what follows is to hold."""
    own = (cues().remember, cues().rule, cues().place, words_of("announcing"))
    is_lead = text.rstrip().endswith((":", "：")) and any(one.search(text) for one in own)
    return is_lead and not leads_others(text)
