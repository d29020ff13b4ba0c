-- find_code_project --
-- By slug.
SELECT project, root, read_at, is_linked, row FROM code_projects WHERE project = :project;

-- list_code_projects --
-- Projects with indexed code.
SELECT project FROM code_projects ORDER BY project;

-- save_code_project --
-- Reading begins. The edges are incomplete until it ends.
INSERT INTO code_projects (project, root, read_at) VALUES (:project, :root, :at)
ON CONFLICT (project) DO UPDATE SET root = :root, read_at = :at;

-- mark_code_linked --
-- Record whether a project's edges are complete.
UPDATE code_projects SET is_linked = :linked WHERE row = :project;

-- delete_code_project --
-- With its files and symbols.
DELETE FROM code_projects WHERE project = :project;

-- list_code_hashes --
-- A project's files as last read.
SELECT path, row, hash FROM code_files WHERE project = :project ORDER BY path;

-- list_code_facts --
-- The facts of a project's files, by path.
SELECT row, path, facts FROM code_files WHERE project = :project ORDER BY path;

-- delete_code_files --
-- With their symbols and edges.
DELETE FROM code_files WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- insert_code_file --
-- A file that was read.
INSERT INTO code_files (project, path, name, language, hash, facts)
VALUES (:project, :path, :last, :language, :hash, :facts);

-- find_code_file_row --
-- By path.
SELECT row FROM code_files WHERE project = :project AND path = :path;

-- insert_code_symbol --
-- A symbol in a file, or the file itself.
INSERT INTO code_symbols (file, name, qualified, kind, line, end_line)
VALUES (:file, :last, :qualified, :kind, :line, :end_line)
ON CONFLICT DO NOTHING;

-- list_code_symbol_rows --
-- The symbols of a project's files.
SELECT s.file, s.qualified, s.row FROM code_symbols s JOIN code_files f ON f.row = s.file WHERE f.project = :project;

-- delete_code_edges --
-- Edges from some files, before they are stored again.
DELETE FROM code_edges WHERE source IN (
    SELECT row FROM code_symbols WHERE file IN (SELECT CAST(value AS BIGINT) FROM json_each(:files))
);

-- delete_code_outside --
-- External imports of some files.
DELETE FROM code_outside WHERE file IN (SELECT CAST(value AS BIGINT) FROM json_each(:files));

-- insert_code_edge --
-- A reference from one symbol to another.
INSERT INTO code_edges (target, rel, source, line) VALUES (:target, :rel, :source, :line)
ON CONFLICT DO NOTHING;

-- insert_code_outside --
-- An import from outside the repository.
INSERT INTO code_outside (module, file, line) VALUES (:module, :file, :line)
ON CONFLICT DO NOTHING;

-- count_code --
-- Symbols and edges in a project.
SELECT
    (SELECT count(*) FROM code_symbols s JOIN code_files f ON f.row = s.file WHERE f.project = :project AND s.kind <> 'file'),
    (SELECT count(*) FROM code_edges e JOIN code_symbols s ON s.row = e.source JOIN code_files f ON f.row = s.file
     WHERE f.project = :project);

-- find_code_symbols --
-- Symbols by name.
SELECT s.row, p.project, f.path, s.qualified, s.kind, s.line, s.end_line
FROM code_symbols s JOIN code_files f ON f.row = s.file JOIN code_projects p ON p.row = f.project
WHERE s.name = :last AND s.kind <> 'file' AND (:project IS NULL OR p.project = :project)
ORDER BY p.project, f.path, s.line, s.row LIMIT :limit;

-- find_code_files --
-- By the last part of the path.
SELECT s.row, p.project, f.path, s.qualified, s.kind, s.line, s.end_line
FROM code_files f JOIN code_projects p ON p.row = f.project JOIN code_symbols s ON s.file = f.row AND s.qualified = ''
WHERE f.name = :last AND (:project IS NULL OR p.project = :project)
ORDER BY p.project, f.path LIMIT :limit;

