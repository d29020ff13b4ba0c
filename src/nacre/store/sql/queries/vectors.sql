-- list_turns_to_embed --
-- Turns without vectors, by row, so that one row number records the progress.
SELECT row, text FROM turns
WHERE row > :after AND speaker IN ('owner', 'agent') AND flags & 14 = 0 AND length(text) >= 12
ORDER BY row LIMIT :limit;

-- count_turns_to_embed --
-- Turns without vectors.
SELECT count(*) FROM turns
WHERE row > :after AND speaker IN ('owner', 'agent') AND flags & 14 = 0 AND length(text) >= 12;

-- find_passages --
-- By hash.
SELECT row, hash FROM passages WHERE hash IN (SELECT unhex(value) FROM json_each(:hashes));

-- find_vectors_by_hash --
-- Vectors of known passages.
SELECT hash, vector FROM passages WHERE hash IN (SELECT unhex(value) FROM json_each(:hashes));

-- insert_passage --
-- Insert a vector as int8: the unit vector times 127 divided by its largest component.
INSERT INTO passages (row, hash, vector) VALUES (:row, :hash, :vector);

-- next_passage --
-- Numbers are assigned in order, so that bits and rows stay aligned.
SELECT coalesce(max(row), 0) + 1 FROM passages;

-- insert_turn_passage --
-- Insert a passage of a turn, unless the turn was deleted while the vector was computed.
INSERT INTO turn_passages (passage, turn)
SELECT :passage, :turn WHERE EXISTS (SELECT 1 FROM turns WHERE row = :turn)
ON CONFLICT DO NOTHING;

-- insert_bits --
-- Sign bits of a run of passages.
INSERT INTO passage_bits (first, count, bits) VALUES (:first, :count, :bits);

-- list_bits --
-- Runs of bits from a passage onwards.
SELECT first, count, bits FROM passage_bits WHERE first >= :first ORDER BY first;

-- find_vectors --
-- Exact vectors of the nearest by bits.
SELECT row, vector FROM passages WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- find_turns_of_passages --
-- Turns that contain some passages.
SELECT passage, turn FROM turn_passages WHERE passage IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- find_vectors_of_turns --
-- The vectors of all passages of some turns.
SELECT tp.turn, p.vector FROM turn_passages tp JOIN passages p ON p.row = tp.passage
WHERE tp.turn IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- list_memories_to_embed --
-- Memories without a vector, newest first, including superseded memories, for questions about the past.
SELECT m.row, m.subject, m.content FROM past_memories m
LEFT JOIN memory_vectors v ON v.memory = m.row WHERE v.memory IS NULL
ORDER BY m.row DESC LIMIT :limit;

-- list_memory_texts --
-- Texts of all memories that get vectors, to estimate the effort.
SELECT subject, content FROM past_memories ORDER BY row;

-- count_memories_to_embed --
-- Memories without a vector.
SELECT count(*) FROM past_memories m LEFT JOIN memory_vectors v ON v.memory = m.row
WHERE v.memory IS NULL;

-- insert_memory_vector --
-- Insert a vector for a piece of a memory's text, unless its row was deleted in the meantime.
INSERT INTO memory_vectors (memory, ordinal, vector)
SELECT :memory, :ordinal, :vector WHERE EXISTS (SELECT 1 FROM memories WHERE row = :memory)
ON CONFLICT (memory, ordinal) DO UPDATE SET vector = excluded.vector;

-- list_memory_vectors --
-- All, because there are few.
SELECT memory, vector FROM memory_vectors ORDER BY memory, ordinal;

-- get_embedding_value --
-- The model of the vectors, or the progress.
SELECT value FROM embedding WHERE key = :key;

-- set_embedding_value --
-- In the transaction that stores the vectors.
INSERT INTO embedding (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value;

-- count_passages --
-- With a vector.
SELECT count(*) FROM passages;

-- drop_vectors --
-- Vectors of two models are never mixed.
DELETE FROM passages;

-- drop_turn_passages --
-- See drop_vectors.
DELETE FROM turn_passages;

-- drop_bits --
-- See drop_vectors.
DELETE FROM passage_bits;

-- drop_memory_vectors --
-- See drop_vectors.
DELETE FROM memory_vectors;

-- drop_embedding_values --
-- See drop_vectors.
DELETE FROM embedding;

-- one_size --
-- The number of components in a vector, or no row.
SELECT length(vector) FROM passages UNION ALL SELECT length(vector) FROM memory_vectors LIMIT 1;

-- count_memory_vectors --
-- Memories with vectors.
SELECT count(DISTINCT memory) FROM memory_vectors;

-- size_of_vectors --
-- The size of all vectors and bits in bytes.
SELECT coalesce((SELECT sum(length(vector)) FROM passages), 0) + coalesce((SELECT sum(length(bits)) FROM passage_bits), 0)
    + coalesce((SELECT sum(length(vector)) FROM memory_vectors), 0);

-- last_turn --
-- The newest row.
SELECT coalesce(max(row), 0) FROM turns;
