"""The settings of a home, from defaults, ``config.toml`` and environment variables.

``NACRE_<SECTION>_<KEY>`` overrides ``section.key`` in the file.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nacre.base import environment, files
from nacre.base.environment import (
    OWNERS,
    agent_in,
    home_folder,
    server_address,
    session_in,
    user_home,
    without_login,
)
from nacre.base.environment import environment as process_environment
from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.errors import InvalidSettingsError
from nacre.known_settings import KEYS, Setting, check, setting_of
from nacre.values import memory as actors

if TYPE_CHECKING:
    import tomlkit

    from nacre.values.memory import Actor
else:
    tomlkit = Module("tomlkit")

T = TypeVar("T")

_FROM_FILE = frozenset({"remote.url", "remote.private"})
"""Settings that environment variables cannot override, so that they cannot redirect the memory."""

_MAX_BYTES = 256_000
"""Maximum size of ``config.toml`` in bytes."""


@frozen
class Value:
    """A setting's value and its origin: ``default``, the config file's path, or ``$VARIABLE``."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Settings:
    """All settings of a home."""

    home: Path
    config: Path
    database: Path
    values: Mapping[str, Value]
    environ: Mapping[str, str] = field(default_factory=dict)
    user_home: Path = field(default_factory=Path)
    platform: str = sys.platform
    face: str = "python"
    """Name of this process's interface (:class:`~nacre.values.memory.Face`)."""

    is_temporary: bool = False
    """True if the home is deleted when the process ends, so that no later work may be queued."""

    unknown: tuple[str, ...] = ()
    """Settings in the file that nacre does not know, and ignores."""

    def __getitem__(self, key: str) -> Any:
        return self.values[setting_of(key).key].value

    def flag(self, key: str) -> bool:
        """Return a boolean setting. Raises InvalidSettingsError for an unknown key."""
        return self._of(bool, key)

    def whole(self, key: str) -> int:
        """Return an integer setting."""
        return self._of(int, key)

    def number(self, key: str) -> float:
        """Return a numeric setting."""
        return self._of(float, key)

    def text(self, key: str) -> str:
        """Return a string setting."""
        return self._of(str, key)

    def texts(self, key: str) -> list[str]:
        """Return a setting that is a list of strings."""
        return self._of(list[str], key)

    @property
    def embeds(self) -> bool:
        """Whether an embedding model computes vectors for texts."""
        return self.text("embedding.model") != "none"

    @property
    def redaction(self) -> tuple[list[str], list[str], tuple[str, ...]]:
        """The configured redaction rules: patterns, exceptions, and additional kinds of secrets."""
        kinds = tuple(
            kind
            for kind in ("emails", "home_paths", "payment_cards")
            if self.flag(f"redaction.{kind}")
        )
        return self.texts("redaction.patterns"), self.texts("redaction.allow"), kinds

    def _of(self, kind: type[T], key: str) -> T:
        assert setting_of(key).type == kind, f"{key} has another type"  # noqa: S101 - a mistake in nacre's code
        value: T = self[key]
        return value

    def having(self, key: str, value: Any) -> Settings:
        """Return a copy with one setting changed. Raises InvalidSettingsError."""
        return replace(self, values={**self.values, key: Value(check(key, value), "nacre")})

    def read_again(self) -> Settings:
        """Return a copy with the file's current values, except for values set by this process.

        Raises InvalidSettingsError.
        """
        now = load_settings(self.home, self.environ, config=self.config)
        own = {
            key: value
            for key, value in self.values.items()
            if value.origin not in ("default", str(self.config)) and value.origin[:1] != "$"
        }
        return replace(self, values={**now.values, **own})

    @property
    def actor(self) -> Actor:
        """The caller: the actor set for this thread, a detected agent, or else the owner.

        The daemon acts for the owner.
        """
        is_own = self.face == actors.Face.DAEMON
        agent = None if is_own else agent_in(self.environ) or environment.own_agent()
        return actors.acting_now() or actors.Actor(actors.Face(self.face), agent)

    @property
    def server(self) -> str:
        """The address of the PostgreSQL server that stores the memory, or empty for a local file."""
        return server_address(self.environ) or (
            "" if self.environ.get("NACRE_DB") else self.text("storage.url")
        )

    @property
    def session(self) -> str | None:
        """The agent session (``<tool>:<id>``) in which this process runs, if the host sets it."""
        return session_in(self.environ)

    @property
    def mark(self) -> str:
        """A hash that changes with the settings and the database's location."""
        values = sorted((key, repr(value.value)) for key, value in self.values.items())
        text = repr((values, self.server or os.path.realpath(self.database)))
        return sha256(text.encode("utf-8", "replace")).hexdigest()

    @property
    def vault(self) -> Path:
        """The folder that contains the memory files."""
        return self.home / "vault"

    @property
    def where(self) -> str:
        """The database's location for display: its path, or the server (without login) and tenant."""
        if not self.server:
            return str(self.database)
        return f"{without_login(self.server)} (tenant {self.text('storage.tenant')})"

    @property
    def shown_vault(self) -> Path:
        """The prefix of document paths in messages, which is empty on a server."""
        return Path() if self.server else self.vault

    @property
    def where_documents(self) -> str:
        """The location of the documents for display: the vault's path or the server's address."""
        return self.where if self.server else str(self.vault)


