"""Build a large home from real sessions, with new ids and with sentences exchanged between turns of the same speaker.

Plain copies would give every word its frequency in the small sample, and regular postings that compress too well.
Exchanged sentences keep words, frequencies and lengths realistic.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.cli.speed import (
    RECALL,
    Load,
    Tenant,
    answering,
    draw_questions,
    load,
    scatter_vectors,
    under_load,
)
from nacre.cluster.cluster import migrate_server, remove_tenant
from nacre.errors import ConflictError, InvalidInputError, NotFoundError
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.serve.catalogue import CATALOGUE
from nacre.settings import Settings, load_settings
from nacre.store.postgres_schema import Registry
from nacre.values.memory import SessionFilter
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Speaker, StoredSession, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SENTENCE = re.compile(r"[^.!?。\n]*[.!?。\n]+\s*|[^.!?。\n]+$")
_EXCHANGED = 0.4
_SESSIONS_A_TRANSACTION = 20
_DAYS = 365


@dataclass(frozen=True, slots=True)
class Material:
    """Real sessions with their turns, and all sentences by speaker."""

    sessions: tuple[tuple[StoredSession, tuple[Turn, ...]], ...]
    sentences: dict[Speaker, tuple[str, ...]]

    @property
    def turns(self) -> int:
        """The number of turns."""
        return sum(len(said) for _, said in self.sessions)


def gather(context: Home) -> Material:
    """Return the contents of a home to build from."""
    stored = context.sessions.newest(SessionFilter(subagents=True), limit=1_000_000)
    sessions = tuple(
        (item, tuple(found.turn for found in context.sessions.turns_of(item.row)))
        for item in stored
    )
    sentences: dict[Speaker, list[str]] = defaultdict(list)
    for _, said in sessions:
        for turn in said:
            sentences[turn.speaker] += _SENTENCE.findall(turn.text)
    return Material(sessions, {speaker: tuple(found) for speaker, found in sentences.items()})


def grow(context: Home, material: Material, have: int, turns: int, notify: OnProgress) -> int:
    """Add sessions to a home with ``have`` turns until it has ``turns``; return the new number.

    The content depends on ``have`` alone.
    """
    draw = random.Random(have)  # noqa: S311 - a repeatable draw
    endless = _endless(material, draw)
    while have < turns and material.turns:
        with context.database.transaction():
            for _ in range(_SESSIONS_A_TRANSACTION):
                stored, said = next(endless)
                have += _add(context, stored, said[: max(0, turns - have)], draw, material)
        notify(Progress("turns", have, turns))
    return have


def _endless(
    material: Material, draw: random.Random
) -> Iterator[tuple[StoredSession, tuple[Turn, ...]]]:
    while True:
        order = list(material.sessions)
        draw.shuffle(order)
        yield from order


def _add(
    context: Home,
    stored: StoredSession,
    said: tuple[Turn, ...],
    draw: random.Random,
    material: Material,
) -> int:
    if not said:
        return 0
    copy = f"{draw.getrandbits(48):012x}"
    moved = timedelta(days=draw.randrange(_DAYS))
    session = replace(stored.session, native_id=f"{stored.session.native_id}-{copy}")
    if session.started:
        session = replace(session, started=session.started - moved)
    row = context.sessions.upsert(session, project=stored.project, file=None)
    turns = [
        replace(
            turn,
            id=f"{turn.id}-{copy}",
            time=turn.time - moved if turn.time else None,
            text=recombined(turn.text, material.sentences[turn.speaker], draw),
        )
        for turn in said
    ]
    added = context.sessions.add_turns(session, row, turns)
    context.sessions.refresh([row])
    return added


def recombined(text: str, others: tuple[str, ...], draw: random.Random) -> str:
    """Return a text with some sentences replaced by sentences of other turns."""
    return "".join(
        draw.choice(others) if others and draw.random() < _EXCHANGED else sentence
        for sentence in _SENTENCE.findall(text)
    )


def scatter(
    context: Home,
    material: Material,
    notify: OnProgress,
    known: dict[bytes, NDArray[np.float32]] | None = None,
) -> int:
    """Give every turn without vectors passages of its own; return the number of passages.

    They are the passages of the original turn with some noise, because embedding a million turns takes hours.
    ``known`` keeps them for another home built from the same sessions.
    """
    texts = {turn.id: turn.text for _, said in material.sessions for turn in said}

    def origins(waiting: Sequence[tuple[int, str]]) -> list[str]:
        turns = context.sessions.by_rows([row for row, _ in waiting])
        ids = [turns[row].turn.id for row, _ in waiting]
        return [
            texts.get(one) or texts.get(one.rpartition("-")[0], text)
            for one, (_, text) in zip(ids, waiting, strict=True)
        ]

    return scatter_vectors(context, notify, origins, known)


# ----------------------------------------------------------------------------
# How a server answers as its tenants become more: they are made and filled, and many clients ask.


_MADE = re.compile(r"scale-\d{6,}")
"""The prefix of the measured tenants, which are deleted at the end."""

COLD_CLIENTS = 4
COLD_PAUSE_SECONDS = 0.25
_QUESTIONS = 50
_LOADED = 200
"""Maximum number of tenants with keys that receive requests."""


@dataclass(frozen=True, slots=True)
class Step:
    """The number of tenants to add, and of turns in each."""

    tenants: int
    turns: int


@dataclass(frozen=True, slots=True)
class Stage:
    """The results for a number of tenants.

    ``tenant_ms`` is the time to create one of the last tenants with its key; ``empty_bytes`` its size while empty.
    ``bytes_per_turn`` includes words, vectors and indexes. ``alone`` is one client that recalls from the last tenant.
    """

    tenants: int
    step: Step
    tenant_ms: float
    empty_bytes: int
    turns_per_second: float
    passages_per_second: float
    bytes_per_turn: float
    alone: Load
    mixed: Load


@dataclass(frozen=True, slots=True)
class HotTenant:
    """Response times of recall for other tenants, with and without a tenant under constant load."""

    quiet: Load
    beside: Load
    hot: Load

    @property
    def ratio(self) -> float:
        """The ratio of the p95."""
        quiet = self.quiet.wait(RECALL).p95_ms
        return self.beside.wait(RECALL).p95_ms / quiet if quiet else 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """All results; ``is_whole`` is False after an interruption."""

    stages: tuple[Stage, ...]
    hot: HotTenant | None
    material: int
    is_whole: bool


@dataclass(slots=True)
class _Server:
    settings: Settings
    material: Material
    questions: Sequence[str]
    known: dict[bytes, NDArray[np.float32]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    tenants: list[Tenant] = field(default_factory=list)

    def opened(self, name: str) -> Home:
        """A tenant's memory."""
        return open_home(
            self.settings.having("storage.tenant", name).having("storage.account", name)
        )


