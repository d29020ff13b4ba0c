"""When two texts are written alike: they differ in layout alone."""

from __future__ import annotations

import re
import unicodedata

_MARKS = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "…": "..."})
_LAYOUT = re.compile(r"^\s*(?:[-*•]\s+|#+\s+)|\*\*|__|`", re.MULTILINE)
_END = re.compile(r"[.!。！]+(?=\s|$)")
_SENTENCE = re.compile(r"(?:^|[.!?。！？]\s+)(\w)")


def written(text: str) -> str:
    """A text without its layout: spaces, emphasis, kinds of quotes and dashes, full stops, the case of a first
    letter."""
    text = _LAYOUT.sub("", unicodedata.normalize("NFC", text).translate(_MARKS))
    text = _SENTENCE.sub(lambda found: found[0].lower(), text.strip())
    return " ".join(_END.sub("", text).split())
