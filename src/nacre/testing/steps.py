"""What happens in a conversation, whatever a tool writes of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Owner:
    """The owner types something."""

    text: str


@dataclass(frozen=True)
class Agent:
    """The agent says something."""

    text: str


@dataclass(frozen=True)
class Tool:
    """The agent calls a tool, which answers. ``name`` is what Claude Code calls it."""

    name: str
    argument: str
    output: str


@dataclass(frozen=True)
class Summary:
    """The host sums up what was said so far."""

    text: str


Step = Owner | Agent | Tool | Summary
