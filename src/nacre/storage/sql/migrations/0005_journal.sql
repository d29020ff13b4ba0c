-- State: the operations that changed the vault, and which memories and files each of them touched.
CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    action TEXT NOT NULL,
    subject TEXT,
    why TEXT,
    closed INTEGER NOT NULL DEFAULT 0,
    committed TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX operations_at ON operations (at);
CREATE INDEX operations_open ON operations (id) WHERE closed = 0;
CREATE INDEX operations_pending ON operations (id) WHERE committed IS NULL;

CREATE TABLE touched (
    operation TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    memory TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (operation, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX touched_memory ON touched (memory);

-- An applied intent stays, as the journal, until git has its operation. ``former`` is what the file said before.
ALTER TABLE intents ADD COLUMN operation TEXT;
ALTER TABLE intents ADD COLUMN former TEXT;
ALTER TABLE intents ADD COLUMN applied INTEGER NOT NULL DEFAULT 0;
CREATE INDEX intents_waiting ON intents (seq) WHERE applied = 0;
CREATE INDEX intents_operation ON intents (operation);

-- How far the ledger was written by nacre: lines after that may come from a write that a crash cut short.
CREATE TABLE ledger_end (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    size INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;

-- What is known of the repository: ``read``, the last commit whose operations are in ``operations``, and ``index``, the
-- commit that git's own index was last brought to.
CREATE TABLE git_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
