"""Catalogue of the operations on the home, its settings and models, spaces and sessions."""

from __future__ import annotations

from typing import Any

from nacre.serve.operation import LONG, NOTHING, Needs, Operation
from nacre.values.memory import Face

_HTTP = (Face.HTTP,)
_DAEMON = (Face.DAEMON,)
_DAEMON_AND_HTTP = (Face.DAEMON, Face.HTTP)
_SETTINGS = Needs.SETTINGS

OWN = (
    Operation(
        "export",
        "data.imports:export",
        "data.export:ExportRequest",
        "data.export:ExportReport",
        takes_long=True,
        reports_progress=True,
    ),
    Operation(
        "import-plan",
        "data.imports:plan_import",
        "data.export:ImportOptions",
        "data.imports:ImportPlan",
        takes_long=True,
        not_by=_DAEMON_AND_HTTP,
    ),
    Operation(
        "import",
        "data.imports:import_",
        "data.export:ImportOptions",
        "data.imports:ImportReport",
        **LONG,
    ),
    Operation(
        "backup-create",
        "data.imports:back_up",
        "data.export:BackupRequest",
        "data.backup:BackupReport",
        takes_long=True,
        reports_progress=True,
    ),
    Operation(
        "backup-verify",
        "care.health:verify_backup",
        "care.health:VerifyRequest",
        "list[values.reports:Check]",
        takes_long=True,
        reports_progress=True,
        needs=_SETTINGS,
    ),
    Operation(
        "backup-restore",
        "data.imports:restore",
        "data.export:RestoreRequest",
        "data.backup:RestoreReport",
        **LONG,
        needs=Needs.CLOSED,
        owners=True,
        command="data backup restore",
    ),
    Operation(
        "move",
        "care.move:move",
        "care.move:MoveRequest",
        "care.move:MoveReport",
        **LONG,
        needs=Needs.CLOSED,
        owners=True,
        command="data move",
    ),
    Operation("archive-status", "home.archive:status", NOTHING, "home.archive:ArchiveStatus"),
)

PROJECTS = (
    Operation(
        "project-list",
        "memories.projects:list_projects",
        NOTHING,
        "list[memories.projects:ProjectLine]",
    ),
    Operation(
        "project-show",
        "memories.projects:show_project",
        "memories.projects:ProjectRequest",
        "memories.projects:ProjectDetail",
    ),
    Operation(
        "project-rename",
        "memories.projects:rename",
        "memories.projects:ProjectRenameRequest",
        "memories.projects:ProjectMoved",
        writes=True,
        takes_long=True,
        owners=True,
    ),
    Operation(
        "project-merge-plan",
        "memories.projects:plan_merge",
        "memories.projects:ProjectMergeRequest",
        "memories.projects:ProjectMergePlan",
    ),
    Operation(
        "project-merge",
        "memories.projects:merge",
        "memories.projects:ProjectMergeRequest",
        "memories.projects:ProjectMoved",
        writes=True,
        takes_long=True,
        owners=True,
    ),
    Operation(
        "project-depend",
        "memories.projects:depend",
        "memories.projects:ProjectDependRequest",
        "memories.projects:ProjectLine",
        writes=True,
        owners=True,
    ),
)

