"""What a setup did, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Part, Span, bold, dim
from nacre.cli.render.words import seconds

if TYPE_CHECKING:
    from nacre.setup.models import Done, Tried

_OUTCOMES = {
    "answered": Span("answered", "green"),
    "unusable": Span("answered, but not in the shape that was asked for", "yellow"),
    "unreachable": Span("not tested: no answer of use now", "yellow"),
    "refused": Span("refused", "red"),
    "skipped": Span("not tested", "dim"),
}


def render_setup(paper: Paper, done: Done, tried: Tried) -> None:
    """What holds now, where it was written, and how to go on."""
    settings = done.settings
    has_model = settings["models.default"] != "none"
    paper.facts(
        (
            ("model", bold(settings["models.default"]) if has_model else "none: nacre works without one"),
            ("test", _test(tried) if has_model else ""),
            ("key", f"{done.masked}, kept in {_place(done.kept)}" if done.kept else ""),
            ("vectors", settings["embedding.model"]),
            ("background", _background(done) if has_model else ""),
            ("written", f"{', '.join(done.changed)} in {settings.config}" if done.changed else "nothing: it was so"),
        )
    )
    paper.blank()
    for command, why in _next(done):
        paper.line(bold(command), dim(f"  {why}"))


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
    if not done.settings["models.background"]:
        return "off: the model works only when you ask for it"
    budget = done.settings["models.daily_budget_usd"]
    if not budget:
        return "on, but the budget is US$ 0 a day: nothing is asked"
    return f"on: it works while sessions are read, for at most US$ {budget:,.2f} a day"


def _next(done: Done) -> list[tuple[str, str]]:
    if done.settings["models.default"] == "none":
        return [("nacre ingest", "reads what is new, by rules alone"), ("nacre auth status", "what keys are left")]
    if done.settings["models.background"]:
        return [("nacre ingest", "reads what is new, with the model")]
    return [
        ("nacre setup --background --daily-budget 1", "lets the model work while sessions are read"),
        ("nacre auth status", "what nacre signs in with"),
    ]
