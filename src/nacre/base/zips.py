"""Errors of zip files."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib

BROKEN = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
)
"""Errors raised for zip files that are truncated, damaged, encrypted or use an unknown compression.
"""
