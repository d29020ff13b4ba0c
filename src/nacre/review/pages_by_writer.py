"""Questions to a language model (the writer) about pages and clusters of memories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import accumulate

import msgspec

from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.json import quoted
from nacre.base.text import count_tokens, normalise, one_line, shorten, visible
from nacre.base.times import shown_day
from nacre.home.home import Home
from nacre.home.projects import REFERENCE_CHARACTERS, as_line, references_of, rests_on_what_holds
from nacre.home.spending import name_for
from nacre.learn.extract import is_covered, may_be_shown
from nacre.llm.failures import Schema, ask
from nacre.memories.vectors import embed_memories
from nacre.protocols import LanguageModel
from nacre.redact.redactor import Redactor
from nacre.review.consolidate import (
    PageDraft,
    Section,
    answers,
    writer_of,
)
from nacre.review.pages import (
    SESSIONS_SHOWN,
    UNREADABLE,
    Cluster,
    Form,
    Page,
    activity,
    clusters,
    fingerprint,
    form_of,
    latest,
    mark,
    plain_words,
    read_page,
    sessions_named,
    unlike_sources,
)
from nacre.review.relations import (
    Consultation,
    Outcome,
    batches,
    known_pairs,
    numbered,
    prompt_of,
)
from nacre.store.memories import UsageById
from nacre.values.memory import Kind, Memory, by_id
from nacre.values.models import Prompt
from nacre.values.reports import OnProgress
from nacre.values.session import Speaker, Task

BORNE = "borne-1"
_LINE_CHARACTERS = 240
_MAX_SOURCES = 8


class Finding(StrEnum):
    """What a second look makes of a line."""

    BORNE = "borne"
    NOT_BORNE = "not_borne"


class Looked(Schema):
    """What a second look finds of one line."""

    number: int
    finding: Finding
    what: str


class SecondLook(Schema):
    """What a second look finds of each line."""

    cases: list[Looked]


@frozen
class Source:
    """A memory or a description of a session, as shown to the writer."""

    reference: str
    kind: str
    speaker: Speaker
    day: str
    text: str

    @property
    def shown(self) -> dict[str, object]:
        """The statement as shown to the writer."""
        return {"said_by": self.speaker.value, "day": self.day, "text": self.text}


@frozen
class Proposed:
    """A line proposed for a section, and the line's sources."""

    field: str
    words: str
    sources: tuple[Source, ...]

    @property
    def line(self) -> str:
        """The line as written to the page."""
        by_agent = any(source.speaker is not Speaker.OWNER for source in self.sources)
        return as_line(self.words, [source.reference for source in self.sources], by_agent=by_agent)


@frozen
class Drafted:
    """The result of one answer from the writer.

    ``sections``: the accepted sections. ``proposed``: number of proposed lines. ``refused``: number
    of refused lines. ``is_misled``: whether the writer accepted a false test line, so that the
    answer is discarded.
    """

    sections: tuple[Section, ...] = ()
    proposed: int = 0
    refused: int = 0
    is_misled: bool = False


