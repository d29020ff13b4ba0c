"""Build a context: what is worth telling, within a budget, each thing once a session. Nothing is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from nacre.app import signals
from nacre.app.context import Context
from nacre.app.contexts import handed, nudging
from nacre.app.contexts.session_state import read_state
from nacre.app.locating import project_of_folder
from nacre.app.ranking import ranked_by_words
from nacre.errors import VaultUnusable
from nacre.model.context import (
    ContextBlock,
    ContextItem,
    ContextRequest,
    LeftOut,
    Moment,
    Occasion,
    Part,
    SessionState,
)
from nacre.model.memory import Expiry, Kind, Memory
from nacre.model.recall import Filter, Lane, LaneState, Mode, RecallQuery
from nacre.model.session import Flag, SessionKind, Speaker, Trust
from nacre.recall.context.categories import Candidate, choose, part_of
from nacre.recall.context.framing import MOST_CHARACTERS, frame_tokens, framed, line_of, quoted, said, title_tokens
from nacre.recall.context.gate import SEED_CHARACTERS, asked_by
from nacre.recall.memories import MemoryRecall, Ranking
from nacre.storage.search import browse_memories, memory_search
from nacre.text import count_tokens, shorten

PREVIOUS_TURNS = 7
_TURN_CHARACTERS = 300
_LEAST_SEED_WORDS = 5
_PROMPT_HITS = 8
_START_HITS = 5
_BROWSED = 200
_PERMANENT_DAYS, _TEMPORARY_DAYS = 30, 7
_PAGE_CHARACTERS = 2_000
_IDENTITY, _PROFILE = "identity.md", "profile.md"
_LASTS = frozenset({Kind.PREFERENCE, Kind.DECISION, Kind.TODO})
"""Kinds that are told however old they are: they hold until they are replaced or done."""

_SUPPRESSED_AT = {Moment.START: "session-start", Moment.PROMPT: "prompt"}
_UNSAID = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN | Flag.COMMAND


@dataclass
class _Draft:
    """What is gathered for one request, and what is left of its budget."""

    context: Context
    request: ContextRequest
    state: SessionState
    project: str | None
    left: int
    characters: int = MOST_CHARACTERS
    items: list[ContextItem] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    lanes: tuple[Lane, ...] = ()
    gate: str = ""

    def wants(self, part: Part) -> bool:
        return not self.request.parts or part in self.request.parts

    def knows(self, memory: Memory) -> bool:
        return memory.id in self.state.given or any(item.ref == memory.id for item in self.items)

    def add(self, item: ContextItem) -> bool:
        """Tell something, if it fits; the heading of its part counts once."""
        is_first = all(one.part is not item.part for one in self.items)
        tokens = item.tokens + (title_tokens(item.part) if is_first else 0)
        characters = len(item.text) + 1
        if tokens > self.left or characters > self.characters:
            self.left_out.append(LeftOut(item.part, item.ref, "over the budget"))
            return False
        self.left -= tokens
        self.characters -= characters
        self.items.append(item)
        return True


def build(context: Context, request: ContextRequest) -> ContextBlock:
    """The context of a session's start, or of a prompt; empty where nothing is worth telling.

    Only what is trusted is told, and nothing that counts as use. What the session was given is for whoever delivers the
    text to keep. After a compaction or a reset of the session what was
    given before is gone from the agent's sight, and may be given again.
    """
    started = time.perf_counter()
    home = context.settings.home
    before = state = read_state(home, request.session)
    if request.moment is Moment.START and request.occasion is not Occasion.RESUME:
        state = replace_given(state, ())
    budget = request.budget_tokens if request.budget_tokens is not None else _budget(context, request.moment)
    project = project_of_folder(context, Path(request.folder)) if request.folder else None
    draft = _Draft(context, request, state, project, budget - frame_tokens())
    if draft.left > 0:
        (_start if request.moment is Moment.START else _prompt)(draft)
    order = list(Part)
    draft.items.sort(key=lambda item: order.index(item.part))
    text = framed([(part, [item.text for item in draft.items if item.part is part]) for part in order])
    told = tuple(item.ref for item in draft.items if item.ref)
    state = draft.state.with_given(told)
    return ContextBlock(
        text, tuple(draft.items), tuple(draft.left_out), draft.lanes, draft.gate, project, count_tokens(text),
        (time.perf_counter() - started) * 1000, state if request.session and state != before else None,
    )  # fmt: skip


def replace_given(state: SessionState, given: tuple[str, ...]) -> SessionState:
    """The state with other memories given so far."""
    return replace(state, given=given)


def _budget(context: Context, moment: Moment) -> int:
    name = "context.budget_tokens" if moment is Moment.START else "context.prompt_tokens"
    return int(context.settings[name])


def _start(draft: _Draft) -> None:
    """Who it is about, where the last session ended, what fits the prompt, and what was learned."""
    _page(draft, Part.IDENTITY, _IDENTITY)
    _page(draft, Part.PROFILE, _PROFILE)
    if draft.project and draft.wants(Part.PROJECT):
        from nacre.app.project_pages import page_text  # YAML takes 15 ms, which hooks pay only where there is a page

        _lines(
            draft,
            Part.PROJECT,
            quoted(page_text(draft.context, draft.project)[:_PAGE_CHARACTERS]),
            "the project's page",
        )
    if draft.request.occasion is not Occasion.RESUME:
        draft.state = replace(draft.state, started=_ms(draft), handed=False)
    _handed_over(draft, own=draft.request.occasion is Occasion.COMPACT)
    previous = _previous(draft)
    _relevant(draft, previous)
    _learned(draft)
    if draft.request.session:
        draft.state = signals.begun(draft.context, draft.state)


def _ms(draft: _Draft) -> int:
    return int(draft.context.clock().timestamp() * 1000)


def _handed_over(draft: _Draft, *, own: bool = False, is_late: bool = False) -> None:
    """What the last sessions handed over to this one, each to one session alone."""
    if not draft.wants(Part.HANDOFF):
        return
    context, session = draft.context, draft.request.session
    for memory in handed.due(context, draft.project, session, own=own):
        if draft.knows(memory):
            continue
        if is_late and not (handed.is_late(memory, draft.state.started) or handed.is_held(context, memory, session)):
            continue
        if not handed.claim(context, memory, session):
            draft.left_out.append(LeftOut(Part.HANDOFF, memory.id, "another session is given it"))
            continue
        lines = [f"From {memory.source.session}, {memory.updated:%Y-%m-%d %H:%M} UTC:", *quoted(memory.content)]
        text = "\n".join(lines)
        item = ContextItem(
            Part.HANDOFF, text, count_tokens(text), memory.id, memory.updated, why=f"handed over by {lines[0][5:-1]}"
        )
        if draft.add(item):
            draft.state = replace(draft.state, handed=True)
        else:
            handed.let_go(context, memory, session)


def _signals(draft: _Draft) -> None:
    """What other sessions stored just now that matters here."""
    if not draft.wants(Part.SIGNALS):
        return
    context, session = draft.context, draft.request.session
    due = signals.due(context, draft.state, session, draft.project)
    heard = told = 0
    for _, memory in due.memories:
        is_wanted = not (draft.knows(memory) or _is_suppressed(draft, memory))
        if is_wanted and not _tell(draft, Part.SIGNALS, memory, 1.0, "stored by another session just now"):
            break  # there is no room: it is told with the next prompt
        heard, told = heard + 1, told + is_wanted
    draft.state = due.given(draft.state, heard, told, _ms(draft))
    if session:
        draft.state = signals.begun(context, draft.state)


def _nudge(draft: _Draft) -> None:
    """A reminder that something may be worth storing."""
    if not draft.wants(Part.NUDGE):
        return
    draft.state = nudging.counted(draft.context, draft.state, draft.request.session, draft.project)
    if nudging.is_due(draft.state):
        text = nudging.TEXT
        if draft.add(ContextItem(Part.NUDGE, text, count_tokens(text), why=f"nothing stored in {nudging.TURNS} turns")):
            draft.state = nudging.nudged(draft.state)


def _page(draft: _Draft, part: Part, path: str) -> None:
    if not draft.wants(part):
        return
    try:
        text = draft.context.vault.read(path).decode("utf-8", errors="replace")
    except (OSError, VaultUnusable):
        return
    lines = quoted(draft.context.redactor.clean(text).strip()[:_PAGE_CHARACTERS])
    _lines(draft, part, lines, f"{path} in the vault")


def _lines(draft: _Draft, part: Part, lines: Sequence[str], why: str) -> None:
    if lines:
        text = "\n".join(lines)
        draft.add(ContextItem(part, text, count_tokens(text), why=why))


def _previous(draft: _Draft) -> str:
    """Tell the last turns of the session before, in this project; returns what they say."""
    context = draft.context
    if not draft.project:
        return ""
    from nacre.storage.sessions import SessionFilter  # 8 ms that a prompt's hook need not pay

    wanted = SessionFilter(project=draft.project, kind=SessionKind.MAIN)
    found = [one for one in context.sessions.newest(wanted, limit=2) if one.session.id != draft.request.session]
    if not found:
        return ""
    turns = [
        item.turn
        for item in context.sessions.last_turns(found[0].row, 4 * PREVIOUS_TURNS)
        if item.turn.text.strip() and not item.turn.flags & _UNSAID and item.turn.trust is Trust.TRUSTED
        and item.turn.speaker in (Speaker.OWNER, Speaker.AGENT)
    ][-PREVIOUS_TURNS:]  # fmt: skip
    texts = [(turn.speaker.value, turn.text, turn.id, turn.time) for turn in turns]
    if draft.wants(Part.PREVIOUS):
        for speaker, text, turn_id, at in texts:
            line = said(speaker, text, _TURN_CHARACTERS)
            why = f"the end of {found[0].session.id}"
            draft.add(
                ContextItem(Part.PREVIOUS, line, count_tokens(line), f"{found[0].session.id}#{turn_id}", at, why=why)
            )
    return " ".join(shorten(text, _TURN_CHARACTERS) for _, text, _, _ in texts)


def _relevant(draft: _Draft, previous: str) -> None:
    """What fits the prompt, where it comes with the start, else how the last session ended (seed facts 1.8)."""
    if not draft.wants(Part.RELEVANT):
        return
    prompt = asked_by(draft.request.prompt).query
    if len(prompt.split()) < _LEAST_SEED_WORDS and prompt.isascii():
        prompt = ""
    query = f"{prompt} {previous[-SEED_CHARACTERS:] if not prompt else ''}".strip()
    if query:
        _tell_hits(draft, query, _START_HITS)


def _prompt(draft: _Draft) -> None:
    """What was handed over late, what other sessions learned, what fits a prompt and was not given yet."""
    if draft.request.session and not draft.state.handed:
        _handed_over(draft, is_late=draft.state.started > 0)
        if not draft.state.started:  # its start was missed, or told too late
            draft.state = replace(draft.state, started=_ms(draft))
    _signals(draft)
    _fitting(draft)
    _nudge(draft)


def _fitting(draft: _Draft) -> None:
    if not draft.wants(Part.RELEVANT):
        return
    asked = asked_by(draft.request.prompt, draft.state.asked)
    draft.gate = asked.why or "looked for"
    if asked.query:
        draft.state = _after_asking(draft.state, asked.query)
        _tell_hits(draft, asked.query, _PROMPT_HITS)


def _after_asking(state: SessionState, query: str) -> SessionState:
    return replace(state, asked=query)


def _tell_hits(draft: _Draft, query: str, limit: int) -> None:
    asked = RecallQuery(query, filter=_filter(draft), limit=limit, update=False, co_recall=False)
    found, is_unsure = (_by_words if draft.request.alone else _by_all_lanes)(draft, asked)
    if is_unsure:
        draft.left_out.append(LeftOut(Part.RELEVANT, None, "nothing was sure enough"))
    for memory, score, sure in found:
        _tell(draft, Part.RELEVANT, memory, score, f"{sure:.2f} sure to fit" if sure is not None else "fits")


_Found = tuple[list[tuple[Memory, float, float | None]], bool]
"""Memories with their scores and how sure they are to fit, and whether there were only others, not sure enough."""


def _by_all_lanes(draft: _Draft, asked: RecallQuery) -> _Found:
    from nacre.app.recalling import recall  # a hook that looks by itself needs less

    result = recall(draft.context, asked)
    draft.lanes = result.lanes
    return [(hit.memory, hit.score, hit.components.get("sure")) for hit in result.hits], result.abstained


def _by_words(draft: _Draft, asked: RecallQuery) -> _Found:
    draft.lanes = (Lane("lexical", LaneState.RAN), Lane("vector", LaneState.SKIPPED))
    hits, is_unsure = ranked_by_words(draft.context, replace(asked, mode=Mode.LEXICAL))
    return [(hit.memory, hit.score, hit.confidence) for hit in hits], is_unsure


def _filter(draft: _Draft) -> Filter:
    """What is trusted, of this project and of what holds everywhere; in a folder of no project, the latter alone."""
    if draft.project or not draft.request.folder:
        return Filter(projects=(draft.project,) if draft.project else (), trusted=True)
    return Filter(exclude_projects=tuple(sorted(draft.context.memories.projects())), trusted=True)


def _tell(draft: _Draft, part: Part, memory: Memory, score: float, why: str) -> bool:
    if _is_suppressed(draft, memory):
        draft.left_out.append(LeftOut(part, memory.id, "suppressed here"))
        return False
    if memory.is_handoff or draft.knows(memory):
        draft.left_out.append(LeftOut(part, memory.id, "handed over apart" if memory.is_handoff else "given already"))
        return False
    text = line_of(memory)
    return draft.add(ContextItem(part, text, count_tokens(text), memory.id, memory.updated, score, why))


def _is_suppressed(draft: _Draft, memory: Memory) -> bool:
    return _SUPPRESSED_AT[draft.request.moment] in memory.suppressed_contexts


def _learned(draft: _Draft) -> None:
    """Core, active, preferences and recent, each within its share of what is left."""
    context = draft.context
    now = context.clock()
    wanted = _filter(draft)
    engine = MemoryRecall(memory_search(context.database), context.memories, context.usage)
    ranking = Ranking(now)
    rows = browse_memories(context.database, wanted, limit=_BROWSED, today=now.date())
    core = browse_memories(
        context.database, replace(wanted, expiry=(Expiry.CORE,)), limit=_BROWSED, today=now.date()
    )  # fmt: skip
    found = {item.memory.id: item for item in engine.browse(list(dict.fromkeys([*core, *rows])), ranking)}
    candidates = [
        Candidate(item.memory, count_tokens(line_of(item.memory)), item.score)
        for item in found.values()
        if _is_due(item.memory, now)
        and draft.wants(part_of(item.memory))
        and not (draft.knows(item.memory) or item.memory.is_handoff)
    ]
    chosen = choose(candidates, max(0, draft.left - sum(map(title_tokens, {item.part for item in candidates}))))
    for item in chosen.kept:
        _tell(draft, item.part, item.memory, item.score, _reason(item))
    draft.left_out += [LeftOut(item.part, item.memory.id, "over the budget") for item in chosen.left]


def _is_due(memory: Memory, now: datetime) -> bool:
    """Whether a memory is told unasked: what lasts always, else for 30 days, temporary ones for seven."""
    if memory.expiry is Expiry.CORE or memory.kind in _LASTS:
        return True
    days = _TEMPORARY_DAYS if memory.expiry is Expiry.TEMPORARY else _PERMANENT_DAYS
    return now - memory.updated <= timedelta(days=days)


_REASONS: dict[Part, Callable[[Candidate], str]] = {
    Part.CORE: lambda _: "core",
    Part.ACTIVE: lambda _: "an open todo",
    Part.PREFERENCES: lambda item: f"a {item.memory.kind.value}, importance {item.memory.importance}",
    Part.RECENT: lambda item: f"changed {item.updated:%Y-%m-%d}, importance {item.memory.importance}",
}


def _reason(item: Candidate) -> str:
    return _REASONS[item.part](item)
