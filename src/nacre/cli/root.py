"""The ``nacre`` program, with its table of commands and its error boundary."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click

from nacre import __version__
from nacre.base import environment, plugins
from nacre.cli import output
from nacre.cli.command import Group, Run, load_command, show_help

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Program(Group):
    """A command group that runs as a program and reports every error in one line."""

    def main(
        self, args: Sequence[str] | None = None, *_: Any, umask: int | None = None, **__: Any
    ) -> NoReturn:
        """Run the program, and exit. ``umask`` is the umask of the calling process."""
        arguments = list(args or ())
        run = Run(as_json=output.wants_json(arguments), umask=umask)
        start = partial(
            super().main, arguments, prog_name=self.name, standalone_mode=False, obj=run
        )
        raise SystemExit(output.guard(run, start))


# ----------------------------------------------------------------------------
# The commands of ``nacre``. A command's module is loaded when the command runs.


EVERYDAY = {
    "init": "Connect nacre to your agents, or disconnect it.",
    "ingest": "Read transcripts and learn from them.",
    "recall": "Find the memories that answer a question.",
    "search": "Search the turns and tool calls of all sessions.",
    "store": "Store one memory.",
    "list": "List memories, the newest first.",
    "show": "Show one memory with its evidence and links.",
    "edit": "Change a memory, with options or in your editor.",
    "forget": "Permanently delete memories, their source turns and everything derived from them.",
    "review": "Review pending items: keep, change or drop them.",
    "undo": "Undo an operation.",
    "resume": "Continue a session in its own tool.",
    "did": "Show who changed a file, when and why.",
    "open": "Open the dashboard in your browser.",
    "status": "Show sources, new memories, pending items, today's cost and faults.",
    "config": "Show and change settings.",
}
"""Summaries of the everyday commands, so that ``nacre --help`` loads no command."""

SECTIONS = {
    "Everyday": {
        "init": "init:init",
        "ingest": "learn:ingest",
        "recall": "recall:recall",
        "search": "recall:search",
        "store": "memories:store",
        "list": "memories:list_memories",
        "show": "memories:show",
        "edit": "memories:edit",
        "forget": "history:forget",
        "review": "review:review",
        "undo": "history:undo",
        "resume": "sessions:resume",
        "did": "recall:did",
        "open": "daemon:open_dashboard",
        "status": "status:status",
        "config": "config:config",
    },
    "More": {
        "quickstart": "init:quickstart",
        "fix": "recall:fix",
        "context": "recall:context",
        "retire": "memories:retire",
        "log": "history:log",
        "todo": "memories:todo",
        "dream": "learn:dream",
        "sync": "data:sync",
        "serve": "daemon:serve",
        "mcp": "daemon:mcp",
    },
    "Groups": {
        "sessions": "sessions:sessions",
        "project": "status:project",
        "writer": "writer:writer",
        "graph": "graph:graph",
        "data": "groups:data",
        "admin": "groups:admin",
    },
}
"""Locations of the commands, by the section of the help that lists them."""

HIDDEN = {
    "chores": "recall:chores",
    "help": "groups:help_command",
    "statusline": "daemon:statusline",
}
"""Locations of the commands that only programs use, and of ``help``."""

_GUESSES = {
    "add": "store",
    "consolidate": "dream",
    "delete": "retire",
    "ls": "list",
    "remember": "store",
    "rm": "retire",
}
"""Maps likely wrong names to actual commands.

``rm`` and ``delete`` map to a command that can be undone.
"""

_LISTED = {name: place for section in SECTIONS.values() for name, place in section.items()}


def plugin_commands() -> list[str]:
    """Return the names of commands from plugins, which cannot replace nacre's own."""
    return sorted(plugins.find_plugins(plugins.COMMANDS).keys() - _LISTED.keys() - HIDDEN.keys())


class Root(Program):
    """The group of all commands. By default, it shows the status on a terminal, else the help."""

    has_default = True

    def _find_plugins(self) -> Mapping[str, EntryPoint]:
        return plugins.find_plugins(plugins.COMMANDS)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands in the order of the help, plugin commands last."""
        return [*_LISTED, *plugin_commands()]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the everyday commands with summaries, and the names of all other commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(EVERYDAY.items()))
        with formatter.section("More (nacre help --all lists everything)"):
            formatter.write_text(", ".join(SECTIONS["More"]))
            formatter.write_text(f"groups: {', '.join([*SECTIONS['Groups'], *plugin_commands()])}")

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, unless the caller is an agent that nacre itself started."""
        return None if environment.is_own_call(environment.environment()) else super().invoke(ctx)


@click.pass_context
def _begin(context: click.Context) -> None:
    if context.invoked_subcommand is None and sys.stdout.isatty() and not context.obj.as_json:
        context.invoke(load_command(_LISTED["status"]))
    else:
        show_help()


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value:
        return
    ctx.obj.answer({"version": __version__}, lambda paper: paper.line(f"nacre {__version__}"))
    ctx.exit()


_VERSION = click.Option(
    ["--version", "-V"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)

cli = Root(
    name="nacre",
    params=[_VERSION],
    callback=_begin,
    places=_LISTED | HIDDEN,
    guesses=_GUESSES,
    extras={"gateway": "gateway", "server": "server"},
    help="Long-term memory for AI agents: Markdown files that you own.",
    examples=[
        "nacre quickstart",
        'nacre recall "which database do we use for billing?"',
        'nacre store "We deploy on Fridays" --kind decision --project acme',
    ],
)
