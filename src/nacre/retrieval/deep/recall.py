"""Deep recall: gate, the owner, at most one project, its manifest, a few whole memories.

A model takes the steps that need sense, where one is set; rules take them where it does not, or not in time. Code alone
says which memories may be seen at all: those that are trusted, in the scope of whoever asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from nacre.errors import VaultUnusable
from nacre.home.home import Home
from nacre.home.location import with_dependencies
from nacre.home.page_lines import without_what_is_over
from nacre.home.projects import page_text
from nacre.memories.evidence import evidence_of
from nacre.memories.scan import catch_up
from nacre.memories.usage import spool_use
from nacre.retrieval.adviser import Adviser
from nacre.retrieval.advising import advised
from nacre.retrieval.cases import note_deep_case
from nacre.retrieval.deep.block import Pages, block, clarification
from nacre.retrieval.deep.gate import MESSAGES, is_trivial, route_by_model, route_by_rules
from nacre.retrieval.deep.manifest import CHOSEN, MOST, select
from nacre.retrieval.deep.shortlist import (
    MOST_PROJECTS,
    KnownProject,
    chosen_by_model,
    leading,
    named_in,
    shortlist,
    surest,
)
from nacre.retrieval.question.question import Question, read_question
from nacre.retrieval.recall import check, recall
from nacre.retrieval.requests import DeepQuery
from nacre.spending.models import name_for
from nacre.spending.tracing import tracing
from nacre.text.passages import count
from nacre.values.deep_recall import Candidate, DecidedBy, DeepResult, DeepStep, Route, Said
from nacre.values.memory import Kind, Memory, Scope
from nacre.values.model_calls import Task
from nacre.values.recall import Filter, HitConfidence, Lane, MemoryHit, Mode, RecallQuery, RecallResult
from nacre.values.session import Flag, Speaker, Trust
from nacre.values.trace import Step, TraceKind

_PROFILE = "profile.md"
_PATIENCE_SECONDS = 0.2
_RANKED = 20
"""The best hits of recall go into the manifest, however old they are."""

_LAST_TURNS = 24
_PREFERENCES = 20
_NOT_SAID = Flag.INJECTED | Flag.META | Flag.SUMMARY | Flag.SIDECHAIN


@dataclass
class _Run:
    """One question on its way."""

    home: Home
    query: DeepQuery
    adviser: Adviser
    question: Question
    projects: Sequence[KnownProject]
    steps: list[DeepStep] = field(default_factory=list)
    lanes: tuple[Lane, ...] = ()

    def took(self, name: str, by: DecidedBy, outcome: str) -> None:
        """Note a step, with what was wrong with the model if it was asked."""
        self.steps.append(DeepStep(name, by, outcome, None if by is DecidedBy.MODEL else self.adviser.problem))
        self.adviser.problem = None

    def recalled(self, wanted: Filter, limit: int = _RANKED) -> RecallResult:
        """What recall finds by itself."""
        mode = Mode(self.home.settings.text("recall.mode"))
        query = RecallQuery(
            self.query.text,
            wanted,
            mode,
            limit=limit,
            confident=True,
            turns=0,
            update=False,
            co_recall=False,
            session=self.query.session,
        )
        result = recall(self.home, query)
        self.lanes = result.lanes
        return result


@dataclass(frozen=True, slots=True)
class _Found:
    """What a question came to."""

    route: Route
    project: str | None = None
    clarify: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    hits: tuple[MemoryHit, ...] = ()
    context: str = ""


def deep_recall(home: Home, query: DeepQuery, *, clock: Callable[[], float] = time.monotonic) -> DeepResult:
    """Look for what an agent should know before it answers. Raises QueryInvalid.

    A model is asked for ``recall.deep_seconds`` at most, by ``clock``; no lock is held meanwhile.
    """
    started = time.perf_counter()
    asked = query.text
    check(RecallQuery(asked, query.filter))
    query = _cleaned(home, query)
    catch_up(home, _PATIENCE_SECONDS)
    key = (query, name_for(home, Task.RECALL), home.memories.snapshot(), home.today())
    result = home.deep_answers.get(key)
    if result:
        result = replace(result, repeated=True)
    else:
        with advised(home, home.settings.whole("recall.deep_seconds"), clock) as adviser:
            result = _answer(home, query, adviser)
        home.deep_answers.put(key, result)
    if query.update and result.hits:
        spool_use(home, [hit.memory.id for hit in result.hits], session=query.session)
    result = replace(result, query=asked, took_ms=(time.perf_counter() - started) * 1000)
    if query.update:
        note_deep_case(home, query, result)
    return result


def recent_of(home: Home, session: str) -> tuple[Said, ...]:
    """The last messages of a session that nacre has read, as far as they are trusted; empty where it has not."""
    found = home.sessions.find(session)
    if len(found) != 1:
        return ()
    turns = (stored.turn for stored in home.sessions.last_turns(found[0].row, _LAST_TURNS))
    said = [
        Said(turn.speaker, turn.text)
        for turn in turns
        if turn.text and turn.trust is Trust.TRUSTED and not turn.flags & _NOT_SAID
        and turn.speaker in (Speaker.OWNER, Speaker.AGENT)
    ]  # fmt: skip
    return tuple(said[-MESSAGES:])


def _cleaned(home: Home, query: DeepQuery) -> DeepQuery:
    """The query without what is untrusted, and without secrets: it is told to a provider."""
    clean = home.redactor.clean
    recent = tuple(Said(one.speaker, clean(one.text)) for one in query.recent[-MESSAGES:])
    wanted = replace(query.filter, trusted=True)
    return structs.replace(query, text=clean(query.text), recent=recent, filter=wanted)


def _answer(home: Home, query: DeepQuery, adviser: Adviser) -> DeepResult:
    model = adviser.model.name if adviser.model else None
    projects = _known_projects(home, query.filter)
    question = read_question(query.text, now=home.now(), projects=[project.slug for project in projects])
    run = _Run(home, query, adviser, question, projects)
    with tracing(home, TraceKind.RECALL, query.text) as trace:
        found = _find(run)
        if model:
            for step in run.steps:
                more = {"by": step.by.value}
                status = "failed" if step.problem else "done"
                trace.add(Step(step.name, query.text[:200], step.problem or step.outcome, status, more=more))
            trace.outcome = found.project or found.route.value
    return DeepResult(
        query.text, found.route, found.project, found.clarify, found.candidates, found.hits, found.context,
        tuple(run.steps), run.lanes, model,
    )  # fmt: skip


def _find(run: _Run) -> _Found:
    route = _gate(run)
    if route is Route.NONE:
        return _Found(route)
    owner = _owner(run)
    if route is Route.OWNER:
        hits = _hits(run, _everywhere(run))
        if hits or run.steps[0].by is DecidedBy.MODEL:
            _chosen(run, DecidedBy.RULES, hits)
            return _Found(route, hits=hits, context=_block(run, route, None, owner, hits))
        found = _in_project(run, owner)
        return found if found.hits else _Found(route, context=_block(run, route, None, owner, ()))
    return _in_project(run, owner)


def _gate(run: _Run) -> Route:
    """The route. What says nothing is nothing to ask a model about, nor is a project that was asked for."""
    if run.query.filter.projects:
        run.took("gate", DecidedBy.ASKER, Route.PROJECT.value)
        return Route.PROJECT
    named = len(named_in(run.query.text, run.projects)) == 1
    chosen = None
    if not is_trivial(run.question):
        chosen = route_by_model(run.adviser, run.query.text, run.query.recent)
    by = DecidedBy.MODEL if chosen else DecidedBy.RULES
    route = chosen or route_by_rules(run.question, names_project=named)
    if route is Route.NONE and named:
        by, route = DecidedBy.RULES, Route.PROJECT
    run.took("gate", by, route.value)
    return route


def _owner(run: _Run) -> str:
    """What is known of the owner: the profile, else what they prefer everywhere; for nobody else's eyes."""
    if run.query.filter.scope is not Scope.PRIVATE:
        return ""
    profile = _profile(run.home)
    if profile:
        run.took("owner", DecidedBy.RULES, "the profile")
        return profile
    wanted = replace(_everywhere(run), kinds=(Kind.PREFERENCE,))
    today = run.home.today()
    rows = run.home.selection.browse_memories(wanted, limit=_PREFERENCES, today=today)
    known = run.home.memories.by_rows(rows)
    run.took("owner", DecidedBy.RULES, count(len(rows), "preference", "preferences") if rows else "nothing known")
    return "\n".join(f"- {known[row].content}" for row in rows if row in known)


