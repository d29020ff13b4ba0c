"""``nacre graph``."""

from __future__ import annotations

import click

from nacre.cli.command import Group

_CODE = "memories.code"


@click.group(
    "graph",
    cls=Group,
    places={
        name: f"{_CODE}:{name.replace('-', '_')}"
        for name in ("about", "callers", "forget-code", "impact", "importers", "ingest-code", "stale")
    },
    examples=["nacre graph ingest-code", "nacre graph callers Order.pay", "nacre graph impact src/shop/orders.py"],
)
def graph() -> None:
    """Draw links between memories, follow them, and see what they hold together."""
