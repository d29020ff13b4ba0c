"""Where a memory's file lies, and what a file's place says of the memory in it. Paths are relative to the vault."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol
from urllib.parse import quote

from nacre.base import files
from nacre.base import json as json_text
from nacre.base.ids import bytes_hash, to_millisecond
from nacre.base.text import count, harmless, one_line, shorten
from nacre.base.times import shown_day
from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.values.codec import stamp
from nacre.values.memory import MAX_BODY_BYTES, Kind, Memory
from nacre.values.session import Trust

LEDGER = "ledger.jsonl"
GIT_FOLDER = ".git"
DERIVED = frozenset({"MEMORY.md", "profile.md", "project.md", "README.md"})
OWN_PAGES = frozenset({"identity.md", "IDENTITY.md"})
"""What the owner tells agents of themselves, at the top of the vault; the profile is another such page."""

FOLDERS = frozenset({"global", "projects", "inbox", "retired"})
_SLUG_CHARACTERS = 60
_SLUG_BYTES = 120
"""A name of 255 bytes is too long for most file systems, one of 143 for some; an ending and a number are added."""

_DEVICES = [f"{port}{number}" for port in ("com", "lpt") for number in range(10)]
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *_DEVICES, "memory", "profile", "project", "readme"]
)
"""What Windows takes for a device, whatever the ending, and the names of derived pages."""

_WORDS = re.compile(r"[^\W_]+")
_LONGEST_NAME = 1000
_STEPS = 4


@dataclass(frozen=True, slots=True)
class Place:
    """What a file's folders say. ``kind`` is ``None`` in the inbox and directly under a scope."""

    project: str | None = None
    kind: Kind | None = None
    inbox: bool = False
    retired: bool = False


def is_memory_file(path: str) -> bool:
    """Whether a file of the vault holds a memory: Markdown, at the top or in a memory folder, not a derived page."""
    top, _, rest = path.partition("/")
    return (
        is_memory_name(path.rpartition("/")[2])
        and (not rest or top in FOLDERS)
        and path not in OWN_PAGES
        and not path.startswith(".")
        and "/." not in path
    )


def is_memory_name(name: str) -> bool:
    """Whether a file of that name holds a memory, if it lies where memories do."""
    return name[-3:] == ".md" and name not in DERIVED and name[0] != "."


def place_of(path: str) -> Place:
    """Read a memory's place from its path. Raises MemoryInvalid for a folder that is not a kind."""
    parts = PurePosixPath(path).parts
    retired = parts[0] == "retired" and len(parts) > 1
    parts = parts[1:] if retired else parts
    match parts:
        case ["inbox", _]:
            return Place(inbox=True, retired=retired)
        case ["projects", project, *folders, _]:
            return Place(project, _kind_of(folders), retired=retired)
        case ["global", *folders, _]:
            return Place(None, _kind_of(folders), retired=retired)
        case _:
            return Place(retired=retired)


def path_for(memory: Memory, is_taken: Callable[[str], bool]) -> str:
    """The path of a memory's file: its folder by metadata, its name from the subject, numbered when taken."""
    folder = folder_of(memory)
    slug = slugify(memory.subject) or memory.kind.value
    name = slug
    number = 1
    while is_taken(f"{folder}/{name}.md"):
        number += 1
        name = f"{slug}-{number}"
    return f"{folder}/{name}.md"


def folder_of(memory: Memory) -> str:
    """The folder a memory belongs in."""
    if memory.inbox:
        folder = "inbox"
    elif memory.project:
        folder = f"projects/{memory.project}/{memory.kind.value}"
    else:
        folder = f"global/{memory.kind.value}"
    return f"retired/{folder}" if memory.retired else folder


