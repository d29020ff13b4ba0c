"""Fits the weights by which explicit statements are found (nacre/extraction/explicit/weights.tsv).

usage: python scripts/fit_explicit.py [--check]

The messages are in benchmarks/data/explicit: a file a hand, and ``statements.txt`` with single statements. With
``--check`` nothing is written: a sixth of the hands is judged by weights fitted to the other five, in turn, and those
in ``unseen``, to which nothing is fitted, by what a session of that one message leaves as memories.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nacre.extraction.explicit.find import SURE, is_taken_back, remembered, stated
from nacre.extraction.explicit.signs import signs
from nacre.extraction.explicit.weights import BIAS, HUNDREDTHS, KINDS, SCALE, Judged
from nacre.extraction.extractor import extract
from nacre.extraction.reading.speech import utterances
from nacre.values.memory import Kind
from nacre.values.session import Session, Speaker, Turn

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "benchmarks" / "data" / "explicit"
TABLE = ROOT / "src" / "nacre" / "extraction" / "explicit" / "weights.tsv"
KIND_OF = {
    "choice": Kind.DECISION, "rule": Kind.PREFERENCE, "preference": Kind.PREFERENCE, "fact": Kind.FACT,
    "remember": Kind.FACT,
}  # fmt: skip
NONE = len(KINDS)
SAME = 0.6
"""Of the words of the shorter text that two have in common, at least, where they are one statement."""
LEAST = 3
"""Messages that have a sign, at least: with two the table is two thirds longer and finds no more."""
PARTS = 6
L2, STEPS, RATE, FIRST_BIAS = 0.1, 400, 0.3, -2.0
"""Adagrad on the penalised likelihood."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """The statement at ``place`` of a message, and its kind: ``NONE`` where it is not explicit. ``signs`` are empty
    where reading does not find the statement at all."""

    signs: frozenset[str]
    kind: int
    texts: tuple[str, ...] = ()
    place: int = 0

    @property
    def is_judged(self) -> bool:
        """Whether the model is asked about it: nobody asks about what its message takes back."""
        return bool(self.signs) and not is_taken_back(self.texts, self.place)


def examples(path: Path) -> list[Example]:
    """The statements of one hand's messages; entries in which no statement is found count as missed."""
    found: list[Example] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        entries = list(zip(told["explicit"], told["kind"], strict=True))
        spoken = utterances([Turn(id="1", speaker=Speaker.OWNER, text=told["text"])])
        texts = tuple(one.text for utterance in spoken for one in utterance.statements)
        for place, text in enumerate(texts):
            kind = next((KINDS.index(KIND_OF[kind]) for entry, kind in entries if is_same(text, entry)), NONE)
            found.append(Example(signs(texts, place), kind, texts, place))
        lost = [kind for entry, kind in entries if not any(is_same(text, entry) for text in texts)]
        found += [Example(frozenset(), KINDS.index(KIND_OF[kind])) for kind in lost]
    return found


def single_statements() -> Iterator[Example]:
    """Those of ``statements.txt``, ``kind|text`` a line."""
    for line in (DATA / "statements.txt").read_text(encoding="utf-8").splitlines():
        kind, text = line.split("|", 1)
        yield Example(signs([text], 0), NONE if kind == "none" else KINDS.index(Kind(kind)))


def is_same(one: str, other: str) -> bool:
    """Whether two texts are the same statement."""
    a, b = (set(re.findall(r"[a-z0-9]+|[^\W\da-z_]", text.lower())) for text in (one, other))
    return bool(a and b) and len(a & b) >= SAME * min(len(a), len(b))


def fitted(known: Sequence[Example]) -> tuple[dict[str, int], Matrix, Matrix]:
    """The signs with their rows, the weights, and the biases."""
    counts = Counter(sign for one in known for sign in one.signs)
    rows = {sign: at for at, sign in enumerate(sorted(sign for sign, count in counts.items() if count >= LEAST))}
    places = [[rows[sign] for sign in sorted(one.signs) if sign in rows] for one in known]
    at = np.concatenate([np.array(one, dtype=np.int64) for one in places])
    of = np.repeat(np.arange(len(known)), [len(one) for one in places])
    scale = np.repeat([SCALE / np.sqrt(max(1, len(one))) for one in places], [len(one) for one in places])
    wanted = np.eye(NONE + 1)[[one.kind for one in known]][:, :NONE]
    weights, bias = np.zeros((len(rows), NONE)), np.full(NONE, FIRST_BIAS)
    seen, seen_bias = np.full(weights.shape, 1e-8), np.full(NONE, 1e-8)
    for _ in range(STEPS):
        sums = _columns(of, weights[at] * scale[:, None], len(known)) + bias
        odds = np.exp(np.minimum(sums, 30))
        slope = odds / (1 + odds.sum(axis=1, keepdims=True)) - wanted
        gradient = _columns(at, slope[of] * scale[:, None], len(rows)) + L2 * weights
        seen, seen_bias = seen + gradient**2, seen_bias + slope.sum(axis=0) ** 2
        weights = weights - RATE * gradient / np.sqrt(seen)
        bias = bias - RATE * slope.sum(axis=0) / np.sqrt(seen_bias)
    return rows, weights, bias


