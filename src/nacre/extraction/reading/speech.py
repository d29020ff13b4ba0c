"""Reads: what the owner said in a session, turn by turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from nacre.extraction.reading.cues import Language, language_of
from nacre.extraction.reading.sentences import Statement, split, split_typed
from nacre.text.passages import normalise, words
from nacre.transcripts.trust import CHOSEN, TYPED
from nacre.values.session import Flag, Speaker, Trust, Turn

_UNSPOKEN = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN
_COMMAND = re.compile(r"^/\S+\s*")
_REJECTED = "rejected"
_ECHO_TURNS = 40
_TITLE = re.compile(r"[A-Z][^\n.!?:;,`]{2,60}\n[ \t]*\n(?=[ \t]*\S)")
_READER = re.compile(r"\byour?\b", re.IGNORECASE)
_FORM = re.compile(rf"^(?P<question>.+[?？:：]) [{CHOSEN}{TYPED}] (?P<answer>\S.*)$", re.MULTILINE)
_ARROW = f"{CHOSEN} "
_CHOSE = re.compile(rf"[?？:：] {CHOSEN}")
_MOST_OF_A_NOD = 3
_SELF = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|us|[Oo]urs?|[Ll]et['’]?s|[Pp]lease)\b")
_ADDRESSED = 2
"""How often a page says "you" or "your", at least."""
_MIN_ECHO = 25
_HEAD = 3


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message of the owner: where it is, its words and statements, and where it stands again: a message that was
    typed while the agent worked may be written down twice.

    ``correcting`` says that it declined a tool call; ``troubles`` are the statements, trimmed, that sound like trouble.
    """

    index: int
    text: str
    statements: tuple[Statement, ...]
    correcting: bool = False
    copies: tuple[int, ...] = ()
    troubles: frozenset[str] = frozenset()


def is_content(turn: Turn) -> bool:
    """Whether a turn's words were said by its speaker at all; what an agent says of nacre's own context is nacre's."""
    unspoken = _UNSPOKEN | Flag.INJECTED if turn.speaker is Speaker.AGENT else _UNSPOKEN
    return not turn.flags & unspoken and bool(turn.text.strip())


def utterances(turns: Sequence[Turn]) -> list[Utterance]:
    """The owner's words in order: messages, arguments of slash commands, words that declined a tool call."""
    found: list[Utterance] = []
    for index, turn in enumerate(turns):
        for text, correcting in _words(turns, index, turn):
            typed = [] if _is_page(text) else split_typed(_FORM.sub(_answering, text))
            statements = tuple(one for one in _in_one_language(typed) if not _echoes(one.text, turns, index))
            if len(statements) < len(typed):
                statements = tuple(replace(one, mixed=True) for one in statements)
            if statements and found and found[-1].text == text:
                found[-1] = replace(found[-1], copies=(*found[-1].copies, index))
            elif statements:
                found.append(Utterance(index, text, statements, correcting))
    return found


@dataclass(frozen=True, slots=True)
class Answered:
    """A question of a form, in the agent's words, and what the owner answered: yes or no and no more (``nods``), or
    words; ``typed`` if these are none of its options.
    """

    question: str
    answer: str
    nods: bool
    typed: bool


def forms(text: str) -> list[Answered]:
    """The questions of forms that a message answers, in order."""
    return [_answered(form) for form in _FORM.finditer(text)]


def is_chosen(utterance: Utterance, statement: Statement) -> bool:
    """Whether a statement is an answer that a form had among its options: its words are the agent's."""
    said = statement.text.rpartition(_ARROW)[2]
    return any(said in one.answer for one in forms(utterance.text) if not one.typed)


def without_chosen(text: str) -> str:
    """A message without the agent's words in a form: what was chosen goes, and of what was typed the question."""
    return _FORM.sub(lambda form: form["answer"] if _answered(form).typed else "", text).strip()


def _answered(form: re.Match[str]) -> Answered:
    answer = form["answer"]
    cues = language_of(answer).answers
    nods = len(words(answer)) <= _MOST_OF_A_NOD and bool(cues.no.match(answer) or cues.yes.match(answer))
    return Answered(form["question"], answer, nods, typed=not _CHOSE.search(form[0]))


def _answering(form: re.Match[str]) -> str:
    """What the owner said by an answer: the answer with its question, unless it is a nod or was typed; what the agent
    stated before it asked is the agent's.
    """
    answered = _answered(form)
    asking = [] if answered.nods or answered.typed else split(form["question"])
    return f"{asking[-1].text} → {form['answer']}" if asking else form["answer"]


