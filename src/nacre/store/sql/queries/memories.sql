-- set_importance --
-- Use changes only this field, so that text and vectors stay valid.
UPDATE memories SET importance = :importance WHERE id = :memory;

-- delete_memory --
-- Before its new version is inserted, or after its file was deleted.
DELETE FROM memories WHERE id = :id RETURNING row, content;

-- find_memory --
-- In any state.
SELECT * FROM memories WHERE id = :id;

-- find_memories_by_prefix --
-- By the start of the id.
SELECT * FROM memories WHERE id >= :prefix AND id < :prefix || 'g' ORDER BY id LIMIT 3;

-- find_memories_by_suffix --
-- By the end of the id, because ids created at the same time have the same start.
SELECT * FROM memories WHERE substr(id, length(id) - length(:suffix) + 1) = :suffix ORDER BY id LIMIT 3;

-- find_memories_by_subject --
-- Ignoring case.
SELECT * FROM active_memories WHERE lower(subject) = lower(:subject) ORDER BY row LIMIT 3;

-- find_past_memories_by_subject --
-- The latest memory, if none is active.
SELECT * FROM memories WHERE lower(subject) = lower(:subject) ORDER BY created DESC, row LIMIT 1;

-- find_memories_by_row --
-- The memories that a search found and a filter admitted, perhaps for a day in the past.
SELECT * FROM past_memories WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) ORDER BY row;

-- find_active_memories --
-- By id.
SELECT * FROM past_memories WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- find_memory_by_content --
-- In any state, because retired memories are not restored automatically. Active ones come first.
SELECT id FROM memories WHERE content_hash = :content_hash
ORDER BY superseded_by IS NOT NULL OR retired_at IS NOT NULL, created DESC, row LIMIT 1;

-- list_memories_of_files --
-- Active memories imported from some files.
SELECT * FROM active_memories WHERE source_file IN (SELECT value FROM json_each(:files)) ORDER BY row;

-- list_memories_of_session --
-- In any state, so that extraction does not store them again.
SELECT id, kind, content, turns FROM memories WHERE session = :session
UNION ALL
SELECT m.id, m.kind, m.content, c.turns FROM confirmations c JOIN memories m ON m.id = c.memory
WHERE c.session = :session;

-- list_news --
-- Recent memories for a session that did not store them. A mark beyond the last row is from another database.
SELECT m.* FROM active_memories m
WHERE m.row > CASE WHEN :mark <= (SELECT coalesce(max(row), 0) FROM memories) THEN :mark ELSE 0 END
    AND m.id >= :first_id AND m.importance >= :least AND m.created >= :since AND m.trust = 'trusted'
    AND m.inbox = 0 AND m.proposed = 0 AND (m.project IS NULL OR m.project = :project)
    AND (m.session IS NULL OR m.session NOT IN (SELECT value FROM json_each(:sessions)))
    AND (m.valid_until IS NULL OR m.valid_until >= :today)
    AND (m.expires_on IS NULL OR m.expires_on > :today)
ORDER BY m.row LIMIT :limit;

-- find_last_row --
-- Row numbers increase and are never reused.
SELECT max(row) FROM memories;

-- find_stored --
-- Whether a session, or an agent in its project, has stored a memory since the mark.
SELECT 1 FROM memories m
WHERE m.row > CASE WHEN :mark <= (SELECT coalesce(max(row), 0) FROM memories) THEN :mark ELSE 0 END
    AND (m.session IN (SELECT value FROM json_each(:sessions)) OR (m.session IS NULL AND m.speaker = 'agent' AND m.project IS NOT DISTINCT FROM :project))
LIMIT 1;

-- list_all_memory_ids --
-- To compare the index with the vault.
SELECT id FROM memories;

-- list_memory_projects --
-- Including projects without a page.
SELECT DISTINCT project FROM active_memories WHERE project IS NOT NULL;

-- count_memories --
-- Active memories by kind.
SELECT kind, count(*) FROM active_memories GROUP BY kind ORDER BY count(*) DESC, kind;

-- count_inactive --
-- Superseded and retired memories.
SELECT count(*) FILTER (WHERE superseded_by IS NOT NULL), count(*) FILTER (WHERE retired_at IS NOT NULL) FROM memories;

-- list_lost --
-- Superseded memories without a valid successor: it is missing or retired, or the chain is circular.
WITH RECURSIVE held (id) AS (
    SELECT id FROM active_memories
    UNION
    SELECT m.id FROM memories m JOIN held ON m.superseded_by = held.id
)
SELECT id, subject FROM memories WHERE retired_at IS NULL AND id NOT IN (SELECT id FROM held) ORDER BY id;

-- insert_tag --
-- If missing.
INSERT INTO tags (memory, tag) VALUES (:memory, :tag)
ON CONFLICT DO NOTHING;

