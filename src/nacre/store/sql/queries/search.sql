-- turns_size --
-- FTS5 keeps the numbers of rows and words in its record 1.
SELECT block FROM turns_fts_data WHERE id = 1;

-- memories_size --
-- See turns_size.
SELECT block FROM memories_fts_data WHERE id = 1;

-- find_turns_at --
-- Turns by place. A place is a number: session << 32 | seq.
SELECT t.row, t.session, t.seq FROM json_each(:places) p
JOIN turns t ON t.session = p.value >> 32 AND t.seq = p.value & 0xFFFFFFFF;
