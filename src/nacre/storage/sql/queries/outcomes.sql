-- insert_outcome --
-- What became of an accepted memory.
INSERT INTO outcomes (memory, at, told) VALUES (:memory, :at, :told) ON CONFLICT (memory) DO NOTHING;

-- find_outcome --
-- By the id with which it was accepted.
SELECT told FROM outcomes WHERE memory = :memory;

-- delete_old_outcomes --
-- Whoever stored them knows by now.
DELETE FROM outcomes WHERE at < :before;
