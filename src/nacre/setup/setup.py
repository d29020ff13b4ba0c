"""First setup: proposing a writer, first reading, and quickstart."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from nacre.base.frozen import frozen
from nacre.base.text import STOP_WORDS, shorten
from nacre.base.times import find_window
from nacre.errors import ModelRefusedError
from nacre.home.change import likely_project
from nacre.home.home import Home, open_home
from nacre.home.spending import DAILY, NONE, is_by_subscription
from nacre.known_settings import known
from nacre.learn import discovery
from nacre.learn import ingest as planning
from nacre.learn.estimate import Estimate
from nacre.learn.extract import is_covered
from nacre.learn.ingest import IngestOptions, ingest, sessions_in
from nacre.learn.reading import subject_of
from nacre.learn.sentences import utterances
from nacre.llm.credentials import (
    API_KEY,
    Provider,
    credential_for,
    is_on_this_machine,
    provider_of,
    providers,
)
from nacre.llm.failures import absence, key_of_billing
from nacre.llm.providers import describe, list_proposed, servers_here
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.readers.registry import get_adapter
from nacre.recall.recall import recall
from nacre.settings import Settings
from nacre.setup import examples
from nacre.setup.examples import is_one
from nacre.setup.models import (
    TOKENS_A_DAY,
    WriterRequest,
    WriterStatus,
    obstacle_to,
    programs,
    status_writer,
)
from nacre.values.memory import Kind, Memory, SessionFilter
from nacre.values.models import Price
from nacre.values.recall import Filter, RecallQuery, RecallResult
from nacre.values.reports import IngestReport, OnProgress
from nacre.values.session import SessionKind, StoredSession

_CLOUD_SUFFIX = "cloud"
"""Name suffix of models that Ollama lists but runs remotely."""


@frozen
class FoundWriter:
    """A possible writer model, as ``provider:model``, and its label.

    ``payer``: source of the billed API key, or empty for a subscription or free model. ``problem``: what might keep the
    model from answering. ``is_refused``: the model cannot be set until the problem is fixed. ``is_here``: the model
    runs on this machine.
    """

    name: str
    label: str
    payer: str = ""
    is_free: bool = False
    problem: str = ""
    is_refused: bool = False
    is_here: bool = False


def found_writers(settings: Settings) -> list[FoundWriter]:
    """Return all possible writers: signed-in commands, local servers and keys. Writers with problems come last."""
    writers = [writer_named(settings, name) for name in dict.fromkeys(_names(settings))]
    return sorted(writers, key=lambda writer: (writer.is_refused, bool(writer.problem)))


def best_writer(writers: list[FoundWriter]) -> FoundWriter | None:
    """Return the first writer that can be set, or ``None``."""
    return next((writer for writer in writers if not writer.is_refused), None)


def writer_named(settings: Settings, name: str) -> FoundWriter:
    """Return the writer for a model's name. Raises ModelRefusedError for an unknown provider."""
    provider, model = provider_of(settings, name.partition(":")[0]), name.partition(":")[2]
    label = f"{provider.label}, {'its default model' if model in ('', 'default') else model}"
    problem, is_here = obstacle_to(settings, name), is_on_this_machine(provider)
    if problem:
        hint = f" ({problem.hint})" if problem.hint else ""
        return FoundWriter(
            name, label, problem=f"{problem.message}{hint}", is_refused=True, is_here=is_here
        )
    target, able = describe(settings, name)
    payer = key_of_billing(settings, provider) or (
        target.credential.origin if target.credential else ""
    )
    return FoundWriter(
        name, label, payer, able.price == Price(), absence(settings, provider), is_here=is_here
    )


def _names(settings: Settings) -> Iterator[str]:
    """Yield a model of each available provider, in order of preference."""
    commands = [item.provider for item in programs(settings) if item.path]
    yield from (f"{name}:{list_proposed(provider_of(settings, name))[0]}" for name in commands)
    with suppress(ModelRefusedError):  # models.providers is invalid
        for name, models in servers_here(settings).items():
            yield from [f"{name}:{item}" for item in models if not item.endswith(_CLOUD_SUFFIX)][:1]
        yield from (
            f"{item.name}:{list_proposed(item)[0]}"
            for item in providers(settings).values()
            if _has_key(settings, item)
        )


def _has_key(settings: Settings, provider: Provider) -> bool:
    if not provider.needs_key or not list_proposed(provider):
        return False
    with suppress(ModelRefusedError):
        credential = credential_for(settings, provider.name)
        return credential is not None and credential.kind == API_KEY
    return False


