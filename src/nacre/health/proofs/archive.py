"""The archive against its checksums, and against the index."""

from __future__ import annotations

from nacre.archive import operations
from nacre.health.proofs.finding import FAILURE, Finding, Proof, deep_repair
from nacre.home.home import Home


def prove_archive(home: Home) -> Proof:
    """Every segment is what it was when it was written; a damaged pack is set aside, and told of as long as it lies."""
    files, problems = operations.verify(home)
    found = [
        Finding(FAILURE, f"{one.path}: {one.message}", one.hint or deep_repair(), operations.mend) for one in problems
    ]
    return Proof("archive", f"{files:,} transcripts, every checksum", found)