-- list_code_nodes --
-- Symbols by row.
SELECT s.row, p.project, f.path, s.qualified, s.kind, s.line, s.end_line
FROM code_symbols s JOIN code_files f ON f.row = s.file JOIN code_projects p ON p.row = f.project
WHERE s.row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) ORDER BY s.row;

-- list_code_nodes_of --
-- The symbols in the files of some symbols or, with a name, only symbols inside it.
SELECT s.row, p.project, f.path, s.qualified, s.kind, s.line, s.end_line
FROM code_symbols s JOIN code_files f ON f.row = s.file JOIN code_projects p ON p.row = f.project
WHERE s.file = (SELECT file FROM code_symbols WHERE row = :row)
    AND (:below = '' OR substr(s.qualified, 1, length(:below) + 1) = :below || '.')
ORDER BY s.qualified;

-- list_code_edges_to --
-- The edges to some symbols.
SELECT target, rel, source, line FROM code_edges
WHERE target IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) AND rel IN (SELECT value FROM json_each(:rels))
ORDER BY target, rel, source LIMIT :limit;

-- list_code_importers --
-- The files that import an external module or part of it.
SELECT s.row, p.project, f.path, s.qualified, s.kind, o.line, s.end_line, o.module
FROM code_outside o JOIN code_files f ON f.row = o.file JOIN code_projects p ON p.row = f.project
    JOIN code_symbols s ON s.file = f.row AND s.qualified = ''
WHERE (
        o.module = :module
        OR (o.module >= :module || '.' AND o.module < :module || '0')
    )
    AND (:project IS NULL OR p.project = :project)
ORDER BY p.project, f.path LIMIT :limit;

-- list_unread_mentions --
-- Memories not yet searched for names of code.
SELECT m.id, m.subject, m.content FROM active_memories m
WHERE m.id NOT IN (SELECT memory FROM code_mentions_read) ORDER BY m.row LIMIT :limit;

-- insert_code_mention --
-- A name of code in a memory.
INSERT INTO code_mentions (key, memory, written, manner) VALUES (:key, :memory, :written, :manner)
ON CONFLICT DO NOTHING;

-- mark_mentions_read --
-- After searching a memory for names of code.
INSERT INTO code_mentions_read (memory) VALUES (:memory)
ON CONFLICT DO NOTHING;

-- list_mentions_of_keys --
-- Memories of a project, or of none, that mention names with some last parts. CROSS JOIN starts from the few
-- names.
SELECT c.key, c.written, c.manner, m.id FROM code_mentions c CROSS JOIN active_memories m ON m.id = c.memory
WHERE c.key IN (SELECT value FROM json_each(:keys)) AND (m.project IS NULL OR m.project = :project)
ORDER BY m.updated DESC, m.id LIMIT :limit;

-- list_mentions_in --
-- The names of code in some memories.
SELECT memory, written, manner FROM code_mentions WHERE memory IN (SELECT value FROM json_each(:memories))
ORDER BY memory, written;

-- list_memories_with_paths --
-- Active memories that mention a file and can become outdated, latest first.
SELECT m.id FROM code_mentions c JOIN active_memories m ON m.id = c.memory
WHERE c.manner = 'path' AND m.evergreen = 0 AND (:project IS NULL OR m.project = :project)
GROUP BY m.id, m.updated ORDER BY m.updated DESC, m.id LIMIT :limit;

-- list_file_edits --
-- Edits of some files since a time: the session, its start, and its last edit.
SELECT u.file, s.row, s.started, max(coalesce(t.time, s.ended, s.started)), count(*)
FROM file_uses u JOIN turns t ON t.row = u.turn JOIN sessions s ON s.row = t.session
WHERE u.file IN (SELECT CAST(value AS BIGINT) FROM json_each(:files)) AND u.action = 'edit'
    AND coalesce(t.time, s.ended, s.started) >= :since
    AND (:project IS NULL OR s.project = :project)
GROUP BY u.file, s.row, s.started ORDER BY u.file, s.row;
