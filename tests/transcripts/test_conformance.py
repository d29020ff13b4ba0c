"""Every adapter keeps what adapters promise, and the kit that tries it notices when one does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nacre.testing import Agent, Owner, Tool, check_adapter, samples
from nacre.transcripts.adapter import Adapter, Source
from nacre.transcripts.copilot_cli import ADAPTER as COPILOT_CLI
from nacre.transcripts.reading import read_head
from nacre.transcripts.registry import builtins, find_adapter
from nacre.values.session import Flag, Session, Speaker, Turn
from tests.app import shapes

OF_SHAPE = {
    "claude-code": "claude-code", "codex": "codex", "openclaw": "openclaw", "copilot-cli": "copilot-cli",
    "gemini-cli": "gemini", "copilot-chat": "copilot-chat", "cline": "cline", "cline-history": "cline-history",
    "continue": "continue", "cursor-transcripts": "cursor", "aider": "aider", "jsonl": "jsonl", "chatgpt": "chatgpt",
    "claude-ai": "claude-ai",
}  # fmt: skip
LIKE = {"roo-code": "cline", "roo-code-history": "cline-history"}
DATABASES = ("openclaw-store", "opencode", "cursor-state", "cursor-store")
"""Adapters of databases: the sample is one that tests build."""

WITHOUT_SAMPLE = {*DATABASES, "opencode-files", "editor-state"}
"""Adapters whose sessions are no text, or lie in many files."""

TALK = (
    Owner("Where do the rowers meet?"), Agent("They meet at the boat house."), Owner("Which pier is next to it?"),
    Tool("Read", "/code/lake/map.md", "pier nine"), Agent("Pier nine is next to it."),
)  # fmt: skip

TAKE_ANYTHING = {"jsonl", "markdown", "text", "plaud"}


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    def put(name: str) -> Path:
        file, data = samples()[LIKE.get(name, name)]
        path = tmp_path / "sample" / "1795000000000" / file
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        return path

    return put


@pytest.mark.parametrize("name", [name for name in builtins() if name in samples() or name in LIKE])
def test_an_adapter_keeps_what_adapters_promise(name: str, sample: Callable[[str], Path]) -> None:
    adapter = builtins()[name]
    path = sample(name)
    beside = [path.with_name("history_item.json")] if name in LIKE else []
    for file in beside:
        file.write_text('{"id": "1795000000000", "workspace": "/code/boats"}', encoding="utf-8")
    shape = OF_SHAPE.get(name)
    check_adapter(
        adapter, path, beside=beside, takes_anything=name in TAKE_ANYTHING,
        write=(lambda folder, steps: shapes.write(folder, shape, steps)) if shape else None,
        keeps_output=shape not in shapes.WITHOUT_OUTPUT,
    )  # fmt: skip
    assert find_adapter(read_head(path)) is adapter


@pytest.mark.parametrize("name", DATABASES)
def test_an_adapter_of_databases_keeps_what_adapters_promise(name: str, tmp_path: Path) -> None:
    made = {other: shapes.write(tmp_path / other, other, TALK) for other in DATABASES}
    check_adapter(
        builtins()[name], made[name], others=[path for other, path in made.items() if other != name],
        write=lambda folder, steps: shapes.write(folder, name, steps),
    )  # fmt: skip


def test_every_adapter_of_texts_has_a_sample() -> None:
    assert set(builtins()) - set(samples()) - set(LIKE) <= WITHOUT_SAMPLE


def broken(change: Callable[[Session | Turn], Iterator[Session | Turn]]) -> Adapter:
    def parse(source: Source) -> Iterator[Session | Turn]:
        for item in COPILOT_CLI.parse(source):
            yield from change(item)

    return replace(COPILOT_CLI, parse=parse)


def spoken_by_the_owner(item: Session | Turn) -> Iterator[Session | Turn]:
    yield replace(item, speaker=Speaker.OWNER) if isinstance(item, Turn) else item


def in_a_time_of_nowhere(item: Session | Turn) -> Iterator[Session | Turn]:
    naive = isinstance(item, Turn) and item.time
    yield replace(item, time=item.time.replace(tzinfo=None)) if naive else item  # type: ignore[union-attr,arg-type]


def under_one_id(item: Session | Turn) -> Iterator[Session | Turn]:
    yield replace(item, id="same") if isinstance(item, Turn) else item


def with_the_context_put_back(item: Session | Turn) -> Iterator[Session | Turn]:
    injected = isinstance(item, Turn) and item.flags & Flag.INJECTED
    yield replace(item, text=f"{item.text} zephyr lantern") if injected else item  # type: ignore[union-attr,call-arg]


def of_another_tool(item: Session | Turn) -> Iterator[Session | Turn]:
    yield replace(item, tool="heron") if isinstance(item, Session) else item


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (spoken_by_the_owner, "said by somebody else"),
        (in_a_time_of_nowhere, "not in UTC"),
        (under_one_id, "have the id of another one"),
        (with_the_context_put_back, "is not stripped"),
        (of_another_tool, "of another tool"),
    ],
)
def test_a_broken_promise_is_named(
    change: Callable[[Session | Turn], Iterator[Session | Turn]], complaint: str, sample: Callable[[str], Path]
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_adapter(
            broken(change), sample("copilot-cli"), takes_anything=True,
            write=lambda folder, steps: shapes.write(folder, "copilot-cli", steps),
        )  # fmt: skip


def test_an_adapter_that_takes_all_files_is_named(sample: Callable[[str], Path]) -> None:
    with pytest.raises(AssertionError, match="of another tool for its own: aider"):
        check_adapter(replace(COPILOT_CLI, sniff=lambda head: True), sample("copilot-cli"))


def test_an_adapter_that_forgets_where_it_was_is_named(sample: Callable[[str], Path]) -> None:
    def parse(source: Source) -> Iterator[Session | Turn]:
        source.carry.clear()
        yield from COPILOT_CLI.parse(source)

    with pytest.raises(AssertionError, match="went on differs"):
        check_adapter(replace(COPILOT_CLI, parse=parse), sample("copilot-cli"), takes_anything=True)


def test_an_adapter_that_swallows_what_it_does_not_know_is_named(sample: Callable[[str], Path]) -> None:
    def parse(source: Source) -> Iterator[Session | Turn]:
        yield from COPILOT_CLI.parse(source)
        source.tally.unknown.clear()  # type: ignore[attr-defined]

    with pytest.raises(AssertionError, match="an unknown record is not counted"):
        check_adapter(replace(COPILOT_CLI, parse=parse), sample("copilot-cli"), takes_anything=True)
