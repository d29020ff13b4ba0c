"""A context for whoever asks for one outside of a hook: what was edited by hand counts at once."""

from __future__ import annotations

from nacre.context.build import build
from nacre.home.home import Home
from nacre.memories.scan import catch_up
from nacre.values.context import ContextBlock, ContextRequest

_PATIENCE_SECONDS = 0.2


def context_for(home: Home, request: ContextRequest) -> ContextBlock:
    """As :func:`nacre.context.build.build`, after a look at what a person changed in the vault.

    Hooks do without the look: it may wait for whoever writes.
    """
    if not request.alone:
        catch_up(home, _PATIENCE_SECONDS)
    return build(home, request)
