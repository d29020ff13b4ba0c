"""The client's own model, for the operations that may ask one: where the settings name it and the client offers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nacre.home import home
from nacre.llm.wires import sampling
from nacre.mcp.calling import Call, HomeCalls

if TYPE_CHECKING:
    from nacre.protocols import LanguageModel
    from nacre.settings import Settings

PROVIDER = "mcp-sampling"
_ASKING = frozenset({"deep-recall", "extract"})

Asker = Callable[[str, str, int], tuple[str, str]]
"""Asks the client: system, text, most tokens; gives the answer and the model's name. From any thread but the loop's."""


def sampled(call: Call, asker: Asker | None) -> Call:
    """The same calls, of which those that may ask a model ask the client's, if it offers one and it is the one set.

    They run in this process then: the daemon has no client to ask.
    """
    if asker is None or not isinstance(call, HomeCalls):
        return call

    def asking(operation: str, request: Any) -> Any:
        if operation not in _ASKING or not call.is_set_to(PROVIDER):
            return call(operation, request)
        return call(operation, request, load_model=_loader(asker))

    return asking


def _loader(asker: Asker) -> Callable[[Settings, str], LanguageModel]:
    def load(settings: Settings, name: str) -> LanguageModel:
        return (
            sampling.SamplingModel(asker)
            if name.partition(":")[0] == PROVIDER
            else home.load_configured_model(settings, name)
        )

    return load
