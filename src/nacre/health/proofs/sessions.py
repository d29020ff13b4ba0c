"""Index against transcripts: what is read again must be there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nacre.errors import NacreError
from nacre.health.proofs.finding import FAILURE, WARNING, Finding, Mend, Proof, deep_repair
from nacre.home.home import Home
from nacre.ingestion.discovery import footprint
from nacre.ingestion.ingest import ingest
from nacre.ingestion.requests import IngestOptions
from nacre.parsing.parse import opened, parsed
from nacre.storage.maintenance.soundness import Soundness
from nacre.storage.turn_rows import turn_identity
from nacre.transcripts.registry import get_adapter
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import SeenFile, Session, Turn

SAMPLE = 20
"""So many transcripts are read again unless all are asked for: evenly spread over those that still exist."""


def prove_transcripts(home: Home, *, everything: bool, notify: OnProgress) -> Proof:
    """Every turn of the transcripts that still exist, as far as they were read, is in the index."""
    sound = Soundness(home.database_file)
    found = [
        Finding(FAILURE, f"session {name} counts other turns than it has", deep_repair(), _counter(row))
        for row, name in sound.sessions_miscounted()
    ]
    seen = home.sessions.seen_files()
    present = [file for file in seen if Path(file.path).is_file()]
    unchanged = [file for file in present if _is_unchanged(file)]
    chosen = unchanged if everything else _spread(unchanged)
    for done, file in enumerate(chosen):
        found += _read_again(home, sound, file)
        notify(Progress("proving", done + 1, len(chosen), Path(file.path).name))
    if len(unchanged) < len(present):
        told = f"{len(present) - len(unchanged)} transcripts changed since they were read"
        found.append(Finding(WARNING, told, "nacre ingest"))
    looked = f"{len(chosen):,} of {len(present):,} transcripts read again, {len(seen) - len(present):,} are gone"
    return Proof("transcripts", looked, found)


def _is_unchanged(file: SeenFile) -> bool:
    try:
        return footprint(Path(file.path)) == (file.size, file.mtime_ns)
    except OSError:
        return False


def _spread(files: Sequence[SeenFile]) -> list[SeenFile]:
    step = max(1, -(-len(files) // SAMPLE))
    return list(files[::step])


def _read_again(home: Home, sound: Soundness, file: SeenFile) -> list[Finding]:
    path = Path(file.path)
    try:
        lacking, total = _lacking(home, sound, path, file.tool)
    except (NacreError, OSError, ValueError) as error:
        return [Finding(WARNING, f"{path} cannot be read again: {error}", f"nacre ingest --force {path}")]
    if not lacking:
        return []
    told = f"{lacking} of {total} turns of {path} are not in the index"
    return [Finding(FAILURE, told, f"nacre ingest --force {path}", _reader(path))]


def _lacking(home: Home, sound: Soundness, path: Path, tool: str) -> tuple[int, int]:
    """Turns that the index lacks, and how many the file has."""
    turns: dict[bytes, None] = {}
    unknown = 0
    row: int | None = None
    session: Session | None = None
    identities = tuple(home.settings.texts("owner.identities"))
    with opened(path, tool, identities=identities) as (adapter, source):
        for item in parsed(adapter or get_adapter(tool), source):
            if isinstance(item, Session):
                session = item
                row = next((one.row for one in home.sessions.find(item.id)), None)
            elif session is None or (row is None and not item.unique):
                unknown += 1
            else:
                turns[_identity(session, row, item)] = None
    wanted = list(turns)
    known = sum(sound.known_turns(wanted[at : at + 500]) for at in range(0, len(wanted), 500))
    return len(wanted) - known + unknown, len(wanted) + unknown


def _identity(session: Session, row: int | None, turn: Turn) -> bytes:
    return turn_identity(session.tool, row or 0, turn)


def _counter(row: int) -> Mend:
    def mend(home: Home) -> None:
        with home.database.transaction():
            home.sessions.refresh([row])

    return mend


def _reader(path: Path) -> Mend:
    def mend(home: Home) -> None:
        again = IngestOptions(paths=(path,), extract=False, vectors=False, force=True, remember_paths=False)
        ingest(home, again)

    return mend
