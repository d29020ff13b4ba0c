"""Old memories that later actions or statements contradict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from nacre.base.frozen import frozen
from nacre.base.text import one_line
from nacre.home.home import Home
from nacre.learn.extract import doubt
from nacre.values.memory import Kind
from nacre.values.session import Action, ToolCall, Turn

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
