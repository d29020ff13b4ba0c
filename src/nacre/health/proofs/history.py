"""The history: whether git finds its repository whole."""

from __future__ import annotations

from nacre.errors import GitUnavailable
from nacre.health.proofs.finding import FAILURE, WARNING, Finding, Proof
from nacre.home.home import Home

_MOST = 10


def prove_git(home: Home) -> Proof:
    """Git finds every object of the vault's repository."""
    repository = home.repository
    if not repository.exists:
        return Proof("git", "no repository")
    if not repository.is_whole:
        told = f"{repository.git.git_dir} is no whole repository: its making was cut short"
        return Proof("git", "not begun", [Finding(WARNING, told, "nacre commit makes it anew")])
    try:
        damage = repository.damage()
    except GitUnavailable as error:
        return Proof("git", "not looked at", [Finding(WARNING, error.message, error.hint or "git --version")])
    if not damage:
        return Proof("git", "every object is there")
    repair = f"fetch what is missing from a clone or a backup, then: git -C {repository.root} fsck"
    return Proof("git", "damaged", [Finding(FAILURE, f"git: {line}", repair) for line in damage[:_MOST]])
