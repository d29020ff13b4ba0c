"""The ``nacre`` program, with its table of commands and its error boundary."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from nacre import __version__
from nacre.base import environment, plugins
from nacre.base.frozen import frozen
from nacre.cli import output
from nacre.cli.command import Group, Run, load_command, show_help


class Program(Group):
    """A command group that runs as a program and reports every error in one line."""

    def main(
        self, args: Sequence[str] | None = None, *_: Any, umask: int | None = None, **__: Any
    ) -> NoReturn:
        """Run the program, and exit with the exit code. ``umask`` is the umask of the calling process."""
        arguments = list(args or ())
        run = Run(as_json=output.wants_json(arguments), umask=umask)
        raise SystemExit(output.guard(run, lambda: self._run(arguments, run)))

    def _run(self, arguments: list[str], run: Run) -> Any:
        return super().main(arguments, prog_name=self.name, standalone_mode=False, obj=run)


# ----------------------------------------------------------------------------
# The commands of ``nacre``. A command's module is loaded when the command runs.


@frozen
class Entry:
    """A command's location and summary, so that ``nacre --help`` loads no command."""

    place: str
    summary: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Everyday": {
        "init": Entry("init:init", "Connect nacre to your agents, or disconnect it."),
        "ingest": Entry("learn:ingest", "Read transcripts and learn from them."),
        "recall": Entry("recall:recall", "Find the memories that answer a question."),
        "search": Entry("work:search", "Search the turns and tool calls of all sessions."),
        "store": Entry("memories:store", "Store one memory."),
        "list": Entry("memories:list_memories", "List memories, the newest first."),
        "show": Entry("memories:show", "Show one memory with its evidence and links."),
        "edit": Entry("memories:edit", "Change a memory, with options or in your editor."),
        "forget": Entry(
            "history:forget",
            "Permanently delete memories, their source turns and everything derived from them.",
        ),
        "review": Entry("review:review", "Review pending items: keep, change or drop them."),
        "undo": Entry("history:undo", "Undo an operation."),
        "resume": Entry("sessions:resume", "Continue a session in its own tool."),
        "did": Entry("work:did", "Show who changed a file, when and why."),
        "open": Entry("services:open_dashboard", "Open the dashboard in your browser."),
        "status": Entry(
            "status:status", "Show today's activity, new memories and pending reviews."
        ),
        "config": Entry("config:config", "Show and change settings."),
    },
    "More": {
        "quickstart": Entry(
            "init:quickstart", "Read your agents' transcripts and show what nacre learns from them."
        ),
        "fix": Entry("work:fix", "Show earlier attempts to fix an error, and which worked."),
        "context": Entry(
            "recall:context", "Print the context for an agent, at session start or for a prompt."
        ),
        "retire": Entry("memories:retire", "Remove memories from recall, but keep their files."),
        "log": Entry("history:log", "List changes to your memories, newest first."),
        "todo": Entry("memories:todo", "List, add and finish todos."),
        "dream": Entry("dream:dream", "Merge duplicate memories and retire outdated ones."),
        "sync": Entry("sync:sync", "Sync your memories with another machine."),
        "serve": Entry("daemon:serve", "Run the background server (faster answers)."),
        "mcp": Entry("services:mcp", "Serve memory to an agent, over the Model Context Protocol."),
    },
    "Groups": {
        "sessions": Entry("sessions:sessions", "List and read your agents' sessions."),
        "project": Entry("status:project", "Manage projects: names, folders, dependencies."),
        "writer": Entry(
            "writer:writer", "Show or change the model that writes memories from your sessions."
        ),
        "graph": Entry("graph:graph", "Link memories, follow links and analyse them."),
        "data": Entry("groups:data", "Import, export, back up and move your data."),
        "admin": Entry("groups:admin", "Check and repair the installation."),
    },
}

HIDDEN = {
    "chores": Entry("recall:chores", "Do the work that hooks left."),
    "help": Entry("groups:help_command", "Show the help of a command, or a list of all commands."),
    "statusline": Entry(
        "services:statusline", "Print a summary of the session for Claude Code's status line."
    ),
}
"""Commands that only programs use, and ``help``."""

_GUESSES = {
    "add": "store",
    "consolidate": "dream",
    "delete": "retire",
    "ls": "list",
    "remember": "store",
    "rm": "retire",
}
"""Maps names that users try first to actual commands. ``rm`` and ``delete`` can be undone."""

_ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


def plugin_commands() -> list[str]:
    """Return the names of plugin commands. They cannot replace nacre's commands."""
    return sorted(plugins.find_plugins(plugins.COMMANDS).keys() - _ENTRIES.keys() - HIDDEN.keys())


class Root(Program):
    """The group of all commands. If no command is given, it shows the status on a terminal, else its help."""

    has_default = True

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands in the order of the help. Plugin commands come last."""
        return [*_ENTRIES, *plugin_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load and return a command. Raises UsageError if this installation does not include it."""
        entry = _ENTRIES.get(cmd_name) or HIDDEN.get(cmd_name)
        if entry is None:
            if cmd_name in plugin_commands():
                point = plugins.find_plugins(plugins.COMMANDS)[cmd_name]
                return plugins.load_plugin(point, click.Command)
            return super().get_command(ctx, cmd_name)
        try:
            return load_command(entry.place)
        except ModuleNotFoundError as error:
            if error.name and f"nacre.cli.{entry.place}".startswith(error.name):
                raise click.UsageError(f"{cmd_name!r} is not part of this installation") from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the everyday commands with summaries, and the names of all other commands."""
        everyday = SECTIONS["Everyday"]
        width = max(len(name) for name in everyday)
        with formatter.section("Commands"):
            formatter.write_dl(
                [(f"{name:<{width}}", entry.summary) for name, entry in everyday.items()]
            )
        with formatter.section("More (nacre help --all lists everything)"):
            formatter.write_text(", ".join(SECTIONS["More"]))
            formatter.write_text(f"groups: {', '.join([*SECTIONS['Groups'], *plugin_commands()])}")

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Do nothing if nacre itself started the agent that calls this command."""
        return None if environment.is_own_call(environment.environment()) else super().invoke(ctx)


@click.pass_context
def _begin(context: click.Context) -> None:
    if context.invoked_subcommand is None and sys.stdout.isatty() and not context.obj.as_json:
        context.invoke(load_command(_ENTRIES["status"].place))
    else:
        show_help()


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value:
        return
    run: Run = ctx.find_object(Run) or Run()
    run.answer({"version": __version__}, lambda paper: paper.line(f"nacre {__version__}"))
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
    guesses=_GUESSES,
    extras={"gateway": "gateway", "server": "server"},
    help="Long-term memory for AI agents: local Markdown files, searched in milliseconds.",
    examples=[
        "nacre quickstart",
        'nacre recall "which database do we use for billing?"',
        'nacre store "We deploy on Fridays" --kind decision --project acme',
    ],
)
