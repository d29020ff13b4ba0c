-- Index: memories that may be out of date, as was found last: how sure that is (0 to 1), and why. It holds as long as
-- the memory was not written anew since (epoch milliseconds).
CREATE TABLE stale_memories (
    memory TEXT PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    updated INTEGER NOT NULL,
    confidence REAL NOT NULL,
    detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;
