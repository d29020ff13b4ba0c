"""The options of ``nacre mcp``."""

from __future__ import annotations

from tests.cli.conftest import Nacre, nacre, terminal_process

__all__ = ["nacre", "terminal_process"]


def test_unknown_tool_set_is_refused_with_valid_names(nacre: Nacre) -> None:
    assert "core" in nacre("mcp", "--tools", "some", code=2).err


def test_terminal_start_explains_how_to_end(terminal_process: Nacre) -> None:
    assert "Press Ctrl-D to end it" in terminal_process("mcp", typed="\x04").out
