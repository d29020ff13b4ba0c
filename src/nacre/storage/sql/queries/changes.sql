-- create_known_memories --
-- Memories as they were last told of; gone with the connection.
CREATE TEMP TABLE IF NOT EXISTS known_memories (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    active INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- create_memory_states --
-- What tells one state of a memory from another.
CREATE TEMP VIEW IF NOT EXISTS memory_states AS
SELECT id, superseded_by IS NULL AND retired_at IS NULL AS active,
    updated || ' ' || importance || proposed || inbox || hex(substr(content_hash, 1, 6)) || coalesce(project, '') AS state
FROM main.memories;

-- note_memories --
-- All of them, as they are now.
INSERT INTO known_memories (id, state, active) SELECT id, state, active FROM memory_states;

-- list_memory_changes --
-- What became of which memory since, and the last operation that touched it.
SELECT
    CASE
        WHEN k.id IS NULL THEN iif(m.active, 'stored', 'retired')
        WHEN k.active AND NOT m.active THEN 'retired'
        WHEN m.active AND NOT k.active THEN 'restored'
        ELSE 'changed'
    END,
    m.id, (SELECT max(t.operation) FROM touched t WHERE t.memory = m.id)
FROM memory_states m LEFT JOIN known_memories k ON k.id = m.id
WHERE k.id IS NULL OR k.state <> m.state OR k.active <> m.active
UNION ALL
SELECT 'removed', k.id, (SELECT max(t.operation) FROM touched t WHERE t.memory = k.id)
FROM known_memories k WHERE NOT EXISTS (SELECT 1 FROM main.memories m WHERE m.id = k.id);

-- drop_known_memory --
-- It was told of.
DELETE FROM known_memories WHERE id = :id;

-- note_memory --
-- As it is now, if it is there.
INSERT INTO known_memories (id, state, active) SELECT id, state, active FROM memory_states WHERE id = :id;

-- last_read_turn --
-- The number of the turn that was read last.
SELECT coalesce(max(row), 0) FROM turns;

-- list_grown_sessions --
-- Sessions with turns that were read since, the one that grew last first.
SELECT s.tool || ':' || s.native_id, s.tool, s.turns
FROM (SELECT session, max(row) AS last FROM turns WHERE row > :turn GROUP BY session) t
JOIN sessions s ON s.row = t.session ORDER BY t.last DESC LIMIT :limit;

-- list_operations_since --
-- The oldest first.
SELECT id, action FROM operations WHERE at >= :since ORDER BY at, id;

-- list_doubted --
-- Memories that a newer one may have outdated.
SELECT DISTINCT l.target FROM links l
JOIN active_memories newer ON newer.id = l.source JOIN active_memories older ON older.id = l.target
WHERE l.rel = 'contradicts' AND l.origin NOT IN ('auto', 'body');

-- list_queued --
-- Memories to be reviewed, or perhaps out of date.
SELECT memory FROM review_queue WHERE status = 'pending' UNION SELECT memory FROM stale_memories;

-- give_pages_back --
-- What was read is not kept in memory until the next look.
PRAGMA shrink_memory;