def normalise_remote(url: str) -> str:
    """``git@host:owner/name.git`` and ``https://user@host:8443/owner/name/`` become ``host/owner/name``.

    Ports are left out: a server's differ by the way in. So is ``ssh.``, the name that some have for ssh over HTTPS.
    """
    text = url.strip().replace("\\", "/")
    rest = re.sub(r"^[A-Za-z+]+://", "", text)
    has_scheme, text = rest != text, re.sub(r"^[^@/]+@", "", rest)
    if (
        has_scheme or text == rest
    ):  # "host:2222/owner/name" without a user is what was stored of a URL with a port
        text = re.sub(r"^([^/:]+):\d*(?=/)", r"\1", text)
    text = re.sub(r"^([^/:]{2,}):", r"\1/", text)
    text = re.sub(r"^(?:alt)?ssh\.(?=[^/]+\.)", "", re.sub(r"/{2,}", "/", text))
    return re.sub(r"(?:/\.?)+$", "", text).removesuffix(".git").lower()


def slugify(text: str) -> str:
    """A file or folder name from words, empty where there is none: the one door for names that are not nacre's own.

    Lower case, hyphens, letters and digits of any script in their composed form, at most 60 characters and 120 bytes:
    no separator, dot, mark of direction or device name is left, and two names never differ in case or composition
    alone.
    """
    words = _WORDS.findall(_folded(text))
    slug = "-".join(words)
    if len(slug) > _SLUG_CHARACTERS or len(slug.encode()) > _SLUG_BYTES:
        cut = slug.encode()[:_SLUG_BYTES].decode(errors="ignore")[:_SLUG_CHARACTERS]
        slug = cut.rpartition("-")[0] or cut
    return f"{slug}-x" if slug in _RESERVED else slug


def _folded(text: str) -> str:
    """Composed and in lower case, also what only becomes so in a second step."""
    text = text[:_LONGEST_NAME]
    for _ in range(_STEPS):
        text, before = (
            unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()),
            text,
        )
        if text == before:
            break
    return text


def _kind_of(folders: list[str]) -> Kind | None:
    if not folders:
        return None
    try:
        return Kind(folders[0])
    except ValueError:
        raise MemoryInvalid(
            f"{folders[0]!r} is not a kind of memory",
            hint=f"move the file into one of: {', '.join(Kind)}",
        ) from None


# ----------------------------------------------------------------------------
# Read, write and scan the vault's files; nothing leaves the vault, nothing is overwritten unseen.


MAX_FILE_BYTES = 2 * MAX_BODY_BYTES
"""Of a memory file, body and front matter; more is not read."""

_TOO_LARGE = f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB"
_LONGEST_NAME_FILES = 255
_WORTH_WRITING_AHEAD = 4
_SIDE_BY_SIDE = 8
_FARTHEST = 2**62
_TELLS_CHANGES = os.name == "posix"
_HAS_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")

