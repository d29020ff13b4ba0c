-- attach_earlier --
-- The database that was, beside the one that takes its place.
ATTACH :path AS earlier;

-- detach_earlier --
-- Its file may be moved then.
DETACH earlier;

-- carry_model_calls --
-- What models were asked, and what that cost. Without a condition SQLite would copy records of whatever types.
INSERT OR IGNORE INTO main.model_calls SELECT * FROM earlier.model_calls WHERE true;

-- carry_model_refusals --
-- Which calls were not made.
INSERT OR IGNORE INTO main.model_refusals SELECT * FROM earlier.model_refusals WHERE true;

-- carry_model_health --
-- Which models failed.
INSERT OR IGNORE INTO main.model_health SELECT * FROM earlier.model_health WHERE true;

-- carry_model_answers --
-- What they answered.
INSERT OR IGNORE INTO main.model_answers SELECT * FROM earlier.model_answers WHERE true;

-- carry_traces --
-- What runs went through.
INSERT OR IGNORE INTO main.traces SELECT * FROM earlier.traces WHERE json_valid(steps);

-- carry_candidates --
-- What waits for review, and what was dropped.
INSERT OR IGNORE INTO main.candidates SELECT * FROM earlier.candidates WHERE true;

-- carry_review_queue --
-- What waits for a person to settle it, and what they settled, but for what use alone gave reason to.
INSERT OR IGNORE INTO main.review_queue (memory, reason, detail, suggested, status, created, resolved, shown_by)
SELECT memory, reason, detail, suggested, status, created, resolved, shown_by FROM earlier.review_queue
WHERE reason NOT IN ('low_quality', 'contradicted') AND memory IN (SELECT id FROM main.memories) ORDER BY id;

-- carry_sessions --
-- How far sessions were learned from, and from where on a writer is to be shown them: sessions and turns may have other
-- numbers now. What came since the last session that the database had is new; older ones it may have been told to leave.
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

-- carry_usage_values --
-- Whether an upgrade has still to set memories aside, and how far each was held against what was said later.
INSERT OR REPLACE INTO main.usage_values SELECT * FROM earlier.usage_values
WHERE key IN ('older_rules', 'looked later', 'looked later on');

-- carry_code_projects --
-- Projects whose code was read.
INSERT OR IGNORE INTO main.code_projects SELECT * FROM earlier.code_projects WHERE true;

-- carry_code_files --
-- Their files.
INSERT OR IGNORE INTO main.code_files SELECT * FROM earlier.code_files WHERE true;

-- carry_code_symbols --
-- What these define.
INSERT OR IGNORE INTO main.code_symbols SELECT * FROM earlier.code_symbols WHERE true;

-- carry_code_edges --
-- Who calls, imports and inherits what.
INSERT OR IGNORE INTO main.code_edges SELECT * FROM earlier.code_edges WHERE true;

-- carry_code_outside --
-- What they import from elsewhere.
INSERT OR IGNORE INTO main.code_outside SELECT * FROM earlier.code_outside WHERE true;