def _profile(home: Home) -> str:
    try:
        text = home.vault.read(_PROFILE).decode("utf-8", errors="replace")
    except (OSError, VaultUnusable):
        return ""
    return home.redactor.clean(without_what_is_over(home, text)).strip()


def _everywhere(run: _Run) -> Filter:
    """What belongs to no project."""
    return replace(run.query.filter, projects=(), exclude_projects=tuple(sorted(run.home.memories.projects())))


def _in_project(run: _Run, owner: str) -> _Found:
    route = Route.PROJECT
    candidates, project, clarify = _project(run)
    if clarify:
        note = clarification(clarify)
        told = block(route, None, Pages(owner), [], note)
        return _Found(route, None, clarify, candidates, context=told)
    if project is None:
        hits = _hits(run, run.query.filter)
        _chosen(run, DecidedBy.RULES, hits)
    else:
        project, hits = _memories(run, project, candidates)
    return _Found(route, project, (), candidates, hits, _block(run, route, project, owner, hits))


def _project(run: _Run) -> tuple[tuple[Candidate, ...], str | None, tuple[str, ...]]:
    """The shortlist, the project, and those of which one has to be named."""
    asked = run.query.filter.projects
    if len(asked) == 1:
        run.took("project", DecidedBy.ASKER, asked[0])
        return (), asked[0], ()
    candidates = tuple(shortlist(run.query.text, run.query.recent, run.projects, run.query.here))
    if not candidates:
        candidates = _by_content(run)
        if not candidates:
            run.took("project", DecidedBy.RULES, "none")
            return (), None, ()
    by, project = _choose(run, candidates)
    clarify = () if project else tuple(one.slug for one in candidates)
    run.took("project", by, project or f"not clear: {', '.join(clarify)}")
    return candidates, project, clarify


