-- Index: derived from vault and transcripts, rebuilt by `nacre db rebuild`.

-- A row number is given once: what was computed from a row's words cannot pass to other words.
CREATE TABLE memories (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    content TEXT NOT NULL,
    importance INTEGER NOT NULL,
    expiry TEXT NOT NULL,
    scope TEXT NOT NULL,
    project TEXT,
    inbox INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    valid_since TEXT,
    valid_until TEXT,
    speaker TEXT NOT NULL,
    trust TEXT NOT NULL,
    confidence TEXT NOT NULL,
    confidence_score REAL,
    session TEXT,
    turns TEXT NOT NULL DEFAULT '[]',
    source_file TEXT,
    canonical_key TEXT,
    evergreen INTEGER NOT NULL DEFAULT 0,
    author TEXT,
    triggers TEXT NOT NULL DEFAULT '[]',
    suppressed_contexts TEXT NOT NULL DEFAULT '[]',
    superseded_by TEXT,
    retired_at INTEGER,
    retired_reason TEXT,
    extra TEXT NOT NULL DEFAULT '{}',
    content_hash BLOB NOT NULL
) STRICT;

CREATE INDEX memories_content_hash ON memories (content_hash);
CREATE INDEX memories_canonical_key ON memories (canonical_key, kind) WHERE canonical_key IS NOT NULL;
CREATE INDEX memories_session ON memories (session) WHERE session IS NOT NULL;
CREATE INDEX memories_project ON memories (project, updated);

-- The one way any query reads memories: what is superseded or retired cannot leak.
CREATE VIEW active_memories AS
    SELECT * FROM memories WHERE superseded_by IS NULL AND retired_at IS NULL;

CREATE TABLE tags (
    memory TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (memory, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_tag ON tags (tag);

CREATE TABLE links (
    source TEXT NOT NULL,
    rel TEXT NOT NULL,
    target TEXT NOT NULL,
    origin TEXT NOT NULL DEFAULT 'manual',
    strength REAL NOT NULL DEFAULT 1.0,
    valid_since TEXT,
    valid_until TEXT,
    PRIMARY KEY (source, rel, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_target ON links (target);

CREATE TABLE vault_files (
    path TEXT PRIMARY KEY,
    memory TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX vault_files_memory ON vault_files (memory);

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    mtime_ns INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE project_keys (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    project TEXT NOT NULL,
    PRIMARY KEY (key, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    row INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    native_id TEXT NOT NULL,
    project TEXT,
    title TEXT,
    cwd TEXT,
    branch TEXT,
    kind TEXT NOT NULL,
    parent TEXT,
    started INTEGER,
    ended INTEGER,
    tool_version TEXT,
    model TEXT,
    file TEXT,
    turns INTEGER NOT NULL DEFAULT 0,
    extracted INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tool, native_id)
) STRICT;
CREATE INDEX sessions_started ON sessions (started);

CREATE TABLE turns (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (row) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    native_id TEXT NOT NULL,
    identity BLOB NOT NULL UNIQUE,
    speaker TEXT NOT NULL,
    trust TEXT NOT NULL,
    flags INTEGER NOT NULL,
    time INTEGER,
    author TEXT,
    text TEXT NOT NULL,
    tools TEXT,
    UNIQUE (session, seq)
) STRICT;

CREATE INDEX turns_author ON turns (author) WHERE author IS NOT NULL;

CREATE VIRTUAL TABLE memories_fts USING fts5 (
    subject, content, tags,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE memories_parts USING fts5 (
    identifiers, content = '', contentless_delete = 1, tokenize = 'trigram'
);
CREATE VIRTUAL TABLE turns_fts USING fts5 (
    said, did,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE turns_parts USING fts5 (
    identifiers, content = '', contentless_delete = 1, tokenize = 'trigram'
);
CREATE VIRTUAL TABLE turns_terms USING fts5vocab (turns_fts, row);
CREATE VIRTUAL TABLE memories_terms USING fts5vocab (memories_fts, row);

-- A passage is a piece of text short enough for the embedding model, kept once however often it was said.
CREATE TABLE passages (
    row INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    vector BLOB NOT NULL
) STRICT;

CREATE TABLE turn_passages (
    passage INTEGER NOT NULL,
    turn INTEGER NOT NULL REFERENCES turns (row) ON DELETE CASCADE,
    PRIMARY KEY (passage, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_passages_turn ON turn_passages (turn);

-- Sign bits of passages first .. first + count - 1, packed: a whole index is scanned in a few milliseconds.
CREATE TABLE passage_bits (
    first INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    bits BLOB NOT NULL
) STRICT;

CREATE TABLE memory_vectors (
    memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (memory, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE embedding (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- State: not derived from anything.

CREATE TABLE usage (
    memory TEXT PRIMARY KEY,
    recall_count INTEGER NOT NULL DEFAULT 0,
    last_recalled INTEGER,
    recall_intervals TEXT NOT NULL DEFAULT '[]',
    confirmations INTEGER NOT NULL DEFAULT 0,
    contradictions INTEGER NOT NULL DEFAULT 0,
    quality REAL NOT NULL DEFAULT 0.5,
    access_count INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE transcript_cursors (
    path TEXT PRIMARY KEY,
    tool TEXT NOT NULL,
    inode INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    carry TEXT NOT NULL,
    unknown TEXT NOT NULL DEFAULT '{}',
    corrupt INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE ingest_log (
    id TEXT PRIMARY KEY,
    started INTEGER NOT NULL,
    finished INTEGER,
    files INTEGER NOT NULL DEFAULT 0,
    sessions INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    memories INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- A write to the vault that is durable here and perhaps not yet in its file.
CREATE TABLE intents (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    action TEXT NOT NULL,
    path TEXT NOT NULL,
    document TEXT,
    base BLOB,
    memory TEXT
) STRICT;
CREATE INDEX intents_path ON intents (path);
