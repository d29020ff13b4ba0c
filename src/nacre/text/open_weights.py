"""Which models may run on the owner's own machine, by what transcripts call them."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from functools import cache
from importlib.resources import files

_TAGGED = re.compile(
    r"[^:]+:(?!\d+$|(?:free|nitro|floor|online|extended|beta|thinking|exacto|low|medium|high)$|.*cloud$)[^:]+"
)
"""Ollama's end in a tag, as ``tinystories:8b-q4_K_M``; so do some in the cloud: releases of Bedrock (``:0``), variants
of OpenRouter (``:free``), Ollama's own cloud (``:120b-cloud``). What was tuned for somebody has several signs."""

_IN_THE_CLOUD = re.compile(r".*[:-]cloud")
"""Ollama on the owner's machine answers as these are called, and has its own cloud do it."""

_HOSTED = re.compile(r".*(?::(?:free|nitro|floor|online|exacto)|[:-]cloud|-v\d+:\d+)")
"""Signs by which a name says that the model ran at a provider, whatever its weights: those of OpenRouter, of Ollama's
cloud and of Bedrock."""


def has_open_weights(model: str) -> bool:
    """Whether a model is of a family that people run on machines of their own, and has no sign of a host."""
    name = model.lower()
    return bool(_families().search(name)) and not is_hosted(name)


def is_hosted(model: str) -> bool:
    """Whether a model's name says that it ran at a provider, whatever its weights."""
    name = model.lower()
    own = name.rpartition("/")[2]
    return (
        bool(_HOSTED.fullmatch(name)) or _has_host(name) or any(fnmatch(own, one) for one in _words("hosted"))
    )  # fmt: skip


def is_called_local(model: str) -> bool:
    """Whether a model has a name as those have that run on the owner's machine."""
    name = model.lower()
    is_local = bool(_TAGGED.fullmatch(name)) or name.endswith(".gguf") or _is_of_local_provider(name)
    return is_local and not _has_host(name)


def answered_by(model: str | None, provider: str | None) -> str | None:
    """What a model is called whose transcript names its provider, too: where that answers on the owner's machine, both
    are, as its own name need not say so.
    """
    if not (model and provider) or _IN_THE_CLOUD.fullmatch(model.lower()):
        return model
    name = f"{provider}/{model}"
    is_local = _is_of_local_provider(name.lower()) and not _has_host(name.lower())
    return name if is_local and not model.lower().startswith(f"{provider.lower()}/") else model


def noted(before: str | None, now: str | None) -> str | None:
    """The model that a session is noted with, where another one answers: the later one, but never instead of one that
    is more likely to be the owner's own.
    """
    if not (before and now):
        return now or before
    return before if _likely_local(before) >= max(1, _likely_local(now)) else now


def _likely_local(model: str) -> int:
    return 2 if has_open_weights(model) else int(is_called_local(model))


def _has_host(name: str) -> bool:
    return re.split("[/:]", name, maxsplit=1)[0] in _words("hosts")


def _is_of_local_provider(name: str) -> bool:
    """Whether what a name has before its first slash is a provider on the owner's machine."""
    provider, slash, _ = name.partition("/")
    return bool(slash) and any(fnmatch(provider, one) for one in _words("local"))


@cache
def _words(kind: str) -> frozenset[str]:
    told = tomllib.loads((files(__package__) / "open_weights.toml").read_text(encoding="utf-8"))
    return frozenset(told[kind])


@cache
def _families() -> re.Pattern[str]:
    names = "|".join(re.escape(one).replace(r"\-", r"[^a-z0-9]?") for one in _words("families"))
    return re.compile(rf"(?<![a-z])(?:{names})(?![a-z])")
