-- turns_size --
-- FTS5 keeps row and word totals in its record 1.
SELECT block FROM turns_fts_data WHERE id = 1;

-- memories_size --
-- As above.
SELECT block FROM memories_fts_data WHERE id = 1;

-- find_turns_at --
-- Turns by place, each a number: session << 32 | seq.
SELECT t.row, t.session, t.seq FROM json_each(:places) p
JOIN turns t ON t.session = p.value >> 32 AND t.seq = p.value & 0xFFFFFFFF;
