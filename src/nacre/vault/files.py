"""Paths and files in the vault, and the ledger.

Paths are relative to the vault.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from nacre.base import files
from nacre.base import json as json_text
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, to_millisecond
from nacre.base.text import numbered, to_bytes
from nacre.errors import EditConflictError, InvalidMemoryError, UnusableVaultError
from nacre.values import codec
from nacre.values.memory import MAX_BODY_BYTES, Kind, Memory

LEDGER = "ledger.jsonl"
GIT_FOLDER = ".git"
DERIVED = frozenset({"MEMORY.md", "profile.md", "project.md", "README.md"})
OWN_PAGES = frozenset({"identity.md", "IDENTITY.md"})
"""Pages in the vault's top folder that describe the user to agents. The profile is another such page."""

_CONFLICT_COPY = re.compile(
    r"\.(?:sync-)?conflict\b|\((?:.*conflicted copy|(?:case |sf)conflict\b).*\)", re.IGNORECASE
)
FOLDERS = frozenset({"global", "projects", "inbox", "retired"})
_SLUG_CHARACTERS = 60
_SLUG_BYTES = 120
"""Maximum length of a slug in bytes.

Some file systems limit names to 143 bytes, including number and extension.
"""

_DEVICES = [f"{port}{number}" for port in ("com", "lpt") for number in range(10)]
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *_DEVICES, "memory", "profile", "project", "readme"]
)
"""Windows device names, which are reserved with any extension, and names of generated pages."""

_WORDS = re.compile(r"[^\W_]+")
_MAX_NAME_CHARACTERS = 1000
_MAX_FOLDING_ROUNDS = 4


@frozen
class Place:
    """The project, kind and retirement of a memory, according to its folder."""

    project: str | None = None
    kind: Kind | None = None
    inbox: bool = False
    retired: bool = False

    def differs(self, kind: Kind, project: str | None) -> bool:
        """Return True if the given kind or project contradicts the folder."""
        projects = (None, project, slugify(project) if project else None)
        return self.kind not in (None, kind) or self.project not in projects


def is_memory_file(path: str) -> bool:
    """Return True for a Markdown file in the vault that holds a memory. Generated pages do not."""
    top, _, below = path.partition("/")
    return (
        is_memory_name(path.rpartition("/")[2])
        and (not below or top in FOLDERS)
        and path not in OWN_PAGES
        and not path.startswith(".")
        and "/." not in path
    )


def is_memory_name(name: str) -> bool:
    """Return True if a file in a memory folder holds a memory, judging by its name.

    Conflict copies made by Syncthing, Dropbox and similar programs do not.
    """
    return (
        name[-3:] == ".md"
        and name not in DERIVED
        and name[0] != "."
        and not _CONFLICT_COPY.search(name)
    )


def place_of(path: str) -> Place:
    """Return the project, kind and state that a path implies.

    Raises InvalidMemoryError if the folder's name is not a kind of memory.
    """
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
    """Return an unused path for a memory's file, made from its subject and, if needed, a number."""
    folder = folder_of(memory)
    slug = slugify(memory.subject) or memory.kind.value
    return f"{folder}/{numbered(slug, lambda name: is_taken(f'{folder}/{name}.md'))}.md"


def folder_of(memory: Memory) -> str:
    """Return the vault folder in which a memory belongs."""
    if memory.inbox:
        folder = "inbox"
    elif memory.project:
        folder = f"projects/{memory.project}/{memory.kind.value}"
    else:
        folder = f"global/{memory.kind.value}"
    return f"retired/{folder}" if memory.retired else folder


def normalise_remote(url: str) -> str:
    """Convert a git URL such as ``git@host:owner/name.git`` to ``host/owner/name``.

    Ports and the prefix ``ssh.`` are dropped, so that all addresses of a repository become equal.
    """
    text = url.strip().replace("\\", "/")
    without_scheme = re.sub(r"^[A-Za-z+]+://", "", text)
    has_scheme, text = without_scheme != text, re.sub(r"^[^@/]+@", "", without_scheme)
    # A stored "host:2222/owner/name" without a user comes from a URL with a port.
    if has_scheme or text == without_scheme:
        text = re.sub(r"^([^/:]+):\d*(?=/)", r"\1", text)
    text = re.sub(r"^([^/:]{2,}):", r"\1/", text)
    text = re.sub(r"^(?:alt)?ssh\.(?=[^/]+\.)", "", re.sub(r"/{2,}", "/", text))
    return re.sub(r"(?:/\.?)+$", "", text).removesuffix(".git").lower()


