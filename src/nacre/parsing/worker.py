"""A process that reads transcripts: jobs come in on its standard input, what they hold goes out on its standard output.

It opens no database, no vault and no model, and ends when its input does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import IO

from nacre.packs.lines import Cleaner
from nacre.parsing import wire
from nacre.parsing.parse import read_file
from nacre.parsing.redaction import clean_file
from nacre.redact.redactor import Redactor

_ALLOCATIONS = 50_000
"""Between two looks for garbage that refers to itself. Hardly any does; records and turns come by the thousand."""


def main() -> None:
    """Read until there is nothing more to read, or nobody to read for."""
    frames_out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what somebody's adapter prints is no frame
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    with contextlib.suppress(OSError):  # whoever asked may be gone
        _serve(sys.stdin.buffer, frames_out)
    os._exit(0)


def _serve(frames_in: IO[bytes], frames_out: IO[bytes]) -> None:
    frame = wire.read(frames_in)
    if frame is None:
        return
    setup = wire.unpack_setup(frame)
    redactor = Redactor(setup.patterns, setup.allow, setup.kinds)
    cleaner = Cleaner(redactor.clean_all, redactor.find_suspects)
    excluded = frozenset(setup.excluded_tools)
    wire.write(frames_out, wire.Frame(wire.Kind.READY, b""))
    frames_out.flush()
    while frame := wire.read(frames_in):
        for job in wire.unpack_jobs(frame):
            for event in clean_file(job, cleaner) if setup.cleans else read_file(job, redactor, excluded):
                wire.write(frames_out, wire.pack(event))
            frames_out.flush()
