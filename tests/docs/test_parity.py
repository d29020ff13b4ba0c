"""The table of what other systems do says nothing that is not here: commands, options, settings, tools, decisions."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from nacre.cli.root import cli
from nacre.known_settings import SETTINGS
from nacre.mcp.offers import by_name
from nacre.mcp.schemas import schema_of

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "parity.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("\n## ")[2].splitlines()
    if line.startswith("| ") and not line.endswith("| in nacre | how |")
]
SPANS = [span for row in ROWS for cell in row for span in re.findall(r"`([^`]+)`", cell)]
TOOLS = {name: schema_of(offer.arguments)["properties"] for name, offer in by_name(everything=True).items()}


COMMANDS = [shlex.split(span)[1:] for span in dict.fromkeys(SPANS) if span.startswith("nacre ")]


def found_by(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words lead to, and the words that are left for it."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            break
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_in_the_table_exists_and_takes_the_options_it_is_named_with(words: list[str]) -> None:
    command, left = found_by(words)
    assert command is not cli
    assert not isinstance(command, click.Group) or all(word.startswith("-") for word in left)
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    assert [word for word in left if word.startswith("-") and word not in known] == []


def test_settings_in_the_table_exist() -> None:
    known = {setting.key for setting in SETTINGS}
    sections = {key.partition(".")[0] for key in known}
    named = {span for span in SPANS if re.fullmatch(r"[a-z]+\.[a-z_]+", span) and span.partition(".")[0] in sections}
    assert named >= {"scoring.profile", "forgetting.protect"}
    assert named - known == set()


def test_tools_in_the_table_and_what_they_are_asked_for_exist() -> None:
    named = {span for span in SPANS if re.fullmatch(r"memory_[a-z]+", span)}
    ours = {span for row in ROWS for span in re.findall(r"`(memory_[a-z]+)`", row[1])}
    assert named >= ours >= {"memory_search", "memory_admin"}
    assert ours <= set(TOOLS)
    for name, tool in re.findall(r"`(\w+)` of `(memory_\w+)`", PAGE):
        assert name in words_of(TOOLS[tool]), f"{tool} knows no {name}"


def words_of(properties: dict[str, Any]) -> set[str]:
    """What a tool can be given by name: its arguments, and the values of those that name what is to be done."""
    return {*properties, *(value for one in properties.values() for value in one.get("enum", ()))}


def test_every_row_says_where_it_is_or_why_it_is_not() -> None:
    wrong = [
        row for row in ROWS
        if len(row) != 3
        or not re.match(r"works|differs: \S", row[2])
        or (row[2].startswith("works") and not row[1])
    ]  # fmt: skip
    assert len(ROWS) > 300
    assert wrong == []


def test_decisions_in_the_table_are_those_of_their_numbers() -> None:
    named = set(re.findall(r"\[decision (\d+)\]\[(\d+)\]", PAGE))
    defined = dict(re.findall(r"^\[(\d+)\]: (\S+)$", PAGE, re.MULTILINE))
    assert {number for pair in named for number in pair} == set(defined)
    assert all(one == other for one, other in named)
    for number, target in defined.items():
        assert Path(target).name.startswith(f"{int(number):04}-")
        assert (PROJECT / "docs" / target).exists()
