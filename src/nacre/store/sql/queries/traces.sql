-- insert_trace --
-- If it is new.
INSERT INTO traces (id, kind, at, outcome, body) VALUES (:id, :kind, :at, :outcome, :body) ON CONFLICT DO NOTHING;

-- list_traces --
-- Of calls, latest first.
SELECT body FROM traces
WHERE kind <> 'question' AND (:kind IS NULL OR kind = :kind) AND (:since IS NULL OR at >= :since)
ORDER BY at DESC, id DESC LIMIT :limit;

-- list_unanswered_questions --
-- Latest first.
SELECT body FROM traces
WHERE kind = 'question' AND at >= :since AND outcome IN (SELECT value FROM json_each(:outcomes))
ORDER BY at DESC, id DESC;

-- find_traces --
-- By the start or end of the id.
SELECT body FROM traces
WHERE kind <> 'question' AND (id = :reference OR (length(:reference) >= 4 AND (
    substr(id, 1, length(:reference)) = :reference OR substr(id, length(id) - length(:reference) + 1) = :reference
))) ORDER BY at DESC, id DESC LIMIT 5;

-- list_trace_texts --
-- All texts, in batches.
SELECT id, body FROM traces WHERE id > :after ORDER BY id LIMIT :limit;

-- delete_trace --
-- By id.
DELETE FROM traces WHERE id = :id;

-- delete_answered_traces --
-- They can quote forgotten text.
DELETE FROM traces WHERE kind <> 'question' OR outcome NOT IN (SELECT value FROM json_each(:unanswered));

-- prune_traces --
-- Old traces, and traces beyond the limits.
DELETE FROM traces WHERE at < :before OR id IN (
    SELECT id FROM (
        SELECT id, kind = 'question' AS is_question,
            row_number() OVER (PARTITION BY kind = 'question' ORDER BY at DESC, id DESC) AS place FROM traces
    ) WHERE is_question AND place > :questions OR NOT is_question AND place > :traces
);
