"""Every adapter satisfies the conformance suite, and the suite detects broken adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import nacre_extras
from nacre import readers
from nacre.readers import registry
from nacre.readers.adapter import Adapter, Source
from nacre.readers.copilot import ADAPTER_CLI as COPILOT_CLI
from nacre.readers.registry import adapters, find_adapter
from nacre.testing import samples
from nacre.testing.conformance import Agent, Owner, Tool, check_adapter, form_of
from nacre.values.session import Action, Flag, Session, Speaker, Turn
from tests.app import shapes
from tests.app.shapes import LIKE, SHAPES, WITHOUT_SHAPE, adapter_of

TALK = (
    Owner("Where do the rowers meet?"),
    Agent("They meet at the boat house."),
    Owner("Which pier is next to it?"),
    Tool("Read", "/code/lake/map.md", "pier nine"),
    Agent("Pier nine is next to it."),
    Tool("Bash", "make boats", "ok"),
    Tool("WebFetch", "https://lake.example", "water"),
    Agent("They are made."),
)

WITHOUT_SAMPLE = [shape for shape in SHAPES if adapter_of(shape) not in samples()]
"""Shapes whose adapters have no sample: databases, which tests build, and sessions in many files."""

GUESSING = {name for name, adapter in adapters().items() if adapter.guesses}
"""Adapters that would also accept files of adapters before them in the registry."""


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    def put(name: str) -> Path:
        if name not in samples():
            return shapes.write(tmp_path / "sample" / name, name, TALK)
        file, data = samples()[name]
        path = tmp_path / "sample" / "1795000000000" / file
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        return path

    return put


@pytest.mark.parametrize("name", [*adapters(), *(shape for shape in SHAPES if "/" in shape)])
def test_adapter_satisfies_the_conformance_suite(
    name: str, sample: Callable[[str], Path], tmp_path: Path
) -> None:
    adapter = adapters()[adapter_of(name)]
    path = sample(LIKE.get(name, name))
    if name.startswith("kilo-code"):
        folder = "kilo" if path.suffix == ".db" else "kilocode.kilo-code"
        path = path.parent.rename(path.parent.with_name(folder)) / path.name
    neighbours = [path.with_name("history_item.json")] if name in LIKE else []
    for file in neighbours:
        file.write_text('{"id": "1795000000000", "workspace": "/code/boats"}', encoding="utf-8")
    check_adapter(
        adapter,
        path,
        beside=neighbours,
        takes_anything=adapter_of(name) in GUESSING,
        others=[
            shapes.write(tmp_path / "others", shape, TALK)
            for shape in WITHOUT_SAMPLE
            if adapter_of(shape) != adapter_of(name)
        ],
        write=(lambda folder, steps: shapes.write(folder, name, steps)) if name in SHAPES else None,
        keeps_output=name not in shapes.WITHOUT_OUTPUT,
    )
    with form_of(path).head(path) as head:
        assert find_adapter(head) is adapter


def test_every_adapter_has_a_shape_and_a_sample() -> None:
    shaped = {adapter_of(shape) for shape in SHAPES}
    without_shape = adapters().keys() - shaped - LIKE.keys() - WITHOUT_SHAPE.keys()
    assert without_shape == set(), "put them into SHAPES of tests/app/shapes.py"
    without_sample = adapters().keys() - samples().keys() - LIKE.keys() - shaped
    assert without_sample == set(), "put a transcript of each into src/nacre/testing/samples/<name>"
    assert shaped | LIKE.keys() | WITHOUT_SHAPE.keys() | samples().keys() <= adapters().keys()


def test_adapter_names_start_with_their_tool() -> None:
    for name, adapter in adapters().items():
        assert name == adapter.tool or name.startswith(f"{adapter.tool}-")


def test_every_adapter_is_registered() -> None:
    modules = [
        import_module(module.name)
        for package in (readers, nacre_extras)
        for module in walk_packages(package.__path__, f"{package.__name__}.")
    ]
    instances = {
        id(value): value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Adapter)
    }
    assert instances.keys() == {id(adapter) for adapter in adapters().values()}


def test_plugin_adapters_come_first_and_guesses_after_specific_formats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, notes = replace(COPILOT_CLI, label="Own"), replace(COPILOT_CLI, guesses=True)
    monkeypatch.setattr(registry, "load_plugins", lambda *_: {"codex": own, "notes": notes})
    registered = dict(registry._iter_adapters())
    names = list(registered)
    assert (names[0], registered["codex"]) == ("codex", own)
    assert names[names.index("notes") + 1] == "jsonl"


@pytest.mark.parametrize("name", [name for name in adapters() if name not in LIKE])
def test_actions_of_tool_calls_are_known(
    name: str, sample: Callable[[str], Path], tmp_path: Path
) -> None:
    paths = [
        sample(name),
        *(shapes.write(tmp_path, shape, TALK) for shape in SHAPES if adapter_of(shape) == name),
    ]
    for path in paths:
        with form_of(path).source(path, None) as source:
            turns = [item for item in adapters()[name].parse(source) if isinstance(item, Turn)]
        calls = [call for turn in turns for call in turn.tool_calls]
        assert {call.name for call in calls if call.action is Action.OTHER} == set(), (
            "name them in an actions.toml"
        )


def broken_adapter(change: Callable[[Session | Turn], Iterator[Session | Turn]]) -> Adapter:
    def parse(source: Source) -> Iterator[Session | Turn]:
        for item in COPILOT_CLI.parse(source):
            yield from change(item)

    return replace(COPILOT_CLI, parse=parse)


def attribute_to_owner(item: Session | Turn) -> Iterator[Session | Turn]:
    yield replace(item, speaker=Speaker.OWNER) if isinstance(item, Turn) else item


def use_naive_time(item: Session | Turn) -> Iterator[Session | Turn]:
    naive = isinstance(item, Turn) and item.time
    yield replace(item, time=item.time.replace(tzinfo=None)) if naive else item  # type: ignore[union-attr,arg-type]


def reuse_an_id(item: Session | Turn) -> Iterator[Session | Turn]:
    yield replace(item, id="same") if isinstance(item, Turn) else item


def restore_the_context(item: Session | Turn) -> Iterator[Session | Turn]:
    injected = isinstance(item, Turn) and item.flags & Flag.INJECTED
    yield replace(item, text=f"{item.text} zephyr lantern") if injected else item  # type: ignore[union-attr,call-arg]


def change_the_tool(item: Session | Turn) -> Iterator[Session | Turn]:
    yield replace(item, tool="heron") if isinstance(item, Session) else item


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (attribute_to_owner, "has another speaker"),
        (use_naive_time, "not in UTC"),
        (reuse_an_id, "have the id of another turn"),
        (restore_the_context, "is not stripped"),
        (change_the_tool, "belongs to another tool"),
    ],
)
def test_broken_promise_is_named(
    change: Callable[[Session | Turn], Iterator[Session | Turn]],
    complaint: str,
    sample: Callable[[str], Path],
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_adapter(
            broken_adapter(change),
            sample("copilot-cli"),
            takes_anything=True,
            write=lambda folder, steps: shapes.write(folder, "copilot-cli", steps),
        )


def test_adapter_that_accepts_all_files_is_named(sample: Callable[[str], Path]) -> None:
    with pytest.raises(AssertionError, match="a transcript of another tool: aider"):
        check_adapter(replace(COPILOT_CLI, sniff=lambda head: True), sample("copilot-cli"))


def test_adapter_that_forgets_its_position_is_named(sample: Callable[[str], Path]) -> None:
    def parse(source: Source) -> Iterator[Session | Turn]:
        source.carry.clear()
        yield from COPILOT_CLI.parse(source)

    with pytest.raises(AssertionError, match="then the rest differs"):
        check_adapter(replace(COPILOT_CLI, parse=parse), sample("copilot-cli"), takes_anything=True)


def test_adapter_that_ignores_unknown_records_is_named(
    sample: Callable[[str], Path],
) -> None:
    def parse(source: Source) -> Iterator[Session | Turn]:
        yield from COPILOT_CLI.parse(source)
        source.tally.unknown.clear()  # type: ignore[attr-defined]

    with pytest.raises(AssertionError, match="an unknown record is not counted"):
        check_adapter(replace(COPILOT_CLI, parse=parse), sample("copilot-cli"), takes_anything=True)
