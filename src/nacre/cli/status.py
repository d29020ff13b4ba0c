"""``nacre status`` and ``nacre project``, and the checks of ``nacre admin``."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.care import health as checking
from nacre.cli import hits, sessions
from nacre.cli.command import Cell, DefaultGroup, Paper, Run, Span, bold, command, dim
from nacre.cli.options import (
    YES,
    argument,
    ask,
    count,
    day,
    find_project,
    flag,
    kind_span,
    option,
    perform,
    place_of,
    read_content,
    short_id,
    short_session,
    tie_hint,
    when,
)
from nacre.context import build
from nacre.context.effects import Effects
from nacre.home import change
from nacre.hosts import verify
from nacre.memories import projects
from nacre.recall import pins
from nacre.setup import models as writers
from nacre.values import models

if TYPE_CHECKING:
    from nacre.care.health import Status
    from nacre.care.story import Story
    from nacre.home.views import Place, SessionLine
    from nacre.values.reports import Check, Problem
    from nacre.values.session import LargestChange


@command("status", examples=["nacre", "nacre status", "nacre status --json"])
def status(run: Run) -> None:
    """Show sources, new memories, pending items, today's cost and faults.

    On a terminal, nacre without a command also shows this. The command does not wait for work in progress, so the
    latest turns of a session can be missing.
    """
    run.present(perform(run, checking.status), _render)


def _render(paper: Paper, status: Status) -> None:
    if not status.memories and not status.sessions:
        _render_beginning(paper, status)
        return
    sessions = count(status.sessions, "session")
    paper.title("nacre", f": {count(status.memories, 'memory')}, {sessions} on record.")
    paper.facts(_sources(status))
    if status.story:
        render_story(paper, status.story)
    else:
        _render_sessions(paper, status.latest)
        if status.learned:
            paper.heading("Latest memories")
            hits.render_table(paper, status.learned, is_overview=True, indent=2)
            paper.note("nacre retire ID removes one from recall", indent=2)
        if any(memory.proposed for memory in status.learned):
            paper.note("nacre review keep ID accepts an agent's proposal", indent=2)
    if rows := [(label, bold(command)) for label, command in _pending_rows(status)]:
        paper.heading("Pending")
        paper.table(rows, indent=2)
    if effects := effects_line(status.effects):
        paper.heading("Context in the last 30 days")
        paper.line(effects, indent=2)
    paper.heading("Today's cost")
    paper.line(_cost(status), indent=2)
    if status.faults:
        paper.heading("Faults")
        _render_checks(paper, status.faults)
    paper.footer('nacre recall "…" searches it; nacre --help lists all commands')


def _render_beginning(paper: Paper, page: Status) -> None:
    paper.title("nacre", " is a memory for your agents. It is empty so far.")
    paper.heading("Get started")
    connect = f"connects it to your agents{': ' * bool(page.not_wired)}{', '.join(page.not_wired)}"
    if page.wired:
        connect = f"connects more agents than {', '.join(page.wired)}"
    rows = [
        ("nacre quickstart", "reads your agents' transcripts and shows what it learns"),
        ("nacre init", connect),
        ('nacre store "…"', "stores a memory"),
    ]
    paper.table([(bold(name), effect) for name, effect in rows], indent=2)
    paper.footer("nacre --help lists all commands")


def _sources(page: Status) -> Iterator[tuple[str, Cell]]:
    tools = describe_sources(page)
    yield "read", f"{tools}; last {when(page.read)}" if page.read else tools
    if page.wired:
        yield "connected", ", ".join(page.wired)
    if page.not_wired:
        init = f"nacre init --host {','.join(page.not_wired)}"
        yield "not connected", (f"{', '.join(page.not_wired)}: ", bold(init.replace(" ", "\u00a0")))
    if not (page.wired or page.not_wired):
        yield "connected", ("no agent: ", bold("nacre\u00a0init"))


def describe_sources(page: Status) -> str:
    """Return the names of tools with their session counts."""
    return ", ".join(f"{tool} ({number:,})" for tool, number in page.sources.items())


def render_story(paper: Paper, story: Story) -> None:
    """Print a home's sessions, largest changes, decisions, questions and candidates."""
    _render_sessions(paper, story.sessions)
    if story.changes:
        paper.heading("Largest changes")
        paper.table([_change(change) for change in story.changes], indent=2)
    if story.decisions:
        paper.heading("Decisions")
        hits.render_table(paper, story.decisions, is_overview=True, indent=2)
    if story.questions:
        paper.heading("Questions that nacre can answer")
        questions = [
            (dim(confidence), bold(f'nacre recall "{question}"'))
            for question, confidence in story.questions.items()
        ]
        paper.table(questions, indent=2)
    if story.candidates:
        paper.heading("Candidates (nacre review keeps or drops them)")
        hits.render_table(paper, story.candidates, is_overview=True, indent=2)


