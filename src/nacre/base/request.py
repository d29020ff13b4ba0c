"""Base classes for requests."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of requests.

    Requests that hooks load are dataclasses with :func:`nacre.base.bounds.bounds` instead.
    """


class Nothing(Request, frozen=True, kw_only=True):
    """A request without fields."""
