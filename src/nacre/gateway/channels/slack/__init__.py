"""Slack: Socket Mode, and its Web API."""

from nacre.gateway.channels.slack.channel import KIND

__all__ = ["KIND"]
