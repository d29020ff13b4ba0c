"""Operations on memories: finding, writing, judging, consolidating, forgetting and undoing."""

from __future__ import annotations

from nacre.catalogue.flags import LONG, NOTHING
from nacre.operation import Operation

MEMORIES = (
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
        "edges", "memories.used_together:edges", "memories.requests:EdgesRequest", "list[views:UsedTogether]"
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
    Operation("retired", "memories.retire:list_retired", NOTHING, "list[values.memory:Memory]"),
    Operation(
        "retired-standing", "memories.retire:list_standing", NOTHING, "list[values.forgetting:StandingRetirement]"
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
        writes=True, command="feedback", owners=True,
    ),
    Operation("place", "home.answers:place", "home.requests:PlaceRequest", "views:Place"),
    Operation("project-tie", "home.answers:tie", "home.requests:TieRequest", "views:Place", writes=True, owners=True),
    Operation("page", "home.answers:page", "home.requests:PageRequest", "str"),
)  # fmt: skip

GRAPH = (
    Operation("graph-link", "graph.links:link", "graph.requests:LinkRequest", "graph.values:LinkChange", writes=True),
    Operation(
        "graph-unlink", "graph.links:unlink", "graph.requests:UnlinkRequest", "graph.values:LinkChange", writes=True
    ),
    Operation(
        "graph-unlink-origin", "graph.links:unlink_origin", "graph.requests:UnlinkOriginRequest",
        "graph.values:LinkChange", writes=True, command="graph unlink --origin", owners=True,
    ),
    Operation(
        "graph-invalidate", "graph.links:invalidate", "graph.requests:InvalidateRequest", "graph.values:LinkChange",
        writes=True,
    ),
    Operation("graph-list", "graph.listing:list_links", "graph.requests:LinksRequest", "graph.values:LinkPage"),
    Operation("graph-show", "graph.listing:traverse", "graph.requests:TraverseRequest", "graph.values:Traversal"),
    Operation("graph-central", "graph.analysis:central", "graph.requests:AnalysisRequest", "graph.values:Central"),
    Operation("graph-gaps", "graph.analysis:gaps", "graph.requests:AnalysisRequest", "graph.values:Gaps"),
    Operation(
        "graph-components", "graph.analysis:components", "graph.requests:AnalysisRequest", "graph.values:Components"
    ),
    Operation("graph-map", "graph.map:graph_map", "graph.requests:MapRequest", "graph.values:GraphMap"),
    Operation("graph-brief", "graph.brief:brief", "graph.requests:BriefRequest", "graph.values:Brief"),
)  # fmt: skip

