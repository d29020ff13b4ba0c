"""Every operation, once: its name, what is asked, what is answered, where its function is, and how it behaves.

The Python API, the daemon, MCP and the command line go by it, and docs/json.md is written from it. An operation has the
name of the command that people know it by, its words joined by ``-``. Listing the catalogue imports no operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nacre.operation import Needs, Operation
from nacre.values.actor import Face

_NOTHING = "platform.request:Nothing"
_LONG: dict[str, Any] = {"writes": True, "takes_long": True, "reports_progress": True}
_KEYS = {Face.DAEMON: "a key stays in the process that it was given to"}
_WATCHER = {Face.DAEMON: "the daemon may be the watcher"}
_HELD = {Face.DAEMON: "what it answers works in its own process alone"}
_SETTINGS = Needs.SETTINGS

_MEMORIES = (
    Operation("recall", "retrieval.recall:recall", "values.recall:RecallQuery", "values.recall:RecallResult"),
    Operation(
        "deep-recall", "retrieval.deep.recall:deep_recall", "retrieval.requests:DeepQuery",
        "values.deep_recall:DeepResult", takes_long=True,
    ),
    Operation("list", "memories.answers:list_memories", "memories.requests:ListRequest", "views:Listing"),
    Operation("get", "memories.answers:get", "memories.requests:GetRequest", "values.memory:Memory"),
    Operation("look", "memories.answers:show", "memories.requests:GetRequest", "views:MemoryView"),
    Operation("history", "memories.answers:history", "memories.requests:ReferenceRequest", "list[views:Step]"),
    Operation(
        "connections", "memories.connections:connections", "memories.requests:ConnectionsRequest", "views:Connections"
    ),
    Operation(
        "store", "ingestion.quotes:store", "memories.requests:StoreRequest", "values.reports:StoreOutcome", writes=True
    ),
    Operation(
        "store-rehearse", "ingestion.quotes:rehearse", "memories.requests:StoreRequest", "memories.store:Rehearsal",
    ),
    Operation(
        "edit", "memories.answers:edit", "memories.requests:EditRequest", "values.memory:Memory", writes=True
    ),
    Operation(
        "retire", "memories.answers:retire_memories", "memories.requests:RetireRequest", "list[values.memory:Memory]",
        writes=True,
    ),
    Operation("retire-plan", "memories.answers:choose", "memories.requests:RetireRequest", "memories.retire:Chosen"),
    Operation("retired", "memories.retire:list_retired", _NOTHING, "list[values.memory:Memory]"),
    Operation(
        "retired-standing", "memories.retire:list_standing", _NOTHING, "list[values.forgetting:StandingRetirement]"
    ),
    Operation(
        "unretire", "memories.answers:unretire", "memories.requests:ReferencesRequest", "memories.retire:BroughtBack",
        writes=True, owners=True,
    ),
    Operation(
        "todo-done", "memories.answers:finish_todos", "memories.requests:ReferencesRequest",
        "list[values.memory:Memory]", writes=True,
    ),
    Operation(
        "feedback", "retrieval.answers:judge_by_reply", "retrieval.requests:FeedbackRequest",
        "values.review:FeedbackReport", writes=True,
    ),
    Operation(
        "feedback-judge", "retrieval.answers:judge", "retrieval.requests:JudgeRequest", "values.review:FeedbackReport",
        writes=True,
    ),
    Operation("place", "home.answers:place", "home.requests:PlaceRequest", "views:Place"),
    Operation("project-tie", "home.answers:tie", "home.requests:TieRequest", "views:Place", writes=True, owners=True),
    Operation("page", "home.answers:page", "home.requests:PageRequest", "str"),
)  # fmt: skip

_SESSIONS = (
    Operation(
        "search-sessions", "retrieval.answers:search_sessions", "retrieval.requests:TurnQuery",
        "values.recall:RecallResult",
    ),
    Operation("match-sessions", "sessions.answers:match", "sessions.requests:MatchRequest",
              "sessions.pattern_search:Matches"),
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
        "ingest", "ingestion.ingest:ingest", "ingestion.requests:IngestOptions", "values.reports:IngestReport", **_LONG
    ),
    Operation("ingest-plan", "ingestion.plan:plan", "ingestion.requests:IngestOptions", "values.reports:IngestPlan"),
    Operation(
        "ingest-estimate", "ingestion.plan:estimate", "ingestion.requests:IngestOptions",
        "extraction.estimate:Estimate", takes_long=True,
    ),
    Operation("watch-survey", "watching.answers:survey", "watching.requests:SurveyRequest", "watching.survey:Survey"),
    Operation(
        "watch-once", "watching.rounds:go_round", "watching.requests:RoundRequest", "values.reports:IngestReport",
        **_LONG,
    ),
    Operation("quickstart", "setup.quickstart:run_quickstart", _NOTHING, "setup.quickstart:QuickstartResult", **_LONG),
)  # fmt: skip

_AGENTS = (
    Operation("context", "context.build:build", "values.context:ContextRequest", "values.context:ContextBlock"),
    Operation("context-given", "context.answers:note_given", "context.requests:GivenRequest", "None"),
    Operation("digest", "context.digest:digest", "context.requests:DigestRequest", "views:Digest"),
    Operation("hook", "context.hook_answers:answer", "values.hooks:HookCall", "values.hooks:HookAnswer"),
    Operation(
        "handoff", "context.handoff.requests:handoff", "context.requests:HandoffRequest", "values.handoff:HandoffView",
        writes=True,
    ),
    Operation(
        "flush", "chores.flush:flush", "chores.requests:FlushRequest", "values.handoff:FlushReport", **_LONG
    ),
    Operation(
        "chores", "chores.answers:do_waiting", "chores.requests:ChoresRequest", "values.handoff:ChoresReport",
        writes=True, takes_long=True,
    ),
    Operation("page-own", "context.answers:own_page", "context.requests:OwnPageRequest", "context.pages:OwnPage"),
    Operation(
        "page-write", "context.answers:write_own_page", "context.requests:WritePageRequest", "context.pages:OwnPage",
        writes=True, owners=True,
    ),
)  # fmt: skip

_REVIEW = (
    Operation("waiting", "review.answers:waiting", _NOTHING, "views:Waiting"),
    Operation(
        "review-dismiss", "review.answers:dismiss", "review.requests:ReviewRequest", "list[values.memory:Memory]",
        writes=True, owners=True,
    ),
    Operation(
        "review-replace", "review.answers:replace", "review.requests:ReviewRequest", "list[values.memory:Memory]",
        writes=True, owners=True,
    ),
    Operation(
        "review-retire", "review.answers:retire", "review.requests:ReviewRetireRequest", "list[values.memory:Memory]",
        writes=True, owners=True,
    ),
    Operation(
        "candidates", "review.answers:list_candidates", "review.requests:CandidatesRequest", "views:CandidatePage"
    ),
    Operation(
        "candidate-keep", "review.answers:keep_candidate", "review.requests:KeepCandidateRequest",
        "values.reports:StoreOutcome", writes=True, owners=True,
    ),
    Operation(
        "candidate-drop", "review.answers:drop_candidates", "review.requests:DropCandidatesRequest",
        "list[values.memory:Memory]", writes=True, owners=True,
    ),
    Operation(
        "conflicts-resolve", "review.answers:resolve", "review.requests:ResolveRequest", "views:Pair", writes=True,
        owners=True,
    ),
    Operation(
        "conflicts-judge", "review.answers:judge", "review.requests:JudgeWaitingRequest",
        "review.contradictions:JudgeReport", **_LONG,
    ),
    Operation("dream-plan", "dream.dream:plan", "dream.requests:DreamPlanRequest", "dream.values:DreamPlan",
              takes_long=True, reports_progress=True),
    Operation("dream-estimate", "dream.dream:dream_estimate", "dream.requests:DreamPlanRequest",
              "dream.values:DreamEstimate", takes_long=True),
    Operation("dream", "dream.dream:dream", "dream.requests:DreamRequest", "dream.values:DreamReport", **_LONG,
              owners=True),
    Operation("settled", "review.conflicts:history", _NOTHING, "list[views:Settled]"),
    Operation("reflect", "review.reflection:reflect", "review.requests:ReflectRequest", "values.review:Reflection"),
    Operation("reflect-answer", "review.reflection:answer", "review.requests:ReflectAnswerRequest",
              "values.review:Reflected", writes=True, owners=True),
    Operation(
        "claims-estimate", "review.answers:estimate_claims", "review.requests:EstimateClaimsRequest",
        "review.claims:Estimate",
    ),
    Operation(
        "claims-backfill", "review.answers:backfill_claims", "review.requests:BackfillRequest",
        "review.claims:Backfill", **_LONG,
    ),
)  # fmt: skip

_HISTORY = (
    Operation("log", "history.answers:log", "history.requests:LogRequest", "list[views:Listed]"),
    Operation("diff", "history.answers:diff", "history.requests:DiffRequest", "views:OperationDiff"),
    Operation("undo-plan", "history.answers:plan_undo", "history.requests:UndoRequest", "history.undo:Undoing"),
    Operation(
        "undo", "history.answers:undo", "history.requests:UndoRequest", "history.undo:Undoing", writes=True, owners=True
    ),
    Operation("commit", "history.answers:commit", _NOTHING, "history.commit:Committed", writes=True),
    Operation(
        "sync",
        "sync.sync:sync",
        "sync.requests:SyncRequest",
        "sync.sync:Synced",
        writes=True,
        takes_long=True,
        owners=("remote",),
    ),
)

_FORGETTING = (
    Operation("forget-plan", "forgetting.forget:plan", "forgetting.requests:ForgetRequest",
              "values.forgetting:ForgetPlan"),
    Operation(
        "forget", "forgetting.answers:forget", "forgetting.requests:ForgetRequest", "values.forgetting:ForgetReport",
        writes=True, takes_long=True, owners=True),
    Operation("forgotten", "forgetting.forget:forgotten", _NOTHING, "list[values.forgetting:Forgotten]"),
    Operation(
        "forget-allow-again", "forgetting.answers:allow_again", "forgetting.requests:AllowAgainRequest",
        "values.forgetting:Forgotten", writes=True, owners=True),
    Operation(
        "scrub", "forgetting.scrub:scrub", "forgetting.requests:ScrubOptions", "values.scrub:ScrubReport", **_LONG,
    ),
)  # fmt: skip

_OWN = (
    Operation(
        "export", "portability.answers:export", "portability.requests:ExportRequest",
        "portability.exporting:ExportReport", takes_long=True, reports_progress=True,
    ),
    Operation(
        "import-plan", "portability.importing:plan_import", "portability.requests:ImportOptions",
        "portability.importing:ImportPlan", takes_long=True, not_by=_HELD,
    ),
    Operation(
        "import", "portability.answers:import_", "portability.requests:ImportOptions",
        "portability.importing:ImportReport", **_LONG,),
    Operation(
        "backup-create", "portability.answers:back_up", "portability.requests:BackupRequest",
        "portability.backup:BackupReport", takes_long=True, reports_progress=True,
    ),
    Operation(
        "backup-verify", "health.answers:verify_backup", "health.requests:VerifyRequest", "list[values.reports:Check]",
        takes_long=True, reports_progress=True, needs=_SETTINGS,
    ),
    Operation(
        "backup-restore", "portability.answers:restore", "portability.requests:RestoreRequest",
        "portability.backup:RestoreReport", **_LONG, needs=Needs.CLOSED, owners=True),
    Operation("archive-status", "archive.operations:status", _NOTHING, "archive.operations:ArchiveStatus"),
    Operation(
        "archive-verify", "archive.answers:verify", _NOTHING, "list[values.reports:Problem]", takes_long=True,
        reports_progress=True,
    ),
    Operation("archive-mend", "archive.operations:mend", _NOTHING, "int", writes=True),
    Operation(
        "archive-prune-plan", "archive.answers:plan_pruning", "archive.requests:PruneRequest",
        "list[storage.archive:Archived]",
    ),
    Operation(
        "archive-prune", "archive.answers:prune_archive", "archive.requests:PruneRequest",
        "list[storage.archive:Archived]", writes=True, owners=True),
)  # fmt: skip

_WRITER: dict[str, Any] = {"writes": True, "owners": True, "not_by": _HELD}
_MODELS = (
    Operation("writer", "setup.answers:writer_status", _NOTHING, "setup.writer:WriterStatus"),
    Operation("writer-foreseen", "setup.answers:writer_foreseen", _NOTHING, "setup.writer:Foreseen"),
    Operation(
        "writer-set", "setup.answers:set_writer", "setup.requests:WriterRequest", "setup.writer:WriterStatus", **_WRITER
    ),
    Operation("writer-pause", "setup.answers:pause_writer", _NOTHING, "setup.writer:WriterStatus", **_WRITER),
    Operation("writer-resume", "setup.answers:resume_writer", _NOTHING, "setup.writer:WriterStatus", **_WRITER),
    Operation("writer-off", "setup.answers:end_writer", _NOTHING, "setup.writer:WriterStatus", **_WRITER),
    Operation("models", "setup.answers:list_models", _NOTHING, "list[setup.offers:Offer]", not_by=_HELD),
    Operation(
        "models-test", "setup.answers:test_model", "setup.requests:TryModelRequest", "setup.offers:Trial",
        takes_long=True,
    ),
    Operation(
        "auth", "setup.credentials:status", _NOTHING, "setup.credentials:SigningIn", needs=_SETTINGS, not_by=_KEYS,
    ),
    Operation(
        "auth-set", "setup.answers:set_key", "setup.requests:SetKeyRequest", "str", writes=True, needs=_SETTINGS,
        not_by=_KEYS, owners=True),
    Operation(
        "auth-remove", "setup.answers:remove_key", "setup.requests:ProviderRequest", "list[str]", writes=True,
        needs=_SETTINGS, not_by=_KEYS, owners=True),
    Operation("embed", "indexing.model_switch:status", _NOTHING, "indexing.model_switch:Standing", not_by=_HELD),
    Operation("embed-plan", "indexing.answers:plan", "indexing.requests:ModelRequest", "indexing.model_switch:Plan"),
    Operation("embed-try", "indexing.answers:try_one", "indexing.requests:ModelRequest", "indexing.model_switch:Trial"),
    Operation(
        "embed-switch", "indexing.answers:switch", "indexing.requests:SwitchRequest", "indexing.vectors:Embedded",
        **_LONG, owners=True),
    Operation("embed-resume", "indexing.answers:resume", _NOTHING, "indexing.vectors:Embedded", **_LONG),
    Operation("embed-back", "indexing.answers:back", _NOTHING, "indexing.vectors:Embedded", **_LONG, owners=True),
    Operation("embed-forget-old", "indexing.model_switch:forget_old", _NOTHING, "int", writes=True),
    Operation("cost", "spending.answers:show_costs", "spending.requests:CostRequest", "views:CostReport"),
    Operation("traces", "health.answers:list_traces", "health.requests:TracesRequest", "list[values.trace:Trace]"),
    Operation("trace", "health.answers:show_trace", "health.requests:TraceRequest", "views:TraceView"),
)  # fmt: skip

_CARE = (
    Operation("home", "health.home_page:home_page", _NOTHING, "health.home_page:HomePage", needs=_SETTINGS),
    Operation("overview", "health.answers:overview", _NOTHING, "views:Overview"),
    Operation("health", "health.checks:health", _NOTHING, "list[values.reports:Check]"),
    Operation("doctor", "health.answers:doctor", "health.requests:DoctorRequest", "list[values.reports:Check]"),
    Operation(
        "doctor-deep", "health.answers:prove_home", "health.requests:ProveRequest", "list[values.reports:Check]",
        **_LONG
    ),
    Operation("doctor-hosts", "wiring.prove:prove_hosts", _NOTHING, "list[values.reports:Check]", takes_long=True,
              needs=_SETTINGS),
    Operation("hosts-plan", "wiring.answers:plan", "wiring.requests:WireRequest", "values.wiring:WiringPlan",
              needs=_SETTINGS, not_by=_HELD),
    Operation("hosts-wire", "wiring.answers:wire", "wiring.requests:WireRequest", "values.wiring:WiringDone",
              writes=True, needs=_SETTINGS, not_by=_HELD, owners=True),
    Operation("db-stats", "health.database:stats", _NOTHING, "health.database:Stats"),
    Operation(
        "db-rebuild", "health.answers:rebuild", "health.requests:RebuildRequest", "values.reports:IngestReport",
        **_LONG,
        needs=Needs.CLOSED,
    ),
    Operation("db-backup", "health.answers:back_up_database", "health.requests:TargetRequest", "Path"),
    Operation("db-reset", "health.answers:reset", _NOTHING, "Path | None", writes=True, needs=Needs.CLOSED,
              owners=True,
    ),
    Operation(
        "config", "setup.visible_settings:list_settings", _NOTHING, "list[setup.visible_settings:SettingView]",
        needs=_SETTINGS,
    ),
    Operation(
        "config-get", "setup.visible_settings:get_setting", "setup.requests:SettingRequest",
        "setup.visible_settings:SettingView",
        needs=_SETTINGS,
    ),
    Operation(
        "config-set", "setup.visible_settings:set_setting", "setup.requests:SetRequest",
        "setup.visible_settings:SettingView",
        writes=True, needs=_SETTINGS, owners=True),
    Operation("usefulness", "usefulness.usefulness:usefulness", _NOTHING, "usefulness.values:Usefulness",
              takes_long=True),
    Operation(
        "eval", "evaluation.answers:evaluate", "evaluation.requests:EvaluateRequest",
        "list[evaluation.evaluate:Answer]", takes_long=True,
    ),
    Operation(
        "eval-list", "evaluation.answers:list_queries", "evaluation.requests:QueriesRequest",
        "list[evaluation.evaluate:SavedQuery]",
    ),
    Operation(
        "eval-add", "evaluation.answers:add_query", "evaluation.requests:AddQueryRequest",
        "evaluation.evaluate:SavedQuery", writes=True,
    ),
    Operation(
        "eval-remove", "evaluation.answers:remove_query", "evaluation.requests:RemoveQueryRequest",
        "evaluation.evaluate:SavedQuery", writes=True,
    ),
    Operation("watcher", "watching.answers:show_status", _NOTHING, "watching.status:Standing", needs=_SETTINGS),
    Operation(
        "watcher-start", "watching.answers:start", _NOTHING, "watching.status:Standing", writes=True, needs=_SETTINGS,
        not_by=_WATCHER,
    ),
    Operation("watcher-stop", "watching.answers:stop", _NOTHING, "bool", writes=True, needs=_SETTINGS, not_by=_WATCHER),
    Operation("watcher-install", "watching.install:install", _NOTHING, "watching.install:Installation", writes=True,
              needs=_SETTINGS, not_by=_WATCHER, owners=True),
    Operation("watcher-uninstall", "watching.install:uninstall", _NOTHING, "watching.install:Installation", writes=True,
              needs=_SETTINGS, not_by=_WATCHER, owners=True),
)  # fmt: skip

_NOT_BY: Mapping[Face, Mapping[str, str]] = {
    Face.COMMAND_LINE: {
        "nacre show looks at a memory with all that is known of it": "get",
        "a list of memories by their links is for agents": "connections",
        "agents read it as nacre://project": "page",
        "nacre extract shows what it proposes instead": "extract",
        "hooks are a program of their own": "hook context-given",
        "hooks leave it to nacre chores": "flush",
        "nacre health and nacre db stats tell it": "overview",
        "nacre writer set tells it as it asks": "writer-foreseen",
    },
    Face.MCP: {
        "memory_get looks at memories with all that is known of them": "get history",
        "an agent says at once what it wants": "store-rehearse retire-plan ingest-plan ingest-estimate watch-survey",
        "an agent stores what changed": "edit todo-done",
        "the person takes back what was done": "unretire retired retired-standing log diff undo-plan undo",
        "hooks do it, unasked": "feedback context context-given hook handoff flush chores",
        "the person judges": (
            "feedback-judge review-dismiss review-replace review-retire conflicts-resolve settled candidates "
            "candidate-keep candidate-drop dream reflect-answer"
        ),
        "it takes minutes, or money": (
            "conflicts-judge claims-estimate claims-backfill extract-propose watch-once quickstart dream-estimate"
        ),
        "expressions take seconds; memory_sessions searches by words": "match-sessions",
        "pages are the person's own words": "page-own page-write",
        "the person opens a session in its tool": "resume",
        "the person says which folder is a project's": "project-tie",
        "what leaves the machine or comes to it is the person's": (
            "sync export import-plan import backup-create backup-verify backup-restore commit"
        ),
        "deleting is the person's": "forget-plan forget forgotten forget-allow-again scrub",
        "the archive is the person's": (
            "session-restore archive-status archive-verify archive-mend archive-prune-plan archive-prune"
        ),
        "models, keys and what they cost are the person's": (
            "models models-test auth auth-set auth-remove embed embed-plan embed-try embed-switch embed-resume "
            "embed-back embed-forget-old cost traces trace writer writer-foreseen writer-set writer-pause "
            "writer-resume writer-off"
        ),
        "memory_admin tells how nacre is": "home health doctor doctor-deep doctor-hosts db-stats watcher",
        "the installation is the person's": (
            "hosts-plan hosts-wire db-rebuild db-backup db-reset config config-get config-set watcher-start "
            "watcher-stop watcher-install watcher-uninstall"
        ),
        "saved queries, and whether nacre is of use, are the person's": (
            "eval eval-list eval-add eval-remove usefulness"
        ),
    },
}
"""Operations that a face does not offer, by the reason."""


def _with_reasons(operation: Operation) -> Operation:
    reasons = {
        face: reason
        for face, named in _NOT_BY.items()
        for reason, names in named.items()
        if operation.name in names.split()
    }
    return replace(operation, not_by={**operation.not_by, **reasons})


CATALOGUE: Mapping[str, Operation] = {
    one.name: _with_reasons(one)
    for part in (_MEMORIES, _SESSIONS, _AGENTS, _REVIEW, _HISTORY, _FORGETTING, _OWN, _MODELS, _CARE)
    for one in part
}
"""By name."""


def offered_by(face: Face) -> Mapping[str, Operation]:
    """The operations that a face offers, by name; the daemon and agents find the home open."""
    return {
        name: one
        for name, one in CATALOGUE.items()
        if face not in one.not_by and not (face in (Face.DAEMON, Face.MCP) and one.needs is Needs.CLOSED)
    }
