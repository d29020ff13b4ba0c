-- For administrators of a server. No tenant is set.

-- insert_account --
INSERT INTO nacre_spaces.accounts (name, created) VALUES (:account, :at) ON CONFLICT DO NOTHING

-- insert_space --
INSERT INTO nacre_spaces.spaces (name, kind, raising, created) VALUES (:space, :kind, :raising, :at)
ON CONFLICT DO NOTHING

-- set_member --
MERGE INTO nacre_spaces.members m
USING (SELECT CAST(:space AS text) AS space, CAST(:account AS text) AS account) n
ON m.space = n.space AND m.account = n.account
WHEN MATCHED THEN UPDATE SET role = :role
WHEN NOT MATCHED THEN INSERT (space, account, role, since) VALUES (n.space, n.account, :role, :at)

-- delete_member --
DELETE FROM nacre_spaces.members WHERE space = :space AND account = :account

-- list_members --
SELECT account, role, since FROM nacre_spaces.members WHERE space = :space ORDER BY role, account

-- lock_space --
-- Changes to its members and keys are serialised.
SELECT 1 FROM nacre_spaces.spaces WHERE name = :space FOR UPDATE

-- read_role --
SELECT role FROM nacre_spaces.members WHERE space = :space AND account = :account

-- read_owner --
SELECT m.account FROM nacre_spaces.members m
WHERE m.space = :space AND m.role = 'owner' ORDER BY m.since, m.account LIMIT 1

-- insert_key --
INSERT INTO nacre_spaces.api_keys (id, hash, space, account, role, created, expires)
VALUES (:id, :hash, :space, :account, :role, :at, :expires)

-- list_keys --
SELECT id, space, account, role, created, expires, revoked, last_used FROM nacre_spaces.api_keys
WHERE space = :space ORDER BY created DESC, id

-- revoke_key --
UPDATE nacre_spaces.api_keys SET revoked = :at WHERE space = :space AND id = :id AND revoked IS NULL

-- revoke_keys_of --
UPDATE nacre_spaces.api_keys SET revoked = :at WHERE space = :space AND account = :account AND revoked IS NULL

-- read_key --
-- The holder of a key that is valid by the server's clock and whose account belongs to the space.
SELECT k.id, k.space, k.account, k.role FROM nacre_spaces.api_keys k
JOIN nacre_spaces.members m ON m.space = k.space AND m.account = k.account
WHERE k.hash = :hash AND k.revoked IS NULL AND k.expires > extract(epoch FROM now()) * 1000

-- note_key_used --
-- To the minute.
UPDATE nacre_spaces.api_keys SET last_used = CAST(extract(epoch FROM now()) * 1000 AS bigint)
WHERE id = :id AND coalesce(last_used, 0) < extract(epoch FROM now()) * 1000 - 60000

-- insert_note --
INSERT INTO nacre_spaces.audit_log (at, space, account, action, subject, outcome)
VALUES (:at, :space, :account, :action, :subject, :outcome)

-- name_tenant --
-- Until the transaction ends.
SELECT set_config('nacre.tenant', :space, true)

-- read_use --
-- Whether that tenant has written anything yet.
SELECT 1 FROM nacre_rows.edition WHERE tenant = nacre.tenant()

-- list_untended --
-- Spaces with operations since a worker last tended them.
SELECT s.name FROM nacre_spaces.spaces s LEFT JOIN nacre_spaces.tended t ON t.space = s.name
WHERE EXISTS (SELECT 1 FROM nacre_spaces.audit_log a WHERE a.space = s.name AND a.number > coalesce(t.number, 0))
ORDER BY s.name

-- hold_space --
-- For one worker, until its connection ends.
SELECT pg_try_advisory_lock(hashtextextended(:space, 2))

-- read_last_note --
SELECT coalesce(max(number), 0) FROM nacre_spaces.audit_log WHERE space = :space

-- set_tended --
MERGE INTO nacre_spaces.tended t USING (SELECT CAST(:space AS text) AS space, CAST(:number AS bigint) AS number) n
ON t.space = n.space
WHEN MATCHED THEN UPDATE SET number = greatest(t.number, n.number)
WHEN NOT MATCHED THEN INSERT (space, number) VALUES (n.space, n.number)

-- list_tables --
-- Tables with rows of tenants, referenced ones last.
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
WHERE n.nspname = 'nacre_rows' AND c.relkind IN ('r', 'p')
ORDER BY c.relname = 'document_versions', c.relname

-- wait_long --
-- Until the transaction ends.
SET LOCAL statement_timeout = 0

-- delete_keys --
DELETE FROM nacre_spaces.api_keys WHERE space = :space

-- delete_members --
DELETE FROM nacre_spaces.members WHERE space = :space

-- delete_tended --
DELETE FROM nacre_spaces.tended WHERE space = :space

-- delete_space --
DELETE FROM nacre_spaces.spaces WHERE name = :space
