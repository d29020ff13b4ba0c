"""Several files in one input: what a source of an import wrote, as a folder, a zip, or one file on its own.

The first line says which; then each file, after a line ``%%% name``. Any bytes are such a bundle.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from nacre.data.importers import safe_name

FORMS = (b"folder", b"zip", b"file")

_FILE = b"%%% "
_LONGEST_NAME = 80


def files_of(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The form of a bundle, and its files by name."""
    form, _, rest = data.partition(b"\n")
    files: dict[str, bytes] = {}
    for part in (b"\n" + rest).split(b"\n" + _FILE)[1:]:
        name, _, content = part.partition(b"\n")
        files[name.decode("utf-8", errors="replace")] = content
    return (form if form in FORMS else FORMS[0]), files or {"notes.md": data}


def bundle(form: bytes, files: Mapping[str, bytes]) -> bytes:
    """The other way round: one input out of several files."""
    return form + b"".join(
        b"\n" + _FILE + name.encode() + b"\n" + content for name, content in files.items()
    )


def unpack(data: bytes, folder: Path) -> Path:
    """Write what a bundle holds below a folder; returns what is to be imported."""
    form, files = files_of(data)
    if form == b"zip":
        with zipfile.ZipFile(folder / "export.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(name.replace("\0", "_") or "_", content)
        return folder / "export.zip"
    root = folder / "export"
    root.mkdir()
    written = [path for name, content in files.items() if (path := _write(root, name, content))]
    return written[0] if form == b"file" and written else root


def _write(root: Path, name: str, content: bytes) -> Path | None:
    path = root / name
    if not safe_name(name) or max(map(len, path.parts)) > _LONGEST_NAME or path.is_dir():
        return None
    if any(parent.is_file() for parent in path.parents):
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
