"""Whether the gateway does what it is configured for."""

from __future__ import annotations

from nacre.gateway.answers import gateway_status
from nacre.home.home import Home
from nacre.spending.models import NONE
from nacre.text.passages import count
from nacre.values.reports import OK, WARNING, Check


def gateway(home: Home) -> list[Check]:
    """Whether the channels that are configured can be opened, somebody answers, and answers arrive."""
    if not home.settings["gateway.channels"]:
        return []
    state = gateway_status(home)
    broken = [f"{one.name}: {one.problem}" for one in state.channels if one.problem]
    if state.model == NONE:
        broken.append("nobody answers: models.chat is not set")
    if broken:
        return [Check("gateway", WARNING, "; ".join(broken), "docs/gateway.md tells how")]
    late = [one for one in state.undelivered if one.state == "waiting"]
    if late:
        told = f"{count(len(late), 'answer')} cannot be sent: {late[0].channel}: {late[0].problem}"
        return [Check("gateway", WARNING, told, "nacre gateway status")]
    runs = "runs" if state.running else "does not run: nacre gateway run, or gateway.enabled"
    return [Check("gateway", OK, f"{count(len(state.channels), 'channel')}; it {runs}")]
