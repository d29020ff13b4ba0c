"""Charts drawn as SVG: stacked bars and areas over steps, and a calendar.

Colours are classes: ``s0`` … for series, ``h0`` … ``h4`` for how much there is on a day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from nacre.reporting import svg
from nacre.reporting.values import Series

WIDTH = 960
COLOURS = 8
_HEIGHT = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 6, 14, 26
_WIDEST = 64.0
_LINES = 4
_MOST_LABELS = 12
_CELL, _GAP = 13, 3
_CALENDAR_LEFT, _CALENDAR_TOP = 34, 18
_WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "")

Coloured = Sequence[tuple[str, Series]]
"""Series with their classes."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the values of some steps are drawn: from 0 to ``most``."""

    steps: int
    most: int

    @property
    def wide(self) -> float:
        """How wide a step is."""
        return (WIDTH - _LEFT - _RIGHT) / max(1, self.steps)

    def x(self, step: float) -> float:
        """Where a step begins."""
        return _LEFT + self.wide * step

    def y(self, value: float) -> float:
        """Where a value is."""
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / self.most


def colour(at: int) -> str:
    """The class of a series; those after the seventh share one."""
    return f"s{min(at, COLOURS - 1)}"


def number(value: float) -> str:
    """A number as an axis shows it: 1,200, 12k, 3.4M."""
    for least, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= least:
            return f"{value / (1000 if sign == 'k' else least):.1f}".removesuffix(".0") + sign
    return f"{value:,.0f}"


def stacked_bars(title: str, labels: Sequence[str], series: Coloured, names: Sequence[str]) -> str:
    """A bar for each step, made of what each series has there; ``names`` are those of the steps, in full."""
    frame = _frame(series, len(labels))
    wide = min(_WIDEST, frame.wide - min(2.0, frame.wide * 0.2))
    bars = []
    for at, name in enumerate(names):
        base = 0
        for class_, one in series:
            if value := one.values[at]:
                top, height = frame.y(base + value), frame.y(base) - frame.y(base + value)
                told = f"{name}: {one.name} {value:,}"
                bars.append(svg.rectangle(frame.x(at + 0.5) - wide / 2, top, wide, height, class_, told))
                base += value
    return svg.drawing(title, WIDTH, _HEIGHT, *_axes(frame, labels), *bars)


def stacked_areas(title: str, labels: Sequence[str], series: Coloured) -> str:
    """How much there is of each series, one upon the other."""
    frame = _frame(series, len(labels))
    areas = []
    base = [0] * len(labels)
    for class_, one in series:
        top = [below + value for below, value in zip(base, one.values, strict=True)]
        edge = [*_along(frame, top), *reversed(_along(frame, base))]
        areas.append(svg.area(edge, class_, f"{one.name} {one.values[-1]:,}"))
        base = top
    return svg.drawing(title, WIDTH, _HEIGHT, *_axes(frame, labels), *areas)


def calendar(title: str, first: date, last: date, counts: Iterable[tuple[date, int]]) -> str:
    """A square for each day, a column for each week from Monday: the darker, the more there was."""
    found = dict(counts)
    level = _levels(list(found.values()))
    monday = first - timedelta(days=first.weekday())
    squares, months = [], []
    for at in range((last - first).days + 1):
        day = first + timedelta(days=at)
        column, row = divmod((day - monday).days, 7)
        x, y = _CALENDAR_LEFT + column * (_CELL + _GAP), _CALENDAR_TOP + row * (_CELL + _GAP)
        squares.append(svg.rectangle(
            x, y, _CELL, _CELL, level(found.get(day, 0)), f"{day:%a} {day.day} {day:%b %Y}: {found.get(day, 0):,}", 2
        ))  # fmt: skip
        if day.day == 1 or (at == 0 and day.day <= 20):
            months.append(svg.label(x, _CALENDAR_TOP - 6, f"{day:%b}", "axis"))
    names = [
        svg.label(_CALENDAR_LEFT - 6, _CALENDAR_TOP + row * (_CELL + _GAP) + 10, name, "axis", "end")
        for row, name in enumerate(_WEEKDAYS) if name
    ]  # fmt: skip
    weeks = ((last - monday).days // 7) + 1
    width, height = _CALENDAR_LEFT + weeks * (_CELL + _GAP), _CALENDAR_TOP + 7 * (_CELL + _GAP)
    return svg.drawing(title, max(width, 200), height, *months, *names, *squares)


def labels_of(steps: Sequence[date], step: str) -> list[str]:
    """What stands below each step: of days and months every so many, of weeks the first of each month."""
    if step == "week":
        return [
            (f"{day:%b %Y}" if day.month == 1 else f"{day:%b}") if before.month != day.month else ""
            for before, day in zip((steps[0], *steps), steps, strict=False)
        ]
    stride = -(-len(steps) // _MOST_LABELS)
    told = [f"{day.day} {day:%b}" if step == "day" else f"{day:%b %Y}" for day in steps]
    return [name if at % stride == 0 else "" for at, name in enumerate(told)]


def step_names(steps: Sequence[date], step: str) -> list[str]:
    """Each step in full."""
    forms: dict[str, Callable[[date], str]] = {
        "day": lambda day: f"{day:%a} {day.day} {day:%b %Y}", "week": lambda day: f"week of {day.day} {day:%b %Y}",
        "month": lambda day: f"{day:%B %Y}",
    }  # fmt: skip
    return [forms[step](day) for day in steps]


def _frame(series: Coloured, steps: int) -> Frame:
    highest = max((sum(values) for values in zip(*(one.values for _, one in series), strict=True)), default=0)
    return Frame(steps, _ceiling(highest))


def _ceiling(highest: int) -> int:
    """The least round number that is not below, which four lines divide."""
    if highest <= _LINES:
        return _LINES
    unit: int = 10 ** math.floor(math.log10(highest / _LINES))
    return next(_LINES * unit * factor for factor in (1, 2, 3, 5, 10) if _LINES * unit * factor >= highest)


def _axes(frame: Frame, labels: Sequence[str]) -> list[str]:
    drawn = []
    for at in range(_LINES + 1):
        value = frame.most * at // _LINES
        drawn.append(svg.line(_LEFT, frame.y(value), WIDTH - _RIGHT, frame.y(value), "grid" if at else "base"))
        drawn.append(svg.label(_LEFT - 8, frame.y(value) + 4, number(value), "axis", "end"))
    for at, name in enumerate(labels):
        if name:
            drawn.append(svg.label(max(_LEFT + 14, frame.x(at + 0.5)), _HEIGHT - 8, name, "axis", "middle"))
    return drawn


def _along(frame: Frame, values: Sequence[int]) -> list[tuple[float, float]]:
    """A line through the ends of the steps, from the beginning of the first one on."""
    ends = [(frame.x(at + 1), frame.y(value)) for at, value in enumerate(values)]
    return [(frame.x(0), ends[0][1]), *ends] if ends else []


def _levels(counts: Sequence[int]) -> Callable[[int], str]:
    """The class of a number: four shades, with as many days in each."""
    ordered = sorted(count for count in counts if count)
    bounds = [ordered[len(ordered) * part // 4] for part in (1, 2, 3)] if ordered else []

    def level(value: int) -> str:
        return f"h{1 + sum(value > bound for bound in bounds)}" if value else "h0"

    return level
