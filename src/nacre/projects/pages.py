"""Pages of projects that get another name, or become one: what they list, and the own words of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nacre.errors import Conflict
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.projects import LISTS, Page, index_page, listed, page_path, read_page
from nacre.home.redaction import without_secrets
from nacre.hosts.marked import drop_blocks
from nacre.values.codec import stamp
from nacre.values.operation import Intent, Project
from nacre.vault.front_matter import dump, join, load, merge, split
from nacre.vault.layout import normalise_remote

_ABOUT = ("description", "goal", "status")
_UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True)
class Written:
    """A page as it is to be written."""

    slug: str
    text: str
    values: dict[str, Any]


def facts(page: Page | None) -> dict[str, tuple[str, ...]]:
    """What a page lists, by the names of its lists; remotes as they are compared. Empty without a page."""
    found = {name: tuple(listed(page.values, name)) for name in (*LISTS, "dependencies")} if page else {}
    return found | {"remotes": tuple(normalise_remote(one) for one in found.get("remotes", ()))} if found else found


def page_of(home: Home, slug: str) -> Page | None:
    """The page of a project; ``None`` where it has none. Raises MemoryInvalid, and Conflict where it holds a secret:
    what it says could not be brought back."""
    page = read_page(home, slug)
    if page and without_secrets(home.redactor, page.text) is None:
        raise Conflict(f"{page_path(slug)} holds what looks like a secret", hint="take the secret out of it first")
    return page


def own_words(home: Home, page: Page | None, into: Page | None) -> str:
    """What a person wrote on a page, to be added to that of another project; empty where that would lend it trust."""
    if page is None or (_trust(page) == _UNTRUSTED and (into is None or _trust(into) != _UNTRUSTED)):
        return ""
    told = [f"{name}: {page.values[name]}" for name in _ABOUT if page.values.get(name)]
    lines = drop_blocks(page.body).strip().splitlines()
    if lines and lines[0].startswith("# "):
        del lines[0]
    return home.redactor.clean("\n".join([*told, *lines]).strip())


def renamed(home: Home, page: Page | None, old: str, slug: str, name: str) -> Written:
    """The page of a project under another name: the former ones are aliases, and its title is the new name where it was
    the old one."""
    if page is None:
        return _new(home, slug, name, {"aliases": [old]})
    former = str(page.values.get("name") or old)
    known = [one for one in listed(page.values, "aliases") if one not in (slug, name)]
    aliases = list(dict.fromkeys([*known, old, *([former] if former != name else [])]))
    changed = {"name": name, "aliases": aliases} | ({} if page.values.get("id") else {"id": home.ids()})
    first, end, rest = page.body.partition("\n")
    body = f"# {name}{first[len(f'# {former}') :]}{end}{rest}" if first.rstrip() == f"# {former}" else page.body
    return _written(page, slug, changed, body)


def merged(home: Home, old: str, page: Page | None, into: str, other: Page | None) -> Written:
    """The page of the project that stays, with all that the other one's lists, and with its own words below."""
    named = [old, *([str(page.values["name"])] if page and page.values.get("name") else [])]
    mine, its = (other.values if other else {}), (page.values if page else {})
    changed: dict[str, Any] = {}
    for key in (*LISTS, "dependencies"):
        more = [*listed(its, key), *(named if key == "aliases" else ())]
        present = listed(mine, key)
        new = [one for one in dict.fromkeys(more) if one not in (*present, into, *_own(key, old, mine))]
        if new:
            changed[key] = [*present, *new]
    words = own_words(home, page, other)
    if other is None:
        made = _new(home, into, into, changed)
        return replace(made, text=made.text + _section(old, words)) if words else made
    if not other.values.get("id"):
        changed["id"] = home.ids()
    body = f"{other.body.rstrip()}\n{_section(old, words)}" if words else other.body
    return _written(other, into, changed, body)


def edited(home: Home, slug: str, page: Page | None, text: str) -> Written:
    """The page of a project as a person wrote it; it keeps its id, and without front matter that, too.

    Raises MemoryInvalid.
    """
    front, body = split(text)
    if front is None:
        front = page.front if page else f"name: {slug}\n"
    own = str((page.values.get("id") if page else None) or home.ids())
    return Written(slug, join(text, merge(front, {"id": own}, []), body), {**load(front), "id": own})


def depending(home: Home, slug: str, page: Page | None, dependencies: list[str]) -> Written:
    """A page that lists what its project depends on."""
    if page is None:
        return _new(home, slug, slug, {"dependencies": dependencies})
    own = {} if page.values.get("id") else {"id": home.ids()}
    return _written(page, slug, {"dependencies": dependencies, **own}, page.body)


def write(change: Change, written: Written, before: Page | None, *, moved_from: str | None = None) -> None:
    """Write a page in place of the one there was, or in another folder than that one, and index it."""
    path = page_path(written.slug)
    if before is None:
        change.intend([Intent("write", path, written.text)])
    elif moved_from is None:
        change.intend([Intent("write", path, written.text, before.hash, former=before.text)])
    else:
        change.intend([Intent("write", path, written.text), _removed(moved_from, before)])
    if moved_from is not None:
        change.home.files.forget_project(moved_from)
    index_page(change.home, Project(str(written.values["id"]), written.slug, 0), written.values)


def retire_page(change: Change, slug: str, page: Page, into: str, reason: str) -> str:
    """Put the page of a project away that has become another one; returns where it lies."""
    home, path, number = change.home, f"retired/{page_path(slug)}", 1
    while home.vault.exists(path):
        number += 1
        path = f"retired/projects/{slug}/{number}/project.md"
    told = {"retired": {"at": stamp(home.now()), "reason": reason, "into": into}}
    text = join(page.text, merge(page.front, told, []), page.body)
    change.intend([Intent("write", path, text, None), _removed(slug, page)])
    home.files.forget_project(slug)
    return path


def _removed(slug: str, page: Page) -> Intent:
    return Intent("remove", page_path(slug), base=page.hash, former=page.text)


def _new(home: Home, slug: str, name: str, lists: dict[str, Any]) -> Written:
    values = {"id": home.ids(), "name": name, **{key: [] for key in LISTS}, **lists}
    return Written(slug, f"---\n{dump(values)}---\n# {name}\n", values)


def _written(page: Page, slug: str, changed: dict[str, Any], body: str) -> Written:
    text = join(page.text, merge(page.front, changed, []), body)
    return Written(slug, text, {**page.values, **changed})


def _own(key: str, old: str, values: dict[str, Any]) -> tuple[str, ...]:
    """What a list does not need of another page's: its own name, and of what it depends on the one it takes in."""
    if key == "dependencies":
        return (old,)
    return (str(values.get("name") or ""),) if key == "aliases" else ()


def _section(old: str, words: str) -> str:
    return f"\n## From {old}\n\n{words}\n"


def _trust(page: Page) -> str:
    return str(page.values.get("trust") or "")
