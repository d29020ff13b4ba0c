"""Where what was forgotten may still be, outside of what nacre can delete; each place with what its owner can do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nacre.errors import VaultUnusable
from nacre.forgetting.requests import ForgetRequest
from nacre.home.home import Home
from nacre.home.page_lines import REFERENCE_CHARACTERS, references_of
from nacre.home.projects import page_path
from nacre.tombstones.text_search import Pattern
from nacre.tombstones.version_erasure import still_saying
from nacre.values.forgetting import ForgetPlan, Unreached

_DELETE = "delete it, or keep it in the knowledge of what it holds"
_PROFILE = "profile.md"
_LARGEST = 64 * 1024 * 1024


def pattern_of(wanted: ForgetRequest | ForgetPlan) -> Pattern | None:
    """What is looked for, if a text is. Raises QueryInvalid."""
    return None if wanted.match is None else Pattern(wanted.match, is_regex=wanted.regex)


def unreached(home: Home, plan: ForgetPlan) -> tuple[Unreached, ...]:
    """What could not be reached. A text that was forgotten is looked for in the other files of the home."""
    match = pattern_of(plan)
    return (
        *_transcripts(plan),
        *_git(home),
        *_copies(home),
        *_on_server(home),
        *_pages(home, plan),
        *(_quoting(home, match) if match else ()),
        *(_named(home, match) if match else ()),
        Unreached(
            "copies elsewhere",
            "exports, backups on other disks, snapshots of the file system",
            "another machine forgets with its next sync; what was copied away is yours to delete",
        ),
    )


def _transcripts(plan: ForgetPlan) -> Iterator[Unreached]:
    for file in plan.files:
        if Path(file).exists():
            yield Unreached("transcript", file, "the host's own file: delete it there; nacre reads it no more")


def _git(home: Home) -> Iterator[Unreached]:
    repository = home.settings.vault / ".git"
    if home.database.is_server or not repository.exists():
        return
    yield Unreached("git history", str(home.vault.root), "nacre scrub --history")
    for remote in _remotes(repository / "config"):
        yield Unreached("git remote", remote, "its history, and every clone of it, must be rewritten or deleted, too")


def _remotes(config: Path) -> list[str]:
    try:
        lines = config.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.partition("=")[2].strip() for line in lines if line.strip().startswith("url")]


def _copies(home: Home) -> Iterator[Unreached]:
    database = home.settings.database
    found = {*database.parent.glob(f"{database.name}.*"), *database.parent.glob("nacre-*.db")}
    for file in sorted(found):
        if file.is_file():
            yield Unreached("older database", str(file), _DELETE)
    for file in sorted((home.settings.home / "archive").glob("*/*.damaged")):
        yield Unreached("damaged part of the archive", str(file), _DELETE)
    folder = home.settings.home / "backups"
    if folder.is_dir() and any(folder.iterdir()):
        yield Unreached("backup", str(folder), _DELETE)


def _on_server(home: Home) -> Iterator[Unreached]:
    if home.database.is_server:
        yield Unreached(
            "the server's disk", "what was deleted, until it is written over; its log and its backups",
            "its administrator runs VACUUM FULL, and lets backups of before expire (docs/forgetting.md)",
        )  # fmt: skip


def _pages(home: Home, plan: ForgetPlan) -> Iterator[Unreached]:
    """Pages with a line of nacre's that rests on a memory that was forgotten, whatever words the line has."""
    forgotten = {memory.id[-REFERENCE_CHARACTERS:] for memory in plan.memories}
    for path in (*(page_path(one.slug) for one in home.files.projects()), _PROFILE):
        try:
            text = home.vault.read(path).decode("utf-8", errors="replace")
        except (OSError, VaultUnusable):
            continue
        if any(forgotten.intersection(references_of(line)) for line in text.splitlines()):
            yield Unreached(
                "sums it up", str(home.vault.root / path), "nacre dream --tier 3 --no-writer takes the line out"
            )


def _quoting(home: Home, match: Pattern) -> Iterator[Unreached]:
    """Other files of the home that say it: pages of projects, notes, logs, saved queries."""
    home_path, database = home.settings.home, home.settings.database
    for file in sorted(home_path.rglob("*")):
        inside = file.relative_to(home_path).parts
        if ".git" in inside or inside[0] in ("archive", "backups") or file.name.startswith(database.name):
            continue
        if file.is_file() and not file.is_symlink() and _says(file, match):
            yield Unreached("still says it", str(file), "edit or delete the file")
    for path in still_saying(home, match):
        yield Unreached("still says it", str(home.vault.root / path), "write it anew")


def _named(home: Home, match: Pattern) -> Iterator[Unreached]:
    """Sessions that took place in a folder or on a branch of that name."""
    for session in home.erasing.sessions():
        if match.search(f"{session.cwd or ''}\n{session.branch or ''}"):
            yield Unreached("a session's folder or branch", session.id, "nacre forget --session ID takes the session")


def _says(file: Path, match: Pattern) -> bool:
    try:
        if file.stat().st_size > _LARGEST:
            return False
        return match.search(file.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False
