-- try_lock --
-- A tenant's lock, unless another connection holds it.
SELECT pg_try_advisory_lock(hashtextextended(nacre.tenant() || '/' || :lock, 1));

-- free_lock --
SELECT pg_advisory_unlock(hashtextextended(nacre.tenant() || '/' || :lock, 1));
