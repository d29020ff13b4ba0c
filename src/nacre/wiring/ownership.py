"""Whose a server of nacre's name is: what the owner wrote is never changed, nor silently doubled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nacre.hosts import claude_code
from nacre.hosts.host import Target
from nacre.hosts.json_text import Unparsable
from nacre.hosts.pieces import Piece, ServerPiece, TomlServer
from nacre.hosts.servers import Server
from nacre.settings import Settings
from nacre.values.wiring import LeftAlone, WiringWish
from nacre.wiring.record import Wired, digest
from nacre.wiring.ways import init_command, targets_of, way_of

_THEIRS = "the server nacre in it, which nacre init did not write, stays"
_STAYS = "agents go on with it"
_TWICE = "to have them once: claude mcp remove -s user nacre; or keep yours: nacre init --host claude-code --plain"


class Servers:
    """The servers of a plan. ``kept`` are those of the owner; ``put`` those that are nacre's when it is done."""

    def __init__(self, settings: Settings, wired: Wired, *, is_removal: bool) -> None:
        self._settings = settings
        self._wired = wired
        self._is_removal = is_removal
        self.kept: list[LeftAlone] = []
        self.put: list[tuple[Path, tuple[str, ...]]] = []

    def spared(self, path: Path, words: str, wish: WiringWish, target: Target, *, is_put: bool) -> Target:
        """What may be done in a file that holds ``words``: all but what would change a server of the owner's."""
        pieces: list[Piece] = []
        for piece in target.pieces:
            if not isinstance(piece, ServerPiece):
                pieces.append(piece)
                continue
            found = piece.server(words)
            if found and not self._is_own(path, words, wish, piece, found):
                if self._is_removal or (is_put and piece.put(words) != words):
                    self._keep(path, wish, f"{_THEIRS}{_how(found)}", _STAYS if self._is_removal else _hint(wish))
                continue
            pieces.append(piece)
            if is_put and (mine := piece.server(piece.put(words))):
                self.put.append((path, mine.words))
        return replace(target, pieces=tuple(pieces))

    def look_beside(self, wish: WiringWish, words_at: Callable[[Path], str]) -> None:
        """A plugin has a server of its own: one of the owner's beside it doubles the tools."""
        if wish.host != claude_code.NAME or not claude_code.is_plugin(way_of(self._settings, wish)):
            return
        for target in targets_of(self._settings, replace(wish, plain=True)):
            for piece in target.pieces:
                if isinstance(piece, ServerPiece) and (found := _server_at(piece, words_at(target.path))):
                    reason = f"{_THEIRS}{_how(found)}; with the plugin's, agents have nacre's tools twice"
                    self._keep(target.path, wish, reason, _TWICE)

    def _is_own(self, path: Path, words: str, wish: WiringWish, piece: ServerPiece, found: Server) -> bool:
        """Whether a server is nacre's: as it was written there, or, where no record tells, as it would be written."""
        if found.words in self._wired.servers.get(str(path), ()) or (path, found.words) in self.put:
            return True
        if isinstance(piece, TomlServer) and piece.is_marked(words):
            return True
        if self._wired.nacre:
            return not any(one.place == wish.place for one in self._wired.wishes) and piece.put(words) == words
        return piece.put(words) == words or self._is_as_left(path)

    def _is_as_left(self, path: Path) -> bool:
        """Whether a file is as nacre left it, by a record from before servers were recorded."""
        left = self._wired.files.get(str(path))
        return left is not None and path.is_file() and digest(path.read_bytes()) == left.after

    def _keep(self, path: Path, wish: WiringWish, reason: str, hint: str) -> None:
        one = LeftAlone(path, wish.host, reason, hint)
        self.kept += [one] if one not in self.kept else []


def _server_at(piece: ServerPiece, words: str) -> Server | None:
    try:
        return piece.server(words)
    except Unparsable:
        return None


def _hint(wish: WiringWish) -> str:
    return f"agents use that one; to have nacre's, take it out and run {init_command(wish)}"


def _how(server: Server) -> str:
    """What it runs, without what it is given: that may be a secret."""
    return f": it runs {server.words[0]}" if server.words else ""
