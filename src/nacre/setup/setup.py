"""Who could write on this machine: agents' commands, servers on it, and providers whose key is found."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from nacre.base.text import STOP_WORDS, count, count_tokens, shorten
from nacre.base.times import day_of, find_window, shown_day
from nacre.errors import ModelRefused
from nacre.home.change import likely_project
from nacre.home.home import Home, open_home
from nacre.home.spending import CALLS, DAILY, NONE, is_by_subscription
from nacre.known_settings import known
from nacre.learn import discovery, prompts
from nacre.learn import ingest as planning
from nacre.learn.estimate import Estimate, capabilities_of, of_session
from nacre.learn.extract import is_covered, is_worth_asking
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
from nacre.llm.providers import describe, proposed, servers_here
from nacre.memories.vectors import embed_pending
from nacre.readers.registry import get_adapter
from nacre.recall.recall import recall
from nacre.settings import Settings
from nacre.setup import examples
from nacre.setup import models as credentials
from nacre.setup.examples import is_one
from nacre.setup.models import (
    TOKENS_A_DAY,
    Offer,
    ProviderRequest,
    SetKeyRequest,
    Trial,
    TryModelRequest,
    WriterRequest,
    WriterStatus,
    obstacle_to,
    programs,
    status_writer,
)
from nacre.values.memory import Kind, Memory, SessionFilter
from nacre.values.models import Capabilities, Price
from nacre.values.recall import Filter, RecallQuery, RecallResult
from nacre.values.reports import IngestReport, OnProgress
from nacre.values.session import Session, SessionKind, StoredSession, Turn

_ELSEWHERE = "cloud"
"""How names of models end that Ollama lists, and that answer elsewhere."""


@dataclass(frozen=True, slots=True)
class FoundWriter:
    """A model that could write, as ``provider:model``, and what it is called.

    ``payer`` is where the key is that pays its calls; empty where a subscription does, or nothing is to pay.
    ``problem`` says what may keep it from answering; ``is_refused``: it cannot be set before that is mended.
    ``is_here``: it answers on this machine itself.
    """

    name: str
    label: str
    payer: str = ""
    is_free: bool = False
    problem: str = ""
    is_refused: bool = False
    is_here: bool = False


def found_writers(settings: Settings) -> list[FoundWriter]:
    """All that could write: commands to which somebody is signed in, servers on this machine, keys; then what has a
    problem.
    """
    found = [writer_named(settings, name) for name in dict.fromkeys(_names(settings))]
    return sorted(found, key=lambda one: (one.is_refused, bool(one.problem)))


def best_writer(found: list[FoundWriter]) -> FoundWriter | None:
    """The one to propose: the first that can be set."""
    return next((one for one in found if not one.is_refused), None)


def writer_named(settings: Settings, name: str) -> FoundWriter:
    """What is known of a model by its name. Raises ModelRefused for a provider that is unknown."""
    provider, model = provider_of(settings, name.partition(":")[0]), name.partition(":")[2]
    label = f"{provider.label}, {'its default model' if model in ('', 'default') else model}"
    problem, is_here = obstacle_to(settings, name), is_on_this_machine(provider)
    if problem:
        hint = f" ({problem.hint})" if problem.hint else ""
        return FoundWriter(
            name, label, problem=f"{problem.message}{hint}", is_refused=True, is_here=is_here
        )
    asked, able = describe(settings, name)
    payer = key_of_billing(settings, provider) or (
        asked.credential.origin if asked.credential else ""
    )
    return FoundWriter(
        name, label, payer, able.price == Price(), absence(settings, provider), is_here=is_here
    )


def _names(settings: Settings) -> Iterator[str]:
    """A model of each that is here, in the order in which they are proposed."""
    commands = [one.provider for one in programs(settings) if one.path]
    yield from (f"{name}:{proposed(provider_of(settings, name))[0]}" for name in commands)
    with suppress(ModelRefused):  # models.providers is written wrongly
        for name, models in servers_here(settings).items():
            yield from [f"{name}:{one}" for one in models if not one.endswith(_ELSEWHERE)][:1]
        yield from (
            f"{one.name}:{proposed(one)[0]}"
            for one in providers(settings).values()
            if _has_key(settings, one)
        )


def _has_key(settings: Settings, provider: Provider) -> bool:
    """Whether an API key is found of a provider of which nacre knows a model to propose."""
    if not provider.needs_key or not proposed(provider):
        return False
    with suppress(ModelRefused):
        found = credential_for(settings, provider.name)
        return found is not None and found.kind == API_KEY
    return False


@dataclass(frozen=True, slots=True)
class WriterProposal:
    """Who is proposed to write, within which bounds, with what it would take; and who else could.

    ``calls`` a day are the most of one that a subscription pays; 0: no bound.
    """

    writer: FoundWriter
    request: WriterRequest
    foreseen: Foreseen
    others: tuple[FoundWriter, ...] = ()
    calls: int = 0

    @property
    def bound(self) -> str:
        """What it may take, as it ends a question; empty where nothing is to be paid."""
        if self.request.tokens_per_day is not None:
            return f", up to {self.request.tokens_per_day:,} tokens a day"
        if self.writer.is_free:
            return ""
        return f", for at most US$ {self.request.dollars_per_day:,.2f} a day"

    @property
    def command(self) -> str:
        """The command that sets it so."""
        words = ["nacre writer set", self.writer.name]
        if self.request.tokens_per_day is not None:
            words.append(f"--tokens-per-day {self.request.tokens_per_day}")
        elif not self.writer.is_free:
            words.append(f"--dollars-per-day {self.request.dollars_per_day:g}")
        return " ".join(words)

    @property
    def terms(self) -> str:
        """The same as a clause, with who pays."""
        if self.request.tokens_per_day is not None:
            calls = f" or {count(self.calls, 'call')}" if self.calls else ""
            most = f"{self.request.tokens_per_day:,} tokens{calls} a day"
            return f"stops at {most} (its last answer may go a little beyond)"
        if self.writer.is_free:
            return "costs nothing"
        whose = f", billed to the key in {self.writer.payer}" if self.writer.payer else ""
        return (
            f"never costs more than US$ {self.request.dollars_per_day:,.2f} a day{whose}, with all that models do in "
            "the background"
        )


def proposal_of(
    settings: Settings,
    writer: FoundWriter,
    foreseen: Foreseen,
    others: list[FoundWriter] | None = None,
) -> WriterProposal:
    """A writer within bounds that are proposed for it."""
    able = tuple(one for one in others or () if one != writer and not one.is_refused)
    return WriterProposal(
        writer, _bounded(settings, writer, foreseen), foreseen, able, settings.whole(CALLS)
    )


def proposal_as_named(
    settings: Settings, request: WriterRequest, foreseen: Foreseen
) -> WriterProposal:
    """A writer that the owner named, within the bounds that hold for it."""
    if not is_by_subscription(settings, request.writer):
        request = WriterRequest(writer=request.writer, dollars_per_day=settings.number(DAILY))
    return WriterProposal(
        writer_named(settings, request.writer), request, foreseen, calls=settings.whole(CALLS)
    )


def _bounded(settings: Settings, writer: FoundWriter, foreseen: Foreseen) -> WriterRequest:
    if is_by_subscription(settings, writer.name):
        return WriterRequest(writer=writer.name, tokens_per_day=foreseen.most)
    dollars = settings.number(DAILY) or float(known(DAILY).default)
    return WriterRequest(writer=writer.name, dollars_per_day=dollars)


# ----------------------------------------------------------------------------
# What a writer would take, foreseen from the sessions of the owner's own last week.


_WEEK = timedelta(days=7)
_SAMPLE = 60
_LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a writer would take: sessions a day, and tokens a day, by the owner's own last week.

    ``until`` is the end of the week that tells it, where the last seven days had no session. ``tools`` and ``projects``
    are those of that week's sessions.
    """

    sessions: float
    tokens: int
    until: datetime | None = None
    tools: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    @property
    def most(self) -> int:
        """Tokens a day that are proposed as a bound."""
        return max(TOKENS_A_DAY, int(round(self.tokens * 1.5, -4)))

    @property
    def in_words(self) -> str:
        """As a clause: how much that is, and by which week; empty where no session tells."""
        if not self.tokens:
            return ""
        week = f"the week to {shown_day(self.until)}" if self.until else "your last week"
        days, span = (1, "day") if self.sessions >= 1 else (_WEEK.days, "week")
        often = (
            f"{self.sessions * days:.0f} sessions" if self.sessions * days >= 1.5 else "one session"
        )
        return f"about {often} and {round(self.tokens * days, -2):,} tokens a {span}, by {week}"


