"""``nacre completion`` and ``nacre man``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from nacre import __version__
from nacre.cli.command import (
    Command,
    Group,
    Run,
    command,
    first_sentence,
)

if TYPE_CHECKING:
    pass

# ----------------------------------------------------------------------------
# ``nacre completion``.


_VARIABLE = "_NACRE_COMPLETE"


@command(
    "completion",
    examples=[
        "nacre completion bash >> ~/.bashrc",
        "nacre completion zsh >> ~/.zshrc",
        "nacre completion fish > ~/.config/fish/completions/nacre.fish",
    ],
)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    SHELL is bash, zsh or fish.
    """
    run: Run = context.obj
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    script = found(context.find_root().command, {}, "nacre", _VARIABLE)
    source = script.source_template % script.source_vars()
    run.answer({"shell": shell, "script": source}, lambda paper: paper.verbatim(source.strip("\n")))


# ----------------------------------------------------------------------------
# ``nacre man``: the manual page, from the same help as ``--help``.


_EXIT_CODES = (
    ("0", "done"),
    ("1", "failed"),
    ("2", "used wrongly"),
    ("3", "not found"),
    ("4", "in conflict with what is there"),
    ("5", "something is unavailable: a lock, a disk, a model"),
    ("130", "interrupted"),
)


@command("man", examples=["nacre man > ~/.local/share/man/man1/nacre.1", "nacre man | man -l -"])
@click.pass_context
def manual(context: click.Context) -> None:
    """Print the manual page.

    It says of every command what --help says, for man and for reading all of it in one place.
    """
    root = context.find_root()
    page = "\n".join(_page(root))
    run: Run = context.obj
    run.answer({"page": page}, lambda paper: paper.verbatim(page))


def _page(root: click.Context) -> Iterator[str]:
    program = root.command
    yield f'.TH NACRE 1 "" "nacre {_plain(__version__)}" "nacre"'
    yield from (".SH NAME", f"nacre \\- {_plain(first_sentence(program.help))}")
    yield from (".SH SYNOPSIS", f"nacre {_plain(' '.join(program.collect_usage_pieces(root)))}")
    yield from (
        ".SH DESCRIPTION",
        "Every command takes \\-\\-json, to answer with one JSON object, and \\-\\-help.",
    )
    yield ".SH COMMANDS"
    yield from _commands(root)
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES:
        yield from (".TP", f".B {code}", meaning)
    yield from (".SH FILES", ".TP", ".B ~/.nacre")
    yield "The home: config.toml, the vault of memories, the database. NACRE_HOME names another place."
    if isinstance(program, (Command, Group)):
        yield ".SH EXAMPLES"
        yield from _examples(program)


def _commands(parent: click.Context) -> Iterator[str]:
    """A group's commands, each followed by its own."""
    group = parent.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(parent):
        found = group.get_command(parent, name)
        if found is None or found.hidden:
            continue
        context = click.Context(found, info_name=name, parent=parent)
        yield from _command(context)
        yield from _commands(context)


def _command(context: click.Context) -> Iterator[str]:
    found = context.command
    yield f".SS {_plain(context.command_path)}"
    yield f".B {_plain(' '.join([context.command_path, *found.collect_usage_pieces(context)]))}"
    for paragraph in (found.help or "").split("\n\n"):
        yield from (".PP", _line(" ".join(paragraph.split())))
    for parameter in found.get_params(context):
        told = parameter.get_help_record(context)
        if told and told[0] not in ("--json", "-h, --help"):
            yield from (".TP", f".B {_plain(told[0])}", _line(" ".join(told[1].split())))
    if isinstance(found, (Command, Group)) and found.examples:
        yield ".PP"
        yield from _examples(found)


def _examples(found: Command | Group) -> Iterator[str]:
    yield from (".nf", ".RS")
    yield from map(_line, found.examples)
    yield from (".RE", ".fi")


def _line(text: str) -> str:
    """A line of text that is none of the formatter's commands."""
    plain = _plain(text)
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _plain(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in escaped)
