-- read_edition --
-- How many transactions have written.
SELECT coalesce((SELECT number FROM edition), 0);

-- count_edition --
-- The transaction wrote something.
INSERT INTO edition (one, number) VALUES (1, 1)
ON CONFLICT (one) DO UPDATE SET number = edition.number + 1;
