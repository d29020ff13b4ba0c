"""The sessions of a Claude Code transcript: the owner's, and those of sub-agents that speak in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nacre.transcripts.claude_code.open_messages import OpenMessage
from nacre.transcripts.claude_code.records import Record
from nacre.transcripts.objects import parse_time
from nacre.values.session import Session, SessionKind, Tokens

TOOL = "claude-code"

_COUNTED = 8


class Sessions:
    """What is known of each session; what must survive until the next reading lies in ``carry``.

    ``stem`` is the file's name without its suffix: the id of records that name no session.
    """

    def __init__(self, carry: dict[str, Any], stem: str) -> None:
        self.carry = carry
        self.stem = stem
        self.session: Session | None = None
        self.told: dict[str, Session] = {}

    def ids_of(self, record: Record) -> tuple[str, str]:
        """The session of the owner that a record belongs to, and the one it is said in: that or a sub-agent's."""
        own = record.sessionId or self.carry.get("session") or self.stem
        agent = record.agentId if record.isSidechain else None
        return own, f"agent-{agent}" if agent else own

    def entitle(self, record: Record) -> None:
        """Keep a title: the owner's before one that the host made."""
        custom = record.type == "custom-title"
        title = record.customTitle or record.aiTitle
        if title and (custom or not self.carry.get("custom_title")):
            self.carry["title"], self.carry["custom_title"] = title, custom

    def session_of(self, record: Record) -> Session:
        """The session that a record is said in."""
        own, native_id = self.ids_of(record)
        is_sub = native_id != own
        if self.session is None or self.session.native_id != native_id:
            known = self.known(record, native_id)
            self.carry["session"] = own
            self.session = Session(
                tool=TOOL, native_id=native_id, cwd=known["cwd"], branch=known["branch"],
                kind=SessionKind.SUBAGENT if is_sub else SessionKind.MAIN, parent=own if is_sub else None,
                started=parse_time(known["started"]), tool_version=known["version"],
            )  # fmt: skip
            self.told[native_id] = self.session
        return self.session

    def known(self, record: Record, native_id: str) -> dict[str, Any]:
        """What the first record of a session tells of it."""
        known: dict[str, Any] = self.carry.setdefault("sessions", {}).setdefault(native_id, {})
        known.setdefault("cwd", record.cwd)
        known.setdefault("branch", record.gitBranch if record.gitBranch not in ("", "HEAD") else None)
        known.setdefault("started", record.timestamp)
        known.setdefault("version", record.version)
        return known

    def finished(self, session: Session) -> Session:
        """A session with what is known of it at the end. Models of sub-agents that speak here are not told apart."""
        spent = self.carry.get("spent", {}).get(session.native_id)
        tokens = Tokens(*spent["all"]) if spent else None
        if session.kind is SessionKind.MAIN:
            return replace(session, title=self.carry.get("title"), model=self.carry.get("model"), tokens=tokens)
        is_alone = len(self.told) == 1
        return replace(session, model=self.carry.get("model") if is_alone else None, tokens=tokens)

    def count(self, group: OpenMessage) -> None:
        """What a message cost, once: one that goes on after a word of the owner is the same message."""
        if group.usage is None:
            return
        _, native_id = self.ids_of(group.record)
        spent = self.carry.setdefault("spent", {}).setdefault(native_id, {"all": [0, 0, 0], "last": {}})
        before, now = Tokens(*spent["last"].pop(group.key, ())), group.usage.tokens.bounded
        spent["all"] = _numbers((Tokens(*spent["all"]) + now - before).bounded)
        spent["last"] = dict([*spent["last"].items(), (group.key, _numbers(now))][-_COUNTED:])


def _numbers(tokens: Tokens) -> list[int]:
    return [tokens.input, tokens.cached, tokens.output]
