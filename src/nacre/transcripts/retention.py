"""When agent tools delete transcripts by themselves, as their settings on this machine say, or their code."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nacre.transcripts.adapter import Places

CLAUDE_CODE_DAYS = 30
"""What Claude Code keeps when its settings are silent."""
COPILOT_CHAT_SESSIONS = 400
"""What VS Code keeps of the chats of one workspace, whatever its settings say; older versions kept 25."""

_MOST_BYTES = 1_000_000
_LENGTH = re.compile(r"(\d+)\s*([hdwm])")
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0}


@dataclass(frozen=True, slots=True)
class Retention:
    """A tool deletes transcripts that did not change for so many ``days``, or what goes beyond the newest ``files`` of
    a folder; ``setting`` is what says so, and where."""

    tool: str
    label: str
    days: float | None
    setting: str
    files: int | None = None


def retentions(places: Places) -> list[Retention]:
    """The tools that delete. Settings that cannot be read count as silent."""
    found = [_claude_code(places), _gemini_cli(places), _COPILOT_CHAT]
    return [one for one in found if one]


_COPILOT_CHAT = Retention(
    "copilot-chat", "VS Code Copilot Chat", None, "no setting: what VS Code keeps of a workspace", COPILOT_CHAT_SESSIONS
)


def _claude_code(places: Places) -> Retention:
    file = Path(places.environ.get("CLAUDE_CONFIG_DIR") or places.home / ".claude") / "settings.json"
    days = _settings(file).get("cleanupPeriodDays")
    days = days if isinstance(days, int | float) and not isinstance(days, bool) and days >= 0 else CLAUDE_CODE_DAYS
    return Retention("claude-code", "Claude Code", float(days), f"cleanupPeriodDays in {file}")


def _gemini_cli(places: Places) -> Retention | None:
    """It deletes where that is turned on."""
    file = places.home / ".gemini" / "settings.json"
    general = _settings(file).get("general")
    kept = general.get("sessionRetention") if isinstance(general, dict) else None
    if not isinstance(kept, dict) or kept.get("enabled") is not True:
        return None
    length = _LENGTH.fullmatch(str(kept.get("maxAge", "")).strip())
    if not length:
        return None
    days = int(length.group(1)) * _DAYS[length.group(2)]
    return Retention("gemini-cli", "Gemini CLI", days, f"general.sessionRetention.maxAge in {file}")


def _settings(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as opened:
            values = json.loads(opened.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
