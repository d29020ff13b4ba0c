-- hermes_sessions --
SELECT session_id, max(id), count(*) FROM messages GROUP BY session_id;

-- hermes_session --
SELECT * FROM sessions WHERE id = :name;

-- hermes_messages --
SELECT * FROM messages WHERE session_id = :name ORDER BY id;
