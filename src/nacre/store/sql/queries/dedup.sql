-- insert_confirmation --
-- Where a memory was said again.
INSERT INTO confirmations (memory, ordinal, at, session, turns) VALUES (:memory, :ordinal, :at, :session, :turns);

-- list_confirmations --
-- Of some memories, in order.
SELECT memory, at, session, turns FROM confirmations
WHERE memory IN (SELECT value FROM json_each(:ids)) ORDER BY memory, ordinal;

-- list_stated --
-- What the turns of a session are evidence of: the turns, the words, whether it is superseded. What is retired is not told.
SELECT m.turns, m.subject || ' ' || m.content, m.superseded_by IS NOT NULL FROM past_memories m
WHERE m.session = :session
UNION ALL
SELECT c.turns, m.subject || ' ' || m.content, m.superseded_by IS NOT NULL
FROM confirmations c JOIN past_memories m ON m.id = c.memory WHERE c.session = :session;

-- list_memories_titled --
-- Active memories of one project with a title or a canonical key.
SELECT m.row FROM active_memories m
WHERE m.project IS NOT DISTINCT FROM :project AND (lower(m.subject) = lower(:subject) OR m.canonical_key = :canonical_key)
ORDER BY m.row LIMIT :limit;

-- list_superseded_by --
-- What a memory replaced.
SELECT id FROM memories WHERE superseded_by = :id ORDER BY created, row;

-- insert_unsettled --
-- A memory that waits to be compared by meaning.
INSERT INTO unsettled (memory) VALUES (:memory)
ON CONFLICT DO NOTHING;

-- delete_unsettled --
-- Compared.
DELETE FROM unsettled WHERE memory = :memory;

-- list_unsettled --
-- Which of some rows wait; the oldest first.
SELECT u.memory FROM unsettled u JOIN memories m ON m.id = u.memory
WHERE m.row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) ORDER BY m.created, m.row;

-- delete_auto_links --
-- Before the neighbours of a memory are linked anew.
DELETE FROM links WHERE source = :source AND origin = 'auto';

-- insert_auto_link --
-- A link made by hand stays what it is.
INSERT INTO links (source, rel, target, origin, strength)
VALUES (:source, 'related_to', :target, 'auto', :strength)
ON CONFLICT DO NOTHING;

-- find_memory_row --
-- The row of a memory.
SELECT row FROM memories WHERE id = :id;
