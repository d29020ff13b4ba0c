"""The ``nacre graph`` commands for code and the memories that mention it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base import text
from nacre.cli.command import Paper, Run, bold, command, dim, joined
from nacre.cli.options import (
    Decorator,
    Function,
    argument,
    ask,
    count,
    find_project,
    flag,
    kind_span,
    option,
    perform,
    place_of,
    short_id,
)
from nacre.errors import NotFoundError
from nacre_code import ask as code_ask
from nacre_code import ingest

if TYPE_CHECKING:
    from nacre_code.ask import CodeAnswer, CodeMemory, CodeNode, CodeReport, Staleness

_WORDS = 160


def _narrowed(operation: str, *names: str) -> Decorator:
    def decorate(function: Function) -> Function:
        function = option(operation, "limit", "--limit", "-n")(function)
        function = option(operation, "project", help="Only this project; . is this folder's.")(
            function
        )
        return option(operation, *names)(function)

    return decorate


@command(
    "ingest-code",
    examples=["nacre graph ingest-code", "nacre graph ingest-code ~/code/shop --project shop"],
)
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False))
@option("graph-ingest-code", "project", "max_files")
@flag("--forget", "Remove the project's index; its files are kept.")
def ingest_code(run: Run, /, path: str, forget: bool, **options: Any) -> None:
    """Read a repository's symbols, calls, imports and base classes.

    Reads the whole repository that contains PATH, except files that git ignores. Later runs read
    only changed files. Names, paths and line numbers are stored, but no contents, and no code is
    run. Languages: Python, JavaScript, TypeScript, Go, Rust, Java, C, C++.
    """
    if forget:
        name = find_project(run, options["project"] or ".")
        done = perform(run, ingest.forget_code, project=name)
        message = "Forgot the code of" if done.was_there else "There was no code of"
        run.answer(done, lambda paper: paper.line(f"{message} {done.project}."))
        return
    report = perform(run, ingest.ingest_code, folder=str(Path(path).resolve()), **options)
    if report.failed:
        run.warnings.append(
            f"{count(len(report.failed), 'file')} could not be parsed: {', '.join(report.failed[:3])}"
        )
    if report.left_out:
        run.warnings.append(f"{count(report.left_out, 'file')} left out: raise --max-files")
    run.answer(report, lambda paper: _render_report(paper, report))


@command(
    "callers",
    examples=[
        "nacre graph callers Order.pay",
        "nacre graph callers src/shop/orders.py#place --depth 3",
    ],
)
@argument("graph-callers", "name")
@_narrowed("graph-callers", "depth")
def callers(run: Run, /, name: str, **options: Any) -> None:
    """List the callers of a symbol.

    NAME is place, Order.pay, shop.orders.place or src/shop/orders.py#place. If several symbols match, they are listed
    instead. For a class, calls of its methods and its subclasses are also listed.
    """
    _show(run, "graph-callers", "No known code calls it.", name=name, **options)


@command(
    "importers",
    examples=["nacre graph importers src/shop/stock.py", "nacre graph importers requests"],
)
@argument("graph-importers", "name", metavar="FILE|MODULE")
@_narrowed("graph-importers")
def importers(run: Run, /, name: str, **options: Any) -> None:
    """List the files that import a file, a module or a library."""
    _show(run, "graph-importers", "No known code imports it.", name=name, **options)


@command(
    "about", examples=["nacre graph about Order.pay", "nacre graph about src/shop/orders.py --json"]
)
@argument("graph-about", "name", metavar="NAME|FILE")
@_narrowed("graph-about")
def about(run: Run, /, name: str, **options: Any) -> None:
    """List the memories that mention a symbol or a file."""
    _show(run, "graph-about", "No memory names it.", name=name, **options)


@command(
    "impact",
    examples=[
        "nacre graph impact src/shop/orders.py",
        "nacre graph impact src/shop/orders.py Order.pay --depth 5",
    ],
)
@argument("graph-impact", "name", metavar="FILE")
@argument("graph-impact", "symbol", required=False)
@_narrowed("graph-impact", "depth")
def impact(run: Run, /, name: str, **options: Any) -> None:
    """Show what a change to a file affects, in code and in memories.

    Lists the callers and subclasses of the symbols in FILE, the files that import it, their callers
    in turn, and the memories that mention any of them. With SYMBOL, lists only the callers of that
    symbol.
    """
    _show(run, "graph-impact", "No known code depends on it.", name=name, **options)


@command("stale", examples=["nacre graph stale", "nacre graph stale --project . --days 90 --json"])
@_narrowed("graph-stale", "days")
def stale(run: Run, /, project: str | None, **options: Any) -> None:
    """List memories that may be out of date because files they name changed.

    Counts sessions that changed the files and began after a memory was last stated. The probability
    is lower if the files still contain the names of code in the memory. They are searched in the
    folder whose code was read, or else in this one.
    """
    staleness = ask(
        run,
        code_ask.Staleness,
        "graph-stale",
        project=find_project(run, project),
        folder=str(Path.cwd()),
        **options,
    )
    run.answer(staleness, lambda paper: _render_stale(paper, staleness, options["days"]))


def _render_stale(paper: Paper, staleness: Staleness, days: int) -> None:
    if not staleness.memories:
        looked = count(staleness.looked_at, "memory names a file", "memories name files")
        paper.line(
            f"No memory seems out of date: {looked}, none of them changed in the last {count(days, 'day')}."
        )
        return
    for memory in staleness.memories:
        paper.line(
            f"{memory.confidence:.2f}  ", text.shorten(memory.memory.content, _WORDS), hang=6
        )
        paper.note(joined((short_id(memory.memory), memory.why)), indent=6)
    if staleness.total > len(staleness.memories):
        paper.note(f"{staleness.total - len(staleness.memories):,} more: --limit shows them")


def _show(run: Run, operation: str, message: str, project: str | None, **options: Any) -> None:
    near = None
    with suppress(NotFoundError):
        near = place_of(run, ".").project
    options |= {"project": find_project(run, project), "near": near}
    answer = ask(run, code_ask.CodeAnswer, operation, **options)
    run.answer(answer, lambda paper: _render(paper, answer, message))


def _render(paper: Paper, answer: CodeAnswer, nothing: str) -> None:
    if answer.choices:
        paper.line(bold(f"{answer.asked} matches several symbols:"))
        several = len({node.project for node in answer.choices}) > 1
        for node in answer.choices:
            facts = joined((node.kind, node.project if several else ""))
            paper.line(_place(node), "  ", dim(facts), indent=2)
        paper.note(
            "repeat the command with one of these names"
            + ("; there are more" if answer.more else "")
        )
        return
    for node in answer.nodes:
        paper.line(
            bold(_place(node)),
            "  ",
            dim(joined((node.kind, f"line {node.line}" if node.name else ""))),
        )
    if not answer.links and not answer.memories:
        paper.line(nothing)
    for link in answer.links:
        is_asked = not link.via or link.via in {node.id for node in answer.nodes}
        via = (
            ""
            if is_asked or not link.via
            else link.via.partition("#")[2] or link.via.rpartition("/")[2]
        )
        where = f"{link.node.path}:{link.line}"
        name = f"  {link.node.name}" if link.node.name else ""
        note = joined((f"{link.rel} {via}".strip(), link.note))
        paper.line(where, name, "  ", dim(note), indent=2 * link.depth, hang=2)
    if answer.memories:
        paper.heading("Memories that mention it")
        for memory in answer.memories:
            _render_memory(paper, memory)
    if answer.more:
        paper.note("more: --limit shows them")


def _render_memory(paper: Paper, memory: CodeMemory) -> None:
    facts = joined(
        (
            kind_span(memory.memory.kind).text,
            short_id(memory.memory),
            f"names {', '.join(memory.names[:3])}",
        )
    )
    if memory.memory.trust.value == "untrusted":
        paper.framed(text.shorten(memory.memory.content, _WORDS), "from outside", indent=2)
    else:
        paper.line(text.shorten(memory.memory.content, _WORDS), indent=2)
    paper.note(facts, indent=4)


def _place(node: CodeNode) -> str:
    return f"{node.path}#{node.name}" if node.name else node.path


def _render_report(paper: Paper, report: CodeReport) -> None:
    paper.line(bold(report.project), "  ", dim(report.root))
    languages = ", ".join(f"{name} {number:,}" for name, number in report.languages.items())
    counts = f"{count(report.symbols, 'symbol')} and {count(report.edges, 'edge')}"
    paper.line(
        f"{counts} in {count(sum(report.languages.values()), 'file')}{f' ({languages})' * bool(languages)}"
    )
    message = (
        f"{report.read:,} read",
        f"{report.unchanged:,} unchanged" if report.unchanged else "",
        f"{report.removed:,} gone" if report.removed else "",
        f"{report.skipped:,} skipped" if report.skipped else "",
        f"{report.seconds:.1f} s",
    )
    paper.note(joined(message))
