-- find_usage --
-- Of some memories, with the outcomes of the sessions that received them in a context.
SELECT i.value, coalesce(u.recall_count, 0), u.last_recalled, coalesce(u.recall_intervals, '[]'),
    coalesce(u.quality, 0.5), coalesce(u.access_count, 0),
    coalesce(e.shown, 0), coalesce(e.followed, 0), coalesce(e.broken, 0)
FROM json_each(:ids) i LEFT JOIN usage u ON u.memory = i.value LEFT JOIN (
    SELECT item, count(*) AS shown, count(*) FILTER (WHERE outcome = 'followed') AS followed,
        count(*) FILTER (WHERE outcome = 'broken') AS broken
    FROM effects WHERE item IN (SELECT value FROM json_each(:ids)) GROUP BY item
) e ON e.item = i.value
WHERE u.memory IS NOT NULL OR e.item IS NOT NULL;

-- record_effect --
-- The outcome of an item in a session. A session that continues is judged again.
INSERT INTO effects (item, session, outcome, at, project) VALUES (:item, :session, :outcome, :at, :project)
ON CONFLICT (item, session) DO UPDATE SET outcome = :outcome;

-- list_given --
-- Memories in the context of a session, with their outcome.
SELECT item, outcome FROM effects WHERE session = :session AND project = '' ORDER BY at, item;

-- count_effects --
-- Outcomes of memories and of pointers, since a time.
SELECT outcome, project <> '', count(*) FROM effects WHERE at >= :since GROUP BY outcome, project <> '';

-- list_pointer_outcomes --
-- Of a project's latest pointers.
SELECT outcome FROM effects WHERE project = :project ORDER BY at DESC LIMIT :limit;

-- list_pointer_projects --
-- Projects that received pointers.
SELECT DISTINCT project FROM effects WHERE project <> '' ORDER BY project;

-- forget_pointers --
-- Of a project, so that it receives pointers again.
DELETE FROM effects WHERE project = :project;

-- record_recall --
-- Record a recall from the spool: the first in its sitting, or one that only updates the time. The list
-- contains the last hundred times.
INSERT INTO usage (memory, recall_count, last_recalled, recall_intervals, access_count)
VALUES (:memory, :first, :at, iif(:first, json_array(:at), '[]'), 1)
ON CONFLICT (memory) DO UPDATE SET
    recall_count = recall_count + :first,
    access_count = access_count + 1,
    last_recalled = max(coalesce(last_recalled, 0), :at),
    recall_intervals = CASE
        WHEN NOT :first THEN recall_intervals
        WHEN json_array_length(recall_intervals) >= 100
        THEN json_insert(json_remove(recall_intervals, '$[0]'), '$[#]', :at)
        ELSE json_insert(recall_intervals, '$[#]', :at)
    END;

-- record_look --
-- A view is an access, not a recall.
INSERT INTO usage (memory, access_count) VALUES (:memory, 1)
ON CONFLICT (memory) DO UPDATE SET access_count = usage.access_count + 1;

-- confirm_memory --
-- It was stated again.
INSERT INTO usage (memory, confirmations) VALUES (:memory, 1)
ON CONFLICT (memory) DO UPDATE SET confirmations = usage.confirmations + 1;

-- set_quality --
-- According to a reply, the user or a review.
INSERT INTO usage (memory, quality) VALUES (:memory, :quality)
ON CONFLICT (memory) DO UPDATE SET quality = :quality;

-- list_steps_due --
-- Active memories whose recalls have earned more importance than their files have.
SELECT memory, earned, steps FROM (
    SELECT u.memory, CASE WHEN u.recall_count >= 25 THEN 3 WHEN u.recall_count >= 10 THEN 2 ELSE 1 END AS earned, u.steps
    FROM usage u JOIN active_memories m ON m.id = u.memory WHERE u.recall_count >= 3
) AS due
WHERE earned > steps ORDER BY memory;

-- set_steps --
-- Importance steps of a memory.
INSERT INTO usage (memory, steps) VALUES (:memory, :steps) ON CONFLICT (memory) DO UPDATE SET steps = :steps;

-- get_usage_value --
-- The last spool read, or the sitting that can continue.
SELECT value FROM usage_values WHERE key = :key;

-- set_usage_value --
-- See get_usage_value.
INSERT INTO usage_values (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value;

-- delete_usage_value --
-- See get_usage_value.
DELETE FROM usage_values WHERE key = :key;

-- record_use --
-- Record that a memory was used in a session, and its first recall there, if any. After another use, it can be
-- judged again.
INSERT INTO uses (session, memory, at, recalled) VALUES (:session, :memory, :at, :recalled)
ON CONFLICT (session, memory) DO UPDATE SET
    at = max(uses.at, :at), judged = 0, recalled = coalesce(:recalled, uses.recalled);

-- list_recalled --
-- A session's memories whose recall was counted since a time.
SELECT memory FROM uses WHERE session = :session AND recalled > :since;

-- pair_use --
-- Paired with the session's other memories.
UPDATE uses SET paired = 1 WHERE session = :session AND memory = :memory;

-- list_paired --
-- A session's memories that were paired with each other.
SELECT memory FROM uses WHERE session = :session AND paired = 1 ORDER BY memory;

-- list_unjudged --
-- A session's memories that were used after the last reply, in the order of use.
SELECT memory FROM uses WHERE session = :session AND judged = 0 ORDER BY at, memory;

-- first_unjudged --
-- The first use after the last reply.
SELECT min(at) FROM uses WHERE session = :session AND judged = 0;

-- judge_use --
-- A reply judged it.
UPDATE uses SET judged = 1 WHERE session = :session AND memory = :memory;

-- delete_old_uses --
-- In sessions that ended long ago.
DELETE FROM uses WHERE at < :before;

-- count_usage --
-- Active memories by recalls.
SELECT
    count(*) FILTER (WHERE coalesce(u.recall_count, 0) = 0),
    count(*) FILTER (WHERE u.recall_count BETWEEN 1 AND 5),
    count(*) FILTER (WHERE u.recall_count > 5)
FROM active_memories m LEFT JOIN usage u ON u.memory = m.id;

-- insert_usage --
-- Of an imported memory, unless there is usage already.
INSERT INTO usage (
    memory, recall_count, last_recalled, recall_intervals, quality, access_count, steps
) VALUES (
    :memory, :recall_count, :last_recalled, :intervals, :quality, :access_count, :steps
)
ON CONFLICT DO NOTHING;

-- list_idle_todos --
-- Open todos last used before a time, longest idle first.
SELECT id, subject, last_used FROM last_uses WHERE kind = 'todo' AND last_used < :before ORDER BY last_used, row;