REVIEW = (
    Operation("review", "review.queue:listed", "review.requests:ReviewRequest", "views:PendingPage"),
    Operation(
        "review-keep", "review.queue:keep_items", "review.requests:ReviewKeepRequest", "list[values.memory:Memory]",
        writes=True, owners=True,
    ),
    Operation(
        "review-drop", "review.queue:drop", "review.requests:ReviewDropRequest", "list[values.memory:Memory]",
        writes=True, owners=True,
    ),
    Operation(
        "review-resolve", "review.answers:resolve", "review.requests:ReviewResolveRequest", "views:Pair", writes=True,
        owners=True,
    ),
    Operation("review-undo", "review.reopen:reopen", "review.requests:ReviewUndoRequest", "values.memory:Memory",
              writes=True, owners=True),
    Operation(
        "review-judge", "review.answers:judge", "review.requests:JudgeWaitingRequest",
        "review.contradictions:JudgeReport", **LONG,
    ),
    Operation("dream-plan", "dream.dream:plan", "dream.requests:DreamPlanRequest", "dream.values:DreamPlan",
              takes_long=True, reports_progress=True),
    Operation("dream-estimate", "dream.dream:dream_estimate", "dream.requests:DreamPlanRequest",
              "dream.values:DreamEstimate", takes_long=True),
    Operation("alike", "dream.alike:alike", "dream.requests:AlikeRequest", "dream.alike:Alike"),
    Operation("dream", "dream.dream:dream", "dream.requests:DreamRequest", "dream.values:DreamReport", **LONG,
              owners=True),
    Operation("reflect", "review.reflection:reflect", "review.requests:ReflectRequest", "values.review:Reflection"),
    Operation("reflect-answer", "review.reflection:answer", "review.requests:ReflectAnswerRequest",
              "values.review:Reflected", writes=True, owners=True),
    Operation(
        "unanswered", "review.unanswered:unanswered", "review.requests:UnansweredRequest", "values.review:Unanswered"
    ),
    Operation("unanswered-todo", "review.unanswered:add_todo", "review.requests:GapTodoRequest",
              "values.reports:StoreOutcome", writes=True, command="gaps todo", owners=True),
    Operation("unanswered-dismiss", "review.unanswered:dismiss", "review.requests:GapRequest",
              "values.review:UnansweredQuestion", writes=True, command="gaps dismiss", owners=True),
    Operation(
        "claims-estimate", "review.answers:estimate_claims", "review.requests:EstimateClaimsRequest",
        "review.claims:Estimate",
    ),
    Operation(
        "claims-backfill", "review.answers:backfill_claims", "review.requests:BackfillRequest",
        "review.claims:Backfill", **LONG,
    ),
)  # fmt: skip

HISTORY = (
    Operation("log", "history.answers:log", "history.requests:LogRequest", "list[views:Listed]"),
    Operation("diff", "history.answers:diff", "history.requests:DiffRequest", "views:OperationDiff"),
    Operation("undo-plan", "history.answers:plan_undo", "history.requests:UndoRequest", "history.undo:Undoing"),
    Operation(
        "undo", "history.answers:undo", "history.requests:UndoRequest", "history.undo:Undoing", writes=True, owners=True
    ),
    Operation("commit", "history.answers:commit", NOTHING, "history.commit:Committed", writes=True),
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

FORGETTING = (
    Operation("forget-plan", "forgetting.forget:plan", "forgetting.requests:ForgetRequest",
              "values.forgetting:ForgetPlan", command="forget", owners=("regex",)),
    Operation(
        "forget", "forgetting.answers:forget", "forgetting.requests:ForgetRequest", "values.forgetting:ForgetReport",
        writes=True, takes_long=True, owners=True),
    Operation("forgotten", "forgetting.forget:forgotten", NOTHING, "list[values.forgetting:Forgotten]"),
    Operation(
        "forget-allow-again", "forgetting.answers:allow_again", "forgetting.requests:AllowAgainRequest",
        "values.forgetting:Forgotten", writes=True, command="forget --allow-again", owners=True),
    Operation(
        "scrub", "forgetting.scrub:scrub", "forgetting.requests:ScrubOptions", "values.scrub:ScrubReport", **LONG,
        owners=("history", "remove_copies"),
    ),
)  # fmt: skip

CODE = (
    Operation("graph-ingest-code", "code.ingest:ingest_code", "code.requests:IngestCodeRequest",
              "code.values:CodeReport", **LONG, command="graph ingest-code", owners=True),
    Operation("graph-forget-code", "code.ingest:forget_code", "code.requests:ForgetCodeRequest",
              "code.values:ForgottenCode", writes=True, command="graph forget-code", owners=True),
    Operation("graph-callers", "code.ask:callers", "code.requests:CallersRequest", "code.values:CodeAnswer"),
    Operation("graph-importers", "code.ask:importers", "code.requests:CodeRequest", "code.values:CodeAnswer"),
    Operation("graph-about", "code.ask:about", "code.requests:CodeRequest", "code.values:CodeAnswer"),
    Operation("graph-stale", "code.staleness:stale", "code.requests:StaleRequest", "code.values:Staleness"),
    Operation("graph-impact", "code.ask:impact", "code.requests:ImpactRequest", "code.values:CodeAnswer"),
)  # fmt: skip
