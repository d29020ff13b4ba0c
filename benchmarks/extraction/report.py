"""Reports of the extraction benchmark for the terminal, and as Markdown and JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.extraction.labels import Label
from benchmarks.extraction.measuring import ExtractionResult
from benchmarks.extraction.rubric import ExpectationMatch, FixtureScore
from benchmarks.extraction.scoring import CreditedLabel, Kept, SessionScore, Skipped, Totals
from benchmarks.extraction.terms import plain
from nacre.base.frozen import frozen
from nacre.base.text import one_line
from nacre.cli.command import Cell, Paper, bold, dim

Record = dict[str, Any]

_COLUMNS = (
    "kept",
    "off",
    "recall",
    "any kind",
    "must",
    "precision",
    "dup",
    "skip",
    "long",
    "score",
)
_FIXTURE_COLUMNS = (
    "kept",
    "met",
    "recall",
    "partial",
    "precision",
    "in range",
    "composite",
    "passes",
)
NOTE = (
    "Shares in percent. off: memories below or above the sensible number. any kind: recall regardless of kind. "
    "must: labels of weight 1 only. dup: memories that repeat another credited memory. skip: memories that should not "
    "exist."
)


@frozen
class Table:
    """A table with a title. Its first row is the header. ``drop`` names columns to omit on narrow terminals."""

    title: str
    rows: Sequence[Sequence[str]]
    drop: tuple[str, ...] = ("long", "any kind", "must", "dup", "sessions")

    def narrowed(self) -> tuple[list[list[Cell]], list[int]]:
        """Return the rows for a terminal and the columns to omit. Names come last because they can be cut."""
        names, *rows = [[*row[1:], row[0]] for row in self.rows]
        dropped = [names.index(name) for name in self.drop if name in names]
        return [[dim(name) for name in names], *(list[Cell](row) for row in rows)], dropped


@frozen
class Finding:
    """A statement, and lines that explain it."""

    statement: str
    details: tuple[str, ...] = ()


@frozen
class Chapter:
    """The findings about one session, by topic."""

    title: str
    description: str
    topics: Mapping[str, Sequence[Finding]]


def render_extraction(paper: Paper, result: ExtractionResult, *, misses: bool) -> None:
    """Print the tables. With ``misses``, also print the findings."""
    for table in tables(result):
        paper.heading(table.title)
        rows, drop = table.narrowed()
        paper.table(rows, drop=drop, indent=2)
    for note in notes(result):
        paper.blank()
        paper.line(dim(note))
    for chapter in chapters(result) if misses else ():
        paper.heading(chapter.title)
        for topic, findings in chapter.topics.items():
            paper.blank()
            paper.line(bold(topic), indent=2)
            for finding in findings:
                paper.line(f"- {finding.statement}", indent=4, hang=2)
                for detail in finding.details:
                    paper.line(dim(detail), indent=6, hang=2)


def as_markdown(result: ExtractionResult, commit: str | None) -> str:
    """Return the whole report as Markdown."""
    lines = ["# Extraction", "", f"nacre {commit or 'installed'}", ""]
    for table in tables(result):
        lines += [f"## {table.title}", "", *(_row(cells) for cells in table.rows[:1])]
        lines += [
            _row(["---"] * len(table.rows[0])),
            *(_row(cells) for cells in table.rows[1:]),
            "",
        ]
    lines += [line for note in notes(result) for line in (note, "")]
    for chapter in chapters(result):
        lines += [f"## {chapter.title}", "", chapter.description, ""]
        for topic, findings in chapter.topics.items():
            lines += [f"### {topic}", ""]
            for finding in findings:
                lines += [
                    f"- {finding.statement}",
                    *(f"  - {detail}" for detail in finding.details),
                ]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def tables(result: ExtractionResult) -> Iterator[Table]:
    """Yield tables for sessions, tools, kinds and agenr's fixtures."""
    if result.sessions:
        rows = [[score.session.slug, *_figures(score)] for score in result.sessions]
        yield Table("Sessions", [["session", *_COLUMNS], *rows, ["all", *_sums(result.overall)]])
        by_tool = [
            [tool, str(totals.sessions), *_sums(totals)] for tool, totals in result.by_tool.items()
        ]
        yield Table("Tools", [["tool", "sessions", *_COLUMNS], *by_tool])
        by_kind = [
            [kind, str(item.labels), str(item.found), str(item.found_any_kind)]
            for kind, item in result.by_kind.items()
        ]
        yield Table("Kinds", [["kind", "labels", "found", "as any kind"], *by_kind])
    if result.fixtures:
        rows = [[score.session.slug, *_fixture_figures(score)] for score in result.fixtures]
        totals = result.fixtures_overall
        shares = map(_percent, (totals.recall, totals.partial_recall, totals.precision))
        last = [
            "all",
            "",
            "",
            *shares,
            "",
            _percent(totals.composite),
            f"{totals.passed} of {totals.sessions}",
        ]
        yield Table("Fixtures", [["fixture", *_FIXTURE_COLUMNS], *rows, last])