def _choose(run: _Run, candidates: Sequence[Candidate]) -> tuple[DecidedBy, str | None]:
    """Exactly one that is named exactly is the one; of others a model chooses one or none.

    By rules it is the one that leads; where none does, the one that has an answer.
    """
    if sum(one.named for one in candidates) == 1:
        return DecidedBy.RULES, candidates[0].slug
    known = {project.slug: project for project in run.projects}
    shown = [(one, known[one.slug]) for one in candidates]
    has_answered, chosen = chosen_by_model(run.adviser, run.query.text, run.query.recent, shown, run.query.here)
    if has_answered:
        return DecidedBy.MODEL, chosen
    if any(one.named for one in candidates):
        return DecidedBy.RULES, None
    return DecidedBy.RULES, leading(candidates) or _surest(run, candidates)


def _by_content(run: _Run) -> tuple[Candidate, ...]:
    """Where nothing names a project: those whose memories answer, by how sure that is."""
    known = {project.slug for project in run.projects}
    sure = {slug: sure for slug, sure in _sureness(run, run.query.filter).items() if slug in known}
    ranked = sorted(sure, key=lambda slug: (-sure[slug], slug))
    return tuple(Candidate(slug, sure[slug]) for slug in ranked)[:MOST_PROJECTS]


def _surest(run: _Run, candidates: Sequence[Candidate]) -> str | None:
    """The project whose memories answer far more surely than those of the others; ``None`` where none do."""
    slugs = tuple(one.slug for one in candidates)
    return surest(_sureness(run, replace(run.query.filter, projects=slugs, strict=True)))


def _sureness(run: _Run, wanted: Filter) -> dict[str, float]:
    """How sure the best answer of each project is."""
    sure: dict[str, float] = {}
    for hit in run.recalled(wanted).hits:
        if hit.memory.project:
            sure[hit.memory.project] = max(sure.get(hit.memory.project, 0.0), hit.components.get("sure", 0.0))
    return sure


