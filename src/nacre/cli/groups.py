"""The groups ``data`` and ``admin``, whose commands are defined in other modules, and ``help`` and ``completion``."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, get_completion_class

from nacre.cli.command import (
    Command,
    Group,
    Paper,
    Run,
    bold,
    command,
    dim,
    first_sentence,
    walk_commands,
)
from nacre.cli.options import flag

data = Group(
    "data",
    help="Import, export, back up and move your data.",
    places={
        "archive": "data:archive",
        "backup": "data:backup",
        "export": "data:export",
        "import": "data:import_",
    },
    extras={"move": "server"},
    examples=[
        "nacre data import ~/notes --from markdown",
        "nacre data export memories.jsonl",
        "nacre data backup create backup.zip",
    ],
)

admin = Group(
    "admin",
    help="Check and repair the installation.",
    places={
        "check": "status:check",
        "commit": "history:commit",
        "completion": "groups:completion",
        "db": "data:db",
        "doctor": "status:doctor",
        "redact": "history:redact",
        "scrub": "history:scrub",
        "usefulness": "status:usefulness",
    },
    examples=["nacre admin doctor", "nacre admin db stats"],
)


@click.command(
    "help", cls=Command, examples=["nacre help --all", "nacre help sessions list"], hidden=True
)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@flag("--all", "List all commands and their subcommands.", "everything")
def help_command(run: Run, words: tuple[str, ...], everything: bool) -> None:
    """Show the help of a command, or a list of all commands."""
    context = click.get_current_context()
    current = context.find_root()
    if everything:
        rows = [
            (below.command_path, first_sentence(below.command.help))
            for below in walk_commands(current)
        ]
        record = {"commands": [{"command": path, "summary": summary} for path, summary in rows]}
        run.answer(record, _render_tree, rows)
        return
    for word in words:
        group = current.command
        if not isinstance(group, Group):
            raise click.UsageError(f"{current.command_path} has no commands", context)
        name, below, _ = group.resolve_command(current, [word])
        current = click.Context(below or group, info_name=name, parent=current)
    page = current.get_help()
    run.answer({"help": page}, Paper.verbatim, page)


def _render_tree(paper: Paper, rows: list[tuple[str, str]]) -> None:
    width = max(len(path) for path, _ in rows)
    for path, summary in rows:
        is_nested = path.count(" ") > 1
        name = dim(f"{path:<{width}}") if is_nested else bold(f"{path:<{width}}")
        paper.line(name, f"  {summary}", hang=width + 2)


# ----------------------------------------------------------------------------
# ``nacre admin completion``.


@command(
    "completion",
    examples=[
        "nacre admin completion bash >> ~/.bashrc",
        "nacre admin completion zsh >> ~/.zshrc",
        "nacre admin completion fish > ~/.config/fish/completions/nacre.fish",
    ],
)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(run: Run, shell: str) -> None:
    """Print the completion script of a shell.

    SHELL is bash, zsh or fish.
    """
    completion_class = get_completion_class(shell) or BashComplete
    script = completion_class(
        click.get_current_context().find_root().command, {}, "nacre", "_NACRE_COMPLETE"
    )
    source = script.source_template % script.source_vars()
    run.answer({"shell": shell, "script": source}, lambda paper: paper.verbatim(source.strip("\n")))
