"""The kind ``webhook``: any program that knows a secret talks to the agent, over HTTP or a WebSocket."""

from __future__ import annotations

from nacre.gateway.channels.channel import ChannelKind, ChannelSetup, Option
from nacre.gateway.channels.webhook import channel


def _make(setup: ChannelSetup) -> channel.Webhook:
    return channel.Webhook(setup)


KIND = ChannelKind(
    name="webhook",
    label="Webhook",
    make=_make,
    options=(
        Option("secret", "the secret that signs messages, at least 16 characters", is_secret=True, is_required=True),
        Option("deliver_to", "a URL to which answers are posted as well", default=""),
        Option(
            "fetch_private", "true: attachments may lie at private addresses, and at loopback by http", default=False
        ),
    ),
    libraries=("starlette", "uvicorn", "websockets"),
    extra="web",
    identity="the id that the program gives the sender",
)
