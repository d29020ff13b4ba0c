-- crush_sessions --
-- All sessions, with the time and the number of the last change, which can be in the last message.
SELECT
    id, updated_at, message_count,
    (
        SELECT rowid || ' ' || octet_length(parts) FROM messages
        WHERE session_id = sessions.id ORDER BY rowid DESC LIMIT 1
    )
FROM sessions ORDER BY rowid;

-- crush_session --
-- The facts of a session.
SELECT * FROM sessions WHERE id = :name;

-- crush_messages --
-- The messages of a session, in order. Columns differ between versions.
SELECT * FROM messages WHERE session_id = :name ORDER BY created_at, rowid;
