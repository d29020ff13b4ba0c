"""When two texts are written alike: they differ in layout alone."""

from __future__ import annotations

import re
import unicodedata

_MARKS = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "…": "..."})
_LAYOUT = re.compile(r"^\s*(?:[-*•]\s+|#+\s+)|`", re.MULTILINE)
_STRONG = re.compile(r"(?<!\S)\*\*(?=[^\s*/])([^*/]*[^\s*/])\*\*(?![\w/*])")
_END = re.compile(r"(?<=[\w\])}'\"）」』])[.!。！]+(?=\s|$)")
_SENTENCE = re.compile(r"(?:^|[.!?。！？]\s+)(\w)")


def written(text: str) -> str:
    """A text without its layout: spaces, emphasis, kinds of quotes and dashes, the full stop after a word, the case of
    a first letter. Names of files and patterns (``__init__.py``, ``src/**/a``, ``cd ..``) stay as they are."""
    text = _LAYOUT.sub("", unicodedata.normalize("NFC", text).translate(_MARKS))
    text = _STRONG.sub(r"\1", text)
    text = _SENTENCE.sub(lambda found: found[0].lower(), text.strip())
    return " ".join(_END.sub("", text).split())
