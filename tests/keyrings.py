"""Keyrings for tests: one that keeps passwords in memory, and some that fail in the ways that real ones do."""

from __future__ import annotations

from threading import Event

from keyring.backend import KeyringBackend


class MemoryKeyring(KeyringBackend):
    """Keeps passwords as long as the process lives."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class ForgetfulKeyring(MemoryKeyring):
    """Takes passwords, and keeps none."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Nothing."""


class LockedKeyring(MemoryKeyring):
    """Waits for somebody to unlock it, who never comes."""

    def get_password(self, service: str, username: str) -> str | None:
        Event().wait()
        return None


class TalkativeKeyring(MemoryKeyring):
    """Raises errors that quote the password."""

    def set_password(self, service: str, username: str, password: str) -> None:
        raise RuntimeError(f"cannot store {password}")
