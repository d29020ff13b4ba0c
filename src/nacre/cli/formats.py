"""Small pieces of every answer, for people and in JSON: dates, ids, counts, who said it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from nacre.cli.paper import Span
from nacre.platform import ids
from nacre.platform.days import day_of, shown_day, shown_minute
from nacre.text import passages
from nacre.values import codec

if TYPE_CHECKING:
    from decimal import Decimal

    from nacre.values.memory import Kind, Memory
    from nacre.values.model_calls import Tokens as CallTokens
    from nacre.values.session import Speaker, Tokens


Record = dict[str, Any]
SHORT_ID = 8
_NEAR_DAYS = 14
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_ID_CHARACTERS = 24
_UNITS = ("B", "KB", "MB", "GB", "TB")
_TINTS = {
    "fact": "blue", "decision": "green", "preference": "magenta", "todo": "yellow",
    "relationship": "cyan", "event": "blue", "lesson": "cyan",
}  # fmt: skip
_SPEAKERS = {"owner": "you", "agent": "agent", "tool": "tool", "system": "system"}

count = passages.count


def stamp(moment: datetime | None) -> str | None:
    """A time as JSON has it; ``None`` stays ``None``."""
    return codec.stamp(moment) if moment else None


def split_session(session: str | None) -> tuple[str | None, str | None]:
    """The tool and its own id of ``<tool>:<id>``."""
    if not session:
        return None, None
    tool, _, native_id = session.partition(":")
    return tool, native_id


def short_id(memory: Memory) -> str:
    """The end of a memory's id: ids made in one moment begin alike."""
    return memory.id[-SHORT_ID:]


def short_session(native_id: str) -> str:
    """The beginning of a session's id that tells it from others; UUIDv7 begin with the time."""
    match = _UUID.fullmatch(native_id)
    if match:
        return native_id[:13] if match.group(1) == "7" else native_id[:8]
    return native_id[:_ID_CHARACTERS]


def kind_span(kind: Kind) -> Span:
    """A kind in its colour."""
    return Span(kind.value, _TINTS[kind])


def place_name(memory: Memory) -> str:
    """Where a memory holds: its project, nothing where it holds everywhere, the inbox where that is not settled."""
    return "inbox" if memory.inbox else memory.project or ""


def speaker_name(speaker: Speaker, author: str | None = None) -> str:
    """Who said it, by name where there is one."""
    return author or _SPEAKERS[speaker]


def day(moment: datetime | None) -> str:
    """The day, as the person's clock has it."""
    return shown_day(moment) if moment else ""


def minute(moment: datetime | None) -> str:
    """Day and minute, as the person's clock has it."""
    return shown_minute(moment) if moment else ""


def when(moment: datetime | None) -> str:
    """How long ago, and the day; unbroken by line ends."""
    if moment is None:
        return ""
    days = (day_of(ids.utc_now()) - day_of(moment)).days
    if not 0 <= days <= _NEAR_DAYS:
        return day(moment)
    said = {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
    return f"{day(moment)} ({said})".replace(" ", "\u00a0")


def size(number: int) -> str:
    """Bytes as people read them."""
    value = float(number)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{number} B"


def seconds(value: float) -> str:
    """A duration as people read it."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def duration(span: timedelta) -> str:
    """How long something took, as people read it: ``40 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``."""
    total = int(span.total_seconds())
    if total < 60:
        return f"{total} s"
    minutes, hours = total // 60 % 60, total // 3600
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def amount(number: int) -> str:
    """A large number in few signs: ``950``, ``12 k``, ``1.2 M``."""
    if number < 1000:
        return str(number)
    value, unit = (number / 1000, "k") if number < 999_500 else (number / 1_000_000, "M")
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


def tokens_told(tokens: Tokens) -> str:
    """What models read and wrote."""
    cached = f" ({amount(tokens.cached)} of it cached)" if tokens.cached else ""
    return f"{amount(tokens.input + tokens.cached)} read{cached}, {amount(tokens.output)} written"


def says_the_same(quote: str, content: str) -> bool:
    """Whether a quotation adds nothing to the content it stands beside."""
    quoted, known = passages.normalise(quote.strip("…")), passages.normalise(content)
    return bool(quoted) and (quoted in known or (known in quoted and len(quoted) < 1.3 * len(known)))


def tokens_record(tokens: CallTokens) -> Record:
    """Tokens of calls; ``input`` is without those from and to a cache."""
    return {
        "input": tokens.input, "output": tokens.output, "cached": tokens.cached, "written": tokens.written,
    }  # fmt: skip


def float_or_none(cost: Decimal | None) -> float | None:
    """A cost as JSON has it, in US dollars."""
    return None if cost is None else float(cost)
