-- keep_turn_rows_above --
-- Up to this row all were those of turns: none is given to another.
INSERT INTO last_turns (row) VALUES (:row) ON CONFLICT (tenant) DO UPDATE SET row = max(last_turns.row, excluded.row);

-- keep_rows_above --
-- What comes next in a table that numbers its rows comes after this one.
SELECT keep_rows_above(:held, :row);

-- list_numbered --
-- Tables whose rows the server numbers for all tenants, and by which column; what only a server has is no part of a move.
SELECT c.relname::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attidentity <> ''
WHERE c.relnamespace = to_regnamespace('nacre_rows')
    AND c.relname NOT IN ('names', 'document_versions', 'ledger_lines')
ORDER BY 1;

-- look_at_rows --
-- After many came at once.
SELECT look_at_rows();

-- find_move --
-- The move that has begun and did not end.
SELECT id FROM moves;

-- begin_move --
-- This tenant's rows are being carried.
INSERT INTO moves (id) VALUES (:id);

-- end_move --
-- They are all there.
DELETE FROM moves;

-- holds_anything --
-- Whether the tenant has anything that a move would meet.
SELECT EXISTS (SELECT 1 FROM memories) OR EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM documents);

-- list_memories_unindexed --
-- Those without full text.
SELECT id FROM memories m WHERE NOT EXISTS (SELECT 1 FROM word_rows w WHERE w.kind = 'memories' AND w.row = m.row) ORDER BY row;

-- list_turns_unindexed --
-- As above.
SELECT row FROM turns t WHERE NOT EXISTS (SELECT 1 FROM word_rows w WHERE w.kind = 'turns' AND w.row = t.row) ORDER BY row;
