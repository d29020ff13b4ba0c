"""Learn what announces a change, and how much each sign of a change weighs.

    python scripts/learn_changes.py                  # writes announcements.bin and weights.toml of nacre.dedup
    python scripts/learn_changes.py --check FILE     # writes nothing; how the judgement does on other data

The announcements are learned from nacre/dedup/announcements.toml alone; the weights from the shipped changes
(benchmarks/data/stale.json) and scripts/changes.json. To be run after every change of those or of the cues. A file to
check is written like them.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1])]

import nacre.dedup  # noqa: E402
from benchmarks.contradictions.stale import Said, StaleData  # noqa: E402
from benchmarks.dataset import load_cases  # noqa: E402
from nacre.dedup import announcements, change, judge  # noqa: E402
from nacre.dedup.judge import Relation, pair_of  # noqa: E402
from nacre.embed.calibration import calibration_of  # noqa: E402
from nacre.embed.minilm import MODEL_NAME  # noqa: E402
from nacre.embed.onnx import load_minilm  # noqa: E402
from nacre.text import shingles  # noqa: E402
from nacre.text.passages import title_of  # noqa: E402
from nacre.values.memory import Kind, Memory  # noqa: E402

FOLDER = Path(nacre.dedup.__file__).parent
PENALTY = 10.0
WORD_PENALTY = 0.3
WEIGHTS = {"change": 1.0, "look-alike": 1.0, "other": 0.3}
"""A statement that has nothing to do with a change counts less: there are many."""
ALWAYS = ["about", "likeness", "topic", "two topics", "title", "amount", "name", "thing", "words of change"]
ALWAYS += ["older change", "says so", "other value", "announced", "announced and alike"]
SIGNS = {"vectors": ["cosine", *ALWAYS], "words": ["share", *ALWAYS]}
LIMITS = calibration_of(MODEL_NAME)
Case = tuple[str, Memory, Memory]
Matrix = Any


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", type=Path, help="a file of changes; nothing is learned")
    check = arguments.parse_args().check
    if check:
        report(list(cases(load_cases(check, "stale", StaleData))))
        return
    learn_announcements()
    files = (None, Path(__file__).with_name("changes.json"))
    own = [load_cases(file, "stale", StaleData) for file in files]
    learn_weights([case for data in own for case in cases(data)])


def cases(data: StaleData) -> Iterator[Case]:
    """Pairs, the earlier one first: changes, statements around them, look-alikes of one project of which both hold."""
    for one in data.changes:
        project = one.old.project or one.project
        yield "change", memory(one.old, project), memory(one.new, project)
        for said in one.filler:
            for other in (one.new, one.old):
                earlier, later = (said, other) if said.date <= other.date else (other, said)
                yield "other", memory(earlier, project), memory(later, project)
    for look in data.lookalikes:
        project = look.first.project or look.project
        if look.expects == "both" and project == (look.second.project or look.project):
            yield "look-alike", memory(look.first, project), memory(look.second, project)


def memory(said: Said, project: str) -> Memory:
    at = datetime.combine(said.date, datetime.min.time(), UTC)
    return Memory(said.text, said.kind, said.subject or title_of(said.text), said.text, at, at, project=project)


def cosines(found: list[Case]) -> list[float]:
    texts = [f"{one.subject}. {one.content}" for _, *both in found for one in both]
    unique = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = load_minilm().embed(list(unique))
    return [
        float(vectors[unique[old]] @ vectors[unique[new]]) for old, new in zip(texts[::2], texts[1::2], strict=True)
    ]


def learn_announcements() -> None:
    table = tomllib.loads((FOLDER / "announcements.toml").read_text(encoding="utf-8"))
    texts = [(text, name == "change") for name, said in table.items() for text in said]
    rows = np.zeros((len(texts), shingles.PLACES + 1))
    rows[:, -1] = 1.0
    for row, (text, _) in enumerate(texts):
        for place, share in announcements.places(text).items():
            rows[row, place] = share
    wanted = np.array([is_change for _, is_change in texts], float)
    found = fit(rows, wanted, np.ones(len(texts)), np.full(len(rows[0]), WORD_PENALTY))
    (FOLDER / "announcements.bin").write_bytes(struct.pack(f"<{len(found)}e", *found))
    announcements._learned.cache_clear()


def learn_weights(found: list[Case]) -> None:
    lines = ["# What each sign of a change weighs (nacre.dedup.change), in log odds; made by scripts/learn_changes.py."]
    for name, given in (("vectors", cosines(found)), ("words", [None] * len(found))):
        rows, wanted, counted = [], [], []
        for (sort, old, new), cosine in zip(found, given, strict=True):
            pair = pair_of(old, new, cosine)
            if new.kind is Kind.TODO or judge._excludes(pair, old.kind, new.kind):
                continue
            stated = judge.stated_change(pair, LIMITS)
            signs = change.signs(pair, by_words=bool(stated.reason), other_value=bool(stated.value))
            rows.append([signs[sign] for sign in SIGNS[name]])
            wanted.append(sort == "change")
            counted.append(WEIGHTS[sort])
        table = np.array(rows)
        middle, spread = table.mean(0), table.std(0) + 1e-9
        scaled = np.c_[(table - middle) / spread, np.ones(len(table))]
        penalty = np.r_[np.full(len(middle), PENALTY), 0.0]
        learned = fit(scaled, np.array(wanted, float), np.array(counted), penalty)
        weights = learned[:-1] / spread
        lines += ["", f"[{name}]", f"constant = {learned[-1] - weights @ middle:.3f}"]
        lines += [f'"{sign}" = {weight:.3f}' for sign, weight in zip(SIGNS[name], weights, strict=True)]
    (FOLDER / "weights.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")


def fit(rows: Matrix, wanted: Matrix, counted: Matrix, penalty: Matrix) -> Matrix:
    """Logistic regression by Newton's method; the penalty is on the squares."""
    found = np.zeros(rows.shape[1])
    for _ in range(30):
        likely = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (counted * (likely - wanted)) + penalty * found
        bend = (rows * (counted * likely * (1 - likely))[:, None]).T @ rows + np.diag(penalty + 1e-6)
        found -= np.linalg.solve(bend, slope)
    return found


def report(found: list[Case]) -> None:
    for name, given in (("vectors", cosines(found)), ("words", [None] * len(found))):
        counts: Counter[tuple[str, str]] = Counter()
        for (sort, old, new), cosine in zip(found, given, strict=True):
            relation = judge.judge(old, new, cosine, LIMITS).relation
            told = relation.value if relation in (Relation.SUPERSEDES, Relation.DOUBTS) else "holds"
            counts[sort, told] += 1
        print(name, dict(sorted(counts.items())))


if __name__ == "__main__":
    main()