def _memories(run: _Run, project: str, candidates: Sequence[Candidate]) -> tuple[str | None, tuple[MemoryHit, ...]]:
    """At most five memories of the project, and the project they are of.

    By rules alone a project that was not named gives way to another one, where it knows nothing and that one does.
    """
    wanted = replace(run.query.filter, projects=(project,))
    ranked = run.recalled(wanted).hits
    chosen = select(run.adviser, run.query.text, _manifest(run, wanted, ranked))
    if chosen is not None:
        hits = _hits_of(run, chosen, ranked)
        _chosen(run, DecidedBy.MODEL, hits)
        return project, hits
    is_sure = run.query.filter.projects or any(one.named for one in candidates)
    if not ranked and not is_sure and run.steps[-1].by is DecidedBy.RULES:
        ranked = run.recalled(run.query.filter).hits
        project_found = next((hit.memory.project for hit in ranked if hit.memory.project), project)
        ranked = tuple(hit for hit in ranked if hit.memory.project in (None, project_found))
        project = project_found if ranked else project
    _chosen(run, DecidedBy.RULES, ranked[:CHOSEN])
    return project, ranked[:CHOSEN]


def _manifest(run: _Run, wanted: Filter, ranked: Sequence[MemoryHit]) -> list[Memory]:
    """At most 200 memories, the newest first: those that recall finds by itself, and the newest."""
    if run.adviser.model is None:
        return []
    home = run.home
    rows = home.selection.latest_memories(with_dependencies(home, wanted), limit=MOST, today=home.today())
    latest = home.memories.by_rows(rows)
    shown = {memory.id: memory for memory in (*(hit.memory for hit in ranked), *(latest[row] for row in rows))}
    return sorted(list(shown.values())[:MOST], key=lambda memory: (memory.updated, memory.id), reverse=True)


def _hits(run: _Run, wanted: Filter) -> tuple[MemoryHit, ...]:
    """The best five by rules, of one project at most."""
    return run.recalled(wanted).hits[:CHOSEN]


def _hits_of(run: _Run, chosen: Sequence[Memory], ranked: Sequence[MemoryHit]) -> tuple[MemoryHit, ...]:
    known = {hit.memory.id: hit for hit in ranked}
    doubts = run.home.reviews.doubts([memory.id for memory in chosen], both_ways=True)
    is_private = run.query.filter.scope is Scope.PRIVATE
    stale = run.home.memories.stale() if is_private else {}
    hits = []
    for memory in chosen:
        evidence = evidence_of(run.home, memory) if is_private else ()
        newer = tuple(doubt.newer for doubt in doubts if doubt.older == memory.id)
        doubt = stale[memory.id][1] if memory.id in stale else None
        hit = known.get(memory.id) or MemoryHit(memory, 0.0, {}, HitConfidence.LIKELY, evidence, newer, doubt)
        hits.append(replace(hit, components={**hit.components, "chosen": 1.0}))
    return tuple(hits)


def _chosen(run: _Run, by: DecidedBy, hits: Sequence[MemoryHit]) -> None:
    run.took("select", by, count(len(hits), "memory", "memories") if hits else "nothing")


def _block(run: _Run, route: Route, project: str | None, owner: str, hits: Sequence[MemoryHit]) -> str:
    is_private = run.query.filter.scope is Scope.PRIVATE
    page = page_text(run.home, project) if project and is_private else ""
    told = [hit for hit in hits if hit.memory.content not in owner]
    return block(route, project, Pages(owner, page), told)


def _known_projects(home: Home, wanted: Filter) -> list[KnownProject]:
    """The projects that have memories for whoever asks, by all of their names, the one that changed last first."""
    slugs = home.selection.projects_of_memories(replace(wanted, strict=True), today=home.today())
    names: dict[str, dict[str, None]] = {slug: {slug: None} for slug in slugs}
    for key, value, slug in home.files.project_keys():
        if key == "alias" and slug in names:
            names[slug][value] = None
    is_private = wanted.scope is Scope.PRIVATE
    return [
        KnownProject(slug, tuple(names[slug]), page_text(home, slug, own=True) if is_private else "") for slug in slugs
    ]