def notes(result: ExtractionResult) -> Iterator[str]:
    """Yield notes on the tables."""
    if result.sessions:
        yield NOTE
        fits = result.overall.importance_in_range
        if fits is not None:
            yield f"{_percent(fits)} % of the memories found have an importance within the range of their label."
    for slug, reason in result.unread.items():
        yield f"{slug} counts as empty: {reason}."
    if result.unassigned:
        yield f"{result.unassigned} memories belong to no labelled session and are left out."
    if result.unknown_kinds:
        yield f"{result.unknown_kinds} memories have a kind that does not exist."


def chapters(result: ExtractionResult) -> Iterator[Chapter]:
    """Yield the findings about each session that has any."""
    for score in result.sessions:
        topics = {
            "Missed": [_missed(result, score, label) for label in score.missed],
            "Found as another kind": [_wrong_kind(match) for match in score.wrong_kind],
            "Should not exist": [
                Finding(_shown(item.memory), (f"because: {item.reason}",)) for item in score.skipped
            ],
            "Needless": [Finding(_shown(memory)) for memory in score.junk],
            "Repeated": [Finding(_shown(memory)) for memory in score.repeats],
        }
        yield from _chapter(score.session.slug, score.session.description, topics)
    for fixture in result.fixtures:
        topics = {
            "Not met": [
                Finding(
                    f"{item.expectation.kind}: {item.expectation.subject}, {', '.join(item.expectation.terms)}",
                    (
                        f"likeness {item.likeness:.2f}",
                        _shown(item.memory) if item.memory else "no memory",
                    ),
                )
                for item in fixture.met
                if not item.is_hit
            ],
            "Should not exist": [
                Finding(_shown(item.memory), (f"because: {item.reason}",))
                for item in fixture.skipped
            ],
        }
        yield from _chapter(fixture.session.slug, fixture.session.description, topics)


def _chapter(
    title: str, description: str, topics: Mapping[str, Sequence[Finding]]
) -> Iterator[Chapter]:
    filled = {topic: findings for topic, findings in topics.items() if findings}
    if filled:
        yield Chapter(title, description, filled)


def _missed(result: ExtractionResult, score: SessionScore, label: Label) -> Finding:
    nice = "" if label.weight >= 1 else f" (weight {label.weight:g})"
    quoted = [
        f"{place}: “{words}”"
        if (words := result.quotes.get((score.session.slug, place)))
        else place
        for place in label.evidence
    ]
    near = [f"learned from there: {_shown(memory)}" for memory in _near(result, score, label)]
    return Finding(f"{' or '.join(label.kinds)}: {label.statement}{nice}", (*quoted, *near))


def _near(result: ExtractionResult, score: SessionScore, label: Label) -> list[Kept]:
    words = [plain(result.quotes.get((score.session.slug, place), "")) for place in label.evidence]
    return [
        memory
        for memory in score.junk
        if set(memory.turns) & set(label.evidence)
        or any(plain(memory.content).strip() in quote for quote in words)
    ]


def _wrong_kind(match: CreditedLabel) -> Finding:
    return Finding(
        f"{' or '.join(match.label.kinds)}: {match.label.statement}", (_shown(match.memory),)
    )


def _shown(memory: Kept) -> str:
    return one_line(f"{memory.kind} {memory.subject}: {memory.content}")


def _figures(score: SessionScore) -> list[str]:
    shares = map(
        _percent, (score.recall, score.recall_any_kind, score.must_recall, score.precision)
    )
    counts = (len(score.repeats), len(score.skipped), score.long)
    return [
        str(len(score.kept)),
        f"{score.off:+d}" if score.off else "",
        *shares,
        *_counted(counts),
        _percent(score.score),
    ]


