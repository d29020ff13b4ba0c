"""Build a context: what is worth telling, within a budget, each thing once a session. Nothing is written."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from nacre.context import hold_out
from nacre.context.additions import ADDITIONS, Recipient
from nacre.context.draft import ELSEWHERE, OVER_BUDGET, SAID, Draft
from nacre.context.frame import frame_tokens
from nacre.context.gate import SEED_CHARACTERS, after_hearing, asked_by, is_plain, prose
from nacre.context.session_start import tell_digest, tell_learned, tell_pages, tell_previous
from nacre.context.session_state import read_state
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.platform.ids import to_ms
from nacre.retrieval import recall
from nacre.retrieval.ranking import projects_named, ranked_by_words
from nacre.text.passages import count_tokens, words
from nacre.text.stems import stem
from nacre.values.context import (
    HELD_OUT,
    LOOKED_FOR,
    ContextBlock,
    ContextRequest,
    Moment,
    Occasion,
    Part,
    SessionState,
)
from nacre.values.memory import Memory
from nacre.values.recall import Lane, LaneState, Mode, RecallQuery

_PROMPT_HITS = 8
_START_HITS, _AFTER_PREVIOUS_HITS = 3, 1
"""How many hits are told for a first prompt, and for the end of the session before where no prompt is known: of the
second and third of these, 5 of 16 were worth telling (docs/context.md)."""

_MOST_TRIGGERED = 3
_LEAST_SEED_WORDS = 5
"""A first prompt of fewer words says too little of what a session is going to be about (seed facts 1.8)."""


def build(home: Home, request: ContextRequest) -> ContextBlock:
    """The context of a session's start, or of a prompt; empty where nothing is worth telling.

    Only what is trusted is told, and nothing that counts as use. What the session was given is for whoever delivers the
    text to keep. After a compaction or a reset of the session what was given before is gone from the agent's sight, and
    may be given again.
    """
    started = time.perf_counter()
    before = read_state(home.settings.home, request.session)
    state = replace(before, held_out=False)
    if request.moment is Moment.START:
        state = replace(state, owed="")
        if request.occasion is not Occasion.RESUME:
            state = replace(state, given=(), asked="")
    if is_held_out(home, request.session):
        return _untold(home, state, before, started)
    budget = request.budget_tokens if request.budget_tokens is not None else _budget(home, request.moment)
    project = project_of_folder(home, Path(request.folder)) if request.folder else None
    draft = Draft(home, request, state, project, budget - frame_tokens())
    if draft.budget_tokens > 0:
        (tell_start if request.moment is Moment.START else _prompt)(draft)
    text = draft.text()
    said = (one.ref for one in draft.left_out if one.why is SAID and one.ref)
    after = draft.state.with_given((*(item.ref for item in draft.items if item.ref), *said))
    return ContextBlock(
        text, tuple(draft.items), tuple(draft.left_out), draft.lanes, draft.gate, project, count_tokens(text),
        (time.perf_counter() - started) * 1000, after if request.session and after != before else None,
    )  # fmt: skip


def is_held_out(home: Home, session: str | None) -> bool:
    """Whether a session is one of those that are told nothing (:mod:`nacre.context.hold_out`)."""
    return bool(session and home.settings.number("usefulness.hold_out") > 0 and hold_out.takes(home, session))


def _untold(home: Home, state: SessionState, before: SessionState, began: float) -> ContextBlock:
    """Nothing, as the session is held out. It is noted when it began: what it is does not change."""
    after = replace(state, started=state.started or to_ms(home.clock()) or 0, held_out=True)
    took = (time.perf_counter() - began) * 1000
    return ContextBlock(gate=HELD_OUT, took_ms=took, state=after if after != before else None)


def _budget(home: Home, moment: Moment) -> int:
    name = "context.budget_tokens" if moment is Moment.START else "context.prompt_tokens"
    return int(home.settings[name])


def tell_start(draft: Draft) -> None:
    """Who it is about, where the last session ended, what fits the prompt, and what was learned.

    A session that is gone on with has the pages and the end of the one before still in sight.
    """
    if not draft.has_begun:
        tell_pages(draft)
    _add(draft, Moment.START)
    previous = "" if draft.has_begun else tell_previous(draft)
    _relevant(draft, previous)
    if Part.DIGEST in draft.request.parts:
        tell_digest(draft)
    tell_learned(draft)


def _relevant(draft: Draft, previous: str) -> None:
    """What fits the prompt, where it comes with the start, else how the last session ended (seed facts 1.8)."""
    if not draft.wants(Part.RELEVANT):
        return
    prompt = asked_by(draft.request.prompt).query
    most = _START_HITS
    if len(prompt.split()) < _LEAST_SEED_WORDS and prompt.isascii():
        prompt = f"{prompt}\n{previous[-SEED_CHARACTERS:]}".strip()
        most = _AFTER_PREVIOUS_HITS
    if prompt:
        _tell_hits(draft, prompt, most, draft.room(Part.RELEVANT))


def _prompt(draft: Draft) -> None:
    """What fits a prompt, and was not given yet."""
    if draft.wants(Part.RELEVANT):
        state = draft.state
        asked = asked_by(draft.request.prompt, state.asked, state.heard)
        draft.gate = asked.why or LOOKED_FOR
        heard = _without_secrets(draft, prose(draft.request.prompt))
        draft.state = replace(state, heard=after_hearing(state.heard, heard))
        if asked.query:
            draft.state = replace(draft.state, asked=_without_secrets(draft, asked.query))
            _look_about(draft, asked.query)
            _tell_triggered(draft, prose(draft.request.prompt))
            _tell_hits(draft, asked.query, _PROMPT_HITS, draft.left_tokens)
    _add(draft, Moment.PROMPT)


def _without_secrets(draft: Draft, prompt: str) -> str:
    """A prompt as it may be kept. Who looks alone has no time for the rules: then one that may hold a secret is not."""
    if draft.request.alone:
        patterns, _, kinds = draft.home.settings.redaction
        has_own_rules = bool(patterns or kinds)
        return prompt if is_plain(prompt) and not has_own_rules else ""
    return draft.home.redactor.clean(prompt)


def _tell_triggered(draft: Draft, prompt: str) -> None:
    """Memories one of whose triggers the prompt says, the most important first, before what is found by its meaning."""
    home = draft.home
    rows = home.selection.with_triggers(draft.filter(), today=home.today())
    if not rows:
        return
    said = _stems(prompt)
    found = home.memories.by_rows(rows)
    fired = [(found[row], trigger) for row in rows if row in found and (trigger := _fired(found[row], said))]
    for memory, trigger in fired[:_MOST_TRIGGERED]:
        draft.tell(Part.RELEVANT, memory, 1.0, f"the prompt says “{trigger}”")


def _fired(memory: Memory, said: str) -> str:
    """The first trigger that is said, whole words of it in their order; endings may differ."""
    return next((one for one in memory.triggers if one.strip() and _stems(one) in said), "")


def _stems(text: str) -> str:
    return f" {' '.join(map(stem, words(text)))} "


def _look_about(draft: Draft, query: str) -> None:
    """In a folder of no known project a prompt is about the projects that it names."""
    if draft.project or not draft.request.folder:
        return
    draft.named = projects_named(draft.home, query)
    if not draft.named and draft.home.memories.projects():
        draft.leave(Part.RELEVANT, None, ELSEWHERE)


def _add(draft: Draft, moment: Moment) -> None:
    """What others have to tell. Where not all of it fits, the session is not taken to have been told any of it."""
    for addition in ADDITIONS:
        if moment not in addition.moments or not draft.wants(addition.part):
            continue
        asked = Recipient(draft.home, draft.request, draft.state, draft.project, draft.reason_against, draft.knows)
        added = addition.find(asked)
        draft.left_out += added.left_out
        too_much = [item for item in added.items if not (draft.has_told(item.ref) or draft.add(item))]
        for item in too_much:
            added.declined(item)
        if added.state is not None and not too_much:
            draft.state = added.state


def _tell_hits(draft: Draft, query: str, limit: int, room: int) -> None:
    asked = RecallQuery(
        query, filter=draft.filter(), limit=limit, update=False, co_recall=False, is_prompt=True, confident=True,
        turns=0,
    )  # fmt: skip
    found = (_by_words if draft.request.alone else _by_all_lanes)(draft, asked)
    end = draft.left_tokens - room
    found = [(memory, draft.ranked(memory, score), sure) for memory, score, sure in found]
    for memory, score, sure in sorted(found, key=lambda one: -one[1]):
        if draft.left_tokens <= end:
            draft.leave(Part.RELEVANT, memory.id, OVER_BUDGET, memory.subject)
            continue
        draft.tell(Part.RELEVANT, memory, score, f"{sure:.2f} sure to fit" if sure is not None else "fits")


_Found = list[tuple[Memory, float, float | None]]
"""Memories with their scores and how sure they are to fit."""


def _by_all_lanes(draft: Draft, asked: RecallQuery) -> _Found:
    result = recall.recall(draft.home, asked)
    draft.lanes = result.lanes
    draft.spaces = {hit.memory.id: hit.space for hit in result.hits if hit.space}
    return [(hit.memory, hit.score, hit.components.get("sure")) for hit in result.hits]


def _by_words(draft: Draft, asked: RecallQuery) -> _Found:
    draft.lanes = (Lane("lexical", LaneState.RAN), Lane("vector", LaneState.SKIPPED))
    hits = ranked_by_words(draft.home, replace(asked, mode=Mode.LEXICAL))
    return [(hit.memory, hit.score, hit.confidence) for hit in hits]
