"""Common behaviour of all commands: help with examples, JSON, no colour in pipes, quick start."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest

from nacre.cli.command import (
    Command,
    Group,
    Paper,
    Span,
    bold,
    cells,
    cut,
    dim,
    first_sentence,
    printable,
)
from nacre.cli.root import EVERYDAY, SECTIONS, cli
from tests.cli.conftest import Nacre, environment

ESCAPE = "\x1b["


def own_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli, info_name="nacre")
    for name in cli.list_commands(context):
        item = cli.get_command(context, name)
        assert item is not None
        yield name, item
        if isinstance(item, click.Group):
            for below in item.list_commands(context):
                command = item.get_command(context, below)
                assert command is not None
                yield f"{name} {below}", command


COMMANDS = dict(own_commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_one_sentence_help_with_examples(nacre: Nacre, name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, (Command, Group))
    assert 1 <= len(command.examples) <= 3
    sentence = first_sentence(command.help)
    assert re.fullmatch(r"[A-Z][^.]*\.", sentence), sentence
    output = nacre(*name.split(), "--help").out
    assert "Examples:" in output
    assert all(example in output for example in command.examples)
    assert nacre(*name.split(), "-h").out == output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_example_parses(name: str) -> None:
    """The words of each example are existing options and arguments."""
    import shlex

    for example in COMMANDS[name].examples:  # type: ignore[attr-defined]
        words = shlex.split(example, comments=True)
        while "nacre" in words and "$(nacre" not in example:
            words = words[words.index("nacre") + 1 :]
            end = next(
                (at for at, word in enumerate(words) if word in ("|", ">", ">>")), len(words)
            )
            _parse(cli, words[:end])


def _parse(command: click.Command, words: list[str]) -> None:
    with click.Context(command, info_name="nacre") as context:
        context.obj = _Nothing()
        if isinstance(command, click.Group) and words and not words[0].startswith("-"):
            below = command.get_command(context, words[0])
            assert below is not None, words
            _parse(below, words[1:])
        else:
            command.make_parser(context).parse_args(list(words))


class _Nothing:
    as_json = False


def test_every_option_has_help() -> None:
    silent = [
        f"{name} {option.opts[0]}"
        for name, command in COMMANDS.items()
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]
    assert silent == []


def test_root_summaries_match_the_commands() -> None:
    assert EVERYDAY.keys() == SECTIONS["Everyday"].keys()
    for name, summary in EVERYDAY.items():
        assert first_sentence(COMMANDS[name].help) == summary


def test_the_root_help_lists_every_command(nacre: Nacre) -> None:
    output = nacre("--help").out
    for name in SECTIONS["Everyday"]:
        assert re.search(rf"^  {name} ", output, re.MULTILINE)
    for name in (*SECTIONS["More"], *SECTIONS["Groups"]):
        assert re.search(rf"[ :]{name}\b", output)
    assert len(output.splitlines()) <= 45
    assert nacre().out == output


def test_help_all_lists_every_command_and_subcommand(nacre: Nacre) -> None:
    output = nacre("help", "--all").out
    for name in (*COMMANDS, "admin db rebuild", "data backup create", "writer keys"):
        assert re.search(rf"^nacre {name} ", output, re.MULTILINE), name
    listed = nacre("help", "--all", "--json").json["commands"]
    assert len(listed) == len(output.splitlines()) - sum(
        line.startswith(" ") for line in output.splitlines()
    )


def test_help_shows_the_page_of_a_command(nacre: Nacre) -> None:
    assert nacre("help").out == nacre("--help").out
    assert nacre("help", "data", "export").out == nacre("data", "export", "--help").out
    assert "there is no command 'nothing'" in nacre("help", "data", "nothing", code=2).err
    assert "has no commands" in nacre("help", "store", "more", code=2).err


GUESSES = {
    "ls": "list",
    "add": "store",
    "remember": "store",
    "rm": "retire",
    "delete": "retire",
    "config list": "config show",
}


@pytest.mark.parametrize(("guess", "command"), GUESSES.items())
def test_probable_command_names_run_the_command(nacre: Nacre, guess: str, command: str) -> None:
    assert nacre(*guess.split(), "--help").out == nacre(*command.split(), "--help").out


def test_subcommand_name_suggests_its_path(nacre: Nacre) -> None:
    assert "did you mean admin doctor?" in nacre("doctor", code=2).err
    assert "did you mean data import?" in nacre("import", "notes.json", code=2).err


@pytest.mark.parametrize("group", ["data", "graph", "sessions"])
def test_group_without_subcommand_shows_its_help(nacre: Nacre, group: str) -> None:
    assert nacre(group).out == nacre(group, "--help").out
    assert nacre(group, "--json", code=2).error["code"] == "usage"


def test_the_version_is_printed(nacre: Nacre) -> None:
    assert re.fullmatch(r"nacre \S+\n", nacre("--version").out)
    assert set(nacre("--version", "--json").json) == {"version"}


READING: list[tuple[str, ...]] = [
    ("recall", "which database for billing"),
    ("recall", "--browse"),
    ("list",),
    ("sessions", "list"),
    ("search", "ledger"),
    ("sessions", "show", "7f3a1c2d"),
    ("todo",),
    ("todo",),
    (
        "admin",
        "doctor",
    ),
    (
        "admin",
        "doctor",
    ),
    ("admin", "db", "stats"),
    ("config", "show"),
    ("config", "show", "recall.limit"),
    ("admin", "completion", "bash"),
    ("ingest",),
    ("quickstart",),
    ("admin", "check"),
    ("log",),
    (
        "log",
        "--diff",
    ),
    (
        "admin",
        "commit",
    ),
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_answers_are_json_objects_or_plain_text_in_pipes(
    nacre: Nacre, learned: dict[str, Any], arguments: tuple[str, ...]
) -> None:
    assert isinstance(nacre(*arguments, "--json").json, dict)
    plain = nacre(*arguments)
    assert plain.out.strip()
    assert ESCAPE not in plain.out + plain.err
    assert not any(line.endswith(" ") for line in plain.out.splitlines())


def test_terminal_gets_colour_unless_disabled(
    terminal: Nacre, nacre: Nacre, learned: dict[str, Any]
) -> None:
    assert ESCAPE in terminal("list").out
    plain = terminal("list", environ={"NO_COLOR": "1"})
    assert ESCAPE not in plain.out
    assert ESCAPE in terminal("show", "nope").out
    assert ESCAPE not in terminal("show", "nope", environ={"NO_COLOR": "1"}).out


def test_a_terminal_gets_progress_bars(terminal: Nacre, transcript: object) -> None:
    outcome = terminal("ingest", environ={"COLUMNS": "100"})
    assert "Reading transcripts" in outcome.out
    assert "Read 1 file" in outcome.out


def test_progress_stays_on_a_single_line_and_is_cleared(
    terminal: Nacre, transcript: object
) -> None:
    output = terminal("ingest", environ={"COLUMNS": "40", "NO_COLOR": "1"}).out
    looks = [part for part in re.split(r"[\r\n]", output) if "━" in part or "╌" in part]
    assert looks
    assert all(cells(part) < 40 for part in looks)
    assert re.fullmatch(
        r"\r +\r", output[output.rindex(looks[-1]) + len(looks[-1]) :].partition("Read")[0]
    )


@pytest.mark.parametrize("columns", [20, 34, 48, 80, 200])
@pytest.mark.parametrize(
    "arguments", [("recall", "which database for billing"), ("list",), ("sessions", "list")]
)
def test_a_narrow_terminal_wraps_between_words(
    terminal: Nacre, nacre: Nacre, learned: dict[str, Any], columns: int, arguments: tuple[str, ...]
) -> None:
    output = terminal(*arguments, environ={"COLUMNS": str(columns), "NO_COLOR": "1"}).out
    whole = set(re.findall(r"\w{4,}", nacre(*arguments, "--json").out))
    for line in output.splitlines():
        if " " in line.strip():
            assert cells(line) <= max(columns, 40), line
    if arguments[0] == "recall":
        assert (
            set(re.findall(r"\b[a-z]{6,}\b", output))
            - {"decision", "importance", "sessions", "system"}
            <= whole
        )


def test_styled_words_wrap_like_plain_words() -> None:
    words = (
        "The ledger needs transactions across accounts, 我们用思源宋体排版 and nothing else.".split(
            " "
        )
    )
    for width in range(20, 60):
        plain, inked = Paper(width=width), Paper(width=width, colour=True)
        parts = [
            Span(f"{word} ", ("", "bold", "dim red")[number % 3])
            for number, word in enumerate(words)
        ]
        plain.line(*parts, indent=2, hang=2)
        inked.line(*parts, indent=2, hang=2)
        assert re.sub(r"\x1b\[[\d;]*m", "", inked.text()) == plain.text()
        assert all(cells(line) <= width for line in plain.text().splitlines())
        assert "".join(plain.text().split()) == "".join(words)


def test_tables_are_aligned_and_drop_columns_if_narrow() -> None:
    rows = [
        (dim("id-1"), "2026-01-01", "中文", "The first subject"),
        (dim("id-22"), "2026-01-02", "ab", bold("Second")),
    ]
    paper = Paper(width=60, fits=True)
    paper.table(rows, drop=(1,))
    assert paper.text().splitlines() == [
        "id-1   2026-01-01  中文  The first subject",
        "id-22  2026-01-02  ab    Second",
    ]
    narrow = Paper(width=30, fits=True)
    narrow.table(rows, drop=(1, 2))
    assert narrow.text().splitlines() == ["id-1   The first subject", "id-22  Second"]


def test_table_has_column_names_and_uses_available_width() -> None:
    rows = [
        ("5f0c2a4d", "", "The ledger of the billing service needs transactions across accounts")
    ]
    wide = Paper(width=60, fits=True, table_width=90)
    wide.table(rows, header=("id", "branch", "memory"))
    assert wide.text().splitlines() == [
        "id        memory",
        "5f0c2a4d  The ledger of the billing service needs transactions across accounts",
    ]
    narrow = Paper(width=60, fits=True)
    narrow.table(rows, header=("id", "branch", "memory"))
    assert (
        narrow.text().splitlines()[1]
        == "5f0c2a4d  The ledger of the billing service needs transacti…"
    )


@pytest.mark.parametrize("columns", [80, 120])
def test_lists_keep_date_project_and_title_and_use_the_width(
    nacre: Nacre, terminal: Nacre, learned: dict[str, Any], columns: int
) -> None:
    long = "Every invoice of the billing service is rounded to whole cents before it is stored, and never after that"
    nacre("store", long, "--kind", "decision", "--project", "acme-billing")
    size = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    sessions = terminal("sessions", "list", environ=size).out.splitlines()
    assert {"last", "project", "title"} <= set(sessions[0].split())
    assert "2026-11-18  claude-code  acme-billing" in sessions[1]
    names, first, *_ = terminal("list", environ=size).out.splitlines()
    assert {"id", "date", "project", "memory"} <= set(names.split())
    assert "acme-billing  Every invoice of" in first
    assert columns - 15 < cells(first) <= columns


def test_texts_are_cut_between_words_and_sanitised() -> None:
    assert cut("We run billing on PostgreSQL", 16) == "We run billing…"
    assert cells(cut("我们用思源宋体排版", 9)) <= 9
    assert printable("a\x1b[31mb\tc\u202ed\x9b") == "ab cd"


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (
            ("--help",),
            {
                "nacre.settings",
                "nacre.home.home",
                "nacre.store.schema",
                "apsw",
                "msgspec",
                "rich",
                "numpy",
            },
        ),
        (
            ("recall", "billing", "--mode", "lexical"),
            {"numpy", "onnxruntime", "tokenizers", "rich", "tomlkit", "nacre_server", "psycopg"},
        ),
        (("recall", "--help"), {"nacre.setup.chores", "nacre.recall.recall"}),
        (("list",), {"numpy", "onnxruntime", "tokenizers", "rich", "tomlkit"}),
        (("store", "x"), {"rich", "tomlkit", "nacre_server", "psycopg"}),
        (("config", "show"), {"apsw", "numpy", "rich", "tomlkit"}),
        (("graph", "callers", "--help"), {"nacre_gateway.engine", "numpy"}),
    ],
)
def test_command_loads_only_needed_modules(arguments: tuple[str, ...], unwanted: set[str]) -> None:
    probe = (
        "import sys\nfrom nacre.cli.root import cli\n"
        f"try:\n    cli.main({list(arguments)!r})\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('LOADED', *(name for name, one in sys.modules.items() if type(one) is type(sys)), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", probe],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    loaded = set(result.stderr.rpartition("LOADED")[2].split())
    assert not unwanted & loaded
