"""Project pages, the owner's profile, and checks of a writer's proposals."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, short_hash
from nacre.base.text import count, harmless, identifiers, shorten, words, written
from nacre.base.times import parsed, shown_day
from nacre.errors import InvalidMemoryError, UnusableVaultError
from nacre.home.change import page_path
from nacre.home.home import Home
from nacre.home.location import without_secrets
from nacre.home.projects import (
    REFERENCE_CHARACTERS,
    as_line,
    is_current,
    is_session,
    memory_named,
    references_of,
    rests_on_what_holds,
)
from nacre.hosts.files import blocks_of, drop_blocks, put_block
from nacre.learn.sentences import language_of
from nacre.llm.calibration import calibration_of
from nacre.llm.failures import Schema
from nacre.memories.statements import negations, new_word, read, swaps, whole_numbers
from nacre.memories.usage import is_protected
from nacre.review.consolidate import DreamAction, MemoriesById, PageDraft, Section, Step
from nacre.sessions.topics import summarise
from nacre.store.memories import UsageById
from nacre.values.memory import Expiry, Intent, Kind, Memory, SessionFilter, TombstoneKind
from nacre.values.session import SessionKind, Speaker, StoredSession, Summary, Topic
from nacre.vault.documents import load, split


def plan_merging(
    memories: Iterable[Memory], usage: UsageById, protected: Sequence[str]
) -> list[Step]:
    """Plan to merge unprotected memories of the same kind and project whose text is almost the same."""
    groups: dict[tuple[object, ...], list[Memory]] = defaultdict(list)
    for memory in memories:
        groups[memory.kind, memory.project, memory.inbox, written(memory.content)].append(memory)
    steps = []
    for group in groups.values():
        keeper, *duplicates = sorted(
            group,
            key=lambda memory: (is_protected(memory, protected), *weight(memory, usage)),
            reverse=True,
        )
        ends = tuple(
            memory.id
            for memory in duplicates
            if contains(keeper, memory) and not is_protected(memory, protected)
        )
        if ends:
            steps.append(
                Step(
                    DreamAction.MERGE,
                    ends,
                    keeper.id,
                    keeper.subject,
                    "the texts are almost identical",
                )
            )
    return steps


def contains(keeper: Memory, merged: Memory) -> bool:
    """Return True if nothing is lost when ``keeper`` replaces ``merged``."""
    is_as_sure = have_same_terms(keeper, merged) and keeper.is_owners >= merged.is_owners
    return is_as_sure and written(keeper.content) == written(merged.content)


def have_same_terms(left: Memory, right: Memory) -> bool:
    """Return True if two memories have the same trust, validity, scope and contexts."""
    keys = {left.canonical_key, right.canonical_key} - {None}
    names = ("trust", "proposed", "scope", "valid", "expiry", "expires_on")
    return (
        len(keys) < 2
        and all(getattr(left, name) == getattr(right, name) for name in names)
        and set(left.triggers) == set(right.triggers)
        and set(left.suppressed_contexts) == set(right.suppressed_contexts)
    )


def weight(memory: Memory, usage: UsageById) -> tuple[Any, ...]:
    """Return a sort key that is highest for the memory to keep.

    It compares trust, then speaker, use and age.
    """
    used = usage[memory.id]
    mentions = len(memory.confirmed) + used.recall_count
    return memory.is_vouched, memory.is_owners, mentions, memory.last_said, memory.id


# -- Clusters of similar memories ---------------------------------------------


MERGED = "merged"
"""Front matter key for the details of a writer's merge."""

MOST_TOGETHER = 8
"""Maximum number of memories in a cluster."""

_MAX_COMPARED = 20_000
_MERGE_REST = timedelta(days=7)
"""Time after a merge until the memory is examined again."""

_MAX_CHARACTERS = 1_500
_CLAIMS = frozenset({Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.LESSON, Kind.RELATIONSHIP})

