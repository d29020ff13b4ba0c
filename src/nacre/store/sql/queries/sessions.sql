-- upsert_session --
-- Known fields are never removed. If the owner spoke in a session, it counts as the owner's.
INSERT INTO sessions (tool, native_id, project, title, cwd, branch, kind, parent, started, ended, tool_version, model, label,
    met_as, file, tokens_input, tokens_cached, tokens_output)
VALUES (:tool, :native_id, :project, :title, :cwd, :branch, :kind, :parent, :started, :started, :tool_version, :model,
    :label, :met_as, :file, :tokens_input, :tokens_cached, :tokens_output)
ON CONFLICT (tool, native_id) DO UPDATE SET
    project = coalesce(sessions.project, excluded.project),
    title = coalesce(excluded.title, sessions.title),
    cwd = coalesce(sessions.cwd, excluded.cwd),
    branch = coalesce(sessions.branch, excluded.branch),
    kind = CASE WHEN excluded.kind = 'main' THEN 'main' ELSE sessions.kind END,
    started = coalesce(min(sessions.started, excluded.started), sessions.started, excluded.started),
    tool_version = coalesce(excluded.tool_version, sessions.tool_version),
    model = coalesce(excluded.model, sessions.model),
    label = coalesce(excluded.label, sessions.label),
    file = coalesce(sessions.file, excluded.file),
    tokens_input = coalesce(
        max(sessions.tokens_input, excluded.tokens_input), sessions.tokens_input, excluded.tokens_input
    ),
    tokens_cached = coalesce(
        max(sessions.tokens_cached, excluded.tokens_cached), sessions.tokens_cached, excluded.tokens_cached
    ),
    tokens_output = coalesce(
        max(sessions.tokens_output, excluded.tokens_output), sessions.tokens_output, excluded.tokens_output
    )
RETURNING row;

-- model_of_session --
-- The stored model of a session.
SELECT model FROM sessions WHERE tool = :tool AND native_id = :native_id;

-- next_seqs --
-- The next position in some sessions.
SELECT CAST(value AS BIGINT), (SELECT coalesce(max(t.seq) + 1, 0) FROM turns t WHERE t.session = CAST(value AS BIGINT))
FROM json_each(:sessions);

-- find_known_turns --
-- Stored turns among some turns, with their texts.
SELECT row, identity, session, seq, text, coalesce(tools, '') FROM turns
WHERE identity IN (SELECT unhex(value) FROM json_each(:identities));

-- insert_turns --
-- New turns of many batches.
INSERT INTO turns (row, session, seq, native_id, identity, speaker, trust, flags, time, author, text, tools)
SELECT
    CAST(value ->> 0 AS BIGINT), CAST(value ->> 1 AS BIGINT), CAST(value ->> 2 AS BIGINT), value ->> 3,
    unhex(value ->> 4), value ->> 5, value ->> 6, CAST(value ->> 7 AS BIGINT), CAST(value ->> 8 AS BIGINT), value ->> 9,
    value ->> 10, value ->> 11
FROM json_each(:turns);

-- index_turns --
-- Full text of turns.
INSERT INTO turns_fts (rowid, said, did) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:texts);

-- index_turn_parts --
-- Identifiers in turns.
INSERT INTO turns_parts (rowid, identifiers) SELECT value ->> 0, value ->> 1 FROM json_each(:texts);

-- next_turn_row --
-- Later rows are new.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'turns'), 0) + 1;

-- delete_turn --
-- It has grown and is stored again in its old place.
DELETE FROM turns WHERE row = :row;

-- note_session_file --
-- A session was read from a file.
INSERT INTO session_files (session, file) VALUES (:session, :file) ON CONFLICT DO NOTHING;

-- list_sessions_of_file --
-- With the turns that the file contained when last read completely.
SELECT s.row, s.native_id, f.held FROM session_files f JOIN sessions s ON s.row = f.session
WHERE f.file = :file AND s.tool = :tool;

-- list_other_files --
-- A session's other files, with their turns.
SELECT file, held FROM session_files WHERE session = :session AND file <> :file ORDER BY row;

-- count_session_files --
-- Files with parts of a session.
SELECT count(*) FROM session_files WHERE session = :session;

-- hold_turns --
-- A session's turns in a completely read file.
UPDATE session_files SET held = :held WHERE session = :session AND file = :file;

