"""The operations of each module, and their requests. Written by scripts/write_manifest.py; do not edit."""

from __future__ import annotations

MODULES = {
    "care.database": "db-stats db-vacuum",
    "care.health": (
        "overview doctor:DoctorRequest doctor-deep:ProveRequest traces:TracesRequest "
        "trace:TraceRequest db-rebuild:RebuildRequest db-reset backup-verify:VerifyRequest status"
    ),
    "care.move": "move:MoveRequest",
    "care.remote": (
        "remote-add:AddRemoteRequest remote-remove remote remote-sync "
        "remote-changes:RemoteChangesRequest remote-versions:RemoteVersionsRequest "
        "remote-push:RemotePushRequest remote-turns:RemoteTurnsRequest"
    ),
    "care.today": "activity:ActivityRequest today:TodayRequest",
    "care.usefulness": (
        "usefulness eval-add:AddQueryRequest eval-remove:RemoveQueryRequest eval:EvaluateRequest "
        "eval-list:QueriesRequest"
    ),
    "context.build": (
        "context:values.context:ContextRequest page-own:context.requests:OwnPageRequest "
        "page-write:context.requests:WritePageRequest context-given:context.requests:GivenRequest "
        "hook:values.context:HookCall"
    ),
    "context.handoff": "handoff:context.requests:HandoffRequest",
    "data.forget": (
        "forget-plan:ForgetRequest forgotten forget-allow-again:AllowAgainRequest "
        "forget:ForgetRequest"
    ),
    "data.imports": (
        "import-plan:data.export:ImportOptions export:data.export:ExportRequest "
        "import:data.export:ImportOptions backup-create:data.export:BackupRequest "
        "backup-restore:data.export:RestoreRequest"
    ),
    "data.scrub": "scrub:data.forget:ScrubOptions",
    "data.sync": "sync:SyncRequest",
    "data.undo": "log:LogRequest diff:DiffRequest undo-plan:UndoRequest undo:UndoRequest commit",
    "home.archive": "archive-status session-restore:RestoreSessionRequest",
    "home.change": "place:PlaceRequest project-tie:TieRequest page:PageRequest",
    "home.spending": "cost",
    "hosts.connect": (
        "hosts-plan:hosts.ways:WireRequest hosts-wire:hosts.ways:WireRequest hosts "
        "hosts-preview:hosts.ways:WireRequest"
    ),
    "hosts.verify": "doctor-hosts",
    "learn.ingest": (
        "ingest:IngestOptions ingest-plan:IngestOptions ingest-estimate:IngestOptions "
        "store:memories.decision:StoreRequest store-rehearse:memories.decision:StoreRequest"
    ),
    "learn.learn": "extract-propose:learn.requests:ProposalRequest extract:learn.requests:ExtractRequest",
    "memories.graph": (
        "graph-central:AnalysisRequest graph-gaps:AnalysisRequest "
        "graph-components:AnalysisRequest graph-brief:BriefRequest graph-link:LinkRequest "
        "graph-unlink:UnlinkRequest graph-invalidate:InvalidateRequest "
        "graph-unlink-origin:UnlinkOriginRequest graph-list:LinksRequest "
        "graph-show:TraverseRequest graph-map:MapRequest"
    ),
    "memories.projects": (
        "project-rename:ProjectRenameRequest project-merge-plan:ProjectMergeRequest "
        "project-merge:ProjectMergeRequest project-list project-show:ProjectRequest "
        "project-depend:ProjectDependRequest"
    ),
    "memories.retire": (
        "retire-plan:memories.decision:RetireRequest unretire:memories.decision:ReferencesRequest "
        "retired retired-standing list:memories.decision:ListRequest "
        "edit:memories.decision:EditRequest todo-done:memories.decision:ReferencesRequest "
        "retire:memories.decision:RetireRequest"
    ),
    "memories.spaces": (
        "spaces spaces-create:CreateSpaceRequest spaces-members:SpaceRequest "
        "spaces-add:AddMemberRequest spaces-remove:RemoveMemberRequest spaces-log:LogRequest "
        "keys:SpaceRequest keys-create:CreateKeyRequest keys-revoke:RevokeKeyRequest "
        "share:ShareRequest"
    ),
    "memories.usage": (
        "edges:memories.decision:EdgesRequest history:memories.decision:ReferenceRequest "
        "look:memories.decision:GetRequest get:memories.decision:GetRequest"
    ),
    "memories.vectors": (
        "embed embed-plan:ModelRequest embed-try:ModelRequest embed-switch:ModelRequest "
        "embed-resume"
    ),
    "recall.deep": "deep-recall:recall.requests:DeepQuery",
    "recall.recall": (
        "recall:values.recall:RecallQuery search-sessions:recall.requests:TurnQuery "
        "feedback:recall.requests:FeedbackRequest feedback-judge:recall.requests:JudgeRequest"
    ),
    "review.dream": "alike:AlikeRequest",
    "review.queue": (
        "review-resolve:review.contradictions:ReviewResolveRequest "
        "review-judge:review.contradictions:JudgeWaitingRequest "
        "review:review.contradictions:ReviewRequest "
        "review-keep:review.contradictions:ReviewKeepRequest "
        "review-drop:review.contradictions:ReviewDropRequest "
        "reflect:review.contradictions:ReflectRequest "
        "reflect-answer:review.contradictions:ReflectAnswerRequest "
        "review-undo:review.contradictions:ReviewUndoRequest "
        "unanswered:review.contradictions:UnansweredRequest "
        "unanswered-dismiss:review.contradictions:GapRequest "
        "unanswered-todo:review.contradictions:GapRequest"
    ),
    "review.run": (
        "dream-estimate:review.dream:DreamPlanRequest dream-plan:review.dream:DreamPlanRequest "
        "dream:review.dream:DreamRequest"
    ),
    "sessions.search": (
        "session-summary:sessions.find:SessionRequest sessions:sessions.find:SessionsRequest "
        "session:sessions.find:SessionRequest match-sessions:sessions.find:MatchRequest "
        "search-chats:sessions.find:ChatSearchRequest resume:sessions.find:ResumeRequest"
    ),
    "sessions.work": "did:sessions.find:DidQuery fix:sessions.find:FixQuery",
    "setup.chores": "chores:setup.requests:ChoresRequest flush:setup.requests:FlushRequest",
    "setup.models": (
        "auth auth-set:SetKeyRequest auth-remove:ProviderRequest writer writer-set:WriterRequest "
        "writer-pause writer-resume writer-off models models-test:TryModelRequest config "
        "config-get:SettingRequest config-set:SetRequest config-unset:SettingRequest"
    ),
    "setup.setup": "quickstart",
}