def slugify(text: str) -> str:
    """Convert a name to a file or folder name, or to "" if it contains no words.

    The result has up to 60 characters and 120 bytes: hyphens, digits and lower-case letters of any
    script. It is never a reserved device name.
    """
    words = _WORDS.findall(_fold(text))
    slug = "-".join(words)
    if len(slug) > _SLUG_CHARACTERS or len(slug.encode()) > _SLUG_BYTES:
        cut = slug.encode()[:_SLUG_BYTES].decode(errors="ignore")[:_SLUG_CHARACTERS]
        slug = cut.rpartition("-")[0] or cut
    return f"{slug}-x" if slug in _RESERVED else slug


def _fold(text: str) -> str:
    text = text[:_MAX_NAME_CHARACTERS]
    for _ in range(_MAX_FOLDING_ROUNDS):
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
        raise InvalidMemoryError(
            f"{folders[0]!r} is not a kind of memory",
            hint=f"move the file into one of: {', '.join(Kind)}",
        ) from None


# -- Files of the vault -------------------------------------------------------
# Access is limited to the vault. Files that changed on disk are not overwritten.


MAX_FILE_BYTES = 2 * MAX_BODY_BYTES
"""Maximum size of a memory file in bytes, including front matter. Larger files are not read."""

_TOO_LARGE = f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB"
_MAX_NAME_BYTES = 255
_MIN_FILES_FOR_WRITE_AHEAD = 4
_WRITER_THREADS = 8
_TIME_MODULUS = 2**62
_HAS_CHANGE_TIMES = os.name == "posix"
_HAS_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")

_CHECKED_BYTES = 4096
"""Number of bytes before a file's known end that are compared to detect changes."""


@frozen
class FileStat:
    """The path, size and times of a memory file.

    ``modified_ns``: modification time.
    ``mtime_ns``: a number that changes even if a program resets that time.
    ``refusal``: why the file cannot be read, or "".
    """

    path: str
    mtime_ns: int
    size: int
    modified_ns: int
    refusal: str = ""


