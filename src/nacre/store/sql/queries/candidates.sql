-- insert_candidate --
-- Pending and rejected candidates stay unchanged.
INSERT INTO candidates (id, hash, session, why, detail, score, found, memory)
VALUES (:id, :hash, :session, :why, :detail, :score, :found, :memory)
ON CONFLICT DO NOTHING;

-- list_candidates --
-- Pending candidates, likeliest first, then latest first, with the current project name, except stored
-- memories.
SELECT
    CASE WHEN json_extract(memory, '$.project') IN (SELECT name FROM other_names) THEN json_set(
        memory, '$.project', (SELECT o.slug FROM other_names o WHERE o.name = json_extract(memory, '$.project'))
    ) ELSE memory END,
    why, detail, score, found
FROM candidates
WHERE dropped IS NULL AND NOT EXISTS (SELECT 1 FROM active_memories WHERE id = candidates.id) ORDER BY score DESC, found DESC, id;

-- list_turns_of_candidates --
-- The turns that are evidence for pending candidates.
SELECT c.id, t.row FROM candidates c CROSS JOIN json_each(json_extract(c.memory, '$.source.turns')) shown
JOIN sessions s ON s.tool || ':' || s.native_id = c.session
JOIN turns t ON t.session = s.row AND t.native_id = shown.value
WHERE c.dropped IS NULL;

-- find_candidates --
-- By the start or end of the id.
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
-- Mark a candidate as accepted or rejected. The text is kept for a while, so that this can be undone.
UPDATE candidates SET dropped = :at WHERE id = :candidate;

-- find_settled_candidates --
-- Candidates that still have text, by the start or end of the id.
SELECT memory, why, detail, score, found FROM candidates
WHERE dropped IS NOT NULL AND memory IS NOT NULL AND (substr(id, 1, length(:reference)) = :reference
    OR substr(id, length(id) - length(:reference) + 1) = :reference)
ORDER BY id LIMIT 3;

-- list_candidates_settled_at --
-- Candidates that still have text.
SELECT memory, why, detail, score, found FROM candidates WHERE dropped = :at AND memory IS NOT NULL ORDER BY id;

-- unsettle_candidate --
-- Make it pending again.
UPDATE candidates SET dropped = NULL WHERE id = :candidate;

-- list_worded_candidates --
-- All candidates that have text.
SELECT memory, why, detail, score, found FROM candidates WHERE memory IS NOT NULL ORDER BY id;

-- blank_settled_candidates --
-- Delete the text, but keep the hash.
UPDATE candidates SET memory = NULL, detail = NULL WHERE dropped < :before AND memory IS NOT NULL;

-- delete_candidate --
-- After it became a memory, or its session was forgotten.
DELETE FROM candidates WHERE id = :id;

-- delete_candidates_of_session --
-- After a writer has read it.
DELETE FROM candidates WHERE session = :session AND why = :why AND dropped IS NULL;

-- delete_unfounded_candidates --
-- Their turns were removed from a file.
DELETE FROM candidates WHERE dropped IS NULL AND memory IS NOT NULL AND EXISTS (
    SELECT 1 FROM sessions s WHERE s.row = :row AND candidates.session = s.tool || ':' || s.native_id
) AND NOT EXISTS (
    SELECT 1 FROM json_each(memory, '$.source.turns') said
    JOIN turns t ON t.session = :row AND t.native_id = said.value
);

-- delete_old_candidates --
-- Pending for too long.
DELETE FROM candidates WHERE found < :before AND dropped IS NULL;
