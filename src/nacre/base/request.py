"""The base class for requests."""

from __future__ import annotations

from typing import Any, dataclass_transform

import msgspec


class RequestType(msgspec.StructMeta):
    """The metaclass of requests, which are frozen, have keyword-only fields, and reject unknown fields."""

    def __new__(mcs, *parts: Any, **options: Any) -> Any:
        defaults = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}
        return super().__new__(mcs, *parts, **defaults | options)


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Request(msgspec.Struct, metaclass=RequestType, frozen=True):
    """The base class of requests, without fields.

    Requests that hooks load are dataclasses with :func:`nacre.base.bounds.bounds` instead.
    """
