-- Index of the archive: what its packs hold. All of it can be read from the packs, but what is withheld or pruned.

CREATE TABLE archived (
    row INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    tool TEXT NOT NULL,
    kind TEXT NOT NULL,
    pack TEXT,
    until INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    raw INTEGER NOT NULL DEFAULT 0,
    inode INTEGER NOT NULL DEFAULT 0,
    fingerprint TEXT NOT NULL DEFAULT '',
    changed INTEGER NOT NULL DEFAULT 0,
    withheld INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX archived_fingerprint ON archived (fingerprint);

CREATE TABLE archive_segments (
    archived INTEGER NOT NULL REFERENCES archived (row) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    start INTEGER NOT NULL,
    until INTEGER NOT NULL,
    digest BLOB NOT NULL,
    is_copy INTEGER NOT NULL,
    PRIMARY KEY (archived, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX archive_segments_digest ON archive_segments (digest);