_WRITER: dict[str, Any] = {"writes": True, "owners": True, "not_by": _DAEMON}
MODELS = (
    Operation("writer", "setup.models:status_writer", NOTHING, "setup.models:WriterStatus"),
    Operation(
        "writer-set",
        "setup.models:set_writer",
        "setup.models:WriterRequest",
        "setup.models:WriterStatus",
        **_WRITER,
    ),
    Operation(
        "writer-pause", "setup.models:pause", NOTHING, "setup.models:WriterStatus", **_WRITER
    ),
    Operation(
        "writer-resume",
        "setup.models:resume",
        NOTHING,
        "setup.models:WriterStatus",
        **_WRITER,
    ),
    Operation(
        "writer-off",
        "setup.models:end",
        NOTHING,
        "setup.models:WriterStatus",
        command="writer set",
        **_WRITER,
    ),
    Operation("models", "setup.models:offers", NOTHING, "list[setup.models:Offer]", not_by=_DAEMON),
    Operation(
        "models-test",
        "setup.models:test_model",
        "setup.models:TryModelRequest",
        "setup.models:Trial",
        takes_long=True,
    ),
    Operation(
        "auth",
        "setup.models:status",
        NOTHING,
        "setup.models:SigningIn",
        needs=_SETTINGS,
        not_by=_DAEMON,
    ),
    Operation(
        "auth-set",
        "setup.models:replace_key",
        "setup.models:SetKeyRequest",
        "str",
        writes=True,
        needs=_SETTINGS,
        not_by=_DAEMON_AND_HTTP,
        owners=True,
        command="writer keys",
    ),
    Operation(
        "auth-remove",
        "setup.models:remove",
        "setup.models:ProviderRequest",
        "list[str]",
        writes=True,
        needs=_SETTINGS,
        not_by=_DAEMON_AND_HTTP,
        owners=True,
        command="writer keys --remove",
    ),
    Operation(
        "embed", "memories.vectors:status", NOTHING, "memories.vectors:Standing", not_by=_DAEMON
    ),
    Operation(
        "embed-plan",
        "memories.vectors:plan_answers",
        "memories.vectors:ModelRequest",
        "memories.vectors:Plan",
    ),
    Operation(
        "embed-try",
        "memories.vectors:try_one_answers",
        "memories.vectors:ModelRequest",
        "memories.vectors:Trial",
    ),
    Operation(
        "embed-switch",
        "memories.vectors:switch_answers",
        "memories.vectors:ModelRequest",
        "memories.vectors:Embedded",
        **LONG,
        owners=True,
        command="writer embedding",
    ),
    Operation(
        "embed-resume",
        "memories.vectors:resume_answers",
        NOTHING,
        "memories.vectors:Embedded",
        **LONG,
    ),
    Operation("cost", "home.spending:show_costs", NOTHING, "home.views:CostReport"),
    Operation(
        "traces",
        "care.health:list_traces",
        "care.health:TracesRequest",
        "list[values.models:Trace]",
    ),
    Operation(
        "trace",
        "care.health:show_trace",
        "care.health:TraceRequest",
        "values.models:Trace",
    ),
)

CARE = (
    Operation("today", "care.today:today", "care.today:TodayRequest", "care.today:Today"),
    Operation(
        "activity", "care.today:activity", "care.today:ActivityRequest", "care.today:Activity"
    ),
    Operation("status", "care.health:status", NOTHING, "care.health:Status", needs=_SETTINGS),
    Operation("overview", "care.health:overview", NOTHING, "home.views:Overview"),
    Operation(
        "doctor",
        "care.health:doctor_answers",
        "care.health:DoctorRequest",
        "list[values.reports:Check]",
    ),
    Operation(
        "doctor-deep",
        "care.health:prove_home",
        "care.health:ProveRequest",
        "list[values.reports:Check]",
        **LONG,
    ),
    Operation(
        "doctor-hosts",
        "hosts.verify:prove_hosts",
        NOTHING,
        "list[values.reports:Check]",
        takes_long=True,
        needs=_SETTINGS,
    ),
    Operation(
        "hosts",
        "hosts.connect:list_hosts",
        NOTHING,
        "list[hosts.connect:HostState]",
        needs=_SETTINGS,
    ),
    Operation(
        "hosts-preview",
        "hosts.connect:preview",
        "hosts.ways:WireRequest",
        "hosts.connect:WiringPreview",
        needs=_SETTINGS,
        not_by=_DAEMON,
    ),
    Operation(
        "hosts-plan",
        "hosts.connect:plan_answers",
        "hosts.ways:WireRequest",
        "values.reports:WiringPlan",
        needs=_SETTINGS,
        not_by=_DAEMON_AND_HTTP,
    ),
    Operation(
        "hosts-wire",
        "hosts.connect:wire",
        "hosts.ways:WireRequest",
        "values.reports:WiringDone",
        writes=True,
        needs=_SETTINGS,
        not_by=_DAEMON,
        command="init",
        owners=True,
    ),
    Operation("db-stats", "care.database:stats", NOTHING, "care.database:Stats"),
    Operation(
        "db-vacuum",
        "care.database:vacuum",
        NOTHING,
        "care.database:Vacuumed",
        writes=True,
        takes_long=True,
    ),
    Operation(
        "db-rebuild",
        "care.health:rebuild",
        "care.health:RebuildRequest",
        "values.reports:IngestReport",
        **LONG,
        needs=Needs.CLOSED,
    ),
    Operation(
        "db-reset",
        "care.health:reset",
        NOTHING,
        "Path | None",
        writes=True,
        needs=Needs.CLOSED,
        owners=True,
        command="admin db reset",
    ),
    Operation(
        "config",
        "setup.models:list_settings",
        NOTHING,
        "list[setup.models:SettingView]",
        needs=_SETTINGS,
    ),
    Operation(
        "config-get",
        "setup.models:get_setting",
        "setup.models:SettingRequest",
        "setup.models:SettingView",
        needs=_SETTINGS,
    ),
    Operation(
        "config-set",
        "setup.models:set_setting",
        "setup.models:SetRequest",
        "setup.models:SettingView",
        writes=True,
        needs=_SETTINGS,
        owners=True,
    ),
    Operation(
        "config-unset",
        "setup.models:unset_setting",
        "setup.models:SettingRequest",
        "setup.models:SettingView",
        writes=True,
        needs=_SETTINGS,
        owners=True,
    ),
    Operation(
        "usefulness",
        "care.usefulness:usefulness",
        NOTHING,
        "care.usefulness:Usefulness",
        takes_long=True,
    ),
    Operation(
        "eval",
        "care.usefulness:evaluate",
        "care.usefulness:EvaluateRequest",
        "list[care.usefulness:Answer]",
        takes_long=True,
    ),
    Operation(
        "eval-list",
        "care.usefulness:list_queries",
        "care.usefulness:QueriesRequest",
        "list[care.usefulness:SavedQuery]",
    ),
    Operation(
        "eval-add",
        "care.usefulness:add_query",
        "care.usefulness:AddQueryRequest",
        "care.usefulness:SavedQuery",
        writes=True,
    ),
    Operation(
        "eval-remove",
        "care.usefulness:remove_query",
        "care.usefulness:RemoveQueryRequest",
        "care.usefulness:SavedQuery",
        writes=True,
    ),
)


