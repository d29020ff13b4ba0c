"""Questions that ask for a list: "open todos", "what decisions were made for billing?", 待办."""

from __future__ import annotations

from collections.abc import Collection

from nacre.retrieval.question.question_words import asks, without_particles
from nacre.text.passages import STOP_WORDS, words
from nacre.values.memory import Kind

_NAMES = {
    Kind.FACT: "fact facts 事实",
    Kind.DECISION: "decision decisions 决定 决策",
    Kind.PREFERENCE: "preference preferences convention conventions 偏好 规范",
    Kind.TODO: "todo todos task tasks reminder reminders 待办 待办事项",
    Kind.RELATIONSHIP: "relationship relationships 关系",
    Kind.EVENT: "event events 事件",
    Kind.LESSON: "lesson lessons learnings 教训 经验",
}
"""The plain nouns for each kind. Verbs ("what did we decide about …") ask for what was decided, not for a list."""

_KINDS = {name: kind for kind, names in _NAMES.items() for name in sorted(names.split(), key=len, reverse=True)}

_QUALIFIERS = frozenset("open active current pending outstanding unfinished left all my our made team user".split())
"""Words that such a list may be asked for with and that choose nothing: every memory in recall is active."""


def kinds_listed(text: str, known: Collection[str]) -> tuple[Kind, ...]:
    """The kinds of memories a question wants listed; none where it asks for something in particular.

    ``known`` are the words that belong to names of people and projects.
    """
    kinds: dict[Kind, None] = {}
    rest = without_particles(text.lower())
    for name, kind in _KINDS.items():
        if not name.isascii() and name in rest:
            kinds[kind] = None
            rest = rest.replace(name, " ")
    for word in words(rest):
        if word in _KINDS:
            kinds[_KINDS[word]] = None
        elif not (word in STOP_WORDS or word in known or word in _QUALIFIERS or asks(word)):
            return ()
    return tuple(kinds)
