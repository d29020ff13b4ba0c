"""What in a Claude Code prompt the owner typed, and what the harness put there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nacre.transcripts.claude_code.forms import Answer, answered
from nacre.transcripts.claude_code.open_messages import OpenCall
from nacre.transcripts.claude_code.records import BLOCKS, Block, Message, Record, decode_raw, is_string
from nacre.transcripts.claude_code.sessions import TOOL
from nacre.transcripts.origins import names_another
from nacre.transcripts.phrases import is_tools
from nacre.values.session import Flag

Asked = Mapping[str, Sequence[str]]
"""The questions of a form, each with its options."""

_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]")
_PLAN = "Implement the following plan:"
_FEEDBACK = "\n\nUser feedback on this plan: "
_PROMPT_COMMAND = "<command-message>"
"""Commands that are prompts begin so; those for the host itself, as ``/model``, begin with their name."""
_COMMAND_TAGS = ("command-message", "command-name", "command-args")
_SOURCES = ("source", "sender", "author", "from", "channel")
"""Fields that the host does not write today; a queued command that has them is from another source."""
_QUEUED_COMMAND = re.compile(r"/[\w:-]+(?: |$)")
_TITLE_CHARACTERS = 200
_ANSWERED = re.compile(r'"((?:[^"\\]|\\.)+)"\s*=\s*"((?:[^"\\]|\\.)*)"')
_LISTED = re.compile(r'^- "([^\n]+)"\n[ \t]+Answer: ([^\n]+)$', re.MULTILINE)
_REJECTED = "The user doesn't want to proceed"
_REJECTION_WORDS = re.compile(r"[^\n]*the user said:[^\S\n]*\n(.*)", re.DOTALL)


def content_of(content: msgspec.Raw) -> tuple[str, list[Block], list[Block]]:
    """The text a message's content holds, the tool results in it, and the blocks of which the text is."""
    if is_string(content):
        return decode_raw(content, str) or "", [], []
    blocks = decode_raw(content, BLOCKS) or []
    said = [block for block in blocks if block.type == "text" and block.text and _is_said(block.text)]
    texts = [block.text for block in said if block.text]
    return "\n\n".join(texts), [block for block in blocks if block.type == "tool_result"], said


def _is_said(text: str) -> bool:
    return not text.startswith("<ide_")


def interruption(text: str) -> tuple[str, str]:
    """The host's note that the owner stopped the agent, if a prompt begins with one, and the rest."""
    note = _INTERRUPTED.match(text)
    return (note[0], text[note.end() :].strip()) if note else ("", text)


def plan_of(text: str, accepted: str | None = None) -> tuple[str, str, str]:
    """What the owner chose, the plan, and what they said of it: the agent wrote it, and the host hands it over as the
    first prompt. Where the record names the plan that was ``accepted``, what follows it is the host's, and the
    owner's words at its end.
    """
    head, _, rest = text.partition("\n\n")
    plan, words = rest.strip(), ""
    if head.strip() != _PLAN or not plan:
        return "", "", ""
    if accepted and plan.startswith(accepted.strip()):
        words = plan.removeprefix(accepted.strip()).partition(_FEEDBACK)[2].strip()
        plan = accepted.strip()
    title = plan.partition("\n")[0]
    return f"{_PLAN}\n\n{title[:_TITLE_CHARACTERS]}", plan, words


def is_feedback_on_call(record: Record, message: Message, calls: Mapping[str, OpenCall]) -> bool:
    """Return True if the text of a message is the owner's remark on a tool call that they allowed.

    The host writes it as the one text after the one result, and names the record that made the call. Other text next
    to a result is not the owner's.
    """
    first, *rest = decode_raw(message.content, BLOCKS) or [Block()]
    call = calls.get(first.tool_use_id or "")
    return (
        first.type == "tool_result" and not first.is_error
        and [block.type for block in rest if block.type != "image"] == ["text"]
        and call is not None and call.record is not None and call.record == record.sourceToolAssistantUUID
    )  # fmt: skip


