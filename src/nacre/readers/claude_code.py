"""Claude Code: ``~/.claude/projects/<slug>/<session>.jsonl``.

Sub-agents have a folder of their own.

Each line contains one block of a message. The results of the message's tool calls are between its
lines. A message stays open until the next one starts. If it is still open at the end of the file,
it is read again next time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from nacre.base.plain import mapping, string
from nacre.base.text import noted, shorten
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Places,
    Root,
    Source,
    decode,
    parse_time,
    plain,
    records,
)
from nacre.readers.claude_code_records import (
    IGNORED,
    MESSAGE,
    RECORD,
    TOOL,
    Answer,
    OpenMessage,
    Record,
    Sessions,
    answers_in,
    content_of,
    fails_in_words_of_host,
    interruption,
    is_feedback_on_call,
    is_string,
    is_typed_ahead,
    listed_answers,
    messages_of,
    plan_of,
    questions_of,
    record_lines,
    rejection,
    shows_image,
    string_of,
    typed,
    typed_ahead,
)
from nacre.readers.conversation import answered, is_tools, outcome
from nacre.readers.trust import (
    Block,
    Call,
    Exchange,
    Judgement,
    blocks_of,
    names_another,
    text_of,
    with_author,
)
from nacre.values.session import Flag, Session, SessionKind, Speaker, ToolCall, Trust, Turn

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Pattern of ids that are unique across sessions."""
_EXIT_CODE = re.compile(r"\AExit code (\d+)")
_MAX_SPOKEN_PROMPTS = 20
_SYNTHETIC_MODEL = "<synthetic>"
_MAIN_THREAD = ""
_MAX_ERROR_CHARACTERS = 300