def _render_sessions(paper: Paper, lines: Sequence[SessionLine]) -> None:
    rows = [
        (
            dim(short_session(line.session.session.native_id)),
            dim(day(line.session.ended or line.session.session.started)),
            line.session.project or "",
            sessions.ENDINGS.get(line.ending, "") if line.ending else "",
            sessions.session_title(line),
        )
        for line in lines
    ]
    if rows:
        paper.heading("Latest sessions (nacre resume ID reopens one)")
        paper.table(rows, indent=2)


def _change(change: LargestChange) -> tuple[Cell, ...]:
    name = re.split(r"[\\/]", change.path)[-1]
    project = f" in {change.project}" if change.project else ""
    who = f"{count(change.edits, 'edit')} by {change.tool}{project}"
    return (bold(f"nacre did {shlex.quote(name)}"), f"{who}, {count(change.sessions, 'session')}")


def _pending_rows(page: Status) -> Iterator[tuple[str, str]]:
    items = page.conflicts + page.doubts + page.candidates
    if items:
        yield f"{count(items, 'item')} to review", "nacre review"
    for pin in page.broken_pins:
        now = pin.first or "no answer"
        yield f"broken pin: {pin.question} {pin.answer}; now: {now}", "nacre admin check"
    if page.writer.waiting and page.writer.state != "ready":
        label = f"{count(page.writer.waiting, 'session')} for the writer: {writers.STATES[page.writer.state]}"
        yield label, "nacre writer"


def effects_line(effects: Effects) -> str:
    """Summarise how agents used delivered context, or return "" if there was none."""
    if not (effects.shown or effects.pointers):
        return ""
    memories = count(effects.shown, "memory")
    pointers = count(effects.pointers, "pointer")
    off = "".join(f"; pointers are off in {name}: nacre context --pointers" for name in effects.off)
    return (
        f"{memories} shown: {effects.followed} followed, {effects.broken} broken; "
        f"{pointers}: {effects.pointers_followed} followed{off}"
    )


def _cost(page: Status) -> str:
    spent, writer = models.dollars(page.cost) if page.cost else "nothing", page.writer
    if writer.state == "off":
        return f"{spent}; no model writes memories (nacre writer set)"
    is_paid = page.cost or writer.limit is None
    paid = f"{spent} of {models.dollars(page.budget)} a day; " if is_paid else ""
    took = "" if writer.limit is None else f", {writer.tokens_today:,} of {writer.limit:,} tokens"
    ahead = f", {count(writer.waiting, 'session')} queued" if writer.waiting else ""
    return f"{paid}{writer.writer}: {writers.STATES[writer.state]}{took}{ahead}"


# ----------------------------------------------------------------------------
# Files that could not be read.


PROBLEMS_SHOWN = 20


def render_problems(
    paper: Paper, problems: Sequence[Problem], *, outcome: str = "everything else was read"
) -> None:
    """Print the files that could not be read, with hints."""
    if not problems:
        return
    paper.heading(f"{count(len(problems), 'problem')}; {outcome}")
    for problem in problems[:PROBLEMS_SHOWN]:
        hint = f" ({problem.hint})" if problem.hint else ""
        paper.line(Span(problem.path, "yellow"), f": {problem.message}{hint}", indent=2)
    paper.more(len(problems) - PROBLEMS_SHOWN, ": --json lists all")


# ----------------------------------------------------------------------------
# ``nacre admin doctor``.


_MARKS = {
    "ok": Span("ok", "green"),
    "warning": Span("warning", "yellow"),
    "failure": Span("failure", "bold red"),
}


@command(
    "doctor",
    examples=[
        "nacre admin doctor",
        "nacre admin doctor hosts",
        "nacre admin doctor --deep --all --repair",
    ],
)
@click.argument("part", required=False, type=click.Choice(["hosts"]), metavar="[hosts]")
@flag("--deep", "Check every part against its source.")
@option("doctor-deep", "everything", "--all")
@option(
    "doctor", "repair", help="Make repairs that lose no data: permissions, and more with --deep."
)
def doctor(run: Run, part: str | None, deep: bool, everything: bool, repair: bool) -> None:
    """Check the installation, the agents and the stored data.

    With the argument hosts, the command checks that your agents can run nacre. For this, it runs the commands in their
    configuration. The command exits with 1 if a check fails. Each failure has a hint.
    """
    if part and (deep or repair):
        raise click.UsageError("hosts cannot be combined with --deep or --repair")
    if part:
        answer_checks(run, perform(run, verify.prove_hosts))
        return
    if everything and not deep:
        raise click.UsageError("--all requires --deep")
    if deep:
        checks = checking.installation(run.home, repair=repair)
        checks += perform(run, checking.prove_home, everything=everything, repair=repair)
    else:
        checks = perform(run, checking.doctor, repair=repair)
    run.home.problems.clear()  # they are among the checks
    answer_checks(run, checks)