def foreseen(home: Home, writer: str = "") -> Foreseen:
    """What a writer, by its name or the one that would be proposed, would take a day, going by the sessions of the last
    seven days that it would be shown.

    Where these had none, by the seven days to the end of the last session.
    """
    writer = writer or _best(home)
    until, sessions = None, _week(home, writer, home.now())
    if not sessions and (last := _own(home, SessionFilter(kind=SessionKind.MAIN), most=_LOOKED_AT)):
        until = last[0].ended
        sessions = _week(home, writer, until) if until else []
    able = _able(home, writer)
    taken = [
        _taken(home.settings, one.session, home.sessions.whole(one.row), able)
        for one in sessions[:_SAMPLE]
    ]
    return _foreseen(sessions, taken, len(sessions), until)


def _own(home: Home, wanted: SessionFilter, most: int) -> list[StoredSession]:
    """The owner's own sessions, the newest first."""
    return [one for one in home.sessions.newest(wanted, limit=most) if not is_one(home, one)]


def foreseen_of(home: Home, paths: Sequence[Path], writer: str = "") -> Foreseen:
    """The same by transcripts that are not read yet, the newest first: a sample of them is parsed."""
    writer = writer or _best(home)
    found, able = [], _able(home, writer)
    for session, turns in sessions_in(home, paths[:_SAMPLE]):
        ended = max((turn.time for turn in turns if turn.time), default=session.started)
        stored = StoredSession(0, session, likely_project(home, session), ended, None, len(turns))
        if ended and session.kind is SessionKind.MAIN and is_covered(home.settings, stored, writer):
            found.append((ended, stored, _taken(home.settings, session, turns, able)))
    last = max((ended for ended, _, _ in found), default=home.now())
    until = last if home.now() - last > _WEEK else None
    week = [
        (stored, tokens) for ended, stored, tokens in found if ended > (until or home.now()) - _WEEK
    ]
    is_more = len(week) == len(found)  # the sample is too small to hold all of the week
    number = len(week) * (len(paths) / max(1, min(len(paths), _SAMPLE)) if is_more else 1)
    return _foreseen([stored for stored, _ in week], [tokens for _, tokens in week], number, until)


