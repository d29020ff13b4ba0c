"""Whether this machine runs on its battery."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

SUPPLIES = Path("/sys/class/power_supply")


def is_on_battery(supplies: Path = SUPPLIES) -> bool:
    """Whether a battery is being used up and no mains is connected; ``False`` where nothing tells, as off Linux."""
    own = [one for one in _entries(supplies) if _read(one / "scope") != "Device"]  # a mouse has a battery, too
    if any(_read(one / "type") == "Mains" and _read(one / "online") == "1" for one in own):
        return False
    return any(_read(one / "type") == "Battery" and _read(one / "status") == "Discharging" for one in own)


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
