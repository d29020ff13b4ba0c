-- insert_word_names --
-- Identifiers that were never met before.
INSERT INTO names (name) SELECT DISTINCT value FROM json_each(:names) ON CONFLICT DO NOTHING;

-- list_word_names --
-- Identifiers by their names.
SELECT name, row FROM names WHERE name IN (SELECT value FROM json_each(:names));

-- find_word_names --
-- Identifiers that hold a part.
SELECT row FROM names WHERE strpos(lower(name), lower(:part)) > 0 ORDER BY length(name), row LIMIT :limit;

-- insert_words --
-- Full text of rows.
INSERT INTO words (kind, row, keys, counts, length, names)
SELECT :kind, (value ->> 0)::bigint, translate(value ->> 1, '[]', '{}')::bigint[], translate(value ->> 2, '[]', '{}')::real[],
    (value ->> 3)::integer, translate(value ->> 4, '[]', '{}')::bigint[]
FROM json_each(:rows);

-- count_in_terms --
-- Their stems are in so many rows more. Rows are locked in one order.
INSERT INTO terms (kind, key, term, rows)
SELECT :kind, (value ->> 0)::bigint, value ->> 1, (value ->> 2)::bigint FROM json_each(:terms) ORDER BY 2
ON CONFLICT (kind, key) DO UPDATE SET rows = terms.rows + excluded.rows;

-- count_in_totals --
-- There are so many rows and words more, or fewer.
INSERT INTO word_totals (kind, rows, words) VALUES (:kind, :rows, :words)
ON CONFLICT (kind) DO UPDATE SET rows = word_totals.rows + excluded.rows, words = word_totals.words + excluded.words;

-- delete_words --
-- Rows go; their stems are in so many rows fewer.
WITH gone AS (
    DELETE FROM words WHERE kind = :kind AND row IN (SELECT value::bigint FROM json_each(:rows)) RETURNING keys, length
), lost AS (
    SELECT key, count(*) AS rows FROM gone, unnest(keys) AS key GROUP BY key
), counted AS (
    UPDATE terms t SET rows = t.rows - l.rows FROM lost l WHERE t.kind = :kind AND t.key = l.key
)
SELECT count(*), coalesce(sum(length), 0) FROM gone;

-- prune_terms --
-- Stems that no row has any more.
DELETE FROM terms WHERE kind = :kind AND rows <= 0;

-- count_terms_of --
-- In how many rows some stems stand.
SELECT key, rows FROM terms WHERE kind = :kind AND key IN (SELECT value::bigint FROM json_each(:keys));

-- word_totals --
-- How many rows and words a kind has.
SELECT rows, words FROM word_totals WHERE kind = :kind;

-- list_vocabulary --
-- Stems with an initial and so many characters.
SELECT term, rows FROM terms
WHERE kind = :kind AND term >= :initial AND term < :after AND length(term) BETWEEN :least AND :most AND rows > 0
ORDER BY term;

-- find_rows_of_stem --
-- Rows with a stem that begins so.
SELECT row FROM word_rows
WHERE kind = :kind AND keys && ARRAY(
    SELECT key FROM terms WHERE kind = :kind AND starts_with(term, :stem) AND term >= :stem ORDER BY rows DESC LIMIT 200
)
LIMIT :limit;