def _foreseen(
    sessions: Sequence[StoredSession], tokens: Sequence[int], number: float, until: datetime | None
) -> Foreseen:
    """By some sessions of a week, the tokens that a sample of them takes, and how many the week had."""
    shown = [one for one in tokens if one]
    a_day = number / _WEEK.days * len(shown) / max(1, len(tokens))
    days = len({day_of(one.ended) for one in sessions if one.ended}) / _WEEK.days
    tools = dict.fromkeys(one.session.tool for one in sessions)
    projects = dict.fromkeys(one.project for one in sessions if one.project)
    taken = sum(shown) / max(1, len(shown)) * a_day + (prompts.TOKENS_A_DAY * days if shown else 0)
    return Foreseen(a_day, int(taken), until, tuple(tools), tuple(projects))


def _week(home: Home, writer: str, until: datetime) -> list[StoredSession]:
    """The sessions of the seven days before a time that may be shown to a writer, the newest first."""
    wanted = SessionFilter(since=until - _WEEK, kind=SessionKind.MAIN)
    return [one for one in _own(home, wanted, most=1000) if is_covered(home.settings, one, writer)]


def _best(home: Home) -> str:
    """The writer that would be proposed; empty where there is none."""
    best = best_writer(found_writers(home.settings))
    return best.name if best else ""


