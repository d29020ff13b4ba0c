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

-- count_memories_by_source --
-- Valid memories recorded in a period, by speaker and tool.
SELECT speaker, substr(session, 1, max(instr(session, ':') - 1, 0)), count(*) FROM active_memories
WHERE created >= :since AND created < :until AND (:project IS NULL OR project = :project)
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 NULLS FIRST;

-- count_calls_by_day --
-- Usage of models by day: tokens of all kinds, and millionths of a US dollar.
SELECT day, task, sum(input + output + cached + written), coalesce(sum(cost), 0) FROM model_calls
WHERE day BETWEEN :first AND :last GROUP BY day, task ORDER BY day, task;
