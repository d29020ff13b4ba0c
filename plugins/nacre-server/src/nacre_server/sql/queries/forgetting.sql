-- blank_passage --
-- Delete hash and vector, but keep the number, so that rows and bits stay aligned.
UPDATE passages SET
    hash = CAST('gone:' || CAST(row AS TEXT) AS BYTEA), vector = decode(repeat('00', length(vector)), 'hex')
WHERE row = :row;

-- prune_names --
-- Identifiers that no text contains any more.
DELETE FROM names WHERE row NOT IN (SELECT unnest(w.names) FROM word_rows w);