-- leave_session_file --
-- The file no longer contains turns of the session.
DELETE FROM session_files WHERE session = :session AND file = :file;

-- move_session --
-- Change its first file.
UPDATE sessions SET file = :other WHERE row = :row AND file = :file;

-- list_turns_gone --
-- Turns missing from the session's only file, which was read completely.
SELECT row FROM turns WHERE session = :session AND native_id NOT IN (SELECT value FROM json_each(:ids));

-- list_turns_named --
-- Turns of a session by the tool's ids.
SELECT row FROM turns WHERE session = :session AND native_id IN (SELECT value FROM json_each(:ids));

-- limit_extracted --
-- After turns were deleted or replaced, make later turns new to extraction.
UPDATE sessions SET extracted = min(
    extracted, (SELECT coalesce(max(seq) + 1, 0) FROM turns t WHERE t.session = sessions.row AND t.seq < :before)
)
WHERE row = :row;

-- leave_turn --
-- The words of the turn changed.
UPDATE memories SET turns = '[]'
WHERE session = (SELECT tool || ':' || native_id FROM sessions WHERE row = :session) AND turns = :turns;

-- delete_session --
-- After its turns.
DELETE FROM sessions WHERE row = :row;

-- refresh_session --
-- Update count and end from the turns.
UPDATE sessions SET
    turns = (SELECT count(*) FROM turns t WHERE t.session = sessions.row),
    ended = coalesce((SELECT max(time) FROM turns t WHERE t.session = sessions.row), ended),
    started = coalesce((SELECT min(time) FROM turns t WHERE t.session = sessions.row), started)
WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- mark_extracted --
-- The number of turns that extraction has processed.
UPDATE sessions SET extracted = :seq WHERE row = :row;

-- mark_learned --
-- The number of turns that extraction has processed, the first turn for a writer, if any, and its last call,
-- unless another process has changed these since they were listed.
UPDATE sessions SET extracted = :extracted, unwritten = :unwritten, asked = :asked
WHERE row = :row AND extracted = :begin AND coalesce(unwritten, -1) = :unwritten_before
    AND coalesce(asked, -1) = :asked_before;

-- ask_again --
-- Reset the time of the writer's last call.
UPDATE sessions SET asked = 0 WHERE unwritten IS NOT NULL AND asked > 0;

-- mark_all_extracted --
-- After a rebuild, old turns yield nothing new.
UPDATE sessions SET
    extracted = (SELECT coalesce(max(seq) + 1, 0) FROM turns t WHERE t.session = sessions.row), unwritten = NULL;

-- list_sessions_to_extract --
-- Sessions with turns that extraction or a writer has not processed.
SELECT row, extracted, behind, unwritten, asked FROM (
    SELECT row, started, extracted, unwritten, asked,
        (SELECT coalesce(max(seq) + 1, 0) FROM turns t WHERE t.session = sessions.row) AS behind
    FROM sessions WHERE kind = 'main'
) WHERE extracted < behind OR unwritten IS NOT NULL
ORDER BY started NULLS FIRST, row;

-- list_sessions_not_shown --
-- Fully processed by extraction, but not by a writer.
SELECT row, extracted, extracted, unwritten, asked, TRUE FROM sessions
WHERE kind = 'main' AND (unwritten IS NOT NULL OR asked IS NULL) AND extracted > 0
    AND extracted >= (SELECT coalesce(max(seq) + 1, 0) FROM turns t WHERE t.session = sessions.row)
ORDER BY started NULLS FIRST, row;

-- find_session --
-- By tool and id.
SELECT row, project, ended, file, turns, tool, native_id, title, cwd, branch, NULL, label, kind, parent, started,
    tool_version, model, tokens_input, tokens_cached, tokens_output
FROM sessions WHERE tool = :tool AND native_id = :native_id;

-- find_session_by_row --
-- By row.
SELECT row, project, ended, file, turns, tool, native_id, title, cwd, branch, NULL, label, kind, parent, started,
    tool_version, model, tokens_input, tokens_cached, tokens_output
FROM sessions WHERE row = :row;

-- find_sessions_by_native_id --
-- By the tool's id or its start, for one or all tools.
SELECT row, project, ended, file, turns, tool, native_id, title, cwd, branch, NULL, label, kind, parent, started,
    tool_version, model, tokens_input, tokens_cached, tokens_output
FROM sessions WHERE substr(native_id, 1, length(:native_id)) = :native_id AND (:tool IS NULL OR tool = :tool)
ORDER BY native_id = :native_id DESC, row LIMIT 3;