Cluster = tuple[Memory, ...]


def clusters(home: Home, memories: Sequence[Memory]) -> list[Cluster]:
    """Return groups of memories that might say the same, most similar first.

    All memories in a group are similar to each other. Without vectors, there are no groups.
    """
    protected = home.settings.texts("forgetting.protect")
    eligible = [
        memory.id
        for memory in memories
        if memory.is_vouched
        and memory.expiry is not Expiry.CORE
        and len(memory.content) <= _MAX_CHARACTERS
        and not is_protected(memory, protected)
        and not _rests(memory, home.now())
    ][-_MAX_COMPARED:]
    by_row = home.memories.rows_of(eligible)
    limits = calibration_of(home.vectors.model(), home.vectors.seen())
    pairs = home.vectors.near_pairs(list(by_row), least=limits.ask_more)
    near = [pair for pair in pairs if may_be_one(by_row[pair[0]], by_row[pair[1]])]
    return [tuple(by_row[row] for row in sorted(group)) for group in _linked_completely(near)]


def may_be_one(left: Memory, right: Memory) -> bool:
    """Return True if two memories may be merged if they mean the same."""
    of_one_kind = left.kind is right.kind or {left.kind, right.kind} <= _CLAIMS
    return of_one_kind and left.shares_place(right) and have_same_terms(left, right)


def _rests(memory: Memory, now: datetime) -> bool:
    noted = memory.extra.get(MERGED)
    merged = parsed(str(noted.get("at"))) if isinstance(noted, dict) else None
    return merged is not None and now - merged < _MERGE_REST


def _linked_completely(pairs: Sequence[tuple[int, int, float]]) -> list[list[int]]:
    joined = {frozenset(pair[:2]) for pair in pairs}
    group_of: dict[int, list[int]] = {}
    for left, right, _ in pairs:
        first, second = group_of.setdefault(left, [left]), group_of.setdefault(right, [right])
        if first is second or len(first) + len(second) > MOST_TOGETHER:
            continue
        if all(frozenset((mine, theirs)) in joined for mine in first for theirs in second):
            first += second
            group_of |= dict.fromkeys(second, first)
    groups = {id(group_of[left]): group_of[left] for left, _, _ in pairs}
    return [group for group in groups.values() if len(group) > 1]


def fingerprint(cluster: Sequence[Memory]) -> str:
    """Return a fingerprint of a cluster's memories."""
    return short_hash(
        *sorted(f"{memory.id}\0{memory.kind}\0{memory.content}" for memory in cluster)
    )


# -- Checks of a writer's proposals -------------------------------------------
# Code decides the clear cases, and a second model call the others.


_NUMBER = re.compile(r"\d+")
_WHOLE_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:[.,:/-]\d+)*")
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_OF_CODE = re.compile(r"[/._\\@=()]|::")
_MAX_ADDED_CHARACTERS = 100
_DENIAL = r"not|never|cannot|\w+n['’]t|nicht|nie|niemals|kein\w*|pas|jamais|nunca|jamás|não"
_DENIES = re.compile(rf"\b(?:{_DENIAL})\b|不|别|没|禁止", re.IGNORECASE)
_NARROWS = re.compile(
    rf"\b(?:{_DENIAL}|no|none|nobody|nothing|nowhere|neither|nor|without|avoid|leave out|only|except|lack\w*|ohne|nur"
    r"|sans|sin|sem)\b|不|别|没|无|禁止|只|仅",
    re.IGNORECASE,
)
"""Negations, and other words that can limit a statement."""


def mark(memories: Iterable[Memory]) -> str:
    """Return a fingerprint of the memories that a step depends on."""
    return short_hash(
        *(
            f"{memory.id}\0{memory.kind}\0{memory.content}\0{memory.speaker}\0{memory.trust}"
            for memory in memories
        )
    )


