"""Ask a model what a session teaches, with the memories that are stored about it beside it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatch
from functools import cached_property

from nacre.embed.calibration import calibration_of
from nacre.errors import EmbedderUnavailable, NacreError
from nacre.extraction.by_model.pipeline import Extraction, Wanted, extract_with
from nacre.extraction.reading.speech import utterances
from nacre.extraction.requests import Way
from nacre.extraction.substance import is_worth_asking
from nacre.home.home import Home
from nacre.platform.power import is_on_battery
from nacre.protocols import LanguageModel
from nacre.retrieval.recall import recall
from nacre.settings import Settings
from nacre.spending.embedders import configured_embedder
from nacre.spending.models import NONE, model_for, name_for
from nacre.spending.tracing import tracing
from nacre.transcripts.tool_calls import memories_made
from nacre.values.memory import Memory
from nacre.values.model_calls import Task
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.reports import ModelExtraction
from nacre.values.session import Session, StoredSession, Trust, Turn
from nacre.values.trace import Step, TraceKind

LEAST_MEMORIES = 20
"""In a home; with fewer nothing of other sessions is looked for that may be known already (seed facts 1.5)."""

MOST_RELATED = 5
MOST_OF_SESSION = 40
_CANDIDATES = 15
_SECONDS = 5.0
_STATEMENTS = 24
_ASKED_IN_WORDS = 6
_RELATED = (0.72 - 0.70) / (0.88 - 0.70)
"""Where .72, the seed's cosine, lies between its cosines for a link and for likeness."""


class ModelExtractor:
    """Asks the model that is set for extraction, in the background, about one session after another.

    After a refusal, or when what it may cost is used up, it asks no more; nor when it was out of reach in one session.
    """

    def __init__(self, home: Home, *, in_chunks: bool = False) -> None:
        self._home = home
        self._way = Way.CHUNKS if in_chunks else Way.FITTING
        self._tally = _Tally()

    def extract(
        self, session: Session, project: str | None, turns: Sequence[Turn], *, begin: int,
        notify: Callable[[str], None],
    ) -> Extraction | None:  # fmt: skip
        """What the model finds in a session's turns from ``begin`` on; ``None`` where it is not to be asked."""
        model = self._model
        if model is None or self.is_spent or begin >= len(turns):
            return None
        if not is_worth_asking(session, turns, self._home.settings, begin=begin):
            self._tally.report = replace(self._tally.report, trivial=self._tally.report.trivial + 1)
            return None

        def tell(done: int, total: int) -> None:
            notify(f"{model.name}: part {done} of {total}")

        notify(model.name)
        found = ask_about(
            self._home, model, session, turns,
            Wanted(
                begin=begin, way=self._way, related=related(self._home, session.id, project, turns, begin=begin),
                notify=tell,
                timeout_seconds=self._home.settings.number("models.timeout_seconds"),
            ),
        )  # fmt: skip
        self._tally.add(found)
        return found

    def serves(self, stored: StoredSession) -> bool:
        """Whether a writer is to be shown a session, once it is over: it ended after the owner set one, and is of no
        project that is left out.
        """
        settings = self._home.settings
        if not is_set(self._home):
            return False
        if is_left_out(settings, stored.project):
            return False
        since = settings.text("writer.since")
        return not since or stored.ended is None or stored.ended >= datetime.fromisoformat(since)

    @cached_property
    def rests(self) -> bool:
        """Whether the writer is shown nothing for now."""
        return rests(self._home)

    @property
    def is_spent(self) -> bool:
        """Whether the model is out of reach, or what it may cost is used up: what is left is asked another time."""
        return self._tally.is_over or self._model is None

    def report(self) -> ModelExtraction | None:
        """What the model was asked and found, ``None`` where none is to be asked."""
        model, found = self.__dict__.get("_model"), self._tally.report
        return replace(found, model=model.name if model else "") if model or found.problem else None

    def close(self) -> None:
        """Let go of the model."""
        model = self.__dict__.get("_model")
        if model:
            model.close()

    @cached_property
    def _model(self) -> LanguageModel | None:
        try:
            return model_for(self._home, Task.EXTRACTION, background=True)
        except NacreError as error:
            self._tally.fail(error.message, error.hint)
            return None


def is_set(home: Home) -> bool:
    """Whether a model is to write in the background."""
    return home.settings.flag("models.background") and name_for(home, Task.EXTRACTION) != NONE


def is_left_out(settings: Settings, project: str | None) -> bool:
    """Whether a project's sessions are shown to no writer."""
    return any(fnmatch(project or "", pattern) for pattern in settings.texts("writer.exclude_projects"))


def rests(home: Home) -> bool:
    """Whether the writer is paused, or waits for the mains."""
    return home.settings.flag("writer.paused") or (not home.settings.flag("writer.on_battery") and is_on_battery())


def ask_about(home: Home, model: LanguageModel, session: Session, turns: Sequence[Turn], wanted: Wanted) -> Extraction:
    """Ask a model about a session, and leave a trace of it. No lock is held meanwhile, no transaction open."""
    with tracing(home, TraceKind.EXTRACTION, session.id) as run:
        with home.turn.aside():  # it asks from threads of its own
            found = extract_with(model, session, turns, wanted)
        run.add(_step(found))
        count = len(found.memories)
        run.outcome = f"{count} {'memory' if count == 1 else 'memories'}"
        return found


