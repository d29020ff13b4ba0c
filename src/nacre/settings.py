"""The settings of a home: defaults that need no file, ``config.toml``, environment. The only reader of the environment.

Each value knows where it came from. ``NACRE_<SECTION>_<KEY>`` overrides ``section.key`` of the file.
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
from nacre.base.environment import environment as environment_environment
from nacre.base.lazy import Module
from nacre.errors import SettingsInvalid
from nacre.known_settings import SETTINGS, Setting, check, known
from nacre.values import memory as actors

if TYPE_CHECKING:
    import tomlkit

    from nacre.values.memory import Actor
else:
    tomlkit = Module("tomlkit")

T = TypeVar("T")

_FROM_FILE = frozenset({"remote.url", "remote.private"})
"""Whose variables count for nothing: whoever sets one for a command could have the memory sent elsewhere."""

_MAX_BYTES = 256_000
"""Of ``config.toml``; more is not read."""


@dataclass(frozen=True, slots=True)
class Value:
    """A setting's value and its origin: ``default``, the config file's path, or ``$VARIABLE``."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Settings:
    """All settings of one home."""

    home: Path
    config: Path
    database: Path
    values: Mapping[str, Value]
    environ: Mapping[str, str] = field(default_factory=dict)
    user_home: Path = field(default_factory=Path)
    platform: str = sys.platform
    face: str = "python"
    """Through which :class:`~nacre.values.memory.Face` whoever runs this process reaches nacre."""

    is_temporary: bool = False
    """Whether the home goes with the process: what must last may not wait in its files."""

    def __getitem__(self, key: str) -> Any:
        """The value of a setting named at run time. Raises SettingsInvalid for a key that does not exist."""
        return self.values[known(key).key].value

    def flag(self, key: str) -> bool:
        """A setting that is true or false. This and the next ones raise SettingsInvalid as ``[]`` does."""
        return self._of(bool, key)

    def whole(self, key: str) -> int:
        """A setting that is a whole number."""
        return self._of(int, key)

    def number(self, key: str) -> float:
        """A setting that is a number, whole or not."""
        return self._of(float, key)

    def text(self, key: str) -> str:
        """A setting that is a text."""
        return self._of(str, key)

    def texts(self, key: str) -> list[str]:
        """A setting that is a list of texts."""
        return self._of(list[str], key)

    @property
    def redaction(self) -> tuple[list[str], list[str], tuple[str, ...]]:
        """What the owner says of redaction: patterns, what is no secret, and what else is to go."""
        kinds = tuple(
            kind
            for kind in ("emails", "home_paths", "payment_cards")
            if self.flag(f"redaction.{kind}")
        )
        return self.texts("redaction.patterns"), self.texts("redaction.allow"), kinds

    def _of(self, kind: type[T], key: str) -> T:
        assert known(key).type == kind, f"{key} is another type"  # noqa: S101 - the caller's mistake, not the owner's
        value: T = self[key]
        return value

    def having(self, key: str, value: Any) -> Settings:
        """The same with another value of a setting. Raises SettingsInvalid."""
        return replace(self, values={**self.values, key: Value(check(key, value), "nacre")})

    def read_again(self) -> Settings:
        """The same as its file has it by now; what this process set itself stays. Raises SettingsInvalid."""
        now = load_settings(self.home, self.environ)
        read = ("default", str(self.config))
        own = {
            key: one
            for key, one in self.values.items()
            if one.origin not in read and one.origin[:1] != "$"
        }
        return replace(self, values={**now.values, **own})

    @property
    def actor(self) -> Actor:
        """Who asks: as it was said for this thread; else an agent, where its variables or its program among the parents
        of this process tell so; else the owner. What the daemon does by itself is the owner's."""
        is_own = self.face == actors.Face.DAEMON
        agent = None if is_own else agent_in(self.environ) or environment.own_agent()
        return actors.acting_now() or actors.Actor(actors.Face(self.face), agent)

    @property
    def server(self) -> str:
        """The address of the PostgreSQL server that holds the memory; empty where a file here does."""
        return server_address(self.environ) or (
            "" if self.environ.get("NACRE_DB") else self.text("storage.url")
        )

    @property
    def session(self) -> str | None:
        """The session of the agent whose shell it is, as ``<tool>:<id>``, where its host names it there."""
        return session_in(self.environ)

    @property
    def mark(self) -> str:
        """The same for whoever would answer alike: a hash of the values, and of where the database is."""
        values = sorted((key, repr(value.value)) for key, value in self.values.items())
        told = repr((values, self.server or os.path.realpath(self.database)))
        return sha256(told.encode("utf-8", "replace")).hexdigest()

    @property
    def vault(self) -> Path:
        """The folder of memories."""
        return self.home / "vault"

    @property
    def where(self) -> str:
        """Where the rows are, as people are told: the database's path, or a server without login, with the tenant."""
        if not self.server:
            return str(self.database)
        return f"{without_login(self.server)} (tenant {self.text('storage.tenant')})"

    @property
    def shown_vault(self) -> Path:
        """What people are told before the path of a document: on a server it is in no folder."""
        return Path() if self.server else self.vault

    @property
    def where_documents(self) -> str:
        """The same of the documents: the vault's path, or the server."""
        return self.where if self.server else str(self.vault)


