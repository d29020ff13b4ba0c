"""Which sessions and memories a writer may be shown."""

from __future__ import annotations

from fnmatch import fnmatch

from nacre.errors import ModelRefused
from nacre.home.home import Home
from nacre.llm.providers import is_on_this_machine, provider_of
from nacre.settings import Settings
from nacre.values.memory import Memory
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


def may_be_shown(home: Home, memory: Memory, writer: str) -> bool:
    """Whether a writer may be shown a memory: it is of no project and of no session that is left out."""
    patterns = home.settings.texts("writer.exclude_projects")
    if any(fnmatch(memory.project or "", pattern) for pattern in patterns):
        return False
    named = {one for one in (memory.source.session, *(one.session for one in memory.confirmed)) if one}
    excluded = set(home.settings.texts("writer.exclude_tools"))
    if any(one.partition(":")[0] in excluded for one in named):
        return False
    sessions = [found for one in named for found in home.sessions.find(one)]
    return all(is_covered(home.settings, one, writer) for one in sessions)


def is_of_local_model(stored: StoredSession) -> bool:
    """Whether a model on the owner's machine answered last in a session."""
    model = (stored.session.model or "").lower()
    return any(fnmatch(model, pattern) for pattern in LOCAL_MODELS)


def _runs_here(settings: Settings, writer: str) -> bool:
    try:
        return is_on_this_machine(provider_of(settings, writer.partition(":")[0]))
    except ModelRefused:
        return False