@frozen
class WriterProposal:
    """A proposed writer with limits and scope, and the alternatives."""

    writer: FoundWriter
    request: WriterRequest
    scope: Scope
    others: tuple[FoundWriter, ...] = ()

    @property
    def bound(self) -> str:
        """Return words about the daily limit for the end of a question, or an empty string."""
        if self.request.tokens_per_day is not None:
            return f", up to {self.request.tokens_per_day:,} tokens a day"
        if self.writer.is_free:
            return ""
        return f", for at most US$ {self.request.dollars_per_day:,.2f} a day"

    @property
    def command(self) -> str:
        """Return the command that sets this writer."""
        words = ["nacre writer set", self.writer.name]
        if self.request.tokens_per_day is not None:
            words.append(f"--tokens-per-day {self.request.tokens_per_day}")
        elif not self.writer.is_free:
            words.append(f"--dollars-per-day {self.request.dollars_per_day:g}")
        return " ".join(words)

    @property
    def terms(self) -> str:
        """Return a clause that states the writer's daily limit and which key is billed."""
        if self.request.tokens_per_day is not None:
            most = f"{self.request.tokens_per_day:,} tokens a day"
            return f"stops at {most} (the last answer may exceed this slightly)"
        if self.writer.is_free:
            return "costs nothing"
        billing = f", billed to the key in {self.writer.payer}" if self.writer.payer else ""
        return (
            f"never costs more than US$ {self.request.dollars_per_day:,.2f} a day{billing} for all background models "
            "together"
        )


def proposal_of(
    settings: Settings, writer: FoundWriter, scope: Scope, others: list[FoundWriter] | None = None
) -> WriterProposal:
    """Return a proposal to use a writer, with limits."""
    able = tuple(other for other in others or () if other != writer and not other.is_refused)
    return WriterProposal(writer, _bounded(settings, writer), scope, able)


def propose(home: Home, scope: Scope | None = None) -> WriterProposal | None:
    """Propose a writer. Return ``None`` if there is no writer."""
    found = found_writers(home.settings)
    best = best_writer(found)
    if best is None:
        return None
    return proposal_of(home.settings, best, scope or scope_of(home, best.name), found)


def _bounded(settings: Settings, writer: FoundWriter) -> WriterRequest:
    if is_by_subscription(settings, writer.name):
        return WriterRequest(writer=writer.name, tokens_per_day=TOKENS_A_DAY)
    dollars = settings.number(DAILY) or float(known(DAILY).default)
    return WriterRequest(writer=writer.name, dollars_per_day=dollars)


# -- The sessions that a writer reads ---------------------------------------------------------------


_SAMPLE_SESSIONS = 60


@frozen
class Scope:
    """Tools and projects in a sample of the newest sessions that a writer would read."""

    tools: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


def scope_of(home: Home, writer: str) -> Scope:
    """Return which indexed sessions a writer would read."""
    stored = home.sessions.newest(SessionFilter(kind=SessionKind.MAIN), limit=_SAMPLE_SESSIONS)
    return _scope(home, writer, (session for session in stored if not is_one(home, session)))


def _scope(home: Home, writer: str, sessions: Iterable[StoredSession]) -> Scope:
    covered = [session for session in sessions if is_covered(home.settings, session, writer)]
    tools = dict.fromkeys(session.session.tool for session in covered)
    projects = dict.fromkeys(session.project for session in covered if session.project)
    return Scope(tuple(tools), tuple(projects))


def _unread_scope(home: Home, paths: Sequence[Path]) -> Scope:
    """Return the tools and projects in a sample of unread transcripts that the proposed writer would read."""
    found = sessions_in(home, paths[:_SAMPLE_SESSIONS])
    stored = (
        StoredSession(0, session, likely_project(home, session), None, None, len(turns))
        for session, turns in found
        if session.kind is SessionKind.MAIN
    )
    best = best_writer(found_writers(home.settings))
    return _scope(home, best.name if best else "", stored)


# -- The first reading: available transcripts and the cost -----------------------------------------


RECENT = timedelta(days=7)
"""Maximum age of transcripts if only recent transcripts are read."""


@frozen
class FirstReading:
    """Transcripts that nacre has not read yet.

    ``files``: number of transcripts. ``bytes``: their total size. ``recent``: transcripts changed
    in the last seven days. ``estimate``: cost of reading all transcripts with a language model, or
    ``None`` if no model is used. ``scope``: tools and projects that a writer would see.
    """

    files: int
    bytes: int
    recent: tuple[Path, ...]
    estimate: Estimate | None
    scope: Scope = Scope()

    @property
    def has_older(self) -> bool:
        """Return True if some but not all transcripts are recent."""
        return 0 < len(self.recent) < self.files


