"""Discord: its gateway over a WebSocket, and its HTTP interface, version 10."""

from nacre.gateway.channels.discord.channel import KIND

__all__ = ["KIND"]