def load_settings(
    home: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    mending: str | None = None,
) -> Settings:
    """Read settings. ``home`` goes before ``NACRE_HOME``, which goes before ``~/.nacre``. Raises SettingsInvalid.

    What the file says of the key ``mending`` is about to be replaced, and may be wrong.
    """
    environ = environment_environment() if environ is None else dict(environ)
    owner = Path(user_home(environ))
    folder = Path(home_folder(environ, str(home) if home else None))
    config = Path(environ.get("NACRE_CONFIG") or folder / "config.toml").expanduser()
    named = "" if server_address(environ) else environ.get("NACRE_DB")
    database = Path(named or folder / "nacre.db").expanduser()
    written = _read_file(config)
    written.pop(mending or "", None)
    values = {setting.key: _resolve(setting, written, config, environ) for setting in SETTINGS}
    for key in written:
        known(key)
    return Settings(folder, config, database, values, environ, owner)


def write_setting(config: Path, key: str, value: Any) -> Any:
    """Set a value in the config file, keeping its comments and order; returns what holds now. Raises SettingsInvalid.

    A table is added to: what it does not name stays as it is in the file. An empty one empties it.
    """

    converted = check(key, value)
    before = _read_file(config).get(key)  # it refuses what cannot be read
    if converted and isinstance(converted, dict) and isinstance(before, dict):
        converted = check(key, {**before, **converted})
    document = (
        tomlkit.parse(config.read_text(encoding="utf-8")) if config.exists() else tomlkit.document()
    )
    section, _, name = key.partition(".")
    if section not in document:
        document[section] = tomlkit.table()
    document[section][name] = converted
    files.make_folder(config.parent)
    files.write_file(config, tomlkit.dumps(document))
    return converted


def _is_agents(environ: Mapping[str, str]) -> bool:
    """Whether an agent runs this process, and may have set its variables."""
    return bool(agent_in(environ) or environment.own_agent())


def unwrite_setting(config: Path, key: str) -> None:
    """Remove a setting from the config file, keeping the rest as it is. Raises SettingsInvalid."""
    known(key)
    if key not in _read_file(config):
        return
    document = tomlkit.parse(config.read_text(encoding="utf-8"))
    section, _, name = key.partition(".")
    table = document[section]
    del table[name]
    files.write_file(config, tomlkit.dumps(document))


def _resolve(
    setting: Setting, written: Mapping[str, Any], config: Path, environ: Mapping[str, str]
) -> Value:
    is_agents = setting.variable in OWNERS and _is_agents(environ)
    if environ.get(setting.variable) and not is_agents and setting.key not in _FROM_FILE:
        return Value(check(setting.key, environ[setting.variable]), f"${setting.variable}")
    if setting.key in written and not (is_agents and environ.get("NACRE_CONFIG")):
        try:
            return Value(check(setting.key, written[setting.key]), str(config))
        except SettingsInvalid as error:
            raise SettingsInvalid(f"{error.message}, as {config} says", hint=error.hint) from error
    return Value(setting.default, "default")


def _read_file(config: Path) -> dict[str, Any]:
    """The file's values by dotted key."""
    try:
        with os.fdopen(files.open_file(os.path.realpath(config), os.O_RDONLY), "rb") as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsInvalid(
            f"cannot read {config}: {reason}", hint="check its permissions"
        ) from error
    if len(data) > _MAX_BYTES:
        raise SettingsInvalid(
            f"{config} is larger than {_MAX_BYTES // 1000:,} KB", hint="is it the right file?"
        )
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise SettingsInvalid(
            f"{config} is nested too deeply", hint="mend or remove that line"
        ) from error
    except (
        ValueError
    ) as error:  # not only TOMLDecodeError: a number may be longer than Python reads
        raise SettingsInvalid(
            f"{config} is not valid TOML: {error}", hint="mend or remove that line"
        ) from error
    found: dict[str, Any] = {}
    for section, values in document.items():
        if not isinstance(values, dict):
            known(section)
        for name, value in values.items():
            found[f"{section}.{name}"] = value
    return found