class Reader:
    """Reads one transcript, record by record."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.yielded: Session | None = None
        self.first: list[tuple[Record, Speaker, str, Flag, Trust]] = []
        """The first prompt or summary, kept until the id of its session is known."""
        self.links: list[Record] = []
        self.open: dict[str, OpenMessage] = {}
        self.calls: dict[str, Call] = {}
        self.exchange = Exchange(source.carry.get("exchange"))
        self.summaries: dict[str, str] = {}
        self.carry = {"queue": [], "spoken": [], **source.carry}
        self.carry.pop("exchange", None)
        self.sessions = Sessions(self.carry, source.path.stem)
        folder = source.path.with_suffix("") / "subagents"
        self.inline_agents = not folder.is_dir()

    def __iter__(self) -> Items:
        for offset, line in record_lines(self.source):
            for record in records(self.source, line, RECORD):
                yield from self.take(offset, record)
        yield from self.finish()

    def take(self, offset: int, record: Record) -> Items:
        match record.type:
            case "user":
                yield from self.user(record)
            case "assistant":
                yield from self.assistant(offset, record)
            case "attachment":
                yield from self.attachment(record)
            case "queue-operation":
                yield from self.queued(record)
            case "progress":
                yield from self.progress(offset, record)
            case "pr-link":
                yield from self.pull_request(record)
            case "summary":
                if record.leafUuid and record.summary:
                    self.summaries[record.leafUuid] = record.summary
            case _:
                self.other(record)
        if record.uuid in self.summaries:
            self.carry.setdefault("title", self.summaries[record.uuid])

    def other(self, record: Record) -> None:
        if record.type in ("ai-title", "custom-title"):
            self.sessions.entitle(record)
        elif record.type not in IGNORED:
            self.source.unknown(record.type or "no type")

    # Messages of the user

    def user(self, record: Record) -> Items:
        message = decode(MESSAGE, record.message)
        if message is None:
            self.source.corrupt()
            return
        text, results, text_blocks = content_of(message.content)
        is_others = bool(text and results) and not is_feedback_on_call(record, message, self.calls)
        for block in results:
            yield from self.tool_result(record, block)
        if not text or record.isMeta:
            self.exchange.heard(text)
            return
        if record.isCompactSummary:
            yield from self.compacted(record, text)
            return
        note, text = interruption(text)
        if note:
            yield from self.interrupted(_with_suffix(record, "cut") if text else record, note)
        title, plan, feedback = plan_of(text, record.planContent)
        is_others |= names_another(record, message, *text_blocks) and not (
            plan and record.planContent
        )
        if is_others or note:
            yield from self.another(record, text)
            return
        if plan:
            yield from self.derived(_with_suffix(record, "plan"), plan)
        words, flags = (title, Flag.COMMAND) if plan else self.typed(text)
        yield from self.delivered(record, words, flags)
        if feedback:
            yield from self.owner(_with_suffix(record, "feedback"), feedback)

    def another(self, record: Record, text: str) -> Items:
        """Yield text that another agent or person wrote in the user's place.

        Text from the host is only recorded as external text.
        """
        words, flags = self.typed(text)
        self.exchange.saw(text)
        if words:
            yield from self.close_all()
            yield from self.say(record, Speaker.SYSTEM, words, flags, trust=Trust.UNTRUSTED)

    def interrupted(self, record: Record, text: str) -> Items:
        """Yield the open messages, then the host's note that the user interrupted the agent."""
        yield from self.close_sides()
        if not record.isSidechain:
            yield from self.close(_MAIN_THREAD)
        yield from self.say(record, Speaker.SYSTEM, text, Flag.META | Flag.INTERRUPTED)

    def compacted(self, record: Record, text: str) -> Items:
        yield from self.close_all()
        yield from self.derived(record, text)

    def derived(self, record: Record, text: str) -> Items:
        """Yield a turn for text that the host composed from earlier messages."""
        judged = self.exchange.judge(self.exchange.clean(text).text)
        yield from self.say(
            record, Speaker.SYSTEM, text, Flag.SUMMARY | judged.flags, trust=judged.trust
        )

    def owner(
        self, record: Record, words: str, flags: Flag = Flag.NONE, *, trust: Trust = Trust.TRUSTED
    ) -> Items:
        yield from self.close_sides()
        if record.isSidechain:
            yield from self.say(record, Speaker.AGENT, words, flags)
            return
        yield from self.close(_MAIN_THREAD)
        turn = Turn("", Speaker.OWNER, words, flags=flags, trust=trust)
        turn = with_author(turn, TOOL, self.source.identities, self.exchange)
        if turn.trust is Trust.TRUSTED:
            self.exchange.begin(turn.text)
        yield from self.say(
            record, turn.speaker, turn.text, turn.flags, trust=turn.trust, author=turn.author
        )

    def tool_result(self, record: Record, block: Block) -> Items:
        call = self.calls.pop(block.tool_use_id or "", None)
        is_form = call is not None and call.call.name == "AskUserQuestion"
        output = text_of(block.content, separator="\n")
        if not is_form:
            self.hear(call, block, output)
        if not (block.is_error or is_form):
            if call:
                call.call = answered(call.call, "ok", lambda: output)
            return
        words = rejection(block.content, record.toolUseResult)
        if words is not None:
            if call:
                call.call = answered(call.call, "rejected", lambda: output)
            yield from self.declined(record, call, words)
        elif call:
            exit_code = _EXIT_CODE.match(output)
            code = int(exit_code[1]) if exit_code else None
            result = outcome(output, exit_code=code, is_error=bool(block.is_error))
            call.call = answered(call.call, result, lambda: output)
        if call and is_form and not block.is_error:
            yield from self.answers(
                record, answers_in(output, call.questions, record.toolUseResult)
            )

    def declined(self, record: Record, call: Call | None, words: str) -> Items:
        """Yield the user's reason for declining a tool call.

        Words that a failed tool could have written do not count as the user's words.
        """
        words = self.exchange.clean(words).text
        if is_tools(TOOL, words):
            yield from self.answers(record, listed_answers(words, call.questions) if call else ())
        elif call is not None and fails_in_words_of_host(call, record.version):
            yield from self.owner(record, words)
        else:
            yield from self.another(record, words)

    def answers(self, record: Record, answers: Sequence[Answer]) -> Items:
        own, foreign = messages_of(answers, self.exchange.trust_of)
        if foreign:
            yield from self.owner(_with_suffix(record, "outside"), foreign, trust=Trust.UNTRUSTED)
        for number, words in enumerate(own):
            yield from self.owner(
                _with_suffix(record, f"answer {number}") if number else record, words
            )

    def hear(self, call: Call | None, block: Block, output: str) -> None:
        """Record a tool's output. If the call is unknown, the output counts as external text."""
        self.exchange.heard(output, outside=not call or call.outside, own=bool(call and call.own))
        if shows_image(block.content):
            self.exchange.unseen()

    def attachment(self, record: Record) -> Items:
        attachment = mapping(plain(record.attachment))
        if attachment.get("type") != "queued_command":
            return
        prompt = attachment.get("prompt")
        text = (
            prompt
            if isinstance(prompt, str)
            else text_of(msgspec.Raw(msgspec.json.encode(prompt)), separator="\n")
        )
        if not is_typed_ahead(attachment) or names_another(record):
            yield from self.another(record, text)
            return
        yield from self.delivered(record, *self.typed(text, ahead=True))

    def delivered(self, record: Record, words: str, flags: Flag) -> Items:
        """Yield a prompt that the agent received. A prompt that was already yielded is skipped."""
        self.carry["queue"] = [
            pending for pending in self.carry["queue"] if pending[1].strip() != words
        ]
        queued = next((spoken for spoken in self.carry["spoken"] if words == spoken[1]), None)
        if queued:
            self.carry["spoken"].remove(queued)
        elif words:
            yield from self.owner(record, words, flags)

    def queued(self, record: Record) -> Items:
        """Record prompts that the user types while the agent works.

        A prompt is yielded when it leaves the queue, unless the user withdraws it. If a removal
        record contains text or a reason, the prompt was delivered and has its own record.
        """
        queue = self.carry["queue"]
        match record.operation:
            case "enqueue":
                text = string_of(record.content)
                if (is_others := names_another(record)) or is_tools(TOOL, text):
                    self.exchange.saw(text)
                # No record shows when a host notice leaves the queue.
                if not is_tools(TOOL, text):
                    queue.append((record.timestamp or "", "" if is_others else text))
            case "dequeue" if queue:
                queue.pop(0)
            case "popAll":
                queue.clear()
            case "remove" if queue:
                when, text = queue.pop(0)
                if not (record.reason or is_string(record.content)):
                    yield from self.say_queued(record, when, text)

    def say_queued(self, record: Record, when: str, text: str) -> Items:
        words, flags = self.typed(text, ahead=True)
        if not words:
            return
        yield from self.close_all()
        if [when, words] not in self.carry["spoken"]:
            self.carry["spoken"] = [*self.carry["spoken"][-_MAX_SPOKEN_PROMPTS:], [when, words]]
            yield from self.owner(
                msgspec.structs.replace(record, uuid=f"queued {when}", timestamp=when), words, flags
            )

    # Messages of the agent

    def assistant(self, offset: int, record: Record) -> Items:
        message = decode(MESSAGE, record.message)
        if message is None:
            self.source.corrupt()
            return
        side = (record.agentId or "side") if record.isSidechain else _MAIN_THREAD
        if record.isApiErrorMessage:
            yield from self.close(side)
            text = shorten(content_of(message.content)[0], _MAX_ERROR_CHARACTERS)
            yield from self.say(record, Speaker.SYSTEM, text, Flag.META)
        if record.isApiErrorMessage or message.model == _SYNTHETIC_MODEL:
            return
        key = message.id or record.uuid or str(offset)
        if (side in self.open) and self.open[side].key != key:
            yield from self.close(side)
        if side not in self.open:
            self.open[side] = OpenMessage(
                offset, msgspec.json.encode(self.carry), self.exchange.mark(), key, record
            )
        group = self.open[side]
        if message.model:
            self.carry["model"] = noted(self.carry.get("model"), message.model)
        group.usage = mapping(message.usage) or group.usage
        self.add_blocks(group, record.uuid, message.content)

    def add_blocks(self, group: OpenMessage, record: str | None, content: msgspec.Raw) -> None:
        for block in blocks_of(content):
            if block.type == "text" and block.text:
                group.texts.append(block.text)
            elif block.type == "tool_use" and block.name:
                arguments = mapping(plain(block.input))
                call = Call.of(block.name, arguments)
                call.record, call.questions = record, questions_of(arguments)
                group.calls.append(call)
                if self.exchange.trust_of_call(call.call, arguments) is Trust.UNTRUSTED:
                    group.trust = Trust.UNTRUSTED
                if block.id:
                    self.calls[block.id] = call
                if block.name == "ExitPlanMode" and isinstance(arguments.get("plan"), str):
                    group.texts.append(arguments["plan"])

    def pull_request(self, record: Record) -> Items:
        """Yield each pull request of the session once, after closing the open message."""
        if record.prUrl and record.prUrl not in self.carry.setdefault("linked", []):
            self.carry["linked"].append(record.prUrl)
            self.links.append(msgspec.structs.replace(record, uuid=f"pull request {record.prUrl}"))
        if _MAIN_THREAD not in self.open:
            yield from self.say_links()

    def say_links(self) -> Items:
        links, self.links = self.links, []
        for link in links:
            yield from self.say(link, Speaker.SYSTEM, f"Pull request: {link.prUrl}", Flag.META)

    def progress(self, offset: int, record: Record) -> Items:
        """Yield the messages of a sub-agent in a progress record.

        Newer versions of the host write these messages to a separate file.
        """
        progress = mapping(plain(record.data)) if self.inline_agents else {}
        agent = string(progress, "agentId")
        if progress.get("type") != "agent_progress" or not agent:
            return
        inner = decode(RECORD, msgspec.json.encode(progress.get("message")))
        if inner is None or not inner.uuid:
            return
        record_of_agent = msgspec.structs.replace(
            record,
            type=inner.type,
            uuid=inner.uuid,
            agentId=agent,
            isSidechain=True,
            timestamp=inner.timestamp,
            message=inner.message,
        )
        yield from (
            self.assistant(offset, record_of_agent)
            if inner.type == "assistant"
            else self.user(record_of_agent)
        )

    # Turns and sessions

    def close_sides(self) -> Items:
        for side in [side for side in self.open if side != _MAIN_THREAD]:
            yield from self.close(side)

    def close_all(self) -> Items:
        yield from self.close_sides()
        yield from self.close(_MAIN_THREAD)

    def close(self, side: str) -> Items:
        group = self.open.pop(side, None)
        if group is None:
            return
        self.sessions.count(group)
        cleaned = self.exchange.clean(
            "\n\n".join(part.strip() for part in group.texts if part.strip())
        )
        text = cleaned.text
        calls = tuple(pending.call for pending in group.calls)
        if text or calls:
            judged = self.exchange.judge(text) if text else Judgement()
            flags = judged.flags | cleaned.flags
            trust = judged.trust if group.trust is Trust.TRUSTED else group.trust
            yield from self.say(group.record, Speaker.AGENT, text, flags, calls=calls, trust=trust)
        if side == _MAIN_THREAD:
            yield from self.say_links()

    def typed(self, text: str, *, ahead: bool = False) -> tuple[str, Flag]:
        """Return the words that the user typed in a prompt, and their flags.

        Other people's text is recorded as external.
        """
        cleaned = self.exchange.clean(text)
        words, flags, others = (typed_ahead if ahead else typed)(cleaned.text)
        if others:
            self.exchange.saw(others)
        return words, flags | cleaned.flags

    def say(
        self,
        record: Record,
        speaker: Speaker,
        text: str,
        flags: Flag,
        *,
        calls: tuple[ToolCall, ...] = (),
        trust: Trust = Trust.TRUSTED,
        author: str | None = None,
    ) -> Items:
        if not self.carry.get("begun") and (speaker is Speaker.OWNER or flags & Flag.SUMMARY):
            self.carry["begun"] = speaker is Speaker.OWNER
            self.first.append((record, speaker, text, flags, trust))
            self.sessions.facts_of(record, self.sessions.ids_of(record)[1])
            return
        yield from self.say_first(record.sessionId)
        cleaned = self.exchange.clean(text)
        if not (cleaned.text or calls):
            return
        self.carry["begun"] = True
        session = self.sessions.session_of(record)
        if session != self.yielded:
            self.yielded = session
            yield session
        if record.isSidechain and session.kind is SessionKind.MAIN:
            flags |= Flag.SIDECHAIN
        yield Turn(
            id=record.uuid or f"{record.timestamp}",
            speaker=speaker,
            text=cleaned.text,
            time=parse_time(record.timestamp),
            tool_calls=calls,
            flags=flags | cleaned.flags,
            trust=trust,
            author=author,
            unique=bool(_UUID.fullmatch(record.uuid or "")),
        )

    def say_first(self, session_id: str | None) -> Items:
        """Yield the first prompts with the id of the current session.

        After the user cleared a session, the records of these prompts still contain its id.
        """
        prompts, self.first = self.first, []
        self.carry["begun"] = bool(prompts) or self.carry.get("begun", False)
        for first, speaker, text, flags, trust in prompts:
            record = msgspec.structs.replace(first, sessionId=session_id or first.sessionId)
            yield from self.say(record, speaker, text, flags, trust=trust)

    def finish(self) -> Items:
        """Yield the messages and queued prompts that remain at the end of the file.

        Incomplete messages are read again next time.
        """
        earliest = min(self.open.values(), key=lambda group: group.offset, default=None)
        for side in list(self.open):
            yield from self.close(side)
        spoken = self.carry["spoken"]
        for time, text in self.carry["queue"]:
            yield from self.say_queued(Record(), time, text)
        yield from self.say_first(
            self.source.path.stem if _UUID.fullmatch(self.source.path.stem) else None
        )
        for session in self.sessions.by_id.values():
            finished = self.sessions.finished(session)
            if finished not in (session, self.yielded):
                yield finished
        if earliest:
            self.source.hold(earliest.offset)
        carry = msgspec.json.decode(earliest.before) if earliest else self.carry
        carry["spoken"] += [
            prompt for prompt in self.carry["spoken"] if prompt not in (*spoken, *carry["spoken"])
        ]
        self.source.carry = {
            **carry,
            "exchange": self.exchange.carried(earliest.mark if earliest else None),
        }