_CHECKED_BYTES = 4096
"""So many bytes before the known end of a file tell whether it is still the same file up to there."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """One memory file as a scan sees it.

    ``path`` is relative to the vault. ``mtime_ns`` differs whenever one of the file's times does: what an editor or a
    copying tool sets back, the system's own note of the change tells. ``modified_ns`` is when it was last written.
    ``refusal`` says why it cannot be read.
    """

    path: str
    mtime_ns: int
    size: int
    modified_ns: int
    refusal: str = ""


class Watch(Protocol):
    """Whoever is told of each change in the vault."""

    def times(self) -> Mapping[str, tuple[int, int]]:
        """As :meth:`Vault.times`."""
        ...


class Vault:
    """The folder of memories."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ahead: dict[str, bytes] = {}
        self.watch: Watch | None = None
        """What knows the files' times without a look at each, where somebody watches the vault."""

    def prepare(self) -> None:
        """Create the folder where it is missing. Raises VaultUnusable, StoreUnusable."""
        if self.root.exists() and not self.root.is_dir():
            raise VaultUnusable(
                f"the vault path {self.root} is a file",
                hint="move it away, or point NACRE_HOME at another folder",
            )
        with _translated(self.root):
            files.make_folder(self.root)
            files.refuse_unsafe(self.root)

    def pages(self) -> dict[str, int]:
        """The folder of every project that has a page, and the ``mtime_ns`` of that page; 0 where a symbolic link leads
        to it, which :meth:`stat` refuses."""
        top = os.path.join(self.root, "projects")
        if not os.path.isdir(top):
            return {}
        is_link, found = os.path.islink(top), {}
        with _listed(top) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    page = os.lstat(os.path.join(top, entry.name, "project.md"))
                    is_plain = (
                        not is_link
                        and entry.is_dir(follow_symlinks=False)
                        and stat.S_ISREG(page.st_mode)
                    )
                    found[entry.name] = _times(page) if is_plain else 0
        return found

    def scan(self) -> list[FileStat]:
        """Every memory file's path, time and size; symbolic links are not followed. Those of a folder come in the order
        of their names, before those of the folders in it."""
        found = [_stat_of(path, seen) for path, seen in self.walk()]
        return sorted(found, key=lambda one: (one.path.split("/")[:-1], one.path))

    def paths(self) -> list[str]:
        """Every document in Markdown, whether it is a memory or not; hidden ones and symbolic links are none."""
        found = (
            file.relative_to(self.root) for file in self.root.rglob("*.md") if not file.is_symlink()
        )
        return sorted(
            path.as_posix() for path in found if not any(part[0] == "." for part in path.parts)
        )

    def times(self) -> Mapping[str, tuple[int, int]]:
        """``mtime_ns`` and size of every file that :meth:`scan` would find, by path."""
        return self.watch.times() if self.watch else times_of(self.walk())

    def walk(
        self, enter: Callable[[str, int], object] | None = None
    ) -> Iterator[tuple[str, os.stat_result]]:
        """The path of every memory file and what the system says of it, in no order. ``enter`` gets each folder before
        it is listed: its path, empty or with a slash at the end, and, where the system has such, its descriptor."""
        folders = [""]
        while folders:
            prefix = folders.pop()
            with _listed(
                os.path.join(self.root, prefix), partial(enter, prefix) if enter else None
            ) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if name[0] != "." and (prefix or name in FOLDERS):
                            folders.append(f"{prefix}{name}/")
                    elif is_memory_name(name) and (prefix or name not in OWN_PAGES):
                        try:
                            found = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # another process took it away just now
                            continue
                        yield prefix + name, found

    def read(self, path: str, *, whole: bool = False) -> bytes:
        """A file's bytes, however many when ``whole``.

        Raises VaultUnusable, MemoryInvalid, or FileNotFoundError when it is gone.
        """
        with _translated(self.root / path), self._folder(path) as folder:
            return folder.read(limit=None if whole or path == LEDGER else MAX_FILE_BYTES)

    def exists(self, path: str) -> bool:
        """Whether there is a file at that path."""
        return os.path.lexists(self.root / path)

    def stat(self, path: str) -> FileStat:
        """A file's time and size. Raises FileNotFoundError."""
        with self._folder(path) as folder:
            found = folder.stat()
        return FileStat(path, _times(found), found.st_size, found.st_mtime_ns)

    def write_ahead(self, documents: Mapping[str, str]) -> None:
        """Put documents on disk beside the files that they will be: to wait side by side takes as long as to wait once.

        A later :meth:`write` of the same words has them at once. What cannot be written here fails there.
        """
        if len(documents) < _WORTH_WRITING_AHEAD:
            return
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 15 ms that only writing many files needs

        def write_one(item: tuple[str, str]) -> None:
            path, text = item
            data = text.encode("utf-8", errors="replace")
            with (
                contextlib.suppress(OSError, MemoryInvalid),
                self._folder(path, create=True) as folder,
            ):
                folder.write_temporary(data)
                self._ahead[path] = bytes_hash(data)

        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            list(pool.map(write_one, documents.items()))

    def write(self, path: str, text: str, *, base: bytes | None) -> None:
        """Write a file through a temporary name.

        ``base`` is the hash of the version this one was made from, ``None`` for a new file. Raises EditConflict when
        the file on disk is another one; writing what is already there is no conflict.
        """
        self.write_bytes(path, text.encode("utf-8", errors="replace"), base=base)

    def write_bytes(self, path: str, data: bytes, *, base: bytes | None) -> None:
        """As :meth:`write`, for what may be no text."""
        with _translated(self.root / path), self._folder(path, create=True) as folder:
            try:
                current = folder.read(limit=None)
            except FileNotFoundError:
                current = None
            ahead = self._ahead.pop(path, None)
            is_based = (bytes_hash(current) if current is not None else None) == base
            if current == data or not is_based:
                folder.discard()
            if current == data:
                return
            if not is_based:
                raise EditConflict(
                    f"{path} was changed by someone else",
                    hint="read it again, then repeat the edit",
                )
            if ahead != bytes_hash(data):
                folder.write_temporary(data)
            folder.replace()

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is fine."""
        with (
            _translated(self.root / path),
            contextlib.suppress(FileNotFoundError),
            self._folder(path) as folder,
        ):
            folder.unlink()

    def append(
        self, path: str, lines: Sequence[str], known: tuple[int, bytes] = (0, b"")
    ) -> tuple[int, bytes]:
        """Append those lines that are not there yet, in one write, and wait for the disk.

        ``known`` is what the last append returned: bytes until there cannot hold the lines, so only what follows is
        read, unless the end of those bytes changed. Returns the new size and a hash of the last bytes.
        """
        with (
            _translated(self.root / path),
            self._folder(path, create=True) as folder,
            os.fdopen(folder.open(os.O_RDWR | os.O_CREAT | os.O_APPEND), "r+b") as file,
        ):
            present = _tail(file, known)
            there = set(present.split(b"\n")[:-1])
            encoded = dict.fromkeys(line.encode("utf-8", errors="replace") for line in lines)
            missing = [line for line in encoded if line not in there]
            if missing:
                _drop_torn(file, present, missing)
                size = file.seek(0, os.SEEK_END)
                torn = size > 0 and not _last(file, 1).endswith(b"\n")
                file.seek(0, os.SEEK_END)
                file.write((b"\n" if torn else b"") + b"".join(line + b"\n" for line in missing))
                file.flush()
                os.fsync(file.fileno())
            return file.seek(0, os.SEEK_END), bytes_hash(_last(file, _CHECKED_BYTES))

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Wait until the names of files lately written or removed are on disk."""
        gone = FileNotFoundError, NotADirectoryError, MemoryInvalid
        for path in {path.rpartition("/")[0]: path for path in sorted(paths)}.values():
            with (
                _translated(self.root / path),
                contextlib.suppress(*gone),
                self._folder(path) as folder,
            ):
                folder.sync()

    @contextlib.contextmanager
    def _folder(self, path: str, *, create: bool = False) -> Iterator[_Folder]:
        """The open folder of a file, refusing ``..``, absolute paths and symbolic links on the way.

        Each step is taken from the open folder above it: what is swapped for a link meanwhile is not followed.
        """
        *above, name = parts_of(path)
        folder = _Folder(self.root, None, name)
        try:
            folder.enter(None)
            for part in above:
                if create:
                    folder.make(part)
                folder.enter(part)
            folder.refuse_link(name, path)
            yield folder
        except NotADirectoryError:
            folder.refuse_link(folder.entering, path)
            raise
        finally:
            folder.close()


