-- read_document --
-- The content of a document's current version.
SELECT v.data FROM documents d JOIN document_versions v ON v.version = d.version WHERE d.path = :path;

-- find_document --
-- Version, size and time.
SELECT d.version, d.size, v.written FROM documents d JOIN document_versions v ON v.version = d.version WHERE d.path = :path;

-- list_documents --
SELECT d.path, d.version, d.size, v.written FROM documents d JOIN document_versions v ON v.version = d.version
ORDER BY d.path;

-- list_changes --
-- The versions after one, with the current version of the same document.
SELECT v.path, v.version, d.version, coalesce(d.size, 0) FROM document_versions v LEFT JOIN documents d ON d.path = v.path
WHERE v.version > :since AND v.path <> '';

-- count_documents --
SELECT count(*) FROM documents;

-- insert_document_version --
-- New content of a document, or its removal.
INSERT INTO document_versions (path, data, written) VALUES (:path, :data, :written) RETURNING version;

-- save_document --
-- This is its current version.
INSERT INTO documents (path, version, size) VALUES (:path, :version, :size)
ON CONFLICT (path) DO UPDATE SET version = excluded.version, size = excluded.size;

-- delete_document --
-- It has no current version.
DELETE FROM documents WHERE path = :path;

-- insert_ledger_line --
-- A new line.
INSERT INTO ledger_lines (hash, line) VALUES (:hash, :line) ON CONFLICT (hash) DO NOTHING;

-- list_ledger_lines --
-- In order.
SELECT number, line FROM ledger_lines ORDER BY number;

-- last_ledger_line --
-- Its number.
SELECT coalesce(max(number), 0) FROM ledger_lines;

-- update_ledger_line --
-- A line lost words, unless another line is equal already.
UPDATE ledger_lines SET hash = :hash, line = :line
WHERE number = :number AND NOT EXISTS (SELECT 1 FROM ledger_lines o WHERE o.hash = :hash);

-- delete_ledger_line --
-- Another line is equal.
DELETE FROM ledger_lines WHERE number = :number;

-- list_former_versions --
-- Former contents of documents, in portions.
SELECT v.version, v.path, v.data FROM document_versions v
WHERE v.version > :after AND v.data IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.version = v.version)
ORDER BY v.version LIMIT :limit;

-- blank_version --
-- Delete path and bytes, but keep the number.
UPDATE document_versions SET path = '', data = NULL WHERE version = :version;

-- blank_versions_of --
-- The same for all versions of a document.
UPDATE document_versions SET path = '', data = NULL WHERE path = :path;

-- blank_removals --
-- Delete the path of a document whose versions are all forgotten.
UPDATE document_versions v SET path = ''
WHERE v.data IS NULL AND v.path <> ''
    AND NOT EXISTS (SELECT 1 FROM document_versions o WHERE o.path = v.path AND o.data IS NOT NULL);

-- size_of_ledger --
-- In bytes, with line ends.
SELECT coalesce(sum(length(line) + 1), 0) FROM ledger_lines;