def measure_growth(
    url: str,
    transcripts: Path,
    folder: Path,
    *,
    steps: Sequence[Step],
    clients: int,
    seconds: float,
    notify: OnProgress,
    clears: bool = False,
) -> Growth:
    """Create tenants on the server at ``url`` step by step, fill them from transcripts, send requests, delete them.

    After Ctrl-C the tenants are deleted and the results so far returned. ``folder`` is empty.
    With ``clears``, tenants of an earlier run are deleted first. Raises ConflictError if there are some without it,
    NotFoundError for transcripts without turns, UnavailableError, UnusableStoreError.
    """
    server = _Server(
        load_settings(folder / "home", {"HOME": str(folder), "NACRE_DB": url}),
        *_read(folder, transcripts),
    )
    migrate_server(server.settings)
    stages: list[Stage] = []
    hot, is_whole = None, False
    with (
        _cleared(server, notify, clears=clears),
        answering(url) as place,
        suppress(KeyboardInterrupt),
    ):
        for step in steps:
            stages.append(_stage(server, step, place, clients, seconds, notify))
        if len(server.tenants) > 1:
            notify(Progress("hot", len(steps), len(steps)))
            hot = _hot(server, place, clients, seconds)
        is_whole = True
    return Growth(tuple(stages), hot, server.material.turns, is_whole)


def _read(folder: Path, transcripts: Path) -> tuple[Material, Sequence[str]]:
    """Return the sessions to build tenants from, read into a home of files."""
    with closing(open_home(load_settings(folder / "material", {"HOME": str(folder)}))) as home:
        ingest(
            home,
            IngestOptions(paths=(transcripts,), extract=False, vectors=False, remember_paths=False),
        )
        material = gather(home)
        if not material.turns:
            raise NotFoundError(
                f"there are no turns in {transcripts}", hint="point at a folder of transcripts"
            )
        return material, draw_questions(home, _QUESTIONS) or ["what did we decide?"]


@contextmanager
def _cleared(server: _Server, notify: OnProgress, *, clears: bool) -> Iterator[None]:
    """Delete the tenants of measurements before and after the block."""
    with closing(Registry(server.settings.server)) as registry:
        there = [name for name, *_ in registry.all("list_tenants") if _MADE.fullmatch(name)]
    if there and not clears:
        raise ConflictError(
            f"{len(there)} tenants of an earlier measurement are there: {there[0]} …",
            hint="--clear deletes them before it measures",
        )
    _remove(server, there, notify)
    try:
        yield
    finally:
        _remove(server, server.names, notify)


