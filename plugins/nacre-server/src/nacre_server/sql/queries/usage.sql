-- record_recall --
-- A recall folded in later: the first of its sitting, or one that only updates the time. The list keeps the last
-- hundred times.
INSERT INTO usage (memory, recall_count, last_recalled, recall_intervals, access_count)
VALUES (:memory, :first, :at, CASE WHEN :first = 1 THEN json_build_array(:at)::text ELSE '[]' END, 1)
ON CONFLICT (memory) DO UPDATE SET
    recall_count = usage.recall_count + :first,
    access_count = usage.access_count + 1,
    last_recalled = greatest(coalesce(usage.last_recalled, 0), :at),
    recall_intervals = CASE WHEN :first = 0 THEN usage.recall_intervals ELSE (
        CASE WHEN jsonb_array_length(usage.recall_intervals::jsonb) >= 100 THEN usage.recall_intervals::jsonb - 0
        ELSE usage.recall_intervals::jsonb END || CAST(CAST(:at AS BIGINT) AS TEXT)::jsonb
    )::text END;
