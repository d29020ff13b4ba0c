-- turns_size --
-- FTS5 keeps row and word totals in its record 1.
SELECT block FROM turns_fts_data WHERE id = 1;

-- memories_size --
-- As above.
SELECT block FROM memories_fts_data WHERE id = 1;
