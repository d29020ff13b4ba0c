"""Fit the confidence of hits: the constants in src/nacre/recall/confidence.toml.

    python scripts/calibrate_confidence.py --data bench --absent never.json --cache /tmp/homes --level turns

Print the weights of a logistic model for the most confident of ten hits, with and without vectors.
Also print the effects of borders around zero: points of recall@10 lost, and the share of questions
without an answer for which nothing is shown. Edit the file yourself with rounded values;
differences in the second digit are noise.

Turns are measured on homes for LoCoMo, LongMemEval (with our paraphrased questions) and
DevMemBench, memories on LoCoMo's observations, each stored as a memory. ``--absent`` takes
JSON lists of questions without an answer.

For a new embedding model, only two numbers must be measured on the same homes: the mean cosine of
questions to turns in other homes (``unrelated``), and the upper quartile of the cosines to their
own evidence (``related``).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path[:0] = [str(Path(__file__).parents[1])]

from benchmarks.retrieval.homes import RememberingEmbedder, Shelf, open_homes  # noqa: E402
from benchmarks.retrieval.scoring import score_list, sessions_of  # noqa: E402
from benchmarks.retrieval.suites import ADVERSARIAL, Haystack, load_suite, parse_evidence  # noqa: E402
from nacre.home.home import Home, open_home  # noqa: E402
from nacre.home.spending import embedder_of  # noqa: E402
from nacre.llm.calibration import calibration_of  # noqa: E402
from nacre.llm.local_model import load_minilm  # noqa: E402
from nacre.llm.minilm import MODEL_NAME  # noqa: E402
from nacre.memories.requests import StoreRequest  # noqa: E402
from nacre.memories.store import store  # noqa: E402
from nacre.memories.vectors import embed_pending  # noqa: E402
from nacre.recall.lanes import MemoryRecall, QueryVector, Ranking  # noqa: E402
from nacre.recall.question import Question, read_question  # noqa: E402
from nacre.recall.scoring import Signals  # noqa: E402
from nacre.recall.turns import TurnRecall  # noqa: E402
from nacre.settings import load_settings  # noqa: E402
from nacre.store.search import Search  # noqa: E402
from nacre.values.recall import Filter  # noqa: E402

SUITES = ("locomo", "longmemeval", "paraphrased", "devmembench")
BORDERS = (-1.0, -0.75, -0.5, -0.25, 0.0)
NAMES = ("meaning", "words", "unknown", "unknown_name", "bias")
WEIGHTS = {"real": 1.0, "absent": 3.0, "other": 1.0}
"""Questions without an answer that are close to the topic weigh most. Questions for another home are easy."""

RIDGE = 1.0
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """A question: its group, the signals of its ten best hits, and recall@10 if it has an answer."""

    group: tuple[str, str]
    signals: tuple[Signals, ...]
    found: float | None


def main() -> None:
    """Collect signals, fit the model and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--absent", type=Path, nargs="*", default=[])
    parser.add_argument("--level", choices=("turns", "memories"), default="turns")
    options = parser.parse_args()
    absent = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in options.absent}
    for vectors in (True, False):
        collect = ask_turns if options.level == "turns" else ask_memories
        items = list(collect(options.data, options.cache, absent, vectors=vectors))
        print(f"\n[{options.level}.{'with_meaning' if vectors else 'words_alone'}]")
        report(fit(items, unknown=options.level == "turns"), items)


def ask_turns(
    data: Path, cache: Path, absent: dict[str, list], *, vectors: bool
) -> Iterator[Asked]:
    """Yield the questions in every suite, and questions that its homes cannot answer."""
    for name in SUITES:
        suite = load_suite(name, data)
        for at, (haystack, context) in enumerate(
            open_homes(suite, Shelf(cache), load_minilm, lambda _: None)
        ):
            engine = TurnRecall(context.turn_search, context.sessions)
            session_of = {
                turn.id: session.id for session in haystack.sessions for turn in session.turns
            }
            other = suite.haystacks[(at + 1) % len(suite.haystacks)]
            for kind, text, turns, sessions in questions(haystack, other, absent):
                question = read(context, haystack, text)
                hits = engine.rank(
                    question,
                    Filter(),
                    vector=embedded(context, question, vectors=vectors),
                    limit=10,
                )
                stored = context.sessions.by_rows([hit.row for hit in hits])
                ids = [stored[hit.row].turn.id for hit in hits]
                scores = score_list(ids, turns) or score_list(
                    sessions_of(ids, session_of), sessions
                )
                signals = tuple(hit.signals for hit in hits)
                yield Asked((name, kind), signals, scores["recall@10"] if scores else None)


def ask_memories(
    data: Path, cache: Path, absent: dict[str, list], *, vectors: bool
) -> Iterator[Asked]:
    """Yield the same questions for memories: LoCoMo's observations, each stored as a memory."""
    suite = load_suite("locomo", data)
    observed = {
        f"locomo/{sample['sample_id']}": sample["observation"]
        for path in data.glob("locomo*.json")
        for sample in json.loads(path.read_text(encoding="utf-8"))
    }
    for at, (haystack, spoken) in enumerate(
        open_homes(suite, Shelf(cache), load_minilm, lambda _: None)
    ):
        context, evidence = observations(haystack, observed[haystack.id], cache)
        engine = MemoryRecall(Search(context.database, "memories"), context.memories, context.usage)
        other = suite.haystacks[(at + 1) % len(suite.haystacks)]
        for kind, text, turns, _ in questions(haystack, other, absent):
            question = read(spoken, haystack, text)
            gold = frozenset(memory for memory, places in evidence.items() if turns & set(places))
            if kind == "real" and not gold:
                continue
            vector = embedded(context, question, vectors=vectors)
            hits = engine.rank(question, Filter(), Ranking(haystack.asked), vector=vector)[:10]
            scores = score_list([hit.memory.id for hit in hits], gold)
            yield Asked(
                ("memories", kind),
                tuple(hit.signals for hit in hits),
                scores["recall@10"] if scores else None,
            )
        context.database.close()


