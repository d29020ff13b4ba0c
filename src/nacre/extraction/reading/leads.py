"""Decide whether the beginning or the end of a text says that somebody else wrote it."""

from __future__ import annotations

import re
from functools import lru_cache

from nacre.embed import minilm
from nacre.extraction.explicit.cues import cues
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.pasted_cues import (
    author_words,
    labelled_words,
    quoting_words,
    saying_words,
    words_of,
)
from nacre.transcripts.trust import is_outside_source

_REMEMBERED = 256
_LONGEST = 100
_COLON = re.compile(r"[:：](?=\s|$|[^\x00-\x7f])|(?<=\w)>(?=\s+\S)|(?<=\w)\s[—–](?=\s)")
_STAMP = re.compile(r"[\[(<]?\b\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m\b)?[\])>]?,?", re.IGNORECASE)
_ASIDE = re.compile(r"[(（\[].*?(?:[)）\]]|$)")
_TOKEN = re.compile(r"[@#\w](?:[\w.'’#/-]*\w)?")
_SOURCE = re.compile(
    r"@|.*\bbot$|[A-Z][A-Z0-9]{1,9}-\d+$|#\d+$|.*\.(?:md|txt|rst|pdf|docx?|eml|html?)$",
    re.IGNORECASE,
)
"""A handle, a ticket, a document."""
_POINTS = re.compile(r"(?:this|that|these|those)\b", re.IGNORECASE)
_OF = re.compile(r"(?:from|of|at|in|on|von|aus|de|da|di|van)$")
_HEADER = re.compile(r"from|to|cc|bcc|subject|sent|betreff|von|an|objet|asunto|发件人|收件人|主题", re.IGNORECASE)
"""A header of a mail."""
_FIRST_PERSON = re.compile(
    r"\b(?:i|we|you|ich|wir|je|nous|yo|io|eu|ik|wij|ja|я|мы)(?:['’]\w+)?(?:\s[\w'’]+){0,3}\s*$|[我咱你]们?$",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|has|have|goes?|stays?|needs?|must|should|will|can|may|(?:that|this|it|there|here)['’]s)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"[^\W\d_][^\W\d_A-Z]*(?:['’-][^\W\d_]+)*$")
_SIGNED = re.compile(
    r"""
    (?:(?:^|[.!?…。！？"”’)\]]|\n)[ \t]*(?:[—–~]{1,2}|--|(?<=[.!?…"”’)][ ])-(?=[ ][A-Z]))\s*
      (?=@|[^\W\d_])
      | [^\W\d_][ ]+[—–][ \t]*(?=[A-Z][\w'’-]+(?:[ ][A-Z][\w'’-]+){0,2}\s*$)
      | (?i:\b(?:regards|best(?:\ wishes)?|cheers|sincerely|thanks|gr(?:u[sß]+|ü[sß]+e)|lg|mfg|cordialement|saludos
        |saluti)[,!]?)[ \t\n]+(?=[A-Z]))
    (?P<name>[^\n.!?。！？:：]{1,40})\.?(?:\n[^\n]{1,60}){0,2}\s*$
    """,
    re.VERBOSE,
)
_DASHES = ("—", "–")
_POSSESSIVE = re.compile(r"([^\W\d_]+)['’]s\b")
_ADDRESSED = re.compile(r"^[^:：]*\b(?:i|your?)\b", re.IGNORECASE)
_DEICTIC = re.compile(
    r"\b(?:this|that|these|following|below|das|dies\w*|folgend\w*|ça|ceci|esto|questo|isto|dit|это)\b|[这此]|以下|下面|これ"
    r"|\b(?:in|to|into|ins|auf|en|al|na|på)\s+(?-i:[A-Z])",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:please|pls|can|could|would|will|you|kindly|just|help|me|my|bitte|kannst|könntest|du|mir|peux|tu|puedes"
    r"|por favor|puoi|kun|je|[请帮我麻烦把你能可以将]+)\b|[请帮我麻烦把你能可以将这段句话文]+",
    re.IGNORECASE,
)
"""What may stand before an order."""
_NOUN_ENDINGS = ("ing", "ion", "ment", "ity", "ness", "age")
_WIDE, _LONGEST_WIDE_NAME = "\u2e7f", 6
_PLURAL = 3
"""How many times the rank of its plural may be that of a common noun's singular."""
_MOST_NAMED, _MOST_CITING, _MOST_SIGNING, _NEAR = 3, 7, 5, 4
_END = 300
"""Characters at the end of a message in which a signature is searched."""


