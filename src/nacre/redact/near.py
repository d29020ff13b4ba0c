"""Passwords near a word for one that no sentence joins to it, and passphrases.

People write "the db password went from Oakland#1994 to 8tRz!vPq2Lm", and answer "what's the password?" with a line that
holds nothing else. A shape that only a chosen password has is enough here, or the place of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nacre.redact.values import CHECKS

_BEFORE, _BEHIND, _LINE = 120, 240, 400
_LINES_OF_AN_ANSWER = 4
_ESCAPED = "surrogateescape"

_CANDIDATE = re.compile(
    rb"""(?<![^\s"'`(\[,:;=>|*\x80-\xff])
    (?=[^\s]{0,40}?[A-Z])(?=[^\s]{0,40}?[a-z])(?=[^\s]{0,40}?[0-9!$@*&^~])
    [A-Za-z0-9](?:[A-Za-z0-9._-]|(?!&[a-z]{2,6};)[!$@*&^~?#%+](?=[A-Za-z0-9])){6,39}[A-Za-z0-9!$?#%+_]
    (?=[\s"'`)\],.;:|*?!\x80-\xff]|$)""",
    re.VERBOSE,
)
_SIGN = re.compile(rb"[A-Za-z0-9][!$*&^~@][A-Za-z0-9]|[0-9][!$?]$|[a-z]{3}[+#][A-Z][a-z]")
_ADDRESS = re.compile(rb"[\w.+-]+@(?:[a-z0-9-]+\.)*[a-z0-9-]+$|[\w./-]+@\^?~?v?\d[\w.-]*$")
_CHORD = re.compile(rb"(?:ctrl|cmd|alt|shift|option|meta|sheet)\w*[!+&]", re.IGNORECASE)
_TITLED = re.compile(rb"(?=.*[0-9])[A-Z][a-z]{3,}(?:[._-][A-Z][a-z]{2,}){1,3}[._-]?[0-9]{1,4}")
_LEET = re.compile(rb"[a-z]+[0-9]+[a-z]+(?:[0-9]+[a-z]*)*[A-Z][a-z]+[0-9]*[a-z]*")
_PAIR = re.compile(
    rb"""(?<![\w./-])[\w.@+-]{2,40}[ ]/[ ](?=[^\s]{0,40}?[A-Za-z])(?=[^\s]{0,40}?[0-9])
    ([A-Za-z0-9][!-.:-~]{5,39}[A-Za-z0-9!?#$*+])(?=[\s),.;"'`]|$)""",
    re.VERBOSE,
)
"""A name and a password, as people write them: with blanks around the stroke."""

_ASKED = re.compile(r"(?:^|[?:：？。])\s*$")
_ANSWER = re.compile(
    r"""[ \t>]{0,4}(?:[\[(]?\d[\d:., /-]{3,20}[\])]?[ ]{0,2})?               # when it was said
    (?:[*_]{0,2}[^\W\d_][\w -]{0,24}[*_]{0,2}[:>：][*_]{0,2}[ \t]{0,2})?     # by whom
    (?:\w{1,12},?[ ]){0,2}(?:(?:->|→|=)[ ])?                                # "yes, it's →"
    [`"']?([^\s`"'\\<>{}()\[\]]{6,64}?)[`"']?(?:[ ][^\x00-\x7f]{1,4})?[ \t.]{0,2}$""",
    re.VERBOSE,
)
_LINK = re.compile(
    r"""[^\r\n.;:=!?]{0,40}?(?:[:=：是は]|[ ](?:it|that)['’]s(?=[ ])|[ ]c['’]est(?=[ ])
    |[ ](?:is|was|ist|lautet|heißt|est|es|jest|to|è|é|är|olarak)(?=[ ]))[ \t]{0,3}""",
    re.VERBOSE | re.IGNORECASE,
)
_WORDS = re.compile(
    r"""(?:\\{0,7}["'`]|[“”„]|«[ ]?)?((?:[\w'-]{1,16}[ ]){2,9}[\w'-]{2,16}?)
    (?=[ ]?(?:["'`.,;:!?()\r\n\\»“”—]|$)|[ ]-)""",
    re.VERBOSE,
)
_TALK = frozenset(
    "not no is are was be been being must should can cannot may might will would have has had do does did you we i it "
    "they this these that those which what who when where if unless until while because but so then only also already "
    "still never always please required optional empty blank wrong incorrect invalid missing needed stored saved kept "
    "set used unset read prompted asked entered typed generated encrypted protected same see ask leave least most min "
    "max chars characters words from for in with without by via of or and as too very longer shorter than per nicht "
    "kein keine muss soll wird ist sind leer falsch im vom und oder mit wenn pas doit dans pour avec est vide et ou "
    "si debe para por con non deve vuota nel nella sono o".split()
)
"""Words of a sentence about a passphrase. Articles are none of them: passphrases have those, too."""


def near_password(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The words around a name for a password that have the shape of one, and the line that answers it."""
    start, end = max(0, match.start() - _BEFORE), match.end() + _BEHIND
    for found in _CANDIDATE.finditer(data, start, end):
        if is_unmistakable(found[0]):
            yield found.span()
    for found in _PAIR.finditer(data, start, end):
        if CHECKS["direct"](data, *found.span(1)):
            yield found.span(1)
    yield from _iter_answers(data, match.end())


def said_phrase(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """The words that a passphrase is made of, behind "is" or a colon."""
    text = data[match.end() : match.end() + _LINE].decode("utf-8", _ESCAPED)
    link = _LINK.match(text)
    words = _WORDS.match(text, link.end()) if link else None
    if words and not _TALK.intersection(words[1].lower().split()):
        yield _bytes_of(text, *words.span(1), match.end())


def is_unmistakable(word: bytes) -> bool:
    """Whether a word has a shape that people choose for passwords, and that names, code and versions do not have."""
    if _ADDRESS.match(word) or _CHORD.match(word):
        return False
    if _TITLED.fullmatch(word) or _LEET.fullmatch(word):
        return True
    return bool(_SIGN.search(word)) and CHECKS["chosen"](word, 0, len(word))


def _iter_answers(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    """The only word of a line below a question, or below a line that ends with the name."""
    lines = data[place : place + _LINE * _LINES_OF_AN_ANSWER].split(b"\n", _LINES_OF_AN_ANSWER + 1)
    if len(lines) == 1 or not _ASKED.search(lines[0].decode("utf-8", _ESCAPED)):
        return
    place += len(lines[0]) + 1
    for line in lines[1 : _LINES_OF_AN_ANSWER + 1]:
        text = line.decode("utf-8", _ESCAPED)
        answer = _ANSWER.match(text.rstrip("\r"))
        if answer:
            span = _bytes_of(text, *answer.span(1), place)
            if CHECKS["direct"](data, *span):
                yield span
                return
        if line.strip():
            return
        place += len(line) + 1


def _bytes_of(text: str, start: int, end: int, place: int) -> tuple[int, int]:
    """Where in the bytes a part of a text lies that begins at a place there."""
    first = place + len(text[:start].encode("utf-8", _ESCAPED))
    return first, first + len(text[start:end].encode("utf-8", _ESCAPED))
