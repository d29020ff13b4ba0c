"""Before an edit or a command: the owner's rule that names the file, or what the command is told to do.

Plain on purpose: rules (preferences and lessons) alone, by names alone. What else was tried is in decision 20.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from nacre.context.draft import Draft
from nacre.context.frame import framed, line_of, title_tokens
from nacre.context.session_state import read_state
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.storage.filters import Clause, memory_clause
from nacre.storage.search.full_text import Term
from nacre.text.passages import CHARACTERS_PER_TOKEN, count_tokens, identifiers, words
from nacre.transcripts.commands import Invocation, invocations, looks
from nacre.transcripts.tool_calls import asked
from nacre.values.context import ContextItem, ContextRequest, Moment, Part
from nacre.values.hooks import HookAnswer, HookCall
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter
from nacre.values.session import Action, ToolCall

_TAKERS = frozenset({"claude-code", "codex", "generic"})
"""Hosts that take something for the agent before a tool runs."""

_RULES = (Kind.PREFERENCE, Kind.LESSON)
_CANDIDATES = 50
_MOST_PROGRAMS = 8
_MOST_FOLDERS = 12


def answer(home: Home, call: HookCall) -> HookAnswer:
    """One rule, or nothing: to most calls, to sessions nobody talks in, and where the daemon does not answer."""
    tokens = home.settings.whole("context.tool_tokens")
    if call.is_apart or call.alone or not call.session or call.host not in _TAKERS or not tokens:
        return HookAnswer()
    made = asked(call.tool, call.arguments)
    if made.action not in (Action.EDIT, Action.RUN):
        return HookAnswer()
    state = read_state(home.settings.home, call.session)
    project = project_of_folder(home, Path(call.folder)) if call.folder else None
    request = ContextRequest(Moment.PROMPT, folder=call.folder, session=call.session)
    draft = Draft(home, request, state, project, tokens + title_tokens(Part.RELEVANT))
    for memory in _rules_for(home, made, replace(draft.filter(), kinds=_RULES)):
        text = line_of(memory, tokens * CHARACTERS_PER_TOKEN)
        item = ContextItem(Part.RELEVANT, text, count_tokens(text), memory.id, memory.updated)
        if not draft.reason_against(memory) and draft.add(item, memory.content):
            block = framed([(Part.RELEVANT, [text])])
            return HookAnswer(block, count_tokens(block), state=state.with_given((memory.id,)))
    return HookAnswer()


def _rules_for(home: Home, call: ToolCall, wanted: Filter) -> list[Memory]:
    """The rules that name a call and are not likely to be outdated, the weightiest first, then the newest."""
    where = memory_clause(wanted, home.today())
    if call.action is Action.EDIT:
        found = [memory for path in call.paths for memory in _naming_file(home, path, where)]
    else:
        every = dict.fromkeys(invocations(call.input))
        programs = [program for program in every if program.told and not looks(program.name)][:_MOST_PROGRAMS]
        rows = {row for program in programs for row in _naming_command(home, program, where)}
        found = list(home.memories.by_rows(sorted(rows)).values())
    doubts = home.reviews.doubts([memory.id for memory in found], both_ways=True) if found else ()
    outdated = {doubt.older for doubt in doubts}
    held = [memory for memory in found if memory.id not in outdated]
    return sorted(held, key=lambda memory: (memory.importance, memory.updated), reverse=True)


def _naming_file(home: Home, path: str, where: Clause) -> list[Memory]:
    """The rules that name a file, or a folder that it lies in by two of its names at least."""
    names = [name for name in path.replace("\\", "/").split("/") if name]
    pairs = [f"{above}/{name}" for above, name in pairwise(names)][-_MOST_FOLDERS:]
    matched = home.memory_search.match_parts([*names[-1:], *pairs], where, _CANDIDATES)
    found = home.memories.by_rows([row for row, _, _ in matched]).values()
    whole = f"/{'/'.join(names)}/"
    return [memory for memory in found if any(f"/{name}/" in whole for name in _places(memory, names[-1]))]


def _places(memory: Memory, file: str) -> Iterator[str]:
    """The paths that a memory names, and its names of a file."""
    for name in identifiers(memory.content):
        name = name.strip("/")
        if "/" in name or name == file:
            yield name


def _naming_command(home: Home, program: Invocation, where: Clause) -> list[int]:
    """The rows of rules that hold all that a program is told: two words, a word and an option, or its very name."""
    told = _words(program.told)
    options = [_words([option]) for option in program.options]
    every = [program.name, *dict.fromkeys([*told, *(word for option in options for word in option)])]
    matched = home.memory_search.match([Term(word, word) for word in every], where, _CANDIDATES)
    rows = []
    for match in matched:
        held = {every[place] for place in match.held}
        is_more = len(told) > 1 or any(held.issuperset(option) for option in options if not set(option) <= set(told))
        if held.issuperset(told) and (is_more or program.name in held):
            rows.append(match.row)
    return rows


def _words(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(word for name in names for word in words(name)))
