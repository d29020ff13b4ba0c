-- list_shards --
-- In the order of their turns.
SELECT name, identity, first, last, rows, words FROM shards ORDER BY first;

-- insert_shard --
-- From now on its turns are searched there.
INSERT INTO shards (name, identity, first, last, rows, words)
VALUES (:shard, :identity, :first, :last, :rows, :words);

-- delete_shard --
-- Another takes its place, or none.
DELETE FROM shards WHERE name = :shard;

-- list_sessions_moved --
-- Their project was learned late.
SELECT session FROM sessions_moved;

-- clear_sessions_moved --
-- All shards know now.
DELETE FROM sessions_moved;

-- list_turns_to_shard --
-- What a shard keeps of turns, in the order of rows.
SELECT t.row, t.session, t.seq, t.text, coalesce(t.tools, ''), s.project, s.tool, t.speaker, t.trust, t.time
FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.row BETWEEN :first AND :last ORDER BY t.row LIMIT :limit;

-- insert_turn_words --
-- A batch, where its turns still are.
INSERT OR REPLACE INTO turn_words (turn, session, seq, words)
SELECT value ->> 0, value ->> 1, value ->> 2, unhex(value ->> 3) FROM json_each(:turns)
WHERE EXISTS (SELECT 1 FROM turns WHERE row = value ->> 0);

-- find_turn_words --
-- What some turns hold, and where they stand.
SELECT turn, session, seq, words FROM turn_words WHERE turn IN (SELECT value FROM json_each(:rows));

-- find_turn_words_at --
-- As above, by place, a number each: session << 32 | seq. Of a turn of the last days no words.
SELECT t.row, t.session, t.seq, coalesce(w.words, zeroblob(3))
FROM json_each(:places) p JOIN turns t ON t.session = p.value >> 32 AND t.seq = p.value & 0xFFFFFFFF
LEFT JOIN turn_words w ON w.turn = t.row;

-- insert_names --
-- Identifiers that were not known before; their numbers begin where the last ended.
INSERT OR IGNORE INTO names (name) SELECT value FROM json_each(:names);

-- last_name --
-- Names after this are new.
SELECT coalesce(max(row), 0) FROM names;

-- index_names --
-- What came after it.
INSERT INTO names_parts (rowid, name) SELECT row, name FROM names WHERE row > :after;

-- find_names --
-- Identifiers that hold a part.
SELECT n.name FROM names_parts f JOIN names n ON n.row = f.rowid WHERE names_parts MATCH :part LIMIT :limit;

-- list_names --
-- All of them, in pieces.
SELECT row, name FROM names WHERE row > :after ORDER BY row LIMIT :limit;

-- unindex_name --
-- No turn has it any more.
DELETE FROM names_parts WHERE rowid = :row;

-- delete_name --
-- As above.
DELETE FROM names WHERE row = :row;

-- count_waiting_for_shard --
-- Turns in the full text of the database, counted no further than asked.
SELECT count(*) FROM (SELECT 1 FROM turns_fts_docsize LIMIT :limit);

-- last_turn --
-- The newest row.
SELECT coalesce(max(row), 0) FROM turns;

-- first_turn_after --
-- The oldest row beyond.
SELECT min(row) FROM turns WHERE row > :row;

-- empty_turns_fts --
-- All of its turns are in shards.
INSERT INTO turns_fts (turns_fts) VALUES ('delete-all');

-- empty_turns_parts --
-- As above.
INSERT INTO turns_parts (turns_parts) VALUES ('delete-all');

-- count_sharded --
-- Turns of a shard that are still there.
SELECT count(*) FROM turn_words WHERE turn BETWEEN :first AND :last;

-- list_text_in_shards --
-- Turns whose full text lies in the database and in a shard.
SELECT d.id FROM turns_fts_docsize d JOIN turn_words w ON w.turn = d.id
WHERE EXISTS (SELECT 1 FROM shards s WHERE d.id BETWEEN s.first AND s.last) LIMIT :limit;

-- find_text_in_no_shard --
-- Is there a turn whose full text lies in the database alone?
SELECT d.id FROM turns_fts_docsize d
WHERE NOT EXISTS (SELECT 1 FROM shards s WHERE d.id BETWEEN s.first AND s.last)
    OR NOT EXISTS (SELECT 1 FROM turn_words w WHERE w.turn = d.id)
LIMIT 1;

-- list_rows_between --
-- The turns of a shard.
SELECT row FROM turns WHERE row BETWEEN :first AND :last;
