-- State: how memories are used. A rebuild starts from neutral.

-- Steps of importance that use has earned and that are in the memory's file.
ALTER TABLE usage ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;

-- Which memories were used in which host session, or sitting where no session was named.
CREATE TABLE uses (
    session TEXT NOT NULL,
    memory TEXT NOT NULL,
    at INTEGER NOT NULL,
    paired INTEGER NOT NULL DEFAULT 0,
    judged INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX uses_at ON uses (at);

CREATE TABLE usage_values (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Memories used together; a < b. The weight is that of the day (days since 1970) and fades from then on, to nothing
-- on the day in ``until``.
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
    suggested TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    created INTEGER NOT NULL,
    resolved INTEGER
) STRICT;
CREATE UNIQUE INDEX review_queue_pending ON review_queue (memory, reason) WHERE status = 'pending';

-- However a memory is retired or superseded, its edges go and nobody has to review it any more. A changed memory is a
-- new row with the same id.
CREATE TRIGGER memories_out_of_use AFTER INSERT ON memories
WHEN new.retired_at IS NOT NULL OR new.superseded_by IS NOT NULL
BEGIN
    DELETE FROM co_recall WHERE a = new.id OR b = new.id;
    UPDATE review_queue SET status = 'resolved', resolved = coalesce(new.retired_at, new.updated)
    WHERE memory = new.id AND status = 'pending';
END;
