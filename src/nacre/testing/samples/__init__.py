"""One short, invented transcript in the format of each tool."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files


def samples() -> Mapping[str, tuple[str, bytes]]:
    """Return the file name and the bytes of each sample by the adapter's name in the registry."""
    found: dict[str, tuple[str, bytes]] = {}
    for folder in sorted(files(__name__).iterdir(), key=lambda item: item.name):
        if folder.is_dir() and not folder.name.startswith("__"):
            file = next(item for item in folder.iterdir() if item.is_file())
            found[folder.name] = (file.name, file.read_bytes())
    return found
