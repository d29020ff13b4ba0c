"""Contexts for session starts and prompts, the owner's pages, and answers to hooks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash, first_id, to_ms
from nacre.base.text import (
    STOP_WORDS,
    count_tokens,
    harmless,
    is_unspaced,
    one_line,
    read_table,
    shorten,
    stems,
    to_text,
)
from nacre.base.text import words as text_words
from nacre.base.times import shown_day, shown_minute
from nacre.context import hooks
from nacre.context.categories import (
    ABOVE,
    ELSEWHERE,
    ID_CHARACTERS,
    IS_GIVEN,
    IS_REPEATED,
    OVER_BUDGET,
    SENTENCE,
    SHARES,
    TURN_CHARACTERS,
    Draft,
    frame_tokens,
    has_all,
    is_guess,
    lack_of_evidence,
    line_of,
    part_of,
    quote,
    quote_turn,
    sentences_of,
    text_of,
)
from nacre.context.effects import pointers_are_off
from nacre.errors import EditConflictError, InvalidInputError, UnusableVaultError
from nacre.home import change
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.hosts import files
from nacre.learn import pasted, reading, sentences
from nacre.memories import edit, projects
from nacre.operations import operation
from nacre.recall import recall
from nacre.recall.lanes import SMALL_HOME_TURNS
from nacre.recall.question import asks_or_orders, asks_or_refers_back, refers_back
from nacre.recall.ranking import projects_named
from nacre.recall.scoring import BORDER, SURE, least_confidence
from nacre.values import fields
from nacre.values.context import (
    LOOKED_FOR,
    ContextBlock,
    ContextItem,
    ContextRequest,
    HookAnswer,
    HookCall,
    HookEvent,
    LeftOut,
    Moment,
    Occasion,
    Part,
    SessionState,
)
from nacre.values.memory import Expiry, Intent, Kind, Memory, SessionFilter
from nacre.values.recall import MemoryHit, Mode, RecallQuery, TurnHit
from nacre.values.session import BY_RULES, Flag, Handoff, SessionKind, Speaker, Trust, Turn
from nacre.vault.files import OWN_PAGES

if TYPE_CHECKING:
    from nacre.values.session import StoredSession

_MAX_MEMORIES = {Part.RULES: 12, Part.ACTIVE: 3, Part.DECISIONS: 3, Part.KNOWN: 3}
"""Maximum number of memories in each section of a start context."""

_FORGOT = frozenset({Occasion.COMPACT, Occasion.CLEAR})
"""Events after which an agent has lost its context."""

_SESSION_CHARACTERS = 80


@frozen
class Added:
    """The items for one section, and the session's new state if all of them fit."""

    items: tuple[ContextItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    state: SessionState | None = None


def _open_handoffs(draft: Draft) -> Added:
    home, request, state = draft.home, draft.request, draft.state
    is_start = request.moment is Moment.START
    if not is_start and (state.handed or not request.session):
        return Added()
    is_late = not is_start and state.started > 0
    # If the session start was missed, the first prompt counts as the start.
    if not is_late and request.occasion is not Occasion.RESUME:
        state = replace(state, started=home.now_ms(), handed=False)
    items, omitted = [], []
    known: set[str] = set()

    def is_known(session: str, line: str) -> bool:
        return draft.has_received(line) or has_all(known, line) or draft.states(session, line)

    for handoff in hooks.due_handoffs(
        home, draft.project, request.session, own=request.occasion in _FORGOT
    ):
        if handoff.id in state.given:
            continue
        is_due = hooks.is_late(handoff, state.started) or hooks.is_held(
            home, handoff.id, request.session
        )
        if is_late and not is_due:
            continue
        if not hooks.claim(home, handoff, request.session):
            omitted.append(LeftOut(Part.HANDOFF, handoff.id, "another session gets it"))
            continue
        news = _news(handoff, partial(is_known, handoff.session))
        if news:
            origin = f"{shorten(harmless(handoff.session), _SESSION_CHARACTERS)}, {shown_minute(handoff.written)}"
            by = ", in an agent's own words" if handoff.by == Speaker.AGENT else ""
            text = "\n".join([f"From {origin}{by}:", *quote("\n".join(news))])
            why = f"handed over by {origin}"
            items.append(
                ContextItem(
                    Part.HANDOFF, text, count_tokens(text), handoff.id, handoff.written, why=why
                )
            )
            known |= sentences_of("\n".join(news))
        else:
            omitted.append(LeftOut(Part.HANDOFF, handoff.id, IS_REPEATED))
    return Added(
        tuple(items),
        tuple(omitted),
        replace(state, handed=state.handed or bool(items)),
    )


def _news(handoff: Handoff, is_known: Callable[[str], bool]) -> list[str]:
    lines = [line for line in handoff.content.splitlines() if line.strip()]
    has_headings = handoff.by != BY_RULES
    news = []
    for line in lines:
        is_heading = has_headings and line.endswith(":")
        sentences = SENTENCE.split(line.removeprefix("- "))
        news_of_line = [sentence for sentence in sentences if is_heading or not is_known(sentence)]
        if not all(map(is_trivial, news_of_line)):
            news.append("- " * line.startswith("- ") + " ".join(news_of_line))
    return news if any(not line.endswith(":") for line in news) else []


def _new_signals(draft: Draft) -> Added:
    home, request = draft.home, draft.request
    if not request.session:
        return Added()
    now, folder, state = home.now_ms(), request.folder or "", draft.state
    after, is_start = state.after, request.moment is Moment.START
    if is_start or not state.name:
        ended = hooks.just_ended(home.settings.home, request.session, folder, now)
        after = tuple(dict.fromkeys((*after, *ended)))
    state = replace(state, name=request.session, folder=folder, seen=now, ended=0, after=after)
    news = [] if is_start else hooks.due(home, state, draft.project, request.signals)
    memories = [memory for _, memory in news if not draft.reason_against(memory)]
    if news:
        at = now if memories else state.signal_at
        signals = state.signals + len(memories)
        state = replace(state, signals=signals, signal_mark=news[-1][0], signal_at=at)
    elif state.signal_mark < 0:
        state = replace(state, signal_mark=home.memories.last_row())
    why = "stored by another session just now"
    items = tuple(
        ContextItem(Part.SIGNALS, text, count_tokens(text), memory.id, memory.updated, why=why)
        for memory in memories
        for text in [line_of(memory)]
    )
    return Added(items, state=state)


def _store_reminder(draft: Draft) -> Added:
    state = hooks.count_prompt(draft.home, draft.state, draft.request.session, draft.project)
    if state.turns < hooks.TURNS or state.nudges >= hooks.MOST:
        return Added(state=state)
    why = f"nothing stored in {hooks.TURNS} turns"
    item = ContextItem(Part.NUDGE, hooks.TEXT, count_tokens(hooks.TEXT), why=why)
    return Added((item,), state=replace(state, turns=0, nudges=state.nudges + 1))


# -- Prompt queries -----------------------------------------------------------


QUERY_CHARACTERS = 2_000
_PROMPT_CHARACTERS = 20_000
RECENT_PROMPTS, PROMPT_CHARACTERS = 5, 200
"""Number of recent prompts to keep, and their maximum length."""

_SAME_PROMPT_OVERLAP = 0.85
"""Jaccard overlap above which two prompts count as the same."""

_POINTS_BACK_WORDS = 8
_POINTS_BACK = re.compile(
    r"^\W*(?:and|but|so|or)?\s*(?:why|how so|how come|what about|how about|and|also"
    r"|the (?:other|same|first|second|last) one"
    r"|(?:for|with|in|on) (?:that|this|it|them|those)|und|warum|wieso|et|pourquoi|y|por qué)\b"
    r"|\b(?:it|that|this|those|them|there)\b\W*$|^(?:那|还有|为什么|这个|那个|它)",
    re.IGNORECASE,
)
"""The start or end of a short prompt that refers to the previous one."""

_COMMAND = re.compile(r"\s*(?:/[\w:.-]+(?=\s|$)|!\s*\w)")
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_TRACE = re.compile(
    r"^\s*(?:at\s.*(?:\(|:\d)|File \"|Traceback\b|Caused by:|\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|[-+]{3}\s|@@"
    r"|[+-]\s{2,}|[{}\[\]<>|$%]|\w*(?:Error|Exception|Warning):"
    r"|(?:npm|yarn|pip|error|warn|info|debug|fatal)\b[\w\[\] .!]*(?:ERR|:)|[\w./\\-]+:\d+(?::\d+)?:?\s)"
)
"""The start of a line from a trace, log, diff or other machine-generated text."""

_LETTER = re.compile(r"[^\W\d_]")

_MAY_BE_SECRET = re.compile(
    r"[=@]|://|\d\S{7}|\S{7}\d|[A-Za-z0-9+/_-]{20}|passw|passphrase|passcode|contraseña|mot de passe|secret|token"
    r"|credential|bearer|key\b|\bpwd\b|\bpin\b|private|密码|口令|密钥",
    re.IGNORECASE,
)


def query_of(prompt: str, before: str = "", prompts: Sequence[str] = ()) -> tuple[str, str]:
    """Return the search query for a prompt, or "" and the reason why there is none.

    ``before``: the session's last query. ``prompts``: its last prompts. A short prompt that refers
    to the previous one is searched together with it. Pasted text is ignored.
    """
    if _COMMAND.match(prompt):
        return "", "a command of the host"
    text = prose(prompt)
    if not text:
        return "", "nothing but pasted text" if prompt.strip() else "empty"
    if is_trivial(text):
        return "", "nothing in it to look for"
    if prompts and len(text.split()) <= _POINTS_BACK_WORDS and _POINTS_BACK.search(text):
        text = f"{text}\n{prompts[-1]}"
    if before and _is_same(text, before):
        return "", "asked just now"
    return text, ""


def prose(prompt: str) -> str:
    """Return a prompt's lines that the owner probably typed, up to ``QUERY_CHARACTERS``."""
    lines = (
        line.strip()
        for line in _FENCED.sub("\n", prompt[:_PROMPT_CHARACTERS]).splitlines()
        if not _TRACE.match(line)
    )
    return "\n".join(line for line in lines if line)[:QUERY_CHARACTERS]


def is_trivial(text: str) -> bool:
    """Return True if a prompt has no letters or is only a greeting, thanks, a yes or "go on"."""
    if not _LETTER.search(text):
        return True
    plain, phrases = _trivial_words()
    remaining = (
        " ".join(text_words(text))
        if text.isascii()
        else " ".join(re.findall(r"[^\W_]+", text.lower()))
    )
    for phrase in phrases:
        if not is_unspaced(phrase):
            remaining = re.sub(rf"\b{re.escape(phrase)}\b", " ", remaining)
    return all(
        word in plain or (is_unspaced(word) and not _remove_phrases(word, phrases))
        for word in remaining.split()
    )


def add_prompt(prompts: Sequence[str], prompt: str) -> tuple[str, ...]:
    """Return the session's last prompts, including the new one unless it is trivial."""
    text = prose(prompt)[:PROMPT_CHARACTERS]
    return (*prompts, text)[-RECENT_PROMPTS:] if text and not is_trivial(text) else tuple(prompts)


def _remove_phrases(run: str, phrases: Sequence[str]) -> str:
    for phrase in phrases:
        run = run.replace(phrase, "")
    return run


@cache
def _trivial_words() -> tuple[frozenset[str], tuple[str, ...]]:
    tables = read_table(__file__, "trivial.toml").values()
    plain = frozenset(word for table in tables for word in table.get("words", "").split())
    phrases = {phrase for table in tables for phrase in table.get("phrases", [])}
    return plain, tuple(sorted(phrases, key=len, reverse=True))


def _is_same(prompt: str, before: str) -> bool:
    words, words_before = set(text_words(prompt)), set(text_words(before))
    return (
        words - STOP_WORDS <= words_before
        or len(words & words_before) / len(words | words_before) > _SAME_PROMPT_OVERLAP
    )


# -- Session starts -----------------------------------------------------------


STALE_DAYS = 30
"""Maximum age in days of a previous session that is shown."""

_MAX_SESSIONS = 5
_MAX_TURNS = 80
_MAX_BROWSED = 100
_PAGE_CHARACTERS = 8_000
_MARK = "nacre:start"
"""Marker that dreams leave in changed pages."""

_NOT_CONVERSATION = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN | Flag.COMMAND


def add_previous(draft: Draft) -> None:
    """Add the last exchange of the project's previous session to the context."""
    previous = _session_before(draft) if draft.wants(Part.PREVIOUS) else None
    if previous:
        session, turns = previous
        age = draft.home.clock() - session.ended if session.ended else timedelta()
        if age > timedelta(days=STALE_DAYS):
            draft.leave(Part.PREVIOUS, session.session.id, f"ended {age.days} days ago")
        else:
            room = draft.room(Part.PREVIOUS)
            for turn in _not_handed_over(draft, session, turns):
                text = text_of(draft.home, session.row, turn)
                if not text or draft.has_received(text) or draft.states(session.session.id, text):
                    continue
                line = quote_turn(turn.speaker, text, TURN_CHARACTERS, turn.time or session.ended)
                room -= count_tokens(line)
                ref = f"{session.session.id}#{turn.id}#"
                if room < 0:
                    draft.leave(Part.PREVIOUS, ref, OVER_BUDGET)
                    continue
                why = f"the end of {session.session.id}"
                item = ContextItem(Part.PREVIOUS, line, count_tokens(line), ref, turn.time, why=why)
                draft.add(item, shorten(text, TURN_CHARACTERS))


def _learned(draft: Draft) -> dict[Part, list[Memory]]:
    home, criteria = draft.home, draft.filter()
    sorts = (
        replace(criteria, expiry=(Expiry.CORE,)),
        replace(criteria, kinds=(Kind.TODO,)),
        replace(criteria, kinds=(Kind.PREFERENCE, Kind.DECISION, Kind.LESSON)),
        criteria,
    )
    rows = [
        row
        for sort in sorts
        for row in home.selection.browse_memories(sort, limit=_MAX_BROWSED, today=home.today())
    ]
    memories = home.memories.by_rows(list(dict.fromkeys(rows))).values()
    ids = [memory.id for memory in memories]
    outdated = home.reviews.newer(ids)
    usage = home.usage.of(ids)
    learned: dict[Part, list[Memory]] = {part: [] for part in _MAX_MEMORIES}
    for memory in sorted(
        memories, key=lambda memory: (memory.importance, memory.updated), reverse=True
    ):
        part = part_of(memory, home.clock())
        if part is None or not draft.wants(part):
            continue
        reason = (
            draft.reason_against(memory)
            or ("likely to be outdated" if memory.id in outdated else "")
            or lack_of_evidence(memory, part, usage[memory.id])
        )
        started = draft.state.started
        is_new = memory.id >= first_id(started) or (to_ms(memory.updated) or 0) > started
        if not reason and draft.has_begun and not is_new:
            reason = "it was there when the session began"
        if reason:
            draft.leave(part, memory.id, reason, memory.subject)
        else:
            learned[part].append(memory)
    return learned


def _add_learned(draft: Draft, part: Part, memories: Sequence[Memory]) -> None:
    room, most = draft.room(part), _MAX_MEMORIES[part]
    for at, memory in enumerate(memories):
        room -= count_tokens(draft.line(memory))
        if at == 0 or (at < most and room >= 0):
            why = f"a {memory.kind.value}, importance {memory.importance}"
            draft.add_memory(part, memory, memory.importance / 10, why)
            continue
        for omitted in memories[at:]:
            draft.leave(part, omitted.id, OVER_BUDGET, omitted.subject)
        if part is Part.RULES:
            text = f"- … and {len(memories) - at} more: nacre list --kind preference"
            draft.add(ContextItem(part, text, count_tokens(text), why="rules that do not fit"))
        return


def _add_own_page(draft: Draft, part: Part) -> None:
    if not draft.wants(part):
        return
    try:
        path, data = _read(draft.home, part, None)
    except (OSError, UnusableVaultError):
        return
    text = to_text(data or b"")
    own = files.drop_blocks(text) if _MARK in text else text
    clean = draft.home.redactor.clean(own[:_PAGE_CHARACTERS])
    draft.add_page(part, quote(clean), f"{path} in the vault")


def _session_before(draft: Draft) -> tuple[StoredSession, list[Turn]] | None:
    if not draft.project:
        return None
    sessions = draft.home.sessions
    criteria = SessionFilter(project=draft.project, kind=SessionKind.MAIN)
    for stored in sessions.newest(criteria, limit=_MAX_SESSIONS):
        if stored.session.id == draft.request.session:
            continue
        last = reading.sort_by_time(
            [item.turn for item in sessions.last_turns(stored.row, _MAX_TURNS)]
        )
        turns = [
            turn
            for turn in last
            if turn.text.strip()
            and not turn.flags & _NOT_CONVERSATION
            and turn.speaker in (Speaker.OWNER, Speaker.AGENT)
            and turn.trust is Trust.TRUSTED
        ]
        requests = [
            at
            for at, turn in enumerate(turns)
            if turn.speaker is Speaker.OWNER and not is_trivial(turn.text)
        ]
        if requests:
            after = turns[requests[-1] + 1 :]
            answers = [turn for turn in after if turn.speaker is Speaker.AGENT]
            # Text before a tool call only announces a step.
            if answers and any(turn.tool_calls for turn in last[last.index(answers[-1]) :]):
                answers = []
            return stored, [turns[requests[-1]], *answers[-1:]]
    return None


def _not_handed_over(draft: Draft, session: StoredSession, turns: Sequence[Turn]) -> list[Turn]:
    handoffs = [
        handoff
        for handoff in draft.home.handoffs.pending(draft.project or "")
        if handoff.session == session.session.id
    ]
    covered = {
        turn
        for handoff in handoffs
        if draft.includes(handoff.id)
        for turn in hooks.covered_turns(handoff, turns)
    }
    for turn in turns:
        if turn.id in covered:
            draft.leave(Part.PREVIOUS, f"{session.session.id}#{turn.id}", ABOVE)
    return [turn for turn in turns if turn.id not in covered]


# -- Building a context -------------------------------------------------------
# A session gets each item only once. The caller saves the state.


_PROMPT_HITS, _MAX_RELEVANT = 8, 3
_POINTER_HITS, _MIN_SAME_SESSION = 8, 3
_POINTER_SURENESS = {Mode.LEXICAL: 0.995, Mode.HYBRID: 0.93}
"""Minimum confidence for a pointer to a turn. Single turns match by chance, so others must match."""

_MAX_QUESTION_WORDS = 40
"""Maximum number of words in a question that guesses can match. Longer prompts match by chance."""

_POINTER_CHARACTERS = 200
_UNQUOTED = re.compile(r"[^\n:：\"“”„«»「」『』《》`<>{}|=]+")
"""A text that shows no signs of quotation or pasting."""

_START_HITS = 3
"""Maximum number of hits for a first prompt."""


@operation("context")
def build(home: Home, request: ContextRequest) -> ContextBlock:
    """Return the context for the start of a session or for a prompt.

    The context is empty if nothing is relevant. It contains only trusted memories, which do not
    count as recalled. The caller must deliver the text before saving the returned state. After a
    compaction or reset, items can be delivered again.
    """
    started = time.perf_counter()
    before = state = hooks.read_state(home.settings.home, request.session)
    is_start = request.moment is Moment.START
    if is_start:
        state = replace(state, owed="")
        if request.occasion is not Occasion.RESUME:
            state = replace(state, given=(), asked="")
    setting = "context.budget_tokens" if is_start else "context.prompt_tokens"
    budget = request.budget_tokens
    if budget is None:
        budget = home.settings.whole(setting)
    project = request.project or project_of_folder(home, request.folder)
    draft = Draft(home, request, state, project, budget - frame_tokens())
    if draft.budget_tokens > 0:
        (add_start if is_start else _prompt)(draft)
    text = draft.text()
    already_said = (
        omitted.ref for omitted in draft.left_out if omitted.why is IS_REPEATED and omitted.ref
    )
    after = draft.state.with_given((*(item.ref for item in draft.items if item.ref), *already_said))
    return ContextBlock(
        text,
        tuple(draft.items),
        tuple(draft.left_out),
        draft.lanes,
        draft.gate,
        project,
        count_tokens(text),
        (time.perf_counter() - started) * 1000,
        after if request.session and after != before else None,
    )


def add_start(draft: Draft) -> None:
    """Add pages, memories, the end of the previous session, and hits for the first prompt.

    A resumed session already has the pages and the previous session's end.
    """
    if not draft.has_begun:
        _add_own_page(draft, Part.IDENTITY)
        _add_own_page(draft, Part.PROFILE)
        if draft.project and draft.wants(Part.PROJECT):
            text = change.page_text(draft.home, draft.project, own=True)[:_PAGE_CHARACTERS]
            draft.add_page(Part.PROJECT, quote(text), "the project's page")
    learned = _learned(draft)
    for part in (Part.RULES, Part.ACTIVE, Part.DECISIONS):
        _add_learned(draft, part, learned[part])
    _add(draft)
    if not draft.has_begun:
        add_previous(draft)
    prompt = query_of(draft.request.prompt)[0]
    if prompt:
        _note_prompt(draft)
    if prompt and draft.wants(Part.RELEVANT):
        room = draft.room(Part.RELEVANT)
        _add_relevant(draft, prompt, _START_HITS, room, is_first=True)
    _add_learned(draft, Part.KNOWN, learned[Part.KNOWN])


def _prompt(draft: Draft) -> None:
    if draft.wants(Part.RELEVANT):
        state = draft.state
        query, why = query_of(draft.request.prompt, state.asked, state.heard)
        draft.gate = why or LOOKED_FOR
        _note_prompt(draft)
        if query:
            draft.state = replace(draft.state, asked=_without_secrets(draft, query))
            _choose_projects(draft, query)
            room, is_first = draft.left_tokens, not state.heard
            _add_relevant(draft, query, _PROMPT_HITS, room, is_first=is_first)
    _add(draft)


def _add_relevant(draft: Draft, query: str, limit: int, room: int, *, is_first: bool) -> None:
    prompt = prose(draft.request.prompt)
    hooks.add_intents(draft, hooks.Occurrence(stems(prompt), hooks.PATHS.findall(prompt)))
    is_triggered = draft.relevant_count > 0
    # After the first prompt, most questions are about the session itself.
    is_question = asks_or_refers_back(query) if is_first else refers_back(query)
    hits = _find_hits(draft, query, limit, is_question=is_question)
    is_sure = any(hit.components["sure"] >= SURE and not is_guess(hit.memory) for hit in hits)
    if is_triggered or is_sure or not (is_question and _add_pointer(draft, query)):
        _add_hits(draft, hits, room)


def _note_prompt(draft: Draft) -> None:
    text = _without_secrets(draft, prose(draft.request.prompt))
    draft.state = replace(draft.state, heard=add_prompt(draft.state.heard, text))


def _without_secrets(draft: Draft, prompt: str) -> str:
    """Remove secrets from a prompt. A hook without a daemon has no time for this and drops suspicious prompts."""
    if draft.request.alone:
        patterns, _, kinds = draft.home.settings.redaction
        return "" if patterns or kinds or _MAY_BE_SECRET.search(prompt) else prompt
    return draft.home.redactor.clean(prompt)


def _choose_projects(draft: Draft, query: str) -> None:
    if draft.project or not draft.request.folder:
        return
    draft.named = projects_named(draft.home, query)
    if not draft.named and draft.home.memories.projects():
        draft.leave(Part.RELEVANT, None, ELSEWHERE)


def _add(draft: Draft) -> None:
    additions = {Part.HANDOFF: _open_handoffs, Part.SIGNALS: _new_signals}
    if draft.request.moment is Moment.PROMPT:
        additions[Part.NUDGE] = _store_reminder
    for part, find in additions.items():
        if not draft.wants(part):
            continue
        added = find(draft)
        draft.left_out += added.left_out
        too_much = [
            item for item in added.items if not (draft.includes(item.ref) or draft.add(item))
        ]
        for item in too_much:
            # Another session can receive a handoff that does not fit.
            if item.ref and hooks.is_held(draft.home, item.ref, draft.request.session):
                hooks.forget_claim(draft.home, item.ref)
        if added.state is not None and not too_much:
            draft.state = added.state


def _find_hits(draft: Draft, query: str, limit: int, *, is_question: bool) -> tuple[MemoryHit, ...]:
    """Return matching memories. The minimum confidence grows with the number of turns."""
    query_request = RecallQuery(
        query,
        filter=draft.filter(),
        limit=limit,
        update=False,
        co_recall=False,
        is_prompt=True,
        confident=True,
        turns=0,
        mode=Mode.LEXICAL if draft.request.alone else Mode.HYBRID,
    )
    result = recall.recall(draft.home, query_request)
    draft.lanes = result.lanes
    draft.spaces = {hit.memory.id: hit.space for hit in result.hits if hit.space}
    allows_guess = is_question and len(query.split()) <= _MAX_QUESTION_WORDS
    least = least_confidence(draft.home.turn_search.corpus(()).rows, SMALL_HOME_TURNS)
    return tuple(
        hit
        for hit in result.hits
        if hit.components["sure"] >= least and (allows_guess or not is_guess(hit.memory))
    )


def _add_hits(draft: Draft, hits: Sequence[MemoryHit], room: int) -> None:
    end = draft.left_tokens - room
    # Doubt lowers a score at most by half.
    weighed = [(hit, hit.score * (1 - draft.doubt(hit.memory)[0] / 2)) for hit in hits]
    for hit, score in sorted(weighed, key=lambda scored: -scored[1]):
        memory = hit.memory
        if draft.left_tokens <= end or draft.relevant_count >= _MAX_RELEVANT:
            draft.leave(Part.RELEVANT, memory.id, OVER_BUDGET, memory.subject)
            continue
        why = f"{hit.components['sure']:.2f} sure to fit"
        draft.add_memory(Part.RELEVANT, memory, score, why)


def _add_pointer(draft: Draft, query: str) -> bool:
    home, request = draft.home, draft.request
    if not draft.wants(Part.POINTER) or pointers_are_off(home, draft.project):
        return False
    own_sessions = (request.session, *draft.state.after)
    turn_query = RecallQuery(
        query,
        filter=draft.filter(),
        mode=Mode.LEXICAL if request.alone else Mode.HYBRID,
        limit=_POINTER_HITS,
        is_prompt=True,
    )
    for mode, turn_hits in recall.turns_for_prompt(home, turn_query):
        hits = [
            hit
            for hit in turn_hits
            if hit.session.id not in own_sessions
            and hit.turn.speaker in (Speaker.OWNER, Speaker.AGENT)
            and not hit.turn.flags & _NOT_CONVERSATION
            and "narration" not in hit.components
        ]
        sure = hits[0].components["sure"] if hits else 0.0
        same = sum(hit.session.id == hits[0].session.id for hit in hits)
        if sure >= _POINTER_SURENESS[mode] and same >= _MIN_SAME_SESSION:
            return _point_to(draft, hits[0])
        if sure < BORDER:
            return False
    return False


def _point_to(draft: Draft, hit: TurnHit) -> bool:
    turn, session, sessions = hit.turn, hit.session, draft.home.sessions
    row = sessions.find(session.id)[0].row
    words, answer_id = shorten(_typed_words(turn), _POINTER_CHARACTERS), turn.id
    if turn.speaker is Speaker.OWNER and (asks_or_orders(turn.text) or not words):
        asked_at = sessions.place_of(row, turn.id) or 0
        answer = recall.answer_after(draft.home, row, asked_at + 1)
        if answer is None:
            return False
        answer_id = answer.id
    ref = f"{session.id}#{answer_id}"
    if ref in draft.state.given:
        draft.leave(Part.POINTER, ref, IS_GIVEN)
        return False
    short = session.native_id[:ID_CHARACTERS]
    name = short if len(sessions.find(short)) == 1 else session.id
    place = sessions.place_of(row, answer_id)
    origin = f"{shown_day(turn.time)}, {session.tool}" if turn.time else session.tool
    quote = f": “{words}”" if words else ""
    call = one_line(f"{name}#{place}")
    text = harmless(f"- {origin}{quote} (memory_get {call}, or: nacre sessions show {call})")
    sure = hit.components["sure"]
    why = f"{sure:.2f} sure to answer"
    return draft.add(ContextItem(Part.POINTER, text, count_tokens(text), ref, turn.time, sure, why))


def _typed_words(turn: Turn) -> str:
    words = sentences.without_chosen(turn.text)
    is_own = (
        turn.speaker is Speaker.OWNER
        and turn.trust is Trust.TRUSTED
        and _UNQUOTED.fullmatch(words)
        and not pasted.pointing_words().search(words)
        and not any(
            statement.mixed or reading.may_be_others(statement)
            for statement in sentences.split_typed(words)
        )
    )
    return words if is_own else ""


# -- The owner's pages --------------------------------------------------------


_MAX_PAGE_CHARACTERS = 100_000


@frozen
class OwnPage:
    """A page of the vault, with an empty text and etag if the file is missing.

    A new session receives at most ``told_tokens`` tokens of the page.
    """

    name: str
    path: str
    text: str = ""
    told_tokens: int = 0
    etag: str = ""

    @property
    def tokens(self) -> int:
        return count_tokens(self.text)


def _as_shown(home: Home, name: str, slug: str | None) -> OwnPage:
    path, data = _read(home, name, slug)
    text = home.redactor.clean(to_text(data or b"")).strip()
    told_tokens = int(SHARES[Part(name)] * home.settings.whole("context.budget_tokens"))
    return OwnPage(name, path, text, told_tokens, _etag(data))


def _slug(home: Home, name: str, project: str | None) -> str | None:
    if (name == Part.PROJECT) != bool(project):
        raise InvalidInputError(
            "only the page 'project' belongs to a project, which must be given",
            hint="nacre project list",
        )
    if not project:
        return None
    edit.catch_up(home)
    return projects.known_project(home, project)


def _etag(data: bytes | None) -> str:
    return "" if data is None else bytes_hash(data).hex()


def _read(home: Home, name: str, slug: str | None) -> tuple[str, bytes | None]:
    places = [change.page_path(slug)] if slug else ["profile.md"]
    if name == Part.IDENTITY:
        places = sorted(OWN_PAGES, reverse=True)
    for path in places:
        if home.vault.exists(path):
            return path, home.vault.read(path)
    return places[0], None


# -- Operations ---------------------------------------------------------------


@operation("page-own")
def own_page_answers(
    home: Home, name: fields.PageName, project: fields.PageProject = None
) -> OwnPage:
    """Return a page about the owner or a project, without secrets.

    Raises InvalidInputError, NotFoundError, UnusableVaultError.
    """
    return _as_shown(home, name, _slug(home, name, project))


@operation("page-write", writes=True, owners=True, command="project page")
def write_own_page_answers(
    home: Home,
    name: fields.PageName,
    text: Annotated[
        str,
        bounds(
            "The whole page. An empty text deletes it, except a project's.",
            max_length=200_000,
        ),
    ],
    project: fields.PageProject = None,
    expected: Annotated[
        str | None,
        bounds("The etag from your last read. If the page has changed since, nothing is written."),
    ] = None,
) -> OwnPage:
    """Replace the text of the owner's page or a project's page, without secrets.

    If the text is empty, the owner's page is deleted. A project's page cannot be deleted. ``nacre
    undo`` restores the previous text. ``expected`` is the etag of the text to replace. Raises
    InvalidInputError, NotFoundError, StoreBusyError, UnusableVaultError, and EditConflictError if
    the etag differs.
    """
    words, slug = home.redactor.clean(text).strip(), _slug(home, name, project)
    if len(words) > _MAX_PAGE_CHARACTERS:
        raise InvalidInputError(
            f"a page has {_MAX_PAGE_CHARACTERS:,} characters at most",
            hint="store the rest as memories",
        )
    if slug and not words:
        raise InvalidInputError(
            "a project's page cannot be deleted", hint="nacre project merge merges two projects"
        )
    with home.change("page", subject=slug or name) as change:
        path, data = _read(home, name, slug)
        if expected not in (None, _etag(data)):
            raise EditConflictError(
                f"{path} has changed since you read it", hint="read it again; nothing was written"
            )
        with change.transaction():
            if slug:
                before = projects.page_of(home, slug)
                projects.write(change, projects.edit_page(home, slug, before, f"{words}\n"), before)
            else:
                document = f"{words}\n" if words else None
                base = bytes_hash(data) if data is not None else None
                if document is not None or data is not None:
                    change.intend([Intent("write" if document else "remove", path, document, base)])
    return _as_shown(home, name, slug)


@operation("context-given", http=False)
def note_given(
    home: Home,
    session: Annotated[str, bounds("The host's session, as <tool>:<id>.")],
    state: Annotated[SessionState | None, bounds("The state of the delivered context.")] = None,
) -> None:
    """Save the session's state after the agent has received the context."""
    hooks.write_state(home.settings.home, session, state)


# -- Answers to hooks ---------------------------------------------------------


STARTED = "session-start"
"""Chore that cleans up delivered handoffs, and hands over sessions whose end went unnoticed."""

_CONTEXT_WITH_PROMPT = frozenset({"gemini-cli"})
"""Hosts that receive the start context with the first prompt, because they lose it on resuming."""

_MOMENTS = {HookEvent.SESSION_START: Moment.START, HookEvent.PROMPT: Moment.PROMPT}


@operation("hook", http=False)
def answer(home: Home, call: HookCall) -> HookAnswer:
    """Return the context or tool rule that a hook gives to the agent.

    The answer is empty for other events and in automated sessions. If no context was delivered at
    the session's start, the first prompt gets it. Hosts in ``_CONTEXT_WITH_PROMPT`` always get it
    then.
    """
    moment, state = _MOMENTS.get(call.event), hooks.read_state(home.settings.home, call.session)
    if call.event is HookEvent.SESSION_END and call.session and not call.is_apart:
        folder = call.folder or ""
        return HookAnswer(
            state=replace(state, name=call.session, folder=folder, ended=home.now_ms())
        )
    if call.event is HookEvent.TOOL:
        return hooks.answer(home, call)
    if moment is None or call.is_apart:
        return HookAnswer()
    occasion = call.occasion
    if call.session:
        if moment is Moment.PROMPT and state.owed in tuple(Occasion):
            moment, occasion = Moment.START, Occasion(state.owed)
        elif call.host in _CONTEXT_WITH_PROMPT and moment is Moment.START:
            is_missed = occasion is not Occasion.RESUME or not state.started
            return HookAnswer(
                chores=(STARTED,), state=SessionState(owed=occasion) if is_missed else None
            )
    request = ContextRequest(
        moment,
        occasion,
        call.prompt,
        call.folder,
        call.session or None,
        call.budget_tokens,
        alone=call.alone,
        signals=call.signals,
    )
    block = build(home, request)
    chores = (STARTED,) if moment is Moment.START and call.session else ()
    return HookAnswer(block.text, chores, block.state)
