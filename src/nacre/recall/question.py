"""What a question asks for: its words, the names of code in it, people, and time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from nacre.recall.timewords import Window, find_window
from nacre.text import STOP_WORDS, identifiers, words

MAX_WORDS = 24
"""A pasted stack trace is a question too; its first distinct words carry it."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, taken apart.

    ``words`` are what the lexical lane looks for; ``names`` paths and identifiers; ``authors`` the known people it
    names; ``semantic`` the text the vector lane embeds (people's names left out: they pull towards greetings).
    """

    text: str
    words: tuple[str, ...]
    names: tuple[str, ...]
    authors: tuple[str, ...]
    semantic: str
    window: Window | None

    @property
    def is_only_time(self) -> bool:
        """Whether nothing but a time expression is left, as in "what did we do yesterday"."""
        return self.window is not None and not self.words


def read_question(text: str, *, now: datetime, authors: Iterable[str] = ()) -> Question:
    """Take a question apart. ``authors`` are people known from transcripts.

    A name counts as it is written, so that "will" is not Will; a question without capitals may mean either.
    """
    window = find_window(text, now)
    about = text.lower().replace(window.words, " ") if window else text
    wanted = [word for word in dict.fromkeys(words(about)) if word not in STOP_WORDS]
    if window and set(wanted) <= _GENERIC:
        wanted = []
    if not wanted and not window:
        wanted = list(dict.fromkeys(words(text)))
    as_written = re.IGNORECASE if text == text.lower() else re.NOFLAG
    named = tuple(name for name in authors if re.search(rf"\b{re.escape(name)}\b", text, as_written))
    semantic = text
    for name in named:
        semantic = re.sub(rf"\b{re.escape(name)}(?:['’]s)?\b", " ", semantic, flags=re.IGNORECASE)
    return Question(
        text=text,
        words=tuple(wanted[:MAX_WORDS]),
        names=tuple(identifiers(text)[:8]),
        authors=named,
        semantic=" ".join(semantic.split()) or text,
        window=window,
    )


_GENERIC = frozenset(
    "decide decided decision decisions learn learned learnt happen happened work worked working change changed talk "
    "talked discuss discussed agree agreed going new anything everything something 决定 做 干".split()
)
"""Words that ask for anything at all, once a time is named."""
