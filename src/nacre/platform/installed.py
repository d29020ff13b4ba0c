"""What can be imported here. Apart from :mod:`nacre.platform.lazy`, which hooks load."""

from __future__ import annotations

from importlib.util import find_spec


def is_installed(name: str) -> bool:
    """Whether a module can be imported; it is not."""
    return find_spec(name) is not None
