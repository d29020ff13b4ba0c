"""The gate: whether a prompt is worth looking for anything, and what is looked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nacre.recall.question import Question
from nacre.text import words

QUERY_CHARACTERS = 600
SEED_CHARACTERS = 400
"""Of the last turns of the session before, which say what a new one is likely to go on with (seed facts 1.8)."""

_SAME = 0.85
"""Two prompts whose words overlap so far (Jaccard) ask the same (seed facts 1.8)."""

_COMMAND = re.compile(r"\s*[/!#][\w:-]*(?:\s|$)")
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_TRACE = re.compile(
    r"^\s*(?:at\s|File \"|Traceback\b|\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d|[-+]{3}\s|@@|[+-]\s|[{}\[\]<>|$%]"
    r"|\w+(?:Error|Exception):)"
)
"""How lines begin that a program wrote: traces, logs, diffs, markup."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked for with a prompt; nothing where ``query`` is empty, and ``why`` says why."""

    query: str = ""
    why: str = ""


def asked_by(prompt: str, before: str = "") -> Asked:
    """What a prompt asks for; ``before`` is what was looked for last in its session.

    Commands of the host ask for nothing; what was pasted (fences, traces, diffs) is not what the person said.
    """
    if _COMMAND.match(prompt):
        return Asked(why="a command of the host")
    said = prose(prompt)
    if not said:
        return Asked(why="nothing but pasted text" if prompt.strip() else "empty")
    if before and _overlap(said, before) > _SAME:
        return Asked(why="asked just now")
    return Asked(said)


def prose(prompt: str) -> str:
    """What a person typed themselves, as far as it can be told, cut to what a search takes."""
    lines = (line.strip() for line in _FENCED.sub("\n", prompt).splitlines() if not _TRACE.match(line))
    return " ".join(line for line in lines if line)[:QUERY_CHARACTERS]


def trivial(question: Question) -> str:
    """Why a question is not worth looking for anything; empty where it is."""
    return "nothing in it to look for" if question.says_nothing and not question.lists else ""


def _overlap(one: str, other: str) -> float:
    mine, theirs = set(words(one)), set(words(other))
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0
