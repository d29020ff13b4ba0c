-- list_names_met --
-- What projects of sessions were called when these were met, and are called now.
SELECT DISTINCT coalesce(met_as, project), project FROM sessions WHERE project IS NOT NULL;

-- move_sessions --
-- The sessions of a project that was met by a name belong to another one now.
UPDATE sessions SET project = :into, met_as = nullif(:met, :into) WHERE project = :project AND coalesce(met_as, project) = :met;

-- list_folders_of_sessions --
-- In which folders the sessions of a project took place.
SELECT DISTINCT cwd FROM sessions WHERE project = :project AND met_as IS NULL;

-- move_sessions_of_folder --
-- The sessions of a project in a folder belong to another one.
UPDATE sessions SET project = :into WHERE project = :project AND met_as IS NULL AND cwd IS NOT DISTINCT FROM :folder;

-- count_sessions_by_project --
-- How many sessions of its own each project has, and when something was last said in one.
SELECT project, count(*), max(coalesce(ended, started)) FROM sessions WHERE project IS NOT NULL AND kind = 'main' GROUP BY project;

-- count_memories_by_project --
-- How many memories hold in each project, and when one was last written.
SELECT project, count(*), max(updated) FROM active_memories WHERE project IS NOT NULL GROUP BY project;

-- list_memories_of_project --
-- Memories of a project in any state, some at a time.
SELECT id FROM memories WHERE project = :project ORDER BY row LIMIT :limit;
