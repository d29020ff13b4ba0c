"""The files in which the commands of agent tools keep their own logins. nacre looks at them, and never changes them."""

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
from nacre.platform.ids import Clock, utc_now
from nacre.settings import Settings

_MILLI = 1000


@dataclass(frozen=True, slots=True)
class Login:
    """What a tool's file holds: a secret, its kind, when it ends, and what is wrong with the file.

    ``is_renewable``: the tool makes a fresh one of it by itself.
    """

    path: Path
    kind: str = ""
    secret: str = ""
    expires: datetime | None = None
    warning: str = ""
    is_renewable: bool = False

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Login({str(self.path)!r}, {self.kind!r})"


def path_of(settings: Settings, tool: str) -> Path:
    """Where a tool keeps its login."""
    variable, folder, name = _PLACES[tool]
    return Path(settings.environ.get(variable) or settings.user_home / folder) / name


def read(settings: Settings, tool: str) -> list[Login]:
    """The logins in a tool's file, none where it has none, or is not read. Raises CredentialsUnusable."""
    if tool not in _READERS:
        return []
    path = path_of(settings, tool)
    file = read_small(path)
    if file is None:
        return []
    try:
        record = json.loads(file.text)
    except (ValueError, RecursionError):  # whose words may quote the token
        raise CredentialsUnusable(f"{path} is not valid JSON", hint=f"sign in to {tool} again") from None
    return _READERS[tool](file, record) if isinstance(record, dict) else []


def is_signed_in(settings: Settings, tool: str, *, clock: Clock = utc_now) -> bool:
    """Whether somebody seems to be signed in to a tool, other than by an API key: with a login that goes on or is
    renewed.
    """
    if any(settings.environ.get(name) for name in _TOKENS.get(tool, ())):
        return True
    if tool not in _READERS:
        return path_of(settings, tool).is_file()
    try:
        found = read(settings, tool)
    except CredentialsUnusable:
        return False
    ends = [one.expires for one in found if one.kind == BEARER and not one.is_renewable]
    renewable = any(one.kind == BEARER and one.is_renewable for one in found)
    return renewable or any(end is None or end > clock() for end in ends)


def may_be_in_keychain(settings: Settings, tool: str) -> bool:
    """Whether a login may lie where nacre does not look: in the keychain of macOS, where there is no file."""
    return settings.platform == "darwin" and tool in _IN_KEYCHAIN and not path_of(settings, tool).exists()


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
    is_renewable = _is_text(oauth.get("refreshToken"))
    return [Login(file.path, BEARER, oauth["accessToken"], expires, file.warning, is_renewable)]


def _codex(file: SmallFile, record: Mapping[str, Any]) -> list[Login]:
    found = []
    if _is_text(record.get("OPENAI_API_KEY")):
        found.append(Login(file.path, API_KEY, record["OPENAI_API_KEY"], None, file.warning))
    tokens = record.get("tokens")
    if isinstance(tokens, dict) and _is_text(tokens.get("access_token")):
        token = tokens["access_token"]
        is_renewable = _is_text(tokens.get("refresh_token"))
        found.append(Login(file.path, BEARER, token, _end_of(token), file.warning, is_renewable))
    return found


def _opencode(file: SmallFile, record: Mapping[str, Any]) -> list[Login]:
    """One login for each provider: an API key, or a sign-in, which it renews."""
    found = []
    for one in record.values():
        if isinstance(one, dict):
            is_key = one.get("type") == "api"
            secret = one.get("key" if is_key else "access")
            kind = API_KEY if is_key else BEARER
            found.append(Login(file.path, kind, str(secret or ""), None, file.warning, is_renewable=not is_key))
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
    "gemini": ("GEMINI_CLI_HOME", "", ".gemini/oauth_creds.json"),
    "opencode": ("XDG_DATA_HOME", ".local/share", "opencode/auth.json"),
}
_TOKENS = {"claude": ("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"), "codex": ("CODEX_ACCESS_TOKEN",)}
"""Variables that hold a token of a login."""
_IN_KEYCHAIN = ("claude", "codex")

_READERS: dict[str, Callable[[SmallFile, Mapping[str, Any]], list[Login]]] = {
    "claude": _claude, "codex": _codex, "opencode": _opencode,
}  # fmt: skip
