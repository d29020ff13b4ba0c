-- openclaw_sessions --
-- All sessions, with the number of the last event and a mark that changes if that event is replaced. The query skips
-- along the primary key.
WITH RECURSIVE known (id) AS (
    SELECT min(session_id) FROM transcript_events
    UNION ALL
    SELECT (SELECT min(session_id) FROM transcript_events WHERE session_id > id) FROM known WHERE id IS NOT NULL
)
SELECT
    id, (SELECT max(seq) FROM transcript_events WHERE session_id = id),
    (
        SELECT rowid || ' ' || created_at || ' ' || coalesce(octet_length(event_json), 0)
        FROM transcript_events WHERE session_id = id ORDER BY seq DESC LIMIT 1
    )
FROM known WHERE id IS NOT NULL;

-- openclaw_events --
-- Some events of a session, in order.
SELECT seq, event_json FROM transcript_events WHERE session_id = :session AND seq > :seq ORDER BY seq LIMIT 500;

-- openclaw_packed_events --
-- Some events of a session, in order, if large events are compressed.
SELECT seq, event_json, event_zstd FROM transcript_events
WHERE session_id = :session AND seq > :seq ORDER BY seq LIMIT 500;

-- openclaw_archives --
-- Reset or deleted sessions, without their events.
SELECT session_id, generation, encoding, octet_length(archive_blob) FROM session_transcript_archives
ORDER BY created_at, session_id;

-- openclaw_archive --
-- The lines of a reset or deleted session.
SELECT archive_blob FROM session_transcript_archives WHERE session_id = :session AND generation = :generation;

-- openclaw_cold_archives --
-- Sessions in cold storage, which are not read.
SELECT session_id, generation FROM session_transcript_cold_archives;

-- openclaw_window --
-- The facts of a session. Columns differ between versions.
SELECT * FROM session_windows WHERE session_id = :session;

-- openclaw_session_of_key --
-- The newest session with a key.
SELECT session_id FROM session_windows WHERE session_key = :key ORDER BY rowid DESC LIMIT 1;