def answer_checks(run: Run, checks: Sequence[Check]) -> None:
    """Show the results of checks, and set the exit code to 1 if any check failed."""
    is_ok = not any(check.state == "failure" for check in checks)
    run.exit_code = 0 if is_ok else 1
    run.answer({"ok": is_ok, "checks": checks}, _render_checks, checks)


def _render_checks(paper: Paper, checks: Sequence[Check]) -> None:
    width = max((len(check.name) for check in checks), default=0)
    counts = Counter[str]()
    for check in checks:
        counts[check.name] += 1
        if counts[check.name] > PROBLEMS_SHOWN:
            continue
        mark = _MARKS.get(check.state, Span(check.state))
        padded = Span(f"{mark.text:<7}".replace(" ", "\u00a0"), mark.style)
        name = f"{check.name:<{width}}".replace(" ", "\u00a0")
        paper.line(padded, "  ", bold(name), "  ", check.detail, hang=width + 11)
        if check.hint and check.state != "ok":
            paper.note(check.hint, indent=width + 11)
    paper.more(sum(max(0, n - PROBLEMS_SHOWN) for n in counts.values()), ": --json lists all")


# ----------------------------------------------------------------------------
# ``nacre project``.


_MAX_ROWS = 12


@click.group(
    "project",
    cls=DefaultGroup,
    examples=[
        "nacre project list",
        "nacre project show acme-billing",
        "nacre project tie acme-billing ~/code/billing",
    ],
)
def project(run: Run) -> None:
    """Manage projects: names, folders, dependencies.

    A project is created by its first memory (nacre store --project NAME) or by the first session in its folder. It is
    identified by the repository's remote, or else by the path. projects/NAME/project.md in the vault lists its folders,
    remotes and names.
    """
    run.present(place_of(run, None), _render_project)


@project.command("list", examples=["nacre project list"])
def list_(run: Run) -> None:
    """List the projects, the most recently used first."""
    lines = ask(run, list[projects.ProjectLine], "project-list")
    run.answer({"projects": lines}, _render_list, lines)


@project.command("show", examples=["nacre project show", "nacre project show acme-billing --json"])
@argument("project-show", "project", metavar="[PROJECT]", required=False, default=".")
def show_project(run: Run, project: str) -> None:
    """Show a project, by default this folder's."""
    run.present(
        ask(run, projects.ProjectDetail, "project-show", project=_resolve_name(run, project)),
        _render_detail,
    )


