-- insert_memory_name --
-- Of a name that is both, its own goes before the alias.
INSERT INTO memory_names (name, memory, written, is_alias) VALUES (:name, :memory, :written, :is_alias)
ON CONFLICT DO NOTHING;

-- insert_mention --
-- What a body calls another memory.
INSERT INTO mentions (source, name) VALUES (:source, :name)
ON CONFLICT DO NOTHING;

-- delete_memory_names --
-- Before its names are noted anew.
DELETE FROM memory_names WHERE memory = :memory;

-- delete_mentions --
-- The same for what its body calls others.
DELETE FROM mentions WHERE source = :source;

-- list_memory_names --
-- What a memory is called.
SELECT name FROM memory_names WHERE memory = :memory;

-- list_lost_memory_names --
-- Names by which other memories link one, and which it does not bear any more; an alias is taken away on purpose.
SELECT written FROM memory_names
WHERE memory = :memory AND is_alias = 0 AND name NOT IN (SELECT value FROM json_each(:kept))
    AND EXISTS (SELECT 1 FROM mentions WHERE mentions.name = memory_names.name AND mentions.source <> :memory)
ORDER BY name;

-- find_path_of --
-- Where a memory's file lies.
SELECT path FROM vault_files WHERE memory = :memory;

-- list_mentioning --
-- Whose bodies use some names.
SELECT DISTINCT source FROM mentions WHERE name IN (SELECT value FROM json_each(:names));

-- delete_body_links --
-- Before the links of some bodies are found anew.
DELETE FROM links WHERE origin = 'body' AND source IN (SELECT value FROM json_each(:sources));

-- insert_body_links --
-- A name leads to the one memory that bears it: rather to one that holds than to a superseded one, to none that nobody
-- answers for where the source is answered for, rather to a present name than to an alias, and rather to one of the same
-- project, then to one that holds everywhere. Where several are left, it leads nowhere. What is retired has no name.
-- Where front matter has a link between the two, that says more.
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
