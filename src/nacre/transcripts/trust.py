"""Does a statement draw on text from outside? DESIGN section 4: shared word 5-grams, or quotations."""

from __future__ import annotations

import re

from nacre.model.session import Trust

SHINGLE_WORDS = 5
_MAX_WORDS = 20_000

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_QUOTED = re.compile(r"[\"“”«»「」`]([^\"“”«»「」`\n]{25,400})[\"“”«»「」`]")
_OUTSIDE_TOOL = re.compile(
    r"web|fetch|browser|browse|http|url|search_query|screenshot|navigate|gmail|mail|slack|jira|notion|github|gitlab",
    re.IGNORECASE,
)
_OUTSIDE_COMMAND = re.compile(
    r"\b(curl|wget|http|https|lynx|w3m)\b\s|\bgh\s+(issue|pr|api|release|search|gist|run)\b|\bglab\s", re.IGNORECASE
)


def is_outside(tool: str, short_input: str) -> bool:
    """Whether a tool call brings text from outside: the web, mail, issue bodies."""
    if _OUTSIDE_TOOL.search(tool):
        return True
    return bool(_OUTSIDE_COMMAND.search(short_input))


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = [word.lower() for word in _WORD.findall(text)[:_MAX_WORDS]]
    return {tuple(words[at : at + SHINGLE_WORDS]) for at in range(len(words) - SHINGLE_WORDS + 1)}


class Exchange:
    """What came from outside since the owner last spoke; says how far an agent's statement can be trusted."""

    def __init__(self) -> None:
        self._shingles: set[tuple[str, ...]] = set()
        self._text = ""
        self._unknown = False

    @property
    def is_tainted(self) -> bool:
        """Whether anything came from outside since the owner last spoke."""
        return bool(self._text) or self._unknown

    def resume(self) -> None:
        """Reading goes on in the middle of an exchange whose outside text is no longer known: trust nothing in it."""
        self._unknown = True

    def begin(self) -> None:
        """The owner spoke: a new exchange."""
        self._shingles.clear()
        self._text = ""
        self._unknown = False

    def saw(self, output: str) -> None:
        """Outside text arrived."""
        self._shingles |= _shingles(output)
        self._text = (self._text + "\n" + output.lower())[-400_000:]

    def trust_of(self, statement: str) -> Trust:
        """``untrusted`` when the statement shares a word 5-gram with, or quotes, what came from outside."""
        if self._unknown:
            return Trust.UNTRUSTED
        if not self._text:
            return Trust.TRUSTED
        if not self._shingles.isdisjoint(_shingles(statement)):
            return Trust.UNTRUSTED
        quotes = (match.group(1).lower() for match in _QUOTED.finditer(statement))
        return Trust.UNTRUSTED if any(quote in self._text for quote in quotes) else Trust.TRUSTED
