"""A short, invented transcript in each tool's format."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files


def samples() -> Mapping[str, tuple[str, bytes]]:
    """Return each sample's file name and bytes, keyed by the adapter's name in the registry."""
    samples_by_tool: dict[str, tuple[str, bytes]] = {}
    for folder in sorted(files(__name__).iterdir(), key=lambda item: item.name):
        if folder.is_dir() and not folder.name.startswith("__"):
            file = next(item for item in folder.iterdir() if item.is_file())
            samples_by_tool[folder.name] = (file.name, file.read_bytes())
    return samples_by_tool