def look(home: Home) -> FirstReading:
    """Look for unread transcripts without storing anything."""
    options = IngestOptions()
    plan = planning.plan(home, options)
    since = (home.clock() - RECENT).timestamp() * 1e9
    files = discovery.find(home, (), with_discovery=True).files
    newest = sorted(files, key=lambda item: -item.mtime_ns)
    recent = [file.path for file in newest if file.mtime_ns >= since]
    has_model = home.settings.text("models.default") != NONE and plan.files > 0
    return FirstReading(
        plan.files,
        plan.bytes,
        tuple(recent),
        planning.estimate(home, options) if has_model else None,
        _unread_scope(home, [file.path for file in newest]),
    )


@contextmanager
def home_to_look(settings: Settings) -> Iterator[Home]:
    """Open the home, or open a temporary home if the home does not exist yet."""
    with ExitStack() as stack:
        if not (settings.server or settings.database.is_file()):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="nacre-")))
            settings = replace(settings, home=folder, database=folder / settings.database.name)
        yield stack.enter_context(closing(open_home(settings)))


# -- Sample questions about memories and frequent subjects -----------------------------------------


_QUESTIONS = {
    Kind.DECISION: ("What did we decide about {}?", "关于{}，我们决定了什么？"),
    Kind.PREFERENCE: ("What is my rule about {}?", "关于{}，我有什么要求？"),
    Kind.LESSON: ("What did we learn about {}?", "关于{}，我们学到了什么？"),
    Kind.TODO: ("What is left to do about {}?", "关于{}，还要做什么？"),
    Kind.EVENT: ("What happened with {}?", "关于{}，发生了什么？"),
}
_ANY_KIND = ("What do we know about {}?", "关于{}，我们知道什么？")
_SESSION_QUESTION = "What did we say about the {}?"

_HAN = re.compile(r"[\u4e00-\u9fff]")
_MAX_HAN_CHARACTERS = 12
_PHRASE = re.compile(r"[\w./-]{2,}(?: [\w./'-]+){0,4}")
_CAPITALISED = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z]\w*[a-z]\w*|\w+[a-z][A-Z]\w*)(?: [A-Z]\w+)?")
"""Matches a word within a sentence that looks like a name."""

_NOUNS = re.compile(r"\b(?:the|our|my) ([A-Za-z][\w-]+\w [A-Za-z][\w-]+\w)(?=[\s,.;:!?)]|$)")
"""Matches two words after "the", "our" or "my", which usually name a thing."""

_VAGUE = frozenset(
    """active actual best better current different existing first following full good last latest main new
    next old other right same second separate whole""".split()
)
_PREPOSITIONS = frozenset(
    """across against along among around behind beneath beside beyond despite except inside near onto outside past per
    since throughout toward upon versus via vs within without""".split()
)
"""Prepositions that are not stop words. A phrase ends before them."""
_SESSIONS = 200
_MIN_SESSIONS = 2
"""Minimum number of sessions in which the user mentions a thing before a question about it is asked."""


def about(memory: Memory) -> str | None:
    """Return a question that a memory answers, or ``None`` if no natural question can be built."""
    spaced, unspaced = _QUESTIONS.get(memory.kind, _ANY_KIND)
    subject = memory.subject
    if _HAN.search(subject):
        return (
            unspaced.format(subject)
            if len(subject) <= _MAX_HAN_CHARACTERS and not subject.endswith("…")
            else None
        )
    if subject != subject_of(memory.content) and _PHRASE.fullmatch(subject):
        return spaced.format(_in_sentence_case(memory))
    name = next(
        (
            proper_name
            for proper_name in _NAME.findall(memory.content)
            if not _is_date(proper_name, memory.created)
        ),
        None,
    )
    if name:
        return spaced.format(name)
    things = list(_things(memory.content))
    return spaced.format(f"the {things[0]}") if things else None


def about_sessions(home: Home) -> list[tuple[str, str]]:
    """Return (question, subject) pairs for subjects that the user mentioned in many sessions."""
    spoken: defaultdict[str, set[int]] = defaultdict(set)
    for stored in home.sessions.newest(limit=_SESSIONS):
        if is_one(home, stored):
            continue
        texts = (
            part.text
            for spoken_by in utterances(home.sessions.whole(stored.row))
            for part in spoken_by.statements
        )
        for thing in {thing for text in texts for thing in _things(text)}:
            spoken[thing].add(stored.row)
    often = sorted(
        (-len(sessions), thing)
        for thing, sessions in spoken.items()
        if len(sessions) >= _MIN_SESSIONS
    )
    return [(_SESSION_QUESTION.format(thing), thing) for _, thing in often]


