"""The times of a vault's files without a look at each: Linux tells of a change before whoever makes it can go on.

inotify is asked directly (``inotify(7)``, ``statfs(2)``). A library whose thread gathers what the system tells cannot
say whether all that was done before now has been told, and that is what is promised of edits by hand.
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
"""After so long each file is looked at again: nobody tells of what is written by a mapping that stays open, or by
another name that a file got outside of the vault."""

_CHANGED = 0x2 | 0x4 | 0x8
"""Bytes, permissions or times changed; a file that was open to be written was closed."""
_MOVED, _MADE, _GONE, _SELF_GONE, _SELF_MOVED = 0x40 | 0x80, 0x100, 0x200, 0x400, 0x800
_WANTED = _CHANGED | _MOVED | _MADE | _GONE | _SELF_GONE | _SELF_MOVED
_UNMOUNTED, _LOST, _FORGOTTEN, _FOLDER = 0x2000, 0x4000, 0x8000, 0x40000000
_OF_MORE_THAN_A_FILE = _SELF_GONE | _SELF_MOVED | _UNMOUNTED | _LOST | _FORGOTTEN | _FOLDER

_HEAD = struct.Struct("iIII")
_CHUNK = 65_536
_STATFS_BYTES = 256
_LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010, 0x2FC12FC1})
"""ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS: what changes there, this system changes. Of a disk that others share it
tells its own changes alone."""


class VaultWatch:
    """Knows the times of a vault's files, as fresh as after a look at each; any thread may ask.

    Each is looked at where the system does not tell of changes.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = Vault(vault.root)
        self._guard = threading.Lock()
        self._told: _Told | None = None
        self._until = 0.0
        self._times: Mapping[str, tuple[int, int]] = {}

    @property
    def is_live(self) -> bool:
        """Whether the system tells of changes."""
        return self._told is not None

    def times(self) -> Mapping[str, tuple[int, int]]:
        """As :meth:`Vault.times`. What is returned does not change any more."""
        with self._guard:
            is_due = time.monotonic() >= self._until
            if self._told or is_due:
                changed = None if is_due or not self._told else self._told.paths()
                if changed is None or not self._follow(changed):
                    self._look()
                return self._times
        return self._vault.times()

    def close(self) -> None:
        """Watch no more: from now on each file is looked at."""
        with self._guard:
            self._end()
            self._until = math.inf

    def _end(self) -> None:
        if self._told:
            self._told.close()
        self._told = None

    def _follow(self, changed: set[str]) -> bool:
        """Look at what changed. False where a file got a second name: who writes by that one, tells of that alone."""
        if not changed:
            return True
        times = dict(self._times)
        for path in changed:
            try:
                found = os.lstat(os.path.join(self._vault.root, path))
            except OSError:
                times.pop(shown(path), None)
            else:
                if found.st_nlink > 1 and self._told and path not in self._told.shared:
                    return False
                times |= times_of([(path, found)])
        self._times = times
        return True

    def _look(self) -> None:
        """Look at each file, and be told of what changes from just before."""
        self._end()
        told = _Told(self._vault.root)
        try:
            files = dict(self._vault.walk(told.enter))
            self._times = times_of(files.items())
            told.shared = {path for path, found in files.items() if found.st_nlink > 1}
            self._until = time.monotonic() + LONGEST_SECONDS
            self._told = told if told.is_complete() else None
        finally:
            if self._told is not told:
                told.close()


class _Told:
    """What the system tells of folders since they were entered. ``shared`` are files that have several names."""

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
        """Be told of a folder that is open and not yet listed."""
        if self._fails:
            return
        kind = ctypes.create_string_buffer(_STATFS_BYTES)
        is_local = (
            self._libc.fstatfs(folder, kind) == 0
            and ctypes.c_ulong.from_buffer(kind).value in _LOCAL
        )
        name = f"/proc/self/fd/{folder}".encode()
        number = self._libc.inotify_add_watch(self._descriptor, name, _WANTED) if is_local else -1
        self._fails = number < 0 or number in self._folders
        self._folders[number] = prefix
        if not prefix:
            self._seen = os.fstat(folder)

    def is_complete(self) -> bool:
        """Whether all folders are told of, and the vault is still the one that was entered."""
        if self._fails or self._seen is None:
            return False
        with suppress(OSError):
            return os.path.samestat(os.stat(self._root), self._seen)
        return False

    def paths(self) -> set[str] | None:
        """Files that may have changed since the last time; ``None`` for more than can be named."""
        changed = set(self.shared)
        for folder, mask, name in self._events():
            if mask & _OF_MORE_THAN_A_FILE:
                return None
            path = self._folders[folder] + name
            if is_memory_file(path):
                changed.add(path)
        return changed if self.is_complete() else None

    def _events(self) -> Iterator[tuple[int, int, str]]:
        """The number of each folder, what happened in it, and to what."""
        with suppress(BlockingIOError):
            while chunk := os.read(self._descriptor, _CHUNK):
                at = 0
                while at < len(chunk):
                    folder, mask, _, length = _HEAD.unpack_from(chunk, at)
                    at += _HEAD.size + length
                    yield folder, mask, os.fsdecode(chunk[at - length : at].rstrip(b"\0"))

    def close(self) -> None:
        """Be told no more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
