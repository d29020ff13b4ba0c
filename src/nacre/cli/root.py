"""The ``nacre`` program: the table of its commands, and its error boundary."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click

from nacre import __version__
from nacre.base import environment
from nacre.cli import output
from nacre.cli import speed as speed_machine
from nacre.cli.command import Group, Paper, Run, dim, load_command, show_help

if TYPE_CHECKING:
    from nacre.cli.speed import Machine


class Program(Group):
    """A command group that runs as a program, inside the error boundary."""

    def main(
        self, args: Sequence[str] | None = None, *_: Any, umask: int | None = None, **__: Any
    ) -> NoReturn:
        """Run and exit with the exit code. ``umask`` is the umask of the calling process."""
        arguments = list(args or ())
        run = Run(as_json=output.wants_json(arguments), umask=umask)
        raise SystemExit(output.guard(run, lambda: self._run(arguments, run)))

    def _run(self, arguments: list[str], run: Run) -> Any:
        return super().main(arguments, prog_name=self.name, standalone_mode=False, obj=run)


# ----------------------------------------------------------------------------
# The commands of ``nacre``. Their modules are loaded when they run.


@dataclass(frozen=True, slots=True)
class Entry:
    """A command's location and summary, so that ``nacre --help`` loads no command."""

    place: str
    summary: str


_OF_DREAM = Entry("dream:dream", "Merge duplicate memories and retire outdated ones.")

SECTIONS: dict[str, dict[str, Entry]] = {
    "Start": {
        "status": Entry(
            "status:status", "Show today's activity, new memories and pending reviews."
        ),
        "init": Entry("init:init", "Connect nacre to your agents, or disconnect it."),
        "quickstart": Entry(
            "init:quickstart", "Read your agents' transcripts and show what nacre learns from them."
        ),
        "ingest": Entry("learn:ingest", "Read transcripts and learn from them."),
        "extract": Entry(
            "dream:extract", "Show what nacre would learn from a transcript, without storing it."
        ),
        "mcp": Entry("services:mcp", "Serve memory to an agent, over the Model Context Protocol."),
        "serve": Entry("watch:serve", "Run the background server (faster answers)."),
        "open": Entry("services:open_dashboard", "Open the dashboard in your browser."),
        "events": Entry("gateway:events", "Print changes in the home as they happen."),
        "chat": Entry("gateway:chat", "Talk to an agent that remembers."),
        "gateway": Entry(
            "gateway:gateway", "Answer in chats: Telegram, Discord, Slack, WhatsApp, webhooks."
        ),
        "watch": Entry("watch:watch", "Follow your agents' sessions as they happen."),
        "watcher": Entry(
            "watch:watcher", "Manage the background service that follows your sessions."
        ),
        "statusline": Entry(
            "services:statusline", "Print a line for the status line of Claude Code."
        ),
    },
    "Ask": {
        "recall": Entry("recall:recall", "Find the memories that answer a question."),
        "context": Entry(
            "recall:context", "Print the context for an agent, at session start or for a prompt."
        ),
        "handoff": Entry(
            "recall:handoff", "Show the handoff of the last session, or write one now."
        ),
        "sessions": Entry("sessions:sessions", "List, read and search your agents' sessions."),
        "resume": Entry("sessions:resume", "Continue a session in its own tool."),
        "did": Entry("work:did", "Show who changed a file, when and why."),
        "fix": Entry("work:fix", "Show earlier attempts to fix an error, and which worked."),
        "graph": Entry("graph:graph", "Link memories, follow the links, and analyse them."),
        "list": Entry("memories:list_memories", "List memories, the newest first."),
        "show": Entry("memories:show", "Show one memory with its evidence and links."),
        "edges": Entry("review:edges", "List memories that were used together."),
    },
    "Keep": {
        "store": Entry("memories:store", "Store one memory."),
        "edit": Entry("memories:edit", "Change a memory, with options or in your editor."),
        "page": Entry(
            "page:page",
            "Show or edit the page about you that agents read at session start.",
        ),
        "project": Entry("status:project", "Manage projects: names, folders, dependencies."),
        "retire": Entry("memories:retire", "Take memories out of recall; their files are kept."),
        "unretire": Entry(
            "memories:unretire", "Bring back memories that were retired or superseded."
        ),
        "forget": Entry(
            "history:forget",
            "Permanently delete memories, their source turns and everything derived from them.",
        ),
        "todo": Entry("memories:todo", "List, add and finish todos."),
        "feedback": Entry("review:feedback", "Rate whether recalled memories were useful."),
        "review": Entry("review:review", "Go through pending items: keep, change or drop them."),
        "reflect": Entry("review:reflect", "Record how unconnected memories relate to each other."),
        "gaps": Entry("review:gaps", "List questions that nacre could not answer."),
        "dream": _OF_DREAM,
    },
    "History": {
        "log": Entry("history:log", "List changes to your memories, newest first."),
        "diff": Entry("history:diff", "Show what an operation changed."),
        "undo": Entry("history:undo", "Undo an operation."),
        "sync": Entry("sync:sync", "Sync your memories with another machine."),
        "commit": Entry("history:commit", "Commit pending changes to the vault's git history now."),
    },
    "Spaces": {
        "spaces": Entry("cluster:spaces", "Show shared spaces on a server and their members."),
        "share": Entry(
            "cluster:share", "Copy a memory into the space of a team or an organisation."
        ),
        "remote": Entry("server:remote", "Keep this machine in sync with your memory on a server."),
        "keys": Entry(
            "cluster:keys", "Manage the keys that give programs access to a space on a server."
        ),
        "cluster": Entry("cluster:cluster", "Serve many people's memories from many machines."),
    },
    "Own": {
        "export": Entry(
            "data:export", "Export your memories to one file that other programs can read."
        ),
        "import": Entry(
            "data:import_", "Import memories from another tool or an account's export."
        ),
        "move": Entry("server:move", "Move your memory to a PostgreSQL server, or back."),
        "backup": Entry("data:backup", "Back up the whole home; verify or restore a backup."),
    },
    "Models": {
        "setup": Entry("setup:setup", "Choose a language model, sign in, and set its budget."),
        "writer": Entry(
            "writer:writer", "Show or change the model that writes memories from your sessions."
        ),
        "models": Entry("writer:models", "Show the configured language models and test them."),
        "auth": Entry("writer:auth", "Show the credentials for models; set or remove keys."),
        "embed": Entry("embed:embed", "Show or change the embedding model."),
        "cost": Entry(
            "cost:cost", "Show the cost of language models and the rest of today's budget."
        ),
        "traces": Entry("cost:traces", "Show the steps of model runs and answers."),
        "backfill-claims": Entry(
            "review:backfill_claims", "Have a model extract the claims of older memories."
        ),
    },
    "Care": {
        "doctor": Entry("status:doctor", "Check the installation, the agents and the stored data."),
        "redact": Entry(
            "history:redact", "Show how a text would be stored, and which rules find secrets in it."
        ),
        "scrub": Entry("history:scrub", "Apply the current redaction rules to all stored data."),
        "archive": Entry("data:archive", "Manage the archived transcripts."),
        "db": Entry("sync:db", "Manage the database."),
        "config": Entry("config:config", "Show and change settings."),
        "usefulness": Entry(
            "measures:usefulness",
            "Measure whether memory helps: sessions with and without it, compared.",
        ),
        "eval": Entry("measures:evaluate", "Run saved queries and show how their results changed."),
        "benchmark": Entry("measures:benchmark", "Measure how fast nacre is on this machine."),
        "completion": Entry("completion:completion", "Print the completion script of a shell."),
        "man": Entry("completion:manual", "Print the manual page."),
    },
}

