-- insert_intent --
-- What must happen to the vault; durable with the same commit as the index row.
INSERT INTO intents (action, path, document, base, memory, operation, former, applied)
VALUES (:action, :path, :document, :base, :memory, :operation, :former, :applied);

-- list_intents --
-- What is still to be done, in the order in which it was meant.
SELECT seq, action, path, document, base, memory, operation, former FROM intents WHERE applied = 0 ORDER BY seq;

-- list_journal --
-- What an operation did, in order.
SELECT seq, action, path, document, base, memory, operation, former FROM intents
WHERE operation = :operation ORDER BY seq;

-- apply_intent --
-- It reached its file; the journal keeps it.
UPDATE intents SET applied = 1, base = NULL WHERE seq = :seq AND operation IS NOT NULL;

-- delete_intent --
-- It was given up, or belongs to no operation.
DELETE FROM intents WHERE seq = :seq AND (applied = 0 OR operation IS NULL);

-- find_intent --
-- Is anything pending?
SELECT seq FROM intents WHERE applied = 0 LIMIT 1;

-- list_pending_paths --
-- Files that are still to come are not gone.
SELECT path FROM intents WHERE applied = 0 AND action IN ('write', 'adjust');

-- list_awaited_paths --
-- Files that a pending write makes, changes or removes.
SELECT path FROM intents WHERE applied = 0 AND action <> 'append';

-- find_pending_document --
-- The last of several pending writes counts.
SELECT document FROM intents WHERE path = :path AND applied = 0 AND action IN ('write', 'adjust')
ORDER BY seq DESC LIMIT 1;

-- list_unfiled_memories --
-- Rows whose file is gone.
SELECT id FROM memories WHERE id NOT IN (SELECT memory FROM vault_files) ORDER BY row;

-- list_vault_files --
-- What the last scan saw.
SELECT path, memory, mtime_ns, size, hash FROM vault_files;

-- list_seen --
-- What the last scan saw, and what is about to be written, which has no size: in one statement, so at one moment.
SELECT path, mtime_ns, size, NULL FROM vault_files
UNION ALL SELECT path, mtime_ns, size, reason FROM unreadable_files WHERE version = :version
UNION ALL SELECT path, 0, -1, NULL FROM intents WHERE applied = 0;

-- list_unreadable --
-- What was no memory when it was last read, whichever version read it.
SELECT path, mtime_ns, size FROM unreadable_files;

-- find_unreadable --
-- Why a file is no memory, if it is still the same one.
SELECT reason FROM unreadable_files
WHERE path = :path AND mtime_ns = :mtime_ns AND size = :size AND version = :version;

-- upsert_unreadable --
-- A file that is no memory, as it is now.
INSERT INTO unreadable_files (path, mtime_ns, size, version, reason)
VALUES (:path, :mtime_ns, :size, :version, :reason)
ON CONFLICT (path) DO UPDATE SET
    mtime_ns = excluded.mtime_ns, size = excluded.size, version = excluded.version, reason = excluded.reason;

-- delete_unreadable --
-- It changed, or is gone.
DELETE FROM unreadable_files WHERE path = :path;

-- find_vault_file --
-- The file of a memory.
SELECT path, mtime_ns, size, hash FROM vault_files WHERE memory = :memory;

-- find_vault_path --
-- Whether a path is taken.
SELECT memory FROM vault_files WHERE path = :path;

-- find_vault_file_at --
-- A file by its path.
SELECT path, memory, mtime_ns, size, hash FROM vault_files WHERE path = :path;

-- list_journal_paths --
-- What no commit has taken yet.
SELECT DISTINCT path FROM intents;

-- upsert_vault_file --
-- A file as it is now.
INSERT INTO vault_files (path, memory, mtime_ns, size, hash) VALUES (:path, :memory, :mtime_ns, :size, :hash)
ON CONFLICT (path) DO UPDATE SET memory = :memory, mtime_ns = :mtime_ns, size = :size, hash = :hash;

-- distrust_vault_file --
-- A file that is to be read again.
UPDATE vault_files SET mtime_ns = 0, hash = unhex('') WHERE path = :path;

-- delete_vault_file --
-- A file that is gone.
DELETE FROM vault_files WHERE path = :path;

-- upsert_project --
-- A project as its page tells.
INSERT INTO projects (id, slug, mtime_ns) VALUES (:id, :slug, :mtime_ns)
ON CONFLICT (id) DO UPDATE SET slug = :slug, mtime_ns = :mtime_ns;

-- delete_project_at --
-- The page in that folder got another id, or none is left (then the id is empty).
DELETE FROM projects WHERE slug = :slug AND id <> :id;

-- delete_orphaned_project_keys --
-- What resolved to a project that is gone.
DELETE FROM project_keys WHERE project NOT IN (SELECT id FROM projects);

-- list_projects --
-- Every project.
SELECT id, slug, mtime_ns FROM projects ORDER BY slug;

-- find_project_by_key --
-- What a remote, root, label or alias resolves to.
SELECT p.slug FROM project_keys k JOIN projects p ON p.id = k.project WHERE k.key = :key AND k.value = :value;

-- insert_project_key --
-- The first project that claims a key keeps it.
INSERT INTO project_keys (key, value, project) VALUES (:key, :value, :project)
ON CONFLICT DO NOTHING;

-- delete_project_keys --
-- Before a project's page is read anew.
DELETE FROM project_keys WHERE project = :project;

-- list_project_keys --
-- Everything that resolves to a project.
SELECT k.key, k.value, p.slug FROM project_keys k JOIN projects p ON p.id = k.project ORDER BY p.slug, k.key, k.value;

-- find_other_name --
-- The project that has a name which is no project's own.
SELECT slug FROM other_names WHERE name = :other;

-- delete_project_dependencies --
-- Before a project's page is read anew.
DELETE FROM project_dependencies WHERE project = :project OR project NOT IN (SELECT id FROM projects);

-- insert_project_dependency --
-- A project depends on another one.
INSERT INTO project_dependencies (project, name) VALUES (:project, :other)
ON CONFLICT DO NOTHING;

-- list_dependencies --
-- Which projects depend on which, by the names that these have now.
SELECT p.slug, coalesce((SELECT o.slug FROM other_names o WHERE o.name = d.name), d.name) AS dependency
FROM project_dependencies d JOIN projects p ON p.id = d.project
WHERE (:project IS NULL OR p.slug = :project) AND coalesce((SELECT o.slug FROM other_names o WHERE o.name = d.name), d.name) <> p.slug
ORDER BY p.slug, dependency;
