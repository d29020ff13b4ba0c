"""What a setup did, as JSON. No secret is in it."""

from __future__ import annotations

from nacre.cli.records.values import Record
from nacre.setup.models import Done, Tried
from nacre.setup.visible_settings import hidden


def setup_record(done: Done, tried: Tried) -> Record:
    """What holds now, what was changed where, and how the test went."""
    settings = done.settings
    return {
        "model": settings["models.default"],
        "auth": settings["models.auth"] or None,
        "embedding": settings["embedding.model"],
        "background": settings["models.background"],
        "daily_budget_usd": settings["models.daily_budget_usd"],
        "changed": [{"key": key, "value": hidden(settings, value)} for key, value in done.changed.items()],
        "config": str(settings.config),
        "credential": {"kept": done.kept, "masked": done.masked} if done.kept else None,
        "test": {
            "outcome": tried.outcome, "seconds": round(tried.seconds, 3), "message": tried.message or None,
            "hint": tried.hint or None,
        },
    }  # fmt: skip
