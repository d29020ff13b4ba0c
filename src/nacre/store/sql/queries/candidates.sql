-- insert_candidate --
-- What waits or was dropped already stays as it is.
INSERT INTO candidates (id, hash, session, why, detail, score, found, memory)
VALUES (:id, :hash, :session, :why, :detail, :score, :found, :memory)
ON CONFLICT DO NOTHING;

-- list_candidates --
-- What waits, the likeliest of the latest first, in the project as it is called now. One that is a memory waits no longer.
SELECT
    CASE WHEN json_extract(memory, '$.project') IN (SELECT name FROM other_names) THEN json_set(
        memory, '$.project', (SELECT o.slug FROM other_names o WHERE o.name = json_extract(memory, '$.project'))
    ) ELSE memory END,
    why, detail, score, found
FROM candidates
WHERE dropped IS NULL AND NOT EXISTS (SELECT 1 FROM active_memories WHERE id = candidates.id) ORDER BY score DESC, found DESC, id;

-- list_turns_of_candidates --
-- The turns that show pending candidates.
SELECT c.id, t.row FROM candidates c CROSS JOIN json_each(json_extract(c.memory, '$.source.turns')) shown
JOIN sessions s ON s.tool || ':' || s.native_id = c.session
JOIN turns t ON t.session = s.row AND t.native_id = shown.value
WHERE c.dropped IS NULL;

-- count_candidates --
-- How many wait.
SELECT count(*) FROM candidates WHERE dropped IS NULL AND NOT EXISTS (SELECT 1 FROM active_memories WHERE id = candidates.id);

-- find_candidates --
-- Those whose id begins or ends with a reference.
SELECT
    CASE WHEN json_extract(memory, '$.project') IN (SELECT name FROM other_names) THEN json_set(
        memory, '$.project', (SELECT o.slug FROM other_names o WHERE o.name = json_extract(memory, '$.project'))
    ) ELSE memory END,
    why, detail, score, found
FROM candidates
WHERE dropped IS NULL AND NOT EXISTS (SELECT 1 FROM active_memories WHERE id = candidates.id) AND (id = :reference OR substr(id, 1, length(:reference)) = :reference
    OR substr(id, length(id) - length(:reference) + 1) = :reference)
ORDER BY id LIMIT 3;

-- settle_candidate --
-- The owner kept it or does not want it. Its words stay for a while, so that this can be undone.
UPDATE candidates SET dropped = :at WHERE id = :id;

-- find_settled_candidates --
-- Those that were kept or dropped and whose words are still there, by the beginning or the end of their ids.
SELECT memory, why, detail, score, found FROM candidates
WHERE dropped IS NOT NULL AND memory IS NOT NULL AND (substr(id, 1, length(:reference)) = :reference
    OR substr(id, length(id) - length(:reference) + 1) = :reference)
ORDER BY id LIMIT 3;

-- list_candidates_settled_at --
-- What was kept or dropped at a time, as far as its words are still there.
SELECT memory, why, detail, score, found FROM candidates WHERE dropped = :at AND memory IS NOT NULL ORDER BY id;

-- unsettle_candidate --
-- It waits again.
UPDATE candidates SET dropped = NULL WHERE id = :id;

-- list_worded_candidates --
-- All whose words are there, whether they wait or not.
SELECT memory, why, detail, score, found FROM candidates WHERE memory IS NOT NULL ORDER BY id;

-- blank_settled_candidates --
-- The words of what was settled go, its hash stays.
UPDATE candidates SET memory = NULL, detail = NULL WHERE dropped < :before AND memory IS NOT NULL;

-- delete_candidate --
-- It became a memory, or its session was forgotten.
DELETE FROM candidates WHERE id = :id;

-- delete_candidates_of_session --
-- A writer read the session, and says what of it is worth keeping.
DELETE FROM candidates WHERE session = :session AND why = :why AND dropped IS NULL;

-- delete_unfounded_candidates --
-- A file took back the turns of a session that said it.
DELETE FROM candidates WHERE dropped IS NULL AND memory IS NOT NULL AND EXISTS (
    SELECT 1 FROM sessions s WHERE s.row = :row AND candidates.session = s.tool || ':' || s.native_id
) AND NOT EXISTS (
    SELECT 1 FROM json_each(memory, '$.source.turns') said
    JOIN turns t ON t.session = :row AND t.native_id = said.value
);

-- delete_old_candidates --
-- Their time is over.
DELETE FROM candidates WHERE found < :before AND dropped IS NULL;
