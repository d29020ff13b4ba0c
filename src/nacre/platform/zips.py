"""Zips that others made."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib

BROKEN = (
    OSError, EOFError, ValueError, RuntimeError, struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
    zipfile.LargeZipFile,
)  # fmt: skip
"""What reading one may raise: torn, spoiled, with a password, packed in a way that Python does not know."""
