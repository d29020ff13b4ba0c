"""``nacre auth``: what nacre can sign in with."""

from __future__ import annotations

import sys

import click

from nacre.cli.command import TEXT, Group
from nacre.cli.run import Run


@click.group("auth", cls=Group, examples=["nacre auth status", "nacre auth set openai", "nacre auth remove anthropic"])
def auth() -> None:
    """Tell what nacre can sign in to models with; set and remove keys."""


@auth.command("status", examples=["nacre auth status", "nacre auth status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Show every way to sign in to a model, whether its credential is there, and where from.

    Keys are shown by their last four characters. Nothing is changed, and nothing is asked of the network.
    """
    from nacre.cli.records.signing_in import status_record
    from nacre.cli.render.signing_in import render_status
    from nacre.setup import credentials

    found = credentials.status(run.settings)
    run.answer(status_record(found), lambda paper: render_status(paper, found))


@auth.command("set", examples=["nacre auth set openai", "pass show openai | nacre auth set openai"])
@click.argument("provider", type=TEXT)
@click.pass_obj
def set_key(run: Run, provider: str) -> None:
    """Keep another key of a provider: typed without being shown, or from standard input.

    It goes into the system's keyring, where none works into credentials.toml. nacre setup chooses models.
    """
    from nacre.cli.commands.setup import MOST_KEY_CHARACTERS, checked_key
    from nacre.llm.credentials.keys import credential_for, mask
    from nacre.settings import load_settings
    from nacre.setup import credentials

    if run.is_interactive:
        secret = str(click.prompt(f"Key of {provider} (not shown)", hide_input=True, err=True)).strip()
    else:
        secret = sys.stdin.read(MOST_KEY_CHARACTERS).strip()
    kept = credentials.replace_key(run.settings, provider, checked_key(secret, "standard input"))
    taken = credential_for(load_settings(run.settings.home, run.settings.environ), provider)
    if taken and taken.secret != secret:
        run.warnings.append(f"{taken.origin} holds another key, and goes before the one that was kept")
    record = {"provider": provider, "kept": kept, "masked": mask(secret)}
    run.answer(record, lambda paper: paper.line(f"Kept: the key {mask(secret)} of {provider}, in {kept}."))


@auth.command("remove", examples=["nacre auth remove anthropic", "nacre auth remove openai --yes"])
@click.argument("provider", type=TEXT)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(run: Run, provider: str, yes: bool) -> None:
    """Delete the key of a provider that nacre was given.

    From the keyring, credentials.toml and the config. Logins of other tools and the environment are left alone.
    """
    from nacre.cli.paper import Paper, bold
    from nacre.setup import credentials

    if run.is_interactive and not yes:
        run.confirm(f"Delete the key of {provider}?")
    removed = credentials.remove(run.settings, provider)
    left = credentials.left(run.settings, provider)

    def render(paper: Paper) -> None:
        paper.line("Deleted: the key of ", bold(provider), f", from {' and '.join(removed)}.")
        for place in left:
            paper.line(f"It still signs in with what is in {place}, which is not nacre's.", indent=2)

    run.answer({"provider": provider, "removed": removed, "left": left}, render)