class _Folder:
    """An open folder on the way to a file, then the file's own. Where the system cannot, a path stands for it."""

    def __init__(self, path: Path, descriptor: int | None, name: str) -> None:
        self.path = path
        self.descriptor = descriptor
        self.name = name
        self.entering = ""

    def enter(self, part: str | None) -> None:
        """Go down to a folder, or open the first."""
        self.entering = part or ""
        path = self.path / part if part else self.path
        if _HAS_FOLDERS:
            no_link = os.O_NOFOLLOW if part else 0
            below = os.open(
                part or path,
                os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | no_link,
                dir_fd=self.descriptor,
            )
            self.close()
            self.descriptor = below
        else:
            self.refuse_link(part or "", str(path))
        self.path = path

    def make(self, part: str) -> None:
        """Make a folder in this one, for the owner alone."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._at(part), files.FOLDER_MODE, dir_fd=self.descriptor)
            with contextlib.suppress(PermissionError):
                os.chmod(self._at(part), files.FOLDER_MODE, dir_fd=self.descriptor)

    def refuse_link(self, part: str, path: str) -> None:
        """Raise MemoryInvalid for a symbolic link."""
        with contextlib.suppress(FileNotFoundError):
            seen = os.stat(self._at(part), dir_fd=self.descriptor, follow_symlinks=False)
            if stat.S_ISLNK(seen.st_mode):
                raise MemoryInvalid(
                    f"{path!r} is a symbolic link", hint="replace it by the file itself"
                )

    def read(self, *, limit: int | None) -> bytes:
        """The file's bytes; those of more than ``limit`` are not read."""
        with os.fdopen(self.open(os.O_RDONLY), "rb") as file:
            if limit is None:
                return file.read()
            data = file.read(limit + 1)
        if len(data) > limit:
            raise MemoryInvalid(_TOO_LARGE, hint="split the file")
        return data

    def stat(self) -> os.stat_result:
        """The file's own times and size."""
        return os.stat(self._at(self.name), dir_fd=self.descriptor, follow_symlinks=False)

    def write_temporary(self, data: bytes) -> None:
        """Put bytes on disk that are to take the place of the file."""
        temporary = _temporary(self.name)  # the same each time: a crash leaves none behind
        self.discard()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(
            files.open_file(self._at(temporary), flags, dir_fd=self.descriptor), "wb"
        ) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Take away what was to take the place of the file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(_temporary(self.name)), dir_fd=self.descriptor)

    def replace(self) -> None:
        """Put what was written in the place of the file, all of it or nothing."""
        temporary = _temporary(self.name)
        os.replace(
            self._at(temporary),
            self._at(self.name),
            src_dir_fd=self.descriptor,
            dst_dir_fd=self.descriptor,
        )

    def open(self, flags: int) -> int:
        """The file, open; it is a regular one, and the owner's alone."""
        return files.open_file(self._at(self.name), flags, dir_fd=self.descriptor)

    def unlink(self) -> None:
        """Take the file away."""
        os.unlink(self._at(self.name), dir_fd=self.descriptor)

    def sync(self) -> None:
        """Wait for the disk."""
        if self.descriptor is not None:
            os.fsync(self.descriptor)

    def close(self) -> None:
        """Done with it."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)


def parts_of(path: str) -> list[str]:
    """The folders of a path, and its name. Raises MemoryInvalid for one that leads out of the vault."""
    parts = path.split("/")
    if any(
        part in ("", "..") or "\0" in part or (os.name == "nt" and set(part) & {"\\", ":"})
        for part in parts
    ):
        raise MemoryInvalid(
            f"{path!r} lies outside the vault", hint="paths are relative to the vault"
        )
    return parts


@contextlib.contextmanager
def _listed(
    folder: str, enter: Callable[[int], object] | None = None
) -> Iterator[list[os.DirEntry[str]]]:
    """What is in a folder: nothing where it is gone. From an open one, files are looked at without their whole path."""
    entries: list[os.DirEntry[str]] = []
    with contextlib.ExitStack() as held:
        try:
            opened: int | str = folder
            if _HAS_FOLDERS:
                opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                held.callback(os.close, opened)
                if enter:
                    enter(opened)
            with os.scandir(opened) as found:
                entries += found
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:  # deeper than any path leads
                raise VaultUnusable(
                    f"cannot read {folder}: {error.strerror}", hint="check its permissions"
                ) from error
        yield entries


def times_of(files: Iterable[tuple[str, os.stat_result]]) -> dict[str, tuple[int, int]]:
    """``mtime_ns`` and size of files by path, as in their :class:`FileStat`."""
    return {
        path if path.isprintable() else shown(path): (_times(found), found.st_size)
        for path, found in files
    }


def shown(path: str) -> str:
    """A path as it is told to people: one that cannot be shown, in other words."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in path)


