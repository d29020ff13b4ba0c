-- insert_operation --
-- With its first write.
INSERT INTO operations (id, at, action, subject, why, actor, closed, committed)
VALUES (:id, :at, :action, :subject, :why, :by, 0, NULL)
ON CONFLICT DO NOTHING;

-- insert_touched --
-- A file or memory that an operation touched.
INSERT INTO touched (operation, path, memory) VALUES (:operation, :path, :memory)
ON CONFLICT (operation, path) DO UPDATE SET memory = :memory WHERE touched.memory = '';

-- list_open_operations --
-- Operations that can still add writes.
SELECT id, at, action, subject, why, actor, committed FROM operations WHERE closed = 0 ORDER BY id;

-- explain_operation --
-- The reason is known after the writes.
UPDATE operations SET why = :why WHERE id = :operation;

-- find_operation --
-- By id.
SELECT id, at, action, subject, why, actor, committed FROM operations WHERE id = :id;

-- find_ledger_line --
-- Whether the ledger has a line for an operation.
SELECT 1 FROM intents WHERE operation = :operation AND action = 'append' LIMIT 1;

-- close_operation --
-- It has no further writes.
UPDATE operations SET closed = 1, subject = coalesce(subject, :subject) WHERE id = :operation;

-- delete_withheld --
-- The file with the secret was changed.
DELETE FROM intents WHERE path = :path AND action = 'seen' AND document IS NULL;

-- delete_empty_operations --
-- Operations without writes.
DELETE FROM operations WHERE closed = 1 AND committed IS NULL
AND id NOT IN (SELECT operation FROM intents WHERE operation IS NOT NULL);

-- list_touched --
-- The memories and files of an operation.
SELECT path, memory FROM touched WHERE operation = :operation ORDER BY path;

-- find_ledger_end --
-- As last read.
SELECT size, hash FROM ledger_end;

-- upsert_ledger_end --
-- After appending.
INSERT INTO ledger_end (one, size, hash) VALUES (1, :size, :digest)
ON CONFLICT (one) DO UPDATE SET size = :size, hash = :digest;

-- list_pending_operations --
-- Operations without a commit, in the order of writing.
SELECT o.id, o.at, o.action, o.subject, o.why, o.actor, o.committed
FROM operations o JOIN (SELECT operation, min(seq) AS first FROM intents WHERE operation IS NOT NULL GROUP BY operation) i
ON i.operation = o.id
WHERE o.committed IS NULL AND o.closed = 1 ORDER BY i.first LIMIT :limit;

-- list_operations_without_texts --
-- Operations without a commit and without texts to commit.
SELECT id, at, action, subject, why, actor, committed FROM operations o
WHERE committed IS NULL AND closed = 1 AND NOT EXISTS (SELECT 1 FROM intents i WHERE i.operation = o.id) ORDER BY id;

-- count_pending_operations --
-- The number of operations without a commit, and the time of the oldest. Operations whose texts were dropped
-- are not counted.
SELECT count(*), min(at) FROM operations o
WHERE committed IS NULL AND EXISTS (SELECT 1 FROM intents i WHERE i.operation = o.id);

-- find_unapplied --
-- Whether a write of an operation is pending.
SELECT 1 FROM intents WHERE operation = :operation AND applied = 0 LIMIT 1;

-- commit_operation --
-- It is in the git history.
UPDATE operations SET committed = :committed WHERE id = :id;

-- delete_journal --
-- The git history has these writes.
DELETE FROM intents WHERE operation = :operation AND applied = 1;

-- delete_operation --
-- It changed nothing.
DELETE FROM operations WHERE id = :id;

-- insert_past_operation --
-- From the git history.
INSERT INTO operations (id, at, action, subject, why, actor, closed, committed)
VALUES (:id, :at, :action, :subject, :why, :by, 1, :committed)
ON CONFLICT (id) DO UPDATE SET
    at = excluded.at, action = excluded.action, subject = excluded.subject, why = excluded.why,
    actor = excluded.actor, closed = excluded.closed, committed = excluded.committed;

-- delete_past_operations --
-- The git history was rewritten and is read again.
DELETE FROM operations WHERE committed IS NOT NULL;

-- list_operations --
-- Newest first, optionally by memory, project, action and time.
SELECT id, at, action, subject, why, actor, committed FROM operations o
WHERE (:memory IS NULL OR EXISTS (SELECT 1 FROM touched t WHERE t.operation = o.id AND t.memory = :memory))
AND (:folder IS NULL OR EXISTS (
    SELECT 1 FROM touched t WHERE t.operation = o.id
    AND (instr(t.path, 'projects/' || :folder || '/') = 1 OR instr(t.path, 'retired/projects/' || :folder || '/') = 1)
))
AND (:action IS NULL OR action = :action)
AND (:since IS NULL OR at >= :since) AND (:until IS NULL OR at < :until)
ORDER BY at DESC, id DESC LIMIT :limit OFFSET :offset;

-- find_operations_like --
-- By the start or end of the id.
SELECT id, at, action, subject, why, actor, committed FROM operations
WHERE substr(id, 1, length(:reference)) = :reference OR substr(id, length(id) - length(:reference) + 1) = :reference
ORDER BY at DESC, id DESC LIMIT 3;

-- find_journal_before --
-- The content of a file before a journal row, if it is in the journal.
SELECT action, document FROM intents
WHERE path = :path AND seq < :seq AND applied = 1 AND action <> 'append' ORDER BY seq DESC LIMIT 1;

-- list_withheld --
-- Files edited by the user that contain a secret.
SELECT path FROM intents WHERE action = 'seen' AND document IS NULL AND applied = 1 ORDER BY path;

-- find_oldest_kept --
-- The oldest journal row to keep if a number of operations is kept.
SELECT min(seq) FROM intents WHERE operation IN (
    SELECT operation FROM intents WHERE operation IS NOT NULL GROUP BY operation ORDER BY min(seq) DESC LIMIT :operations
);

-- delete_journal_before --
-- Without git history, keep the latest operations.
DELETE FROM intents WHERE seq < :seq AND applied = 1;

-- find_git_state --
-- A commit id of the repository.
SELECT value FROM git_state WHERE key = :key;

-- upsert_git_state --
-- See find_git_state.
INSERT INTO git_state (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value;
