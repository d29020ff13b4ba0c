"""Which nacre this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The installed version, or ``source`` where nacre runs from a checkout that was never installed."""
    try:
        return version("nacre")
    except PackageNotFoundError:
        return "source"
