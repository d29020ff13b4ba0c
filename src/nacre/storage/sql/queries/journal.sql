-- insert_operation --
-- The first of several writes of an operation records it.
INSERT OR IGNORE INTO operations (id, at, action, subject, why, closed, committed)
VALUES (:id, :at, :action, :subject, :why, 0, NULL);

-- insert_touched --
-- What an operation touched.
INSERT INTO touched (operation, path, memory) VALUES (:operation, :path, :memory)
ON CONFLICT (operation, path) DO UPDATE SET memory = :memory WHERE memory = '';

-- list_open_operations --
-- Operations whose last write may be still to come.
SELECT id, at, action, subject, why, committed FROM operations WHERE closed = 0 ORDER BY id;

-- find_operation --
-- One operation.
SELECT id, at, action, subject, why, committed FROM operations WHERE id = :id;

-- find_ledger_line --
-- Whether an operation tells of itself in the ledger.
SELECT 1 FROM intents WHERE operation = :operation AND action = 'append' LIMIT 1;

-- close_operation --
-- Nothing more comes.
UPDATE operations SET closed = 1, subject = coalesce(subject, :subject) WHERE id = :id;

-- delete_withheld --
-- A file with a secret was mended, or changed again.
DELETE FROM intents WHERE path = :path AND action = 'seen' AND document IS NULL;

-- delete_empty_operations --
-- What nothing is left of.
DELETE FROM operations WHERE closed = 1 AND committed IS NULL
AND id NOT IN (SELECT operation FROM intents WHERE operation IS NOT NULL);

-- list_touched --
-- Memories and files of an operation.
SELECT path, memory FROM touched WHERE operation = :operation ORDER BY path;

-- find_ledger_end --
-- How far the ledger is known.
SELECT size, hash FROM ledger_end;

-- upsert_ledger_end --
-- After an append.
INSERT INTO ledger_end (one, size, hash) VALUES (1, :size, :hash)
ON CONFLICT (one) DO UPDATE SET size = :size, hash = :hash;
