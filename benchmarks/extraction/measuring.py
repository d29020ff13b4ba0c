"""Ingest labelled sessions into temporary homes and score the memories."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.extraction.evidence import Quoting
from benchmarks.extraction.gold import NAME, GoldModel, gold_evidence
from benchmarks.extraction.labels import Labelled
from benchmarks.extraction.rubric import FixtureScore, FixtureTotals, score_fixture, total_fixtures
from benchmarks.extraction.scoring import (
    Kept,
    KindTotals,
    SessionScore,
    Totals,
    score_session,
    total,
    total_by_kind,
    total_by_tool,
)
from benchmarks.retrieval.homes import as_jsonl
from benchmarks.retrieval.suites import load_suite
from nacre.base.frozen import frozen
from nacre.errors import InvalidInputError, NotFoundError
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.llm.providers import open_model
from nacre.memories.store import list_active
from nacre.protocols import LanguageModel
from nacre.settings import Settings, load_settings
from nacre.values.memory import Kind, Memory
from nacre.values.models import Price
from nacre.values.recall import Filter
from nacre.values.reports import OnProgress

OWNER = '["4801357"]'
"""The user's id in the chats of the labelled sessions, for the setting ``owner.identities``."""

_PAGE = 1000
_DEVMEMBENCH = "devmembench"
_NO_FILE = "the transcript does not exist"


@frozen
class ExtractionResult:
    """The result of a measurement.

    ``unread`` contains the reasons why sessions count as empty. ``unassigned`` counts memories that
    belong to no labelled session, ``unknown_kinds`` those with a kind that does not exist.
    ``quotes`` contains the quoted evidence for labels by slug and place.
    """

    sessions: tuple[SessionScore, ...]
    overall: Totals
    by_tool: Mapping[str, Totals]
    by_kind: Mapping[str, KindTotals]
    fixtures: tuple[FixtureScore, ...]
    fixtures_overall: FixtureTotals
    unread: Mapping[str, str]
    unassigned: int
    unknown_kinds: int
    quotes: Mapping[tuple[str, str], str]

    @property
    def score(self) -> float:
        """The mean of all scores, including fixtures, from 0 to 1."""
        scores = [score.score for score in self.sessions] + [
            score.composite for score in self.fixtures
        ]
        return sum(scores) / len(scores) if scores else 0.0


def measure(
    labelled: Sequence[Labelled],
    transcripts: Path,
    folder: Path,
    *,
    apart: bool = False,
    vectors: bool = True,
    model: str | None = None,
    notify: OnProgress = lambda _: None,
) -> ExtractionResult:
    """Ingest the sessions into homes in ``folder`` and score the memories. Raises NotFoundError if there are none.

    Labelled sessions share a home, as in production, so that a fact is learned only once. With
    ``apart``, and for fixtures as in agenr, every session has its own home. The language ``model``,
    if any, extracts from all sessions; ``scripted-gold`` answers with the labels.
    """
    files = _files(labelled, transcripts, folder)
    if not files:
        raise NotFoundError(
            f"no labelled session in {transcripts}",
            hint="pass their folder with --transcripts",
        )
    kept: list[Kept] = []
    unread = {item.slug: _NO_FILE for item in labelled if item.slug not in files}
    quotes: dict[tuple[str, str], str] = {}
    for number, group in enumerate(_groups(labelled, files, apart=apart)):
        gold = GoldModel() if model == NAME else None
        context = _open(folder / f"home-{number}", vectors=vectors, model=model, gold=gold)
        try:
            paths = {item.slug: files[item.slug] for item in group}
            if gold:
                _ingest(context, paths, notify, learns=False)
                gold.evidence = gold_evidence(context, group, paths)
            unread |= _ingest(context, paths, notify)
            slugs = {str(path): slug for slug, path in paths.items()}
            kept += [_kept(memory, slugs) for memory in _active(context)]
            quotes |= _quotations(group, paths, context)
        finally:
            context.database.close()
    return score(labelled, kept, unread=unread, quotes=quotes)


