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
SELECT line FROM ledger_lines ORDER BY number;

-- size_of_ledger --
-- Its bytes, with the ends of its lines.
SELECT coalesce(sum(length(line) + 1), 0) FROM ledger_lines;
