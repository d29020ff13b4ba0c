-- create_known_memories --
-- Memories as last reported. Deleted with the connection.
CREATE TEMP TABLE IF NOT EXISTS known_memories (
    id TEXT COLLATE "C" PRIMARY KEY,
    updated BIGINT NOT NULL,
    flags BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    project TEXT COLLATE "C",
    active BOOLEAN NOT NULL
);

-- create_memory_states --
-- The values that distinguish the states of a memory.
CREATE OR REPLACE TEMP VIEW memory_states AS
SELECT id, updated, importance * 4 + proposed * 2 + inbox AS flags, content_hash AS hash, project,
    superseded_by IS NULL AND retired_at IS NULL AS active
FROM memories;

-- give_pages_back --
-- The server manages its own memory.
SELECT 1;
