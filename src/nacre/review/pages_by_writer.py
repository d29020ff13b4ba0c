"""What a writer is asked about a page, and what is made of its answer: lines that bear code's look and a second one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from math import ceil

import msgspec

from nacre.base.ids import content_hash
from nacre.base.json import quoted
from nacre.base.text import count_tokens, normalise, one_line, shorten, visible
from nacre.base.times import shown_day
from nacre.errors import ModelRefused
from nacre.home.home import Home
from nacre.home.projects import REFERENCE_CHARACTERS, as_line, references_of, rests_on_what_holds
from nacre.home.spending import NONE, name_for, tracing
from nacre.learn.extract import is_covered, may_be_shown
from nacre.llm.failures import ask
from nacre.llm.providers import describe
from nacre.memories.vectors import embed_memories
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.review.consolidate import NO_WRITER, DreamEstimate, PageDraft, Step, answers, writer_of
from nacre.review.pages import (
    SESSIONS_SHOWN,
    UNREADABLE,
    Cluster,
    Form,
    Line,
    Page,
    Section,
    activity,
    by_writer,
    clusters,
    fingerprint,
    form_of,
    latest,
    mark,
    plain_words,
    read_page,
    sections_of,
    sessions_named,
    unlike_sources,
)
from nacre.review.relations import (
    COMPARE,
    MOST_PAIRS,
    SORT,
    Consultation,
    Outcome,
    asked_for_relations,
    batches,
    known_pairs,
    prompt_of,
    size_of,
    tokens_for_relations,
    wanted_pairs,
    words_of,
)
from nacre.values.memory import Kind, Memory
from nacre.values.models import DOLLAR, Prompt, Tokens, TraceKind
from nacre.values.reports import OnProgress
from nacre.values.review import Usage
from nacre.values.session import Speaker, Task

BORNE = "borne-1"
_LINE_CHARACTERS = 240
_MOST_SOURCES = 8


class Finding(StrEnum):
    """What a second look makes of a line."""

    BORNE = "borne"
    NOT_BORNE = "not_borne"


class Looked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a second look finds of one line."""

    number: int
    finding: Finding
    what: str


