-- opencode_sessions --
-- All sessions, oldest first, with a time that changes when the session changes.
SELECT id, time_updated FROM session ORDER BY time_created, id;

-- opencode_messages --
-- The messages of a session, in order.
SELECT id, time_created, data FROM message WHERE session_id = :session ORDER BY time_created, id;

-- opencode_parts --
-- The parts of a message, in order, because ids sort by time.
SELECT id, data FROM part WHERE message_id = :message ORDER BY id;

-- opencode_last_part --
-- The newest part, because ids sort by time.
SELECT max(id) FROM part;

-- opencode_written --
-- Sessions with parts that are newer than a part.
SELECT DISTINCT session_id FROM part WHERE id > :part;

-- opencode_session --
-- The facts of a session. Columns differ between versions.
SELECT * FROM session WHERE id = :session;
