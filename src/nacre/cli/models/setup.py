"""``nacre setup``."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, command
from nacre.cli.formats import Record, seconds
from nacre.cli.models import setup_dialog
from nacre.cli.models import writer as cli_writer
from nacre.cli.models.auth import MOST_KEY_CHARACTERS, checked_key
from nacre.cli.models.setup_choices import SetupOptions, settle
from nacre.cli.paper import Paper, Part, Span, bold, dim
from nacre.cli.run import Run
from nacre.errors import InvalidInput, ModelRefused, NacreError
from nacre.settings import load_settings
from nacre.setup import models, visible_settings
from nacre.setup import requests as setup_requests
from nacre.setup import writer as writers
from nacre.spending import budget as budgets

if TYPE_CHECKING:
    from nacre.setup.found_writers import WriterProposal
    from nacre.setup.models import Done, Tried, Wish
    from nacre.setup.requests import WriterRequest
    from nacre.setup.writer import WriterStatus

METHODS = ("anthropic-api-key", "anthropic-token", "anthropic-oauth", "openai-api-key", "openai-subscription")
_OUTCOMES = {
    "answered": Span("answered", "green"),
    "unusable": Span("answered, but not in the shape that was asked for", "yellow"),
    "unreachable": Span("not tested: no answer of use now", "yellow"),
    "refused": Span("refused", "red"),
    "skipped": Span("not tested", "dim"),
}


@command(
    "setup",
    examples=[
        "nacre setup",
        "nacre setup --auth anthropic-api-key --key-env ANTHROPIC_API_KEY --model claude-haiku-5-5 --yes",
        "nacre setup --writer claude-cli:haiku --tokens-per-day 100000",
    ],
)
@click.option("--provider", type=TEXT, help="Who answers: anthropic, openai, ollama, claude-cli … or a name of yours.")
@click.option("--auth", type=click.Choice(METHODS), help="How to sign in to Anthropic or OpenAI.")
@click.option("--key-env", type=TEXT, metavar="VAR", help="Keep the key that this environment variable holds.")
@click.option("--key-stdin", is_flag=True, help="Keep the key that comes on standard input.")
@click.option("--model", type=TEXT, metavar="NAME", help="Which model, with or without its provider.")
@click.option("--base-url", type=TEXT, metavar="URL", help="Where a provider answers that speaks as OpenAI does.")
@click.option(
    "--embedding", type=TEXT, metavar="MODEL", help="Model for the vector lane: minilm (bundled), none, or another."
)
@click.option("--background/--no-background", default=None, help="Let the model work while sessions are read, or not.")
@click.option("--daily-budget", type=click.FloatRange(0), metavar="USD", help="What that may cost a day.")
@click.option("--tokens-per-day", type=click.IntRange(1), metavar="N", help="The same where a subscription pays.")
@click.option("--writer", type=TEXT, metavar="NAME", help="Who writes memories, as claude-cli:haiku; nacre writer.")
@click.option("--none", "goes_without", is_flag=True, help="Go back to no model.")
@click.option("--test/--no-test", "tests", default=True, show_default=True, help="Ask the model one short question.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take what is proposed.")
@click.pass_obj
def setup(  # noqa: PLR0913 - one a question
    run: Run, provider: str | None, auth: str | None, key_env: str | None, key_stdin: bool, model: str | None,
    base_url: str | None, embedding: str | None, background: bool | None, daily_budget: float | None,
    tokens_per_day: int | None, writer: str | None, goes_without: bool, tests: bool, yes: bool,
) -> None:  # fmt: skip
    """Choose a language model, sign in, and say what it may cost.

    nacre works without one; with one it writes better memories. On a terminal it asks for what the options leave open.
    Keys go into the system's keyring, where none works into credentials.toml, and never into the config. Run again,
    it changes only what it is asked to. --yes alone sets nothing that would ask a model: it names what does.
    """
    run.settings.actor.require_owner("nacre setup")
    if goes_without and any((provider, auth, key_env, key_stdin, model, base_url, writer)):
        raise click.UsageError(
            "--none goes without a provider, a key, a model and a writer", click.get_current_context()
        )
    if goes_without:
        wish = models.Wish("none", embedding=embedding, daily_budget=daily_budget)
    else:
        secret = _given_key(run, key_env, key_stdin=key_stdin)
        asked = SetupOptions(
            provider, auth, model, base_url, embedding, background, daily_budget, tokens_per_day, secret, yes
        )
        wish = _wish(run, asked, writer, may_ask=run.is_interactive and not yes and not key_stdin)
    models.changes(run.settings, wish)  # what cannot be set is told before anything is asked of the network
    models.check_bound(run.settings, wish)
    named = setup_requests.WriterRequest(writer=writer, tokens_per_day=tokens_per_day) if writer else None
    if named:
        writers.refuse(models.wished(run.settings, wish), named)
    tried = _try(run, wish, tests=tests, may_ask=run.is_interactive and not yes)
    _finish(run, wish, tried, named)


def _wish(run: Run, asked: SetupOptions, writer: str | None, *, may_ask: bool) -> Wish:
    if not asked.is_nothing:
        return settle(run.settings, asked, setup_dialog.Dialog(run) if may_ask else None)
    if writer or asked.takes_proposals:
        return models.Wish()
    if may_ask:
        return setup_dialog.walk(run)
    raise InvalidInput(
        "not interactive, and nothing says what to set up: pass --provider and --model, and --key-env or --key-stdin "
        "where it needs a key; or --writer, --none, --embedding, --background, --daily-budget",
        hint="nacre setup --provider anthropic --model claude-haiku-5-5 --key-env ANTHROPIC_API_KEY --yes",
    )


def _given_key(run: Run, variable: str | None, *, key_stdin: bool) -> str | None:
    """The key that the options point to. It never is an argument: those are kept in histories and seen by others."""
    if variable and key_stdin:
        raise click.UsageError("--key-env or --key-stdin, not both", click.get_current_context())
    if key_stdin:
        secret = sys.stdin.read(MOST_KEY_CHARACTERS).strip()
        where = "standard input"
    elif variable:
        secret = run.environ.get(variable, "").strip()
        is_name = re.fullmatch(r"[A-Z][A-Z0-9_]*", variable)  # else it may be the key itself
        where = f"${variable}" if is_name else "the variable that --key-env names"
    else:
        return None
    return checked_key(secret, where)


def _try(run: Run, wish: Wish, *, tests: bool, may_ask: bool) -> Tried:
    """Ask the model, where one is to be set. Raises ModelRefused where it says no, and nobody wants it all the same."""
    if not tests or not wish.provider:
        return models.Tried(models.SKIPPED, message="nobody asked for a test" if wish.provider else "")
    with progress.waiting(run, f"Asking {wish.model}"):
        tried = models.try_model(run.home, wish)
    if tried.outcome != models.REFUSED:
        return tried
    if may_ask:
        click.echo(f"{tried.message}\n{tried.hint}".strip(), err=True)
        run.confirm("Set it all the same?")
        return tried
    raise ModelRefused(f"{tried.message}; nothing was changed", hint=f"{tried.hint}; --no-test sets it all the same")


def _finish(run: Run, wish: Wish, tried: Tried, named: WriterRequest | None) -> None:
    if not wish.provider and wish.secret:
        wish = replace(wish, secret=None)
    done = models.apply(run.settings, wish)
    run.warnings += done.notes
    status, could = _who_writes(run, done, named)
    if named:
        done = _with_writer(done)
    run.answer(
        _setup_record(done, tried, status, could), lambda paper: _render_setup(paper, done, tried, status, could)
    )


def _with_writer(done: Done) -> Done:
    """What holds and was written, now that the writer is set, too."""
    before, after = done.settings, load_settings(done.settings.home, done.settings.environ)
    more = {key: after[key] for key in after.values if after[key] != before[key]}
    return replace(done, settings=after, changed={**done.changed, **more})


def _who_writes(
    run: Run, done: Done, named: WriterRequest | None
) -> tuple[WriterStatus, WriterProposal | None]:  # fmt: skip
    """Who writes now, and who could. What was asked for is done: a database that cannot be read does not fail it."""
    if named:
        return writers.set_writer(replace(run.home, settings=done.settings), named), None
    try:
        home = replace(run.home, settings=done.settings)
        status = writers.status(home)
        return status, cli_writer.best_for(home) if status.state == "off" else None
    except NacreError as error:
        run.warnings.append(error.message)
        name = writers.named(done.settings)
        return writers.WriterStatus(name or "none", "unavailable" if name else "off"), None


def _setup_record(done: Done, tried: Tried, status: WriterStatus, could: WriterProposal | None) -> Record:
    """What holds now, what was changed where, and how the test went."""
    settings = done.settings
    return {
        "model": settings.text("models.default"),
        "auth": settings.text("models.auth") or None,
        "embedding": settings.text("embedding.model"),
        "background": settings.flag("models.background"),
        "daily_budget_usd": settings.number("models.daily_budget_usd"),
        "changed": [
            {"key": key, "value": visible_settings.hidden(settings, value)} for key, value in done.changed.items()
        ],
        "writer": status.writer,
        "writer_command": could.command if could else None,
        "config": str(settings.config),
        "credential": {"kept": done.kept, "masked": done.masked} if done.kept else None,
        "test": {
            "outcome": tried.outcome, "seconds": round(tried.seconds, 3), "message": tried.message or None,
            "hint": tried.hint or None,
        },
    }  # fmt: skip


def _render_setup(
    paper: Paper, done: Done, tried: Tried, status: WriterStatus, could: WriterProposal | None
) -> None:  # fmt: skip
    """What holds now, where it was written, and how to go on."""
    settings = done.settings
    has_model = settings.text("models.default") != "none"
    without = "none: nacre works without one" if status.state == "off" else "none beside the writer"
    paper.facts(
        (
            ("model", bold(settings.text("models.default")) if has_model else without),
            ("test", _test(tried) if has_model else ""),
            ("key", f"{done.masked}, kept in {_place(done.kept)}" if done.kept else ""),
            ("vectors", settings.text("embedding.model")),
            ("background", _background(done) if has_model else ""),
            ("writer", _writer(status)),
            ("written", f"{', '.join(done.changed)} in {settings.config}" if done.changed else "nothing: it was so"),
        )
    )
    paper.blank()
    for words, why in _next(done, could):
        paper.line(bold(words), dim(f"  {why}"))


def _test(tried: Tried) -> list[Part]:
    parts: list[Part] = [_OUTCOMES[tried.outcome]]
    if tried.outcome == "answered":
        parts.append(f" in {seconds(tried.seconds)}")
    if tried.message:
        parts.append(f": {tried.message}")
    if tried.hint:
        parts.append(dim(f" ({tried.hint})"))
    return parts


def _place(kept: str) -> str:
    return "the keyring" if kept == "keyring" else f"{kept}, yours alone"


def _background(done: Done) -> str:
    if not done.settings.flag("models.background"):
        return "off: the model works only when you ask for it"
    name, tokens = done.settings.text("models.default"), done.settings.whole("writer.tokens_per_day")
    if budgets.is_by_subscription(done.settings, name):
        return f"on: up to {tokens:,} tokens a day"
    budget = done.settings.number("models.daily_budget_usd")
    if not budget:
        return "on, but the budget is US$ 0 a day: nothing is asked"
    return f"on: for at most US$ {budget:,.2f} a day"


def _writer(status: WriterStatus) -> str:
    if status.state == "off":
        return "none: what you say plainly is kept"
    bound = f", up to {status.limit:,} tokens a day" if status.limit else ""
    return f"{status.writer}, once a session is over{bound}"


def _next(done: Done, could: WriterProposal | None) -> list[tuple[str, str]]:
    more = [(could.command, f"lets {could.writer.label} write memories{could.bound}")] if could else []
    if done.settings.text("models.default") == "none":
        return [*more, ("nacre ingest", "reads what is new"), ("nacre auth status", "what keys are left")]
    if done.settings.flag("models.background"):
        return [*more, ("nacre ingest", "reads what is new, with the model")]
    return [*more, ("nacre auth status", "what nacre signs in with")]
