"""Measure whether agents get the context they need, and no context if they need none.

The prompts follow nacre's example sessions. There are two figures: for the text that a hook adds to
the prompt, and for that text together with the context at the start of the session.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.dataset import DATA
from benchmarks.figures import percent
from nacre.base import files
from nacre.base.frozen import frozen
from nacre.context.build import build
from nacre.errors import InvalidInputError
from nacre.home.home import EmbedderLoader, Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.settings import load_settings
from nacre.setup.examples import example_files
from nacre.values.context import ContextBlock, ContextRequest, Moment
from nacre.values.reports import OnProgress, Progress

_ASKED_ON = datetime(2026, 11, 20, 9, tzinfo=UTC)
"""A time some days after the last example session."""


class FollowUp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt, its folder, and a pattern that matches the memory it needs."""

    prompt: str
    folder: str
    find: str


class Unrelated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt that needs no memory."""

    prompt: str
    folder: str


class Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prompts that need a memory, and prompts that need none."""

    follow_up: list[FollowUp]
    unrelated: list[Unrelated]


@frozen
class PromptResult:
    """A prompt and its context. ``with_start`` also counts the context at the start of the session."""

    prompt: str
    is_right: bool
    with_start: bool
    tokens: int
    took_ms: float
    gate: str


@frozen
class ContextFigures:
    """Percentages of prompts, median tokens and milliseconds.

    ``found`` counts context added to the prompt, ``found_in_all`` also that at the start of the
    session. ``silent`` is the percentage of prompts that need no memory and get none.
    """

    mode: str
    found: float
    found_in_all: float
    silent: float
    start_tokens: float
    prompt_tokens: float
    start_ms: float
    prompt_ms: float
    missed: tuple[PromptResult, ...]
    noise: tuple[PromptResult, ...]


def read_prompts(path: Path | None) -> Prompts:
    """Read a set of prompts, by default the bundled one. Raises InvalidInputError."""
    source = path or DATA / "context.toml"
    try:
        return msgspec.convert(tomllib.loads(source.read_text(encoding="utf-8")), Prompts)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{path} is not a set of prompts: {error}", hint="see docs/context.md"
        ) from error


def measure_context(
    prompts: Prompts,
    load_embedder: EmbedderLoader,
    *,
    alone: bool,
    notify: OnProgress = lambda _: None,
) -> ContextFigures:
    """Ingest the example sessions into a temporary home, and request context for each prompt."""
    with tempfile.TemporaryDirectory(prefix="nacre-bench-") as folder:
        home = _home(Path(folder), load_embedder, alone=alone)
        try:
            return _measure(home, prompts, alone, notify)
        finally:
            home.close()


def _home(folder: Path, load_embedder: EmbedderLoader, *, alone: bool) -> Home:
    environ = {"HOME": str(folder), **({"NACRE_EMBEDDING_MODEL": "none"} if alone else {})}
    settings = load_settings(folder / "home", environ=environ)
    context = open_home(settings, clock=lambda: _ASKED_ON, load_embedder=load_embedder)
    for example in example_files():
        files.make_folder((folder / "sessions" / example.name).parent)
        files.write_file(folder / "sessions" / example.name, example.data)
    ingest(context, IngestOptions(paths=(folder / "sessions",), discover=False, vectors=not alone))
    return context


def _measure(home: Home, prompts: Prompts, alone: bool, notify: OnProgress) -> ContextFigures:
    folders = {prompt.folder for prompt in prompts.follow_up} | {
        prompt.folder for prompt in prompts.unrelated
    }
    starts = {
        folder: build(home, ContextRequest(folder=folder, alone=alone))
        for folder in sorted(folders)
    }
    total = len(prompts.follow_up) + len(prompts.unrelated)
    follow_ups: list[PromptResult] = []
    silent: list[PromptResult] = []
    for prompt in prompts.follow_up:
        block = _asked(home, prompt, alone)
        is_right = re.search(prompt.find, block.text) is not None
        in_all = is_right or re.search(prompt.find, starts[prompt.folder].text) is not None
        follow_ups.append(
            PromptResult(prompt.prompt, is_right, in_all, block.tokens, block.took_ms, block.gate)
        )
        notify(Progress("prompts", len(follow_ups), total))
    for other in prompts.unrelated:
        block = _asked(home, other, alone)
        silent.append(
            PromptResult(
                other.prompt,
                not block.text,
                not block.text,
                block.tokens,
                block.took_ms,
                block.gate,
            )
        )
        notify(Progress("prompts", len(follow_ups) + len(silent), total))
    return ContextFigures(
        mode="words only" if alone else "words and vectors",
        found=percent([result.is_right for result in follow_ups]),
        found_in_all=percent([result.with_start for result in follow_ups]),
        silent=percent([result.is_right for result in silent]),
        start_tokens=statistics.median(block.tokens for block in starts.values()),
        prompt_tokens=statistics.median(result.tokens for result in follow_ups),
        start_ms=statistics.median(block.took_ms for block in starts.values()),
        prompt_ms=statistics.median(result.took_ms for result in (*follow_ups, *silent)),
        missed=tuple(result for result in follow_ups if not result.is_right),
        noise=tuple(result for result in silent if not result.is_right),
    )


def _asked(home: Home, prompt: FollowUp | Unrelated, alone: bool) -> ContextBlock:
    return build(
        home, ContextRequest(Moment.PROMPT, prompt=prompt.prompt, folder=prompt.folder, alone=alone)
    )
