"""Where what was forgotten may still be, outside of what nacre can delete; each place with what its owner can do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nacre.app.context import Context
from nacre.app.searching_text import Pattern
from nacre.model.forgetting import ForgetPlan, Unreached

_DELETE = "delete it, or keep it in the knowledge of what it holds"
_LARGEST = 64 * 1024 * 1024


def unreached(context: Context, plan: ForgetPlan) -> tuple[Unreached, ...]:
    """What could not be reached. A text that was forgotten is looked for in the other files of the home."""
    return (
        *_transcripts(plan),
        *_git(context),
        *_copies(context),
        *(_quoting(context, plan.match) if plan.match else ()),
        *(_named(context, plan.match) if plan.match else ()),
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


def _git(context: Context) -> Iterator[Unreached]:
    repository = context.vault.root / ".git"
    if not repository.exists():
        return
    yield Unreached("git history", str(context.vault.root), "nacre scrub --history")
    for remote in _remotes(repository / "config"):
        yield Unreached("git remote", remote, "its history, and every clone of it, must be rewritten or deleted, too")


def _remotes(config: Path) -> list[str]:
    try:
        lines = config.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.partition("=")[2].strip() for line in lines if line.strip().startswith("url")]


def _copies(context: Context) -> Iterator[Unreached]:
    database = context.settings.database
    found = {*database.parent.glob(f"{database.name}.*"), *database.parent.glob("nacre-*.db")}
    for file in sorted(found):
        if file.is_file():
            yield Unreached("older database", str(file), _DELETE)
    for file in sorted((context.settings.home / "archive").glob("*/*.damaged")):
        yield Unreached("damaged part of the archive", str(file), _DELETE)
    folder = context.settings.home / "backups"
    if folder.is_dir() and any(folder.iterdir()):
        yield Unreached("backup", str(folder), _DELETE)


def _quoting(context: Context, match: Pattern) -> Iterator[Unreached]:
    """Other files of the home that say it: pages of projects, notes, logs, saved queries."""
    home, database = context.settings.home, context.settings.database
    for file in sorted(home.rglob("*")):
        inside = file.relative_to(home).parts
        if ".git" in inside or inside[0] in ("archive", "backups") or file.name.startswith(database.name):
            continue
        if file.is_file() and not file.is_symlink() and _says(file, match):
            yield Unreached("still says it", str(file), "edit or delete the file")


def _named(context: Context, match: Pattern) -> Iterator[Unreached]:
    """Sessions that took place in a folder or on a branch of that name."""
    for session in context.erasing.sessions():
        if match.search(f"{session.cwd or ''}\n{session.branch or ''}"):
            yield Unreached("a session's folder or branch", session.id, "nacre forget --session ID takes the session")


def _says(file: Path, match: Pattern) -> bool:
    try:
        if file.stat().st_size > _LARGEST:
            return False
        return match.search(file.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False
