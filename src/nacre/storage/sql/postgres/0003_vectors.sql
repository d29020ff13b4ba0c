-- Words. They are found by operators that PostgreSQL does not take for leakproof: under row-level security their inverted
-- indexes go unused. So a tenant has no rights on the table of words, but on its view, which reads with the rights of
-- whoever owns it. Row-level security lets the owner read all rows; what is written it still holds against the tenant.
REVOKE ALL ON nacre_rows.words FROM nacre_tenant;
ALTER VIEW nacre.words RESET (security_invoker);
DO $$
BEGIN
    EXECUTE format(
        'CREATE POLICY read_by_view ON nacre_rows.words FOR SELECT TO %I USING (true)',
        (SELECT tableowner FROM pg_tables WHERE schemaname = 'nacre_rows' AND tablename = 'words')
    );
END
$$;
-- What is read of them is read by this view, also where their own one is not on the way (decision 93).
CREATE VIEW nacre.word_rows WITH (security_invoker = true) AS SELECT * FROM nacre.words;
GRANT SELECT ON nacre.word_rows TO nacre_tenant;

-- Stems are in the order of their numbers, so that one of them is found by halving; rows lie whole in their pages, as
-- far as they fit. No release had rows here before.
ALTER TABLE nacre_rows.words
    ALTER COLUMN keys SET STORAGE EXTERNAL, ALTER COLUMN counts SET STORAGE EXTERNAL, SET (toast_tuple_target = 8160);

-- How often a row says a stem.
CREATE FUNCTION nacre.count_of(stem BIGINT, keys BIGINT[], counts REAL[]) RETURNS DOUBLE PRECISION
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN keys[width_bucket(stem, keys)] = stem THEN counts[width_bucket(stem, keys)] ELSE 0 END;

-- Vectors: the sign bits of the passages in use, a row each, which the server compares; those of other models are not
-- searched. A tenant with very many may have a graph of its own (decision 89).
CREATE TABLE nacre_rows.signs (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    passage BIGINT NOT NULL,
    bits BIT VARYING NOT NULL,
    PRIMARY KEY (tenant, passage)
);
CREATE FUNCTION nacre_rows.keep_signs() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path = nacre_rows, nacre, pg_catalog, pg_temp AS $$
DECLARE
    run BYTEA;
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (old.first, old.count) <> (new.first, new.count) THEN
        DELETE FROM signs WHERE tenant = old.tenant AND passage >= old.first AND passage < old.first + old.count;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        run := new.bits || ''::bytea; -- in memory, and not compressed
        INSERT INTO signs (tenant, passage, bits)
        SELECT new.tenant, new.first + n, ('x' || encode(substring(run FROM n * size + 1 FOR size), 'hex'))::bit varying
        FROM generate_series(0, new.count::integer - 1) AS n,
            (SELECT length(run) / nullif(new.count, 0)::integer AS size) AS one
        ON CONFLICT (tenant, passage) DO UPDATE SET bits = excluded.bits WHERE signs.bits <> excluded.bits;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER passage_bits_kept AFTER INSERT OR UPDATE OR DELETE ON nacre_rows.passage_bits
FOR EACH ROW EXECUTE FUNCTION nacre_rows.keep_signs();
ALTER TABLE nacre_rows.signs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON nacre_rows.signs USING (tenant = nacre.tenant());
CREATE VIEW nacre.signs WITH (security_invoker = true) AS
    SELECT passage, bits, tenant FROM nacre_rows.signs WHERE tenant = nacre.tenant() WITH CASCADED CHECK OPTION;
GRANT SELECT, INSERT, UPDATE, DELETE ON nacre_rows.signs, nacre.signs TO nacre_tenant;