-- list_sessions --
-- Sessions, newest first. The last column is the total.
SELECT row, project, ended, file, turns, tool, native_id, title, cwd, branch, NULL, label, kind, parent, started,
    tool_version, model, tokens_input, tokens_cached, tokens_output, count(*) OVER ()
FROM sessions
WHERE (:tool IS NULL OR tool = :tool) AND (:project IS NULL OR project = :project)
    AND (:since IS NULL OR ended >= :since) AND (:until IS NULL OR started < :until)
    AND (:branch IS NULL OR branch = :branch) AND (:model IS NULL OR instr(lower(model), lower(:model)) > 0)
    AND (:kind IS NULL OR kind = :kind) AND (:subagents = 1 OR :kind IS NOT NULL OR kind = 'main')
    AND (:words IS NULL OR instr(lower(coalesce(title, '')), lower(:words)) > 0 OR title IS NULL AND EXISTS (
        SELECT 1 FROM turns t
        WHERE t.session = sessions.row AND t.seq < :opening AND t.speaker = 'owner' AND instr(lower(t.text), lower(:words)) > 0
    ))
ORDER BY coalesce(ended, started, 0) DESC, row DESC LIMIT :limit OFFSET :offset;

-- list_labels --
-- The tool's labels for its sessions.
SELECT DISTINCT label FROM sessions WHERE tool = :tool AND label IS NOT NULL ORDER BY label;

-- list_children --
-- The sessions started by a session, in order.
SELECT row, project, ended, file, turns, tool, native_id, title, cwd, branch, NULL, label, kind, parent, started,
    tool_version, model, tokens_input, tokens_cached, tokens_output
FROM sessions WHERE tool = :tool AND parent = :native_id AND row <> :row ORDER BY started NULLS FIRST, row;

-- sum_active --
-- Active time of sessions in milliseconds. Longer gaps between turns are pauses.
SELECT session, sum(gap) FROM (
    SELECT session, time - lag(time) OVER (PARTITION BY session ORDER BY time) AS gap
    FROM turns WHERE session IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) AND time IS NOT NULL
)
WHERE gap BETWEEN 0 AND :pause GROUP BY session;

-- list_last_turns --
-- Last first.
SELECT row, seq, native_id, speaker, trust, flags, time, author, text, tools FROM turns
WHERE session = :session ORDER BY seq DESC LIMIT :limit;

-- list_session_rows --
-- Most recently active first.
SELECT row FROM sessions ORDER BY coalesce(ended, started, 0) DESC, row DESC;

-- count_sessions --
-- By tool. With the index, each row would be looked up individually.
SELECT tool, count(*), sum(turns), min(started), max(ended) FROM sessions NOT INDEXED GROUP BY tool ORDER BY count(*) DESC, tool;

-- list_turns --
-- In order.
SELECT row, seq, native_id, speaker, trust, flags, time, author, text, tools FROM turns
WHERE session = :session AND seq >= :first ORDER BY seq LIMIT :limit;

-- find_turn_in_session --
-- The position of a turn.
SELECT seq FROM turns WHERE session = :session AND native_id = :native_id;

-- find_turns --
-- By row.
SELECT t.row, t.session, t.seq, t.native_id, t.speaker, t.trust, t.flags, t.time, t.author, t.text, coalesce(t.tools, '')
FROM turns t WHERE t.row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) ORDER BY t.row;

-- find_places --
-- Positions of turns.
SELECT row, session, seq FROM turns WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- find_sessions_of --
-- The sessions of some turns.
SELECT row, tool, native_id, project, title, started, kind FROM sessions
WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- list_authors --
-- One index lookup for each, because there are few.
WITH RECURSIVE named (author) AS (
    SELECT min(author) FROM turns WHERE author IS NOT NULL
    UNION ALL
    SELECT (SELECT min(t.author) FROM turns t WHERE t.author > named.author) FROM named WHERE named.author IS NOT NULL
)
SELECT author FROM named WHERE author IS NOT NULL;

-- list_projects_named --
-- Of sessions or memories, with one lookup for each project of sessions.
WITH RECURSIVE named (project) AS (
    SELECT min(project) FROM sessions WHERE project IS NOT NULL
    UNION ALL
    SELECT (SELECT min(s.project) FROM sessions s WHERE s.project > named.project) FROM named
    WHERE named.project IS NOT NULL
)
SELECT project FROM named WHERE project IS NOT NULL
UNION SELECT project FROM active_memories WHERE project IS NOT NULL;

