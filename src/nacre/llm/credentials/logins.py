"""The files in which the commands of agent tools keep their own logins. nacre reads them, and never changes them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nacre.errors import CredentialsUnusable
from nacre.llm.credentials.methods import API_KEY, BEARER
from nacre.llm.credentials.small_files import SmallFile, read_small
from nacre.settings import Settings

_MILLI = 1000


@dataclass(frozen=True, slots=True)
class Login:
    """What a tool's file holds: a secret, its kind, when it ends, and what is wrong with the file."""

    path: Path
    kind: str = ""
    secret: str = ""
    expires: datetime | None = None
    warning: str = ""

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Login({str(self.path)!r}, {self.kind!r})"


def path_of(settings: Settings, tool: str) -> Path:
    """Where a tool keeps its login."""
    variable, folder, name = _PLACES[tool]
    return Path(settings.environ.get(variable) or settings.user_home / folder) / name


def read(settings: Settings, tool: str) -> list[Login]:
    """The logins in a tool's file, none where it has none. Raises CredentialsUnusable."""
    path = path_of(settings, tool)
    file = read_small(path)
    if file is None:
        return []
    try:
        record = json.loads(file.text)
    except (ValueError, RecursionError):  # whose words may quote the token
        raise CredentialsUnusable(f"{path} is not valid JSON", hint=f"sign in to {tool} again") from None
    return _READERS[tool](file, record) if isinstance(record, dict) else []


def elsewhere(settings: Settings, tool: str) -> str:
    """Where else the tool may keep its login, in which nacre does not look; empty where nowhere."""
    if tool == "claude":
        return "macOS keeps it in the keychain, where nacre does not look" if settings.platform == "darwin" else ""
    return "codex may keep it in the system's keyring, where nacre does not look"


def _claude(file: SmallFile, record: Mapping[str, Any]) -> list[Login]:
    oauth = record.get("claudeAiOauth")
    if not isinstance(oauth, dict) or not _is_text(oauth.get("accessToken")):
        return []
    ends = oauth.get("expiresAt")
    expires = _moment(ends / _MILLI) if isinstance(ends, int | float) else None
    return [Login(file.path, BEARER, oauth["accessToken"], expires, file.warning)]


def _codex(file: SmallFile, record: Mapping[str, Any]) -> list[Login]:
    found = []
    if _is_text(record.get("OPENAI_API_KEY")):
        found.append(Login(file.path, API_KEY, record["OPENAI_API_KEY"], None, file.warning))
    tokens = record.get("tokens")
    if isinstance(tokens, dict) and _is_text(tokens.get("access_token")):
        token = tokens["access_token"]
        found.append(Login(file.path, BEARER, token, _end_of(token), file.warning))
    return found


def _end_of(token: str) -> datetime | None:
    """When a JSON web token ends, as it says itself (RFC 7519, ``exp``)."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return _moment(float(claims["exp"]))
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


_PLACES = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
    "codex": ("CODEX_HOME", ".codex", "auth.json"),
}
_READERS: dict[str, Callable[[SmallFile, Mapping[str, Any]], list[Login]]] = {"claude": _claude, "codex": _codex}
