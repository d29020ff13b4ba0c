-- goose_sessions --
-- All sessions, with the time and the number of the last message.
SELECT
    id, updated_at,
    (SELECT count(*) || ' ' || coalesce(max(messages.id), 0) FROM messages WHERE session_id = sessions.id)
FROM sessions ORDER BY rowid;

-- goose_session --
-- The facts of a session. Columns differ between versions.
SELECT * FROM sessions WHERE id = :name;

-- goose_messages --
-- The messages of a session, in order.
SELECT * FROM messages WHERE session_id = :name ORDER BY created_timestamp, id;
