"""Channels: one module a platform, behind the protocol of :mod:`nacre.gateway.channels.channel`."""
