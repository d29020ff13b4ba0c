"""``nacre admin completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from nacre.cli.command import Run, command

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
def completion(run: Run, shell: str) -> None:
    """Print the completion script of a shell.

    SHELL is bash, zsh or fish.
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"no completion for {shell}; use bash, zsh or fish")
    script = completion_class(
        click.get_current_context().find_root().command, {}, "nacre", _VARIABLE
    )
    source = script.source_template % script.source_vars()
    run.answer({"shell": shell, "script": source}, lambda paper: paper.verbatim(source.strip("\n")))