def related(
    home: Home, session: str, project: str | None, turns: Sequence[Turn], *, begin: int = 0
) -> tuple[Memory, ...]:  # fmt: skip
    """What is known already: all that was stored in the session itself, then the few that are nearest to it."""
    own = stored_in(home, session, turns)
    ids = {one.id for one in own}
    return (*own, *(one for one in _nearby(home, project, turns, begin) if one.id not in ids))


def stored_in(home: Home, session: str, turns: Sequence[Turn]) -> tuple[Memory, ...]:
    """The trusted memories that were stored in a session, the agent's proposals among them, in their order.

    Its host may not name it to those who store: then the answers to the agent in its turns tell.
    """
    found = {one.id: home.memories.find(one.id) for one in home.memories.known_of(session)}
    for end in memories_made(turns):
        found |= {one.id: one for one in home.memories.find_like(end) if one.source.session in (None, session)}
    holding = (one for one in found.values() if one and not (one.retired or one.superseded_by or one.is_handoff))
    trusted = (one for one in holding if one.trust is Trust.TRUSTED)
    return tuple(sorted(trusted, key=lambda one: (one.created, one.id))[-MOST_OF_SESSION:])


def _nearby(home: Home, project: str | None, turns: Sequence[Turn], begin: int) -> tuple[Memory, ...]:
    """The few trusted memories that are nearest to what the owner says in a session, the nearest first.

    By vectors where there are any, else in words. It takes five seconds at most.
    """
    counts = home.memories.counts()
    if sum(counts.values()) - counts["superseded"] - counts["retired"] < LEAST_MEMORIES:
        return ()
    said = [one.text for spoken in utterances(turns) if spoken.index >= begin for one in spoken.statements]
    longest = sorted(dict.fromkeys(said), key=len, reverse=True)[:_STATEMENTS]
    wanted = Filter(projects=(project,) if project else (), trusted=True)
    until = time.monotonic() + _SECONDS
    try:
        if home.settings.text("embedding.model") != "none" and configured_embedder(home).name == home.vectors.model():
            return _nearest(home, wanted, longest)
    except EmbedderUnavailable:
        pass  # the words have to do
    return _in_words(home, wanted, longest[:_ASKED_IN_WORDS], until)


def _nearest(home: Home, wanted: Filter, statements: Sequence[str]) -> tuple[Memory, ...]:
    limits = calibration_of(configured_embedder(home).name)
    least = limits.link + _RELATED * (limits.alike - limits.link)
    admitted = home.selection.admitted_memories(wanted, today=home.now().date())
    best: dict[int, float] = {}
    for vector in configured_embedder(home).embed(list(statements)) if statements else ():
        for row, cosine in home.vectors.memory_cosines(vector).items():
            if row in admitted and cosine >= max(least, best.get(row, -1.0)):
                best[row] = cosine
    rows = sorted(best, key=lambda row: -best[row])[:_CANDIDATES]
    found = home.memories.by_rows(rows)
    return tuple(found[row] for row in rows if row in found)[:MOST_RELATED]


def _in_words(
    home: Home, wanted: Filter, statements: Sequence[str], until: float
) -> tuple[Memory, ...]:  # fmt: skip
    found: dict[str, Memory] = {}
    for statement in statements:
        if time.monotonic() > until or len(found) >= _CANDIDATES:
            break
        query = RecallQuery(statement, filter=wanted, mode=Mode.LEXICAL, limit=MOST_RELATED, update=False)
        found |= {hit.memory.id: hit.memory for hit in recall(home, query).hits}
    return tuple(found.values())[:MOST_RELATED]


def _step(found: Extraction) -> Step:
    dropped = ", ".join(f"{reason} {count}" for reason, count in sorted(found.dropped.items()))
    told = f"{len(found.memories)} taken" + (f"; not taken: {dropped}" if dropped else "")
    held = ", ".join(dict.fromkeys(one.detail for one in found.candidates if one.held))
    told += f"; held back: {held}" if held else ""
    told += f"; {found.by_rules} of {found.parts} parts by rules: {found.problem}" if found.by_rules else ""
    return Step(
        "looks at the answers", f"{found.proposed} memories proposed of {found.parts} parts", told,
        refs=tuple(dict.fromkeys(turn for one in found.candidates for turn in one.turns)),
        more={**found.dropped, "by_rules": found.by_rules},
    )  # fmt: skip


@dataclass
class _Tally:
    report: ModelExtraction = ModelExtraction()
    is_over: bool = False

    def add(self, found: Extraction) -> None:
        so_far = self.report
        self.report = replace(
            so_far, sessions=so_far.sessions + 1, found=so_far.found + len(found.memories),
            held=so_far.held + len(found.candidates) - len(found.memories),
            repeated=so_far.repeated + found.repeated, calls=so_far.calls + found.calls,
            tokens=so_far.tokens + found.tokens, parts=so_far.parts + found.parts,
            by_rules=so_far.by_rules + found.by_rules, dropped=Counter(so_far.dropped) + Counter(found.dropped),
        )  # fmt: skip
        if found.by_rules:
            self.fail(found.problem, found.hint)
        self.is_over = found.is_over

    def fail(self, problem: str | None, hint: str | None) -> None:
        self.report = replace(self.report, problem=problem, hint=hint)
