-- list_tables --
-- All tables, including those of full text.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND sql NOT LIKE 'CREATE VIRTUAL%';

-- count_pages --
-- The size of the file.
SELECT page_count FROM pragma_page_count();

-- count_strays --
-- Rows that refer to missing ones.
SELECT "table", count(*) FROM pragma_foreign_key_check() GROUP BY "table";

-- count_texts --
-- All rows with full text.
SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM turns);

-- list_memories_unindexed --
-- FTS5 keeps one size record per row.
SELECT id FROM memories WHERE row NOT IN (SELECT id FROM memories_fts_docsize) ORDER BY row;

-- list_turns_unindexed --
-- As above.
SELECT row FROM turns
WHERE row NOT IN (SELECT id FROM turns_fts_docsize) ORDER BY row;

-- list_text_without_rows --
-- Full text of deleted rows.
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
-- int8 vectors: one byte per component.
SELECT (SELECT count(*) FROM passages WHERE length(vector) <> :size)
    + (SELECT count(*) FROM memory_vectors WHERE length(vector) <> :size);

-- count_bits_missing --
-- Bits and passages are aligned.
SELECT (SELECT count(*) FROM passages) - coalesce((SELECT sum(count) FROM passage_bits), 0);

-- list_sessions_miscounted --
-- The count must equal the number of turns.
SELECT row, tool || ':' || native_id FROM sessions
WHERE turns <> (SELECT count(*) FROM turns t WHERE t.session = sessions.row);

-- count_known_turns --
-- The indexed ones of some turns.
SELECT count(*) FROM turns WHERE identity IN (SELECT unhex(value) FROM json_each(:identities));
