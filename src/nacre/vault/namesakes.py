"""Two projects of one name that two machines made apart: other remotes, so other projects; one gets another folder."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nacre.errors import MemoryInvalid
from nacre.vault.identity import Tree, id_in
from nacre.vault.layout import is_memory_file, normalise_remote
from nacre.vault.merging_document import read_document, with_values

_PAGE = re.compile(r"projects/([^/]+)/project\.md")


def apart(base: Tree, ours: Tree, theirs: Tree) -> tuple[Tree, Tree]:
    """Both sides, with namesakes in folders of their own: of two, the one with the greater id moves."""
    sides = [dict(ours), dict(theirs)]
    for path in sorted(ours.keys() & theirs.keys() - base.keys()):
        match = _PAGE.fullmatch(path)
        ids = [id_in(side[path]) for side in (ours, theirs)]
        if match and all(ids) and ids[0] != ids[1] and _are_others(ours[path], theirs[path]):
            mover = 0 if str(ids[0]) > str(ids[1]) else 1
            stays = sides[1 - mover]
            slug = _known(str(ids[mover]), stays) or _free(match.group(1), sides)
            sides[mover] = _moved(sides[mover], base, match.group(1), slug)
    return sides[0], sides[1]


def _are_others(one: bytes, other: bytes) -> bool:
    """Whether two pages name remotes, and none in common."""
    mine, its = _remotes(one), _remotes(other)
    return bool(mine) and bool(its) and not mine & its


def _remotes(data: bytes) -> set[str]:
    try:
        found = read_document(data.decode("utf-8", "replace")).values.get("remotes")
    except MemoryInvalid:
        return set()
    return {normalise_remote(str(one)) for one in found} if isinstance(found, list) else set()


def _known(page_id: str, side: Tree) -> str | None:
    """The folder that the other side has for a project already."""
    pages = ((match.group(1), data) for path, data in side.items() if (match := _PAGE.fullmatch(path)))
    return next((slug for slug, data in pages if id_in(data) == page_id), None)


def _free(slug: str, sides: list[dict[str, bytes]]) -> str:
    number = 2
    while any(path.startswith(f"projects/{slug}-{number}/") for side in sides for path in side):
        number += 1
    return f"{slug}-{number}"


def _moved(side: Mapping[str, bytes], base: Tree, slug: str, to: str) -> dict[str, bytes]:
    """A side whose project lies in another folder; what was there before both sides began stays."""
    moved = {}
    for path, data in side.items():
        match = re.fullmatch(rf"((?:retired/)?projects/){re.escape(slug)}(/.*)", path)
        if match and path not in base:
            moved[f"{match.group(1)}{to}{match.group(2)}"] = _renamed(path, data, to)
        else:
            moved[path] = data
    return moved


def _renamed(path: str, data: bytes, project: str) -> bytes:
    try:
        text = data.decode()
        has_project = is_memory_file(path) and "project" in read_document(text).values
        return with_values(text, {"project": project}).encode() if has_project else data
    except (MemoryInvalid, UnicodeDecodeError):
        return data
