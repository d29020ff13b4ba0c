"""Note what a run goes through, step by step, and keep it when it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from nacre.app.context import Context
from nacre.model.trace import Step, Trace, TraceKind


@dataclass
class Run:
    """A run that goes on: its steps so far, and how it ended."""

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
def tracing(context: Context, kind: TraceKind, subject: str) -> Iterator[Run]:
    """Whatever is asked of models within is a step of this run; within another run, of that one.

    What is noted is redacted and kept when it ends, also when it fails. Call it without an open transaction.
    """
    outer = _RUN.get()
    if outer is not None:
        yield outer
        return
    run = Run(Trace(context.ids(), kind, subject, context.now()))
    token = _RUN.set(run)
    began = time.perf_counter()
    try:
        yield run
    except BaseException as error:
        run.outcome = run.outcome or f"failed: {error}"
        raise
    finally:
        _RUN.reset(token)
        if run.steps:
            _keep(context, run, time.perf_counter() - began)


def _keep(context: Context, run: Run, seconds: float) -> None:  # noqa: ARG001
    """Store a run that has ended."""
    replace(run.trace, ended=context.now(), steps=tuple(run.steps), outcome=run.outcome)