def _is_page(text: str) -> bool:
    """Whether a message is a page of somebody's, copied as it stands: under a bare title it speaks to its reader, and
    nobody in it speaks of themselves, asks or says please. A role that is given to an agent looks alike, and states
    nothing of its owner either."""
    title = _TITLE.match(text.lstrip())
    if not title or "?" in text or _SELF.search(text):
        return False
    return len(_READER.findall(text)) >= _ADDRESSED


def _in_one_language(statements: list[Statement]) -> list[Statement]:
    """Without the sentences in English of a message that is in another language: those are pasted."""
    spoken = {language_of(one.text).joiner for one in statements}
    return [one for one in statements if not language_of(one.text).joiner] if spoken == {"", " "} else statements


def _echoes(statement: str, turns: Sequence[Turn], index: int) -> bool:
    """Whether the owner pasted what an agent had written: a task from its list, a line of its report."""
    wanted = normalise(statement)
    if len(wanted) < _MIN_ECHO:
        return False
    recent = turns[max(0, index - _ECHO_TURNS) : index]
    return any(one.speaker is Speaker.AGENT and wanted in _plain(one.text) for one in recent)


@lru_cache(maxsize=2 * _ECHO_TURNS)
def _plain(text: str) -> str:
    return normalise(text)


def _words(turns: Sequence[Turn], index: int, turn: Turn) -> list[tuple[str, bool]]:
    if turn.flags & _UNSPOKEN:
        return []
    if turn.speaker is Speaker.AGENT:
        return [(said, True) for said in _declined(turn)]
    if turn.speaker is not Speaker.OWNER or turn.trust is Trust.UNTRUSTED:
        return []
    text = _COMMAND.sub("", turn.text) if turn.flags & Flag.COMMAND else turn.text
    previous = before(turns, index, Speaker.AGENT)
    calls = turns[previous].tool_calls if previous is not None and previous == index - 1 else ()
    return [(text, bool(calls and calls[-1].outcome == _REJECTED))] if text.strip() else []


def _declined(turn: Turn) -> list[str]:
    prefix = f"{_REJECTED}: "
    return [
        call.outcome.removeprefix(prefix)
        for call in turn.tool_calls
        if call.outcome and call.outcome.startswith(prefix) and len(call.outcome) > len(prefix)
    ]


def before(turns: Sequence[Turn], index: int, speaker: Speaker) -> int | None:
    """The index of the last turn with words, of a speaker, before another turn."""
    for at in range(index - 1, -1, -1):
        turn = turns[at]
        if turn.speaker is Speaker.OWNER and is_content(turn) and speaker is not Speaker.OWNER:
            return None
        if turn.speaker is speaker and is_content(turn):
            return at
    return None


def acceptance(utterance: Utterance, language: Language) -> list[str] | None:
    """What the owner adds to words that accept what an agent said; ``None`` where they accept nothing.

    "Ha. Yes, that's it." accepts with its second sentence.
    """
    head = [one.text for one in utterance.statements[:_HEAD]]
    yes = language.accepted.yes.match(" ".join(head))
    if not yes:
        return None
    rest = yes.end()
    while head and rest >= len(head[0]):
        rest -= len(head.pop(0)) + 1
    return [text for text in (head[0][max(rest, 0) :].strip(" ,;:—–-"), *head[1:]) if text] if head else []


def is_taken_back(utterance: Utterance, place: int) -> bool:
    """Whether a later statement of the same message takes a statement back: "use Redis. no wait, forget it"."""
    later = utterance.statements[place + 1 :]
    return any(language_of(one.text).reversal.undo.match(one.text) for one in later)


def is_accepted_plan(turns: Sequence[Turn], index: int) -> bool:
    """Whether a turn is a plan that an agent had written and that the owner accepts next, by its title."""
    turn, following = turns[index], turns[index + 1 : index + 2]
    if not turn.flags & Flag.SUMMARY or not following or following[0].speaker is not Speaker.OWNER:
        return False
    title = following[0].text.rstrip().rpartition("\n")[2]
    return bool(title) and turn.text.startswith(title)


def trusted_agent(turns: Sequence[Turn], index: int) -> int | None:
    """The index of the agent's last words before a turn, unless they draw on text from outside."""
    at = before(turns, index, Speaker.AGENT)
    return at if at is not None and turns[at].trust is Trust.TRUSTED else None
