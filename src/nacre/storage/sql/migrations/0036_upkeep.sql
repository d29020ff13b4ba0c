-- When each active memory was last said, written down or recalled (epoch milliseconds), and what decides whether a dream
-- may end it.
CREATE VIEW last_uses AS
SELECT m.row, m.id, m.kind, m.subject, m.importance, m.expiry, m.expires_on,
    coalesce(u.recall_count, 0) AS recall_count,
    max(
        m.created, m.updated, coalesce(u.last_recalled, m.created),
        coalesce((SELECT max(c.at) FROM confirmations c WHERE c.memory = m.id), m.created)
    ) AS last_used
FROM active_memories m LEFT JOIN usage u ON u.memory = m.id;

-- The latest sessions of each tool, without a look at all.
CREATE INDEX sessions_latest ON sessions (tool, coalesce(started, ended, 0)) WHERE kind = 'main';

-- Files of the vault that are no memories as they were last seen, and why. Another version may understand them.
CREATE TABLE unreadable_files (
    path TEXT PRIMARY KEY,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    version TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
