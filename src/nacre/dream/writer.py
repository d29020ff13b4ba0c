"""The writer of dreams: opened where it may be asked, asked side by side, shown only what it may see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.protocols import LanguageModel
from nacre.spending.models import NONE, model_for, name_for
from nacre.spending.parallel import Answered, ask_all, is_final
from nacre.spending.permission import rests
from nacre.values.model_calls import Task
from nacre.values.reports import OnProgress, Progress

A = TypeVar("A")

NO_WRITER = "no writer is set: nacre writer set"
_AT_ONCE = 3


@contextmanager
def writer_of(home: Home, *, background: bool) -> Iterator[tuple[LanguageModel | None, str]]:
    """The writer, and why there is none where it may not be asked; it is closed in the end.

    Raises ModelRefused where the model that is set cannot be opened.
    """
    model = model_for(home, Task.DREAM, background=background)
    if model is None:
        yield None, NO_WRITER if name_for(home, Task.DREAM) == NONE else "models.background is off"
        return
    try:
        if background and rests(home.settings):
            yield None, "the writer is paused, or waits for the mains"
        else:
            yield model, ""
    finally:
        model.close()


def answers(
    home: Home, questions: Sequence[Callable[[], A]], on_progress: OnProgress | None
) -> tuple[list[A | None], str | None]:  # fmt: skip
    """What a writer answers, some questions at once: ``None`` for each that failed or was not asked, and what went
    wrong first. Once it is away, or may cost no more, nobody goes on asking it."""
    found: list[Answered[A] | NacreError | None] = []
    for start in range(0, len(questions), _AT_ONCE):
        if on_progress:
            on_progress(Progress("asking", start, len(questions)))
        found += ask_all(home, questions[start : start + _AT_ONCE], _AT_ONCE)
        if any(one is None or is_final(one) for one in found):
            break
    failed = next((one.message for one in found if isinstance(one, NacreError)), None)
    good = [one.value if isinstance(one, Answered) else None for one in found]
    return [*good, *(None for _ in questions[len(good) :])], failed
