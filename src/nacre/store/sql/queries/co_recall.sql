-- list_active_ids --
-- The active memories among some memories.
SELECT id FROM active_memories WHERE id IN (SELECT value FROM json_each(:ids));

-- list_edges_among --
-- The edges between some memories.
SELECT a, b, weight, day, sessions FROM co_recall
WHERE a IN (SELECT value FROM json_each(:ids)) AND b IN (SELECT value FROM json_each(:ids));

-- upsert_edge --
-- Two memories were used together.
INSERT INTO co_recall (a, b, weight, day, until, sessions) VALUES (:a, :b, :weight, :day, :until, :sessions)
ON CONFLICT (a, b) DO UPDATE SET weight = :weight, day = :day, until = :until, sessions = :sessions;

-- delete_faded_edges --
-- Their weight is too low.
DELETE FROM co_recall WHERE until <= :day;

-- list_edges_of --
-- The edges from some memories to active memories.
SELECT e.a, e.b, e.weight, e.day, e.sessions FROM co_recall e JOIN active_memories m ON m.id = e.b
WHERE e.a IN (SELECT value FROM json_each(:ids)) AND e.until > :day
UNION ALL
SELECT e.b, e.a, e.weight, e.day, e.sessions FROM co_recall e JOIN active_memories m ON m.id = e.a
WHERE e.b IN (SELECT value FROM json_each(:ids)) AND e.until > :day;
