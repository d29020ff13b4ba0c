"""Old memories that later actions or statements contradict."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from nacre.base.frozen import frozen
from nacre.base.text import count_tokens, excerpt, one_line, words
from nacre.home.home import Home
from nacre.learn.extract import doubt, is_agreed, is_quiet, may_be_shown
from nacre.learn.prompts import MOST_MEMORIES, DatedMemory, Doubt, Saying, room_for
from nacre.learn.sentences import is_content
from nacre.learn.writer import find_touched
from nacre.recall import recall as recall_recall
from nacre.values.memory import Kind, Memory, SessionFilter
from nacre.values.models import Capabilities
from nacre.values.recall import Filter, Mode, RecallQuery
from nacre.values.session import Action, Speaker, ToolCall, Trust, Turn

# -- Memories about renamed or deleted files and names ---------------------------------------------


_REMOVED = re.compile(r"(?:^|[;&|]\s*)(?:git )?rm (?!.*--cached)(?:-\S+ )*(?P<paths>[^;&|]+)")
_RENAMED = re.compile(r"(?:^|[;&|]\s*)(?:git )?mv (?:-\S+ )*(?P<path>[^\s;&|]+) (?P<to>[^\s;&|]+)")
_SUBSTITUTED = re.compile(
    r"\b(?:sed|perl) -\w*i.*?\bs([/|#])(?:\\b|\\<)?(\w{5,})(?:\\b|\\>)?\1(\w+)\1g"
)
_EVERYWHERE = re.compile(r"\b(?:fd|find|grep|ls-files|rg)\b|\*")
_OTHER_PLACE = re.compile(
    r"(?:^|/)(?:tmp|build|dist|backups?|node_modules|vendor|examples?|fixtures|testdata)/"
)
_NO_USE = re.compile(r"\bgit (?:add|commit|diff|log|mv|rm|show|status)\b|\bgh |\becho\b|[!|;]")
"""Commands that may name a thing that no longer exists."""
_REVERTED = re.compile(
    r"\bgit (?:checkout (?:\S+ )?--|restore|reset --hard|stash(?! pop| apply| list)|revert)"
)
_PATH = re.compile(r"[\w./@~-]*\w\.\w{1,8}|[\w.@~-]+(?:/[\w.@~-]+)+")
_SAYS_GONE = re.compile(
    r"\b(?:no longer|removed?|renamed?|deleted?|dropped|replaced?|deprecated|formerly|used to|was called)\b"
)
_MIN_NAME_CHARACTERS = 5


@frozen
class Gone:
    """A file or a name in code that a session renamed or deleted. ``why``: the action."""

    name: str
    why: str
    at: datetime
    successor: str = ""

    def is_named_in(self, text: str) -> bool:
        """Return True if a text names the thing, and says neither that it is gone nor its new name."""
        if "/" in self.name or _PATH.fullmatch(self.name):
            return any(map(self._is_file, _PATH.findall(text)))
        if _SAYS_GONE.search(text) or (self.successor and _word(self.successor).search(text)):
            return False
        return _word(self.name).search(text) is not None

    def _is_file(self, name: str) -> bool:
        """Return True for the old path of this file, or of a file in this folder."""
        name = name.strip("/")
        is_same = f"/{self.name}".endswith(f"/{name}") or f"/{self.name}/" in f"/{name}/"
        is_elsewhere = "/" not in name and _OTHER_PLACE.search(self.name)
        is_kept = self.successor and f"/{self.successor}".endswith(f"/{name}")
        return len(name) >= _MIN_NAME_CHARACTERS and is_same and not (is_elsewhere or is_kept)


def _word(name: str) -> re.Pattern[str]:
    """Return a pattern for a name as a whole word. A common word must precede a parenthesis."""
    if name.isalpha() and name[1:].islower():
        return re.compile(rf"\b{name}\(")
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-]|[.:/]\w)")


def find_gone(turns: Sequence[Turn]) -> list[Gone]:
    """Return the files and names that successful commands renamed or deleted, unless later turns use them."""
    gone: dict[str, Gone] = {}
    for turn in turns:
        for call in turn.tool_calls:
            for path in call.paths:
                gone.pop(path.removeprefix("./"), None)
            if turn.time is None or call.outcome != "ok":
                continue
            if call.action is Action.RUN:
                is_use = not _NO_USE.search(call.input)
                unused = {
                    name: thing
                    for name, thing in gone.items()
                    if not (is_use and _word(name).search(call.input))
                }
                by_command = _by_command(call, turn.time)
                gone = by_command if _REVERTED.search(call.input) else unused | by_command
                for thing in by_command.values():
                    gone.pop(thing.successor, None)
    return list(gone.values())


def _by_command(call: ToolCall, at: datetime) -> dict[str, Gone]:
    """Return the files that a command renames or deletes, and the names that it substitutes everywhere."""
    why = f"a later session ran: {one_line(call.input)}"
    moved = {
        path: _without_quotes(match["to"])
        for match in _RENAMED.finditer(call.input)
        if (path := _without_quotes(match["path"]))
    }
    removed = {
        _without_quotes(path): ""
        for match in _REMOVED.finditer(call.input)
        for path in match["paths"].split()
    }
    gone: dict[str, Gone] = {}
    for path, to in (moved | removed).items():
        is_folder = to.endswith("/") or (bool(to) and "." in path and "." not in to)
        new = f"{to.rstrip('/')}/{path.rpartition('/')[2]}" if is_folder else to
        is_hidden = "/." in f"/{path.removeprefix('../')}"  # often files of tools, which return
        gone |= {path: Gone(path, why, at, new)} if _PATH.fullmatch(path) and not is_hidden else {}
    for _, old, new in _SUBSTITUTED.findall(call.input) if _EVERYWHERE.search(call.input) else ():
        gone[old] = Gone(old, why, at, new)
    return gone


def _without_quotes(path: str) -> str:
    return path.strip("'\"").removeprefix("./")


def doubt_memories_of(home: Home, project: str, session: str, gone: Sequence[Gone]) -> int:
    """Record doubts about older memories that name a removed thing. Return the number of doubts."""
    count = 0
    for memory in home.memories.everything() if gone else ():
        if not memory.is_active or memory.project != project or memory.kind is Kind.EVENT:
            continue
        for thing in gone:
            if thing.at > memory.last_said and thing.is_named_in(memory.content):
                count += doubt(home, memory, thing.why, [session])
                break
    return count


# -- Daily check of old memories -------------------------------------------------------------------
# Once a day, a writer compares known memories with later turns of any session. Each memory is shown with separate
# evidence, because a writer that reads a whole session overlooks some of the listed memories. A doubt changes no
# memory, but is queued for review and shown with the memory.


_CHECKED_UNTIL, _LAST_DAY = "looked later", "looked later on"
_ONE_DAY = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
_MAX_LATEST_SESSIONS = 50
"""Maximum number of recent sessions per project that are checked."""

_SPEAKERS = (Speaker.OWNER, Speaker.AGENT)
_MAX_CHECKED = 60
_OVERHEAD_TOKENS = 25
"""Number of tokens for the number, day and speaker of each turn."""

_QUERY_CHARACTERS, _MAX_SAYINGS, _EXCERPT_CHARACTERS = 1_000, 12, 500


def due(home: Home, writer: str, able: Capabilities) -> list[DatedMemory]:
    """Return memories to check next, with the turns since they were last stated or checked.

    Only memories of active projects are returned, and only as many as the model can read.
    Memories without later turns are included, so that they count as checked.
    """
    checked = _read_checked(home)
    active = [memory for memory in home.memories.everything() if memory.is_active]
    last_days = {
        project: _find_finish(home, project)
        for project in {memory.project for memory in active}
        if project
    }
    later = (
        memory
        for memory in active
        if _since(memory, checked) + _ONE_DAY < last_days.get(memory.project or "", _NEVER)
    )
    checkable = _checkable(home, later, writer)
    due_now: list[DatedMemory] = []
    room = room_for(able, able.output)
    for memory in sorted(
        checkable, key=lambda item: (checked.get(item.id, ""), item.last_said, item.id)
    )[:_MAX_CHECKED]:
        until = last_days[memory.project or ""]
        sayings = _sayings_between(home, memory, _since(memory, checked), until, writer)
        room -= count_tokens(
            "\n".join([memory.content, *(saying.text for saying in sayings)])
        ) + _OVERHEAD_TOKENS * (1 + len(sayings))
        if room < 0 and due_now:
            break
        due_now.append(DatedMemory(memory, sayings, until.isoformat()))
        if sum(bool(checked_memory.sayings) for checked_memory in due_now) >= MOST_MEMORIES:
            break
    return due_now


def find_touched_by(
    home: Home, checked: Sequence[DatedMemory], doubts: Sequence[Doubt], writer: str
) -> list[DatedMemory]:
    """Return memories similar to doubtful memories, with the turns that caused the doubts."""
    seen = {item.memory.id for item in checked}
    near: list[DatedMemory] = []
    for project in dict.fromkeys(item.memory.project for item in doubts):
        own = [item for item in doubts if item.memory.project == project]
        sayings = sorted(
            {saying for item in own for saying in item.shown}, key=lambda saying: saying.at
        )
        others = (
            memory
            for memory in find_touched(home, project, writer, [item.clause for item in own])
            if memory.id not in seen
        )
        for memory in _checkable(
            home, (memory for memory in others if memory.project == project), writer
        ):
            later = tuple(saying for saying in sayings if saying.at > memory.last_said)
            near += [DatedMemory(memory, later)] if later else []
    return near


def _checkable(home: Home, memories: Iterable[Memory], writer: str) -> list[Memory]:
    """Return the memories to check. Events are skipped, because they stay true."""
    doubted = home.memories.stale()
    return [
        memory
        for memory in memories
        if memory.is_vouched
        and memory.kind is not Kind.EVENT
        and memory.id not in doubted
        and may_be_shown(home, memory, writer)
    ]


def days_to_look(home: Home, days: Collection[date]) -> list[date]:
    """Return the days for which the daily check has not run yet."""
    last_day = home.usage.value(_LAST_DAY)
    return sorted(day for day in days if day.isoformat() != last_day)


def note(home: Home, day: date, memories: Sequence[DatedMemory], doubts: Sequence[Doubt]) -> int:
    """Queue doubtful memories for review, and record when each memory was last checked.

    Return the number of queued memories.
    """
    with home.vault_lock, home.transaction():
        count = sum(
            doubt(home, item.memory, item.why, [saying.session for saying in item.shown])
            for item in doubts
        )
        checked = {**_read_checked(home), **{item.memory.id: item.until for item in memories}}
        home.usage.set_value(
            _CHECKED_UNTIL,
            json.dumps(
                {
                    memory_id: at
                    for memory_id, at in checked.items()
                    if home.memories.find(memory_id)
                }
            ),
        )
        home.usage.set_value(_LAST_DAY, day.isoformat())
    return count


def _since(memory: Memory, checked: Mapping[str, str]) -> datetime:
    """Return the time when a memory was last confirmed or checked."""
    at = checked.get(memory.id)
    return max(memory.last_said, datetime.fromisoformat(at)) if at else memory.last_said


def _find_finish(home: Home, project: str) -> datetime:
    """Return the time until which a project has only finished sessions."""
    newest = home.sessions.newest(SessionFilter(project=project), limit=_MAX_LATEST_SESSIONS)
    over = [session.ended for session in newest if session.ended and is_quiet(home, session)]
    begun = [
        session.session.started or session.ended
        for session in newest
        if not is_quiet(home, session)
    ]
    return min([max(over, default=_NEVER), *(session for session in begun if session)])


def _read_checked(home: Home) -> Mapping[str, str]:
    """Return the ISO time up to which each memory was checked, for each memory id."""
    return dict(json.loads(home.usage.value(_CHECKED_UNTIL) or "{}"))


def _sayings_between(
    home: Home, memory: Memory, since: datetime, until: datetime, writer: str
) -> tuple[Saying, ...]:
    """Return messages about the subject of a memory between two times, in chronological order.

    Sessions that state the memory, or that the writer may not see, are skipped.
    """
    admitted = Filter(projects=(memory.project or "",), strict=True, since=since)
    text = memory.content[:_QUERY_CHARACTERS]
    query = RecallQuery(
        text, filter=admitted, mode=Mode.LEXICAL, limit=_MAX_CHECKED, update=False, boost=False
    )

    def is_later(turn: Turn) -> bool:
        is_statement = (
            turn.speaker in _SPEAKERS and turn.trust is Trust.TRUSTED and is_content(turn)
        )
        return is_statement and turn.time is not None and since < turn.time <= until

    terms = words(memory.content)
    hits = recall_recall.search_sessions(home, query, admits=is_later, exact=False).turns
    own = {memory.source.session, *(confirmation.session for confirmation in memory.confirmed)}
    readable = {
        session
        for session in {hit.session.id for hit in hits} - own
        if _may_be_read(home, session, writer)
    }
    sayings = [
        Saying(
            hit.turn.time or since,
            hit.turn.speaker,
            excerpt(hit.turn.text, terms, _EXCERPT_CHARACTERS),
            hit.session.id,
        )
        for hit in hits
        if hit.session.id in readable
    ]
    return tuple(sorted(sayings[:_MAX_SAYINGS], key=lambda saying: saying.at))


def _may_be_read(home: Home, session: str, writer: str) -> bool:
    """Return True if a session has ended and a writer may see all of it."""
    rows = home.sessions.find(session)
    return bool(rows) and all(
        is_agreed(home.settings, row, writer) and is_quiet(home, row) for row in rows
    )