def _open(home: Path, *, vectors: bool, model: str | None, gold: GoldModel | None) -> Home:
    """Open a new home. If a model is named, the caller's configuration is used, without a budget."""
    environ = {
        "HOME": str(home),
        "NACRE_OWNER_IDENTITIES": OWNER,
        **({} if vectors else {"NACRE_EMBEDDING_MODEL": "none"}),
    }
    if model is None:
        return open_home(load_settings(home, environ))
    mine = load_settings()
    environ |= {
        "NACRE_MODELS_EXTRACTION": gold.name if gold else model,
        "NACRE_MODELS_BACKGROUND": "true",
    }

    def load(_: Settings, name: str) -> LanguageModel:
        extractor = gold or open_model(mine, name)
        extractor.capabilities = replace(extractor.capabilities, price=Price())
        return extractor

    return open_home(load_settings(home, environ), load_model=load)


def _groups(
    labelled: Sequence[Labelled], files: Mapping[str, Path], *, apart: bool
) -> Iterator[list[Labelled]]:
    there = [item for item in labelled if item.slug in files]
    together = [item for item in there if not (apart or item.is_fixture)]
    if together:
        yield together
    yield from ([item] for item in there if item not in together)


def _ingest(
    context: Home, files: Mapping[str, Path], notify: OnProgress, *, learns: bool = True
) -> dict[str, str]:
    """Ingest sessions. Return why sessions could not be read. Turns get no vectors."""
    options = IngestOptions(
        paths=tuple(files.values()), remember_paths=False, vectors=False, extract=learns
    )
    problems = {
        problem.path: problem.message for problem in ingest(context, options, notify).problems
    }
    return {slug: problems[str(path)] for slug, path in files.items() if str(path) in problems}


def score(
    labelled: Sequence[Labelled],
    kept: Sequence[Kept],
    *,
    unread: Mapping[str, str] | None = None,
    quotes: Mapping[tuple[str, str], str] | None = None,
) -> ExtractionResult:
    """Score memories from any source."""
    sorted_out, unassigned = _assign(kept, labelled)
    sessions = tuple(
        score_session(item, sorted_out[item.slug]) for item in labelled if not item.is_fixture
    )
    fixtures = tuple(
        score_fixture(item, sorted_out[item.slug]) for item in labelled if item.is_fixture
    )
    return ExtractionResult(
        sessions=sessions,
        overall=total(sessions),
        by_tool=total_by_tool(sessions),
        by_kind=total_by_kind(sessions),
        fixtures=fixtures,
        fixtures_overall=total_fixtures(fixtures),
        unread=unread or {},
        unassigned=unassigned,
        unknown_kinds=sum(memory.kind not in set(Kind) for memory in kept),
        quotes=quotes or {},
    )


def read_memories(file: Path) -> list[Kept]:
    """Read memories from a JSON list, an object with ``memories`` (``nacre list --json``), or JSON lines.

    Raises InvalidInputError.
    """
    text = file.read_text(encoding="utf-8")
    try:
        try:
            data = json.loads(text)
        except ValueError:
            data = [json.loads(line) for line in text.splitlines() if line.strip()]
        items = data.get("memories", [data]) if isinstance(data, dict) else data
        return [_from_json(item) for item in items]
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"{file} contains no memories: {error}", hint="use the output of nacre list --json"
        ) from error


def _from_json(item: Mapping[str, Any]) -> Kept:
    source = item.get("source") or item  # as in nacre, or as in the reference scorer
    return Kept(
        kind=str(item.get("kind")),
        subject=str(item.get("subject") or ""),
        content=str(item.get("content") or ""),
        importance=item.get("importance"),
        sessions=_strings(source.get("session") or item.get("session_id")),
        files=_strings(source.get("file")),
        turns=_strings(source.get("turns") or item.get("turn_ids")),
    )


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value))
    return (str(value),) if value else ()


