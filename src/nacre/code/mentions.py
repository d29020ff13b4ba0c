"""Files and symbols that memories name, as they write them: paths, names in backticks and in blocks of code, and in
plain words what only code is called (``camelCase``, ``a.b``, ``snake_case``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from nacre.code.languages.table import language_of
from nacre.errors import Unavailable
from nacre.home.home import Home
from nacre.storage.code.mentions import Mention
from nacre.text.passages import identifiers

_PORTION = 500
_MOST_NAMES = 200
_NAME_CHARACTERS = 200
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_MARKED = re.compile(r"`([^`\n]{1,200})`")
_NAME = re.compile(r"^[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$~][\w$]*)*(?:\(.*\))?$")
_WORD = re.compile(r"[A-Za-z_$][\w$]{3,}")
_SEPARATOR = re.compile(r"::|#|->|\.")
_LINE = re.compile(r":\d+(?:[:-]\d+)?$")
_PLAIN = re.compile(r"^[A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_$][\w$]*)*$")
_WORDS_OF_CODE = frozenset(
    """and async await bool break case catch char class const continue default define delete double elif else enum error
    except export extends false final finally float from func function global impl implements import include inline
    instanceof interface lambda long match module namespace none null number object operator override package pass
    print private protected public raise range readonly return self short signed static string struct super switch
    template this throw throws trait true type typedef typename typeof undefined union unsigned using virtual void
    volatile where while with yield""".split()
)


def catch_up_mentions(home: Home) -> None:
    """Look for names of code in memories that are new, or were written anew. Costs a query where there are none.

    Where nothing can be written now, the next one does it.
    """
    if home.database.unwritable:
        return
    with suppress(Unavailable):  # another process writes, or the disk is full
        while found := home.code_mentions.unread(_PORTION):
            home.code_mentions.put((one, list(mentions(f"{subject}\n{content}"))) for one, subject, content in found)
            if len(found) < _PORTION:
                return


def mentions(text: str) -> Iterator[Mention]:
    """The names of code in a text, each once."""
    seen: dict[str, Mention] = {}
    for one in _found(text):
        seen.setdefault(one.written, one)
    yield from list(seen.values())[:_MOST_NAMES]


def symbol_parts(written: str) -> list[str]:
    """The parts of a dotted name."""
    return [part for part in _SEPARATOR.split(written) if part]


def key_of(written: str) -> str:
    """The lookup key of a name: its last part, in lower case."""
    if is_path(written):
        return written.rsplit("/", 1)[-1].lower()
    parts = symbol_parts(written)
    return parts[-1].lower() if parts else written.lower()


def is_path(written: str) -> bool:
    """Whether a name is the path of a source file."""
    return language_of(written) is not None or ("/" in written and "." in written.rsplit("/", 1)[-1])


def _found(text: str) -> Iterator[Mention]:
    outside = _FENCE.sub("\n", text)
    for written in _MARKED.findall(outside):
        yield from _marked(_bare(written.strip()))
    for written in map(_bare, identifiers(_MARKED.sub(" ", outside))):
        if is_path(written):
            yield _mention(written, "path")
        elif _PLAIN.match(written):
            yield _mention(written, "text")
    for _, block in _FENCE.findall(text):
        for word in dict.fromkeys(_WORD.findall(block)):
            if word.lower() not in _WORDS_OF_CODE:
                yield _mention(word, "fence")


def _marked(bare: str) -> Iterator[Mention]:
    path, hash_sign, name = bare.partition("#")
    if is_path(path) and " " not in path:
        yield _mention(path, "path")
        if hash_sign and name:
            yield _mention(name, "marked")
    elif _NAME.match(bare) and len(bare) > 2:
        yield _mention(bare.split("(")[0], "marked")


def _bare(written: str) -> str:
    return _LINE.sub("", written.replace("\\", "/").removeprefix("./"))


def _mention(written: str, manner: str) -> Mention:
    written = written[:_NAME_CHARACTERS]
    return Mention(key_of(written), written, manner)
