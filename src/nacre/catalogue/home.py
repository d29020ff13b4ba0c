"""Operations on the home: what comes and goes, models, health, settings, hosts, the watcher."""

from __future__ import annotations

from typing import Any

from nacre.catalogue.flags import LONG, NOTHING
from nacre.operation import Needs, Operation
from nacre.values.actor import Face

_KEYS = dict.fromkeys((Face.DAEMON, Face.HTTP), "a key stays in the process that it was given to")
_WATCHER = dict.fromkeys((Face.DAEMON, Face.HTTP), "the daemon may be the watcher")
_HELD = {Face.DAEMON: "what it answers works in its own process alone"}
_SETTINGS = Needs.SETTINGS

OWN = (
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
        "portability.importing:ImportReport", **LONG,),
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
        "portability.backup:RestoreReport", **LONG, needs=Needs.CLOSED, owners=True),
    Operation(
        "move", "moving.move:move", "moving.requests:MoveRequest", "moving.move:MoveReport", **LONG,
        needs=Needs.CLOSED, owners=True),
    Operation("archive-status", "archive.operations:status", NOTHING, "archive.operations:ArchiveStatus"),
    Operation(
        "archive-verify", "archive.answers:verify", NOTHING, "list[values.reports:Problem]", takes_long=True,
        reports_progress=True,
    ),
    Operation("archive-mend", "archive.operations:mend", NOTHING, "int", writes=True),
    Operation(
        "archive-prune-plan", "archive.answers:plan_pruning", "archive.requests:PruneRequest",
        "list[storage.archive:Archived]",
    ),
    Operation(
        "archive-prune", "archive.answers:prune_archive", "archive.requests:PruneRequest",
        "list[storage.archive:Archived]", writes=True, owners=True),
)  # fmt: skip

PROJECTS = (
    Operation("project-list", "projects.answers:list_projects", NOTHING, "list[projects.values:ProjectLine]"),
    Operation(
        "project-show", "projects.answers:show_project", "projects.requests:ProjectRequest",
        "projects.values:ProjectDetail",
    ),
    Operation(
        "project-rename", "projects.moving:rename", "projects.requests:ProjectRenameRequest",
        "projects.values:ProjectMoved", writes=True, takes_long=True, owners=True),
    Operation(
        "project-merge-plan", "projects.moving:plan_merge", "projects.requests:ProjectMergeRequest",
        "projects.values:ProjectMergePlan",
    ),
    Operation(
        "project-merge", "projects.moving:merge", "projects.requests:ProjectMergeRequest",
        "projects.values:ProjectMoved", writes=True, takes_long=True, owners=True),
    Operation(
        "project-depend", "projects.answers:depend", "projects.requests:ProjectDependRequest",
        "projects.values:ProjectLine", writes=True, owners=True),
)  # fmt: skip

_WRITER: dict[str, Any] = {"writes": True, "owners": True, "not_by": _HELD}
MODELS = (
    Operation("writer", "setup.answers:writer_status", NOTHING, "setup.writer:WriterStatus"),
    Operation("writer-foreseen", "setup.answers:writer_foreseen", NOTHING, "setup.foreseeing:Foreseen"),
    Operation(
        "writer-set", "setup.answers:set_writer", "setup.requests:WriterRequest", "setup.writer:WriterStatus", **_WRITER
    ),
    Operation("writer-pause", "setup.answers:pause_writer", NOTHING, "setup.writer:WriterStatus", **_WRITER),
    Operation("writer-resume", "setup.answers:resume_writer", NOTHING, "setup.writer:WriterStatus", **_WRITER),
    Operation("writer-off", "setup.answers:end_writer", NOTHING, "setup.writer:WriterStatus", **_WRITER),
    Operation("models", "setup.answers:list_models", NOTHING, "list[setup.offers:Offer]", not_by=_HELD),
    Operation(
        "models-test", "setup.answers:test_model", "setup.requests:TryModelRequest", "setup.offers:Trial",
        takes_long=True,
    ),
    Operation(
        "auth", "setup.credentials:status", NOTHING, "setup.credentials:SigningIn", needs=_SETTINGS, not_by=_HELD,
    ),
    Operation(
        "auth-set", "setup.answers:set_key", "setup.requests:SetKeyRequest", "str", writes=True, needs=_SETTINGS,
        not_by=_KEYS, owners=True),
    Operation(
        "auth-remove", "setup.answers:remove_key", "setup.requests:ProviderRequest", "list[str]", writes=True,
        needs=_SETTINGS, not_by=_KEYS, owners=True),
    Operation("embed", "indexing.model_switch:status", NOTHING, "indexing.model_switch:Standing", not_by=_HELD),
    Operation("embed-plan", "indexing.answers:plan", "indexing.requests:ModelRequest", "indexing.model_switch:Plan"),
    Operation("embed-try", "indexing.answers:try_one", "indexing.requests:ModelRequest", "indexing.model_switch:Trial"),
    Operation(
        "embed-switch", "indexing.answers:switch", "indexing.requests:ModelRequest", "indexing.vectors:Embedded",
        **LONG, owners=True),
    Operation("embed-resume", "indexing.answers:resume", NOTHING, "indexing.vectors:Embedded", **LONG),
    Operation("cost", "spending.answers:show_costs", "spending.requests:CostRequest", "views:CostReport"),
    Operation("traces", "health.answers:list_traces", "health.requests:TracesRequest", "list[values.trace:Trace]"),
    Operation("trace", "health.answers:show_trace", "health.requests:TraceRequest", "views:TraceView"),
)  # fmt: skip

