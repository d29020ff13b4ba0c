-- Index: what the ledger says of forgetting, so that a lookup reads no file. Rebuilt from the ledger.

-- One thing that must not come back. ``value`` is a session's or memory's id, a keyed hash of a turn or of words, a time
-- (with a keyed hash of a project), or a key itself. ``owner`` is the session of a turn, the memory of words.
CREATE TABLE tombstones (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    run TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (kind, value, run)
) STRICT, WITHOUT ROWID;

-- Subjects that are retired whenever they are stored.
CREATE TABLE standing_retirements (
    id TEXT PRIMARY KEY,
    pattern TEXT NOT NULL,
    match TEXT NOT NULL,
    canonical_key TEXT,
    reason TEXT,
    contexts TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was last read of the ledger, and what forgetting has left to do.
CREATE TABLE forgetting_values (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
