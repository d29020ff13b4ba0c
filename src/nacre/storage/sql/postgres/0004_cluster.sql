-- needs 3
-- Workers of a cluster do for a space what its daemon would do. Up to which line of the audit log that was done:
CREATE TABLE nacre_spaces.tended (
    space TEXT COLLATE "C" PRIMARY KEY,
    number BIGINT NOT NULL
);

-- Which Idempotency-Key was used for what, for all processes that answer: hashes, no words. at: seconds since 1970.
CREATE TABLE nacre_spaces.used_keys (
    key TEXT COLLATE "C" PRIMARY KEY,
    body TEXT COLLATE "C" NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    location TEXT COLLATE "C" NOT NULL
);

-- What a space may use; NULL is no bound.
CREATE TABLE nacre_spaces.quotas (
    space TEXT COLLATE "C" PRIMARY KEY,
    calls BIGINT,
    turns BIGINT,
    usd DOUBLE PRECISION
);

-- How often keys to a space with such a bound were used on a day (UTC, as 2026-01-31), by all processes that answer.
CREATE TABLE nacre_spaces.calls (
    space TEXT COLLATE "C" NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    PRIMARY KEY (space, day)
);
