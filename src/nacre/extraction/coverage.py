"""Which sessions a writer may be shown."""

from __future__ import annotations

from fnmatch import fnmatch

from nacre.errors import ModelRefused
from nacre.llm.providers import is_on_this_machine, provider_of
from nacre.settings import Settings
from nacre.values.session import StoredSession

LOCAL_MODELS = ("ollama*/*", "lmstudio/*", "lm_studio/*", "llamacpp/*", "llama.cpp/*", "*.gguf", "*:latest", "*:*b")
"""What models that run on the owner's machine are called in transcripts; Ollama's end in a tag, as ``qwen3:8b``."""


def is_covered(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Whether a session may be shown to a writer, by its name: it is of no tool and no project that is left out, and
    one that the owner had with a model on this machine goes to no other one.
    """
    if stored.session.tool in settings.texts("writer.exclude_tools"):
        return False
    if any(fnmatch(stored.project or "", pattern) for pattern in settings.texts("writer.exclude_projects")):
        return False
    return not is_of_local_model(stored) or _runs_here(settings, writer)


def is_of_local_model(stored: StoredSession) -> bool:
    """Whether a model on the owner's machine answered last in a session."""
    model = (stored.session.model or "").lower()
    return any(fnmatch(model, pattern) for pattern in LOCAL_MODELS)


def _runs_here(settings: Settings, writer: str) -> bool:
    try:
        return is_on_this_machine(provider_of(settings, writer.partition(":")[0]))
    except ModelRefused:
        return False
