"""For whoever writes an adapter: :func:`check_adapter` tries the promises that every adapter makes.

It needs no test runner: what is broken is one ``AssertionError`` that names all of it.
"""

from nacre.testing.conformance import Agent, Owner, Step, Summary, Tool, check_adapter
from nacre.testing.samples import samples

__all__ = ["Agent", "Owner", "Step", "Summary", "Tool", "check_adapter", "samples"]