HIDDEN = {
    "chores": Entry("recall:chores", "Do the work that hooks left."),
    "consolidate": _OF_DREAM,
}
"""Commands for programs only, and aliases."""

_ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Root(Program):
    """The group of all commands. Alone, it shows the status on a terminal and otherwise its help."""

    has_default = True

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the command names in the order of the sections."""
        return list(_ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load and return a command. Raises UsageError if this installation does not include it."""
        entry = _ENTRIES.get(cmd_name) or HIDDEN.get(cmd_name)
        if entry is None:
            return None
        try:
            return load_command(entry.place)
        except ModuleNotFoundError as error:
            if error.name and f"nacre.cli.{entry.place}".startswith(error.name):
                raise click.UsageError(f"{cmd_name!r} is not part of this installation") from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the sections with the summaries of their commands."""
        width = max(len(name) for name in _ENTRIES)
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:<{width}}", entry.summary) for name, entry in entries.items()]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; do nothing inside a model call made by nacre itself."""
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
    help="Long-term memory for AI agents: local Markdown files, searched in milliseconds.",
    examples=[
        "nacre quickstart",
        'nacre recall "which database do we use for billing?"',
        'nacre store "We deploy on Fridays" --kind decision --project acme',
    ],
)


# ----------------------------------------------------------------------------
# Benchmark answers: the figures and the machine.


def answer_measured(run: Run, record: Mapping[str, Any], render: Callable[[Paper], None]) -> None:
    """Answer with the figures and the machine that produced them."""
    machine = speed_machine.describe()

    def render_all(paper: Paper) -> None:
        render(paper)
        _render_machine(paper, machine)

    run.answer({**record, "machine": dataclasses.asdict(machine)}, render_all)


def _render_machine(paper: Paper, machine: Machine) -> None:
    paper.blank()
    paper.line(
        dim(
            f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}, "
            f"nacre {machine.commit or 'installed'}"
        )
    )
