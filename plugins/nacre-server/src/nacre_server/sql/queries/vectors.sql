-- exchange_passages --
-- Rows of a tenant are exchanged, because all tenants share the tables. The counts ensure that both sets are deleted
-- before any row is inserted.
WITH used AS (DELETE FROM passages RETURNING row, hash, vector),
made AS (DELETE FROM other_passages RETURNING row, hash, vector),
kept AS (
    INSERT INTO other_passages (row, hash, vector)
    SELECT row, hash, vector FROM used WHERE (SELECT count(*) FROM made) >= 0 RETURNING 1
)
INSERT INTO passages (row, hash, vector) SELECT row, hash, vector FROM made WHERE (SELECT count(*) FROM used) >= 0;

-- exchange_turn_passages --
WITH used AS (DELETE FROM turn_passages RETURNING passage, turn),
made AS (DELETE FROM other_turn_passages RETURNING passage, turn),
kept AS (
    INSERT INTO other_turn_passages (passage, turn)
    SELECT passage, turn FROM used WHERE (SELECT count(*) FROM made) >= 0 RETURNING 1
)
INSERT INTO turn_passages (passage, turn) SELECT passage, turn FROM made WHERE (SELECT count(*) FROM used) >= 0;

-- exchange_bits --
WITH used AS (DELETE FROM passage_bits RETURNING first, count, bits),
made AS (DELETE FROM other_passage_bits RETURNING first, count, bits),
kept AS (
    INSERT INTO other_passage_bits (first, count, bits)
    SELECT first, count, bits FROM used WHERE (SELECT count(*) FROM made) >= 0 RETURNING 1
)
INSERT INTO passage_bits (first, count, bits) SELECT first, count, bits FROM made WHERE (SELECT count(*) FROM used) >= 0;

-- exchange_memory_vectors --
WITH used AS (DELETE FROM memory_vectors RETURNING memory, ordinal, vector),
made AS (DELETE FROM other_memory_vectors RETURNING memory, ordinal, vector),
kept AS (
    INSERT INTO other_memory_vectors (memory, ordinal, vector)
    SELECT memory, ordinal, vector FROM used WHERE (SELECT count(*) FROM made) >= 0 RETURNING 1
)
INSERT INTO memory_vectors (memory, ordinal, vector) SELECT memory, ordinal, vector FROM made WHERE (SELECT count(*) FROM used) >= 0;

-- exchange_embedding_values --
WITH used AS (DELETE FROM embedding RETURNING key, value),
made AS (DELETE FROM other_embedding RETURNING key, value),
kept AS (
    INSERT INTO other_embedding (key, value)
    SELECT key, value FROM used WHERE (SELECT count(*) FROM made) >= 0 RETURNING 1
)
INSERT INTO embedding (key, value) SELECT key, value FROM made WHERE (SELECT count(*) FROM used) >= 0;
