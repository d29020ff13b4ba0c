"""Bundled data for the benchmarks, and files in the same format."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from nacre.errors import InvalidQueryError, NotFoundError

DATA = Path(__file__).parent / "data"

D = TypeVar("D")


def load_cases(file: Path | None, name: str, type_: type[D]) -> D:
    """Read the cases in a JSON file, by default ``data/NAME.json``. Raises NotFoundError, InvalidQueryError."""
    try:
        return msgspec.json.decode((file or DATA / f"{name}.json").read_bytes(), type=type_)
    except FileNotFoundError as error:
        raise NotFoundError(f"{file} does not exist") from error
    except msgspec.DecodeError as error:
        raise InvalidQueryError(
            f"{file or 'the data'} is not in the format of this benchmark: {error}"
        ) from error
