"""Requests about the model that makes the vectors."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class ModelRequest(Request, frozen=True, kw_only=True):
    """An embedding model."""

    name: Annotated[str, Meta(description="minilm, onnx:FOLDER, or PROVIDER:MODEL, with @N for N dimensions.")]
