"""What wiring hosts would change: every file as it is and as it is to be. What is shown is what is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nacre.app.wiring.commands import commands_for
from nacre.app.wiring.record import Wired, digest, load
from nacre.app.wiring.ways import host_named, roots_for, targets_of, way_of
from nacre.hosts import files
from nacre.hosts.files import Text, Untouchable
from nacre.hosts.host import Target
from nacre.hosts.json_text import Unparsable
from nacre.hosts.pieces import WholeFile
from nacre.model.wiring import FileChange, LeftAlone, WiringPlan, WiringWish
from nacre.settings import Settings

_OWN_MODE, _PROJECT_MODE = 0o600, 0o644
_PATHS = "What was written holds paths of this machine: others who share the project's repository need their own."
_EMPTY = frozenset({"", "{}", '{"version":1}'})
"""What is left of a file that nacre made, once nacre is out of it."""


def plan(settings: Settings, wishes: Sequence[WiringWish]) -> WiringPlan:
    """What wiring these hosts would change. Raises InvalidInput."""
    drafts = _Drafts(settings)
    wired = load(settings.home)
    before = {one.place: one for one in wired.wishes}
    for wish in wishes:
        old = before.get(wish.place)
        for target in targets_of(settings, old) if old and old != wish else ():
            drafts.take(wish, target, _dropped)
    wanted = [(wish, target) for wish in wishes for target in targets_of(settings, wish)]
    drafts.restore(wired, {target.path for _, target in wanted})
    for wish, target in wanted:
        drafts.take(wish, target, _put)
    notes = [(wish.host, note) for wish in wishes for note in host_named(wish.host).notes(way_of(settings, wish))]
    shared = next((wish.host for wish in wishes if wish.project), None)
    notes += [(shared, _PATHS)] if shared else []
    commands = [one for wish in wishes for one in commands_for(settings, wish)]
    return WiringPlan(tuple(wishes), drafts.changes(), tuple(drafts.left_alone), tuple(commands), tuple(notes))


def plan_removal(settings: Settings, wishes: Sequence[WiringWish]) -> WiringPlan:
    """What taking these hosts' wiring out would change; files that nothing else changed become what they were.

    What another wiring needs stays. Raises InvalidInput.
    """
    drafts = _Drafts(settings)
    wired = load(settings.home)
    places = {wish.place for wish in wishes}
    kept = [wish for wish in wired.wishes if wish.place not in places]
    needed = {(one.path, repr(piece)) for wish in kept for one in targets_of(settings, wish) for piece in one.pieces}
    for wish in wishes:
        for target in _all_forms(settings, wish):
            left = tuple(piece for piece in target.pieces if (target.path, repr(piece)) not in needed)
            drafts.take(wish, replace(target, pieces=left), _dropped)
    drafts.restore(wired, {path for path, _ in needed})
    commands = [one for wish in wishes for one in commands_for(settings, wish, is_removal=True)]
    return WiringPlan(
        tuple(wishes), drafts.changes(), tuple(drafts.left_alone), tuple(commands), is_removal=True
    )  # fmt: skip


def _all_forms(settings: Settings, wish: WiringWish) -> Iterable[Target]:
    """The files of a wiring, in whichever form it was made."""
    forms = dict.fromkeys((replace(wish, plain=False, slot=True, tool_hook=True), replace(wish, plain=True)))
    return [target for form in forms for target in targets_of(settings, form)]


def _put(words: str, target: Target) -> str:
    for piece in target.pieces:
        words = piece.put(words)
    return words


def _dropped(words: str, target: Target) -> str:
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


class _Drafts:
    """Files while a plan is made: several hosts may share one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._drafts: dict[Path, _Draft] = {}
        self.left_alone: list[LeftAlone] = []

    def take(self, wish: WiringWish, target: Target, change: Callable[[str, Target], str]) -> None:
        """Change a file for a host; one that cannot be is left alone, with the reason."""
        if not target.pieces:
            return
        try:
            path = files.real_place(target.path, roots_for(self._settings, target.path, wish.project))
            draft = self._drafts.get(path) or self._opened(path, wish, target)
            words = change(draft.words, target)
        except (Untouchable, Unparsable) as error:
            self.left_alone.append(LeftAlone(target.path, wish.host, str(error), _remedy(error)))
            return
        if change is _dropped and words == draft.words:
            return  # nothing of it is there
        self._drafts[path] = draft
        draft.words, draft.is_there = words, draft.is_there or change is _put
        draft.is_whole = draft.is_whole or any(isinstance(piece, WholeFile) for piece in target.pieces)
        draft.hosts += [wish.host] if wish.host not in draft.hosts else []
        draft.whats += [target.what] if target.what not in draft.whats else []

    def _opened(self, path: Path, wish: WiringWish, target: Target) -> _Draft:
        text = files.read(path)
        mode = _PROJECT_MODE if wish.project and path.is_relative_to(wish.project) else _OWN_MODE
        is_pristine = text.content is None or _dropped(text.words, target) == text.words
        return _Draft(text, text.words, text.content is not None, mode, is_pristine)

    def restore(self, wired: Wired, needed: set[Path]) -> None:
        """Make of files that nothing else changed what they were before nacre."""
        real = {files.real_place(path, [Path(path.anchor)]) for path in needed}
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


def _remedy(error: Exception) -> str:
    if isinstance(error, Unparsable):
        return "mend the file, then run nacre init again"
    return "change it by hand, or make it a file of your own, then run nacre init again"
