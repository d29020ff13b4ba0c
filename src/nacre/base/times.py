"""Local days, formatting of times, and dates in natural language."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta
from functools import cache

from nacre.base.frozen import frozen
from nacre.errors import InvalidQueryError

UNKNOWN = "unknown"
_DAY_LENGTH = len("2026-11-20")
UNKNOWN_TIME = datetime.fromtimestamp(0, UTC)


def day_interval(day: date) -> tuple[datetime, datetime]:
    """Return the start and the excluded end of a local day, in UTC.

    Raises OverflowError outside the years 1 to 9999.
    """
    start, end = (datetime.combine(date, time()) for date in (day, day + timedelta(days=1)))
    return in_utc(start), in_utc(end)


def day_of(moment: datetime) -> date:
    """Return the local day of a time."""
    return (localised(moment) or moment).date()


def in_utc(moment: datetime) -> datetime:
    """Convert a time to UTC. A time without a zone is local.

    Raises OverflowError outside the years 1 to 9999.
    """
    return moment.astimezone(UTC)


def parsed(text: str) -> datetime | None:
    """Parse an ISO 8601 time, and return it in UTC, or ``None`` if it is invalid.

    A time without a zone is in UTC. A date alone means local midnight.
    """
    try:
        moment = datetime.fromisoformat(text)
        if not is_known(moment):
            return None
        return in_utc(
            moment.replace(tzinfo=UTC)
            if moment.tzinfo is None and len(text) > _DAY_LENGTH
            else moment
        )
    except (OverflowError, ValueError):
        return None


def localised(moment: datetime) -> datetime | None:
    """Convert a time to the local zone, or to ``None`` if it is unknown or out of range."""
    try:
        return moment.astimezone() if is_known(moment) else None
    except (
        OverflowError,
        OSError,
        ValueError,
    ):  # the system cannot convert this time to local time
        return None


def is_known(moment: datetime) -> bool:
    """Return False for 1970-01-01 and the years 1 and 9999, which mark unknown times."""
    return MINYEAR < moment.year < MAXYEAR and moment != UNKNOWN_TIME


def shown(moment: date, form: str) -> str:
    """Format a day, or a time converted to the local zone."""
    local = localised(moment) if isinstance(moment, datetime) else moment
    return local.strftime(form) if local else UNKNOWN


def shown_day(moment: date) -> str:
    """Format a day, or a time's local day, as ``2025-12-31``."""
    return shown(moment, "%Y-%m-%d")


def shown_minute(moment: datetime) -> str:
    """Format a time in the local zone, with minutes."""
    return shown(moment, "%Y-%m-%d %H:%M")


# -- Dates in natural language ---------------------------------------------------------------------
# "last week", "in March", "since monday", "2w" or "昨天" becomes a window in UTC, based on local
# days. A date without a year is the latest one that is not in the future. After "by", "before" or
# "until", it can also be the next one.


_DAY = timedelta(days=1)
_UNITS = {
    "h": timedelta(hours=1),
    "hour": timedelta(hours=1),
    "d": _DAY,
    "day": _DAY,
    "w": 7 * _DAY,
    "week": 7 * _DAY,
    "m": 30 * _DAY,
    "month": 30 * _DAY,
    "y": 365 * _DAY,
    "year": 365 * _DAY,
    "小时": timedelta(hours=1),
    "天": _DAY,
    "周": 7 * _DAY,
    "星期": 7 * _DAY,
    "月": 30 * _DAY,
    "年": 365 * _DAY,
}
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday mon",
            "tuesday tue",
            "wednesday wed",
            "thursday thu",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
_NUMBERS = {
    word: at
    for at, word in enumerate("zero one two three four five six seven eight nine ten".split())
} | {
    "a": 1,
    "an": 1,
    "couple": 2,
    "few": 3,
}
_CHINESE_NUMBERS = {word: at for at, word in enumerate("一二三四五六七八九", start=1)} | {
    "两": 2,
    "几": 3,
}
_CHINESE_MONTHS = {
    name: at
    for at, name in enumerate(
        "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月".split(), start=1
    )
}

