"""The data that the benchmarks bring along, and files of the same shape."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from nacre.errors import NotFound, QueryInvalid

DATA = Path(__file__).parent / "data"

D = TypeVar("D")


def load_cases(file: Path | None, name: str, type_: type[D]) -> D:
    """The cases in a JSON file, by default those of ``data/NAME.json``. Raises NotFound, QueryInvalid."""
    try:
        return msgspec.json.decode((file or DATA / f"{name}.json").read_bytes(), type=type_)
    except FileNotFoundError as error:
        raise NotFound(f"there is no {file}") from error
    except msgspec.DecodeError as error:
        raise QueryInvalid(f"{file or 'the data'} is no data of this benchmark: {error}") from error
