-- What became of each item that a session received without asking. Sessions and pointers are stored as hashes.
CREATE TABLE effects (
    item TEXT NOT NULL,                      -- a memory's id, or a hash of a pointer's session and turn
    session TEXT NOT NULL,
    outcome TEXT NOT NULL,                   -- 'followed', 'broken' or 'untouched'
    at INTEGER NOT NULL,
    project TEXT NOT NULL DEFAULT '',        -- of a pointer; '' for a memory
    PRIMARY KEY (item, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX effects_project ON effects (project, at) WHERE project <> '';