_MONTH = "|".join(
    sorted((name for name in _MONTHS if name not in ("may", "mar", "sun")), key=len, reverse=True)
)
_WEEKDAY = "|".join(sorted(_WEEKDAYS, key=len, reverse=True))
_BETWEEN = r"\b(?:between|from)\s+(.{3,24}?)\s+(?:and|to|until|till)\s+(\w.{2,24}?)(?=$|[?.,;!]|\s+[a-z]{3,}\b)"
_COUNT = r"\d+|" + "|".join(_NUMBERS)
_CHINESE_COUNT = (
    r"(?<!\d)\d{1,3}|[一二三四五六七八九]?十[一二三四五六七八九几]?|[一两二三四五六七八九几]{1,2}"
)
_THIRD_OF_MONTH = {
    "early": 0,
    "beginning of": 0,
    "start of": 0,
    "mid": 1,
    "middle of": 1,
    "late": 2,
    "end of": 2,
    "初": 0,
    "上旬": 0,
    "中": 1,
    "中旬": 1,
    "底": 2,
    "末": 2,
    "下旬": 2,
}
_STEPS = {"this": 0, "last": 1, "这": 0, "本": 0, "上": 1, "上上": 2, "今": 0, "去": 1}
_BEGINNINGS = ("since", "after", "以来", "之后", "以后")
_DEADLINES = ("before", "until", "by", "之前", "以前")
_DAYS_BACK = {
    "today": 0,
    "yesterday": 1,
    "day before yesterday": 2,
    "今天": 0,
    "昨天": 1,
    "前天": 2,
    "大前天": 3,
}


@frozen
class Window:
    """A period that a text describes, which may be open at one end."""

    since: datetime | None
    until: datetime | None
    words: str