@project.command(
    "tie",
    examples=[
        "nacre project tie acme-billing",
        "nacre project tie acme-billing ~/code/billing --json",
    ],
)
@argument("project-tie", "project", metavar="PROJECT")
@argument(
    "project-tie",
    "folder",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
def tie(run: Run, project: str, folder: Path | None) -> None:
    """Assign a folder and its repository to a project.

    Default: the current folder. Earlier sessions and memories stay in their project.
    """
    path = Path(os.path.abspath(folder or Path.cwd()))
    place = perform(run, change.tie, project=project, folder=str(path))
    run.answer(place, Paper.line, f"{path} now belongs to ", bold(place.project or ""), ".")


@project.command(
    "rename",
    examples=["nacre project rename billing acme-billing", 'nacre project rename . "Acme Billing"'],
)
@argument("project-rename", "project", metavar="OLD")
@argument("project-rename", "name", metavar="NEW")
@option("project-rename", "reason")
def rename(run: Run, project: str, name: str, reason: str | None) -> None:
    """Rename a project.

    Its folder in the vault is renamed too. Its memories keep their ids, and the old name stays as an alias.
    """
    run.present(
        perform(
            run, projects.rename, project=_resolve_name(run, project), name=name, reason=reason
        ),
        _render_moved,
        "is now called",
    )


@project.command(
    "merge",
    examples=[
        "nacre project merge billing-old acme-billing --dry-run",
        'nacre project merge billing-old acme-billing --yes --reason "the repository moved"',
    ],
)
@argument("project-merge", "project", metavar="FROM")
@argument("project-merge", "into", metavar="INTO")
@option("project-merge", "reason")
@flag("--dry-run", "Only show the plan.")
@YES
def merge(run: Run, dry_run: bool, yes: bool, reason: str | None, **names: str) -> None:
    """Merge a project into another.

    INTO gets the memories, sessions, folders, remotes and names of FROM. The page of FROM is retired, and your text on
    it is appended to the page of INTO. nacre undo reverts the merge.
    """
    fields = {name: _resolve_name(run, value) for name, value in names.items()}
    plan = perform(run, projects.plan_merge, **fields)
    if dry_run:
        run.present(plan, _render_plan)
        return
    if not yes and run.is_interactive:
        run.show(_render_plan, plan)
    run.confirm(
        "Merge?", yes=yes, refusal="not interactive: pass --yes, or --dry-run to see the plan"
    )
    run.present(
        perform(run, projects.merge, **fields, reason=reason), _render_moved, "is now part of"
    )


@project.command(
    "depend",
    examples=[
        "nacre project depend shop acme-billing design",
        "nacre project depend shop design --remove",
    ],
)
@argument("project-depend", "project", metavar="PROJECT")
@argument("project-depend", "on", metavar="ON...")
@option("project-depend", "remove")
def depend(run: Run, project: str, on: Sequence[str], remove: bool) -> None:
    """Set which projects a project depends on.

    In PROJECT, recall and context then include memories of these projects, but not of their dependencies.
    """
    line = perform(
        run, projects.depend, project=_resolve_name(run, project), on=tuple(on), remove=remove
    )
    names = ", ".join(line.dependencies) or "nothing"
    run.answer(line, Paper.title, line.slug, f" depends on {names}.")


def _resolve_name(run: Run, name: str) -> str:
    return (find_project(run, name) or name) if name == "." else name


def _render_project(paper: Paper, place: Place) -> None:
    if place.project:
        paper.line("This folder belongs to ", bold(place.project), ".")
    else:
        paper.line(
            "This folder belongs to no project",
            dim(f"  {tie_hint(place.namesake)}") if place.namesake else ".",
        )
    paper.note("nacre project list shows all projects")


def _render_list(paper: Paper, lines: Sequence[projects.ProjectLine]) -> None:
    if not lines:
        paper.note("There are no projects yet: each is created by its first session or memory.")
        return
    rows = [
        (
            bold(line.slug),
            f"{line.memories:,}",
            f"{line.sessions:,}",
            day(line.last) or "never",
            dim(_names(line)),
        )
        for line in lines
    ]
    paper.table(rows, header=("project", "memories", "sessions", "last", ""))
    for line in lines:
        if line.hint:
            paper.note(line.hint)


def _names(line: projects.ProjectLine) -> str:
    groups = (("also", line.aliases), ("depends on", line.dependencies))
    return "; ".join(f"{label} {', '.join(names)}" for label, names in groups if names)


def _render_detail(paper: Paper, detail: projects.ProjectDetail) -> None:
    line = detail.project
    paper.title(line.name, dim(f"  projects/{line.slug}/project.md"))
    last = f", last {day(line.last)}" if line.last else ""
    paper.line(f"{count(line.memories, 'memory')}, {count(line.sessions, 'session')}{last}")
    facts = (
        ("also", line.aliases),
        ("depends on", line.dependencies),
        ("needed by", detail.needed_by),
        ("remotes", detail.remotes),
        ("folders", detail.roots),
        ("labels", detail.labels),
    )
    paper.facts([(name, ", ".join(values)) for name, values in facts if values], indent=0)
    if detail.page:
        paper.heading("Page")
        paper.body(detail.page, indent=2)
    if detail.latest:
        paper.heading("Latest memories")
        for memory in detail.latest:
            paper.line(
                kind_span(memory.kind),
                f"  {memory.subject}",
                dim(f"  {short_id(memory)}"),
                indent=2,
            )


def _render_plan(paper: Paper, plan: projects.ProjectMergePlan) -> None:
    paper.title(plan.project, " would become part of ", bold(plan.into), ":")
    paper.line(
        f"{count(plan.memories, 'memory')} (retired ones included) and {count(plan.sessions, 'session')}",
        indent=2,
    )
    for kind, value in plan.takes[:_MAX_ROWS]:
        paper.line(f"{kind}  {value}", indent=2)
    paper.more(len(plan.takes) - _MAX_ROWS)
    if plan.words:
        paper.line(f"your text on its page, appended to the page of {plan.into}:", indent=2)
        paper.body(plan.words, indent=4)


def _render_moved(paper: Paper, moved: projects.ProjectMoved, words: str) -> None:
    counts = f"{count(moved.memories, 'memory')} and {count(moved.sessions, 'session')}"
    paper.title(moved.project, f" {words} ", bold(moved.into), f": {counts} moved.")
    if moved.retired:
        paper.note(f"its page is now {moved.retired}")
    for path in moved.left:
        paper.line(f"not moved: {path} cannot be read as a memory")
    paper.note(f"nacre undo {moved.operation[-8:]} reverts it")


# ----------------------------------------------------------------------------
# ``nacre project page``.


@project.command(
    "page",
    examples=[
        "nacre project page identity",
        'nacre project page identity "You work for Ada, who keeps bees and writes Python."',
        "nacre project page profile --edit",
    ],
)
@argument("page-write", "name", metavar="NAME")
@argument("page-write", "text", required=False)
@option("page-write", "project", callback=None)
@flag("--edit", "Edit the page in your editor.")
@flag("--remove", "Delete the page.")
def page(
    run: Run, name: str, text: str | None, project: str | None, edit: bool, remove: bool
) -> None:
    """Show or edit the page about you that agents read at session start.

    NAME is identity (who agents work for), profile (how you want things done: "Always …", "Prefer …", "Never …") or
    project (what --project is about, with its front matter). TEXT replaces the page; - reads standard input. Pages are
    files in the vault and can be changed with any editor.
    """
    if (text is not None) + edit + remove > 1:
        raise click.UsageError("TEXT, --edit and --remove cannot be combined")
    if text is not None and not text.strip():
        raise click.UsageError("the text is empty; use --remove to delete the page")
    before = perform(run, build.own_page_answers, name=name, project=project)
    if edit and not run.is_interactive:
        raise click.UsageError("--edit needs a terminal; pass TEXT, or - for standard input")
    if edit:
        text = click.edit(before.text, extension=".md")  # None if nothing was saved
    elif text is not None:
        text = read_content(text)
    page = before
    if text is not None or remove:
        page = perform(
            run,
            build.write_own_page_answers,
            name=name,
            project=project,
            text=text or "",
            expected=before.etag if edit else None,
        )
    if page.tokens > page.told_tokens:
        run.warnings.append(
            f"the page has {page.tokens} tokens; sessions receive only about the first {page.told_tokens}"
        )
    run.present(page, _render_page, before=None if page is before else before)


def _render_page(paper: Paper, page: build.OwnPage, *, before: build.OwnPage | None) -> None:
    if before:
        verb = "Saved" if page.text else "Deleted"
        is_new = page.text != before.text
        paper.line(f"{verb}: {page.path}" if is_new else "Nothing changed.")
        return
    if not page.text:
        paper.line(
            f"There is no {page.name} page yet.",
            dim(f'  nacre project page {page.name} "…" writes it'),
        )
    for line in page.text.splitlines():
        paper.verbatim(line)


# ----------------------------------------------------------------------------
# ``nacre admin usefulness`` and ``nacre admin check``.


@command("usefulness", examples=["nacre admin usefulness"])
def usefulness(run: Run) -> None:
    """Show how often agents followed or broke the memories in their context.

    Only sessions from the last 30 days count.
    """
    effects = ask(run, Effects, "usefulness")
    line = effects_line(effects) or "No agent received memories in the last 30 days."
    run.answer(effects, Paper.line, line)


@command(
    "check",
    examples=["nacre admin check", 'nacre admin check --remove "which database do we use?"'],
)
@option("pin", "question", "--remove", required=False, help="Unpin the answer to this question.")
def check(run: Run, question: str | None) -> None:
    """Check the pinned answers.

    nacre recall QUESTION --pin pins an answer. nacre checks all pins after reading sessions, after a dream and after a
    change of the embedding model. A dream that would break one is not applied. You can edit pinned.txt in the vault.
    The command exits with 1 if a pinned answer is neither the first answer nor a sure one.
    """
    if question:
        pin = perform(run, pins.pin, question=question, remove=True)
        run.answer(pin, Paper.line, "Removed: ", bold(pin.question))
        return
    checks = ask(run, list[pins.PinCheck], "check")
    run.exit_code = 0 if all(pin.holds for pin in checks) else 1
    run.answer({"pins": checks}, _render_pins, checks)


def _render_pins(paper: Paper, checks: Sequence[pins.PinCheck]) -> None:
    for pin in checks:
        mark = Span("holds  ", "green") if pin.holds else Span("broken ", "yellow")
        paper.line(mark, bold(pin.question), f"  {pin.answer}", hang=7)
        if not pin.holds:
            paper.note(f"now: {pin.first or 'no answer'}", indent=7)
    if not checks:
        paper.line('No answer is pinned: nacre recall "…" --pin pins the first answer.')