def _stat_of(path: str, found: os.stat_result) -> FileStat:
    named = FileStat(shown(path), _times(found), found.st_size, found.st_mtime_ns)
    if named.path != path:
        return replace(named, refusal="its name holds characters that cannot be shown; rename it")
    if stat.S_ISLNK(found.st_mode):
        return replace(named, refusal="it is a symbolic link; replace it by the file itself")
    if not stat.S_ISREG(found.st_mode):
        return replace(named, refusal="it is not a regular file")
    return replace(named, refusal=_TOO_LARGE) if found.st_size > MAX_FILE_BYTES else named


def _times(found: os.stat_result) -> int:
    """Both times of a file in one number that the database holds; no calendar has some of them."""
    return (found.st_mtime_ns * 31 + (found.st_ctime_ns if _TELLS_CHANGES else 0)) % _FARTHEST


def _temporary(name: str) -> str:
    whole = f".{name}.tmp"
    if len(os.fsencode(whole)) <= _LONGEST_NAME_FILES:
        return whole
    return f".{bytes_hash(os.fsencode(name)).hex()}.tmp"


def _tail(file: BinaryIO, known: tuple[int, bytes]) -> bytes:
    """What a file holds after the bytes that are known; all of it when those are not what they were."""
    size, digest = known
    start = max(0, size - _CHECKED_BYTES)
    file.seek(start)
    rest = file.read()
    if size and len(rest) >= size - start and bytes_hash(rest[: size - start]) == digest:
        return rest[size - start :]
    file.seek(0)
    return file.read()


