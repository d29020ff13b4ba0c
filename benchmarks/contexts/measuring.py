"""Whether an agent is given what it needs, and nothing where it needs nothing: prompts after nacre's example sessions.

Two answers count. With the prompt alone: what a hook adds to it. With the whole session: that, and what the session was
given as it started, which is what stands before the agent.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.dataset import DATA
from benchmarks.figures import percent
from nacre.base import files
from nacre.context.build import build
from nacre.errors import InvalidInput
from nacre.home.home import EmbedderLoader, Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.settings import load_settings
from nacre.setup.examples import example_files
from nacre.values.context import ContextBlock, ContextRequest, Moment
from nacre.values.reports import OnProgress, Progress

_ASKED_ON = datetime(2026, 11, 20, 9, tzinfo=UTC)
"""Some days after the last of the example sessions."""


class FollowUp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt in a folder, and a pattern that the memory holds which it needs."""

    prompt: str
    folder: str
    find: str


class Unrelated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt that needs no memory."""

    prompt: str
    folder: str


class Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A set of both."""

    follow_up: list[FollowUp]
    unrelated: list[Unrelated]


@dataclass(frozen=True, slots=True)
class Told:
    """One prompt, and the context that came with it; ``with_start`` also counts what the session started with."""

    prompt: str
    is_right: bool
    with_start: bool
    tokens: int
    took_ms: float
    gate: str


@dataclass(frozen=True, slots=True)
class ContextFigures:
    """Percentages of prompts, median tokens and milliseconds.

    ``found`` with the prompt alone, ``found_in_all`` with what the session started with, too; ``silent`` of those that
    need nothing.
    """

    mode: str
    found: float
    found_in_all: float
    silent: float
    start_tokens: float
    prompt_tokens: float
    start_ms: float
    prompt_ms: float
    missed: tuple[Told, ...]
    noise: tuple[Told, ...]


def read_prompts(path: Path | None) -> Prompts:
    """A set of prompts, by default the one that nacre brings along. Raises InvalidInput."""
    source = path or DATA / "context.toml"
    try:
        return msgspec.convert(tomllib.loads(source.read_text(encoding="utf-8")), Prompts)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} is no set of prompts: {error}", hint="see docs/context.md"
        ) from error


def measure_context(
    prompts: Prompts,
    load_embedder: EmbedderLoader,
    *,
    alone: bool,
    notify: OnProgress = lambda _: None,
) -> ContextFigures:
    """Ingest the example sessions into a home of their own, and ask for the context of each prompt."""
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
    folders = {one.folder for one in prompts.follow_up} | {one.folder for one in prompts.unrelated}
    starts = {
        folder: build(home, ContextRequest(folder=folder, alone=alone))
        for folder in sorted(folders)
    }
    total = len(prompts.follow_up) + len(prompts.unrelated)
    told: list[Told] = []
    silent: list[Told] = []
    for one in prompts.follow_up:
        block = _asked(home, one, alone)
        is_right = re.search(one.find, block.text) is not None
        in_all = is_right or re.search(one.find, starts[one.folder].text) is not None
        told.append(Told(one.prompt, is_right, in_all, block.tokens, block.took_ms, block.gate))
        notify(Progress("prompts", len(told), total))
    for other in prompts.unrelated:
        block = _asked(home, other, alone)
        silent.append(
            Told(
                other.prompt,
                not block.text,
                not block.text,
                block.tokens,
                block.took_ms,
                block.gate,
            )
        )
        notify(Progress("prompts", len(told) + len(silent), total))
    return ContextFigures(
        mode="words alone" if alone else "words and vectors",
        found=percent([one.is_right for one in told]),
        found_in_all=percent([one.with_start for one in told]),
        silent=percent([one.is_right for one in silent]),
        start_tokens=statistics.median(block.tokens for block in starts.values()),
        prompt_tokens=statistics.median(one.tokens for one in told),
        start_ms=statistics.median(block.took_ms for block in starts.values()),
        prompt_ms=statistics.median(one.took_ms for one in (*told, *silent)),
        missed=tuple(one for one in told if not one.is_right),
        noise=tuple(one for one in silent if not one.is_right),
    )


def _asked(home: Home, one: FollowUp | Unrelated, alone: bool) -> ContextBlock:
    return build(
        home, ContextRequest(Moment.PROMPT, prompt=one.prompt, folder=one.folder, alone=alone)
    )
