-- State: symbols of repositories, and who calls, imports and inherits what. Names, paths and lines; no contents.
CREATE TABLE code_projects (
    row INTEGER PRIMARY KEY,
    project TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    read_at INTEGER NOT NULL,
    is_linked INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE code_files (
    row INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES code_projects (row) ON DELETE CASCADE,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    language TEXT NOT NULL,
    hash BLOB NOT NULL,
    facts BLOB NOT NULL,
    UNIQUE (project, path)
) STRICT;
CREATE INDEX code_files_name ON code_files (name);

-- A file is a symbol, too, with an empty name.
CREATE TABLE code_symbols (
    row INTEGER PRIMARY KEY,
    file INTEGER NOT NULL REFERENCES code_files (row) ON DELETE CASCADE,
    name TEXT NOT NULL COLLATE NOCASE,
    qualified TEXT NOT NULL,
    kind TEXT NOT NULL,
    line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    UNIQUE (file, qualified)
) STRICT;
CREATE INDEX code_symbols_name ON code_symbols (name);

CREATE TABLE code_edges (
    target INTEGER NOT NULL REFERENCES code_symbols (row) ON DELETE CASCADE,
    rel TEXT NOT NULL,
    source INTEGER NOT NULL REFERENCES code_symbols (row) ON DELETE CASCADE,
    line INTEGER NOT NULL,
    PRIMARY KEY (target, rel, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX code_edges_source ON code_edges (source);

-- What files import that is not of their repository.
CREATE TABLE code_outside (
    module TEXT NOT NULL,
    file INTEGER NOT NULL REFERENCES code_files (row) ON DELETE CASCADE,
    line INTEGER NOT NULL,
    PRIMARY KEY (module, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX code_outside_file ON code_outside (file);

-- Index: files and symbols that memories name, by the last part of the name. A memory that is written anew is read anew.
CREATE TABLE code_mentions (
    key TEXT NOT NULL,
    memory TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    written TEXT NOT NULL,
    manner TEXT NOT NULL,
    PRIMARY KEY (key, memory, written)
) STRICT, WITHOUT ROWID;
CREATE INDEX code_mentions_memory ON code_mentions (memory);

CREATE TABLE code_mentions_read (
    memory TEXT PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
