"""What a face does not offer."""

from __future__ import annotations

from collections.abc import Mapping

from nacre.values.actor import Face

NOT_BY: Mapping[Face, Mapping[str, str]] = {
    Face.COMMAND_LINE: {
        "nacre show looks at a memory with all that is known of it": "get",
        "agents read it as nacre://project": "page",
        "nacre extract shows what it proposes instead": "extract",
        "hooks are a program of their own": "hook context-given",
        "hooks leave it to nacre chores": "flush",
        "nacre doctor and nacre db stats tell it": "overview",
        "nacre writer set tells it as it asks": "writer-foreseen",
        "it is for pictures; nacre graph list shows it": "graph-map",
        "nacre status tells what is new; the dashboard draws the rest": "today activity",
        "nacre init and nacre doctor hosts tell it": "hosts hosts-preview",
        "nacre remote sync asks it of a server": "remote-changes remote-versions remote-push remote-turns",
    },
    Face.HTTP: {
        "hooks do it, unasked": "hook context-given handoff flush chores",
        "what it answers works in its own process alone": "import-plan hosts-plan",
        "where memories are sent is said on the machine itself": "remote remote-add remote-sync remote-remove",
        "each leaves a copy of everything on the machine; backup-create names the place": "db-backup",
    },
    Face.MCP: {
        "memory_get looks at memories with all that is known of them": "get history",
        "an agent says at once what it wants": "store-rehearse retire-plan ingest-plan ingest-estimate watch-survey",
        "an agent stores what changed": "edit todo-done",
        "the person takes back what was done": "unretire retired retired-standing log diff undo-plan undo",
        "hooks do it, unasked": "feedback context-given hook handoff flush chores",
        "the person judges": (
            "feedback-judge review-keep review-drop review-resolve review-undo dream reflect-answer unanswered-todo "
            "unanswered-dismiss"
        ),
        "it takes minutes, or money": (
            "review-judge claims-estimate claims-backfill extract-propose watch-once quickstart dream-estimate"
        ),
        "pages are the person's own words": "page-own page-write",
        "the person opens a session in its tool": "resume",
        "the person says which folders are read": "graph-ingest-code graph-forget-code",
        "the person says which folder is a project's": "project-tie",
        "memory_admin names the projects, and nacre://project is the page of one": "project-list project-show",
        "the person says what projects are called, which are one, and what they depend on": (
            "project-rename project-merge-plan project-merge project-depend"
        ),
        "what leaves the machine or comes to it is the person's": (
            "sync export import-plan import backup-create backup-verify backup-restore move commit "
            "remote remote-add remote-sync remote-remove remote-changes remote-versions remote-push remote-turns"
        ),
        "deleting is the person's": "forget-plan forget forgotten forget-allow-again scrub graph-unlink-origin",
        "who shares what with whom, and who holds which key, is the person's": (
            "share spaces spaces-create spaces-members spaces-add spaces-remove spaces-log "
            "keys keys-create keys-rotate keys-revoke"
        ),
        "the archive is the person's": (
            "session-restore archive-status archive-verify archive-mend archive-prune-plan archive-prune"
        ),
        "models, keys and what they cost are the person's": (
            "models models-test auth auth-set auth-remove embed embed-plan embed-try embed-switch embed-resume "
            "cost traces trace writer writer-foreseen writer-set writer-pause "
            "writer-resume writer-off"
        ),
        "memory_admin tells how nacre is": "status doctor doctor-deep doctor-hosts db-stats db-version watcher",
        "memory_graph tells what was used together": "edges",
        "it is for pictures, which people look at": "graph-map today activity",
        "conversations with others, and who may write, are the person's; memory_search finds what was said": (
            "gateway-status gateway-sessions gateway-session gateway-end gateway-pairings gateway-pair gateway-unpair"
        ),
        "the installation is the person's": (
            "hosts hosts-preview hosts-plan hosts-wire db-rebuild db-backup db-reset config config-get "
            "config-set config-unset watcher-start watcher-stop watcher-install watcher-uninstall"
        ),
        "saved queries, and whether nacre is of use, are the person's": (
            "eval eval-list eval-add eval-remove usefulness"
        ),
    },
}
"""Operations that a face does not offer, by the reason."""
