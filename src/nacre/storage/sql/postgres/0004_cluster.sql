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
