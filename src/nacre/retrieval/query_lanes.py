"""Open the lanes of a query: embed the question where a model can, and say why where it cannot."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nacre.errors import EmbedderUnavailable, RerankerUnavailable
from nacre.home.home import BUNDLED, Home
from nacre.protocols import RemoteEmbedder
from nacre.retrieval.lanes import QueryVector
from nacre.retrieval.question.question import Question
from nacre.retrieval.rerank import SecondLook
from nacre.spending.embedders import embedder_in_use
from nacre.text.passages import is_unspaced
from nacre.values.recall import Lane, LaneState, Mode, RecallQuery


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one query: the embedded question where meaning counts, and what each did."""

    vector: QueryVector | None
    lexical: bool
    reports: tuple[Lane, ...]
    second: SecondLook | None = None

    def told(self) -> tuple[Lane, ...]:
        """What ran, once all has."""
        return (*self.reports, self.second.report()) if self.second else self.reports


def open_lanes(home: Home, query: RecallQuery, question: Question) -> Lanes:
    """Embed the question where the vector lane can run, and say why where it cannot."""
    lexical = query.mode in (Mode.HYBRID, Mode.LEXICAL)
    reports = [Lane("lexical", LaneState.RAN if lexical else LaneState.SKIPPED)]
    vector = None
    if query.mode in (Mode.LEXICAL, Mode.BROWSE):
        reports.append(Lane("vector", LaneState.SKIPPED))
    elif home.settings.text("embedding.model") == "none":
        reports.append(Lane("vector", LaneState.SKIPPED, note="off in the settings"))
    elif lexical and is_unspaced(question.semantic) and home.settings.text("embedding.model") == BUNDLED:
        reports.append(Lane("vector", LaneState.SKIPPED, note="the model does not read this script"))
    else:
        try:
            vector, report = _embed_question(home, question, query.topic)
            reports.append(report)
        except EmbedderUnavailable as error:
            reports.append(Lane("vector", LaneState.UNAVAILABLE, note=error.message))
    second = None
    try:
        if query.mode is not Mode.BROWSE and home.reranker:
            second = SecondLook(home.reranker, query.text, time.perf_counter)
    except RerankerUnavailable as error:
        reports.append(Lane("reranker", LaneState.UNAVAILABLE, note=error.message))
    return Lanes(vector, lexical, tuple(reports), second)


def _embed_question(home: Home, question: Question, topic: str) -> tuple[QueryVector | None, Lane]:
    """By the model that made the vectors in use, whichever is set by now."""
    vectors = home.vectors
    model = vectors.model()
    if model is None:
        return None, Lane("vector", LaneState.PARTIAL, note="no vectors yet: nacre ingest makes them")
    embedder = embedder_in_use(home)
    if embedder.name != model:
        return None, Lane("vector", LaneState.UNAVAILABLE, note=f"the vectors were made by {model}")
    text = f"{topic.strip()}: {question.semantic}" if topic.strip() else question.semantic
    if isinstance(embedder, RemoteEmbedder):
        embedder = embedder.within(home.settings.number("embedding.query_seconds"), question=True)
        text = home.redactor.clean(text)  # it may leave this machine
    embedded = embedder.embed([text])[0]
    if vectors.dimensions() not in (0, len(embedded)):
        told = f"{model} gives vectors of {len(embedded)} numbers now, and the index has {vectors.dimensions()}"
        return None, Lane("vector", LaneState.UNAVAILABLE, note=told)
    are_missing = vectors.are_missing()
    goes_on = "nacre embed tells why" if isinstance(embedder, RemoteEmbedder) else "nacre ingest goes on with them"
    note = f"some texts have no vectors yet: {goes_on}" if are_missing else None
    state = LaneState.PARTIAL if are_missing else LaneState.RAN
    return QueryVector(embedded, vectors.of(model)), Lane("vector", state, note=note)
