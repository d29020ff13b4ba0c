"""``[[name]]`` in a body links to the memory of that name and follows its renaming."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Nacre, nacre

__all__ = ["nacre"]


def links(nacre: Nacre, reference: str) -> list[tuple[str, str, str | None]]:
    """Return relation, direction and subject of each link of a memory."""
    links: list[dict[str, Any]] = nacre("show", reference, "--no-update", "--json").json["links"]
    return sorted((link["rel"], link["direction"], link["subject"]) for link in links)


@pytest.fixture
def keel(nacre: Nacre) -> str:
    return str(
        nacre(
            "store", "The keel is made of ash wood.", "--subject", "Keel of the dinghy", "--json"
        ).json["memory_id"]
    )