class SecondLook(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a second look finds of each line."""

    cases: list[Looked]


@dataclass(frozen=True, slots=True)
class Source:
    """What a line may rest on, as a writer is shown it: a memory, or what was done in a session."""

    reference: str
    kind: str
    speaker: Speaker
    day: str
    text: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """A line that a writer proposes for a section, with what it rests on."""

    field: str
    words: str
    sources: tuple[Source, ...]

    @property
    def line(self) -> str:
        """As it stands on the page."""
        by_agent = any(source.speaker is not Speaker.OWNER for source in self.sources)
        return as_line(self.words, [source.reference for source in self.sources], by_agent=by_agent)


@dataclass(frozen=True, slots=True)
class Drafted:
    """What came of asking: sections, how many lines were proposed and did not bear a look, and whether the writer was
    misled; then nothing of its answer is used."""

    sections: tuple[Section, ...] = ()
    proposed: int = 0
    refused: int = 0
    is_misled: bool = False


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """One page: its form, what it may tell, and what a writer made of it before, each line with numbers of sources."""

    form: Form
    sources: Sequence[Source]
    before: Sequence[tuple[str, str, tuple[int, ...]]]
    model: LanguageModel
    redactor: Redactor
    seconds: float

    def answer(self) -> Drafted:
        """Ask for the page, and have it looked at again. Raises what a model raises; touches nothing of the home."""
        answered = ask(self.model, self.prompt(), self.form.answer)
        proposed = list(self._proposed(answered))
        good = [one for one in proposed if one.sources and not self._unfit(one)]
        borne = self._borne(good) if good else []
        if borne is None:
            return Drafted(proposed=len(proposed), is_misled=True)
        return Drafted(tuple(self._sections(borne)), len(proposed), len(proposed) - len(borne))

    def prompt(self) -> Prompt:
        """What asks for the page."""
        shown = [
            quoted(
                {
                    "number": number,
                    "kind": one.kind,
                    "said_by": one.speaker.value,
                    "day": one.day,
                    "text": one.text,
                }
            )
            for number, one in enumerate(self.sources, 1)
        ]
        lines = [
            quoted({"section": field, "text": words, "numbers": list(numbers)})
            for field, words, numbers in self.before
        ]
        told = [*shown, *(["", "The page has these lines:", *lines] if lines else [])]
        return prompt_of(self.form.prompt, "\n".join(told), self.form.answer, self.seconds)

    def _proposed(self, answered: msgspec.Struct) -> Iterator[Proposed]:
        for field, _, _ in self.form.sections:
            for line in getattr(answered, field):
                words = self.redactor.clean(
                    plain_words(one_line(visible(line.text)), _LINE_CHARACTERS)
                ).strip("- ")
                yield Proposed(field, words, self._named(line))

    def _named(self, line: Line) -> tuple[Source, ...]:
        """What a line rests on; nothing where it names what was not shown, or as good as everything."""
        numbers = sorted(set(line.numbers))
        is_shown = all(1 <= number <= len(self.sources) for number in numbers)
        return (
            tuple(self.sources[number - 1] for number in numbers)
            if is_shown and len(numbers) <= _MOST_SOURCES
            else ()
        )

    def _unfit(self, one: Proposed) -> str | None:
        """What code can know against a line."""
        return (
            unlike_sources(one.words, [f"{source.day} {source.text}" for source in one.sources])
            if one.words
            else "it is empty"
        )

    def _borne(self, proposed: Sequence[Proposed]) -> list[Proposed] | None:
        """The lines that bear a second look; ``None`` where it took a line for borne out that surely is not."""
        at, probe = probe_beside([one.line for one in proposed])
        cases = [case_of(one) for one in proposed]
        like = {"said_by": Speaker.OWNER.value, "day": proposed[0].sources[0].day}
        cases[at:at] = [{"line": probe[0], "sources": [{**like, "text": probe[1]}]}]
        text = "\n".join(quoted({"number": number, **case}) for number, case in enumerate(cases, 1))
        answered = ask(self.model, prompt_of(BORNE, text, SecondLook, self.seconds), SecondLook)
        found = {case.number: case.finding for case in answered.cases}
        if found.get(at + 1) is not Finding.NOT_BORNE:
            return None
        numbers = [number for number in range(1, len(cases) + 1) if number != at + 1]
        return [
            one
            for number, one in zip(numbers, proposed, strict=True)
            if found.get(number) is Finding.BORNE
        ]

    def _sections(self, borne: Sequence[Proposed]) -> Iterator[Section]:
        kept = dict(each_once(self.form, borne))
        for field, title, most in self.form.sections:
            lines = kept.get(field, [])[:most]
            if field == self.form.summary:
                lines = [
                    one
                    for at, one in enumerate(lines)
                    if sum(len(other.words) for other in lines[: at + 1])
                    <= self.form.summary_characters
                ]
            yield title, tuple(line.line for line in lines)


def case_of(one: Proposed) -> dict[str, object]:
    """A line as a second look is shown it."""
    sources = [
        {"said_by": source.speaker.value, "day": source.day, "text": source.text}
        for source in one.sources
    ]
    return {"line": one.words, "sources": sources}


def probe_beside(texts: Sequence[str]) -> tuple[int, tuple[str, str]]:
    """Where among some texts a probe stands, and which one: a text, and another that does not bear it out."""
    drawn = int(content_hash("\0".join(texts)).hex()[:12], 16)
    pairs = known_pairs()
    return drawn % (len(texts) + 1), pairs[drawn // 7 % len(pairs)]


def each_once(form: Form, proposed: Sequence[Proposed]) -> Iterator[tuple[str, list[Proposed]]]:
    """The lines of each section, without those whose words, or whose sources, are told in one that goes before."""
    words: set[str] = set()
    told: set[frozenset[str]] = set()
    for field in (form.summary, *form.ranks):
        found = []
        for one in (one for one in proposed if one.field == field):
            named = frozenset(source.reference for source in one.sources)
            if normalise(one.words) not in words and named not in told:
                found.append(one)
                words.add(normalise(one.words))
                told |= set() if field == form.summary else {named}
        yield field, found


# ----------------------------------------------------------------------------
# Has a writer fill pages: those of projects of which enough is known that is new, and the owner's
# profile.


MOST_PAGES = 8
"""So many pages are asked about in one dream; the rest waits."""

LEAST_KNOWN, LEAST_NEW = 5, 3
"""A page takes so many memories, and so many of them new, changed or gone since it was asked about."""

TOKENS_SHOWN = 6_000
"""Of what is known, in one question."""

_LOOKED = "dream pages"
_TEXT_CHARACTERS = 500
_FRAME_TOKENS = 30
_ANSWER_TOKENS = 2_500
"""What the answers about a page take, both looks together."""

_MISLED = "{} of {} pages of the writer's are not used: it took for borne out what surely is not"
_SOURCE_MARK = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """A page to ask about: what a writer is shown of it, and what tells whether that is new. ``project`` is empty for
    the profile."""

    project: str
    sources: tuple[Source, ...]
    before: tuple[tuple[str, str, tuple[int, ...]], ...]
    marks: tuple[str, ...]

    @property
    def form(self) -> Form:
        """What is to be filled."""
        return form_of(self.project)


@dataclass(frozen=True, slots=True)
class PagesAsked:
    """Drafts by project, which pages were asked about with what, how many wait, and what went wrong."""

    drafts: Mapping[str, PageDraft]
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unasked: int = 0
    note: str | None = None


def wanted_pages(
    home: Home, memories: Iterable[Memory], project: str | None, writer: str
) -> list[Wanted]:
    """The pages that are worth asking about, those of which most is new first."""
    looked = _looked(home)
    slugs = sorted({file.slug for file in home.files.projects()})
    known = list(memories)
    found = []
    for slug in [one for one in ("", *slugs) if project in (None, one)]:
        one = _wanted(home, slug, known, writer)
        news = _news(one, looked.get(slug, ())) if one else 0
        if one and news:
            found.append((news, one))
    return [one for _, one in sorted(found, key=lambda found: (-found[0], found[1].project))]


def asked_for_pages(
    home: Home, model: LanguageModel, wanted: Sequence[Wanted], on_progress: OnProgress | None
) -> PagesAsked:
    """What a writer makes of some pages. Nothing is changed."""
    chosen = wanted[:MOST_PAGES]
    seconds = home.settings.number("models.timeout_seconds")
    questions = [
        PageQuestion(one.form, one.sources, one.before, model, home.redactor, seconds)
        for one in chosen
    ]
    found, failed = answers(home, [question.answer for question in questions], on_progress)
    answered = [(one, drafted) for one, drafted in zip(chosen, found, strict=True) if drafted]
    drafts = {
        one.project: _draft(one, drafted, model)
        for one, drafted in answered
        if any(lines for _, lines in drafted.sections)
    }
    misled = sum(drafted.is_misled for _, drafted in answered)
    looked = tuple((one.project, one.marks) for one, drafted in answered if not drafted.is_misled)
    note = failed or (_MISLED.format(misled, len(answered)) if misled else None)
    return PagesAsked(drafts, looked, len(wanted) - len(chosen), note)


def _draft(wanted: Wanted, drafted: Drafted, model: LanguageModel) -> PageDraft:
    lines = sum(len(lines) for _, lines in drafted.sections)
    left = f", {drafted.refused} more did not bear a look" if drafted.refused else ""
    why = f"lines by the writer: {lines}, from {len(wanted.sources)} sources{left}"
    return PageDraft(wanted.project, drafted.sections, model.name, why)


def tokens_for(wanted: Sequence[Wanted]) -> tuple[int, Tokens]:
    """How many calls asking about pages takes at most, and how many tokens."""
    chosen = wanted[:MOST_PAGES]
    asking = sum(
        count_tokens(words_of(one.form.prompt)) + count_tokens(words_of(BORNE)) for one in chosen
    )
    shown = sum(_size(source) for one in chosen for source in one.sources)
    return 2 * len(chosen), Tokens(asking + 2 * shown, _ANSWER_TOKENS * len(chosen))


def note_looked(home: Home, looked: Iterable[tuple[str, Sequence[str]]]) -> None:
    """These pages were asked about, and need not be again until something is new. Call it in a transaction."""
    now = {project: list(marks) for project, marks in looked}
    if now:
        home.usage.set_value(_LOOKED, json.dumps({**_looked(home), **now}))


def _looked(home: Home) -> dict[str, list[str]]:
    return dict(json.loads(home.usage.value(_LOOKED) or "{}"))


def _news(wanted: Wanted, seen: Sequence[str]) -> int:
    """How much is new since a page was asked about; 0 where that is too little to ask again."""
    new = len(set(wanted.marks) ^ set(seen))
    return new if new >= (LEAST_NEW if seen else LEAST_KNOWN) else 0


def _wanted(home: Home, project: str, memories: Sequence[Memory], writer: str) -> Wanted | None:
    """What a writer would be shown of a page; ``None`` where that is too little, or the page is not to be written."""
    try:
        page = read_page(home, project)
    except UNREADABLE:
        return None
    form, today = form_of(project), home.today()
    known = [
        memory
        for memory in memories
        if form.takes(memory, project, today)
        and not (memory.triggers or memory.suppressed_contexts)
    ]
    known = [one for one in known if may_be_shown(home, one, writer)]
    if len(known) < LEAST_KNOWN or not page.is_wanted:
        return None
    named = {one for line in _lines_before(page, form) for one in references_of(line[1])}
    shown = _shown(known, named)
    marks = tuple(mark([one])[:_SOURCE_MARK] for one in shown)
    sources = (
        *map(_source, shown),
        *(_of_sessions(home, project, page, writer) if project else ()),
    )
    return Wanted(project, sources, tuple(_before(home, page, form, sources)), marks)


def _shown(memories: Sequence[Memory], named: set[str]) -> list[Memory]:
    """As many memories as a question holds, in the order in which they were said: those that the page names already,
    then by importance and by when they were said, in turn."""
    by_day = sorted(memories, key=lambda memory: (memory.last_said, memory.id), reverse=True)
    by_weight = sorted(by_day, key=lambda one: -one.importance)
    first = [one for one in by_day if one.id[-REFERENCE_CHARACTERS:] in named]
    turns = (one for pair in zip(by_weight, by_day, strict=True) for one in pair)
    chosen: list[Memory] = []
    left = TOKENS_SHOWN
    for one in {one.id: one for one in (*first, *turns)}.values():
        left -= _size(_source(one))
        if left >= 0:
            chosen.append(one)
    return sorted(chosen, key=lambda one: (one.last_said, one.id))


def _source(memory: Memory) -> Source:
    text = shorten(memory.content, _TEXT_CHARACTERS)
    subject = "" if memory.subject.rstrip("…") in text else f"{memory.subject}: "
    day = _day(memory)
    return Source(
        memory.id[-REFERENCE_CHARACTERS:],
        memory.kind.value,
        memory.speaker,
        shown_day(day),
        f"{subject}{text}",
    )


def _day(memory: Memory) -> datetime:
    """When something happened, or was said last."""
    return memory.created if memory.kind is Kind.EVENT else memory.last_said


def _size(source: Source) -> int:
    return count_tokens(source.text) + _FRAME_TOKENS


def _lines_before(page: Page, form: Form) -> list[tuple[str, str]]:
    """The lines that a writer made of a page before, each with its section's field."""
    fields = {title: field for field, title, _ in form.sections}
    return [
        (fields[title], line)
        for title, lines in by_writer(form, sections_of(page.part))
        for line in lines
    ]


def _of_sessions(home: Home, project: str, page: Page, writer: str) -> Iterator[Source]:
    """What was done in the latest sessions, as the page tells it, of those that a writer may be shown."""
    for line in activity(home, project, page, latest(home, project, None, SESSIONS_SHOWN)):
        (reference,) = references_of(line)
        found = sessions_named(home, reference)
        if found and all(is_covered(home.settings, one, writer) for one in found):
            day, _, words = home.redactor.clean(
                line.removeprefix("- ").rpartition(" (")[0]
            ).partition(": ")
            yield Source(reference, "session", Speaker.OWNER, day, words)


def _before(
    home: Home, page: Page, form: Form, sources: Sequence[Source]
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """The lines of a writer's that stand on a page and still hold, with the numbers of what they rest on."""
    numbers = {one.reference: number for number, one in enumerate(sources, 1)}
    for field, line in _lines_before(page, form):
        named = references_of(line)
        if named and all(one in numbers for one in named) and rests_on_what_holds(home, line):
            yield (
                field,
                line.removeprefix("- ").rpartition(" (")[0],
                tuple(numbers[one] for one in named),
            )


# ----------------------------------------------------------------------------
# What a writer does in tier 3: it fills pages, and says how memories stand to each other that nothing
# connects.


@dataclass(frozen=True, slots=True)
class Consulted:
    """What came of asking: drafts of pages by project, links to draw, what was looked at, what is settled, how much
    waits for another dream, and what went wrong."""

    drafts: Mapping[str, PageDraft]
    steps: tuple[Step, ...] = ()
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    settled: tuple[str, ...] = ()
    unasked: int = 0
    note: str | None = None


NOT_CONSULTED = Consulted({})


def consulted(
    home: Home,
    memories: Sequence[Memory],
    project: str | None,
    asked: Sequence[str],
    *,
    background: bool,
    on_progress: OnProgress | None = None,
) -> Consulted:
    """What a writer makes of pages and pairs of some memories; ``asked`` is settled already. Nothing is changed.

    Raises ModelRefused where the model that is set cannot be opened.
    """
    with writer_of(home, background=background) as (model, why_not):
        if model is None:
            return Consulted({}, note=why_not)
        name = name_for(home, Task.DREAM)
        with tracing(home, TraceKind.DREAM, "pages and links"):
            pages = asked_for_pages(
                home, model, wanted_pages(home, memories, project, name), on_progress
            )
            if pages.note:
                return Consulted(pages.drafts, (), pages.looked, (), pages.unasked, pages.note)
            pairs = wanted_pairs(home, memories, asked, name)
            links = asked_for_relations(home, model, pairs, on_progress)
    return Consulted(
        pages.drafts,
        links.steps,
        pages.looked,
        links.settled,
        pages.unasked + links.unasked,
        links.note,
    )


def consulting_takes(
    home: Home, memories: Sequence[Memory], project: str | None, asked: Sequence[str]
) -> tuple[int, int, int, Tokens]:
    """How many pages and pairs a writer would be asked about in one dream, in how many calls and tokens at most."""
    name = name_for(home, Task.DREAM)
    pages = wanted_pages(home, memories, project, name)
    pairs = wanted_pairs(home, memories, asked, name)
    page_calls, page_tokens = tokens_for(pages)
    pair_calls, pair_tokens = tokens_for_relations(pairs)
    tokens = Tokens(page_tokens.input + pair_tokens.input, page_tokens.output + pair_tokens.output)
    return min(len(pages), MOST_PAGES), min(len(pairs), MOST_PAIRS), page_calls + pair_calls, tokens


# ----------------------------------------------------------------------------
# Has the writer look at what may say the same: which clusters, within which bounds, and what it would
# take.


MOST_CLUSTERS = 120
"""So many clusters are asked about in one dream; the rest waits."""

_ASKED = "dream asked"
_MOST_ASKED = 4_000
_ANSWER_TOKENS_WRITING = 200
"""What the answers about a cluster take, both looks together."""


def asked_of_writer(
    home: Home,
    memories: Sequence[Memory],
    usage: Mapping[str, Usage],
    *,
    background: bool,
    on_progress: OnProgress | None = None,
) -> tuple[Outcome, int, str | None]:
    """What a writer would make of some memories, how many clusters wait for another time, and what went wrong.

    Nothing is changed. What it answered lately it is not asked again, so that a dream that was interrupted goes on
    where it stopped. Raises ModelRefused where the model that is set cannot be opened.
    """
    with writer_of(home, background=background) as (model, why_not):
        if model is None:
            return Outcome(), 0, why_not
        wanted, unasked, note = _wanted_writing(home, memories, name_for(home, Task.DREAM))
        consultation = Consultation(
            model, home.redactor, usage, home.settings.number("models.timeout_seconds")
        )
        with tracing(home, TraceKind.DREAM, f"{len(wanted)} clusters"):
            found, problem = _all(home, consultation, wanted, on_progress)
    return found, unasked, problem or note


_MISLED_WRITING = "{} of {} answers of the writer are not used: it took for the same, or for over, what surely is not"


def _all(
    home: Home,
    consultation: Consultation,
    wanted: Sequence[Cluster],
    on_progress: OnProgress | None,
) -> tuple[Outcome, str | None]:
    parts = batches(wanted)
    found, failed = answers(
        home, [partial(consultation.about, part) for part in parts], on_progress
    )
    good = [one for one in found if one]
    whole = Outcome(
        tuple(step for one in good for step in one.steps),
        tuple(step for one in good for step in one.refused),
        tuple(name for one in good for name in one.settled),
        sum(one.misled for one in good),
    )
    return whole, failed or (
        _MISLED_WRITING.format(whole.misled, len(parts)) if whole.misled else None
    )


def estimate(
    home: Home,
    memories: Sequence[Memory],
    all_memories: Sequence[Memory] | None,
    project: str | None,
) -> DreamEstimate:
    """What asking the writer about some memories would take, at most; with ``all_memories`` also about pages and links
    of these (tier 3). No model is asked."""
    name = name_for(home, Task.DREAM)
    if name == NONE:
        return DreamEstimate(NONE, note=NO_WRITER)
    wanted, unasked, note = _wanted_writing(home, memories, name)
    calls = 2 * len(batches(wanted))
    asking = sum(count_tokens(words_of(one)) for one in (SORT, COMPARE)) * calls // 2
    tokens = Tokens(asking + 2 * sum(map(size_of, wanted)), _ANSWER_TOKENS_WRITING * len(wanted))
    pages = pairs = 0
    if all_memories is not None:
        pages, pairs, more_calls, more = consulting_takes(home, all_memories, project, asked(home))
        calls, tokens = (
            calls + more_calls,
            Tokens(tokens.input + more.input, tokens.output + more.output),
        )
    try:
        price = describe(home.settings, name)[1].price
    except ModelRefused:
        price = None
    return DreamEstimate(
        name,
        len(wanted),
        sum(map(len, wanted)),
        calls,
        tokens.input + tokens.output,
        ceil(tokens.cost(price) * DOLLAR) if price else None,
        unasked,
        note,
        pages,
        pairs,
    )


def _wanted_writing(
    home: Home, memories: Sequence[Memory], writer: str
) -> tuple[list[Cluster], int, str | None]:
    """The clusters to ask about, how many are left for another time, and why there are none where nothing can tell."""
    embed_memories(home, begins=True)
    if home.vectors.model() is None:
        return [], 0, "there are no vectors to tell what is alike: nacre embed"
    known = set(asked(home))
    found = [one for one in clusters(home, memories) if fingerprint(one) not in known]
    found = [one for one in found if all(may_be_shown(home, memory, writer) for memory in one)]
    return found[:MOST_CLUSTERS], max(0, len(found) - MOST_CLUSTERS), None


def asked(home: Home) -> list[str]:
    """What the writer answered, and need not be asked about again: fingerprints of clusters, marks of pairs."""
    return list(json.loads(home.usage.value(_ASKED) or "[]"))


def note_settled(home: Home, settled: Sequence[str]) -> None:
    """These clusters and pairs are answered, and need not be asked about again. Call it in a transaction."""
    if settled:
        home.usage.set_value(_ASKED, json.dumps([*asked(home), *settled][-_MOST_ASKED:]))
