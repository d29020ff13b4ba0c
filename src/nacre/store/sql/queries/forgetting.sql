-- list_tombstones --
-- All, because ingest compares each turn with them.
SELECT kind, value, run, owner FROM tombstones ORDER BY kind, value, run;

-- insert_tombstone --
-- Several entries of a run can have the same tombstone.
INSERT INTO tombstones (kind, value, run, owner) VALUES (:kind, :value, :run, :owner)
ON CONFLICT DO NOTHING;

-- delete_tombstone --
-- The item can then be read again.
DELETE FROM tombstones WHERE kind = :kind AND value = :value AND run = :run;

-- list_standing_retirements --
-- Oldest first, because the first match decides.
SELECT id, pattern, match, at, canonical_key, reason, contexts FROM standing_retirements ORDER BY id;

-- insert_standing_retirement --
-- Replaces a rule with the same id.
INSERT INTO standing_retirements (id, pattern, match, canonical_key, reason, contexts, at)
VALUES (:id, :pattern, :match, :canonical_key, :reason, :contexts, :at)
ON CONFLICT (id) DO UPDATE SET
    pattern = excluded.pattern, match = excluded.match, canonical_key = excluded.canonical_key,
    reason = excluded.reason, contexts = excluded.contexts, at = excluded.at;

-- clear_standing_retirements --
-- Before all are stored again.
DELETE FROM standing_retirements;

-- get_forgetting_value --
-- How far the ledger was read, unfinished runs, or whether bytes must still be erased.
SELECT value FROM forgetting_values WHERE key = :key;

