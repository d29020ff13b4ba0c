-- read_edition --
-- The number of transactions that wrote.
SELECT coalesce((SELECT number FROM edition), 0);

-- count_edition --
-- The transaction wrote.
INSERT INTO edition (one, number) VALUES (1, 1)
ON CONFLICT (one) DO UPDATE SET number = edition.number + 1;
