"""One short transcript of each tool, as the tool writes it; all that is said in them is invented."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files


def samples() -> Mapping[str, tuple[str, bytes]]:
    """By the adapter's name in the registry: the name of the file, and what it holds."""
    found: dict[str, tuple[str, bytes]] = {}
    for folder in sorted(files(__name__).iterdir(), key=lambda item: item.name):
        if folder.is_dir() and not folder.name.startswith("__"):
            file = next(item for item in folder.iterdir() if item.is_file())
            found[folder.name] = (file.name, file.read_bytes())
    return found