def unfit(step: Step, memories: MemoriesById) -> str | None:
    """Return the reason to reject a writer's step, or ``None``."""
    named = [memories[memory] for memory in (step.into or "", *step.ends)]
    if step.mark != mark(named):
        return "the memories have changed since"
    if not all(may_be_one(named[0], memory) for memory in named[1:]):
        return "they differ in project, trust or validity"
    if any(memory.is_owners and not named[0].is_owners for memory in named[1:]):
        return "an agent's statement would replace the owner's"
    if step.action is DreamAction.MERGE:
        return _unlike_a_merge(step, named)
    later, *earlier = named
    if any(memory.kind in (Kind.EVENT, Kind.TODO) for memory in named):
        return "events stay true, and a todo ends when it is done"
    if not all(
        (last_stated(memory), memory.id) < (last_stated(later), later.id) for memory in earlier
    ):
        return "the memory to end is the later statement"
    return None


def last_stated(memory: Memory) -> datetime:
    """Return when a memory was last stated, regardless of later edits."""
    return max((memory.created, *(confirmation.at for confirmation in memory.confirmed)))


def _unlike_a_merge(step: Step, named: Sequence[Memory]) -> str | None:
    if step.words and len({memory.speaker for memory in named}) > 1:
        return "one is from the owner, the other from an agent"
    words, sources = step.words or named[0].content, [memory.content for memory in named]
    if len(words) > sum(map(len, sources)) + _MAX_ADDED_CHARACTERS:
        return "the text is longer than all memories together"
    for source in sources:
        if missing := _missing(source, words):
            return f"the text leaves out {missing}"
    return _unlike_in_new_words(words, sources) if step.words else None


def unlike_sources(words: str, sources: Sequence[str]) -> str | None:
    """Return the reason why a line does not summarise ``sources`` correctly, or ``None``.

    A correct line adds no number, option, path, name or negation, and keeps a negation that all
    sources share.
    """
    source_text = "\n".join(sources)
    if added := _added(words, sources) or _new_name(words, source_text):
        return f"the line adds {added}"
    if _DENIES.search(words) and not _NARROWS.search(source_text):
        return "the line adds a negation"
    is_denied = all(map(_DENIES.search, sources))
    return "the line loses a negation" if is_denied and not _NARROWS.search(words) else None


def _new_name(words: str, source_text: str) -> str | None:
    stems = {word.stem for word in read(source_text).tokens}
    names = (token for token in read(words).tokens if token.is_name)
    return next(
        (
            token.text
            for token in names
            if token.stem not in stems and token.text.lower() not in source_text.lower()
        ),
        None,
    )


def _added(words: str, sources: Sequence[str]) -> str | None:
    source_text = "\n".join(sources)
    source_numbers = _WHOLE_NUMBER.findall(whole_numbers(source_text))
    numbers = _WHOLE_NUMBER.findall(whole_numbers(words))
    new = next((number for number in numbers if number not in source_numbers), None)
    return new or _missing(words, source_text) or swaps(words, sources)


def _unlike_in_new_words(words: str, sources: Sequence[str]) -> str | None:
    if added := _added(words, sources) or new_word(words, sources):
        return f"the text adds {added}"
    is_denied = bool(negations(words)) != bool(negations("\n".join(sources)))
    return "the text loses or adds a negation" if is_denied else None


def _missing(text: str, source_text: str) -> str | None:
    text, source_text = whole_numbers(text), whole_numbers(source_text)
    numbers = {number.lstrip("0") for number in _NUMBER.findall(source_text)}
    options = set(_OPTION.findall(source_text))
    names = (name.rstrip(".") for name in identifiers(text) if _OF_CODE.search(name.rstrip(".")))
    absent = (
        *(number for number in _NUMBER.findall(text) if number.lstrip("0") not in numbers),
        *(option for option in _OPTION.findall(text) if option not in options),
        *(name for name in names if name.lower() not in source_text.lower()),
    )
    return next(iter(absent), None)


