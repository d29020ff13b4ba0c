"""``nacre auth``: what nacre can sign in with."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nacre import settings
from nacre.cli.command import Group
from nacre.cli.formats import Record, stamp, when
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, Part, Span, bold, dim
from nacre.cli.request_options import argument
from nacre.cli.run import Run
from nacre.errors import InvalidInput
from nacre.llm.credentials import keys
from nacre.setup import credentials

if TYPE_CHECKING:
    from nacre.setup.credentials import SigningIn, Way


MOST_KEY_CHARACTERS = 20_000
_MARKS = {
    "found": Span("found", "green"), "expired": Span("expired", "yellow"), "unreadable": Span("unreadable", "red"),
    "missing": Span("missing", "dim"),
}  # fmt: skip


@click.group("auth", cls=Group, examples=["nacre auth status", "nacre auth set openai", "nacre auth remove anthropic"])
def auth() -> None:
    """Tell what nacre can sign in to models with; set and remove keys."""


@auth.command("status", examples=["nacre auth status", "nacre auth status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Show every way to sign in to a model, whether its credential is there, and where from.

    Keys are shown by their last four characters. Nothing is changed, and nothing is asked of the network.
    """
    found: SigningIn = perform(run, "auth")
    run.answer(_status_record(found), lambda paper: _render_status(paper, found))


@auth.command("set", examples=["nacre auth set openai", "pass show openai | nacre auth set openai"])
@argument("auth-set", "provider")
@click.pass_obj
def set_key(run: Run, provider: str) -> None:
    """Keep another key of a provider: typed without being shown, or from standard input.

    It goes into the system's keyring, where none works into credentials.toml. nacre setup chooses models.
    """
    if run.is_interactive:
        secret = str(click.prompt(f"Key of {provider} (not shown)", hide_input=True, err=True)).strip()
    else:
        secret = sys.stdin.read(MOST_KEY_CHARACTERS).strip()
    kept: str = perform(run, "auth-set", provider=provider, secret=checked_key(secret, "standard input"))
    taken = keys.credential_for(settings.load_settings(run.settings.home, run.settings.environ), provider)
    if taken and taken.secret != secret:
        run.warnings.append(f"{taken.origin} holds another key, and goes before the one that was kept")
    record = {"provider": provider, "kept": kept, "masked": keys.mask(secret)}
    run.answer(record, lambda paper: paper.line(f"Kept: the key {keys.mask(secret)} of {provider}, in {kept}."))


@auth.command("remove", examples=["nacre auth remove anthropic", "nacre auth remove openai --yes"])
@argument("auth-remove", "provider")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(run: Run, provider: str, yes: bool) -> None:
    """Delete the key of a provider that nacre was given.

    From the keyring, credentials.toml and the config. Logins of other tools and the environment are left alone.
    """
    if run.is_interactive and not yes:
        run.confirm(f"Delete the key of {provider}?")
    removed: list[str] = perform(run, "auth-remove", provider=provider)
    left = credentials.left(run.settings, provider)

    def render(paper: Paper) -> None:
        paper.line("Deleted: the key of ", bold(provider), f", from {' and '.join(removed)}.")
        for place in left:
            paper.line(f"It still signs in with what is in {place}, which is not nacre's.", indent=2)

    run.answer({"provider": provider, "removed": removed, "left": left}, render)


def checked_key(secret: str, where: str) -> str:
    """A key that can be one. Raises InvalidInput."""
    if not secret:
        raise InvalidInput(f"there is no key in {where}", hint="nacre setup --help")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InvalidInput(f"what is in {where} is no key: it holds spaces, line ends or odd characters")
    return secret


def _status_record(found: SigningIn) -> Record:
    """Every way, the commands of agent tools, and where keys are kept."""
    return {
        "model": found.model,
        "ways": [_way_record(way) for way in found.ways],
        "programs": [
            {"provider": one.provider, "name": one.name, "path": one.path or None} for one in found.programs
        ],
        "keyring": found.keyring or None,
        "why_no_keyring": found.why_no_keyring or None,
        "key_file": found.key_file,
    }  # fmt: skip


def _way_record(way: Way) -> Record:
    """One way to sign in."""
    best = way.best
    credential = best.credential if best else None
    return {
        "method": way.method or None, "provider": way.provider, "label": way.label, "state": way.state,
        "used": way.is_used,
        "kind": credential.kind if credential else None,
        "masked": credential.masked if credential else None,
        "origin": best.origin if best else None,
        "expires": stamp(best.expires) if best else None,
        "problem": (best.problem or None) if best else None,
        "warning": (best.warning or None) if best else None,
        "hint": (best.hint or None) if best else None,
        "looked": [place.origin for place in way.places],
    }  # fmt: skip


def _render_status(paper: Paper, found: SigningIn) -> None:
    """The model that is set, where keys are kept, every method, and the providers of which a key is there."""
    paper.facts(
        (
            ("model", "none: nacre works without one" if found.model == "none" else found.model),
            ("keys are kept", kept_in(found)),
            ("commands", programs(found)),
        )
    )
    paper.heading("Ways to sign in")
    shown = [way for way in found.ways if way.method or way.state != "missing" or way.is_used]
    width = max(len(way.method or way.provider) for way in shown)
    for way in shown:
        _render_way(paper, way, width)
    missing = [way.provider for way in found.ways if way not in shown]
    if missing:
        paper.blank()
        paper.line(dim(f"By a key, none found: {', '.join(missing)}"), hang=2)
    if found.model == "none" or not any(way.is_used for way in found.ways):
        paper.line(dim("nacre setup chooses a model and signs in"))


def kept_in(found: SigningIn) -> str:
    """Where keys that nacre is given go."""
    if found.keyring:
        return f"in the keyring ({found.keyring})"
    return f"in {found.key_file}, yours alone: {found.why_no_keyring}"


def programs(found: SigningIn) -> str:
    """The agent tools' commands that are installed."""
    return ", ".join(f"{one.name} ({one.path})" for one in found.programs if one.path) or "neither claude nor codex"


def _render_way(paper: Paper, way: Way, width: int) -> None:
    mark = _MARKS[way.state]
    padded = Span(f"{mark.text:<10}".replace(" ", "\u00a0"), mark.style)
    name = f"{way.method or way.provider:<{width}}".replace(" ", "\u00a0")
    best = way.best
    parts: list[Part] = [padded, "  ", bold(name), "  ", way.label]
    if way.is_used:
        parts.append(Span(" (in use)", "green"))
    paper.line(*parts, hang=width + 14)
    indent = width + 14
    if best is None:
        looked = [place.origin for place in way.places if place.origin[0] in "$/~"]
        paper.line(dim(f"not in {', '.join(looked)}"), indent=indent, hang=2)
        hints = dict.fromkeys(place.hint for place in way.places if place.hint)
    else:
        if best.credential:
            paper.line(f"{best.credential.masked} from {best.origin}{_ends(way)}", indent=indent, hang=2)
        for problem in filter(None, (best.problem, best.warning)):
            paper.line(Span(problem, "yellow"), indent=indent, hang=2)
        hints = dict.fromkeys([best.hint] if best.hint else [])
    for hint in hints:
        paper.line(dim(hint), indent=indent, hang=2)


def _ends(way: Way) -> str:
    best = way.best
    return f", until {when(best.expires)}" if best and best.expires and best.is_usable else ""
