-- insert_operation --
-- The first of several writes of an operation records it.
INSERT INTO operations (id, at, action, subject, why, actor, closed, committed)
VALUES (:id, :at, :action, :subject, :why, :by, 0, NULL)
ON CONFLICT DO NOTHING;

-- insert_touched --
-- What an operation touched.
INSERT INTO touched (operation, path, memory) VALUES (:operation, :path, :memory)
ON CONFLICT (operation, path) DO UPDATE SET memory = :memory WHERE touched.memory = '';

-- list_open_operations --
-- Operations whose last write may be still to come.
SELECT id, at, action, subject, why, actor, committed FROM operations WHERE closed = 0 ORDER BY id;

-- explain_operation --
-- The reason, known after the writes.
UPDATE operations SET why = :why WHERE id = :id;

-- find_operation --
-- One operation.
SELECT id, at, action, subject, why, actor, committed FROM operations WHERE id = :id;

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

-- list_pending_operations --
-- What waits for a commit, in the order in which it was written.
SELECT o.id, o.at, o.action, o.subject, o.why, o.actor, o.committed
FROM operations o JOIN (SELECT operation, min(seq) AS first FROM intents WHERE operation IS NOT NULL GROUP BY operation) i
ON i.operation = o.id
WHERE o.committed IS NULL AND o.closed = 1 ORDER BY i.first LIMIT :limit OFFSET :offset;

-- list_operations_without_texts --
-- What no commit holds, and nothing is left of to commit.
SELECT id, at, action, subject, why, actor, committed FROM operations o
WHERE committed IS NULL AND closed = 1 AND NOT EXISTS (SELECT 1 FROM intents i WHERE i.operation = o.id) ORDER BY id;

-- count_pending_operations --
-- How many wait for a commit, and since when; one whose texts were dropped waits for nothing.
SELECT count(*), min(at) FROM operations o
WHERE committed IS NULL AND EXISTS (SELECT 1 FROM intents i WHERE i.operation = o.id);

-- find_unapplied --
-- Whether an operation still has to reach a file.
SELECT 1 FROM intents WHERE operation = :operation AND applied = 0 LIMIT 1;

-- commit_operation --
-- History has it.
UPDATE operations SET committed = :committed WHERE id = :id;

-- delete_journal --
-- What history has is not kept twice.
DELETE FROM intents WHERE operation = :operation AND applied = 1;

-- delete_operation --
-- It changed nothing after all.
DELETE FROM operations WHERE id = :id;

-- insert_past_operation --
-- An operation that history tells.
INSERT INTO operations (id, at, action, subject, why, actor, closed, committed)
VALUES (:id, :at, :action, :subject, :why, :by, 1, :committed)
ON CONFLICT (id) DO UPDATE SET
    at = excluded.at, action = excluded.action, subject = excluded.subject, why = excluded.why,
    actor = excluded.actor, closed = excluded.closed, committed = excluded.committed;

-- delete_past_operations --
-- History was rewritten: it is read anew.
DELETE FROM operations WHERE committed IS NOT NULL;

-- list_operations --
-- The newest first, of all memories or of one, by project, action and time where they are meant.
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
-- By the beginning or the end of the id.
SELECT id, at, action, subject, why, actor, committed FROM operations
WHERE substr(id, 1, length(:reference)) = :reference OR substr(id, length(id) - length(:reference) + 1) = :reference
ORDER BY at DESC, id DESC LIMIT 3;

-- find_journal_before --
-- What a file held before a row of the journal, as the journal knows it.
SELECT action, document FROM intents
WHERE path = :path AND seq < :seq AND applied = 1 AND action <> 'append' ORDER BY seq DESC LIMIT 1;

-- list_withheld --
-- Files that a person changed and that hold a secret.
SELECT path FROM intents WHERE action = 'seen' AND document IS NULL AND applied = 1 ORDER BY path;

-- find_oldest_kept --
-- Where the journal begins when only so many operations are kept.
SELECT min(seq) FROM intents WHERE operation IN (
    SELECT operation FROM intents WHERE operation IS NOT NULL GROUP BY operation ORDER BY min(seq) DESC LIMIT :operations
);

-- delete_journal_before --
-- Without a history, the journal keeps what was done last.
DELETE FROM intents WHERE seq < :seq AND applied = 1;

-- find_git_state --
-- What is known of the repository.
SELECT value FROM git_state WHERE key = :key;

-- upsert_git_state --
-- What is known of the repository.
INSERT INTO git_state (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value;