CARE = (
    Operation("today", "reporting.today:today", "reporting.requests:TodayRequest", "reporting.values:Today"),
    Operation(
        "activity", "reporting.activity:activity", "reporting.requests:ActivityRequest", "reporting.values:Activity"
    ),
    Operation("status", "health.status:status", NOTHING, "health.status:Status", needs=_SETTINGS),
    Operation("overview", "health.answers:overview", NOTHING, "views:Overview"),
    Operation("doctor", "health.answers:doctor", "health.requests:DoctorRequest", "list[values.reports:Check]"),
    Operation(
        "doctor-deep", "health.answers:prove_home", "health.requests:ProveRequest", "list[values.reports:Check]",
        **LONG
    ),
    Operation("doctor-hosts", "wiring.prove:prove_hosts", NOTHING, "list[values.reports:Check]", takes_long=True,
              needs=_SETTINGS),
    Operation("hosts", "wiring.preview:list_hosts", NOTHING, "list[wiring.preview:HostState]", needs=_SETTINGS),
    Operation("hosts-preview", "wiring.preview:preview", "wiring.requests:WireRequest",
              "wiring.preview:WiringPreview", needs=_SETTINGS, not_by=_HELD),
    Operation("hosts-plan", "wiring.answers:plan", "wiring.requests:WireRequest", "values.wiring:WiringPlan",
              needs=_SETTINGS, not_by=_HELD),
    Operation("hosts-wire", "wiring.answers:wire", "wiring.requests:WireRequest", "values.wiring:WiringDone",
              writes=True, needs=_SETTINGS, not_by=_HELD, command="init", owners=True),
    Operation("db-stats", "health.database:stats", NOTHING, "health.database:Stats"),
    Operation("db-version", "health.database_care:version", NOTHING, "health.database_care:DatabaseVersion"),
    Operation(
        "db-vacuum", "health.database_care:vacuum", NOTHING, "health.database_care:Vacuumed", writes=True,
        takes_long=True,
    ),
    Operation(
        "db-rebuild", "health.answers:rebuild", "health.requests:RebuildRequest", "values.reports:IngestReport",
        **LONG,
        needs=Needs.CLOSED,
    ),
    Operation("db-backup", "health.answers:back_up_database", "health.requests:TargetRequest", "Path"),
    Operation("db-reset", "health.answers:reset", NOTHING, "Path | None", writes=True, needs=Needs.CLOSED,
              owners=True,
    ),
    Operation(
        "config", "setup.visible_settings:list_settings", NOTHING, "list[setup.visible_settings:SettingView]",
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
    Operation(
        "config-unset", "setup.visible_settings:unset_setting", "setup.requests:SettingRequest",
        "setup.visible_settings:SettingView",
        writes=True, needs=_SETTINGS, owners=True),
    Operation("usefulness", "usefulness.usefulness:usefulness", NOTHING, "usefulness.values:Usefulness",
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
    Operation("watcher", "watching.answers:show_status", NOTHING, "watching.status:Standing", needs=_SETTINGS),
    Operation(
        "watcher-start", "watching.answers:start", NOTHING, "watching.status:Standing", writes=True, needs=_SETTINGS,
        not_by=_WATCHER,
    ),
    Operation("watcher-stop", "watching.answers:stop", NOTHING, "bool", writes=True, needs=_SETTINGS, not_by=_WATCHER),
    Operation("watcher-install", "watching.install:install", NOTHING, "watching.install:Installation", writes=True,
              needs=_SETTINGS, not_by=_WATCHER, owners=True),
    Operation("watcher-uninstall", "watching.install:uninstall", NOTHING, "watching.install:Installation", writes=True,
              needs=_SETTINGS, not_by=_WATCHER, owners=True),
)  # fmt: skip
