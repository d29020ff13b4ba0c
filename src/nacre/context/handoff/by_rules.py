"""The handoff that needs no model: what the owner said last, in their own words (seed facts 1.8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nacre.context.handoff.worth import has_something
from nacre.extraction.reading.bounds import bounded
from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.shown import may_be_others, own_words
from nacre.extraction.reading.speech import Utterance, is_chosen, is_content, utterances, without_chosen
from nacre.sessions.summary.topics import is_idle, is_telling, words_of
from nacre.text.passages import shorten
from nacre.transcripts.trust import reached_out
from nacre.values.session import Session, Speaker, Trust, Turn

OWNER_TURNS = 5
OWNER_CHARACTERS = 200
_HEAD = "The owner said last in that session:"


@dataclass(frozen=True, slots=True)
class LastWords:
    """``content`` is what is handed over, ``until`` the id of the last turn that it knows of, ``asked`` that of the
    last one in which the owner wanted something."""

    content: str
    until: str
    asked: str


def by_rules(session: Session, turns: Sequence[Turn], is_nod: Callable[[str], bool] = is_idle) -> LastWords | None:
    """What a session hands over: the owner's last five turns, 200 characters each, without what they pasted and without
    nods ("go on").

    ``None`` where there is nothing to hand over: nobody spoke, or only to say hello, or to have something looked up.
    ``is_nod`` knows more words that ask for nothing.
    """
    shown = [bounded(turn) for turn in turns]
    sound = [one for one in utterances(shown) if _is_sound(shown[one.index])]
    outside = next((at for at, turn in enumerate(shown) if reached_out([turn], 0)), len(shown))
    said = [(one, words_of(shown[one.index], _own(one, is_outside=one.index >= outside))) for one in sound]
    kept = [(one, text) for one, text in said if text.strip() and not (is_idle(text) or is_nod(text))]
    until = last_turn(turns)
    told = [text for _, text in kept if _tells(text)][-OWNER_TURNS:]
    if not told or until is None or not has_something(session, shown, sound, [one for one, _ in kept]):
        return None
    lines = [f"- {shorten(text, OWNER_CHARACTERS)}" for text in told]
    return LastWords("\n".join([_HEAD, *lines]), until.id, shown[kept[-1][0].index].id)


def _own(utterance: Utterance, *, is_outside: bool) -> Utterance:
    """A message without what is pasted, what may only be shown, and what was chosen in the agent's words once the
    session had read text from ``outside``."""
    text = own_words(without_chosen(utterance.text) if is_outside else utterance.text)
    typed = tuple(
        one for one in utterance.statements
        if text and not (may_be_others(one) or (is_outside and is_chosen(utterance, one)))
    )  # fmt: skip
    return replace(utterance, text=text, statements=typed)


def _tells(text: str) -> bool:
    """Whether a message says something by itself."""
    return is_telling(text) and not language_of(text).summary.onward.match(text)


def last_turn(turns: Sequence[Turn]) -> Turn | None:
    """The last thing that owner or agent said."""
    spoken = (turn for turn in reversed(turns) if is_content(turn) and turn.speaker in (Speaker.OWNER, Speaker.AGENT))
    return next(spoken, None)


def _is_sound(turn: Turn) -> bool:
    """Whether it is the owner who speaks, and nothing from outside: what an agent declined to do is not handed over."""
    return turn.speaker is Speaker.OWNER and turn.trust is Trust.TRUSTED
