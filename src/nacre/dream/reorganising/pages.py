"""Projects' pages: a part of nacre's own tells what was done lately and what was decided; the rest is a person's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
from nacre.values.forgetting import TombstoneKind
from nacre.values.memory import Kind, Memory
from nacre.values.operation import Intent
from nacre.values.session import Speaker, StoredSession
from nacre.vault.front_matter import load, split

SESSIONS_SHOWN, DECISIONS_SHOWN = 10, 12
MOST_LOST = 0.25
"""So much of what nacre told on a page may go without anything in its place (DESIGN 7)."""

WINDOW = timedelta(days=90)
"""A page that tells of no session yet begins with those that ended so lately; with a backfill, with all."""

_NOTE = "*`nacre dream` writes this part anew; what you write outside of it stays.*"
_ASKED_CHARACTERS, _DECISION_CHARACTERS = 200, 300
_FILES, _COMMITS = 3, 3
_FILE_CHARACTERS = 80
_ID_CHARACTERS = 8
_PATH = re.compile(r"(?!/|~|[A-Za-z]:|\.\.)[\w.@+ /\\\[\]-]+")
_SOURCE = re.compile(r"\(([^()\s]+)\)$")
_SESSION = re.compile(r"[\w.-]+:\S+")
_DAY = len("- 2026-11-18")
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
    words = home.redactor.clean(_part(home, slug, memories, _lines(page.part)))
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
    told = [one.ended for source in _lines(page.part) for one in _sessions(home, source)]
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

    Nobody edited it, nothing in it is secret, each new line names a source that bears it out, and nothing that it told
    is lost but for a quarter.
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
    before, after = _lines(page.part), _lines(step.words)
    kept = {one for one in after if after[one] == before.get(one) and _stays(home, step.project, one)}
    new = after.keys() - kept
    if not all(_bears_out(home, step.project, source) for source in new):
        return "it would tell what no source says any more"
    lost = len(_lost(home, before, after))
    if lost > MOST_LOST * len(before):
        return f"{lost} of the {len(before)} lines that nacre wrote would be lost"
    return None


def page_write(home: Home, step: Step) -> Intent:
    """The write of a page: nacre's part at its place, else at the end, and not a byte more. The page is as planned."""
    page = _read(home, step.project)
    return Intent("write", page_path(step.project), put_block(page.text, step.words), page.hash, former=page.text)


def _lines(part: str) -> dict[str, str]:
    """The lines of nacre's part by what they name as their sources; one that names none stands for itself."""
    lines = [line for line in part.splitlines() if line.startswith("- ")]
    return {found[1] if (found := _SOURCE.search(line)) else line: line for line in lines}


def _sessions(home: Home, source: str) -> list[StoredSession]:
    """The sessions of this machine that a line may mean; none where its source is a memory, or on another machine."""
    return home.sessions.find(source) if _SESSION.fullmatch(source) else []


def _bears_out(home: Home, slug: str, source: str) -> bool:
    if _SESSION.fullmatch(source):
        return [one.project for one in _sessions(home, source)] == [slug]
    return any(_is_decision(one, slug, home.now()) for one in home.memories.find_like(source))


def _lost(home: Home, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What a page told and does not any more, though nothing newer took its place and no memory of it is left."""
    days = [line[:_DAY] for source, line in after.items() if _SESSION.fullmatch(source)]
    oldest = min(days) if len(days) >= SESSIONS_SHOWN else ""
    return [
        source
        for source, line in before.items()
        if source not in after
        and not (_SESSION.fullmatch(source) and (line[:_DAY] <= oldest or _sessions(home, source)))
        and not (source != line and home.memories.find_like(source))
    ]


def _is_decision(memory: Memory, slug: str, now: datetime) -> bool:
    """Whether a memory is a decision of the owner's that holds."""
    is_owners = memory.kind is Kind.DECISION and memory.speaker is Speaker.OWNER and memory.is_vouched
    is_over = (memory.valid.until and memory.valid.until < now.date()) or (
        memory.expires_on and memory.expires_on <= now.date()
    )
    holds = not (memory.retired or memory.superseded_by or memory.inbox or is_over)
    return is_owners and holds and memory.project == slug


def _part(home: Home, slug: str, memories: Sequence[Memory], before: Mapping[str, str]) -> str:
    """Nacre's part of a page: the latest sessions, and the latest decisions.

    What was told before stays for as long as it is among the latest: another machine may have told it.
    """
    known = (_session_line(home, one) for one in latest(home, slug, None, SESSIONS_SHOWN) if one.topics)
    fresh = _lines("\n".join(known))
    stays = {source: line for source, line in before.items() if source not in fresh and _stays(home, slug, source)}
    told = sorted((fresh | stays).values(), key=lambda line: line[:_DAY], reverse=True)
    decisions = [one for one in memories if _is_decision(one, slug, home.now())]
    decisions = sorted(decisions, key=lambda one: one.last_said, reverse=True)[:DECISIONS_SHOWN]
    if not told:
        return ""
    decided = ["", "## Decisions", "", *(_decision_line(one) for one in decisions)] if decisions else []
    return "\n".join(["## Recent activity", "", _NOTE, "", *told[:SESSIONS_SHOWN], *decided])


def _stays(home: Home, slug: str, source: str) -> bool:
    """Whether what was told of a session may stay: it was not forgotten, nor is it known to be another project's."""
    if not _SESSION.fullmatch(source) or any(one.project != slug for one in _sessions(home, source)):
        return False
    forgotten = (one.value for one in home.tombstones.all() if one.kind is TombstoneKind.SESSION)
    return not any(one.startswith(source) for one in forgotten)


def _session_line(home: Home, told: Told) -> str:
    said = [_sentence(_asked(told.topics[0].text))]
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
    return _words(bare[:1].upper() + bare[1:], _ASKED_CHARACTERS)


def _decision_line(memory: Memory) -> str:
    said = _sentence(_words(memory.content, _DECISION_CHARACTERS))
    return f"- {_day(memory.last_said)}: {said} ({memory.id[-_ID_CHARACTERS:]})"


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
