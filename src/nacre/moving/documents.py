"""Documents go from one vault to another, byte for byte."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from nacre.errors import EditConflict
from nacre.platform.ids import bytes_hash
from nacre.vault.files import Vault
from nacre.vault.layout import LEDGER


@dataclass(frozen=True, slots=True)
class Documents:
    """What a vault holds: how many documents, their bytes, the lines of the ledger, and one hash over all of it."""

    count: int
    bytes: int
    ledger_lines: int
    hash: str


def documents_of(vault: Vault) -> Documents:
    """Count and hash what a vault holds: paths and bytes, in the order of the paths, then the ledger."""
    digest, count, size = sha256(), 0, 0
    for path, data in _read(vault):
        digest.update(f"{path}\0{len(data)}\0".encode())
        digest.update(data)
        count, size = count + 1, size + len(data)
    lines = _ledger(vault)
    for line in lines:
        digest.update(line + b"\n")
    return Documents(count, size, len(lines), digest.hexdigest())


def carry_documents(source: Vault, target: Vault, keep: Callable[[str, bytes], object]) -> int:
    """Write what the target has not, or has otherwise, and remove what the source has not; returns how many.

    ``keep`` is given each document before it goes or becomes another. Raises EditConflict where somebody else writes to
    the target meanwhile.
    """
    written, kept = 0, set()
    for path, data in _read(source):
        kept.add(path)
        present = _present(target, path)
        if present != data:
            if present is not None:
                keep(path, present)
            target.write_bytes(path, data, base=None if present is None else bytes_hash(present))
            written += 1
    for path in set(target.paths()) - kept:
        keep(path, _present(target, path) or b"")
        target.remove(path)
        written += 1
    return written + _carry_ledger(source, target)


def _carry_ledger(source: Vault, target: Vault) -> int:
    """Append the lines that the target has not. One that it alone has means that it is another memory's."""
    lines, present = _ledger(source), _ledger(target)
    if not set(present) <= set(lines):
        raise EditConflict(
            f"{target.root}/{LEDGER} tells of what never happened in the memory that is carried there",
            hint="carry it to an empty home, or to another tenant",
        )
    missing = [line for line in lines if line not in set(present)]
    if missing:
        target.append(LEDGER, [line.decode("utf-8", "replace") for line in missing])
    return len(missing)


def _read(vault: Vault) -> Iterator[tuple[str, bytes]]:
    for path in vault.paths():
        data = _present(vault, path)
        if data is not None:
            yield path, data


def _present(vault: Vault, path: str) -> bytes | None:
    with contextlib.suppress(FileNotFoundError):
        return vault.read(path, whole=True)
    return None


def _ledger(vault: Vault) -> list[bytes]:
    return (_present(vault, LEDGER) or b"").splitlines()
