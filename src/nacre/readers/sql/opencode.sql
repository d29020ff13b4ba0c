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

-- opencode_session_v2 --
-- The facts of a session of version 2.
SELECT * FROM session_v2 WHERE id = :session;

-- opencode_2_sessions --
-- All sessions of version 2, oldest first, with values that change when the session or a message changes. Messages are
-- updated in place.
SELECT s.id, s.time_updated, count(m.id), sum(m.time_updated)
FROM session_v2 AS s LEFT JOIN session_message AS m ON m.session_id = s.id
GROUP BY s.id ORDER BY s.time_created, s.id;

-- opencode_2_messages --
-- The messages of a session of version 2, in order. A fork starts with copies of the original's messages up to the
-- boundary, with the same positions and times.
SELECT id, type, time_created, data FROM session_message AS message
WHERE session_id = :session
    AND seq > coalesce((SELECT seq FROM session_message WHERE session_id = :original AND id = :boundary), -1)
    AND NOT EXISTS (
        SELECT 1 FROM session_message AS copied
        WHERE copied.session_id = :original AND copied.seq = message.seq AND copied.type = message.type
            AND copied.time_created = message.time_created
    )
ORDER BY seq;
