"""The gate: whether a prompt is worth looking for anything, and what is looked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nacre.text.passages import STOP_WORDS, is_unspaced, words

QUERY_CHARACTERS = 2_000
_PROMPT_CHARACTERS = 20_000
SEED_CHARACTERS = 400
"""Of the last turns of the session before, which say what a new one is likely to go on with (seed facts 1.8)."""

HEARD, HEARD_CHARACTERS = 5, 200
"""The last prompts of a session that are kept, and how much of each (seed facts 1.8)."""

_SAME = 0.85
"""Two prompts whose words overlap so far (Jaccard) ask the same (seed facts 1.8)."""

_POINTS_BACK_WORDS = 8
_POINTS_BACK = re.compile(
    r"^\W*(?:and|but|so|or)?\s*(?:why|how so|how come|what about|how about|and|also"
    r"|the (?:other|same|first|second|last) one"
    r"|(?:for|with|in|on) (?:that|this|it|them|those)|und|warum|wieso|et|pourquoi|y|por qué)\b"
    r"|\b(?:it|that|this|those|them|there)\b\W*$|^(?:那|还有|为什么|这个|那个|它)",
    re.IGNORECASE,
)
"""How a short prompt begins or ends that means what was spoken of before."""

_COMMAND = re.compile(r"\s*(?:/[\w:.-]+(?=\s|$)|!\s*\w)")
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_TRACE = re.compile(
    r"^\s*(?:at\s+[\w.$<>]+[\s(]|File \"|Traceback\b|Caused by:|\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|[-+]{3}\s|@@"
    r"|[+-]\s{2,}|[{}\[\]<>|$%]|\w*(?:Error|Exception|Warning):"
    r"|(?:npm|yarn|pip|error|warn|info|debug|fatal)\b[\w\[\] .!]*(?:ERR|:)|[\w./\\-]+:\d+(?::\d+)?:?\s)"
)
"""How lines begin that a program wrote: traces, logs, diffs, markup."""

_LETTER = re.compile(r"[^\W\d_]")

_MAY_BE_SECRET = re.compile(
    r"[=@]|://|\d\S{7}|\S{7}\d|[A-Za-z0-9+/_-]{20}|passw|passphrase|passcode|contraseña|mot de passe|secret|token"
    r"|credential|bearer|key\b|\bpwd\b|\bpin\b|private|密码|口令|密钥",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PromptQuery:
    """What is looked for with a prompt; nothing where ``query`` is empty, and ``why`` says why."""

    query: str = ""
    why: str = ""


def asked_by(prompt: str, before: str = "", heard: Sequence[str] = ()) -> PromptQuery:
    """What a prompt asks for; ``before`` is what was looked for last in its session, ``heard`` are its last prompts.

    Commands of the host ask for nothing; what was pasted (fences, traces, diffs) is not what the person said. A short
    prompt that points back is looked for together with the one before.
    """
    if _COMMAND.match(prompt):
        return PromptQuery(why="a command of the host")
    said = prose(prompt)
    if not said:
        return PromptQuery(why="nothing but pasted text" if prompt.strip() else "empty")
    if is_trivial(said):
        return PromptQuery(why="nothing in it to look for")
    if heard and len(said.split()) <= _POINTS_BACK_WORDS and _POINTS_BACK.search(said):
        said = f"{said}\n{heard[-1]}"
    if before and _is_same(said, before):
        return PromptQuery(why="asked just now")
    return PromptQuery(said)


def prose(prompt: str) -> str:
    """What a person typed themselves, as far as it can be told, line by line, cut to what a search takes."""
    lines = (
        line.strip() for line in _FENCED.sub("\n", prompt[:_PROMPT_CHARACTERS]).splitlines() if not _TRACE.match(line)
    )
    return "\n".join(line for line in lines if line)[:QUERY_CHARACTERS]


def is_trivial(said: str) -> bool:
    """Whether a prompt only greets, thanks, nods or says to go on; or holds no word at all."""
    if not _LETTER.search(said):
        return True
    plain, phrases = _trivial()
    rest = " ".join(words(said)) if said.isascii() else " ".join(re.findall(r"[^\W_]+", said.lower()))
    for phrase in phrases:
        if is_unspaced(phrase):
            continue
        rest = re.sub(rf"\b{re.escape(phrase)}\b", " ", rest)
    return all(word in plain or (is_unspaced(word) and not _without(word, phrases)) for word in rest.split())


def is_plain(text: str) -> bool:
    """Whether a prompt surely holds no secret: most do, and none needs more than a look at it to be told."""
    return not _MAY_BE_SECRET.search(text)


def after_hearing(heard: Sequence[str], prompt: str) -> tuple[str, ...]:
    """The last prompts of a session, with one more; those that say nothing are not kept."""
    said = prose(prompt)[:HEARD_CHARACTERS]
    return (*heard, said)[-HEARD:] if said and not is_trivial(said) else tuple(heard)


def _without(run: str, phrases: Sequence[str]) -> str:
    """What is left of a run of characters without the phrases, the longest first."""
    for phrase in phrases:
        run = run.replace(phrase, "")
    return run


@cache
def _trivial() -> tuple[frozenset[str], tuple[str, ...]]:
    """Single words, and phrases, the longest first."""
    tables = tomllib.loads(Path(__file__).with_name("trivial.toml").read_text(encoding="utf-8"))
    plain = frozenset(word for table in tables.values() for word in table.get("words", "").split())
    phrases = sorted(
        {phrase for table in tables.values() for phrase in table.get("phrases", [])}, key=len, reverse=True
    )
    return plain, tuple(phrases)


def _is_same(asked: str, before: str) -> bool:
    """Whether nearly the same is asked again, or nothing that was not asked before."""
    mine, theirs = set(words(asked)), set(words(before))
    return mine - STOP_WORDS <= theirs or len(mine & theirs) / len(mine | theirs) > _SAME
