"""What a writer does in tier 3: it fills pages, and says how memories stand to each other that nothing connects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nacre.dream.relations import MOST_PAIRS, asked_for_relations, tokens_for_relations, wanted_pairs
from nacre.dream.reorganising.page_writer import MOST_PAGES, asked_for_pages, tokens_for, wanted_pages
from nacre.dream.values import PageDraft, Step
from nacre.dream.writer import writer_of
from nacre.home.home import Home
from nacre.spending.models import name_for
from nacre.spending.tracing import tracing
from nacre.values.memory import Memory
from nacre.values.model_calls import Task, Tokens
from nacre.values.reports import OnProgress
from nacre.values.trace import TraceKind


@dataclass(frozen=True, slots=True)
class Consulted:
    """What came of asking: drafts of pages by project, links to draw, what was looked at, what is settled, how much
    waits for another dream, and what went wrong."""

    drafts: Mapping[str, PageDraft]
    steps: tuple[Step, ...] = ()
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    settled: tuple[str, ...] = ()
    unasked: int = 0
    note: str | None = None


NOT_CONSULTED = Consulted({})


def consulted(
    home: Home, memories: Sequence[Memory], project: str | None, asked: Sequence[str], *, background: bool,
    on_progress: OnProgress | None = None,
) -> Consulted:  # fmt: skip
    """What a writer makes of pages and pairs of some memories; ``asked`` is settled already. Nothing is changed.

    Raises ModelRefused where the model that is set cannot be opened.
    """
    with writer_of(home, background=background) as (model, why_not):
        if model is None:
            return Consulted({}, note=why_not)
        name = name_for(home, Task.DREAM)
        with tracing(home, TraceKind.DREAM, "pages and links"):
            pages = asked_for_pages(home, model, wanted_pages(home, memories, project, name), on_progress)
            if pages.note:
                return Consulted(pages.drafts, (), pages.looked, (), pages.unasked, pages.note)
            pairs = wanted_pairs(home, memories, asked, name)
            links = asked_for_relations(home, model, pairs, on_progress)
    return Consulted(
        pages.drafts, links.steps, pages.looked, links.settled, pages.unasked + links.unasked, links.note
    )  # fmt: skip


def consulting_takes(
    home: Home, memories: Sequence[Memory], project: str | None, asked: Sequence[str]
) -> tuple[int, int, int, Tokens]:
    """How many pages and pairs a writer would be asked about in one dream, in how many calls and tokens at most."""
    name = name_for(home, Task.DREAM)
    pages = wanted_pages(home, memories, project, name)
    pairs = wanted_pairs(home, memories, asked, name)
    page_calls, page_tokens = tokens_for(pages)
    pair_calls, pair_tokens = tokens_for_relations(pairs)
    tokens = Tokens(page_tokens.input + pair_tokens.input, page_tokens.output + pair_tokens.output)
    return min(len(pages), MOST_PAGES), min(len(pairs), MOST_PAIRS), page_calls + pair_calls, tokens
