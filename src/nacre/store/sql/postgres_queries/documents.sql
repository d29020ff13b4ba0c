-- read_document --
-- What the present version of a document holds.
SELECT v.data FROM documents d JOIN document_versions v ON v.version = d.version WHERE d.path = :path;

-- find_document --
-- Its version, size and when it was written.
SELECT d.version, d.size, v.written FROM documents d JOIN document_versions v ON v.version = d.version WHERE d.path = :path;

-- list_documents --
-- All documents.
SELECT d.path, d.version, d.size, v.written FROM documents d JOIN document_versions v ON v.version = d.version
ORDER BY d.path;

-- list_changes --
-- The versions after one, with the present one of the same document.
SELECT v.path, v.version, d.version, coalesce(d.size, 0) FROM document_versions v LEFT JOIN documents d ON d.path = v.path
WHERE v.version > :since AND v.path <> '';

-- count_documents --
-- How many there are.
SELECT count(*) FROM documents;

-- insert_document_version --
-- What a document holds from now on, or that it is removed.
INSERT INTO document_versions (path, data, written) VALUES (:path, :data, :written) RETURNING version;

-- save_document --
-- That is its present version.
INSERT INTO documents (path, version, size) VALUES (:path, :version, :size)
ON CONFLICT (path) DO UPDATE SET version = excluded.version, size = excluded.size;

-- delete_document --
-- It has none.
DELETE FROM documents WHERE path = :path;

-- list_document_versions --
-- Every version of a document, the first one first.
SELECT version, data, written FROM document_versions WHERE path = :path ORDER BY version;

-- insert_ledger_line --
-- A line that is not there yet.
INSERT INTO ledger_lines (hash, line) VALUES (:hash, :line) ON CONFLICT (hash) DO NOTHING;

-- list_ledger_lines --
-- All lines in their order.
SELECT number, line FROM ledger_lines ORDER BY number;

-- last_ledger_line --
-- How far it goes.
SELECT coalesce(max(number), 0) FROM ledger_lines;

-- update_ledger_line --
-- A line lost words, unless another says the same already.
UPDATE ledger_lines SET hash = :hash, line = :line
WHERE number = :number AND NOT EXISTS (SELECT 1 FROM ledger_lines o WHERE o.hash = :hash);

-- delete_ledger_line --
-- Another line says the same.
DELETE FROM ledger_lines WHERE number = :number;

-- list_former_versions --
-- What documents said before, in pieces.
SELECT v.version, v.path, v.data FROM document_versions v
WHERE v.version > :after AND v.data IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.version = v.version)
ORDER BY v.version LIMIT :limit;

-- blank_version --
-- The number stays; path and bytes are forgotten.
UPDATE document_versions SET path = '', data = NULL WHERE version = :version;

-- blank_versions_of --
-- The same, of all that a document ever said.
UPDATE document_versions SET path = '', data = NULL WHERE path = :path;

-- blank_removals --
-- Of a document whose every version is forgotten nobody is to know the path.
UPDATE document_versions v SET path = ''
WHERE v.data IS NULL AND v.path <> ''
    AND NOT EXISTS (SELECT 1 FROM document_versions o WHERE o.path = v.path AND o.data IS NOT NULL);

-- delete_former_versions --
-- What a page said before that is made from memories.
DELETE FROM document_versions v
WHERE v.path = :path AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.version = v.version);

-- size_of_ledger --
-- Its bytes, with the ends of its lines.
SELECT coalesce(sum(length(line) + 1), 0) FROM ledger_lines;
