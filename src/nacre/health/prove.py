"""``doctor --deep``: every part of the home is proved against what it was made from; what is safe is mended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from nacre.errors import StoreUnusable
from nacre.health.proofs.archive import prove_archive
from nacre.health.proofs.finding import FAILURE, REBUILD, WARNING, Finding, Proof, told_of
from nacre.health.proofs.history import prove_git
from nacre.health.proofs.index import prove_database, prove_full_text, prove_vectors
from nacre.health.proofs.sessions import prove_transcripts
from nacre.health.proofs.vault import prove_files, prove_ledger, prove_links, prove_projects, prove_writes
from nacre.home.home import Home
from nacre.memories.scan import catch_up
from nacre.storage.database import UNREADABLE
from nacre.values.reports import OK, Check, OnProgress

_PROOFS = (
    prove_database, prove_writes, prove_files, prove_links, prove_full_text, prove_vectors,
    prove_projects, prove_ledger, prove_archive,
)  # fmt: skip


def prove(
    home: Home, *, everything: bool = False, transcripts: bool = True, on_progress: OnProgress | None = None
) -> list[Proof]:
    """Prove the home. What people edited is taken in first, as by any command: that is no finding.

    ``everything`` reads all transcripts again instead of a sample.
    """
    notify = on_progress or (lambda _: None)
    parts: list[Callable[[Home], Proof]] = list(_PROOFS)
    if transcripts:
        parts.append(partial(prove_transcripts, everything=everything, notify=notify))
    return [*_caught_up(home), *(_proof(part, home) for part in (*parts, prove_git))]


def _caught_up(home: Home) -> list[Proof]:
    """What people edited is taken in; a proof that it could not be where the database is damaged."""
    try:
        catch_up(home)
    except (StoreUnusable, *UNREADABLE) as error:
        return [Proof("edits", "not taken in", [_unreadable(error)])]
    return []


def _proof(part: Callable[[Home], Proof], home: Home) -> Proof:
    """One part; what cannot be read does not keep the others from being looked at."""
    try:
        return part(home)
    except (StoreUnusable, *UNREADABLE) as error:
        name = getattr(part, "func", part).__name__.removeprefix("prove_").replace("_", " ")
        return Proof(name, "not looked at", [_unreadable(error)])


def _unreadable(error: Exception) -> Finding:
    found = told_of(error)
    return Finding(FAILURE, found.message, found.hint or REBUILD)


def repair(home: Home, proofs: Sequence[Proof]) -> int:
    """Mend what can be mended without losing anything; returns how many findings that were."""
    mends = [finding.mend for proof in proofs for finding in proof.findings if finding.mend]
    for mend in mends:
        mend(home)
    return len(mends)


def as_check(proof: Proof) -> Check:
    """A proof in one line: the worst of its findings."""
    worst = next((one for one in proof.findings if one.severity == FAILURE), None)
    worst = worst or next(iter(proof.findings), None)
    if worst is None:
        return Check(proof.area, OK, proof.looked)
    more = f" (and {len(proof.findings) - 1} more)" if len(proof.findings) > 1 else ""
    state = FAILURE if worst.severity == FAILURE else WARNING
    return Check(proof.area, state, f"{worst.sentence}{more}", worst.repair)
