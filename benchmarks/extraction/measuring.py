"""Sessions with labels → a home of their own → what was kept → how good that is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from nacre.errors import InvalidInput, NotFound
from nacre.home.home import Home, load_configured_model, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.store import list_active
from nacre.protocols import LanguageModel
from nacre.settings import Settings, load_settings
from nacre.values.memory import Kind, Memory
from nacre.values.models import Price
from nacre.values.recall import Filter
from nacre.values.reports import OnProgress

OWNER = '["4801357"]'
"""Who the owner is in the chats of the labelled sessions, as the setting ``owner.identities`` has it."""

_PAGE = 1000
_DEVMEMBENCH = "devmembench"
_NO_FILE = "there is no such transcript"


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """Everything that was measured.

    ``unread`` says of sessions that count as empty why they could not be read. ``unassigned`` memories belong to no
    labelled session, ``unknown_kinds`` are of a kind that does not exist. ``said`` holds the words behind the evidence
    of labels, by slug and place, as far as they were found.
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
    said: Mapping[tuple[str, str], str]

    @property
    def score(self) -> float:
        """The mean of all scores, those of fixtures among them; 0 to 1."""
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
    """Ingest the sessions into homes in ``folder`` and score what was kept. Raises NotFound when there are none.

    Labelled sessions share a home, as in life, so that what one taught is not learned again from the next one; with
    ``apart``, and for fixtures as in agenr, every session has a home of its own. A language ``model`` that is named is
    asked about all of them; ``scripted-gold`` answers what the labels say.
    """
    files = _files(labelled, transcripts, folder)
    if not files:
        raise NotFound(
            f"none of the labelled sessions lies in {transcripts}",
            hint="point --transcripts at them",
        )
    kept: list[Kept] = []
    unread = {item.slug: _NO_FILE for item in labelled if item.slug not in files}
    said: dict[tuple[str, str], str] = {}
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
            said |= _quotations(group, paths, context)
        finally:
            context.database.close()
    return score(labelled, kept, unread=unread, said=said)


def _open(home: Path, *, vectors: bool, model: str | None, gold: GoldModel | None) -> Home:
    """A home of its own. A model that is named is set up as in the home of whoever measures, and no budget holds
    it: they ask for it in so many words.
    """
    environ = {
        "HOME": str(home),
        "NACRE_OWNER_IDENTITIES": OWNER,
        **({} if vectors else {"NACRE_EMBEDDING_MODEL": "none"}),
    }
    if model is None:
        return open_home(load_settings(home, environ))
    mine = load_settings()
    asked = {
        "NACRE_MODELS_EXTRACTION": gold.name if gold else model,
        "NACRE_MODELS_BACKGROUND": "true",
    }
    settings = load_settings(home, {**environ, **asked})

    def load(_: Settings, name: str) -> LanguageModel:
        asked = gold or load_configured_model(mine, name)
        asked.capabilities = replace(asked.capabilities, price=Price())
        return asked

    return open_home(settings, load_model=load)


def _groups(
    labelled: Sequence[Labelled], files: Mapping[str, Path], *, apart: bool
) -> Iterator[list[Labelled]]:
    """The sessions of each home."""
    there = [item for item in labelled if item.slug in files]
    together = [item for item in there if not (apart or item.is_fixture)]
    if together:
        yield together
    yield from ([item] for item in there if item not in together)


def _ingest(
    context: Home, files: Mapping[str, Path], notify: OnProgress, *, learns: bool = True
) -> dict[str, str]:
    """Read and learn; returns why sessions could not be read. Vectors of what was read would change nothing here."""
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
    said: Mapping[tuple[str, str], str] | None = None,
) -> ExtractionResult:
    """Score memories, wherever they come from."""
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
        said=said or {},
    )


def read_memories(file: Path) -> list[Kept]:
    """Memories from a file: a JSON list, an object with ``memories`` (as of ``nacre list --json``), or JSON lines.

    Raises InvalidInput.
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
        raise InvalidInput(
            f"{file} holds no memories: {error}", hint="it takes what nacre list --json prints"
        ) from error


def _from_json(item: Mapping[str, object]) -> Kept:
    importance = item.get("importance")
    return Kept(
        kind=str(item.get("kind")),
        subject=str(item.get("subject") or ""),
        content=str(item.get("content") or ""),
        importance=importance if isinstance(importance, int | float) else None,
        sessions=_strings(item.get("session_id")),
        files=_strings(item.get("file") or item.get("path")),
        turns=_strings(item.get("turn_ids")),
    )


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value))
    return (str(value),) if value else ()


def _files(labelled: Sequence[Labelled], transcripts: Path, folder: Path) -> dict[str, Path]:
    """The transcript of each session that has one."""
    below = sorted(path for path in transcripts.rglob("*") if path.is_file())
    found: dict[str, Path] = {}
    for item in labelled:
        path = (
            _written(item, below, folder)
            if item.tool == _DEVMEMBENCH
            else _locate(item, transcripts, below)
        )
        if path:
            found[item.slug] = path.absolute()
    return found


def _locate(item: Labelled, transcripts: Path, below: Sequence[Path]) -> Path | None:
    """By path from the folder of transcripts or of labels, else by the file's name, else by the slug."""
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
    """A session of DevMemBench, which keeps all of them in one file, as a transcript of its own."""
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
    """What ``nacre list`` shows, all of it."""
    found: list[Memory] = []
    while True:
        page, number = list_active(context, Filter(), limit=_PAGE, offset=len(found))
        found += page
        if not page or len(found) >= number:
            return found


def _kept(memory: Memory, slugs: Mapping[str, str]) -> Kept:
    """A memory with the slug of the session whose file it comes from."""
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
    """The memories of each session, and how many belong to none."""
    found: dict[str, list[Kept]] = {item.slug: [] for item in labelled}
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
            or (session if session in found else None)
            for session in memory.sessions
        )
        slug = next((slug for slugs in (by_file, by_session) for slug in slugs if slug), None)
        if slug:
            found[slug].append(memory)
        else:
            unassigned += 1
    return found, unassigned


def _by_name(file: str, names: Sequence[tuple[str, str]]) -> str | None:
    """The session a file belongs to: by the longest name it ends with, else by its own name where that is unique."""
    slug = next((slug for name, slug in names if file == name or file.endswith(f"/{name}")), None)
    own = file.rpartition("/")[2]
    slugs = {slug for name, slug in names if name.rpartition("/")[2] == own}
    return slug or (slugs.pop() if len(slugs) == 1 else None)


def _quotations(
    labelled: Sequence[Labelled], files: Mapping[str, Path], context: Home
) -> dict[tuple[str, str], str]:
    """The words behind the evidence of labels."""
    said: dict[tuple[str, str], str] = {}
    for item in labelled:
        if any(label.evidence for label in item.labels):
            quoting = Quoting(context, files[item.slug])
            places = {place for label in item.labels for place in label.evidence}
            said |= {
                (item.slug, place): words for place in places if (words := quoting.words_at(place))
            }
    return said
