"""Foreign values as nacre keeps them: ids that are the same at every import, dates, kinds, tags."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.platform import json_text
from nacre.platform.days import parsed
from nacre.platform.ids import content_hash, from_ms, to_millisecond
from nacre.portability.sources.tree import MOST_EXPORT_BYTES, Tree
from nacre.text.passages import one_line, title_of
from nacre.values.memory import Confidence, Kind, Memory, Source
from nacre.values.session import Speaker
from nacre.vault.document import MANAGED
from nacre.vault.front_matter import load, split
from nacre.vault.layout import slugify

ORIGIN = "imported"
"""The front-matter key that says where a memory came from: ``{from, id, hash}``."""

_TAG_CHARACTERS = 60
_ISO = re.compile(r"^\d{4}-\d\d-\d\d")


def imported_id(source: str, key: str, stated: datetime | None) -> str:
    """A UUIDv7 that depends on nothing but the source, its own id and the date it states.

    So a second import, also on another machine, finds the same memory. Without a stated date the time is 0.
    """
    digest = int.from_bytes(hashlib.blake2b(f"{source}\0{key}".encode("utf-8", "replace"), digest_size=16).digest())
    millisecond = max(0, int(stated.timestamp() * 1000)) & 0xFFFF_FFFF_FFFF if stated else 0
    value = millisecond << 80 | 0x7 << 76 | (digest >> 64 & 0xFFF) << 64 | 0b10 << 62 | digest & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def words_hash(content: str) -> str:
    """What tells whether the words of an imported memory were changed since."""
    return content_hash(content.strip()).hex()


def shape(
    source: str, key: str, content: str, *, modified: datetime, subject: str | None = None, kind: Kind = Kind.FACT,
    stated: datetime | None = None, file: str | None = None, extra: Mapping[str, Any] | None = None, **more: Any,
) -> Memory:  # fmt: skip
    """A memory from a source's words. ``stated`` is the date the source gives, ``modified`` stands in for it.

    Other memories are written by agents: the speaker is the agent unless ``more`` says otherwise. Keys of ``extra``
    that mean something here are left out: no file says of itself that it is trusted.
    """
    content = content.strip()
    created = to_millisecond(stated or modified)
    origin = {"from": source, "id": key, "hash": words_hash(content)}
    kept = {key: value for key, value in (extra or {}).items() if key not in MANAGED}
    values: dict[str, Any] = {"updated": created, "speaker": Speaker.AGENT, "confidence": Confidence.EXTRACTED, **more}
    return Memory(
        id=imported_id(source, key, stated), kind=kind, subject=one_line(subject or "") or title_of(content),
        content=content, created=created, source=Source(file=file), extra={**kept, ORIGIN: origin}, **values,
    )  # fmt: skip


def front_of(tree: Tree, name: str) -> tuple[dict[str, Any], str]:
    """A file's front matter as text, lists and mappings, and its body, without secrets.

    Broken front matter raises MemoryInvalid.
    """
    front, body = split(tree.text(name) or "")
    return cleaned(load(front) if front else {}, tree.clean), tree.clean(body).strip()


def readable_front(tree: Tree, name: str) -> dict[str, Any]:
    """A file's front matter; nothing where it is broken."""
    try:
        return front_of(tree, name)[0]
    except MemoryInvalid:
        return {}


def json_of(tree: Tree, name: str) -> Any:
    """What a file of JSON holds, without secrets; ``None`` when it is none, or too large."""
    try:
        return cleaned(json_text.parse(tree.text(name, MOST_EXPORT_BYTES) or "null"), tree.clean)
    except ValueError:
        return None


def cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """JSON values without secrets in any of their texts, and without half characters, which no file can hold."""
    if isinstance(value, str):
        return clean(value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8"))
    if isinstance(value, dict):
        return {cleaned(str(key), clean): cleaned(item, clean) for key, item in value.items()}
    return [cleaned(item, clean) for item in value] if isinstance(value, list) else value


def moment(value: object) -> datetime | None:
    """A date as another system writes it; ``None`` when it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return from_ms(round(value if value > 100_000_000_000 else value * 1000))
        except (OverflowError, ValueError):
            return None
    if not isinstance(value, str) or not _ISO.match(value.strip()):
        return None
    return parsed(value.strip())


def modified_of(path: Path) -> datetime:
    """When a file was last written: the date of what states none."""
    return datetime.fromtimestamp(path.stat().st_mtime_ns // 1_000_000 / 1000, UTC)


def listed(value: object) -> list[Any]:
    """A list, also one that is kept as the text of a JSON list; empty where it is neither."""
    if isinstance(value, str):
        try:
            value = json_text.parse(value)
        except ValueError:
            return []
    return value if isinstance(value, list) else []


def named(value: object) -> dict[str, Any]:
    """A mapping, also one that is kept as the text of a JSON object; empty where it is neither."""
    if isinstance(value, str):
        try:
            value = json_text.parse(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def text_of(values: Mapping[str, Any], *names: str) -> str | None:
    """The first of several keys that holds words."""
    found = (values.get(name) for name in names)
    return next((value.strip() for value in found if isinstance(value, str) and value.strip()), None)


def tags_of(value: object, *more: str) -> tuple[str, ...]:
    """Tags from a list, or from words with commas between; each once."""
    listed: Iterable[object] = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    found = (one_line(str(tag)).strip("#[]'\" ")[:_TAG_CHARACTERS] for tag in (*listed, *more))
    return tuple(dict.fromkeys(tag for tag in found if tag))


def is_true(value: object) -> bool:
    """Whether a flag is set, as text or as a number."""
    return str(value).strip().lower() in ("true", "yes", "1")


def project_of(name: str | None) -> str | None:
    """A project's slug from what another system calls it."""
    return (slugify(name) or None) if name else None


def between(value: object, least: float, most: float, default: float) -> float:
    """A number within bounds; the default where it is none."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return default
    return min(most, max(least, number)) if number == number else default
