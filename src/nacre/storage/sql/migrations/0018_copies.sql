-- Index: a session may lie in several files. Where a file is read as a whole, the ids of the turns that it held then.

CREATE TABLE session_files (
    row INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (row) ON DELETE CASCADE,
    file TEXT NOT NULL,
    held TEXT,
    UNIQUE (session, file)
) STRICT;
CREATE INDEX session_files_file ON session_files (file);
INSERT INTO session_files (session, file) SELECT row, file FROM sessions WHERE file IS NOT NULL;
