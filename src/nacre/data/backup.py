"""Backups: zip files with the whole home and a manifest of hashes.

A consistent snapshot of the database is copied first, then the vault's files. Vault changes in between are treated
like manual edits when the restored home is opened. The vault lock is held only at the start and at the end. At the
end, commits are blocked, too, and changed files are copied again, so that the git history is consistent.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, BinaryIO

from nacre.base import files
from nacre.base import json as json_text
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.locks import FileLock
from nacre.base.text import to_text
from nacre.base.zips import BROKEN
from nacre.data.export import Overwrite
from nacre.data.history import COMMIT_LOCK
from nacre.data.importers import safe_name
from nacre.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from nacre.home.change import put_in_place
from nacre.home.home import Home, territory
from nacre.home.operations import apply_intents
from nacre.llm import credentials
from nacre.memories.edit import catch_up
from nacre.memories.usage import fold_usage
from nacre.operations import operation
from nacre.settings import Settings
from nacre.store.gateway import DATABASE as GATEWAY_DATABASE
from nacre.store.sqlite import Snapshot
from nacre.values.codec import plain, stamp
from nacre.values.reports import OnProgress, Progress
from nacre.vault.files import GIT_FOLDER

FORMAT, VERSION = "nacre-backup", 1
MANIFEST = "manifest.json"
DATABASE, CONFIG = "nacre.db", "config.toml"

_MAX_MANIFEST_BYTES = 256_000_000
_MAX_FILES = 2_000_000
_BLOCK_BYTES = 1 << 20
_SPARE_BYTES = 64_000_000
_COMMIT_WAIT_SECONDS = 60.0
_REPOSITORY_FOLDERS = ("objects", "refs")
"""Folders that git requires even if they are empty."""
_SKIPPED_FOLDERS = frozenset({"logs", "run"})
_SKIPPED_FILES = frozenset({"daemon.sock", "http.token", "browsers.json"})
"""Files that are not backed up. nacre recreates them, and the token must stay on the machine."""

_WITH_CREDENTIALS = frozenset({CONFIG, "vault/.git/config"})

Place = tuple[int, int, int, int]


@frozen
class BackupFile:
    """A file in a backup. ``path`` is relative to the home, and ``size`` is in bytes."""

    path: str
    size: int
    sha256: str
    mtime_ns: int


@frozen
class Manifest:
    """The list of files in a backup. ``notes`` lists how the backup differs from the home."""

    created: str
    counts: dict[str, int]
    files: tuple[BackupFile, ...]
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The total size of the uncompressed files."""
        return sum(file.size for file in self.files)


@frozen
class BackupReport:
    """The path, size and manifest of a new backup."""

    path: Path
    bytes: int
    manifest: Manifest


@frozen
class RestoreReport:
    """The result of a restore. ``kept`` is the former home's new path, if there was one."""

    home: Path
    kept: Path | None
    manifest: Manifest


@dataclass(slots=True)
class _Writing:
    home: Home
    archive: zipfile.ZipFile
    notify: OnProgress
    files: dict[str, BackupFile] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@operation("backup-create", takes_long=True)