def _remove(server: _Server, names: Sequence[str], notify: OnProgress) -> None:
    for at, name in enumerate(names):
        with suppress(NotFoundError):  # interrupted before it was made
            remove_tenant(server.settings, name)
        notify(Progress("deleting", at + 1, len(names)))


def _stage(
    server: _Server,
    step: Step,
    place: tuple[str, int],
    clients: int,
    seconds: float,
    notify: OnProgress,
) -> Stage:
    before = _bytes(server)
    names = [f"scale-{len(server.names) + at:06}" for at in range(step.tenants)]
    took: list[float] = []
    fresh: list[Tenant] = []
    for name in names:
        began = time.perf_counter()
        server.names.append(name)
        secret = _made(server, name)
        took.append(1000 * (time.perf_counter() - began))
        if len(fresh) < _LOADED:
            fresh.append(Tenant(name, secret, server.questions))
        notify(Progress("tenants", len(took), len(names)))
    empty = _bytes(server)
    filled = [0.0, 0.0, 0]
    for at, name in enumerate(names):
        growing, embedding, passages = _fill(server, name, step.turns)
        filled = [filled[0] + growing, filled[1] + embedding, filled[2] + passages]
        notify(Progress("filling", at + 1, len(names)))
    turns = step.turns * step.tenants
    full = _bytes(server)
    with closing(Registry(server.settings.server)) as registry:
        registry.run("count_anew")
    server.tenants += fresh[: _LOADED - len(server.tenants)]
    notify(Progress("measuring", len(server.names), len(server.names)))
    alone = load(place, fresh, clients=1, seconds=seconds, kinds=(RECALL,))
    mixed = load(place, server.tenants, clients=clients, seconds=seconds)
    return Stage(
        tenants=len(server.names),
        step=step,
        tenant_ms=round(statistics.median(took[-20:]), 1),
        empty_bytes=round((empty - before) / step.tenants),
        turns_per_second=round(turns / filled[0], 1),
        passages_per_second=round(filled[2] / filled[1], 1),
        bytes_per_turn=round((full - empty) / turns, 1),
        alone=alone,
        mixed=mixed,
    )


def _made(server: _Server, name: str) -> str:
    """Return the secret of a new tenant's key."""
    with closing(server.opened(name)) as home:
        for operation, fields in (
            ("spaces-create", {"space": name, "kind": "person"}),
            ("keys-create", {"days": 1}),
        ):
            found = CATALOGUE[operation]
            made = found.run_in(home, found.make(fields))
    return str(made.secret)


def _fill(server: _Server, name: str, turns: int) -> tuple[float, float, int]:
    """Return the seconds for turns and words, the seconds for vectors, and the number of vectors."""
    with closing(server.opened(name)) as home:
        began = time.perf_counter()
        grow(home, server.material, 0, turns, lambda _: None)
        grown = time.perf_counter()
        passages = scatter(home, server.material, lambda _: None, server.known)
        return grown - began, time.perf_counter() - grown, passages


def _bytes(server: _Server) -> int:
    with closing(Registry(server.settings.server)) as registry:
        ((size,),) = registry.all("weigh_database")
    return int(size)


def _hot(server: _Server, place: tuple[str, int], clients: int, seconds: float) -> HotTenant:
    hot, *cold = server.tenants
    quiet = load(
        place,
        cold,
        clients=COLD_CLIENTS,
        seconds=seconds,
        kinds=(RECALL,),
        pause=COLD_PAUSE_SECONDS,
    )
    with under_load(place, hot, clients=clients, seconds=seconds) as asked:
        beside = load(
            place,
            cold,
            clients=COLD_CLIENTS,
            seconds=seconds,
            kinds=(RECALL,),
            pause=COLD_PAUSE_SECONDS,
        )
    return HotTenant(quiet, beside, asked[0])


def steps_of(texts: Sequence[str]) -> tuple[Step, ...]:
    """Parse ``100x1000``, 100 tenants of 1,000 turns each. Raises InvalidInputError."""
    found = []
    for text in texts:
        tenants, _, turns = text.partition("x")
        if not (tenants.isdecimal() and turns.isdecimal() and int(tenants) and int(turns)):
            raise InvalidInputError(
                f"{text!r} is no step", hint="100x1000 is 100 tenants of 1,000 turns each"
            )
        found.append(Step(int(tenants), int(turns)))
    return tuple(found)
