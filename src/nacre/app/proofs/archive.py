"""The archive against its checksums, and against the index."""

from __future__ import annotations

from nacre.app import archived
from nacre.app.context import Context
from nacre.app.proofs.finding import FAILURE, Finding, Proof, deep_repair


def prove_archive(context: Context) -> Proof:
    """Every segment is what it was when it was written; a damaged pack is set aside, and told of as long as it lies."""
    files, problems = archived.verify(context)
    found = [
        Finding(FAILURE, f"{one.path}: {one.message}", one.hint or deep_repair(), archived.mend) for one in problems
    ]
    return Proof("archive", f"{files:,} transcripts, every checksum", found)
