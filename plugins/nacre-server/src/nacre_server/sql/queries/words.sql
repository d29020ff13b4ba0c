-- insert_word_names --
-- New identifiers.
INSERT INTO names (name) SELECT DISTINCT value FROM json_each(:names) ON CONFLICT DO NOTHING;

-- list_word_names --
-- Identifiers by name.
SELECT name, row FROM names WHERE name IN (SELECT value FROM json_each(:names));

-- find_word_names --
-- Identifiers that contain a part.
SELECT row FROM names WHERE strpos(lower(name), lower(:part)) > 0 ORDER BY length(name), row LIMIT :limit;

-- insert_words --
-- Full text of rows.
INSERT INTO words (kind, row, keys, counts, length, names)
SELECT :kind, (value ->> 0)::bigint, translate(value ->> 1, '[]', '{}')::bigint[], translate(value ->> 2, '[]', '{}')::real[],
    (value ->> 3)::integer, translate(value ->> 4, '[]', '{}')::bigint[]
FROM json_each(:rows);

-- count_in_terms --
-- Add to the row counts of their stems. Rows are locked in one order.
INSERT INTO terms (kind, key, term, rows)
SELECT :kind, (value ->> 0)::bigint, value ->> 1, (value ->> 2)::bigint FROM json_each(:terms) ORDER BY 2
ON CONFLICT (kind, key) DO UPDATE SET rows = terms.rows + excluded.rows;

-- count_in_totals --
-- Add to the numbers of rows and words, or subtract.
INSERT INTO word_totals (kind, rows, words) VALUES (:kind, :rows, :words)
ON CONFLICT (kind) DO UPDATE SET rows = word_totals.rows + excluded.rows, words = word_totals.words + excluded.words;

-- delete_words --
-- Delete rows and subtract from the row counts of their stems.
WITH gone AS (
    DELETE FROM words WHERE kind = :kind AND row IN (SELECT value::bigint FROM json_each(:rows)) RETURNING keys, length
), lost AS (
    SELECT key, count(*) AS rows FROM gone, unnest(keys) AS key GROUP BY key
), counted AS (
    UPDATE terms t SET rows = t.rows - l.rows FROM lost l WHERE t.kind = :kind AND t.key = l.key
)
SELECT count(*), coalesce(sum(length), 0) FROM gone;

-- prune_terms --
-- Stems that no row contains any more.
DELETE FROM terms WHERE kind = :kind AND rows <= 0;

-- count_terms_of --
-- The numbers of rows that contain some stems.
SELECT key, rows FROM terms WHERE kind = :kind AND key IN (SELECT value::bigint FROM json_each(:keys));

-- word_totals --
-- The numbers of rows and words of a kind.
SELECT rows, words FROM word_totals WHERE kind = :kind;

-- list_vocabulary --
-- Stems with an initial and a length.
SELECT term, rows FROM terms
WHERE kind = :kind AND term >= :initial AND term < :after AND length(term) BETWEEN :least AND :most AND rows > 0
ORDER BY term;

-- find_rows_of_stem --
-- Rows with a stem that begins like this.
SELECT row FROM word_rows
WHERE kind = :kind AND keys && ARRAY(
    SELECT key FROM terms WHERE kind = :kind AND starts_with(term, :stem) AND term >= :stem ORDER BY rows DESC LIMIT 200
)
LIMIT :limit;
