"""What a memory claims, as a model tells it: what is asked, what of the answer holds, which claims are of one thing."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from nacre.text.passages import shorten
from nacre.values.memory import Claim, Memory
from nacre.values.model_calls import Prompt, Task

OWNER = "owner"
"""The entity that a person is who speaks of themselves."""

MOST_HINTS = 50
"""So many known entities are told to a model (seed facts 1.3)."""

LONGEST_TEXT = 1_500
"""Characters of a memory that a model reads: what it claims and what ends it stands at the beginning."""

_LONGEST_NAME = 80
_LONGEST_OBJECT = 300
_OUTPUT_TOKENS = 400
_SAME_ATTRIBUTE = 0.6
_SELF = frozenset({"user", "the-user", "owner", "the-owner", "i", "me", "my", "myself", "我", "用户"})
_ARTICLE = re.compile(r"^(?:the|an?)-(?=.)")
_NO_NAME = re.compile(r"[^\w./@+#-]+")
_NO_WORD = re.compile(r"[\W_]+")
_OF_NO_WEIGHT = frozenset({"change", "changes", "owner", "owners", "ownership", "owned", "own"})
_ARY = "ary"
_SHORTEST_STEM = 3


class ClaimAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """What a model says a memory claims; empty texts where it claims nothing."""

    entity: str
    attribute: str
    predicate: str
    object: str
    confidence: float


def claim_prompt(memory: Memory, known: Sequence[str], answer: dict[str, Any]) -> Prompt:
    """Ask what a memory claims; ``known`` are entities that others are about, ``answer`` the schema."""
    return Prompt(
        Task.CLAIMS, system("claim-1"), f"The memory:\n{as_data(memory)}", answer, name="claim",
        shared=f"Known entities: {json.dumps(list(known)[:MOST_HINTS], ensure_ascii=False)}",
        version="claim/1", output_tokens=_OUTPUT_TOKENS,
    )  # fmt: skip


def claim_of(answer: ClaimAnswer) -> Claim | None:
    """The claim in an answer, its names in their one form; ``None`` where there is none."""
    entity, attribute = entity_name(answer.entity), attribute_name(answer.attribute)
    said = shorten(answer.object, _LONGEST_OBJECT)
    if not (entity and attribute and said):
        return None
    return Claim(entity, attribute, attribute_name(answer.predicate), said, round(share(answer.confidence), 2))


def share(number: float) -> float:
    """A number between 0 and 1; 0 where it is none."""
    return min(1.0, max(0.0, number)) if number == number else 0.0


def entity_name(text: str) -> str:
    """An entity in its one form: lower case, hyphens between words; whoever speaks of themselves is the owner."""
    text = unicodedata.normalize("NFKC", text).strip().lower().replace("_", "-")
    name = _ARTICLE.sub("", _NO_NAME.sub("-", text).strip("-."))[:_LONGEST_NAME].strip("-")
    return OWNER if name in _SELF or f"the-{name}" in _SELF else name


def attribute_name(text: str) -> str:
    """An attribute or predicate in its one form: snake case."""
    return _NO_WORD.sub("_", unicodedata.normalize("NFKC", text).lower()).strip("_")[:_LONGEST_NAME].strip("_")


def are_one_attribute(one: str, other: str) -> bool:
    """Whether two attributes are one: alike in six of ten words (Jaccard .6), those of no weight and endings aside."""
    mine, theirs = _stems(one), _stems(other)
    return one == other or (bool(mine & theirs) and len(mine & theirs) >= _SAME_ATTRIBUTE * len(mine | theirs))


def _stems(attribute: str) -> frozenset[str]:
    words = [word for word in attribute.split("_") if word and word not in _OF_NO_WEIGHT]
    return frozenset(word.removesuffix(_ARY) if len(word) - len(_ARY) >= _SHORTEST_STEM else word for word in words)


def as_data(memory: Memory, **more: object) -> str:
    """A memory for a prompt, as one line of JSON: nothing that it says can end the quotation it stands in."""
    values = {**more, "kind": memory.kind.value, "subject": shorten(memory.subject, 200)}
    return json.dumps({**values, "text": shorten(memory.content, LONGEST_TEXT)}, ensure_ascii=False)


@cache
def system(name: str) -> str:
    """The prompt in a file of ``prompts/``."""
    return files(__package__).joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")