def _able(home: Home, writer: str) -> Capabilities:
    """What a writer can do."""
    return capabilities_of(home, writer) if writer else Capabilities()


def _taken(settings: Settings, session: Session, turns: Sequence[Turn], able: Capabilities) -> int:
    """Tokens that a writer takes for a session; 0 where it is not asked."""
    if not is_worth_asking(session, turns, settings):
        return 0
    return of_session(sum(count_tokens(turn.text) for turn in turns), able)


# ----------------------------------------------------------------------------
# What is answered to requests about settings, models and keys; :mod:`nacre.serve.catalogue` lists them.


def list_models(home: Home) -> list[Offer]:
    """The language models that are set."""
    return list(credentials.offers(home))


def test_model(home: Home, request: TryModelRequest) -> Trial:
    """Ask a model one short question. Raises InvalidInput, ModelUnavailable, ModelRefused."""
    return credentials.try_model(home, request.name)


def set_key(settings: Settings, request: SetKeyRequest) -> str:
    """Keep another key of a provider; returns where. Raises CredentialsUnusable, ModelRefused."""
    return credentials.replace_key(settings, request.provider, request.secret)


def remove_key(settings: Settings, request: ProviderRequest) -> list[str]:
    """Remove a provider's key; returns the places. Raises NotFound."""
    return credentials.remove(settings, request.provider)


def writer_status(home: Home) -> WriterStatus:
    """Who writes, and how it fares."""
    return credentials.status_writer(home)


def writer_foreseen(home: Home) -> Foreseen:
    """What a writer would take a day, going by the last week."""
    return foreseen(home)


def set_writer(home: Home, request: WriterRequest) -> WriterStatus:
    """Let a model write. Raises ModelRefused, InvalidInput, Unavailable."""
    return credentials.set_writer(home, request)


def pause_writer(home: Home) -> WriterStatus:
    """Show the writer no session for now. Raises Unavailable."""
    return credentials.pause(home)


def resume_writer(home: Home) -> WriterStatus:
    """Show it sessions again. Raises Unavailable."""
    return credentials.resume(home)


def end_writer(home: Home) -> WriterStatus:
    """Have no writer any more. Raises Unavailable."""
    return credentials.end(home)


# ----------------------------------------------------------------------------
# What there is to read on a machine where nacre is new, and what reading it takes.


RECENT = timedelta(days=7)
"""What of it is offered to be read alone."""


@dataclass(frozen=True, slots=True)
class FirstReading:
    """Transcripts that wait: ``files`` of them with so many ``bytes``; ``recent`` changed in the last seven days.

    ``estimate`` is what a language model would cost; ``None`` where none is set. ``foreseen`` is what a writer would
    take a day, by the last week of them.
    """

    files: int
    bytes: int
    recent: tuple[Path, ...]
    estimate: Estimate | None
    foreseen: Foreseen = Foreseen(0.0, 0)

    @property
    def has_older(self) -> bool:
        """Whether reading what is recent alone is less than all, and anything."""
        return 0 < len(self.recent) < self.files


