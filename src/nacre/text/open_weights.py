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

OWN = "local:"
"""Before a model's name: it ran at a provider of the owner's own, which follows, and a slash."""

_IN_THE_CLOUD = re.compile(r"[^:]+:(?:.+-)?cloud")
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
    """What a model is called whose transcript names its provider, too: where that is not known to answer elsewhere,
    both are, as the model's own name need not say whose it is.
    """
    if not (model and provider) or _IN_THE_CLOUD.fullmatch(model.lower()) or _is_elsewhere(provider):
        return model
    name = model if model.lower().startswith(f"{provider.lower()}/") else f"{provider}/{model}"
    return name if _is_of_local_provider(name.lower()) else f"{OWN}{name}"


def noted(before: str | None, now: str | None) -> str | None:
    """The model that a session is noted with, where another one answers: the later one, but never instead of one that
    is more likely to be the owner's own.
    """
    if not (before and now):
        return now or before
    return before if _likely_local(before) >= max(1, _likely_local(now)) else now


def _likely_local(model: str) -> int:
    return 2 if has_open_weights(model) else int(is_called_local(model))


def _is_elsewhere(provider: str) -> bool:
    """Whether a provider only answers over the network; so may one whose name was taken out of a transcript."""
    name = _plain(re.split("[/:]", provider, maxsplit=1)[0])
    return provider.startswith(("[", "<")) or name in {_plain(one) for one in _words("hosts") | _words("elsewhere")}


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


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