def says(texts: Iterable[str], thing: str) -> bool:
    """Return True if any of the texts contains ``thing``."""
    return any(thing in text.lower() for text in texts)


def _things(text: str) -> Iterator[str]:
    for match in _NOUNS.finditer(text):
        thing = match.group(1).lower()
        if not (STOP_WORDS | _VAGUE | _PREPOSITIONS).intersection(thing.split()):
            yield thing


def _is_date(name: str, now: datetime) -> bool:
    return any(find_window(f"{at} {name}", now) for at in ("in", "on"))


def _in_sentence_case(memory: Memory) -> str:
    """Return the subject with a lower-case first letter, unless the memory uses the first word as a name."""
    first = memory.subject.split(" ", 1)[0]
    is_name = re.search(rf"[^\s.!?:]\s+{re.escape(first)}(?!\w)", memory.content)
    if is_name or not _CAPITALISED.fullmatch(first):
        return memory.subject
    return memory.subject[0].lower() + memory.subject[1:]


# -- Totals of a home ------------------------------------------------------------------------------


_SHOWN_CHARACTERS = 90
"""Maximum number of characters to show of each candidate."""


@frozen
class Reach:
    """Counts of what a home contains.

    ``likeliest``: the most promising candidates. ``found``: the best available writer, if no writer
    is set.
    """

    memories: int
    replaced: int
    candidates: int
    likeliest: tuple[str, ...]
    sessions: int
    turns: int
    writer: WriterStatus
    found: FoundWriter | None = None


def reach(home: Home) -> Reach:
    """Return the totals of a home."""
    counts, sessions, writer = home.memories.counts(), home.sessions.counts(), status_writer(home)
    best = best_writer(found_writers(home.settings)) if writer.state == "off" else None
    return Reach(
        sum(counts.values()) - counts["superseded"] - counts["retired"],
        counts["superseded"],
        home.candidates.count(),
        tuple(
            shorten(" ".join(candidate.memory.content.split()), _SHOWN_CHARACTERS)
            for candidate in home.candidates.waiting()[: home.reviews.waiting(home.now_ms())[0]]
        ),
        sum(int(row[1]) for row in sessions),
        sum(int(row[2] or 0) for row in sessions),
        writer,
        best,
    )


# -- Quickstart ------------------------------------------------------------------------------------
# Reads the transcripts on this machine, shows what was learned, and answers a few questions.


SECONDS_FOR_VECTORS = 20.0
"""Time limit in seconds for computing vectors before the first answers. The caller computes the
rest."""

MAX_BEST = 12
MAX_ANSWERS = 3

_HITS = 3
_TURNS = 2
_POOL_PER_KIND = 24
"""Number of memories of each kind to choose from. Some can come from examples."""

_KIND_DISCOUNT = 0.5
"""Importance that a memory loses for each chosen memory of the same kind, to mix kinds."""

_EXAMPLE_QUESTIONS = (
    "Why did hivelog move away from SQLite?",
    "Which search does choirbook use, and why?",
    "中文歌词用什么字体？",
)
Origin = Literal["discovered", "examples"]


@frozen
class SampleAnswer:
    """A sample question, and its answer from the new memories."""

    question: str
    result: RecallResult


@frozen
class QuickstartResult:
    """The result of a quickstart.

    ``source``: whether transcripts were found on this machine or examples were used. ``tools``: number of transcripts
    for each tool label. ``best``: memories to show, best first. ``answers``: answers with evidence. ``changed``: the
    file that the most sessions changed, and the number of these sessions. ``has_examples``: True if example sessions
    are in the home, perhaps from an earlier run.
    """

    source: Origin
    report: IngestReport
    tools: dict[str, int]
    best: tuple[Memory, ...]
    answers: tuple[SampleAnswer, ...]
    reach: Reach
    changed: tuple[str, int] | None = None
    has_examples: bool = False


