"""Projects' pages: a part of nacre's own tells what was done lately and what was decided; the rest is a person's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from nacre.dream.reorganising.promotion import Told, latest, weighed
from nacre.dream.values import DreamAction, Promotion, Step
from nacre.errors import MemoryInvalid, VaultUnusable
from nacre.extraction.reading.cues import language_of
from nacre.home.home import Home
from nacre.home.projects import page_path
from nacre.home.redaction import without_secrets
from nacre.hosts.marked import blocks_of, put_block
from nacre.platform.ids import bytes_hash
from nacre.text.passages import harmless, shorten
from nacre.values.memory import Kind, Memory
from nacre.values.operation import Intent
from nacre.values.session import Speaker
from nacre.vault.front_matter import load, split

SESSIONS_SHOWN, DECISIONS_SHOWN = 10, 12
MOST_LOST = 0.25
"""So much of what the page told may have no source any more (DESIGN 7)."""

WINDOW = timedelta(days=90)
"""A page that tells of no session yet begins with those that ended so lately; with a backfill, with all."""

_NOTE = "*`nacre dream` writes this part anew; what you write outside of it stays.*"
_TOPICS = 2
_TOPIC_CHARACTERS, _DECISION_CHARACTERS = 160, 220
_FILES, _COMMITS, _MOST_CHANGED = 3, 3, 5
_FILE_CHARACTERS = 80
_ID_CHARACTERS = 8
_PATH = re.compile(r"(?!/|~|[A-Za-z]:|\.\.)[\w.@+ /\\\[\]-]+")
_SOURCE = re.compile(r"\(([^()\s]+)\)$")
_ENDS = tuple('.?!…:。？！)"”')
_NO = frozenset({"false", "no", "off"})


@dataclass(frozen=True, slots=True)
class _Page:
    """A page as it is, the part of it that nacre wrote, and whether its owner wants one."""

    text: str
    part: str
    hash: bytes
    is_wanted: bool


def promoted(
    home: Home, memories: Sequence[Memory], project: str | None, *, backfill: bool = False
) -> tuple[list[Step], list[Promotion]]:
    """The pages to write, of projects with sessions since theirs was written, and what was found of each such project.

    ``memories`` are the active ones.
    """
    steps, promotions = [], []
    for slug in sorted({one.slug for one in home.files.projects()}):
        if project in (None, slug):
            found, step = _promotion(home, slug, [one for one in memories if one.project == slug], backfill=backfill)
            promotions += [found] if found else []
            steps += [step] if step else []
    return steps, promotions


def _promotion(
    home: Home, slug: str, memories: Sequence[Memory], *, backfill: bool
) -> tuple[Promotion | None, Step | None]:
    try:
        page = _read(home, slug)
    except _UNREADABLE:
        return None, None
    told = latest(home, slug, _since(home, page, backfill=backfill))
    if not told:
        return None, None
    found = weighed(slug, told, home.now())
    words = home.redactor.clean(_part(home, slug, memories))
    if found.failed or not words or words == page.part:
        return found, None
    days = f"{len(told)} session{'s' * (len(told) > 1)} up to {_day(told[0].stored.ended)}"
    step = Step(
        DreamAction.PAGE, (), None, page_path(slug), f"{days}, score {found.score:.2f}", words=words,
        mark=page.hash.hex(), project=slug,
    )  # fmt: skip
    why = page_objection(home, step)
    return (replace(found, failed=(why,)), None) if why else (found, step)


def _since(home: Home, page: _Page, *, backfill: bool) -> datetime | None:
    """When the latest session ended that the page tells of; ``None`` where all count."""
    if backfill:
        return None
    told = [one.ended for source in _sources(page.part) if ":" in source for one in home.sessions.find(source)]
    return max((one for one in told if one), default=home.now() - WINDOW)


def _read(home: Home, slug: str) -> _Page:
    data = home.vault.read(page_path(slug))
    text = data.decode("utf-8")
    front, _ = split(text)
    wanted = str(load(front or "").get("dreams") or "").lower()
    return _Page(text, "\n\n".join(blocks_of(text)).replace("\r\n", "\n"), bytes_hash(data), wanted not in _NO)


_UNREADABLE = (FileNotFoundError, UnicodeDecodeError, MemoryInvalid, VaultUnusable)


def page_objection(home: Home, step: Step) -> str | None:
    """What speaks against a page as a step would have it, as it is now; ``None`` where nothing does.

    Nobody edited it, nothing in it is secret, each line names a source that bears it out, and nothing that it told
    goes missing with its source but for a quarter.
    """
    try:
        page = _read(home, step.project)
    except _UNREADABLE:
        return "the page cannot be read"
    if page.hash.hex() != step.mark:
        return "it was edited since"
    if not page.is_wanted:
        return "its front matter says dreams: false"
    if without_secrets(home.redactor, page.text + step.words) is None:
        return "the page holds what looks like a secret"
    if any(not _bears_out(home, step.project, source) for source in _sources(step.words)):
        return "it would tell what no source says any more"
    before = _sources(page.part)
    gone = [one for one in before if one not in _sources(step.words) and not _is_known(home, one)]
    if len(gone) > MOST_LOST * len(before):
        return f"{len(gone)} of the {len(before)} things that it told have no source any more"
    return None


def page_write(home: Home, step: Step) -> Intent:
    """The write of a page: nacre's part at its place, else at the end, and not a byte more. The page is as planned."""
    page = _read(home, step.project)
    return Intent("write", page_path(step.project), put_block(page.text, step.words), page.hash, former=page.text)


