-- State: statements that may matter and wait for a writer, for the owner to say them again, or for the owner's review.
-- ``memory`` is the memory that it would be, as JSON. ``hash`` is of its words within a project. What the owner dropped
-- keeps its row without its words, so that it is not found again.
CREATE TABLE candidates (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    session TEXT,
    why TEXT NOT NULL,
    detail TEXT,
    score REAL NOT NULL,
    found INTEGER NOT NULL,
    dropped INTEGER,
    memory TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX candidates_session ON candidates (session);
