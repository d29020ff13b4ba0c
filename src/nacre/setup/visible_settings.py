"""Settings as they may be shown: without what is a credential, or looks like one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from nacre.context.hold_out import note_share
from nacre.errors import SettingsInvalid
from nacre.extraction import beginning
from nacre.known_settings import CHOICES, SETTINGS, check, known
from nacre.llm.credentials.keys import mask
from nacre.platform.ids import to_ms, utc_now
from nacre.projects import moving
from nacre.redact.redactor import Redactor
from nacre.settings import Settings, load_settings, unwrite_setting, write_setting
from nacre.setup.requests import SetRequest, SettingRequest
from nacre.transcripts import registry

if TYPE_CHECKING:
    from nacre.home.home import Home

_NAMES = re.compile(r"(?i)(?:^|[_-])(?:api[_-]?key|secret|token|password|credentials?|authorization)$")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_FORMS = {str: "text", int: "whole", float: "number", bool: "switch"}
_OF_TOOLS = ("ingest.exclude_tools", "writer.exclude_tools")
_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]+\]")


def hidden(settings: Settings, value: Any) -> Any:
    """A setting's value with every credential in it as ``sk-…abcd``."""
    redactor = Redactor(*settings.redaction)
    return _hidden(redactor, "", value)


def _hidden(redactor: Redactor, name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _hidden(redactor, str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(redactor, name, item) for item in value]
    if not isinstance(value, str) or not value:
        return value
    if _NAMES.search(name) or (name == "key" and not _VARIABLE.fullmatch(value)):
        return mask(value)
    clean = redactor.clean(value)
    return mask(value) if _MARKER.fullmatch(clean) else clean


@dataclass(frozen=True, slots=True)
class SettingView:
    """A setting's value, as ``sk-…abcd`` where it is a key, where the value comes from, and what can be set.

    ``origin``: ``default``, the config file, or the variable of the environment that goes before it. ``form``:
    ``text``, ``number``, ``whole`` (a whole number), ``switch``, ``list`` or ``table``; ``choices`` are all values of a
    text that has no others.
    """

    key: str
    value: Any
    origin: str
    variable: str
    default: Any
    summary: str
    form: str
    choices: tuple[str, ...] = ()


def list_settings(settings: Settings) -> list[SettingView]:
    """Every setting, its value, and where the value comes from."""
    return [_view(settings, setting.key) for setting in SETTINGS]


def get_setting(settings: Settings, request: SettingRequest) -> SettingView:
    """One setting. Raises SettingsInvalid."""
    return _view(settings, request.key)


def set_setting(settings: Settings, request: SetRequest) -> SettingView:
    """Write one setting to the config file. Raises SettingsInvalid, StoreUnusable."""
    write(settings, request.key, request.value)
    return _view(load_settings(settings.home, settings.environ), request.key)


def unset_setting(settings: Settings, request: SettingRequest) -> SettingView:
    """Remove one setting from the config file, so that its default holds. Raises SettingsInvalid, StoreUnusable."""
    before = _before(settings, request.key)
    unwrite_setting(settings.config, request.key)
    return _view(_written(before), request.key)


def write(settings: Settings, key: str, value: Any) -> Any:
    """Write a setting, and note what follows from it; returns what holds now. Raises SettingsInvalid, StoreUnusable."""
    if key in _OF_TOOLS:
        _refuse_unknown(check(key, value))
    before = _before(settings, key)
    written = write_setting(settings.config, key, value)
    _written(before)
    return written


def _before(settings: Settings, key: str) -> Settings:
    """The settings as the file has them; without a key of which it says what cannot be."""
    try:
        return load_settings(settings.home, settings.environ)
    except SettingsInvalid:
        return load_settings(settings.home, settings.environ, mending=key)


def unmatched(home: Home, patterns: Sequence[str]) -> list[str]:
    """Those of some patterns that no project of a home matches."""
    names = moving.known_slugs(home)
    return [one for one in patterns if not any(fnmatch(name, one) for name in names)]


def _refuse_unknown(names: Sequence[str]) -> None:
    """Raises SettingsInvalid for a tool that nobody knows: what it was to keep away would be shown."""
    tools = list(registry.tools())
    for name in names:
        if name not in tools:
            raise SettingsInvalid(f"no tool is called {name!r}", hint=f"known tools: {', '.join(tools)}")


def _written(before: Settings) -> Settings:
    """The settings as the file has them now, with what follows from them noted."""
    now = load_settings(before.home, before.environ)
    note_share(now, to_ms(utc_now()) or 0)
    for key, value in beginning.begins(before, now, utc_now()).items():
        write_setting(now.config, key, value)
    return now


def _view(settings: Settings, key: str) -> SettingView:
    setting = known(key)
    form = _FORMS.get(setting.type) or ("list" if setting.type == list[str] else "table")
    return SettingView(
        key, hidden(settings, settings[key]), settings.values[key].origin, setting.variable, setting.default,
        setting.summary, form, CHOICES.get(key, ()),
    )  # fmt: skip
