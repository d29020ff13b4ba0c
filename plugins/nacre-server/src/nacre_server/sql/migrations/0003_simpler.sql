-- Packs no longer share segments.
DROP VIEW nacre.archive_segments;
DROP TABLE nacre_rows.archive_segments;
DROP INDEX nacre_rows.archived_fingerprint;

-- Workers need no queue of jobs.
DROP SCHEMA IF EXISTS nacre_jobs CASCADE;
