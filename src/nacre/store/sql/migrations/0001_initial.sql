-- Index: read from vault and transcripts, rebuilt by `nacre admin db rebuild`.

-- Row numbers are never reused, so data derived from a row's text never refers to another text.
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
    content_hash BLOB NOT NULL,
    expires_on TEXT,                         -- first day on which recall and context omit it
    proposed INTEGER NOT NULL DEFAULT 0      -- stored by an agent, neither stated nor kept by the owner
) STRICT;
CREATE INDEX memories_content_hash ON memories (content_hash);
CREATE INDEX memories_canonical_key ON memories (canonical_key, kind) WHERE canonical_key IS NOT NULL;
CREATE INDEX memories_session ON memories (session) WHERE session IS NOT NULL;
CREATE INDEX memories_project ON memories (project, updated);
CREATE INDEX memories_superseded_by ON memories (superseded_by) WHERE superseded_by IS NOT NULL;

-- All queries read memories here, so that superseded and retired ones never appear.
CREATE VIEW active_memories AS
    SELECT * FROM memories WHERE superseded_by IS NULL AND retired_at IS NULL;

-- For questions about the past: includes superseded memories, but not retired ones.
CREATE VIEW past_memories AS
    SELECT * FROM memories WHERE retired_at IS NULL;

CREATE TABLE tags (
    memory TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (memory, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_tag ON tags (tag);

-- A link without a strength has the default, .5.
CREATE TABLE links (
    source TEXT NOT NULL,
    rel TEXT NOT NULL,
    target TEXT NOT NULL,
    origin TEXT NOT NULL DEFAULT 'manual',
    strength REAL,
    valid_since TEXT,
    valid_until TEXT,
    reason TEXT,
    PRIMARY KEY (source, rel, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_target ON links (target);
CREATE INDEX links_origin ON links (origin);

-- Names of memories.
CREATE TABLE memory_names (
    name TEXT NOT NULL,
    memory TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    written TEXT NOT NULL,
    is_alias INTEGER NOT NULL,
    PRIMARY KEY (name, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_names_memory ON memory_names (memory);

-- Names of other memories in bodies: [[name]].
CREATE TABLE mentions (
    source TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (source, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX mentions_name ON mentions (name);

-- Where a memory was stated again. Front matter takes precedence.
CREATE TABLE confirmations (
    memory TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    at INTEGER NOT NULL,
    session TEXT,
    turns TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (memory, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX confirmations_session ON confirmations (session) WHERE session IS NOT NULL;

-- The claim of each memory. Front matter takes precedence.
CREATE TABLE claims (
    memory TEXT PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    entity TEXT NOT NULL,
    attribute TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    confidence REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_entity ON claims (entity, attribute);
CREATE INDEX claims_attribute ON claims (attribute);

-- Memories that may be out of date (confidence 0 to 1), until they are rewritten.
CREATE TABLE stale_memories (
    memory TEXT PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    updated INTEGER NOT NULL,
    confidence REAL NOT NULL,
    detail TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE vault_files (
    path TEXT PRIMARY KEY,
    memory TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX vault_files_memory ON vault_files (memory);

-- Vault files that this version of nacre cannot read as memories, and the reasons.
CREATE TABLE unreadable_files (
    path TEXT PRIMARY KEY,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    version TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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

-- Dependencies on a project's page, by name.
CREATE TABLE project_dependencies (
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

-- Names that resolve to a project and are no project's own name.
CREATE VIEW other_names AS
SELECT k.value AS name, p.slug FROM project_keys k JOIN projects p ON p.id = k.project
WHERE k.key = 'alias' AND k.value NOT IN (SELECT slug FROM projects);

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
    tokens_input INTEGER,
    tokens_cached INTEGER,
    tokens_output INTEGER,
    unwritten INTEGER,                       -- first turn for a writer, once the session is over
    asked INTEGER,                           -- last call of a writer
    met_as TEXT,                             -- former name of its project, if different
    label TEXT,                              -- the tool's label in addition to the title: a room, a conversation
    UNIQUE (tool, native_id)
) STRICT;
CREATE INDEX sessions_started ON sessions (started);
CREATE INDEX sessions_project ON sessions (project) WHERE project IS NOT NULL;
CREATE INDEX sessions_latest ON sessions (tool, coalesce(started, ended, 0)) WHERE kind = 'main';
CREATE INDEX sessions_labels ON sessions (tool, label) WHERE label IS NOT NULL;

-- The files of each session. ``held`` has the ids of its turns if a file is read completely.
CREATE TABLE session_files (
    row INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (row) ON DELETE CASCADE,
    file TEXT NOT NULL,
    held TEXT,
    UNIQUE (session, file)
) STRICT;
CREATE INDEX session_files_file ON session_files (file);

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

-- Files that agents read and edited.
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

-- A path may reveal forgotten text, so it is deleted with the last turn that names it.
CREATE TRIGGER file_uses_deleted AFTER DELETE ON file_uses
WHEN NOT EXISTS (SELECT 1 FROM file_uses u WHERE u.file = OLD.file)
BEGIN
    DELETE FROM files WHERE row = OLD.file;
END;

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

-- The failed calls of a turn, by the turn's row: call and error.
CREATE VIRTUAL TABLE failures_fts USING fts5 (
    tried, error,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER turns_deleted_failures AFTER DELETE ON turns WHEN OLD.tools IS NOT NULL
BEGIN
    DELETE FROM failures_fts WHERE rowid = OLD.row;
END;

-- A passage is a text short enough for the embedding model, stored once however many turns contain it.
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

-- Sign bits of passages first .. first + count - 1, packed, so that all are compared in a few milliseconds.
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

-- The vectors of another model, in tables of the same shape, so that renaming replaces one model by the other.
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

-- Contents of the archive's packs. Everything not withheld or pruned can be read from them again.
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

-- An item that must not return according to the ledger: an id, a keyed hash of a turn or text, a time, or a key.
CREATE TABLE tombstones (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    run TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '',          -- session of a turn, memory of a text
    PRIMARY KEY (kind, value, run)
) STRICT, WITHOUT ROWID;

-- Subjects that are always retired when stored.
CREATE TABLE standing_retirements (
    id TEXT PRIMARY KEY,
    pattern TEXT NOT NULL,
    match TEXT NOT NULL,
    canonical_key TEXT,
    reason TEXT,
    contexts TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The part of the ledger read, and unfinished work of forgetting.
CREATE TABLE forgetting_values (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Symbols of repositories with calls, imports and inheritance: names, paths and lines, no contents.
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

-- A file is a symbol with an empty name.
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

-- Imports from outside the repository.
CREATE TABLE code_outside (
    module TEXT NOT NULL,
    file INTEGER NOT NULL REFERENCES code_files (row) ON DELETE CASCADE,
    line INTEGER NOT NULL,
    PRIMARY KEY (module, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX code_outside_file ON code_outside (file);

-- Files and symbols that memories mention, by the last part of the name.
CREATE TABLE code_mentions (
    key TEXT NOT NULL,
    memory TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    written TEXT NOT NULL,
    manner TEXT NOT NULL,
    PRIMARY KEY (key, memory, written)
) STRICT, WITHOUT ROWID;
CREATE INDEX code_mentions_memory ON code_mentions (memory);

-- Memories searched for mentions. A rewritten memory is searched again.
CREATE TABLE code_mentions_read (
    memory TEXT PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- State that is not derived from other data.

CREATE TABLE usage (
    memory TEXT PRIMARY KEY,
    recall_count INTEGER NOT NULL DEFAULT 0,
    last_recalled INTEGER,
    recall_intervals TEXT NOT NULL DEFAULT '[]',
    confirmations INTEGER NOT NULL DEFAULT 0,
    contradictions INTEGER NOT NULL DEFAULT 0,
    quality REAL NOT NULL DEFAULT 0.5,
    access_count INTEGER NOT NULL DEFAULT 0,
    steps INTEGER NOT NULL DEFAULT 0         -- importance steps earned by use, written to the memory's file
) STRICT, WITHOUT ROWID;

-- When each active memory was last stated, written or recalled, and fields for the rules of consolidation.
CREATE VIEW last_uses AS
SELECT m.row, m.id, m.kind, m.subject, m.importance, m.expiry, m.expires_on,
    coalesce(u.recall_count, 0) AS recall_count,
    max(
        m.created, m.updated, coalesce(u.last_recalled, m.created),
        coalesce((SELECT max(c.at) FROM confirmations c WHERE c.memory = m.id), m.created)
    ) AS last_used
FROM active_memories m LEFT JOIN usage u ON u.memory = m.id;

-- Memories used in each host session (by a hash of its name), or in a sitting without one.
CREATE TABLE uses (
    session TEXT NOT NULL,
    memory TEXT NOT NULL,
    at INTEGER NOT NULL,
    paired INTEGER NOT NULL DEFAULT 0,
    judged INTEGER NOT NULL DEFAULT 0,
    recalled INTEGER,                        -- last counted recall; NULL if only viewed
    PRIMARY KEY (session, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX uses_at ON uses (at);

CREATE TABLE usage_values (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Memories used together, a < b. The weight of ``day`` (days since 1970) fades to nothing on the day ``until``.
CREATE TABLE co_recall (
    a TEXT NOT NULL,
    b TEXT NOT NULL,
    weight REAL NOT NULL,
    day INTEGER NOT NULL,
    until INTEGER NOT NULL,
    sessions INTEGER NOT NULL,
    PRIMARY KEY (a, b)
) STRICT, WITHOUT ROWID;
CREATE INDEX co_recall_b ON co_recall (b);

CREATE TABLE review_queue (
    id INTEGER PRIMARY KEY,
    memory TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT,
    status TEXT NOT NULL DEFAULT 'pending',
    created INTEGER NOT NULL,
    resolved INTEGER,
    shown_by TEXT NOT NULL DEFAULT '[]'      -- JSON: the sessions behind a doubt, which is deleted when they are forgotten
) STRICT;
CREATE UNIQUE INDEX review_queue_pending ON review_queue (memory, reason) WHERE status = 'pending';

-- A retired or superseded memory loses its edges and reviews. A changed memory is a new row with the same id.
CREATE TRIGGER memories_out_of_use AFTER INSERT ON memories
WHEN new.retired_at IS NOT NULL OR new.superseded_by IS NOT NULL
BEGIN
    DELETE FROM co_recall WHERE a = new.id OR b = new.id;
    UPDATE review_queue SET status = 'resolved', resolved = coalesce(new.retired_at, new.updated)
    WHERE memory = new.id AND status = 'pending';
END;

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

-- Operations that changed the vault.
CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    action TEXT NOT NULL,
    subject TEXT,
    why TEXT,
    closed INTEGER NOT NULL DEFAULT 0,
    committed TEXT,
    actor TEXT                               -- interface and agent that requested it
) STRICT, WITHOUT ROWID;
CREATE INDEX operations_at ON operations (at);
CREATE INDEX operations_open ON operations (id) WHERE closed = 0;
CREATE INDEX operations_pending ON operations (id) WHERE committed IS NULL;

-- The memories and files that operations touched.
CREATE TABLE touched (
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    memory TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (operation, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX touched_memory ON touched (memory);

-- A write to the vault, kept until it is in its file and its operation is in git.
CREATE TABLE intents (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    action TEXT NOT NULL,
    path TEXT NOT NULL,
    document TEXT,
    base BLOB,
    memory TEXT,
    operation TEXT,
    former TEXT,                             -- former content of the file
    applied INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX intents_path ON intents (path);
CREATE INDEX intents_waiting ON intents (seq) WHERE applied = 0;
CREATE INDEX intents_operation ON intents (operation);

-- The end of the ledger written by nacre. Later lines may come from a write interrupted by a crash.
CREATE TABLE ledger_end (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    size INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;

-- ``read``: the last commit whose operations are in ``operations``. ``index``: the commit of git's own index.
CREATE TABLE git_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- New memories not yet compared with others by meaning.
CREATE TABLE unsettled (
    memory TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Statements that wait for a writer, for the owner to repeat them, or for review.
CREATE TABLE candidates (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,               -- of its text within a project
    session TEXT,
    why TEXT NOT NULL,
    detail TEXT,
    score REAL NOT NULL,
    found INTEGER NOT NULL,
    dropped INTEGER,
    memory TEXT                              -- the resulting memory as JSON; NULL after rejection
) STRICT, WITHOUT ROWID;
CREATE INDEX candidates_session ON candidates (session);

-- Memories whose claim a model has yet to extract and judge.
CREATE TABLE claims_waiting (
    memory TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    due INTEGER NOT NULL DEFAULT 0,          -- epoch milliseconds
    tries INTEGER NOT NULL DEFAULT 0,
    note TEXT,                               -- reason for the last failure
    reworded INTEGER NOT NULL DEFAULT 0      -- its text changed since its claim was extracted
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_waiting_due ON claims_waiting (due);

-- A model's judgement of a pair that awaits a person's decision.
CREATE TABLE conflicts (
    older TEXT NOT NULL,
    newer TEXT NOT NULL,
    relation TEXT NOT NULL,
    confidence REAL NOT NULL,
    model TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (older, newer)
) STRICT, WITHOUT ROWID;

-- A call is recorded with its maximum cost before it is made, so that concurrent calls stay within a budget.
CREATE TABLE model_calls (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    day TEXT NOT NULL,                       -- by the owner's clock
    task TEXT NOT NULL,
    model TEXT NOT NULL,
    background INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    written INTEGER NOT NULL,
    cost INTEGER,                            -- millionths of a US dollar; NULL if the price is unknown
    seconds REAL NOT NULL,
    outcome TEXT NOT NULL
) STRICT;
CREATE INDEX model_calls_day ON model_calls (day);

-- Models whose last call failed. Background work does not call them until then.
CREATE TABLE model_health (
    model TEXT PRIMARY KEY,
    until INTEGER NOT NULL,
    told TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Answers to prompts. The key is a hash of model and prompt.
CREATE TABLE model_answers (
    key TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    model TEXT NOT NULL,
    answer TEXT NOT NULL
) STRICT;
CREATE INDEX model_answers_at ON model_answers (at);

-- Each trace is one model call, or one question; body is JSON.
CREATE TABLE traces (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,                      -- the task, or 'question'
    at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX traces_at ON traces (at);
