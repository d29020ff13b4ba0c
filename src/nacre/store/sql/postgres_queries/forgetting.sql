-- blank_passage --
-- The number stays, so that rows and bits stay aligned; hash and vector go.
UPDATE passages SET
    hash = CAST('gone:' || CAST(row AS TEXT) AS BYTEA), vector = decode(repeat('00', length(vector)), 'hex')
WHERE row = :row;

-- prune_names --
-- Identifiers that stand in no text any more.
DELETE FROM names WHERE row NOT IN (SELECT unnest(w.names) FROM word_rows w);
