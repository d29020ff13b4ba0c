"""A language model that answers with what the labels say: what is lost of that is lost after the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.extraction.evidence import Quoting
from benchmarks.extraction.labels import Label, Labelled
from benchmarks.extraction.scoring import Kept
from nacre.base.text import normalise, title_of
from nacre.home.home import Home
from nacre.learn.checks import LEAST_IMPORTANCE
from nacre.learn.reading import content_words
from nacre.learn.sentences import language_of
from nacre.values.models import Capabilities, Completion, Price, Prompt, Tokens
from nacre.values.session import Speaker

NAME = "scripted-gold"

_HEAD = re.compile(r"^\[m(\d+)\]\[(\w+)(, untrusted)?[\w, ]*\] ?", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+\s*(?:·.*)?")
_KNOWN_CHARACTERS = 150


@dataclass(frozen=True, slots=True)
class _Shown:
    """A turn as it stands in a prompt."""

    number: int
    speaker: str
    text: str
    is_trusted: bool


class GoldModel:
    """Answers a prompt with the statements whose evidence it shows; implements LanguageModel.

    It cites the turns that a label names, those that can be trusted and the owner's before others, and quotes the
    sentence that has most words in common with the statement.
    """

    def __init__(self) -> None:
        self.name = f"{NAME}:1"
        self.evidence: Mapping[str, Sequence[tuple[Label, Sequence[str]]]] = {}
        """The words behind each label, by session."""
        self.capabilities = Capabilities(
            window=1_000_000, output=16_000, answers="schema", price=Price(), known=True
        )

    def complete(self, prompt: Prompt) -> Completion:
        """The labels of the session that a prompt shows, as far as it shows their evidence."""
        if prompt.name == "verdicts":
            return self._compared(prompt)
        shown = _shown(prompt.text)
        memories = [told for labels in self.evidence.values() for told in _told(labels, shown)]
        known: dict[str, list[Any]] = (
            {"known": []} if "known" in prompt.answer["properties"] else {}
        )
        text = json.dumps({"memories": memories, **known}, ensure_ascii=False)
        return Completion(text, Tokens(len(prompt.text) // 4, len(text) // 4), self.name)

    def _compared(self, prompt: Prompt) -> Completion:
        """Every statement holds: it is what a label says."""
        numbers = re.findall(r"^(\d+)\. \[", prompt.text.rpartition("<memories>")[2], re.MULTILINE)
        text = json.dumps(
            {"verdicts": [{"number": int(one), "finding": "holds", "wrong": []} for one in numbers]}
        )
        return Completion(text, Tokens(len(prompt.text) // 4, len(text) // 4), self.name)

    def close(self) -> None:
        """Nothing is open."""


def gold_evidence(
    context: Home, group: Iterable[Labelled], files: Mapping[str, Path]
) -> dict[str, list[tuple[Label, list[str]]]]:
    """The words behind each label of sessions that were read, by slug."""
    found = {}
    for item in group:
        quoting = Quoting(context, files[item.slug])
        found[item.slug] = [
            (label, [words for place in label.evidence if (words := quoting.words_at(place))])
            for label in item.labels
        ]
    return found


def as_kept(labelled: Sequence[Labelled]) -> list[Kept]:
    """The statements of labels as memories: what a model that misses nothing would have kept."""
    return [
        Kept(
            kind=label.kinds[0],
            subject=title_of(label.statement),
            content=label.statement,
            importance=_weight(label),
            sessions=(item.slug,),
        )
        for item in labelled
        for label in item.labels
    ]


def _weight(label: Label) -> int:
    """The middle of the range that is sensible, and what is kept at all where the range reaches up to that."""
    low, high = label.importance
    return round(max((low + high) / 2, min(high, LEAST_IMPORTANCE)))


def _shown(text: str) -> list[_Shown]:
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [
        _Shown(
            int(head[1]),
            head[2],
            text[head.end() : end].partition("\n</transcript>")[0],
            not head[3],
        )
        for head, end in zip(heads, ends, strict=False)
    ]


def _told(
    labels: Sequence[tuple[Label, Sequence[str]]], shown: Sequence[_Shown]
) -> list[dict[str, Any]]:
    texts = [normalise(one.text) for one in shown]
    told = []
    for label, words in labels:
        keys = [normalise(said.rstrip("…"))[:_KNOWN_CHARACTERS] for said in words]
        cited = [
            one
            for one, text in zip(shown, texts, strict=True)
            if any(key and key in text for key in keys)
        ]
        usable = [one for one in cited if one.is_trusted]
        if usable:
            told.append(_memory(label, usable))
    return told


def _memory(label: Label, cited: Sequence[_Shown]) -> dict[str, Any]:
    wanted = content_words(label.statement, language_of(label.statement))
    sentences = [
        (
            len(wanted & content_words(sentence, language_of(sentence))),
            one.speaker == Speaker.OWNER,
            one,
            sentence,
        )
        for one in cited
        for sentence in _SENTENCE.split(one.text)
        if sentence.strip()
    ]
    best = max(sentences, key=lambda item: (item[1] and item[0] > 0, item[0]))
    evidence = dict.fromkeys([best[2].number, *(one.number for one in cited)])
    return {
        "kind": label.kinds[0],
        "subject": title_of(label.statement),
        "content": label.statement,
        "importance": _weight(label),
        "expiry": "permanent",
        "tags": [],
        "canonical_key": None,
        "evidence": list(evidence),
        "quote": best[3].strip(),
    }
