"""Where the owner wants it, Claude Code's agent is asked once a session, as a turn ends, for what is worth keeping."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hooks.conftest import Hooked, serving


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_CONTEXT_PROPOSALS_AFTER", "2")


@pytest.fixture
def served(wanted: None, hooked: Hooked) -> Iterator[Hooked]:
    """A home whose daemon runs, and whose owner wants the agent to be asked after two prompts."""
    with serving(hooked.home):
        yield hooked


def prompt(hooked: Hooked, times: int = 1, host: str = "claude-code") -> None:
    for _ in range(times):
        hooked.run("UserPromptSubmit", hooked.given(prompt="Paint the mole."), host=host)


def test_agent_is_not_asked_by_default(hooked: Hooked) -> None:
    with serving(hooked.home):
        prompt(hooked, 12)
        assert hooked.run("Stop").out == ""


def test_agent_is_asked_once_after_the_configured_prompts(served: Hooked) -> None:
    prompt(served)
    assert served.run("Stop").out == ""
    prompt(served)
    asked = served.run("Stop").context
    assert asked.startswith("<nacre-context>")
    assert asked.endswith("</nacre-context>")
    assert "up to five" in asked
    assert "memory_store" in asked
    assert "quote" in asked
    prompt(served, 3)
    assert served.run("Stop").out == ""


def test_each_session_is_asked_separately(served: Hooked) -> None:
    prompt(served, 2)
    assert served.run("Stop").context
    other = served.given(session_id="5e55-0002", prompt="Paint the mole.")
    assert served.run("Stop", other).out == ""
    for _ in range(2):
        served.run("UserPromptSubmit", other)
    assert served.run("Stop", other).context


def test_turn_continued_by_a_hook_is_not_asked(served: Hooked) -> None:
    prompt(served, 2)
    assert served.run("Stop", served.given(stop_hook_active=True)).out == ""
    assert served.run("Stop").context


@pytest.mark.parametrize("given", [{"agent_id": "a1"}, {"session_id": ""}])
def test_session_without_a_person_is_not_asked(served: Hooked, given: dict[str, object]) -> None:
    prompt(served, 2)
    assert served.run("Stop", served.given(**given)).out == ""


def test_codex_is_not_asked_at_turn_end(served: Hooked) -> None:
    prompt(served, 3, host="codex")
    assert served.run("Stop", host="codex").out == ""


def test_agent_is_asked_only_while_the_daemon_runs(wanted: None, hooked: Hooked) -> None:
    with serving(hooked.home):
        prompt(hooked, 2)
    assert hooked.run("Stop").out == ""
    with serving(hooked.home):
        assert hooked.run("Stop").context
