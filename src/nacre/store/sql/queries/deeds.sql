-- insert_files --
-- New paths.
INSERT INTO files (path, name)
SELECT DISTINCT value ->> 1, value ->> 2 FROM json_each(:uses) WHERE true
ON CONFLICT DO NOTHING;

-- insert_file_uses --
-- The uses of files in turns. A server expands the list before the limit.
INSERT INTO file_uses (file, turn, action)
SELECT f.row, t.row, u.action FROM (
    SELECT CAST(value ->> 0 AS BIGINT) AS turn, value ->> 1 AS path, value ->> 3 AS action FROM json_each(:uses) LIMIT -1
) u JOIN turns t ON t.row = u.turn JOIN files f ON f.path = u.path
WHERE true
ON CONFLICT DO NOTHING;

-- insert_failures --
-- Full text of failed calls.
INSERT INTO failures_fts (rowid, tried, error)
SELECT t.row, value ->> 1, value ->> 2 FROM json_each(:failures) JOIN turns t ON t.row = value ->> 0;

-- list_files_named --
-- In any folder.
SELECT row, path FROM files WHERE name = :last ORDER BY row;

-- list_all_files --
-- All paths ever used.
SELECT row, path FROM files ORDER BY row;

-- list_file_uses --
-- Operations on some files, newest first.
SELECT u.file, t.row, t.session, t.seq, coalesce(t.time, s.ended, s.started), u.action
FROM file_uses u JOIN turns t ON t.row = u.turn JOIN sessions s ON s.row = t.session
WHERE u.file IN (SELECT CAST(value AS BIGINT) FROM json_each(:files))
    AND (:project IS NULL OR s.project = :project)
    AND (:tool IS NULL OR s.tool = :tool)
    AND (:since IS NULL OR coalesce(t.time, s.ended, 0) >= :since)
    AND (:until IS NULL OR coalesce(t.time, s.ended, 0) < :until)
    AND (:reads = 1 OR u.action = 'edit')
ORDER BY coalesce(t.time, s.ended, s.started) DESC NULLS LAST, t.row DESC
LIMIT :limit;

-- list_requests --
-- By a speaker before a position, latest first.
SELECT row FROM turns
WHERE session = :session AND seq < :seq AND speaker = :speaker AND flags & :noise = 0 AND text <> ''
ORDER BY seq DESC LIMIT :limit;

-- list_largest_changes --
-- By name, most edits first.
SELECT max(f.path), max(s.tool), s.project, count(*), count(DISTINCT s.row)
FROM file_uses u JOIN files f ON f.row = u.file JOIN turns t ON t.row = u.turn JOIN sessions s ON s.row = t.session
WHERE u.action = 'edit' AND coalesce(s.file, '') NOT LIKE :without
GROUP BY s.project, f.name ORDER BY 4 DESC, f.name LIMIT :limit;