def look(home: Home, writer: str = "") -> FirstReading:
    """What can be read, and what a writer would take, by its name or the one that would be proposed; stores nothing."""
    options = IngestOptions()
    plan = planning.plan(home, options)
    since = (home.clock() - RECENT).timestamp() * 1e9
    found = discovery.find(home, (), with_discovery=True).files
    newest = sorted(found, key=lambda one: -one.mtime_ns)
    recent = [file.path for file in newest if file.mtime_ns >= since]
    has_model = home.settings.text("models.default") != NONE and plan.files > 0
    return FirstReading(
        plan.files,
        plan.bytes,
        tuple(recent),
        planning.estimate(home, options) if has_model else None,
        foreseen_of(home, [file.path for file in newest], writer),
    )


@contextmanager
def home_to_look(settings: Settings) -> Iterator[Home]:
    """The home; where there is none yet, one in a temporary folder: who only looks has nothing made."""
    with ExitStack() as stack:
        if not (settings.server or settings.database.is_file()):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="nacre-")))
            settings = replace(settings, home=folder, database=folder / settings.database.name)
        yield stack.enter_context(closing(open_home(settings)))


# ----------------------------------------------------------------------------
# Questions that a person would ask about what is there: after a memory, or after what came up again
# and again.


_QUESTIONS = {
    Kind.DECISION: ("What did we decide about {}?", "关于{}，我们决定了什么？"),
    Kind.PREFERENCE: ("What is my rule about {}?", "关于{}，我有什么要求？"),
    Kind.LESSON: ("What did we learn about {}?", "关于{}，我们学到了什么？"),
    Kind.TODO: ("What is left to do about {}?", "关于{}，还要做什么？"),
    Kind.EVENT: ("What happened with {}?", "关于{}，发生了什么？"),
}
_ANY_KIND = ("What do we know about {}?", "关于{}，我们知道什么？")
_SAID = "What did we say about the {}?"

_HAN = re.compile(r"[\u4e00-\u9fff]")
_MOST_HAN = 12
_PHRASE = re.compile(r"[\w./-]{2,}(?: [\w./'-]+){0,4}")
_CAPITALISED = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z]\w*[a-z]\w*|\w+[a-z][A-Z]\w*)(?: [A-Z]\w+)?")
"""A word that is written like a name within a sentence."""

_NOUNS = re.compile(r"\b(?:the|our|my) ([A-Za-z][\w-]+\w [A-Za-z][\w-]+\w)(?=[\s,.;:!?)]|$)")
"""Two words after an article, which are a thing more often than not."""

_VAGUE = frozenset(
    """active actual best better current different existing first following full good last latest main new
    next old other right same second separate whole""".split()
)
_PREPOSITIONS = frozenset(
    """across against along among around behind beneath beside beyond despite except inside near onto outside past per
    since throughout toward upon versus via vs within without""".split()
)
"""Those that are no stop words: what an article and a word stand before ends there."""
_SESSIONS = 200
_ENOUGH = 2
"""Sessions in which the owner speaks of a thing, before a question asks for it."""


def about(memory: Memory) -> str | None:
    """A question in plain words that a memory answers; ``None`` where its words give none that a person would ask."""
    spaced, unspaced = _QUESTIONS.get(memory.kind, _ANY_KIND)
    subject = memory.subject
    if _HAN.search(subject):
        return (
            unspaced.format(subject)
            if len(subject) <= _MOST_HAN and not subject.endswith("…")
            else None
        )
    if subject != subject_of(memory.content) and _PHRASE.fullmatch(subject):
        return spaced.format(_within_a_sentence(memory))
    name = next(
        (one for one in _NAME.findall(memory.content) if not _is_time(one, memory.created)), None
    )
    if name:
        return spaced.format(name)
    things = list(_things(memory.content))
    return spaced.format(f"the {things[0]}") if things else None


def about_sessions(home: Home) -> list[tuple[str, str]]:
    """Questions after what the owner spoke of in several sessions, the most first, each with the words it is about."""
    spoken: defaultdict[str, set[int]] = defaultdict(set)
    for one in home.sessions.newest(limit=_SESSIONS):
        if is_one(home, one):
            continue
        said = (
            part.text
            for spoken_by in utterances(home.sessions.whole(one.row))
            for part in spoken_by.statements
        )
        for thing in {thing for text in said for thing in _things(text)}:
            spoken[thing].add(one.row)
    often = sorted(
        (-len(sessions), thing) for thing, sessions in spoken.items() if len(sessions) >= _ENOUGH
    )
    return [(_SAID.format(thing), thing) for _, thing in often]


