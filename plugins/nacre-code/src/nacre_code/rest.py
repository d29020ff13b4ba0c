"""The REST resource for operations on code."""

from __future__ import annotations

from nacre.serve.rest import Resource

RESOURCES = (Resource("/graph/stale", "graph-stale", rows="memories"),)
