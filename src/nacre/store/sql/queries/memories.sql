-- set_importance --
-- The one thing that use changes: the row, and with it text and vectors, stays.
UPDATE memories SET importance = :importance WHERE id = :id;

-- delete_memory --
-- An index row goes before its new version comes, or when its file is gone.
DELETE FROM memories WHERE id = :id RETURNING row, content;

-- find_memory --
-- One memory by id, whatever its state.
SELECT * FROM memories WHERE id = :id;

-- find_memories_by_prefix --
-- Ids are long; people type their beginning.
SELECT * FROM memories WHERE id >= :prefix AND id < :prefix || 'g' ORDER BY id LIMIT 3;

-- find_memories_by_suffix --
-- Or their end, which is what listings show: ids made in one moment begin alike.
SELECT * FROM memories WHERE substr(id, length(id) - length(:suffix) + 1) = :suffix ORDER BY id LIMIT 3;

-- find_memories_by_subject --
-- Or the subject.
SELECT * FROM active_memories WHERE lower(subject) = lower(:subject) ORDER BY row LIMIT 3;

-- find_past_memories_by_subject --
-- Of what is not active any more, the latest.
SELECT * FROM memories WHERE lower(subject) = lower(:subject) ORDER BY created DESC, row LIMIT 1;

-- find_memories_by_row --
-- The memories behind search hits: those that a filter let through, perhaps for a day in the past.
SELECT * FROM past_memories WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) ORDER BY row;

-- find_active_memories --
-- Several by id, to be let through by a filter.
SELECT * FROM past_memories WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- find_memory_by_content --
-- The same words again, in any state: a retired memory does not come back by itself. An active one comes first.
SELECT id FROM memories WHERE content_hash = :content_hash
ORDER BY superseded_by IS NOT NULL OR retired_at IS NOT NULL, created DESC, row LIMIT 1;

-- find_memory_by_key --
-- The active memory that holds a canonical key.
SELECT id FROM active_memories
WHERE canonical_key = :canonical_key AND kind = :kind AND project IS NOT DISTINCT FROM :project ORDER BY row LIMIT 1;

-- list_memories_of_files --
-- What was imported from these files and still holds.
SELECT * FROM active_memories WHERE source_file IN (SELECT value FROM json_each(:files)) ORDER BY row;

-- list_memories_of_session --
-- What was learned from a session, in any state: the re-extraction guard.
SELECT id, kind, content, turns FROM memories WHERE session = :session
UNION ALL
SELECT m.id, m.kind, m.content, c.turns FROM confirmations c JOIN memories m ON m.id = c.memory
WHERE c.session = :session;

-- list_news --
-- What was stored lately and matters to a session that did not store it. A mark beyond the last row is of another database.
SELECT m.* FROM active_memories m
WHERE m.row > CASE WHEN :mark <= (SELECT coalesce(max(row), 0) FROM memories) THEN :mark ELSE 0 END
    AND m.id >= :first_id AND m.importance >= :least AND m.created >= :said AND m.trust = 'trusted'
    AND m.inbox = 0 AND m.proposed = 0 AND (m.project IS NULL OR m.project = :project)
    AND (m.session IS NULL OR m.session NOT IN (SELECT value FROM json_each(:sessions)))
    AND (m.valid_until IS NULL OR m.valid_until >= :today)
    AND (m.expires_on IS NULL OR m.expires_on > :today)
ORDER BY m.row LIMIT :limit;

-- find_last_row --
-- Rows are given once, each larger than all before.
SELECT max(row) FROM memories;

-- find_stored --
-- Whether a session stored anything since, or an agent in its project.
SELECT 1 FROM memories m
WHERE m.row > CASE WHEN :mark <= (SELECT coalesce(max(row), 0) FROM memories) THEN :mark ELSE 0 END
    AND (m.session IN (SELECT value FROM json_each(:sessions)) OR (m.session IS NULL AND m.speaker = 'agent' AND m.project IS NOT DISTINCT FROM :project))
LIMIT 1;

-- list_all_memory_ids --
-- For comparing index and vault.
SELECT id FROM memories;

-- list_memory_projects --
-- Also those without a page.
SELECT DISTINCT project FROM active_memories WHERE project IS NOT NULL;

-- count_memories --
-- By kind, active ones.
SELECT kind, count(*) FROM active_memories GROUP BY kind ORDER BY count(*) DESC, kind;

