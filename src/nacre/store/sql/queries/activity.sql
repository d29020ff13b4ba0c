-- count_sessions_by_day --
-- Sessions by the day on which they began, with their turns. Turns of a session that ends on another day are
-- counted individually, first by quarter-hours, because every time zone's offset is a multiple of these.
WITH seen AS (
    SELECT row, tool, turns, date(started / 1000, 'unixepoch', 'localtime') AS day,
        date(coalesce(ended, started) / 1000, 'unixepoch', 'localtime') AS last
    FROM sessions WHERE started IS NOT NULL AND kind = 'main' AND (:project IS NULL OR project = :project)
        AND started < :until AND coalesce(ended, started) >= :since
), quarters AS MATERIALIZED (
    SELECT session, time / 900000 AS quarter, count(*) AS turns FROM turns
    WHERE session IN (SELECT row FROM seen WHERE day <> last) AND time IS NOT NULL GROUP BY session, quarter
)
SELECT day, tool, sum(sessions), sum(turns) FROM (
    SELECT day, tool, 1 AS sessions, iif(day = last, turns, 0) AS turns FROM seen
    UNION ALL
    SELECT date(q.quarter * 900, 'unixepoch', 'localtime'), s.tool, 0, q.turns FROM quarters q JOIN seen s ON s.row = q.session
)
WHERE day BETWEEN :first AND :last GROUP BY day, tool ORDER BY day, tool;

-- count_memories_by_day --
-- Memories by the day on which they were recorded (1) or ended (-1), in any state: retired, or superseded by a
-- memory recorded then.
SELECT day, kind, change, count(*) FROM (
    SELECT date(created / 1000, 'unixepoch', 'localtime') AS day, kind, 1 AS change
    FROM memories WHERE :project IS NULL OR project = :project
    UNION ALL
    SELECT date(max(m.created, coalesce(m.retired_at, (SELECT s.created FROM memories s WHERE s.id = m.superseded_by),
        m.updated)) / 1000, 'unixepoch', 'localtime'), m.kind, -1
    FROM memories m
    WHERE (m.retired_at IS NOT NULL OR m.superseded_by IS NOT NULL) AND (:project IS NULL OR m.project = :project)
)
WHERE day <= :last GROUP BY day, kind, change ORDER BY day, kind, change;

-- count_memories_by_source --
-- Valid memories recorded in a period, by speaker and tool.
SELECT speaker, substr(session, 1, max(instr(session, ':') - 1, 0)), count(*) FROM active_memories
WHERE created >= :since AND created < :until AND (:project IS NULL OR project = :project)
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 NULLS FIRST;

-- count_memories_by_age --
-- Valid memories by days since they were last stated, and how many of these might be outdated.
SELECT (:now - max(m.created, coalesce((SELECT max(c.at) FROM confirmations c WHERE c.memory = m.id), 0))) / 86400000 AS age,
    count(*), count(s.memory)
FROM active_memories m LEFT JOIN stale_memories s ON s.memory = m.id
WHERE :project IS NULL OR m.project = :project GROUP BY age ORDER BY age;

-- count_memories_by_use --
-- Valid memories by number of recalls.
SELECT count(*) FILTER (WHERE coalesce(u.recall_count, 0) = 0), count(*) FILTER (WHERE u.recall_count BETWEEN 1 AND 5),
    count(*) FILTER (WHERE u.recall_count > 5)
FROM active_memories m LEFT JOIN usage u ON u.memory = m.id WHERE :project IS NULL OR m.project = :project;

-- count_recalls_by_day --
-- Only the last hundred of each valid memory.
SELECT date(CAST(r.value AS BIGINT) / 1000, 'unixepoch', 'localtime') AS day, count(*)
FROM active_memories m JOIN usage u ON u.memory = m.id, json_each(u.recall_intervals) r
WHERE CAST(r.value AS BIGINT) >= :since AND CAST(r.value AS BIGINT) < :until AND (:project IS NULL OR m.project = :project) GROUP BY day ORDER BY day;

-- count_questions_by_day --
-- Stored questions by day, answered (1) or unanswered (0).
SELECT date(at / 1000, 'unixepoch', 'localtime') AS day, outcome NOT IN (SELECT value FROM json_each(:unanswered)) AS answered,
    count(*)
FROM traces WHERE kind = 'question' AND at >= :since AND at < :until GROUP BY day, answered ORDER BY day, answered;

-- count_calls_by_day --
-- Usage of models by day: tokens of all kinds, and millionths of a US dollar.
SELECT day, task, sum(input + output + cached + written), coalesce(sum(cost), 0) FROM model_calls
WHERE day BETWEEN :first AND :last GROUP BY day, task ORDER BY day, task;