def load_settings(
    home: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    mending: str | None = None,
    config: Path | None = None,
) -> Settings:
    """Read the settings of a home.

    ``home``: ``NACRE_HOME`` or ``~/.nacre`` by default. ``mending``: a setting whose value in the
    file is ignored, because the caller will replace it. ``config``: the file, by default
    ``NACRE_CONFIG`` or ``config.toml`` in the home. Raises InvalidSettingsError.
    """
    environ = process_environment() if environ is None else dict(environ)
    owner = Path(user_home(environ))
    folder = Path(home_folder(environ, str(home) if home else None))
    config = Path(config or environ.get("NACRE_CONFIG") or folder / "config.toml").expanduser()
    database_path = "" if server_address(environ) else environ.get("NACRE_DB")
    database = Path(database_path or folder / "nacre.db").expanduser()
    written = _read_file(config)
    written.pop(mending or "", None)
    values = {setting.key: _resolve(setting, written, config, environ) for setting in KEYS}
    unknown = tuple(written.keys() - values.keys())
    return Settings(folder, config, database, values, environ, owner, unknown=unknown)


def write_setting(config: Path, key: str, value: Any) -> Any:
    """Set a value in the config file, keeping comments and order, and return the new value.

    A table is merged into the current one, but an empty table clears it. Raises
    InvalidSettingsError.
    """

    converted = check(key, value)
    before = _read_file(config).get(key)  # raises if the file is unreadable
    if converted and isinstance(converted, dict) and isinstance(before, dict):
        converted = check(key, {**before, **converted})
    document = (
        tomlkit.parse(config.read_text(encoding="utf-8")) if config.exists() else tomlkit.document()
    )
    section, _, name = key.partition(".")
    document.setdefault(section, tomlkit.table())[name] = converted
    files.make_folder(config.parent)
    files.write_file(config, tomlkit.dumps(document))
    return converted


def unwrite_setting(config: Path, key: str) -> None:
    """Remove a setting from the config file, even an unknown one. Raises InvalidSettingsError."""
    if key not in _read_file(config):
        setting_of(key)
        return
    document = tomlkit.parse(config.read_text(encoding="utf-8"))
    section, _, name = key.partition(".")
    table = document.get(section, {}) if name else document
    table.pop(name or section, None)
    files.write_file(config, tomlkit.dumps(document))


def _resolve(
    setting: Setting, written: Mapping[str, Any], config: Path, environ: Mapping[str, str]
) -> Value:
    # An agent that runs this process might have set the environment variables.
    is_agents = setting.variable in OWNERS and (agent_in(environ) or environment.own_agent())
    if environ.get(setting.variable) and not is_agents and setting.key not in _FROM_FILE:
        return Value(check(setting.key, environ[setting.variable]), f"${setting.variable}")
    if setting.key in written and not (is_agents and environ.get("NACRE_CONFIG")):
        try:
            return Value(check(setting.key, written[setting.key]), str(config))
        except InvalidSettingsError as error:
            raise InvalidSettingsError(f"{error.message} (in {config})", hint=error.hint) from error
    return Value(setting.default, "default")


def _read_file(config: Path) -> dict[str, Any]:
    try:
        with files.open_to_read(os.path.realpath(config)) as file:
            data = file.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise InvalidSettingsError(
            f"cannot read {config}: {error.strerror}", hint="check its permissions"
        ) from error
    if len(data) > _MAX_BYTES:
        raise InvalidSettingsError(
            f"{config} is larger than {_MAX_BYTES // 1000:,} KB",
            hint="check that it is the right file",
        )
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        raise InvalidSettingsError(
            f"{config} is not valid TOML: {error}", hint="correct or remove that line"
        ) from error
    flat: dict[str, Any] = {}
    for section, values in document.items():
        if isinstance(values, dict):
            flat |= {f"{section}.{name}": value for name, value in values.items()}
        else:
            flat[section] = values
    return flat