# -- Pages in the vault -------------------------------------------------------
# A page contains a person's text and, between two markers, the sections that nacre writes.


PROFILE = "profile.md"
"""Path of the owner's profile in the vault."""

UNREADABLE = (FileNotFoundError, UnicodeDecodeError, InvalidMemoryError, UnusableVaultError)

_NOTE = "*`nacre dream` rewrites this part; your text outside of it is kept.*"
_HEADING = "## "
_FALSE_WORDS = frozenset({"false", "no", "off"})


@frozen
class Page:
    """A page of the vault, and nacre's part of it.

    ``hash``: ``None`` for a missing file. ``is_wanted``: False if the front matter forbids changes.
    """

    text: str
    part: str
    hash: bytes | None
    is_wanted: bool

    @property
    def mark(self) -> str:
        """The content hash in hexadecimal, or an empty string for a missing file."""
        return self.hash.hex() if self.hash else ""


def path_of(project: str) -> str:
    """Return the path of a project's page, or of the profile for an empty ``project``."""
    return page_path(project) if project else PROFILE


def read_page(home: Home, project: str) -> Page:
    """Read a project's page, or the profile for an empty ``project``.

    A missing profile is empty. Raises the errors in ``UNREADABLE``.
    """
    path = path_of(project)
    if not project and not home.vault.exists(path):
        return Page("", "", None, is_wanted=True)
    data = home.vault.read(path)
    text = data.decode("utf-8")
    front = load(split(text)[0] or "")
    return Page(
        text,
        "\n\n".join(blocks_of(text)).replace("\r\n", "\n"),
        bytes_hash(data),
        str(front.get("dreams") or "").lower() not in _FALSE_WORDS,
    )


def page_write(home: Home, project: str, words: str) -> Intent:
    """Return the write that replaces nacre's part of a page with ``words``, but do not perform it.

    Empty ``words`` remove the part.
    """
    page = read_page(home, project)
    former = page.text if page.hash else None
    text = put_block(page.text, words) if words else drop_blocks(page.text)
    return Intent("write", path_of(project), text, page.hash, former=former)


def sections_of(part: str) -> list[Section]:
    """Split nacre's part of a page into sections.

    Lines before the first heading have an empty title.
    """
    sections: list[tuple[str, list[str]]] = []
    for line in part.splitlines():
        if line.startswith(_HEADING):
            sections.append((line.removeprefix(_HEADING).strip(), []))
        elif line.startswith("- "):
            sections = sections or [("", [])]
            sections[-1][1].append(line)
    return [(title, tuple(lines)) for title, lines in sections]


def compose(sections: Sequence[Section]) -> str:
    """Join the sections that are not empty into nacre's part of a page."""
    filled = [(title, lines) for title, lines in sections if lines]
    parts = []
    for number, (title, lines) in enumerate(filled):
        parts += ["", f"{_HEADING}{title}", ""] if number else [f"{_HEADING}{title}", "", _NOTE, ""]
        parts += lines
    return "\n".join(parts)


def plain_words(text: str, characters: int) -> str:
    """Return a text as one short line without active Markdown."""
    return shorten(harmless(text), characters).replace("<", "&lt;").replace("[[", "\\[\\[")


# -- Sections that a writer fills ---------------------------------------------


# The docstrings of these classes are sent to the writer, and are part of the recorded prompts.


class Line(Schema):
    """A line of a page, and the numbers of what it rests on."""

    text: str
    numbers: list[int]


class ProjectPage(Schema):
    """What a writer makes of a project."""

    stage: list[Line]
    next_steps: list[Line]
    blockers: list[Line]
    constraints: list[Line]
    timeline: list[Line]
    notes: list[Line]


