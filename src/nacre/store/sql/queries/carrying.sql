-- attach_earlier --
-- The database that is being replaced.
ATTACH :path AS earlier;

-- detach_earlier --
-- So that its file can be moved.
DETACH earlier;

-- carry_review_queue --
-- Copy pending and settled reviews.
INSERT OR IGNORE INTO main.review_queue (memory, reason, detail, status, created, resolved, shown_by)
SELECT memory, reason, detail, status, created, resolved, shown_by FROM earlier.review_queue
WHERE memory IN (SELECT id FROM main.memories) ORDER BY id;

-- carry_sessions --
-- How far extraction and a writer have processed each session. Rows of sessions and turns can differ. Sessions
-- after the last one in the former database are new. Older sessions might have been excluded.
WITH before AS MATERIALIZED (
    SELECT s.tool, s.native_id AS session, t.native_id AS turn, t.seq, s.extracted, s.unwritten, s.asked
    FROM earlier.sessions s JOIN earlier.turns t ON t.session = s.row
)
UPDATE main.sessions SET
    extracted = coalesce(known.unseen, known.last + 1, CASE WHEN known.is_new THEN 0 ELSE extracted END),
    unwritten = known.unwritten, asked = known.asked
FROM (
    SELECT own.row, max(before.asked) AS asked,
        min(fresh.seq) FILTER (WHERE before.seq >= before.extracted) AS unseen,
        min(fresh.seq) FILTER (WHERE before.seq >= before.unwritten) AS unwritten,
        max(fresh.seq) FILTER (WHERE before.seq IS NOT NULL) AS last,
        max(own.started) > (SELECT max(ended) FROM earlier.sessions) AS is_new
    FROM main.sessions own
    JOIN main.turns fresh ON fresh.session = own.row
    LEFT JOIN before
        ON before.tool = own.tool AND before.session = own.native_id AND before.turn = fresh.native_id
    GROUP BY own.row
) known WHERE known.row = main.sessions.row;
