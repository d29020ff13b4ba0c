"""Take out of a message what its speaker did not say: nacre's own context, reminders of the harness, bulk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LESS = r"(?:<|&lt;|&amp;lt;|&#0*60;|&#x0*3c;|\\+u003c)"
_NAME = "nacre-context"
_OWN = (
    re.compile(rf"{_LESS}\s*{_NAME}\b", re.I),
    re.compile(rf"{_LESS}\s*\\*/\s*{_NAME}[^\n>&\\]{{0,20}}(?:>|&gt;|&amp;gt;|\\+u003e)?", re.I),
)
_TAGS = (
    "system-reminder", "system_reminder", "environment_details", "environment_context", "user-prompt-submit-hook",
    "hook_context", "session_context", "relevant-memories", "relevant_memories", "recalled-memories",
    "recalled_memories", "memory-context", "memory_context", "active_memory_plugin",
)  # fmt: skip
"""Frames of harnesses and of other memories, around what lies on this machine."""

_OUTSIDE_TAGS = ("untrusted",)
"""nacre's own frame around what is from outside, where its answer is read in a pipe."""

_MARKERS = (
    ("<<<EXTERNAL_UNTRUSTED_CONTENT", "<<<END_EXTERNAL_UNTRUSTED_CONTENT"),
    ("<<<BEGIN_UNTRUSTED_CHILD_RESULT", "<<<END_UNTRUSTED_CHILD_RESULT"),
    ("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT", "<<<END_OPENCLAW_INTERNAL_CONTEXT"),
)
"""OpenClaw's frames around what is from outside."""

_Marks = tuple[re.Pattern[str], re.Pattern[str]]
_LOCAL_FRAMES: dict[str, _Marks] = {
    f"<{tag}": (re.compile(rf"<{tag}\b[^>]*>"), re.compile(f"</{tag}>")) for tag in _TAGS
}
_OUTSIDE_FRAMES: dict[str, _Marks] = {
    **{f"<{tag}>": (re.compile(f"<{tag}>"), re.compile(f"</{tag}>")) for tag in _OUTSIDE_TAGS},
    **{begin: (re.compile(f"{begin}[^>]*>>>"), re.compile(f"{end}[^>]*>>>")) for begin, end in _MARKERS},
}
_BASE64 = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/]{500,}={0,2}")
_BULK = 500
_SPACES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The words that are left; ``own`` is what was taken out of nacre's own context, ``outside`` what stood in frames
    around text from outside, ``local`` in those around what this machine has to say."""

    text: str
    own: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    @property
    def injected(self) -> bool:
        """Whether nacre's own context was among what was taken out."""
        return bool(self.own)


def clean(text: str) -> Cleaned:
    """Strip injected blocks and base64 bulk; lone surrogates become U+FFFD.

    A block runs to the last mark that ends it, for what stands in it may hold such a mark, and one that never ends to
    the end of the text; one of nacre's own that never begins starts with the text: better to lose words than to take
    somebody else's for the speaker's. Of nacre's own escaped marks count, too: summaries and JSON quote them.
    """
    if not text.isascii():
        text = text.encode("utf-8", errors="replace").decode("utf-8")
    own: tuple[str, ...] = ()
    if _may_hold_own(text):
        text, own = _without_own(text)
    outside, local = list[str](), list[str]()
    if "<" in text:
        text = _without_frames(_without_frames(text, _OUTSIDE_FRAMES, outside), _LOCAL_FRAMES, local)
    if _may_hold_bulk(text):
        text = _BASE64.sub("[base64]", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\n\n\n" in text:
        text = _SPACES.sub("\n\n", text)
    return Cleaned(text.strip(), own, tuple(outside), tuple(local))


def strip(text: str) -> Cleaned:
    """Strip nacre's own context alone: the last door, for what an adapter let pass."""
    left, own = _without_own(text)
    return Cleaned(left.strip() if own else text, own)


def _without_own(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without nacre's own context, and what that was."""
    if not _may_hold_own(text) or _NAME not in text.lower():
        return text, ()
    own: list[str] = []
    text = _without_frame(text, _OWN, own)
    ends = [match.end() for match in _OWN[1].finditer(text)]
    if ends:
        own.append(text[: ends[-1]])
        text = text[ends[-1] :]
    return text, tuple(own)


def _without_frames(text: str, frames: Mapping[str, _Marks], inside: list[str]) -> str:
    """A text without some frames; what stood in them is added to ``inside``."""
    for mark, marks in frames.items():
        if mark in text:
            text = _without_frame(text, marks, inside)
    return text


def _without_frame(text: str, marks: _Marks, inside: list[str]) -> str:
    """A text without what stands from the first mark that begins a frame to the last one that ends it."""
    begin = marks[0].search(text)
    if begin is None:
        return text
    ends = [match.end() for match in marks[1].finditer(text, begin.end())]
    end = ends[-1] if ends else len(text)
    inside.append(text[begin.start() : end])
    return text[: begin.start()] + text[end:]


def _may_hold_own(text: str) -> bool:
    return "-context" in text or "-Context" in text or "-CONTEXT" in text


def _may_hold_bulk(text: str) -> bool:
    """Whether some run of signs is as long as bulk: then one whole half of that length, at least, has no blank."""
    half = _BULK // 2
    for at in range(0, len(text) - half + 1, half):
        if text.find(" ", at, at + half) < 0 and text.find("\n", at, at + half) < 0:
            return len(text) >= _BULK
    return False