@lru_cache(maxsize=_REMEMBERED)
def leads_others(text: str) -> bool:
    """Return True if a sentence begins with somebody else's name, a label, or an order to edit or explain a text.

    Such a lead holds for the whole paragraph. One that names a topic ("Branch names: …") or announces the owner's own
    words ("Reminder: …") does not count.
    """
    if labelled_words().match(text) and not _ADDRESSED.search(text):
        return True
    bare = _without_address(text)
    colon = _COLON.search(bare)
    if not colon:
        return _edits(bare) and bool(_DEICTIC.search(bare))
    before = bare[: colon.start()]
    lead = _ASIDE.sub("", _STAMP.sub("", before)).strip(" *_`<>")
    is_short = 0 < len(_TOKEN.findall(lead)) <= _MOST_NAMED
    if _STAMP.search(before) and is_short:
        return True
    if colon[0].strip() in _DASHES:
        return is_short and not _is_own(lead) and _names(lead)
    return _edits(lead) or _is_cited(lead) or (is_short and not _is_own(lead) and _names(lead))


def reports(text: str) -> bool:
    """Return True if a sentence tells what somebody says: "my boss says …", "according to the docs …"."""
    bare = _without_address(text)
    if words_of("according").match(bare):
        return True
    said = saying_words().search(" ".join(bare.split()[: _NEAR + 2]))
    return said is not None and said.start() > 0 and not _FIRST_PERSON.search(bare[: said.start()])


def _without_address(text: str) -> str:
    """The beginning of a text behind "ok, so" and the like."""
    polite = language_of(text).lead.match(text)
    return text[polite.end() : polite.end() + _LONGEST] if polite else text[:_LONGEST]


def behind_own_lead(text: str) -> str:
    """Return the words behind a short lead that announces the owner's own ("Reminder: …"), or an empty text."""
    colon = _COLON.search(text[:_LONGEST])
    if colon is None:
        return ""
    lead = text[: colon.start()]
    is_own = 0 < len(_TOKEN.findall(lead)) <= _MOST_NAMED and _is_own(lead) and not leads_others(text)
    return text[colon.end() :].strip() if is_own else ""


def is_signed(text: str) -> bool:
    """Return True if a name stands below or behind a text, as below a quotation or a letter."""
    signed = _SIGNED.search(text[-_END:])
    if signed is None or len(signed["name"].split()) > _MOST_SIGNING:
        return False
    return signed["name"][:1].isupper() or _names(signed["name"])


def _edits(text: str) -> bool:
    """Whether a text begins with an order to edit, translate or explain."""
    order = words_of("editing").search(text)
    return order is not None and not _POLITE.sub("", text[: order.start()]).strip(" ,:*_")


def _is_cited(lead: str) -> bool:
    """Whether a lead says of whom or from where the text behind it is: "note from Otto", "the vendor wrote"."""
    said = saying_words().search(lead) or quoting_words().search(lead)
    if said is not None and not _FIRST_PERSON.search(lead[: said.start()]):
        return True
    owner = _POSSESSIVE.search(lead)
    if owner and _names(owner[1]):
        return True
    by = author_words().search(lead)
    author = lead[by.end() :].strip() if by and len(_TOKEN.findall(lead)) <= _MOST_CITING else ""
    return bool(author) and _names(author)


def _is_own(lead: str) -> bool:
    """Whether a lead announces a rule or a note, or speaks of the owner and not of their people."""
    text, known = f"{lead}:", cues()
    own = (known.remember, known.rule, known.place, known.decided, words_of("announcing"), words_of("kept"))
    if any(one.search(text) for one in own) or language_of(text).remember.strip.match(f"{text} x"):
        return True
    return words_of("self").search(lead) is not None and words_of("people").search(lead) is None


def _names(lead: str) -> bool:
    """Whether a short lead is a person, a role, a place where people write, or a text of somebody else's."""
    tokens = _TOKEN.findall(lead)
    if not 0 < len(tokens) <= _MOST_NAMED or _VERB.search(lead):
        return False
    if _HEADER.fullmatch(lead) or any(_SOURCE.match(one) or is_outside_source(one) for one in tokens[:2]):
        return True
    if words_of("people").search(lead):
        return True
    strange = [one for one in tokens if (_NAME.match(one) or len(tokens) == 1) and not _is_common(one)]
    if words_of("others").match(lead):
        return len(tokens) == 2 or not _POINTS.match(lead)
    if len(tokens) > 1 and tokens[-1].islower() and _is_common(tokens[-1]) and not _OF.match(tokens[-2]):
        return False
    return bool(strange) and (any(one[0].isupper() for one in strange) or len(strange) == len(tokens))


def _is_common(word: str) -> bool:
    """Return True if a word is a topic or a common noun rather than a name.

    The plural of a common noun is hardly rarer than its singular; that of a name is rare or unknown.
    """
    lower, ranks, language = word.lower(), minilm.vocabulary(), language_of(word)
    if not language.subject.stop.isdisjoint((lower, f"{lower}'s")):
        return True
    if lower > _WIDE:
        return len(lower) > _LONGEST_WIDE_NAME
    singular = lower.removesuffix("s")
    if lower not in ranks:
        return singular in ranks
    return lower.endswith(_NOUN_ENDINGS) or ranks.get(f"{singular}s", len(ranks)) < _PLURAL * ranks.get(singular, 0)