@frozen
class PageQuestion:
    """A question about a page. ``before``: the lines already on the page, with section and source numbers."""

    form: Form
    sources: Sequence[Source]
    before: Sequence[tuple[str, str, tuple[int, ...]]]
    model: LanguageModel
    redactor: Redactor
    seconds: float

    def answer(self) -> Drafted:
        """Ask for the page and for verification, without changing anything. Raises the model's errors."""
        answer = ask(self.model, self.prompt(), self.form.answer)
        proposed = list(self._proposed(answer))
        good = [
            line
            for line in proposed
            if line.words
            and line.sources
            and not unlike_sources(line.words, [f"{each.day} {each.text}" for each in line.sources])
        ]
        supported = self._confirmed_lines(good) if good else []
        if supported is None:
            return Drafted(proposed=len(proposed), is_misled=True)
        return Drafted(
            tuple(self._sections(supported)), len(proposed), len(proposed) - len(supported)
        )

    def prompt(self) -> Prompt:
        """Return the prompt that asks for the page."""
        text = numbered({"kind": source.kind, **source.shown} for source in self.sources)
        lines = [
            quoted({"section": field, "text": words, "numbers": list(numbers)})
            for field, words, numbers in self.before
        ]
        parts = [text, *(["", "The page has these lines:", *lines] if lines else [])]
        return prompt_of(self.form.prompt, "\n".join(parts), self.form.answer, self.seconds)

    def _proposed(self, answer: msgspec.Struct) -> Iterator[Proposed]:
        for field, _, _ in self.form.sections:
            for line in getattr(answer, field):
                plain = plain_words(one_line(visible(line.text)), _LINE_CHARACTERS)
                words, numbers = self.redactor.clean(plain).strip("- "), sorted(set(line.numbers))
                is_shown = all(1 <= number <= len(self.sources) for number in numbers)
                if not is_shown or len(numbers) > _MAX_SOURCES:
                    numbers = []  # the line cites an unknown source, or too many sources
                sources = tuple(self.sources[number - 1] for number in numbers)
                yield Proposed(field, words, sources)

    def _confirmed_lines(self, proposed: Sequence[Proposed]) -> list[Proposed] | None:
        """Return the lines that a second call confirms.

        The call also contains a false line. If the writer confirms that line, return ``None``,
        because the answer is unreliable.
        """
        at, probe = probe_beside([line.line for line in proposed])
        cases: list[dict[str, object]] = [
            {"line": line.words, "sources": [source.shown for source in line.sources]}
            for line in proposed
        ]
        false_source = Source("", "", Speaker.OWNER, proposed[0].sources[0].day, probe[1])
        cases[at:at] = [{"line": probe[0], "sources": [false_source.shown]}]
        prompt = prompt_of(BORNE, numbered(cases), SecondLook, self.seconds)
        answer = ask(self.model, prompt, SecondLook)
        findings = {case.number: case.finding for case in answer.cases}
        if findings.get(at + 1) is not Finding.NOT_BORNE:
            return None
        numbers = [number for number in range(1, len(cases) + 1) if number != at + 1]
        return [
            line
            for number, line in zip(numbers, proposed, strict=True)
            if findings.get(number) is Finding.BORNE
        ]

    def _sections(self, borne: Sequence[Proposed]) -> Iterator[Section]:
        kept = dict(each_once(self.form, borne))
        for field, title, most in self.form.sections:
            lines = kept.get(field, [])[:most]
            if field == self.form.summary:
                sizes = accumulate(len(line.words) for line in lines)
                fitting = sum(size <= self.form.summary_characters for size in sizes)
                lines = lines[:fitting]
            yield title, tuple(line.line for line in lines)


