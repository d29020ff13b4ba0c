"""Has a writer fill pages: those of projects of which enough is known that is new, and the owner's profile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from nacre.dream.checks import mark
from nacre.dream.questions import words_of
from nacre.dream.reorganising.page import UNREADABLE, Page, read_page, sections_of
from nacre.dream.reorganising.page_checks import SESSIONS_SHOWN, sessions_named
from nacre.dream.reorganising.page_forms import Form, by_writer, form_of
from nacre.dream.reorganising.page_questions import BORNE, Drafted, PageQuestion, Source
from nacre.dream.reorganising.pages import activity
from nacre.dream.reorganising.promotion import latest
from nacre.dream.values import PageDraft
from nacre.dream.writer import answers
from nacre.extraction.coverage import is_covered, may_be_shown
from nacre.home.home import Home
from nacre.home.page_lines import REFERENCE_CHARACTERS, references_of, rests_on_what_holds
from nacre.platform.days import shown_day
from nacre.protocols import LanguageModel
from nacre.text.passages import count_tokens, shorten
from nacre.values.memory import Kind, Memory
from nacre.values.model_calls import Tokens
from nacre.values.reports import OnProgress
from nacre.values.session import Speaker

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


def wanted_pages(home: Home, memories: Iterable[Memory], project: str | None, writer: str) -> list[Wanted]:
    """The pages that are worth asking about, those of which most is new first."""
    looked = _looked(home)
    slugs = sorted({one.slug for one in home.files.projects()})
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
) -> PagesAsked:  # fmt: skip
    """What a writer makes of some pages. Nothing is changed."""
    chosen = wanted[:MOST_PAGES]
    seconds = home.settings.number("models.timeout_seconds")
    questions = [PageQuestion(one.form, one.sources, one.before, model, home.redactor, seconds) for one in chosen]
    found, failed = answers(home, [one.answer for one in questions], on_progress)
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
    asking = sum(count_tokens(words_of(one.form.prompt)) + count_tokens(words_of(BORNE)) for one in chosen)
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
        one for one in memories if form.takes(one, project, today) and not (one.triggers or one.suppressed_contexts)
    ]
    known = [one for one in known if may_be_shown(home, one, writer)]
    if len(known) < LEAST_KNOWN or not page.is_wanted:
        return None
    named = {one for line in _lines_before(page, form) for one in references_of(line[1])}
    shown = _shown(known, named)
    marks = tuple(mark([one])[:_SOURCE_MARK] for one in shown)
    sources = (*map(_source, shown), *(_of_sessions(home, project, page, writer) if project else ()))
    return Wanted(project, sources, tuple(_before(home, page, form, sources)), marks)


def _shown(memories: Sequence[Memory], named: set[str]) -> list[Memory]:
    """As many memories as a question holds, in the order in which they were said: those that the page names already,
    then by importance and by when they were said, in turn."""
    by_day = sorted(memories, key=lambda one: (one.last_said, one.id), reverse=True)
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
        memory.id[-REFERENCE_CHARACTERS:], memory.kind.value, memory.speaker, shown_day(day), f"{subject}{text}"
    )


def _day(memory: Memory) -> datetime:
    """When something happened, or was said last."""
    return memory.created if memory.kind is Kind.EVENT else memory.last_said


def _size(source: Source) -> int:
    return count_tokens(source.text) + _FRAME_TOKENS


def _lines_before(page: Page, form: Form) -> list[tuple[str, str]]:
    """The lines that a writer made of a page before, each with its section's field."""
    fields = {title: field for field, title, _ in form.sections}
    return [(fields[title], line) for title, lines in by_writer(form, sections_of(page.part)) for line in lines]


def _of_sessions(home: Home, project: str, page: Page, writer: str) -> Iterator[Source]:
    """What was done in the latest sessions, as the page tells it, of those that a writer may be shown."""
    for line in activity(home, project, page, latest(home, project, None, SESSIONS_SHOWN)):
        (reference,) = references_of(line)
        found = sessions_named(home, reference)
        if found and all(is_covered(home.settings, one, writer) for one in found):
            day, _, words = home.redactor.clean(line.removeprefix("- ").rpartition(" (")[0]).partition(": ")
            yield Source(reference, "session", Speaker.OWNER, day, words)


def _before(
    home: Home, page: Page, form: Form, sources: Sequence[Source]
) -> Iterator[tuple[str, str, tuple[int, ...]]]:  # fmt: skip
    """The lines of a writer's that stand on a page and still hold, with the numbers of what they rest on."""
    numbers = {one.reference: number for number, one in enumerate(sources, 1)}
    for field, line in _lines_before(page, form):
        named = references_of(line)
        if named and all(one in numbers for one in named) and rests_on_what_holds(home, line):
            yield field, line.removeprefix("- ").rpartition(" (")[0], tuple(numbers[one] for one in named)
