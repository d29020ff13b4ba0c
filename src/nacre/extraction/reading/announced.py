"""Reads: whether what stands before a statement announces somebody else's words."""

from __future__ import annotations

from nacre.extraction.explicit.cues import cues
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.pasted_cues import announcing_words, labelled_words
from nacre.extraction.reading.sentences import Statement


def is_announced(statement: Statement) -> bool:
    """Whether what stands before a statement may announce somebody else's words: an order with a colon ("fix this:"), a
    label ("Issue: …"), a line above it that ends with a colon. Not where that says that it is to be kept, or a rule.
    """
    above = [statement.under] if statement.under else []
    before, colon, _ = statement.text.replace("：", ":").partition(":")
    if colon and (labelled_words().match(statement.text) or _is_errand(before)):
        above.append(before + colon)
    return not all(map(_is_own, above))


def _is_errand(text: str) -> bool:
    language = language_of(text)
    return bool(language.reject["errand"].search(language.trim(text)))


def _is_own(text: str) -> bool:
    own = (cues().remember, cues().rule, cues().place, announcing_words())
    return any(one.search(text) for one in own)
