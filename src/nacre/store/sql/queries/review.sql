-- insert_review --
-- A memory waits for a person.
INSERT INTO review_queue (memory, reason, detail, created, shown_by)
VALUES (:memory, :reason, :detail, :at, :shown_by);

-- renew_review --
-- It waits already: for what was found last.
UPDATE review_queue SET detail = :detail, created = :at, shown_by = :shown_by
WHERE memory = :memory AND reason = :reason AND status = 'pending';

-- find_review_detail --
-- Whether it waits for the same, or somebody settled that before.
SELECT 1 FROM review_queue WHERE memory = :memory AND reason = :reason AND detail IS NOT DISTINCT FROM :detail;

-- list_review_texts --
-- What all that waits or was settled quotes, and from which sessions.
SELECT id, coalesce(detail, ''), shown_by FROM review_queue;

-- delete_review --
-- Also that it was settled.
DELETE FROM review_queue WHERE id = :id;

-- find_review --
-- Whether a memory waits for the same reason, or was settled with the same detail.
SELECT 1 FROM review_queue
WHERE memory = :memory AND reason = :reason AND (status = 'pending' OR (:once = 1 AND detail IS NOT DISTINCT FROM :detail));

-- list_reviews --
-- What waits for a person, the oldest first.
SELECT r.memory, r.reason, r.detail, r.created
FROM review_queue r JOIN active_memories m ON m.id = r.memory
WHERE r.status = 'pending' ORDER BY r.created, r.id;

-- dismiss_reviews --
-- The person keeps the memory.
UPDATE review_queue SET status = 'dismissed', resolved = :at WHERE memory = :memory AND status = 'pending';

-- find_settled_review --
-- Since when a memory had waited that waits no more, and when that was settled.
SELECT min(created), resolved FROM review_queue
WHERE memory = :memory AND resolved = (SELECT resolved FROM review_queue WHERE memory = :memory ORDER BY id DESC LIMIT 1)
GROUP BY resolved;

-- list_settled_reviews --
-- What was settled at a time.
SELECT DISTINCT memory FROM review_queue WHERE resolved = :at AND status = 'dismissed' ORDER BY memory;

-- reopen_reviews --
-- What was settled at a time waits again.
UPDATE review_queue SET status = 'pending', resolved = NULL
WHERE id IN (SELECT max(id) FROM review_queue WHERE memory = :memory AND resolved = :at GROUP BY reason)
    AND reason NOT IN (SELECT reason FROM review_queue WHERE memory = :memory AND status = 'pending');

-- settle_review --
-- What it waited for was settled.
UPDATE review_queue SET status = 'dismissed', resolved = :at
WHERE memory = :memory AND reason = :reason AND status = 'pending';

-- list_stale_kept --
-- When a person last kept memories that seemed out of date.
SELECT memory, max(resolved) FROM review_queue WHERE reason = 'stale' AND status = 'dismissed' GROUP BY memory;

-- list_low_quality --
-- Recalled often and of little worth.
SELECT u.memory, u.quality, u.recall_count FROM usage u JOIN active_memories m ON m.id = u.memory
WHERE u.quality < 0.2 AND u.recall_count >= 10 ORDER BY u.memory;

-- list_doubts --
-- Which active memory is likely to have outdated which: (older, newer, reason); of the older ones given, or of all.
-- Where two doubt each other, the link of the one that was written later counts, or with :both_ways each.
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

-- list_contradicted --
-- Contradicted more than once.
SELECT u.memory, u.contradictions FROM usage u JOIN active_memories m ON m.id = u.memory WHERE u.contradictions >= 2
ORDER BY u.memory;

-- list_proposed --
-- What agents stored, and the owner neither said nor kept.
SELECT id FROM active_memories WHERE proposed = 1 ORDER BY row;

-- list_unfounded --
-- What was read in a document, as these tools read, that holds none of the turns any more that say it.
SELECT m.id FROM sessions s JOIN active_memories m ON m.session = s.tool || ':' || s.native_id
WHERE s.tool IN (SELECT value FROM json_each(:tools)) AND m.turns <> '[]' AND NOT EXISTS (
    SELECT 1 FROM json_each(m.turns) said JOIN turns t ON t.session = s.row AND t.native_id = said.value
)
ORDER BY m.row;

-- count_waiting --
-- Candidates; memories to review: those in the queue, and those that agents proposed, which are queued when it is
-- looked at; conflicts. A memory that another one contradicts is counted as a conflict.
SELECT
    (SELECT count(*) FROM candidates WHERE dropped IS NULL AND NOT EXISTS (SELECT 1 FROM active_memories WHERE id = candidates.id)),
    (SELECT count(*) FROM active_memories
        WHERE proposed = 1 OR id IN (
            SELECT memory FROM review_queue
            WHERE status = 'pending' AND (reason != 'contradicted' OR memory NOT IN (
                SELECT l.target FROM links l JOIN active_memories m ON m.id = l.source
                WHERE l.rel = 'contradicts' AND l.origin NOT IN ('auto', 'body')
            ))
        )),
    (SELECT count(*) FROM links l
        JOIN active_memories newer ON newer.id = l.source JOIN active_memories older ON older.id = l.target
        WHERE l.rel = 'contradicts' AND l.origin NOT IN ('auto', 'body') AND NOT EXISTS (
            SELECT 1 FROM links back
            WHERE back.source = l.target AND back.target = l.source AND back.rel = 'contradicts'
                AND back.origin NOT IN ('auto', 'body')
                AND (max(older.created, older.updated), older.id) > (max(newer.created, newer.updated), newer.id)
        ));