def says(texts: Iterable[str], thing: str) -> bool:
    """Whether any of the texts speaks of a thing."""
    return any(thing in text.lower() for text in texts)


def _things(text: str) -> Iterator[str]:
    for match in _NOUNS.finditer(text):
        thing = match.group(1).lower()
        if not (STOP_WORDS | _VAGUE | _PREPOSITIONS).intersection(thing.split()):
            yield thing


def _is_time(name: str, now: datetime) -> bool:
    """Whether a name is that of a month or a day, about which nobody asks."""
    return any(find_window(f"{at} {name}", now) for at in ("in", "on"))


def _within_a_sentence(memory: Memory) -> str:
    """The subject without the capital of its first word, unless the memory uses that word as a name."""
    first = memory.subject.split(" ", 1)[0]
    is_name = re.search(rf"[^\s.!?:]\s+{re.escape(first)}(?!\w)", memory.content)
    if is_name or not _CAPITALISED.fullmatch(first):
        return memory.subject
    return memory.subject[0].lower() + memory.subject[1:]


# ----------------------------------------------------------------------------
# What is in reach of a home, in numbers: what is remembered, what waits, and what a writer would
# take.


_LIKELIEST = 2
_SHOWN = 90
"""Of so many candidates so many characters are told."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Memories that hold, how many a later one ``replaced``, candidates that wait for the owner with the ``likeliest``
    of them, and what can be searched.

    Where nobody writes, ``found`` is the best one on this machine that could, and ``foreseen`` what it would take.
    """

    memories: int
    replaced: int
    candidates: int
    likeliest: tuple[str, ...]
    sessions: int
    turns: int
    writer: WriterStatus
    found: FoundWriter | None = None
    foreseen: Foreseen | None = None


def reach(home: Home) -> Reach:
    """What is in reach of a home."""
    counts, sessions, writer = home.memories.counts(), home.sessions.counts(), status_writer(home)
    found = best_writer(found_writers(home.settings)) if writer.state == "off" else None
    return Reach(
        sum(counts.values()) - counts["superseded"] - counts["retired"],
        counts["superseded"],
        home.candidates.count(),
        tuple(
            shorten(" ".join(one.memory.content.split()), _SHOWN)
            for one in home.candidates.waiting()[:_LIKELIEST]
        ),
        sum(int(row[1]) for row in sessions),
        sum(int(row[2] or 0) for row in sessions),
        writer,
        found,
        foreseen(home) if found else None,
    )


# ----------------------------------------------------------------------------
# A first look at nacre: read what the agents of this machine wrote, show what was learned, answer a
# few questions.


SECONDS_FOR_VECTORS = 20.0
"""How long a first look may take over vectors before it answers; its face goes on with the rest afterwards."""

MAX_BEST = 12
MAX_ANSWERS = 3

_HITS = 3
_TURNS = 2
_POOL = 24
"""Memories of each kind that are weighed for the best; some may be those of examples."""

_KIND_DISCOUNT = 0.5
"""What each memory of a kind takes from the importance of the next one: a table of twelve rules teaches little."""

_EXAMPLE_QUESTIONS = (
    "Why did hivelog move away from SQLite?",
    "Which search does choirbook use, and why?",
    "中文歌词用什么字体？",
)
Origin = Literal["discovered", "examples"]


@dataclass(frozen=True, slots=True)
class SampleAnswer:
    """A question to the memories just made, and what recall answered."""

    question: str
    result: RecallResult


