-- What a session's project was called when it was met: ``project`` follows the page that has this name now. Empty where
-- both are the same.
ALTER TABLE sessions ADD COLUMN met_as TEXT;

-- What a project's page says that it depends on, by name.
CREATE TABLE project_dependencies (
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

-- Names that are no project's own, and lead to one: it was called so before, or its page says so.
CREATE VIEW other_names AS
SELECT k.value AS name, p.slug FROM project_keys k JOIN projects p ON p.id = k.project
WHERE k.key = 'alias' AND k.value NOT IN (SELECT slug FROM projects);

-- Every page is read anew, for what it depends on.
UPDATE projects SET mtime_ns = 0;
