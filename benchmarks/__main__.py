"""The command line of the benchmarks: ``python -m benchmarks``, from a checkout."""

from __future__ import annotations

import os
import sys

from benchmarks.card.commands import card
from benchmarks.contexts.commands import context
from benchmarks.contradictions.commands import stale
from benchmarks.dreams.commands import dreams
from benchmarks.extraction.commands import extraction
from benchmarks.load.commands import gateway, locks, size, writers
from benchmarks.redaction.commands import redaction
from benchmarks.retrieval.commands import parity, retrieval
from nacre.cli.root import Program

if sys.platform != "win32":
    from benchmarks.load.code_commands import code
    from benchmarks.load.hook_commands import hooks


benchmarks = Program(
    name="python -m benchmarks",
    help="Measure nacre during development. Users have nacre admin check.",
    examples=[
        "python -m benchmarks retrieval --suite coding",
        "python -m benchmarks extraction --misses",
        "python -m benchmarks redaction --json",
    ],
    commands=[
        card,
        retrieval,
        parity,
        extraction,
        context,
        stale,
        dreams,
        redaction,
        size,
        writers,
        locks,
        gateway,
    ],
)
if sys.platform != "win32":
    benchmarks.add_command(hooks)
    benchmarks.add_command(code)


if __name__ == "__main__":
    os.umask(0o077)
    benchmarks.main(sys.argv[1:])
