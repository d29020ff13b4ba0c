"""Rules that judge whether a session followed the context that it received."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.text import STOP_WORDS, identifiers, stem, words
from nacre.context.hooks import read_state
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.learn import reading, sentences
from nacre.memories import usage
from nacre.operations import operation
from nacre.readers import conversation
from nacre.values.memory import Kind
from nacre.values.session import Action, Speaker, StoredSession, Turn

_NOT = re.compile(
    r"\b(?:never|(?:do|does|did|have|has|must|should|can|wo|is|are)n['’]?t|cannot|not|no longer|no more|no|nothing"
    r"|avoid|stop|leave out|instead of|rather than|without|nie|niemals|nicht|keine?n?|statt|jamais|pas de|nunca)\b"
    r"|不要|不用|禁止|而不是|别",
    re.IGNORECASE,
)
_ONLY_IF = re.compile(
    r"\b(?:without|unless|until|before|after|except|if|when|while|during|only|ohne|außer|bevor|wenn)\b|除非",
    re.IGNORECASE,
)
"""Words that make a prohibition conditional, such as "unless"."""

_ALWAYS = re.compile(r"\b(?:always|every|immer|toujours|siempre)\b|总是|一律", re.IGNORECASE)
_AGAIN = re.compile(
    r"\b(?:again|i(?:['’]?ve)? (?:said|told|asked)|how (?:often|many times)|already (?:said|told)|remember"
    r"|schon (?:wieder|gesagt)|doch gesagt)\b|又|说过",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[,;:()—，；：。！？\n]|[.!?](?=\s|$)|\b(?:but|because|since|so that|weil|sondern)\b"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
_OR = re.compile(r"\bor\b|\boder\b|/|或")
_CODE = re.compile(r"`([^`\n]*[^\W_][^`\n]*)`")
_BRACKETS = re.compile(r"\([^)]*\)")
_SIGN = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*|!!|={2,3}")
_GENERIC = {
    stem(word)
    for word in (
        "use run call execute write edit change modify touch create add make put give file folder directory "
        "code repo command operator hand manually each every directly own anything everything project always "
        "please must want need prefer"
    ).split()
}
_CALLS_NACRE = re.compile(r"memory_(?:get|search)|\bnacre\b", re.IGNORECASE)
_ID_CHARACTERS = 8
_RULES = (Kind.PREFERENCE, Kind.LESSON, Kind.DECISION)
_MIN_SHARE, _MIN_WORDS, _MIN_SPOKEN_SHARE, _MIN_SPOKEN = 0.5, 2, 0.6, 3


class Outcome(StrEnum):
    """An agent's reaction to an item in its context."""

    FOLLOWED = "followed"
    BROKEN = "broken"
    UNTOUCHED = "untouched"


def judge(kind: Kind, text: str, turns: Sequence[Turn]) -> Outcome:
    """Judge whether an agent followed or violated a memory in the turns after it was delivered."""
    orders, bans = _split(_BRACKETS.sub(" ", text))
    code, signs = _CODE.findall(orders), _stems(" ".join(_SIGN.findall(orders))).difference(*bans)
    names = [signs] if signs else [_stems(name) for name in code or identifiers(orders)]
    acts = list(_acts(turns))
    broken = any(ban <= act for ban in bans for act in acts if not any(map(act.issuperset, names)))
    content = _content(orders)
    if code and signs and _ALWAYS.search(text):
        broken |= any(_stems(code[0]) <= act and not signs <= act for act in acts)
    if broken or _is_corrected(kind, text, turns):
        return Outcome.BROKEN
    statements = list(_statements(turns))
    spoken = [stems for stems, _ in statements] if kind not in _RULES else []
    if kind is Kind.TODO:
        spoken.append(frozenset().union(*acts))
    is_followed = (
        any(any(map(act.issuperset, names)) for act in acts)
        or any(_covers(content, act, _MIN_SHARE, 1 if bans else _MIN_WORDS) for act in acts)
        or any(_covers(content, stems, _MIN_SPOKEN_SHARE, _MIN_SPOKEN) for stems in spoken)
        or any(denies and ban <= stems for ban in bans for stems, denies in statements)
    )
    return Outcome.FOLLOWED if is_followed else Outcome.UNTOUCHED


def _split(text: str) -> tuple[str, list[frozenset[str]]]:
    orders = []
    bans: list[frozenset[str]] = []
    at = 0
    for match in _NOT.finditer(text):
        if match.start() < at:
            continue
        end = _CLAUSE_END.search(text, match.end())
        orders.append(text[at : match.start()])
        at = end.start() if end else len(text)
        clause = text[match.end() : at]
        if not _ONLY_IF.search(clause):
            options = [_content(option) for option in _OR.split(clause)]
            is_list = all(len(option) == 1 for option in options)
            bans += filter(None, options if is_list else [_content(clause)])
    return " ".join([*orders, text[at:]]), bans


def _acts(turns: Sequence[Turn]) -> Iterator[frozenset[str]]:
    for call in (call for turn in turns for call in turn.tool_calls):
        if call.action is Action.EDIT:
            lines = [line for line in call.input.splitlines() if not line.startswith("-")]
            yield _stems("\n".join((*lines, *call.paths)))
        elif call.action is Action.RUN:
            for part in conversation.parts(call.input.partition("<<")[0]):
                if not conversation.looks(" ".join(part)):
                    yield _stems(" ".join(word for word in part if " " not in word))


