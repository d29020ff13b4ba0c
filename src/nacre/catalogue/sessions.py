"""Operations on sessions, and those that agents and hosts ask for."""

from __future__ import annotations

from nacre.catalogue.flags import LONG, NOTHING
from nacre.operation import Operation

SESSIONS = (
    Operation(
        "search-sessions", "retrieval.answers:search_sessions", "retrieval.requests:TurnQuery",
        "values.recall:RecallResult",
    ),
    Operation("match-sessions", "sessions.answers:match", "sessions.requests:MatchRequest",
              "sessions.pattern_search:Matches"),
    Operation("search-chats", "sessions.chat_search:search", "sessions.requests:ChatSearchRequest",
              "sessions.chat_search:Passages"),
    Operation("sessions", "sessions.answers:list_sessions", "sessions.requests:SessionsRequest", "views:SessionPage"),
    Operation("session", "sessions.answers:show", "sessions.requests:SessionRequest", "views:SessionView"),
    Operation("resume", "sessions.resume:resume", "sessions.requests:ResumeRequest", "views:Resumption"),
    Operation(
        "session-summary", "sessions.answers:summarize", "sessions.requests:SessionRequest", "views:SessionReport"
    ),
    Operation(
        "session-restore", "archive.answers:restore", "archive.requests:RestoreSessionRequest",
        "archive.operations:Restored",
    ),
    Operation("did", "sessions.file_history:did", "sessions.requests:DidQuery", "values.file_history:FileHistory"),
    Operation("fix", "sessions.fixes:fix", "sessions.requests:FixQuery", "views:FixResult"),
    Operation(
        "extract", "extraction.answers:preview", "extraction.requests:ExtractRequest", "views:Extracted",
        takes_long=True,
    ),
    Operation(
        "extract-propose", "extraction.propose:propose", "extraction.requests:ProposalRequest",
        "list[extraction.propose:Proposal]", takes_long=True, reports_progress=True,
    ),
    Operation(
        "ingest", "ingestion.ingest:ingest", "ingestion.requests:IngestOptions", "values.reports:IngestReport", **LONG,
        owners=("paths", "older"),
    ),
    Operation("ingest-plan", "ingestion.plan:plan", "ingestion.requests:IngestOptions", "values.reports:IngestPlan"),
    Operation(
        "ingest-estimate", "ingestion.plan:estimate", "ingestion.requests:IngestOptions",
        "extraction.estimate:Estimate", takes_long=True,
    ),
    Operation("watch-survey", "watching.answers:survey", "watching.requests:SurveyRequest", "watching.survey:Survey"),
    Operation(
        "watch-once", "watching.rounds:go_round", "watching.requests:RoundRequest", "values.reports:IngestReport",
        **LONG, owners=("paths",),
    ),
    Operation("quickstart", "setup.quickstart:run_quickstart", NOTHING, "setup.quickstart:QuickstartResult", **LONG),
)  # fmt: skip

GATEWAY = (
    Operation("gateway-status", "gateway.answers:gateway_status", NOTHING, "gateway.answers:GatewayState"),
    Operation(
        "gateway-sessions", "gateway.answers:list_chats", "gateway.requests:ChatsRequest",
        "list[values.gateway.conversation:ChatSession]",
    ),
    Operation("gateway-session", "gateway.answers:show_chat", "gateway.requests:ChatRequest", "gateway.answers:Chat"),
    Operation(
        "gateway-end", "gateway.answers:end_chat", "gateway.requests:EndChatRequest",
        "values.gateway.conversation:ChatSession", writes=True, owners=True,
    ),
    Operation(
        "gateway-pairings", "gateway.answers:list_pairings", NOTHING, "list[values.gateway.conversation:Pairing]",
        command="gateway pair", owners=True,
    ),
    Operation(
        "gateway-pair", "gateway.answers:pair", "gateway.requests:PairRequest", "gateway.answers:Paired", writes=True,
        owners=True,
    ),
    Operation(
        "gateway-unpair", "gateway.answers:unpair", "gateway.requests:UnpairRequest", "bool", writes=True, owners=True,
    ),
)  # fmt: skip

AGENTS = (
    Operation("context", "context.build:build", "values.context:ContextRequest", "values.context:ContextBlock"),
    Operation("context-given", "context.answers:note_given", "context.requests:GivenRequest", "None"),
    Operation("hook", "context.hook_answers:answer", "values.hooks:HookCall", "values.hooks:HookAnswer"),
    Operation(
        "handoff", "context.handoff.requests:handoff", "context.requests:HandoffRequest", "values.handoff:HandoffView",
        writes=True,
    ),
    Operation(
        "flush", "chores.flush:flush", "chores.requests:FlushRequest", "values.handoff:FlushReport", **LONG
    ),
    Operation(
        "chores", "chores.answers:do_waiting", "chores.requests:ChoresRequest", "values.handoff:ChoresReport",
        writes=True, takes_long=True,
    ),
    Operation("page-own", "context.answers:own_page", "context.requests:OwnPageRequest", "context.pages:OwnPage"),
    Operation(
        "page-write", "context.answers:write_own_page", "context.requests:WritePageRequest", "context.pages:OwnPage",
        writes=True, command="page", owners=True,
    ),
)  # fmt: skip
