"""Projects' pages: a part of nacre's own tells what was done lately and what was decided, and what a writer made of the
project's memories; the rest is a person's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from nacre.dream.reorganising.page import (
    UNREADABLE,
    Page,
    Section,
    composed,
    path_of,
    plain_words,
    read_page,
    sections_of,
)
from nacre.dream.reorganising.page_checks import (
    DAY,
    SESSIONS_SHOWN,
    by_source,
    is_decision,
    mark_of,
    may_stand,
    page_objection,
    sessions_named,
    stays,
)
from nacre.dream.reorganising.page_forms import by_rules, by_writer, form_of
from nacre.dream.reorganising.promotion import Told, latest, weighed
from nacre.dream.values import DreamAction, PageDraft, Promotion, Step
from nacre.extraction.reading.cues import language_of
from nacre.home.home import Home
from nacre.home.page_lines import REFERENCE_CHARACTERS, as_line
from nacre.platform.days import shown_day
from nacre.text.passages import count
from nacre.values.memory import Memory

DECISIONS_SHOWN = 12
WINDOW = timedelta(days=90)
"""A page that tells of no session yet begins with those that ended so lately; with a backfill, with all."""

_ASKED_CHARACTERS, _DECISION_CHARACTERS = 200, 300
_FILES, _COMMITS = 3, 3
_FILE_CHARACTERS = 80
_PATH = re.compile(r"(?!/|~|[A-Za-z]:|\.\.)[\w.@+ /\\\[\]-]+")
_ENDS = tuple('.?!…:。？！)"”')


def promoted(
    home: Home, memories: Sequence[Memory], project: str | None, drafts: Mapping[str, PageDraft], *, backfill: bool
) -> tuple[list[Step], list[Promotion]]:
    """The pages to write: of projects with sessions since theirs was written, those with a draft of a writer's, those
    with lines of a writer's that hold no more; and what was found of each project with new sessions.

    ``memories`` are the active ones; ``drafts`` are by project, that of the profile under the empty one.
    """
    steps, promotions = [], []
    for slug in sorted({one.slug for one in home.files.projects()}):
        if project in (None, slug):
            of_it = [one for one in memories if one.project == slug]
            found, step = _promotion(home, slug, of_it, drafts.get(slug), backfill=backfill)
            promotions += [found] if found else []
            steps += [step] if step else []
    profile = _profile(home, drafts.get("")) if project is None else None
    return [*steps, *([profile] if profile else [])], promotions


def _promotion(
    home: Home, slug: str, memories: Sequence[Memory], draft: PageDraft | None, *, backfill: bool
) -> tuple[Promotion | None, Step | None]:
    try:
        page = read_page(home, slug)
    except UNREADABLE:
        return None, None
    told = latest(home, slug, _since(home, page, backfill=backfill))
    found = weighed(slug, told, home.now()) if told else None
    is_worth = found is not None and not found.failed
    written = _written(home, page, slug, draft)
    if not (is_worth or draft or written != _written_before(page, slug)):
        return found, None
    words = home.redactor.clean(_part(home, slug, memories, page, written, is_worth=is_worth))
    if words == page.part or not (words or _written_before(page, slug)):
        return found, None
    days = f"{count(len(told), 'session')} up to {_day(told[0].stored.ended)}" if told else ""
    why = [f"{days}, score {found.score:.2f}"] if found and is_worth else []
    return _settled(home, page, slug, words, draft, why, found)


def _settled(
    home: Home, page: Page, slug: str, words: str, draft: PageDraft | None, why: Sequence[str], found: Promotion | None
) -> tuple[Promotion | None, Step | None]:
    """The step that writes a page, unless something speaks against it; then what was found says that."""
    told = "; ".join([*why, *([draft.why] if draft else [])]) or "what it rests on holds no more"
    step = Step(
        DreamAction.PAGE, (), None, path_of(slug), told, words=words, by=draft.by if draft else "",
        mark=mark_of(home, page, slug, words), project=slug,
    )  # fmt: skip
    against = page_objection(home, step)
    if against:
        return (replace(found, failed=(against,)) if found else None), None
    return (found if found and not found.failed else None), step


def _profile(home: Home, draft: PageDraft | None) -> Step | None:
    """The step that writes the owner's profile, or takes from it what holds no more."""
    try:
        page = read_page(home, "")
    except UNREADABLE:
        return None
    written = _written(home, page, "", draft)
    words = home.redactor.clean(composed(written))
    if words == page.part or not (draft or page.part):
        return None
    return _settled(home, page, "", words, draft, (), None)[1]