def rejection(content: msgspec.Raw, beside: msgspec.Raw) -> str | None:
    """Return the owner's words on declining a call, which the host writes in place of its result, or ``None`` if
    nobody declined it. The host writes strings, both there and ``beside`` it; a list or an object is a tool's output.
    """
    output = (decode_raw(content, str) or "") if is_string(content) else ""
    if not output.startswith(_REJECTED) or not (is_string(beside) or bytes(beside) == b"null"):
        return None
    words = _REJECTION_WORDS.match(output)
    return words[1].strip() if words else ""


def answers_in(output: str, asked: Asked, beside: msgspec.Raw) -> list[Answer]:
    """Questions of a form that was ``asked`` with the owner's answers: those ``beside`` the result where the host keeps
    them there, else as it tells them. A question may hold what looks like another one with its answer.
    """
    kept = (decode_raw(beside, dict) or {}).get("answers")
    pairs = list(kept.items()) if isinstance(kept, dict) else _ANSWERED.findall(output)
    return _of_those_asked(pairs, asked)


def listed_answers(text: str, asked: Asked) -> list[Answer]:
    """The same as the host lists them when the owner would rather talk, or is done; the rest of that is the host's."""
    return _of_those_asked(_LISTED.findall(text), asked)


def _of_those_asked(pairs: Iterable[tuple[str, object]], asked: Asked) -> list[Answer]:
    """Those of questions that were asked: of one that comes twice nobody can tell which answer is the owner's."""
    found = [(question, answer) for question, answer in pairs if question in asked]
    times = Counter(question for question, _ in found)
    return [
        answered(question, answer, asked[question]) for question, answer in found
        if times[question] == 1 and isinstance(answer, str) and answer.strip()
    ]  # fmt: skip


def is_typed_ahead(attachment: Mapping[str, Any]) -> bool:
    """Return True if a queued command names an input mode of a person, or a person, as its source, and no other."""
    sources = [{"origin": attachment[name]} for name in _SOURCES if attachment.get(name)]
    names_owner = bool(attachment.get("commandMode") or attachment.get("origin"))
    return names_owner and not attachment.get("isMeta") and not names_another(attachment, *sources)


def typed_ahead(text: str) -> tuple[str, Flag, str]:
    """Split a prompt that was typed while the agent worked, as :func:`typed` does. A command alone has a record of its
    own where it runs.
    """
    words, flags, others = typed(text)
    command = _QUEUED_COMMAND.match(words)
    if not command:
        return words, flags, others
    return ("", Flag.META, others) if command[0] == words else (words, flags | Flag.COMMAND, others)


def typed(text: str) -> tuple[str, Flag, str]:
    """Split a prompt into the words that the owner typed, with their flags, and those that the host or others wrote."""
    if text.startswith("<command-"):
        parts, others = _command_parts(text)
        command, words = parts.get("command-name"), parts.get("command-args")
        if not command or not (words or text.startswith(_PROMPT_COMMAND)):
            return "", Flag.META, text
        return f"/{command.removeprefix('/')} {words or ''}".rstrip(), Flag.COMMAND, others
    shell = _inside(text, "bash-input") if text.startswith("<bash-input>") else None
    if shell is not None:
        return f"! {shell}", Flag.META, ""
    return ("", Flag.META, text) if is_tools(TOOL, text) else (text, Flag.NONE, "")


def _command_parts(text: str) -> tuple[dict[str, str], str]:
    """Return the tags with which the host writes a command, and the rest of the text, which nobody typed."""
    parts: dict[str, str] = {}
    while tag := next((tag for tag in _COMMAND_TAGS if tag not in parts and text.startswith(f"<{tag}>")), None):
        inside, closed, rest = text.partition(f"</{tag}>")
        if not closed:
            break
        parts[tag], text = inside.removeprefix(f"<{tag}>").strip(), rest.lstrip()
    return parts, text


def _inside(text: str, tag: str) -> str | None:
    """What the first pair of tags encloses; an expression would look for the end again from every beginning."""
    _, _, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside.strip() if closed else None
