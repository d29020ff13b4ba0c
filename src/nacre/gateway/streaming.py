"""An answer while it is made: passed on by lines and sentences, without secrets."""

from __future__ import annotations

import re
from collections.abc import Callable

from nacre.gateway.files import Cleans

_AHEAD = 60
"""Characters that must have come after a sentence before it is passed on: what begins in it is seen as a whole."""

_LONG = 200
"""Characters without the end of a sentence that are passed on up to a blank."""

_CONTEXT = 2_000
"""Characters before the present line that are looked at with it, at least."""

_STOP = re.compile(r"[.!?:;]\s|[。！？]")
_KEY_BEGINS, _KEY_ENDS = "-----BEGIN", "-----END"


class CleanStream:
    """Takes pieces as a model writes them, and passes on what is sure to hold no secret. Nothing is cut within a word,
    nor within what the redactor would take out; a private key is held back until its end."""

    def __init__(self, redactor: Cleans, hear: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._hear = hear
        self._text = ""
        self._passed = 0
        self._heard = ""

    def hear(self, piece: str) -> None:
        """A piece more."""
        self._text += piece
        end = self._end()
        if end > self._passed:
            self._pass(end)

    def finish(self) -> None:
        """Nothing more comes."""
        self._pass(len(self._text))

    def _end(self) -> int:
        """Up to where the text may be passed on."""
        text = self._text
        end = text.rfind("\n") + 1
        if end <= self._passed:
            known = text[self._passed : -_AHEAD]
            stops = [stop.end() for stop in _STOP.finditer(known)]
            end = self._passed + (stops[-1] if stops else known.rfind(" ") + 1 if len(known) > _LONG else 0)
        key = text.rfind(_KEY_BEGINS)
        return min(end, key) if key >= 0 and _KEY_ENDS not in text[key:] else end

    def _pass(self, end: int) -> None:
        head = self._redactor.clean(self._text[:end])
        if end < len(self._text) and not self._redactor.clean(self._text).startswith(head):
            return  # it would be cut within a secret
        if fresh := head[_in_common(head, self._heard) :]:
            self._hear(fresh)
        if end > _CONTEXT and head == self._text[:end] and head.endswith("\n"):
            self._text, head, end = self._text[end:], "", 0
        self._passed, self._heard = end, head


def _in_common(one: str, other: str) -> int:
    """How many characters two texts begin with."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(one), len(other)))
