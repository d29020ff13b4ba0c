"""Note what a run goes through, step by step, and keep it when it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta

from nacre.home.home import Home
from nacre.redact.redactor import Redactor
from nacre.spending import spool
from nacre.text.passages import shorten
from nacre.values.trace import Step, Trace, TraceKind

MOST_STEPS = 500
"""Of a run that are kept; what comes after is counted."""

MOST_REFS = 100
"""Of a step: what a big run stored is in the vault, and in its operation."""

_LINE_CHARACTERS = 400


@dataclass
class Run:
    """A run that goes on: its steps so far, and how it ended. Several threads may add to it."""

    trace: Trace
    steps: list[Step] = field(default_factory=list)
    outcome: str = ""

    def add(self, step: Step) -> None:
        """Note a step."""
        self.steps.append(step)


_RUN: ContextVar[Run | None] = ContextVar("run", default=None)


def current() -> Run | None:
    """The run that goes on in this thread, if one does."""
    return _RUN.get()


@contextmanager
def tracing(home: Home, kind: TraceKind, subject: str) -> Iterator[Run]:
    """Whatever is asked of models within is a step of this run; within another run, of that one.

    What is noted is redacted and kept when it ends, also when it fails. Call it without an open transaction.
    """
    outer = _RUN.get()
    if outer is not None:
        yield outer
        return
    with noting(home, kind, subject) as run:
        token = _RUN.set(run)
        try:
            yield run
        finally:
            _RUN.reset(token)


@contextmanager
def noting(home: Home, kind: TraceKind, subject: str) -> Iterator[Run]:
    """A run whose steps whoever holds it adds: what models are asked within has traces of its own. Kept as above."""
    run = Run(Trace(home.ids(), kind, subject, home.clock()))
    began = time.perf_counter()
    try:
        yield run
    except BaseException as error:
        run.outcome = run.outcome or f"failed: {error or type(error).__name__}"
        raise
    finally:
        if run.steps:
            _keep(home, run, time.perf_counter() - began)


def _keep(home: Home, run: Run, seconds: float) -> None:
    """Note a run that has ended, without secrets."""

    clean = home.redactor
    kept = [cleaned(clean, step) for step in run.steps[:MOST_STEPS]]
    if len(run.steps) > MOST_STEPS:
        kept.append(Step("goes on", output=f"{len(run.steps) - MOST_STEPS:,} more steps"))
    trace = replace(
        run.trace, subject=_line(clean, run.trace.subject), outcome=_line(clean, run.outcome),
        ended=run.trace.began + timedelta(seconds=seconds), steps=tuple(kept),
    )  # fmt: skip
    spool.note_trace(home, trace)


def counted(counts: Mapping[str, int]) -> str:
    """Counts in words: ``files: 3, turns: 1,204``; those that are zero are left out."""
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items() if count)


def cleaned(redactor: Redactor, step: Step) -> Step:
    """A step without secrets, what went in and came out in a line each."""
    return replace(
        step, title=_line(redactor, step.title), input=_line(redactor, step.input), output=_line(redactor, step.output),
        refs=tuple(redactor.clean(ref) for ref in step.refs),
        more={
            redactor.clean(name): redactor.clean(value) if isinstance(value, str) else value
            for name, value in step.more.items()
        },
    )  # fmt: skip


def _line(redactor: Redactor, text: str) -> str:
    return shorten(redactor.clean(text), _LINE_CHARACTERS)
