"""Learn from the prototypes of every language what tells the kinds from each other and from junk.

    python scripts/learn_prototypes.py            # writes nacre/extraction/prototypes/<language>.npz
    python scripts/learn_prototypes.py --check    # only tells how well it works, by tenfold cross-validation

To be run after every change of a table, and after a change of the bundled model. The same tables and model give the
same coefficients on one machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from nacre.embed.minilm import MODEL_NAME
from nacre.embed.onnx import load_minilm
from nacre.extraction import prototypes
from nacre.extraction.prototypes import Learned, Matrix, Table, features

PENALTY = 0.2
STEPS = 250
FOLDS = 10


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="write nothing")
    check = arguments.parse_args().check
    embedder = load_minilm()
    for language in prototypes.tables():
        table = prototypes.read_table(language)
        texts = [text for text, _ in table.sentences]
        vectors = embedder.embed(texts)
        report(table, texts, vectors)
        if not check:
            path = Path(prototypes.__file__).parent / f"{language}.npz"
            coefficients = learn(table, features(texts, vectors, table.unit), np.arange(len(vectors))).astype(
                np.float16
            )
            np.savez_compressed(path, coefficients=coefficients, model=MODEL_NAME, digest=table.digest)
            print(f"wrote {path.name}, {path.stat().st_size:,} bytes")


def learn(table: Table, found: Matrix, rows: np.ndarray) -> Matrix:
    names = [table.sentences[row][1] for row in rows]
    return prototypes.fit(found[rows], names, table.classes, penalty=PENALTY, steps=STEPS)


def report(table: Table, texts: list[str], vectors: Matrix) -> None:
    """How well sentences that were not learned are told apart."""
    found = features(texts, vectors, table.unit)
    order = np.random.default_rng(0).permutation(len(vectors))
    worth = np.zeros(len(vectors))
    same = np.zeros(len(vectors), bool)
    for fold in np.array_split(order, FOLDS):
        learned = Learned(table, MODEL_NAME, learn(table, found, np.setdiff1d(order, fold)))
        said = [texts[row] for row in fold]
        for row, affinity in zip(fold, learned.affinities(said, vectors[fold]), strict=True):
            worth[row], same[row] = affinity.worth, affinity.kind == table.sentences[row][1]
    kept = np.array([name in table.kinds for _, name in table.sentences])
    area = (worth[kept][:, None] > worth[~kept][None]).mean()
    share = (worth[kept] > np.quantile(worth[~kept], 0.95)).mean()
    print(
        f"{table.language}: {len(vectors)} sentences, area under the curve {area:.3f}, "
        f"{share:.0%} of what matters at 5% of junk, kind right for {same[kept].mean():.0%}"
    )


if __name__ == "__main__":
    main()
