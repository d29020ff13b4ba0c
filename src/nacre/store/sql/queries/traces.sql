-- insert_trace --
-- Repeated inserts count once.
INSERT INTO traces (id, kind, subject, session, began, seconds, outcome, steps)
VALUES (:id, :kind, :subject, :session, :began, :seconds, :outcome, :steps)
ON CONFLICT DO NOTHING;

-- list_traces --
-- Latest first.
SELECT id, kind, subject, session, began, seconds, outcome, steps FROM traces
WHERE (:kind IS NULL OR kind = :kind) AND (:since IS NULL OR began >= :since)
ORDER BY began DESC, id DESC LIMIT :limit;

-- list_unanswered_cases --
-- Questions with one of some outcomes, latest first.
SELECT id, kind, subject, session, began, seconds, outcome, steps FROM traces
WHERE kind = 'case' AND began >= :since AND outcome IN (SELECT value FROM json_each(:outcomes))
ORDER BY began DESC, id DESC;

-- find_traces --
-- By id, its beginning or its end.
SELECT id, kind, subject, session, began, seconds, outcome, steps FROM traces
WHERE id = :reference OR (length(:reference) >= 4 AND (
    substr(id, 1, length(:reference)) = :reference OR substr(id, length(id) - length(:reference) + 1) = :reference
)) ORDER BY began DESC, id DESC LIMIT 5;

-- list_cases_of --
-- Answered questions that showed a memory, optionally of one session, latest first.
SELECT id, steps FROM traces
WHERE kind = 'case' AND (:session IS NULL OR session = :session) AND began >= :since AND instr(steps, :memory) > 0
ORDER BY began DESC, id DESC LIMIT 1;

-- update_trace_steps --
-- A later step was added.
UPDATE traces SET steps = :steps, outcome = :outcome WHERE id = :id;

-- list_trace_texts --
-- All texts of traces, in portions.
SELECT id, subject, outcome, steps FROM traces WHERE id > :after ORDER BY id LIMIT :limit;

-- delete_trace --
-- By id.
DELETE FROM traces WHERE id = :id;

-- prune_traces --
-- Old ones, and those beyond a number.
DELETE FROM traces WHERE began < :before OR id IN (SELECT id FROM traces ORDER BY began DESC, id DESC LIMIT -1 OFFSET :most);

