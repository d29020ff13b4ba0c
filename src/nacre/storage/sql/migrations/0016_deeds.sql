-- Index: what agents did, apart from what was said: the files they read and edited, and what failed.

CREATE TABLE files (
    row INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL
) STRICT;
CREATE INDEX files_name ON files (name);

CREATE TABLE file_uses (
    file INTEGER NOT NULL REFERENCES files (row) ON DELETE CASCADE,
    turn INTEGER NOT NULL REFERENCES turns (row) ON DELETE CASCADE,
    action TEXT NOT NULL,
    PRIMARY KEY (file, turn, action)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_uses_turn ON file_uses (turn);

-- A path may tell what was to be forgotten: it goes with the last turn that names it.
CREATE TRIGGER file_uses_deleted AFTER DELETE ON file_uses
WHEN NOT EXISTS (SELECT 1 FROM file_uses u WHERE u.file = OLD.file)
BEGIN
    DELETE FROM files WHERE row = OLD.file;
END;

-- The calls of a turn that failed: what was tried, and what it said. A row has the number of its turn.
CREATE VIRTUAL TABLE failures_fts USING fts5 (
    tried, error,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER turns_deleted_failures AFTER DELETE ON turns WHEN OLD.tools IS NOT NULL
BEGIN
    DELETE FROM failures_fts WHERE rowid = OLD.row;
END;

-- Turns up to this row were stored before there were deeds: they are looked through when somebody asks.
CREATE TABLE deeds_behind (
    after INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT;
INSERT INTO deeds_behind (after, until) SELECT 0, max(row) FROM turns HAVING max(row) IS NOT NULL;