-- count_inactive --
-- Superseded and retired.
SELECT count(*) FILTER (WHERE superseded_by IS NOT NULL), count(*) FILTER (WHERE retired_at IS NOT NULL) FROM memories;

-- list_lost --
-- Superseded by nothing that holds: what took their place is not there or retired, or they follow each other in a circle.
WITH RECURSIVE held (id) AS (
    SELECT id FROM active_memories
    UNION
    SELECT m.id FROM memories m JOIN held ON m.superseded_by = held.id
)
SELECT id, subject FROM memories WHERE retired_at IS NULL AND id NOT IN (SELECT id FROM held) ORDER BY id;

-- insert_tag --
-- Idempotent.
INSERT INTO tags (memory, tag) VALUES (:memory, :tag)
ON CONFLICT DO NOTHING;

-- insert_link --
-- Front matter is the truth for these.
INSERT INTO links (source, rel, target, origin, reason, strength, valid_since, valid_until)
VALUES (:source, :rel, :target, :origin, :reason, :strength, :since, :until)
ON CONFLICT (source, rel, target) DO UPDATE SET
    origin = excluded.origin, reason = excluded.reason, strength = excluded.strength,
    valid_since = excluded.valid_since, valid_until = excluded.valid_until;

-- delete_links_of --
-- Before a memory's links are written anew.
DELETE FROM links WHERE source = :source AND origin NOT IN ('auto', 'body');

-- list_links_from --
-- The edges that start at some memories: what their front matter says.
SELECT source, rel, target, reason, origin, strength, valid_since, valid_until FROM links
WHERE origin NOT IN ('auto', 'body') AND source IN (SELECT value FROM json_each(:ids)) ORDER BY source, rel, target;

-- list_neighbours --
-- One hop along the links from a set of memories that hold on a day. What is merely similar is found by its words and its
-- vector.
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
-- Identifiers of a memory, for parts of names and paths.
INSERT INTO memories_parts (rowid, identifiers) SELECT value ->> 0, value ->> 1 FROM json_each(:texts);

-- unindex_memory --
-- Full text goes with its row.
DELETE FROM memories_fts WHERE rowid = :row;

-- unindex_memory_parts --
-- Identifiers too.
DELETE FROM memories_parts WHERE rowid = :row;

-- find_former_memories --
-- What was replaced, and the active memory at the end of its chain; a circle in a file ends nowhere.
WITH RECURSIVE former (row, next) AS (
    SELECT row, superseded_by FROM past_memories WHERE superseded_by IS NOT NULL
    UNION
    SELECT f.row, m.superseded_by FROM former f JOIN past_memories m ON m.id = f.next
    WHERE m.superseded_by IS NOT NULL
)
SELECT f.row, a.row FROM former f JOIN active_memories a ON a.id = f.next;

-- memory_snapshot --
-- What tells that memories and projects are as they were: usage is not part of it.
SELECT count(*), coalesce(sum(row), 0), coalesce(sum(updated), 0), coalesce(sum(importance), 0),
    count(superseded_by), count(retired_at), (SELECT coalesce(sum(mtime_ns / 1000000), 0) || '/' || count(*) FROM projects)
FROM memories;

-- list_memories_after --
-- All of them, a portion at a time.
SELECT * FROM memories WHERE row > :after ORDER BY row LIMIT :limit;

-- list_stale --
-- Memories that may be out of date: as was found last by their files, unless somebody settled just that, else as they
-- wait in review.
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
-- A memory says something else from now on.
DELETE FROM stale_memories WHERE memory = :memory;

-- delete_stale --
-- Before they are found anew.
DELETE FROM stale_memories;

-- delete_stale_reviews --
-- What waits because of its files alone, and is not found out of date any more.
DELETE FROM review_queue
WHERE reason = 'stale' AND shown_by = '[]' AND status = 'pending' AND detail <> :unsaid
    AND memory NOT IN (SELECT value FROM json_each(:found));

-- insert_stale --
-- One of them.
INSERT INTO stale_memories (memory, updated, confidence, detail)
SELECT id, updated, :confidence, :detail FROM active_memories WHERE id = :memory
ON CONFLICT (memory) DO UPDATE SET
    updated = excluded.updated, confidence = excluded.confidence, detail = excluded.detail;
