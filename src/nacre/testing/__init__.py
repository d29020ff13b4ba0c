"""Conformance test for adapter authors: :func:`check_adapter` checks the guarantees of every adapter.

No test runner is needed. One ``AssertionError`` lists all failures.
"""

from nacre.testing.conformance import Agent, Owner, Step, Summary, Tool, check_adapter
from nacre.testing.samples import samples

__all__ = ["Agent", "Owner", "Step", "Summary", "Tool", "check_adapter", "samples"]
