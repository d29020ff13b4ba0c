-- next_turn_row --
-- Later rows are new and did not belong to deleted turns. The writer of turns holds the tenant's lock.
SELECT max(coalesce((SELECT max(row) FROM turns), 0), coalesce((SELECT row FROM last_turns), 0)) + 1;

-- count_sessions --
-- By tool.
SELECT tool, count(*), sum(turns), min(started), max(ended) FROM sessions GROUP BY tool ORDER BY count(*) DESC, tool;

-- save_cursor --
-- In one transaction with its turns. A continued reading adds to the counts.
INSERT INTO transcript_cursors (path, tool, inode, "offset", size, mtime_ns, fingerprint, carry, unknown, corrupt)
VALUES (:path, :tool, :inode, :offset, :size, :mtime_ns, :fingerprint, :carry, :unknown, :corrupt)
ON CONFLICT (path) DO UPDATE SET
    tool = :tool, inode = :inode, "offset" = :offset, size = :size, mtime_ns = :mtime_ns, fingerprint = :fingerprint,
    carry = :carry, corrupt = CASE WHEN :goes_on = 1 THEN transcript_cursors.corrupt ELSE 0 END + :corrupt,
    unknown = CASE WHEN :goes_on = 1 THEN counts_added(transcript_cursors.unknown, :unknown) ELSE :unknown END;
