"""Operations that keep a home in step with a space on a server; the last four are what machines ask of it."""

from __future__ import annotations

from nacre.catalogue.flags import LONG, NOTHING
from nacre.operation import Operation

REMOTE = (
    Operation("remote", "remote.exchange:show_remote", NOTHING, "remote.values:RemoteStanding"),
    Operation(
        "remote-add", "remote.exchange:add_remote", "remote.requests:AddRemoteRequest", "remote.values:Exchanged",
        **LONG, owners=True,
    ),
    Operation("remote-sync", "remote.exchange:exchange", NOTHING, "remote.values:Exchanged", **LONG),
    Operation(
        "remote-remove", "remote.exchange:remove_remote", NOTHING, "remote.values:RemoteStanding", writes=True,
        owners=True,
    ),
    Operation(
        "remote-changes", "remote.serving:tell_changes", "remote.requests:RemoteChangesRequest",
        "remote.values:ServerChanges",
    ),
    Operation(
        "remote-versions", "remote.serving:tell_versions", "remote.requests:RemoteVersionsRequest",
        "list[remote.values:ServerDocument]",
    ),
    Operation(
        "remote-push", "remote.serving:take_documents", "remote.requests:RemotePushRequest", "remote.values:Pushed",
        writes=True,
    ),
    Operation(
        "remote-turns", "remote.serving:take_turns", "remote.requests:RemoteTurnsRequest", "int", writes=True
    ),
)  # fmt: skip