@dataclass(frozen=True, slots=True)
class QuickstartResult:
    """What a first look found.

    ``source`` says whether transcripts were found on this machine, or the example sessions stood in for them.
    ``tools`` counts the transcripts by the label of the tool that wrote them. ``best`` are the memories to show,
    the best first; ``answers`` were all found, each with evidence. ``changed`` is the name of the file that most
    sessions changed, and how many did, where more than one did. ``has_examples``: example sessions are in the home,
    also of an earlier look.
    """

    source: Origin
    report: IngestReport
    tools: dict[str, int]
    best: tuple[Memory, ...]
    answers: tuple[SampleAnswer, ...]
    reach: Reach
    changed: tuple[str, int] | None = None
    has_examples: bool = False


def run_quickstart(
    home: Home,
    on_progress: OnProgress | None = None,
    *,
    seconds_for_vectors: float = SECONDS_FOR_VECTORS,
) -> QuickstartResult:
    """Read what discovery finds under the home, else the example sessions; a second run doubles nothing."""
    source: Origin = "discovered"
    files = [file.path for file in discovery.find(home, (), with_discovery=True).files]
    report = ingest(home, IngestOptions(discover=True, vectors=False), on_progress)
    if not _were_heard(home, files):
        source = "examples"
        files = examples.lay_out(home)
        found, report = (
            report,
            ingest(home, IngestOptions(paths=tuple(files), vectors=False), on_progress),
        )
        report = replace(report, problems=(*found.problems, *report.problems))
    made = embed_pending(home, on_progress or (lambda _: None), seconds=seconds_for_vectors)
    report = replace(report, vectors_made=made.made, vectors_left=made.left, vectors_note=made.note)
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
    found = home.deeds.most_changed()
    return (re.split(r"[\\/]", found[0])[-1], found[1]) if found and found[1] > 1 else None


def _best_memories(home: Home, *, own: bool) -> tuple[Memory, ...]:
    """Up to twelve memories to show: by importance, with a preference for kinds not shown yet, then the newest.

    ``own``: none that examples taught.
    """
    rows = [
        row
        for kind in Kind
        for row in home.selection.browse_memories(
            Filter(kinds=(kind,)), limit=_POOL, today=home.today()
        )
    ]
    every = home.memories.by_rows(rows).values()
    found = [
        memory for memory in every if not (own and examples.is_from_one(home, memory.source.file))
    ]
    waiting = sorted(found, key=lambda memory: (memory.created, memory.id), reverse=True)
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


def _were_heard(home: Home, files: Iterable[Path]) -> bool:
    """Whether anything was said in these transcripts: a tool that was only ever started leaves files, too."""
    paths = {str(path) for path in files}
    return any(session.file in paths for session in home.sessions.newest(limit=_LOOKED_AT))


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
    """Questions after the best memories, one a kind as far as kinds go, then after what came up in several sessions;
    only those whose answer is found.
    """
    asked: set[str] = set()
    for memory in _by_turns(best):
        question = about(memory)
        if question is None or question in asked:
            continue
        asked.add(question)
        result = _ask(home, question)
        if any(hit.memory.id == memory.id and hit.evidence for hit in result.hits):
            yield SampleAnswer(question, result)
    for question, thing in about_sessions(home):
        result = _ask(home, question)
        found = (hit.turn.text for hit in result.turns[:1]) if not result.hits else ()
        if says(found, thing):
            yield SampleAnswer(question, result)


def _by_turns(best: Sequence[Memory]) -> list[Memory]:
    """The best of each kind, then the second best of each, and so on."""
    seen: Counter[Kind] = Counter()
    ranked = []
    for at, memory in enumerate(best):
        ranked.append((seen[memory.kind], at, memory))
        seen[memory.kind] += 1
    return [memory for *_, memory in sorted(ranked, key=lambda item: item[:2])]


def _ask(home: Home, question: str) -> RecallResult:
    return recall(
        home, RecallQuery(question, limit=_HITS, turns=_TURNS, confident=True, update=False)
    )