class ProfilePage(Schema):
    """What a writer makes of the owner's own words."""

    profile: list[Line]
    preferences: list[Line]
    constraints: list[Line]
    relationships: list[Line]


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
class Form:
    """The structure of a page.

    ``sections``: the answer field, heading and maximum number of lines of each section. ``ranks``:
    the fields by importance. Only lines of the first may share sources with others.
    """

    prompt: str
    answer: type[msgspec.Struct]
    sections: tuple[tuple[str, str, int], ...]
    ranks: tuple[str, ...]
    speakers: tuple[Speaker, ...]
    kinds: tuple[Kind, ...]

    def written(self, part: str) -> list[Section]:
        """Return the sections that a writer fills."""
        return [section for section in sections_of(part) if self._is_written(section)]

    def ruled(self, part: str) -> dict[str, str]:
        """Return the lines of the sections that rules fill, keyed by source."""
        return by_source(section for section in sections_of(part) if not self._is_written(section))

    def _is_written(self, section: Section) -> bool:
        return any(section[0] == title for _, title, _ in self.sections)

    def takes(self, memory: Memory, project: str, today: date) -> bool:
        """Return True if a line of this page may cite a memory."""
        return (
            memory.project == (project or None)
            and is_current(memory, today)
            and memory.is_vouched
            and memory.speaker in self.speakers
            and memory.kind in self.kinds
        )


OF_PROJECT = Form(
    "page-1",
    ProjectPage,
    (
        ("stage", "Stage", 2),
        ("next_steps", "Next steps", 8),
        ("blockers", "Blockers", 6),
        ("constraints", "Constraints", 10),
        ("timeline", "Timeline", 8),
        ("notes", "Notes", 8),
    ),
    ("stage", "blockers", "next_steps", "constraints", "timeline", "notes"),
    (Speaker.OWNER, Speaker.AGENT),
    tuple(Kind),
)
OF_OWNER = Form(
    "profile-1",
    ProfilePage,
    (
        ("profile", "Profile", 4),
        ("preferences", "Preferences", 20),
        ("constraints", "Constraints", 20),
        ("relationships", "Relationships", 20),
    ),
    ("profile", "relationships", "constraints", "preferences"),
    (Speaker.OWNER,),
    (Kind.PREFERENCE, Kind.FACT, Kind.LESSON, Kind.RELATIONSHIP, Kind.DECISION),
)
"""Form of the profile, which contains only the owner's own words."""


def form_of(project: str) -> Form:
    """Return the form of a project's page, or of the profile for an empty ``project``."""
    return OF_PROJECT if project else OF_OWNER


# -- Checks of a new page -----------------------------------------------------


SESSIONS_SHOWN = 10
MOST_LOST = 0.25
"""Maximum share of nacre's lines that a dream may remove without replacement."""

DAY = len("- 2026-11-18")
"""Length of the bullet and date at the start of a line."""


def mark_of(home: Home, page: Page, project: str, words: str) -> str:
    """Return a fingerprint of the page and of the memories that the writer's lines cite."""
    lines = _lines_of(form_of(project).written(words))
    named = {memory.id: memory for line in lines for memory in _memories(home, line)}
    return f"{page.mark} {mark(named[key] for key in sorted(named))}" if named else page.mark


def page_objection(home: Home, step: Step) -> str | None:
    """Return the reason why a step must not write its page, or ``None``.

    Possible reasons are an edit or lock by the owner, secrets, unsupported lines, and the loss of
    many lines.
    """
    try:
        page = read_page(home, step.project)
    except UNREADABLE:
        return "the page cannot be read"
    if page.mark != step.mark.partition(" ")[0]:
        return "the page was edited since"
    if not page.is_wanted:
        return "its front matter says dreams: false"
    if without_secrets(home.redactor, page.text + step.words) is None:
        return "the page seems to contain a secret"
    if step.mark != mark_of(home, page, step.project, step.words):
        return "some of its memories have changed since"
    if not _is_borne_out(home, step, page):
        return "the page would contain lines that no source supports any more"
    before, lost = _count_lost_lines(home, step, page)
    if lost > MOST_LOST * before:
        return f"{lost} of the {before} lines written by nacre would be lost"
    return None


