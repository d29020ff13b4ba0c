-- insert_intent --
-- In the transaction that changes the index.
INSERT INTO intents (action, path, document, base, memory, operation, former, applied)
VALUES (:action, :path, :document, :base, :memory, :operation, :former, :applied);

-- list_intents --
-- Pending writes, in order.
SELECT action, path, document, base, memory, operation, former, seq FROM intents WHERE applied = 0 ORDER BY seq;

-- list_journal --
-- The writes of an operation, in order.
SELECT action, path, document, base, memory, operation, former, seq FROM intents
WHERE operation = :operation ORDER BY seq;

-- apply_intent --
-- The write is in its file. The journal keeps it.
UPDATE intents SET applied = 1, base = NULL WHERE seq = :seq AND operation IS NOT NULL;

-- delete_intent --
-- It was given up, or belongs to no operation.
DELETE FROM intents WHERE seq = :seq AND (applied = 0 OR operation IS NULL);

-- find_intent --
-- Whether any write is pending.
SELECT seq FROM intents WHERE applied = 0 LIMIT 1;

-- list_pending_paths --
-- Files to be created.
SELECT path FROM intents WHERE applied = 0 AND action IN ('write', 'adjust');

-- list_awaited_paths --
-- Files that a pending write creates, changes or removes.
SELECT path FROM intents WHERE applied = 0 AND action <> 'append';

-- find_pending_document --
-- The last pending write counts.
SELECT document FROM intents WHERE path = :path AND applied = 0 AND action IN ('write', 'adjust')
ORDER BY seq DESC LIMIT 1;

-- list_unfiled_memories --
-- Memories without a file.
SELECT id FROM memories WHERE id NOT IN (SELECT memory FROM vault_files) ORDER BY row;

-- list_vault_files --
-- As of the last scan.
SELECT path, memory, mtime_ns, size, hash FROM vault_files;

-- list_seen --
-- As of the last scan, with pending writes (without a size), at the same moment.
SELECT path, mtime_ns, size, NULL FROM vault_files
UNION ALL SELECT path, mtime_ns, size, reason FROM unreadable_files WHERE version = :version
UNION ALL SELECT path, 0, -1, NULL FROM intents WHERE applied = 0;

-- list_unreadable --
-- Files that could not be read as memories by any version.
SELECT path, mtime_ns, size FROM unreadable_files;

-- find_unreadable --
-- The reason why an unchanged file is not a memory.
SELECT reason FROM unreadable_files
WHERE path = :path AND mtime_ns = :mtime_ns AND size = :size AND version = :version;

-- upsert_unreadable --
-- The file is not a memory in its current state.
INSERT INTO unreadable_files (path, mtime_ns, size, version, reason)
VALUES (:path, :mtime_ns, :size, :version, :reason)
ON CONFLICT (path) DO UPDATE SET
    mtime_ns = excluded.mtime_ns, size = excluded.size, version = excluded.version, reason = excluded.reason;

-- delete_unreadable --
-- The file was changed or deleted.
DELETE FROM unreadable_files WHERE path = :path;

-- find_vault_file --
-- The file of a memory.
SELECT path, mtime_ns, size, hash FROM vault_files WHERE memory = :memory;

-- find_vault_path --
-- Whether a path is taken.
SELECT memory FROM vault_files WHERE path = :path;

-- find_vault_file_at --
-- By path.
SELECT path, memory, mtime_ns, size, hash FROM vault_files WHERE path = :path;

-- list_journal_paths --
-- Of writes without a commit.
SELECT DISTINCT path FROM intents;

-- upsert_vault_file --
-- Its current state.
INSERT INTO vault_files (path, memory, mtime_ns, size, hash) VALUES (:path, :memory, :mtime_ns, :size, :hash)
ON CONFLICT (path) DO UPDATE SET memory = :memory, mtime_ns = :mtime_ns, size = :size, hash = :hash;

-- distrust_vault_file --
-- It must be read again.
UPDATE vault_files SET mtime_ns = 0, hash = unhex('') WHERE path = :path;

-- delete_vault_file --
-- It was deleted.
DELETE FROM vault_files WHERE path = :path;

-- upsert_project --
-- According to its page.
INSERT INTO projects (id, slug, mtime_ns) VALUES (:id, :slug, :mtime_ns)
ON CONFLICT (id) DO UPDATE SET slug = :slug, mtime_ns = :mtime_ns;

-- delete_project_at --
-- The page in the folder has another id, or was removed (the id is then empty).
DELETE FROM projects WHERE slug = :slug AND id <> :id;

-- delete_orphaned_project_keys --
-- Their project was deleted.
DELETE FROM project_keys WHERE project NOT IN (SELECT id FROM projects);

-- list_projects --
-- With the times of their pages.
SELECT id, slug, mtime_ns FROM projects ORDER BY slug;

-- find_project_by_key --
-- The project of a remote, root, label or alias.
SELECT p.slug FROM project_keys k JOIN projects p ON p.id = k.project WHERE k.key = :key AND k.value = :value;

-- insert_project_key --
-- The first project with a key keeps it.
INSERT INTO project_keys (key, value, project) VALUES (:key, :value, :project)
ON CONFLICT DO NOTHING;

-- delete_project_keys --
-- Before the page is read again.
DELETE FROM project_keys WHERE project = :project;

-- list_project_keys --
-- All keys of projects.
SELECT k.key, k.value, p.slug FROM project_keys k JOIN projects p ON p.id = k.project ORDER BY p.slug, k.key, k.value;

-- find_other_name --
-- The project with an alternative name.
SELECT slug FROM other_names WHERE name = :other;

-- delete_project_dependencies --
-- Before the page is read again.
DELETE FROM project_dependencies WHERE project = :project OR project NOT IN (SELECT id FROM projects);

-- insert_project_dependency --
-- By name.
INSERT INTO project_dependencies (project, name) VALUES (:project, :other)
ON CONFLICT DO NOTHING;

-- list_dependencies --
-- By current names.
SELECT p.slug, coalesce((SELECT o.slug FROM other_names o WHERE o.name = d.name), d.name) AS dependency
FROM project_dependencies d JOIN projects p ON p.id = d.project
WHERE (:project IS NULL OR p.slug = :project) AND coalesce((SELECT o.slug FROM other_names o WHERE o.name = d.name), d.name) <> p.slug
ORDER BY p.slug, dependency;
