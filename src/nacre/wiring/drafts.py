"""Files while a plan is made: each is read once, and changed by one host after the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nacre.hosts import files
from nacre.hosts.files import Text, Untouchable
from nacre.hosts.host import Target
from nacre.hosts.json_text import Unparsable
from nacre.hosts.pieces import WholeFile
from nacre.settings import Settings
from nacre.values.wiring import FileChange, HostCommand, LeftAlone, WiringWish
from nacre.wiring.own_memory import OwnMemories
from nacre.wiring.ownership import Servers
from nacre.wiring.record import Wired, digest
from nacre.wiring.ways import init_command, roots_for

_OWN_MODE, _PROJECT_MODE = 0o600, 0o644
_EMPTY = frozenset({"", "{}", '{"version":1}'})
"""What is left of a file that nacre made, once nacre is out of it."""


def put(words: str, target: Target) -> str:
    """A text with what is nacre's in it."""
    for piece in target.pieces:
        words = piece.put(words)
    return words


def dropped(words: str, target: Target) -> str:
    """A text without it."""
    for piece in target.pieces:
        words = piece.drop(words)
    return words


@dataclass(slots=True)
class _Draft:
    text: Text
    words: str
    is_there: bool
    mode: int
    is_pristine: bool
    hosts: list[str] = field(default_factory=list)
    whats: list[str] = field(default_factory=list)
    is_whole: bool = False


class Drafts:
    """Files while a plan is made: several hosts may share one."""

    def __init__(self, settings: Settings, wired: Wired, *, is_removal: bool) -> None:
        self._settings = settings
        self._is_removal = is_removal
        self._drafts: dict[Path, _Draft] = {}
        self.left_alone: list[LeftAlone] = []
        self.servers = Servers(settings, wired, is_removal=is_removal)
        self.own_memories = OwnMemories(wired)

    def take(self, wish: WiringWish, target: Target, change: Callable[[str, Target], str]) -> None:
        """Change a file for a host; one that cannot be is left alone, with the reason."""
        if not target.pieces:
            return
        try:
            path = files.real_place(target.path, roots_for(self._settings, target.path, wish.project))
            draft = self._drafts.get(path)
            text = draft.text if draft else files.read(path)
            before = draft.words if draft else text.words
            target = self.servers.spared(path, before, wish, target, is_put=change is put)
            target = self.own_memories.spared(path, before, wish, target, is_put=change is put)
            words = change(before, target)
            draft = draft or self._opened(path, wish, target, text)
        except (Untouchable, Unparsable) as error:
            self.own_memories.fail(wish, target)
            if change is put or _may_hold(target):
                self._leave(target.path, wish, error)
            return
        self.own_memories.settle()
        if change is dropped and words == draft.words:
            return  # nothing of it is there
        self._drafts[path] = draft
        draft.words, draft.is_there = words, draft.is_there or (change is put and bool(words))
        draft.is_whole = draft.is_whole or any(isinstance(piece, WholeFile) for piece in target.pieces)
        draft.hosts += [wish.host] if wish.host not in draft.hosts else []
        draft.whats += [target.what] if target.what not in draft.whats else []

    def words_at(self, path: Path) -> str:
        """What a file is to hold; nothing where that cannot be told."""
        draft = self._drafts.get(Path(os.path.realpath(path)))
        try:
            return draft.words if draft else files.read(path).words
        except Untouchable:
            return ""

    def may_run(self, command: HostCommand) -> bool:
        """Whether a host's own command may be run: not one that writes into a file that is left alone."""
        return not {one.path for one in self.left_alone}.intersection(command.touches)

    def _leave(self, path: Path, wish: WiringWish, error: Exception) -> None:
        again = init_command(wish, *(["--uninstall"] if self._is_removal else []))
        if isinstance(error, Unparsable):
            hint = f"mend the file, then run {again}"
        elif self._is_removal:
            hint = "take out by hand what is nacre's in it"
        else:
            hint = f"change it by hand, or make it a file of your own, then run {again}"
        one = LeftAlone(path, wish.host, str(error), hint)
        self.left_alone += [one] if one not in self.left_alone else []

    def _opened(self, path: Path, wish: WiringWish, target: Target, text: Text) -> _Draft:
        mode = _PROJECT_MODE if wish.project and path.is_relative_to(wish.project) else _OWN_MODE
        is_pristine = text.content is None or dropped(text.words, target) == text.words
        return _Draft(text, text.words, text.content is not None, mode, is_pristine)

    def restore(self, wired: Wired, needed: set[Path]) -> None:
        """Make of files that nothing else changed what they were before nacre."""
        real = {Path(os.path.realpath(path)) for path in needed}
        for path, draft in self._drafts.items():
            written = wired.files.get(str(path))
            if path in real:
                continue
            is_bare = "".join(draft.words.split()) in _EMPTY
            if is_bare and (draft.is_whole or (written and not written.before)):
                draft.is_there = False
            elif written and digest(draft.text.content) == written.after and written.backup:
                before = _as_before(Path(written.backup), written.before)
                draft.words = draft.words if before is None else before

    def changes(self) -> tuple[FileChange, ...]:
        """Every file, also those that stay as they are."""
        return tuple(
            FileChange(
                path, draft.text.content,
                draft.text.encoded(draft.words) if draft.is_there else None,
                tuple(draft.hosts), ", ".join(draft.whats), draft.mode, draft.is_pristine,
            )
            for path, draft in self._drafts.items()
        )  # fmt: skip


def _as_before(backup: Path, expected: str) -> str | None:
    try:
        text = files.read(backup)
        return text.words if digest(text.content) == expected else None
    except Untouchable:
        return None


def _may_hold(target: Target) -> bool:
    """Whether something of nacre's may be in a file that cannot be changed: what cannot be told may be."""
    try:
        words = files.read(target.path).words
        return dropped(words, target) != words
    except (Untouchable, Unparsable):
        return True
