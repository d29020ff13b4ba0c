"""The base class for requests."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request, by itself without fields. It is the base of all requests except those that hooks load.

    They are dataclasses with :func:`nacre.base.bounds.bounds`.
    """
