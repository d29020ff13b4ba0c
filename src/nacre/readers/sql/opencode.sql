-- opencode_sessions --
-- Every session with what changes when it is written to; small rows, the oldest first.
SELECT id, time_updated FROM session ORDER BY time_created, id;

-- opencode_messages --
-- The messages of a session in order.
SELECT id, time_created, data FROM message WHERE session_id = :session ORDER BY time_created, id;

-- opencode_parts --
-- The parts of a message in order: ids sort by time.
SELECT id, data FROM part WHERE message_id = :message ORDER BY id;

-- opencode_last_part --
-- The newest part: ids sort by time.
SELECT max(id) FROM part;

-- opencode_written --
-- Sessions to which parts were added after one.
SELECT DISTINCT session_id FROM part WHERE id > :part;

-- opencode_session --
-- All that is known of a session; its columns differ from version to version.
SELECT * FROM session WHERE id = :session;
