"""``nacre status``, ``nacre admin doctor`` and ``nacre project``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from nacre.base import ids
from nacre.base.times import shown
from nacre.care import health as checking
from nacre.care import proofs as prove
from nacre.cli import hits, output, sessions
from nacre.cli.command import Cell, DefaultGroup, Paper, Run, Span, bold, command, dim
from nacre.cli.operations import ask, perform, place_of
from nacre.cli.options import (
    YES,
    argument,
    count,
    day,
    find_project,
    flag,
    kind_span,
    option,
    place_name,
    read_content,
    short_id,
    short_session,
    tie_hint,
    when,
)
from nacre.context import build
from nacre.home import change
from nacre.hosts import verify
from nacre.memories import projects
from nacre.setup import models as writers
from nacre.values import models

if TYPE_CHECKING:
    from nacre.care.health import Status
    from nacre.home.views import Place, SessionLine
    from nacre.values.memory import Memory
    from nacre.values.reports import Check, Problem

_LEAST_CONTENT = 44


@command("status", examples=["nacre", "nacre status", "nacre status --json"])
def status(run: Run) -> None:
    """Show today's activity, new memories and pending reviews.

    On a terminal, nacre without a command also shows this. The command does not wait for work in progress, so the
    latest turns of a session can be missing.
    """
    run.present(perform(run, checking.status), _render)


def _render(paper: Paper, status: Status) -> None:
    if not status.memories and not status.sessions:
        _render_beginning(paper, status)
        return
    memories, sessions = (
        count(status.memories, "memory", "memories"),
        count(status.sessions, "session"),
    )
    paper.line(bold("nacre"), f": {memories}, {sessions} on record.")
    paper.facts(_hosts(status), indent=2)
    _render_today(paper, status)
    _render_learned(paper, status)
    _render_waiting(paper, status)
    if effects := _effects(status):
        paper.heading("Context in the last 30 days")
        paper.line(effects, indent=2)
    paper.heading("Today's cost")
    paper.line(_cost(status), indent=2)
    paper.blank()
    paper.note('nacre recall "…" searches it; nacre --help lists all commands')


def _render_beginning(paper: Paper, page: Status) -> None:
    paper.line(bold("nacre"), " is a memory for your agents. It is empty so far.")
    paper.heading("Get started")
    connect = "connects it to your agents" + (
        f": {', '.join(page.not_wired)}" if page.not_wired else ""
    )
    rows = [
        ("nacre quickstart", "reads your agents' transcripts and shows what it learns"),
        (
            "nacre init",
            f"connects more agents than {', '.join(page.wired)}" if page.wired else connect,
        ),
        ('nacre store "…"', "stores a memory"),
    ]
    width = max(len(name) for name, _ in rows)
    for name, effect in rows:
        paper.line(bold(name), "\u00a0" * (width - len(name) + 2), effect, indent=2, hang=width + 2)
    paper.blank()
    paper.note("nacre --help lists all commands")


def _hosts(page: Status) -> Iterator[tuple[str, Cell]]:
    if page.wired:
        yield "connected", ", ".join(page.wired)
    if page.not_wired:
        init = f"nacre init --host {','.join(page.not_wired)}"
        yield "not connected", (f"{', '.join(page.not_wired)}: ", bold(init.replace(" ", "\u00a0")))
    if not (page.wired or page.not_wired):
        yield "connected", ("no agent: ", bold("nacre\u00a0init"))


def _render_today(paper: Paper, page: Status) -> None:
    number = count(page.sessions_today, "session")
    paper.heading(f"Today: {number}" if page.today else "Today")
    if page.today:
        paper.table([_session(line) for line in page.today], drop=(2, 1), indent=2)
        more = page.sessions_today - len(page.today)
        after = f"and {more:,} more: nacre sessions list --since today; " if more > 0 else ""
        paper.note(f"{after}nacre resume ID reopens one", indent=2)
        return
    read = f"; transcripts last read {when(page.read)}" if page.read else ""
    paper.line(f"No session yet{read}: ", bold("nacre\u00a0ingest"), indent=2)


def _session(line: SessionLine) -> tuple[Cell, ...]:
    stored, session = line.session, line.session.session
    at = shown(stored.ended or session.started or ids.utc_now(), "%H:%M")
    return (
        dim(short_session(session.native_id)),
        dim(at),
        session.tool,
        stored.project or "",
        sessions.session_title(line),
    )


def _render_learned(paper: Paper, page: Status) -> None:
    if not page.learned:
        return
    paper.heading("Latest memories")
    paper.table(
        [_memory(memory) for memory in page.learned], drop=(1, 3), least=_LEAST_CONTENT, indent=2
    )
    paper.note("nacre retire ID removes one from recall", indent=2)
    if any(memory.proposed for memory in page.learned):
        paper.note("nacre review keep ID accepts an agent's proposal", indent=2)


def _memory(memory: Memory) -> tuple[Cell, ...]:
    marks = (Span("proposed: ", "yellow"),) if memory.proposed else ()
    return (
        dim(short_id(memory)),
        dim(day(memory.created)),
        kind_span(memory.kind),
        place_name(memory),
        (*marks, *hits.subject_and_content(memory)),
    )


def _render_waiting(paper: Paper, page: Status) -> None:
    rows = list(_waiting(page))
    if rows:
        paper.heading("Pending")
        paper.table([(label, bold(command)) for label, command in rows], indent=2)


def _waiting(page: Status) -> Iterator[tuple[str, str]]:
    items = page.conflicts + page.doubts + page.candidates
    if items:
        yield f"{count(items, 'item')} to review", "nacre review"
    for pin in page.broken_pins:
        now = pin.first or "no answer"
        yield f"broken pin: {pin.question} {pin.answer}; now: {now}", "nacre admin check"
    if page.writer.waiting and page.writer.state != "ready":
        label = f"{count(page.writer.waiting, 'session')} for the writer: {writers.STATES[page.writer.state]}"
        yield label, "nacre writer"


def _effects(page: Status) -> str:
    effects = page.effects
    if not (effects.shown or effects.pointers):
        return ""
    memories = count(effects.shown, "memory", "memories")
    pointers = count(effects.pointers, "pointer")
    off = "".join(f"; pointers are off in {name}: nacre context --pointers" for name in effects.off)
    return (
        f"{memories} shown: {effects.followed} followed, {effects.broken} broken; "
        f"{pointers}: {effects.pointers_followed} followed{off}"
    )


def _cost(page: Status) -> str:
    spent = models.dollars(page.cost) if page.cost else "nothing"
    if page.writer.state == "off":
        return f"{spent}; no model writes memories (nacre writer set)"
    is_paid = page.cost or page.writer.limit is None
    return f"{f'{spent} of {models.dollars(page.budget)} a day; ' if is_paid else ''}{_writing(page.writer)}"


def _writing(writer: writers.WriterStatus) -> str:
    took = "" if writer.limit is None else f", {writer.tokens_today:,} of {writer.limit:,} tokens"
    ahead = f", {count(writer.waiting, 'session')} queued" if writer.waiting else ""
    return f"{writer.writer}: {writers.STATES[writer.state]}{took}{ahead}"


# ----------------------------------------------------------------------------
# Files that could not be read.


PROBLEMS_SHOWN = 20


def render_problems(
    paper: Paper, problems: Sequence[Problem], *, rest: str = "everything else was read"
) -> None:
    """Print the files that could not be read, with hints."""
    if not problems:
        return
    paper.heading(f"{count(len(problems), 'problem')}; {rest}")
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
@option(
    "doctor-deep", "everything", "--all", help="With --deep: reread all transcripts, not a sample."
)
@option(
    "doctor",
    "repair",
    help="Make repairs that lose no data: permissions, and more with --deep.",
)
def doctor(run: Run, part: str | None, deep: bool, everything: bool, repair: bool) -> None:
    """Check the installation, the agents and the stored data.

    With the argument hosts, the command checks that your agents can run nacre. For this, it runs the commands in their
    configuration. The command exits with 1 if a check fails. Each failure has a hint.
    """
    if part:
        _prove_hosts(run, with_options=deep or repair)
        return
    if everything and not deep:
        raise click.UsageError("--all requires --deep")
    if deep:
        _prove(run, everything=everything, with_repair=repair)
    else:
        checks = perform(run, checking.doctor, repair=repair)
        run.home.problems.clear()  # they are among the checks
        answer_checks(run, checks)


def _prove_hosts(run: Run, *, with_options: bool) -> None:
    if with_options:
        raise click.UsageError("hosts cannot be combined with --deep or --repair")
    answer_checks(run, perform(run, verify.prove_hosts))


def _prove(run: Run, *, everything: bool, with_repair: bool) -> None:
    repaired = 0
    with output.shown(run) as notify:
        proofs = prove.prove(run.home, everything=everything, on_progress=notify)
        if with_repair:
            repaired = prove.repair(run.home, proofs)
            proofs = (
                prove.prove(run.home, everything=everything, on_progress=notify)
                if repaired
                else proofs
            )
            prove.archive_again(run.home, proofs)
    checks = [*checking.installation(run.home, repair=with_repair), *map(prove.as_check, proofs)]
    run.home.problems.clear()  # they are among the findings
    findings = [
        {
            "area": proof.area,
            "severity": finding.severity,
            "sentence": finding.sentence,
            "repair": finding.repair,
            "repairable": finding.mend is not None,
        }
        for proof in proofs
        for finding in proof.findings
    ]
    more = {"findings": findings, "repaired": repaired}
    answer_checks(run, checks, more, lambda paper: _render_findings(paper, proofs, repaired))


def answer_checks(
    run: Run,
    checks: Sequence[Check],
    more: Mapping[str, object] = MappingProxyType({}),
    render_more: Callable[[Paper], None] | None = None,
) -> None:
    """Show the results of checks. The exit code is 1 if any check failed.

    ``more`` is added to the JSON, and ``render_more`` prints additional text.
    """
    is_ok = not any(check.state == "failure" for check in checks)
    run.exit_code = 0 if is_ok else 1

    def render(paper: Paper) -> None:
        _render_checks(paper, checks)
        if render_more:
            render_more(paper)

    run.answer({**more, "ok": is_ok, "checks": checks}, render)


def _render_checks(paper: Paper, checks: Sequence[Check]) -> None:
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        mark = _MARKS.get(check.state, Span(check.state))
        padded = Span(f"{mark.text:<7}".replace(" ", "\u00a0"), mark.style)
        name = f"{check.name:<{width}}".replace(" ", "\u00a0")
        paper.line(padded, "  ", bold(name), "  ", check.detail, hang=width + 11)
        if check.hint and check.state != "ok":
            paper.note(check.hint, indent=width + 11)


def _render_findings(paper: Paper, proofs: Sequence[prove.Proof], repaired: int) -> None:
    if repaired:
        paper.blank()
        paper.line(bold(f"Repaired {count(repaired, 'finding')}."))
    for proof in proofs:
        if len(proof.findings) < 2:
            continue
        paper.heading(f"{proof.area}: {count(len(proof.findings), 'finding')}")
        for finding in proof.findings[:PROBLEMS_SHOWN]:
            paper.line(finding.sentence, indent=2)
            paper.note(finding.repair, indent=4)
        paper.more(len(proof.findings) - PROBLEMS_SHOWN, ": --json lists all")


# ----------------------------------------------------------------------------
# ``nacre project``.


_SHOWN = 12


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
    place = place_of(run, None)
    run.present(place, _render_project)


@project.command("list", examples=["nacre project list", "nacre project list --json"])
def list_(run: Run) -> None:
    """List the projects, the most recently used first."""
    lines = ask(run, list[projects.ProjectLine], "project-list")
    run.answer({"projects": lines}, _render_list, lines)


@project.command("show", examples=["nacre project show", "nacre project show acme-billing --json"])
@argument("project-show", "project", metavar="[PROJECT]", required=False, default=".")
def show_project(run: Run, project: str) -> None:
    """Show a project, by default this folder's."""
    run.present(
        ask(run, projects.ProjectDetail, "project-show", project=_named(run, project)),
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
    record = {"project": place.project, "folder": str(path)}
    run.answer(record, Paper.line, f"{path} now belongs to ", bold(place.project or ""), ".")


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
        perform(run, projects.rename, project=_named(run, project), name=name, reason=reason),
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
    fields: dict[str, Any] = {name: _named(run, value) for name, value in names.items()}
    plan = perform(run, projects.plan_merge, **fields)
    if dry_run:
        run.present(plan, _render_plan)
        return
    run.settings.actor.require_owner("nacre project merge")
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
    line = perform(run, projects.depend, project=_named(run, project), on=tuple(on), remove=remove)
    named = ", ".join(line.dependencies) or "nothing"
    run.answer(line, Paper.line, bold(line.slug), f" depends on {named}.")


def _named(run: Run, name: str) -> str:
    """Return the name of a project. ``.`` is replaced with the project of the current folder."""
    return (find_project(run, name) or name) if name == "." else name


def _render_project(paper: Paper, place: Place) -> None:
    if place.project:
        paper.line("This folder belongs to ", bold(place.project), ".")
    else:
        paper.line(
            "This folder belongs to no project",
            dim(f"  {tie_hint(place.namesake)}") if place.namesake else ".",
        )
    if not place.known:
        paper.note("There are no projects yet: each is created by its first session or memory.")
        return
    paper.heading("Projects")
    for name in place.known:
        paper.line(name, indent=2)


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
    for hint in filter(None, (line.hint for line in lines)):
        paper.note(hint)


def _names(line: projects.ProjectLine) -> str:
    groups = (("also", line.aliases), ("depends on", line.dependencies))
    return "; ".join(f"{label} {', '.join(names)}" for label, names in groups if names)


def _render_detail(paper: Paper, detail: projects.ProjectDetail) -> None:
    line = detail.project
    paper.line(
        bold(line.name if line.name != line.slug else line.slug),
        dim(f"  projects/{line.slug}/project.md"),
    )
    last = f", last {day(line.last)}" if line.last else ""
    paper.line(
        f"{count(line.memories, 'memory', 'memories')}, {count(line.sessions, 'session')}{last}"
    )
    facts = (
        ("also", line.aliases),
        ("depends on", line.dependencies),
        ("needed by", detail.needed_by),
        ("remotes", detail.remotes),
        ("folders", detail.roots),
        ("labels", detail.labels),
    )
    paper.facts([(name, ", ".join(values)) for name, values in facts if values])
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
    paper.line(bold(plan.project), " would become part of ", bold(plan.into), ":")
    paper.line(
        f"{count(plan.memories, 'memory', 'memories')} (retired ones included) and {count(plan.sessions, 'session')}",
        indent=2,
    )
    for kind, value in plan.takes[:_SHOWN]:
        paper.line(f"{kind}  {value}", indent=2)
    paper.more(len(plan.takes) - _SHOWN)
    if plan.words:
        paper.line(f"your text on its page, appended to the page of {plan.into}:", indent=2)
        paper.body(plan.words, indent=4)
    paper.blank()
    for reason in plan.evidence:
        paper.line(f"Same project because: {reason}.")
    if not plan.evidence:
        paper.line("nacre has no evidence that they are the same project. You decide.")


def _render_moved(paper: Paper, moved: projects.ProjectMoved, words: str) -> None:
    counts = f"{count(moved.memories, 'memory', 'memories')} and {count(moved.sessions, 'session')}"
    paper.line(bold(moved.project), f" {words} ", bold(moved.into), f": {counts} moved.")
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
        raise click.UsageError("give only one of TEXT, --edit and --remove")
    if text is not None and not text.strip():
        raise click.UsageError("the text is empty; use --remove to delete the page")
    before = perform(run, build.own_page_answers, name=name, project=project)
    if edit:
        text = _edited(run, before)
    elif text is not None:
        text = read_content(text)
    after: build.OwnPage = (
        before
        if text is None and not remove
        else perform(
            run,
            build.write_own_page_answers,
            name=name,
            project=project,
            text=text or "",
            expected=before.etag if edit else None,
        )
    )
    did_change = after.text != before.text
    if after.tokens > after.told_tokens:
        run.warnings.append(
            f"the page has {after.tokens} tokens; sessions receive only about the first {after.told_tokens}"
        )
    record = {
        "page": name,
        "path": str(run.settings.shown_vault / after.path),
        "text": after.text,
        "tokens": after.tokens,
        "told_tokens": after.told_tokens,
        "changed": did_change,
        "etag": after.etag,
    }
    run.answer(
        record, _render_page, after, did_change=did_change, is_read=text is None and not remove
    )


def _edited(run: Run, before: build.OwnPage) -> str | None:
    """Return the text from the editor, or ``None`` if the user saved nothing."""
    if not run.is_interactive:
        raise click.UsageError("--edit needs a terminal; pass TEXT, or - for standard input")
    return click.edit(before.text, extension=".md")


def _render_page(paper: Paper, page: build.OwnPage, *, did_change: bool, is_read: bool) -> None:
    if not is_read:
        verb = "Saved" if page.text else "Deleted"
        paper.line(f"{verb}: {page.path}" if did_change else "Nothing changed.")
        return
    if not page.text:
        paper.line(
            f"There is no {page.name} page yet.",
            dim(f'  nacre project page {page.name} "…" writes it'),
        )
    for line in page.text.splitlines():
        paper.verbatim(line)
