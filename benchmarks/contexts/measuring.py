"""Measure whether prompts get the memories or the pointer they need, and nothing if they need none.

The prompts for memories follow nacre's example sessions, and those for pointers follow DevMemBench.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.figures import percent
from benchmarks.retrieval.homes import Shelf, open_homes
from benchmarks.retrieval.suites import Haystack, load_suite
from nacre.base import files
from nacre.base.frozen import frozen
from nacre.context.build import build
from nacre.home.home import EmbedderLoader, Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.protocols import Embedder
from nacre.settings import load_settings
from nacre.setup.examples import example_files
from nacre.values.context import ContextBlock, ContextRequest, Moment, Part

_ASKED_ON = datetime(2026, 11, 20, 9, tzinfo=UTC)
"""A time some days after the last example session."""


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt, its folder, and a pattern that matches the memory it needs, if any."""

    prompt: str
    folder: str
    find: str = ""


class Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prompts that need a memory, and prompts that need none."""

    follow_up: list[Prompt]
    unrelated: list[Prompt]


@frozen
class ContextFigures:
    """Percentages of prompts, and the number of memories shown.

    ``silent`` is the percentage of prompts that need no memory and get none. ``wrong`` lists the
    prompts that miss a memory or get a needless one.
    """

    mode: str
    found: float
    silent: float
    memories: int
    wrong: tuple[str, ...]


def measure_context(
    prompts: Prompts, load_embedder: EmbedderLoader, *, alone: bool
) -> ContextFigures:
    """Ingest the example sessions into a temporary home, and request context for each prompt."""
    with tempfile.TemporaryDirectory(prefix="nacre-bench-") as folder:
        home = _home(Path(folder), load_embedder, alone=alone)
        try:
            return _measure(home, prompts, alone)
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


def _measure(home: Home, prompts: Prompts, alone: bool) -> ContextFigures:
    every = [*prompts.follow_up, *prompts.unrelated]
    needed = len(prompts.follow_up)
    blocks = [_asked(home, prompt.prompt, prompt.folder, alone) for prompt in every]
    right = [
        bool(re.search(prompt.find, block.text)) if prompt.find else not block.text
        for prompt, block in zip(every, blocks, strict=True)
    ]
    return ContextFigures(
        mode="words only" if alone else "words and vectors",
        found=percent(right[:needed]),
        silent=percent(right[needed:]),
        memories=sum(len(block.items) for block in blocks[:needed]),
        wrong=tuple(
            prompt.prompt for prompt, is_right in zip(every, right, strict=True) if not is_right
        ),
    )


def _asked(home: Home, prompt: str, folder: str, alone: bool) -> ContextBlock:
    return build(home, ContextRequest(Moment.PROMPT, prompt=prompt, folder=folder, alone=alone))


# -- Pointers to turns -----------------------------------------------------------------------------


class PointerPrompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt in a project of DevMemBench, and the ids of the sessions that answer it."""

    prompt: str
    project: str
    kind: str
    sessions: list[str]


@frozen
class PointerFigures:
    """The numbers of prompts, of pointers, and of pointers to a session that answers, by kind."""

    mode: str
    kind: str
    prompts: int
    pointers: int
    right: int


def measure_pointers(
    data: Path, prompts: Path | None, load_embedder: Callable[[], Embedder], *, alone: bool
) -> list[PointerFigures]:
    """Ask prompts (JSON lines), by default the suite's questions, in a home with DevMemBench."""
    rows: dict[str, list[int]] = {}
    lines = prompts.read_bytes().splitlines() if prompts else ()
    with tempfile.TemporaryDirectory(prefix="nacre-bench-") as folder:
        shelf = Shelf(Path(folder), vectors=not alone)
        suite = load_suite("devmembench", data)
        for haystack, home in open_homes(suite, shelf, load_embedder, lambda _: None):
            asked = [msgspec.json.decode(line, type=PointerPrompt) for line in lines]
            for prompt in asked or _questions(haystack):
                block = _asked(home, prompt.prompt, f"/projects/{prompt.project}", alone)
                refs = [item.ref or "" for item in block.items if item.part is Part.POINTER]
                row = rows.setdefault(prompt.kind, [0, 0, 0])
                row[0] += 1
                row[1] += len(refs)
                row[2] += any(f"/{name}#" in ref for ref in refs for name in prompt.sessions)
    mode = "words only" if alone else "words and vectors"
    return [PointerFigures(mode, kind, *row) for kind, row in rows.items()]


def _questions(haystack: Haystack) -> list[PointerPrompt]:
    projects = {session.id: session.project or "" for session in haystack.sessions}
    return [
        PointerPrompt(
            question.text,
            max(projects[name] for name in question.sessions) if question.sessions else "",
            "question" if question.sessions else "foreign",
            [name.rpartition("/")[2] for name in question.sessions],
        )
        for question in haystack.questions
    ]
