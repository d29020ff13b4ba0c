-- insert_memory_name --
-- A memory's own name takes precedence over an equal alias.
INSERT INTO memory_names (name, memory, written, is_alias) VALUES (:name, :memory, :written, :is_alias)
ON CONFLICT DO NOTHING;

-- insert_mention --
-- A name of another memory in a text.
INSERT INTO mentions (source, name) VALUES (:source, :name)
ON CONFLICT DO NOTHING;

-- delete_memory_names --
-- Before they are stored again.
DELETE FROM memory_names WHERE memory = :memory;

-- delete_mentions --
-- Before they are stored again.
DELETE FROM mentions WHERE source = :source;

-- list_memory_names --
-- The names of a memory.
SELECT name FROM memory_names WHERE memory = :memory;

-- list_lost_memory_names --
-- Former names of a memory that other memories still link to, except aliases.
SELECT written FROM memory_names
WHERE memory = :memory AND is_alias = 0 AND name NOT IN (SELECT value FROM json_each(:kept))
    AND EXISTS (SELECT 1 FROM mentions WHERE mentions.name = memory_names.name AND mentions.source <> :memory)
ORDER BY name;

-- find_path_of --
-- The file of a memory.
SELECT path FROM vault_files WHERE memory = :memory;

-- list_mentioning --
-- Memories whose text mentions some names.
SELECT DISTINCT source FROM mentions WHERE name IN (SELECT value FROM json_each(:names));

-- delete_body_links --
-- Before they are resolved again.
DELETE FROM links WHERE origin = 'body' AND source IN (SELECT value FROM json_each(:sources));

-- insert_body_links --
-- A name resolves to the only memory that has it. Active memories are preferred over superseded ones, current
-- names over aliases, and the same project over global memories. A trusted memory never links to an untrusted
-- one. If several are left, the name does not resolve. Retired memories have no names. A link in front matter
-- takes precedence.
INSERT INTO links (source, rel, target, origin)
SELECT source, 'related_to', target, 'body'
FROM (
    SELECT source, target, count(*) OVER (PARTITION BY source, name) AS rivals
    FROM (
        SELECT m.source, m.name, t.id AS target, rank() OVER (
            PARTITION BY m.source, m.name
            ORDER BY t.superseded_by IS NOT NULL,
                s.trust = 'trusted' AND s.proposed = 0 AND (t.trust <> 'trusted' OR t.proposed = 1),
                n.is_alias,
                CASE WHEN t.project IS NOT DISTINCT FROM s.project THEN 0 WHEN t.project IS NULL THEN 1 ELSE 2 END
        ) AS place
        FROM mentions m
        JOIN memories s ON s.id = m.source
        JOIN memory_names n ON n.name = m.name
        JOIN memories t ON t.id = n.memory
        WHERE m.source IN (SELECT value FROM json_each(:sources)) AND t.id <> m.source AND t.retired_at IS NULL
    ) AS ranked
    WHERE place = 1
) AS mentioned
WHERE rivals = 1 AND NOT EXISTS (
    SELECT 1 FROM links l
    WHERE l.source = mentioned.source AND l.target = mentioned.target AND l.origin NOT IN ('auto', 'body')
)
GROUP BY source, target
ON CONFLICT (source, rel, target) DO UPDATE SET origin = 'body' WHERE links.origin = 'auto';
