"""A group of commands that is a whole program."""

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
    """A program named like its group, with the error boundary around it."""

    def main(
        self, args: Sequence[str] | None = None, *_: Any, umask: int | None = None, **__: Any
    ) -> NoReturn:
        """Run, and exit with the code of the outcome; ``umask`` is that of who started the process."""
        arguments = list(args or ())
        run = Run(as_json=output.wants_json(arguments), umask=umask)
        raise SystemExit(output.guard(run, lambda: self._run(arguments, run)))

    def _run(self, arguments: list[str], run: Run) -> Any:
        return super().main(arguments, prog_name=self.name, standalone_mode=False, obj=run)


# ----------------------------------------------------------------------------
# ``nacre`` itself: a table of commands, whose modules are loaded when they run.


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives, and its summary, so that ``nacre --help`` loads none of them."""

    place: str
    summary: str


_OF_DREAM = Entry("dream:dream", "Merge duplicate memories and retire outdated ones.")

SECTIONS: dict[str, dict[str, Entry]] = {
    "Start": {
        "status": Entry(
            "status:status", "Tell what happened today, what was learned, and what waits for you."
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
        "serve": Entry(
            "watch:serve", "Hold memory and model warm for hooks, agents and the command line."
        ),
        "open": Entry("services:open_dashboard", "Open the dashboard in your browser."),
        "events": Entry("gateway:events", "Tell what changes in the home, as it happens."),
        "chat": Entry("gateway:chat", "Talk to an agent that remembers."),
        "gateway": Entry(
            "gateway:gateway", "Answer in chats: Telegram, Discord, Slack, WhatsApp, webhooks."
        ),
        "watch": Entry("watch:watch", "Follow your agents' sessions as they happen."),
        "watcher": Entry("watch:watcher", "Have the system follow your agents' sessions."),
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
            "recall:handoff", "Show the last session's handoff, or hand a session over now."
        ),
        "sessions": Entry(
            "sessions:sessions", "List, read and search your agents' sessions."
        ),
        "resume": Entry("sessions:resume", "Resume a session in its own tool."),
        "did": Entry("work:did", "Show who changed a file, when and why."),
        "fix": Entry("work:fix", "Show earlier attempts to fix an error, and what worked."),
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
            "Show or write the pages that agents receive at the start of every session.",
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
        "feedback": Entry("review:feedback", "Tell whether recalled memories were of use."),
        "review": Entry(
            "review:review", "Go through what waits for you: keep it, change it or drop it."
        ),
        "reflect": Entry(
            "review:reflect", "Say how memories stand to each other that nothing connects."
        ),
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
        "spaces": Entry(
            "cluster:spaces", "Tell whose memory you share on a server, and who belongs to it."
        ),
        "share": Entry(
            "cluster:share", "Carry a copy of a memory into the space of a team or an organisation."
        ),
        "remote": Entry("server:remote", "Keep this machine in step with your memory on a server."),
        "keys": Entry(
            "cluster:keys", "Look after the keys by which programs get into a space on a server."
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
        "move": Entry("server:move", "Carry your memory to a PostgreSQL server, or back."),
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
            "review:backfill_claims", "Have a model tell what older memories claim."
        ),
    },
    "Care": {
        "doctor": Entry(
            "status:doctor", "Check everything; tell what is remembered and what waits."
        ),
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
        "eval": Entry(
            "measures:evaluate", "Ask saved queries of your memory, and see what changed."
        ),
        "benchmark": Entry("measures:benchmark", "Measure how fast nacre is on this machine."),
        "completion": Entry("completion:completion", "Print the completion script of a shell."),
        "man": Entry("completion:manual", "Print the manual page."),
    },
}

HIDDEN = {
    "chores": Entry("recall:chores", "Run the chores that hooks queued."),
    "consolidate": _OF_DREAM,
}
"""What programs run and people need not know, and what a command is called elsewhere."""

_ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Root(Program):
    """The group of all commands. Without one it shows the status on a terminal, else its help."""

    has_default = True

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every command, in the order of the sections."""
        return list(_ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command's module. Raises UsageError when it is not part of this installation."""
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
        """The sections with the summaries."""
        width = max(len(name) for name in _ENTRIES)
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:<{width}}", entry.summary) for name, entry in entries.items()]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, but within one of nacre's own calls of a model none."""
        return None if environment.is_own_call(environment.environment()) else super().invoke(ctx)


@click.pass_context
def _begin(context: click.Context) -> None:
    if context.invoked_subcommand is None and sys.stdout.isatty() and not context.obj.as_json:
        context.invoke(load_command(_ENTRIES["status"].place))
    else:
        show_help()


def _print_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked:
        return
    run: Run = ctx.find_object(Run) or Run()
    number = __version__
    run.answer({"version": number}, lambda paper: paper.line(f"nacre {number}"))
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
    help="A long-term memory for AI agents: local, yours, in Markdown, found again in milliseconds.",
    examples=[
        "nacre quickstart",
        'nacre recall "which database do we use for billing?"',
        'nacre store "We deploy on Fridays" --kind decision --project acme',
    ],
)


# ----------------------------------------------------------------------------
# Answers of benchmarks: figures, and the machine on which they were taken.


def answer_measured(run: Run, record: Mapping[str, Any], render: Callable[[Paper], None]) -> None:
    """Answer with the figures and the machine they were taken on."""
    machine = speed_machine.describe()

    def render_all(paper: Paper) -> None:
        render(paper)
        _render_machine(paper, machine)

    run.answer({**record, "machine": dataclasses.asdict(machine)}, render_all)


def _render_machine(paper: Paper, machine: Machine) -> None:
    """What was measured on."""
    paper.blank()
    paper.line(
        dim(
            f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}, "
            f"nacre {machine.commit or 'installed'}"
        )
    )
