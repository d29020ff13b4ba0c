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