def probe_beside(texts: Sequence[str]) -> tuple[int, tuple[str, str]]:
    """Return a position among the texts, and a line to insert there as a test of the writer.

    The line's source does not support the line. The same texts give the same result.
    """
    drawn = int(content_hash("\0".join(texts)).hex()[:12], 16)
    pairs = known_pairs()
    return drawn % (len(texts) + 1), pairs[drawn // 7 % len(pairs)]


def each_once(form: Form, proposed: Sequence[Proposed]) -> Iterator[tuple[str, list[Proposed]]]:
    """Yield the lines of each section, except lines with the same text or sources as an earlier line."""
    words: set[str] = set()
    used_sources: set[frozenset[str]] = set()
    for field in (form.summary, *form.ranks):
        lines = []
        for line in (line for line in proposed if line.field == field):
            references = frozenset(source.reference for source in line.sources)
            if normalise(line.words) not in words and references not in used_sources:
                lines.append(line)
                words.add(normalise(line.words))
                used_sources |= set() if field == form.summary else {references}
        yield field, lines


# -- Asking about pages -------------------------------------------------------


MOST_PAGES = 8
"""Maximum number of pages per dream."""

LEAST_KNOWN, LEAST_NEW = 5, 3
"""Minimum number of memories for a page, and minimum number of changes since the last question."""

TOKENS_SHOWN = 6_000
"""Maximum number of tokens for the memories in one question."""

_LOOKED = "dream pages"
_TEXT_CHARACTERS = 500
_FRAME_TOKENS = 30

_MISLED = "{} of {} pages by the writer are not used: it accepted a statement that its sources do not support"
_SOURCE_MARK_CHARACTERS = 8


@frozen
class PageToAsk:
    """A page about which the writer is asked.

    ``project``: the project's slug, empty for the profile. ``marks``: fingerprints of the sources.
    """

    project: str
    sources: tuple[Source, ...]
    before: tuple[tuple[str, str, tuple[int, ...]], ...]
    marks: tuple[str, ...]

    @property
    def form(self) -> Form:
        """The page's form."""
        return form_of(self.project)


@frozen
class Consulted:
    """A writer's answers about pages.

    ``looked``: the pages, with fingerprints of their sources. ``unasked``: number of postponed
    questions. ``note``: a problem.
    """

    drafts: Mapping[str, PageDraft]
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unasked: int = 0
    note: str | None = None


NOT_CONSULTED = Consulted({})


def wanted_pages(
    home: Home, memories: Iterable[Memory], project: str | None, writer: str
) -> list[PageToAsk]:
    """Return the pages worth asking about, those with the most changes first."""
    looked = _read_looked(home)
    slugs = sorted({file.slug for file in home.files.projects()})
    candidates = list(memories)
    pages = []
    for slug in [name for name in ("", *slugs) if project in (None, name)]:
        page = _page_to_ask(home, slug, candidates, writer)
        changes = _changes(page, looked.get(slug, ())) if page else 0
        if page and changes:
            pages.append((changes, page))
    return [page for _, page in sorted(pages, key=lambda item: (-item[0], item[1].project))]


def ask_for_pages(
    home: Home, model: LanguageModel, pages: Sequence[PageToAsk], on_progress: OnProgress | None
) -> Consulted:
    """Ask the writer about pages. Nothing is changed."""
    chosen = pages[:MOST_PAGES]
    seconds = home.settings.number("models.timeout_seconds")
    questions = [
        PageQuestion(page.form, page.sources, page.before, model, home.redactor, seconds)
        for page in chosen
    ]
    results, failed = answers(home, [question.answer for question in questions], on_progress)
    answered = [(page, drafted) for page, drafted in zip(chosen, results, strict=True) if drafted]
    drafts = {}
    for page, drafted in answered:
        if number := sum(len(lines) for _, lines in drafted.sections):
            refusals = f", {drafted.refused} more failed the check" if drafted.refused else ""
            why = f"lines by the writer: {number}, from {len(page.sources)} sources{refusals}"
            draft = PageDraft(page.project, drafted.sections, model.name, why)
            drafts[page.project] = draft
    misled = sum(drafted.is_misled for _, drafted in answered)
    looked = tuple(
        (page.project, page.marks) for page, drafted in answered if not drafted.is_misled
    )
    note = failed or (_MISLED.format(misled, len(answered)) if misled else None)
    return Consulted(drafts, looked=looked, unasked=len(pages) - len(chosen), note=note)


def note_looked(home: Home, looked: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Record that pages were asked about. Call in a transaction."""
    added = {project: list(marks) for project, marks in looked}
    if added:
        home.usage.set_value(_LOOKED, json.dumps({**_read_looked(home), **added}))


def _read_looked(home: Home) -> dict[str, list[str]]:
    return dict(json.loads(home.usage.value(_LOOKED) or "{}"))


def _changes(page: PageToAsk, seen: Sequence[str]) -> int:
    """Return the number of changes since the writer was last asked about a page.

    Return 0 if there are too few changes to ask again.
    """
    count = len(set(page.marks) ^ set(seen))
    return count if count >= (LEAST_NEW if seen else LEAST_KNOWN) else 0


def _page_to_ask(
    home: Home, project: str, memories: Sequence[Memory], writer: str
) -> PageToAsk | None:
    """Return a page to ask about, or ``None`` if the page has too few memories or must not be written."""
    try:
        page = read_page(home, project)
    except UNREADABLE:
        return None
    form, today = form_of(project), home.today()
    eligible = [
        memory
        for memory in memories
        if form.takes(memory, project, today)
        and not (memory.triggers or memory.suppressed_contexts)
        and may_be_shown(home, memory, writer)
    ]
    if len(eligible) < LEAST_KNOWN or not page.is_wanted:
        return None
    named = {name for _, line in _lines_before(page, form) for name in references_of(line)}
    shown = _memories_to_show(eligible, named)
    marks = tuple(mark([memory])[:_SOURCE_MARK_CHARACTERS] for memory in shown)
    sources = (
        *map(_source, shown),
        *(_of_sessions(home, project, page, writer) if project else ()),
    )
    return PageToAsk(
        project, sources, tuple(_valid_written_lines(home, page, form, sources)), marks
    )


def _memories_to_show(memories: Sequence[Memory], named: set[str]) -> list[Memory]:
    """Return the memories that fit a question, in order of the last statement.

    Choose memories named on the page first, then alternate between the most important and the latest.
    """
    by_day = sorted(memories, key=lambda memory: (memory.last_said, memory.id), reverse=True)
    by_weight = sorted(by_day, key=lambda memory: -memory.importance)
    on_page = [memory for memory in by_day if memory.id[-REFERENCE_CHARACTERS:] in named]
    alternating = (memory for pair in zip(by_weight, by_day, strict=True) for memory in pair)
    chosen: list[Memory] = []
    tokens_left = TOKENS_SHOWN
    for memory in by_id((*on_page, *alternating)).values():
        tokens_left -= _size(_source(memory))
        if tokens_left >= 0:
            chosen.append(memory)
    return sorted(chosen, key=lambda memory: (memory.last_said, memory.id))


def _source(memory: Memory) -> Source:
    text = shorten(memory.content, _TEXT_CHARACTERS)
    subject = "" if memory.subject.rstrip("…") in text else f"{memory.subject}: "
    day = memory.created if memory.kind is Kind.EVENT else memory.last_said
    return Source(
        memory.id[-REFERENCE_CHARACTERS:],
        memory.kind.value,
        memory.speaker,
        shown_day(day),
        f"{subject}{text}",
    )


def _size(source: Source) -> int:
    return count_tokens(source.text) + _FRAME_TOKENS


def _lines_before(page: Page, form: Form) -> list[tuple[str, str]]:
    """Return (section's field, line) for each line of the page that a writer wrote."""
    fields = {title: field for field, title, _ in form.sections}
    return [(fields[title], line) for title, lines in form.written(page.part) for line in lines]


def _of_sessions(home: Home, project: str, page: Page, writer: str) -> Iterator[Source]:
    """Yield the latest sessions of a project as sources.

    Only sessions that the writer may read are included.
    """
    for line in activity(home, project, page, latest(home, project, None, SESSIONS_SHOWN)):
        (reference,) = references_of(line)
        sessions = sessions_named(home, reference)
        if sessions and all(is_covered(home.settings, session, writer) for session in sessions):
            day, _, words = home.redactor.clean(
                line.removeprefix("- ").rpartition(" (")[0]
            ).partition(": ")
            yield Source(reference, "session", Speaker.OWNER, day, words)


def _valid_written_lines(
    home: Home, page: Page, form: Form, sources: Sequence[Source]
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yield the lines that a writer wrote on a page, except lines that are no longer valid.

    Each line comes with its section and the numbers of its sources.
    """
    numbers = {source.reference: number for number, source in enumerate(sources, 1)}
    for field, line in _lines_before(page, form):
        named = references_of(line)
        if named and all(source in numbers for source in named) and rests_on_what_holds(home, line):
            yield (
                field,
                line.removeprefix("- ").rpartition(" (")[0],
                tuple(numbers[source] for source in named),
            )


# -- Pages (tier 3) -----------------------------------------------------------


def consult(
    home: Home,
    memories: Sequence[Memory],
    project: str | None,
    *,
    background: bool,
    on_progress: OnProgress | None = None,
) -> Consulted:
    """Ask a writer about pages. Nothing is changed.

    Raises ModelRefusedError if the configured model cannot be opened.
    """
    with writer_of(home, background=background) as (model, why_not):
        if model is None:
            return Consulted({}, note=why_not)
        wanted = wanted_pages(home, memories, project, name_for(home, Task.DREAM))
        return ask_for_pages(home, model, wanted, on_progress)


# -- Clusters of similar memories ---------------------------------------------


MOST_CLUSTERS = 120
"""Maximum number of clusters per dream."""

_ASKED_KEY = "dream asked"
_MAX_ASKED = 4_000


def ask_about_clusters(
    home: Home,
    memories: Sequence[Memory],
    usage: UsageById,
    *,
    background: bool,
    on_progress: OnProgress | None = None,
) -> tuple[Outcome, int, str | None]:
    """Ask the writer about clusters of similar memories. Nothing is changed.

    Return the outcome, the number of postponed clusters, and a description of any problem. Clusters
    that were already answered are skipped. Raises ModelRefusedError if the configured model cannot
    be opened.
    """
    with writer_of(home, background=background) as (model, why_not):
        if model is None:
            return Outcome(), 0, why_not
        chosen, unasked, note = clusters_to_ask(home, memories, name_for(home, Task.DREAM))
        seconds = home.settings.number("models.timeout_seconds")
        consultation = Consultation(model, home.redactor, usage, seconds)
        questions = [partial(consultation.about, part) for part in batches(chosen)]
        results, problem = answers(home, questions, on_progress)
    outcomes = [outcome for outcome in results if outcome]
    whole = Outcome(
        tuple(step for outcome in outcomes for step in outcome.steps),
        tuple(step for outcome in outcomes for step in outcome.refused),
        tuple(name for outcome in outcomes for name in outcome.settled),
        sum(outcome.misled for outcome in outcomes),
    )
    if whole.misled and not problem:
        problem = _MISLED_WRITING.format(whole.misled, len(questions))
    return whole, unasked, problem or note


_MISLED_WRITING = "{} of {} answers of the writer are not used: it mistook different statements for equal or outdated"


def clusters_to_ask(
    home: Home, memories: Sequence[Memory], writer: str
) -> tuple[list[Cluster], int, str | None]:
    """Return the clusters to ask about, the number of postponed clusters, and any problem."""
    embed_memories(home, begins=True)
    if home.vectors.model() is None:
        return [], 0, "similarity needs vectors: run nacre writer embedding"
    settled = set(list_settled(home))
    eligible = [
        cluster
        for cluster in clusters(home, memories)
        if fingerprint(cluster) not in settled
        and all(may_be_shown(home, memory, writer) for memory in cluster)
    ]
    return eligible[:MOST_CLUSTERS], max(0, len(eligible) - MOST_CLUSTERS), None


def list_settled(home: Home) -> list[str]:
    """Return fingerprints of clusters that the writer has answered."""
    return list(json.loads(home.usage.value(_ASKED_KEY) or "[]"))


def note_settled(home: Home, settled: Sequence[str]) -> None:
    """Record answered clusters. Call in a transaction."""
    if settled:
        home.usage.set_value(_ASKED_KEY, json.dumps([*list_settled(home), *settled][-_MAX_ASKED:]))
