-- list_tables --
-- All tables, including those of full text.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND sql NOT LIKE 'CREATE VIRTUAL%';

-- count_pages --
-- The number of pages in the file.
SELECT page_count FROM pragma_page_count();

-- count_strays --
-- Their parent row is missing.
SELECT "table", count(*) FROM pragma_foreign_key_check() GROUP BY "table";

-- count_texts --
-- Rows with full text.
SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM turns);

-- list_memories_unindexed --
-- FTS5 keeps a size record for each indexed row.
SELECT id FROM memories WHERE row NOT IN (SELECT id FROM memories_fts_docsize) ORDER BY row;

-- list_turns_unindexed --
-- See list_memories_unindexed.
SELECT row FROM turns
WHERE row NOT IN (SELECT id FROM turns_fts_docsize) ORDER BY row;

-- list_text_without_rows --
-- Their rows were deleted.
SELECT 'memories_fts', id FROM memories_fts_docsize WHERE id NOT IN (SELECT row FROM memories)
UNION ALL
SELECT 'memories_parts', id FROM memories_parts_docsize WHERE id NOT IN (SELECT row FROM memories)
UNION ALL
SELECT 'turns_fts', id FROM turns_fts_docsize WHERE id NOT IN (SELECT row FROM turns)
UNION ALL
SELECT 'turns_parts', id FROM turns_parts_docsize WHERE id NOT IN (SELECT row FROM turns)
UNION ALL
SELECT 'failures_fts', id FROM failures_fts_docsize WHERE id NOT IN (SELECT row FROM turns);

-- count_odd_vectors --
-- An int8 vector has one byte per component.
SELECT (SELECT count(*) FROM passages WHERE length(vector) <> :size)
    + (SELECT count(*) FROM memory_vectors WHERE length(vector) <> :size);

-- count_bits_missing --
-- The numbers of bits and passages must be equal.
SELECT (SELECT count(*) FROM passages) - coalesce((SELECT sum(count) FROM passage_bits), 0);

-- list_sessions_miscounted --
-- Their count is not the number of their turns.
SELECT row, tool || ':' || native_id FROM sessions
WHERE turns <> (SELECT count(*) FROM turns t WHERE t.session = sessions.row);

-- count_known_turns --
-- Indexed turns among some turns.
SELECT count(*) FROM turns WHERE identity IN (SELECT unhex(value) FROM json_each(:identities));
