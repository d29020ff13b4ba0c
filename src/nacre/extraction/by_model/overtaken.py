"""What a session makes of the memories that are known: which of them are over, and which say something else now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nacre.dedup.coverage import has_word, leaves_out, new_word
from nacre.dedup.decision_prompt import MOST_ENDED
from nacre.dedup.judge import Relation, judge
from nacre.dedup.statement import binds, firm_words, negations, read
from nacre.embed.calibration import calibration_of
from nacre.extraction.by_model.answer import Seen, State
from nacre.extraction.by_model.checks import Checks, gone_in
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.questions import is_asking
from nacre.extraction.reading.sentences import split
from nacre.extraction.rules.validate import size_refusal
from nacre.text.passages import normalise, one_line
from nacre.values.candidate import Candidate
from nacre.values.memory import Confidence, Confirmation, Kind, Memory
from nacre.values.session import Speaker

_OF_THE_OWNER = frozenset({Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP})
"""What the owner said of these kinds ends by their word alone; a trouble ends when it is mended, a todo when done."""


_MOST_CHARACTERS = 1_000
"""Of what a memory says now: what became of a thing stands there beside what still holds."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A known memory that is over, or that says ``now`` something else: the ``clause`` that holds no longer, the words
    that show it, where they were said, whether the owner typed something there, and what is claimed by that as a
    ``statement`` to be compared. ``is_free`` says that a rule of the owner's would get words that neither it nor the
    evidence has, or that the session reached outside and the owner, whose memory it is, typed no word of the change
    there, or that the message has marks of a paste: somebody is to look at it.
    """

    memory: Memory
    clause: str
    quote: str
    statement: Candidate
    shown: Confirmation
    is_owners: bool
    now: str = ""
    is_free: bool = False


def overtaken(
    seen: Sequence[Seen], known: Sequence[Memory], session: str, checks: Checks, places: Mapping[int, int]
) -> list[Overtaken]:
    """Those of a model's claims that code bears out: about a memory that was shown, quoted from trusted turns that were
    shown and that were said later, one of them the owner's where the memory is theirs to end, or to be reworded and
    holds everywhere. New words come from nobody outside.
    """
    found: dict[str, Overtaken] = {}
    for one in seen:
        memory = known[one.known - 1] if one.known <= len(known) else None
        evidence = sorted({places.get(number, -1) for number in one.evidence})
        evidence = checks.beside(evidence, one.quote, places.values()) if evidence else evidence
        if memory is None or not checks.shows(evidence, one.quote):
            continue
        times = checks.times(evidence)
        if not times or any(said < memory.last_said for said in times):
            continue
        typed = [checks.typed(at) for at in evidence if checks.is_typed(at)]
        said = [checks.turns[at].text for at in evidence]
        is_by_owner = memory.speaker is Speaker.OWNER and memory.kind in _OF_THE_OWNER
        if is_by_owner and not (typed and _is_about(memory, said)):
            continue
        now = one_line(one.now) if one.state is State.CHANGED else ""
        holds_here = memory.project is not None or bool(typed)
        if one.state is State.CHANGED and not (holds_here and _is_new(memory, now, checks)):
            continue
        turns = tuple(checks.turns[at].id for at in evidence)
        shown = Confirmation(max(times), session, turns)
        claim = _claim(memory, now, turns)
        is_outside = checks.reached_out([len(checks.turns) - 1])  # who asked before may be told of a page since
        is_owners = bool(typed) and not (is_outside and not _is_worded(memory, now, typed))
        is_nodded = memory.speaker is Speaker.OWNER and is_outside and not is_owners
        is_mixed = memory.speaker is Speaker.OWNER and checks.is_mixed(evidence)
        is_free = is_nodded or is_mixed or _is_free(memory, now, typed if is_outside else said)
        found.setdefault(memory.id, Overtaken(memory, one.clause, one.quote, claim, shown, is_owners, now, is_free))
    return list(found.values())


def standing(known: Sequence[Memory], seen: Sequence[Seen]) -> list[Memory]:
    """What is known after a session, as a model has it: what is over is gone, what changed says what it does now."""
    said = {one.known: one for one in seen}
    found = [(memory, said.get(number)) for number, memory in enumerate(known, 1)]
    return [
        replace(memory, content=one.now) if one and one.now else memory
        for memory, one in found
        if one is None or one.state is not State.OVER
    ]


def _is_new(memory: Memory, now: str, checks: Checks) -> bool:
    """Whether words may stand in place of a memory's: other ones, most of its own, not many more, and none that come
    from outside. What happened stays as it was told, and so does what is longer than a model may write.
    """
    is_list = "\n" in memory.content.strip()
    if memory.kind is Kind.EVENT or is_list or normalise(now) == normalise(memory.content):
        return False
    if any(size_refusal(one, _MOST_CHARACTERS) for one in (memory.content, now)):
        return False
    if leaves_out(memory.content, now) > MOST_ENDED:
        return False
    return not checks.adds_from_outside(now, memory.content)


def _is_about(memory: Memory, said: Sequence[str]) -> bool:
    """Whether what was said has a word of a memory, where both are of one language."""
    own = language_of(memory.content)
    return any(language_of(one) is not own or leaves_out(memory.content, one) < 1 for one in said)


def _is_free(memory: Memory, now: str, said: Sequence[str]) -> bool:
    """Whether new words of a rule of the owner's say what neither it nor what was ``said`` does, or deny less than it;
    of one that is over, whether nothing that was said has a word of it.
    """
    if memory.speaker is not Speaker.OWNER or memory.kind is not Kind.PREFERENCE:
        return False
    if not now:
        return not _is_about(memory, said)
    return bool(new_word(now, [memory.content, *said])) or negations(now) < negations(memory.content)


def _is_worded(memory: Memory, now: str, typed: Sequence[str]) -> bool:
    """Whether a word of a change was typed by the owner, and not asked: one that is new, and where something is denied
    or bound anew, that of it; of an end, and where no word is new or a denial goes, that it holds no longer.
    """
    said = [one.text for text in typed for one in split(text) if not is_asking(one.text)]
    before = {token.stem for token in read(memory.content).tokens}
    new = {word for word in read(now).words if not has_word(before, word)}
    firm, was_firm = firm_words(now), firm_words(memory.content)
    if firm - was_firm:
        both = f"{memory.content}\n{now}"
        if not any(binds(one, firm - was_firm, both) for one in said):
            return False
    elif (was_firm - firm or not new) and not any(_ends(one, memory) for one in said):
        return False
    typed_words = {token.stem for one in said for token in read(one).tokens}
    return not new or any(has_word(typed_words, word) for word in new)


def _ends(text: str, memory: Memory) -> bool:
    """Whether a sentence says that a memory holds no longer: it names what is gone, or plainly says otherwise."""
    before = read(memory.content).words
    if any(one <= before for one in gone_in(text)):
        return True
    said = replace(memory, subject="", content=text, canonical_key=None, claim=None)
    return judge(memory, said, None, calibration_of(None)).relation in (Relation.SUPERSEDES, Relation.DOUBTS)


def _claim(memory: Memory, now: str, turns: tuple[str, ...]) -> Candidate:
    told = (
        f"It now reads: {now} Before it read: {memory.content}"
        if now else f"It is over, or no longer so: {memory.content}"
    )  # fmt: skip
    return Candidate(memory.kind, memory.subject, told, turns, confidence=Confidence.EXTRACTED)
