"""Make the vault a git repository, and see that it can take commits."""

from __future__ import annotations

from nacre.errors import RepositoryUnusable
from nacre.git.repository import Head
from nacre.home.home import Home

OWN_FILES = {
    ".gitattributes": "* -text\nledger.jsonl merge=union\n",
    ".gitignore": ".*.tmp\n.*.sw?\n.#*\n*~\n.DS_Store\nThumbs.db\n.obsidian/workspace*.json\n.trash/\n",
}
"""Bytes stay as they are, also on Windows; a plain git client merges the ledger as it is meant; no temporaries, and
nothing of which windows Obsidian has open and of its bin."""


def prepare(home: Home) -> Head:
    """Make the vault a repository where it is none, and make sure that it can take commits; returns where HEAD stands.

    Raises GitUnavailable, RepositoryUnusable.
    """
    if not home.repository.exists or not home.repository.is_whole:
        home.repository.create()
    head = fit_to_commit(home)
    for path, text in OWN_FILES.items() if head.commit is None else ():
        if not home.vault.exists(path):
            home.vault.write(path, text, base=None)
    return head


def fit_to_commit(home: Home) -> Head:
    """Where HEAD stands in a repository that can take commits. Raises GitUnavailable, RepositoryUnusable."""
    home.repository.git.version()
    home.repository.check()
    return settled_head(home)


def settled_head(home: Home) -> Head:
    """Where HEAD stands, with nothing begun. Raises RepositoryUnusable."""
    repository = home.repository
    head = repository.head()
    if head.branch is None:
        raise RepositoryUnusable(
            "the vault's repository has a detached HEAD",
            hint=f"git -C {repository.root} switch main; then nacre commits again",
        )
    begun = repository.in_progress()
    if begun:
        raise RepositoryUnusable(
            f"a {begun} is going on in the vault's repository",
            hint=f"finish or abort it: git -C {repository.root} status",
        )
    return head
