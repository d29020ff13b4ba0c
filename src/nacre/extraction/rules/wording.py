"""Finishes: how a memory is put: a capital where a sentence begins, no labels, a wish as a statement."""

from __future__ import annotations

import re

from nacre.extraction.reading.cues import Language

_CODE = re.compile(r"\S*(?:\(\)|_|\w\.\w|\w/\w|[a-z][A-Z])")


def capitalised(text: str, language: Language) -> str:
    """The text with a capital, unless it begins with a name from code; acronyms are all capitals."""
    if _CODE.match(text):
        return text
    head, space, rest = text.partition(" ")
    if head.lower() in language.wording.acronyms:
        return f"{head.upper()}{space}{rest}"
    return text[:1].upper() + text[1:]


def unlabelled(text: str, language: Language) -> str:
    """The text without a word before it that says what it is: "Bug: …"."""
    bare: str = language.wording.label.sub("", text)
    return bare


def flowing(text: str, language: Language) -> str:
    """An item of a list as a sentence: "`save()` - now writes" as "`save()` now writes"."""
    item = language.wording.item.match(text)
    if not item:
        return text
    rest = text[item.end() :]
    return f"{item['name']} {rest[0].lower()}{rest[1:]}"


def stated_plainly(text: str, language: Language) -> str:
    """A wish put as a question, as a wish: "Can we sort the list by date?" as "Sort the list by date."; what was chosen
    for a thing, after the thing."""
    chosen = language.wording.choice.match(text)
    if chosen:
        return f"{chosen['topic']}: {text[chosen.end() :]}"
    wished = language.wording.wished.match(text)
    if wished:
        return f"{wished['topic']} should {wished['wish']}." + text[wished.end() :]
    polite = language.wording.polite.match(text)
    wish = language.wording.here.sub("", polite["wish"]) if polite else ""
    return f"{wish}." + text[polite.end() :] if polite else text
