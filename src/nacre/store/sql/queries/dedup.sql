-- insert_confirmation --
-- Where a memory was stated again.
INSERT INTO confirmations (memory, ordinal, at, session, turns) VALUES (:memory, :ordinal, :at, :session, :turns);

-- list_confirmations --
-- The confirmations of some memories, in order.
SELECT memory, at, session, turns FROM confirmations
WHERE memory IN (SELECT value FROM json_each(:ids)) ORDER BY memory, ordinal;

-- list_stated --
-- Memories stated in a session's turns: turns, text, whether superseded. Retired memories are omitted.
SELECT m.turns, m.subject || ' ' || m.content, m.superseded_by IS NOT NULL FROM past_memories m
WHERE m.session = :session
UNION ALL
SELECT c.turns, m.subject || ' ' || m.content, m.superseded_by IS NOT NULL
FROM confirmations c JOIN past_memories m ON m.id = c.memory WHERE c.session = :session;

-- list_memories_titled --
-- Active memories of a project with a title or a canonical key.
SELECT m.row FROM active_memories m
WHERE m.project IS NOT DISTINCT FROM :project AND (lower(m.subject) = lower(:subject) OR m.canonical_key = :canonical_key)
ORDER BY m.row LIMIT :limit;

-- list_superseded_by --
-- The memories that a memory superseded.
SELECT id FROM memories WHERE superseded_by = :id ORDER BY created, row;

-- insert_unsettled --
-- A memory to be compared by meaning.
INSERT INTO unsettled (memory) VALUES (:memory)
ON CONFLICT DO NOTHING;

-- delete_unsettled --
-- After the comparison.
DELETE FROM unsettled WHERE memory = :memory;

-- list_unsettled --
-- The queued memories among some rows, oldest first.
SELECT u.memory FROM unsettled u JOIN memories m ON m.id = u.memory
WHERE m.row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) ORDER BY m.created, m.row;

-- delete_auto_links --
-- Before similarity is computed again.
DELETE FROM links WHERE source = :source AND origin = 'auto';

-- insert_auto_link --
-- A manual link stays unchanged.
INSERT INTO links (source, rel, target, origin, strength)
VALUES (:source, 'related_to', :target, 'auto', :strength)
ON CONFLICT DO NOTHING;

-- find_memory_row --
-- By id.
SELECT row FROM memories WHERE id = :id;
