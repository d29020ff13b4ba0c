"""What every request of an operation is: keywords alone, frozen, and nothing that it does not name."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of requests. Those that a hook loads are dataclasses with :func:`nacre.base.bounds.bounds`."""


class Nothing(Request, frozen=True, kw_only=True):
    """There is nothing to choose."""
