-- Why a link was made, where that is worth knowing.
ALTER TABLE links ADD COLUMN reason TEXT;

-- Where a memory was said again; front matter is the truth.
CREATE TABLE confirmations (
    memory TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    at INTEGER NOT NULL,
    session TEXT,
    turns TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (memory, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX confirmations_session ON confirmations (session) WHERE session IS NOT NULL;

-- MinHash signatures: 128 numbers of 32 bits.
CREATE TABLE signatures (
    memory INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
    numbers BLOB NOT NULL
) STRICT;

-- State: memories that were learned or stored and not yet compared with others by meaning.
CREATE TABLE unsettled (
    memory TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- For questions about the past: also what was superseded since. What was retired stays out here, too.
CREATE VIEW past_memories AS
    SELECT * FROM memories WHERE retired_at IS NULL;