def _statements(turns: Sequence[Turn]) -> Iterator[tuple[frozenset[str], bool]]:
    for turn in turns:
        if turn.speaker is Speaker.AGENT:
            for sentence in _SENTENCE.split(turn.text):
                yield _stems(sentence), bool(_NOT.search(sentence))


def _is_corrected(kind: Kind, text: str, turns: Sequence[Turn]) -> bool:
    start = next((at for at, turn in enumerate(turns) if turn.speaker is Speaker.AGENT), len(turns))
    content = _stems(text) - STOP_WORDS
    for message in sentences.utterances(turns):
        shared = _stems(message.text) & content
        if message.index < start or not shared:
            continue
        objects = (
            _AGAIN.search(message.text)
            or message.correcting
            or reading.is_objection(message, sentences.language_of(message.text))
            or (kind in _RULES and _NOT.search(message.text))
        )
        if objects and (len(shared) >= _MIN_WORDS or any(map(_SIGN.fullmatch, shared))):
            return True
    return False


def _covers(
    content: frozenset[str], stems: frozenset[str], min_share: float, min_words: int
) -> bool:
    shared = len(content & stems)
    return shared >= max(min_words, min_share * len(content))


def _content(text: str) -> frozenset[str]:
    return _stems(text) - STOP_WORDS - _GENERIC


def _stems(text: str) -> frozenset[str]:
    return frozenset((*map(stem, words(text)), *_SIGN.findall(text)))


def judge_pointer(ref: str, text: str, turns: Sequence[Turn]) -> Outcome:
    """Judge whether a session opened, searched for or used the turn ``<session>#<turn>``."""
    session, _, turn_id = ref.partition("#")
    ids = (turn_id, session.partition(":")[2][:_ID_CHARACTERS])
    content = _content(text)
    for call in (call for turn in turns for call in turn.tool_calls):
        request = f"{call.name} {call.input}"
        if _CALLS_NACRE.search(request) and (
            any(map(call.input.__contains__, filter(None, ids)))
            or len(_content(call.input) & content) >= _MIN_WORDS
        ):
            return Outcome.FOLLOWED
    own_sentences = [_content(sentence) for sentence in _SENTENCE.split(text)]
    is_used = any(
        _covers(sentence, stems, _MIN_SPOKEN_SHARE, _MIN_SPOKEN)
        for stems, _ in _statements(turns)
        for sentence in own_sentences
    )
    return Outcome.FOLLOWED if is_used else Outcome.UNTOUCHED


def record_effects(home: Home, stored: StoredSession) -> None:
    """Record which of the delivered memories and pointers a session followed."""
    name = stored.session.id
    refs = read_state(home.settings.home, name).given
    if not refs:
        return
    turns = home.sessions.read_turns(stored.row)
    outcomes = {
        memory.id: (judge(memory.kind, memory.content, turns), "")
        for memory in home.memories.in_any_state(refs)
    }
    for ref in refs:
        session, _, turn_id = ref.partition("#")
        if stored.project and turn_id and not turn_id.endswith("#"):
            texts = [
                turn.text
                for source in home.sessions.find(session)
                for turn in home.sessions.read_turns(source.row)
                if turn.id == turn_id
            ]
            outcome = judge_pointer(ref, "\n".join(texts), turns)
            outcomes[usage.session_name(ref)] = outcome, stored.project
    with home.transaction():
        for item, (outcome, project) in outcomes.items():
            home.usage.record_effect(
                item, usage.session_name(name), outcome, home.now_ms(), project=project
            )


# -- Ignored pointers, and the status page --------------------------------------------


_MAX_IGNORED_POINTERS = 20
_PERIOD = timedelta(days=30)


@frozen
class Effects:
    """Outcomes of the context that nacre delivered in the last 30 days."""

    shown: int = 0
    followed: int = 0
    broken: int = 0
    pointers: int = 0
    pointers_followed: int = 0
    off: tuple[str, ...] = ()
    """Projects that get no more pointers because the last 20 were ignored."""


def pointers_are_off(home: Home, project: str | None) -> bool:
    """Return True if agents ignored the last 20 pointers in a project."""
    outcomes = home.usage.pointer_outcomes(project, _MAX_IGNORED_POINTERS) if project else []
    return len(outcomes) == _MAX_IGNORED_POINTERS and Outcome.FOLLOWED not in outcomes


@operation("usefulness", command="admin usefulness")
def count_effects(home: Home) -> Effects:
    """Count the outcomes of delivered context in the last 30 days."""
    counts = home.usage.effects(home.now_ms() - _PERIOD // timedelta(milliseconds=1))
    memories, pointers = (
        {outcome: number for (outcome, is_pointer), number in counts.items() if is_pointer is kind}
        for kind in (False, True)
    )
    return Effects(
        sum(memories.values()),
        memories.get(Outcome.FOLLOWED, 0),
        memories.get(Outcome.BROKEN, 0),
        sum(pointers.values()),
        pointers.get(Outcome.FOLLOWED, 0),
        tuple(name for name in home.usage.pointer_projects() if pointers_are_off(home, name)),
    )


@operation("pointers-on", writes=True, owners=True, http=False, command="context --pointers")
def turn_pointers_on(
    home: Home,
    folder: Annotated[str, bounds("The agent's working folder, which determines the project.")],
) -> str | None:
    """Turn pointers on again in a folder's project, and return the project."""
    project = project_of_folder(home, folder)
    if project:
        home.usage.forget_pointers(project)
    return project
