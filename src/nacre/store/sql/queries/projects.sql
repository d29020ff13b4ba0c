-- list_names_met --
-- The recorded and current names of projects with sessions.
SELECT DISTINCT coalesce(met_as, project), project FROM sessions WHERE project IS NOT NULL;

-- move_sessions --
-- Move sessions of a project with a former name to another project.
UPDATE sessions SET project = :into, met_as = nullif(:former, :into) WHERE project = :project AND coalesce(met_as, project) = :former;

-- move_sessions_of_folder --
-- Move a project's sessions in a folder to another project.
UPDATE sessions SET project = :into
WHERE project IS NOT DISTINCT FROM :project AND met_as IS NULL AND cwd IS NOT DISTINCT FROM :folder;

-- count_sessions_by_project --
-- Main sessions of each project, and the time of the last.
SELECT project, count(*), max(coalesce(ended, started)) FROM sessions WHERE project IS NOT NULL AND kind = 'main' GROUP BY project;

-- count_memories_by_project --
-- Valid memories of each project, and the last write.
SELECT project, count(*), max(updated) FROM active_memories WHERE project IS NOT NULL GROUP BY project;

-- list_memories_of_project --
-- In any state, in batches.
SELECT id FROM memories WHERE project IS NOT DISTINCT FROM :project ORDER BY row LIMIT :limit;

-- has_branch --
-- Whether a session in a folder was on a branch.
SELECT EXISTS (SELECT 1 FROM sessions WHERE cwd = :folder AND branch IS NOT NULL);

-- is_shared --
-- By two projects.
SELECT count(DISTINCT project) > 1 FROM sessions WHERE cwd = :folder AND met_as IS NOT NULL;

-- list_places --
-- The projects, folders and branches of sessions.
SELECT DISTINCT project, cwd, branch FROM sessions WHERE cwd IS NOT NULL AND met_as IS NULL AND label IS NULL ORDER BY 1, 2, 3;