def parse_moment(text: str, now: datetime) -> datetime:
    """Convert a user's time, such as ``3d``, ``yesterday``, ``march`` or ISO 8601, to UTC. Raises
    InvalidQueryError.
    """
    cleaned = text.strip().lower()
    relative = re.fullmatch(r"(\d+)\s*([hdwmy])", cleaned)
    try:
        if relative:
            return now - int(relative[1]) * _UNITS[relative[2]]
        return in_utc(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        pass
    for expression in (cleaned, f"on {cleaned}", f"in {cleaned}"):
        window = find_window(expression, now)
        if window and window.since and window.words.strip() == expression:
            return window.since
    raise InvalidQueryError(
        f"{text!r} is not a date", hint="write 2026-11-20, 3d, 2w, yesterday, last week or march"
    )


def find_window(query: str, now: datetime) -> Window | None:
    """Return the period, in UTC, that the first time expression in a question means."""
    local = localised(now)
    window = _find(query.lower(), local.replace(tzinfo=None)) if local else None
    if window is None:
        return None
    try:
        since, until = (in_utc(end) if end else None for end in (window.since, window.until))
    except (OverflowError, ValueError):  # outside the calendar
        return None
    return Window(since, until, window.words)


def _find(text: str, now: datetime) -> Window | None:
    between = _search(_BETWEEN, "between from", text)
    span = _span(between, now) if between else None
    if span:
        return span
    for pattern, required_words, reader in _PATTERNS:
        match = _search(pattern, required_words, text)
        with suppress(ValueError, OverflowError):  # a time outside the calendar
            if match and (window := reader(match, now)):
                return window
    return None


def _search(pattern: str, required_words: str, text: str) -> re.Match[str] | None:
    has_word = any(word in text for word in required_words.split())
    return _compile(pattern).search(text) if has_word else None


_compile = cache(re.compile)


def _span(match: re.Match[str], now: datetime) -> Window | None:
    first, second = match.groups()
    year = re.search(r"\b(?:19|20)\d\d\b", second)
    if year and not re.search(r"\d{4}", first):
        first = f"{first} {year[0]}"
    begin, end = _find(f"on {first}", now), _find(f"on {second}", now)
    if begin and end and begin.since and end.since and begin.since >= end.since:
        begin = _find(f"on {first}", end.since)
    if begin and end and begin.since and end.until and begin.since < end.until:
        return Window(begin.since, end.until, match[0])
    return None


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _local(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime.combine(date(year, month, day), time())


def _month(year: int, month: int) -> tuple[datetime, datetime]:
    return _local(year, month), _local(year + month // 12, month % 12 + 1)


def _named_month(name: str) -> int:
    return _MONTHS.get(name) or _CHINESE_MONTHS.get(name) or int(name.rstrip("月"))


def _yearly(
    match: re.Match[str], now: datetime, span: Callable[[int], tuple[datetime, datetime]]
) -> Window:
    side, year = match.groupdict().get("side"), match.groupdict().get("year")
    if year:
        return _side(match, *span(int(year)))
    spans = []
    for number in range(now.year - 8, now.year + 9):  # February 29 can be missing for eight years
        with suppress(ValueError):
            spans.append(span(number))
    previous, following = (
        max(candidate for candidate in spans if candidate[0] <= now),
        min(candidate for candidate in spans if candidate[0] > now),
    )
    ahead = following[0] - now
    if side in _DEADLINES:
        return _side(match, *(following if ahead <= now - previous[0] else previous))
    is_near = ahead <= 31 * _DAY and following[1] - following[0] < 28 * _DAY
    return _side(match, *(following if is_near and side not in _BEGINNINGS else previous))


def _calendar_week(match: re.Match[str], now: datetime, steps: int) -> Window:
    monday = _midnight(now) - (now.weekday() + 7 * steps) * _DAY
    return _side(match, monday, monday + 7 * _DAY)


def _unit(match: re.Match[str], now: datetime) -> Window:
    steps, unit = _STEPS[match["which"]], match["unit"]
    today = _midnight(now)
    if unit in ("week", "周", "星期"):
        return _calendar_week(match, now, steps)
    if unit in ("month", "月"):
        months = 12 * today.year + today.month - 1 - steps
        return _side(match, *_month(months // 12, months % 12 + 1))
    year = today.year - steps
    return _side(match, _local(year), _local(year + 1))


def _weekday_of_week(match: re.Match[str], now: datetime) -> Window:
    today = _midnight(now)
    ahead = "一二三四五六日".index(match["weekday"].replace("天", "日"))
    return _day(match, today - (today.weekday() + 7 * _STEPS[match["which"]] - ahead) * _DAY)


def _numbers(text: str) -> tuple[int, int]:
    """Return the lowest and highest number that a word such as "3", "few" or "两三" can mean."""
    if "十" in text:
        tens, _, ones = text.partition("十")
        numbers = [10 * _CHINESE_NUMBERS.get(tens, 1) + _CHINESE_NUMBERS.get(ones, 0)]
    elif text in _NUMBERS or text.isdecimal():
        numbers = [_NUMBERS[text] if text in _NUMBERS else int(text)]
    else:
        numbers = [_CHINESE_NUMBERS[digit] for digit in text]
    return min(numbers), max(numbers)


def _past(match: re.Match[str], now: datetime) -> Window | None:
    count, _ = _numbers(match["count"] or "1")
    since = now - count * _UNITS[match["unit"].removeprefix("个")]
    return _side(match, since, now + _DAY) if count else None


def _ago(match: re.Match[str], now: datetime) -> Window | None:
    least, most = _numbers(match["count"])
    unit = _UNITS[match["unit"].removeprefix("个")]
    since, until = now - most * unit - unit / 2, now - least * unit + unit / 2
    return _side(match, _midnight(since), _midnight(until) + _DAY) if least else None


def _relative_day(match: re.Match[str], now: datetime) -> Window:
    return _day(match, _midnight(now) - _DAYS_BACK[match["day"]] * _DAY)


def _day(match: re.Match[str], since: datetime) -> Window:
    return _side(match, since, since + _DAY)


def _side(match: re.Match[str], since: datetime, until: datetime) -> Window:
    match match.groupdict().get("side"):
        case "since" | "以来":
            return Window(since, None, match[0])
        case "after" | "之后" | "以后":
            return Window(until, None, match[0])
        case side if side in _DEADLINES:
            return Window(None, since, match[0])
        case _:
            return Window(since, until, match[0])


def _month_day(match: re.Match[str], now: datetime) -> Window:
    day, month = match.groupdict().get("day"), _named_month(match["month"])

    def span(year: int) -> tuple[datetime, datetime]:
        since = _local(year, month, int(day or 1))
        return (since, since + _DAY) if day else _month(year, month)

    return _yearly(match, now, span)


def _on_weekday(match: re.Match[str], now: datetime) -> Window:
    ahead = (_WEEKDAYS[match["weekday"]] - now.weekday()) % 7
    since = _midnight(now) + (ahead or 7) * _DAY
    if match["side"] not in _DEADLINES or "last" in match[0].split():
        since -= 7 * _DAY if ahead else 14 * _DAY
    return _day(match, since)


def _quarter(match: re.Match[str], now: datetime) -> Window:
    number, wording = match["number"], match.groupdict().get("which")

    def span(year: int, quarter: int) -> tuple[datetime, datetime]:
        return _month(year, 3 * quarter + 1)[0], _month(year, 3 * quarter + 3)[1]

    if number:
        quarter = "一二三四".find(number) if number in "一二三四" else int(number) - 1
        return _yearly(match, now, lambda year: span(year, quarter))
    return _side(
        match, *span(*divmod(4 * now.year + (now.month - 1) // 3 - _STEPS[wording or "this"], 4))
    )


def _weekend(match: re.Match[str], now: datetime) -> Window:
    saturday = _midnight(now) - ((now.weekday() - 5) % 7) * _DAY
    if match["which"] == "last":
        saturday -= 7 * _DAY if now.weekday() >= 5 else timedelta()
    elif match["side"] in _DEADLINES:
        saturday += 7 * _DAY
    return _side(match, saturday, saturday + 2 * _DAY)


def _part_of_month(match: re.Match[str], now: datetime) -> Window:
    month, third = _named_month(match["month"]), _THIRD_OF_MONTH[match["third"]]

    def span(year: int) -> tuple[datetime, datetime]:
        since, until = _month(year, month)
        begin = since + 10 * third * _DAY
        return begin, until if third == 2 else begin + 10 * _DAY

    return _yearly(match, now, span)


def _fixed_span(match: re.Match[str], now: datetime) -> Window:
    days = 14 if "fortnight" in match[0] else 182
    return _side(
        match,
        _midnight(now) - (days + days // 4) * _DAY,
        _midnight(now) - (days - days // 4) * _DAY,
    )


_Reader = Callable[[re.Match[str], datetime], Window | None]
_SIDE = r"\b(?:(?P<side>since|after|before|until|by)\s+)?"
_CHINESE_SIDE = "(?P<side>以来|之后|以后|之前|以前)?"
_OTHER_WORDS = "个起直些共样定次下气志程"
"""Characters before which a numeral is not a weekday, as in 上周三个人."""
_NAMED_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_PATTERNS: tuple[tuple[str, str, _Reader], ...] = (
    (
        rf"{_SIDE}(?:on\s+)?(?P<date>\d{{4}}-\d\d-\d\d)\b",
        "-",
        lambda match, _: _day(match, datetime.fromisoformat(match["date"])),
    ),
    (
        rf"{_SIDE}(?:in\s+)?\b(?P<year>20\d\d)-(?P<number>0[1-9]|1[0-2])\b(?!-)",
        "-",
        lambda match, _: _side(match, *_month(int(match["year"]), int(match["number"]))),
    ),
    (
        rf"{_SIDE}(?:in\s+|at\s+)?(?:the\s+)?(?P<third>early|mid|late|beginning of|start of|middle of|end of)[\s-]+"
        rf"(?P<month>{_MONTH}|may)\b(?:,?\s+(?P<year>(?:19|20)\d\d))?",
        _NAMED_MONTHS,
        _part_of_month,
    ),
    (
        rf"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>1[0-2]|[1-9])月(?P<day>\d{{1,2}})[日号]{_CHINESE_SIDE}",
        "月",
        _month_day,
    ),
    (
        rf"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>十[一二]?月|[一二三四五六七八九]月|1[0-2]月|[1-9]月)"
        rf"(?P<third>初|上旬|中旬|底|末|下旬){_CHINESE_SIDE}",
        "月",
        _part_of_month,
    ),
    (
        rf"{_SIDE}(?:(?:on|in|around)\s+)?(?P<month>{_MONTH}|may|mar)\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s*%)"
        rf"(?:,?\s+(?P<year>(?:19|20)\d\d))?",
        _NAMED_MONTHS,
        _month_day,
    ),
    (
        rf"{_SIDE}(?:on\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH}|may)\b"
        rf"(?:,?\s+(?P<year>(?:19|20)\d\d))?",
        _NAMED_MONTHS,
        _month_day,
    ),
    (
        rf"\b(?P<side>since|after|before|until|by|in|during|around|of)\s+(?P<day>)(?P<month>{_MONTH}|may)\b"
        rf"(?:,?\s+(?P<year>(?:19|20)\d\d))?",
        _NAMED_MONTHS,
        _month_day,
    ),
    (
        rf"(?P<side>\b)(?P<day>)\b(?P<month>{_MONTH}|may),?\s+(?P<year>(?:19|20)\d\d)\b",
        _NAMED_MONTHS,
        _month_day,
    ),
    (
        r"\b(?P<side>since|after|before|until|by|in|during|of)\s+q(?P<number>[1-4])\b"
        r"(?:,?\s*(?:of\s+)?(?P<year>20\d\d))?",
        "q1 q2 q3 q4",
        _quarter,
    ),
    (r"\bq(?P<number>[1-4])(?P<side>),?\s+(?:of\s+)?(?P<year>20\d\d)\b", "q1 q2 q3 q4", _quarter),
    (rf"{_SIDE}(?:the\s+)?(?P<which>last|this)\s+quarter\b(?P<number>)", "quarter", _quarter),
    (rf"(?:(?P<year>20\d\d)年)?第(?P<number>[一二三四1-4])季度{_CHINESE_SIDE}", "季度", _quarter),
    (rf"(?P<which>上|这|本)个?季度(?P<number>){_CHINESE_SIDE}", "季度", _quarter),
    (rf"{_SIDE}(?:on\s+|over\s+)?(?:the|(?P<which>last|this))\s+weekend\b", "weekend", _weekend),
    (
        rf"{_SIDE}(?:the\s+)?week\s+before\s+last\b",
        "last",
        lambda match, now: _calendar_week(match, now, 2),
    ),
    (
        r"(?P<part>\b(?:this morning|this afternoon|tonight|last night)\b|今早|今晚|昨晚)",
        "morning afternoon night 今 昨",
        lambda match, now: _day(
            match, _midnight(now) - (match["part"] in ("last night", "昨晚")) * _DAY
        ),
    ),
    (
        r"(?:最近|过去|近|前)(?:的)?(?P<count>\d{1,3}|[一两二三四五六七八九几])(?P<unit>个?小时|天|周|个?星期|个月|年)"
        r"(?![前之])",
        "近 过去 前",
        _past,
    ),
    (rf"{_SIDE}(?:a\s+fortnight|half\s+a\s+year)\s+ago\b", "ago", _fixed_span),
    (rf"{_SIDE}(?:the\s+)?(?P<which>last|this)\s+(?P<unit>week|month|year)\b", "last this", _unit),
    (
        rf"(?P<which>上{{1,2}}|这|本)个?(?:周|星期)(?P<weekday>[一二三四五六日天])(?![{_OTHER_WORDS}]){_CHINESE_SIDE}",
        "周 星期",
        _weekday_of_week,
    ),
    (rf"(?P<which>上{{1,2}}|这|本)个?(?P<unit>周|星期|月){_CHINESE_SIDE}", "上 这 本", _unit),
    (rf"(?P<which>去|今)(?P<unit>年){_CHINESE_SIDE}", "年", _unit),
    (
        rf"{_SIDE}(?:the\s+)?(?:last|past|previous|recent)\s+(?:(?P<count>{_COUNT})\s+)?"
        r"(?P<unit>hour|day|week|month|year)s?\b",
        "last past previous recent",
        _past,
    ),
    (
        rf"{_SIDE}\b(?P<count>{_COUNT})(?:\s+of)?\s+(?P<unit>hour|day|week|month|year)s?\s+ago\b",
        "ago",
        _ago,
    ),
    (
        rf"(?P<count>{_CHINESE_COUNT})(?P<unit>个?小时|天|周|个?星期|个月|年)(?:以|之)?前",
        "前",
        _ago,
    ),
    (
        rf"{_SIDE}(?:the\s+)?(?P<day>today|day before yesterday|yesterday)\b",
        "today yesterday",
        _relative_day,
    ),
    (rf"(?P<day>今天|昨天|大前天|(?<![目以之])前天){_CHINESE_SIDE}", "天", _relative_day),
    (
        rf"\b(?P<side>since|after|before|until|by|on|last)\s+(?:last\s+)?(?P<weekday>{_WEEKDAY})\b",
        "mon tue wed thu fri sat sun",
        _on_weekday,
    ),
    (
        r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>(?:十[一二]?|[一二三四五六七八九]|1[0-2]|[1-9])月)(?!\d)"
        rf"{_CHINESE_SIDE}",
        "月",
        _month_day,
    ),
    (
        r"\b(?P<side>since|after|before|until|in|during)\s+(?P<year>20\d\d)\b",
        "20",
        lambda match, _: _side(match, _local(int(match["year"])), _local(int(match["year"]) + 1)),
    ),
)
"""Patterns, each with words of which a match contains one, and with a function that parses it."""
