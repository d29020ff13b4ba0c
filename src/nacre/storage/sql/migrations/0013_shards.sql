-- Full text of many turns: files beside the database hold the words of turns that left turns_fts.

-- A shard is made once and never changed; what takes its place has another name. It holds the turns that were there
-- from row ``first`` to row ``last`` when it was made. ``identity`` names its format and the rules its words were made by.
CREATE TABLE shards (
    name TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    words INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How often each word is in a turn of a shard, for exact scores (see storage/word_counts.py), and where the turn stands:
-- a search reads this and not the turns themselves.
CREATE TABLE turn_words (
    turn INTEGER PRIMARY KEY REFERENCES turns (row) ON DELETE CASCADE,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    words BLOB NOT NULL
) STRICT;

-- Every identifier in the turns of shards, once, to be found by a part of it.
CREATE TABLE names (
    row INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE VIRTUAL TABLE names_parts USING fts5 (
    name, content = '', contentless_delete = 1, tokenize = 'trigram'
);

-- Sessions whose project was learned after a shard was made: its marks do not know.
CREATE TABLE sessions_moved (
    session INTEGER PRIMARY KEY REFERENCES sessions (row) ON DELETE CASCADE
) STRICT;
CREATE TRIGGER sessions_move AFTER UPDATE OF project ON sessions WHEN old.project IS NOT new.project
BEGIN
    INSERT OR IGNORE INTO sessions_moved (session) VALUES (new.row);
END;

CREATE INDEX sessions_project ON sessions (project) WHERE project IS NOT NULL;
