-- keep_turn_rows_above --
-- Rows up to this one belonged to turns and are not reused.
INSERT INTO last_turns (row) VALUES (:row) ON CONFLICT (tenant) DO UPDATE SET row = max(last_turns.row, excluded.row);

-- keep_rows_above --
-- A table continues its row numbers after this one.
SELECT keep_rows_above(:held, :row);

-- list_numbered --
-- Tables whose rows the server numbers for all tenants, with the numbered column. Tables that only a server has are
-- not moved.
SELECT c.relname::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attidentity <> ''
WHERE c.relnamespace = to_regnamespace('nacre_rows')
    AND c.relname NOT IN ('names', 'document_versions', 'ledger_lines')
ORDER BY 1;

-- look_at_rows --
-- After many rows arrived at once.
SELECT look_at_rows();

-- find_move --
-- The unfinished move.
SELECT id FROM moves;

-- begin_move --
-- This tenant's rows are being moved.
INSERT INTO moves (id) VALUES (:id);

-- end_move --
-- All rows have arrived.
DELETE FROM moves;

-- holds_anything --
-- Whether the tenant has anything that would conflict with a move.
SELECT EXISTS (SELECT 1 FROM memories) OR EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM documents);

-- list_memories_unindexed --
-- Memories without full text.
SELECT id FROM memories m WHERE NOT EXISTS (SELECT 1 FROM word_rows w WHERE w.kind = 'memories' AND w.row = m.row) ORDER BY row;

-- list_turns_unindexed --
SELECT row FROM turns t WHERE NOT EXISTS (SELECT 1 FROM word_rows w WHERE w.kind = 'turns' AND w.row = t.row) ORDER BY row;