class Vault:
    """The folder that contains the memory files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ahead: dict[str, bytes] = {}

    def prepare(self) -> None:
        """Create the vault's folder if needed. Raises UnusableVaultError, UnusableStoreError."""
        if self.root.exists() and not self.root.is_dir():
            raise UnusableVaultError(
                f"the vault path {self.root} is a file",
                hint="move it away, or set NACRE_HOME to another folder",
            )
        with _translate_errors(self.root):
            files.make_folder(self.root)
            files.refuse_unsafe(self.root)

    def pages(self) -> dict[str, int]:
        """Return the ``mtime_ns`` of each project's page, keyed by the project's folder.

        The value is 0 for a symbolic link, which nacre does not read.
        """
        top = os.path.join(self.root, "projects")
        if not os.path.isdir(top):
            return {}
        is_link, times = os.path.islink(top), {}
        with _list_folder(top) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    page = os.lstat(os.path.join(top, entry.name, "project.md"))
                    is_plain = (
                        not is_link
                        and entry.is_dir(follow_symlinks=False)
                        and stat.S_ISREG(page.st_mode)
                    )
                    times[entry.name] = _times(page) if is_plain else 0
        return times

    def scan(self) -> list[FileStat]:
        """Return all memory files. Symbolic links are not followed.

        Files are sorted by name, and precede those in subfolders.
        """
        file_stats = [_stat_of(path, status) for path, status in self._walk()]
        return sorted(file_stats, key=lambda file: (file.path.split("/")[:-1], file.path))

    def paths(self) -> list[str]:
        """Return the paths of all Markdown files except hidden files and symbolic links."""
        relative_paths = (
            file.relative_to(self.root) for file in self.root.rglob("*.md") if not file.is_symlink()
        )
        return sorted(
            path.as_posix()
            for path in relative_paths
            if not any(part[0] == "." for part in path.parts)
        )

    def times(self) -> Mapping[str, tuple[int, int]]:
        """Return the ``mtime_ns`` and size of all memory files by path."""
        return {
            path if path.isprintable() else escape_path(path): (_times(status), status.st_size)
            for path, status in self._walk()
        }

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        folders = [""]
        while folders:
            prefix = folders.pop()
            with _list_folder(os.path.join(self.root, prefix)) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if name[0] != "." and (prefix or name in FOLDERS):
                            folders.append(f"{prefix}{name}/")
                    elif is_memory_name(name) and (prefix or name not in OWN_PAGES):
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # just deleted by another process
                            continue
                        yield prefix + name, status

    def read(self, path: str, *, any_size: bool = False) -> bytes:
        """Return a file's content. ``any_size`` lifts the size limit.

        Raises UnusableVaultError, FileNotFoundError, or InvalidMemoryError for a symbolic link or
        an oversized file.
        """
        with _translate_errors(self.root / path), self._folder(path) as folder:
            return folder.read(limit=None if any_size or path == LEDGER else MAX_FILE_BYTES)

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.root / path)

    def stat(self, path: str) -> FileStat:
        """Return a file's size and times. Raises FileNotFoundError."""
        with self._folder(path) as folder:
            status = folder.stat()
        return FileStat(path, _times(status), status.st_size, status.st_mtime_ns)

    def write_ahead(self, documents: Mapping[str, str]) -> None:
        """Prepare documents in temporary files, in parallel.

        :meth:`write` later moves them into place, and raises any errors.
        """
        if len(documents) < _MIN_FILES_FOR_WRITE_AHEAD:
            return
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - takes 15 ms, needed for many files

        def write_one(item: tuple[str, str]) -> None:
            path, text = item
            data = to_bytes(text)
            with (
                contextlib.suppress(OSError, InvalidMemoryError),
                self._folder(path, create=True) as folder,
            ):
                folder.write_temporary(data)
                self._ahead[path] = bytes_hash(data)

        with ThreadPoolExecutor(_WRITER_THREADS) as pool:
            list(pool.map(write_one, documents.items()))

    def write(self, path: str, text: str, *, base: bytes | None) -> None:
        """Write a file through a temporary file.

        ``base`` is the hash of the version that was edited, or ``None`` for a new file. Raises
        EditConflictError if the file changed meanwhile.
        """
        self.write_bytes(path, to_bytes(text), base=base)

    def write_bytes(self, path: str, data: bytes, *, base: bytes | None) -> None:
        """Write bytes as :meth:`write` writes text."""
        with _translate_errors(self.root / path), self._folder(path, create=True) as folder:
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
                raise EditConflictError(
                    f"{path} was changed by someone else",
                    hint="read it again, then repeat the edit",
                )
            if ahead != bytes_hash(data):
                folder.write_temporary(data)
            folder.replace()

    def remove(self, path: str) -> None:
        with (
            _translate_errors(self.root / path),
            contextlib.suppress(FileNotFoundError),
            self._folder(path) as folder,
        ):
            folder.unlink()

    def forget(self, path: str) -> None:
        """Delete a file. Git keeps its earlier versions."""
        self.remove(path)

    def former(self) -> Iterable[tuple[int, str, bytes]]:
        """Return nothing, because only git stores earlier versions of files."""
        return ()

    def forget_former(self, matches: Callable[[str, bytes], bool]) -> None:
        """Do nothing, because only git stores earlier versions of files."""

    def append(
        self, path: str, lines: Sequence[str], end: tuple[int, bytes] = (0, b"")
    ) -> tuple[int, bytes]:
        """Append the lines that a file lacks, and wait until they are on disk.

        Return the file's new size and a hash of its last bytes. Pass them to the next call as
        ``end``, so that it need not reread the whole file.
        """
        with (
            _translate_errors(self.root / path),
            self._folder(path, create=True) as folder,
            os.fdopen(folder.open(os.O_RDWR | os.O_CREAT | os.O_APPEND), "r+b") as file,
        ):
            present = _tail(file, end)
            existing = set(present.split(b"\n")[:-1])
            encoded = dict.fromkeys(to_bytes(line) for line in lines)
            missing = [line for line in encoded if line not in existing]
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
        """Wait until created and deleted files are recorded on disk."""
        missing_errors = FileNotFoundError, NotADirectoryError, InvalidMemoryError
        for path in {path.rpartition("/")[0]: path for path in sorted(paths)}.values():
            with (
                _translate_errors(self.root / path),
                contextlib.suppress(*missing_errors),
                self._folder(path) as folder,
            ):
                folder.sync()

    @contextlib.contextmanager
    def _folder(self, path: str, *, create: bool = False) -> Iterator[_Folder]:
        # Folders are opened one by one, so that a symbolic link created meanwhile is not followed.
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
    """An open folder or, on systems without folder descriptors, its path."""

    def __init__(self, path: Path, descriptor: int | None, name: str) -> None:
        self.path = path
        self.descriptor = descriptor
        self.name = name
        self.entering = ""

    def enter(self, part: str | None) -> None:
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
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._at(part), files.FOLDER_MODE, dir_fd=self.descriptor)
            with contextlib.suppress(PermissionError):
                os.chmod(self._at(part), files.FOLDER_MODE, dir_fd=self.descriptor)

    def refuse_link(self, part: str, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(self._at(part), dir_fd=self.descriptor, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                raise InvalidMemoryError(
                    f"{path!r} is a symbolic link", hint="replace it by the file itself"
                )

    def read(self, *, limit: int | None) -> bytes:
        with os.fdopen(self.open(os.O_RDONLY), "rb") as file:
            if limit is None:
                return file.read()
            data = file.read(limit + 1)
        if len(data) > limit:
            raise InvalidMemoryError(_TOO_LARGE, hint="split the file")
        return data

    def stat(self) -> os.stat_result:
        return os.stat(self._at(self.name), dir_fd=self.descriptor, follow_symlinks=False)

    def write_temporary(self, data: bytes) -> None:
        # The name is fixed, so that crashes leave at most one temporary file.
        temporary = _temporary(self.name)
        self.discard()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(
            files.open_file(self._at(temporary), flags, dir_fd=self.descriptor), "wb"
        ) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def discard(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(_temporary(self.name)), dir_fd=self.descriptor)

    def replace(self) -> None:
        temporary = _temporary(self.name)
        os.replace(
            self._at(temporary),
            self._at(self.name),
            src_dir_fd=self.descriptor,
            dst_dir_fd=self.descriptor,
        )

    def open(self, flags: int) -> int:
        return files.open_file(self._at(self.name), flags, dir_fd=self.descriptor)

    def unlink(self) -> None:
        os.unlink(self._at(self.name), dir_fd=self.descriptor)

    def sync(self) -> None:
        if self.descriptor is not None:
            os.fsync(self.descriptor)

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)


def parts_of(path: str) -> list[str]:
    """Split a path into names. Raises InvalidMemoryError if it leads out of the vault."""
    parts = path.split("/")
    if any(
        part in ("", "..") or "\0" in part or (os.name == "nt" and set(part) & {"\\", ":"})
        for part in parts
    ):
        raise InvalidMemoryError(
            f"{path!r} is outside the vault", hint="paths are relative to the vault"
        )
    return parts


@contextlib.contextmanager
def _list_folder(folder: str) -> Iterator[list[os.DirEntry[str]]]:
    entries: list[os.DirEntry[str]] = []
    with contextlib.ExitStack() as stack:
        try:
            opened: int | str = folder
            if _HAS_FOLDERS:
                opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                stack.callback(os.close, opened)
            with os.scandir(opened) as scanned:
                entries += scanned
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:  # deeper than any valid path
                raise UnusableVaultError(
                    f"cannot read {folder}: {error.strerror}", hint="check its permissions"
                ) from error
        yield entries


def escape_path(path: str) -> str:
    """Return a path with its unprintable characters escaped."""
    return "".join(
        character if character.isprintable() else f"\\x{ord(character):02x}" for character in path
    )


def _stat_of(path: str, status: os.stat_result) -> FileStat:
    file_stat = FileStat(escape_path(path), _times(status), status.st_size, status.st_mtime_ns)
    if file_stat.path != path:
        return replace(file_stat, refusal="its name has unprintable characters; rename it")
    if stat.S_ISLNK(status.st_mode):
        return replace(file_stat, refusal="it is a symbolic link; replace it by the file itself")
    if not stat.S_ISREG(status.st_mode):
        return replace(file_stat, refusal="it is not a regular file")
    return replace(file_stat, refusal=_TOO_LARGE) if status.st_size > MAX_FILE_BYTES else file_stat


def _times(status: os.stat_result) -> int:
    return (
        status.st_mtime_ns * 31 + (status.st_ctime_ns if _HAS_CHANGE_TIMES else 0)
    ) % _TIME_MODULUS


def _temporary(name: str) -> str:
    temporary = f".{name}.tmp"
    if len(os.fsencode(temporary)) <= _MAX_NAME_BYTES:
        return temporary
    return f".{bytes_hash(os.fsencode(name)).hex()}.tmp"


def _tail(file: BinaryIO, end: tuple[int, bytes]) -> bytes:
    size, digest = end
    start = max(0, size - _CHECKED_BYTES)
    file.seek(start)
    tail = file.read()
    if size and len(tail) >= size - start and bytes_hash(tail[: size - start]) == digest:
        return tail[size - start :]
    file.seek(0)
    return file.read()


def _drop_torn(file: BinaryIO, present: bytes, lines: Sequence[bytes]) -> None:
    """Remove an incomplete last line, which the caller writes again."""
    torn = present.rpartition(b"\n")[2]
    if torn and any(line.startswith(torn) for line in lines):
        file.truncate(file.seek(0, os.SEEK_END) - len(torn))


def _last(file: BinaryIO, count: int) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - count))
    return file.read()