def _drop_torn(file: BinaryIO, present: bytes, lines: Sequence[bytes]) -> None:
    """Take away the beginning of one of ``lines``, which a crash or a full disk cut short; it is written anew."""
    torn = present.rpartition(b"\n")[2]
    if torn and any(line.startswith(torn) for line in lines):
        file.truncate(file.seek(0, os.SEEK_END) - len(torn))


def _last(file: BinaryIO, count: int) -> bytes:
    """The last bytes of a file, at most so many."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - count))
    return file.read()


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn the operating system's errors into nacre's; FileNotFoundError passes."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise VaultUnusable(
            f"cannot use {path}: {error.strerror}",
            hint="free some space and repeat; nothing was lost"
            if full
            else "check that the folder exists and is writable",
        ) from error


# ----------------------------------------------------------------------------
# ``MEMORY.md``: a page for people that lists memories by their kind, with links to their files.


LISTING = "MEMORY.md"
MARKER = "<!-- Derived by nacre from the memories: what you change here is lost. Off: vault.listing = false -->"
"""The first line of every listing. A file without it is a person's own, and is never written to."""

MOST_A_KIND = 100
MOST_PROJECTS = 500

_TITLES = {
    Kind.TODO: "Open todos",
    Kind.DECISION: "Decisions",
    Kind.PREFERENCE: "Preferences",
    Kind.LESSON: "Lessons",
    Kind.FACT: "Facts",
    Kind.RELATIONSHIP: "People",
    Kind.EVENT: "Events",
}
_SUBJECT_CHARACTERS = 120
_MARKUP = re.compile(r"([\\\[\]`<>*_])")
_LINK = re.compile(r"[^\w./-]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory, and the path of its file from the page that lists it."""

    memory: Memory
    path: str


def is_derived(data: bytes) -> bool:
    """Whether a page is nacre's own."""
    return data.startswith(MARKER.encode())


def global_page(entries: Sequence[Entry], projects: Mapping[str, int]) -> str:
    """What belongs to no project, and the projects with the numbers of their memories."""
    known = sorted(projects.items())
    lines = [
        f"- [{_plain(name)}](projects/{_link(name)}/{LISTING}): {number:,}"
        for name, number in known
    ]
    left = len(lines) - MOST_PROJECTS
    more = [f"- and {left:,} more in [projects/](projects/)"] if left > 0 else []
    number = len(entries) + sum(projects.values())
    told = f"{count(number, 'memory', 'memories')}{f'; of no project: {len(entries):,}' if projects else ''}."
    section = "\n".join(["## Projects", "", *lines[:MOST_PROJECTS], *more])
    return _page("What nacre remembers", told, entries, [section] if lines else [])


def project_page(project: str, entries: Sequence[Entry]) -> str:
    """What belongs to one project."""
    told = f"{count(len(entries), 'memory', 'memories')}."
    return _page(f"What nacre remembers of {_plain(project)}", told, entries, [])


def _page(title: str, told: str, entries: Sequence[Entry], more: Sequence[str]) -> str:
    """Sections by kind: open todos first, in each the newest first."""
    sections = [
        _section(kind, [one for one in entries if one.memory.kind is kind]) for kind in _TITLES
    ]
    return "\n\n".join([MARKER, f"# {title}", told, *filter(None, sections), *more]) + "\n"


def _section(kind: Kind, entries: Sequence[Entry]) -> str:
    if not entries:
        return ""
    ranked = sorted(entries, key=lambda one: (one.memory.updated, one.memory.id), reverse=True)
    lines = [_line(one) for one in ranked[:MOST_A_KIND]]
    left = len(ranked) - len(lines)
    more = (
        [f"- and {left:,} older ones in [{kind.value}/]({_link(_folder(ranked[-1]))})"]
        if left
        else []
    )
    return "\n".join([f"## {_TITLES[kind]} ({len(entries):,})", "", *lines, *more])


def _folder(entry: Entry) -> str:
    return entry.path.rpartition("/")[0] + "/"


def _line(entry: Entry) -> str:
    memory = entry.memory
    facts = [f"{shown_day(memory.updated)}", f"importance {memory.importance}"]
    facts += ["from outside"] if memory.trust is Trust.UNTRUSTED else []
    facts += ["an agent's proposal"] if memory.proposed else []
    subject = _plain(shorten(memory.subject, _SUBJECT_CHARACTERS))
    return f"- [{subject}]({_link(entry.path)}) · {' · '.join(facts)}"


def _plain(text: str) -> str:
    """A text that no Markdown program takes for markup."""
    return _MARKUP.sub(r"\\\1", one_line(harmless(text)))


def _link(path: str) -> str:
    return _LINK.sub(lambda found: quote(found[0]), path)


# ----------------------------------------------------------------------------
# ``ledger.jsonl``: what a file cannot say. Append-only; one JSON object a line, the operation's id
# first.


_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One operation: its UUIDv7, when, what (``retire``, ``ingest`` …), and its particulars."""

    op: str
    at: datetime
    action: str
    details: dict[str, Any] = field(default_factory=dict)

    def without_words(self) -> LedgerEntry:
        """Return the entry with only the ids and numbers of its particulars."""
        kept = {name: value for name, value in self.details.items() if _is_wordless(value)}
        return replace(self, details=kept)

    def line(self) -> str:
        """The entry as its line in the ledger."""
        values = {"op": self.op, "at": stamp(self.at), "action": self.action, **self.details}
        return json.dumps(values, ensure_ascii=False)


def encode(values: object) -> bytes:
    """One line of a ledger, from values that came from elsewhere; :func:`read` tells whether it is an entry."""
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")


def read(data: bytes) -> Iterator[LedgerEntry]:
    """The entries of a ledger; a line that is not one (a torn end, a merge marker) is passed over.

    Only a line feed ends a line: what people write holds other characters that Python takes for ends of lines.
    """
    for line in data.split(b"\n"):
        try:
            values = json_text.parse(line)
            op, at, action = (_sound(values.pop(key)) for key in ("op", "at", "action"))
            moment = datetime.fromisoformat(at)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
            json.dumps(values, ensure_ascii=False).encode("utf-8")
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
            continue
        yield LedgerEntry(op, to_millisecond(moment), action, values)


def broken_lines(data: bytes) -> list[int]:
    """The numbers of the lines that are no entries, from 1."""
    return [
        number
        for number, line in enumerate(data.split(b"\n"), 1)
        if line.strip() and not list(read(line))
    ]


def read_about(data: bytes, pattern: re.Pattern[bytes]) -> Iterator[LedgerEntry]:
    """The entries whose lines hold what a pattern matches; no other line is parsed."""
    for found in pattern.finditer(data):
        end = data.find(b"\n", found.end())
        yield from read(
            data[data.rfind(b"\n", 0, found.start()) + 1 : end if end >= 0 else len(data)]
        )


def ids_in(text: str) -> set[str]:
    """The ids of memories that a text names."""
    return set(_ID.findall(text))


def _is_wordless(value: Any) -> bool:
    if isinstance(value, str):
        return _ID.fullmatch(value) is not None
    if isinstance(value, list):
        return all(_is_wordless(one) for one in value)
    return isinstance(value, int | float | None)


def _sound(value: object) -> str:
    """A text without half characters. Raises TypeError, ValueError."""
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode("utf-8")
    return value
