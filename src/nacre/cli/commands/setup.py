"""``nacre setup``."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, command
from nacre.cli.run import Run
from nacre.errors import InvalidInput, ModelRefused

if TYPE_CHECKING:
    from nacre.setup.models import Tried, Wish

METHODS = ("anthropic-api-key", "anthropic-token", "anthropic-oauth", "openai-api-key", "openai-subscription")
MOST_KEY_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say; ``None`` where they say nothing."""

    provider: str | None
    auth: str | None
    model: str | None
    base_url: str | None
    embedding: str | None
    background: bool | None
    daily_budget: float | None
    secret: str | None = field(default=None, repr=False)
    takes_proposals: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether no option names anything to change."""
        return not self.names_model and (self.embedding, self.background, self.daily_budget) == (None, None, None)

    @property
    def names_model(self) -> bool:
        """Whether an option is about a model or how it is reached."""
        return any((self.provider, self.auth, self.model, self.base_url, self.secret))


@command(
    "setup",
    examples=[
        "nacre setup",
        "nacre setup --auth anthropic-api-key --key-env ANTHROPIC_API_KEY --model claude-haiku-5-5 --yes",
        "nacre setup --none",
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
@click.option("--none", "goes_without", is_flag=True, help="Go back to no model.")
@click.option("--test/--no-test", "tests", default=True, show_default=True, help="Ask the model one short question.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take what is proposed.")
@click.pass_obj
def setup(  # noqa: PLR0913 - one a question
    run: Run, provider: str | None, auth: str | None, key_env: str | None, key_stdin: bool, model: str | None,
    base_url: str | None, embedding: str | None, background: bool | None, daily_budget: float | None,
    goes_without: bool, tests: bool, yes: bool,
) -> None:  # fmt: skip
    """Choose a language model, sign in, and say what it may cost.

    nacre works without one; with one it writes better memories. On a terminal it asks for what the options leave open.
    Keys go into the system's keyring, where none works into credentials.toml, and never into the config. Run again,
    it changes only what it is asked to.
    """
    from nacre.setup.models import Wish, changes

    if goes_without and any((provider, auth, key_env, key_stdin, model, base_url)):
        raise click.UsageError("--none goes without a provider, a key and a model", click.get_current_context())
    if goes_without:
        wish = Wish("none", embedding=embedding, daily_budget=daily_budget)
    else:
        secret = _given_key(run, key_env, key_stdin=key_stdin)
        asked = Asked(provider, auth, model, base_url, embedding, background, daily_budget, secret, yes)
        wish = _wish(run, asked, may_ask=run.is_interactive and not yes and not key_stdin)
    changes(run.settings, wish)  # what cannot be set is told before anything is asked of the network
    tried = _try(run, wish, tests=tests, may_ask=run.is_interactive and not yes)
    _finish(run, wish, tried)


def _wish(run: Run, asked: Asked, *, may_ask: bool) -> Wish:
    from nacre.cli import setup_dialog
    from nacre.cli.setup_choices import settle

    if not asked.is_nothing:
        return settle(run.settings, asked, setup_dialog.Dialog(run) if may_ask else None)
    if may_ask:
        return setup_dialog.walk(run)
    raise click.UsageError(
        "nothing says what to set up, and nobody can be asked: add --provider and --model (and --key-env or "
        "--key-stdin where it needs a key), or --none, --embedding, --background, --daily-budget",
        click.get_current_context(),
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


def checked_key(secret: str, where: str) -> str:
    """A key that can be one. Raises InvalidInput."""
    if not secret:
        raise InvalidInput(f"there is no key in {where}", hint="nacre setup --help")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InvalidInput(f"what is in {where} is no key: it holds spaces, line ends or odd characters")
    return secret


def _try(run: Run, wish: Wish, *, tests: bool, may_ask: bool) -> Tried:
    """Ask the model, where one is to be set. Raises ModelRefused where it says no, and nobody wants it all the same."""
    from nacre.setup.models import REFUSED, SKIPPED, Tried, try_model

    if not tests or not wish.provider:
        return Tried(SKIPPED, message="nobody asked for a test" if wish.provider else "")
    with progress.waiting(run, f"Asking {wish.model}") as hear:
        tried = try_model(run.home, wish, hear)
    if tried.outcome != REFUSED:
        return tried
    if may_ask:
        click.echo(f"{tried.message}\n{tried.hint}".strip(), err=True)
        run.confirm("Set it all the same?")
        return tried
    raise ModelRefused(f"{tried.message}; nothing was changed", hint=f"{tried.hint}; --no-test sets it all the same")


def _finish(run: Run, wish: Wish, tried: Tried) -> None:
    from nacre.cli.records.setting_up import setup_record
    from nacre.cli.render.setting_up import render_setup
    from nacre.setup.models import apply

    if not wish.provider and wish.secret:
        wish = replace(wish, secret=None)
    done = apply(run.settings, wish)
    run.warnings += done.notes
    run.answer(setup_record(done, tried), lambda paper: render_setup(paper, done, tried))
