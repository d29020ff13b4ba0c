-- insert_review --
-- Queue a memory for review.
INSERT INTO review_queue (memory, reason, detail, created, shown_by)
VALUES (:memory, :reason, :detail, :at, :shown_by);

-- renew_review --
-- Update the detail of a pending review.
UPDATE review_queue SET detail = :detail, created = :at, shown_by = :shown_by
WHERE memory = :memory AND reason = :reason AND status = 'pending';

-- find_review_detail --
-- Whether a review is pending or was settled with the same detail.
SELECT 1 FROM review_queue WHERE memory = :memory AND reason = :reason AND detail IS NOT DISTINCT FROM :detail;

-- list_review_texts --
-- The details and sessions of all reviews.
SELECT id, coalesce(detail, ''), shown_by FROM review_queue;

-- delete_review --
-- Even if settled.
DELETE FROM review_queue WHERE id = :id;

-- delete_ended_doubts --
-- Memories that are no longer contradicted.
DELETE FROM review_queue
WHERE status = 'pending' AND reason = 'contradicted' AND memory NOT IN (SELECT value FROM json_each(:doubtful));

-- find_review --
-- Whether a memory is pending for the same reason, or was settled with the same detail.
SELECT 1 FROM review_queue
WHERE memory = :memory AND reason = :reason AND (status = 'pending' OR (:once = 1 AND detail IS NOT DISTINCT FROM :detail));

-- list_reviews --
-- Pending reviews, oldest first.
SELECT r.memory, r.reason, r.detail, r.created
FROM review_queue r JOIN active_memories m ON m.id = r.memory
WHERE r.status = 'pending' ORDER BY r.created, r.id;

-- dismiss_reviews --
-- The user keeps the memory.
UPDATE review_queue SET status = 'dismissed', resolved = :at WHERE memory = :memory AND status = 'pending';

-- find_settled_review --
-- The times at which a memory was queued and settled, unless a review is pending.
SELECT min(created), resolved FROM review_queue
WHERE memory = :memory AND resolved = (SELECT resolved FROM review_queue WHERE memory = :memory ORDER BY id DESC LIMIT 1)
GROUP BY resolved;

-- list_settled_reviews --
-- Memories settled at a time.
SELECT DISTINCT memory FROM review_queue WHERE resolved = :at AND status = 'dismissed' ORDER BY memory;

-- reopen_reviews --
-- Reviews settled at a time.
UPDATE review_queue SET status = 'pending', resolved = NULL
WHERE id IN (SELECT max(id) FROM review_queue WHERE memory = :memory AND resolved = :at GROUP BY reason)
    AND reason NOT IN (SELECT reason FROM review_queue WHERE memory = :memory AND status = 'pending');

-- settle_review --
-- For one reason.
UPDATE review_queue SET status = 'dismissed', resolved = :at
WHERE memory = :memory AND reason = :reason AND status = 'pending';

-- list_stale_kept --
-- When the user last kept memories that seemed outdated.
SELECT memory, max(resolved) FROM review_queue WHERE reason = 'stale' AND status = 'dismissed' GROUP BY memory;

-- list_low_quality --
-- Often recalled memories with low quality.
SELECT u.memory, u.quality, u.recall_count FROM usage u JOIN active_memories m ON m.id = u.memory
WHERE u.quality < 0.2 AND u.recall_count >= 10 ORDER BY u.memory;

-- list_doubts --
-- Active memories that probably make others outdated: (older, newer, reason), for some or all older ones. If
-- two doubt each other, the link from the memory written later is used, or both with :both_ways.
SELECT l.target, l.source, l.reason FROM links l
JOIN active_memories newer ON newer.id = l.source JOIN active_memories older ON older.id = l.target
WHERE l.rel = 'contradicts' AND l.origin NOT IN ('auto', 'body')
    AND l.target IN (
        SELECT value FROM json_each(:ids)
        UNION ALL SELECT target FROM links WHERE :ids IS NULL AND rel = 'contradicts'
    )
    AND (:both_ways = 1 OR NOT EXISTS (
        SELECT 1 FROM links back
        WHERE back.source = l.target AND back.target = l.source AND back.rel = 'contradicts'
            AND back.origin NOT IN ('auto', 'body')
            AND (max(older.created, older.updated), older.id) > (max(newer.created, newer.updated), newer.id)
    ))
ORDER BY newer.created, l.source, l.target;

-- list_proposed --
-- Stored by agents, neither stated nor kept by the owner.
SELECT id FROM active_memories WHERE proposed = 1 ORDER BY row;

-- list_unfounded --
-- Memories that some tools read in a document that no longer contains the turns.
SELECT m.id FROM sessions s JOIN active_memories m ON m.session = s.tool || ':' || s.native_id
WHERE s.tool IN (SELECT value FROM json_each(:tools)) AND m.turns <> '[]' AND NOT EXISTS (
    SELECT 1 FROM json_each(m.turns) said JOIN turns t ON t.session = s.row AND t.native_id = said.value
)
ORDER BY m.row;

-- count_waiting --
-- Numbers of candidates, memories to review (queued, or proposed by agents, which are queued when shown), and
-- conflicts. A contradicted memory counts as a conflict.
SELECT
    (SELECT count(*) FROM candidates WHERE dropped IS NULL AND NOT EXISTS (SELECT 1 FROM active_memories WHERE id = candidates.id)),
    (SELECT count(*) FROM active_memories
        WHERE proposed = 1 OR id IN (
            SELECT memory FROM review_queue
            WHERE status = 'pending' AND reason != 'contradicted'
        )),
    (SELECT count(*) FROM links l
        JOIN active_memories newer ON newer.id = l.source JOIN active_memories older ON older.id = l.target
        WHERE l.rel = 'contradicts' AND l.origin NOT IN ('auto', 'body') AND NOT EXISTS (
            SELECT 1 FROM links back
            WHERE back.source = l.target AND back.target = l.source AND back.rel = 'contradicts'
                AND back.origin NOT IN ('auto', 'body')
                AND (max(older.created, older.updated), older.id) > (max(newer.created, newer.updated), newer.id)
        ));
