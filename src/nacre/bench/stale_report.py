"""The result of ``nacre benchmark stale`` for people."""

from __future__ import annotations

from nacre.bench.stale import PhrasingResult, StaleResult, totals
from nacre.cli.paper import Paper, bold, dim

_HEADINGS = (
    "phrasing",
    "changes",
    "superseded",
    "marked",
    "questions",
    "stale first",
    "stale hits",
    "folded",
    "new found",
    "past found",
)


def render_stale(paper: Paper, result: StaleResult) -> None:
    """Figures by phrasing, what was wrongly ended or merged, and the failures to read."""
    how = f"through {result.through}, {'with' if result.vectors else 'without'} vectors"
    paper.line(bold("Changes"), dim(f"  {how}"))
    rows = [_row(one) for one in (*result.phrasings, totals(result))]
    paper.table([[dim(name) for name in _HEADINGS], *rows], indent=2)
    paper.heading("What still holds")
    rates = (
        ("look-alikes superseded or dropped", result.wrong_lookalikes),
        ("other memories superseded or dropped", result.wrong_others),
        ("look-alikes marked", result.doubted_lookalikes),
        ("other memories marked", result.doubted_others),
        ("repetitions found", result.duplicates_found),
        ("distinct pairs merged", result.distinct_merged),
        ("related pairs merged", result.related_merged),
    )
    paper.table([(name, f"{rate.count} of {rate.of}", dim(f"{rate.percent} %")) for name, rate in rates], indent=2)
    if result.not_learned:
        paper.line(
            dim(f"{result.not_learned} cases were not learned from their sessions and are not counted"), indent=2
        )
    if result.failures:
        paper.heading("Failures")
    for failure in result.failures:
        paper.line(bold(failure.what), f"  {failure.id}  ", dim(failure.note), indent=2, hang=2)
        paper.line(failure.earlier, indent=4)
        paper.line(f"→ {failure.later}", indent=4, hang=2)


def _row(one: PhrasingResult) -> list[str]:
    marked = (one.changes, one.superseded, one.doubted)
    asked = (one.questions, one.first, one.stale, one.folded, one.found, one.past)
    return [one.phrasing, *map(str, (*marked, *asked))]
