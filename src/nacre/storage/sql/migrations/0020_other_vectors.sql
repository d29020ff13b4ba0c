-- The vectors of another model: those that are being made to replace the ones in use, or those that were in use before
-- and are kept to go back to. Each table has the shape of its namesake; replacing is renaming.

CREATE TABLE other_passages (
    row INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    vector BLOB NOT NULL
) STRICT;

CREATE TABLE other_turn_passages (
    passage INTEGER NOT NULL,
    turn INTEGER NOT NULL REFERENCES turns (row) ON DELETE CASCADE,
    PRIMARY KEY (passage, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX other_turn_passages_turn ON other_turn_passages (turn);

CREATE TABLE other_passage_bits (
    first INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    bits BLOB NOT NULL
) STRICT;

CREATE TABLE other_memory_vectors (
    memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (memory, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE other_embedding (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
