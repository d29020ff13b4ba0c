-- list_archived --
-- All transcripts, last changed first.
SELECT path, tool, kind, pack, until, size, raw, inode, fingerprint, changed, withheld FROM archived
ORDER BY changed DESC, path DESC;

-- find_archived --
-- The archive state of a transcript.
SELECT path, tool, kind, pack, until, size, raw, inode, fingerprint, changed, withheld FROM archived
WHERE path = :path;

-- find_archived_below --
-- Any path in a folder. "0" is the character after the slash.
SELECT 1 FROM archived WHERE path >= :start AND path < :end LIMIT 1;

-- save_archived --
-- The archive state of a transcript.
INSERT INTO archived (path, tool, kind, pack, until, size, raw, inode, fingerprint, changed, withheld)
VALUES (:path, :tool, :kind, :pack, :until, :size, :raw, :inode, :fingerprint, :changed, :withheld)
ON CONFLICT (path) DO UPDATE SET
    tool = excluded.tool, kind = excluded.kind, pack = excluded.pack, until = excluded.until, size = excluded.size,
    raw = excluded.raw, inode = excluded.inode, fingerprint = excluded.fingerprint, changed = excluded.changed,
    withheld = max(archived.withheld, excluded.withheld);

-- clear_archived --
-- Before all packs are read again.
DELETE FROM archived;

-- withhold_archived --
-- Archive only the indexed text, because the transcript contains forgotten or excluded content.
INSERT INTO archived (path, tool, kind, withheld) VALUES (:path, :tool, 'turns', 1)
ON CONFLICT (path) DO UPDATE SET withheld = 1, changed = -1;

-- list_archive_due --
-- Transcripts that were read further than archived, oldest first, because tools delete the oldest first.
SELECT c.path, c.tool, c.inode, c.size, c.mtime_ns FROM transcript_cursors c LEFT JOIN archived a ON a.path = c.path
WHERE a.row IS NULL OR c.mtime_ns != a.changed OR c.inode != a.inode
ORDER BY c.mtime_ns, c.path;

-- list_session_rows_of_file --
-- Sessions read from a file, in order of reading.
SELECT row FROM sessions WHERE tool = :tool AND file = :file ORDER BY row;

-- move_cursor --
-- The transcript was rewritten. The counts stay.
UPDATE transcript_cursors SET
    inode = :inode, "offset" = :offset, size = :size, mtime_ns = :mtime_ns, fingerprint = :fingerprint
WHERE path = :path;
