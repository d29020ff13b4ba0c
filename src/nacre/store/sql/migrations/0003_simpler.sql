-- Packs no longer share segments.
DROP TABLE archive_segments;
DROP INDEX archived_fingerprint;
