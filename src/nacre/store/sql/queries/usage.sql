-- find_usage --
-- How memories were used.
SELECT memory, recall_count, last_recalled, recall_intervals, contradictions, quality, access_count FROM usage
WHERE memory IN (SELECT value FROM json_each(:ids));

-- record_recall --
-- One recall, folded in after the fact: the first of its sitting, or one that only makes it later. The list of times
-- keeps its last hundred.
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
-- One look at a memory: an access, no recall.
INSERT INTO usage (memory, access_count) VALUES (:memory, 1)
ON CONFLICT (memory) DO UPDATE SET access_count = usage.access_count + 1;

-- confirm_memory --
-- The same thing was said again.
INSERT INTO usage (memory, confirmations) VALUES (:memory, 1)
ON CONFLICT (memory) DO UPDATE SET confirmations = usage.confirmations + 1;

-- set_quality --
-- What a reply, a person or a review said of a memory.
INSERT INTO usage (memory, quality) VALUES (:memory, :quality)
ON CONFLICT (memory) DO UPDATE SET quality = :quality;

-- list_steps_due --
-- Active memories that were recalled often enough for more importance than their files say.
SELECT memory, earned, steps FROM (
    SELECT u.memory, CASE WHEN u.recall_count >= 25 THEN 3 WHEN u.recall_count >= 10 THEN 2 ELSE 1 END AS earned, u.steps
    FROM usage u JOIN active_memories m ON m.id = u.memory WHERE u.recall_count >= 3
) AS due
WHERE earned > steps ORDER BY memory;

-- set_steps --
-- The steps of importance that a memory has taken.
INSERT INTO usage (memory, steps) VALUES (:memory, :steps) ON CONFLICT (memory) DO UPDATE SET steps = :steps;

-- get_usage_value --
-- The spool that was folded last; the sitting that may still go on.
SELECT value FROM usage_values WHERE key = :key;

-- set_usage_value --
-- See above.
INSERT INTO usage_values (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value;

-- delete_usage_value --
-- It is noted no more.
DELETE FROM usage_values WHERE key = :key;

-- record_use --
-- A memory was used in a session, and maybe recalled as the first time in it; used again, it may be judged again.
INSERT INTO uses (session, memory, at, recalled) VALUES (:session, :memory, :at, :recalled)
ON CONFLICT (session, memory) DO UPDATE SET
    at = max(uses.at, :at), judged = 0, recalled = coalesce(:recalled, uses.recalled);

-- list_recalled --
-- The memories of a session whose recall counted since a time.
SELECT memory FROM uses WHERE session = :session AND recalled > :since;

-- pair_use --
-- A memory that was paired with the others of its session.
UPDATE uses SET paired = 1 WHERE session = :session AND memory = :memory;

-- list_paired --
-- The memories of a session that were paired with each other.
SELECT memory FROM uses WHERE session = :session AND paired = 1 ORDER BY memory;

-- list_unjudged --
-- The memories used in a session on which no reply was heard since, in the order of their use.
SELECT memory FROM uses WHERE session = :session AND judged = 0 ORDER BY at, memory;

-- first_unjudged --
-- When the first of them was used.
SELECT min(at) FROM uses WHERE session = :session AND judged = 0;

-- judge_use --
-- A reply was heard on it.
UPDATE uses SET judged = 1 WHERE session = :session AND memory = :memory;

-- delete_old_uses --
-- Sessions that are over long since.
DELETE FROM uses WHERE at < :before;

-- count_usage --
-- Active memories by how often they were recalled, and by quality; those never used are of neutral quality.
SELECT
    count(*) FILTER (WHERE coalesce(u.recall_count, 0) = 0),
    count(*) FILTER (WHERE u.recall_count BETWEEN 1 AND 5),
    count(*) FILTER (WHERE u.recall_count > 5),
    count(*) FILTER (WHERE u.quality >= 0.7),
    count(*) FILTER (WHERE coalesce(u.quality, 0.5) >= 0.3 AND coalesce(u.quality, 0.5) < 0.7),
    count(*) FILTER (WHERE u.quality < 0.3)
FROM active_memories m LEFT JOIN usage u ON u.memory = m.id;

-- insert_usage --
-- How a memory was used elsewhere, where nothing is known of it here.
INSERT INTO usage (
    memory, recall_count, last_recalled, recall_intervals, contradictions, quality, access_count, steps
) VALUES (
    :memory, :recall_count, :last_recalled, :intervals, :contradictions, :quality, :access_count, :steps
)
ON CONFLICT DO NOTHING;

-- count_idle --
-- Active memories by kind and by the days since their last use: those that are full, and those that have begun.
SELECT kind, (:now - last_used) / 86400000 AS days, (:now - last_used + 86399999) / 86400000 AS begun, count(*)
FROM last_uses GROUP BY kind, days, begun ORDER BY kind, days, begun;

-- list_idle_todos --
-- Open todos that were last used before a time, the one idle longest first.
SELECT id, subject, last_used FROM last_uses WHERE kind = 'todo' AND last_used < :before ORDER BY last_used, row;

-- list_ending --
-- What the rules of a dream may end.
SELECT id FROM last_uses
WHERE kind <> 'todo' AND expiry <> 'core' AND (
    expires_on <= :today
    OR (expiry = 'temporary' AND last_used <= :now - CAST(:temporary_for AS BIGINT))
    OR (last_used <= :now - CAST(:idle_for AS BIGINT) AND importance < :importance_below AND recall_count <= :most_recalls)
) ORDER BY row;
