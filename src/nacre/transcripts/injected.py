"""Take out of a message what its speaker did not say: nacre's own context, reminders of the harness, bulk."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LESS = r"(?:<|&lt;|&amp;lt;|&#0*60;|&#x0*3c;|\\+u003c)"
_NAME = "nacre-context"
_NACRE = re.compile(
    rf"{_LESS}\s*{_NAME}\b.*?(?:{_LESS}\s*\\*/\s*{_NAME}[^\n>&\\]{{0,20}}(?:>|&gt;|&amp;gt;|\\+u003e)?|\Z)",
    re.DOTALL | re.I,
)
_NACRE_END = re.compile(
    rf"\A.*{_LESS}\s*\\*/\s*{_NAME}[^\n>&\\]{{0,20}}(?:>|&gt;|&amp;gt;|\\+u003e)?", re.DOTALL | re.I
)
_REMINDER = re.compile(
    r"<(system-reminder|system_reminder|environment_details|environment_context|user-prompt-submit-hook)\b[^>]*>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
_BASE64 = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/]{500,}={0,2}")
_BULK = 500
_REMINDER_MARKS = ("<system", "<environment_", "<user-prompt-submit-hook")
_SPACES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The words that are left; ``own`` is what was taken out of nacre's own context."""

    text: str
    own: tuple[str, ...] = ()

    @property
    def injected(self) -> bool:
        """Whether nacre's own context was among what was taken out."""
        return bool(self.own)


def clean(text: str) -> Cleaned:
    """Strip injected blocks and base64 bulk; lone surrogates become U+FFFD.

    A block that never ends runs to the end of the text, and one that never begins starts with it: better to lose words
    than to learn nacre's own again. Escaped marks count, too, as a summary or a tool's JSON quotes them.
    """
    if not text.isascii():
        text = text.encode("utf-8", errors="replace").decode("utf-8")
    own: tuple[str, ...] = ()
    if _may_hold_own(text):
        text, own = _without_own(text)
    if "<" in text and any(mark in text for mark in _REMINDER_MARKS):
        text = _REMINDER.sub("", text)
    if _may_hold_bulk(text):
        text = _BASE64.sub("[base64]", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\n\n\n" in text:
        text = _SPACES.sub("\n\n", text)
    return Cleaned(text.strip(), own)


def strip(text: str) -> Cleaned:
    """Strip nacre's own context alone: the last door, for what an adapter let pass."""
    left, own = _without_own(text)
    return Cleaned(left.strip() if own else text, own)


def _without_own(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without nacre's own context, and what that was."""
    if not _may_hold_own(text) or _NAME not in text.lower():
        return text, ()
    own = [match[0] for match in _NACRE.finditer(text)]
    text = _NACRE.sub("", text)
    end = _NACRE_END.match(text)
    if end:
        own.append(end[0])
        text = text[end.end() :]
    return text, tuple(own)


def _may_hold_own(text: str) -> bool:
    return "-context" in text or "-Context" in text or "-CONTEXT" in text


def _may_hold_bulk(text: str) -> bool:
    """Whether some run of signs is as long as bulk: then one whole half of that length, at least, has no blank."""
    half = _BULK // 2
    for at in range(0, len(text) - half + 1, half):
        if text.find(" ", at, at + half) < 0 and text.find("\n", at, at + half) < 0:
            return len(text) >= _BULK
    return False