def _is_borne_out(home: Home, step: Step, page: Page) -> bool:
    form = form_of(step.project)
    before = form.ruled(page.part)
    for source, line in form.ruled(step.words).items():
        is_kept = line == before.get(source) and stays(home, step.project, source)
        if not is_kept and not _bears_out(home, step.project, source):
            return False
    return all(
        may_stand(home, form, step.project, line) for line in _lines_of(form.written(step.words))
    )


def may_stand(home: Home, form: Form, project: str, line: str) -> bool:
    """Return True if a line cites only sources that exist, are current and fit the page."""
    named = references_of(line)
    memories = _memories(home, line)
    sessions = [reference for reference in named if is_session(reference)]
    if not named or len(memories) + len(sessions) < len(named) or (sessions and not project):
        return False
    today = home.today()
    return all(form.takes(memory, project, today) for memory in memories) and all(
        stays(home, project, session) for session in sessions
    )


def _memories(home: Home, line: str) -> list[Memory]:
    references = (reference for reference in references_of(line) if not is_session(reference))
    return [memory for reference in references if (memory := memory_named(home, reference))]


def _lines_of(sections: Iterable[Section]) -> list[str]:
    return [line for _, lines in sections for line in lines]


def by_source(sections: Iterable[Section]) -> dict[str, str]:
    """Return the lines keyed by their sources. A line without sources is keyed by itself."""
    return {" ".join(references_of(line)) or line: line for line in _lines_of(sections)}


def sessions_named(home: Home, source: str) -> list[StoredSession]:
    """Return the sessions on this machine that ``source`` might name, if it names any."""
    return home.sessions.find(source) if is_session(source) else []


def stays(home: Home, project: str, source: str) -> bool:
    """Return True if ``source`` names a session that is not forgotten and not in another project."""
    if not is_session(source) or any(
        session.project != project for session in sessions_named(home, source)
    ):
        return False
    return not any(
        tombstone.kind is TombstoneKind.SESSION and tombstone.value.startswith(source)
        for tombstone in home.tombstones.all()
    )


def _bears_out(home: Home, project: str, source: str) -> bool:
    if is_session(source):
        return [session.project for session in sessions_named(home, source)] == [project]
    return any(is_decision(home, memory, project) for memory in home.memories.find_like(source))


def is_decision(home: Home, memory: Memory, project: str) -> bool:
    """Return True if a memory is a current decision by the owner about the project."""
    return (
        memory.kind is Kind.DECISION
        and memory.is_owners
        and memory.is_vouched
        and is_current(memory, home.today())
        and memory.project == project
    )


def _count_lost_lines(home: Home, step: Step, page: Page) -> tuple[int, int]:
    form = form_of(step.project)
    before, after = form.ruled(page.part), form.ruled(step.words)
    written, becomes = _lines_of(form.written(page.part)), _lines_of(sections_of(step.words))
    cited = {reference for line in becomes for reference in references_of(line)}
    lost = [
        line
        for line in written
        if not cited.intersection(references_of(line)) and rests_on_what_holds(home, line)
    ]
    days = [line[:DAY] for source, line in after.items() if is_session(source)]
    oldest = min(days) if len(days) >= SESSIONS_SHOWN else ""
    # Lines that newer lines replace, or whose source is gone, do not count as lost.
    lost += [
        source
        for source, line in before.items()
        if source not in after
        and not (is_session(source) and (line[:DAY] <= oldest or sessions_named(home, source)))
        and not (source != line and home.memories.find_like(source))
    ]
    return len(before) + len(written), len(lost)


# -- Sessions worth a page ----------------------------------------------------


MOST_READ = 30
"""Maximum number of sessions to read per project."""

