"""Base classes for requests."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of requests, except of those that hooks load.

    They are dataclasses with :func:`nacre.base.bounds.bounds`.
    """


class Nothing(Request, frozen=True, kw_only=True):
    """A request without fields."""
