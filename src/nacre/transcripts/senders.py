"""Who wrote a message in a chat, as bridges and tools write it there, and whether that is the owner."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from nacre.transcripts.phrases import channels

_IDS = ("id", "e164", "username", "tag")
_NAMES = ("name", "label")
_WHEN = re.compile(
    r"\s*(?:\+\d+[smhdw]\S{0,12}(?:\s+|\Z))?(?:(?:[A-Z][a-z]{2} )?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}.*)?\Z"
)
"""How long after the message before, and when, at the end of what stands in the brackets."""
_ID = re.compile(r"\s*\(?\bid:([^\s)]+)\)?")
_HANDLE = re.compile(r"\s*\((@[^)\s]+)\)")
_FROM = re.compile(r"^\[from: ([^\]\n]{1,120}?)(?: \(([^)\n]*)\))?\][^\S\n]*\Z", re.MULTILINE)
_SOMEBODY = "somebody"


@dataclass(frozen=True, slots=True)
class Sender:
    """Whom a message in a chat names; ``names`` are those by which the owner may have configured them."""

    author: str
    names: frozenset[str]

    def is_one_of(self, identities: Iterable[str]) -> bool:
        """Whether the owner configured one of the names."""
        return any(identity.strip().casefold() in self.names for identity in identities)


def read_sender(text: str) -> tuple[str, Sender | None]:
    """A message without what names its sender, ``[Feishu] Otto:`` before it or ``[from: Otto]`` after it, and the
    sender; of several the one before it.
    """
    end = _FROM.search(text)
    after = _sender("", end[2] or end[1], shown=end[1]) if end else None
    text = text[: end.start()].rstrip() if end else text
    begin = _line().match(text)
    if begin is None:
        return text, after
    inside = _person(begin["channel"], begin["rest"].strip())
    if inside:
        return text[begin.end("bracket") :].lstrip(), inside
    if begin["name"]:
        return text[begin.end() :].lstrip(), _sender(begin["channel"], begin["name"])
    return text, after


def sender_in(head: str) -> Sender:
    """The sender whom an envelope names before its time: the channel, of whatever name, and who writes there."""
    known = _line().match(f"[{head}]")
    channel, _, rest = (known["channel"], "", known["rest"]) if known else head.partition(" ")
    return _person(channel, rest.strip()) or Sender(head, frozenset())


def sender_of(facts: Mapping[str, Any]) -> Sender | None:
    """The sender whom a tool describes; nobody where it names none."""
    ids = [str(facts[key]) for key in _IDS if facts.get(key)]
    names = [str(facts[key]) for key in _NAMES if facts.get(key)]
    return _sender("", *(ids or names), shown=(names or ids)[0]) if ids or names else None


def _person(channel: str, rest: str) -> Sender | None:
    """Who is named in the brackets; nobody where they name a room, or a time alone.

    An id, where there is one, is the only name that counts, and the last one is the channel's: anybody may take a name.
    """
    rest = _WHEN.sub("", f" {rest}").strip()
    ids, handles = _ID.findall(rest), _HANDLE.findall(rest)
    name = _HANDLE.sub("", _ID.sub("", rest)).strip()
    if not (name or ids) or (name.startswith("#") and not ids):
        return None
    return _sender(channel, *(ids[-1:] or [name, *handles[-1:]]), shown=name or ids[-1])


def _sender(channel: str, *names: str, shown: str = "") -> Sender:
    told = [name.strip().casefold() for name in names if name.strip()]
    known = {f"{channel.casefold()}:{name}" for name in told} if channel else set()
    return Sender(shown.strip() or (names[0] if told else _SOMEBODY), frozenset(known.union(told)))


@cache
def _line() -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in sorted(channels(), key=len, reverse=True))
    return re.compile(
        rf"\A\s*(?P<bracket>\[(?P<channel>{names})(?![\w-])(?P<rest>[^\]\n]{{0,200}})\])[^\S\n]*"
        r"(?:(?P<name>[^:\n\[\]]{1,80}):[^\S\n])?"
    )
