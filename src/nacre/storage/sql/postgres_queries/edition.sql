-- read_edition --
-- How many transactions have written.
SELECT coalesce((SELECT number FROM edition), 0);

-- count_edition --
-- The transaction wrote something.
INSERT INTO edition (one, number) SELECT 1, 1 WHERE pg_current_xact_id_if_assigned() IS NOT NULL
ON CONFLICT (one) DO UPDATE SET number = edition.number + 1;
