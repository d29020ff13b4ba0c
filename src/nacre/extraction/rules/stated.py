"""Finds, in words: what the owner stated plainly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nacre.extraction.reading.cues import language_of
from nacre.extraction.reading.shown import may_be_others
from nacre.extraction.reading.speech import Utterance, is_taken_back
from nacre.extraction.rules.classify import Verdict, classify
from nacre.extraction.rules.findings import Finding, to_finding
from nacre.extraction.rules.reversal import content_words
from nacre.extraction.rules.validate import refusal

_COLONS = ":："


def stated(spoken: Sequence[Utterance]) -> Iterator[Finding]:
    """The statements of all messages that are worth keeping by themselves."""
    for utterance in spoken:
        for place in range(len(utterance.statements)):
            if is_taken_back(utterance, place):
                continue
            verdict = _verdict(utterance, place)
            if verdict is None:
                continue
            language = language_of(verdict.text)
            finding = to_finding(verdict, verdict.text, (utterance.index,), language)
            if finding:
                yield replace(finding, shown=may_be_others(utterance.statements[place]))


def _verdict(utterance: Utterance, place: int) -> Verdict | None:
    """What a statement is, if it is worth keeping."""
    statement = utterance.statements[place]
    language = language_of(statement.text)
    bonus = language.score.rejected if utterance.correcting else 0.0
    in_request = place > 0 and _is_request(utterance)
    detail = in_request and _is_about_what_was_asked(utterance, place)
    following = utterance.statements[place + 1 : place + 2]
    if language.answers.unsure.search(statement.text) or language.answers.only_points(language.trim(statement.text)):
        return None  # the owner only asks whether it is so, or takes an option that somebody else names
    remembered = bool(following and language.remember.after.match(following[0].text))
    texts = [statement.text]
    if statement.lead:
        texts.append(f"{statement.lead.rstrip(_COLONS)} {statement.text}")
    verdicts = [
        classify(text, language, bonus=bonus, in_request=in_request, detail=detail, remembered=remembered)
        for text in texts
    ]
    verdict = next((one for one in verdicts if one and one.kept), None)
    if verdict is None or language.remember.after.match(statement.text):
        return None
    return None if refusal(verdict, language) else verdict


def _is_request(utterance: Utterance) -> bool:
    language = language_of(utterance.text)
    return bool(language.reject["errand"].search(language.trim(utterance.statements[0].text)))


def _is_about_what_was_asked(utterance: Utterance, place: int) -> bool:
    """Whether a statement says more of the thing that its message began by asking for."""
    request, said = utterance.statements[0].text, utterance.statements[place].text
    asked = {_singular(word) for word in content_words(request, language_of(request))}
    return any(_singular(word) in asked for word in content_words(said, language_of(said)))


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") else word
