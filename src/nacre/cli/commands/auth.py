"""``nacre auth``: what nacre can sign in with."""

from __future__ import annotations

import click

from nacre.cli.command import TEXT, Group
from nacre.cli.run import Run


@click.group(
    "auth", cls=Group, examples=["nacre auth status", "nacre auth status --json", "nacre auth remove anthropic"]
)
def auth() -> None:
    """Tell what nacre can sign in to models with, and take keys back."""


@auth.command("status", examples=["nacre auth status", "nacre auth status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Show every way to sign in to a model, whether its credential is there, and where from.

    Keys are shown by their last four characters. Nothing is changed, and nothing is asked of the network.
    """
    from nacre.app import signing_in
    from nacre.cli.records.signing_in import status_record
    from nacre.cli.render.signing_in import render_status

    found = signing_in.status(run.settings)
    run.answer(status_record(found), lambda paper: render_status(paper, found))


@auth.command("remove", examples=["nacre auth remove anthropic", "nacre auth remove openai --yes"])
@click.argument("provider", type=TEXT)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(run: Run, provider: str, yes: bool) -> None:
    """Delete the key of a provider that nacre was given.

    From the keyring, credentials.toml and the config. Logins of other tools and the environment are left alone.
    """
    from nacre.app import signing_in
    from nacre.cli.paper import Paper, bold

    if run.is_interactive and not yes:
        run.confirm(f"Delete the key of {provider}?")
    removed = signing_in.remove(run.settings, provider)
    left = signing_in.left(run.settings, provider)

    def render(paper: Paper) -> None:
        paper.line("Deleted: the key of ", bold(provider), f", from {' and '.join(removed)}.")
        for place in left:
            paper.line(f"It still signs in with what is in {place}, which is not nacre's.", indent=2)

    run.answer({"provider": provider, "removed": removed, "left": left}, render)
