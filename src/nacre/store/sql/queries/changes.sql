-- create_known_memories --
-- The states of memories as last reported, in a temporary table.
CREATE TEMP TABLE IF NOT EXISTS known_memories (
    id TEXT PRIMARY KEY,
    updated INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    hash BLOB NOT NULL,
    project TEXT,
    active INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- create_memory_states --
-- The values that identify a state of a memory.
CREATE TEMP VIEW IF NOT EXISTS memory_states AS
SELECT id, updated, importance * 4 + proposed * 2 + inbox AS flags, content_hash AS hash, project,
    superseded_by IS NULL AND retired_at IS NULL AS active
FROM memories;

-- note_memories --
-- All current states.
INSERT INTO known_memories (id, updated, flags, hash, project, active)
SELECT id, updated, flags, hash, project, active FROM memory_states;

-- list_memory_changes --
-- The change of each memory since the last report, and its last operation.
WITH known AS MATERIALIZED (SELECT id, updated, flags, hash, project, active FROM known_memories)
SELECT
    CASE
        WHEN k.id IS NULL THEN iif(m.active, 'stored', 'retired')
        WHEN k.active AND NOT m.active THEN 'retired'
        WHEN m.active AND NOT k.active THEN 'restored'
        ELSE 'changed'
    END,
    m.id, (SELECT max(t.operation) FROM touched t WHERE t.memory = m.id)
FROM memory_states m LEFT JOIN known k ON k.id = m.id
WHERE k.id IS NULL OR k.updated <> m.updated OR k.flags <> m.flags OR k.active <> m.active OR k.hash <> m.hash
    OR k.project IS DISTINCT FROM m.project
UNION ALL
SELECT 'removed', k.id, (SELECT max(t.operation) FROM touched t WHERE t.memory = k.id)
FROM known k WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = k.id);

-- drop_known_memory --
-- After it was reported.
DELETE FROM known_memories WHERE id = :id;

-- note_memory --
-- The current state, if the memory exists.
INSERT INTO known_memories (id, updated, flags, hash, project, active)
SELECT id, updated, flags, hash, project, active FROM memory_states WHERE id = :id;

-- last_read_turn --
-- The last row.
SELECT coalesce(max(row), 0) FROM turns;

-- list_grown_sessions --
-- Sessions with later turns, most recently grown first.
SELECT s.tool || ':' || s.native_id, s.tool, s.turns
FROM (SELECT session, max(row) AS last FROM turns WHERE row > :turn GROUP BY session) t
JOIN sessions s ON s.row = t.session ORDER BY t.last DESC LIMIT :limit;

-- list_operations_since --
-- Oldest first.
SELECT id, action FROM operations WHERE at >= :since ORDER BY at, id;

-- list_doubted --
-- Memories that a newer one might have made outdated, perhaps with duplicates, which take long to remove.
SELECT l.target FROM links l
JOIN active_memories newer ON newer.id = l.source JOIN active_memories older ON older.id = l.target
WHERE l.rel = 'contradicts' AND l.origin NOT IN ('auto', 'body');

-- list_queued --
-- Memories in review or possibly outdated.
SELECT memory FROM review_queue WHERE status = 'pending' UNION SELECT memory FROM stale_memories;


-- give_pages_back --
-- Free the RAM used by reading.
PRAGMA shrink_memory;