def _with_suffix(record: Record, suffix: str) -> Record:
    return msgspec.structs.replace(record, uuid=f"{record.uuid} {suffix}")


# -- Adapter -------------------------------------------------------------------


def is_qwen(head: Head) -> bool:
    """Return True for a chat of Qwen Code, which has similar records and needs nacre-extras."""
    return any(
        "sessionId" in record
        and ("systemPayload" in record or "parts" in mapping(record, "message"))
        for record in head.objects
    )


def _sniff(head: Head) -> bool:
    if head.path.suffix == ".json":
        return '"loglines"' in head.text[:2000]
    return not is_qwen(head) and any(
        (record.get("type") == "summary" and "leafUuid" in record)
        or (record.get("type") == "file-history-snapshot" and "snapshot" in record)
        or (
            "sessionId" in record
            and not str(record["sessionId"]).startswith("session-")  # iFlow
            and ("uuid" in record or record.get("type") in (*IGNORED, "queue-operation", "pr-link"))
        )
        for record in head.objects
    )


def _roots(places: Places) -> Sequence[Root]:
    configured = places.environ.get("CLAUDE_CONFIG_DIR")
    folders = [places.home / ".claude", places.home / ".config" / "claude"]
    if configured:
        folders = [places.home.joinpath(part) for part in configured.split(",") if part]
    return [Root(folder / "projects", ("**/*.jsonl",)) for folder in folders]