-- find_cursor --
-- The position up to which a file was read.
SELECT tool, inode, "offset", size, mtime_ns, fingerprint, carry FROM transcript_cursors WHERE path = :path;

-- list_cursors --
-- All files that were read.
SELECT path, tool, size, mtime_ns, unknown, corrupt FROM transcript_cursors ORDER BY path;

-- save_cursor --
-- In the transaction with the turns. If reading continued, the counts are added.
INSERT INTO transcript_cursors (path, tool, inode, "offset", size, mtime_ns, fingerprint, carry, unknown, corrupt)
VALUES (:path, :tool, :inode, :offset, :size, :mtime_ns, :fingerprint, :carry, :unknown, :corrupt)
ON CONFLICT (path) DO UPDATE SET
    tool = :tool, inode = :inode, "offset" = :offset, size = :size, mtime_ns = :mtime_ns, fingerprint = :fingerprint,
    carry = :carry, corrupt = iif(:goes_on, corrupt, 0) + :corrupt,
    unknown = iif(
        :goes_on,
        (
            SELECT json_group_object(record, times) FROM (
                SELECT record, sum(times) AS times FROM (
                    SELECT key AS record, value AS times FROM json_each(transcript_cursors.unknown)
                    UNION ALL SELECT key, value FROM json_each(:unknown)
                ) GROUP BY record
            )
        ),
        :unknown
    );

-- save_ingest --
-- An ingest run.
INSERT INTO ingest_log (id, started, finished, files, sessions, turns, memories, skipped)
VALUES (:id, :started, :finished, :files, :sessions, :turns, :memories, :skipped)
ON CONFLICT (id) DO UPDATE SET
    started = excluded.started, finished = excluded.finished, files = excluded.files, sessions = excluded.sessions,
    turns = excluded.turns, memories = excluded.memories, skipped = excluded.skipped;

-- last_ingest --
-- For health checks.
SELECT started, finished, files, sessions, turns, memories, skipped FROM ingest_log ORDER BY started DESC, id DESC LIMIT 1;

-- list_identities --
-- Whether a tool's turns are identified by the tool's id alone, or also by their session.
SELECT seq, identity FROM turns WHERE session = :session ORDER BY seq;

-- list_folders --
-- The working directories of sessions.
SELECT DISTINCT cwd FROM sessions WHERE cwd IS NOT NULL ORDER BY cwd;

-- list_without_folder --
-- Sessions of a tool without a working directory.
SELECT row FROM sessions WHERE tool = :tool AND cwd IS NULL AND file IS NOT NULL;

-- list_versions_of_files --
-- The tool version that last wrote to each transcript.
SELECT file, tool_version FROM sessions WHERE file IS NOT NULL AND tool_version IS NOT NULL ORDER BY ended NULLS FIRST, row;

-- list_heard --
-- The latest main sessions of each tool, and whether the owner spoke in them, apart from the host's noise and
-- messages to sub-agents. Turns are read only for the requested sessions, which the inner LIMIT selects first.
SELECT tool, tool_version, EXISTS (
    SELECT 1 FROM turns t WHERE t.session = s.row AND t.speaker = 'owner' AND t.flags & 2 = 0 AND t.text <> ''
) FROM (SELECT DISTINCT tool AS name FROM sessions) JOIN sessions s ON s.row IN (
    SELECT row FROM (
        SELECT row, turns FROM sessions WHERE tool = name AND kind = 'main'
        ORDER BY coalesce(started, ended, 0) DESC, row DESC LIMIT -1
    ) o
    WHERE turns = 0 OR EXISTS (SELECT 1 FROM turns t WHERE t.session = o.row AND t.flags & 8 = 0)
    LIMIT :latest
) ORDER BY tool, coalesce(started, ended, 0) DESC, row DESC;

-- list_unknown_senders --
-- Direct senders in chats that are not known to be the owner.
SELECT author, count(*) FROM turns
WHERE author IS NOT NULL AND speaker = 'owner' AND trust = 'untrusted'
GROUP BY author ORDER BY count(*) DESC, author LIMIT 10;

-- list_turns_after --
-- The next turns by row.
SELECT row FROM turns WHERE row > :after ORDER BY row LIMIT :limit;