def _files(labelled: Sequence[Labelled], transcripts: Path, folder: Path) -> dict[str, Path]:
    below = sorted(path for path in transcripts.rglob("*") if path.is_file())
    files: dict[str, Path] = {}
    for item in labelled:
        path = (
            _written(item, below, folder)
            if item.tool == _DEVMEMBENCH
            else _locate(item, transcripts, below)
        )
        if path:
            files[item.slug] = path.absolute()
    return files


def _locate(item: Labelled, transcripts: Path, below: Sequence[Path]) -> Path | None:
    for folder in (transcripts, item.path.parent, item.path.parent.parent):
        for name in item.names:
            if (folder / name).is_file() and folder / name != item.path:
                return folder / name
    names = {name.replace("\\", "/").rpartition("/")[2] for name in item.names}
    others = [path for path in below if path != item.path]
    named = [path for path in others if path.name in names] or [
        path for path in others if path.stem == item.path.stem
    ]
    return named[0] if len(named) == 1 else None


def _written(item: Labelled, below: Sequence[Path], folder: Path) -> Path | None:
    suites = {
        path.parent.parent for path in below if path.parts[-2:] == (_DEVMEMBENCH, "sessions.json")
    }
    haystacks = (
        haystack for suite in suites for haystack in load_suite(_DEVMEMBENCH, suite).haystacks
    )
    sessions = {session.id: session for haystack in haystacks for session in haystack.sessions}
    session = sessions.get(f"{_DEVMEMBENCH}/{item.session_id}")
    if session is None:
        return None
    path = folder / f"{item.slug}.jsonl"
    path.write_text(as_jsonl(session), encoding="utf-8")
    return path


def _active(context: Home) -> list[Memory]:
    memories: list[Memory] = []
    while True:
        page, number = list_active(context, Filter(), limit=_PAGE, offset=len(memories))
        memories += page
        if not page or len(memories) >= number:
            return memories


def _kept(memory: Memory, slugs: Mapping[str, str]) -> Kept:
    file, session = memory.source.file or "", memory.source.session
    return Kept(
        kind=memory.kind.value,
        subject=memory.subject,
        content=memory.content,
        importance=memory.importance,
        sessions=(session,) if session else (),
        files=(slugs.get(file, file),),
        turns=memory.source.turns,
    )


def _assign(
    kept: Sequence[Kept], labelled: Sequence[Labelled]
) -> tuple[dict[str, list[Kept]], int]:
    kept_of: dict[str, list[Kept]] = {item.slug: [] for item in labelled}
    names = sorted(
        (
            (name, item.slug)
            for item in labelled
            for name in (*item.names, item.slug, f"{item.slug}.json")
        ),
        key=lambda pair: -len(pair[0]),
    )
    ids = {item.session_id: item.slug for item in reversed(labelled) if item.session_id}
    unassigned = 0
    for memory in kept:
        by_file = (_by_name(file.replace("\\", "/"), names) for file in memory.files)
        by_session = (
            ids.get(session)
            or ids.get(session.rpartition(":")[2])
            or (session if session in kept_of else None)
            for session in memory.sessions
        )
        slug = next((slug for slugs in (by_file, by_session) for slug in slugs if slug), None)
        if slug:
            kept_of[slug].append(memory)
        else:
            unassigned += 1
    return kept_of, unassigned


def _by_name(file: str, names: Sequence[tuple[str, str]]) -> str | None:
    """Return the session for a file, by the longest matching end of its path, or by a unique file name."""
    slug = next((slug for name, slug in names if file == name or file.endswith(f"/{name}")), None)
    own = file.rpartition("/")[2]
    slugs = {slug for name, slug in names if name.rpartition("/")[2] == own}
    return slug or (slugs.pop() if len(slugs) == 1 else None)


def _quotations(
    labelled: Sequence[Labelled], files: Mapping[str, Path], context: Home
) -> dict[tuple[str, str], str]:
    quotes: dict[tuple[str, str], str] = {}
    for item in labelled:
        if any(label.evidence for label in item.labels):
            quoting = Quoting(context, files[item.slug])
            places = {place for label in item.labels for place in label.evidence}
            quotes |= {
                (item.slug, place): words for place in places if (words := quoting.words_at(place))
            }
    return quotes
