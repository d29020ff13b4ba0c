"""``nacre traces``."""

from __future__ import annotations

from datetime import datetime

import click

from nacre.cli.command import TEXT, DefaultGroup
from nacre.cli.options import MOMENT, limit_option
from nacre.cli.run import Run
from nacre.values.trace import TraceKind


@click.group(
    "traces", cls=DefaultGroup, examples=["nacre traces", "nacre traces list --kind case", "nacre traces show 5f0c2a4d"]
)
@click.pass_context
def traces(context: click.Context) -> None:
    """Tell what models and answers went through.

    Every run of a language model and every question that was answered leaves a trace: its steps, what they took, and
    what became of it. Secrets are not in them.
    """
    if context.invoked_subcommand is None:
        _list(context.obj, None, None, 20)


def _list(run: Run, kind: str | None, since: datetime | None, limit: int) -> None:
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.spending import traces_record
    from nacre.cli.render.traces import render_traces
    from nacre.health.requests import TracesRequest

    found = asked(run, "traces", TracesRequest(kind=TraceKind(kind) if kind else None, since=since, limit=limit))
    run.answer(traces_record(found, limit), lambda paper: render_traces(paper, found))


@traces.command("list", examples=["nacre traces list --kind case --since 2d", "nacre traces list --json"])
@click.option(
    "--kind", type=click.Choice([kind.value for kind in TraceKind], case_sensitive=False),
    help="Only these; a case is a question that was answered.",
)  # fmt: skip
@click.option("--since", type=MOMENT, help="From then on: 2026-11-20, 3d, 2w, yesterday, march.")
@limit_option(20, "Traces")
@click.pass_obj
def list_traces(run: Run, kind: str | None, since: datetime | None, limit: int) -> None:
    """List traces, the latest first."""
    _list(run, kind, since, limit)


@traces.command("show", examples=["nacre traces show 5f0c2a4d", "nacre traces show 5f0c2a4d --prompts"])
@click.argument("reference", metavar="ID", type=TEXT)
@click.option("--prompts", is_flag=True, help="Also whole prompts and answers, where they were kept: --trace-prompts.")
@click.pass_obj
def show(run: Run, reference: str, prompts: bool) -> None:
    """Tell a trace step by step."""
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.spending import trace_record
    from nacre.cli.render.traces import render_trace
    from nacre.health.requests import TraceRequest

    view = asked(run, "trace", TraceRequest(reference=reference))
    run.answer(trace_record(view, prompts=prompts), lambda paper: render_trace(paper, view, prompts=prompts))