def _sums(totals: Totals) -> list[str]:
    off = f"{totals.sessions_out_of_range} out" if totals.sessions_out_of_range else ""
    shares = map(
        _percent, (totals.recall, totals.recall_any_kind, totals.must_recall, totals.precision)
    )
    counts = (totals.duplicates, totals.skip_hits, totals.long)
    return [
        str(totals.memories),
        off,
        *shares,
        *_counted(counts),
        _percent(totals.score),
    ]


def _fixture_figures(score: FixtureScore) -> list[str]:
    return [
        str(len(score.kept)),
        f"{sum(item.is_hit for item in score.met)} of {len(score.met)}",
        _percent(score.recall),
        _percent(score.partial_recall),
        _percent(score.precision),
        _yes(score.in_range),
        _percent(score.composite),
        _yes(score.passed),
    ]


def _counted(counts: Sequence[int]) -> list[str]:
    return [str(count) if count else "" for count in counts]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def extraction_record(result: ExtractionResult) -> Record:
    """Return the result as JSON. Shares are from 0 to 1 and not rounded."""
    return {
        "score": result.score,
        "overall": dataclasses.asdict(result.overall),
        "by_tool": [
            {"tool": tool, **dataclasses.asdict(totals)} for tool, totals in result.by_tool.items()
        ],
        "by_kind": [
            {"kind": kind, **dataclasses.asdict(totals)} for kind, totals in result.by_kind.items()
        ],
        "sessions": [_session_record(result, score) for score in result.sessions],
        "fixtures": [_fixture_record(score) for score in result.fixtures],
        "fixtures_overall": dataclasses.asdict(result.fixtures_overall),
        "unread": [{"session": slug, "reason": reason} for slug, reason in result.unread.items()],
        "unassigned": result.unassigned,
        "unknown_kinds": result.unknown_kinds,
    }


def _session_record(result: ExtractionResult, score: SessionScore) -> Record:
    names = (
        "weight",
        "weight_found",
        "weight_found_any_kind",
        "recall",
        "recall_any_kind",
        "must_recall",
        "precision",
        "matched",
        "long",
        "off",
        "score",
        "importance_fits",
        "importance_judged",
    )
    return {
        "session": score.session.slug,
        "tool": score.session.tool,
        "description": score.session.description,
        **{name: getattr(score, name) for name in names},
        "labels": len(score.session.labels),
        "memories": [_memory_record(memory) for memory in score.kept],
        "found": [_found_record(match) for match in score.found],
        "wrong_kind": [_found_record(match) for match in score.wrong_kind],
        "missed": [_label_record(result, score, label) for label in score.missed],
        "junk": [_memory_record(memory) for memory in score.junk],
        "duplicates": [_memory_record(memory) for memory in score.repeats],
        "skip_hits": [_skipped_record(item) for item in score.skipped],
    }


def _fixture_record(score: FixtureScore) -> Record:
    names = (
        "recall",
        "partial_recall",
        "precision",
        "in_range",
        "below_ceiling",
        "composite",
        "passed",
    )
    return {
        "session": score.session.slug,
        "description": score.session.description,
        **{name: getattr(score, name) for name in names},
        "memories": [_memory_record(memory) for memory in score.kept],
        "expected": [_met_record(item) for item in score.met],
        "skip_hits": [_skipped_record(item) for item in score.skipped],
    }


def _met_record(item: ExpectationMatch) -> Record:
    return {
        "kind": item.expectation.kind,
        "subject": item.expectation.subject,
        "terms": list(item.expectation.terms),
        "likeness": item.likeness,
        "hit": item.is_hit,
        "memory": _memory_record(item.memory) if item.memory else None,
    }


def _memory_record(memory: Kept) -> Record:
    return {
        "kind": memory.kind,
        "subject": memory.subject,
        "content": memory.content,
        "importance": memory.importance,
        "turn_ids": list(memory.turns),
    }


def _found_record(match: CreditedLabel) -> Record:
    return {
        "statement": match.label.statement,
        "kinds": list(match.label.kinds),
        "memory": _memory_record(match.memory),
    }


def _skipped_record(item: Skipped) -> Record:
    return {"reason": item.reason, "memory": _memory_record(item.memory)}


def _label_record(result: ExtractionResult, score: SessionScore, label: Label) -> Record:
    quotes = result.quotes
    return {
        "statement": label.statement,
        "kinds": list(label.kinds),
        "weight": label.weight,
        "evidence": [
            {"at": place, "words": quotes.get((score.session.slug, place))}
            for place in label.evidence
        ],
        "near": [_memory_record(memory) for memory in _near(result, score, label)],
    }
