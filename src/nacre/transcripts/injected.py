"""Take out of a message what its speaker did not say: nacre's own context, reminders of the harness, bulk."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NACRE = re.compile(r"<nacre-context\b[^>]*>.*?(?:</nacre-context>|\Z)", re.DOTALL)
_REMINDER = re.compile(
    r"<(system-reminder|system_reminder|environment_details|environment_context|user-prompt-submit-hook)\b[^>]*>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
_BASE64 = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/]{500,}={0,2}")
_MARKS = ("<nacre-context", "<system", "<environment_", "<user-prompt-submit-hook")
_SPACES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The words that are left, and whether nacre's own context was among what was taken out."""

    text: str
    injected: bool


def clean(text: str) -> Cleaned:
    """Strip injected blocks and base64 bulk; lone surrogates become U+FFFD.

    A block that never ends runs to the end of the text: better to lose words than to learn nacre's own again.
    """
    if not text.isascii():
        text = text.encode("utf-8", errors="replace").decode("utf-8")
    injected = False
    if any(mark in text for mark in _MARKS):
        stripped = _NACRE.sub("", text)
        injected = stripped != text
        text = _REMINDER.sub("", stripped)
    if len(text) >= 500:
        text = _BASE64.sub("[base64]", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    return Cleaned(_SPACES.sub("\n\n", text).strip(), injected)
