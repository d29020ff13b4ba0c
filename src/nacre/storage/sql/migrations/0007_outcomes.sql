-- State: what became of memories that were accepted while another writer was at work, for whoever stored them.
CREATE TABLE outcomes (
    memory TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    told TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX outcomes_at ON outcomes (at);