-- set_forgetting_value --
-- See get_forgetting_value.
INSERT INTO forgetting_values (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value;

-- list_session_places --
-- All sessions, with few columns.
SELECT s.row, s.tool, s.native_id, s.project, s.kind, s.parent, s.title, s.file, s.cwd, s.branch,
    (SELECT count(*) FROM turns t WHERE t.session = s.row)
FROM sessions s ORDER BY s.row;

-- list_turn_places --
-- A batch of all turns, with the values that identify them.
SELECT t.row, s.tool, s.native_id, s.row, t.native_id, t.identity FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.row > :after ORDER BY t.row LIMIT :limit;

-- list_turn_texts --
-- A batch of all turns, with texts and actions.
SELECT row, session, text, tools, author FROM turns WHERE row > :after ORDER BY row LIMIT :limit;

-- list_turns_before --
-- Turns before a time. A turn without a time has its session's end time.
SELECT t.row, t.session FROM turns t JOIN sessions s ON s.row = t.session
WHERE (:projects IS NULL OR s.project IN (SELECT value FROM json_each(:projects)))
    AND coalesce(t.time, s.ended, s.started) < :before;

-- list_turn_keys --
-- The values that identify some turns.
SELECT t.row, s.tool, s.native_id, s.row, t.native_id, t.identity FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- list_turn_keys_of_session --
-- The values that identify a session's turns.
SELECT t.row, s.tool, s.native_id, s.row, t.native_id, t.identity FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.session = :session ORDER BY t.seq;

-- list_runs_returned --
-- Runs that forgot a memory that exists again, or a session that an existing memory names, because another
-- machine or a backup restored the files.
SELECT t.run FROM tombstones t JOIN memories m ON m.id = t.value WHERE t.kind = 'memory'
UNION
SELECT t.run FROM tombstones t JOIN memories m ON m.session = t.value WHERE t.kind = 'session'
UNION
SELECT t.run FROM tombstones t JOIN confirmations c ON c.session = t.value WHERE t.kind = 'session';

-- find_memories_by_id --
-- In any state.
SELECT * FROM memories WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- list_memories_alike --
-- All memories with the same text as some memories.
SELECT id FROM memories WHERE content_hash IN (SELECT content_hash FROM memories WHERE id IN (SELECT value FROM json_each(:ids)));

-- list_linking --
-- Memories that refer to some other memories by a link or as their successor.
SELECT source FROM links WHERE origin NOT IN ('auto', 'body') AND target IN (SELECT value FROM json_each(:ids))
UNION
SELECT id FROM memories WHERE superseded_by IN (SELECT value FROM json_each(:ids));

-- erase_links --
-- All links of a memory, including similarity.
DELETE FROM links WHERE source = :id OR target = :id;

-- erase_usage --
-- Of a forgotten memory.
DELETE FROM usage WHERE memory = :id;

-- erase_uses --
-- Of a forgotten memory.
DELETE FROM uses WHERE memory = :id;

-- erase_effects --
-- Of a forgotten memory.
DELETE FROM effects WHERE item = :id;

-- erase_co_recall --
-- Of a forgotten memory.
DELETE FROM co_recall WHERE a = :id OR b = :id;

-- erase_reviews --
-- Reviews of a memory, and other reviews that quote it.
DELETE FROM review_queue WHERE memory = :id OR instr(coalesce(detail, ''), substr(:id, length(:id) - 7)) > 0;

-- erase_unsettled --
-- It need not be compared any more.
DELETE FROM unsettled WHERE memory = :id;

-- erase_intents --
-- A memory's writes contain its text, also in the journal. Other writes that name it can quote it.
DELETE FROM intents WHERE memory = :id
    OR (applied = 1 AND (instr(coalesce(document, ''), :id) > 0 OR instr(coalesce(former, ''), :id) > 0));

-- erase_operations --
-- Their descriptions contain the memory's words.
UPDATE operations SET subject = NULL, why = NULL WHERE id IN (SELECT operation FROM touched WHERE memory = :id);

-- erase_touched --
-- File names are derived from subjects.
DELETE FROM touched WHERE memory = :id;

-- list_journal_texts --
-- All texts in the journal.
SELECT seq, coalesce(document, ''), coalesce(former, ''), path, replace(path, '-', ' ') FROM intents WHERE applied = 1;

-- list_touched_paths --
-- Files with their names at the time.
SELECT DISTINCT path, replace(path, '-', ' ') FROM touched;

-- delete_touched_path --
-- A former name must not be kept.
DELETE FROM touched WHERE path = :path;

-- delete_intent_for_good --
-- Also from the journal.
DELETE FROM intents WHERE seq = :seq;

-- list_operation_texts --
-- Subjects and reasons of operations.
SELECT id, coalesce(subject, ''), coalesce(why, '') FROM operations;

-- erase_operation_words --
-- Subject and reason.
UPDATE operations SET subject = NULL, why = NULL WHERE id = :id;

-- clear_title --
-- It quoted forgotten text.
UPDATE sessions SET title = NULL WHERE row = :row;

-- delete_cursor --
-- The file is then read from the start.
DELETE FROM transcript_cursors WHERE path = :path;

-- delete_cursors_at_beginning --
-- Of files with skipped parts.
DELETE FROM transcript_cursors WHERE "offset" = 0;

-- list_orphaned_passages --
-- Passages without turns that still have a vector.
SELECT row FROM passages WHERE length(hash) = 16 AND row NOT IN (SELECT passage FROM turn_passages);

-- blank_passage --
-- Keep its number, so that rows and bits stay aligned.
UPDATE passages SET hash = CAST('gone:' || row AS BLOB), vector = zeroblob(length(vector)) WHERE row = :row;

-- find_bits --
-- The run of bits that contains a passage.
SELECT first, count, bits FROM passage_bits WHERE first <= :row ORDER BY first DESC LIMIT 1;

-- update_bits --
-- Replace a run of bits.
UPDATE passage_bits SET bits = :bits WHERE first = :first;

-- merge_turns_fts --
-- Deleted text stays in the index until its segments are merged. This does a part of that.
INSERT INTO turns_fts (turns_fts, rank) VALUES ('merge', :pages);

-- merge_failures_fts --
-- See merge_turns_fts.
INSERT INTO failures_fts (failures_fts, rank) VALUES ('merge', :pages);

-- merge_turns_parts --
-- See merge_turns_fts.
INSERT INTO turns_parts (turns_parts, rank) VALUES ('merge', :pages);

-- merge_memories_fts --
-- See merge_turns_fts.
INSERT INTO memories_fts (memories_fts, rank) VALUES ('merge', :pages);

-- merge_memories_parts --
-- See merge_turns_fts.
INSERT INTO memories_parts (memories_parts, rank) VALUES ('merge', :pages);