# -- Remote spaces ---------------------------------------------------------------------------------
# The last four are called by other machines.


REMOTE = (
    Operation(
        "remote", "care.remote:show_remote", NOTHING, "care.remote:RemoteStanding", not_by=_HTTP
    ),
    Operation(
        "remote-add",
        "care.remote:add_remote",
        "care.remote:AddRemoteRequest",
        "care.remote:Exchanged",
        **LONG,
        owners=True,
        command="server remote add",
        not_by=_HTTP,
    ),
    Operation(
        "remote-sync",
        "care.remote:exchange",
        NOTHING,
        "care.remote:Exchanged",
        **LONG,
        not_by=_HTTP,
    ),
    Operation(
        "remote-remove",
        "care.remote:remove_remote",
        NOTHING,
        "care.remote:RemoteStanding",
        writes=True,
        owners=True,
        command="server remote remove",
        not_by=_HTTP,
    ),
    Operation(
        "remote-changes",
        "care.remote:tell_changes",
        "care.remote:RemoteChangesRequest",
        "care.remote:ServerChanges",
    ),
    Operation(
        "remote-versions",
        "care.remote:tell_versions",
        "care.remote:RemoteVersionsRequest",
        "list[care.remote:ServerDocument]",
    ),
    Operation(
        "remote-push",
        "care.remote:take_documents",
        "care.remote:RemotePushRequest",
        "care.remote:Pushed",
        writes=True,
    ),
    Operation(
        "remote-turns",
        "care.remote:take_turns",
        "care.remote:RemoteTurnsRequest",
        "int",
        writes=True,
    ),
)


# -- Spaces ----------------------------------------------------------------------------------------


_OWNERS: dict[str, Any] = {"writes": True, "owners": True}
_SECRET: dict[str, Any] = {
    **_OWNERS,
    "not_by": _DAEMON_AND_HTTP,
}

SPACES = (
    Operation(
        "share",
        "memories.spaces:share",
        "memories.spaces:ShareRequest",
        "memories.spaces:Shared",
        **_OWNERS,
        command="server share",
    ),
    Operation("spaces", "memories.spaces:list_spaces", NOTHING, "list[memories.spaces:Space]"),
    Operation(
        "spaces-create",
        "memories.spaces:create_space",
        "memories.spaces:CreateSpaceRequest",
        "memories.spaces:Space",
        **_OWNERS,
        command="server spaces create",
    ),
    Operation(
        "spaces-members",
        "memories.spaces:list_members",
        "memories.spaces:SpaceRequest",
        "list[memories.spaces:Member]",
    ),
    Operation(
        "spaces-add",
        "memories.spaces:add_member",
        "memories.spaces:AddMemberRequest",
        "list[memories.spaces:Member]",
        **_OWNERS,
        command="server spaces members --add",
    ),
    Operation(
        "spaces-remove",
        "memories.spaces:remove_member",
        "memories.spaces:RemoveMemberRequest",
        "list[memories.spaces:Member]",
        **_OWNERS,
        command="server spaces members --remove",
    ),
    Operation(
        "spaces-log",
        "memories.spaces:list_log",
        "memories.spaces:LogRequest",
        "list[memories.spaces:Note]",
    ),
    Operation(
        "keys",
        "memories.spaces:list_keys",
        "memories.spaces:SpaceRequest",
        "list[memories.spaces:Key]",
    ),
    Operation(
        "keys-create",
        "memories.spaces:create_key",
        "memories.spaces:CreateKeyRequest",
        "memories.spaces:NewKey",
        **_SECRET,
        command="server keys create",
    ),
    Operation(
        "keys-revoke",
        "memories.spaces:revoke_key",
        "memories.spaces:RevokeKeyRequest",
        "memories.spaces:Key",
        **_OWNERS,
        command="server keys revoke",
    ),
)


