"""Small files with secrets in them, read with care: bounded, regular, and with a word on who else may read them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from nacre.errors import CredentialsUnusable
from nacre.platform import private_files

_MOST_BYTES = 256_000


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file's text; ``mode`` where others than its owner may use it, else 0."""

    path: Path
    text: str
    mode: int

    @property
    def warning(self) -> str:
        """That others may read it; empty where they may not."""
        return f"{self.path} can be read by others ({self.mode:o})" if self.mode else ""


def read_small(path: Path) -> SmallFile | None:
    """A file of at most 256 KB; ``None`` where there is none. Raises CredentialsUnusable."""
    try:
        with os.fdopen(private_files.open_file(os.path.realpath(path), os.O_RDONLY), "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise CredentialsUnusable(f"{path} is too large to hold credentials", hint="look what it is")
        return SmallFile(path, data.decode("utf-8"), mode if os.name == "posix" and mode & 0o077 else 0)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise CredentialsUnusable(f"{path} is not text", hint="look what it is") from None
    except OSError as error:
        raise CredentialsUnusable(f"cannot read {path}: {error.strerror}", hint="check its permissions") from error
