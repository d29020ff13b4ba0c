-- find_usage --
-- How memories were used.
SELECT memory, recall_count, last_recalled, recall_intervals, contradictions, quality, access_count FROM usage
WHERE memory IN (SELECT value FROM json_each(:ids));

-- record_recall --
-- One recall, folded in after the fact; the list of times keeps its last hundred.
INSERT INTO usage (memory, recall_count, last_recalled, recall_intervals, access_count)
VALUES (:memory, 1, :at, json_array(:at), 1)
ON CONFLICT (memory) DO UPDATE SET
    recall_count = recall_count + 1,
    access_count = access_count + 1,
    last_recalled = max(coalesce(last_recalled, 0), :at),
    recall_intervals = CASE
        WHEN json_array_length(recall_intervals) >= 100
        THEN json_insert(json_remove(recall_intervals, '$[0]'), '$[#]', :at)
        ELSE json_insert(recall_intervals, '$[#]', :at)
    END;

-- confirm_memory --
-- The same thing was said again.
INSERT INTO usage (memory, confirmations) VALUES (:memory, 1)
ON CONFLICT (memory) DO UPDATE SET confirmations = confirmations + 1;