def _sources(part: str) -> list[str]:
    """What the lines of nacre's part name as their sources; a line without one stands for itself."""
    lines = [line for line in part.splitlines() if line.startswith("- ")]
    return [found[1] if (found := _SOURCE.search(line)) else line for line in lines]


def _is_known(home: Home, source: str) -> bool:
    return bool(home.sessions.find(source) if ":" in source else home.memories.find_like(source))


def _bears_out(home: Home, slug: str, source: str) -> bool:
    if ":" in source:
        return [one.project for one in home.sessions.find(source)] == [slug]
    return any(
        one.id.endswith(source) and _is_decision(one, slug, home.now()) for one in home.memories.find_like(source)
    )


def _is_decision(memory: Memory, slug: str, now: datetime) -> bool:
    """Whether a memory is a decision of the owner's that holds."""
    is_owners = memory.kind is Kind.DECISION and memory.speaker is Speaker.OWNER and memory.is_vouched
    is_over = (memory.valid.until and memory.valid.until < now.date()) or (
        memory.expires_on and memory.expires_on <= now.date()
    )
    holds = not (memory.retired or memory.superseded_by or memory.inbox or is_over)
    return is_owners and holds and memory.project == slug


def _part(home: Home, slug: str, memories: Sequence[Memory]) -> str:
    """Nacre's part of a page: the latest sessions, and the latest decisions."""
    told = [one for one in latest(home, slug, None, SESSIONS_SHOWN) if one.topics]
    decisions = [one for one in memories if _is_decision(one, slug, home.now())]
    decisions = sorted(decisions, key=lambda one: one.last_said, reverse=True)[:DECISIONS_SHOWN]
    if not told:
        return ""
    activity = [*_most_changed(told), *(_session_line(home, one) for one in told)]
    decided = ["", "## Decisions", "", *(_decision_line(one) for one in decisions)] if decisions else []
    return "\n".join(["## Recent activity", "", _NOTE, "", *activity, *decided])


def _session_line(home: Home, told: Told) -> str:
    said = [_sentence(_asked(topic.text)) for topic in told.topics[:_TOPICS]]
    files = [shown for file in told.summary.modified if (shown := _file(file.path))]
    done = [f"changed {_some(files, _FILES)}"] if files else []
    if commits := told.summary.commits:
        done.append(f"{'commits' if len(commits) > 1 else 'commit'} {_some(commits, _COMMITS)}")
    if done:
        said.append(_sentence(f"{done[0][:1].upper()}{'; '.join(done)[1:]}"))
    return f"- {_day(told.stored.ended)}: {' '.join(said)} ({_reference(home, told)})"


def _sentence(text: str) -> str:
    return text if text.endswith(_ENDS) else f"{text}."


def _asked(text: str) -> str:
    """What was asked for, without greetings and the like."""
    bare = language_of(text).trim(text) or text
    return _words(bare[:1].upper() + bare[1:], _TOPIC_CHARACTERS)


def _decision_line(memory: Memory) -> str:
    said = _sentence(_words(memory.content, _DECISION_CHARACTERS))
    return f"- {_day(memory.last_said)}: {said} ({memory.id[-_ID_CHARACTERS:]})"


def _most_changed(told: Iterable[Told]) -> Iterator[str]:
    """The files that several sessions changed, as one line."""
    counted = Counter(file.path for one in told for file in one.summary.modified if _file(file.path))
    shared = sorted((-count, path) for path, count in counted.items() if count > 1)
    most = [f"{_file(path)} ({-count} sessions)" for count, path in shared[:_MOST_CHANGED]]
    if most:
        yield from (f"Changed most: {', '.join(most)}.", "")


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _file(path: str) -> str:
    """A file below the project's folder as code; empty for another, or one whose name is no plain name."""
    return f"`{path}`" if len(path) <= _FILE_CHARACTERS and _PATH.fullmatch(path) else ""


def _reference(home: Home, told: Told) -> str:
    session = told.stored.session
    short = f"{session.tool}:{session.native_id[:_ID_CHARACTERS]}"
    return short if len(home.sessions.find(short)) == 1 else session.id


def _words(text: str, characters: int) -> str:
    """Words as one line that is nothing but words in Markdown."""
    return shorten(harmless(text), characters).replace("<", "&lt;").replace("[[", "\\[\\[")


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else "?"
