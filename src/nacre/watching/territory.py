"""What is watched: the folders in which tools keep transcripts, and which transcript a changed file belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.ingestion import discovery
from nacre.transcripts.adapter import Root
from nacre.transcripts.databases import log_of

_LOGS = ("-wal", "-journal")
"""What a database writes beside itself; a change there is a change of the database."""

_UNTOLD = ("-shm", ".lock", ".tmp")


@dataclass(frozen=True, slots=True)
class Territory:
    """Roots of tools, folders whose every transcript counts, and single files."""

    roots: tuple[Root, ...]
    folders: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    scattered: tuple[Path, ...] = ()
    """Folders of tools whose transcripts lie in several files each: any change there may be one of a transcript."""

    def deep(self) -> list[Path]:
        """The folders that exist and are watched with all that is below them; none lies within another."""
        return _outermost(folder for folder, is_deep in self._wanted() if is_deep and folder.is_dir())

    def flat(self) -> list[Path]:
        """The folders that exist and of which only the files in them count."""
        deep = self.deep()
        there = dict.fromkeys(folder for folder, is_deep in self._wanted() if not is_deep and folder.is_dir())
        return [folder for folder in there if not any(folder.is_relative_to(above) for above in deep)]

    def missing(self) -> list[Path]:
        """The folders that would be watched if they were there."""
        return list(dict.fromkeys(folder for folder, _ in self._wanted() if not folder.is_dir()))

    def _wanted(self) -> Iterator[tuple[Path, bool]]:
        """Folders, and whether what lies deeper counts. Of a tool's folder only those parts in which patterns look:
        beside its transcripts lie caches and logs that change all the time."""
        for root in self.roots:
            for pattern in root.patterns:
                *above, _ = pattern.split("/")
                fixed = list(takewhile(lambda part: "*" not in part, above))
                yield root.folder.joinpath(*fixed), len(fixed) < len(above)
        yield from ((folder, True) for folder in self.folders)
        yield from ((file.parent, False) for file in self.files)

    def transcript(self, path: Path) -> Path | None:
        """The transcript that a path is, or that a side file belongs to; ``None`` for everything else."""
        for log in _LOGS:
            if path.name.endswith(log):
                path = path.with_name(path.name.removesuffix(log))
        if path in self.files or any(discovery.fits(root, path) for root in self.roots):
            return path
        if discovery.may_be_transcript(path) and any(path.is_relative_to(folder) for folder in self.folders):
            return path
        return None

    def is_hint(self, path: Path) -> bool:
        """Whether a change of what is no transcript is a reason to look at all of them: a folder may hold new ones."""
        if path.name.endswith(_UNTOLD):
            return False
        return path.is_dir() or any(path.is_relative_to(folder) for folder in self.scattered)


def territory_of(home: Home, paths: Sequence[Path]) -> Territory:
    """What to watch: the folders and files named, or where tools keep transcripts. Raises NotFound."""
    if not paths:
        found = list(discovery.tool_roots(home, discovery.projects_of(home), []))
        scattered = tuple(root.folder for adapter, root in found if adapter.beside not in (None, log_of))
        folders = tuple(Path(folder).expanduser() for folder in home.settings.texts("ingest.roots"))
        return Territory(tuple(root for _, root in found), folders, scattered=scattered)
    named = [path.expanduser().absolute() for path in paths]
    for path in named:
        if not path.exists():
            raise NotFound(f"there is nothing at {path}", hint="check the path")
    return Territory(
        (), tuple(path for path in named if path.is_dir()), tuple(path for path in named if not path.is_dir())
    )


def _outermost(folders: Iterable[Path]) -> list[Path]:
    def found() -> Iterator[Path]:
        last: Path | None = None
        for folder in sorted(set(folders)):
            if last is None or not folder.is_relative_to(last):
                last = folder
                yield folder

    return list(found())
