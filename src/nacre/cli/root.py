"""``nacre`` itself: a table of commands, whose modules are loaded when they run."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from nacre.cli.program import Program
from nacre.cli.run import Run


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives, and its summary, so that ``nacre --help`` loads none of them."""

    place: str
    summary: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Start": {
        "init": Entry("init:init", "Plug nacre into your agents' tools, and out of them."),
        "quickstart": Entry("quickstart:quickstart", "Read what your agents wrote and show what it teaches."),
        "ingest": Entry("ingest:ingest", "Read transcripts and learn from them."),
        "extract": Entry("extracting:extract", "Show what would be learned from a transcript, and store nothing."),
        "mcp": Entry("mcp:mcp", "Serve memory to an agent, over the Model Context Protocol."),
        "serve": Entry("serve:serve", "Hold memory and model warm for hooks, agents and the command line."),
        "watch": Entry("watch:watch", "Follow your agents' sessions as they happen."),
        "watcher": Entry("watcher:watcher", "Have the system follow your agents' sessions."),
    },
    "Ask": {
        "recall": Entry("recall:recall", "Find the memories that answer a question."),
        "context": Entry("contexts:context", "Tell an agent what it should know, at its start or with a prompt."),
        "handoff": Entry("handing:handoff", "Show what the last session hands over, or hand one over now."),
        "sessions": Entry("sessions:sessions", "List, read and search the sessions with your agents."),
        "did": Entry("deeds:did", "Tell who changed a file, when and why."),
        "fix": Entry("deeds:fix", "Tell what was tried against an error before, and what worked."),
        "list": Entry("memories:list_memories", "List memories, the newest first."),
        "show": Entry("memories:show", "Show one memory with its evidence and links."),
    },
    "Keep": {
        "store": Entry("storing:store", "Store one memory."),
        "edit": Entry("storing:edit", "Change a memory, with options or in your editor."),
        "page": Entry("page:page", "Show or write what agents are told of you at the start of every session."),
        "retire": Entry("retiring:retire", "Take memories out of recall; their files are kept."),
        "unretire": Entry("retiring:unretire", "Bring back memories that were retired or superseded."),
        "forget": Entry(
            "forgetting:forget", "Delete for good: memories, the turns that show them, and all that was made of them."
        ),
        "todo": Entry("todo:todo", "List, add and finish todos."),
        "feedback": Entry("feedback:feedback", "Tell whether recalled memories were of use."),
        "review": Entry("review:review", "Keep or retire memories that seem of little use."),
        "conflicts": Entry("conflicts:conflicts", "Settle memories that cannot both hold."),
    },
    "History": {
        "log": Entry("history:log", "List what was done to your memories, the newest first."),
        "diff": Entry("history:diff", "Show what an operation changed."),
        "undo": Entry("history:undo", "Bring back what an operation changed."),
        "sync": Entry("sync:sync", "Keep your memories in step with another machine."),
        "commit": Entry("history:commit", "Put what was done into the vault's git history now."),
    },
    "Own": {
        "export": Entry("portable:export", "Write everything into one file that others can read."),
        "import": Entry("portable:import_", "Take in what another memory or an account's export holds."),
        "backup": Entry("backup:backup", "Back up the whole home, prove a backup, bring it back."),
    },
    "Models": {
        "setup": Entry("setup:setup", "Choose a language model, sign in, and say what it may cost."),
        "models": Entry("models:models", "Tell which language models are set, and whether they answer."),
        "auth": Entry("auth:auth", "Tell what nacre can sign in to models with; set and remove keys."),
        "embed": Entry("embed:embed", "Tell which embedding model makes the vectors, and change it."),
        "cost": Entry("cost:cost", "Tell what language models cost, and what is left of today's budget."),
        "traces": Entry("traces:traces", "Tell what models and answers went through."),
        "backfill-claims": Entry("conflicts:backfill_claims", "Have a model tell what older memories claim."),
    },
    "Care": {
        "health": Entry("checks:health", "Tell what is remembered and what waits."),
        "doctor": Entry("checks:doctor", "Check the installation and the home."),
        "redact": Entry("redacting:redact", "Show a text as it would be stored, and which rules find secrets in it."),
        "scrub": Entry("redacting:scrub", "Apply the present rules of redaction to everything that is stored."),
        "archive": Entry("archive:archive", "Look after the transcripts that nacre keeps."),
        "db": Entry("db:db", "Look after the database."),
        "config": Entry("config:config", "Show and change settings."),
        "eval": Entry("evaluating:evaluate", "Ask saved queries of your memory, and see what changed."),
        "benchmark": Entry("benchmark:benchmark", "Measure how fast nacre is on this machine."),
        "completion": Entry("completion:completion", "Print the completion script of a shell."),
    },
}

HIDDEN = {"chores": Entry("handing:chores", "Do what hooks left to be done.")}
"""What programs run, and people need not know."""

_ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Root(Program):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every command, in the order of the sections."""
        return list(_ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command's module. Raises UsageError when it is not part of this installation."""
        entry = _ENTRIES.get(cmd_name) or HIDDEN.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        module = f"nacre.cli.commands.{module}"
        try:
            found: click.Command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name and module.startswith(error.name):
                raise click.UsageError(f"{cmd_name!r} is not part of this installation") from error
            raise
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The sections with the summaries."""
        width = max(len(name) for name in _ENTRIES)
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", entry.summary) for name, entry in entries.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, but within one of nacre's own calls of a model none."""
        from nacre.platform.environment import environment, is_own_call

        return None if is_own_call(environment()) else super().invoke(ctx)


def _print_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked:
        return
    run: Run = ctx.find_object(Run) or Run()
    from nacre.cli.installed import installed_version

    number = installed_version()
    run.answer({"version": number}, lambda paper: paper.line(f"nacre {number}"))
    ctx.exit()


_VERSION = click.Option(
    ["--version", "-V"], is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version.",
)  # fmt: skip

cli = Root(
    name="nacre",
    params=[_VERSION],
    help="A long-term memory for AI agents: local, yours, in Markdown, found again in milliseconds.",
    examples=[
        "nacre quickstart",
        'nacre recall "which database do we use for billing?"',
        'nacre store "We deploy on Fridays" --kind decision --project acme',
    ],
)
