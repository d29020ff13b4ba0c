-- insert_claim --
-- A memory has only one claim.
INSERT INTO claims (memory, entity, attribute, predicate, object, confidence)
VALUES (:memory, :entity, :attribute, :predicate, :object, :confidence)
ON CONFLICT (memory) DO UPDATE SET
    entity = excluded.entity, attribute = excluded.attribute, predicate = excluded.predicate,
    object = excluded.object, confidence = excluded.confidence;

-- list_claims_of --
-- The claims of some memories.
SELECT memory, entity, attribute, predicate, object, confidence FROM claims
WHERE memory IN (SELECT value FROM json_each(:ids));

-- list_entities --
-- The entities with the most active memories.
SELECT c.entity FROM claims c JOIN active_memories m ON m.id = c.memory
GROUP BY c.entity ORDER BY count(*) DESC, c.entity LIMIT :limit;

-- list_claims_of_entity --
-- (row, attribute) of a project's active memories with a claim about an entity, latest first.
SELECT m.row, c.attribute FROM claims c JOIN active_memories m ON m.id = c.memory
WHERE c.entity = :entity AND m.project IS NOT DISTINCT FROM :project ORDER BY m.created DESC, m.row DESC LIMIT :limit;

-- list_claims_of_attribute --
-- Rows of a project's active memories with a claim about an attribute of another entity, latest first.
SELECT m.row FROM claims c JOIN active_memories m ON m.id = c.memory
WHERE c.attribute = :attribute AND c.entity <> :entity AND m.project IS NOT DISTINCT FROM :project ORDER BY m.created DESC, m.row DESC LIMIT :limit;

-- insert_claims_waiting --
-- If the memory is already queued, it stays queued with its new text.
INSERT INTO claims_waiting (memory, since, due, reworded) VALUES (:memory, :at, 0, :reworded)
ON CONFLICT (memory) DO UPDATE SET reworded = max(claims_waiting.reworded, excluded.reworded);

-- list_claims_due --
-- Queued memories that are due, longest waiting first: (memory, tries, reworded).
SELECT memory, tries, reworded FROM claims_waiting WHERE due <= :at ORDER BY since, memory LIMIT :limit;

-- delete_claims_waiting --
-- After the judgement, or if given up.
DELETE FROM claims_waiting WHERE memory = :id;

-- postpone_claims_waiting --
-- After a failed try.
UPDATE claims_waiting SET due = :due, tries = tries + 1, note = :note WHERE memory = :memory;

-- postpone_all_claims_waiting --
-- No model is available. This is not a failed try.
UPDATE claims_waiting SET due = max(due, :due), note = :note;

-- hurry_claims_waiting --
-- Make all due now.
UPDATE claims_waiting SET due = 0;

-- count_claims_waiting --
-- The number of queued memories, the time of the oldest, and the last failure.
SELECT count(*), min(since), (SELECT note FROM claims_waiting WHERE note IS NOT NULL ORDER BY due DESC, memory LIMIT 1)
FROM claims_waiting;

-- insert_conflict --
-- Store the judgement of a pair for a manual decision.
INSERT INTO conflicts (older, newer, relation, confidence, model, at)
VALUES (:older, :newer, :relation, :confidence, :model, :at)
ON CONFLICT (older, newer) DO UPDATE SET
    relation = excluded.relation, confidence = excluded.confidence, model = excluded.model, at = excluded.at;

-- list_conflicts --
-- All judgements: (older, newer, relation, confidence, model, at).
SELECT older, newer, relation, confidence, model, at FROM conflicts ORDER BY older, newer;

-- erase_conflicts --
-- The user settled it, or one memory was deleted.
DELETE FROM conflicts WHERE older = :id OR newer = :id;

-- delete_conflict --
-- After it was settled.
DELETE FROM conflicts WHERE (older, newer) IN (VALUES (:older, :newer), (:newer, :older));

-- contradict_memory --
-- A statement contradicted it.
INSERT INTO usage (memory, contradictions) VALUES (:memory, 1)
ON CONFLICT (memory) DO UPDATE SET contradictions = usage.contradictions + 1;

-- uncontradict_memory --
-- The user decided that it was no contradiction.
UPDATE usage SET contradictions = max(0, contradictions - 1) WHERE memory = :memory;
