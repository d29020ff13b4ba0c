"""What speaks against a page as a dream would have it: an edit, a secret, lines lost, lines that nothing bears out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nacre.dream.checks import mark
from nacre.dream.reorganising.page import UNREADABLE, Page, Section, read_page, sections_of
from nacre.dream.reorganising.page_forms import Form, by_rules, by_writer, form_of
from nacre.dream.values import Step
from nacre.home.home import Home
from nacre.home.page_lines import is_current, is_session, memory_named, references_of, rests_on_what_holds
from nacre.home.redaction import without_secrets
from nacre.values.forgetting import TombstoneKind
from nacre.values.memory import Kind, Memory
from nacre.values.session import Speaker, StoredSession

SESSIONS_SHOWN = 10
MOST_LOST = 0.25
"""So much of what nacre told on a page may go without anything in its place (DESIGN 7)."""

DAY = len("- 2026-11-18")
"""Characters of a line that say when."""


def mark_of(home: Home, page: Page, project: str, words: str) -> str:
    """What a page's step rests on: the page as it is, and the memories that a writer's lines name."""
    lines = _lines_of(by_writer(form_of(project), sections_of(words)))
    named = {one.id: one for line in lines for one in _memories(home, line)}
    return f"{page.mark} {mark(named[one] for one in sorted(named))}" if named else page.mark


def page_objection(home: Home, step: Step) -> str | None:
    """What speaks against a page as a step would have it, as it is now; ``None`` where nothing does.

    Nobody edited it, nothing in it is secret, each new line names a source that bears it out, and nothing that it told
    is lost but for a quarter.
    """
    try:
        page = read_page(home, step.project)
    except UNREADABLE:
        return "the page cannot be read"
    if page.mark != step.mark.partition(" ")[0]:
        return "it was edited since"
    if not page.is_wanted:
        return "its front matter says dreams: false"
    if without_secrets(home.redactor, page.text + step.words) is None:
        return "the page holds what looks like a secret"
    if step.mark != mark_of(home, page, step.project, step.words):
        return "memories that it tells of have changed since"
    if not _is_borne_out(home, step, page):
        return "it would tell what no source says any more"
    before, lost = _lost(home, step, page)
    if lost > MOST_LOST * before:
        return f"{lost} of the {before} lines that nacre wrote would be lost"
    return None


def _is_borne_out(home: Home, step: Step, page: Page) -> bool:
    form, sections = form_of(step.project), sections_of(step.words)
    before, after = by_source(by_rules(form, sections_of(page.part))), by_source(by_rules(form, sections))
    kept = {one for one in after if after[one] == before.get(one) and stays(home, step.project, one)}
    if not all(_bears_out(home, step.project, source) for source in after.keys() - kept):
        return False
    return all(may_stand(home, form, step.project, line) for line in _lines_of(by_writer(form, sections)))


def may_stand(home: Home, form: Form, project: str, line: str) -> bool:
    """Whether a line of a writer's rests on something, and all of it holds and belongs to the page."""
    named = references_of(line)
    memories = _memories(home, line)
    sessions = [one for one in named if is_session(one)]
    if not named or len(memories) + len(sessions) < len(named) or (sessions and not project):
        return False
    today = home.today()
    return all(form.takes(one, project, today) for one in memories) and all(
        stays(home, project, one) for one in sessions
    )


def _memories(home: Home, line: str) -> list[Memory]:
    named = (memory_named(home, one) for one in references_of(line) if not is_session(one))
    return [one for one in named if one]


def _lines_of(sections: Iterable[Section]) -> list[str]:
    return [line for _, lines in sections for line in lines]


def by_source(sections: Iterable[Section]) -> dict[str, str]:
    """Lines that rules wrote, by what they name as their source; one that names none stands for itself."""
    return {" ".join(references_of(line)) or line: line for line in _lines_of(sections)}


def sessions_named(home: Home, source: str) -> list[StoredSession]:
    """The sessions of this machine that a line may mean; none where its source is a memory, or on another machine."""
    return home.sessions.find(source) if is_session(source) else []


def stays(home: Home, project: str, source: str) -> bool:
    """Whether what was told of a session may stay: it was not forgotten, nor is it known to be another project's."""
    if not is_session(source) or any(one.project != project for one in sessions_named(home, source)):
        return False
    forgotten = (one.value for one in home.tombstones.all() if one.kind is TombstoneKind.SESSION)
    return not any(one.startswith(source) for one in forgotten)


def _bears_out(home: Home, project: str, source: str) -> bool:
    if is_session(source):
        return [one.project for one in sessions_named(home, source)] == [project]
    return any(is_decision(home, one, project) for one in home.memories.find_like(source))


def is_decision(home: Home, memory: Memory, project: str) -> bool:
    """Whether a memory is a decision of the owner's that holds."""
    is_owners = memory.kind is Kind.DECISION and memory.speaker is Speaker.OWNER and memory.is_vouched
    return is_owners and is_current(memory, home.today()) and memory.project == project


def _lost(home: Home, step: Step, page: Page) -> tuple[int, int]:
    """How many lines nacre told on a page, and how many of them would go with nothing in their place."""
    form, was, becomes = form_of(step.project), sections_of(page.part), sections_of(step.words)
    before, after = by_source(by_rules(form, was)), by_source(by_rules(form, becomes))
    written = _lines_of(by_writer(form, was))
    named = {one for line in _lines_of(becomes) for one in references_of(line)}
    gone = [line for line in written if not named.intersection(references_of(line)) and rests_on_what_holds(home, line)]
    return len(before) + len(written), len(_lost_by_rules(home, before, after)) + len(gone)


def _lost_by_rules(home: Home, before: Mapping[str, str], after: Mapping[str, str]) -> Sequence[str]:
    """What a page told and does not any more, though nothing newer took its place and no memory of it is left."""
    days = [line[:DAY] for source, line in after.items() if is_session(source)]
    oldest = min(days) if len(days) >= SESSIONS_SHOWN else ""
    return [
        source
        for source, line in before.items()
        if source not in after
        and not (is_session(source) and (line[:DAY] <= oldest or sessions_named(home, source)))
        and not (source != line and home.memories.find_like(source))
    ]
