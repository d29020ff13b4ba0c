"""A stand-in for the operating system: it counts what a process does to files, and breaks down where it is told to.

Calls of ``os`` and ``open``, SQLite's own system calls, its waiting for the disk, and the start of other programs are
events, numbered as they come. At one of them the process is killed, or the call fails as it would on a full disk, a
disk that breaks or one that became read-only. nacre knows nothing of it.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import io
import itertools
import os
import signal
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

KILLS = ("before", "half", "after")
"""Of a write ``half`` is done then; of the start of a program, it is killed as well."""

ERRORS = {
    "ENOSPC": {"create", "write", "extend", "mkdir"},
    "EROFS": {"create", "open", "write", "extend", "truncate", "mkdir", "rename", "unlink"},
    "EIO": {"create", "write", "extend", "truncate", "sync", "mkdir", "rename", "unlink"},
    "EACCES": {"create", "open", "mkdir", "rename", "unlink"},
}
"""Which events an error may meet."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, use_errno=True)
_WRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int64, use_errno=True)
_UNLINK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, use_errno=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at event ``at``: a kill (one of ``KILLS``) or an error (one of ``ERRORS``), ``lasting`` or once."""

    at: int
    what: str
    lasting: bool = False

    @property
    def is_kill(self) -> bool:
        """Whether the process ends there."""
        return self.what in KILLS


@dataclass(frozen=True, slots=True)
class Event:
    """One call: what it does (``write``, ``sync``, ``rename`` …) and to what sort of file."""

    kind: str
    target: str


class Shim:
    """Counts the events of this process in one folder, and brings about a fault."""

    def __init__(self, folder: Path, fault: Fault | None = None) -> None:
        self.events: list[Event] = []
        self._folder = os.path.realpath(folder)
        self._fault = fault
        self._numbers = itertools.count()
        self._kept: list[object] = []  # what SQLite points to must stay

    def arm(self) -> None:
        """From now on every event counts, until the process ends."""
        self._patch_os()
        self._patch_open()
        self._patch_sqlite()
        self._patch_programs()

    def around(
        self, kind: str, path: str, act: Callable[[], Any], half: Callable[[], Any] | None = None
    ) -> Any:
        """Do what was asked for, unless the fault is here. Raises OSError."""
        number = next(self._numbers)
        self.events.append(Event(kind, _sort_of(path)))
        fault = self._fault
        if fault is None:
            return act()
        here = number == fault.at
        if fault.is_kill:
            if here and fault.what != "after":
                if fault.what == "half" and half:
                    half()
                _die()
            result = act()
            if here:
                _die()
            return result
        if (here or (fault.lasting and number > fault.at)) and kind in ERRORS[fault.what]:
            number = getattr(errno, fault.what)
            named = kind not in (
                "write",
                "sync",
                "extend",
                "truncate",
            )  # these know a descriptor, and no name
            raise OSError(number, os.strerror(number), *([path] if named else []))
        return act()

    def counts(
        self, path: str | bytes | int | os.PathLike[str], dir_fd: int | None = None
    ) -> str | None:
        """The path, if what is done to it counts."""
        if isinstance(path, int):
            return self._of_descriptor(path)
        name = os.fsdecode(path)
        if dir_fd is not None and not os.path.isabs(name):
            name = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), name)
        whole = os.path.abspath(name)
        return whole if whole.startswith(self._folder + os.sep) else None

    def _of_descriptor(self, descriptor: int) -> str | None:
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode) and not stat.S_ISDIR(
                os.fstat(descriptor).st_mode
            ):
                return None
            return self.counts(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:
            return None

    def _patch_os(self) -> None:
        for name, kind in (
            ("unlink", "unlink"),
            ("remove", "unlink"),
            ("rmdir", "unlink"),
            ("mkdir", "mkdir"),
            ("rename", "rename"),
            ("replace", "rename"),
            ("link", "create"),
            ("symlink", "create"),
            ("truncate", "truncate"),
            ("ftruncate", "truncate"),
            ("fsync", "sync"),
            ("fdatasync", "sync"),
            ("chmod", "mode"),
            ("fchmod", "mode"),
            ("utime", "mode"),
        ):
            self._wrap(name, kind)
        self._wrap_open()
        self._wrap_write()

    def _wrap(self, name: str, kind: str) -> None:
        real = getattr(os, name)

        def call(path: Any, *args: Any, **named: Any) -> Any:
            found = self.counts(path, named.get("dir_fd", named.get("src_dir_fd")))
            if found is None:
                return real(path, *args, **named)
            return self.around(kind, found, lambda: real(path, *args, **named))

        _put(name, real, call)

    def _wrap_open(self) -> None:
        real = os.open

        def call(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            found = self.counts(path, dir_fd) if flags & _WRITES else None
            if found is None:
                return real(path, flags, mode, dir_fd=dir_fd)
            kind = "open" if os.path.lexists(found) else "create"
            return int(self.around(kind, found, lambda: real(path, flags, mode, dir_fd=dir_fd)))

        _put("open", real, call)

    def _wrap_write(self) -> None:
        real = os.write

        def call(descriptor: int, data: Any) -> int:
            found = self.counts(descriptor)
            if found is None:
                return real(descriptor, data)
            part = bytes(data)[: len(data) // 2]
            return int(
                self.around(
                    "write", found, lambda: real(descriptor, data), lambda: real(descriptor, part)
                )
            )

        _put("write", real, call)

    def _patch_open(self) -> None:
        real, shim = io.open, self

        class File(io.FileIO):
            """A file whose writes are events."""

            def write(self, data: Any) -> int:
                found = shim.counts(self.fileno())
                whole = bytes(data)
                if found is None:
                    return super().write(whole)
                part = whole[: len(whole) // 2]
                write = super().write
                return int(shim.around("write", found, lambda: write(whole), lambda: write(part)))

            def truncate(self, size: int | None = None) -> int:
                found, cut = shim.counts(self.fileno()), super().truncate
                return int(
                    shim.around("truncate", found, lambda: cut(size)) if found else cut(size)
                )

        def call(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: Any = None,
            errors: Any = None,
            newline: Any = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            if not set(mode) & set("wax+"):
                return real(file, mode, buffering, encoding, errors, newline, closefd, opener)
            plain = mode.replace("b", "").replace("t", "")
            found = None if isinstance(file, int) or opener else self.counts(file)
            kind = "open" if found and os.path.lexists(found) else "create"
            raw = (
                self.around(kind, found, lambda: File(file, plain, closefd, opener))
                if found
                else File(file, plain, closefd, opener)
            )
            if buffering == 0:
                return raw
            buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            if "b" in mode:
                return buffer
            return io.TextIOWrapper(
                buffer, encoding, errors, newline, line_buffering=buffering == 1
            )

        io.open = builtins.open = call  # type: ignore[assignment]

    def _patch_programs(self) -> None:
        real = subprocess.Popen.__init__

        def call(process: Any, *args: Any, **named: Any) -> None:
            def start() -> None:
                real(process, *args, **named)

            def start_and_end() -> None:
                start()
                process.kill()

            self.around("start", "program", start, start_and_end)

        subprocess.Popen.__init__ = call  # type: ignore[method-assign,assignment]

    def _patch_sqlite(self) -> None:
        self._patch_sqlite_calls()
        shim = self

        class File(apsw.VFSFile):
            """A file of SQLite's that tells when the disk is waited for."""

            def __init__(self, name: Any, flags: list[int]) -> None:
                self._name = str(name.filename() if isinstance(name, apsw.URIFilename) else name)
                super().__init__("unix", name, flags)

            def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
                wait = super().xSync
                try:
                    shim.around("sync", self._name, lambda: wait(flags))
                except OSError as error:
                    failed = apsw.IOError("disk I/O error")
                    failed.extendedresult = apsw.SQLITE_IOERR_FSYNC
                    raise failed from error

        class Watching(apsw.VFS):
            """The system's own way to files, with files that tell."""

            def __init__(self) -> None:
                super().__init__("watching", "unix", makedefault=True)

            def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
                return File(name, flags)

        self._kept.append(Watching())

    def _patch_sqlite_calls(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.pwrite64.restype = ctypes.c_ssize_t
        libc.pwrite64.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64]
        libc.ftruncate64.argtypes = [ctypes.c_int, ctypes.c_int64]

        def attempt(
            kind: str,
            path: str | None,
            act: Callable[[], int],
            half: Callable[[], int] | None = None,
        ) -> int:
            if path is None:
                return act()
            try:
                return int(self.around(kind, path, act, half))
            except OSError as error:
                ctypes.set_errno(error.errno or 0)
                return -1

        def open_(path: bytes, flags: int, mode: int) -> int:
            found = self.counts(path) if flags & _WRITES else None
            kind = "open" if found and os.path.lexists(found) else "create"
            return attempt(kind, found, lambda: int(libc.open(path, flags, mode)))

        def write(descriptor: int, data: int, size: int, offset: int) -> int:
            def some(count: int) -> int:
                return int(libc.pwrite64(descriptor, data, count, offset))

            return attempt(
                "write",
                self._of_descriptor(descriptor),
                lambda: some(size),
                lambda: some(size // 2),
            )

        def truncate(descriptor: int, size: int) -> int:
            kind = "extend" if size > os.fstat(descriptor).st_size else "truncate"
            return attempt(
                kind,
                self._of_descriptor(descriptor),
                lambda: int(libc.ftruncate64(descriptor, size)),
            )

        def unlink(path: bytes) -> int:
            return attempt("unlink", self.counts(path), lambda: int(libc.unlink(path)))

        vfs = apsw.VFS("calls", "unix")
        calls = {"open": _OPEN(open_), "pwrite64": _WRITE(write), "ftruncate": _TRUNCATE(truncate)}
        calls["unlink"] = _UNLINK(unlink)
        for name, function in calls.items():
            address = ctypes.cast(function, ctypes.c_void_p).value
            assert address is not None
            vfs.xSetSystemCall(name, address)
        self._kept += [vfs, calls]


def _put(name: str, real: Any, call: Any) -> None:
    setattr(os, name, call)
    for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if real in known:
            known.add(call)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()  # the signal comes before this returns


def _sort_of(path: str) -> str:
    """A file by its part in the home: ``database``, ``wal``, ``memory`` …"""
    name = os.path.basename(path)
    for end, sort in (
        ("-wal", "wal"),
        ("-shm", "shm"),
        ("-journal", "rollback journal"),
        (".lock", "lock"),
    ):
        if name.endswith(end):
            return sort
    if ".db" in name:
        return "database" if name.endswith(".db") else "copy of the database"
    if name == "ledger.jsonl":
        return "ledger"
    if "/.git/" in path:
        return "git"
    if "/vault/" in path:
        return "temporary file" if name.endswith(".tmp") else "vault"
    return "program" if path == "program" else "other"
