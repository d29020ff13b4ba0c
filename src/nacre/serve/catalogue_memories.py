"""Catalogue of the operations on memories: search, writes, review, consolidation, forgetting, undo."""

from __future__ import annotations

from nacre.serve.operation import LONG, NOTHING, Operation

MEMORIES = (
    Operation(
        "recall", "recall.recall:recall", "values.recall:RecallQuery", "values.recall:RecallResult"
    ),
    Operation(
        "deep-recall",
        "recall.deep:deep_recall",
        "recall.requests:DeepQuery",
        "values.recall:DeepResult",
        takes_long=True,
    ),
    Operation(
        "list",
        "memories.retire:list_memories",
        "memories.decision:ListRequest",
        "home.views:Listing",
    ),
    Operation(
        "get", "memories.usage:read_memory", "memories.decision:GetRequest", "values.memory:Memory"
    ),
    Operation(
        "look", "memories.usage:look_at", "memories.decision:GetRequest", "home.views:MemoryView"
    ),
    Operation(
        "history",
        "memories.usage:history_of",
        "memories.decision:ReferenceRequest",
        "list[home.views:Step]",
    ),
    Operation(
        "edges",
        "memories.usage:edges",
        "memories.decision:EdgesRequest",
        "list[home.views:UsedTogether]",
    ),
    Operation(
        "store",
        "learn.ingest:store",
        "memories.decision:StoreRequest",
        "values.reports:StoreOutcome",
        writes=True,
    ),
    Operation(
        "store-rehearse",
        "learn.ingest:rehearse",
        "memories.decision:StoreRequest",
        "memories.store:Rehearsal",
    ),
    Operation(
        "edit",
        "memories.retire:edit",
        "memories.decision:EditRequest",
        "values.memory:Memory",
        writes=True,
    ),
    Operation(
        "retire",
        "memories.retire:retire_memories",
        "memories.decision:RetireRequest",
        "list[values.memory:Memory]",
        writes=True,
    ),
    Operation(
        "retire-plan",
        "memories.retire:choose",
        "memories.decision:RetireRequest",
        "memories.retire:Chosen",
    ),
    Operation("retired", "memories.retire:list_retired", NOTHING, "list[values.memory:Memory]"),
    Operation(
        "retired-standing",
        "memories.retire:list_standing",
        NOTHING,
        "list[values.memory:StandingRetirement]",
    ),
    Operation(
        "unretire",
        "memories.retire:unretire",
        "memories.decision:ReferencesRequest",
        "memories.retire:BroughtBack",
        writes=True,
        owners=True,
        command="retire --restore",
    ),
    Operation(
        "todo-done",
        "memories.retire:finish_todos",
        "memories.decision:ReferencesRequest",
        "list[values.memory:Memory]",
        writes=True,
    ),
    Operation(
        "feedback",
        "recall.recall:judge_by_reply",
        "recall.requests:FeedbackRequest",
        "values.review:FeedbackReport",
        writes=True,
    ),
    Operation(
        "feedback-judge",
        "recall.recall:judge_answers",
        "recall.requests:JudgeRequest",
        "values.review:FeedbackReport",
        writes=True,
        command="review feedback",
        owners=True,
    ),
    Operation("place", "home.change:place", "home.change:PlaceRequest", "home.views:Place"),
    Operation(
        "project-tie",
        "home.change:tie",
        "home.change:TieRequest",
        "home.views:Place",
        writes=True,
        owners=True,
    ),
    Operation("page", "home.change:page", "home.change:PageRequest", "str"),
)

GRAPH = (
    Operation(
        "graph-link",
        "memories.graph:link",
        "memories.graph:LinkRequest",
        "memories.graph:LinkChange",
        writes=True,
    ),
    Operation(
        "graph-unlink",
        "memories.graph:unlink",
        "memories.graph:UnlinkRequest",
        "memories.graph:LinkChange",
        writes=True,
    ),
    Operation(
        "graph-unlink-origin",
        "memories.graph:unlink_origin",
        "memories.graph:UnlinkOriginRequest",
        "memories.graph:LinkChange",
        writes=True,
        command="graph unlink --origin",
        owners=True,
    ),
    Operation(
        "graph-invalidate",
        "memories.graph:invalidate",
        "memories.graph:InvalidateRequest",
        "memories.graph:LinkChange",
        writes=True,
    ),
    Operation(
        "graph-list",
        "memories.graph:list_links",
        "memories.graph:LinksRequest",
        "memories.graph:LinkPage",
    ),
    Operation(
        "graph-show",
        "memories.graph:traverse",
        "memories.graph:TraverseRequest",
        "memories.graph:Traversal",
    ),
    Operation(
        "graph-central",
        "memories.graph:central",
        "memories.graph:AnalysisRequest",
        "memories.graph:Central",
    ),
    Operation(
        "graph-gaps", "memories.graph:gaps", "memories.graph:AnalysisRequest", "memories.graph:Gaps"
    ),
    Operation(
        "graph-components",
        "memories.graph:components",
        "memories.graph:AnalysisRequest",
        "memories.graph:Components",
    ),
    Operation(
        "graph-map",
        "memories.graph:graph_map",
        "memories.graph:MapRequest",
        "memories.graph:GraphMap",
    ),
    Operation(
        "graph-brief", "memories.graph:brief", "memories.graph:BriefRequest", "memories.graph:Brief"
    ),
)

