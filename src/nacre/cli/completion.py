"""``nacre admin completion`` and ``nacre admin man``."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.shell_completion import get_completion_class

from nacre import __version__
from nacre.cli.command import (
    Command,
    Group,
    Run,
    command,
    first_sentence,
    walk_commands,
)

# ----------------------------------------------------------------------------
# ``nacre admin completion``.


_VARIABLE = "_NACRE_COMPLETE"


@command(
    "completion",
    examples=[
        "nacre admin completion bash >> ~/.bashrc",
        "nacre admin completion zsh >> ~/.zshrc",
        "nacre admin completion fish > ~/.config/fish/completions/nacre.fish",
    ],
)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    SHELL is bash, zsh or fish.
    """
    run: Run = context.obj
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"no completion for {shell}; use bash, zsh or fish")
    script = completion_class(context.find_root().command, {}, "nacre", _VARIABLE)
    source = script.source_template % script.source_vars()
    run.answer({"shell": shell, "script": source}, lambda paper: paper.verbatim(source.strip("\n")))


# ----------------------------------------------------------------------------
# ``nacre admin man``: the manual page, generated from the help texts.


_EXIT_CODES = (
    ("0", "done"),
    ("1", "failed"),
    ("2", "wrong usage"),
    ("3", "not found"),
    ("4", "conflict with existing data"),
    ("5", "a lock, disk or model is unavailable"),
    ("130", "interrupted"),
)


@command(
    "man",
    examples=["nacre admin man > ~/.local/share/man/man1/nacre.1", "nacre admin man | man -l -"],
)
@click.pass_context
def manual(context: click.Context) -> None:
    """Print the manual page.

    It contains the --help text of every command.
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
        "Every command accepts \\-\\-json, which prints one JSON object, and \\-\\-help.",
    )
    yield ".SH COMMANDS"
    for context in walk_commands(root):
        yield from _command(context)
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES:
        yield from (".TP", f".B {code}", meaning)
    yield from (".SH FILES", ".TP", ".B ~/.nacre")
    yield "The home: config.toml, the vault of memories and the database. NACRE_HOME sets another folder."
    if isinstance(program, (Command, Group)):
        yield ".SH EXAMPLES"
        yield from _examples(program)


def _command(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f".SS {_plain(context.command_path)}"
    yield f".B {_plain(' '.join([context.command_path, *command.collect_usage_pieces(context)]))}"
    for paragraph in (command.help or "").split("\n\n"):
        yield from (".PP", _line(" ".join(paragraph.split())))
    for parameter in command.get_params(context):
        help_record = parameter.get_help_record(context)
        if help_record and help_record[0] not in ("--json", "-h, --help"):
            names, text = help_record
            yield from (".TP", f".B {_plain(names)}", _line(" ".join(text.split())))
    if isinstance(command, (Command, Group)) and command.examples:
        yield ".PP"
        yield from _examples(command)


def _examples(command: Command | Group) -> Iterator[str]:
    yield from (".nf", ".RS")
    yield from map(_line, command.examples)
    yield from (".RE", ".fi")


def _line(text: str) -> str:
    """Return escaped text that roff does not read as a request."""
    plain = _plain(text)
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _plain(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "".join(
        character if character.isascii() else f"\\[u{ord(character):04X}]" for character in escaped
    )
