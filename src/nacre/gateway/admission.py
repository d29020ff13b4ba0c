"""Who may write to the agent: the owner, those the owner lets in, and nobody else."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from nacre.storage.gateway import GatewayStore
from nacre.values.gateway.conversation import Pairing
from nacre.values.gateway.message import ChatType, Incoming, Sender

CODE_MINUTES = 60
"""A code can be used for so long; a sender is told a new one only then."""

_MOST_ASKING = 20
"""So many senders of a channel are given codes in that time."""

_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_NAME_CHARACTERS = 80
_PART = 4
EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Rules:
    """Who may write in a channel: ``identities`` are the owner's (``telegram:4711``), ``allow`` who needs no pairing.

    In groups the agent answers where it is mentioned (``mention``), always (``all``) or never (``off``), and sees what
    those said who may write (``hears = "paired"``), or everybody.
    """

    channel: str
    identities: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    groups: str = "mention"
    hears: str = "paired"

    def is_owner(self, sender: Sender) -> bool:
        """Whether a sender is one of the owner's identities, which name the channel: ids of others may be the same."""
        return f"{self.channel}:{sender.id}" in self.identities


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a message: ``waiting``, ``heard``, or nothing; and what the sender is told."""

    state: str | None
    is_owner: bool = False
    reply: str = ""


def identities(kinds: Collection[tuple[str, str]], configured: Collection[str]) -> frozenset[str]:
    """The owner's identities, spelt with the names of channels: ``telegram:4711`` holds in each of that kind. Case
    matters in ids, as a program behind a webhook may tell ``Otto`` from ``otto``."""
    known = [
        (where.casefold(), who) for where, colon, who in (one.strip().partition(":") for one in configured) if colon
    ]
    own = {f"{where}:{who}" for where, who in known}
    return frozenset(own.union(f"{name}:{who}" for name, kind in kinds for where, who in known if where == kind))


def judge(
    message: Incoming, rules: Rules, store: GatewayStore, now: datetime, new_code: Callable[[], str] | None = None
) -> Verdict:
    """What becomes of a message. A stranger who writes to the agent alone is given a code for the owner."""
    is_owner = rules.is_owner(message.sender)
    is_let_in = is_owner or _is_let_in(message.sender, rules, store)
    if message.chat.kind is ChatType.GROUP:
        return _in_group(message, rules, is_owner=is_owner, is_let_in=is_let_in)
    if is_let_in:
        return Verdict("waiting", is_owner)
    return Verdict(None, reply=_code_for(message.sender, rules.channel, store, now, new_code or make_code))


def may_say(message: Incoming, rules: Rules, store: GatewayStore) -> bool:
    """Whether what a sender says is heard at all, now: who was let in once may not be any more."""
    is_let_in = rules.is_owner(message.sender) or _is_let_in(message.sender, rules, store)
    if message.chat.kind is ChatType.GROUP:
        return _in_group(message, rules, is_owner=False, is_let_in=is_let_in).state is not None
    return is_let_in


def _in_group(message: Incoming, rules: Rules, *, is_owner: bool, is_let_in: bool) -> Verdict:
    if rules.groups == "off" or not (is_let_in or rules.hears == "all"):
        return Verdict(None)
    is_asked = is_let_in and (message.to_agent or rules.groups == "all")
    return Verdict("waiting" if is_asked else "heard", is_owner)


def _is_let_in(sender: Sender, rules: Rules, store: GatewayStore) -> bool:
    if EVERYBODY in rules.allow or sender.id in rules.allow:
        return True
    found = store.pairing(rules.channel, sender.id)
    return bool(found and found.approved)


def _code_for(sender: Sender, channel: str, store: GatewayStore, now: datetime, new_code: Callable[[], str]) -> str:
    since = now - timedelta(minutes=CODE_MINUTES)
    known = store.pairing(channel, sender.id)
    if (known and known.asked > since) or store.asking_since(channel, since) >= _MOST_ASKING:
        return ""
    code = new_code()
    store.ask_pairing(Pairing(channel, sender.id, sender.name[:_NAME_CHARACTERS], code, now))
    return (
        f"This agent answers people whom its owner lets in. Your code: {code}\n"
        f"The owner runs: nacre gateway pair {code}  (within {CODE_MINUTES} minutes)"
    )


def make_code() -> str:
    """A code to read out: ``K7QM-2XDP``."""
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(_PART)) for _ in range(2))


def is_current(pairing: Pairing, now: datetime) -> bool:
    """Whether a code can still be used."""
    return pairing.approved is None and now - pairing.asked < timedelta(minutes=CODE_MINUTES)
