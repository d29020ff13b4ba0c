"""Prototypes: sentences of every kind, and of what is not worth keeping; what the bundled model makes of them.

A multinomial logistic regression tells the classes apart better than the nearest sentences do, and better still when
it sees the words beside the vector (docs/extraction.md has the numbers): the vector tells what a sentence is about, the
words how it is said. The coefficients lie beside the table, so that nothing is embedded to begin with.
``scripts/learn_prototypes.py`` makes them.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nacre.extraction.reading.meaning import PLAIN, Affinity
from nacre.text.shingles import PLACES, gram_shares
from nacre.values.memory import Kind

Matrix = NDArray[np.float32]

_TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Table:
    """The sentences of a language by class: first the kinds, then the junk; and what their judgement counts for.

    ``unit`` is what its words are: ``word``, or ``character`` where a script has no spaces.
    """

    language: str
    kinds: dict[str, list[str]]
    junk: dict[str, list[str]]
    weight: float
    alone: float
    unit: str
    digest: str

    @property
    def classes(self) -> list[str]:
        """The names of all classes, the kinds first."""
        return [*self.kinds, *self.junk]

    @property
    def sentences(self) -> list[tuple[str, str]]:
        """Every sentence with its class."""
        return [(text, name) for name, texts in {**self.kinds, **self.junk}.items() for text in texts]


@dataclass(frozen=True, slots=True)
class Learned:
    """The coefficients of a table, (features + 1, classes), for the vectors of one model."""

    table: Table
    model: str
    coefficients: Matrix

    def affinities(self, texts: Sequence[str], vectors: Matrix) -> list[Affinity]:
        """What texts are like, given their unit vectors as rows."""
        logits = features(texts, vectors, self.table.unit) @ self.coefficients[:-1] + self.coefficients[-1]
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        kinds = [Kind(name) for name in self.table.kinds]
        plain = [kinds.index(kind) for kind in PLAIN]
        lesson = kinds.index(Kind.LESSON)
        trouble = self.table.classes.index(_TROUBLE) if _TROUBLE in self.table.junk else None
        found = []
        for every in shares:
            row = every[: len(kinds)]
            best, worth = int(row.argmax()), float(row.sum())
            usual = kinds[max(plain, key=lambda kind: row[kind])]
            certainty = float(row[best]) / max(worth, 1e-9)
            like = float(every[lesson]), 0.0 if trouble is None else float(every[trouble])
            found.append(Affinity(worth, kinds[best], certainty, usual, self.table.weight, self.table.alone, *like))
        return found


def tables() -> list[str]:
    """The languages that have prototypes."""
    return sorted(entry.name[:-5] for entry in files(__name__).iterdir() if entry.name.endswith(".toml"))


def read_table(language: str) -> Table:
    """The prototypes of a language."""
    data = files(__name__).joinpath(f"{language}.toml").read_bytes()
    table: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    sentences = repr((table["kinds"], table["junk"])).encode()
    digest = hashlib.blake2b(sentences, digest_size=16).hexdigest()
    return Table(language, table["kinds"], table["junk"], table["weight"], table["alone"], table["unit"], digest)


@cache
def load(language: str, model: str) -> Learned | None:
    """What was learned of a language for a model's vectors; ``None`` where nothing was."""
    path = files(__name__).joinpath(f"{language}.npz")
    if not path.is_file():
        return None
    with path.open("rb") as file:
        stored = np.load(file)
        if str(stored["model"]) != model:
            return None
        return Learned(read_table(language), model, stored["coefficients"].astype(np.float32))


def features(texts: Sequence[str], vectors: Matrix, unit: str) -> Matrix:
    """The vectors, and beside each the hashed words and pairs of words of its text, as a unit vector of their own."""
    words = np.zeros((len(texts), PLACES), np.float32)
    for row, text in enumerate(texts):
        for place, share in gram_shares(text, by_character=unit == "character").items():
            words[row, place] = share
    return np.concatenate([vectors, words], axis=1)


def fit(rows: Matrix, names: Sequence[str], classes: Sequence[str], *, penalty: float, steps: int) -> Matrix:
    """Multinomial logistic regression by gradient descent with momentum, every class weighing what it has.

    ``penalty`` is the weight of the squared coefficients (the intercept has none) per sentence.
    """
    wanted = np.array([[name == one for one in classes] for name in names], np.float64)
    rows = np.c_[rows.astype(np.float64), np.ones(len(names))]
    found = np.zeros((rows.shape[1], len(classes)))
    momentum = np.zeros_like(found)
    for _ in range(steps):
        shares = np.exp(rows @ found)
        shares /= shares.sum(axis=1, keepdims=True)
        gradient = rows.T @ (shares - wanted) / len(rows)
        gradient[:-1] += penalty / len(rows) * found[:-1]
        momentum = 0.9 * momentum - 4.0 * gradient
        found += momentum
    return found.astype(np.float32)
