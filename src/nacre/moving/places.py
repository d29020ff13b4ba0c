"""The two ends of a move: the home in its folder, and a tenant on a server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from nacre.errors import Conflict, Unavailable
from nacre.home.home import Home, open_home
from nacre.home.lookup import is_empty
from nacre.platform import json_text, private_files
from nacre.platform.environment import server_address
from nacre.settings import Settings

Open = Callable[[Settings], Home]

_PASSWORD = re.compile(r"(://[^/@:]*):[^/]*@|([?&])password=[^&]*&?")


@dataclass(frozen=True, slots=True)
class Moved:
    """What a home keeps of its move: the id of the move, where to, and whether it ended."""

    id: str
    server: str
    tenant: str
    is_whole: bool


def without_password(address: str) -> str:
    """An address as it may be written down and shown."""
    return _PASSWORD.sub(lambda found: f"{found[1]}@" if found[1] else found[2], address).rstrip("?&")


def in_folder(settings: Settings) -> Settings:
    """The settings of a home whose memory is in its folder."""
    if server_address(settings.environ):
        raise Unavailable("NACRE_DB names a server: which home is meant?", hint="unset it, and name the server here")
    database = Path(settings.environ.get("NACRE_DB") or settings.home / "nacre.db").expanduser()
    return replace(settings, database=database).having("storage.url", "")


def on_server(settings: Settings, address: str, tenant: str | None) -> Settings:
    """The same where the memory is a tenant's on a server; the address may hold a password here, in memory."""
    with_tenant = settings.having("storage.tenant", tenant) if tenant else settings
    return replace(with_tenant, environ={**settings.environ, "NACRE_DB": address})


def read_moved(settings: Settings) -> Moved | None:
    """What the home knows of its last move."""
    try:
        held = json_text.parse(_file(settings).read_bytes())
        return Moved(str(held["id"]), str(held["server"]), str(held["tenant"]), bool(held["is_whole"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_moved(settings: Settings, moved: Moved | None) -> None:
    """Keep it, or forget it."""
    if moved is None:
        _file(settings).unlink(missing_ok=True)
        return
    held = {"id": moved.id, "server": moved.server, "tenant": moved.tenant, "is_whole": moved.is_whole}
    private_files.write_file(_file(settings), json.dumps(held) + "\n")


def claim_tenant(server: Home, moved: Moved) -> None:
    """Begin to carry a home to a tenant, or go on. Raises Conflict where it holds another memory."""
    with server.database.transaction():
        found = server.database.one("find_move")
        if found and found[0] == moved.id:
            return
        if found or (server.database.one("holds_anything") or (0,))[0]:
            raise Conflict(
                f"the tenant {moved.tenant} on that server holds a memory already",
                hint="name another one: --tenant NAME; nothing was carried",
            )
        server.database.run("begin_move", id=moved.id)


def require_own(folder: Home, moved: Moved | None, address: str, tenant: str) -> None:
    """That what is in the folder may be replaced: nothing, or what was carried to that tenant and not touched since.

    Raises Conflict.
    """
    is_former = moved is not None and moved.is_whole and (moved.server, moved.tenant) == (address, tenant)
    if not is_former and not is_empty(folder):
        raise Conflict(
            f"{folder.settings.home} holds a memory of its own",
            hint="carry it to an empty home: nacre --home FOLDER move --from …",
        )
    seen, pending, _ = folder.files.seen_now()
    edited = {path for path, now in folder.vault.times().items() if seen.get(path) != now} - pending
    if edited:
        raise Conflict(
            f"{len(edited)} files of {folder.settings.vault} were edited since, as {min(edited)}",
            hint="move them out of the vault first, and repeat the command",
        )


def open_both(folder: Settings, server: Settings, opener: Open = open_home) -> tuple[Home, Home]:
    """Open both ends; the server first, as it may not be there. Raises StoreUnusable."""
    there = opener(server)
    try:
        return opener(folder), there
    except BaseException:
        there.close()
        raise


def _file(settings: Settings) -> Path:
    return settings.home / "moved.json"