def observations(
    haystack: Haystack, observed_of: dict, cache: Path
) -> tuple[Home, dict[str, list[str]]]:
    """Return a home with a memory for each observation, and the turns that belong to each memory."""
    folder = cache / f"observed-{haystack.id.replace('/', '-')}"
    settings = load_settings(folder, {"HOME": str(folder)})
    embedder = RememberingEmbedder(load_minilm(), cache / "vectors.db")
    context = open_home(settings, load_embedder=lambda _: embedder)
    evidence: dict[str, list[str]] = {}
    for people in observed_of.values():
        for observed in (entry for entries in people.values() for entry in entries):
            stored = store(context, StoreRequest(content=observed[0]))
            places = observed[1] if isinstance(observed[1], list) else [observed[1]]
            evidence.setdefault(stored.memory_id, []).extend(
                f"{haystack.id}/{place}" for place in parse_evidence(places)
            )
    embed_pending(context, lambda _: None)
    return context, evidence


def questions(haystack: Haystack, other: Haystack, absent: dict[str, list]) -> Iterator[tuple]:
    """Yield the kind, text and evidence of each question."""
    for question in haystack.questions:
        if question.category != ADVERSARIAL and (question.turns or question.sessions):
            yield "real", question.text, question.turns, question.sessions
    nowhere: frozenset[str] = frozenset()
    for entries in absent.values():
        for entry in entries:
            if haystack.id.endswith(entry.get("conversation", "")):
                yield "absent", entry["question"], nowhere, nowhere
    for text in haystack.absent:
        yield "absent", text, nowhere, nowhere
    if other.id != haystack.id:
        for question in [
            question for question in other.questions if question.category != ADVERSARIAL
        ][::4]:
            yield "other", question.text, nowhere, nowhere


def read(context: Home, haystack: Haystack, text: str) -> Question:
    """Parse a question like recall does."""
    sessions = context.sessions
    return read_question(
        text, now=haystack.asked, authors=sessions.authors(), projects=sessions.projects()
    )


def embedded(context: Home, question: Question, *, vectors: bool) -> QueryVector | None:
    """Return the question's vector if vectors are used."""
    return (
        QueryVector(embedder_of(context).embed([question.semantic])[0], context.vectors)
        if vectors
        else None
    )


def row(signals: Signals, *, unknown: bool) -> Vector:
    """Return a hit's features for the model."""
    meaning = (
        calibration_of(MODEL_NAME).meaning(signals.cosine) if signals.cosine is not None else 0.0
    )
    missing = signals.unknown if unknown else 0.0
    return np.array([meaning, signals.coverage, missing, float(signals.unknown_name), 1.0])


def fit(items: Sequence[Asked], *, unknown: bool) -> Vector:
    """Fit a logistic regression on the most confident hits. These depend on the weights, so it takes several rounds."""
    items = [item for item in items if item.signals and not item.signals[0].empty]
    hits = [np.array([row(signals, unknown=unknown) for signals in item.signals]) for item in items]
    real = np.array([item.found is not None for item in items], float)
    sizes = {
        group: sum(item.group == group for item in items)
        for group in {item.group for item in items}
    }
    shares = np.array([WEIGHTS[item.group[1]] / sizes[item.group] ** 0.5 for item in items])
    for side in (0.0, 1.0):
        shares[real == side] *= len(items) / 2 / shares[real == side].sum()
    weights = np.array([5.0, 3.0, -1.0, -1.0, -5.0])
    for _ in range(15):
        best = np.array([rows[int(np.argmax(rows @ weights))] for rows in hits])
        weights = logistic(best, real, shares)
    return weights


def logistic(rows: Vector, targets: Vector, shares: Vector) -> Vector:
    """Fit with Newton's method, and a ridge on all weights except the bias."""
    weights = np.zeros(rows.shape[1])
    ridge = np.diag([RIDGE] * (rows.shape[1] - 1) + [1e-6])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (shares * (targets - chance)) - ridge @ weights
        bend = (rows.T * (shares * chance * (1 - chance))) @ rows + ridge
        weights = weights + np.linalg.solve(bend, slope)
    return weights


def report(weights: Vector, asked: Sequence[Asked]) -> None:
    """Print the weights and the cost of each border."""
    print("  ".join(f"{name} {value:.2f}" for name, value in zip(NAMES, weights, strict=True)))
    unknown = bool(weights[2])
    for border in BORDERS:
        parts = []
        for group in dict.fromkeys(item.group for item in asked):
            items = [item for item in asked if item.group == group]
            silent = [surest(item, weights, unknown=unknown) < border for item in items]
            if group[1] == "real":
                lost = statistics.fmean(
                    (item.found or 0.0) * quiet for item, quiet in zip(items, silent, strict=True)
                )
                parts.append(f"{group[0]} -{100 * lost:.1f}")
            else:
                parts.append(f"{group[0]}/{group[1]} {100 * statistics.fmean(silent):.0f}")
        print(f"  border {border:+.2f}: {' | '.join(parts)}")


def surest(item: Asked, weights: Vector, *, unknown: bool) -> float:
    """Return the best hit's sum, before the logistic function."""
    return max(
        (
            float(row(signals, unknown=unknown) @ weights)
            for signals in item.signals
            if not signals.empty
        ),
        default=-9.0,
    )


if __name__ == "__main__":
    main()