@contextlib.contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        is_full = error.errno == errno.ENOSPC
        raise UnusableVaultError(
            f"cannot use {path}: {error.strerror}",
            hint="free some space and repeat; nothing was lost"
            if is_full
            else "check that the folder exists and is writable",
        ) from error


# -- ``ledger.jsonl``: facts that memory files cannot store ----------------------------------------
# Lines are only appended. Each is a JSON object that begins with the operation's id.


_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


@frozen
class LedgerEntry:
    """A line of the ledger: an operation's UUIDv7, time, action such as ``retire``, and details."""

    op: str
    at: datetime
    action: str
    details: dict[str, Any] = field(default_factory=dict)

    def without_words(self) -> LedgerEntry:
        """Return the entry with only ids and numbers as details."""
        details = {name: value for name, value in self.details.items() if _is_wordless(value)}
        return replace(self, details=details)

    def line(self) -> str:
        values = {"op": self.op, "at": codec.stamp(self.at), "action": self.action, **self.details}
        return json.dumps(values, ensure_ascii=False)


def encode(values: object) -> bytes:
    """Encode values as a ledger line. They are not validated."""
    return to_bytes(json.dumps(values, ensure_ascii=False))


def read(data: bytes) -> Iterator[LedgerEntry]:
    """Yield a ledger's entries. Invalid lines, such as an incomplete last line, are skipped."""
    for line in data.split(b"\n"):
        try:
            values = json_text.parse(line)
            op, at, action = (check_text(values.pop(key)) for key in ("op", "at", "action"))
            moment = datetime.fromisoformat(at)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
            json.dumps(values, ensure_ascii=False).encode("utf-8")
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
            continue
        yield LedgerEntry(op, to_millisecond(moment), action, values)


def broken_lines(data: bytes) -> list[int]:
    """Return the numbers of a ledger's invalid lines, starting at 1."""
    return [
        number
        for number, line in enumerate(data.split(b"\n"), 1)
        if line.strip() and not list(read(line))
    ]


def read_about(data: bytes, pattern: re.Pattern[bytes]) -> Iterator[LedgerEntry]:
    """Yield the ledger entries in lines that match a pattern. Other lines are not parsed."""
    for match in pattern.finditer(data):
        end = data.find(b"\n", match.end())
        yield from read(
            data[data.rfind(b"\n", 0, match.start()) + 1 : end if end >= 0 else len(data)]
        )


def ids_in(text: str) -> set[str]:
    """Return the memory ids that a text mentions."""
    return set(_ID.findall(text))


def _is_wordless(value: Any) -> bool:
    if isinstance(value, str):
        return _ID.fullmatch(value) is not None
    if isinstance(value, list):
        return all(_is_wordless(item) for item in value)
    return isinstance(value, int | float | None)


def check_text(value: object) -> str:
    """Return ``value`` if it is text. Raises TypeError, or ValueError for unpaired surrogates."""
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode("utf-8")
    return value
