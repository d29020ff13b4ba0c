"""Links with ``memory_graph``, and their analysis with ``memory_analyze``."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest

from nacre.api import open_memory
from nacre.values.memory import Link, Validity
from nacre.values.session import Speaker
from tests.mcp.conftest import Server
from tests.mcp.test_tools import load_memory, store_memory

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def own(server: Server) -> list[str]:
    """Three memories stored by an agent."""
    words = (
        "The ferry leaves at noon.",
        "The pier is forty metres long.",
        "Tickets are sold on board.",
    )
    return [store_memory(word, project="harbour", speaker=Speaker.AGENT) for word in words]


async def test_agent_creates_lists_ends_and_removes_its_own_links(
    server: Server, own: list[str]
) -> None:
    arguments = {"id": own[0][-8:], "relation": "depends_on", "to": own[1][-8:]}
    drawn = await server.ask(
        "memory_graph",
        action="link",
        **arguments,
        strength=0.7,
        valid_from="2026-01-01",
        reason="berth",
    )
    assert "Links: 1 new." in drawn.text
    link = Link("depends_on", own[1], "berth", "agent", 0.7, Validity(date(2026, 1, 1)))
    assert load_memory(own[0]).links == (link,)
    listed = await server.ask("memory_graph", action="list", relation="depends_on")
    assert f"[{own[0][-8:]}]" in listed.text
    assert "(0.7, agent, from 2026-01-01, berth)" in listed.text
    ended = await server.ask("memory_graph", action="invalidate", **arguments, at="2026-06-01")
    assert "Links: 1 changed." in ended.text
    assert load_memory(own[0]).links[0].valid.until == date(2026, 6, 1)
    assert "0 links" in (await server.ask("memory_graph", id=own[0])).text
    assert "1 link." in (await server.ask("memory_graph", id=own[0], as_of="2026-05-31")).text
    assert "1 removed" in (await server.ask("memory_graph", action="unlink", **arguments)).text
    assert load_memory(own[0]).links == ()


async def test_every_link_is_shown_with_its_origin(server: Server, own: list[str]) -> None:
    await server.ask("memory_graph", action="link", id=own[0], relation="builds_on", to=own[2])
    for answer in (
        await server.ask("memory_graph", action="list"),
        await server.ask("memory_get", ids=[own[0]]),
    ):
        assert "(agent)" in answer.text
    removal = await server.ask("memory_graph", action="unlink", id=own[2], to=own[0])
    assert "1 removed" in removal.text


async def test_bulk_links_are_created_completely_or_not_at_all(
    server: Server, own: list[str]
) -> None:
    edges = [{"id": item, "relation": "part_of", "to": own[0]} for item in own[1:]]
    bad = {"id": own[0], "relation": "part_of", "to": "0000dead"}
    refused = await server.ask("memory_graph", action="bulk_link", links=[*edges, bad])
    assert "link 3 of 3" in refused.error["message"]
    assert load_memory(own[1]).links == ()
    assert "2 new" in (await server.ask("memory_graph", action="bulk_link", links=edges)).text


async def test_link_between_owner_memories_waits_for_review(server: Server, own: list[str]) -> None:
    mine = store_memory("The harbour is closed on Sundays.", project="harbour")
    answer = await server.ask("memory_graph", action="link", id=mine, relation="part_of", to=own[0])
    assert "pending review" in answer.text
    assert load_memory(mine).links == ()


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "traverse"},
        {"action": "link", "relation": "part_of"},
        {"action": "bulk_link"},
        {"action": "unlink_by_origin"},
        {"action": "link", "id": "0000dead", "relation": "likes", "to": "0000beef"},
    ],
)
async def test_incomplete_request_names_missing_arguments(
    server: Server, arguments: dict[str, str]
) -> None:
    assert (await server.ask("memory_graph", **arguments)).error["hint"]


async def test_links_are_followed_deeply(server: Server, own: list[str]) -> None:
    with open_memory() as memory:
        pairs = ((own[0], own[1]), (own[1], own[2]), (own[2], own[0]))
        memory.call(
            "graph-link",
            links=[{"source": a, "relation": "builds_on", "target": b} for a, b in pairs],
        )
    answer = await server.ask("memory_graph", id=own[0], depth=10, direction="outbound")
    lines = answer.text.splitlines()
    first = next(
        at
        for at, line in enumerate(lines)
        if f"[{own[0][-8:]}] builds_on → [{own[1][-8:]}]" in line
    )
    assert lines[first + 1].startswith(f"[{own[1][-8:]}] builds_on → [{own[2][-8:]}]")
    assert lines[first + 2].startswith(f"[{own[2][-8:]}] builds_on → [{own[0][-8:]}]")
    assert lines[first + 2].endswith("(shown above)")


async def test_analyses_are_limited_to_a_project(server: Server, own: list[str]) -> None:
    more = [store_memory(f"The {name} is painted.", project="harbour") for name in ("mast", "buoy")]
    chain = [*own, *more]
    with open_memory() as memory:
        pairs = pairwise(chain)
        memory.call(
            "graph-link",
            links=[{"source": a, "relation": "builds_on", "target": b} for a, b in pairs],
        )
    central = await server.ask("memory_analyze", about="central", project="harbour")
    assert "mast" in central.text
    assert (await server.ask("memory_analyze", about="gaps", project="nowhere")).error