@operation("quickstart", writes=True, takes_long=True)
def run_quickstart(
    home: Home,
    on_progress: OnProgress | None = None,
    *,
    seconds_for_vectors: float = SECONDS_FOR_VECTORS,
) -> QuickstartResult:
    """Read the transcripts on this machine. If there are none, read the example sessions.

    A second run adds no duplicates.
    """
    source: Origin = "discovered"
    files = [file.path for file in discovery.find(home, (), with_discovery=True).files]
    report = ingest(home, IngestOptions(discover=True, vectors=False), on_progress)
    if not _have_sessions(home, files):
        source = "examples"
        files = examples.lay_out(home)
        earlier, report = (
            report,
            ingest(home, IngestOptions(paths=tuple(files), vectors=False), on_progress),
        )
        problems = (*earlier.problems, *report.problems)
        report = replace(report, problems=problems, unread=earlier.unread)
    embedded = embed_pending(home, on_progress or (lambda _: None), seconds=seconds_for_vectors)
    report = replace(
        report, vectors_made=embedded.made, vectors_left=embedded.left, vectors_note=embedded.note
    )
    best = _best_memories(home, own=source == "discovered")
    answers = _examples_answered(home) if source == "examples" else _best_answered(home, best)
    return QuickstartResult(
        source,
        report,
        _tools(home, files),
        best,
        tuple(islice(answers, MAX_ANSWERS)),
        reach(home),
        _changed(home),
        bool(examples.present(home)),
    )


def _changed(home: Home) -> tuple[str, int] | None:
    most_changed = home.deeds.most_changed()
    return (
        (re.split(r"[\\/]", most_changed[0])[-1], most_changed[1])
        if most_changed and most_changed[1] > 1
        else None
    )


def _best_memories(home: Home, *, own: bool) -> tuple[Memory, ...]:
    """Return up to twelve important memories of different kinds.

    Of equally important memories, newer ones come first. ``own``: True to leave out memories from examples.
    """
    rows = [
        row
        for kind in Kind
        for row in home.selection.browse_memories(
            Filter(kinds=(kind,)), limit=_POOL_PER_KIND, today=home.today()
        )
    ]
    every = home.memories.by_rows(rows).values()
    memories = [
        memory for memory in every if not (own and examples.is_from_one(home, memory.source.file))
    ]
    waiting = sorted(memories, key=lambda memory: (memory.created, memory.id), reverse=True)
    chosen: list[Memory] = []
    kinds: Counter[Kind] = Counter()
    while waiting and len(chosen) < MAX_BEST:
        best = max(
            waiting, key=lambda memory: memory.importance - _KIND_DISCOUNT * kinds[memory.kind]
        )
        waiting.remove(best)
        chosen.append(best)
        kinds[best.kind] += 1
    return tuple(chosen)


def _have_sessions(home: Home, files: Iterable[Path]) -> bool:
    paths = {str(path) for path in files}
    return any(session.file in paths for session in home.sessions.newest(limit=_SAMPLE_SESSIONS))


def _tools(home: Home, files: Iterable[Path]) -> dict[str, int]:
    paths = {str(path) for path in files}
    counts = Counter(file.tool for file in home.sessions.seen_files() if file.path in paths)
    return {get_adapter(tool).label: count for tool, count in counts.most_common()}


def _examples_answered(home: Home) -> Iterator[SampleAnswer]:
    for question in _EXAMPLE_QUESTIONS:
        result = _ask(home, question)
        if result.hits:
            yield SampleAnswer(question, result)


def _best_answered(home: Home, best: Sequence[Memory]) -> Iterator[SampleAnswer]:
    """Yield answered questions, first about the best memories and then about frequent subjects."""
    questions: set[str] = set()
    for memory in _by_turns(best):
        question = about(memory)
        if question is None or question in questions:
            continue
        questions.add(question)
        result = _ask(home, question)
        if any(hit.memory.id == memory.id and hit.evidence for hit in result.hits):
            yield SampleAnswer(question, result)
    for question, thing in about_sessions(home):
        result = _ask(home, question)
        texts = (hit.turn.text for hit in result.turns[:1]) if not result.hits else ()
        if says(texts, thing):
            yield SampleAnswer(question, result)


def _by_turns(best: Sequence[Memory]) -> list[Memory]:
    """Sort memories so that their kinds alternate. The best memory of each kind comes first."""
    counts: Counter[Kind] = Counter()
    ranked = []
    for at, memory in enumerate(best):
        ranked.append((counts[memory.kind], at, memory))
        counts[memory.kind] += 1
    return [memory for *_, memory in sorted(ranked, key=lambda item: item[:2])]


def _ask(home: Home, question: str) -> RecallResult:
    return recall(
        home, RecallQuery(question, limit=_HITS, turns=_TURNS, confident=True, update=False)
    )
