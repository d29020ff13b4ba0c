"""For whoever writes an adapter: :func:`check_adapter` tries the promises that every adapter makes.

It needs no test runner: what is broken is one ``AssertionError`` that names all of it.
"""

from nacre.testing.conformance import check_adapter
from nacre.testing.samples import samples
from nacre.testing.steps import Agent, Owner, Step, Summary, Tool

__all__ = ["Agent", "Owner", "Step", "Summary", "Tool", "check_adapter", "samples"]