_OTHER_FIELDS = (
    "agentName,apiErrorStatus,apiRefusalCategory,apiRefusalExplanation,atis,attributionAgent,"
    "attributionMcpServer,attributionMcpTool,attributionPlugin,attributionSkill,"
    "bridgeSessionId,cause,classifierMetaLines,compactMetadata,direction,durationMs,effort,"
    "entrypoint,error,errorDetails,fallbackModel,files,frameUrl,hasOutput,"
    "hookAdditionalContext,hookCount,hookErrors,hookInfos,imagePasteIds,interruptedByShutdown,"
    "interruptedMessageId,isAbortedMidStream,isSnapshotUpdate,key,lastPrompt,lastSequenceNum,"
    "level,logicalParentUuid,maxRetries,mcpMeta,messageCount,messageId,microcompactMetadata,"
    "mode,originalModel,ownerAccountUuid,ownerOrganizationUuid,parentToolUseID,parentUuid,path,"
    "pendingBackgroundAgentCount,permissionMode,prNumber,prRepository,preventedContinuation,"
    "promptId,refusedUserMessageUuid,relocatedCwd,requestId,result,retractedMessageUuids,"
    "retryAttempt,retryInMs,scope,sessionKind,session_id,slug,snapshot,source,sourceToolUseID,"
    "stopReason,subtype,supersedesUuids,thinkingMetadata,title,todos,toolDenialKind,"
    "toolEndsTurn,toolUseID,trigger,userType,worktreeSession"
)
"""Names of fields that carry no words of the conversation."""


ADAPTER = Adapter(
    tool=TOOL,
    label="Claude Code",
    roots=_roots,
    sniff=_sniff,
    parse=Reader,
    resume=("claude", "--resume", "{id}"),
    versions="2.0.64–2.1.330",
    reads="branch; version; sub-agents; summaries; interruptions; pull requests",
    leaves_out="progress; file history",
    fields=frozenset({*Record.__struct_encode_fields__, *_OTHER_FIELDS.split(",")}),
)
