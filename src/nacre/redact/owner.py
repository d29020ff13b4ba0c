"""What goes because the owner says so: patterns of their own, and kinds of text that they choose."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from nacre.errors import SettingsInvalid
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    import regex
else:
    regex = Module("regex")

OWNER = "owner"
"""The rule name under which the owner's patterns are reported."""

HOME_PATH = "home-path"
"""The rule name under which folders of users are counted; they become ``~``."""

SECONDS_A_TEXT = 2.0
"""So long one pattern may look at one text."""

Find = Callable[[str], list[tuple[int, int]]]
"""Where in a text something is that goes: from, to."""


def find_by(pattern: re.Pattern[str]) -> Find:
    """Look for a pattern that is known to end."""
    return lambda text: [match.span() for match in pattern.finditer(text)]


_CARD = re.compile(r"(?<![\w.+-])[2-6][0-9]{2,3}(?P<gap>[ -]?)[0-9]{4,6}(?:(?P=gap)[0-9]{2,5}){1,3}(?![\w-]|\.[0-9])")
_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12,14}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|62[0-9]{2})[0-9]{12,15}"
)
"""Ranges and lengths of Visa, Mastercard, American Express, Diners, JCB, Discover and UnionPay."""


def _find_cards(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in _CARD.finditer(text) if _is_card(re.sub("[ -]", "", found[0]))]


def _is_card(digits: str) -> bool:
    """Tell whether digits are of an issuer's range and end with the check digit of Luhn."""
    doubled = (sum(divmod(int(digit) * 2, 10)) for digit in digits[-2::-2])
    luhn = sum(doubled) + sum(int(digit) for digit in digits[::-2])
    return luhn % 10 == 0 and len(set(digits)) > 1 and _ISSUERS.fullmatch(digits) is not None


KINDS: Mapping[str, tuple[str, Find]] = MappingProxyType(
    {
        "emails": (
            "email",
            find_by(
                re.compile(
                    r"(?<![\w.+%-])[^\W_][\w.+%-]{0,63}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-]|:[\w.~/-]*/)"
                )
            ),
        ),
        "home_paths": (
            HOME_PATH,
            find_by(
                re.compile(
                    r"(?:(?<![\w.~-])/(?:home|Users)/|(?<!\w)[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/))"
                    r"[^\s/\\\"'`<>:|*?;,()\[\]{}$]{1,64}"
                )
            ),
        ),
        "payment_cards": ("payment-card", _find_cards),
    }
)
"""What goes where the owner wants it, by the settings' names: the rule name and what it looks like."""


def find_own(pattern: str, seconds: float = SECONDS_A_TEXT) -> Find:
    """Look for a regular expression of the owner's. A text of which it cannot tell within ``seconds`` goes whole.

    Raises SettingsInvalid: it is no regular expression, or matches the empty text.
    """
    hint = "redact patterns are Python regular expressions; correct or remove this one"
    try:
        is_empty = re.compile(pattern).fullmatch("")
        compiled = regex.compile(pattern)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise SettingsInvalid(
            f"redaction pattern {pattern!r} is not a regular expression: {error}", hint=hint
        ) from error
    if is_empty:
        raise SettingsInvalid(f"redaction pattern {pattern!r} matches the empty text", hint=hint)

    def find(text: str) -> list[tuple[int, int]]:
        try:
            return [match.span() for match in compiled.finditer(text, timeout=seconds)]
        except TimeoutError:
            return [(0, len(text))]

    return find