LEAST_SESSIONS, LEAST_REQUESTS = 2, 2
"""Minimum number of new sessions and of different requests that justifies a page."""

_TOPIC_CHARACTERS = 15
_OPENING_WORDS = 3


@frozen
class SummarisedSession:
    """A session, its summary, and the owner's requests with the most important first."""

    stored: StoredSession
    summary: Summary
    topics: tuple[Topic, ...]


def latest(
    home: Home, project: str, since: datetime | None, limit: int = MOST_READ
) -> list[SummarisedSession]:
    """Return the owner's sessions that ended after ``since``, newest first.

    Sessions whose transcripts are gone are left out.
    """
    criteria = SessionFilter(project=project, kind=SessionKind.MAIN, since=since)
    newest = home.sessions.newest(criteria, limit=limit)
    sessions = []
    for stored in newest:
        file = stored.file or ""
        if not stored.ended or (since is not None and stored.ended <= since):
            continue
        if file and (os.path.exists(file) or home.archive.find(file) is not None):
            turns = home.sessions.read_turns(stored.row)
            summary = summarise(stored.session, turns)
            topics = (
                topic
                for topic in summary.topics
                if topic.speaker is Speaker.OWNER and len(topic.text) >= _TOPIC_CHARACTERS
            )
            sessions.append(SummarisedSession(stored, summary, tuple(topics)))
    return sessions


def are_worth_a_page(sessions: Sequence[SummarisedSession]) -> bool:
    """Return True if the sessions contain enough different requests to justify a page."""
    topics = [topic.text for session in sessions for topic in session.topics]
    requests = {" ".join(words(text)[:_OPENING_WORDS]) for text in topics}
    return len(sessions) >= LEAST_SESSIONS and len(requests) >= LEAST_REQUESTS


# -- Writing project pages ----------------------------------------------------


DECISIONS_SHOWN = 12
_REQUEST_CHARACTERS, _DECISION_CHARACTERS = 200, 300
_MAX_FILES, _MAX_COMMITS = 3, 3
_FILE_CHARACTERS = 80
_PLAIN_PATH = re.compile(r"(?!/|~|[A-Za-z]:|\.\.)[\w.@+ /\\\[\]-]+")
_SENTENCE_ENDS = tuple('.?!…:。？！)"”')


def plan_pages(
    home: Home,
    memories: Sequence[Memory],
    project: str | None,
    drafts: Mapping[str, PageDraft],
) -> tuple[list[Step], list[tuple[str, str]]]:
    """Plan the pages that have new sessions, a writer's draft, or outdated lines.

    Return the steps, and the paths of pages that cannot be written, with reasons. ``memories`` must
    be active. ``drafts`` are keyed by project, which is empty for the profile.
    """
    steps, objections = [], []
    for slug in (*sorted({file.slug for file in home.files.projects()}), ""):
        if project in (None, slug):
            own = [memory for memory in memories if memory.project == slug]
            step = _page_step(home, slug, own, drafts.get(slug))
            objection = page_objection(home, step) if step else None
            if objection:
                objections.append((path_of(slug), objection))
            elif step:
                steps.append(step)
    return steps, objections


def _page_step(
    home: Home, slug: str, memories: Sequence[Memory], draft: PageDraft | None
) -> Step | None:
    try:
        page = read_page(home, slug)
    except UNREADABLE:
        return None
    sessions = latest(home, slug, _since(home, page)) if slug else []
    is_worth = are_worth_a_page(sessions)
    written = _sections_to_write(home, page, slug, draft)
    before = form_of(slug).written(page.part)
    if not (is_worth or draft or written != before):
        return None
    words = home.redactor.clean(_part(home, slug, memories, page, written, is_worth=is_worth))
    if words == page.part or not (words or before):
        return None
    why = [draft.why] if draft else []
    if is_worth:
        why.insert(0, f"{count(len(sessions), 'session')} up to {_day(sessions[0].stored.ended)}")
    return Step(
        DreamAction.PAGE,
        (),
        None,
        path_of(slug),
        "; ".join(why) or "its sources no longer hold",
        words=words,
        by=draft.by if draft else "",
        mark=mark_of(home, page, slug, words),
        project=slug,
    )


