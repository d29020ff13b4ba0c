"""Where nothing is written that the owner names, such as an export."""

from __future__ import annotations

from nacre.platform.named_files import Territory
from nacre.settings import Settings


def territory(settings: Settings) -> Territory:
    """All that nacre keeps itself: the home, and what lies elsewhere by configuration."""
    database = [settings.database.with_name(f"{settings.database.name}{suffix}") for suffix in ("", "-wal", "-shm")]
    return Territory((settings.home, settings.vault), (settings.config, *database))