def create(
    home: Home,
    target: Annotated[Path, bounds("The file to write.")],
    *,
    overwrite: Overwrite = False,
    on_progress: OnProgress = lambda _: None,
) -> BackupReport:
    """Write a backup of the whole home.

    Raises ConflictError if the file exists and ``overwrite`` is False, UnavailableError on a server.
    """
    if home.database.server:
        raise UnavailableError(
            "this memory is on a server", hint="back up the server: pg_dump, or nacre data export"
        )
    target = target.expanduser().absolute()
    catch_up(home)
    fold_usage(home)
    with (
        files.named_file(target, territory(home.settings), overwrite=overwrite) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        work = _Writing(home, archive, on_progress)
        counts = _copy_database(work, target)
        _copy_files(work, target)
        committing = FileLock(home.settings.home / COMMIT_LOCK, _COMMIT_WAIT_SECONDS)
        with committing, home.vault_lock:  # includes files moved or changed during the copy
            _catch_up(work)
        manifest = Manifest(
            stamp(home.now()),
            counts,
            tuple(sorted(work.files.values(), key=lambda entry: entry.path)),
            tuple(dict.fromkeys(work.notes)),
        )
        values = {"format": FORMAT, "version": VERSION, **plain(manifest)}
        archive.writestr(MANIFEST, json.dumps(values, ensure_ascii=False, indent=1))
    return BackupReport(target, target.stat().st_size, manifest)


def _copy_database(work: _Writing, target: Path) -> dict[str, int]:
    home = work.home
    with home.vault_lock:
        apply_intents(home)
        sessions = home.sessions.counts()
        counts = {
            "memories": len(home.memories.all_ids()),
            "projects": len(home.files.projects()),
            "sessions": sum(row[1] for row in sessions),
            "turns": sum(row[2] or 0 for row in sessions),
            "files": sum(1 for _ in home.vault.scan()),
        }
        snapshot = Snapshot(home.settings.database)
    _copy_snapshot(work, target, DATABASE, snapshot)
    gateway = home.settings.home / GATEWAY_DATABASE
    if gateway.is_file():
        _copy_snapshot(work, target, GATEWAY_DATABASE, Snapshot(gateway))
    return counts


def _copy_snapshot(work: _Writing, target: Path, name: str, snapshot: Snapshot) -> None:
    copy = files.temporary_name(target, f"{DATABASE}.")
    try:
        os.close(files.open_file(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        snapshot.copy(
            copy, lambda done, total: work.notify(Progress("backup", done, total, "database"))
        )
        _add(work, name, copy)
    finally:
        copy.unlink(missing_ok=True)


def _copy_files(work: _Writing, target: Path) -> None:
    home = work.home.settings.home
    paths = [path for path in _walk(work, home) if path != target]
    for index, path in enumerate(paths):
        _add(work, path.relative_to(home).as_posix(), path)
        work.notify(Progress("backup", index + 1, len(paths), "files"))
    config = work.home.settings.config
    if config.is_file() and CONFIG not in work.files:
        _add(work, CONFIG, config)


def _catch_up(work: _Writing) -> None:
    home = work.home.settings.home
    present = {path.relative_to(home).as_posix(): path for path in _walk(work, home / "vault")}
    for name in [name for name in work.files if name.startswith("vault/") and name not in present]:
        del work.files[name]
    for name, path in present.items():
        if _place(path) != work.places.get(name):
            _add(work, name, path)


def _walk(work: _Writing, folder: Path) -> Iterator[Path]:
    settings = work.home.settings
    for parent, folders, names in os.walk(folder):
        if Path(parent) == settings.home:
            folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        folders.sort()
        for name in sorted(names):
            path, is_top = Path(parent, name), Path(parent) == settings.home
            if is_top and (name.startswith(settings.database.name) or name in _SKIPPED_FILES):
                continue
            if str(path).startswith(str(settings.home / GATEWAY_DATABASE)):
                continue  # copied as a snapshot
            if is_top and name == credentials.NAME:
                work.notes.append(f"{name} was left out: nacre writer keys stores keys again")
                continue
            if name.endswith(".lock") or (name.startswith(".") and name.endswith(".tmp")):
                continue
            if refusal := _refusal(path):
                name = os.fsencode(path.relative_to(settings.home)).decode(
                    "utf-8", "backslashreplace"
                )
                work.notes.append(f"{name} {refusal}; it was left out")
                continue
            yield path


def _refusal(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "is a link or not a regular file"
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return "has a name that is not UTF-8 (rename it)"
    return ""


def _add(work: _Writing, name: str, path: Path) -> None:
    place = _place(path)
    if place is None:
        return  # deleted in the meantime; if it was renamed, the second pass finds it
    info = zipfile.ZipInfo(name, time.localtime(max(place[0] // 1_000_000_000, 315_619_200))[:6])
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (stat.S_IFREG | 0o600) << 16
    digest, size = hashlib.sha256(), 0
    try:
        source = path.open("rb")
    except FileNotFoundError:
        return
    with source, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a changed file is added again; the last copy is used
        with work.archive.open(info, "w", force_zip64=True) as member:
            for block in _blocks(work, name, source):
                member.write(block)
                digest.update(block)
                size += len(block)
    work.files[name] = BackupFile(name, size, digest.hexdigest(), place[0])
    work.places[name] = place


def _blocks(work: _Writing, name: str, source: BinaryIO) -> Iterator[bytes]:
    if name in _WITH_CREDENTIALS:
        text = to_text(source.read())
        bare = text
        for own in work.home.settings["models.providers"].values():
            if key := own.get("api_key"):  # a key of any format
                bare = bare.replace(key, "[REDACTED:api-key]")
        clean = work.home.redactor.clean(bare)
        if clean != text:
            work.notes.append(f"{name}: text that looked like a secret was removed")
        yield clean.encode("utf-8")
        return
    while block := source.read(_BLOCK_BYTES):
        yield block


def _place(path: Path) -> Place | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def read_manifest(backup: Path) -> Manifest:
    """Read a backup's manifest. Raises InvalidInputError if the file is damaged or not a backup."""
    with _opened(backup) as archive:
        return _manifest(backup, archive)


@operation(
    "backup-restore",
    writes=True,
    takes_long=True,
    closed=True,
    owners=True,
    command="data backup restore",
)
def restore(
    settings: Settings,
    on_progress: OnProgress = lambda _: None,
    *,
    backup: Annotated[Path, bounds("The backup's file.")],
    target: Annotated[
        Path | None, bounds("The folder of the home; default: the one from the settings.")
    ] = None,
    replace: Annotated[bool, bounds("Move an existing home aside and replace it.")] = False,
) -> RestoreReport:
    """Restore a backup as a home, completely or not at all.

    Raises NotFoundError, InvalidInputError, ConflictError, UnavailableError.
    """
    home = (target or settings.home).expanduser().absolute()
    if settings.server and home == settings.home:
        raise UnavailableError(
            "this memory is on a server, but a backup contains files",
            hint="--to FOLDER restores the files; docs/server.md describes how to restore a server",
        )
    if home != settings.home and files.is_within(home, territory(settings)):
        raise ConflictError(f"{home} is inside the existing home", hint="give a folder elsewhere")
    if os.path.lexists(home) and not home.is_dir():
        raise ConflictError(
            f"{home} is not a folder", hint="give a new folder or the folder of a home"
        )
    is_taken = home.exists() and any(home.iterdir())
    if is_taken and not replace:
        raise ConflictError(
            f"{home} already exists",
            hint="--force moves it aside and restores the backup in its place",
        )
    fresh = home.with_name(f".{home.name}.restoring")
    files.make_folder(home.parent)
    try:
        manifest = unpack(backup, fresh, on_progress)
        if hasattr(os, "sync"):
            os.sync()  # thousands of small files are flushed together before the final rename
        return RestoreReport(home, put_in_place(fresh, home), manifest)
    finally:
        if fresh.is_dir():
            shutil.rmtree(fresh)


def unpack(backup: Path, folder: Path, notify: OnProgress) -> Manifest:
    """Extract a backup to a new folder.

    Raises InvalidInputError if a file does not match its hash, or UnavailableError if the disk is
    too full.
    """
    with _opened(backup) as archive:
        manifest = _manifest(backup, archive)
        if shutil.disk_usage(folder.parent).free < manifest.bytes + _SPARE_BYTES:
            raise UnavailableError(
                f"{folder.parent} has not enough space for {manifest.bytes / 1e6:,.0f} MB",
                hint="free some space",
            )
        if folder.exists():
            shutil.rmtree(folder)  # left by an interrupted restore
        files.make_folder(folder)
        written_bytes = 0
        for file in manifest.files:
            _unpack_one(backup, archive, folder, file)
            written_bytes += file.size
            notify(Progress("restoring", written_bytes, manifest.bytes, file.path[-40:]))
    files.make_folder(folder / "vault")
    if (folder / "vault" / GIT_FOLDER).is_dir():
        for name in _REPOSITORY_FOLDERS:
            files.make_folder(folder / "vault" / GIT_FOLDER / name)
    return manifest


def _unpack_one(backup: Path, archive: zipfile.ZipFile, folder: Path, file: BackupFile) -> None:
    target = folder / file.path
    files.make_folder(target.parent)
    digest, remaining = hashlib.sha256(), file.size
    descriptor = files.open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(descriptor, "wb") as out:
        for block in _member(backup, archive, file.path):
            remaining -= len(block)
            if remaining < 0:
                break
            digest.update(block)
            out.write(block)
    if remaining or digest.hexdigest() != file.sha256:
        raise _damaged(backup, f"{file.path} has changed since the backup was made")
    os.utime(target, ns=(file.mtime_ns, file.mtime_ns))


def _member(backup: Path, archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    try:
        with archive.open(name) as member:
            while block := member.read(_BLOCK_BYTES):
                yield block
    except (KeyError, *BROKEN) as error:
        raise _damaged(backup, f"{name}: {error}") from error


def _opened(backup: Path) -> zipfile.ZipFile:
    backup = backup.expanduser().absolute()
    if not backup.exists():
        raise NotFoundError(f"there is no backup at {backup}", hint="check the path")
    try:
        return zipfile.ZipFile(backup)
    except BROKEN as error:
        raise _damaged(backup, str(error)) from error


def _manifest(backup: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        info = archive.getinfo(MANIFEST)
        if info.file_size > _MAX_MANIFEST_BYTES:
            raise _damaged(backup, "its manifest is too large")
        values = json_text.parse(archive.read(info))
        if values["format"] != FORMAT:
            raise ValueError("not a nacre backup")
        if values["version"] > VERSION:
            raise InvalidInputError(
                f"{backup} was made by a newer nacre", hint="upgrade nacre, then restore it"
            )
        manifest = json_text.convert(values, Manifest)
        _check(manifest.files)
        return manifest
    except (KeyError, TypeError, *BROKEN) as error:
        raise _damaged(backup, f"its manifest is not readable ({error})") from error


def _check(files: tuple[BackupFile, ...]) -> None:
    checked_paths = set()
    if len(files) > _MAX_FILES:
        raise ValueError("too many files")
    for file in files:
        is_normal = str(PurePosixPath(file.path)) == file.path
        if not is_normal or not safe_name(file.path) or ":" in file.path.split("/")[0]:
            raise ValueError(f"{file.path!r} points outside the home")
        # On Windows and macOS, paths that differ only in case are the same file.
        if file.size < 0 or file.path.casefold() in checked_paths:
            raise ValueError(f"{file.path!r} occurs twice or is not a file")
        checked_paths.add(file.path.casefold())


def _damaged(backup: Path, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"{backup} cannot be used: {why}", hint="use another backup, or copy it again"
    )