REVIEW = (
    Operation(
        "review",
        "review.queue:listed",
        "review.contradictions:ReviewRequest",
        "home.views:PendingPage",
    ),
    Operation(
        "review-keep",
        "review.queue:keep_items",
        "review.contradictions:ReviewKeepRequest",
        "list[values.memory:Memory]",
        writes=True,
        owners=True,
    ),
    Operation(
        "review-drop",
        "review.queue:drop",
        "review.contradictions:ReviewDropRequest",
        "list[values.memory:Memory]",
        writes=True,
        owners=True,
    ),
    Operation(
        "review-resolve",
        "review.queue:resolve",
        "review.contradictions:ReviewResolveRequest",
        "home.views:Pair",
        writes=True,
        owners=True,
    ),
    Operation(
        "review-undo",
        "review.queue:reopen",
        "review.contradictions:ReviewUndoRequest",
        "values.memory:Memory",
        writes=True,
        owners=True,
        command="undo",
    ),
    Operation(
        "review-judge",
        "review.queue:judge",
        "review.contradictions:JudgeWaitingRequest",
        "review.contradictions:JudgeReport",
        **LONG,
    ),
    Operation(
        "dream-plan",
        "review.run:plan",
        "review.dream:DreamPlanRequest",
        "review.consolidate:DreamPlan",
        takes_long=True,
        reports_progress=True,
    ),
    Operation(
        "dream-estimate",
        "review.run:dream_estimate",
        "review.dream:DreamPlanRequest",
        "review.consolidate:DreamEstimate",
        takes_long=True,
    ),
    Operation("alike", "review.dream:alike", "review.dream:AlikeRequest", "review.dream:Alike"),
    Operation(
        "dream",
        "review.run:dream",
        "review.dream:DreamRequest",
        "review.consolidate:DreamReport",
        **LONG,
        owners=True,
    ),
    Operation(
        "reflect",
        "review.queue:reflect",
        "review.contradictions:ReflectRequest",
        "values.review:Reflection",
    ),
    Operation(
        "reflect-answer",
        "review.queue:answer",
        "review.contradictions:ReflectAnswerRequest",
        "values.review:Reflected",
        writes=True,
        owners=True,
        command="review reflect",
    ),
    Operation(
        "unanswered",
        "review.queue:unanswered",
        "review.contradictions:UnansweredRequest",
        "values.review:Unanswered",
    ),
    Operation(
        "unanswered-todo",
        "review.queue:add_todo",
        "review.contradictions:GapRequest",
        "values.reports:StoreOutcome",
        writes=True,
        command="review gaps --todo",
        owners=True,
    ),
    Operation(
        "unanswered-dismiss",
        "review.queue:dismiss",
        "review.contradictions:GapRequest",
        "values.review:UnansweredQuestion",
        writes=True,
        command="review gaps --dismiss",
        owners=True,
    ),
)

HISTORY = (
    Operation("log", "data.undo:log_answers", "data.undo:LogRequest", "list[home.views:Listed]"),
    Operation("diff", "data.undo:diff", "data.undo:DiffRequest", "home.views:OperationDiff"),
    Operation(
        "undo-plan", "data.undo:plan_undo_answers", "data.undo:UndoRequest", "data.undo:Undoing"
    ),
    Operation(
        "undo",
        "data.undo:undo_answers",
        "data.undo:UndoRequest",
        "data.undo:Undoing",
        writes=True,
        owners=True,
    ),
    Operation("commit", "data.undo:commit", NOTHING, "data.history:Committed", writes=True),
    Operation(
        "sync",
        "data.sync:sync",
        "data.sync:SyncRequest",
        "data.sync:Synced",
        writes=True,
        takes_long=True,
        owners=("remote",),
    ),
)

FORGETTING = (
    Operation(
        "forget-plan",
        "data.forget:plan",
        "data.forget:ForgetRequest",
        "values.memory:ForgetPlan",
        command="forget",
        owners=("regex",),
    ),
    Operation(
        "forget",
        "data.forget:forget_answers",
        "data.forget:ForgetRequest",
        "values.memory:ForgetReport",
        writes=True,
        takes_long=True,
        owners=True,
    ),
    Operation("forgotten", "data.forget:forgotten", NOTHING, "list[values.memory:Forgotten]"),
    Operation(
        "forget-allow-again",
        "data.forget:allow_again",
        "data.forget:AllowAgainRequest",
        "values.memory:Forgotten",
        writes=True,
        command="forget --allow-again",
        owners=True,
    ),
    Operation(
        "scrub",
        "data.scrub:scrub",
        "data.forget:ScrubOptions",
        "values.memory:ScrubReport",
        **LONG,
        owners=("history", "remove_copies"),
        command="admin scrub",
    ),
)

CODE = (
    Operation(
        "graph-ingest-code",
        "code.ingest:ingest_code",
        "code.ask:IngestCodeRequest",
        "code.ask:CodeReport",
        **LONG,
        command="graph ingest-code",
        owners=True,
    ),
    Operation(
        "graph-forget-code",
        "code.ingest:forget_code",
        "code.ask:ForgetCodeRequest",
        "code.ask:ForgottenCode",
        writes=True,
        command="graph forget-code",
        owners=True,
    ),
    Operation(
        "graph-callers", "code.ask:callers", "code.ask:CallersRequest", "code.ask:CodeAnswer"
    ),
    Operation(
        "graph-importers", "code.ask:importers", "code.ask:CodeRequest", "code.ask:CodeAnswer"
    ),
    Operation("graph-about", "code.ask:about", "code.ask:CodeRequest", "code.ask:CodeAnswer"),
    Operation("graph-stale", "code.ask:stale", "code.ask:StaleRequest", "code.ask:Staleness"),
    Operation("graph-impact", "code.ask:impact", "code.ask:ImpactRequest", "code.ask:CodeAnswer"),
)
