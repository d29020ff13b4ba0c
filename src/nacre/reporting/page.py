"""The page of a report: headings, pictures, and the numbers behind each as a table.

One file: no script, nothing from a network, and a policy that forbids both.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import date, datetime
from importlib.resources import files

from nacre import __version__
from nacre.graph.values import GraphMap
from nacre.reporting.charts import (
    Coloured,
    calendar,
    colour,
    labels_of,
    number,
    stacked_areas,
    stacked_bars,
    step_names,
)
from nacre.reporting.node_link import linked_part, node_link
from nacre.reporting.svg import element, words
from nacre.reporting.values import Activity, Age, Series
from nacre.text.passages import count
from nacre.values.memory import Kind
from nacre.values.spending import dollars

KINDS = tuple(kind.value for kind in Kind)
_MOST_LINKED = 30
_MOST_DRAWN = 120
_FRESH, _STALE = "s0", "s1"

Row = Sequence[str]


def page(found: Activity, drawn: GraphMap, at: datetime) -> str:
    """The whole file."""
    about = words(found.project) if found.project else "All projects"
    title = f"nacre: {about}, {found.since} to {found.until}"
    style = (files(__package__) / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = (
        '<meta charset="utf-8">' + f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{style}</style>"
    )  # fmt: skip
    body = element(
        "body",
        element("header", element("h1", about), element("p", f"nacre, {_day(found.since)} to {_day(found.until)}")),
        element("main", _tiles(found), *_sections(found, drawn)),
        element("footer", f"Written by nacre {__version__} on {_day(at.astimezone())}. Days are those of your clock."),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{body}</html>\n'


def _tiles(found: Activity) -> str:
    told = {
        "memories": sum(one.values[-1] for one in found.held), "new memories": _total(found.stored),
        "sessions": _total(found.sessions), "turns": _total(found.turns), "recalls": sum(found.recalls),
    }  # fmt: skip
    tiles = [element("li", element("strong", f"{value:,}"), name) for name, value in told.items()]
    if found.cost:
        tiles.append(element("li", element("strong", words(dollars(_total(found.cost)))), "language models"))
    return element("ul", *tiles, class_="tiles")


def _sections(found: Activity, drawn: GraphMap) -> list[str]:
    made = [_conversations(found), _growth(found), _days(found), _freshness(found), _recalled(found)]
    if found.questions:
        made.append(_questions(found))
    if found.tokens:
        made.append(_models(found))
    return [*made, _links(drawn)]


def _conversations(found: Activity) -> str:
    series = _coloured(found.turns)
    head = [found.step, *(f"{one.name}: {what}" for _, one in series for what in ("turns", "sessions"))]
    sessions = {one.name: one.values for one in found.sessions}
    rows = [
        [name, *(f"{values[at]:,}" for _, one in series for values in (one.values, sessions[one.name]))]
        for at, name in enumerate(_names(found))
    ]
    return _section(
        "Conversations", f"Turns of you and your agents by {found.step}, by tool.",
        stacked_bars(f"Turns by {found.step} and tool", _labels(found), series, _names(found)) if series else "",
        _legend(series), _table(head, rows), nothing="No session was read in this time.",
    )  # fmt: skip


def _growth(found: Activity) -> str:
    series = [(colour(KINDS.index(one.name)), one) for one in found.held if any(one.values)]
    stored = {one.name: one.values for one in found.stored}
    none = (0,) * len(found.steps)
    head = [found.step, *(f"{one.name}: {what}" for _, one in series for what in ("held", "stored"))]
    rows = [
        [name, *(f"{values[at]:,}" for _, one in series for values in (one.values, stored.get(one.name, none)))]
        for at, name in enumerate(_names(found))
    ]
    return _section(
        "Memories", f"How many there were at the end of each {found.step}, by kind.",
        stacked_areas(f"Memories at the end of each {found.step}, by kind", _labels(found), series) if series else "",
        _legend(series), _table(head, rows), nothing="Nothing was remembered yet.",
    )  # fmt: skip


def _days(found: Activity) -> str:
    turns = [(one.day, one.turns) for one in found.calendar]
    rows = [[_day(one.day), f"{one.sessions:,}", f"{one.turns:,}"] for one in found.calendar]
    return _section(
        "Calendar", f"Turns of each day; {count(len(rows), 'day')} with sessions.",
        calendar("Turns of each day", found.since, found.until, turns), "", _table(["day", "sessions", "turns"], rows),
    )  # fmt: skip


def _freshness(found: Activity) -> str:
    labels = [_span(one) for one in found.ages]
    series: Coloured = [
        (_FRESH, Series("current", tuple(one.memories - one.stale for one in found.ages))),
        (_STALE, Series("may be out of date", tuple(one.stale for one in found.ages))),
    ]
    total, stale = (sum(getattr(one, name) for one in found.ages) for name in ("memories", "stale"))
    share = f"; {stale / total:.0%} may be out of date" if stale else ""
    rows = [[label, f"{one.memories:,}", f"{one.stale:,}"] for label, one in zip(labels, found.ages, strict=True)]
    return _section(
        "Freshness", f"How long ago what is remembered now was said last{share}.",
        stacked_bars("Memories by age", labels, series, labels) if total else "", _legend(series) if stale else "",
        _table(["said last", "memories", "may be out of date"], rows), nothing="Nothing is remembered.",
    )  # fmt: skip


def _recalled(found: Activity) -> str:
    series: Coloured = [(_FRESH, Series("recalls", found.recalls))]
    rows = [[name, f"{value:,}"] for name, value in zip(_names(found), found.recalls, strict=True)]
    rows += [["now: never recalled", f"{found.never:,}"], ["now: up to five times", f"{found.seldom:,}"]]
    rows.append(["now: more often", f"{found.often:,}"])
    told = f"now {found.never:,} were never recalled, {found.seldom:,} up to five times, {found.often:,} more often"
    return _section(
        "Use", f"Recalls by {found.step}, the last hundred of each memory; {told}.",
        stacked_bars(f"Recalls by {found.step}", _labels(found), series, _names(found)) if any(found.recalls) else "",
        "", _table([found.step, "recalls"], rows), nothing="Nothing was recalled in this time.",
    )  # fmt: skip


def _questions(found: Activity) -> str:
    shades = {"answered": "s2", "unanswered": "s1"}
    series = [(shades[one.name], one) for one in found.questions]
    return _section(
        "Questions", "What recall was asked, as far as traces are kept.",
        stacked_bars(f"Questions by {found.step}", _labels(found), series, _names(found)), _legend(series),
        _stepwise(found, series),
    )  # fmt: skip


def _models(found: Activity) -> str:
    series = _coloured(found.tokens)
    costs = {one.name: one.values for one in found.cost}
    head = [found.step, *(f"{one.name}: {what}" for _, one in series for what in ("tokens", "cost"))]
    rows = [
        [name, *(told for _, one in series for told in (f"{one.values[at]:,}", dollars(costs[one.name][at])))]
        for at, name in enumerate(_names(found))
    ]
    return _section(
        "Language models", f"Tokens by task; {dollars(_total(found.cost))} in all.",
        stacked_bars(f"Tokens by {found.step} and task", _labels(found), series, _names(found)), _legend(series),
        _table(head, rows),
    )  # fmt: skip


def _links(drawn: GraphMap) -> str:
    linked = [one for one in drawn.nodes if one.degree]
    nodes, edges = linked_part(drawn, _MOST_DRAWN)
    kinds = [kind for kind in KINDS if any(one.kind == kind for one in nodes)]
    series = [(colour(KINDS.index(kind)), Series(kind, ())) for kind in kinds]
    rows = [[one.subject, one.kind.value, one.project or "", f"{one.degree:,}"] for one in linked[:_MOST_LINKED]]
    shown = f" Drawn are {len(nodes):,} around the most linked ones." if len(nodes) < len(linked) else ""
    alike = "; thin lines are likeness" if any(one.origin == "auto" for one in edges) else ""
    return _section(
        "Links", f"{count(drawn.links, 'link')} between {count(drawn.memories, 'memory', 'memories')}{alike}.{shown}",
        node_link("Memories and their links", nodes, edges, KINDS) if nodes else "", _legend(series),
        _table(["memory", "kind", "project", "links"], rows), nothing="No memory is linked with another.",
    )  # fmt: skip


def _section(title: str, told: str, picture: str, legend: str, table: str, *, nothing: str = "") -> str:
    shown = [element("p", words(told)), legend, element("figure", picture), table] if picture else []
    return element("section", element("h2", title), *(shown or [element("p", nothing, class_="nothing")]))


def _legend(series: Coloured) -> str:
    marks = [element("li", element("span", class_=f"mark {shade}"), words(one.name)) for shade, one in series]
    return element("ul", *marks, class_="legend") if marks else ""


def _stepwise(found: Activity, series: Coloured) -> str:
    rows = [[name, *(f"{one.values[at]:,}" for _, one in series)] for at, name in enumerate(_names(found))]
    return _table([found.step, *(one.name for _, one in series)], rows)


def _table(head: Row, rows: Sequence[Row]) -> str:
    """A table that is folded away; steps without anything are left out."""
    told = [row for row in rows if any(cell not in ("", "0", "$0.00") for cell in row[1:])]
    lines = [
        element("tr", element("th", words(row[0]), scope="row"), *(element("td", words(cell)) for cell in row[1:]))
        for row in told
    ]
    names = element("tr", *(element("th", words(name), scope="col") for name in head))
    table = element("table", element("thead", names), element("tbody", *lines))
    return element("details", element("summary", "Numbers"), element("div", table, class_="wide"))


def _coloured(series: Sequence[Series]) -> Coloured:
    return [(colour(at), one) for at, one in enumerate(series)]


def _labels(found: Activity) -> list[str]:
    return labels_of(found.steps, found.step)


def _names(found: Activity) -> list[str]:
    return step_names(found.steps, found.step)


def _span(age: Age) -> str:
    if age.most is None:
        return f"over {number(age.least)} days"
    return f"{age.least} to {age.most} days" if age.least else f"under {age.most} days"


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _total(series: Sequence[Series]) -> int:
    return sum(sum(one.values) for one in series)