# -- Sessions and agents ---------------------------------------------------------------------------


SESSIONS = (
    Operation(
        "search-sessions",
        "recall.recall:search_sessions_answers",
        "recall.requests:TurnQuery",
        "values.recall:RecallResult",
    ),
    Operation(
        "match-sessions",
        "sessions.search:match",
        "sessions.find:MatchRequest",
        "sessions.find:Matches",
    ),
    Operation(
        "search-chats",
        "sessions.search:search",
        "sessions.find:ChatSearchRequest",
        "sessions.search:Passages",
    ),
    Operation(
        "sessions",
        "sessions.search:list_sessions_answers",
        "sessions.find:SessionsRequest",
        "home.views:SessionPage",
    ),
    Operation(
        "session", "sessions.search:show", "sessions.find:SessionRequest", "home.views:SessionView"
    ),
    Operation(
        "resume", "sessions.search:resume", "sessions.find:ResumeRequest", "home.views:Resumption"
    ),
    Operation(
        "session-summary",
        "sessions.search:summarize",
        "sessions.find:SessionRequest",
        "home.views:SessionReport",
    ),
    Operation(
        "session-restore",
        "home.archive:restore_answers",
        "home.archive:RestoreSessionRequest",
        "home.archive:Restored",
    ),
    Operation("did", "sessions.work:did", "sessions.find:DidQuery", "values.session:FileHistory"),
    Operation("fix", "sessions.work:fix", "sessions.find:FixQuery", "home.views:FixResult"),
    Operation(
        "extract",
        "learn.learn:preview",
        "learn.requests:ExtractRequest",
        "home.views:Extracted",
        takes_long=True,
    ),
    Operation(
        "extract-propose",
        "learn.learn:propose",
        "learn.requests:ProposalRequest",
        "list[learn.learn:Proposal]",
        takes_long=True,
        reports_progress=True,
    ),
    Operation(
        "ingest",
        "learn.ingest:ingest",
        "learn.ingest:IngestOptions",
        "values.reports:IngestReport",
        **LONG,
        owners=("paths", "older"),
    ),
    Operation(
        "ingest-plan",
        "learn.ingest:plan",
        "learn.ingest:IngestOptions",
        "values.reports:IngestPlan",
    ),
    Operation(
        "ingest-estimate",
        "learn.ingest:estimate",
        "learn.ingest:IngestOptions",
        "learn.estimate:Estimate",
        takes_long=True,
    ),
    Operation(
        "quickstart", "setup.setup:run_quickstart", NOTHING, "setup.setup:QuickstartResult", **LONG
    ),
)

AGENTS = (
    Operation(
        "context",
        "context.build:build",
        "values.context:ContextRequest",
        "values.context:ContextBlock",
    ),
    Operation(
        "context-given",
        "context.build:note_given",
        "context.requests:GivenRequest",
        "None",
        not_by=_HTTP,
    ),
    Operation(
        "hook",
        "context.build:answer",
        "values.context:HookCall",
        "values.context:HookAnswer",
        not_by=_HTTP,
    ),
    Operation(
        "handoff",
        "context.handoff:handoff",
        "context.requests:HandoffRequest",
        "values.session:HandoffView",
        writes=True,
        not_by=_HTTP,
    ),
    Operation(
        "flush",
        "setup.chores:flush",
        "setup.requests:FlushRequest",
        "values.session:FlushReport",
        **LONG,
        not_by=_HTTP,
    ),
    Operation(
        "chores",
        "setup.chores:do_waiting_answers",
        "setup.requests:ChoresRequest",
        "values.session:ChoresReport",
        writes=True,
        takes_long=True,
        not_by=_HTTP,
    ),
    Operation(
        "page-own",
        "context.build:own_page_answers",
        "context.requests:OwnPageRequest",
        "context.build:OwnPage",
    ),
    Operation(
        "page-write",
        "context.build:write_own_page_answers",
        "context.requests:WritePageRequest",
        "context.build:OwnPage",
        writes=True,
        command="project page",
        owners=True,
    ),
)
