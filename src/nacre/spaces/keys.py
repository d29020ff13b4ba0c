"""Keys to a space, for programs and for other machines.

A key is 256 random bits, so one fast hash of it is kept, without salt: nobody can guess it, and a slow hash, which
protects words that people choose, would only slow each request.
"""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import blake2b
from secrets import token_hex, token_urlsafe
from typing import TYPE_CHECKING

from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.platform.ids import from_ms, to_ms
from nacre.spaces.managing import Managed, managed
from nacre.spaces.requests import CreateKeyRequest, RevokeKeyRequest, RotateKeyRequest, SpaceRequest
from nacre.spaces.values import Key, NewKey
from nacre.values.actor import Bearer, Quota, Role

if TYPE_CHECKING:
    from nacre.storage.database import Row
    from nacre.storage.postgres.registry import Registry

BEGINS = "nacre_"
_ID_BYTES, _SECRET_BYTES = 4, 32
_HASH_BYTES = 32
_SHAPE = re.compile(rf"{BEGINS}[0-9a-f]{{8}}_[\w-]{{43}}", re.ASCII)


def bearer_of(registry: Registry, secret: str) -> Bearer | None:
    """Who has a key that holds now, by the server's clock; ``None`` where it does not."""
    if not _SHAPE.fullmatch(secret):
        return None
    for key, space, account, role, *quota in registry.all("read_key", hash=_hash(secret)):
        registry.run("note_key_used", id=key)
        return Bearer(account, space, Role(role), Quota(*quota))
    return None


def list_keys(home: Home, asked: SpaceRequest) -> list[Key]:
    """The keys to a space, the newest first. Raises NotAllowed to who does not own it."""
    with managed(home, asked.space) as held:
        return _keys(held)


def create_key(home: Home, asked: CreateKeyRequest) -> NewKey:
    """Make a key. Raises NotAllowed, NotFound where the account does not belong to the space."""
    with managed(home, asked.space) as held:
        account = asked.account or held.who.account
        role = held.role_of(account).at_most(asked.role)
        return _made(home, held, account, role, asked.days)


def rotate_key(home: Home, asked: RotateKeyRequest) -> NewKey:
    """End a key, and make another one of the same account and role. Raises NotAllowed, NotFound."""
    with managed(home, asked.space) as held:
        old = _revoked(held, asked.id)
        return _made(home, held, old.account, old.role, asked.days)


def revoke_key(home: Home, asked: RevokeKeyRequest) -> Key:
    """End a key. Raises NotAllowed, NotFound."""
    with managed(home, asked.space) as held:
        return _revoked(held, asked.id)


def _made(home: Home, held: Managed, account: str, role: Role, days: int) -> NewKey:
    key = token_hex(_ID_BYTES)
    secret = f"{BEGINS}{key}_{token_urlsafe(_SECRET_BYTES)}"
    expires = to_ms(home.now() + timedelta(days=days)) or 0
    held.registry.run(
        "insert_key", id=key, hash=_hash(secret), space=held.space, account=account, role=role.value, at=held.at,
        expires=expires,
    )  # fmt: skip
    held.note("keys-create", f"{key} {account} {role}")
    return NewKey(Key(key, held.space, account, role, from_ms(held.at), from_ms(expires)), secret)


def _revoked(held: Managed, key: str) -> Key:
    if not held.registry.run("revoke_key", space=held.space, id=key, at=held.at):
        raise NotFound(f"no key {key} to {held.space} holds", hint="nacre keys list shows them")
    held.note("keys-revoke", key)
    return next(one for one in _keys(held) if one.id == key)


def _keys(held: Managed) -> list[Key]:
    return [_key(row) for row in held.registry.all("list_keys", space=held.space)]


def _key(row: Row) -> Key:
    key, space, account, role, *times = row
    return Key(key, space, account, Role(role), *map(from_ms, times))


def _hash(secret: str) -> bytes:
    return blake2b(secret.encode("utf-8", "replace"), digest_size=_HASH_BYTES).digest()
