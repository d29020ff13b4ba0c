"""What nacre can sign in with, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Part, Span, bold, dim
from nacre.cli.render.words import when

if TYPE_CHECKING:
    from nacre.setup.credentials import SigningIn, Way

_MARKS = {
    "found": Span("found", "green"), "expired": Span("expired", "yellow"), "unreadable": Span("unreadable", "red"),
    "missing": Span("missing", "dim"),
}  # fmt: skip


def render_status(paper: Paper, found: SigningIn) -> None:
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
