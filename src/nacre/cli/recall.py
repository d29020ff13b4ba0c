"""``nacre recall``, ``context``, ``chores``, ``did``, ``fix`` and ``search``."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nacre.base import text
from nacre.base.text import one_line, shorten
from nacre.base.times import shown_minute
from nacre.cli import hits
from nacre.cli.command import TEXT, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.options import (
    LANES,
    NO_DAEMON,
    OFFSET,
    argument,
    ask,
    count,
    flag,
    limit_option,
    option,
    perform,
    read_content,
    speaker_name,
    tie_hint,
    turn_name,
    when,
    with_memory_filter,
    with_turn_filter,
)
from nacre.context import categories, effects, hooks
from nacre.context import handoff as context_handoff
from nacre.home import location, views
from nacre.home.home import territory
from nacre.recall import deep, pins
from nacre.recall.requests import ASPECTS, ROLES
from nacre.sessions import find
from nacre.setup import chores as queue
from nacre.values.context import LOOKED_FOR, ContextBlock, LeftOut
from nacre.values.memory import Actor, DeedFilter, Face, acting
from nacre.values.recall import DeepResult, Filter, RecallResult, Route
from nacre.values.session import (
    FileChange,
    FileHistory,
    Repair,
    SessionKind,
    Speaker,
    ToolCall,
    Trust,
    Turn,
)

if TYPE_CHECKING:
    from nacre.values.session import HandoffView


_WITH_DEEP = ("text", "filter", "update", "session")
"""Request fields that ``--deep`` accepts."""

_DECIDERS = {"model": "the model", "rules": "rules", "asker": "you"}


@command(
    "recall",
    examples=[
        'nacre recall "which database do we use for billing?"',
        'nacre recall "what did we decide last week" --project . --kind decision',
        'nacre recall --deep "how do we roll back a release of the web shop?"',
    ],
)
@argument("recall", "text", metavar="[QUESTION]...", nargs=-1, required=False)
@limit_option(
    "recall",
    default=None,
    show_default=False,
    help="Maximum number of results [default: the settings recall.limit and recall.turns].",
)
@with_memory_filter
@option("recall", "around")
@option("recall", "radius_days", "--around-radius")
@option("recall", "ignore_time")
@LANES
@flag(
    "--deep",
    "Show what an agent should know first, from one project that the configured model or rules choose.",
    "is_deep",
)
@flag("--browse", "Sort by importance and date; no question needed.")
@option("recall", "budget_tokens", "--budget")
@option("recall", "turns", default=None, show_default=False)
@flag("--explain", "Show the parts of each score and the state of each lane.")
@option("recall", "update", help="Do not count this as a use of the memories.")
@option("recall", "session")
@option("recall", "boost", help="Rank only by relevance, not by age, use and importance.")
@option("recall", "prefer_kinds", "threshold", "fuzzy")
@option("recall", "diversify", "--no-diversify", "--no-mmr", help="Also show near-duplicates.")
@click.option(
    "--pin",
    "answer",
    type=TEXT,
    is_flag=False,
    flag_value="",
    metavar="[WORDS]",
    help="Pin the first answer, or the answer with these words (nacre admin check).",
)
@NO_DAEMON
def recall(
    run: Run,
    text: tuple[str, ...],
    criteria: Filter,
    is_deep: bool,
    browse: bool,
    explain: bool,
    answer: str | None,
    **request: Any,
) -> None:
    """Find the memories that answer a question."""
    if answer is not None and not text:
        raise click.UsageError("write the question before --pin")
    request |= {"text": " ".join(text), "filter": criteria}
    if answer is not None:
        _refuse_with("pin", "is_deep", "browse", *request.keys() - {"text"})
        pinned = perform(run, pins.pin, question=request["text"], answer=answer)
        run.answer(pinned, Paper.line, "Pinned: ", bold(pinned.question), f"  {pinned.answer}")
        return
    if is_deep:
        _refuse_with("deep", "browse", *request.keys() - _WITH_DEEP)
        request = {name: request[name] for name in _WITH_DEEP}
        if session := request["session"]:
            request["recent"] = deep.recent_of(run.home, session)
        with suppress(FileNotFoundError):  # the folder was deleted
            request["here"] = location.project_of_folder(run.home, Path.cwd())
        run.present(perform(run, deep.deep_recall, **request), _render_deep, explain=explain)
        return
    settings = run.settings
    most = request["limit"]
    request["limit"] = most or settings.whole("recall.limit")
    request["mode"] = "browse" if browse else request["mode"] or "hybrid"
    request["budget_tokens"] = request["budget_tokens"] or 0
    if request["turns"] is None:
        request["turns"] = settings.whole("recall.turns")
    result = ask(run, RecallResult, "recall", **request).best(most)
    more = "More memories match, but exceed the token budget (--budget)."
    hits.present(
        run, result, result.ranked, hits.render_answer, result.ranked, explain=explain, more=more
    )


def _refuse_with(option: str, *names: str) -> None:
    context = click.get_current_context()
    for item in context.command.params:
        source = context.get_parameter_source(item.name or "")
        if item.name in names and source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{item.opts[0]} cannot be combined with --{option}")


def _render_deep(paper: Paper, result: DeepResult, *, explain: bool) -> None:
    if result.clarify:
        paper.title("Which project do you mean?")
        for slug in result.clarify:
            paper.line(f"--project {slug}", indent=2)
    elif not result.hits:
        if result.route is Route.NONE:
            paper.title("This question needs no memory.")
        else:
            profile = "No match; the context has only your profile."
            paper.title(profile if result.context else hits.NOTHING)
            paper.note(
                "Untrusted memories are left out; nacre recall without --deep can show more.",
                indent=2,
            )
    elif result.project:
        paper.line(dim("from project "), bold(result.project))
        paper.blank()
    hits.render_results(paper, result.hits, explain=explain)
    if explain and result.context:
        paper.heading("Context for an agent")
        paper.body(result.context, indent=2)
    paper.blank()
    steps = [f"{step.name} {step.outcome} (by {_DECIDERS[step.by]})" for step in result.steps]
    paper.note("; ".join(steps), hang=2)
    if result.problem:
        paper.note(f"the model failed: {result.problem}; rules were used instead", "yellow", hang=2)
    elif result.model is None:
        paper.note(
            "no language model is set, so rules decided everything (nacre config set models.default)",
            hang=2,
        )
    hits.render_lanes(paper, result, explain=explain)
    if explain:
        paper.note(f"model: {result.model or 'none'}")


# ----------------------------------------------------------------------------
# ``nacre context``.


@command(
    "context",
    examples=[
        "nacre context",
        'nacre context "why did we leave sqlite?" --explain',
        "nacre context --output CONTEXT.md --budget 1500",
    ],
)
@argument("context", "prompt", nargs=-1)
@click.option("--prompt", "question", type=TEXT, default="", help="Same as PROMPT.")
@flag(
    "--start",
    "Build the context for the start of a session, even if a PROMPT is given.",
    "is_start",
)
@option(
    "context",
    "folder",
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The agent's working folder [default: the current one].",
)
@option("context", "project", "session", "occasion")
@option("context", "budget_tokens", "--budget")
@option("context", "parts")
@option("context", "alone", "--lexical")
@flag("--explain", "Show why each item is included, and what was left out.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the context to this file if it changed.",
)
@flag("--handoff", "Show the handoff of the last session instead.", "is_handoff")
@option(
    "handoff",
    "store",
    help="With --handoff: write it now, from the given text or else the last messages.",
)
@flag("--pointers", "Turn pointers to earlier turns on again in this project.")
@NO_DAEMON
def context(  # noqa: PLR0913 - one parameter per option
    run: Run,
    prompt: tuple[str, ...],
    question: str,
    is_start: bool,
    folder: Path | None,
    explain: bool,
    output: Path | None,
    is_handoff: bool,
    store: bool,
    pointers: bool,
    no_daemon: bool,
    **request: Any,
) -> None:
    """Print the context for an agent, at session start or for a prompt.

    A PROMPT of - reads standard input. If nothing is relevant, the command prints nothing. If context is missing
    unexpectedly, standard error has the reason. --output writes a file for agents that only read files.

    Sessions are handed over automatically when they end, are reset or are compacted. The next session of the project
    receives the handoff at its start. --handoff shows the handoff, and --handoff --store writes one now.
    """
    words, here, session = (
        question or " ".join(prompt),
        str((folder or Path.cwd()).absolute()),
        request["session"],
    )
    if request["project"] and (is_handoff or pointers):
        raise click.UsageError("--handoff and --pointers need --folder, not --project")
    if is_handoff:
        if words and not store:
            raise click.UsageError("a text for --handoff needs --store")
        run.present(
            perform(
                run,
                context_handoff.handoff,
                folder=here,
                store=store,
                session=session,
                words=words or None,
            ),
            _render_handoff,
        )
        return
    if store:
        raise click.UsageError("--store needs --handoff")
    if pointers:
        project = perform(run, effects.turn_pointers_on, folder=here)
        place = project or "this folder, which belongs to no known project"
        run.answer({"project": project}, Paper.line, f"Pointers are on in {place}.")
        return
    text = sys.stdin.read() if words == "-" else words
    run.by_itself = no_daemon
    request["moment"] = "prompt" if text.strip() and not is_start else "start"
    block = ask(run, ContextBlock, "context", prompt=text, folder=here, **request)
    changed = categories.write_snapshot(output, block, territory(run.settings)) if output else None
    record = {"context": replace(block, state=None), "output": output, "changed": changed}
    if explain:
        run.answer(record, _render_explained, block)
    else:
        run.answer(record, _render_context, block, output=output, changed=changed)
        if not (block.text or run.as_json) and block.gate in ("", LOOKED_FOR):
            reason, hint = _reason_for_empty(run, block.project, here)
            run.show(Paper.note, f"No context: {reason}.", hang=2)
            run.show(Paper.note, f"hint: {hint}")
    hooks.write_state(run.settings.home, session, block.state)


def _render_context(
    paper: Paper, block: ContextBlock, *, output: Path | None, changed: bool | None
) -> None:
    if output:
        if changed:
            paper.title("Written: ", f"{block.tokens:,} tokens to {output}")
        else:
            paper.line(f"{output} is unchanged")
    elif block.text:
        paper.verbatim(block.text)


def _reason_for_empty(run: Run, project: str | None, folder: str) -> tuple[str, str]:
    if location.is_empty(run.home):
        return "there are no memories yet", "nacre quickstart"
    if project:
        return f"no memory of {project} is relevant", "--explain shows what was left out"
    namesake = ask(run, views.Place, "place", folder=folder).namesake
    hint = tie_hint(namesake) if namesake else "nacre project list shows the projects"
    return f"{folder} belongs to no known project, and no global memory is relevant", hint


def _render_explained(paper: Paper, block: ContextBlock) -> None:
    head = f"{block.tokens:,} tokens" if block.text else "No context."
    paper.title(
        head, dim(f"  {block.project or 'no project'}" + (f" · {block.gate}" if block.gate else ""))
    )
    part = None
    for item in block.items:
        if item.part is not part:
            tokens = sum(entry.tokens for entry in block.items if entry.part is item.part)
            paper.heading(f"{item.part.value} · {tokens:,} tokens")
            part = item.part
        paper.line(text.shorten(item.text.lstrip("-> "), 100), indent=2)
        score = f" · score {item.score:.2f}" if item.score is not None else ""
        paper.note(f"{item.why} · {item.tokens} tokens{score}", indent=4)
    if block.left_out:
        paper.heading("Left out")
        _render_left_out(paper, block.left_out)
    paper.blank()
    lanes = f"lanes: {hits.describe_lanes(block.lanes)} · " if block.lanes else ""
    paper.note(f"{lanes}{block.took_ms:.0f} ms", hang=2)


def _render_left_out(paper: Paper, left_out: Iterable[LeftOut]) -> None:
    groups: defaultdict[tuple[str, str], list[LeftOut]] = defaultdict(list)
    for item in left_out:
        groups[item.part.value, item.why].append(item)
    for (part, why), items in groups.items():
        paper.line(f"{part}: {why}", dim(f"  {len(items)}" if len(items) > 1 else ""), indent=2)
        subjects = [text.shorten(item.subject, 60) for item in items if item.subject][:3]
        more = f" and {len(items) - len(subjects)} more" if len(items) > len(subjects) else ""
        if subjects:
            paper.note(f"{'; '.join(subjects)}{more}", indent=4)


# ----------------------------------------------------------------------------
# ``nacre context --handoff`` and ``nacre chores``.


@command("chores", hidden=True, examples=["nacre chores"])
@option("chores", "seconds")
def chores(run: Run, seconds: float) -> None:
    """Do the work that hooks left: read sessions, write handoffs, learn."""
    with acting(Actor(Face.DAEMON)):  # started by a hook that an agent ran
        report = perform(run, queue.do_waiting, seconds=seconds)
    counts = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in asdict(report).items() if count
    )
    run.answer(report, Paper.line, counts or "No pending chores.")


def _render_handoff(paper: Paper, view: HandoffView) -> None:
    handoff = view.handoff
    if handoff is None:
        message = (
            f"No handoff in {view.project}."
            if view.project
            else "No handoff: this folder belongs to no known project."
        )
        hint = "" if view.note else "  nacre context --handoff --store hands over the last session"
        paper.line(message, dim(hint))
        if view.note:
            paper.note(view.note, indent=2)
        return
    state = "stored; " if view.is_new else ""
    state += f"given to {handoff.given}" if handoff.given else "for the next session"
    paper.title(f"session handoff {shown_minute(handoff.said)}", dim(f"  {view.project} · {state}"))
    paper.body(handoff.content, indent=2)
    paper.note(f"from {handoff.session} · by {handoff.by}", indent=2)
    if view.note:
        paper.note(view.note, indent=2)


# ----------------------------------------------------------------------------
# ``nacre did`` and ``nacre fix``.


_Deed = FileChange | Repair
_INDENT = 4
_FILTER = {"project", "tool", "since", "until"}


@command(
    "did",
    examples=[
        "nacre did src/billing/retry.py",
        "nacre did docs --since 2w --project .",
        "nacre did Makefile --reads --json",
    ],
)
@argument("did", "path")
@limit_option("did")
@OFFSET
@option("did", "reads")
@option(DeedFilter, "tool", "project", "since", "until")
def did(run: Run, path: str, **request: Any) -> None:
    """Show who changed a file, when and why.

    PATH is a file or folder. A relative path such as src/app.py matches at any depth below folders
    where agents worked.
    """
    limits = " within these limits" if any(request[name] for name in _FILTER) else ""
    history = ask(run, FileHistory, "did", path=path, **_with_filter(request))
    hits.present(
        run, history, history.changes, _render_history, offset=request["offset"], limits=limits
    )


def _with_filter(request: dict[str, Any]) -> dict[str, Any]:
    return request | {"wanted": {name: request.pop(name) for name in _FILTER & request.keys()}}


@command(
    "fix",
    examples=[
        "nacre fix \"ModuleNotFoundError: No module named 'yaml'\"",
        "npm run build 2>&1 | nacre fix -",
        'nacre fix "connection refused" --project . --since 2w',
    ],
)
@argument("fix", "error", nargs=-1, required=False)
@limit_option("fix")
@option(DeedFilter, "tool", "project", "since")
def fix(run: Run, error: tuple[str, ...], **request: Any) -> None:
    """Show earlier attempts to fix an error, and which worked.

    ERROR is a line or a whole trace; - reads standard input.
    """
    words = read_content(" ".join(error))
    result = ask(run, views.FixResult, "fix", error=words, **_with_filter(request))
    hits.present(run, result, result.troubles or result.lessons or result.talk, _render_fix)


def _render_history(paper: Paper, history: FileHistory, *, offset: int, limits: str) -> None:
    if not history.paths and not history.changes:
        paper.title(f"No recorded session touched {history.asked}{limits}.")
        return
    paths = history.paths[:6]
    paper.title(paths[0] if len(paths) == 1 else history.asked)
    counts = joined(
        (
            f"edited {_turns(history.edits)}",
            f"read {_turns(history.reads)}",
            f"{count(history.sessions, 'session')}",
        )
    )
    paper.note(counts)
    if len(history.paths) > 1:
        for path in paths:
            paper.note(path, indent=2)
        paper.more(len(history.paths) - len(paths))
    if not (history.changes or history.edits):
        paper.blank()
        paper.line(f"It was only read, never changed{limits}; --reads shows when.")
    for rank, change in enumerate(history.changes, start=offset + 1):
        paper.blank()
        _render_change(paper, rank, change, names_file=len(history.paths) > 1)
    if history.more:
        paper.footer(f"more: --offset {offset + len(history.changes)}")


def _render_fix(paper: Paper, result: views.FixResult) -> None:
    for number, trouble in enumerate(result.troubles):
        if number:
            paper.blank()
        paper.framed(trouble.error, "tool output")
        paper.note(
            joined((count(trouble.times, "time"), f"in {count(trouble.sessions, 'session')}"))
        )
        for repair in trouble.repairs:
            paper.blank()
            _render_repair(paper, repair)
    if result.talk:
        paper.title("Discussed, but no command failed:")
        paper.blank()
        hits.render_results(paper, result.talk)
    if result.lessons:
        paper.heading("Lessons")
        hits.render_results(paper, result.lessons)
    if not (result.troubles or result.talk or result.lessons):
        paper.title("This error does not occur in your sessions.")


def _render_change(paper: Paper, rank: int, change: FileChange, *, names_file: bool) -> None:
    paper.title(f"{rank:>2}", "  ", dim(_describe_place(change)), hang=_INDENT)
    if names_file and change.path:
        paper.line(change.path, indent=_INDENT)
    _render_turn(paper, change.request, "asked", change)
    _render_turn(paper, change.words, "said", change)
    done = f"edited {_turns(change.edits)}" if change.edits else f"read {_turns(change.reads)}"
    failed = f"{change.failed} failed" if change.failed else ""
    paper.note(joined((done, failed)), indent=_INDENT)


def _render_repair(paper: Paper, repair: Repair) -> None:
    mark = Span("✓", "bold green") if repair.worked else Span("✗", "bold red")
    paper.line(mark, "   ", dim(_describe_place(repair)), hang=_INDENT)
    _render_call(paper, repair.failed, indent=_INDENT)
    again = f"failed {count(repair.attempts, 'more time')}" if repair.attempts else ""
    ending = (
        "then worked:"
        if repair.worked
        else "not run again after:"
        if repair.steps
        else "no later success"
    )
    paper.note(joined((again, ending)), indent=_INDENT)
    for call in repair.steps:
        _render_call(paper, call, indent=_INDENT + 2)
    _render_turn(paper, repair.words, "said", repair)


def _render_turn(paper: Paper, turn: Turn | None, verb: str, deed: _Deed) -> None:
    if turn is None or not turn.text:
        return
    speaker = (
        "the other agent"
        if verb == "asked" and turn.speaker is Speaker.AGENT
        else speaker_name(turn.speaker)
    )
    text = shorten(one_line(turn.text), 280)
    if turn.trust is Trust.UNTRUSTED:
        paper.framed(text, f"{speaker} in {turn_name(deed.session.id, deed.seq)}", indent=_INDENT)
    else:
        paper.line(Span(f"{speaker}:", "bold"), " ", text, indent=_INDENT)


def _render_call(paper: Paper, call: ToolCall, *, indent: int) -> None:
    outcome = f" → {shorten(call.outcome, 60)}" if call.failed and call.outcome else ""
    paper.note(f"{call.name}: {shorten(call.input, 120)}{outcome}", indent=indent)


def _describe_place(deed: _Deed) -> str:
    session = deed.session
    kind = "" if session.kind is SessionKind.MAIN else session.kind.value
    name = turn_name(session.id, deed.seq)
    return joined((name, kind, deed.project, session.branch, session.model, when(deed.time)))


def _turns(number: int) -> str:
    return f"in {count(number, 'turn')}" if number else "never"


# ----------------------------------------------------------------------------
# ``nacre search``.


@command(
    "search",
    examples=[
        'nacre search "what did I say about retries" --role owner --since march',
        "nacre search billing --scope decisions --tool codex --json",
        "nacre search --regex 'E[A-Z]+REFUSED' --scope errors",
    ],
)
@click.argument("question", nargs=-1, type=TEXT)
@limit_option("match-sessions")
@OFFSET
@with_turn_filter
@option("search-sessions", "aspect", "--scope", type=click.Choice(ASPECTS.split("|")))
@option(
    "search-sessions",
    "role",
    type=click.Choice(ROLES.split("|")),
    help="Only turns of this speaker; owner is you.",
)
@flag("--regex", "Search all turns for a regular expression, newest first.")
@option("search-sessions", "around", "ignore_time")
@LANES
@option("search-sessions", "fuzzy")
@flag("--explain", "Show the parts of each score and the state of each lane.")
def search(
    run: Run,
    question: tuple[str, ...],
    criteria: Filter,
    regex: bool,
    explain: bool,
    **request: Any,
) -> None:
    """Search the turns and tool calls of all sessions."""
    words, offset = " ".join(question), request["offset"]
    if regex:
        shared = {name: request[name] for name in ("limit", "offset", "aspect", "role")}
        # Search in this process: a slow search would block the daemon.
        matches = perform(run, find.match_turns, expression=words, filter=criteria, **shared)
        if matches.unread:
            run.warnings.append(
                "time limit reached before all turns were searched; narrow with --since or --project"
            )
        if matches.given_up:
            run.warnings.append(
                f"{matches.given_up} turns were skipped because matching took too long"
            )
        hits.present(run, matches, matches.turns, _render_matches, offset=offset)
        return
    request["mode"] = request["mode"] or "hybrid"
    result = ask(run, RecallResult, "search-sessions", text=words, filter=criteria, **request)
    hits.present(
        run,
        result,
        result.turns,
        hits.render_answer,
        result.turns,
        explain=explain,
        more=f"more: --offset {offset + len(result.turns)}",
        offset=offset,
    )


def _render_matches(paper: Paper, matches: find.Matches, *, offset: int) -> None:
    if not matches.turns:
        paper.title(hits.NOTHING)
    hits.render_results(paper, matches.turns, offset=offset)
    if matches.more:
        paper.note(f"more: --offset {offset + len(matches.turns)}")
