"""``[[wikilinks]]`` in a text, and the form in which a name that is written and a name that is borne are the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_LINK = re.compile(r"\[\[([^\[\]\n]{1,300})\]\]")
_CODE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)|(`+)[^`\n]+\2", re.DOTALL | re.MULTILINE)
_NAME_END = re.compile(r"[#|]|\\\|")
_WORDS = re.compile(r"[^\W_]+")
_MOST = 500
"""Links of one text; a longer list is no prose."""


def name_key(name: str) -> str:
    """Words in lower case with hyphens between: ``Tide Gauge``, ``tide-gauge`` and ``design/Tide Gauge`` in part."""
    return "-".join(_WORDS.findall(unicodedata.normalize("NFKC", name).lower()))


def mentioned(text: str) -> list[str]:
    """The keys of the names that a text links, each once; what stands in code is no link.

    Of ``[[name#heading|shown]]`` the name counts, of a path from where the file lies (``../fact/name``) its end.
    """
    if "[[" not in text:
        return []
    links = _LINK.findall(_CODE.sub(" ", text))
    names = (_NAME_END.split(link, maxsplit=1)[0] for link in links)
    keys = (name_key(name.rpartition("/")[2] if name.startswith(".") else name) for name in names)
    return [key for key in dict.fromkeys(keys) if key][:_MOST]


def called(subject: str, path: str | None, aliases: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """What a memory is called: keys with the name as it is written, and whether that is an alias.

    It is called by its subject, by its file, by the path of that in the vault, and by its aliases.
    """
    whole = (path or "").removesuffix(".md")
    own = (subject, whole.rpartition("/")[2], whole)
    names = [(name, False) for name in own] + [(name, True) for name in aliases]
    found: dict[str, tuple[str, bool]] = {}
    for name, is_alias in names:
        if key := name_key(name):
            found.setdefault(key, (name, is_alias))
    return found


def aliases_in(value: object) -> list[str]:
    """The names in a front matter's ``aliases``: a list, or a text with commas."""
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [name.strip() for name in listed if isinstance(name, str) and name.strip()]
