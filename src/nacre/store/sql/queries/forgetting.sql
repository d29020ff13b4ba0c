-- list_tombstones --
-- All of them: they are looked up in memory, where an ingest asks for every turn.
SELECT kind, value, run, owner FROM tombstones ORDER BY kind, value, run;

-- insert_tombstone --
-- Told by several entries of one run, it is one.
INSERT INTO tombstones (kind, value, run, owner) VALUES (:kind, :value, :run, :owner)
ON CONFLICT DO NOTHING;

-- delete_tombstone --
-- What was forgotten may be read again.
DELETE FROM tombstones WHERE kind = :kind AND value = :value AND run = :run;

-- list_standing_retirements --
-- The oldest first: the first that fits decides.
SELECT id, pattern, match, canonical_key, reason, contexts, at FROM standing_retirements ORDER BY id;

-- insert_standing_retirement --
-- One rule.
INSERT INTO standing_retirements (id, pattern, match, canonical_key, reason, contexts, at)
VALUES (:id, :pattern, :match, :canonical_key, :reason, :contexts, :at)
ON CONFLICT (id) DO UPDATE SET
    pattern = excluded.pattern, match = excluded.match, canonical_key = excluded.canonical_key,
    reason = excluded.reason, contexts = excluded.contexts, at = excluded.at;

-- clear_standing_retirements --
-- As above.
DELETE FROM standing_retirements;

-- get_forgetting_value --
-- What was read of the ledger; runs that are not carried out; whether bytes are left.
SELECT value FROM forgetting_values WHERE key = :key;

