-- last_document_version --
-- The highest version number.
SELECT coalesce(max(version), 0) FROM document_versions;

-- list_changes_since --
-- Contents of documents changed after a version. Without bytes, the document was removed.
SELECT v.path, v.version, v.data FROM document_versions v
WHERE v.version > :since AND v.path <> ''
    AND NOT EXISTS (SELECT 1 FROM document_versions o WHERE o.path = v.path AND o.version > v.version)
ORDER BY v.version LIMIT :limit;

-- list_documents_at --
-- The version of each document when the highest number was this.
SELECT v.path, max(v.version) FROM document_versions v WHERE v.version <= :at AND v.path <> '' GROUP BY v.path;

-- read_version --
-- The content of a version.
SELECT data FROM document_versions WHERE version = :version;

-- list_ledger_since --
-- Lines of the ledger after a number, in order.
SELECT number, line FROM ledger_lines WHERE number > :since ORDER BY number LIMIT :limit;
