"""``credentials.toml`` in the home: keys by provider, where no keyring works. The owner's alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

from nacre.errors import CredentialsUnusable, Unavailable
from nacre.llm.credentials.small_files import read_small
from nacre.platform import private_files
from nacre.settings import Settings

NAME = "credentials.toml"
_TABLE = "keys"
_HEAD = "# Keys that nacre was given, where no keyring works. Never in backups, exports or git: nacre auth status\n"


def path_of(settings: Settings) -> Path:
    """Where the file is, or would be."""
    return settings.home / NAME


def read(settings: Settings) -> dict[str, str]:
    """All keys by provider. Raises CredentialsUnusable."""
    file = read_small(path_of(settings))
    if file is None:
        return {}
    try:
        table = tomllib.loads(file.text).get(_TABLE, {})
    except (ValueError, RecursionError):  # whose words may quote the key
        raise CredentialsUnusable(f"{path_of(settings)} is not valid TOML", hint="mend or remove it") from None
    pairs = table.items() if isinstance(table, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str) and value}


def keep(settings: Settings, provider: str, secret: str) -> None:
    """Keep a provider's key. Raises CredentialsUnusable, Unavailable where it cannot be written."""
    _write(settings, {**read(settings), provider: secret})


def drop(settings: Settings, provider: str) -> bool:
    """Delete a provider's key; whether there was one. Raises CredentialsUnusable, Unavailable."""
    keys = read(settings)
    if provider not in keys:
        return False
    del keys[provider]
    _write(settings, keys)
    return True


def _write(settings: Settings, keys: dict[str, str]) -> None:
    import tomlkit  # noqa: PLC0415 - 15 ms that only writing needs

    path = path_of(settings)
    try:
        if not keys:
            path.unlink(missing_ok=True)
            return
        private_files.make_folder(path.parent)
        private_files.write_file(path, _HEAD + tomlkit.dumps({_TABLE: keys}))
    except OSError as error:
        hint = "give the key in the environment instead; nacre auth status tells which variable"
        raise Unavailable(f"cannot write {path}: {error.strerror}", hint=hint) from error
