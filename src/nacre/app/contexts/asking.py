"""A context for whoever asks for one outside of a hook: what was edited by hand counts at once."""

from __future__ import annotations

from nacre.app.context import Context
from nacre.app.contexts.building import build
from nacre.app.scanning import catch_up
from nacre.model.context import ContextBlock, ContextRequest

_PATIENCE_SECONDS = 0.2


def context_for(context: Context, request: ContextRequest) -> ContextBlock:
    """As :func:`nacre.app.contexts.building.build`, after a look at what a person changed in the vault.

    Hooks do without the look: it may wait for whoever writes.
    """
    if not request.alone:
        catch_up(context, _PATIENCE_SECONDS)
    return build(context, request)
