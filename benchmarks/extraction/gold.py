"""A language model that answers with the labels. It shows what is lost after the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.extraction.evidence import Quoting
from benchmarks.extraction.labels import Label, Labelled
from benchmarks.extraction.scoring import Kept
from nacre.base.frozen import frozen
from nacre.base.text import normalise, title_of
from nacre.home.home import Home
from nacre.learn.reading import content_words
from nacre.values.models import Capabilities, Completion, Price, Prompt, Tokens
from nacre.values.session import Speaker

NAME = "scripted-gold"

_HEAD = re.compile(r"^\[m(\d+)\]\[(\w+)(, untrusted)?[\w, ]*\] ?", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+\s*(?:·.*)?")
_STATEMENT = re.compile(r"^(\d+)\. \[\w+\] (.*) \(evidence: ([^)]*)\)$", re.MULTILINE)
_KNOWN_CHARACTERS = 150


@frozen
class _Shown:
    number: int
    speaker: str
    text: str
    is_trusted: bool


class GoldModel:
    """A LanguageModel that answers with the statements whose evidence is in the prompt.

    It cites a label's trusted turns. It quotes the sentence that shares most words with the
    statement, preferably from the owner.
    """

    def __init__(self) -> None:
        self.name = f"{NAME}:1"
        self.evidence: Mapping[str, Sequence[tuple[Label, Sequence[str]]]] = {}
        """Quoted evidence for each label, by session."""
        self.capabilities = Capabilities(
            window=1_000_000, output=16_000, answers="schema", price=Price(), known=True
        )

    def complete(self, prompt: Prompt) -> Completion:
        if prompt.name == "verdicts":
            return self._compared(prompt)
        shown = _shown(prompt.text)
        memories = [memory for labels in self.evidence.values() for memory in _told(labels, shown)]
        text = json.dumps({"memories": memories, "over": []}, ensure_ascii=False)
        return Completion(text, Tokens(len(prompt.text) // 4, len(text) // 4), self.name)

    def _compared(self, prompt: Prompt) -> Completion:
        turns = {f"m{turn.number}": turn.text for turn in _shown(prompt.text)}
        verdicts = [
            {
                "number": int(number),
                "support": _best_sentence(
                    statement, [turns.get(turn, "") for turn in cited.split(", ")]
                ),
                "finding": "holds",
                "wrong": [],
            }
            for number, statement, cited in _STATEMENT.findall(prompt.text)
        ]
        text = json.dumps({"verdicts": verdicts}, ensure_ascii=False)
        return Completion(text, Tokens(len(prompt.text) // 4, len(text) // 4), self.name)

    def close(self) -> None:
        """Do nothing."""


def gold_evidence(
    context: Home, group: Iterable[Labelled], files: Mapping[str, Path]
) -> dict[str, list[tuple[Label, list[str]]]]:
    """Return the quoted evidence for each label of ingested sessions, by slug."""
    evidence = {}
    for item in group:
        quoting = Quoting(context, files[item.slug])
        evidence[item.slug] = [
            (label, [words for place in label.evidence if (words := quoting.words_at(place))])
            for label in item.labels
        ]
    return evidence


def as_kept(labelled: Sequence[Labelled]) -> list[Kept]:
    """Return the labels' statements as memories, as a perfect model would store them."""
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
    return round(sum(label.importance) / 2)


def _best_sentence(statement: str, texts: Iterable[str]) -> str:
    words = content_words(statement)
    sentences = [part.strip() for text in texts for part in _SENTENCE.split(text)]
    return max(
        sentences,
        key=lambda part: len(words & content_words(part)),
        default="",
    )


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
    texts = [normalise(turn.text) for turn in shown]
    memories = []
    for label, words in labels:
        keys = [normalise(quote.rstrip("…"))[:_KNOWN_CHARACTERS] for quote in words]
        cited = [
            turn
            for turn, text in zip(shown, texts, strict=True)
            if any(key and key in text for key in keys)
        ]
        usable = [turn for turn in cited if turn.is_trusted]
        if usable:
            memories.append(_memory(label, usable))
    return memories


def _memory(label: Label, cited: Sequence[_Shown]) -> dict[str, Any]:
    label_words = content_words(label.statement)
    sentences = [
        (
            len(label_words & content_words(sentence)),
            turn.speaker == Speaker.OWNER,
            turn,
            sentence,
        )
        for turn in cited
        for sentence in _SENTENCE.split(turn.text)
        if sentence.strip()
    ]
    best = max(sentences, key=lambda item: (item[1] and item[0] > 0, item[0]))
    return {
        "kind": label.kinds[0],
        "subject": title_of(label.statement),
        "content": label.statement,
        "quote": best[3].strip(),
        "always": False,
    }