def _columns(groups: NDArray[np.int64], values: Matrix, count: int) -> Matrix:
    return np.stack([np.bincount(groups, weights=column, minlength=count) for column in values.T], axis=1)


def write(known: Sequence[Example]) -> None:
    """Write the table, in hundredths, without signs that weigh nothing."""
    rows, weights, bias = fitted(known)
    lines = [_line(BIAS, bias), *(_line(sign, weights[at]) for sign, at in rows.items() if sign != BIAS)]
    TABLE.write_text("".join(line for line in lines if not line.endswith("\t0\t0\t0\n")), encoding="utf-8")


def _line(sign: str, numbers: Matrix) -> str:
    return "\t".join([sign, *(str(round(number * HUNDREDTHS)) for number in numbers)]) + "\n"


def check(hands: dict[str, list[Example]], single: list[Example]) -> None:
    """Tell precision and recall by hand, and of all."""
    every: list[tuple[bool, bool]] = []
    for part in (list(hands)[at::PARTS] for at in range(PARTS)):
        known = [one for name, examples in hands.items() if name not in part for one in examples if one.is_judged]
        rows, weights, bias = fitted([*known, *single])
        for name in part:
            told = [(_is_taken(one, rows, weights, bias), one.kind != NONE) for one in hands[name]]
            every += told
            print(f"{name:8} {_figures(told)}", flush=True)
    print(f"{'all':8} {_figures(every)}")
    for path in sorted((DATA / "unseen").glob("*.jsonl")):
        print(f"{path.stem:8} {_kept(path)}, unseen")


def _is_taken(one: Example, rows: dict[str, int], weights: Matrix, bias: Matrix) -> bool:
    if not one.is_judged:
        return False
    at = [rows[sign] for sign in one.signs if sign in rows]
    sums = weights[at].sum(axis=0) * SCALE / np.sqrt(max(1, len(at))) + bias
    judged = Judged(KINDS[int(sums.argmax())], float(np.log(np.exp(sums).sum())))
    asked, *after = [remembered(text) for text in one.texts[one.place : one.place + 2]]
    if asked:
        return not asked.points
    said = stated(one.texts, one.place, judged)
    return bool(said and said.score >= SURE) or any(later and later.points for later in after)


def _kept(path: Path) -> str:
    """How many memories of a hand's messages are right, and how many entries are among them."""
    right = kept = found = wanted = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        turns = [Turn(id="1", speaker=Speaker.OWNER, text=told["text"])]
        memories = [one.content for one in extract(Session("any", "1"), turns) if not one.held]
        right += sum(any(is_same(one, entry) for entry in told["explicit"]) for one in memories)
        found += sum(any(is_same(one, entry) for one in memories) for entry in told["explicit"])
        kept, wanted = kept + len(memories), wanted + len(told["explicit"])
    return f"precision {right / max(1, kept):.2f} of {kept}, recall {found / max(1, wanted):.2f} of {wanted}"


def _figures(told: Sequence[tuple[bool, bool]]) -> str:
    right = sum(taken and wanted for taken, wanted in told)
    taken, wanted = (sum(one[at] for one in told) for at in (0, 1))
    return f"precision {right / max(1, taken):.2f} of {taken}, recall {right / max(1, wanted):.2f} of {wanted}"


if __name__ == "__main__":
    by_hand = {path.stem: examples(path) for path in sorted(DATA.glob("*.jsonl"))}
    alone = list(single_statements())
    if sys.argv[1:] == ["--check"]:
        check(by_hand, alone)
    else:
        write([*(one for hand in by_hand.values() for one in hand if one.is_judged), *alone])
