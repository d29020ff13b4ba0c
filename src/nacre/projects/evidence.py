"""What says that two projects are one, by what their pages list. That their names are alike never does."""

from __future__ import annotations

import os

from nacre.home.home import Home
from nacre.home.location import locate
from nacre.home.projects import Page
from nacre.projects.pages import facts


def evidence(home: Home, one: tuple[str, Page | None], other: tuple[str, Page | None]) -> tuple[str, ...]:
    """What speaks for two projects being one; nothing where both have remotes and none of them is the same.

    One remote that both pages list, one folder, a worktree of the other's repository, or that one page names the
    other's folder as an alias.
    """
    (slug, page), (its_slug, its_page) = one, other
    mine, its = facts(page), facts(its_page)
    remotes = sorted({*mine.get("remotes", ())} & {*its.get("remotes", ())})
    if mine.get("remotes") and its.get("remotes") and not remotes:
        return ()
    roots, its_roots = mine.get("roots", ()), its.get("roots", ())
    shared = sorted({*roots} & {*its_roots} - {str(home.settings.user_home)})
    return (
        *(f"both list the remote {remote}" for remote in remotes),
        *(f"both list the folder {root}" for root in shared),
        *_worktrees(roots, its_roots),
        *_worktrees(its_roots, roots),
        *((f"the page of {its_slug} calls it {slug}",) if slug in its.get("aliases", ()) else ()),
        *((f"the page of {slug} calls it {its_slug}",) if its_slug in mine.get("aliases", ()) else ()),
    )


def _worktrees(roots: tuple[str, ...], of: tuple[str, ...]) -> list[str]:
    """The folders that are worktrees of a repository among others."""
    found = []
    for root in roots:
        if root not in of and os.path.isfile(os.path.join(root, ".git")):
            repository = locate(root).root
            found += [f"{root} is a worktree of {repository}"] if repository in of and repository != root else []
    return found