-- insert_link --
-- A link in front matter takes precedence.
INSERT INTO links (source, rel, target, origin, reason, strength, valid_since, valid_until)
VALUES (:source, :rel, :target, :origin, :reason, :strength, :since, :until)
ON CONFLICT (source, rel, target) DO UPDATE SET
    origin = excluded.origin, reason = excluded.reason, strength = excluded.strength,
    valid_since = excluded.valid_since, valid_until = excluded.valid_until;

-- delete_links_of --
-- Before they are stored again.
DELETE FROM links WHERE source = :source AND origin NOT IN ('auto', 'body');

-- list_links_from --
-- The links in the front matter of some memories.
SELECT source, rel, target, reason, origin, strength, valid_since, valid_until FROM links
WHERE origin NOT IN ('auto', 'body') AND source IN (SELECT value FROM json_each(:ids)) ORDER BY source, rel, target;

-- list_neighbours --
-- The memories linked with some memories, on a day. Similar memories are found by words and vectors instead.
SELECT l.source, l.rel, l.target, coalesce(l.strength, 0.5) FROM links l
WHERE l.source IN (SELECT value FROM json_each(:ids)) AND l.origin <> 'auto'
    AND coalesce(l.valid_since <= :day, TRUE) AND coalesce(l.valid_until > :day, TRUE)
    AND EXISTS (SELECT 1 FROM past_memories WHERE id = l.target)
UNION
SELECT l.target, l.rel, l.source, coalesce(l.strength, 0.5) FROM links l
WHERE l.target IN (SELECT value FROM json_each(:ids)) AND l.origin <> 'auto'
    AND coalesce(l.valid_since <= :day, TRUE) AND coalesce(l.valid_until > :day, TRUE)
    AND EXISTS (SELECT 1 FROM past_memories WHERE id = l.source)
ORDER BY 1, 2, 3;

-- list_tags --
-- The tags of some memories.
SELECT memory, tag FROM tags WHERE memory IN (SELECT value FROM json_each(:ids)) ORDER BY tag;

-- index_memories --
-- Full text of memories.
INSERT INTO memories_fts (rowid, subject, content, tags)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:texts);

-- index_memory_parts --
-- Identifiers in memories, to find parts of names and paths.
INSERT INTO memories_parts (rowid, identifiers) SELECT value ->> 0, value ->> 1 FROM json_each(:texts);

-- find_former_memories --
-- Superseded memories, with the active memory at the end of each chain. A circular chain has no end.
WITH RECURSIVE former (row, next) AS (
    SELECT row, superseded_by FROM past_memories WHERE superseded_by IS NOT NULL
    UNION
    SELECT f.row, m.superseded_by FROM former f JOIN past_memories m ON m.id = f.next
    WHERE m.superseded_by IS NOT NULL
)
SELECT f.row, a.row FROM former f JOIN active_memories a ON a.id = f.next;

-- list_memories_after --
-- All memories, in batches.
SELECT * FROM memories WHERE row > :after ORDER BY row LIMIT :limit;

-- list_stale --
-- Possibly outdated memories according to their files, unless the user has settled exactly this, or else
-- according to pending reviews.
WITH found AS (
    SELECT s.memory, s.confidence, s.detail FROM stale_memories s JOIN active_memories m ON m.id = s.memory
    WHERE NOT EXISTS (
        SELECT 1 FROM review_queue r
        WHERE r.memory = s.memory AND r.reason = 'stale' AND r.status = 'dismissed' AND r.detail = s.detail
    )
)
SELECT memory, confidence, detail FROM found
UNION ALL
SELECT r.memory, 0.5, r.detail FROM review_queue r JOIN active_memories m ON m.id = r.memory
WHERE r.status = 'pending' AND r.reason = 'stale' AND NOT EXISTS (
    SELECT 1 FROM found WHERE found.memory = r.memory
);

-- delete_stale_of --
-- Its content changed.
DELETE FROM stale_memories WHERE memory = :memory;

-- delete_stale --
-- Before the list is stored again.
DELETE FROM stale_memories;

-- delete_stale_reviews --
-- Pending only because of files, for memories that are no longer outdated.
DELETE FROM review_queue
WHERE reason = 'stale' AND shown_by = '[]' AND status = 'pending' AND detail <> :unsaid
    AND memory NOT IN (SELECT value FROM json_each(:found));

-- insert_stale --
-- A possibly outdated memory.
INSERT INTO stale_memories (memory, updated, confidence, detail)
SELECT id, updated, :confidence, :detail FROM active_memories WHERE id = :memory
ON CONFLICT (memory) DO UPDATE SET
    updated = excluded.updated, confidence = excluded.confidence, detail = excluded.detail;
