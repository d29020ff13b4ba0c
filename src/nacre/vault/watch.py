"""Watching the vault with inotify, which replaces checking the times of all files.

Linux reports a change before the program that made it continues, so that manual edits are not
missed. A library that collects events in a thread cannot guarantee this. inotify is therefore
called directly (``inotify(7)``, ``statfs(2)``).
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from nacre.vault.files import Vault, is_memory_file, shown, times_of

LONGEST_SECONDS = 60.0
"""Maximum time in seconds between full scans.

They find writes through a memory map or a hard link outside the vault.
"""

_IN_CHANGED = 0x2 | 0x4 | 0x8
"""Events for changed content, permissions or times, and for closing a file that was open for writing."""
_IN_MOVED, _IN_CREATE, _IN_DELETE, _IN_DELETE_SELF, _IN_MOVE_SELF = (
    0x40 | 0x80,
    0x100,
    0x200,
    0x400,
    0x800,
)
_WATCHED_EVENTS = (
    _IN_CHANGED | _IN_MOVED | _IN_CREATE | _IN_DELETE | _IN_DELETE_SELF | _IN_MOVE_SELF
)
_IN_UNMOUNT, _IN_OVERFLOW, _IN_IGNORED, _IN_FOLDER = 0x2000, 0x4000, 0x8000, 0x40000000
_RESCAN_EVENTS = (
    _IN_DELETE_SELF | _IN_MOVE_SELF | _IN_UNMOUNT | _IN_OVERFLOW | _IN_IGNORED | _IN_FOLDER
)

_EVENT_HEADER = struct.Struct("iIII")
_CHUNK_BYTES = 65_536
_STATFS_BYTES = 256
_LOCAL_FILE_SYSTEMS = frozenset(
    {0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010, 0x2FC12FC1}
)
"""File systems (ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS) whose files only this system changes.

On shared disks, changes by other systems are not reported.
"""


class VaultWatch:
    """A thread-safe source of the times when a vault's files changed.

    If the system does not report changes, every file is checked.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = Vault(vault.root)
        self._guard = threading.Lock()
        self._current: _Events | None = None
        self._until = 0.0
        self._times: Mapping[str, tuple[int, int]] = {}

    @property
    def is_live(self) -> bool:
        return self._current is not None

    def times(self) -> Mapping[str, tuple[int, int]]:
        """Return the result of :meth:`Vault.times`.

        Later updates do not change the returned mapping.
        """
        with self._guard:
            is_due = time.monotonic() >= self._until
            if self._current or is_due:
                changed = None if is_due or not self._current else self._current.paths()
                if changed is None or not self._follow(changed):
                    self._look()
                return self._times
        return self._vault.times()

    def close(self) -> None:
        """Stop watching. Later calls check every file."""
        with self._guard:
            self._end()
            self._until = math.inf

    def _end(self) -> None:
        if self._current:
            self._current.close()
        self._current = None

    def _follow(self, changed: set[str]) -> bool:
        """Update the times of changed files. Return False if a file has a new hard link.

        Changes through other hard links are not reported.
        """
        if not changed:
            return True
        times = dict(self._times)
        for path in changed:
            try:
                status = os.lstat(os.path.join(self._vault.root, path))
            except OSError:
                times.pop(shown(path), None)
            else:
                if status.st_nlink > 1 and self._current and path not in self._current.shared:
                    return False
                times |= times_of([(path, status)])
        self._times = times
        return True

    def _look(self) -> None:
        self._end()
        events = _Events(self._vault.root)
        try:
            files = dict(self._vault.walk(events.enter))
            self._times = times_of(files.items())
            events.shared = {path for path, status in files.items() if status.st_nlink > 1}
            self._until = time.monotonic() + LONGEST_SECONDS
            self._current = events if events.is_complete() else None
        finally:
            if self._current is not events:
                events.close()


class _Events:
    """File system events in watched folders. ``shared``: files with more than one hard link."""

    def __init__(self, root: os.PathLike[str]) -> None:
        self._root = root
        self._seen: os.stat_result | None = None
        self._folders: dict[int, str] = {}
        self._fails = True
        self._descriptor = -1
        self.shared: set[str] = set()
        if sys.platform == "linux":
            with suppress(AttributeError, OSError):
                self._libc = ctypes.CDLL(None)
                self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
                self._fails = self._descriptor < 0

    def enter(self, prefix: str, folder: int) -> None:
        """Watch an open folder. Call this before listing it."""
        if self._fails:
            return
        kind = ctypes.create_string_buffer(_STATFS_BYTES)
        is_local = (
            self._libc.fstatfs(folder, kind) == 0
            and ctypes.c_ulong.from_buffer(kind).value in _LOCAL_FILE_SYSTEMS
        )
        name = f"/proc/self/fd/{folder}".encode()
        number = (
            self._libc.inotify_add_watch(self._descriptor, name, _WATCHED_EVENTS)
            if is_local
            else -1
        )
        self._fails = number < 0 or number in self._folders
        self._folders[number] = prefix
        if not prefix:
            self._seen = os.fstat(folder)

    def is_complete(self) -> bool:
        """Return True if all folders are watched and the vault is still the same folder."""
        if self._fails or self._seen is None:
            return False
        with suppress(OSError):
            return os.path.samestat(os.stat(self._root), self._seen)
        return False

    def paths(self) -> set[str] | None:
        """Return the files that might have changed since the last call, or ``None`` if unknown."""
        changed = set(self.shared)
        for folder, mask, name in self._events():
            if mask & _RESCAN_EVENTS:
                return None
            path = self._folders[folder] + name
            if is_memory_file(path):
                changed.add(path)
        return changed if self.is_complete() else None

    def _events(self) -> Iterator[tuple[int, int, str]]:
        """Yield the folder number, event mask and file name of each event."""
        with suppress(BlockingIOError):
            while chunk := os.read(self._descriptor, _CHUNK_BYTES):
                at = 0
                while at < len(chunk):
                    folder, mask, _, length = _EVENT_HEADER.unpack_from(chunk, at)
                    at += _EVENT_HEADER.size + length
                    yield folder, mask, os.fsdecode(chunk[at - length : at].rstrip(b"\0"))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
