"""Whose words stand where the owner's would: one rule for every adapter.

A record, message or block that names where it is from is the owner's only if that is known to be the owner; a value
that nobody knows is somebody else's. What a tool itself writes there is listed in ``phrases.toml``. In chats a message
names its sender, who is the owner only if ``owner.identities`` says so. What names nothing is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from nacre.transcripts.phrases import is_tools, without_tools_lines
from nacre.transcripts.senders import read_sender
from nacre.transcripts.trust import Exchange
from nacre.values.session import Flag, Speaker, Trust, Turn


class Claims(msgspec.Struct, gc=False):
    """What a record may say of where it is from, whatever its tool. Records of typed formats inherit these fields."""

    origin: Any = None
    provenance: Any = None
    inputProvenance: Any = None  # noqa: N815
    promptSource: Any = None  # noqa: N815
    messageSource: Any = None  # noqa: N815
    turnOrigin: Any = None  # noqa: N815
    commandMode: Any = None  # noqa: N815
    authorKind: Any = None  # noqa: N815
    isSynthetic: Any = None  # noqa: N815
    synthetic: Any = None
    isVirtual: Any = None  # noqa: N815
    isVisibleInTranscriptOnly: Any = None  # noqa: N815
    turnCompanion: Any = None  # noqa: N815
    verifiedSlackHumanTurn: Any = None  # noqa: N815
    isSystemInitiated: Any = None  # noqa: N815
    isForwarded: Any = None  # noqa: N815
    textNotTyped: Any = None  # noqa: N815
    handedOff: Any = None  # noqa: N815
    wakeupSource: Any = None  # noqa: N815
    scheduledTaskId: Any = None  # noqa: N815
    isSimulatedMsg: Any = None  # noqa: N815
    simulatedMsgReason: Any = None  # noqa: N815
    isUser: Any = None  # noqa: N815
    isHuman: Any = None  # noqa: N815
    senderIsOwner: Any = None  # noqa: N815


_NAMES = (
    "origin", "provenance", "inputProvenance", "promptSource", "messageSource", "turnOrigin", "commandMode",
    "authorKind",
)  # fmt: skip
_SAY_OWNER = ("isUser", "isHuman", "senderIsOwner")
_SAY_OTHER = tuple(name for name in Claims.__struct_fields__ if name not in (*_NAMES, *_SAY_OWNER))
_OWNERS = frozenset(
    "human user owner keyboard typed prompt bash cli terminal tui console repl interactive editor ui plain queued voice"
    .split()
)  # fmt: skip
_WAYS = frozenset({"sdk"})
"""Values that say how a message came, not from whom: ``claude -p`` is the owner's command as any other is."""
_UNTOLD = ("turnOrigin", "unknown")
"""Claude Code's word for a turn of which it only knows that nobody else began it."""

_KIND_KEYS = ("kind", "type", "name", "source")
_EXTERNAL_USER = "external_user"


def names_another(*claims: Claims | Mapping[str, Any]) -> bool:
    """Whether a record, or a message or block in it, says that it is not the owner's."""
    return any(map(_names_another, claims))


def _names_another(claim: Claims | Mapping[str, Any]) -> bool:
    if any(_value(claim, name) is False for name in _SAY_OWNER) or any(_value(claim, name) for name in _SAY_OTHER):
        return True
    kinds = [(name, _kind(value)) for name in _NAMES if not _is_nothing(value := _value(claim, name))]
    return any(kind not in _OWNERS and kind not in _WAYS and (name, kind) != _UNTOLD for name, kind in kinds)


def _value(claim: Claims | Mapping[str, Any], name: str) -> Any:
    return claim.get(name) if isinstance(claim, Mapping) else getattr(claim, name)


def _is_nothing(value: object) -> bool:
    return value is None or isinstance(value, bool) or value in ("", {}, [])


def _kind(value: Any) -> str:
    """What an origin is called: the text itself, or what its object calls its kind; empty where it names none."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in _KIND_KEYS if isinstance(value.get(key), str)), "")
    return value.strip().lower() if isinstance(value, str) else ""


def is_external_user(claim: Claims) -> bool:
    """Whether a record only says that a person wrote it, in a channel: the owner, or anybody."""
    return _kind(claim.provenance) == _EXTERNAL_USER


def attribute(
    turn: Turn, tool: str, identities: Sequence[str], exchange: Exchange, *claims: Claims | Mapping[str, Any]
) -> Turn:  # fmt: skip
    """A turn that stands where the owner's would, as whose it is; what others said in it is heard, as from outside.

    ``claims`` are the records that may name where it is from.
    """
    if turn.speaker is not Speaker.OWNER:
        return turn
    turn, others = _attributed(turn, tool, identities, claims)
    for other in others:
        exchange.saw(other)
    return turn


def _attributed(
    turn: Turn, tool: str, identities: Sequence[str], claims: Iterable[Claims | Mapping[str, Any]]
) -> tuple[Turn, tuple[str, ...]]:  # fmt: skip
    if names_another(*claims):
        return anothers(turn), (turn.text,)
    if turn.flags & (Flag.META | Flag.COMMAND):
        return turn, ()
    if is_tools(tool, turn.text):
        return anothers(turn, Flag.META), (turn.text,)
    words, others = without_tools_lines(tool, turn.text)
    if not words and others:
        return anothers(turn, Flag.META), others
    words, sender = read_sender(words)
    turn = replace(turn, text=words)
    if sender and not sender.is_one_of(identities):
        return replace(anothers(turn), author=sender.author), (*others, words)
    return turn, others


def anothers(turn: Turn, flags: Flag = Flag.NONE) -> Turn:
    """The same as somebody else's."""
    return replace(turn, speaker=Speaker.SYSTEM, trust=Trust.UNTRUSTED, flags=turn.flags | flags)