def _sections_to_write(
    home: Home, page: Page, project: str, draft: PageDraft | None
) -> list[Section]:
    form = form_of(project)
    if draft:
        return list(draft.sections)
    return [
        (title, tuple(line for line in lines if may_stand(home, form, project, line)))
        for title, lines in form.written(page.part)
    ]


def _since(home: Home, page: Page) -> datetime | None:
    ends = [
        session.ended
        for source in OF_PROJECT.ruled(page.part)
        for session in sessions_named(home, source)
    ]
    return max((end for end in ends if end), default=None)


def _part(
    home: Home,
    slug: str,
    memories: Sequence[Memory],
    page: Page,
    written: Sequence[Section],
    *,
    is_worth: bool,
) -> str:
    sessions = latest(home, slug, None, SESSIONS_SHOWN) if is_worth else []
    recent = activity(home, slug, page, sessions)
    if not recent and not any(lines for _, lines in written):
        return ""
    decisions = [memory for memory in memories if is_decision(home, memory, slug)]
    decisions.sort(key=lambda decision: decision.last_said, reverse=True)
    decided = tuple(map(_decision_line, decisions[:DECISIONS_SHOWN]))
    return compose([*written, ("Recent activity", tuple(recent)), ("Decisions", decided)])


def activity(home: Home, slug: str, page: Page, sessions: Sequence[SummarisedSession]) -> list[str]:
    """Return lines about the latest sessions, newest first.

    Lines of the page about sessions on other machines are kept.
    """
    lines = tuple(_session_line(home, session) for session in sessions if session.topics)
    line_of_source = by_source([("", lines)])
    for source, line in form_of(slug).ruled(page.part).items():
        if source not in line_of_source and stays(home, slug, source):
            line_of_source[source] = line
    return sorted(line_of_source.values(), key=lambda line: line[:DAY], reverse=True)[
        :SESSIONS_SHOWN
    ]


def _session_line(home: Home, session: SummarisedSession) -> str:
    request = session.topics[0].text
    bare = language_of(request).trim(request) or request  # without greetings
    text = plain_words(bare[:1].upper() + bare[1:], _REQUEST_CHARACTERS)
    sentences = [_sentence(text)]
    paths = (file.path for file in session.summary.modified)  # below the project's folder
    files = [
        f"`{path}`"
        for path in paths
        if len(path) <= _FILE_CHARACTERS and _PLAIN_PATH.fullmatch(path)
    ]
    done = [f"changed {_first_names(files, _MAX_FILES)}"] if files else []
    if commits := session.summary.commits:
        done.append(
            f"{'commits' if len(commits) > 1 else 'commit'} {_first_names(commits, _MAX_COMMITS)}"
        )
    if done:
        sentences.append(_sentence(f"{done[0][:1].upper()}{'; '.join(done)[1:]}"))
    own = session.stored.session
    short = f"{own.tool}:{own.native_id[:REFERENCE_CHARACTERS]}"
    reference = short if len(home.sessions.find(short)) == 1 else own.id
    return as_line(f"{_day(session.stored.ended)}: {' '.join(sentences)}", [reference])


def _sentence(text: str) -> str:
    return text if text.endswith(_SENTENCE_ENDS) else f"{text}."


def _decision_line(memory: Memory) -> str:
    text = _sentence(plain_words(memory.content, _DECISION_CHARACTERS))
    return as_line(f"{_day(memory.last_said)}: {text}", [memory.id[-REFERENCE_CHARACTERS:]])


def _first_names(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _day(moment: datetime | None) -> str:
    return shown_day(moment) if moment else "?"
