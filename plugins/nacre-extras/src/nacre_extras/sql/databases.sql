-- session --
-- The facts of a session. Columns differ between versions.
SELECT * FROM sessions WHERE id = :name;

-- crush_sessions --
-- All sessions, with the time and the number of the last change, which can be in the last message.
SELECT
    id, updated_at, message_count,
    (
        SELECT rowid || ' ' || octet_length(parts) FROM messages
        WHERE session_id = sessions.id ORDER BY rowid DESC LIMIT 1
    )
FROM sessions ORDER BY rowid;

-- crush_messages --
-- The messages of a session, in order. Columns differ between versions.
SELECT * FROM messages WHERE session_id = :name ORDER BY created_at, rowid;

-- goose_sessions --
-- All sessions, with the time and the number of the last message.
SELECT
    id, updated_at,
    (SELECT count(*) || ' ' || coalesce(max(messages.id), 0) FROM messages WHERE session_id = sessions.id)
FROM sessions ORDER BY rowid;

-- goose_messages --
-- The messages of a session, in order.
SELECT * FROM messages WHERE session_id = :name ORDER BY created_timestamp, id;

-- hermes_sessions --
SELECT session_id, max(id), count(*) FROM messages GROUP BY session_id;

-- hermes_messages --
SELECT * FROM messages WHERE session_id = :name ORDER BY id;

-- zed_threads --
-- All threads, with a mark that changes when a thread is saved.
SELECT id, updated_at, octet_length(data) FROM threads ORDER BY rowid;

-- zed_thread --
-- A thread. Columns differ between versions.
SELECT * FROM threads WHERE id = :name;