def _written(home: Home, page: Page, project: str, draft: PageDraft | None) -> list[Section]:
    """What a writer made of a page, now or before: of that, what still holds."""
    form = form_of(project)
    if draft:
        return by_writer(form, draft.sections)
    return [
        (title, tuple(line for line in lines if may_stand(home, form, project, line)))
        for title, lines in _written_before(page, project)
    ]


def _written_before(page: Page, project: str) -> list[Section]:
    return by_writer(form_of(project), sections_of(page.part))


def _since(home: Home, page: Page, *, backfill: bool) -> datetime | None:
    """When the latest session ended that the page tells of; ``None`` where all count."""
    if backfill:
        return None
    told = [one.ended for source in _ruled_before(page) for one in sessions_named(home, source)]
    return max((one for one in told if one), default=home.now() - WINDOW)


def _ruled_before(page: Page) -> dict[str, str]:
    return by_source(by_rules(form_of("project"), sections_of(page.part)))


def _part(
    home: Home, slug: str, memories: Sequence[Memory], page: Page, written: Sequence[Section], *, is_worth: bool
) -> str:
    """Nacre's part of a page: what a writer made of it, the latest sessions, and the latest decisions."""
    told = activity(home, slug, page, latest(home, slug, None, SESSIONS_SHOWN) if is_worth else [])
    decisions = [one for one in memories if is_decision(home, one, slug)]
    decisions = sorted(decisions, key=lambda one: one.last_said, reverse=True)[:DECISIONS_SHOWN]
    if not told and not any(lines for _, lines in written):
        return ""
    decided = tuple(_decision_line(one) for one in decisions)
    return composed([*written, ("Recent activity", tuple(told)), ("Decisions", decided)])


def activity(home: Home, slug: str, page: Page, sessions: Sequence[Told]) -> list[str]:
    """Lines of the latest sessions, the newest first: those given, and what a page told before.

    That stays for as long as it is among the latest: another machine may have told it.
    """
    fresh = by_source([("", tuple(_session_line(home, one) for one in sessions if one.topics))])
    before = _ruled_before(page)
    kept = {source: line for source, line in before.items() if source not in fresh and stays(home, slug, source)}
    return sorted((fresh | kept).values(), key=lambda line: line[:DAY], reverse=True)[:SESSIONS_SHOWN]


def _session_line(home: Home, told: Told) -> str:
    said = [_sentence(_asked(told.topics[0].text))]
    files = [shown for file in told.summary.modified if (shown := _file(file.path))]
    done = [f"changed {_some(files, _FILES)}"] if files else []
    if commits := told.summary.commits:
        done.append(f"{'commits' if len(commits) > 1 else 'commit'} {_some(commits, _COMMITS)}")
    if done:
        said.append(_sentence(f"{done[0][:1].upper()}{'; '.join(done)[1:]}"))
    return as_line(f"{_day(told.stored.ended)}: {' '.join(said)}", [_reference(home, told)])


def _sentence(text: str) -> str:
    return text if text.endswith(_ENDS) else f"{text}."


def _asked(text: str) -> str:
    """What was asked for, without greetings and the like."""
    bare = language_of(text).trim(text) or text
    return plain_words(bare[:1].upper() + bare[1:], _ASKED_CHARACTERS)


def _decision_line(memory: Memory) -> str:
    said = _sentence(plain_words(memory.content, _DECISION_CHARACTERS))
    return as_line(f"{_day(memory.last_said)}: {said}", [memory.id[-REFERENCE_CHARACTERS:]])


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _file(path: str) -> str:
    """A file below the project's folder as code; empty for another, or one whose name is no plain name."""
    return f"`{path}`" if len(path) <= _FILE_CHARACTERS and _PATH.fullmatch(path) else ""


def _reference(home: Home, told: Told) -> str:
    session = told.stored.session
    short = f"{session.tool}:{session.native_id[:REFERENCE_CHARACTERS]}"
    return short if len(home.sessions.find(short)) == 1 else session.id


def _day(moment: datetime | None) -> str:
    return shown_day(moment) if moment else "?"
