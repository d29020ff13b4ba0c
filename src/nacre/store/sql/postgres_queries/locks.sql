-- try_lock --
-- Of one tenant: whether nobody else holds it.
SELECT pg_try_advisory_lock(hashtextextended(nacre.tenant() || '/' || :lock, 1));

-- free_lock --
-- It is free.
SELECT pg_advisory_unlock(hashtextextended(nacre.tenant() || '/' || :lock, 1));
