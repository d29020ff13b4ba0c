"""A substitute for the operating system that counts a process's file operations and fails at a chosen one.

Calls of ``os`` and ``open``, SQLite's system calls and syncs, and the start of other programs are numbered events. At
one of them the process is killed, or the call fails as on a full, broken or read-only disk. nacre does not know about
the shim.
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
"""With ``half``, half of a write is done; a program is killed just after its start."""

ERRORS = {
    "ENOSPC": {"create", "write", "extend", "mkdir"},
    "EROFS": {"create", "open", "write", "extend", "truncate", "mkdir", "rename", "unlink"},
    "EIO": {"create", "write", "extend", "truncate", "sync", "mkdir", "rename", "unlink"},
    "EACCES": {"create", "open", "mkdir", "rename", "unlink"},
}
"""The kinds of events that each error can affect."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, use_errno=True)
_WRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int64, use_errno=True)
_UNLINK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, use_errno=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """The action at event ``at``: a kill (one of ``KILLS``) or an error (one of ``ERRORS``), ``lasting`` or once."""

    at: int
    what: str
    lasting: bool = False

    @property
    def is_kill(self) -> bool:
        """Return True if the process ends there."""
        return self.what in KILLS


@dataclass(frozen=True, slots=True)
class Event:
    """A call: its kind (``write``, ``sync``, ``rename`` …) and the kind of file."""

    kind: str
    target: str


class Shim:
    """Counts this process's events in one folder, and triggers a fault."""

    def __init__(self, folder: Path, fault: Fault | None = None) -> None:
        self.events: list[Event] = []
        self._folder = os.path.realpath(folder)
        self._fault = fault
        self._numbers = itertools.count()
        self._kept: list[object] = []  # SQLite needs these objects to stay alive

    def arm(self) -> None:
        """Count every event from now on."""
        self._patch_os()
        self._patch_open()
        self._patch_sqlite()
        self._patch_programs()

    def around(
        self, kind: str, path: str, act: Callable[[], Any], half: Callable[[], Any] | None = None
    ) -> Any:
        """Perform a call unless the fault is due. Raises OSError."""
        number = next(self._numbers)
        self.events.append(Event(kind, _sort_of(path)))
        fault = self._fault
        if fault is None:
            return act()
        is_due = number == fault.at
        if fault.is_kill:
            if is_due and fault.what != "after":
                if fault.what == "half" and half:
                    half()
                _die()
            result = act()
            if is_due:
                _die()
            return result
        if (is_due or (fault.lasting and number > fault.at)) and kind in ERRORS[fault.what]:
            number = getattr(errno, fault.what)
            by_path = kind not in (
                "write",
                "sync",
                "extend",
                "truncate",
            )  # these calls have a descriptor and no name
            raise OSError(number, os.strerror(number), *([path] if by_path else []))
        return act()

    def counts(
        self, path: str | bytes | int | os.PathLike[str], dir_fd: int | None = None
    ) -> str | None:
        """Return the path if its events count."""
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

        def call(path: Any, *args: Any, **options: Any) -> Any:
            counted = self.counts(path, options.get("dir_fd", options.get("src_dir_fd")))
            if counted is None:
                return real(path, *args, **options)
            return self.around(kind, counted, lambda: real(path, *args, **options))

        _put(name, real, call)

    def _wrap_open(self) -> None:
        real = os.open

        def call(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            counted = self.counts(path, dir_fd) if flags & _WRITES else None
            if counted is None:
                return real(path, flags, mode, dir_fd=dir_fd)
            kind = "open" if os.path.lexists(counted) else "create"
            return int(self.around(kind, counted, lambda: real(path, flags, mode, dir_fd=dir_fd)))

        _put("open", real, call)

    def _wrap_write(self) -> None:
        real = os.write

        def call(descriptor: int, data: Any) -> int:
            counted = self.counts(descriptor)
            if counted is None:
                return real(descriptor, data)
            part = bytes(data)[: len(data) // 2]
            return int(
                self.around(
                    "write", counted, lambda: real(descriptor, data), lambda: real(descriptor, part)
                )
            )

        _put("write", real, call)

    def _patch_open(self) -> None:
        real, shim = io.open, self

        class File(io.FileIO):
            """A file whose writes are events."""

            def write(self, data: Any) -> int:
                counted = shim.counts(self.fileno())
                whole = bytes(data)
                if counted is None:
                    return super().write(whole)
                part = whole[: len(whole) // 2]
                write = super().write
                return int(shim.around("write", counted, lambda: write(whole), lambda: write(part)))

            def truncate(self, size: int | None = None) -> int:
                counted, cut = shim.counts(self.fileno()), super().truncate
                return int(
                    shim.around("truncate", counted, lambda: cut(size)) if counted else cut(size)
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
            counted = None if isinstance(file, int) or opener else self.counts(file)
            kind = "open" if counted and os.path.lexists(counted) else "create"
            raw = (
                self.around(kind, counted, lambda: File(file, plain, closefd, opener))
                if counted
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

        def call(process: Any, *args: Any, **options: Any) -> None:
            def start() -> None:
                real(process, *args, **options)

            def start_and_end() -> None:
                start()
                process.kill()

            self.around("start", "program", start, start_and_end)

        subprocess.Popen.__init__ = call  # type: ignore[method-assign,assignment]

    def _patch_sqlite(self) -> None:
        self._patch_sqlite_calls()
        shim = self

        class File(apsw.VFSFile):
            """A file of SQLite whose syncs are events."""

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
            """The system's VFS with such files."""

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
            counted = self.counts(path) if flags & _WRITES else None
            kind = "open" if counted and os.path.lexists(counted) else "create"
            return attempt(kind, counted, lambda: int(libc.open(path, flags, mode)))

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
    for supported in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if real in supported:
            supported.add(call)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()  # the signal arrives before this returns


def _sort_of(path: str) -> str:
    """Return a file's part in the home: ``database``, ``wal``, ``memory`` …"""
    name = os.path.basename(path)
    for end, sort in (
        ("-wal", "wal"),
        ("-shm", "shm"),
        ("-journal", "rollback journal"),
        (".lock", "lock"),
    ):
        if name.endswith(end):
            return sort
    if ".db" in name[1:]:  # the name of a pack, a hash, can begin with "db"
        return "database" if name.endswith(".db") else "copy of the database"
    if name == "ledger.jsonl":
        return "ledger"
    if "/.git/" in path:
        return "git"
    if "/vault/" in path:
        return "temporary file" if name.endswith(".tmp") else "vault"
    return "program" if path == "program" else "other"
