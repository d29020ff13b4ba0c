"""Requests about the model that makes the vectors."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class ModelRequest(Request, frozen=True, kw_only=True):
    """An embedding model."""

    name: Annotated[str, Meta(description="minilm, onnx:FOLDER, or PROVIDER:MODEL, with @N for N dimensions.")]


class SwitchRequest(ModelRequest, frozen=True, kw_only=True):
    """Have another model make the vectors. It is a yes to where the texts go."""

    forget_old: Annotated[bool, Meta(description="Drop the vectors of before after the switch.")] = False
