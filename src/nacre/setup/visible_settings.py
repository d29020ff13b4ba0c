"""Settings as they may be shown: without what is a credential, or looks like one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nacre.llm.credentials.keys import mask
from nacre.redact.redactor import Redactor
from nacre.settings import Settings

_NAMES = re.compile(r"(?i)(?:^|[_-])(?:api[_-]?key|secret|token|password|credentials?|authorization)$")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]+\]")


def hidden(settings: Settings, value: Any) -> Any:
    """A setting's value with every credential in it as ``sk-…abcd``."""
    redactor = Redactor(settings["redaction.patterns"], settings["redaction.allow"])
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
