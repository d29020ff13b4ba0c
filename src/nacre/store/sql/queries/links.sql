-- list_links --
-- From or to a memory.
SELECT l.source, l.rel, l.target, l.origin, l.reason, l.strength, l.valid_since, l.valid_until FROM links l
WHERE l.source = :id OR l.target = :id ORDER BY l.rel, l.target, l.source;

-- list_links_at --
-- Links from or to some memories that are valid on a day, except similarity. :among: the allowed other ends.
SELECT l.source, l.rel, l.target, l.origin, l.reason, l.strength, l.valid_since, l.valid_until FROM links l
WHERE l.source IN (SELECT value FROM json_each(:ids)) AND l.origin <> 'auto'
    AND (:among IS NULL OR l.target IN (SELECT value FROM json_each(:among)))
    AND (:day IS NULL OR (coalesce(l.valid_since <= :day, TRUE) AND coalesce(l.valid_until > :day, TRUE)))
UNION ALL
SELECT l.source, l.rel, l.target, l.origin, l.reason, l.strength, l.valid_since, l.valid_until FROM links l
WHERE l.target IN (SELECT value FROM json_each(:ids)) AND l.source NOT IN (SELECT value FROM json_each(:ids))
    AND l.origin <> 'auto' AND (:among IS NULL OR l.source IN (SELECT value FROM json_each(:among)))
    AND (:day IS NULL OR (coalesce(l.valid_since <= :day, TRUE) AND coalesce(l.valid_until > :day, TRUE)));

-- page_links --
-- Links of a memory, or between active memories. The last column is the total.
SELECT l.source, l.rel, l.target, l.origin, l.reason, l.strength, l.valid_since, l.valid_until,
    count(*) OVER ()
FROM links l
LEFT JOIN active_memories s ON s.id = l.source
LEFT JOIN active_memories t ON t.id = l.target
WHERE CASE WHEN :memory IS NULL THEN s.id IS NOT NULL AND t.id IS NOT NULL ELSE l.source = :memory OR l.target = :memory END
    AND (:relations = '[]' OR l.rel IN (SELECT value FROM json_each(:relations)))
    AND CASE WHEN :origins = '[]' THEN l.origin <> 'auto' ELSE l.origin IN (SELECT value FROM json_each(:origins)) END
    AND (:day IS NULL OR (coalesce(l.valid_since <= :day, TRUE) AND coalesce(l.valid_until > :day, TRUE)))
    AND (:project IS NULL OR s.project = :project OR t.project = :project)
ORDER BY l.source DESC, l.rel, l.target LIMIT :limit OFFSET :offset;

-- count_links --
-- The links that all interfaces show: between two active memories, from front matter or text, and valid on the
-- day. Few memories are not active, so these are looked up once.
WITH past (id) AS MATERIALIZED (
    SELECT id FROM memories WHERE superseded_by IS NOT NULL OR retired_at IS NOT NULL
)
SELECT count(*) FROM links l
JOIN memories s ON s.id = l.source AND s.id NOT IN (SELECT id FROM past)
JOIN memories t ON t.id = l.target AND t.id NOT IN (SELECT id FROM past)
WHERE l.origin <> 'auto' AND coalesce(l.valid_since <= :day, TRUE) AND coalesce(l.valid_until > :day, TRUE)
    AND (:project IS NULL OR (s.project = :project AND t.project = :project));

-- count_alike --
-- Pairs of similar memories, in either direction.
SELECT count(DISTINCT min(l.source, l.target) || ' ' || max(l.source, l.target)) FROM links l
JOIN active_memories s ON s.id = l.source
JOIN active_memories t ON t.id = l.target
WHERE l.origin = 'auto' AND (:project IS NULL OR (s.project = :project AND t.project = :project));

-- list_links_between --
-- The links that count_links counts.
SELECT l.source, l.target, coalesce(l.strength, 0.5) FROM links l
JOIN active_memories s ON s.id = l.source
JOIN active_memories t ON t.id = l.target
WHERE l.origin <> 'auto' AND coalesce(l.valid_since <= :day, TRUE) AND coalesce(l.valid_until > :day, TRUE)
    AND (:project IS NULL OR (s.project = :project AND t.project = :project))
ORDER BY l.source, l.rel, l.target;

-- list_nodes --
-- Memories that can have links.
SELECT id FROM active_memories WHERE :project IS NULL OR project = :project ORDER BY id;

-- list_map_nodes --
-- Active memories with their content.
SELECT id, subject, kind, project, importance, trust = 'trusted', content
FROM active_memories WHERE :project IS NULL OR project = :project ORDER BY id;

-- list_map_links --
-- All links valid on a day, except similarity.
SELECT source, target, rel FROM links
WHERE origin <> 'auto' AND coalesce(valid_since <= :day, TRUE) AND coalesce(valid_until > :day, TRUE)
ORDER BY source, rel, target;

-- list_map_groups --
-- The session and the tags of all memories, as (kind, value, memory).
SELECT 'session', session, id FROM memories WHERE session IS NOT NULL UNION ALL SELECT 'tag', tag, memory FROM tags
ORDER BY 3, 1, 2;

-- list_known_files --
-- Names among these that files in sessions have.
SELECT DISTINCT name FROM files WHERE name IN (SELECT value FROM json_each(:names));

-- list_ends --
-- Memories at the ends of links, in any state.
SELECT id, subject, kind, project, superseded_by IS NOT NULL, retired_at IS NOT NULL, trust FROM memories
WHERE id IN (SELECT value FROM json_each(:ids));

-- list_derived_links --
-- Similarity links, which are not in files.
SELECT l.source, l.rel, l.target, l.origin, l.reason, l.strength, l.valid_since, l.valid_until FROM links l
WHERE l.origin = 'auto' ORDER BY l.source, l.rel, l.target;