-- set_forgetting_value --
-- See above.
INSERT INTO forgetting_values (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value;

-- list_session_places --
-- Every session, in brief.
SELECT s.row, s.tool, s.native_id, s.project, s.kind, s.parent, s.title, s.file, s.cwd, s.branch,
    (SELECT count(*) FROM turns t WHERE t.session = s.row)
FROM sessions s ORDER BY s.row;

-- list_turn_places --
-- A piece of all turns: what tells one from another.
SELECT t.row, s.tool, s.native_id, s.row, t.native_id, t.identity FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.row > :after ORDER BY t.row LIMIT :limit;

-- list_turn_texts --
-- A piece of all turns: what they say and do.
SELECT row, session, text, tools, author FROM turns WHERE row > :after ORDER BY row LIMIT :limit;

-- list_turns_before --
-- What was said before a time; where a turn has none, its session's end tells.
SELECT t.row, t.session FROM turns t JOIN sessions s ON s.row = t.session
WHERE (:projects IS NULL OR s.project IN (SELECT value FROM json_each(:projects)))
    AND coalesce(t.time, s.ended, s.started) < :before;

-- list_turn_keys --
-- Some turns: what tells one from another.
SELECT t.row, s.tool, s.native_id, s.row, t.native_id, t.identity FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- list_turn_keys_of_session --
-- Those of a session.
SELECT t.row, s.tool, s.native_id, s.row, t.native_id, t.identity FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.session = :session ORDER BY t.seq;

-- list_runs_returned --
-- Runs that forgot a memory which is there again, or a session that a memory still names: files that another machine,
-- or a backup, brought back.
SELECT t.run FROM tombstones t JOIN memories m ON m.id = t.value WHERE t.kind = 'memory'
UNION
SELECT t.run FROM tombstones t JOIN memories m ON m.session = t.value WHERE t.kind = 'session'
UNION
SELECT t.run FROM tombstones t JOIN confirmations c ON c.session = t.value WHERE t.kind = 'session';

-- find_memories_by_id --
-- Several, in any state.
SELECT * FROM memories WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- list_memories_alike --
-- Whatever says the same as some memories in the same words.
SELECT id FROM memories WHERE content_hash IN (SELECT content_hash FROM memories WHERE id IN (SELECT value FROM json_each(:ids)));

-- list_linking --
-- Memories that name some others: by a link, or as what took their place.
SELECT source FROM links WHERE origin NOT IN ('auto', 'body') AND target IN (SELECT value FROM json_each(:ids))
UNION
SELECT id FROM memories WHERE superseded_by IN (SELECT value FROM json_each(:ids));

-- erase_links --
-- Every edge at a memory, also what is only similar.
DELETE FROM links WHERE source = :id OR target = :id;

-- erase_usage --
-- How it was used.
DELETE FROM usage WHERE memory = :id;

-- erase_uses --
-- When.
DELETE FROM uses WHERE memory = :id;

-- erase_co_recall --
-- And beside what.
DELETE FROM co_recall WHERE a = :id OR b = :id;

-- erase_reviews --
-- Reviews of it, and of others because of it: they quote what differs.
DELETE FROM review_queue WHERE memory = :id OR instr(coalesce(detail, ''), substr(:id, length(:id) - 7)) > 0;

-- erase_unsettled --
-- Nothing is to be compared any more.
DELETE FROM unsettled WHERE memory = :id;

-- erase_intents --
-- Writes of it hold the whole document, and so does the journal; others that name it may quote it in a reason.
DELETE FROM intents WHERE memory = :id
    OR (applied = 1 AND (instr(coalesce(document, ''), :id) > 0 OR instr(coalesce(former, ''), :id) > 0));

-- erase_operations --
-- What was done to it is told without its words.
UPDATE operations SET subject = NULL, why = NULL WHERE id IN (SELECT operation FROM touched WHERE memory = :id);

-- erase_touched --
-- A file's name is made of its subject.
DELETE FROM touched WHERE memory = :id;

-- list_journal_texts --
-- What the journal quotes.
SELECT seq, coalesce(document, ''), coalesce(former, ''), path, replace(path, '-', ' ') FROM intents WHERE applied = 1;

-- list_touched_paths --
-- Every file that any operation touched, as it was called then.
SELECT DISTINCT path, replace(path, '-', ' ') FROM touched;

-- delete_touched_path --
-- Nobody is to know that it was called so.
DELETE FROM touched WHERE path = :path;

-- delete_intent_for_good --
-- Not even as the journal.
DELETE FROM intents WHERE seq = :seq;

-- list_operation_texts --
-- What operations were about, and why.
SELECT id, coalesce(subject, ''), coalesce(why, '') FROM operations;

-- erase_operation_words --
-- The operation is told without.
UPDATE operations SET subject = NULL, why = NULL WHERE id = :id;

-- clear_title --
-- A title that quoted what was forgotten.
UPDATE sessions SET title = NULL WHERE row = :row;

-- delete_cursor --
-- The file is read from its beginning next time.
DELETE FROM transcript_cursors WHERE path = :path;

-- delete_cursors_at_beginning --
-- Files that something was left out of.
DELETE FROM transcript_cursors WHERE "offset" = 0;

-- list_orphaned_passages --
-- Passages that nobody says any more and that still have a vector.
SELECT row FROM passages WHERE length(hash) = 16 AND row NOT IN (SELECT passage FROM turn_passages);

-- blank_passage --
-- The number stays, so that rows and bits stay aligned; hash and vector go.
UPDATE passages SET hash = CAST('gone:' || row AS BLOB), vector = zeroblob(length(vector)) WHERE row = :row;

-- find_bits --
-- The run of bits that a passage lies in.
SELECT first, count, bits FROM passage_bits WHERE first <= :row ORDER BY first DESC LIMIT 1;

-- update_bits --
-- The same run without it.
UPDATE passage_bits SET bits = :bits WHERE first = :first;

-- merge_turns_fts --
-- Full text is in its segments until these are merged: a piece of that work.
INSERT INTO turns_fts (turns_fts, rank) VALUES ('merge', :pages);

-- merge_failures_fts --
-- As above.
INSERT INTO failures_fts (failures_fts, rank) VALUES ('merge', :pages);

-- merge_turns_parts --
-- As above.
INSERT INTO turns_parts (turns_parts, rank) VALUES ('merge', :pages);

-- merge_memories_fts --
-- As above.
INSERT INTO memories_fts (memories_fts, rank) VALUES ('merge', :pages);

-- merge_memories_parts --
-- As above.
INSERT INTO memories_parts (memories_parts, rank) VALUES ('merge', :pages);
