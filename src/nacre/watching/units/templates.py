"""Fill the texts: what each system's format needs quoted is quoted here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from xml.sax.saxutils import escape

LABEL = "nacre.watch"


def systemd_unit(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """A user unit of systemd."""
    lines = "\n".join(f"Environment={_systemd_quoted(f'{name}={value}')}" for name, value in environ.items())
    program = " ".join(_systemd_quoted(word).replace("$", "$$") for word in words)
    return _filled("nacre-watch.service", {"PROGRAM": program, "ENVIRONMENT": lines})


def launchd_plist(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """A property list of launchd."""
    program = "\n".join(f"    <string>{escape(word)}</string>" for word in words)
    pairs = "\n".join(
        f"    <key>{escape(name)}</key>\n    <string>{escape(value)}</string>" for name, value in environ.items()
    )
    return _filled("nacre-watch.plist", {"LABEL": LABEL, "PROGRAM": program, "ENVIRONMENT": pairs})


def windows_task(words: Sequence[str]) -> str:
    """A task of Windows, which takes the environment of the user who logs on."""
    arguments = subprocess.list2cmdline(list(words[1:]))
    return _filled("nacre-watch.xml", {"COMMAND": escape(words[0]), "ARGUMENTS": escape(arguments)})


def _systemd_quoted(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("%", "%%") + '"'


def _filled(name: str, places: Mapping[str, str]) -> str:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda match: places[match.group(1)], text)
