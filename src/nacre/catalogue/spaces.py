"""Operations on spaces: whose memory it is, who belongs to it, keys to it, and what is shared."""

from __future__ import annotations

from typing import Any

from nacre.catalogue.flags import NOTHING
from nacre.operation import Operation
from nacre.values.actor import Face

_OWNERS: dict[str, Any] = {"writes": True, "owners": True}
_SECRET: dict[str, Any] = {
    **_OWNERS, "not_by": dict.fromkeys((Face.DAEMON, Face.HTTP), "a key is told to nobody but who makes it"),
}  # fmt: skip

SPACES = (
    Operation("share", "spaces.sharing:share", "spaces.requests:ShareRequest", "spaces.values:Shared", **_OWNERS),
    Operation("spaces", "spaces.managing:list_spaces", NOTHING, "list[spaces.values:Space]"),
    Operation(
        "spaces-create", "spaces.managing:create_space", "spaces.requests:CreateSpaceRequest", "spaces.values:Space",
        **_OWNERS
    ),
    Operation(
        "spaces-members", "spaces.managing:list_members", "spaces.requests:SpaceRequest", "list[spaces.values:Member]"
    ),
    Operation(
        "spaces-add", "spaces.managing:add_member", "spaces.requests:AddMemberRequest", "list[spaces.values:Member]",
        **_OWNERS
    ),
    Operation(
        "spaces-remove", "spaces.managing:remove_member", "spaces.requests:RemoveMemberRequest",
        "list[spaces.values:Member]", **_OWNERS
    ),
    Operation("spaces-log", "spaces.managing:list_log", "spaces.requests:LogRequest", "list[spaces.values:Note]"),
    Operation("keys", "spaces.keys:list_keys", "spaces.requests:SpaceRequest", "list[spaces.values:Key]"),
    Operation(
        "keys-create", "spaces.keys:create_key", "spaces.requests:CreateKeyRequest", "spaces.values:NewKey", **_SECRET
    ),
    Operation(
        "keys-rotate", "spaces.keys:rotate_key", "spaces.requests:RotateKeyRequest", "spaces.values:NewKey", **_SECRET
    ),
    Operation(
        "keys-revoke", "spaces.keys:revoke_key", "spaces.requests:RevokeKeyRequest", "spaces.values:Key", **_OWNERS
    ),
)  # fmt: skip
