"""Requests to forget for good, and to take out secrets."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from nacre.errors import QueryInvalid
from nacre.platform.request import Request


class ForgetRequest(Request, frozen=True, kw_only=True):
    """What is to be forgotten: one of these, or all of a project ``before`` a time."""

    sessions: Annotated[tuple[str, ...], Meta(description="Sessions, by their ids.")] = ()
    memories: Annotated[tuple[str, ...], Meta(description="Memories, by their ids or subjects.")] = ()
    project: Annotated[str | None, Meta(description="A whole project, by its slug.")] = None
    match: Annotated[str | None, Meta(description="Whatever says this text.")] = None
    regex: Annotated[bool, Meta(description="The text is a regular expression.")] = False
    before: Annotated[datetime | None, Meta(description="What was said before then.")] = None

    @property
    def how(self) -> str:
        """What decides."""
        if sum(map(bool, (self.sessions, self.memories, self.match is not None, self.project or self.before))) != 1:
            raise QueryInvalid(
                "say what to forget: a session, a memory, a text, a project, or what was before a day",
                hint="nacre forget --session ID | --memory ID | --match TEXT | --project P | --before DATE",
            )
        if self.before:
            return "before"
        return (
            "session"
            if self.sessions
            else "memory"
            if self.memories
            else "match"
            if self.match is not None
            else "project"
        )


class AllowAgainRequest(Request, frozen=True, kw_only=True):
    """Let what was forgotten be read again."""

    reference: Annotated[str, Meta(description="The id of a run (or its end), of a session or of a memory.")]


class ScrubOptions(Request, frozen=True, kw_only=True):
    """Apply the present rules of redaction to everything that is stored."""

    dry_run: Annotated[bool, Meta(description="Tell what would be taken out, change nothing.")] = False
    history: Annotated[bool, Meta(description="Also rewrite the vault's git history; all commits get new ids.")] = False
    remove_copies: Annotated[bool, Meta(description="Also remove older copies of the database.")] = False
    vectors: Annotated[bool, Meta(description="False: leave new vectors to the next ingest.")] = True
