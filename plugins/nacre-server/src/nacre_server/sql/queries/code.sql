-- list_mentions_of_keys --
-- Memories of a project or of none with names that end like this.
SELECT c.key, c.written, c.manner, m.id FROM code_mentions c JOIN active_memories m ON m.id = c.memory
WHERE c.key IN (SELECT value FROM json_each(:keys)) AND (m.project IS NULL OR m.project = :project)
ORDER BY m.updated DESC, m.id LIMIT :limit;
